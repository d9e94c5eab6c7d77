//! Rules for numeric bounds of inputs, and for numbers in the unit of another tool.
//!
//! Codes: `lint.wrong_value`.

use super::Rules;
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};

/// Common retention times in seconds. Read as milliseconds they expire before the next step but
/// one.
const SECONDS_KEPT: &[f64] = &[
    300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 43_200.0, 86_400.0, 604_800.0,
];

/// Common command timeouts in seconds.
const SECONDS_RUN: &[f64] = &[
    3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0,
];

impl Rules<'_, '_> {
    /// Reports numbers beyond the bounds of their input.
    pub(super) fn lint_bounds_of(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let inputs = self.signature(op).map_or(&[][..], |sig| &sig.inputs);
        for input in inputs {
            let Some((key, range)) = input.range.map(|range| (&*input.name, range)) else {
                continue;
            };
            let Some(node) = doc.get(step, key) else {
                continue;
            };
            let Kind::Number(n) = doc.kind(node) else {
                continue;
            };
            let fits =
                (range.least..=range.most).contains(&n) && (!range.whole || n.fract() == 0.0);
            if !fits {
                let message = format!("`{}` cannot be {n}", key);
                let most = match range.most.is_infinite() {
                    true => String::new(),
                    false => format!(" to {}", range.most),
                };
                let from = match most.is_empty() {
                    true => " on",
                    false => "",
                };
                let what = if range.whole {
                    "a whole number"
                } else {
                    "a number"
                };
                let help = format!("write {what} from {}{from}{most}", range.least);
                self.found(codes::WRONG_VALUE, node, message, "", help);
                continue;
            }
            let seconds = match key {
                "ttlMs" | "ttl" => SECONDS_KEPT,
                "timeoutMs" => SECONDS_RUN,
                _ => continue,
            };
            if seconds.contains(&n) {
                let message = format!(
                    "`{}` is in milliseconds: this is {} seconds",
                    key,
                    n / 1000.0
                );
                let help = format!("for {n} seconds write {}", n * 1000.0);
                self.found(codes::WRONG_VALUE, node, message, "", help);
            }
        }
    }
}

/// The milliseconds that a text such as `1h`, `30 seconds` or `1 day` means.
pub(super) fn milliseconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..]
        .trim_start_matches([' ', '_', '-'])
        .to_ascii_lowercase();
    let unit = match unit.as_str() {
        "ms" | "msec" | "millis" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
        "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3.6e6,
        "d" | "day" | "days" => 8.64e7,
        "w" | "week" | "weeks" => 6.048e8,
        _ => return None,
    };
    Some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_in_words() {
        for (text, wanted) in [
            ("1h", Some(3_600_000.0)),
            ("1 day", Some(86_400_000.0)),
            ("30 seconds", Some(30_000.0)),
            ("0.5s", Some(500.0)),
            ("5", None),
            ("soon", None),
            ("5 apples", None),
        ] {
            assert_eq!(milliseconds(text), wanted, "{text}");
        }
    }
}
