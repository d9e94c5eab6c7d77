//! The tokens of condition texts (logos).
//!
//! The lexer is context-free: whether `and` is an operator or a name, and whether `(` opens a
//! group or an argument list, is settled one step later, while brackets are paired.
//!
//! What logos derives from `token/definition.rs` is kept, so that no user compiles its code
//! generator, which costs more than this crate.

#[rustfmt::skip]
#[allow(
    clippy::all,
    unused,
    unused_qualifications,
    reason = "written by logos"
)]
mod generated;

pub(super) use generated::Raw;
