//! Numbers of builtin values: a function's row in [`FUNCTIONS`], or a namespace.

use super::Val;
use a99_core::builtins::{FUNCTIONS, NAMESPACES};

/// Bit of a [`Val::Builtin`] that marks a namespace.
pub const NAMESPACE_BIT: u16 = 0x8000;

/// The value of a namespace, by its number in [`NAMESPACES`].
pub fn namespace(n: u8) -> Val {
    Val::Builtin(NAMESPACE_BIT | u16::from(n))
}

/// The name of the namespace of a builtin value.
pub(crate) fn namespace_name(builtin: u16) -> Option<&'static str> {
    if builtin & NAMESPACE_BIT == 0 {
        return None;
    }
    NAMESPACES
        .get(usize::from(builtin & !NAMESPACE_BIT))
        .copied()
}

/// Whether a builtin value is callable: functions, and the namespaces that are functions too
/// (`Date`, `Number`, `String`).
pub fn is_callable(builtin: u16) -> bool {
    match namespace_name(builtin) {
        Some(ns) => a99_core::builtins::function("", ns).is_some(),
        None => usize::from(builtin) < FUNCTIONS.len(),
    }
}

/// Whether a program can have a value of this builtin.
pub(crate) fn is_known(builtin: u16) -> bool {
    namespace_name(builtin).is_some() || usize::from(builtin) < FUNCTIONS.len()
}
