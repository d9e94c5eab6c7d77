//! Random well-typed programs with all their inputs: arguments, options, and a scripted host.
//!
//! A program grows from a string of bytes, each of which makes one choice; a byte of 0, and the
//! end of the string, choose the simplest. So any bytes are a program, a shorter string is a
//! smaller one, and one generator serves property tests (which shrink bytes) and fuzz targets
//! (which mutate them).
//!
//! Left out are features on which engines need not agree: random numbers, error texts as values
//! (their lengths cost fuel, and engines word some), the clock, comparison functions in `sort`
//! (the number of calls is unspecified), and bodies of `memoize` without a key (their key is
//! engine-specific too).

pub mod atoms;
pub mod builtins;
pub(crate) mod choice;
mod expr;
mod odd;
mod steps;
mod text;

use a99_core::json::{Document, Limits};
use a99_core::value::Value;
use choice::Choices;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// Longest byte string of a property test.
const MAX_BYTES: usize = 1_200;

/// A program and its inputs, in the format of vectors without `expect`.
#[derive(Clone)]
pub struct Case(Json);

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Case {
    /// The program that these bytes choose.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Case {
        Case::grow(Generator::new(bytes))
    }

    /// Like [`Case::from_bytes`], with calls of every builtin and atom. Fuzzing does without:
    /// the oracle does not agree about all of them yet.
    #[must_use]
    pub fn with_builtins(bytes: &[u8]) -> Case {
        Case::grow(Generator {
            builtins: true,
            ..Generator::new(bytes)
        })
    }

    fn grow(mut g: Generator<'_>) -> Case {
        let options = g.options();
        let args = g.arguments();
        let ast = g.program();
        let host = g.answers();
        let store = g.store_answers();
        let mut whole = json!({
            "id": "generated",
            "title": "generated",
            "generation": "v3",
            "requires": if g.metered { json!(["metered", "v3"]) } else { json!(["v3"]) },
            "ast": ast,
            "args": args,
            "options": options,
            "customAtoms": [{"op": "host", "cost": 0.3, "timeoutMs": 0, "calls": host}],
            "expect": {},
        });
        if let Some(calls) = store {
            whole["capabilities"] =
                json!({"provides": ["store.get", "store.set", "fetch"], "calls": calls});
        }
        Case(whole)
    }

    /// The case as a value, for [`crate::vectors::Vector::of_value`].
    #[must_use]
    pub fn to_value(&self) -> Value {
        parse(&self.0)
    }

    /// Program, arguments, options and scripted calls, for reading.
    #[must_use]
    pub fn short(&self) -> String {
        let Case(whole) = self;
        format!(
            "ast {}\nargs {} options {} host {} capabilities {}",
            whole["ast"],
            whole["args"],
            whole["options"],
            whole["customAtoms"][0]["calls"][0],
            whole["capabilities"],
        )
    }

    /// The program alone.
    #[must_use]
    pub fn program(&self) -> Value {
        parse(&self.0["ast"])
    }
}

fn parse(json: &Json) -> Value {
    let text = json.to_string();
    Document::parse(text, &Limits::default())
        .map(|document| document.to_value(document.root()))
        .unwrap_or(Value::Undefined)
}

/// Cases for property tests.
pub fn cases() -> impl Strategy<Value = Case> {
    prop::collection::vec(any::<u8>(), 0..MAX_BYTES).prop_map(|bytes| Case::from_bytes(&bytes))
}

/// Like [`cases`], with calls of every builtin and atom.
pub fn cases_with_builtins() -> impl Strategy<Value = Case> {
    prop::collection::vec(any::<u8>(), 0..MAX_BYTES).prop_map(|bytes| Case::with_builtins(&bytes))
}

/// Intended type of an expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Num,
    /// A text.
    Text,
    /// A truth value.
    Bool,
    /// A list.
    List,
    /// An object.
    Record,
    /// Anything.
    Any,
}

/// Names of variables; each has values of one kind, so that most expressions are well typed.
pub(crate) const NAMES: &[(&str, Kind)] = &[
    ("n", Kind::Num),
    ("s", Kind::Text),
    ("xs", Kind::List),
    ("o", Kind::Record),
    ("b", Kind::Bool),
    ("m", Kind::Num),
    ("t", Kind::Text),
    ("ys", Kind::List),
    ("p", Kind::Record),
    ("c", Kind::Bool),
    ("item", Kind::Any),
    ("result", Kind::Any),
];

/// Most nodes of a program.
const MAX_NODES: usize = 160;

/// Deepest nesting of expressions and steps.
const MAX_DEPTH: usize = 5;

pub(crate) struct Generator<'b> {
    choices: Choices<'b>,
    nodes: usize,
    depth: usize,
    /// Number of loops around the current step; bounds nesting.
    loops: usize,
    /// True if expressions may be texts.
    texts: bool,
    /// True inside a loop that `break` and `continue` may leave.
    jumps: bool,
    counters: usize,
    metered: bool,
    /// True inside a helper, which has no variables of the main program.
    helper: bool,
    helpers: usize,
    /// True if every builtin and atom may be called.
    builtins: bool,
}

impl<'b> Generator<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Generator {
            choices: Choices::new(bytes),
            nodes: 0,
            depth: 0,
            loops: 0,
            texts: false,
            jumps: false,
            counters: 0,
            metered: false,
            helper: false,
            helpers: 0,
            builtins: false,
        }
    }

    /// True if the program is large enough.
    fn full(&self) -> bool {
        self.nodes >= MAX_NODES || self.depth >= MAX_DEPTH || self.choices.is_empty()
    }

    fn pick<'v, T>(&mut self, from: &'v [T]) -> &'v T {
        &from[self.choices.below(from.len())]
    }

    fn options(&mut self) -> Json {
        let mut options = Map::new();
        self.metered = self.choices.below(4) != 3;
        let fuel = match self.choices.below(4) {
            0 | 1 => 1000.0,
            2 => f64::from(self.choices.byte()) / 10.0,
            _ => f64::from(self.choices.byte()) / 100.0 + f64::from(self.choices.byte()) / 10_000.0,
        };
        options.insert("fuel".into(), json!(fuel));
        // These runs are short; a slow machine must not end one.
        options.insert("timeoutMs".into(), json!(600_000));
        if self.choices.one_in(3) {
            options.insert("trace".into(), json!(true));
        }
        if self.choices.one_in(6) {
            options.insert("equality".into(), json!("exact"));
        }
        let ops = [
            "varSet", "seq", "if", "while", "split", "host", "map", "hash", "return", "forEach",
            "break",
        ];
        if self.choices.one_in(5) {
            let mut costs = Map::new();
            for _ in 0..=self.choices.below(2) {
                let price = *self.pick(&[0.0, 0.05, 1.0, 0.000_001, -1.0, 2.5]);
                costs.insert((*self.pick(&ops)).into(), json!(price));
            }
            options.insert("costOverrides".into(), Json::Object(costs));
        }
        if self.choices.one_in(6) {
            let op = *self.pick(&ops);
            let limit = self.choices.below(6);
            options.insert("quotas".into(), json!({ op: limit }));
        }
        Json::Object(options)
    }

    fn arguments(&mut self) -> Json {
        if self.choices.one_in(3) {
            return json!({});
        }
        let mut args = Map::new();
        for (name, kind) in &NAMES[..4] {
            if !self.choices.one_in(3) {
                args.insert((*name).into(), self.data(*kind, 2));
            }
        }
        Json::Object(args)
    }

    fn answers(&mut self) -> Vec<Json> {
        (0..12)
            .map(|_| match self.choices.below(4) {
                3 => json!({"input": {}, "error": {"message": self.short_text()}}),
                _ => json!({"input": {}, "result": self.data(Kind::Any, 2)}),
            })
            .collect()
    }

    fn store_answers(&mut self) -> Option<Vec<Json>> {
        if !self.choices.one_in(3) {
            return None;
        }
        let methods = ["store.get", "store.set", "fetch"];
        let calls = (0..6).map(|_| {
            let method = *self.pick(&methods);
            match self.choices.below(4) {
                3 => json!({"method": method, "args": [], "error": {"message": "down"}}),
                _ => json!({"method": method, "args": [], "result": self.data(Kind::Any, 2)}),
            }
        });
        Some(calls.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_are_the_smallest_program() {
        let case = Case::from_bytes(&[]);
        assert_eq!(case.0["ast"]["op"], "seq");
        assert!(case.program().get("steps").is_some());
    }

    #[test]
    fn the_same_bytes_are_the_same_program() {
        let bytes: Vec<u8> = (0..400u32).map(|i| (i * 97 % 251) as u8).collect();
        let (a, b) = (Case::from_bytes(&bytes), Case::from_bytes(&bytes));
        assert_eq!(a.0, b.0);
        assert!(a.0.to_string().len() > 300);
    }
}
