//! Expressions that call methods of texts and lists.

use super::expr::ident;
use super::{Generator, Kind};
use serde_json::{Value as Json, json};

/// Kinds of arguments of a method, and the number of required ones.
type Row = (&'static str, &'static [Kind], usize);

use Kind::{Any, List, Num, Text};

const TEXT_OF_TEXT: &[Row] = &[
    ("toUpperCase", &[], 0),
    ("slice", &[Num, Num], 0),
    ("concat", &[Text, Any], 0),
    ("trim", &[], 0),
    ("toLowerCase", &[], 0),
    ("repeat", &[Num], 1),
    ("padStart", &[Num, Text], 1),
    ("padEnd", &[Num, Text], 1),
    ("replace", &[Text, Text], 2),
    ("replaceAll", &[Text, Text], 2),
    ("substring", &[Num, Num], 0),
    ("substr", &[Num, Num], 1),
    ("charAt", &[Num], 0),
    ("at", &[Num], 0),
    ("trimStart", &[], 0),
    ("trimEnd", &[], 0),
    ("normalize", &[], 0),
    ("toString", &[], 0),
    ("toWellFormed", &[], 0),
    ("bold", &[], 0),
    ("link", &[Text], 1),
    ("valueOf", &[], 0),
    ("toLocaleUpperCase", &[], 0),
    ("anchor", &[Text], 1),
];

const LIST_OF_LIST: &[Row] = &[
    ("slice", &[Num, Num], 0),
    ("concat", &[List, Any], 0),
    ("reverse", &[], 0),
    ("toReversed", &[], 0),
    ("sort", &[], 0),
    ("toSorted", &[], 0),
    ("splice", &[Num, Num, Any], 0),
    ("toSpliced", &[Num, Num, Any], 0),
    ("fill", &[Any, Num, Num], 1),
    ("flat", &[Num], 0),
    ("with", &[Num, Any], 2),
    ("copyWithin", &[Num, Num, Num], 1),
    ("keys", &[], 0),
    ("values", &[], 0),
    ("entries", &[], 0),
    ("valueOf", &[], 0),
    ("concat", &[Text], 1),
    ("slice", &[Num], 1),
];

const CALLBACKS: &[&str] = &[
    "parseFloat",
    "isNaN",
    "parseInt",
    "isFinite",
    "encodeURIComponent",
    "Set",
    "Error",
    "missing",
];

const VISITORS: &[&str] = &[
    "map",
    "filter",
    "find",
    "some",
    "every",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flatMap",
    "forEach",
    "reduce",
];

impl Generator<'_> {
    fn method(&mut self, of: Kind, row: Row) -> Json {
        let (name, kinds, least) = row;
        let object = self.expr(of);
        self.method_on(object, name, kinds, least)
    }

    fn method_on(&mut self, object: Json, name: &str, kinds: &[Kind], least: usize) -> Json {
        let more = kinds.len() - least;
        let n = least
            + if more == 0 {
                0
            } else {
                self.choices.below(more + 1)
            };
        let args: Vec<Json> = kinds[..n].iter().map(|kind| self.expr(*kind)).collect();
        let mut node = json!({"$expr": "methodCall", "object": object, "method": name,
                              "arguments": args});
        if self.choices.one_in(10) {
            node["optional"] = json!(true);
        }
        node
    }

    pub(super) fn text(&mut self) -> Json {
        match self.choices.below(8) {
            0 | 1 => {
                let other = *self.pick(&[Text, Num, Any]);
                json!({"$expr": "binary", "op": "+", "left": self.expr(Text),
                       "right": self.expr(other)})
            }
            2..=4 => {
                let row = *self.pick(TEXT_OF_TEXT);
                self.method(Text, row)
            }
            5 => self.method(List, ("join", &[Text], 0)),
            6 => {
                let mut args = vec![self.expr(Any)];
                if self.choices.one_in(3) {
                    args.push(json!(null));
                    args.push(self.expr(Num));
                }
                self.call_static("JSON", "stringify", args)
            }
            _ => match self.choices.below(4) {
                0 => {
                    let name =
                        *self.pick(&["encodeURIComponent", "decodeURIComponent", "encodeURI"]);
                    json!({"$expr": "call", "callee": name, "arguments": [self.expr(Text)]})
                }
                1 => json!({"$expr": "unary", "op": "typeof", "argument": self.expr(Any)}),
                2 => self.method(Num, ("toFixed", &[Num], 0)),
                _ => {
                    let of = *self.pick(&[Any, Num, List]);
                    self.method(of, ("toString", &[], 0))
                }
            },
        }
    }

    pub(super) fn list(&mut self) -> Json {
        match self.choices.below(9) {
            0 | 1 => {
                let n = self.choices.below(4);
                let elements: Vec<Json> = (0..n).map(|_| self.expr(Any)).collect();
                json!({"$expr": "array", "elements": elements})
            }
            2 | 3 => {
                let row = *self.pick(LIST_OF_LIST);
                self.method(List, row)
            }
            4 => self.method(Text, ("split", &[Text, Num], 0)),
            5 => {
                let name = *self.pick(&["keys", "values", "entries"]);
                let kind = *self.pick(&[Kind::Record, List, Text]);
                self.call_on(kind, "Object", name)
            }
            6 => {
                let name = *self.pick(VISITORS);
                let callback = ident(CALLBACKS[self.choices.below(CALLBACKS.len())]);
                json!({"$expr": "methodCall", "object": self.expr(List), "method": name,
                       "arguments": [callback]})
            }
            7 => {
                let kind = *self.pick(&[List, Text, Kind::Record]);
                self.call_on(kind, "Array", "from")
            }
            _ => self.set(),
        }
    }

    /// A list made through a set.
    fn set(&mut self) -> Json {
        let kind = *self.pick(&[List, Text]);
        let made = json!({"$expr": "call", "callee": "Set", "arguments": [self.expr(kind)]});
        let name = *self.pick(&["toArray", "union", "intersection", "diff", "add", "remove"]);
        let changed = match name {
            "toArray" => made,
            "add" | "remove" => self.method_on(made, name, &[Any], 1),
            _ => self.method_on(made, name, &[List], 1),
        };
        self.method_on(changed, "toArray", &[], 0)
    }

    pub(super) fn method_giving_number(&mut self) -> Json {
        match self.choices.below(4) {
            0 => {
                let name = *self.pick(&["indexOf", "lastIndexOf", "search"]);
                let kinds: &[Kind] = if name == "search" {
                    &[Text]
                } else {
                    &[Text, Num]
                };
                self.method(Text, (name, kinds, 1))
            }
            1 => {
                let name = *self.pick(&["charCodeAt", "codePointAt"]);
                self.method(Text, (name, &[Num], 0))
            }
            2 => {
                let name = *self.pick(&["indexOf", "lastIndexOf", "push", "unshift"]);
                self.method(List, (name, &[Any, Num], 1))
            }
            _ => {
                let of = *self.pick(&[Text, List]);
                json!({"$expr": "member", "object": self.expr(of), "property": "length"})
            }
        }
    }

    pub(super) fn method_giving_truth(&mut self) -> Json {
        match self.choices.below(3) {
            0 => {
                let name = *self.pick(&["includes", "startsWith", "endsWith"]);
                self.method(Text, (name, &[Text, Num], 1))
            }
            1 => self.method(List, ("includes", &[Any, Num], 1)),
            _ => self.method(Kind::Record, ("hasOwnProperty", &[Text], 1)),
        }
    }
}
