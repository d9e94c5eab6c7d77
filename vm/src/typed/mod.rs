//! Typed atoms: Rust functions as atoms, based on `serde` and JSON Schema.
//!
//! The attribute `#[atom]` adds an [`AtomDecl`] to a function. At run time a step's inputs
//! are deserialized to the function's parameters ([`from_value`]) before the call. The answer
//! is serialized ([`to_value`]) and checked against the declared output. Both report a
//! [`Mismatch`] with the place, the expected type and the value found. Schemas derive from
//! the types ([`input_schema`], [`output_schema`], [`strict()`]).
//!
//! The module has no atoms and grants nothing. Functions belong to the host: their memory is
//! not limited, nor is the time of synchronous ones.

mod call;
mod cx;
mod decl;
mod decode;
mod direct;
mod encode;
mod gives;
mod mismatch;
mod pace;
mod schema;
#[cfg(test)]
mod tests;

pub use crate::strict_schema::strict;
pub use call::{Declared, Failure, Input, Reply};
pub use cx::AtomCx;
pub use decl::{AtomDecl, Body, Cost, DYNAMIC_DEFAULT};
pub use decode::{Key, MAX_TYPED_DEPTH, from_args, from_value};
pub use encode::to_value;
pub use mismatch::Mismatch;
pub use schema::{input_schema, output_schema};

/// Items for the expansion of `#[atom]`, without stability guarantees.
#[doc(hidden)]
pub mod expansion {
    pub use super::call::{CallWatch, begin, finish, inline, literal, price, sendable};
    pub use super::direct::{
        Answer, Args, Takes, TakesByValue, TakesDirectly, WritesByValue, WritesDirectly,
    };
    pub use super::gives::{
        FailsWithCode, FailsWithText, Gives, GivesResult, GivesValue, input_type,
    };
    pub use super::pace::Pace;
    pub use crate::atom::{AtomError, BoxFuture, HostCall, HostReply, Scope};
    pub use crate::convert::BoundaryLimits;
    pub use crate::heap::Val;
    pub use crate::native::{Cx, Fault};
    pub use a99_builder::{Builder, Operand};
    pub use a99_core::sig::{
        AtomTimeout, DEFAULT_ATOM_TIMEOUT_MS, Effect, LiteralCheck, LiteralFault,
    };
    pub use a99_core::value::Value;
    pub use schemars;
    pub use serde;
    pub use serde_json;

    /// Parses a schema given as text; the attribute has checked that it is JSON.
    pub fn schema_from_text(text: &str) -> serde_json::Value {
        serde_json::from_str(text).unwrap_or_default()
    }
}
