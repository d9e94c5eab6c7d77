//! ECMAScript primitives: numbers, text, dates and arithmetic as the language
//! defines them, over `f64` and WTF-8 bytes.
//!
//! The virtual machine and the oracle that checks it both use this crate, so that each rule
//! of the language is implemented once. Every function is pure and gives the same bits on
//! every machine: transcendental functions come from `libm`, never from the platform
//! (decision D17).
//!
//! Strings are WTF-8 (decision D36): UTF-8 in which a lone surrogate is kept as
//! its three-byte form, and in which a surrogate pair is always one four-byte
//! sequence. Functions that take text never panic on bytes that break this
//! form, but then their result is unspecified.
//!
//! The crate has no notion of values, objects, coercion hooks, fuel or memory limits: callers
//! pay for the work before they call.

#![warn(unreachable_pub)]

pub mod arith;
pub mod base64;
pub mod case;
pub mod date;
pub mod forms;
pub mod number_parse;
pub mod number_text;
mod pages;
pub mod text_index;
pub mod tick;
pub mod uri;
pub mod wtf8;

/// A JavaScript `RangeError` with the message of JavaScriptCore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeError {
    message: &'static str,
}

impl RangeError {
    pub(crate) const fn new(message: &'static str) -> Self {
        Self { message }
    }

    /// The message, without the name of the error class.
    #[must_use]
    pub const fn message(self) -> &'static str {
        self.message
    }
}

impl std::fmt::Display for RangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for RangeError {}
