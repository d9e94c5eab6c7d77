//! Conversions, comparisons and classification of floating-point numbers.

use super::format::{Float, Num, Rounding, flag, is_nan, is_signaling, quiet_nan, unpack};
use super::soft::{round, shift_rounding, with_sign};

/// Integer types of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Int {
    /// 32 bits, signed.
    I32,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits, unsigned.
    U64,
}

impl Int {
    /// The least and the greatest value.
    fn range(self) -> (i128, i128) {
        match self {
            Int::I32 => (i32::MIN.into(), i32::MAX.into()),
            Int::U32 => (0, u32::MAX.into()),
            Int::I64 => (i64::MIN.into(), i64::MAX.into()),
            Int::U64 => (0, u64::MAX.into()),
        }
    }

    /// Encodes a value for a register: words are sign-extended, unsigned ones too.
    fn register(self, value: i128) -> u64 {
        match self {
            Int::I32 | Int::U32 => value as i32 as u64,
            Int::I64 | Int::U64 => value as u64,
        }
    }

    /// Reads the integer in a register.
    fn value(self, register: u64) -> i128 {
        match self {
            Int::I32 => (register as i32).into(),
            Int::U32 => (register as u32).into(),
            Int::I64 => (register as i64).into(),
            Int::U64 => register.into(),
        }
    }
}

/// Converts to an integer. Values out of range give the nearest end of the range, NaN the
/// greatest value; both are invalid (unprivileged manual, table "Domains of
/// float-to-integer conversions").
pub(crate) fn to_int<F: Float>(bits: u64, int: Int, mode: Rounding, flags: &mut u8) -> u64 {
    let (least, greatest) = int.range();
    let parts = match unpack::<F>(bits) {
        Num::Zero(_) => return 0,
        Num::Finite(parts) => parts,
        Num::Infinite(true) => {
            *flags |= flag::INVALID;
            return int.register(least);
        }
        Num::Infinite(false) | Num::Nan { .. } => {
            *flags |= flag::INVALID;
            return int.register(greatest);
        }
    };
    // From 2^65 on every range is exceeded, regardless of the digits.
    let top = parts.exp + 63 - parts.sig.leading_zeros() as i32;
    let (magnitude, inexact) = match top {
        65.. => (1 << 65, false),
        _ if parts.exp >= 0 => (i128::from(parts.sig) << parts.exp, false),
        _ => {
            let (kept, inexact) = shift_rounding(parts.sign, parts.sig.into(), -parts.exp, mode);
            (kept.into(), inexact)
        }
    };
    let value = if parts.sign { -magnitude } else { magnitude };
    let limited = value.clamp(least, greatest);
    if limited != value {
        *flags |= flag::INVALID;
    } else if inexact {
        *flags |= flag::INEXACT;
    }
    int.register(limited)
}

/// Converts from an integer.
pub(crate) fn from_int<F: Float>(register: u64, int: Int, mode: Rounding, flags: &mut u8) -> u64 {
    let value = int.value(register);
    if value == 0 {
        return 0;
    }
    round::<F>(value < 0, 0, value.unsigned_abs(), mode, flags)
}

/// Converts between the formats.
pub(crate) fn to_format<From: Float, To: Float>(bits: u64, mode: Rounding, flags: &mut u8) -> u64 {
    match unpack::<From>(bits) {
        Num::Zero(sign) => with_sign::<To>(sign, 0),
        Num::Infinite(sign) => with_sign::<To>(sign, To::INFINITY),
        Num::Nan { signaling } => {
            if signaling {
                *flags |= flag::INVALID;
            }
            quiet_nan::<To>()
        }
        Num::Finite(parts) => round::<To>(parts.sign, parts.exp, parts.sig.into(), mode, flags),
    }
}

/// Maps a pattern to a signed number that orders like the values, except for zeros.
fn order<F: Float>(bits: u64) -> i64 {
    let magnitude = (bits & !F::SIGN) as i64;
    if bits & F::SIGN != 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// `a == b`; signals for signaling NaNs only.
pub(crate) fn equal<F: Float>(a: u64, b: u64, flags: &mut u8) -> bool {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        if is_signaling::<F>(a) || is_signaling::<F>(b) {
            *flags |= flag::INVALID;
        }
        return false;
    }
    order::<F>(a) == order::<F>(b)
}

/// `a < b`, or `a <= b`; signals for every NaN.
pub(crate) fn less<F: Float>(a: u64, b: u64, or_equal: bool, flags: &mut u8) -> bool {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        *flags |= flag::INVALID;
        return false;
    }
    let (a, b) = (order::<F>(a), order::<F>(b));
    a < b || or_equal && a == b
}

/// The lesser or greater operand (`minimumNumber` and `maximumNumber` of
/// IEEE 754-2019): a NaN loses against a number, minus zero is less than zero.
pub(crate) fn extremum<F: Float>(a: u64, b: u64, greater: bool, flags: &mut u8) -> u64 {
    if is_signaling::<F>(a) || is_signaling::<F>(b) {
        *flags |= flag::INVALID;
    }
    match (is_nan::<F>(a), is_nan::<F>(b)) {
        (true, true) => quiet_nan::<F>(),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let less = (order::<F>(a), a & F::SIGN == 0) < (order::<F>(b), b & F::SIGN == 0);
            if less != greater { a } else { b }
        }
    }
}

/// The class as one of ten bits (unprivileged manual, table "Format of result
/// of `FCLASS` instruction").
pub(crate) fn classify<F: Float>(bits: u64) -> u64 {
    let subnormal = bits & !F::SIGN < 1 << F::FRACTION;
    let class = match unpack::<F>(bits) {
        Num::Infinite(true) => 0,
        Num::Finite(parts) if parts.sign => 1 + u32::from(subnormal),
        Num::Zero(true) => 3,
        Num::Zero(false) => 4,
        Num::Finite(_) => 6 - u32::from(subnormal),
        Num::Infinite(false) => 7,
        Num::Nan { signaling: true } => 8,
        Num::Nan { signaling: false } => 9,
    };
    1 << class
}
