//! Coercions and operators of the language (language section 3.3, after
//! ECMA-262 §7.1, §7.2 and §13).
//!
//! All functions work on one or two values. Work that grows with an operand is metered:
//! writing text, parsing numbers, joining arrays, comparing long texts. No conversion runs
//! code of the program, since objects have no methods (D16).

mod texts;
mod trim;

pub use texts::{same_short_text, str_order, str_order_paid};
pub(crate) use trim::trimmed_range;

use crate::heap::{Heap, Ref, Str, StrMark, Val, builtin};
use crate::native::{Cx, Fault};
use a99_core::costs::{CostModel, LIST_TEXT, NUMERAL, SHORT_TEXT, Sizes, WRITTEN, formatted_units};
use a99_ecma::{arith as num, date, number_parse, number_text, wtf8};
use std::cmp::Ordering;
use texts::{Paid, same_text};

/// Maximum nesting of arrays that are converted to text; equal to the depth limit of data
/// from the host (D21).
pub const MAX_TEXT_DEPTH: usize = 512;

/// Text of an object, as everywhere in JavaScript.
const OBJECT_TEXT: &[u8] = b"[object Object]";

/// The comparisons of order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// The arithmetic operators except `+`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Arith {
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `**`
    Pow,
}

/// ECMA-262 §7.1.2 ToBoolean.
#[inline]
pub fn truthy(_heap: &Heap, v: Val) -> bool {
    match v {
        Val::Unbound | Val::Undefined | Val::Null => false,
        Val::Bool(b) => b,
        Val::Num(n) => n != 0.0 && !n.is_nan(),
        Val::Str(s) => !s.is_empty(),
        _ => true,
    }
}

/// ECMA-262 §13.5.3 `typeof`. A namespace is an object, except `Date`, which
/// can be called.
pub fn type_of(v: Val) -> &'static str {
    match v {
        Val::Unbound | Val::Undefined => "undefined",
        Val::Bool(_) => "boolean",
        Val::Num(_) => "number",
        Val::Str(_) => "string",
        Val::Builtin(n) if builtin::is_callable(n) => "function",
        _ => "object",
    }
}

/// ECMA-262 §7.1.4 ToNumber.
///
/// # Errors
/// Fuel for long text and arrays; arrays without a text.
#[inline]
pub fn to_number(cx: &mut Cx<'_>, v: Val) -> Result<f64, Fault> {
    match v {
        Val::Num(n) => Ok(n),
        other => to_number_slow(cx, other),
    }
}

fn to_number_slow(cx: &mut Cx<'_>, v: Val) -> Result<f64, Fault> {
    Ok(match v {
        Val::Num(n) => n,
        Val::Unbound | Val::Undefined => f64::NAN,
        Val::Null => 0.0,
        Val::Bool(b) => f64::from(u8::from(b)),
        Val::Str(s) => str_to_number(cx, s)?,
        Val::Arr(_) => {
            let text = to_str(cx, v)?;
            str_to_number(cx, text)?
        }
        // The text of these is never a number.
        Val::Obj(_) | Val::Set(_) | Val::Map(_) | Val::Date(_) | Val::Builtin(_) => f64::NAN,
    })
}

fn str_to_number(cx: &mut Cx<'_>, s: Str) -> Result<f64, Fault> {
    cx.charge(NUMERAL, Sizes::units(s.units()))?;
    number_of_text(cx, s)
}

/// Parses a text as a number; charges for it.
///
/// # Errors
/// A stop.
pub(crate) fn number_of_text(cx: &mut Cx<'_>, s: Str) -> Result<f64, Fault> {
    if s.len_bytes() <= SHORT_TEXT {
        return Ok(number_parse::string_to_number(cx.bytes(s)));
    }
    let inside = trimmed_range(cx, s, true, true)?;
    cx.read_text(s, inside, |text, mut tick| {
        number_parse::trimmed_to_number(text, &mut tick)
    })
}

/// ECMA-262 §7.1.5 ToIntegerOrInfinity.
///
/// # Errors
/// As [`to_number`].
pub fn to_integer(cx: &mut Cx<'_>, v: Val) -> Result<f64, Fault> {
    Ok(num::to_integer_or_infinity(to_number(cx, v)?))
}

/// ECMA-262 §7.1.17 ToString. A set is `[object Object]`, a date its ISO text.
///
/// # Errors
/// Fuel and memory; arrays that are cyclic or nested too deeply.
pub fn to_str(cx: &mut Cx<'_>, v: Val) -> Result<Str, Fault> {
    match v {
        Val::Str(s) => Ok(s),
        Val::Arr(r) => {
            cx.charge(LIST_TEXT, Sizes::elements(cx.heap.len(r)))?;
            join(cx, r, None)
        }
        other => {
            let mut buf = Vec::new();
            scalar_text(cx.heap, other, &mut buf)?;
            Ok(cx.heap.alloc_str(&buf)?)
        }
    }
}

/// Appends the text of a value that is neither a string nor an array; the text is short.
fn scalar_text(heap: &Heap, v: Val, out: &mut Vec<u8>) -> Result<(), Fault> {
    match v {
        Val::Unbound | Val::Undefined => out.extend_from_slice(b"undefined"),
        Val::Null => out.extend_from_slice(b"null"),
        Val::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        Val::Num(n) => number_text::write_number(out, n),
        Val::Obj(_) | Val::Set(_) | Val::Map(_) | Val::Str(_) | Val::Arr(_) => {
            out.extend_from_slice(OBJECT_TEXT);
        }
        Val::Date(r) => {
            let ms = heap.date_ms(r);
            if ms.is_nan() {
                return Err(Fault::throw("Invalid Date"));
            }
            out.extend_from_slice(date::to_iso(ms).as_bytes());
        }
        Val::Builtin(n) => out.extend_from_slice(builtin_text(n).as_bytes()),
    }
    Ok(())
}

/// The text of a builtin, as JavaScript shows a native function.
fn builtin_text(n: u16) -> String {
    match builtin::namespace_name(n) {
        Some("Date") => "function Date() { [native code] }".to_owned(),
        Some(_) => "[object Object]".to_owned(),
        None => {
            let name = a99_core::builtins::FUNCTIONS
                .get(usize::from(n))
                .map_or("", |f| f.name);
            format!("function {name}() {{ [native code] }}")
        }
    }
}

/// `Array.prototype.join` (ECMA-262 §23.1.3.18) with `sep`, or with a comma; nested arrays
/// are joined with commas. `undefined` and `null` give no text.
///
/// The caller pays for the elements of `array`. Elements of nested arrays are charged when
/// one is entered, and text block by block before it goes to the heap: shared arrays nested
/// in each other make the size of the result unknown until the work is done.
///
/// # Errors
/// Fuel and memory; a cycle; more than [`MAX_TEXT_DEPTH`] nested arrays.
pub fn join(cx: &mut Cx<'_>, array: Ref, sep: Option<Str>) -> Result<Str, Fault> {
    let mut out = JoinText {
        mark: cx.heap.begin_str(0)?,
        block: Vec::new(),
        units: 0,
        formatted: 0,
        written: 0,
    };
    // (array, index of the next element)
    let mut stack: Vec<(Ref, usize)> = vec![(array, 0)];
    while let Some((r, at)) = stack.last_mut() {
        let (r, i) = (*r, *at);
        *at += 1;
        let Some(v) = cx.heap.items(r).get(i).copied() else {
            stack.pop();
            continue;
        };
        if i > 0 {
            match sep.filter(|_| stack.len() == 1) {
                Some(sep) => out.push_str(cx, sep)?,
                None => out.push_bytes(cx, b",")?,
            }
        }
        match v {
            Val::Unbound | Val::Undefined | Val::Null => {}
            Val::Str(s) => out.push_str(cx, s)?,
            Val::Arr(inner) => {
                check_nesting(&stack, inner)?;
                cx.charge(LIST_TEXT, Sizes::elements(cx.heap.len(inner)))?;
                stack.push((inner, 0));
            }
            other => out.push_scalar(cx, other)?,
        }
    }
    out.flush(cx)?;
    Ok(cx.built(out.mark, out.written))
}

/// Buffers text of a string under construction in blocks: short pieces would each pay for the
/// checks of heap and meter.
struct JoinText {
    mark: StrMark,
    block: Vec<u8>,
    /// UTF-16 units in the block, and those already written.
    units: usize,
    written: usize,
    /// Additional charge of formatted numbers and similar texts, in units.
    formatted: usize,
}

impl JoinText {
    /// Size of a block in bytes, and the longest string that is copied through it.
    const BLOCK: usize = 4 << 10;

    /// Appends the text of a value that is neither a string nor an array.
    fn push_scalar(&mut self, cx: &mut Cx<'_>, v: Val) -> Result<(), Fault> {
        let before = self.block.len();
        scalar_text(cx.heap, v, &mut self.block)?;
        let units = self.block.len() - before;
        self.formatted += formatted_units(units);
        self.grown(cx, units)
    }

    /// Appends a short ASCII text.
    fn push_bytes(&mut self, cx: &mut Cx<'_>, text: &[u8]) -> Result<(), Fault> {
        self.block.extend_from_slice(text);
        self.grown(cx, text.len())
    }

    fn grown(&mut self, cx: &mut Cx<'_>, units: usize) -> Result<(), Fault> {
        self.units += units;
        if self.block.len() > Self::BLOCK {
            self.flush(cx)
        } else {
            Ok(())
        }
    }

    fn push_str(&mut self, cx: &mut Cx<'_>, s: Str) -> Result<(), Fault> {
        if self.block.len() + s.len_bytes() > Self::BLOCK {
            self.flush(cx)?;
        }
        if s.len_bytes() > Self::BLOCK {
            cx.charge(WRITTEN, Sizes::default().out_units(s.units()))?;
            self.written += s.units();
            return cx.build(self.mark, s);
        }
        self.units += s.units();
        wtf8::concat(&mut self.block, cx.bytes(s));
        Ok(())
    }

    fn flush(&mut self, cx: &mut Cx<'_>) -> Result<(), Fault> {
        let units = match cx.meter.model {
            CostModel::Metered => self.units + self.formatted,
            CostModel::Flat => self.units,
        };
        cx.charge(WRITTEN, Sizes::default().out_units(units))?;
        cx.work((self.units + self.formatted) as i64)?;
        self.formatted = 0;
        cx.heap.build_bytes(self.mark, &self.block)?;
        self.block.clear();
        self.written += self.units;
        self.units = 0;
        Ok(())
    }
}

fn check_nesting(stack: &[(Ref, usize)], inner: Ref) -> Result<(), Fault> {
    if stack.iter().any(|(r, _)| *r == inner) {
        return Err(Fault::throw("Cannot convert a cyclic array to text"));
    }
    if stack.len() >= MAX_TEXT_DEPTH {
        return Err(Fault::throw(format!(
            "Cannot convert an array to text that is nested deeper than {MAX_TEXT_DEPTH}"
        )));
    }
    Ok(())
}

/// ECMA-262 §7.1.1 ToPrimitive: scalars stay unchanged, other values become text.
///
/// # Errors
/// As [`to_str`].
pub fn to_primitive(cx: &mut Cx<'_>, v: Val) -> Result<Val, Fault> {
    match v {
        Val::Arr(_) | Val::Obj(_) | Val::Set(_) | Val::Map(_) | Val::Date(_) | Val::Builtin(_) => {
            Ok(Val::Str(to_str(cx, v)?))
        }
        other => Ok(other),
    }
}

/// Equality of values that are not numbers: text by content, the rest by identity.
/// `undefined` and an unbound register are equal.
fn same_thing(cx: &mut Cx<'_>, a: Val, b: Val, paid: Paid) -> Result<bool, Fault> {
    Ok(match (a, b) {
        (Val::Str(a), Val::Str(b)) => same_text(cx, a, b, paid)?,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Null, Val::Null) => true,
        (Val::Builtin(a), Val::Builtin(b)) => a == b,
        (Val::Arr(a), Val::Arr(b))
        | (Val::Obj(a), Val::Obj(b))
        | (Val::Set(a), Val::Set(b))
        | (Val::Map(a), Val::Map(b))
        | (Val::Date(a), Val::Date(b)) => a == b,
        (a, b) => a.is_undefined() && b.is_undefined(),
    })
}

/// ECMA-262 §7.2.15 `===`.
///
/// # Errors
/// Fuel for long texts; a stop.
#[inline]
pub fn strict_eq(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    match (a, b) {
        (Val::Num(a), Val::Num(b)) => Ok(a == b),
        (a, b) => same_thing(cx, a, b, Paid::Now),
    }
}

/// [`strict_eq`] of texts that are already paid for.
///
/// # Errors
/// A stop.
pub fn strict_eq_paid(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    match (a, b) {
        (Val::Num(a), Val::Num(b)) => Ok(a == b),
        (a, b) => same_thing(cx, a, b, Paid::Before),
    }
}

/// ECMA-262 §7.2.11 SameValueZero (`===`, but NaN equals itself) of texts that are already
/// paid for.
///
/// # Errors
/// A stop.
pub fn same_value_zero_paid(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    match (a, b) {
        (Val::Num(a), Val::Num(b)) => Ok(a == b || (a.is_nan() && b.is_nan())),
        (a, b) => same_thing(cx, a, b, Paid::Before),
    }
}

/// The third generation's `==` (D6): identical, both NaN, or both nullish.
///
/// # Errors
/// Fuel for long texts; a stop.
pub fn exact_eq(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    Ok(match (a, b) {
        (Val::Num(a), Val::Num(b)) => a == b || (a.is_nan() && b.is_nan()),
        (a, b) if a.is_nullish() && b.is_nullish() => true,
        (a, b) => same_thing(cx, a, b, Paid::Now)?,
    })
}

/// ECMA-262 §7.2.14 `==` (D6).
///
/// # Errors
/// Fuel and memory if an array becomes text; arrays without a text.
#[inline]
pub fn loose_eq(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    match (a, b) {
        (Val::Num(a), Val::Num(b)) => Ok(a == b),
        (Val::Str(a), Val::Str(b)) => same_text(cx, a, b, Paid::Now),
        (a, b) => loose_eq_slow(cx, a, b),
    }
}

fn loose_eq_slow(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    if a.is_nullish() || b.is_nullish() {
        return Ok(a.is_nullish() && b.is_nullish());
    }
    let opaque = |v: Val| v.as_ref().is_some() || matches!(v, Val::Builtin(_));
    match (opaque(a), opaque(b)) {
        (true, true) => return same_thing(cx, a, b, Paid::Now),
        (true, false) => {
            let text = to_primitive(cx, a)?;
            return scalars_eq(cx, text, b);
        }
        (false, true) => {
            let text = to_primitive(cx, b)?;
            return scalars_eq(cx, a, text);
        }
        (false, false) => {}
    }
    scalars_eq(cx, a, b)
}

/// `==` of two numbers, booleans or texts.
fn scalars_eq(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<bool, Fault> {
    match (a, b) {
        (Val::Str(a), Val::Str(b)) => same_text(cx, a, b, Paid::Now),
        (Val::Bool(a), Val::Bool(b)) => Ok(a == b),
        (a, b) => Ok(to_number(cx, a)? == to_number(cx, b)?),
    }
}

/// The relations `< <= > >=` (ECMA-262 §7.2.13): texts by UTF-16 units, other values as
/// numbers. Every comparison with NaN is false.
///
/// # Errors
/// As [`to_primitive`] and [`to_number`].
#[inline]
pub fn compare(cx: &mut Cx<'_>, op: Cmp, a: Val, b: Val) -> Result<bool, Fault> {
    match (a, b) {
        (Val::Num(a), Val::Num(b)) => Ok(compare_numbers(op, a, b)),
        (a, b) => compare_slow(cx, op, a, b),
    }
}

#[inline]
fn compare_numbers(op: Cmp, a: f64, b: f64) -> bool {
    match op {
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
    }
}

fn compare_slow(cx: &mut Cx<'_>, op: Cmp, a: Val, b: Val) -> Result<bool, Fault> {
    let a = to_primitive(cx, a)?;
    let b = to_primitive(cx, b)?;
    if let (Val::Str(a), Val::Str(b)) = (a, b) {
        let order = str_order(cx, a, b)?;
        return Ok(match op {
            Cmp::Lt => order == Ordering::Less,
            Cmp::Le => order != Ordering::Greater,
            Cmp::Gt => order == Ordering::Greater,
            Cmp::Ge => order != Ordering::Less,
        });
    }
    Ok(compare_numbers(op, to_number(cx, a)?, to_number(cx, b)?))
}

/// `+` (ECMA-262 §13.15.3): concatenates if either side is text after ToPrimitive, else adds.
/// Charges the written units before it concatenates.
///
/// # Errors
/// Fuel and memory; arrays without a text.
#[inline]
pub fn add(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<Val, Fault> {
    match (a, b) {
        (Val::Num(a), Val::Num(b)) => Ok(Val::Num(a + b)),
        (Val::Str(a), Val::Str(b)) => concat(cx, a, b),
        (a, b) => add_slow(cx, a, b),
    }
}

fn add_slow(cx: &mut Cx<'_>, a: Val, b: Val) -> Result<Val, Fault> {
    let a = to_primitive(cx, a)?;
    let b = to_primitive(cx, b)?;
    match (a, b) {
        (Val::Str(s), scalar) if !matches!(scalar, Val::Str(_)) => {
            // Short text is appended to the string in place, so that building text piece by
            // piece stays linear.
            let mut tail = Vec::new();
            scalar_text(cx.heap, scalar, &mut tail)?;
            cx.charge(WRITTEN, Sizes::default().out_units(s.units() + tail.len()))?;
            let (heap, mut clock) = cx.split();
            Ok(Val::Str(heap.concat_ascii(s, &tail, &mut clock)?))
        }
        (Val::Str(_), _) | (_, Val::Str(_)) => {
            let a = to_str(cx, a)?;
            let b = to_str(cx, b)?;
            concat(cx, a, b)
        }
        (a, b) => Ok(Val::Num(to_number(cx, a)? + to_number(cx, b)?)),
    }
}

/// Joins two strings and pays for the result.
///
/// # Errors
/// Fuel and memory.
pub fn concat(cx: &mut Cx<'_>, a: Str, b: Str) -> Result<Val, Fault> {
    cx.charge(WRITTEN, Sizes::default().out_units(a.units() + b.units()))?;
    Ok(Val::Str(cx.joined(a, b)?))
}

/// The arithmetic operators (ECMA-262 §6.1.6.1), on numbers.
///
/// # Errors
/// As [`to_number`].
#[inline]
pub fn arith(cx: &mut Cx<'_>, op: Arith, a: Val, b: Val) -> Result<Val, Fault> {
    let (a, b) = match (a, b) {
        (Val::Num(a), Val::Num(b)) => (a, b),
        (a, b) => (to_number(cx, a)?, to_number(cx, b)?),
    };
    Ok(Val::Num(match op {
        Arith::Sub => a - b,
        Arith::Mul => a * b,
        Arith::Div => a / b,
        Arith::Rem => num::fmod(a, b),
        Arith::Pow => num::pow(a, b),
    }))
}

/// Unary `-`.
///
/// # Errors
/// As [`to_number`].
#[inline]
pub fn negate(cx: &mut Cx<'_>, v: Val) -> Result<Val, Fault> {
    Ok(Val::Num(-to_number(cx, v)?))
}

/// Unary `+`.
///
/// # Errors
/// As [`to_number`].
#[inline]
pub fn plus(cx: &mut Cx<'_>, v: Val) -> Result<Val, Fault> {
    Ok(Val::Num(to_number(cx, v)?))
}

#[cfg(test)]
mod tests;
