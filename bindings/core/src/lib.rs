//! The engine behind one function call, for bindings to other languages.
//!
//! [`Host::call`] takes the number of an operation ([`Op`]) and a list of values and returns a
//! value. A binding needs no runtime: the host's language has the main loop. The engine calls back
//! for prices that a function of the host decides ([`Pricer`]), and for atoms whose functions
//! answer at once ([`Caller`]), if there are any. [`Op::Start`] and [`Op::Next`] return the next event of a run. The host answers
//! calls with [`Op::Answer`], in any order, when its own functions are done.
//!
//! `wire` is the binary form of the values for languages whose calls are dear: one buffer of
//! words and one text for a whole list of values.

#![warn(unreachable_pub)]

mod asks;
mod atoms;
mod codes;
mod event;
mod failure;
mod granted;
mod host;
mod options;
mod programs;
mod reflect;
mod runs;
mod slab;
#[cfg(test)]
mod tests;
mod timers;
pub mod wire;

pub use agent99::{Map, Text, Value};
pub use failure::Failure;
pub use host::{Host, Item, Op, Pricer};
pub use runs::{Caller, DirectAnswer, DirectCall};

/// An object with these members.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::with_capacity(N);
    for (name, value) in members {
        map.insert(name, value);
    }
    Value::Object(map)
}

/// Version of the operations and their forms; a binding refuses another one.
pub const ABI: u32 = 1;
