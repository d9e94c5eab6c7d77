//! Fuel: the deterministic price of a run (decision D17).
//!
//! Fuel is a whole number of micro-units (1e-6 unit) with saturating arithmetic, so all machines
//! count alike. Decimals appear only at the edges, in options and reports. Prices are defined
//! elsewhere.

use serde::{Serialize, Serializer};
use std::fmt;

/// Micro-units in one unit of fuel (decision D17).
pub const MICRO_PER_UNIT: i64 = 1_000_000;

/// An amount of fuel in micro-units. A balance may be negative.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fuel(i64);

/// The reason why a decimal is not an amount of fuel (decision D17).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FuelError {
    /// The number is NaN.
    NotANumber,
    /// The number is below zero.
    Negative,
    /// The number is infinite.
    Infinite,
}

impl fmt::Display for FuelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "fuel must be a number, not NaN",
            Self::Negative => "fuel must not be negative",
            Self::Infinite => "fuel must be finite",
        })
    }
}

impl std::error::Error for FuelError {}

impl Fuel {
    /// No fuel.
    pub const ZERO: Self = Self(0);
    /// The largest amount; larger decimals saturate to it.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates an amount from micro-units.
    #[must_use]
    pub const fn from_micro(micro: i64) -> Self {
        Self(micro)
    }

    /// The amount in micro-units.
    #[must_use]
    pub const fn micro(self) -> i64 {
        self.0
    }

    /// Creates an amount from units, rounded half up to a micro-unit and saturating at the largest
    /// amount.
    ///
    /// # Errors
    /// The number is NaN, negative or infinite (decision D17).
    pub fn from_decimal(units: f64) -> Result<Self, FuelError> {
        if units.is_nan() {
            Err(FuelError::NotANumber)
        } else if units < 0.0 {
            Err(FuelError::Negative)
        } else if units.is_infinite() {
            Err(FuelError::Infinite)
        } else {
            Ok(Self(round_to_micro(units)))
        }
    }

    /// Adds, saturating.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Subtracts, saturating. The result may be negative.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The amount in units, as exactly as `f64` allows.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / MICRO_PER_UNIT as f64
    }
}

/// Expects `units` to be finite and not negative, where half away from zero equals half up. The
/// cast saturates.
fn round_to_micro(units: f64) -> i64 {
    (units * MICRO_PER_UNIT as f64).round() as i64
}

impl fmt::Display for Fuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = MICRO_PER_UNIT.unsigned_abs();
        let (whole, part) = (self.0.unsigned_abs() / unit, self.0.unsigned_abs() % unit);
        let digits = if part == 0 {
            whole.to_string()
        } else {
            let text = format!("{whole}.{part:06}");
            text.trim_end_matches('0').to_owned()
        };
        f.pad_integral(self.0 >= 0, "", &digits)
    }
}

/// Serializes as a number of units, as in `"fuel_used": 0.4`; whole numbers have no fraction.
impl Serialize for Fuel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::value::Value::Number(self.to_f64()).serialize(serializer)
    }
}

impl fmt::Debug for Fuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fuel({self})")
    }
}

/// Converts a cost to micro-units, rounded half up. `None` for NaN, negative and infinite costs,
/// where the caller keeps the static default (decision D17).
#[must_use]
pub fn cost_from_f64(units: f64) -> Option<i64> {
    Fuel::from_decimal(units).ok().map(Fuel::micro)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        for (units, micro, shown) in [
            (0.0, 0, "0"),
            (-0.0, 0, "0"),
            (0.1, 100_000, "0.1"),
            (1000.0, 1_000_000_000, "1000"),
            (0.000_000_5, 1, "0.000001"),
            (0.000_000_4, 0, "0"),
            (1.234_567_8, 1_234_568, "1.234568"),
            (1e300, i64::MAX, "9223372036854.775807"),
        ] {
            let fuel = Fuel::from_decimal(units).unwrap();
            assert_eq!((fuel.micro(), fuel.to_string().as_str()), (micro, shown));
        }
        assert_eq!(Fuel::from_micro(-150_000).to_string(), "-0.15");
        assert_eq!(
            Fuel::from_micro(i64::MIN).to_string(),
            "-9223372036854.775808"
        );
        assert_eq!(Fuel::from_micro(2_500_000).to_f64(), 2.5);
        let amounts = [2_500_000, 3_000_000, -100_000].map(Fuel::from_micro);
        assert_eq!(serde_json::to_string(&amounts).unwrap(), "[2.5,3,-0.1]");
    }

    #[test]
    fn refusals() {
        assert_eq!(Fuel::from_decimal(f64::NAN), Err(FuelError::NotANumber));
        assert_eq!(Fuel::from_decimal(-1.0), Err(FuelError::Negative));
        assert_eq!(
            Fuel::from_decimal(f64::NEG_INFINITY),
            Err(FuelError::Negative)
        );
        assert_eq!(Fuel::from_decimal(f64::INFINITY), Err(FuelError::Infinite));
        assert_eq!(cost_from_f64(-0.1), None);
        assert_eq!(cost_from_f64(f64::NAN), None);
        assert_eq!(cost_from_f64(0.01), Some(10_000));
    }

    #[test]
    fn saturation() {
        let one = Fuel::from_micro(1);
        assert_eq!(Fuel::MAX.saturating_add(one), Fuel::MAX);
        assert_eq!(
            Fuel::from_micro(i64::MIN).saturating_sub(one).micro(),
            i64::MIN
        );
        assert!(Fuel::ZERO.saturating_sub(one) < Fuel::default());
    }
}
