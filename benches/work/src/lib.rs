//! Work that engines are compared by: what there is, what goes in, what must come out,
//! and the protocol by which a program does one piece of it.
//!
//! `cargo xtask bench` runs programs that link this crate: ours, and one for each peer in
//! `benches/peers`. A program names the work that it does by the constants of [`list`], so
//! that it cannot name another, and calls [`main`](protocol::main).

#![warn(unreachable_pub)]

pub mod inputs;
pub mod list;
pub mod protocol;

pub use list::Work;
pub use protocol::{About, Entry, Task, ready};

/// How much of the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Turns of loops.
    pub turns: u32,
    /// The number whose Fibonacci number a helper finds.
    pub fib: u32,
    /// Evaluations of the condition from a map.
    pub evaluations: u32,
    /// Objects.
    pub rows: u32,
    /// Words of a text.
    pub words: u32,
    /// Orders of a document.
    pub orders: u32,
    /// Programs that are compiled.
    pub compiles: u32,
    /// Runs of a compiled program.
    pub runs: u32,
    /// Runs that wait on their host at once.
    pub waiting: u32,
}

impl Size {
    /// What is measured.
    pub const FULL: Size = Size {
        turns: 1_000_000,
        fib: 27,
        evaluations: 100_000,
        rows: 100_000,
        words: 50_000,
        orders: 15_000,
        compiles: 1_000,
        runs: 20_000,
        waiting: 10_000,
    };

    /// What instructions are counted of: a count does not get better by repeating.
    pub const COUNTED: Size = Size {
        turns: 2_000,
        fib: 15,
        evaluations: 20,
        rows: 500,
        words: 500,
        orders: 100,
        compiles: 10,
        runs: 20,
        waiting: 20,
    };

    /// Enough to see that results are right.
    pub const SMALL: Size = Size {
        turns: 100,
        fib: 10,
        evaluations: 3,
        rows: 200,
        words: 50,
        orders: 20,
        compiles: 2,
        runs: 3,
        waiting: 5,
    };

    /// The same with a part of the states that an engine must be made for, where one takes
    /// long.
    #[must_use]
    pub fn few_states(self, part: u32) -> Size {
        Size {
            compiles: (self.compiles / part).max(1),
            runs: (self.runs / part).max(1),
            waiting: (self.waiting / part).max(1),
            ..self
        }
    }
}
