//! The tokens of condition texts (logos).
//!
//! The lexer is context-free. Whether `and` is an operator or a name, and whether `(` opens a
//! group or an argument list, is decided one step later, when brackets are paired.
//!
//! The code that logos derives from `token/definition.rs` is checked in, so that users need
//! not compile its code generator, which costs more than this crate.

#[rustfmt::skip]
#[allow(
    clippy::all,
    unused,
    unused_qualifications,
    reason = "written by logos"
)]
mod generated;

pub(super) use generated::Raw;
