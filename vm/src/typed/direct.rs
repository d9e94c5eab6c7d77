//! The direct path for numbers, booleans and texts between registers and functions, without
//! host values, serializers or schema checks.
//!
//! It accepts the values that the slow path ([`super::decode`], [`super::encode`] and the
//! declared output) accepts without an error, for the same fuel. Other values take the slow
//! path, which has the error messages.

use super::call::{Failure, Input, Reply};
use super::encode::to_value_in;
use super::gives::AnswerType;
use super::pace::Pace;
use crate::atom::AtomError;
use crate::convert::{self, BoundaryLimits, Copies, ESCAPED, LONGEST_SCALAR};
use crate::heap::{Heap, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::SCHEMA_NODE;
use a99_core::value::Value;
use serde::Serialize;
use std::marker::PhantomData;

/// Length from which texts take the slow path, which has yield points.
const MAX_TEXT: usize = 16 << 10;

/// Work per argument.
const ARGUMENT_WORK: i64 = 16;

/// Work per answer.
const ANSWER_WORK: i64 = 64;

/// The arguments of a call in registers.
#[derive(Copy, Clone)]
pub struct Args<'a> {
    heap: &'a Heap,
    vals: &'a [Val],
    /// Maximum JSON bytes of each.
    max_bytes: usize,
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").finish_non_exhaustive()
    }
}

impl<'a> Args<'a> {
    fn new(heap: &'a Heap, vals: &'a [Val], max_bytes: usize) -> Args<'a> {
        Args {
            heap,
            vals,
            max_bytes,
        }
    }

    fn val(&self, at: usize) -> Val {
        self.vals.get(at).copied().unwrap_or(Val::Undefined)
    }

    /// Whether a default replaces an argument.
    #[must_use]
    pub fn is_left_out(&self, at: usize) -> bool {
        self.val(at).is_nullish()
    }

    /// A text that can take the direct path.
    fn text(&self, val: Val) -> Option<&'a str> {
        let Val::Str(s) = val else { return None };
        // It fits the limit even if every byte is escaped, with its quotes.
        let crosses = s.len_bytes() < MAX_TEXT.min(self.max_bytes / ESCAPED);
        let text = crosses.then(|| self.heap.bytes(s))?;
        std::str::from_utf8(text).ok()
    }
}

/// Reads and charges the arguments of a call, if all can take the direct path.
///
/// # Errors
/// Fuel, memory, a stop.
pub(super) fn read<I: Input>(
    copies: &mut Copies<'_, '_>,
    vals: &[Val],
    limits: &BoundaryLimits,
) -> Result<Option<I>, Fault> {
    let max_bytes = limits.max_bytes;
    let args = Args::new(copies.heap, vals, max_bytes);
    if max_bytes < LONGEST_SCALAR || !I::fits(&args) {
        return Ok(None);
    }
    copies.work(ARGUMENT_WORK * vals.len() as i64)?;
    for val in vals {
        if let Val::Str(s) = val {
            copies.text(*s)?;
        }
    }
    Ok(I::take(&Args::new(copies.heap, vals, max_bytes)))
}

/// A type that can be read from a register.
pub trait Taken: Sized {
    /// Whether the value fits the type.
    fn fits(args: &Args<'_>, val: Val) -> bool {
        Self::take(args, val).is_some()
    }

    /// Converts the value, if it fits.
    fn take(args: &Args<'_>, val: Val) -> Option<Self>;
}

impl Taken for bool {
    fn take(_: &Args<'_>, val: Val) -> Option<bool> {
        match val {
            Val::Bool(b) => Some(b),
            _ => None,
        }
    }
}

impl Taken for f64 {
    fn take(_: &Args<'_>, val: Val) -> Option<f64> {
        match val {
            Val::Num(n) => Some(n),
            _ => None,
        }
    }
}

impl Taken for f32 {
    fn take(args: &Args<'_>, val: Val) -> Option<f32> {
        let n = f64::take(args, val)?;
        // Beyond its range `f32` would be infinite.
        let fits = !n.is_finite() || n.abs() <= f64::from(f32::MAX);
        fits.then_some(n as f32)
    }
}

impl Taken for String {
    fn fits(args: &Args<'_>, val: Val) -> bool {
        args.text(val).is_some()
    }

    fn take(args: &Args<'_>, val: Val) -> Option<String> {
        args.text(val).map(str::to_owned)
    }
}

impl<T: Plain> Taken for Option<T> {
    fn fits(args: &Args<'_>, val: Val) -> bool {
        val.is_nullish() || T::fits(args, val)
    }

    fn take(args: &Args<'_>, val: Val) -> Option<Option<T>> {
        match val.is_nullish() {
            true => Some(None),
            false => T::take(args, val).map(Some),
        }
    }
}

/// Selects how a parameter of this type is read.
#[derive(Debug)]
pub struct Takes<T>(PhantomData<fn() -> T>);

impl<T> Takes<T> {
    /// Creates the selector.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "for the expansion only")]
    pub const fn new() -> Takes<T> {
        Takes(PhantomData)
    }
}

/// A parameter read on the direct path.
#[derive(Debug)]
pub struct TakenDirectly<T>(PhantomData<fn() -> T>);

/// A parameter read on the slow path.
#[derive(Debug)]
pub struct TakenByValue<T>(PhantomData<fn() -> T>);

/// Implemented for types that can be read from a register.
pub trait TakesDirectly {
    /// The path: direct or slow.
    type Kind;
    /// Returns the path.
    fn __a99_takes(&self) -> Self::Kind;
}

impl<T: Taken> TakesDirectly for Takes<T> {
    type Kind = TakenDirectly<T>;

    fn __a99_takes(&self) -> TakenDirectly<T> {
        TakenDirectly(PhantomData)
    }
}

/// Implemented for every type; method look-up finds it after [`TakesDirectly`].
pub trait TakesByValue {
    /// The path: direct or slow.
    type Kind;
    /// Returns the path.
    fn __a99_takes(&self) -> Self::Kind;
}

impl<T> TakesByValue for &Takes<T> {
    type Kind = TakenByValue<T>;

    fn __a99_takes(&self) -> TakenByValue<T> {
        TakenByValue(PhantomData)
    }
}

impl<T: Taken> TakenDirectly<T> {
    /// Whether an argument can take the direct path.
    pub fn fits(&self, args: &Args<'_>, at: usize) -> bool {
        T::fits(args, args.val(at))
    }

    /// The argument.
    pub fn take(&self, args: &Args<'_>, at: usize) -> Option<T> {
        T::take(args, args.val(at))
    }
}

impl<T> TakenByValue<T> {
    /// Always false.
    pub const fn fits(&self, _: &Args<'_>, _: usize) -> bool {
        false
    }

    /// Always `None`.
    pub const fn take(&self, _: &Args<'_>, _: usize) -> Option<T> {
        None
    }
}

/// The result of a function.
#[derive(Debug)]
pub enum Answer {
    /// `null`; for this and the next three the function's type proves the declared output.
    Null,
    /// A boolean.
    Bool(bool),
    /// A finite number.
    Number(f64),
    /// A text.
    Text(String),
    /// A value to check, or an error.
    Reply(Reply),
}

impl Answer {
    /// Wraps an error of a function.
    pub(super) fn failed(error: AtomError) -> Answer {
        Answer::Reply(Err(Failure::Failed(Box::new(error))))
    }

    /// The answer if its type proves it, or the reply to check.
    pub(super) fn proven(self) -> Result<Value, Reply> {
        match self {
            Answer::Null => Ok(Value::Null),
            Answer::Bool(b) => Ok(Value::Bool(b)),
            Answer::Number(n) => Ok(Value::Number(n)),
            Answer::Text(text) => Ok(Value::from(text)),
            Answer::Reply(reply) => Err(reply),
        }
    }

    /// Writes an answer that its type proves; the price is that of a checked one.
    ///
    /// # Errors
    /// A value that may not cross the boundary, fuel, memory, a stop.
    #[inline(always)]
    pub(super) fn write(self, cx: &mut Cx<'_>, limits: &BoundaryLimits) -> Result<Val, Fault> {
        cx.pay_metered(SCHEMA_NODE)?;
        cx.work(ANSWER_WORK)?;
        // These always fit the limits.
        match self {
            Answer::Number(n) if limits.max_bytes >= LONGEST_SCALAR => Ok(Val::Num(n)),
            Answer::Bool(b) if limits.max_bytes >= LONGEST_SCALAR => Ok(Val::Bool(b)),
            answer => answer.cross(cx, limits),
        }
    }

    #[inline(never)]
    fn cross(self, cx: &mut Cx<'_>, limits: &BoundaryLimits) -> Result<Val, Fault> {
        let scalar = match self {
            Answer::Text(text) => return convert::text_answer(cx, &text, limits),
            Answer::Bool(b) => Value::Bool(b),
            Answer::Number(n) => Value::Number(n),
            Answer::Null | Answer::Reply(_) => Value::Null,
        };
        convert::from_answer(cx, &scalar, limits)
    }
}

/// A type that can be written to a register, and whose values all match its schema.
pub trait Given: Serialize + Sized {
    /// Converts to an answer; returns the value itself if the slow path must refuse it.
    fn give(self) -> Result<Answer, Self>;
}

impl Given for () {
    fn give(self) -> Result<Answer, ()> {
        Ok(Answer::Null)
    }
}

impl Given for bool {
    fn give(self) -> Result<Answer, bool> {
        Ok(Answer::Bool(self))
    }
}

impl Given for f64 {
    fn give(self) -> Result<Answer, f64> {
        match self.is_finite() {
            true => Ok(Answer::Number(self)),
            false => Err(self),
        }
    }
}

impl Given for f32 {
    fn give(self) -> Result<Answer, f32> {
        f64::from(self).give().map_err(|_| self)
    }
}

impl Given for String {
    fn give(self) -> Result<Answer, String> {
        Ok(Answer::Text(self))
    }
}

impl Given for &str {
    fn give(self) -> Result<Answer, Self> {
        Ok(Answer::Text(self.to_owned()))
    }
}

impl<T: Plain> Given for Option<T> {
    fn give(self) -> Result<Answer, Option<T>> {
        match self {
            Some(value) => value.give().map_err(Some),
            None => Ok(Answer::Null),
        }
    }
}

/// A type that is neither an `Option` nor `()`: an `Option` may hold it, since none of its
/// values is `null`.
pub trait Plain: Taken + Given {}

impl Plain for bool {}
impl Plain for f64 {}
impl Plain for f32 {}
impl Plain for String {}

/// Integers are whole numbers within the type's bounds.
macro_rules! integers {
    ($($kind:ident)*) => {$(
        impl Taken for $kind {
            fn take(args: &Args<'_>, val: Val) -> Option<$kind> {
                let n = f64::take(args, val)?;
                let whole = (<$kind>::MIN as f64..end(<$kind>::MAX as f64)).contains(&n);
                (whole && n as $kind as f64 == n).then_some(n as $kind)
            }
        }

        impl Plain for $kind {}

        impl Given for $kind {
            fn give(self) -> Result<Answer, $kind> {
                let n = self as f64;
                // The cast back saturates: the largest integer would pass wrongly.
                match n < end(<$kind>::MAX as f64) && n as $kind == self {
                    true => Ok(Answer::Number(n)),
                    false => Err(self),
                }
            }
        }
    )*};
}
integers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

/// The first double beyond an integer type, given its largest value as a double.
const fn end(most: f64) -> f64 {
    // For 64-bit types the largest value is already rounded up to it.
    most + 1.0
}

/// Selects how an answer of this type is written.
#[derive(Debug)]
pub struct Writes<T>(PhantomData<fn() -> T>);

impl<T> Writes<T> {
    pub(super) const fn new() -> Writes<T> {
        Writes(PhantomData)
    }

    /// Uses the slow path, because another output is declared.
    pub const fn checked(&self) -> WrittenByValue<T> {
        WrittenByValue(PhantomData)
    }
}

/// An answer written on the direct path.
#[derive(Debug)]
pub struct WrittenDirectly<T>(PhantomData<fn() -> T>);

/// An answer written on the slow path.
#[derive(Debug)]
pub struct WrittenByValue<T>(PhantomData<fn() -> T>);

/// Implemented for types that can be written to a register.
pub trait WritesDirectly {
    /// The path: direct or slow.
    type Kind;
    /// Returns the path.
    fn __a99_writes(&self) -> Self::Kind;
}

impl<T: Given> WritesDirectly for Writes<T> {
    type Kind = WrittenDirectly<T>;

    fn __a99_writes(&self) -> WrittenDirectly<T> {
        WrittenDirectly(PhantomData)
    }
}

/// Implemented for every type; method look-up finds it after [`WritesDirectly`].
pub trait WritesByValue {
    /// The path: direct or slow.
    type Kind;
    /// Returns the path.
    fn __a99_writes(&self) -> Self::Kind;
}

impl<T> WritesByValue for &Writes<T> {
    type Kind = WrittenByValue<T>;

    fn __a99_writes(&self) -> WrittenByValue<T> {
        WrittenByValue(PhantomData)
    }
}

impl<T: Given> WrittenDirectly<T> {
    /// Converts to an answer.
    pub fn answer(&self, value: T, pace: &Pace<'_>) -> Answer {
        value.give().unwrap_or_else(|value| by_value(&value, pace))
    }
}

impl<T> WrittenByValue<T> {
    /// Converts to an answer.
    pub fn answer(&self, value: T, pace: &Pace<'_>) -> Answer
    where
        T: AnswerType,
    {
        by_value(&value, pace)
    }
}

fn by_value<T: Serialize>(value: &T, pace: &Pace<'_>) -> Answer {
    Answer::Reply(to_value_in(value, pace).map_err(Failure::Output))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Still;
    use crate::native::Meter;
    use crate::typed::schema::checkable;
    use crate::typed::{from_value, output_schema, to_value};
    use a99_core::costs::CostModel;
    use a99_core::schema::validate;
    use schemars::JsonSchema;
    use serde::de::DeserializeOwned;
    use std::fmt::Debug;

    const NUMBERS: &[f64] = &[
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        127.0,
        128.0,
        -128.0,
        -129.0,
        255.0,
        255.5,
        256.0,
        65_536.0,
        2_147_483_647.0,
        -2_147_483_649.0,
        4_294_967_296.0,
        9_007_199_254_740_992.0,
        9_223_372_036_854_775_808.0,
        -9_223_372_036_854_775_808.0,
        18_446_744_073_709_549_568.0,
        18_446_744_073_709_551_616.0,
        3.5e38,
        -1e300,
        f64::INFINITY,
        f64::NAN,
    ];

    const TEXTS: &[&[u8]] = &[b"", b"7", b"\x01\"\\", "ä€😀".as_bytes(), b"a\xED\xA0\x80"];

    /// Reads and writes values on both paths.
    fn same<T: Taken + Given + Clone + Debug + DeserializeOwned + JsonSchema>() {
        let (mut heap, mut meter) = (Heap::default(), Meter::new(i64::MAX, CostModel::Flat));
        let mut cx = Cx::new(&mut heap, &mut meter, &Still);
        let limits = BoundaryLimits::default();
        let mut vals = vec![Val::Undefined, Val::Null, Val::Bool(true), Val::Bool(false)];
        vals.extend(NUMBERS.iter().map(|n| Val::Num(*n)));
        vals.extend(TEXTS.iter().map(|text| cx.str(text).unwrap()));
        vals.push(Val::Arr(cx.list(&[Val::Null]).unwrap()));
        vals.push(Val::Date(cx.heap.alloc_date(0.0).unwrap()));
        for val in vals {
            let long = Copies::new(&mut cx).to_value(val, &limits).unwrap();
            let long = from_value::<T>(&long);
            let args = Args::new(cx.heap, &[], limits.max_bytes);
            let direct = T::take(&args, val);
            assert_eq!(T::fits(&args, val), direct.is_some(), "{val:?}");
            match (direct, long) {
                (Some(direct), Ok(long)) => {
                    assert_eq!(format!("{direct:?}"), format!("{long:?}"));
                    written(direct);
                }
                (None, Err(_)) => {}
                // A date is a text on the long way.
                (None, Ok(_)) => assert!(matches!(val, Val::Date(_)), "{val:?}"),
                (Some(direct), Err(error)) => panic!("{direct:?}: {error}"),
            }
        }
    }

    /// An answer, on both ways.
    fn written<T: Given + Clone + Debug + JsonSchema>(value: T) {
        let schema = checkable(&output_schema::<T>());
        let long = to_value(&value).ok();
        let long = long.filter(|long| validate(long, &schema).is_ok());
        let direct = value.clone().give().ok().and_then(|a| a.proven().ok());
        assert_eq!(direct, long, "{value:?}");
    }

    #[test]
    fn both_ways_are_one() {
        macro_rules! all {
            ($($kind:ident)*) => {$(
                same::<$kind>();
                same::<Option<$kind>>();
            )*};
        }
        all! { bool String f64 f32 i8 i16 i32 i64 isize u8 u16 u32 u64 usize }
        written(());
        written("text");
        for n in [u64::MAX, (1 << 53) + 1, 1 << 53, 1 << 60] {
            written(n);
            written(Some(n));
        }
        for n in [i64::MIN, i64::MAX, -(1 << 53) - 1, -1] {
            written(n);
        }
    }

    #[test]
    fn texts_that_may_not_cross_are_not_read() {
        let mut heap = Heap::default();
        let text = Val::Str(heap.alloc_str(b"12345").unwrap());
        let long = Val::Str(heap.alloc_str(&vec![b'a'; MAX_TEXT]).unwrap());
        let fits = |val, max_bytes| String::fits(&Args::new(&heap, &[], max_bytes), val);
        assert!(fits(text, 36));
        assert!(!fits(text, 35));
        assert!(!fits(text, 0));
        assert!(!fits(long, usize::MAX));
    }
}
