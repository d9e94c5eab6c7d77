//! Steps at the edges of the language: patterns and formulas of random parts, dates and sets
//! with odd arguments, atoms with missing inputs.

use super::{Generator, Kind};
use serde_json::{Map, Value as Json, json};

use Kind::{Any, List, Num, Record, Text};

/// Parts of regular expressions, in any combination.
const PARTS: &[&str] = &[
    "a",
    "b",
    "ab",
    ".",
    "\\d",
    "\\w",
    "\\s",
    "\\W",
    "\\D",
    "\\S",
    "[ab]",
    "[^a]",
    "[a-c]",
    "[\\d-x]",
    "[]",
    "[^]",
    "[\\w-]",
    "(a|b)",
    "(?:ab)",
    "(a",
    "b)",
    "*",
    "+",
    "?",
    "{2}",
    "{1,2}",
    "{,2}",
    "{2,}",
    "{",
    "}",
    "]",
    "^",
    "$",
    "|",
    "\\b",
    "\\B",
    "\\1",
    "\\u0041",
    "\\ud83d",
    "[\\ud800-\\udbff]",
    "\u{1F44D}",
    "[\u{1F44D}]",
    "é",
    "\\c1",
    "\\07",
    "(?<n>a)",
    "*?",
    "??",
    "*+",
    "(?i)",
    "(?=a)",
    "(?!b)",
    "(?=(a|b)*)",
    "(?<=a)",
    "(?<!b|(a))",
    "(?<=(.)*b)",
    "\\2",
    "\\k<n>",
    "\\p{L}",
    "[^\\P{L}b]",
    "\\u{61}",
    "\\u{1F44D}",
    "[b-a]",
    "[a",
    "\\",
    "(|a)",
    "\\k",
];

/// Parts of texts for them.
const PIECES: &[&str] = &[
    "a",
    "b",
    "ab",
    "A",
    "1",
    "_ ",
    "\u{1F44D}",
    "é",
    "\n",
    "\u{2028}",
    "x-",
    "{}",
];

/// Parts of `mathCalc` texts.
const TOKENS: &[&str] = &[
    "v",
    "a",
    "1",
    "2.5",
    "'s'",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    "+",
    "-",
    "*",
    "/",
    "==",
    "<",
    " and ",
    "&&",
    "!",
    "?",
    "?.",
    ":",
    ".x",
    ".length",
    "null",
    "===",
    "__proto__",
    "1e",
    "\"",
];

const DATES: &[&str] = &[
    "2024-02-30",
    "2024-01-31T10:20:30Z",
    "1970-01-01",
    "2023-12-31",
    "Feb 30 2024",
    "no",
    "2024-13-01",
    "+002024-06-31",
];

const DATE_METHODS: &[&str] = &["add", "diff", "format", "isBefore", "isAfter", "toString"];

const SET_METHODS: &[&str] = &["union", "intersection", "diff", "has", "add"];

/// Atoms with checks before all inputs are resolved, and atoms only for programs with every
/// builtin.
const GUARDED: &[(&str, &[(&str, Kind)])] = &[
    ("llmPredict", &[("prompt", Any), ("options", Any)]),
    ("xmlParse", &[("str", Any)]),
    ("agentRun", &[("agentId", Text), ("input", Any)]),
    ("storeQuery", &[("query", Any)]),
    (
        "storeVectorSearch",
        &[("collection", Any), ("vector", List), ("k", Num)],
    ),
    ("storeVectorize", &[("text", Any)]),
    ("split", &[("str", Any), ("sep", Any)]),
    ("join", &[("list", Any), ("sep", Any)]),
    ("reduce", &[("items", Any), ("initial", Any)]),
    (
        "storeQueryWhere",
        &[("predicate", Record), ("collection", Text), ("limit", Num)],
    ),
    (
        "storeCreateCollection",
        &[("collection", Text), ("schema", Any), ("dimension", Num)],
    ),
    ("storeVectorAdd", &[("collection", Text), ("doc", Any)]),
    ("storeVectorUpsert", &[("collection", Text), ("doc", Any)]),
    ("storeVectorDelete", &[("collection", Text), ("id", Text)]),
    (
        "llmPredictBattery",
        &[
            ("system", Text),
            ("user", Any),
            ("tools", Any),
            ("responseFormat", Any),
        ],
    ),
    (
        "llmVision",
        &[
            ("system", Text),
            ("prompt", Text),
            ("images", List),
            ("responseFormat", Any),
        ],
    ),
    ("transpileCode", &[("code", Text)]),
    ("releaseProcedure", &[("token", Any)]),
    ("clearExpiredProcedures", &[]),
    // A number would wait.
    ("sleep", &[("ms", Text)]),
    (
        "shellExec",
        &[("command", Any), ("cwd", Text), ("timeoutMs", Num)],
    ),
    ("shellWriteFile", &[("path", Text), ("content", Any)]),
    ("shellReadFile", &[("path", Any), ("maxBytes", Num)]),
    (
        "llmChat",
        &[("prompt", Any), ("tools", List), ("maxTokens", Num)],
    ),
    ("agentState", &[]),
    ("agentSetState", &[("state", Record), ("replace", Any)]),
    ("agentSettings", &[]),
    ("agentSetSettings", &[("settings", Any)]),
    ("agentIdentity", &[]),
    (
        "agentSend",
        &[("content", Text), ("at", Any), ("metadata", Record)],
    ),
    ("agentUpdate", &[("id", Text), ("content", Any)]),
    ("agentFail", &[("id", Text), ("error", Any)]),
    ("agentPublish", &[("type", Text), ("payload", Any)]),
    (
        "agentSetTimer",
        &[("name", Text), ("after", Num), ("payload", Any)],
    ),
    ("agentCancelTimer", &[("name", Any)]),
    ("agentRoster", &[]),
    (
        "agentCallMethod",
        &[("to", Text), ("method", Text), ("args", Record)],
    ),
    ("agentMethodResult", &[("callId", Text), ("content", Any)]),
    ("agentInvite", &[("agent", Text), ("config", Record)]),
    ("agentRemove", &[("agent", Any), ("handle", Any)]),
    ("agentStorageExec", &[("sql", Text)]),
    ("agentStorageRun", &[("sql", Text), ("params", List)]),
    ("agentStorageGet", &[("sql", Text), ("params", List)]),
    ("agentStorageQuery", &[("sql", Any), ("params", Any)]),
    ("localStorageGet", &[("key", Any)]),
    ("localStorageSet", &[("key", Text), ("value", Any)]),
    ("domText", &[("selector", Any)]),
    ("domValue", &[("selector", Text)]),
    ("domClick", &[("selector", Text)]),
    ("domInput", &[("selector", Text), ("value", Any)]),
];

/// The number of these atoms that any program may have.
const USUAL: usize = 9;

fn literal(value: Json) -> Json {
    json!({"$expr": "literal", "value": value})
}

fn ident(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

fn method(object: Json, name: &str, arguments: &[Json]) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": name, "arguments": arguments})
}

impl Generator<'_> {
    pub(super) fn odd_atom(&mut self) -> Json {
        let mut step = Map::new();
        match self.choices.below(8) {
            0 | 1 => {
                step.insert("op".into(), json!("regexMatch"));
                step.insert("pattern".into(), json!(self.joined(PARTS, 6)));
                let value = self.matched();
                step.insert("value".into(), value);
            }
            3 if self.choices.one_in(2) => self.found(&mut step),
            4 if self.choices.one_in(2) => self.by_key(&mut step),
            2 => {
                step.insert("op".into(), json!("mathCalc"));
                step.insert("expr".into(), json!(self.joined(TOKENS, 7)));
                step.insert("vars".into(), json!({"v": self.value(Num), "a": "o"}));
            }
            3 => {
                step.insert("op".into(), json!("varGet"));
                let value = self.date();
                step.insert("key".into(), value);
            }
            4 => {
                let name = *self.pick(SET_METHODS);
                let items =
                    json!({"$expr": "call", "callee": "Set", "arguments": [self.expr(List)]});
                let changed = method(items, name, &[self.expr(Any)]);
                step.insert("op".into(), json!("jsonStringify"));
                step.insert("value".into(), changed);
            }
            5 => {
                let guarded = if self.builtins {
                    GUARDED
                } else {
                    &GUARDED[..USUAL]
                };
                let (op, inputs) = *self.pick(guarded);
                step.insert("op".into(), json!(op));
                for (name, kind) in inputs {
                    let value = self.value(*kind);
                    step.insert((*name).into(), value);
                }
                if op == "reduce" {
                    step.extend([
                        ("as".to_owned(), json!("i")),
                        ("steps".to_owned(), json!([])),
                    ]);
                    step.insert("accumulator".into(), json!("acc"));
                }
            }
            6 => {
                let text = *self.pick(&["{{n}}{{x}}{{n}}", "{{x}} {{gone}} {{x}}", "{{n}}", "no"]);
                let vars = json!({"n": self.value(Num), "x": self.value(Any)});
                step.insert("op".into(), json!("template"));
                step.insert("tmpl".into(), json!(text));
                step.insert("vars".into(), vars);
            }
            _ => {
                // A result that may be undefined, under a name that may be a constant.
                step.insert("op".into(), json!("varGet"));
                step.insert(
                    "key".into(),
                    json!(*self.pick(&["args.none", "n", "error.message"])),
                );
                step.insert(
                    "result".into(),
                    json!(format!("k{}", self.choices.below(3))),
                );
                step.insert("resultConst".into(), json!(self.choices.below(2) == 0));
                return Json::Object(step);
            }
        }
        self.bound(step, Any)
    }

    fn joined(&mut self, parts: &[&str], most: usize) -> String {
        let n = 1 + self.choices.below(most);
        (0..n).map(|_| *self.pick(parts)).collect()
    }

    /// A keyed atom on a list, by a member of each item.
    fn by_key(&mut self, step: &mut Map<String, Json>) {
        let op = *self.pick(&["sort", "groupBy", "unique", "sum"]);
        step.insert("op".into(), json!(op));
        let items = match self.choices.below(3) {
            0 => self.value(List),
            1 => json!({"$expr": "array", "elements": [
                self.expr(Record), self.expr(Num), self.expr(Text), self.expr(Any), self.date(),
            ]}),
            _ => literal(json!([{"a": 2, "b": "x"}, {"a": 1}, {"b": "x"}, {"a": null}, {"a": 2}])),
        };
        step.insert("items".into(), items);
        let paths = ["a", "b", "length", "0", "a.b", "year", "constructor", ""];
        let path = json!(*self.pick(&paths));
        let order = json!(*self.pick(&["asc", "desc", "desc", "up"]));
        if op == "sort" && self.choices.one_in(2) {
            let other = json!(*self.pick(&paths));
            step.insert("by".into(), json!([{"by": path, "order": order}, other]));
        } else if op == "groupBy" || !self.choices.one_in(3) {
            step.insert("by".into(), path);
        }
        if op == "sort" && self.choices.one_in(2) {
            step.insert("order".into(), order);
        }
    }

    /// `regexFind` with groups: texts are short, since the oracle backtracks without a bound.
    fn found(&mut self, step: &mut Map<String, Json>) {
        let op = *self.pick(&["regexFind", "regexFindAll", "regexReplace", "regexSplit"]);
        step.insert("op".into(), json!(op));
        let text = match self.choices.one_in(3) {
            true => self.joined(PIECES, 2),
            false => self.joined(&["a", "b", "A", "1", " ", "\n", "é", "\u{1F44D}"], 5),
        };
        step.insert("text".into(), literal(json!(text)));
        step.insert("pattern".into(), json!(self.joined(PARTS, 5)));
        let flags = *self.pick(&[
            "g", "i", "gi", "m", "s", "gims", "u", "gu", "giu", "y", "gy", "ugims", "x",
        ]);
        if !self.choices.one_in(3) {
            step.insert("flags".into(), json!(flags));
        }
        if op == "regexReplace" {
            let with = self.joined(&["$1", "$&", "$$", "$`", "$'", "$<n>", "x", "$20", "$"], 3);
            step.insert("replacement".into(), literal(json!(with)));
            if self.choices.one_in(2) {
                step.insert("all".into(), json!(true));
            }
        }
        if op == "regexSplit" && self.choices.one_in(3) {
            step.insert("limit".into(), json!(self.choices.below(4)));
        }
    }

    fn matched(&mut self) -> Json {
        let text = literal(json!(self.joined(PIECES, 6)));
        let lone = || method(ident("String"), "fromCharCode", &[literal(json!(0xD83D))]);
        match self.choices.below(4) {
            0 => self.value(Text),
            1 => json!({"$expr": "binary", "op": "+", "left": text, "right": lone()}),
            2 => json!({"$expr": "binary", "op": "+", "left": lone(), "right": text}),
            _ => text,
        }
    }

    fn date(&mut self) -> Json {
        let start = *self.pick(DATES);
        let date = json!({"$expr": "call", "callee": "Date", "arguments": [literal(json!(start))]});
        let name = *self.pick(DATE_METHODS);
        let units = [
            "years",
            "months",
            "days",
            "hours",
            "minutes",
            "seconds",
            "ms",
            "timestamp",
        ];
        let mut arguments = Vec::new();
        match self.choices.below(4) {
            0 => {}
            1 => {
                let unit = *self.pick(&units);
                let amount = self.expr(Any);
                let part =
                    json!({"$expr": "object", "properties": [{"key": unit, "value": amount}]});
                arguments.push(part);
            }
            2 => arguments.push(literal(json!(*self.pick(DATES)))),
            _ => arguments.push(self.expr(Any)),
        }
        if self.choices.one_in(3) {
            arguments.push(literal(json!(*self.pick(&units))));
        }
        let made = method(date, name, &arguments);
        // The result as a number or a text: dates have no other results here.
        match name {
            "add" => json!({"$expr": "member", "object": made, "property": "timestamp"}),
            _ => made,
        }
    }
}
