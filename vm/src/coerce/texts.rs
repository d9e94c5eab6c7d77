//! Text comparison: long texts piece by piece, each piece paid before it is compared.

use crate::heap::{Heap, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{COMPARED_PIECE, READ, SHORT_TEXT, Sizes, compared_units};
use a99_ecma::wtf8;
use std::cmp::Ordering;

/// Whether a comparison must still be paid for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Paid {
    /// Pay for each piece before comparing it.
    Now,
    /// The caller has paid; only time is metered.
    Before,
}

/// Whether two texts are equal. Texts of different length never are. The price does not
/// depend on where they are stored.
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

/// Whether two texts are equal, if the comparison is free: they are short or differ in
/// length.
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

/// Length in bytes of the common prefix, up to the piece in which the texts differ.
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

/// [`str_order`] of texts that are already paid for.
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
    // The start of the character in which the piece begins.
    let inner = |byte: u8| byte & 0xC0 == 0x80;
    while at > 0 && (inner(x[at]) || inner(y[at])) {
        at -= 1;
    }
    Ok(wtf8::compare_utf16(&x[at..], &y[at..]))
}
