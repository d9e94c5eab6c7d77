//! The floor of speed, beside Lua 5.4 and rhai in one interleaved run.
//!
//! `cargo bench -p a99-benches --features peers --bench floor [-- ROUNDS [FILTER]]`
//!
//! A filter is a part of "WORK PEER", as in `"W2 agent99"`; it is what a
//! profiler wants.
//!
//! Every engine runs with its limits on: here fuel, heap ceiling and deadline;
//! in Lua a count hook every 1,000 instructions that looks at budget and
//! deadline, and a memory limit; in rhai a maximum of operations. Each round
//! runs every peer once, so that a busy machine slows all of them; times are
//! CPU time of the thread. The table gives the least and the median of the
//! rounds in nanoseconds per operation, and the floors with a verdict.

mod lua;
mod ours;
mod rhai_peer;

use cpu_time::ThreadTime;

/// Rounds unless the command line says otherwise.
const ROUNDS: usize = 7;

/// Runs its work once and says how many operations that was.
pub type Task = Box<dyn FnMut() -> u64>;

/// One peer's way to do a piece of work.
pub struct Entry {
    /// The piece of work.
    pub work: &'static str,
    /// The peer.
    pub peer: &'static str,
    /// The work itself.
    pub task: Task,
}

/// An entry from its parts.
pub fn entry(work: &'static str, peer: &'static str, task: impl FnMut() -> u64 + 'static) -> Entry {
    Entry {
        work,
        peer,
        task: Box::new(task),
    }
}

/// The pieces of work, in the order of the table.
pub mod work {
    /// W1, one run for each evaluation, inputs from a host map.
    pub const W1_MAP: &str = "W1 map";
    /// W1 at every turn of a loop over bound variables.
    pub const W1_LOOP: &str = "W1 loop";
    /// `s = s + i * i % 7`.
    pub const W2: &str = "W2";
    /// `s = s + i * i`.
    pub const W2D: &str = "W2d";
    /// A loop that only counts.
    pub const EMPTY: &str = "empty loop";
    /// A loop that calls a synchronous host function.
    pub const W7: &str = "W7 sync, gross";
    /// Compiling the agent of ten steps.
    pub const W8_COMPILE: &str = "W8 compile";
    /// From text to result, the engine's own set-up included.
    pub const W8_COLD: &str = "W8 cold";
    /// The compiled agent in a new isolated context for each run.
    pub const W8_FRESH: &str = "W8 fresh";
    /// Starting a run up to its suspension on the host.
    pub const W9_START: &str = "W9 start";

    /// All of them.
    pub const ALL: [&str; 10] = [
        W1_MAP, W1_LOOP, W2, W2D, EMPTY, W7, W8_COMPILE, W8_COLD, W8_FRESH, W9_START,
    ];
}

/// Least and median nanoseconds per operation.
#[derive(Copy, Clone)]
struct Figure {
    least: f64,
    median: f64,
}

struct Table(Vec<(&'static str, &'static str, Figure)>);

impl Table {
    fn get(&self, work: &str, peer: &str) -> Option<Figure> {
        self.0
            .iter()
            .find(|(w, p, _)| *w == work && *p == peer)
            .map(|(_, _, f)| *f)
    }

    /// The least time; NaN if the peer does not do this work.
    fn least(&self, work: &str, peer: &str) -> f64 {
        self.get(work, peer).map_or(f64::NAN, |f| f.least)
    }

    fn print(&self) {
        println!("\nCPU nanoseconds per operation: least (median)\n");
        println!(
            "{:<16}{:>20}{:>22}{:>22}{:>10}{:>10}",
            "", "agent99", "lua54", "rhai", "lua/us", "rhai/us"
        );
        for work in work::ALL {
            let cell = |peer| match self.get(work, peer) {
                Some(f) => format!("{:.1} ({:.1})", f.least, f.median),
                None => "-".into(),
            };
            let us = self.least(work, OURS);
            println!(
                "{work:<16}{:>20}{:>22}{:>22}{:>10.2}{:>10.2}",
                cell(OURS),
                cell(LUA),
                cell(RHAI),
                self.least(work, LUA) / us,
                self.least(work, RHAI) / us,
            );
        }
    }

    fn verdicts(&self) {
        let net = |peer| self.least(work::W7, peer) - self.least(work::EMPTY, peer);
        let us = |work| self.least(work, OURS);
        let rhai_per = |work| self.least(work, RHAI) / us(work);
        println!(
            "\nW7 sync net of the loop: agent99 {:.1}, lua54 {:.1}, rhai {:.1}\n",
            net(OURS),
            net(LUA),
            net(RHAI)
        );
        let floors = [
            (
                "W2 faster than lua54",
                us(work::W2) < self.least(work::W2, LUA),
            ),
            (
                "W2d faster than lua54",
                us(work::W2D) < self.least(work::W2D, LUA),
            ),
            (
                "W1 map at least 3 times as fast as rhai",
                rhai_per(work::W1_MAP) >= 3.0,
            ),
            (
                "W1 loop at least 3 times as fast as rhai",
                rhai_per(work::W1_LOOP) >= 3.0,
            ),
            ("W7 sync at most 40 ns", net(OURS) <= 40.0),
            ("W8 fresh at most 3,000 ns", us(work::W8_FRESH) <= 3_000.0),
        ];
        for (floor, met) in floors {
            println!("{:<10}{floor}", if met { "met" } else { "NOT MET" });
        }
    }
}

/// This engine.
pub const OURS: &str = "agent99";
/// Lua 5.4 through mlua.
pub const LUA: &str = "lua54";
/// rhai.
pub const RHAI: &str = "rhai";

fn main() {
    // Cargo adds `--bench`.
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let rounds = given
        .first()
        .and_then(|a| a.parse().ok())
        .unwrap_or(ROUNDS)
        .max(1);
    let filter = given.get(1).map_or("", String::as_str);
    let mut entries: Vec<Entry> = ours::entries();
    entries.extend(lua::entries());
    entries.extend(rhai_peer::entries());
    entries.retain(|e| format!("{} {}", e.work, e.peer).contains(filter));
    // Interleave the peers within each piece of work.
    entries.sort_by_key(|e| work::ALL.iter().position(|w| *w == e.work));
    let mut samples = vec![Vec::with_capacity(rounds); entries.len()];
    for round in 0..=rounds {
        for (entry, times) in entries.iter_mut().zip(&mut samples) {
            let start = ThreadTime::now();
            let operations = (entry.task)();
            let time = start.elapsed().as_nanos() as f64 / operations as f64;
            // The first round warms up.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let figures = entries.iter().zip(samples).map(|(entry, mut times)| {
        times.sort_by(f64::total_cmp);
        let figure = Figure {
            least: times[0],
            median: times[times.len() / 2],
        };
        (entry.work, entry.peer, figure)
    });
    let table = Table(figures.collect());
    table.print();
    table.verdicts();
}
