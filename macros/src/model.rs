//! The validated model of a function, the input of code generation.

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Expr, Ident, Path, Type, Visibility};

/// The price.
pub(crate) enum Cost {
    /// Units of fuel.
    Units(f64),
    /// A function of the input.
    Function(Path),
}

/// The source of the output's schema.
pub(crate) enum Output {
    /// The function's own type.
    Returned,
    /// Another type.
    Type(Box<Type>),
    /// Given as text.
    Text(String),
}

/// How a parameter is passed to the function.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Passing {
    /// By value.
    Value,
    /// `&str`, from an owned string.
    Text,
}

/// A parameter.
pub(crate) struct Param {
    /// Its name in Rust.
    pub ident: Ident,
    /// The step's key.
    pub key: String,
    /// Its type in the input struct.
    pub ty: Type,
    pub passing: Passing,
    pub docs: String,
    pub default: Option<Expr>,
}

/// How the function is called.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Calling {
    /// Inside one instruction.
    Inline,
    /// As a host call that answers at once.
    Ready,
    /// As a host call that may wait.
    Waiting,
}

/// A function that becomes an atom.
pub(crate) struct Atom {
    /// The path of the crate with `typed`.
    pub krate: TokenStream,
    pub vis: Visibility,
    /// The `cfg` attributes of the function.
    pub cfgs: Vec<Attribute>,
    pub ident: Ident,
    /// Span for errors about the answer.
    pub answer_span: Span,
    /// Its name in Rust without `r#`.
    pub rust_name: String,
    pub op: String,
    pub docs: String,
    /// Whether it has a description, by a comment or a key.
    pub is_documented: bool,
    pub takes_cx: bool,
    pub params: Vec<Param>,
    /// The function's return type; `None` without one.
    pub returns: Option<Type>,
    pub calling: Calling,
    pub pure_effect: bool,
    pub timeout_ms: Option<u64>,
    pub cost: Cost,
    pub output: Output,
}
