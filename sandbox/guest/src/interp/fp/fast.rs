//! Hardfloat: host arithmetic where it provably gives the same bits and flags.
//!
//! The host rounds to nearest even and exposes no flags. Its result is right in that
//! rounding mode; of the flags only *inexact* can then be raised, as long as the result
//! stays away from overflow, underflow and NaN. If *inexact* is already accrued, it does
//! not matter. Otherwise it follows from error-free transformations (two-sum) or from the
//! widths of the significands: stripped of trailing zeros they are odd, so their product is
//! odd and has the sum of their widths, or one bit less. All other cases go to
//! [`soft`](super::soft).

use super::format::{F32, F64, Rounding, flag};
use super::soft;

/// Operands and results of double precision below this never overflow, even inside a
/// two-sum.
const LARGE_64: f64 = 1e300;

/// Results of double precision above this are normal before and after rounding.
const SMALL_64: f64 = 1e-300;

/// As [`LARGE_64`], for single precision.
const LARGE_32: f32 = 1e37;

/// As [`SMALL_64`], for single precision.
const SMALL_32: f32 = 1e-37;

fn is_moderate_64(value: f64) -> bool {
    value.abs() > SMALL_64 && value.abs() < LARGE_64
}

fn is_moderate_32(value: f32) -> bool {
    value.abs() > SMALL_32 && value.abs() < LARGE_32
}

fn note(inexact: bool, flags: &mut u8) {
    *flags |= if inexact { flag::INEXACT } else { 0 };
}

/// Bits of a normal number's significand without trailing zeros.
fn width_64(value: f64) -> u32 {
    53 - (value.to_bits() | 1 << 52).trailing_zeros()
}

/// Whether the product of two moderate numbers fits their format; `None` if the widths do
/// not decide it.
fn product_fits_64(a: f64, b: f64) -> Option<bool> {
    match width_64(a) + width_64(b) {
        ..=53 => Some(true),
        54 => None,
        _ => Some(false),
    }
}

/// Adds in double precision. `accrued` are the flags that are already set.
pub(super) fn add_64(a: u64, b: u64, mode: Rounding, accrued: u8, flags: &mut u8) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let in_range = x.abs() < LARGE_64 && y.abs() < LARGE_64;
    if mode != Rounding::NearestEven || !in_range {
        return soft::add::<F64>(a, b, mode, flags);
    }
    // A sum below the normal numbers is exact.
    let sum = x + y;
    if accrued & flag::INEXACT == 0 {
        let part = sum - x;
        let error = (x - (sum - part)) + (y - part);
        note(error != 0.0, flags);
    }
    sum.to_bits()
}

/// Product in double precision.
pub(super) fn mul_64(a: u64, b: u64, mode: Rounding, accrued: u8, flags: &mut u8) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let product = x * y;
    let moderate = is_moderate_64(x) && is_moderate_64(y) && is_moderate_64(product);
    if mode == Rounding::NearestEven && moderate {
        if accrued & flag::INEXACT != 0 {
            return product.to_bits();
        }
        if let Some(exact) = product_fits_64(x, y) {
            note(!exact, flags);
            return product.to_bits();
        }
    }
    soft::mul::<F64>(a, b, mode, flags)
}

/// Quotient in double precision.
pub(super) fn div_64(a: u64, b: u64, mode: Rounding, accrued: u8, flags: &mut u8) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let quotient = x / y;
    let moderate = is_moderate_64(x) && is_moderate_64(y) && is_moderate_64(quotient);
    if mode == Rounding::NearestEven && moderate {
        if accrued & flag::INEXACT != 0 {
            return quotient.to_bits();
        }
        // Exact if quotient times divisor is the dividend, which fits.
        if let Some(fits) = product_fits_64(quotient, y) {
            note(!fits || quotient * y != x, flags);
            return quotient.to_bits();
        }
    }
    soft::div::<F64>(a, b, mode, flags)
}

/// Square root in double precision.
pub(super) fn sqrt_64(a: u64, mode: Rounding, accrued: u8, flags: &mut u8) -> u64 {
    let x = f64::from_bits(a);
    let usable = mode == Rounding::NearestEven && accrued & flag::INEXACT != 0;
    if usable && x > SMALL_64 && x < LARGE_64 {
        return x.sqrt().to_bits();
    }
    soft::sqrt::<F64>(a, mode, flags)
}

/// Sum in single precision.
pub(super) fn add_32(a: u64, b: u64, mode: Rounding, accrued: u8, flags: &mut u8) -> u64 {
    let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let in_range = x.abs() < LARGE_32 && y.abs() < LARGE_32;
    if mode != Rounding::NearestEven || !in_range {
        return soft::add::<F32>(a, b, mode, flags);
    }
    let sum = x + y;
    if accrued & flag::INEXACT == 0 {
        let part = sum - x;
        let error = (x - (sum - part)) + (y - part);
        note(error != 0.0, flags);
    }
    sum.to_bits().into()
}

/// Product in single precision: exact in double precision, rounded once.
pub(super) fn mul_32(a: u64, b: u64, mode: Rounding, _accrued: u8, flags: &mut u8) -> u64 {
    let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let exact = f64::from(x) * f64::from(y);
    let product = exact as f32;
    if mode == Rounding::NearestEven && is_moderate_32(product) {
        note(f64::from(product) != exact, flags);
        return product.to_bits().into();
    }
    soft::mul::<F32>(a, b, mode, flags)
}

/// Quotient in single precision.
pub(super) fn div_32(a: u64, b: u64, mode: Rounding, _accrued: u8, flags: &mut u8) -> u64 {
    let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let quotient = x / y;
    let moderate = is_moderate_32(x) && is_moderate_32(y) && is_moderate_32(quotient);
    if mode == Rounding::NearestEven && moderate {
        note(f64::from(quotient) * f64::from(y) != f64::from(x), flags);
        return quotient.to_bits().into();
    }
    soft::div::<F32>(a, b, mode, flags)
}
