//! Integer operations whose corner cases the manual defines.

/// High half of a signed product.
#[inline(always)]
pub(crate) fn mulh(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
}

/// High half of a signed times an unsigned number.
#[inline(always)]
pub(crate) fn mulhsu(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b)) >> 64) as u64
}

/// High half of an unsigned product.
#[inline(always)]
pub(crate) fn mulhu(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Signed quotient: minus one for a zero divisor, the dividend on overflow.
#[inline(always)]
pub(crate) fn div(a: u64, b: u64) -> u64 {
    match b {
        0 => u64::MAX,
        _ => (a as i64).wrapping_div(b as i64) as u64,
    }
}

/// Signed remainder: the dividend for a zero divisor, zero on overflow.
#[inline(always)]
pub(crate) fn rem(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => (a as i64).wrapping_rem(b as i64) as u64,
    }
}

/// Unsigned quotient: all ones for a zero divisor.
#[inline(always)]
pub(crate) fn divu(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

/// Unsigned remainder: the dividend for a zero divisor.
#[inline(always)]
pub(crate) fn remu(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

/// Sign-extends the low word.
#[inline(always)]
pub(crate) fn word(value: u64) -> u64 {
    value as i32 as u64
}

/// [`div`] of words.
#[inline(always)]
pub(crate) fn divw(a: u64, b: u64) -> u64 {
    match b as i32 {
        0 => u64::MAX,
        b => (a as i32).wrapping_div(b) as u64,
    }
}

/// [`rem`] of words.
#[inline(always)]
pub(crate) fn remw(a: u64, b: u64) -> u64 {
    match b as i32 {
        0 => word(a),
        b => (a as i32).wrapping_rem(b) as u64,
    }
}

/// [`divu`] of words.
#[inline(always)]
pub(crate) fn divuw(a: u64, b: u64) -> u64 {
    let quotient = (a as u32).checked_div(b as u32);
    quotient.map_or(u64::MAX, |q| word(u64::from(q)))
}

/// [`remu`] of words.
#[inline(always)]
pub(crate) fn remuw(a: u64, b: u64) -> u64 {
    let rest = (a as u32).checked_rem(b as u32);
    rest.map_or(word(a), |r| word(u64::from(r)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: u64 = 1 << 63;

    /// Unprivileged manual, table "Semantics for division by zero and division
    /// overflow".
    #[test]
    fn division_corners() {
        assert_eq!((div(7, 0), rem(7, 0)), (u64::MAX, 7));
        assert_eq!((divu(7, 0), remu(7, 0)), (u64::MAX, 7));
        assert_eq!((div(MIN, u64::MAX), rem(MIN, u64::MAX)), (MIN, 0));
        assert_eq!(
            (divw(7, 1 << 32), remw(1 << 31, 0)),
            (u64::MAX, word(1 << 31))
        );
        assert_eq!(divw(1 << 31, u64::MAX), word(1 << 31));
        assert_eq!((remw(1 << 31, u64::MAX), divuw(7, 0)), (0, u64::MAX));
        assert_eq!(remuw(0xffff_ffff, 0), u64::MAX);
        assert_eq!(divuw(0xffff_fffe, 1), 0xffff_ffff_ffff_fffe);
        assert_eq!(div(-7i64 as u64, 2), -3i64 as u64);
        assert_eq!(rem(-7i64 as u64, 2), -1i64 as u64);
    }

    #[test]
    fn high_products() {
        assert_eq!(mulh(u64::MAX, u64::MAX), 0);
        assert_eq!(mulhu(u64::MAX, u64::MAX), u64::MAX - 1);
        assert_eq!(mulhsu(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(mulh(MIN, MIN), 1 << 62);
    }
}
