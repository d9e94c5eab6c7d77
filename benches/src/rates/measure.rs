//! Runs a case, and reads the clock and the meter around its loop.

use super::{Case, all};
use a99_core::program::ops::TABLE;
use a99_testkit::cost::Made;
use a99_vm::atom::AsyncFn;
use agent99::{
    Agent, AtomBody, AtomDef, AtomSig, Engine, HostReply, Params, RunOptions, Value, all_atoms,
};
use cpu_time::ThreadTime;
use serde_json::json;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

/// A fuel budget that no case uses up.
const FUEL: f64 = 1e12;

/// Longest time of a measurement.
const TIMEOUT_MS: u64 = 20_000;

/// A shorter round gets more turns.
const ROUND: Duration = Duration::from_micros(250);

/// A size is skipped if a turn of the previous size took longer.
const LONG: Duration = Duration::from_millis(400);

/// Cases of a row that are measured at every size, and of these, cases with one receiver: the
/// slowest at a small size.
const OF_ROW: usize = 8;
const OF_RECEIVER: usize = 2;

/// Beyond this size only the slowest cases of a row at smaller sizes are measured: [`OF_LARGE`] at
/// the next size, then fewer.
const LARGE: usize = 10_000;
const OF_LARGE: usize = 2;

/// A figure above this part of the bound is measured again, at most [`AGAIN`] times.
const NEAR: f64 = 0.7;
const AGAIN: usize = 4;

/// Instructions that end a program: measured in programs that run inline and are compiled at run
/// time.
const INLINE: [&str; 1] = ["CheckReturn"];

thread_local! {
    static START: ThreadTime = ThreadTime::now();
    static MARKS: RefCell<Vec<(Duration, i64)>> = const { RefCell::new(Vec::new()) };
}

/// Measurement of a case at one size.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The case's group.
    pub group: &'static str,
    /// The case's row.
    pub row: String,
    /// The case's variant.
    pub variant: String,
    /// Size of the inputs.
    pub n: usize,
    /// Nanoseconds of CPU time of a turn.
    pub nanos: f64,
    /// Units of fuel of a turn.
    pub fuel: f64,
}

impl Rate {
    /// Microseconds for each unit of fuel.
    pub fn rate(&self) -> f64 {
        self.nanos / 1_000.0 / self.fuel
    }
}

/// Measuring engine.
#[derive(Debug)]
pub struct Rig {
    engine: Engine,
    made: Made,
    ops: BTreeSet<u8>,
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}

const MARK: AsyncFn = |call| {
    Box::pin(async move {
        let now = START.with(ThreadTime::elapsed);
        let fuel = call.fuel_left.micro();
        MARKS.with_borrow_mut(|marks| marks.push((now, fuel)));
        Ok(HostReply::from(Value::Undefined))
    })
};

impl Rig {
    /// An engine with all atoms, and one that marks the rounds.
    pub fn new() -> Rig {
        let mut atoms = all_atoms();
        atoms.insert(AtomDef {
            sig: AtomSig {
                params: Params::Named((&[]).into()),
                ..AtomSig::new("mark", "Reads the clock and the meter.", 1)
            },
            body: AtomBody::Async(MARK),
            dynamic_cost: None,
        });
        Rig {
            engine: Engine::builder().atoms(atoms).build(),
            made: Made::default(),
            ops: BTreeSet::new(),
        }
    }

    fn program(&mut self, case: &Case) -> Result<Agent, String> {
        let mut keys: Vec<&str> = case.vars.iter().map(|(name, _)| *name).collect();
        keys.extend(["turns", "rounds"]);
        let next = |key: &str| {
            let sum = json!({"$expr": "binary", "op": "+", "left": super::id(key),
                "right": super::lit(1)});
            json!({"op": "varSet", "key": key, "value": sum})
        };
        let mut body = case.steps.clone();
        body.push(next("i"));
        let round = json!([
            {"op": "mark"},
            {"op": "varSet", "key": "i", "value": 0},
            {"op": "while", "condition": "i < turns", "body": body},
            {"op": "mark"},
            next("r"),
        ]);
        let mut steps = vec![json!({"op": "varsImport", "keys": keys})];
        steps.extend(case.before.iter().cloned());
        steps.push(json!({"op": "varSet", "key": "r", "value": 0}));
        steps.push(json!({"op": "while", "condition": "r < rounds", "body": round}));
        let mut root = case.root.clone().unwrap_or_else(|| json!({}));
        root["op"] = json!("seq");
        root["steps"] = json!(steps);
        self.engine
            .compile(root.to_string())
            .map_err(|refused| format!("{refused:?}"))
    }

    /// The shortest time of a turn over the rounds, and its fuel.
    fn run(
        &mut self,
        agent: &Agent,
        case: &Case,
        n: usize,
        (turns, rounds): (usize, usize),
    ) -> Result<(f64, f64), String> {
        let mut args = agent99::Map::new();
        for (name, shape) in &case.vars {
            args.insert(*name, self.made.get(*shape, n));
        }
        args.insert("turns", Value::from(turns as f64));
        args.insert("rounds", Value::from(rounds as f64));
        MARKS.with_borrow_mut(Vec::clear);
        let options = RunOptions::new()
            .fuel(FUEL)
            .map_err(|e| format!("{e:?}"))?
            .timeout_ms(TIMEOUT_MS)
            .heap_bytes(1 << 30);
        let outcome = self
            .engine
            .run_sync_with(agent, args, options, super::atoms::capabilities());
        if let Some(error) = outcome.error {
            return Err(error.to_string());
        }
        let marks = MARKS.with_borrow(Clone::clone);
        let rounds = marks.chunks_exact(2).map(|pair| {
            let nanos = (pair[1].0 - pair[0].0).as_nanos() as f64;
            (
                nanos / turns as f64,
                (pair[0].1 - pair[1].1) as f64 / 1e6 / turns as f64,
            )
        });
        rounds
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .ok_or_else(|| "no round ended".to_owned())
    }

    fn once(
        &mut self,
        agent: &Agent,
        case: &Case,
        n: usize,
        repeat: usize,
    ) -> Result<Rate, String> {
        let (mut nanos, mut fuel) = self.run(agent, case, n, (1, repeat.min(3)))?;
        let short = ROUND.as_nanos() as f64;
        if nanos < short {
            let turns = ((short / nanos) as usize).clamp(2, 2_000);
            (nanos, fuel) = self.run(agent, case, n, (turns, repeat))?;
        }
        Ok(Rate {
            group: case.group,
            row: case.row.clone(),
            variant: case.variant.clone(),
            n,
            nanos,
            fuel,
        })
    }

    /// Measures a case at these sizes, up to the largest that the engine accepts.
    fn measure(&mut self, case: &Case, sizes: &[usize]) -> Result<Vec<Rate>, String> {
        let agent = self.program(case)?;
        let sizes = if case.scales() { sizes } else { &sizes[..1] };
        let mut rates: Vec<Rate> = Vec::new();
        for n in sizes {
            self.made.keep(*n);
            if rates
                .last()
                .is_some_and(|r| r.nanos > LONG.as_nanos() as f64)
            {
                break;
            }
            let repeat = if *n > LARGE { 2 } else { 5 };
            match self.once(&agent, case, *n, repeat) {
                Ok(mut rate) => {
                    // Other load on the machine only adds time.
                    for _ in 0..AGAIN {
                        if rate.rate() > NEAR * super::BOUND_US
                            && let Ok(again) = self.once(&agent, case, *n, 2 * repeat)
                            && again.rate() < rate.rate()
                        {
                            rate = again;
                        }
                    }
                    rates.push(rate);
                }
                // The size exceeds a limit of the engine.
                Err(_) if !rates.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        for function in &agent.artifact().program().functions {
            self.ops.extend(function.code.iter().map(|op| op.code()));
        }
        Ok(rates)
    }

    /// Measures the slowest cases of each row, of those whose name contains `filter`.
    pub fn measure_all(
        &mut self,
        filter: &str,
        sizes: &[usize],
        mut shown: impl FnMut(&str, usize),
    ) -> Vec<Rate> {
        let mut cases = all();
        cases.retain(|case| case.name().contains(filter));
        let mut chosen: Vec<(Case, f64)> = Vec::new();
        let mut no_calls = HashSet::new();
        let total = cases.len();
        for (done, case) in cases.into_iter().enumerate() {
            let receiver = case.variant.split(' ').next().unwrap_or("").to_owned();
            let kind = (case.group, case.row.clone(), receiver);
            if no_calls.contains(&kind) {
                continue;
            }
            if done % 5_000 == 0 {
                shown("tries", total - done);
            }
            let size = if case.scales() { 300 } else { 100 };
            let Ok(agent) = self.program(&case) else {
                continue;
            };
            // Most combinations are invalid calls: a short run finds out.
            match self.run(&agent, &case, size, (3, 2)) {
                Ok((nanos, fuel)) => chosen.push((case, nanos / fuel)),
                // The receiver lacks the method, for all arguments.
                Err(error) if error.contains(&format!("'{}' is not a function", kind.1)) => {
                    no_calls.insert(kind);
                }
                Err(_) => {}
            }
        }
        // Choose the slowest cases of each row, for each receiver.
        chosen.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (mut of_row, mut of_receiver) = (HashMap::new(), HashMap::new());
        chosen.retain(|(case, _)| {
            let row = (case.group, case.row.clone());
            let first = case.variant.split(' ').next().unwrap_or("").to_owned();
            let in_row: &mut usize = of_row.entry(row.clone()).or_default();
            let with_receiver: &mut usize = of_receiver.entry((row, first)).or_default();
            let enough = *in_row >= OF_ROW || *with_receiver >= OF_RECEIVER;
            if !enough {
                *in_row += 1;
                *with_receiver += 1;
            }
            !enough
        });
        chosen.sort_by_key(|(case, _)| case.name());
        let (small, large): (Vec<usize>, Vec<usize>) = sizes.iter().partition(|n| **n <= LARGE);
        let small = &small[..];
        let mut most_of: BTreeMap<(&str, String), Vec<(f64, &Case)>> = BTreeMap::new();
        let mut rates = Vec::new();
        let left = chosen.len();
        for (done, (case, _)) in chosen.iter().enumerate() {
            shown(&case.name(), left - done);
            let found = self.measure(case, small).unwrap_or_default();
            let most = found.iter().map(Rate::rate).fold(0.0, f64::max);
            if case.scales() && !found.is_empty() {
                let row = (case.group, case.row.clone());
                most_of.entry(row).or_default().push((most, case));
            }
            rates.extend(found);
        }
        let left: usize = most_of.len();
        for (done, cases) in most_of.values_mut().enumerate() {
            cases.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (place, (_, case)) in cases.iter().take(OF_LARGE).enumerate() {
                shown(&case.name(), left - done);
                let sizes = &large[..large.len() - place.min(large.len())];
                rates.extend(self.measure(case, sizes).unwrap_or_default());
            }
        }
        rates
    }

    /// Instructions that no measured program contains.
    pub fn ops_not_met(&self) -> Vec<&'static str> {
        TABLE
            .iter()
            .enumerate()
            .filter(|(code, _)| !self.ops.contains(&(*code as u8)))
            .map(|(_, row)| row.name)
            .filter(|name| !INLINE.contains(name))
            .collect()
    }
}
