//! Bounds of the numbers that atoms take, and numbers in the unit of another tool.

use super::{Finding, Lower};
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};

/// What an atom takes of a number: the least, the most, and whether it is whole.
struct Bound {
    ops: &'static [&'static str],
    key: &'static str,
    least: f64,
    most: f64,
    whole: bool,
}

const fn whole(ops: &'static [&'static str], key: &'static str, least: f64, most: f64) -> Bound {
    Bound {
        ops,
        key,
        least,
        most,
        whole: true,
    }
}

/// A year in milliseconds and more: nothing is kept longer by mistake.
const EVER: f64 = f64::INFINITY;

#[rustfmt::skip]
const BOUNDS: &[Bound] = &[
    whole(&["storeSet", "storeCompareAndSet", "cache"], "ttlMs", 0.0, EVER),
    whole(&["storeProcedure"], "ttl", 0.0, EVER),
    whole(&["storeProcedure"], "maxSize", 0.0, 1_048_576.0),
    whole(&["storeList"], "limit", 1.0, 1000.0),
    whole(&["storeQueryWhere"], "limit", 0.0, EVER),
    whole(&["storeVectorSearch", "storeSearch"], "k", 1.0, EVER),
    whole(&["storeCreateCollection"], "dimension", 1.0, 65_536.0),
    whole(&["regexSplit"], "limit", 0.0, EVER),
    whole(&["random"], "length", 0.0, 65_536.0),
    whole(&["shellExec"], "timeoutMs", 1.0, 86_400_000.0),
    whole(&["shellReadFile"], "maxBytes", 0.0, 16_777_216.0),
    whole(&["callAll", "llmToolLoop"], "limit", 1.0, a99_core::sig::MAX_CALLS_UNDER_WAY),
    whole(&["llmToolLoop"], "maxRounds", 1.0, 64.0),
    whole(&["llmChat", "llmToolLoop"], "maxTokens", 1.0, EVER),
    Bound { ops: &["llmChat", "llmToolLoop"], key: "temperature", least: 0.0, most: 2.0, whole: false },
    Bound { ops: &["llmChat", "llmToolLoop"], key: "topP", least: 0.0, most: 1.0, whole: false },
    whole(&["llmChat", "llmToolLoop"], "seed", 0.0, 9_007_199_254_740_991.0),
];

/// Whether a row is about this op; a look at the table for each step would take longer.
fn is_bounded(op: &str) -> bool {
    matches!(
        op,
        "storeSet"
            | "storeCompareAndSet"
            | "cache"
            | "storeProcedure"
            | "storeList"
            | "storeQueryWhere"
            | "storeVectorSearch"
            | "storeSearch"
            | "storeCreateCollection"
            | "regexSplit"
            | "random"
            | "shellExec"
            | "shellReadFile"
            | "callAll"
            | "llmToolLoop"
            | "llmChat"
    )
}

/// Seconds that people write for a time to keep something; as milliseconds they are over
/// before the next step but one.
const SECONDS_KEPT: &[f64] = &[
    300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 43_200.0, 86_400.0, 604_800.0,
];

/// Seconds that people write for the time of a command.
const SECONDS_RUN: &[f64] = &[
    3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0,
];

impl Lower<'_, '_> {
    /// Numbers beyond the bounds of their input.
    pub(super) fn lint_bounds_of(&mut self, step: NodeId, op: &str) {
        if !is_bounded(op) {
            return;
        }
        let doc = self.s.doc;
        let rows = BOUNDS.iter().filter(|row| row.ops.contains(&op));
        for row in rows {
            let Some(node) = doc.get(step, row.key) else {
                continue;
            };
            let Kind::Number(n) = doc.kind(node) else {
                continue;
            };
            let fits = (row.least..=row.most).contains(&n) && (!row.whole || n.fract() == 0.0);
            if !fits {
                let message = format!("`{}` cannot be {n}", row.key);
                let finding = Finding::new(codes::WRONG_VALUE, node, message);
                let most = match row.most == EVER {
                    true => String::new(),
                    false => format!(" to {}", row.most),
                };
                let from = match most.is_empty() {
                    true => " on",
                    false => "",
                };
                let what = if row.whole {
                    "a whole number"
                } else {
                    "a number"
                };
                let help = format!("write {what} from {}{from}{most}", row.least);
                self.found(finding.help(help));
                continue;
            }
            let seconds = match row.key {
                "ttlMs" | "ttl" => SECONDS_KEPT,
                "timeoutMs" => SECONDS_RUN,
                _ => continue,
            };
            if seconds.contains(&n) {
                let message = format!(
                    "`{}` is in milliseconds: this is {} seconds",
                    row.key,
                    n / 1000.0
                );
                let finding = Finding::new(codes::WRONG_VALUE, node, message);
                self.found(finding.help(format!("for {n} seconds write {}", n * 1000.0)));
            }
        }
    }
}

/// Milliseconds that a text such as `1h`, `30 seconds` or `1 day` means.
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
    use super::{BOUNDS, is_bounded, milliseconds};

    #[test]
    fn ops_with_rows_are_bounded() {
        for op in BOUNDS.iter().flat_map(|row| row.ops) {
            assert!(is_bounded(op), "{op}");
        }
        assert!(!is_bounded("varSet"));
    }

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
