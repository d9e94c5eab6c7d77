//! Report of a run: the smallest figures, and their tables.

use super::peers::PEERS;
use a99_benches_work::Work;
use a99_benches_work::list::{ALL, ANCHOR, Of};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::process::Command;

/// Our column.
pub(super) const OURS: &str = "agent99";

/// Figures of a run.
pub(super) struct Report {
    rounds: u32,
    engines: Map<String, Value>,
    /// By the name of the work, then by the engine.
    figures: Map<String, Value>,
}

impl Report {
    pub(super) fn new(rounds: u32) -> Report {
        Report {
            rounds,
            engines: Map::new(),
            figures: Map::new(),
        }
    }

    /// Records an engine's description.
    pub(super) fn about(&mut self, engine: &str, about: &Value) {
        let about = json!({"version": about["version"], "limits": about["limits"]});
        self.engines.insert(engine.to_owned(), about);
    }

    /// Adds a figure; the smallest is kept.
    pub(super) fn add(&mut self, work: &Work, engine: &str, figure: f64) {
        let row = self.figures.entry(work.name).or_insert_with(|| json!({}));
        let least = row[engine]
            .as_f64()
            .map_or(figure, |least| least.min(figure));
        row[engine] = json!((least * 100.0).round() / 100.0);
    }

    /// The report as JSON, with the date and the kind of machine.
    pub(super) fn to_json(&self) -> Value {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let date = Command::new("date").arg("+%Y-%m-%d").output();
        let date = date.map(|date| String::from_utf8_lossy(&date.stdout).trim().to_owned());
        json!({
            "date": date.unwrap_or_default(),
            "machine": format!("{}, {cores} cores", std::env::consts::ARCH),
            "rounds": self.rounds,
            "engines": self.engines,
            "figures": self.figures,
        })
    }
}

/// A row of a saved or a new report.
struct Row<'a> {
    work: &'static Work,
    figures: &'a Map<String, Value>,
}

impl Row<'_> {
    fn of(&self, engine: &str) -> Option<f64> {
        figure(self.figures, self.work.name, engine)
    }

    /// The operation that the figure is for, and the unit unless it is time.
    fn unit(&self) -> String {
        match self.work.of {
            Of::Time => self.work.per.to_owned(),
            Of::Bytes => format!("{}, bytes", self.work.per),
        }
    }

    /// Our figure divided by the smallest of the dynamic peers.
    fn by_best(&self) -> Option<f64> {
        let dynamic = PEERS.iter().filter(|peer| !peer.is_typed);
        let best = dynamic
            .filter_map(|peer| self.of(peer.name))
            .reduce(f64::min)?;
        Some(self.of(OURS)? / best)
    }

    /// The goal for our figure.
    fn goal(&self) -> Option<f64> {
        let goal = self.work.goal?;
        Some(goal.at(figure(self.figures, goal.anchor_work, ANCHOR)?))
    }

    /// Our figure divided by the goal.
    fn by_goal(&self) -> Option<f64> {
        Some(self.of(OURS)? / self.goal()?)
    }
}

fn figure(figures: &Map<String, Value>, work: &str, engine: &str) -> Option<f64> {
    figures.get(work)?.get(engine)?.as_f64()
}

fn rows(figures: &Map<String, Value>) -> impl Iterator<Item = Row<'_>> {
    let measured = ALL.iter().filter(|work| figures.contains_key(work.name));
    measured.map(move |work| Row { work, figures })
}

/// A number with three significant digits, or nothing.
fn shown(number: Option<f64>) -> String {
    match number {
        None => "-".to_owned(),
        Some(number) if number >= 100.0 => {
            let whole = format!("{number:.0}");
            let mut out = String::new();
            for (at, digit) in whole.chars().enumerate() {
                if at > 0 && (whole.len() - at).is_multiple_of(3) {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
        Some(number) if number >= 10.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.2}"),
    }
}

fn verdict(ratio: Option<f64>) -> &'static str {
    match ratio {
        None => "-",
        Some(ratio) if ratio <= 1.0 => "met",
        Some(_) => "no",
    }
}

/// The table for a terminal. With peers it compares our figure with theirs and the goal; without,
/// it shows instructions and the change.
pub(super) fn table(
    report: &Report,
    peers: &[&str],
    counts: &Value,
    baseline: Option<&Value>,
) -> String {
    let has_peers = !peers.is_empty();
    let mut out = format!("{:<18}{:>12}{:>13}", "work", "per", OURS);
    for peer in peers {
        let _ = write!(out, "{peer:>11}");
    }
    let last = match has_peers {
        true => ["best", "goal", "to goal", "met"],
        false => ["instr", "baseline", "change", ""],
    };
    for title in last {
        let _ = write!(out, "{title:>13}");
    }
    out.push('\n');
    for row in rows(&report.figures) {
        let unit = row.unit();
        let ours = row.of(OURS);
        let _ = write!(out, "{:<18}{unit:>12}{:>13}", row.work.name, shown(ours));
        for peer in peers {
            let _ = write!(out, "{:>11}", shown(row.of(peer)));
        }
        let last = if has_peers {
            let ratio = row.by_goal();
            [
                shown(row.by_best()),
                shown(row.goal()),
                shown(ratio),
                verdict(ratio).to_owned(),
            ]
        } else {
            let before = baseline.and_then(|saved| saved["figures"][row.work.name][OURS].as_f64());
            let change = before
                .zip(ours)
                .map(|(before, ours)| (ours / before - 1.0) * 100.0);
            [
                shown(counts[row.work.name].as_f64()),
                shown(before),
                change.map_or("-".to_owned(), |change| format!("{change:+.1} %")),
                String::new(),
            ]
        };
        for cell in last {
            let _ = write!(out, "{cell:>13}");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "\nCPU nanoseconds, or bytes where it says so; the least of {} processes.",
        report.rounds
    );
    if has_peers {
        let _ = writeln!(
            out,
            "best: ours divided by the best dynamic peer. goal: what ours may be on this \
             machine, by {ANCHOR}."
        );
    }
    out
}

/// The tables of the page, from a saved report, the recorded instruction counts and the measured
/// time of a unit of fuel.
pub(crate) fn markdown(saved: &Value, counts: &Value, rates: &Value) -> String {
    let empty = Map::new();
    let figures = saved["figures"].as_object().unwrap_or(&empty);
    let engines = saved["engines"].as_object().unwrap_or(&empty);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut out = format!(
        "Measured on {}, on a virtual machine ({}): the least of {} processes, each engine once \
         in every round. Figures are nanoseconds of CPU time, or bytes if the row says so.\n\n",
        text(&saved["date"]),
        text(&saved["machine"]),
        saved["rounds"],
    );
    let peers: Vec<&str> = PEERS
        .iter()
        .map(|peer| peer.name)
        .filter(|name| engines.contains_key(*name))
        .collect();
    let _ = writeln!(
        out,
        "| work | per | agent99 | {} | ours / best | ours / goal | instructions |",
        peers.join(" | ")
    );
    let _ = writeln!(out, "|---|---|{}", "---|".repeat(peers.len() + 4));
    for row in rows(figures) {
        let unit = row.unit();
        let _ = write!(
            out,
            "| {} | {unit} | **{}** |",
            row.work.name,
            shown(row.of(OURS))
        );
        for peer in &peers {
            let _ = write!(out, " {} |", shown(row.of(peer)));
        }
        let goal = match row.by_goal() {
            None => "-".to_owned(),
            Some(ratio) => format!("{}, {}", shown(Some(ratio)), verdict(Some(ratio))),
        };
        let count = counts[row.work.name].as_f64();
        let _ = writeln!(
            out,
            " {} | {goal} | {} |",
            shown(row.by_best()),
            shown(count)
        );
    }
    out.push_str("\n| work | description |\n|---|---|\n");
    for row in rows(figures) {
        let what = row.work.what.replace('|', "\\|");
        let _ = writeln!(out, "| {} | {what} |", row.work.name);
    }
    out.push_str("\n| engine | release | active limits |\n|---|---|---|\n");
    for name in [OURS].iter().chain(&peers) {
        let about = &engines.get(*name).cloned().unwrap_or_default();
        let (version, limits) = (text(&about["version"]), text(&about["limits"]));
        let _ = writeln!(out, "| {name} | {version} | {limits} |");
    }
    // Microseconds for a unit, which is a million micro-units.
    let rate = |key: &str| rates[key].as_f64().map(|micros| micros * 1e3);
    let _ = writeln!(
        out,
        "\nA unit of fuel bought {} ns of CPU time in the median of {} operations, {} ns at the \
         99th percentile (`{}`, {}).",
        shown(rate("median")),
        rates["figures"],
        shown(rate("p99")),
        text(&rates["command"]),
        text(&rates["date"]),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_benches_work::list;

    fn report() -> Report {
        let mut report = Report::new(2);
        for (work, engine, figure) in [
            (list::W2, OURS, 15.0),
            (list::W2, OURS, 12.0),
            (list::W2, "lua54", 43.0),
            (list::W2, "wasmi", 6.0),
            (list::W1_MAP, "lua54", 1_210.0),
            (list::W1_BOUND, OURS, 20.0),
            (list::W8_WARM, OURS, 12_345.0),
        ] {
            report.add(work, engine, figure);
        }
        report
    }

    #[test]
    fn goals_are_judged_by_the_anchor_of_the_run() {
        let report = report();
        let row = |work: &Work| rows(&report.figures).find(|row| row.work == work);
        let w2 = row(list::W2).expect("measured");
        // The smallest counts, and typed peers do not.
        assert_eq!((w2.of(OURS), w2.by_best()), (Some(12.0), Some(12.0 / 43.0)));
        assert_eq!((w2.by_goal(), verdict(w2.by_goal())), (Some(1.2), "no"));
        let bound = row(list::W1_BOUND).expect("measured");
        assert_eq!(verdict(bound.by_goal()), "met");
        let warm = row(list::W8_WARM).expect("measured");
        assert_eq!(warm.by_goal(), None);
        assert!(row(list::W4).is_none());
    }

    #[test]
    fn tables_show_what_was_measured() {
        let report = report();
        let shown = table(&report, &["lua54", "wasmi"], &json!({}), None);
        let line = shown.lines().find(|line| line.starts_with("W2 "));
        let cells: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let wanted = [
            "W2", "turn", "12.0", "43.0", "6.00", "0.28", "10.0", "1.20", "no",
        ];
        assert_eq!(cells, wanted);
        let before = json!({"figures": {"W8 warm": {"agent99": 10_000.0}}});
        let shown = table(&report, &[], &json!({"W8 warm": 250_000.0}), Some(&before));
        let line = shown.lines().find(|line| line.starts_with("W8 warm"));
        let cells: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let wanted = [
            "W8", "warm", "run", "12,345", "250,000", "10,000", "+23.4", "%",
        ];
        assert_eq!(cells, wanted);
    }
}
