//! Search for expensive programs: those that take the most CPU time or process memory for their
//! fuel.
//!
//! Programs are bred from bytes ([`a99_testkit::cost`]). For each row of the engine's tables the
//! search keeps the most expensive program that begins with it. Expensive ones are preferred as
//! parents of the next, which are made by mutation and crossover. At the end the most expensive are
//! shrunk while they stay expensive, and measured again.

mod breed;
mod measure;
mod report;

pub use measure::Figure;
pub use report::{json, text};

use a99_testkit::cost::{Counting, Genome};
use a99_testkit::numbers::Numbers;
use measure::Meter;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// Measured resource.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// CPU time for a unit of fuel; the bound is [`crate::rates::BOUND_US`].
    Time,
    /// Bytes that the process holds beyond the ceiling, and bytes allocated for a unit of fuel
    /// ([`a99_testkit::cost::memory`]).
    Bytes,
}

/// A program above this part of the bound is measured again before it counts as expensive.
const FINE: f64 = 0.5;

/// Measurements during the search and at the end. The smallest counts, because other load on the
/// machine only adds time.
const AGAIN: usize = 3;
const AT_LAST: usize = 9;

/// Most programs to shrink and report.
const REPORTED: usize = 12;

/// A smaller program counts as equally expensive from this part of the larger one's figure.
const AS_DEAR: f64 = 0.93;

/// Attempts to shrink one program.
const ATTEMPTS: usize = 300;

/// Part of the time that is reserved for shrinking.
const LAST_PART: f64 = 0.35;

/// Parameters of a search.
#[derive(Copy, Clone, Debug)]
pub struct Plan {
    /// Measured resource.
    pub goal: Goal,
    /// Seed of all random choices.
    pub seed: u64,
    /// Duration, in wall-clock time.
    pub time: Duration,
}

/// A found program.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The bytes that it was bred from.
    pub genome: Genome,
    /// Rows of the operations that its steps call.
    pub rows: Vec<String>,
    /// The program.
    pub ast: Json,
    /// Its inputs, by name and shape.
    pub inputs: Vec<(&'static str, String)>,
    /// The size of the inputs.
    pub n: usize,
    /// Its measurement.
    pub figure: Figure,
}

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// Parameters of the search.
    pub plan: Plan,
    /// Number of tried programs, and of those measured.
    pub tried: (usize, usize),
    /// Number of rows with an expensive program.
    pub rows: usize,
    /// The most expensive programs, most expensive first.
    pub findings: Vec<Finding>,
}

impl Found {
    /// The findings above their bound.
    pub fn above(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|found| found.figure.part > 1.0)
    }
}

/// Searches, and reports progress.
pub fn search(plan: Plan, counting: &'static Counting, mut told: impl FnMut(&str)) -> Found {
    let start = Instant::now();
    let end = start + plan.time.mul_f64(1.0 - LAST_PART);
    let mut meter = Meter::new(plan.goal, counting);
    let mut random = Numbers::new(plan.seed);
    let mut kept: BTreeMap<String, (f64, Genome)> = BTreeMap::new();
    let mut seen: HashSet<Genome> = HashSet::new();
    let (mut tried, mut measured) = (0, 0);
    let mut tell_at = start;
    while Instant::now() < end {
        if Instant::now() >= tell_at {
            tell_at += Duration::from_secs(10);
            let most = kept.values().map(|(part, _)| *part).fold(0.0, f64::max);
            told(&format!(
                "{} s: {tried} programs, {} rows, the dearest takes {most:.2} of the bound",
                start.elapsed().as_secs(),
                kept.len()
            ));
        }
        let genome = next(&kept, &mut random);
        if !seen.insert(genome.clone()) {
            continue;
        }
        tried += 1;
        let Some(mut figure) = meter.least(&genome, 1) else {
            continue;
        };
        measured += 1;
        let row = meter.program(&genome).rows.first().cloned();
        let row = row.unwrap_or_default();
        let known = kept.get(&row).map_or(0.0, |(part, _)| *part);
        if figure.part > known && figure.part > FINE {
            match meter.least(&genome, AGAIN) {
                Some(again) if again.part < figure.part => figure = again,
                _ => {}
            }
        }
        if figure.part > known {
            kept.insert(row, (figure.part, genome));
        }
    }
    let rows = kept.len();
    let mut dearest: Vec<(f64, Genome)> = kept.into_values().collect();
    dearest.sort_by(|a, b| b.0.total_cmp(&a.0));
    dearest.truncate(REPORTED);
    let mut findings: Vec<Finding> = Vec::new();
    for (place, (_, genome)) in dearest.iter().enumerate() {
        told(&format!("making number {} smaller", place + 1));
        let Some(finding) = smallest(&mut meter, genome, start + plan.time) else {
            continue;
        };
        findings.push(finding);
    }
    findings.sort_by(|a, b| b.figure.part.total_cmp(&a.figure.part));
    // Different parents may share a cause.
    let mut causes = HashSet::new();
    findings.retain(|finding| {
        let mut rows = finding.rows.clone();
        rows.sort();
        causes.insert(rows)
    });
    Found {
        plan,
        tried: (tried, measured),
        rows,
        findings,
    }
}

/// The next program to try.
fn next(kept: &BTreeMap<String, (f64, Genome)>, random: &mut Numbers) -> Genome {
    if kept.len() < 20 || random.one_in(4) {
        return breed::fresh(random);
    }
    let all: Vec<&(f64, Genome)> = kept.values().collect();
    // Tournament selection: the most expensive of a random few.
    let choose = |of: usize, random: &mut Numbers| {
        let places = (0..of).map(|_| all[random.below(all.len())]);
        let chosen = places.max_by(|a, b| a.0.total_cmp(&b.0));
        chosen.map_or_else(Genome::default, |(_, genome)| genome.clone())
    };
    let of = 1 + random.below(6);
    let one = choose(of, random);
    if random.one_in(4) {
        let other = choose(2, random);
        return breed::crossed(&one, &other, random);
    }
    breed::mutated(&one, random)
}

/// The smallest program that is as expensive, with its final measurement.
fn smallest(meter: &mut Meter, genome: &Genome, end: Instant) -> Option<Finding> {
    let mut best = genome.clone();
    let mut goal = meter.least(&best, AGAIN)?.part;
    let mut attempts = 0;
    'smaller: loop {
        for simpler in breed::simpler(&best) {
            attempts += 1;
            if attempts > ATTEMPTS || Instant::now() > end {
                break 'smaller;
            }
            let figure = meter.least(&simpler, AGAIN);
            if let Some(figure) = figure
                && figure.part >= goal * AS_DEAR
            {
                goal = goal.max(figure.part);
                best = simpler;
                continue 'smaller;
            }
        }
        break;
    }
    finding(meter, best)
}

/// Measures a program for the report.
fn finding(meter: &mut Meter, genome: Genome) -> Option<Finding> {
    let figure = meter.least(&genome, AT_LAST)?;
    let program = meter.program(&genome);
    let inputs = program.inputs.iter();
    Some(Finding {
        rows: program.rows.clone(),
        inputs: inputs
            .map(|(name, shape)| (*name, format!("{shape:?}")))
            .collect(),
        ast: program.ast,
        n: program.n,
        genome,
        figure,
    })
}

/// Measures programs of an earlier search again.
pub fn again(plan: Plan, counting: &'static Counting, genomes: &[Genome]) -> Found {
    let mut meter = Meter::new(plan.goal, counting);
    let measured = genomes
        .iter()
        .map(|genome| finding(&mut meter, genome.clone()));
    let findings: Vec<Finding> = measured.flatten().collect();
    Found {
        plan,
        tried: (genomes.len(), findings.len()),
        rows: findings.len(),
        findings,
    }
}
