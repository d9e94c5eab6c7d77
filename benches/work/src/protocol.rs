//! Protocol of the programs that do the work: what they are asked, what they print.
//!
//! A program without arguments prints what it is: a line of JSON with its name, its
//! version, its limits, and the work that it does. With the name of a piece of work it does
//! it and prints one line with the figure. `--small` before the name does little of it,
//! to see that results are right.

use crate::{Size, Work};
use cpu_time::ProcessTime;
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Repetitions in a process, at least; the least of them counts.
const REPEATED: u32 = 3;

/// They go on until this much time was measured, so that short work is repeated more often.
const MEASURED: Duration = Duration::from_millis(150);

/// They end when all of it, what is not measured included, has taken this long.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a program is.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name of the engine's column.
    pub name: &'static str,
    /// The engine's release, and the crate that embeds it.
    pub version: &'static str,
    /// The limits that are on.
    pub limits: &'static str,
}

/// A piece of work, and how it is set up.
pub type Entry = (&'static Work, fn(Size) -> Task);

/// Work that is set up. Whatever does it compares the result with what it must be.
pub enum Task {
    /// All of the time counts.
    All {
        /// How many there are in it of what the figure is for one of.
        operations: u64,
        /// Does it.
        run: Box<dyn FnMut()>,
    },
    /// What the time is above that of the same without what is measured.
    Net {
        /// As in `All`.
        operations: u64,
        /// Does it.
        run: Box<dyn FnMut()>,
        /// Does the rest.
        rest: Box<dyn FnMut()>,
    },
    /// A part of the time counts, which the work itself measures.
    Part {
        /// As in `All`.
        operations: u64,
        /// Does it, and gives the time of the part.
        run: Box<dyn FnMut() -> Duration>,
    },
    /// No time counts: the figure itself.
    Figure(Box<dyn FnOnce() -> f64>),
}

impl Task {
    /// All of the time counts.
    pub fn all(operations: impl Into<u64>, run: impl FnMut() + 'static) -> Task {
        Task::All {
            operations: operations.into(),
            run: Box::new(run),
        }
    }

    /// What each of `count` things holds that `start` makes, by what is `allocated`; their
    /// places in the list are part of it.
    pub fn held<T: 'static>(
        count: u32,
        allocated: impl Fn() -> usize + 'static,
        start: impl Fn(u32) -> Vec<T> + 'static,
    ) -> Task {
        Task::Figure(Box::new(move || {
            // What the first of them makes for all.
            drop(start(count));
            let before = allocated();
            let held = start(count);
            let bytes = allocated().saturating_sub(before);
            drop(held);
            bytes as f64 / f64::from(count)
        }))
    }

    /// The figure.
    fn measure(self) -> f64 {
        match self {
            Task::All {
                operations,
                mut run,
            } => least(|| time(&mut run)) / operations as f64,
            Task::Net {
                operations,
                mut run,
                mut rest,
            } => (least(|| time(&mut run)) - least(|| time(&mut rest))) / operations as f64,
            Task::Part { operations, run } => least(run) / operations as f64,
            Task::Figure(figure) => figure(),
        }
    }

    /// How many there are in the work of what its figure is for one of.
    pub fn operations(&self) -> u64 {
        match *self {
            Task::All { operations, .. }
            | Task::Net { operations, .. }
            | Task::Part { operations, .. } => operations,
            Task::Figure(_) => 1,
        }
    }

    /// Does the work so often, and the rest of it (see [`Task::Net`]) so often more. Of work
    /// of which a part counts, all is done.
    pub fn repeat(self, times: u32, rests: u32) {
        match self {
            Task::All { mut run, .. } => (0..times).for_each(|_| run()),
            Task::Net {
                mut run, mut rest, ..
            } => {
                (0..times).for_each(|_| run());
                (0..rests).for_each(|_| rest());
            }
            Task::Part { mut run, .. } => {
                for _ in 0..times {
                    run();
                }
            }
            Task::Figure(figure) => drop(figure()),
        }
    }
}

/// CPU time of the process, all threads of it.
pub fn time(run: impl FnOnce()) -> Duration {
    let start = ProcessTime::now();
    run();
    start.elapsed()
}

/// The least of several repetitions, in nanoseconds; the first one warms up.
fn least(mut run: impl FnMut() -> Duration) -> f64 {
    let begun = ProcessTime::now();
    run();
    let (mut least, mut sum, mut count) = (Duration::MAX, Duration::ZERO, 0);
    while count < REPEATED || (sum < MEASURED && begun.elapsed() < PATIENCE) {
        let time = run();
        least = least.min(time);
        sum += time;
        count += 1;
    }
    least.as_nanos() as f64
}

/// What a future gives that never waits.
///
/// # Panics
/// If it waits.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("ready at once"),
    }
}

/// What programs do: see the module.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the output of the programs"
)]
pub fn main(about: About, entries: &[Entry]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (size, name) = match *args {
        [] => {
            let works: Vec<&str> = entries.iter().map(|(work, _)| work.name).collect();
            let about = json!({
                "name": about.name, "version": about.version, "limits": about.limits,
                "works": works,
            });
            println!("{about}");
            return ExitCode::SUCCESS;
        }
        ["--small", name] => (Size::SMALL, name),
        [name] => (Size::FULL, name),
        _ => {
            eprintln!("usage: {} [[--small] WORK]", about.name);
            return ExitCode::from(2);
        }
    };
    let Some((work, set_up)) = entries.iter().find(|(work, _)| work.name == name) else {
        eprintln!("{} does no work {name}", about.name);
        return ExitCode::from(2);
    };
    let figure = set_up(size).measure();
    println!("{}", json!({"work": work.name, work.of.unit(): figure}));
    ExitCode::SUCCESS
}
