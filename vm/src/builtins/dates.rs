//! `Date` (language section 3.6, D34): immutable points in time, UTC only.

#[cfg(test)]
mod tests;

use super::{arg, charge_text, unknown_method};
use crate::coerce::{self, trimmed_range};
use crate::convert::{BoundaryLimits, cut};
use crate::convert::{date_text, temp};
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use a99_ecma::{date, wtf8};

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;
type Method = fn(&mut Cx<'_>, Ref, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[
    ("", "Date", new),
    ("Date", "now", now),
    ("Date", "parse", parse),
    ("Date", "tryParse", try_parse),
];

/// Code of each method.
pub(super) const METHODS: &[(&str, Method)] = &[
    ("add", add),
    ("diff", diff),
    ("format", format),
    ("getDate", |cx, r, _| part(cx, r, |f| f.day)),
    ("getDay", |cx, r, _| part(cx, r, |f| f.weekday)),
    ("getFullYear", |cx, r, _| part(cx, r, |f| f.year)),
    ("getHours", |cx, r, _| part(cx, r, |f| f.hours)),
    ("getMilliseconds", |cx, r, _| part(cx, r, |f| f.ms)),
    ("getMinutes", |cx, r, _| part(cx, r, |f| f.minutes)),
    ("getMonth", |cx, r, _| part(cx, r, |f| f.month - 1.0)),
    ("getSeconds", |cx, r, _| part(cx, r, |f| f.seconds)),
    ("getTime", |cx, r, _| Ok(Val::Num(cx.heap.date_ms(r)))),
    ("isAfter", is_after),
    ("isBefore", is_before),
    ("toISOString", to_text),
    ("toJSON", to_text),
    ("toString", to_text),
];

/// Maximum bytes of a refused text in its error: each of its copies takes time.
const SHOWN_BYTES: usize = 64 << 10;

/// `Date(init?)`: now, or the value of `new Date(init)`; invalid dates are refused.
fn new(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let init = arg(args, 0);
    let ms = if init.is_undefined() {
        date::time_clip(cx.now_ms())
    } else {
        to_ms(cx, init)?
    };
    if ms.is_nan() {
        let shown = coerce::to_str(cx, init)?;
        let limits = BoundaryLimits {
            max_bytes: SHOWN_BYTES,
            ..BoundaryLimits::default()
        };
        let shown = cut(cx.heap.bytes(shown), &limits);
        let shown = wtf8::to_utf8_lossy(shown).into_owned();
        return Err(Fault::throw(format!("Invalid date: {shown}")));
    }
    Ok(Val::Date(cx.heap.alloc_date(ms)?))
}

fn now(cx: &mut Cx<'_>, _: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Num(date::time_clip(cx.now_ms())))
}

/// `Date.parse(v)`: returns a date here, possibly invalid, with the value of `new Date(v)`;
/// also accepts numbers.
fn parse(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let ms = to_ms(cx, arg(args, 0))?;
    Ok(Val::Date(cx.heap.alloc_date(ms)?))
}

/// `Date.tryParse(v)`: a date, or `null` for an invalid one. `undefined`, `null` and booleans
/// are invalid here, though `new Date(null)` is the first of January 1970.
fn try_parse(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let ms = match arg(args, 0) {
        Val::Date(r) => cx.heap.date_ms(r),
        Val::Null | Val::Bool(_) | Val::Undefined | Val::Unbound => f64::NAN,
        other => to_ms(cx, other)?,
    };
    if ms.is_nan() {
        return Ok(Val::Null);
    }
    Ok(Val::Date(cx.heap.alloc_date(ms)?))
}

/// A part of a date, in UTC.
fn part(cx: &Cx<'_>, r: Ref, of: fn(&date::Fields) -> f64) -> Result<Val, Fault> {
    Ok(Val::Num(of(&date::fields(cx.heap.date_ms(r)))))
}

/// The time value of `new Date(v)` (ECMA-262 §21.4.2.1).
fn to_ms(cx: &mut Cx<'_>, v: Val) -> Result<f64, Fault> {
    Ok(match v {
        // A date is read as its text, which the invalid date does not have.
        Val::Date(r) => {
            let ms = cx.heap.date_ms(r);
            date_text(ms)?;
            ms
        }
        Val::Num(n) => date::time_clip(n),
        Val::Null | Val::Bool(_) | Val::Undefined | Val::Unbound => {
            date::time_clip(coerce::to_number(cx, v)?)
        }
        other => {
            let text = coerce::to_str(cx, other)?;
            let inside = trimmed_range(cx, text, true, true)?;
            date::parse(&cx.heap.bytes(text)[inside]).unwrap_or(f64::NAN)
        }
    })
}

/// The value of a date's member, `None` if dates have no such member.
///
/// # Errors
/// `Invalid Date` for `value` of the invalid date; memory.
pub(crate) fn field(cx: &mut Cx<'_>, ms: f64, name: &[u8]) -> Result<Option<Val>, Fault> {
    let fields = date::fields(ms);
    Ok(Some(Val::Num(match name {
        b"value" => return iso_val(cx, ms).map(Some),
        b"timestamp" => ms,
        b"year" => fields.year,
        b"month" => fields.month,
        b"day" => fields.day,
        b"hours" => fields.hours,
        b"minutes" => fields.minutes,
        b"seconds" => fields.seconds,
        b"dayOfWeek" => fields.weekday,
        _ => return Ok(None),
    })))
}

fn iso_val(cx: &mut Cx<'_>, ms: f64) -> Result<Val, Fault> {
    let text = date_text(ms)?;
    cx.str(text.as_bytes())
}

fn to_text(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let text = date_text(cx.heap.date_ms(r))?;
    paid(cx, text.as_bytes())
}

/// Returns a text after paying for it.
fn paid(cx: &mut Cx<'_>, text: &[u8]) -> Result<Val, Fault> {
    charge_text(cx, wtf8::utf16_len(text))?;
    cx.str(text)
}

/// `add({years, months, days, hours, minutes, seconds, ms})`: each part by the calendar, one
/// after the other, with the overflow of JavaScript's setters. Parts are added with `+`: text
/// is appended to the date's part.
fn add(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    const PARTS: [&[u8]; 7] = [
        b"years", b"months", b"days", b"hours", b"minutes", b"seconds", b"ms",
    ];
    let duration = arg(args, 0);
    if matches!(duration, Val::Null) {
        return Err(Fault::throw(
            "null is not an object (evaluating 'duration.years')",
        ));
    }
    let mut ms = cx.heap.date_ms(r);
    for (part, name) in PARTS.into_iter().enumerate() {
        let amount = match duration {
            Val::Obj(parts) => cx.heap.get_text(parts, name).unwrap_or(Val::Undefined),
            // A date has its own hours, minutes and seconds.
            Val::Date(other) => field(cx, cx.heap.date_ms(other), name)?.unwrap_or(Val::Undefined),
            _ => Val::Undefined,
        };
        if coerce::truthy(cx.heap, amount) {
            ms = add_part(cx, ms, part, amount)?;
        }
    }
    Ok(Val::Date(cx.heap.alloc_date(ms)?))
}

fn add_part(cx: &mut Cx<'_>, ms: f64, part: usize, amount: Val) -> Result<f64, Fault> {
    let f = date::fields(ms);
    let mut parts = [
        f.year,
        f.month - 1.0,
        f.day,
        f.hours,
        f.minutes,
        f.seconds,
        f.ms,
    ];
    // Text is appended, and paid for, as in any other sum.
    let sum = coerce::add(cx, Val::Num(parts[part]), amount)?;
    parts[part] = coerce::to_number(cx, sum)?;
    let [year, month, day, hours, minutes, seconds, ms] = parts;
    Ok(date::from_fields(
        year, month, day, hours, minutes, seconds, ms,
    ))
}

/// The time value of another date: its `timestamp`, or the value of `new Date(v)`; NaN for
/// `undefined`.
fn other_ms(cx: &mut Cx<'_>, args: &[Val]) -> Result<f64, Fault> {
    let stamp = match arg(args, 0) {
        Val::Null => {
            return Err(Fault::throw(
                "null is not an object (evaluating 'other.timestamp')",
            ));
        }
        Val::Undefined | Val::Unbound => return Ok(f64::NAN),
        Val::Obj(r) => cx.heap.get_text(r, b"timestamp").unwrap_or(Val::Undefined),
        _ => Val::Undefined,
    };
    if coerce::truthy(cx.heap, stamp) {
        return coerce::to_number(cx, stamp);
    }
    to_ms(cx, arg(args, 0))
}

/// `diff(other, unit)`, fractional; an unknown unit is milliseconds.
fn diff(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let other = other_ms(cx, args)?;
    let unit: &[u8] = match arg(args, 1) {
        Val::Str(s) => cx.heap.bytes(s),
        _ => b"ms",
    };
    let ms_of_unit = match unit {
        b"seconds" => 1_000.0,
        b"minutes" => 60_000.0,
        b"hours" => 3_600_000.0,
        b"days" => 86_400_000.0,
        _ => 1.0,
    };
    Ok(Val::Num((cx.heap.date_ms(r) - other) / ms_of_unit))
}

fn is_before(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let other = other_ms(cx, args)?;
    Ok(Val::Bool(cx.heap.date_ms(r) < other))
}

fn is_after(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let other = other_ms(cx, args)?;
    Ok(Val::Bool(cx.heap.date_ms(r) > other))
}

/// `format(pattern)`: `ISO`, `date`, `time`, or a pattern in which the first of each
/// placeholder is replaced.
fn format(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let ms = cx.heap.date_ms(r);
    let pattern = match arg(args, 0) {
        Val::Undefined | Val::Unbound => return to_text(cx, r, args),
        Val::Str(pattern) => pattern,
        other => return Err(unknown_method(cx, other, "replace")),
    };
    match cx.heap.bytes(pattern) {
        b"ISO" => return to_text(cx, r, args),
        b"date" | b"time" => {
            let text = date_text(ms)?;
            let is_date = pattern.len_bytes() == 4 && cx.heap.bytes(pattern) == b"date";
            let (day, time) = text.split_once('T').unwrap_or((&text, ""));
            let part = if is_date {
                day
            } else {
                time.get(..8).unwrap_or(time)
            };
            return paid(cx, part.as_bytes());
        }
        _ => {}
    }
    let mut out = temp::with_room(cx.heap, pattern.len_bytes() + 32)?;
    out.extend_from_slice(cx.heap.bytes(pattern));
    let f = date::fields(ms);
    let year = a99_ecma::number_text::number_to_string(f.year);
    let two = |n: f64| format!("{:0>2}", a99_ecma::number_text::number_to_string(n));
    for (placeholder, text) in [
        ("YYYY", year),
        ("MM", two(f.month)),
        ("DD", two(f.day)),
        ("HH", two(f.hours)),
        ("mm", two(f.minutes)),
        ("ss", two(f.seconds)),
    ] {
        if let Some(at) = wtf8::find(&out, placeholder.as_bytes(), 0) {
            out.splice(at..at + placeholder.len(), text.bytes());
        }
    }
    paid(cx, &out)
}
