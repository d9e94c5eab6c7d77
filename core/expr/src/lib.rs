//! Parser of expression texts, and the arena for their nodes.
//!
//! [`parse_condition`] parses the string conditions of `if`, `while`, `filter` and `find`,
//! one superset grammar with strict errors (decisions D2, D3, D4, D47). The texts of older
//! generations have separate parsers, which fill the same arena, [`Expr`]: [`compat`].
//!
//! All parsers are linear in the text, refuse texts over [`MAX_TEXT_BYTES`], and never
//! recurse on the nesting of their input: brackets are kept on explicit stacks. The arena is
//! flat, so dropping a tree does not recurse either.
//!
//! The crate does not resolve names, evaluate expressions or limit the depth of the finished
//! tree; lowering checks [`Expr::depth`] (decision D38).
//!
//! ```
//! use a99_expr::{parse_condition, to_expr_json};
//!
//! let condition = parse_condition("price * 2 > 80").expect("it can be read");
//! assert_eq!(condition.depth(), 3);
//! assert_eq!(to_expr_json(&condition)["op"], ">");
//! assert!(parse_condition("price >").is_err());
//! ```

#![warn(unreachable_pub)]

mod arena;
mod builtins;
pub mod compat;
mod condition;
mod diagnose;
mod error;
mod grammar;
mod json;
#[cfg(test)]
pub(crate) mod tests;
mod token;

pub(crate) use arena::Infix;
pub use arena::{BinOp, Expr, ExprId, ExprKind, ExprNode, Lit, LogOp, ObjKey, UnOp};
pub use condition::{parse_condition, parse_expression};
pub use error::{ParseError, ParseErrorKind, ParseErrors};
pub use json::to_expr_json;

/// Maximum length of an expression text in bytes of UTF-8. Real conditions stay far below 1
/// KiB; the limit bounds the compiler's work per text for a hostile program.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum nesting of brackets, prefix operators, pending ternaries and `**` in one text.
/// Equal to the limit on nested expression nodes of decision D38.
pub const MAX_NESTING: usize = 1024;
