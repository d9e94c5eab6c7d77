//! Typed atoms: Rust functions as atoms, by way of `serde` and JSON Schema.
//!
//! The attribute `#[atom]` adds an [`AtomDecl`] to a function. At run time a
//! step's inputs are read as the function's parameters ([`from_value`]),
//! before it is called; its answer is written as a value ([`to_value`]) and
//! checked against the declared output. Both say in a [`Mismatch`] where what
//! was expected and what was found. Schemas follow from the types
//! ([`input_schema`], [`output_schema`], [`strict()`]).
//!
//! It knows no atom and grants nothing. Functions are the host's: their memory
//! and, if they do not wait, their time are not limited.

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

/// What the expansion of `#[atom]` names. No promise is made about it.
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

    /// A schema that was written as text; the attribute has checked that it is
    /// JSON.
    pub fn schema_from_text(text: &str) -> serde_json::Value {
        serde_json::from_str(text).unwrap_or_default()
    }
}
