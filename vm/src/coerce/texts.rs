//! Comparing texts: long ones piece by piece, each piece paid before it is
//! looked at.

use crate::heap::{Heap, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{COMPARED_PIECE, READ, SHORT_TEXT, Sizes, compared_units};
use a99_ecma::wtf8;
use std::cmp::Ordering;

/// Whether comparing texts is still to be paid.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Paid {
    /// Piece by piece, before each.
    Now,
    /// Somebody paid for all of it; only the time counts.
    Before,
}

/// Whether two texts are the same. Of different lengths they never are; the
/// price does not depend on where they lie.
#[inline]
pub(super) fn same_text(cx: &mut Cx<'_>, a: Str, b: Str, paid: Paid) -> Result<bool, Fault> {
    if a.len_bytes() != b.len_bytes() || a.units() != b.units() {
        return Ok(false);
    }
    if a.len_bytes() <= SHORT_TEXT {
        return Ok(a == b || cx.bytes(a) == cx.bytes(b));
    }
    Ok(common(cx, a, b, paid)? == a.len_bytes())
}

/// Whether two values that are texts are the same, where telling costs nothing: they are
/// short, or not of one length.
#[inline]
pub fn same_short_text(heap: &Heap, a: Val, b: Val) -> Option<bool> {
    let (Val::Str(a), Val::Str(b)) = (a, b) else {
        return None;
    };
    if a.len_bytes() != b.len_bytes() {
        return Some(false);
    }
    (a.len_bytes() <= SHORT_TEXT).then(|| a == b || heap.bytes(a) == heap.bytes(b))
}

/// The bytes at the start of two texts that are the same, up to the piece in
/// which they differ.
#[inline(never)]
fn common(cx: &mut Cx<'_>, a: Str, b: Str, paid: Paid) -> Result<usize, Fault> {
    let n = a.len_bytes().min(b.len_bytes());
    let mut at = 0;
    while at < n {
        let end = match at {
            0 => n.min(SHORT_TEXT),
            at => n.min(at + COMPARED_PIECE),
        };
        if at > 0 {
            let units = compared_units(end - at);
            if paid == Paid::Now {
                cx.charge(READ, Sizes::units(units))?;
            }
            cx.work(units as i64)?;
        }
        if cx.bytes(a)[at..end] != cx.bytes(b)[at..end] {
            return Ok(at);
        }
        at = end;
    }
    Ok(n)
}

/// The order of two strings by UTF-16 units (D36).
///
/// # Errors
/// Fuel for long texts; a stop.
pub fn str_order(cx: &mut Cx<'_>, a: Str, b: Str) -> Result<Ordering, Fault> {
    order(cx, a, b, Paid::Now)
}

/// [`str_order`] where the texts are paid.
///
/// # Errors
/// A stop.
pub fn str_order_paid(cx: &mut Cx<'_>, a: Str, b: Str) -> Result<Ordering, Fault> {
    order(cx, a, b, Paid::Before)
}

fn order(cx: &mut Cx<'_>, a: Str, b: Str, paid: Paid) -> Result<Ordering, Fault> {
    let n = a.len_bytes().min(b.len_bytes());
    let mut at = match n {
        0..=SHORT_TEXT => 0,
        _ => common(cx, a, b, paid)?,
    };
    let (x, y) = (cx.bytes(a), cx.bytes(b));
    if at == n && n > 0 {
        return Ok(x.len().cmp(&y.len()));
    }
    if a.is_ascii() || b.is_ascii() {
        return Ok(x[at..].cmp(&y[at..]));
    }
    // Where the character begins in which the piece does.
    let inner = |byte: u8| byte & 0xC0 == 0x80;
    while at > 0 && (inner(x[at]) || inner(y[at])) {
        at -= 1;
    }
    Ok(wtf8::compare_utf16(&x[at..], &y[at..]))
}
