//! Grows a program from a genome: a loop that only the limits end, over variables whose names
//! give the kind of their first values.

use super::genome::Genome;
use super::steps::step;
use super::values::Shape;
use serde_json::{Value as Json, json};

/// Sizes of the inputs.
pub const SIZES: [usize; 6] = [10, 30, 300, 3_000, 30_000, 300_000];

/// The first byte for each size except the smallest: large sizes are rare, and slow.
const FROM_BYTE: [u8; 5] = [24, 56, 112, 208, 250];

/// A kind of value, with its variables.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    List,
    Object,
    Number,
    Set,
    Date,
    Any,
}

impl Kind {
    /// The variables of a kind.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Kind::Text => &["s0", "s1", "s2"],
            Kind::List => &["l0", "l1", "l2"],
            Kind::Object => &["o0", "o1"],
            Kind::Number => &["n0", "n1"],
            Kind::Set => &["u0"],
            Kind::Date => &["d0"],
            Kind::Any => &["x0", "x1"],
        }
    }
}

/// Every variable.
pub(crate) const NAMES: [&str; 14] = [
    "s0", "s1", "s2", "l0", "l1", "l2", "o0", "o1", "n0", "n1", "u0", "d0", "x0", "x1",
];

/// Inputs with their names, places of their shapes in the head, and shapes.
const INPUTS: [(&str, &str, usize, &[Shape]); 11] = [
    ("s0", "S0", 3, Shape::TEXTS),
    ("s1", "S1", 4, Shape::TEXTS),
    ("s2", "S2", 5, Shape::TEXTS),
    ("l0", "L0", 6, Shape::LISTS),
    ("l1", "L1", 7, Shape::LISTS),
    ("l2", "L2", 8, Shape::LISTS),
    ("o0", "O0", 9, Shape::OBJECTS),
    ("o1", "O1", 10, Shape::OBJECTS),
    ("n0", "N0", 11, Shape::NUMBERS),
    ("n1", "N1", 12, Shape::NUMBERS),
    ("u0", "U0", 13, Shape::LISTS),
];

/// A program, and the same without its steps to measure its fixed cost.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub ast: Json,
    /// The same with a loop without iterations.
    pub idle: Json,
    /// Inputs.
    pub inputs: Vec<(&'static str, Shape)>,
    /// Size of the inputs.
    pub n: usize,
    /// Rows that its steps call.
    pub rows: Vec<String>,
}

impl Genome {
    /// The program, with inputs of at most `largest`.
    #[must_use]
    pub fn program(&self, largest: usize) -> Program {
        let size = SIZES[FROM_BYTE
            .iter()
            .filter(|from| self.head[0] >= **from)
            .count()];
        let mut rows = Vec::new();
        let mut body = Vec::new();
        let mut helpers = json!({});
        for (place, choices) in self.steps.iter().enumerate() {
            let (row, grown) = step(choices, place, &mut helpers);
            rows.push(row);
            body.push(grown);
        }
        let text = json!([&body, &helpers]).to_string();
        let is_used = |name: &str| {
            text.match_indices(name).any(|(at, found)| {
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
                edge(text[..at].chars().next_back())
                    && edge(text[at + found.len()..].chars().next())
            })
        };
        let inputs: Vec<_> = INPUTS.iter().filter(|input| is_used(input.0)).collect();
        let keys: Vec<&str> = inputs.iter().map(|input| input.1).collect();
        let mut before = vec![
            json!({"op": "varsImport", "keys": keys}),
            set("i", json!(0)),
        ];
        for (name, input, ..) in &inputs {
            before.push(set(name, first(name, id(input))));
        }
        for (name, value) in [("d0", call("Date", vec![json!(0)])), ("x0", json!(1))] {
            if is_used(name) {
                before.push(set(name, value));
            }
        }
        if is_used("x1") {
            before.push(set("x1", json!("text")));
        }
        body.extend(self.resets(|name| is_used(name)));
        body.push(set("i", binary("+", id("i"), lit(1))));
        let looped = |turns: bool| {
            let mut steps = before.clone();
            steps.push(json!({"op": "while", "condition": lit(turns), "body": &body}));
            let mut root = json!({"op": "seq", "steps": steps});
            if helpers.as_object().is_some_and(|all| !all.is_empty()) {
                root["helpers"] = helpers.clone();
            }
            if self.head[2].is_multiple_of(3) {
                root["a99"] = json!(4);
            }
            root
        };
        let shapes = inputs.iter().map(|(_, input, place, shapes)| {
            let choice = usize::from(self.head[*place]);
            (*input, shapes[choice % shapes.len()])
        });
        Program {
            ast: looped(true),
            idle: looped(false),
            inputs: shapes.collect(),
            n: size.min(largest),
            rows,
        }
    }

    /// Steps that reset variables to their first values, or to empty ones.
    fn resets(&self, is_used: impl Fn(&str) -> bool) -> Vec<Json> {
        let mut out = Vec::new();
        for (place, kind) in [Kind::Text, Kind::List, Kind::Object, Kind::Any]
            .into_iter()
            .enumerate()
        {
            let choice = self.head[1] >> (2 * place) & 3;
            for name in kind.names().iter().filter(|name| is_used(name)) {
                let value = match (choice, kind) {
                    (1, Kind::Any) => lit(1),
                    (1, _) => first(name, id(&name.to_uppercase())),
                    (2, Kind::Text) => lit(""),
                    (2, Kind::List) => json!([]),
                    (2, _) => json!({}),
                    _ => continue,
                };
                out.push(set(name, value));
            }
        }
        out
    }
}

fn first(name: &str, input: Json) -> Json {
    match name {
        "u0" => call("Set", vec![input]),
        _ => input,
    }
}

/// A variable.
pub(crate) fn id(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

/// A literal.
pub(crate) fn lit(value: impl Into<Json>) -> Json {
    json!({"$expr": "literal", "value": value.into()})
}

/// Sets a variable.
pub(crate) fn set(key: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": key, "value": value})
}

/// An operator between two operands.
pub(crate) fn binary(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

/// A method call.
pub(crate) fn method(object: Json, name: &str, arguments: Vec<Json>) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": name, "arguments": arguments})
}

/// A call of a global function.
pub(crate) fn call(name: &str, arguments: Vec<Json>) -> Json {
    json!({"$expr": "call", "callee": name, "arguments": arguments})
}
