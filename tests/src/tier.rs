//! Numeric loops under the interpreter and under the compiled tier, which compiles each loop in
//! its first iteration: results, fuel, errors, pauses and snapshots must be equal.
//!
//! Programs follow from bytes: nested loops over mostly numeric variables, with some steps that
//! machine code does not support.

use crate::generate::choice::Choices;
use a99_core::fuel::Fuel;
use agent99::{
    Agent, Capabilities, CompiledTier, Engine, Map, Next, Outcome, Run, RunOptions, Value,
};
use serde_json::{Value as Json, json};
use std::sync::LazyLock;
use std::time::Duration;

/// Fuel of the first run of a program, in units.
const FUEL: f64 = 30.0;

/// Budgets tried for each program, in addition to the whole.
const BUDGETS: i64 = 10;

/// Longest slices of the observed runs.
const SLICES: [u32; 4] = [1, 60, 333, 16_384];

/// Observed pauses of a run; at each the runs are compared as bytes.
const PAUSES: usize = 40;

/// Variables of the programs.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Numbers at the limits of arithmetic.
const ODD: [f64; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.0,
    7.0,
    -2.5,
    1e15,
    4_503_599_627_370_497.0,
    1e300,
    2_251_799_813_685_248.0,
];

static INTERPRETED: LazyLock<Engine> = LazyLock::new(|| engine(CompiledTier::Off));
static COMPILED: LazyLock<Engine> = LazyLock::new(|| engine(CompiledTier::Eager));

fn engine(tier: CompiledTier) -> Engine {
    Engine::builder().compiled_tier(tier).build()
}

/// The program of these bytes, as JSON, and its arguments.
#[must_use]
pub fn program(bytes: &[u8]) -> (Json, Value) {
    let mut generator = Generator {
        choices: Choices::new(bytes),
        left: 24,
    };
    let mut args = Map::new();
    for name in NAMES {
        args.insert(name, generator.number());
    }
    let mut steps = vec![json!({"op": "varsImport", "keys": NAMES})];
    while steps.len() < 8 && !generator.choices.is_empty() {
        let more = generator.turns(0);
        steps.extend(more);
    }
    steps.push(json!({"op": "return", "schema": {
        "type": "object", "properties": {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}, "t": {}}
    }}));
    (json!({"op": "seq", "steps": steps}), args.into())
}

/// Runs the program of these bytes in both ways, whole, with budgets that end within it, and
/// pause by pause; returns the number of compiled loops.
///
/// # Panics
/// If the runs differ.
pub fn agree(bytes: &[u8]) -> usize {
    let (program, args) = program(bytes);
    let text = program.to_string();
    let agent = |engine: &Engine| {
        engine
            .compile(text.clone())
            .unwrap_or_else(|refused| panic!("{refused:?}: {text}"))
    };
    let both = Both {
        interpreted: agent(&INTERPRETED),
        compiled: agent(&COMPILED),
        args,
    };
    let whole = both.compare(FUEL, &text);
    let used = whole.fuel_used.micro();
    for part in 1..=BUDGETS {
        // The last budgets end at the run's end, and right before.
        let micro = match BUDGETS - part {
            behind @ 0..2 => used - behind,
            _ => used / BUDGETS * part,
        };
        let budget = Fuel::from_micro(micro.max(1)).to_f64();
        both.compare(budget, &text);
    }
    for slice in SLICES {
        both.follow(slice, &text);
    }
    both.compiled.executable().compiled_loops()
}

/// A program in both engines.
struct Both {
    interpreted: Agent,
    compiled: Agent,
    args: Value,
}

fn options(fuel: f64) -> RunOptions {
    let options = RunOptions::new().fuel(fuel).expect("a budget");
    options.timeout_ms(600_000)
}

/// Comparable text of a finished run.
fn seen(outcome: &Outcome) -> String {
    let (result, used) = (outcome.result.to_json_string(), outcome.fuel_used);
    // JSON has neither NaN nor -0.
    let shown: Vec<String> = NAMES
        .iter()
        .map(|name| format!("{:?}", outcome.result.get(name)))
        .collect();
    format!("{result} {shown:?} {used} {:?}", outcome.error)
}

impl Both {
    fn compare(&self, fuel: f64, text: &str) -> Outcome {
        let args = || self.args.clone();
        let theirs = INTERPRETED.run_sync(&self.interpreted, args(), options(fuel));
        // Loops are compiled in the first run, and used from their first iteration in the
        // second.
        for _ in 0..2 {
            let ours = COMPILED.run_sync(&self.compiled, args(), options(fuel));
            assert_eq!(seen(&ours), seen(&theirs), "budget {fuel}: {text}");
        }
        theirs
    }

    fn start(&self, engine: &Engine, agent: &Agent, slice: u32) -> Run {
        let granted = Capabilities::none();
        let mut run = engine.start(agent, self.args.clone(), options(FUEL), granted);
        run.set_slice(slice);
        run
    }

    /// Compares the runs at each pause.
    fn follow(&self, slice: u32, text: &str) {
        let mut theirs = self.start(&INTERPRETED, &self.interpreted, slice);
        let mut ours = self.start(&COMPILED, &self.compiled, slice);
        for pause in 0..PAUSES {
            let at = format!("pause {pause} of slices of {slice}: {text}");
            match (theirs.next(Duration::ZERO), ours.next(Duration::ZERO)) {
                (Next::Pause, Next::Pause) => {}
                (Next::Done(theirs), Next::Done(ours)) => {
                    assert_eq!(seen(&ours), seen(&theirs), "{at}");
                    return;
                }
                (theirs, ours) => panic!("{theirs:?} and {ours:?} at {at}"),
            }
            assert_eq!(ours.fuel_left(), theirs.fuel_left(), "{at}");
            assert_eq!(ours.memory().counted, theirs.memory().counted, "{at}");
            let bytes = theirs.snapshot().expect("a run that pauses");
            assert!(ours.snapshot().expect("a run that pauses") == bytes, "{at}");
            if pause % 7 == 3 {
                // The other engine continues from this one's snapshot.
                theirs = restore(&INTERPRETED, &self.interpreted, &bytes, slice);
                ours = restore(&COMPILED, &self.compiled, &bytes, slice);
            }
        }
    }
}

fn restore(engine: &Engine, agent: &Agent, bytes: &[u8], slice: u32) -> Run {
    let restored = engine.restore(agent, bytes, options(FUEL), Capabilities::none());
    let mut run = restored.expect("a snapshot of this run");
    run.set_slice(slice);
    run
}

/// Generates programs from bytes.
struct Generator<'b> {
    choices: Choices<'b>,
    /// Number of steps that may still be generated.
    left: usize,
}

impl Generator<'_> {
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.choices.below(list.len())]
    }

    fn number(&mut self) -> f64 {
        match self.choices.below(4) {
            0 => self.pick(&ODD),
            _ => f64::from(self.choices.byte()) - 40.0,
        }
    }

    /// A counting loop; nested ones have fewer iterations.
    fn turns(&mut self, depth: usize) -> Vec<Json> {
        let counter = ["i", "j", "k"][depth.min(2)];
        let most = if depth == 0 { 60 } else { 6 };
        let turns = self.choices.below(most);
        let mut body = self.block(depth);
        body.push(set(counter, binary("+", ident(counter), json!(1))));
        let end = match self.choices.below(4) {
            0 => format!("{counter} < {turns} && a < 1000000"),
            1 => format!("{counter} <= {turns}"),
            _ => format!("{counter} < {turns}"),
        };
        vec![
            set(counter, json!(0)),
            json!({"op": "while", "condition": end, "body": body}),
        ]
    }

    fn block(&mut self, depth: usize) -> Vec<Json> {
        let steps = 1 + self.choices.below(5);
        let mut block = Vec::new();
        for _ in 0..steps {
            if self.left > 0 {
                self.left -= 1;
                let more = self.step(depth);
                block.extend(more);
            }
        }
        block
    }

    fn step(&mut self, depth: usize) -> Vec<Json> {
        let name = self.pick(&NAMES);
        match self.choices.below(16) {
            0..5 => vec![set(name, self.value(2))],
            5 | 6 => {
                let text = self.text(2);
                vec![json!({"op": "mathCalc", "expr": text, "result": name})]
            }
            7..10 => {
                let condition = self.condition();
                let (then, otherwise) = (self.block(depth + 1), self.block(depth + 1));
                vec![json!({
                    "op": "if", "condition": condition, "then": then, "else": otherwise
                })]
            }
            10 | 11 if depth < 3 => self.turns(depth + 1),
            12 => {
                // A variable of the enclosing block.
                let value = self.value(1);
                vec![set("w", value), set(name, ident("w"))]
            }
            13 => {
                let other = self.pick(&NAMES);
                let op = self.pick(&["<", ">=", "==", "===", "!="]);
                vec![set(name, binary(op, ident(other), ident(name)))]
            }
            14 => {
                let odd = self.pick(&["null", "true", "\"text\"", "[1]", "-7"]);
                let odd: Json = serde_json::from_str(odd).expect("JSON");
                let value = json!({"$expr": "literal", "value": odd});
                let step = set(name, value);
                match self.choices.below(3) {
                    0 => vec![step],
                    _ => vec![json!({"op": "if", "condition": "i == 20", "then": [step]})],
                }
            }
            _ => {
                // Machine code does not support this.
                let text = json!({"$expr": "literal", "value": "n"});
                let step = set("t", binary("+", text, ident(name)));
                vec![json!({"op": "if", "condition": "i == 11", "then": [step]})]
            }
        }
    }

    fn value(&mut self, depth: usize) -> Json {
        match self.choices.below(if depth == 0 { 3 } else { 8 }) {
            0 => json!(self.number()),
            1 | 2 => ident(self.pick(&NAMES)),
            3 => {
                let op = self.pick(&["-", "!", "+"]);
                json!({"$expr": "unary", "op": op, "argument": self.value(depth - 1)})
            }
            _ => {
                let op = self.pick(&["+", "-", "*", "/", "%", "%"]);
                binary(op, self.value(depth - 1), self.value(depth - 1))
            }
        }
    }

    /// An expression as text.
    fn text(&mut self, depth: usize) -> String {
        match self.choices.below(if depth == 0 { 3 } else { 6 }) {
            0 => format!("{}", self.choices.byte()),
            1 | 2 => self.pick(&["a", "b", "c", "i"]).to_owned(),
            _ => {
                let op = self.pick(&["+", "-", "*", "/", "%"]);
                let (l, r) = (self.text(depth - 1), self.text(depth - 1));
                format!("({l} {op} {r})")
            }
        }
    }

    fn condition(&mut self) -> String {
        let op = self.pick(&["<", "<=", ">", ">=", "==", "!=", "===", "!=="]);
        let (l, r) = (self.text(1), self.text(1));
        match self.choices.below(6) {
            0 => format!("{l} {op} {r} && b"),
            1 => format!("!({l} {op} {r}) || c > 3"),
            2 => l,
            _ => format!("{l} {op} {r}"),
        }
    }
}

fn ident(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

fn binary(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

fn set(name: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": name, "value": value})
}
