//! Processes that are killed while they host agents: at random moments, and at each place
//! between two durable actions. What the mode of delivery promises is looked at after each
//! kill. Programs as agents are killed at each of their suspension points. Many agents live for
//! an hour under load, and are taken away and killed meanwhile.
//!
//! The short form runs with the tests; `cargo xtask crash` runs the long one.

mod agent;
mod check;
mod child;
mod parent;
mod programs;
mod soak;

use a99_runtime::Delivery;

/// How the agent that is killed lives.
#[derive(Copy, Clone, Debug)]
struct Mode {
    name: &'static str,
    delivery: Delivery,
    /// Whether several turns are kept in one commit. It has no tables of its own then.
    is_joined: bool,
}

impl Mode {
    const ALL: [Mode; 4] = [
        Mode::of("at-most-once", Delivery::AtMostOnce),
        Mode::of("at-least-once", Delivery::AtLeastOnce),
        Mode::of("exactly-once-state", Delivery::ExactlyOnceState),
        Mode {
            is_joined: true,
            ..Mode::of("joined", Delivery::ExactlyOnceState)
        },
    ];

    const fn of(name: &'static str, delivery: Delivery) -> Mode {
        Mode {
            name,
            delivery,
            is_joined: false,
        }
    }

    fn find(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name == name)
    }

    /// Whether it sends something at once about a number.
    fn sends_now(self, n: u64) -> bool {
        n.is_multiple_of(if self.is_joined { 12 } else { 3 })
    }

    /// Whether it makes steps about it.
    fn makes_steps(self, n: u64) -> bool {
        !self.is_joined || n.is_multiple_of(10)
    }
}

#[test]
fn h02_kills_at_most_once() {
    parent::kills("at-most-once", 30, 1);
}

#[test]
fn h02_kills_at_least_once() {
    parent::kills("at-least-once", 30, 2);
}

#[test]
fn h02_kills_exactly_once_state() {
    parent::kills("exactly-once-state", 30, 3);
}

#[test]
fn h02_kills_of_turns_in_one_commit() {
    parent::kills("joined", 30, 4);
}

#[test]
fn h02_programs_are_killed_at_suspension_points() {
    programs::kill_everywhere(5, 11, 5);
}

#[test]
fn agents_bear_load_and_kills() {
    let soak = soak::Soak {
        agents: 100,
        seconds: 9,
        messages_a_second: 200,
        kills: 2,
    };
    soak::run(soak, 1);
}

/// `cargo xtask crash` tells by variables how many kills, in which modes, from which seed.
#[test]
#[ignore = "long: cargo xtask crash"]
fn long_kills() {
    let set = |name: &str| std::env::var(name).ok();
    let number = |name: &str, or: u64| set(name).map_or(or, |text| text.parse().expect("a number"));
    let (kills, seed) = (
        number("A99_CRASH_KILLS", 1_000),
        number("A99_CRASH_SEED", 1),
    );
    let only = set("A99_CRASH_MODE");
    let mut some = false;
    for Mode { name, .. } in Mode::ALL {
        if only.as_deref().is_none_or(|only| only == name) {
            parent::kills(name, kills, seed);
            some = true;
        }
    }
    if only.as_deref().is_none_or(|only| only == "programs") {
        let count = number("A99_CRASH_PROGRAMS", 100);
        programs::kill_everywhere(usize::try_from(count).expect("a number"), seed, 1);
        some = true;
    }
    if only.as_deref() == Some("soak") {
        let soak = soak::Soak {
            agents: 1_000,
            seconds: number("A99_CRASH_SECONDS", 3_600),
            messages_a_second: 200,
            kills: 5,
        };
        soak::run(soak, seed);
        some = true;
    }
    let names = Mode::ALL.map(|mode| mode.name).join(", ");
    assert!(some, "no such mode; there are {names}, programs, soak");
}

/// The process that is killed.
#[test]
#[ignore = "started by the others"]
fn child() {
    if std::env::var_os("A99_CRASH_FOLDER").is_some() {
        child::live();
    } else if std::env::var_os("A99_PROGRAM_FOLDER").is_some() {
        programs::child::live();
    } else if std::env::var_os("A99_SOAK_FOLDER").is_some() {
        soak::live();
    }
}
