//! The data model of Agent99: everything that is written down or handed from one
//! crate to another.
//!
//! JSON documents that know their places, values and WTF-8 text, diagnostics,
//! the schema subset, signatures of atoms, prices and fuel, the op table, the
//! program with its verifier and disassembler, and the `.a99b` format. Nothing
//! here compiles or runs anything, and there is no clock, randomness, input or
//! output.

#![warn(unreachable_pub)]

pub mod artifact;
pub mod builder;
pub mod builtins;
pub mod costs;
pub mod diag;
pub mod disasm;
pub mod docs;
pub mod error;
pub mod fuel;
pub mod json;
pub mod pointer;
pub mod program;
pub mod schema;
pub mod sig;
pub mod text;
pub mod value;
pub mod verify;
