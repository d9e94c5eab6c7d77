//! Metrics: what a host counts, in the text format of Prometheus (0.0.4).
//!
//! Counters are atomics that a turn reaches without a lock. The number of series is bounded: labels
//! have values of fixed sets, names of agents that the host defines, or the keys of
//! [`MAX_SERIES`] agents.

use crate::hub::locked;
use a99_capabilities::ai::{Cost, Usage};
use a99_runtime_engine::Appended;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Series of one metric; what is beyond them counts under [`OTHER`].
pub const MAX_SERIES: usize = 1_000;

/// The label's value for all that have no series themselves.
pub const OTHER: &str = "other";

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the buckets of histograms, in seconds.
const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// The kind of a metric.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

impl Kind {
    /// The word of a `TYPE` line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A metric: its name, kind, labels and meaning.
#[derive(Copy, Clone, Debug)]
pub struct Family {
    /// The name.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: &'static str,
}

impl Family {
    /// A metric.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Family {
        Family {
            name,
            kind,
            labels,
            help,
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds a number.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations in buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One more than there are bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Adds a duration.
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Writes metrics as text.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a metric; its samples follow.
    pub fn family(&mut self, family: &Family) {
        let Family {
            name, kind, help, ..
        } = family;
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}");
        let _ = writeln!(self.0, "# TYPE {name} {}", kind.name());
    }

    /// Writes one sample, with the values of the metric's labels.
    pub fn sample(&mut self, family: &Family, values: &[&str], value: impl Display) {
        self.line(family, "", values, None, value);
    }

    /// Writes the samples of a histogram.
    pub fn histogram(&mut self, family: &Family, values: &[&str], histogram: &Histogram) {
        let mut sum = 0;
        for (bucket, n) in histogram.buckets.iter().enumerate() {
            sum += n.load(Ordering::Relaxed);
            let bound = BOUNDS.get(bucket).map_or("+Inf".into(), f64::to_string);
            self.line(family, "_bucket", values, Some(&bound), sum);
        }
        let micros = histogram.micros.load(Ordering::Relaxed);
        let seconds = Duration::from_micros(micros).as_secs_f64();
        self.line(family, "_sum", values, None, seconds);
        self.line(family, "_count", values, None, sum);
    }

    /// Writes a metric with one sample and no labels.
    pub fn single(&mut self, family: &Family, value: impl Display) {
        self.family(family);
        self.sample(family, &[], value);
    }

    fn line(
        &mut self,
        family: &Family,
        suffix: &str,
        values: &[&str],
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.0.push_str(family.name);
        self.0.push_str(suffix);
        let labels = family.labels.iter().copied().zip(values.iter().copied());
        let mut open = '{';
        for (name, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            self.0.push(open);
            self.0.push_str(name);
            self.0.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
            open = ',';
        }
        if open == ',' {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }
}

/// The metrics of a host.
pub const FAMILIES: [Family; 11] = [
    TURNS,
    REDELIVERIES,
    DEAD_LETTERS,
    LAG,
    AGENTS,
    FENCED,
    DUPLICATES,
    OUTBOX,
    AI_CALLS,
    AI_TOKENS,
    AI_COST,
];

const TURNS: Family = Family::new(
    "a99_turn_duration_seconds",
    Kind::Histogram,
    &["agent", "outcome"],
    "Attempts of turns: those that succeed to their commit, others to the end of the handler.",
);
const REDELIVERIES: Family = Family::new(
    "a99_turn_redeliveries_total",
    Kind::Counter,
    &["agent"],
    "Attempts of turns after the first.",
);
const DEAD_LETTERS: Family = Family::new(
    "a99_dead_letters_total",
    Kind::Counter,
    &["agent"],
    "Turns and sent events that were given up.",
);
const LAG: Family = Family::new(
    "a99_agent_lag",
    Kind::Gauge,
    &["key"],
    "Events of the channel after the checkpoint, for agents that are not asleep.",
);
const AGENTS: Family = Family::new(
    "a99_agents",
    Kind::Gauge,
    &["state"],
    "Agents of the host by state.",
);
const FENCED: Family = Family::new(
    "a99_fenced_commits_total",
    Kind::Counter,
    &[],
    "Agents that stopped at a refused commit, because another host owns them.",
);
const DUPLICATES: Family = Family::new(
    "a99_duplicate_events_total",
    Kind::Counter,
    &[],
    "Appended events that the log already had, under the same identity.",
);
const OUTBOX: Family = Family::new(
    "a99_outbox_events",
    Kind::Gauge,
    &[],
    "Sent events that the channel server does not have yet.",
);
const AI_CALLS: Family = Family::new(
    "a99_ai_calls_total",
    Kind::Counter,
    &["outcome"],
    "Requests to language models.",
);
const AI_TOKENS: Family = Family::new(
    "a99_ai_tokens_total",
    Kind::Counter,
    &["direction"],
    "Tokens of requests to language models and of their answers.",
);
const AI_COST: Family = Family::new(
    "a99_ai_cost_total",
    Kind::Counter,
    &[],
    "Money for language models, in the unit of their prices.",
);

/// The outcome of an attempt.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Attempt {
    Done,
    Failed,
    Cancelled,
}

impl Attempt {
    pub(crate) fn name(self) -> &'static str {
        OUTCOMES.get(self as usize).copied().unwrap_or_default()
    }
}

const OUTCOMES: [&str; 3] = ["done", "failed", "cancelled"];

/// What is counted for all agents of a name.
#[derive(Debug, Default)]
pub(crate) struct OfAgent {
    attempts: [Histogram; OUTCOMES.len()],
    pub(crate) redeliveries: Counter,
    pub(crate) dead_letters: Counter,
}

impl OfAgent {
    pub(crate) fn attempt(&self, outcome: Attempt, took: Duration) {
        if let Some(histogram) = self.attempts.get(outcome as usize) {
            histogram.observe(took);
        }
    }
}

/// An agent's state and lag as the host sees them when it is asked.
pub(crate) struct Looked {
    pub(crate) key: String,
    pub(crate) state: &'static str,
    pub(crate) lag: Option<u64>,
}

/// The counters of a host.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    agents: Mutex<BTreeMap<String, Arc<OfAgent>>>,
    pub(crate) fenced: Counter,
    duplicates: Counter,
    answered: Counter,
    failed: Counter,
    tokens_in: Counter,
    tokens_out: Counter,
    /// Millionths.
    cost: Counter,
}

impl Metrics {
    /// The counters of the agents of a name.
    pub(crate) fn of(&self, agent: &str) -> Arc<OfAgent> {
        let mut agents = locked(&self.agents);
        if let Some(there) = agents.get(agent) {
            return Arc::clone(there);
        }
        let name = if agents.len() < MAX_SERIES {
            agent
        } else {
            OTHER
        };
        Arc::clone(agents.entry(name.to_owned()).or_default())
    }

    /// Writes all of them.
    pub(crate) fn write(&self, looked: Vec<Looked>, outbox: u64, to: &mut Exposition) {
        let agents = locked(&self.agents).clone();
        to.family(&TURNS);
        for (name, agent) in &agents {
            for (outcome, histogram) in OUTCOMES.iter().zip(&agent.attempts) {
                to.histogram(&TURNS, &[name, outcome], histogram);
            }
        }
        to.family(&REDELIVERIES);
        for (name, agent) in &agents {
            to.sample(&REDELIVERIES, &[name], agent.redeliveries.get());
        }
        to.family(&DEAD_LETTERS);
        for (name, agent) in &agents {
            to.sample(&DEAD_LETTERS, &[name], agent.dead_letters.get());
        }
        to.family(&AGENTS);
        for state in ["awake", "asleep", "failed", "stopped"] {
            let count = looked.iter().filter(|one| one.state == state).count();
            to.sample(&AGENTS, &[state], count);
        }
        lag(looked, to);
        to.single(&FENCED, self.fenced.get());
        to.single(&DUPLICATES, self.duplicates.get());
        to.single(&OUTBOX, outbox);
        to.family(&AI_CALLS);
        to.sample(&AI_CALLS, &["done"], self.answered.get());
        to.sample(&AI_CALLS, &["failed"], self.failed.get());
        to.family(&AI_TOKENS);
        to.sample(&AI_TOKENS, &["in"], self.tokens_in.get());
        to.sample(&AI_TOKENS, &["out"], self.tokens_out.get());
        let micro = Duration::from_micros(self.cost.get());
        to.single(&AI_COST, micro.as_secs_f64());
    }

    /// Counts the events of an append that the log already had.
    pub(crate) fn appended(&self, appended: &[Appended]) {
        let known = appended.iter().filter(|one| !one.is_new).count();
        if known > 0 {
            self.duplicates.add(known as u64);
        }
    }

    pub(crate) fn answered(&self, is_ok: bool, usage: Usage, cost: Option<Cost>) {
        match is_ok {
            true => self.answered.inc(),
            false => self.failed.inc(),
        }
        self.tokens_in.add(usage.prompt_tokens);
        self.tokens_out.add(usage.completion_tokens);
        self.cost.add(cost.map_or(0, |cost| cost.money.micro()));
    }
}

/// Writes the lag of the agents that lag most, and the sum of the others.
fn lag(looked: Vec<Looked>, to: &mut Exposition) {
    let lags = looked.into_iter();
    let mut lags: Vec<_> = lags
        .filter_map(|one| one.lag.map(|lag| (lag, one.key)))
        .collect();
    lags.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let rest = lags.split_off(lags.len().min(MAX_SERIES));
    to.family(&LAG);
    for (lag, key) in &lags {
        to.sample(&LAG, &[key], lag);
    }
    if !rest.is_empty() {
        let sum = rest
            .iter()
            .fold(0_u64, |sum, one| sum.saturating_add(one.0));
        to.sample(&LAG, &[OTHER], sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(key: String, lag: u64) -> Looked {
        Looked {
            key,
            state: "awake",
            lag: Some(lag),
        }
    }

    #[test]
    fn series_are_bounded_and_sum_the_rest() {
        let metrics = Metrics::default();
        for n in 0..10_000 {
            metrics.of(&format!("agent{n}")).redeliveries.inc();
        }
        let all = (0..10_000).map(|n| looked(format!("a/c/{n}"), n)).collect();
        let mut to = Exposition::default();
        metrics.write(all, 0, &mut to);
        let text = to.finish();
        let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(of("a99_agent_lag{"), MAX_SERIES + 1);
        assert_eq!(of("a99_turn_redeliveries_total{"), MAX_SERIES + 1);
        assert!(text.contains("a99_turn_redeliveries_total{agent=\"other\"} 9000\n"));
        // The sum of 0 to 8,999.
        assert!(text.contains("a99_agent_lag{key=\"other\"} 40495500\n"));
        assert!(text.contains("a99_agent_lag{key=\"a/c/9999\"} 9999\n"));
        assert!(text.contains("a99_agents{state=\"awake\"} 10000\n"));
    }

    #[test]
    fn label_values_are_escaped() {
        let mut to = Exposition::default();
        lag(vec![looked("a/\"} 1\n\\x/h".to_owned(), 2)], &mut to);
        let text = to.finish();
        assert_eq!(
            text.lines().last(),
            Some(r#"a99_agent_lag{key="a/\"} 1\n\\x/h"} 2"#)
        );
    }

    #[test]
    fn buckets_hold_their_bounds() {
        let histogram = Histogram::default();
        for micros in [500, 501, 61_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let mut to = Exposition::default();
        to.histogram(&TURNS, &["a", "done"], &histogram);
        let text = to.finish();
        for line in [
            r#"_bucket{agent="a",outcome="done",le="0.0005"} 1"#,
            r#"_bucket{agent="a",outcome="done",le="0.001"} 2"#,
            r#"_bucket{agent="a",outcome="done",le="60"} 2"#,
            r#"_bucket{agent="a",outcome="done",le="+Inf"} 3"#,
            r#"_sum{agent="a",outcome="done"} 61.001001"#,
            r#"_count{agent="a",outcome="done"} 3"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }
}
