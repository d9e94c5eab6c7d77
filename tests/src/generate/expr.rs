//! Expression nodes and plain data.

use super::{Generator, Kind, NAMES};
use serde_json::{Map, Value as Json, json};

/// Texts in data: short and long, beyond ASCII, with surrogate pairs, numbers, and patterns of
/// templates and `replace`.
const TEXTS: &[&str] = &[
    "a",
    "",
    "abc",
    "b,c,d",
    "12",
    " x ",
    "é",
    "a😀b",
    "-1.5e2",
    "{{n}}",
    "$&-$$",
    "Straße İ",
    "null",
    "ÀÉ ab",
    "the quick brown fox jumps over the lazy dog",
    "args.n",
    "0x1F",
    "aaaaaa",
];

const NUMBERS: &[f64] = &[
    0.0,
    1.0,
    2.0,
    3.0,
    -1.0,
    0.5,
    10.0,
    -2.5,
    100.0,
    1e21,
    0.1,
    255.0,
    7.0,
    1e-7,
    4_294_967_296.0,
    9_007_199_254_740_993.0,
];

pub(super) fn literal(value: Json) -> Json {
    json!({"$expr": "literal", "value": value})
}

pub(super) fn ident(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

impl Generator<'_> {
    pub(super) fn short_text(&mut self) -> &'static str {
        TEXTS[self.choices.below(TEXTS.len())]
    }

    /// Plain JSON of a kind.
    pub(super) fn data(&mut self, kind: Kind, depth: usize) -> Json {
        match kind {
            Kind::Num => json!(*self.pick(NUMBERS)),
            Kind::Text => json!(self.short_text()),
            Kind::Bool => json!(self.choices.below(2) == 0),
            Kind::List => {
                let n = self.choices.below(5);
                let of = *self.pick(&[Kind::Num, Kind::Text, Kind::Any, Kind::Record]);
                (0..n)
                    .map(|_| {
                        self.data(
                            if depth == 0 { Kind::Num } else { of },
                            depth.saturating_sub(1),
                        )
                    })
                    .collect()
            }
            Kind::Record => {
                let n = self.choices.below(4);
                let mut map = Map::new();
                for _ in 0..n {
                    let key = *self.pick(&["a", "b", "2", "length", "é", "n", "1"]);
                    let kind = if depth == 0 { Kind::Num } else { Kind::Any };
                    map.insert(key.into(), self.data(kind, depth.saturating_sub(1)));
                }
                Json::Object(map)
            }
            Kind::Any => {
                let kinds = [Kind::Num, Kind::Text, Kind::Bool, Kind::List, Kind::Record];
                match self.choices.below(7) {
                    5 | 6 if depth == 0 => Json::Null,
                    6 => Json::Null,
                    n => {
                        let kind = kinds[n % 5];
                        let flat = depth == 0 && matches!(kind, Kind::List | Kind::Record);
                        self.data(if flat { Kind::Num } else { kind }, depth.saturating_sub(1))
                    }
                }
            }
        }
    }

    /// A variable of a kind.
    pub(super) fn name(&mut self, kind: Kind) -> &'static str {
        let fitting: Vec<&str> = NAMES
            .iter()
            .filter(|(_, k)| kind == Kind::Any || *k == kind || *k == Kind::Any)
            .map(|(name, _)| *name)
            .collect();
        fitting[self.choices.below(fitting.len())]
    }

    /// An expression node that should have a value of this kind.
    pub(super) fn expr(&mut self, kind: Kind) -> Json {
        self.nodes += 1;
        if self.full() {
            return match self.choices.below(2) {
                0 => literal(self.data(kind, 1)),
                _ => ident(self.name(kind)),
            };
        }
        self.depth += 1;
        // Sometimes a value of another kind, for coercions and errors.
        let kind = if self.choices.one_in(12) {
            Kind::Any
        } else {
            kind
        };
        let node = match self.choices.below(9 + usize::from(self.builtins)) {
            0 => literal(self.data(kind, 2)),
            1 | 2 => ident(self.name(kind)),
            3 => self.common(kind),
            9 => self.builtin(),
            _ => self.of_kind(kind),
        };
        self.depth -= 1;
        node
    }

    /// Forms that any kind of value may have.
    fn common(&mut self, kind: Kind) -> Json {
        match self.choices.below(4) {
            0 => {
                json!({"$expr": "conditional", "test": self.expr(Kind::Bool),
                       "consequent": self.expr(kind), "alternate": self.expr(kind)})
            }
            1 => {
                let op = *self.pick(&["&&", "||", "??"]);
                json!({"$expr": "logical", "op": op, "left": self.expr(kind), "right": self.expr(kind)})
            }
            2 => {
                let key = *self.pick(&["a", "b", "length", "0", "2", "missing"]);
                let object = *self.pick(&[Kind::Record, Kind::List, Kind::Text]);
                let mut node =
                    json!({"$expr": "member", "object": self.expr(object), "property": key});
                if self.choices.one_in(4) {
                    node["optional"] = json!(true);
                }
                node
            }
            _ => {
                json!({"$expr": "member", "object": self.expr(Kind::List), "computed": true,
                       "property": self.expr(Kind::Num)})
            }
        }
    }

    fn of_kind(&mut self, kind: Kind) -> Json {
        match kind {
            Kind::Num => self.num(),
            Kind::Text => self.text(),
            Kind::Bool => self.truth(),
            Kind::List => self.list(),
            Kind::Record => self.record(),
            Kind::Any => {
                let kind =
                    *self.pick(&[Kind::Num, Kind::Text, Kind::Bool, Kind::List, Kind::Record]);
                self.of_kind(kind)
            }
        }
    }

    fn binary(&mut self, op: &str, left: Kind, right: Kind) -> Json {
        json!({"$expr": "binary", "op": op, "left": self.expr(left), "right": self.expr(right)})
    }

    fn num(&mut self) -> Json {
        match self.choices.below(6) {
            0 | 1 => {
                let op = *self.pick(&["+", "-", "*", "/", "%", "**"]);
                self.binary(op, Kind::Num, Kind::Num)
            }
            2 => {
                let op = *self.pick(&["-", "+"]);
                json!({"$expr": "unary", "op": op, "argument": self.expr(Kind::Num)})
            }
            3 => {
                let name = *self.pick(&[
                    "floor", "max", "min", "abs", "round", "trunc", "sqrt", "sign", "hypot", "ceil",
                ]);
                let n = 1 + self.choices.below(3);
                let args = (0..n).map(|_| self.expr(Kind::Num)).collect();
                self.call_static("Math", name, args)
            }
            4 => self.method_giving_number(),
            _ => {
                let name = *self.pick(&["parseInt", "parseFloat"]);
                json!({"$expr": "call", "callee": name, "arguments": [self.expr(Kind::Text)]})
            }
        }
    }

    fn truth(&mut self) -> Json {
        match self.choices.below(5) {
            0 => {
                let op = *self.pick(&["<", ">", "<=", ">=", "==", "!=", "===", "!=="]);
                let kind = *self.pick(&[Kind::Num, Kind::Text, Kind::Any]);
                self.binary(op, kind, kind)
            }
            1 => json!({"$expr": "unary", "op": "!", "argument": self.expr(Kind::Any)}),
            2 => self.method_giving_truth(),
            3 => {
                let name = *self.pick(&["isNaN", "isFinite"]);
                json!({"$expr": "call", "callee": name, "arguments": [self.expr(Kind::Any)]})
            }
            _ => {
                let (ns, name) = *self.pick(&[
                    ("Array", "isArray"),
                    ("Number", "isInteger"),
                    ("Number", "isFinite"),
                    ("Object", "hasOwn"),
                ]);
                let args = vec![self.expr(Kind::Any), self.expr(Kind::Text)];
                self.call_static(ns, name, args)
            }
        }
    }

    fn record(&mut self) -> Json {
        match self.choices.below(4) {
            0 | 1 => {
                let n = self.choices.below(4);
                let properties: Vec<Json> = (0..n)
                    .map(|_| {
                        let key = *self.pick(&["a", "b", "2", "1", "c d", "n"]);
                        json!({"key": key, "value": self.expr(Kind::Any)})
                    })
                    .collect();
                json!({"$expr": "object", "properties": properties})
            }
            2 => {
                let n = 1 + self.choices.below(3);
                let args = (0..n).map(|_| self.expr(Kind::Record)).collect();
                self.call_static("Object", "assign", args)
            }
            _ => {
                let pairs = self.call_on(Kind::Record, "Object", "entries");
                self.call_static("Object", "fromEntries", vec![pairs])
            }
        }
    }

    pub(super) fn call_on(&mut self, kind: Kind, ns: &str, name: &str) -> Json {
        let args = vec![self.expr(kind)];
        self.call_static(ns, name, args)
    }

    pub(super) fn call_static(&mut self, ns: &str, name: &str, args: Vec<Json>) -> Json {
        json!({"$expr": "methodCall", "object": ident(ns), "method": name, "arguments": args})
    }
}
