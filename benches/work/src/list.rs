//! List of the work: names, units, goals.

/// The peer that goals are relative to.
pub const ANCHOR: &str = "lua54";

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The name, which begins with W and a number.
    pub name: &'static str,
    /// What the figure is for one of.
    pub per: &'static str,
    /// What is counted of it.
    pub of: Of,
    /// What is done.
    pub what: &'static str,
    /// What ours is to be, for the work that has a goal.
    pub goal: Option<Goal>,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Nanoseconds of CPU time.
    Time,
    /// Bytes that are allocated.
    Bytes,
}

impl Of {
    /// The unit of the figure.
    pub fn unit(self) -> &'static str {
        match self {
            Of::Time => "ns",
            Of::Bytes => "bytes",
        }
    }
}

/// What ours is to be on a machine where [`ANCHOR`] needs so much for a piece of work.
///
/// The goal is met where ours divided by the anchor's figure of the same interleaved run
/// is at most the quotient of these two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// At most this.
    pub most: f64,
    /// The work whose figure of the anchor counts: its own, or where the anchor has none,
    /// the nearest.
    pub anchor_work: &'static str,
    /// What the anchor needed for that.
    pub anchor: f64,
}

impl Goal {
    /// What ours may be where the anchor needs `anchor`.
    pub fn at(self, anchor: f64) -> f64 {
        self.most / self.anchor * anchor
    }
}

const fn work(name: &'static str, per: &'static str, of: Of, what: &'static str) -> Work {
    Work {
        name,
        per,
        of,
        what,
        goal: None,
    }
}

impl Work {
    const fn goal(self, most: f64, anchor: f64) -> Work {
        let name = self.name;
        self.goal_by(most, name, anchor)
    }

    const fn goal_by(self, most: f64, anchor_work: &'static str, anchor: f64) -> Work {
        Work {
            goal: Some(Goal {
                most,
                anchor_work,
                anchor,
            }),
            ..self
        }
    }
}

macro_rules! works {
    ($($(#[$doc:meta])* $name:ident = $work:expr;)*) => {
        $($(#[$doc])* pub const $name: &Work = &$work;)*

        /// All of the work, in the order of tables.
        pub const ALL: &[&Work] = &[$($name),*];
    };
}

works! {
    /// W1 from a map.
    W1_MAP = work(
        "W1 map", "evaluation", Of::Time,
        "`a*b + c/d - e%f > 10 && name == \"x\"`, compiled once, with inputs from a map of the host for each evaluation; ours by `Engine::bind`",
    ).goal(90.0, 1_210.0);
    /// W1 with its arguments by place.
    W1_BOUND = work(
        "W1 bound", "call", Of::Time,
        "the same condition with its inputs as separate arguments; ours by `Engine::bind`",
    ).goal_by(30.0, "W1 map", 1_210.0);
    /// W1 by a run that is not bound.
    W1_RUN = work(
        "W1 run", "run", Of::Time,
        "the same by `Engine::run_sync`, with trees of values as arguments and result",
    );
    /// W1 by a run that is given text.
    W1_JSON = work(
        "W1 run, JSON", "run", Of::Time,
        "the same by `Engine::run_sync` with the arguments as JSON text",
    );
    /// W1 over variables.
    W1_LOOP = work(
        "W1 loop", "turn", Of::Time,
        "the same condition at each turn of a loop, over variables",
    );
    /// W2.
    W2 = work("W2", "turn", Of::Time, "a loop, `s = s + i * i % 7`").goal(10.0, 43.0);
    /// W2 without the remainder.
    W2D = work("W2d", "turn", Of::Time, "a loop, `s = s + i * i`").goal(6.0, 24.0);
    /// W2 by the compiled tier.
    W2_COMPILED = work(
        "W2 compiled", "turn", Of::Time,
        "W2 with the compiled tier (`cargo xtask bench --jit`), after the run that compiled it",
    ).goal_by(3.0, "W2", 43.0);
    /// W2 without the remainder, by the compiled tier.
    W2D_COMPILED = work("W2d compiled", "turn", Of::Time, "W2d in the same way")
        .goal_by(2.5, "W2d", 24.0);
    /// W2 by an expression's text.
    W2_CALC = work("W2 mathCalc", "turn", Of::Time, "W2 by the atom `mathCalc`");
    /// W3.
    W3 = work("W3", "call", Of::Time, "fib(27) by a helper that calls itself");
    /// W4.
    W4 = work(
        "W4", "row", Of::Time,
        "100,000 objects `{id, price, qty, tag}` built, mapped, filtered, reduced, counted by tag",
    ).goal(200.0, 763.0);
    /// W5.
    W5 = work(
        "W5", "string", Of::Time,
        "a text of 1 MiB split, 50,000 templated strings, join",
    ).goal(250.0, 875.0);
    /// W6.
    W6 = work(
        "W6", "input byte", Of::Time,
        "a JSON document of 2 MB parsed; each order picked, merged, its keys counted, written",
    ).goal(8.0, 38.9);
    /// W7 with a native atom.
    W7_SYNC = work(
        "W7 sync", "call", Of::Time,
        "a call of a host function that adds 1, net of the empty loop",
    ).goal(10.0, 45.0);
    /// W7 with an attribute.
    W7_ATTRIBUTE = work(
        "W7 #[atom]", "call", Of::Time,
        "the same function by the attribute `#[atom]`",
    ).goal_by(10.0, "W7 sync", 45.0);
    /// W7 with a function that could wait.
    W7_ASYNC = work(
        "W7 async", "call", Of::Time,
        "a call of an asynchronous host function that is ready at once, net of the empty loop",
    ).goal(25.0, 362.0);
    /// W8, compiling.
    W8_COMPILE = work(
        "W8 compile", "agent", Of::Time,
        "an agent of ten steps compiled and verified",
    ).goal(6_000.0, 7_056.0);
    /// W8 with nothing kept.
    W8_COLD = work(
        "W8 cold", "run", Of::Time,
        "a new engine, the agent compiled and run once",
    ).goal(8_000.0, 40_500.0);
    /// W8 with the engine kept.
    W8_WARM = work(
        "W8 warm", "run", Of::Time,
        "the agent compiled and run once in an existing engine",
    );
    /// W8 with the compiled agent kept.
    W8_FRESH = work(
        "W8 fresh", "run", Of::Time,
        "the compiled agent in a new isolated context for each run; ours by a `RunProfile`",
    ).goal(700.0, 31_600.0);
    /// W9, starting.
    W9_START = work(
        "W9 start", "run", Of::Time,
        "10,000 isolated runs started, each up to its call of the host; ours by `RunProfile::start`",
    ).goal(500.0, 67_400.0);
    /// W9, starting by a future.
    W9_FUTURE = work(
        "W9 start, future", "run", Of::Time,
        "the same by the future of `RunProfile::run`, which has a timer for its deadline",
    );
    /// W9, what they hold.
    W9_BYTES = work(
        "W9 bytes", "run", Of::Bytes,
        "memory of a run that waits for the host",
    ).goal(600.0, 38_692.0);
    /// W9, what futures hold.
    W9_FUTURE_BYTES = work(
        "W9 bytes, future", "run", Of::Bytes,
        "memory of the future of a run that waits for the host, including its timer",
    );
    /// W9, resuming.
    W9_RESUME = work(
        "W9 resume", "run", Of::Time,
        "the host answers a waiting run, which continues to its end",
    ).goal_by(150.0, "W9 start", 67_400.0);
}

/// The work of this name.
pub fn named(name: &str) -> Option<&'static Work> {
    ALL.iter().copied().find(|work| work.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_anchors_are_work() {
        for (at, work) in ALL.iter().enumerate() {
            assert_eq!(named(work.name), Some(ALL[at]), "{}", work.name);
            let Some(goal) = work.goal else {
                continue;
            };
            assert!(goal.most > 0.0 && goal.anchor > goal.most, "{}", work.name);
            let anchor = named(goal.anchor_work).expect("an anchor of the list");
            let figure = anchor.goal.map(|of| of.anchor);
            assert_eq!(figure, Some(goal.anchor), "{}: one figure", work.name);
        }
    }

    #[test]
    fn goals_scale_with_the_anchor() {
        let goal = W2.goal.expect("a goal");
        assert_eq!(goal.at(43.0), 10.0);
        assert_eq!(goal.at(86.0), 20.0);
    }
}
