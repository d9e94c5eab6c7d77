//! The table of rates: one line for each row.

use super::{BOUND_US, Rate};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Report of a measurement.
#[derive(Debug)]
pub struct Report {
    rates: Vec<Rate>,
}

struct Line<'r> {
    name: String,
    count: usize,
    least: f64,
    median: f64,
    most: &'r Rate,
}

impl Report {
    /// Report of these figures.
    pub fn new(rates: Vec<Rate>) -> Report {
        Report { rates }
    }

    fn lines(&self) -> Vec<Line<'_>> {
        let mut rows: BTreeMap<(&str, &str), Vec<&Rate>> = BTreeMap::new();
        for rate in &self.rates {
            rows.entry((rate.group, &rate.row)).or_default().push(rate);
        }
        rows.into_iter()
            .filter_map(|((group, row), mut rates)| {
                rates.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
                Some(Line {
                    name: format!("{group} {row}"),
                    count: rates.len(),
                    least: rates.first()?.rate(),
                    median: rates[rates.len() / 2].rate(),
                    most: rates.last()?,
                })
            })
            .collect()
    }

    /// The figures above the bound.
    pub fn above(&self) -> Vec<&Rate> {
        let mut above: Vec<&Rate> = self.rates.iter().filter(|r| r.rate() > BOUND_US).collect();
        above.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        above
    }

    /// Number of figures, with their median, 99th percentile and maximum.
    pub fn summary(&self) -> (usize, [f64; 3]) {
        let mut rates: Vec<f64> = self.rates.iter().map(Rate::rate).collect();
        rates.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let last = rates.len().saturating_sub(1);
            rates
                .get((last as f64 * part) as usize)
                .copied()
                .unwrap_or(0.0)
        };
        (rates.len(), [at(0.5), at(0.99), at(1.0)])
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{:<34}{:>6}{:>9}{:>9}{:>9}  of",
            "us of CPU time a fuel unit", "", "least", "median", "most"
        );
        for line in self.lines() {
            let most = line.most;
            let _ = writeln!(
                out,
                "{:<34}{:>6}{:>9.2}{:>9.2}{:>9.2}  {} at {}: {:.0} ns, {:.6} fuel",
                line.name,
                line.count,
                line.least,
                line.median,
                most.rate(),
                most.variant,
                most.n,
                most.nanos,
                most.fuel,
            );
        }
        let (count, [median, high, most]) = self.summary();
        let _ = writeln!(
            out,
            "{count} figures: median {median:.2}, 99 % below {high:.2}, most {most:.2}"
        );
        out
    }

    /// The recorded part of a measurement, for the documents: a summary, and the maximum of each
    /// group of operations.
    pub fn record(&self, date: &str, command: &str) -> Json {
        let mut groups: BTreeMap<&str, Vec<&Rate>> = BTreeMap::new();
        for rate in &self.rates {
            groups.entry(rate.group).or_default().push(rate);
        }
        let rounded = |x: f64| (x * 100.0).round() / 100.0;
        let groups: serde_json::Map<String, Json> = groups
            .into_iter()
            .filter_map(|(group, mut rates)| {
                rates.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
                let most = rates.last()?;
                let of = format!("{} {}", most.row, most.variant);
                let median = rounded(rates[rates.len() / 2].rate());
                let line = json!({"figures": rates.len(), "median": median,
                    "most": rounded(most.rate()), "of": of.trim(), "n": most.n});
                Some((group.to_owned(), line))
            })
            .collect();
        let (count, [median, high, most]) = self.summary();
        json!({"date": date, "command": command, "figures": count, "median": rounded(median),
            "p99": rounded(high), "most": rounded(most), "above": self.above().len(),
            "groups": groups})
    }

    /// The table as JSON: a summary, the rows, every figure.
    pub fn json(&self) -> Json {
        let (count, [median, high, most]) = self.summary();
        let rows: Vec<Json> = self
            .lines()
            .iter()
            .map(|l| {
                json!({"row": l.name, "figures": l.count, "least": l.least,
                    "median": l.median, "most": l.most.rate(),
                    "of": format!("{} at {}", l.most.variant, l.most.n)})
            })
            .collect();
        let figures: Vec<Json> = self
            .rates
            .iter()
            .map(|r| {
                json!({"group": r.group, "row": r.row, "variant": r.variant, "n": r.n,
                    "nanos": r.nanos, "fuel": r.fuel, "rate": r.rate()})
            })
            .collect();
        json!({"bound": BOUND_US, "count": count, "median": median, "p99": high, "most": most,
            "rows": rows, "figures": figures})
    }
}
