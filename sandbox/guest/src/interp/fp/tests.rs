//! Tests of floating point: integer arithmetic against the host's, and the fast paths
//! against the integer arithmetic; corner cases of the manual by hand.

use super::convert::{Int, classify, equal, extremum, from_int, less, to_format, to_int};
use super::format::{F32, F64, Rounding, flag, is_nan, quiet_nan};
use super::{fast, soft};
use proptest::prelude::*;
use std::hint::black_box;

const RNE: Rounding = Rounding::NearestEven;
const MODES: [Rounding; 5] = [
    RNE,
    Rounding::Zero,
    Rounding::Down,
    Rounding::Up,
    Rounding::NearestMaxMagnitude,
];

/// Patterns of a format with `fraction` bits of fraction: exponents near each other, at the
/// ends, or anywhere; fractions of few bits, so that results are often exact or ties.
fn pattern(fraction: u32, exponents: u64) -> impl Strategy<Value = u64> {
    let bias = exponents / 2;
    let exponent = prop_oneof![
        4 => bias - 3..bias + 4,
        1 => 0..3u64,
        1 => exponents - 2..exponents + 1,
        2 => 0..exponents + 1,
    ];
    let digits = prop_oneof![
        any::<u64>(),
        (0..64u32).prop_map(|bit| 1 << bit),
        (0..64u32, 0..64u32).prop_map(|(a, b)| 1 << a | 1 << b),
        (any::<u64>(), 0..64u32).prop_map(|(raw, cut)| raw >> cut << cut),
        (any::<u64>(), 0..64u32).prop_map(|(raw, cut)| raw >> cut),
        Just(u64::MAX),
    ];
    (any::<bool>(), exponent, digits).prop_map(move |(sign, exponent, digits)| {
        let sign = u64::from(sign) << (fraction + exponents.count_ones());
        sign | exponent << fraction | digits & ((1 << fraction) - 1)
    })
}

fn double() -> impl Strategy<Value = u64> {
    pattern(52, 0x7ff)
}

fn single() -> impl Strategy<Value = u64> {
    pattern(23, 0xff)
}

/// Host NaNs may have any sign and payload, and the optimizer may change them, so the
/// pattern is fixed before it is inspected.
fn canonical_64(value: f64) -> u64 {
    let bits = black_box(value.to_bits());
    if is_nan::<F64>(bits) {
        quiet_nan::<F64>()
    } else {
        bits
    }
}

fn canonical_32(value: f32) -> u64 {
    let bits = black_box(u64::from(value.to_bits()));
    if is_nan::<F32>(bits) {
        quiet_nan::<F32>()
    } else {
        bits
    }
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn doubles_round_as_the_host_does(a in double(), b in double(), c in double()) {
        let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
        let mut flags = 0;
        prop_assert_eq!(soft::add::<F64>(a, b, RNE, &mut flags), canonical_64(x + y));
        prop_assert_eq!(soft::sub::<F64>(a, b, RNE, &mut flags), canonical_64(x - y));
        prop_assert_eq!(soft::mul::<F64>(a, b, RNE, &mut flags), canonical_64(x * y));
        prop_assert_eq!(soft::div::<F64>(a, b, RNE, &mut flags), canonical_64(x / y));
        prop_assert_eq!(soft::sqrt::<F64>(a, RNE, &mut flags), canonical_64(x.sqrt()));
        prop_assert_eq!(soft::fma::<F64>(a, b, c, RNE, &mut flags), canonical_64(x.mul_add(y, z)));
        prop_assert_eq!(to_format::<F64, F32>(a, RNE, &mut flags), canonical_32(x as f32));
    }

    #[test]
    fn singles_round_as_the_host_does(a in single(), b in single(), c in single()) {
        let (x, y, z) = (f32_of(a), f32_of(b), f32_of(c));
        let mut flags = 0;
        prop_assert_eq!(soft::add::<F32>(a, b, RNE, &mut flags), canonical_32(x + y));
        prop_assert_eq!(soft::mul::<F32>(a, b, RNE, &mut flags), canonical_32(x * y));
        prop_assert_eq!(soft::div::<F32>(a, b, RNE, &mut flags), canonical_32(x / y));
        prop_assert_eq!(soft::sqrt::<F32>(a, RNE, &mut flags), canonical_32(x.sqrt()));
        prop_assert_eq!(soft::fma::<F32>(a, b, c, RNE, &mut flags), canonical_32(x.mul_add(y, z)));
        prop_assert_eq!(to_format::<F32, F64>(a, RNE, &mut flags), canonical_64(f64::from(x)));
    }

    #[test]
    fn fast_paths_give_the_same_bits_and_flags(
        a in double(),
        b in double(),
        c in single(),
        d in single(),
        mode in proptest::sample::select(&MODES[..]),
        accrued in prop_oneof![Just(0), Just(flag::INEXACT)],
    ) {
        type Pair = (u64, u8);
        let run = |operation: &dyn Fn(&mut u8) -> u64| -> Pair {
            let mut flags = 0;
            let bits = operation(&mut flags);
            (bits, flags | accrued)
        };
        prop_assert_eq!(
            run(&|f| fast::add_64(a, b, mode, accrued, f)),
            run(&|f| soft::add::<F64>(a, b, mode, f))
        );
        prop_assert_eq!(
            run(&|f| fast::mul_64(a, b, mode, accrued, f)),
            run(&|f| soft::mul::<F64>(a, b, mode, f))
        );
        prop_assert_eq!(
            run(&|f| fast::div_64(a, b, mode, accrued, f)),
            run(&|f| soft::div::<F64>(a, b, mode, f))
        );
        prop_assert_eq!(
            run(&|f| fast::sqrt_64(a, mode, accrued, f)),
            run(&|f| soft::sqrt::<F64>(a, mode, f))
        );
        prop_assert_eq!(
            run(&|f| fast::add_32(c, d, mode, accrued, f)),
            run(&|f| soft::add::<F32>(c, d, mode, f))
        );
        prop_assert_eq!(
            run(&|f| fast::mul_32(c, d, mode, accrued, f)),
            run(&|f| soft::mul::<F32>(c, d, mode, f))
        );
        prop_assert_eq!(
            run(&|f| fast::div_32(c, d, mode, accrued, f)),
            run(&|f| soft::div::<F32>(c, d, mode, f))
        );
    }

    #[test]
    fn directed_modes_enclose_the_exact_result(a in double(), b in double()) {
        let at = |mode| {
            let mut flags = 0;
            (soft::mul::<F64>(a, b, mode, &mut flags), flags)
        };
        let ((down, flags), (up, _)) = (at(Rounding::Down), at(Rounding::Up));
        if !is_nan::<F64>(down) {
            let exact = flags & flag::INEXACT == 0;
            let (low, high) = (f64::from_bits(down), f64::from_bits(up));
            prop_assert_eq!(exact, down == up);
            prop_assert!(exact || low.next_up() == high, "{} {}", low, high);
            let nearest = at(RNE).0;
            prop_assert!(nearest == down || nearest == up);
            let zero = if low < 0.0 { up } else { down };
            prop_assert_eq!(at(Rounding::Zero).0, zero);
        }
    }

    #[test]
    fn integers_convert_as_the_host_does(value: u64, cut in 0..64u32, a in double()) {
        let value = value >> cut;
        let mut flags = 0;
        let signed = value as i64;
        prop_assert_eq!(from_int::<F64>(value, Int::I64, RNE, &mut flags), (signed as f64).to_bits());
        prop_assert_eq!(from_int::<F64>(value, Int::U64, RNE, &mut flags), (value as f64).to_bits());
        let narrow = u64::from((signed as f32).to_bits());
        prop_assert_eq!(from_int::<F32>(value, Int::I64, RNE, &mut flags), narrow);
        let x = f64::from_bits(a);
        if !x.is_nan() {
            let zero = Rounding::Zero;
            prop_assert_eq!(to_int::<F64>(a, Int::I64, zero, &mut flags), x as i64 as u64);
            prop_assert_eq!(to_int::<F64>(a, Int::U64, zero, &mut flags), x as u64);
            prop_assert_eq!(to_int::<F64>(a, Int::I32, zero, &mut flags), x as i32 as u64);
            prop_assert_eq!(to_int::<F64>(a, Int::U32, zero, &mut flags), x as u32 as i32 as u64);
        }
    }

    #[test]
    fn comparisons_are_the_hosts(a in double(), b in double()) {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let mut flags = 0;
        prop_assert_eq!(equal::<F64>(a, b, &mut flags), x == y);
        prop_assert_eq!(less::<F64>(a, b, false, &mut flags), x < y);
        prop_assert_eq!(less::<F64>(a, b, true, &mut flags), x <= y);
    }
}

const SIGNALING: u64 = 0x7ff0_0000_0000_0001;
const NAN: u64 = 0x7ff8_0000_0000_0000;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
const MINUS_ZERO: u64 = 1 << 63;

#[test]
fn conversions_to_integers_saturate() {
    let case = |value: f64, int, mode| {
        let mut flags = 0;
        (to_int::<F64>(value.to_bits(), int, mode, &mut flags), flags)
    };
    let zero = Rounding::Zero;
    assert_eq!(case(f64::NAN, Int::I32, zero), (0x7fff_ffff, flag::INVALID));
    assert_eq!(case(f64::NAN, Int::U32, zero), (u64::MAX, flag::INVALID));
    assert_eq!(case(-1.0, Int::U64, zero), (0, flag::INVALID));
    assert_eq!(case(-0.9, Int::U64, zero), (0, flag::INEXACT));
    assert_eq!(case(-0.9, Int::U64, Rounding::Down), (0, flag::INVALID));
    assert_eq!(case(2.5, Int::I64, RNE), (2, flag::INEXACT));
    assert_eq!(
        case(2.5, Int::I64, Rounding::NearestMaxMagnitude),
        (3, flag::INEXACT)
    );
    assert_eq!(
        case(2_147_483_647.5, Int::I32, RNE),
        (0x7fff_ffff, flag::INVALID)
    );
    assert_eq!(
        case(2_147_483_647.5, Int::I32, zero),
        (0x7fff_ffff, flag::INEXACT)
    );
    assert_eq!(
        case(f64::NEG_INFINITY, Int::I64, RNE),
        (1 << 63, flag::INVALID)
    );
}

#[test]
fn extrema() {
    let case = |a, b| {
        let mut flags = 0;
        let least = extremum::<F64>(a, b, false, &mut flags);
        (least, extremum::<F64>(a, b, true, &mut flags), flags)
    };
    assert_eq!(case(0, MINUS_ZERO), (MINUS_ZERO, 0, 0));
    assert_eq!(case(MINUS_ZERO, 0), (MINUS_ZERO, 0, 0));
    assert_eq!(case(NAN, 5), (5, 5, 0));
    assert_eq!(case(5, SIGNALING), (5, 5, flag::INVALID));
    assert_eq!(case(SIGNALING, NAN), (NAN, NAN, flag::INVALID));
}

#[test]
fn flags_of_special_operands() {
    let one = 1f64.to_bits();
    let flags_of = |operation: &dyn Fn(&mut u8) -> u64| {
        let mut flags = 0;
        let bits = operation(&mut flags);
        (bits, flags)
    };
    assert_eq!(
        flags_of(&|f| soft::div::<F64>(one, 0, RNE, f)),
        (INFINITY, flag::DIVIDE_BY_ZERO)
    );
    assert_eq!(
        flags_of(&|f| soft::div::<F64>(0, 0, RNE, f)),
        (NAN, flag::INVALID)
    );
    assert_eq!(
        flags_of(&|f| soft::fma::<F64>(0, INFINITY, NAN, RNE, f)),
        (NAN, flag::INVALID)
    );
    assert_eq!(
        flags_of(&|f| soft::add::<F64>(SIGNALING, one, RNE, f)),
        (NAN, flag::INVALID)
    );
    assert_eq!(flags_of(&|f| soft::add::<F64>(NAN, one, RNE, f)), (NAN, 0));
    assert_eq!(
        flags_of(&|f| soft::sqrt::<F64>(MINUS_ZERO, RNE, f)),
        (MINUS_ZERO, 0)
    );
    assert_eq!(
        flags_of(&|f| soft::sqrt::<F64>(one | 1 << 63, RNE, f)),
        (NAN, flag::INVALID)
    );
    // x - x is plus zero, but minus zero when rounding down.
    assert_eq!(soft::sub::<F64>(one, one, RNE, &mut 0), 0);
    assert_eq!(
        soft::sub::<F64>(one, one, Rounding::Down, &mut 0),
        MINUS_ZERO
    );
    // Tininess is detected after rounding: this rounds up to the least normal.
    let least = f64::MIN_POSITIVE.to_bits();
    let below_one = (1.0 - f64::EPSILON / 2.0).to_bits();
    let product = flags_of(&|f| soft::mul::<F64>(least, below_one, RNE, f));
    assert_eq!(product, (least, flag::INEXACT | flag::UNDERFLOW));
    let half_ulp_more = flags_of(&|f| soft::fma::<F64>(1, 1, least, RNE, f));
    assert_eq!(half_ulp_more, (least, flag::INEXACT));
    let overflow = flags_of(&|f| soft::mul::<F64>(INFINITY - 1, INFINITY - 1, Rounding::Zero, f));
    assert_eq!(overflow, (INFINITY - 1, flag::OVERFLOW | flag::INEXACT));
}

#[test]
fn classes() {
    let doubles = [
        1 << 63 | INFINITY,
        1 << 63 | 1 << 52,
        1 << 63 | 1,
        MINUS_ZERO,
        0,
        1,
        1 << 52,
        INFINITY,
        SIGNALING,
        NAN,
    ];
    for (class, bits) in doubles.into_iter().enumerate() {
        assert_eq!(classify::<F64>(bits), 1 << class);
    }
}
