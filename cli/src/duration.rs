//! Durations on the command line: a number and a unit.

use std::time::Duration;

/// Longest accepted duration: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// Parses a duration; without a unit in seconds.
///
/// # Errors
/// The expected form.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, *unit)))
        .unwrap_or((text, 1.0));
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err("expected a time above 0 and at most a year, as in 500ms, 5s, 2m, 1h".to_owned()),
    }
}

/// Whole milliseconds of a duration, at least one.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in [
            ("5", 5000),
            ("0.5", 500),
            ("500ms", 500),
            ("5s", 5000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                time(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in ["", "0", "-1", "x", "5d", "nan", "inf", "1e300", "ms"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
