//! Placeholder.
pub mod diag;
pub mod error;
pub mod fuel;
pub mod json;
pub mod pointer;
pub mod schema;
pub mod text;
pub mod value;
pub mod builtins;
pub mod costs;
pub mod docs;
pub mod disasm;
pub mod program;
pub mod sig;
pub mod verify;
