//! Placeholder.
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
