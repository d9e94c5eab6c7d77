//! Arithmetic operators, integer conversions and the `Math` functions.
//!
//! Transcendental functions come from `libm`. Only operations that IEEE 754 defines exactly
//! (square root, rounding to integers, absolute value) use the standard library. Operands are
//! not coerced here.

/// `ToInt32` (ECMA-262 §7.1.6): truncate, then wrap modulo 2^32.
#[inline]
#[must_use]
pub fn to_int32(x: f64) -> i32 {
    let fast = x as i32;
    if f64::from(fast) == x {
        return fast;
    }
    wrap_to_u32(x) as i32
}

/// `ToUint32` (ECMA-262 §7.1.7): truncate, then wrap modulo 2^32.
#[inline]
#[must_use]
pub fn to_uint32(x: f64) -> u32 {
    to_int32(x) as u32
}

/// The low 32 bits of the truncated value, from the bits of the number.
fn wrap_to_u32(x: f64) -> u32 {
    const FRACTION_BITS: i32 = 52;
    const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;
    let bits = x.to_bits();
    let biased = ((bits >> FRACTION_BITS) & 0x7FF) as i32;
    let exponent = biased - 1023;
    // Below one: zero. From 2^84 on every bit is above the low 32; this range also contains
    // the infinities and NaN.
    if !(0..FRACTION_BITS + 32).contains(&exponent) {
        return 0;
    }
    let mantissa = (bits & FRACTION_MASK) | (1 << FRACTION_BITS);
    let magnitude = if exponent <= FRACTION_BITS {
        (mantissa >> (FRACTION_BITS - exponent)) as u32
    } else {
        (mantissa << (exponent - FRACTION_BITS)) as u32
    };
    if x.is_sign_negative() {
        magnitude.wrapping_neg()
    } else {
        magnitude
    }
}

/// `a & b` (ECMA-262 §6.1.6.1.17).
#[must_use]
pub fn bit_and(a: f64, b: f64) -> f64 {
    f64::from(to_int32(a) & to_int32(b))
}

/// `a | b` (ECMA-262 §6.1.6.1.19).
#[must_use]
pub fn bit_or(a: f64, b: f64) -> f64 {
    f64::from(to_int32(a) | to_int32(b))
}

/// `a ^ b` (ECMA-262 §6.1.6.1.18).
#[must_use]
pub fn bit_xor(a: f64, b: f64) -> f64 {
    f64::from(to_int32(a) ^ to_int32(b))
}

/// `~a` (ECMA-262 §6.1.6.1.2).
#[must_use]
pub fn bit_not(a: f64) -> f64 {
    f64::from(!to_int32(a))
}

/// `a << b` (ECMA-262 §6.1.6.1.9): only the low five bits of `b` count.
#[must_use]
pub fn shift_left(a: f64, b: f64) -> f64 {
    f64::from(to_int32(a).wrapping_shl(to_uint32(b)))
}

/// `a >> b` (ECMA-262 §6.1.6.1.10).
#[must_use]
pub fn shift_right(a: f64, b: f64) -> f64 {
    f64::from(to_int32(a).wrapping_shr(to_uint32(b)))
}

/// `a >>> b` (ECMA-262 §6.1.6.1.11).
#[must_use]
pub fn shift_right_unsigned(a: f64, b: f64) -> f64 {
    f64::from(to_uint32(a).wrapping_shr(to_uint32(b)))
}

/// `ToIntegerOrInfinity` (ECMA-262 §7.1.5): NaN and -0 become +0, infinities are unchanged.
#[inline]
#[must_use]
pub fn to_integer_or_infinity(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.trunc() + 0.0 }
}

/// The `%` operator (ECMA-262 §6.1.6.1.6): the result has the sign of `a`, including -0.
#[inline]
#[must_use]
pub fn fmod(a: f64, b: f64) -> f64 {
    if let (Some(whole_a), Some(whole_b)) = (small_whole(a.abs()), small_whole(b.abs()))
        && whole_b != 0
    {
        return ((whole_a % whole_b) as i64 as f64).copysign(a);
    }
    libm::fmod(a, b)
}

/// Converts a whole number from 0 to 2^51 - 1 to an integer; `None` for other numbers.
///
/// Adding 1.5 * 2^52 shifts a whole number into the lowest bits of the fraction. The
/// difference of the bits is that number; for any other number further bits are set.
#[inline]
fn small_whole(x: f64) -> Option<u64> {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let shifted = x + SHIFT;
    let bits = shifted.to_bits().wrapping_sub(SHIFT.to_bits());
    (shifted - SHIFT == x && bits >> 51 == 0).then_some(bits)
}

/// The `**` operator and `Math.pow` (ECMA-262 §6.1.6.1.3): unlike IEEE 754,
/// NaN for a NaN exponent and for (±1) ** ±Infinity.
#[inline]
#[must_use]
pub fn pow(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (exponent.is_infinite() && base.abs() == 1.0) {
        return f64::NAN;
    }
    libm::pow(base, exponent)
}

/// `Math.round` (ECMA-262 §21.3.2.28): halves go up, -0 is kept.
#[inline]
#[must_use]
pub fn js_round(x: f64) -> f64 {
    let below = x.floor();
    let rounded = if x - below >= 0.5 { below + 1.0 } else { below };
    rounded.copysign(x)
}

/// `Math.sign` (ECMA-262 §21.3.2.30): zeroes and NaN are returned unchanged.
#[inline]
#[must_use]
pub fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

/// `Math.clz32` (ECMA-262 §21.3.2.11).
#[inline]
#[must_use]
pub fn clz32(x: f64) -> f64 {
    f64::from(to_uint32(x).leading_zeros())
}

/// `Math.imul` (ECMA-262 §21.3.2.20): the low 32 bits of the product, signed.
#[inline]
#[must_use]
pub fn imul(a: f64, b: f64) -> f64 {
    f64::from(to_int32(a).wrapping_mul(to_int32(b)))
}

/// `Math.fround` (ECMA-262 §21.3.2.17): nearest single-precision number.
#[inline]
#[must_use]
pub fn fround(x: f64) -> f64 {
    f64::from(x as f32)
}

/// `Math.hypot` (ECMA-262 §21.3.2.18): an infinity takes precedence over NaN, no arguments
/// give +0. Scaled and compensated as in the common engines, so that intermediate squares
/// never overflow.
#[must_use]
pub fn hypot(values: &[f64]) -> f64 {
    if values.iter().any(|x| x.is_infinite()) {
        return f64::INFINITY;
    }
    let mut largest = 0.0_f64;
    for &x in values {
        if x.is_nan() {
            return f64::NAN;
        }
        largest = largest.max(x.abs());
    }
    if largest == 0.0 {
        return 0.0;
    }
    let (mut sum, mut compensation) = (0.0, 0.0);
    for &x in values {
        let scaled = x.abs() / largest;
        let summand = scaled * scaled - compensation;
        let next = sum + summand;
        compensation = (next - sum) - summand;
        sum = next;
    }
    f64::sqrt(sum) * largest
}

/// `Math.max` (ECMA-262 §21.3.2.24): -Infinity for no arguments, NaN if any
/// is NaN, +0 above -0.
#[inline]
#[must_use]
pub fn max(values: &[f64]) -> f64 {
    let mut best = f64::NEG_INFINITY;
    for &x in values {
        if x.is_nan() {
            return f64::NAN;
        }
        if x > best || (x == 0.0 && best == 0.0 && x.is_sign_positive()) {
            best = x;
        }
    }
    best
}

/// `Math.min` (ECMA-262 §21.3.2.25): Infinity for no arguments, NaN if any is
/// NaN, -0 below +0.
#[inline]
#[must_use]
pub fn min(values: &[f64]) -> f64 {
    let mut best = f64::INFINITY;
    for &x in values {
        if x.is_nan() {
            return f64::NAN;
        }
        if x < best || (x == 0.0 && best == 0.0 && x.is_sign_negative()) {
            best = x;
        }
    }
    best
}

/// `Math.atan2` (ECMA-262 §21.3.2.8).
#[inline]
#[must_use]
pub fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

macro_rules! math1 {
    ($($variant:ident $name:literal => $function:expr;)*) => {
        /// The functions of `Math` that take one number (ECMA-262 §21.3.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Math1 {
            $(#[doc = concat!("`Math.", $name, "`.")] $variant,)*
        }

        impl Math1 {
            /// Every function, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The function `Math.<name>`; `None` for other members.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The member name, such as `"log10"`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The value of the function at `x`.
            #[inline]
            #[must_use]
            pub fn eval(self, x: f64) -> f64 {
                match self {
                    $(Self::$variant => $function(x),)*
                }
            }
        }
    };
}

math1! {
    Abs "abs" => f64::abs;
    Ceil "ceil" => f64::ceil;
    Floor "floor" => f64::floor;
    Round "round" => js_round;
    Trunc "trunc" => f64::trunc;
    Sign "sign" => sign;
    Sqrt "sqrt" => f64::sqrt;
    Cbrt "cbrt" => libm::cbrt;
    Exp "exp" => libm::exp;
    Expm1 "expm1" => libm::expm1;
    Log "log" => libm::log;
    Log2 "log2" => libm::log2;
    Log10 "log10" => libm::log10;
    Log1p "log1p" => libm::log1p;
    Sin "sin" => libm::sin;
    Cos "cos" => libm::cos;
    Tan "tan" => libm::tan;
    Asin "asin" => libm::asin;
    Acos "acos" => libm::acos;
    Atan "atan" => libm::atan;
    Sinh "sinh" => libm::sinh;
    Cosh "cosh" => libm::cosh;
    Tanh "tanh" => libm::tanh;
    Asinh "asinh" => libm::asinh;
    Acosh "acosh" => libm::acosh;
    Atanh "atanh" => libm::atanh;
    Fround "fround" => fround;
    Clz32 "clz32" => clz32;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn int32_wraps() {
        assert_eq!(to_int32(4_294_967_296.0 + 5.0), 5);
        assert_eq!(to_int32(2_147_483_648.0), i32::MIN);
        assert_eq!(to_int32(-2_147_483_649.0), i32::MAX);
        assert_eq!(to_int32(-1.9), -1);
        assert_eq!(to_int32(1e300), 0);
        assert_eq!(to_int32(f64::INFINITY), 0);
        assert_eq!(to_int32(f64::NAN), 0);
        assert_eq!(to_uint32(-1.0), u32::MAX);
        assert_eq!(to_int32(9_007_199_254_740_993.0 * 1024.0), 0);
    }

    #[test]
    fn int32_agrees_with_wide_integers() {
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let shift = seed >> 58;
            let x = ((seed as i64) >> shift.min(63)) as f64 * 1.000_000_1;
            if x.abs() < 9e18 {
                assert_eq!(to_int32(x), (x as i64) as i32, "{x}");
            }
        }
        assert_eq!(to_int32(2.0_f64.powi(83) + 2.0_f64.powi(31)), i32::MIN);
    }

    #[test]
    fn remainder_keeps_the_sign_of_the_dividend() {
        assert!(same(fmod(-4.0, 2.0), -0.0));
        assert!(same(fmod(-0.0, 2.0), -0.0));
        assert!(same(fmod(5.0, -3.0), 2.0));
        assert!(same(fmod(-5.0, 3.0), -2.0));
        assert!(same(fmod(5.5, 2.0), 1.5));
        assert!(same(fmod(5.0, 0.0), f64::NAN));
        assert!(same(fmod(5.0, f64::INFINITY), 5.0));
        assert!(same(fmod(f64::INFINITY, 5.0), f64::NAN));
        assert!(same(fmod(1e300, 7.0), libm::fmod(1e300, 7.0)));
    }

    #[test]
    fn remainder_of_whole_numbers_is_that_of_all() {
        let edges = [0, 1, 7, 31, 32, 33, 50, 51, 52, 53, 54, 63, 64, 1000];
        let mut numbers = vec![0.0, 0.5, 1.5, 3.0, 1e-300, f64::INFINITY, f64::NAN];
        for power in edges.map(|power| 2.0_f64.powi(power)) {
            numbers.extend([power - 1.0, power - 0.5, power, power + 0.5, power + 1.0]);
        }
        numbers.extend(numbers.clone().into_iter().map(|n| -n));
        for a in &numbers {
            for b in &numbers {
                assert!(same(fmod(*a, *b), libm::fmod(*a, *b)), "{a} % {b}");
            }
        }
    }

    #[test]
    fn power_departs_from_ieee_where_the_language_does() {
        assert!(pow(1.0, f64::INFINITY).is_nan());
        assert!(pow(-1.0, f64::NEG_INFINITY).is_nan());
        assert!(pow(1.0, f64::NAN).is_nan());
        assert!(same(pow(f64::NAN, 0.0), 1.0));
        assert!(same(pow(2.0, 10.0), 1024.0));
        assert!(same(pow(-8.0, 1.0 / 3.0), f64::NAN));
        assert!(same(pow(-0.0, -1.0), f64::NEG_INFINITY));
    }

    #[test]
    fn rounding_halves_go_up() {
        assert!(same(js_round(2.5), 3.0));
        assert!(same(js_round(-2.5), -2.0));
        assert!(same(js_round(-0.5), -0.0));
        assert!(same(js_round(-0.2), -0.0));
        assert!(same(js_round(0.499_999_999_999_999_94), 0.0));
        assert!(same(
            js_round(4_503_599_627_370_497.0),
            4_503_599_627_370_497.0
        ));
        assert!(same(js_round(f64::NEG_INFINITY), f64::NEG_INFINITY));
        assert!(js_round(f64::NAN).is_nan());
    }

    #[test]
    fn extremes_and_hypot() {
        assert!(same(max(&[]), f64::NEG_INFINITY));
        assert!(same(max(&[-0.0, 0.0]), 0.0));
        assert!(same(min(&[0.0, -0.0]), -0.0));
        assert!(max(&[1.0, f64::NAN, 2.0]).is_nan());
        assert!(same(hypot(&[3.0, 4.0]), 5.0));
        assert!(same(hypot(&[]), 0.0));
        assert!(same(hypot(&[f64::NAN, f64::NEG_INFINITY]), f64::INFINITY));
        assert!(hypot(&[1e200, 1e200]).is_finite());
    }

    #[test]
    fn small_functions() {
        assert!(same(clz32(1.0), 31.0));
        assert!(same(clz32(-1.0), 0.0));
        assert!(same(imul(4_294_967_295.0, 5.0), -5.0));
        assert!(same(fround(5.05), 5.050_000_190_734_863));
        assert!(same(sign(-0.0), -0.0));
        assert!(same(sign(-7.0), -1.0));
        assert!(same(to_integer_or_infinity(-0.7), 0.0));
    }

    #[test]
    fn names_round_trip() {
        for &function in Math1::ALL {
            assert_eq!(Math1::from_name(function.name()), Some(function));
            assert!(function.eval(f64::NAN).is_nan() || function == Math1::Clz32);
        }
        assert_eq!(Math1::from_name("constructor"), None);
        assert!(same(Math1::Log10.eval(1000.0), 3.0));
    }
}
