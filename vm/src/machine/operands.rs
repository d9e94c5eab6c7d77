//! Operands of instructions: equality, stored values, and caught errors.

use super::Caught;
use crate::coerce;
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_core::error::ErrorCode;

/// Equality by the rule of the run.
pub(super) fn equal(c: &mut Cx<'_>, exact: bool, a: Val, b: Val) -> Result<bool, Fault> {
    if exact {
        coerce::exact_eq(c, a, b)
    } else {
        coerce::loose_eq(c, a, b)
    }
}

/// The value to store in an array or object: unbound registers read as `undefined`.
#[inline]
pub(super) fn stored(val: Val) -> Val {
    match val {
        Val::Unbound => Val::Undefined,
        val => val,
    }
}

/// [`stored`] for a value that was just written.
#[inline(always)]
pub(super) fn stored_by_parts(val: &Val) -> Val {
    match val {
        Val::Unbound => Val::Undefined,
        val => val.by_parts(),
    }
}

#[cold]
pub(super) fn reassigned(name: &[u8]) -> Fault {
    let text = [&b"Cannot reassign const variable '"[..], name, b"'"].concat();
    super::thrown(ErrorCode::Program, text)
}

#[cold]
pub(super) fn redeclared(name: &[u8]) -> Fault {
    let text = [&b"Cannot redeclare variable '"[..], name, b"' as const"].concat();
    super::thrown(ErrorCode::Program, text)
}

/// Message and op of the error that a handler caught.
#[cold]
pub(super) fn caught_texts(c: &mut Cx<'_>, caught: Option<&Caught>) -> Result<(Val, Val), Fault> {
    let (message, by) = caught.map_or((&b""[..], &b""[..]), |c| (&c.message, c.op.as_bytes()));
    Ok((c.str(message)?, c.str(by)?))
}
