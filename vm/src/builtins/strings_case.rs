//! String methods for letter case, Unicode normalization and order (ECMA-262 §22.1.3). The
//! locale is always the root locale.

use super::globals::owned;
use super::{StrFn, arg, charge_text, collate};
use crate::coerce::to_str;
use crate::heap::{Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes, collated_units, normalized_units};
use a99_ecma::case;
use a99_ecma::forms::{self, Form};
use a99_ecma::wtf8;

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, StrFn)] = &[
    ("toLowerCase", lower),
    ("toUpperCase", upper),
    ("toLocaleLowerCase", lower),
    ("toLocaleUpperCase", upper),
    ("normalize", normalize),
    ("isWellFormed", is_well_formed),
    ("toWellFormed", to_well_formed),
    ("localeCompare", locale_compare),
];

/// Maximum growth of a byte by case conversion (`ΐ`, two bytes, becomes six).
const CASE_GROWTH: usize = 3;

/// Maximum growth of a byte by normalization (U+FDFA, three bytes, becomes 33).
const NORMAL_GROWTH: usize = 11;

/// Applies a function that may return its text unchanged.
fn mapped(
    cx: &mut Cx<'_>,
    s: Str,
    growth: usize,
    f: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<Option<Vec<u8>>, Fault>,
) -> Result<Val, Fault> {
    let growth = if s.is_ascii() { 1 } else { growth };
    cx.heap.check(s.len_bytes().saturating_mul(growth))?;
    let Some(text) = cx.read_text(s, 0..s.len_bytes(), f)? else {
        charge_text(cx, s.units())?;
        return Ok(Val::Str(s));
    };
    let units = cx.count_units(&text)?;
    charge_text(cx, units)?;
    Ok(Val::Str(cx.str_units(&text, units)?))
}

fn lower(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    mapped(cx, s, CASE_GROWTH, |text, mut tick| {
        Ok(owned(case::to_lower_with(text, &mut tick)?))
    })
}

fn upper(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    mapped(cx, s, CASE_GROWTH, |text, mut tick| {
        Ok(owned(case::to_upper_with(text, &mut tick)?))
    })
}

fn normalize(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let form = match arg(args, 0) {
        v if v.is_undefined() => Form::Nfc,
        v => {
            let name = to_str(cx, v)?;
            Form::from_name(cx.bytes(name)).map_err(|e| Fault::throw(e.message()))?
        }
    };
    let price = |given| READ.price(Sizes::units(normalized_units(s.units(), given)));
    if !s.is_ascii() {
        cx.pay_metered(price(0))?;
    }
    let normal = mapped(cx, s, NORMAL_GROWTH, |text, mut tick| {
        Ok(owned(forms::normalize_with(form, text, &mut tick)?))
    })?;
    if let Val::Str(normal) = normal
        && !s.is_ascii()
    {
        cx.pay_metered(price(normal.units()) - price(0))?;
    }
    Ok(normal)
}

fn is_well_formed(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(s.is_ascii() || lone_surrogate(cx, s)?.is_none()))
}

fn to_well_formed(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    if s.is_ascii() || lone_surrogate(cx, s)?.is_none() {
        charge_text(cx, s.units())?;
        return Ok(Val::Str(s));
    }
    mapped(cx, s, 1, |text, tick| {
        let mut out = Vec::with_capacity(text.len());
        for part in pieces(text) {
            tick(part.len())?;
            out.extend_from_slice(&wtf8::to_well_formed(part));
        }
        Ok(Some(out))
    })
}

/// Splits a text into parts that end between two characters.
fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    /// Bytes processed at once.
    const PIECE: usize = 8 << 10;
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = rest.len().min(PIECE);
        while end < rest.len() && rest[end] & 0xC0 == 0x80 {
            end += 1;
        }
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// The first ill-formed part of a text.
fn lone_surrogate(cx: &mut Cx<'_>, s: Str) -> Result<Option<usize>, Fault> {
    cx.read_text(s, 0..s.len_bytes(), |text, tick| {
        for (n, part) in pieces(text).enumerate() {
            tick(part.len())?;
            if !wtf8::is_well_formed(part) {
                return Ok(Some(n));
            }
        }
        Ok(None)
    })
}

fn locale_compare(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let other = to_str(cx, arg(args, 0))?;
    if crate::coerce::strict_eq_paid(cx, Val::Str(s), Val::Str(other))? {
        return Ok(Val::Num(0.0));
    }
    let units = s.units().saturating_add(other.units());
    let units = collated_units(units, s.is_ascii() && other.is_ascii());
    cx.charge(READ, Sizes::units(units))?;
    let mut run = cx.reading();
    let heap = run.heap();
    let order = collate::compare(&mut run, heap.bytes(s), heap.bytes(other))?;
    Ok(Val::Num(f64::from(order as i8)))
}
