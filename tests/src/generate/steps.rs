//! Programs, steps, and value positions.

use super::expr::ident;
use super::{Generator, Kind, NAMES};
use serde_json::{Map, Value as Json, json};

use Kind::{Any, Bool, List, Num, Record, Text};

/// Most iterations of a `while`.
const MAX_TURNS: usize = 4;

/// Atoms with their inputs, each a value position of a kind.
type Row = (&'static str, &'static [(&'static str, Kind)]);

const ATOMS: &[Row] = &[
    ("len", &[("list", List)]),
    ("push", &[("list", List), ("item", Any)]),
    ("split", &[("str", Text), ("sep", Text)]),
    ("join", &[("list", List), ("sep", Text)]),
    ("pick", &[("obj", Record), ("keys", List)]),
    ("omit", &[("obj", Record), ("keys", List)]),
    ("merge", &[("a", Record), ("b", Record)]),
    ("keys", &[("obj", Record)]),
    (
        "memberSet",
        &[("obj", Record), ("key", Text), ("value", Any)],
    ),
    (
        "memberSet",
        &[("object", List), ("key", Num), ("value", Any)],
    ),
    ("memberDelete", &[("object", Record), ("key", Text)]),
    ("jsonStringify", &[("value", Any)]),
    ("jsonParse", &[("str", Text)]),
    ("hash", &[("value", Any), ("raw", Bool)]),
    ("eq", &[("a", Any), ("b", Any)]),
    ("neq", &[("a", Any), ("b", Any)]),
    ("gt", &[("a", Num), ("b", Num)]),
    ("lt", &[("a", Num), ("b", Num)]),
    ("and", &[("a", Any), ("b", Any)]),
    ("or", &[("a", Any), ("b", Any)]),
    ("not", &[("value", Any)]),
    ("varGet", &[("key", Any)]),
    ("consoleLog", &[("message", Any)]),
    ("consoleWarn", &[("message", Any)]),
    ("consoleError", &[("message", Any)]),
    ("streamChunk", &[("data", Any)]),
    ("storeGet", &[("key", Text)]),
    ("storeSet", &[("key", Text), ("value", Any), ("ttlMs", Num)]),
    ("storeDelete", &[("key", Text)]),
    (
        "storeList",
        &[("prefix", Text), ("cursor", Text), ("limit", Num)],
    ),
    (
        "storeCompareAndSet",
        &[
            ("key", Text),
            ("expected", Any),
            ("value", Any),
            ("ttlMs", Num),
        ],
    ),
];

const CONDITIONS: &[&str] = &[
    "n > 1",
    "true",
    "n == 0",
    "!b",
    "s == 'a'",
    "n < 3 && b",
    "n >= 1 || c",
    "xs.length > 2",
    "o.a == null",
    "s.includes('b')",
    "missing == null",
    "n + 1 < m * 2",
    "b ? c : n",
    "s + t == 'ab'",
    "item > 2",
    "xs[0] == item",
];

/// Expression texts of programs of version 4.
const TEXTS: &[&str] = &[
    "n * 2 + m",
    "xs[n]",
    "xs.length",
    "b ? n : `${s}${m}!`",
    "{n, s, 'k 1': [t, {a: o.a}]}",
    "o?.a ?? p?.b",
    "Math.max(n, m, 2) % 3",
    "`${`x${n}`}`.length",
    "s.toUpperCase() + t",
    "[n, m].concat(xs)",
    "typeof missing",
    "-n ** 2",
    "{}",
    "parseInt(s)",
    "s.nope()",
    "",
];

const FORMULAS: &[&str] = &[
    "n + 1",
    "n * (m - 2)",
    "v / 2",
    "n % 3 + v",
    "s + n",
    "n > m",
    "-n",
    "n ? 1 : 2",
    "a.b",
    "1 +",
];

const PATTERNS: &[&str] = &["a", "^a.c$", "[0-9]+", "x|b", "(", "\\bquick\\b", "é$"];

impl Generator<'_> {
    pub(super) fn program(&mut self) -> Json {
        self.helpers = self.choices.below(3);
        let mut root = Map::new();
        root.insert("op".into(), json!("seq"));
        if self.choices.one_in(6) {
            let version = 2 + self.choices.below(3);
            root.insert("a99".into(), json!(version));
            self.texts = version == 4;
        }
        if self.helpers > 0 {
            let helpers: Map<String, Json> = (0..self.helpers)
                .map(|i| (format!("h{i}"), self.helper()))
                .collect();
            root.insert("helpers".into(), Json::Object(helpers));
        }
        let mut steps = Vec::new();
        for (name, kind) in &NAMES[..5] {
            if self.choices.below(4) != 0 {
                let value = self.data(*kind, 2);
                let value = if *kind == Text {
                    json!({"$expr": "literal", "value": value})
                } else {
                    value
                };
                steps.push(json!({"op": "varSet", "key": name, "value": value}));
            }
        }
        let more = 1 + self.choices.below(10);
        for _ in 0..more {
            self.step(&mut steps);
        }
        steps.push(self.ret(false));
        root.insert("steps".into(), Json::Array(steps));
        Json::Object(root)
    }

    fn helper(&mut self) -> Json {
        self.helper = true;
        let jumps = std::mem::take(&mut self.jumps);
        let params = self.choices.below(3);
        let names: Vec<&str> = ["n", "s", "xs"][..params].to_vec();
        let mut steps = self.body();
        if !self.choices.one_in(3) {
            steps.push(self.ret(true));
        }
        self.helper = false;
        self.jumps = jumps;
        json!({"paramNames": names, "steps": steps})
    }

    fn ret(&mut self, within: bool) -> Json {
        let by_value = self.choices.below(3);
        if by_value != 0 || within {
            let value = match by_value {
                2 => self.value(if within { Any } else { Record }),
                _ => {
                    let n = if within { 5 } else { NAMES.len() };
                    let mut map = Map::new();
                    for (name, _) in &NAMES[..n] {
                        map.insert((*name).into(), ident(name));
                    }
                    json!(map)
                }
            };
            return json!({"op": "return", "value": value});
        }
        let mut properties = Map::new();
        for (name, kind) in NAMES {
            let schema = match (kind, self.choices.below(8)) {
                (Num, 7) => json!({"type": "number"}),
                (Text, 7) => json!({"type": "string"}),
                _ => json!({}),
            };
            properties.insert((*name).into(), schema);
        }
        json!({"op": "return", "schema": {"type": "object", "properties": properties}})
    }

    /// Some steps.
    fn body(&mut self) -> Vec<Json> {
        let mut steps = Vec::new();
        self.depth += 1;
        if !self.full() {
            for _ in 0..=self.choices.below(3) {
                self.step(&mut steps);
            }
        }
        self.depth -= 1;
        steps
    }

    /// A body that binds `result`.
    fn body_with_result(&mut self) -> Vec<Json> {
        let mut steps = self.body_with_jumps(false);
        if !self.choices.one_in(4) {
            let value = self.expr(Any);
            steps.push(json!({"op": "varSet", "key": "result", "value": value}));
        }
        steps
    }

    /// A value position.
    pub(super) fn value(&mut self, kind: Kind) -> Json {
        if self.texts && self.choices.one_in(3) {
            let text = *self.pick(TEXTS);
            return match self.choices.below(4) {
                0 => json!({"$expr": "text", "value": text}),
                1 => json!([{"=": text}, "n"]),
                _ => json!({"=": text}),
            };
        }
        match self.choices.below(8) {
            0..=3 => self.expr(kind),
            4 => json!(self.name(kind)),
            5 => {
                let name = self.name(kind);
                match self.choices.below(3) {
                    0 => json!(format!("args.{name}")),
                    1 => json!({"$kind": "arg", "path": name}),
                    _ => json!(format!("{name}.a")),
                }
            }
            6 if matches!(kind, Record | Any) => {
                json!({"a": self.expr(Any), "b": [self.expr(Num), "n", {"$kind": "arg", "path": "n"}]})
            }
            _ => self.data(kind, 2),
        }
    }

    fn condition(&mut self, step: &mut Map<String, Json>) {
        if self.choices.one_in(3) {
            let text = match self.texts && self.choices.one_in(2) {
                true => *self.pick(TEXTS),
                false => *self.pick(CONDITIONS),
            };
            step.insert("condition".into(), json!(text));
            if self.choices.one_in(3) {
                let vars = json!({"n": self.value(Num), "b": "c"});
                step.insert("vars".into(), vars);
            }
        } else {
            let node = self.expr(Bool);
            step.insert("condition".into(), node);
        }
    }

    fn step(&mut self, steps: &mut Vec<Json>) {
        self.nodes += 1;
        if self.jumps && self.choices.one_in(6) {
            let mut step = Map::new();
            step.insert("op".into(), json!("if"));
            self.condition(&mut step);
            let op = *self.pick(&["break", "continue"]);
            step.insert("then".into(), json!([{"op": op}]));
            return steps.push(Json::Object(step));
        }
        let step = match self.choices.below(16) {
            0..=2 => self.assign(),
            3 | 4 => self.branch(),
            5 if self.choices.one_in(2) => self.each(),
            5 => return self.repeat(steps),
            6 => json!({"op": "try", "try": self.body(), "catch": self.body(),
                        "catchParam": *self.pick(&["error", "problem"])}),
            7 => self.visit(),
            8 if self.choices.one_in(3) => self.call_all(),
            8 => self.visit(),
            9 => json!({"op": "scope", "steps": self.body()}),
            10 => self.remember(),
            11 => self.call_helper(),
            12 | 13 => self.data_atom(),
            14 => self.other_atom(),
            _ => self.host(),
        };
        steps.push(step);
    }

    /// Binds the result of a step, sometimes to a constant.
    pub(super) fn bound(&mut self, mut step: Map<String, Json>, kind: Kind) -> Json {
        if !self.choices.one_in(5) {
            let name = self.name(kind);
            step.insert("result".into(), json!(name));
            if self.choices.one_in(12) {
                step.insert("resultConst".into(), json!(true));
            }
        }
        Json::Object(step)
    }

    fn assign(&mut self) -> Json {
        let kind = *self.pick(&[Num, Text, List, Record, Bool]);
        let name = self.name(kind);
        match self.choices.below(8) {
            6 => json!({"op": "constSet", "key": format!("k{}", self.choices.below(3)),
                        "value": self.value(kind)}),
            7 => match self.choices.below(3) {
                0 => json!({"op": "varsImport", "keys": ["n", "s", "missing"]}),
                1 => json!({"op": "varsLet", "n": self.value(Num), "t": self.value(Text)}),
                _ => json!({"op": "varsExport", "keys": {"a": "n", "b": "o.a"}, "result": "p"}),
            },
            _ => json!({"op": "varSet", "key": name, "value": self.value(kind)}),
        }
    }

    fn branch(&mut self) -> Json {
        let mut step = Map::new();
        step.insert("op".into(), json!("if"));
        self.condition(&mut step);
        step.insert("then".into(), json!(self.body()));
        if self.choices.below(2) == 1 {
            step.insert("else".into(), json!(self.body()));
        }
        Json::Object(step)
    }

    /// A `while` with a separate counter.
    fn repeat(&mut self, steps: &mut Vec<Json>) {
        if self.loops >= 2 {
            return;
        }
        let counter = format!("i{}", self.counters);
        self.counters += 1;
        let turns = self.choices.below(MAX_TURNS);
        let less = json!({"$expr": "binary", "op": "<", "left": ident(&counter),
                          "right": {"$expr": "literal", "value": turns}});
        let condition = match self.choices.below(3) {
            0 => less,
            1 => json!(format!("{counter} < {turns}")),
            _ => json!({"$expr": "logical", "op": "&&", "left": less, "right": self.expr(Bool)}),
        };
        self.loops += 1;
        let next = json!({"$expr": "binary", "op": "+", "left": ident(&counter),
                          "right": {"$expr": "literal", "value": 1}});
        let mut body = vec![json!({"op": "varSet", "key": counter, "value": next})];
        body.extend(self.body_with_jumps(true));
        self.loops -= 1;
        steps.push(json!({"op": "varSet", "key": counter, "value": 0}));
        steps.push(json!({"op": "while", "condition": condition, "body": body}));
    }

    /// A body; `jumps` allows `break` and `continue`.
    fn body_with_jumps(&mut self, jumps: bool) -> Vec<Json> {
        let around = std::mem::replace(&mut self.jumps, jumps);
        let body = self.body();
        self.jumps = around;
        body
    }

    /// The items of a loop, fewer in nested loops.
    fn items(&mut self) -> Json {
        match self.loops >= 2 {
            true => json!([1, 2]),
            false => self.value(List),
        }
    }

    /// Sometimes names an item's index.
    fn counted(&mut self, step: &mut Map<String, Json>) {
        if self.choices.one_in(4) {
            let name = *self.pick(&["index", "n", "item", "m"]);
            step.insert("index".into(), json!(name));
        }
    }

    fn each(&mut self) -> Json {
        let mut step = Map::new();
        step.insert("op".into(), json!("forEach"));
        let items = self.items();
        step.insert("items".into(), items);
        step.insert("as".into(), json!(*self.pick(&["item", "n", "item"])));
        self.counted(&mut step);
        self.loops += 1;
        let steps = self.body_with_jumps(true);
        step.insert("steps".into(), json!(steps));
        self.loops -= 1;
        Json::Object(step)
    }

    fn visit(&mut self) -> Json {
        let op = *self.pick(&["map", "filter", "find", "reduce"]);
        let mut step = Map::new();
        step.insert("op".into(), json!(op));
        let items = self.items();
        step.insert("items".into(), items);
        step.insert("as".into(), json!(*self.pick(&["item", "n", "item"])));
        self.counted(&mut step);
        self.loops += 1;
        match op {
            "map" => {
                step.insert("steps".into(), json!(self.body_with_result()));
            }
            "reduce" => {
                step.insert("accumulator".into(), json!(*self.pick(&["m", "s", "xs"])));
                let initial = self.value(Any);
                step.insert("initial".into(), initial);
                step.insert("steps".into(), json!(self.body_with_result()));
            }
            _ => self.condition(&mut step),
        }
        self.loops -= 1;
        let kind = if matches!(op, "map" | "filter") {
            List
        } else {
            Any
        };
        self.bound(step, kind)
    }

    /// `callAll` with some calls, or with one for each item.
    fn call_all(&mut self) -> Json {
        let mut step = Map::new();
        step.insert("op".into(), json!("callAll"));
        if self.choices.one_in(2) {
            let count = self.choices.below(4);
            let calls: Vec<Json> = (0..count).map(|_| self.data_atom()).collect();
            step.insert("calls".into(), json!(calls));
        } else {
            let items = self.items();
            step.insert("items".into(), items);
            step.insert("as".into(), json!(*self.pick(&["item", "n"])));
            self.loops += 1;
            let call = self.data_atom();
            self.loops -= 1;
            step.insert("call".into(), call);
        }
        if self.choices.one_in(3) {
            let limit = json!(*self.pick(&[1, 2, 64, 65]));
            step.insert("limit".into(), limit);
        }
        self.bound(step, List)
    }

    /// `memoize` and `cache` with a key.
    fn remember(&mut self) -> Json {
        let op = *self.pick(&["memoize", "memoize", "cache"]);
        let mut step = Map::new();
        step.insert("op".into(), json!(op));
        let key = match self.choices.below(3) {
            0 => json!({"$expr": "literal", "value": *self.pick(&["k1", "k2"])}),
            // Never absent: such a step would have no key.
            1 if op == "memoize" => json!({"$expr": "array", "elements": [
                {"$expr": "unary", "op": "typeof", "argument": self.expr(Any)}]}),
            _ => json!({"$expr": "binary", "op": "+", "left": {"$expr": "literal", "value": "k"},
                        "right": self.expr(Text)}),
        };
        step.insert("key".into(), key);
        step.insert("steps".into(), json!(self.body_with_result()));
        self.bound(step, Any)
    }

    fn call_helper(&mut self) -> Json {
        // A helper calls no helper, because recursion would be endless.
        if self.helper || self.helpers == 0 {
            return self.data_atom();
        }
        let name = format!("h{}", self.choices.below(self.helpers + 1));
        let args: Vec<Json> = [Num, Text][..self.choices.below(3)]
            .iter()
            .map(|kind| self.value(*kind))
            .collect();
        let mut step = Map::new();
        step.insert("op".into(), json!("callLocal"));
        step.insert("name".into(), json!(name));
        step.insert("args".into(), json!(args));
        self.bound(step, Any)
    }

    pub(super) fn data_atom(&mut self) -> Json {
        let (op, inputs) = *self.pick(ATOMS);
        let mut step = Map::new();
        step.insert("op".into(), json!(op));
        for (name, kind) in inputs {
            let mut value = self.value(*kind);
            if op.starts_with("store") && *name == "key" {
                // Other keys of a store are store-specific.
                value = json!({"$expr": "binary", "op": "+", "left": self.expr(Text),
                               "right": {"$expr": "literal", "value": "k"}});
            }
            step.insert((*name).into(), value);
        }
        self.bound(step, Any)
    }

    fn other_atom(&mut self) -> Json {
        let mut step = Map::new();
        match self.choices.below(12) {
            8.. => return self.odd_atom(),
            0 | 1 => {
                step.insert("op".into(), json!("mathCalc"));
                step.insert("expr".into(), json!(*self.pick(FORMULAS)));
                let vars = json!({"v": self.value(Num), "a": "o"});
                step.insert("vars".into(), vars);
            }
            2 | 3 => {
                let template = *self.pick(&["{{n}} and {{s}}", "plain", "{{{x}}}", "é{{n}}{{n}}"]);
                step.insert("op".into(), json!("template"));
                step.insert(
                    "tmpl".into(),
                    json!({"$expr": "literal", "value": template}),
                );
                let vars = json!({"n": self.value(Num), "s": self.value(Any), "x": "xs"});
                step.insert("vars".into(), vars);
            }
            4 => {
                step.insert("op".into(), json!("regexMatch"));
                step.insert("pattern".into(), json!(*self.pick(PATTERNS)));
                let value = self.value(Text);
                step.insert("value".into(), value);
            }
            5 => {
                step.insert("op".into(), json!("Error"));
                step.insert("args".into(), json!([self.short_text()]));
            }
            6 => {
                step.insert("op".into(), json!("httpFetch"));
                let url = self.value(Text);
                step.insert("url".into(), url);
            }
            _ => {
                step.insert("op".into(), json!(*self.pick(&["nothing", "return"])));
                let value = self.value(Record);
                step.insert("value".into(), value);
            }
        }
        self.bound(step, Any)
    }

    /// An atom of the host.
    fn host(&mut self) -> Json {
        let mut step = Map::new();
        step.insert("op".into(), json!("host"));
        step.insert("q".into(), json!(self.choices.below(4)));
        self.bound(step, Any)
    }
}
