//! The data model of Agent99: the types that crates exchange and the formats that files have.
//!
//! It contains JSON documents with source positions, values and WTF-8 text, diagnostics, the schema
//! subset, signatures of atoms, prices and fuel, the op table, the program with its verifier and
//! disassembler, and the `.a99b` format. This crate compiles and runs nothing, and has no clock,
//! randomness, input or output.
//!
//! A program starts as a document, written by hand or with `a99-builder`:
//!
//! ```
//! use a99_core::json::{Document, Limits};
//!
//! let program = r#"{"op": "seq", "steps": []}"#;
//! let document = Document::parse(program, &Limits::default())?;
//! let steps = document.get(document.root(), "steps").expect("a member");
//! assert_eq!(document.pointer(steps), "/steps");
//!
//! // Malformed input is reported with its place.
//! let refused = Document::parse("{\"op\": }", &Limits::default()).unwrap_err();
//! assert_eq!(refused.iter().next().expect("one finding").span, Some(7..8));
//! # Ok::<(), a99_core::diag::Diagnostics>(())
//! ```

#![warn(unreachable_pub)]

pub mod artifact;
pub mod builtins;
pub mod call_id;
pub mod codes;
pub mod costs;
pub mod diag;
pub mod disasm;
pub mod error;
pub mod fuel;
pub mod grammar;
pub mod json;
pub mod pointer;
pub mod program;
pub mod schema;
pub mod sig;
pub mod suspend;
pub mod text;
pub mod value;
pub mod verify;
