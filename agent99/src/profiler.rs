//! Profiles of runs: where fuel and time go, and which calls a run waits for.
//!
//! [`Engine::run_profiled`] looks at the stack of a run between short slices of work and gives the
//! fuel and time since the last look to it. Looks are close together at first and rarer later, so
//! that a short run has many and a long run pays little.

use crate::drive::Calls;
use crate::{Agent, Engine};
use a99_capabilities::Capabilities;
use a99_core::fuel::Fuel;
use a99_vm::{Args, Next, Outcome, RunOptions, StackFrame};
use std::collections::HashMap;
use std::time::Duration;

/// Different stacks that are kept; the rest counts as that of the program's body.
const MAX_STACKS: usize = 10_000;

/// Calls that are kept.
const MAX_CALLS: usize = 10_000;

/// Work of a slice in units of about a nanosecond, until this much time of the run.
const SLICES: [(u32, Duration); 4] = [
    (64, Duration::from_micros(500)),
    (1024, Duration::from_millis(20)),
    (8192, Duration::from_millis(100)),
    (32_768, Duration::MAX),
];

/// Time between two returns to the executor, about that of a slice of an unprofiled run.
const YIELD_AFTER: Duration = Duration::from_micros(100);

/// A stack, outermost first.
type Stack = Vec<StackFrame>;

/// The profile of a run.
#[derive(Debug, Default)]
pub struct Profile {
    /// Each stack with what was spent at it.
    pub stacks: Vec<(Stack, Spent)>,
    /// The calls of asynchronous atoms, in the order of their start.
    pub calls: Vec<ProfiledCall>,
    /// Calls that are not kept.
    pub more_calls: u64,
    /// The time of the run.
    pub time: Duration,
    /// Number of looks.
    pub looks: u64,
}

/// What was spent at a stack.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// Fuel.
    pub fuel: Fuel,
    /// Time of computing.
    pub time: Duration,
}

/// A call in a profile.
#[derive(Clone, Debug)]
pub struct ProfiledCall {
    /// Its id.
    pub id: String,
    /// The atom.
    pub atom: String,
    /// The stack that made it.
    pub stack: Stack,
    /// When it began, as time of the run.
    pub began: Duration,
    /// When its answer was there.
    pub ended: Option<Duration>,
    /// Whether the answer is an error.
    pub is_failed: bool,
}

impl Engine {
    /// Runs an agent as [`Engine::run`] does, and profiles it.
    pub async fn run_profiled(
        &self,
        agent: &Agent,
        args: impl Into<Args>,
        options: RunOptions,
        granted: Capabilities,
    ) -> (Outcome, Profile) {
        let mut run = self.start(agent, args, options, granted);
        let mut profiler = Profiler {
            fuel: run.fuel_left(),
            ..Profiler::default()
        };
        let mut calls: Calls<Option<usize>> = Calls::new();
        let mut yielded = Duration::ZERO;
        loop {
            let now = calls.elapsed();
            if let Some((work, _)) = SLICES.iter().find(|(_, until)| now < *until) {
                run.set_slice(*work);
            }
            let next = run.next(now);
            let stack = run.stack();
            let left = run.fuel_left();
            let spent = match &next {
                Next::Done(outcome) => minus(outcome.fuel_used, profiler.used),
                _ => minus(profiler.fuel, left),
            };
            profiler.look(stack, spent, left, calls.elapsed());
            match next {
                Next::Call(call) => {
                    let (id, atom) = (call.id.to_string(), call.atom.to_string());
                    let at = profiler.begin(id, atom, calls.elapsed());
                    calls.begin(*call, |call, deadline| (call.start(deadline), at));
                }
                Next::Pause if now.saturating_sub(yielded) < YIELD_AFTER => {}
                Next::Pause => {
                    yielded = now;
                    tokio::task::yield_now().await;
                }
                Next::Wait(until) => {
                    for (call, result) in calls.wait(until).await {
                        profiler.end(call.kept, result.is_err(), calls.elapsed());
                        // The run ignores answers to calls that timed out.
                        let _ = run.answer(&call.id, result);
                    }
                    profiler.since = calls.elapsed();
                }
                Next::Done(outcome) => return (*outcome, profiler.finish(calls.elapsed())),
            }
        }
    }
}

fn plus(a: Fuel, b: Fuel) -> Fuel {
    Fuel::from_micro(a.micro().saturating_add(b.micro()))
}

fn minus(a: Fuel, b: Fuel) -> Fuel {
    Fuel::from_micro(a.micro().saturating_sub(b.micro()))
}

#[derive(Default)]
struct Profiler {
    stacks: HashMap<Stack, Spent>,
    calls: Vec<ProfiledCall>,
    more_calls: u64,
    /// Fuel left, fuel used and time at the last look.
    fuel: Fuel,
    used: Fuel,
    since: Duration,
    looks: u64,
    /// The stack of the last look, or the one before the end of the run, which has no stack.
    last: Stack,
}

impl Profiler {
    fn look(&mut self, stack: Stack, fuel: Fuel, left: Fuel, now: Duration) {
        if !stack.is_empty() {
            self.last = stack;
        }
        let time = now.saturating_sub(self.since);
        let is_full = self.stacks.len() >= MAX_STACKS;
        let spent = match self.stacks.get_mut(&self.last) {
            Some(spent) => spent,
            None if is_full => {
                let body = self.last.iter().take(1).cloned().collect();
                self.stacks.entry(body).or_default()
            }
            None => self.stacks.entry(self.last.clone()).or_default(),
        };
        spent.fuel = plus(spent.fuel, fuel);
        spent.time += time;
        self.used = plus(self.used, fuel);
        (self.fuel, self.since) = (left, now);
        self.looks += 1;
    }

    /// Keeps a call, and returns its number.
    fn begin(&mut self, id: String, atom: String, now: Duration) -> Option<usize> {
        if self.calls.len() >= MAX_CALLS {
            self.more_calls += 1;
            return None;
        }
        self.calls.push(ProfiledCall {
            id,
            atom,
            stack: self.last.clone(),
            began: now,
            ended: None,
            is_failed: false,
        });
        Some(self.calls.len() - 1)
    }

    fn end(&mut self, call: Option<usize>, is_failed: bool, now: Duration) {
        if let Some(call) = call.and_then(|at| self.calls.get_mut(at)) {
            (call.ended, call.is_failed) = (Some(now), is_failed);
        }
    }

    fn finish(self, time: Duration) -> Profile {
        let mut stacks: Vec<_> = self.stacks.into_iter().collect();
        stacks.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.fuel.micro()));
        Profile {
            stacks,
            calls: self.calls,
            more_calls: self.more_calls,
            time,
            looks: self.looks,
        }
    }
}

#[cfg(all(test, feature = "source"))]
mod tests {
    use super::*;
    use crate::json;

    const PROGRAM: &str = "async function agent() {
  const a = inner(2000)
  const page = await storeGet({ key: 'k' })
  return { a, page }
}
function inner(n) {
  let i = 0
  while (i < n) i++
  return i
}";

    #[test]
    fn fuel_goes_to_the_stack_that_spends_it() {
        let engine = Engine::new();
        let agent = engine.compile_source(PROGRAM).expect("a program");
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().expect("a runtime");
        let run =
            || engine.run_profiled(&agent, json!({}), RunOptions::new(), Capabilities::none());
        let (outcome, profile) = runtime.block_on(run());
        assert!(outcome.error.is_none(), "{outcome:?}");
        let total = profile.stacks.iter().map(|(_, spent)| spent.fuel.micro());
        assert_eq!(total.sum::<i64>(), outcome.fuel_used.micro());
        let (hottest, spent) = &profile.stacks[0];
        let helpers: Vec<_> = hottest.iter().map(StackFrame::helper).collect();
        assert_eq!(helpers, [None, Some("inner".to_owned())]);
        assert!(
            spent.fuel.micro() * 2 > outcome.fuel_used.micro(),
            "{profile:?}"
        );
        let plain = runtime.block_on(engine.run(
            &agent,
            json!({}),
            RunOptions::new(),
            Capabilities::none(),
        ));
        assert_eq!(plain.to_json(), outcome.to_json());
        let call = &profile.calls[0];
        assert_eq!((&*call.id, &*call.atom), ("0.0", "storeGet"));
        assert!(call.ended.is_some_and(|ended| ended >= call.began));
    }
}
