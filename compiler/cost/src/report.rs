//! The result of an analysis.

use crate::build::{NOWHERE, build};
use crate::formula::{Factor, Measure, Poly, is_exhausted};
use crate::graph::{At, Graph, Place, Root};
use crate::price::Pricer;
use crate::sizes;
use crate::solve::{Solver, TOO_LARGE_PROGRAM};
use a99_core::costs::{CROSSING_RESULT, MICRO};
use a99_core::program::Program;
use a99_core::sig::Signatures;
use a99_core::value::{Map, Value};
use a99_core::verify::Artifact;
use std::collections::BTreeMap;
use std::fmt;

/// A size in a formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// A size of the largest value at a place of the arguments or of an answer.
    Of {
        /// What is measured.
        measure: Measure,
        /// The place, as `lines[].name`; that of an answer begins with its name.
        place: String,
    },
    /// The logarithm to base 2 of a formula, rounded up.
    Log(Box<Formula>),
    /// The turns of a loop without a bound, by its index in [`Cost::unbounded`].
    Turns(usize),
    /// The most tokens that the host allows for an answer.
    TokenLimit,
}

/// A product of a number and sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The number.
    pub times: f64,
    /// The sizes.
    pub of: Vec<Size>,
}

/// A sum of terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Formula {
    /// The terms: first the number, then products of sizes.
    pub terms: Vec<Term>,
    factors: Vec<Vec<Factor>>,
}

/// Something without a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbounded {
    /// The place in the program, an RFC 6901 pointer; `None` without a source.
    pub pointer: Option<String>,
    /// Its line and column in a source that is not JSON.
    pub line: Option<(u32, u32)>,
    /// Why, in words.
    pub reason: String,
    /// Whether it is a loop, whose turns formulas name.
    pub is_loop: bool,
    /// Whether it concerns tokens alone.
    pub only_tokens: bool,
}

/// A value from outside that formulas name: the answer of a call, or the text of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its name in formulas.
    pub name: String,
    /// The place of the call.
    pub pointer: Option<String>,
    /// Its line and column in a source that is not JSON.
    pub line: Option<(u32, u32)>,
}

/// What runs of a program cost at most.
///
/// The bounds hold for the default prices and limits, metered.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// Fuel, in units, without the copy of the result.
    pub fuel: Formula,
    /// The price of copying the result to the host, of which the first unit is free.
    pub result: Formula,
    /// Calls of the host.
    pub calls: Formula,
    /// Tokens of models' answers.
    pub tokens: Formula,
    /// What has no bound. Where it is not empty, formulas are only part of the cost, or name
    /// turns of loops.
    pub unbounded: Vec<Unbounded>,
    /// Values from outside that formulas name.
    pub answers: Vec<Answer>,
    places: Vec<Place>,
    logs: Vec<Poly>,
}

fn source_of(program: &Program, at: At) -> (Option<String>, Option<(u32, u32)>) {
    let f = &program.functions[at.function as usize];
    let place = Program::place_at(f, at.pc).map(|place| place.node);
    let step = || Program::step_at(f, at.pc).map(|step| f.steps[step as usize].node);
    match place.or_else(step) {
        Some(node) => (program.source.pointer(node), program.source.line_col(node)),
        None => (None, None),
    }
}

/// Stack of an analysis, which follows chains of values.
const STACK: usize = 32 << 20;

/// The cost of a program against the atoms that it was compiled for.
#[must_use]
pub fn estimate(artifact: &Artifact, sigs: &(dyn Signatures + Sync)) -> Cost {
    let program = artifact.program();
    let analysed = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.name("a99-cost".into());
        let thread = thread.spawn_scoped(scope, || analyse(program, sigs)).ok()?;
        thread.join().ok()
    });
    analysed.unwrap_or_else(|| {
        let mut cost = Cost::default();
        cost.unbounded.push(Unbounded {
            pointer: None,
            line: None,
            reason: "there is no thread for its analysis".to_owned(),
            is_loop: false,
            only_tokens: false,
        });
        cost
    })
}

fn analyse(program: &Program, sigs: &dyn Signatures) -> Cost {
    let mut cost = Cost::default();
    let refused = |cost: &mut Cost, at, why: &str| {
        let (pointer, line) = source_of(program, at);
        cost.unbounded.push(Unbounded {
            pointer,
            line,
            reason: why.to_owned(),
            is_loop: false,
            only_tokens: false,
        });
    };
    let mut graph = match build(program, sigs) {
        Ok(graph) => graph,
        Err((at, why)) => {
            refused(&mut cost, at, why);
            return cost;
        }
    };
    let mut solver = match Solver::new(&mut graph) {
        Ok(solver) => solver,
        Err(why) => {
            refused(&mut cost, NOWHERE, why);
            return cost;
        }
    };
    let mut pricer = Pricer {
        s: &mut solver,
        failures: Vec::new(),
    };
    let [fuel, calls, tokens] = pricer.frame(0);
    let result = pricer.result();
    if is_exhausted() {
        refused(&mut cost, NOWHERE, TOO_LARGE_PROGRAM);
        return cost;
    }
    let failures = pricer.failures;
    let (logs, endless) = (solver.logs.clone(), solver.endless.clone());
    let mut loops = Vec::new();
    for (at, why) in endless {
        let place = solver.at(at);
        let named = [&fuel, &result, &calls, &tokens]
            .iter()
            .any(|p| p.has(|f| f == Factor::Turns(at)));
        let logged = logs.iter().any(|p| p.has(|f| f == Factor::Turns(at)));
        if named || logged {
            loops.push((at, cost.unbounded.len()));
            refused(&mut cost, place, why);
            if let Some(last) = cost.unbounded.last_mut() {
                last.is_loop = true;
            }
        }
    }
    for failure in failures {
        refused(&mut cost, failure.at, failure.why);
        if let Some(last) = cost.unbounded.last_mut() {
            last.only_tokens = failure.tokens;
        }
    }
    let mut namer = Namer {
        graph: &graph,
        answers: Vec::new(),
        roots: Vec::new(),
        logs: &logs,
        loops: &loops,
    };
    let unit = 1.0 / MICRO as f64;
    cost.fuel = namer.formula(&fuel.scale(unit));
    cost.result = namer.formula(&result.scale(unit));
    cost.calls = namer.formula(&calls);
    cost.tokens = namer.formula(&tokens);
    cost.answers = namer.answers;
    cost.places = graph.places;
    cost.logs = logs;
    cost
}

struct Namer<'g, 'p> {
    graph: &'g Graph<'p>,
    answers: Vec<Answer>,
    roots: Vec<Root>,
    logs: &'g [Poly],
    loops: &'g [(u32, usize)],
}

impl Namer<'_, '_> {
    fn formula(&mut self, poly: &Poly) -> Formula {
        let mut terms: Vec<(&Vec<Factor>, f64)> =
            poly.0.iter().map(|(f, times)| (f, *times)).collect();
        terms.sort_by_key(|(factors, _)| factors.len());
        let mut formula = Formula::default();
        for (factors, times) in terms {
            let of = factors.iter().map(|factor| self.size(*factor)).collect();
            formula.terms.push(Term { times, of });
            formula.factors.push(factors.clone());
        }
        formula
    }

    fn size(&mut self, factor: Factor) -> Size {
        match factor {
            Factor::Size(measure, place) => Size::Of {
                measure,
                place: self.place(place),
            },
            Factor::Log(at) => {
                let logs = self.logs;
                Size::Log(Box::new(self.formula(&logs[at as usize])))
            }
            Factor::Turns(at) => {
                let found = self.loops.iter().find(|(known, _)| *known == at);
                Size::Turns(found.map_or(usize::MAX, |(_, index)| *index))
            }
            Factor::Tokens | Factor::Unknown(_) => Size::TokenLimit,
        }
    }

    fn place(&mut self, at: u32) -> String {
        let place = &self.graph.places[at as usize];
        let mut text = match &place.root {
            Root::Args => String::new(),
            root => {
                let known = self.roots.iter().position(|known| known == root);
                let at = known.unwrap_or_else(|| {
                    self.answers.push(self.answer(root));
                    self.roots.push(root.clone());
                    self.roots.len() - 1
                });
                self.answers[at].name.clone()
            }
        };
        for name in &place.names {
            match name {
                None => text.push_str("[]"),
                Some(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&String::from_utf8_lossy(name));
                }
            }
        }
        if place.below {
            text.push_str(".**");
        }
        if text.is_empty() {
            "args".to_owned()
        } else {
            text
        }
    }

    fn answer(&self, root: &Root) -> Answer {
        let program = self.graph.program;
        let (at, op) = match root {
            Root::Answer(at) => {
                let f = &program.functions[at.function as usize];
                let op = Program::step_at(f, at.pc).map(|step| f.steps[step as usize].op);
                let op = op.map(|op| program.text(program.ops[op as usize].name));
                (
                    *at,
                    op.map_or_else(
                        || "value".to_owned(),
                        |op| String::from_utf8_lossy(op).into_owned(),
                    ),
                )
            }
            Root::Error(at) => (*at, "error".to_owned()),
            Root::Args => (NOWHERE, "args".to_owned()),
        };
        let (pointer, line) = source_of(program, at);
        Answer {
            name: format!("{op}#{}", self.answers.len() + 1),
            pointer,
            line,
        }
    }
}

impl Cost {
    /// Whether a bound of the fuel and of the calls is known.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.unbounded.iter().all(|one| one.only_tokens)
    }

    /// The bound of the fuel for these arguments, where every value from outside is at most as
    /// large as one of `outside`; `None` without one.
    #[must_use]
    pub fn fuel_for(&self, args: &Value, outside: &[Value]) -> Option<f64> {
        let result =
            self.value(&self.result, args, outside) - CROSSING_RESULT as f64 / MICRO as f64;
        let fuel = self.value(&self.fuel, args, outside) + result.max(0.0);
        // Sums of fractions round.
        self.is_bounded().then_some(fuel * (1.0 + 1e-9))
    }

    /// The bound of the calls of the host, as for [`fuel_for`](Cost::fuel_for).
    #[must_use]
    pub fn calls_for(&self, args: &Value, outside: &[Value]) -> Option<f64> {
        self.is_bounded()
            .then(|| self.value(&self.calls, args, outside))
    }

    fn value(&self, formula: &Formula, args: &Value, outside: &[Value]) -> f64 {
        let terms = formula.terms.iter().zip(&formula.factors);
        let products =
            terms.map(|(term, factors)| term.times * self.product(factors, args, outside));
        products.sum()
    }

    fn product(&self, factors: &[Factor], args: &Value, outside: &[Value]) -> f64 {
        let mut product = 1.0;
        for factor in factors {
            let value = match factor {
                Factor::Size(measure, at) => {
                    let place = &self.places[*at as usize];
                    let roots: Vec<&Value> = match place.root {
                        Root::Args => vec![args],
                        _ => outside.iter().collect(),
                    };
                    sizes::size_at(*measure, &roots, &place.names, place.below)
                }
                Factor::Log(at) => {
                    let terms = self.logs[*at as usize].0.iter();
                    let n: f64 = terms
                        .map(|(f, times)| times * self.product(f, args, outside))
                        .sum();
                    n.max(1.0).log2().ceil()
                }
                Factor::Turns(_) | Factor::Tokens | Factor::Unknown(_) => f64::INFINITY,
            };
            // 0 times infinity is 0: what does not happen costs nothing.
            if value == 0.0 {
                return 0.0;
            }
            product *= value;
        }
        product
    }

    /// The cost as data.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("bounded", self.is_bounded());
        for (name, formula) in self.formulas() {
            map.insert(name, formula.to_json());
        }
        let place = |map: &mut Map, pointer: &Option<String>, line: Option<(u32, u32)>| {
            if let Some(pointer) = pointer {
                map.insert("pointer", pointer.clone());
            }
            if let Some((line, column)) = line {
                map.insert("line", f64::from(line));
                map.insert("column", f64::from(column));
            }
        };
        let unbounded = self.unbounded.iter().map(|one| {
            let mut map = Map::new();
            place(&mut map, &one.pointer, one.line);
            map.insert("reason", one.reason.clone());
            map.insert("loop", one.is_loop);
            Value::Object(map)
        });
        map.insert("unbounded", Value::Array(unbounded.collect()));
        let answers = self.answers.iter().map(|one| {
            let mut map = Map::new();
            map.insert("name", one.name.clone());
            place(&mut map, &one.pointer, one.line);
            Value::Object(map)
        });
        map.insert("answers", Value::Array(answers.collect()));
        Value::Object(map)
    }

    /// The formulas by name.
    #[must_use]
    pub fn formulas(&self) -> [(&'static str, &Formula); 4] {
        [
            ("fuel", &self.fuel),
            ("result", &self.result),
            ("calls", &self.calls),
            ("tokens", &self.tokens),
        ]
    }
}

impl fmt::Display for Cost {
    /// A line for each quantity, then one for each answer that it names and each part without a
    /// bound.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |pointer: &Option<String>, line: Option<(u32, u32)>| match (line, pointer) {
            (Some((line, column)), _) => format!("{line}:{column}"),
            (None, Some(pointer)) if !pointer.is_empty() => pointer.clone(),
            _ => "/".to_owned(),
        };
        let is_long = [&self.fuel, &self.result, &self.calls, &self.tokens]
            .iter()
            .any(|formula| formula.terms.len() > MAX_SHOWN);
        let partial = self
            .unbounded
            .iter()
            .any(|one| !one.is_loop && !one.only_tokens);
        let no_bound = if partial {
            "no bound; what is known: "
        } else {
            ""
        };
        write!(f, "fuel    {no_bound}{}", self.fuel.shown())?;
        let fixed = self.result.terms.iter().all(|term| term.of.is_empty());
        if !fixed || self.result.terms.iter().any(|term| term.times > 1.0) {
            write!(f, " + max(0, {} - 1)", self.result.shown())?;
        }
        let (calls, tokens) = (self.calls.shown(), self.tokens.shown());
        writeln!(f, "\ncalls   {calls}\ntokens  {tokens}")?;
        if is_long {
            f.write_str("size(x) is the length of x as JSON; --json has the closer formulas\n")?;
        }
        for one in &self.answers {
            writeln!(f, "{}  at {}", one.name, at(&one.pointer, one.line))?;
        }
        for (number, one) in (1..).zip(&self.unbounded) {
            let name = if one.is_loop {
                format!(" turns#{number}")
            } else {
                String::new()
            };
            let place = at(&one.pointer, one.line);
            writeln!(f, "unbounded{name}  at {place}: {}", one.reason)?;
        }
        Ok(())
    }
}

/// Most terms that people are shown.
const MAX_SHOWN: usize = 12;

/// The value of which a place is a part.
fn root(place: &str) -> &str {
    match place.split(['[', '.']).next() {
        None | Some("") => "args",
        Some(root) => root,
    }
}

impl Formula {
    /// The formula for people: a long one in the sizes of whole values, which is larger.
    fn shown(&self) -> Formula {
        if self.terms.len() <= MAX_SHOWN {
            return self.clone();
        }
        let mut sums: BTreeMap<(usize, String), Term> = BTreeMap::new();
        for term in &self.terms {
            let of = term.of.iter().filter(|size| {
                // It is 1 at most.
                !matches!(size, Size::Of { measure, .. } if *measure == Measure::Text)
            });
            let mut of: Vec<Size> = of
                .map(|size| match size {
                    Size::Of { measure, place } if *measure != Measure::Value => Size::Of {
                        measure: Measure::Json,
                        place: root(place).to_owned(),
                    },
                    Size::Log(formula) => Size::Log(Box::new(formula.shown())),
                    other => other.clone(),
                })
                .collect();
            of.sort_by_key(ToString::to_string);
            let key: Vec<String> = of.iter().map(ToString::to_string).collect();
            let sum = sums
                .entry((of.len(), key.join("·")))
                .or_insert_with(|| Term { times: 0.0, of });
            sum.times += term.times;
        }
        Formula {
            terms: sums.into_values().collect(),
            factors: Vec::new(),
        }
    }

    fn to_json(&self) -> Value {
        let terms = self.terms.iter().map(|term| {
            let mut map = Map::new();
            map.insert("times", term.times);
            let of = term.of.iter().map(|size| Value::from(size.to_string()));
            map.insert("of", Value::Array(of.collect()));
            Value::Object(map)
        });
        Value::Array(terms.collect())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Of { measure, place } => write!(f, "{}({place})", measure.name()),
            Size::Log(formula) => write!(f, "log2({formula})"),
            Size::Turns(at) => write!(f, "turns#{}", at.saturating_add(1)),
            Size::TokenLimit => f.write_str("tokenLimit"),
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            if at > 0 {
                f.write_str(" + ")?;
            }
            let times = (term.times * 1e7).round() / 1e7;
            if term.of.is_empty() || times != 1.0 {
                write!(f, "{times}")?;
            }
            for (at, size) in term.of.iter().enumerate() {
                let dot = if at == 0 && times == 1.0 { "" } else { "·" };
                write!(f, "{dot}{size}")?;
            }
        }
        if self.terms.is_empty() {
            f.write_str("0")?;
        }
        Ok(())
    }
}
