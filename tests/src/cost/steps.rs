//! Generates steps from bytes: a call of a row of the engine's tables, an operator or a form,
//! and its surroundings.

use super::genome::STEP;
use super::grow::{Kind, NAMES, binary, call, id, lit, method, set};
use super::tables;
use a99_core::builtins::{FUNCTIONS, Gives, METHODS, Receiver};
use agent99::{AtomBody, AtomDef, Binding, Params, all_atoms};
use serde_json::{Value as Json, json};
use std::sync::{Arc, LazyLock};

/// Atoms that are not control forms, with their schemas.
static ATOMS: LazyLock<Vec<(Arc<AtomDef>, Json)>> = LazyLock::new(|| {
    let atoms = all_atoms();
    let bodies = atoms
        .iter()
        .filter(|atom| !matches!(atom.body, AtomBody::Form));
    let mut list: Vec<(Arc<AtomDef>, Json)> = bodies
        .map(|atom| {
            let schema = serde_json::from_str(&atom.sig.input_schema).unwrap_or_default();
            (Arc::clone(atom), schema)
        })
        .collect();
    list.sort_by(|a, b| a.0.sig.name.cmp(&b.0.sig.name));
    list
});

const OPERATORS: [&str; 14] = [
    "+", "-", "*", "/", "%", "**", "==", "!=", "===", "!==", "<", "<=", ">", ">=",
];

/// Choices of a step's bytes.
struct Choices<'b>(&'b [u8; STEP]);

impl Choices<'_> {
    fn at(&self, place: usize) -> usize {
        usize::from(self.0[place])
    }

    /// The number of a row.
    fn row(&self) -> usize {
        self.at(1) | self.at(2) << 8
    }

    /// An operand: usually a variable of the kind, otherwise a literal or any variable.
    fn operand(&self, place: usize, kind: Kind) -> Json {
        let choice = self.at(place);
        match (choice, kind) {
            (0..96, Kind::Number) => lit(tables::NUMBERS[choice % tables::NUMBERS.len()]),
            (96..128, Kind::Number) => binary("%", id("i"), lit(90)),
            (96..144, Kind::Text) => lit(tables::TEXTS[choice % tables::TEXTS.len()]),
            (0..192, _) => id(kind.names()[choice % kind.names().len()]),
            (192..224, _) => id(NAMES[choice % NAMES.len()]),
            (224..240, _) => lit(tables::TEXTS[choice % tables::TEXTS.len()]),
            (240..248, _) => lit(tables::NUMBERS[choice % tables::NUMBERS.len()]),
            _ => function_value(choice * 7 + self.at(2)),
        }
    }

    /// An operand of a kind that another byte chooses.
    fn any(&self, place: usize) -> Json {
        const KINDS: [Kind; 7] = [
            Kind::Number,
            Kind::Text,
            Kind::List,
            Kind::Object,
            Kind::Any,
            Kind::Set,
            Kind::Text,
        ];
        let choice = self.at(place) / 3 + self.at(11);
        self.operand(place, KINDS[choice % KINDS.len()])
    }

    fn pattern(&self) -> String {
        tables::pattern(&self.0[4..4 + 1 + self.at(11) % 3])
    }
}

/// A builtin function as a callback value.
fn function_value(choice: usize) -> Json {
    let row = &FUNCTIONS[choice % FUNCTIONS.len()];
    match row.ns {
        "" => id(row.name),
        ns => json!({"$expr": "member", "object": id(ns), "property": row.name}),
    }
}

/// The step of these bytes, and the row that it calls.
pub(crate) fn step(choices: &[u8; STEP], place: usize, helpers: &mut Json) -> (String, Json) {
    let c = Choices(choices);
    let (row, grown) = match c.at(0) % 16 {
        0..=4 => value(&c, method_call(&c)),
        5..=7 => value(&c, function_call(&c)),
        8..=10 => atom(&c),
        11 | 12 => value(&c, operator(&c)),
        13 => value(&c, by_schema(&c)),
        _ => form(&c, place, helpers),
    };
    (row, around(&c, place, grown))
}

/// A step that stores a value, tests it, or accumulates it.
fn value(c: &Choices<'_>, (row, kind, value): (String, Kind, Json)) -> (String, Json) {
    let choice = c.at(9);
    let names = match choice {
        0..160 => kind.names(),
        160..224 => Kind::Any.names(),
        _ => &NAMES,
    };
    let name = names[choice % names.len()];
    let value = match c.at(8) % 24 {
        20 => json!({"$expr": "array", "elements": [&value, &value, &value]}),
        21 => method(id("JSON"), "stringify", vec![value]),
        22 => json!({"$expr": "member", "object": value, "property": "length"}),
        23 => return (row, json!({"op": "if", "condition": value, "then": []})),
        _ => value,
    };
    (row, set(name, value))
}

/// Wraps a step.
fn around(c: &Choices<'_>, place: usize, step: Json) -> Json {
    let count = [2, 10, 100, 1_000][c.at(8) % 4];
    let turn = format!("k{place}");
    match c.at(7) % 24 {
        16..=18 => json!({"op": "try", "try": [step], "catch": []}),
        19 => json!({"op": "seq", "steps": [set(&turn, json!(0)), {"op": "while",
            "condition": binary("<", id(&turn), lit(count)),
            "body": [step, set(&turn, binary("+", id(&turn), lit(1)))]}]}),
        20 => json!({"op": "seq", "steps": [set(&turn, json!(0)), {"op": "while",
            "condition": format!("{turn} < {count}"),
            "body": [step, set(&turn, binary("+", id(&turn), lit(1)))]}]}),
        21 => json!({"op": "scope", "steps": [step]}),
        22 => json!({"op": "memoize", "steps": [step], "result": "x1"}),
        23 => json!({"op": "map", "items": id(Kind::List.names()[c.at(8) % 3]), "as": "it",
            "steps": [step, set("result", id("it"))], "result": "x1"}),
        _ => step,
    }
}

fn kind_of(receiver: Receiver, choice: usize) -> Kind {
    match receiver {
        Receiver::Text => Kind::Text,
        Receiver::Number => Kind::Number,
        Receiver::Array => Kind::List,
        Receiver::Set | Receiver::Map => Kind::Set,
        Receiver::Date => Kind::Date,
        Receiver::Any => [Kind::Text, Kind::List, Kind::Object, Kind::Number][choice % 4],
    }
}

/// Kind of the result of a method or function that is called on a value of this kind.
fn kind_given(gives: Gives, of: Kind) -> Kind {
    match gives {
        Gives::List | Gives::Texts | Gives::Items => Kind::List,
        Gives::Part | Gives::Joined | Gives::Itself => of,
        Gives::Text => Kind::Text,
        Gives::Object => Kind::Object,
        Gives::Date => Kind::Date,
        Gives::Set => Kind::Set,
        Gives::Number | Gives::Index | Gives::Bool | Gives::Item | Gives::Unknown => Kind::Any,
    }
}

fn method_call(c: &Choices<'_>) -> (String, Kind, Json) {
    let row = &METHODS[c.row() % METHODS.len()];
    let kind = kind_of(row.on[c.at(11) / 4 % row.on.len()], c.at(11) / 16);
    let receiver = match c.at(3) {
        250.. => json!({"$expr": "array", "elements": [c.any(3), c.any(4), c.any(5)]}),
        _ => c.operand(3, kind),
    };
    let arguments = c.at(11) % 4;
    let mut list: Vec<Json> = [4, 5, 6].map(|place| c.any(place)).to_vec();
    if row.calls {
        list[0] = function_value(c.at(4));
    }
    list.truncate(arguments.max(usize::from(row.calls)));
    let call = method(receiver, row.name, list);
    (format!(".{}", row.name), kind_given(row.gives, kind), call)
}

fn function_call(c: &Choices<'_>) -> (String, Kind, Json) {
    let row = &FUNCTIONS[c.row() % FUNCTIONS.len()];
    let mut list: Vec<Json> = [3, 4, 5].map(|place| c.any(place)).to_vec();
    list.truncate(match c.at(10) % 8 {
        0 => 0,
        1..=4 => 1,
        5 | 6 => 2,
        _ => 3,
    });
    let (shown, value) = match row.ns {
        "" => (row.name.to_owned(), call(row.name, list)),
        ns => (format!("{ns}.{}", row.name), method(id(ns), row.name, list)),
    };
    (shown, kind_given(row.gives, Kind::Any), value)
}

fn atom(c: &Choices<'_>) -> (String, Json) {
    let (atom, schema) = &ATOMS[c.row() % ATOMS.len()];
    let name = atom.sig.name.as_ref();
    let target = NAMES[c.at(9) % NAMES.len()];
    let mut step = json!({"op": name, "result": target});
    let Params::Named(params) = &atom.sig.params else {
        step["args"] = json!([c.any(3), c.any(4)]);
        return (name.to_owned(), step);
    };
    for (place, param) in params.iter().enumerate() {
        // Optional inputs are sometimes left out.
        let at = 3 + place % 4;
        if place > 0 && c.at(10) >> (place % 8) & 1 == 1 && c.at(at).is_multiple_of(2) {
            continue;
        }
        let wanted = &schema["properties"][param.name];
        let kind = match wanted["type"].as_str() {
            Some("string") => Kind::Text,
            Some("number" | "integer") => Kind::Number,
            Some("array") => Kind::List,
            Some("object") => Kind::Object,
            _ => Kind::Any,
        };
        step[param.name] = match (param.binding, param.name) {
            (Binding::Vars | Binding::TemplateVars { .. }, _) => {
                json!({"p": c.any(at), "q": c.any(at + 1)})
            }
            (_, "pattern") => json!(c.pattern()),
            (_, "flags") => json!(tables::FLAGS[c.at(8) % tables::FLAGS.len()]),
            (Binding::Literal, "tmpl") => {
                json!(tables::TEMPLATES[c.at(at) % tables::TEMPLATES.len()])
            }
            (Binding::Literal, _) => json!(tables::TEXTS[c.at(at) % tables::TEXTS.len()]),
            _ if kind == Kind::Any => c.any(at),
            _ => c.operand(at, kind),
        };
    }
    (name.to_owned(), step)
}

fn operator(c: &Choices<'_>) -> (String, Kind, Json) {
    let (l, r) = (c.any(3), c.any(4));
    let (row, kind, value) = match c.at(1) % 32 {
        choice @ 0..14 => {
            let op = OPERATORS[choice];
            let kind = if op == "+" { Kind::Text } else { Kind::Any };
            (op, kind, binary(op, l, r))
        }
        choice @ 14..17 => {
            let op = ["&&", "||", "??"][choice - 14];
            let value = json!({"$expr": "logical", "op": op, "left": l, "right": r});
            (op, Kind::Any, value)
        }
        choice @ 17..21 => {
            let op = ["!", "-", "+", "typeof"][choice - 17];
            let value = json!({"$expr": "unary", "op": op, "argument": l});
            (op, Kind::Any, value)
        }
        21 | 22 => {
            let value = json!({"$expr": "member", "object": l, "property": r, "computed": true});
            ("[]", Kind::Any, value)
        }
        23 => {
            let value = json!({"$expr": "member", "object": l, "property": "length"});
            ("length", Kind::Any, value)
        }
        24..=26 => {
            let list = vec![l; 1 + c.at(10) % 40];
            (
                "array",
                Kind::List,
                json!({"$expr": "array", "elements": list}),
            )
        }
        27 | 28 => {
            let members = 0..1 + c.at(10) % 40;
            let members: Vec<Json> = members
                .map(|i| json!({"key": format!("k{i}"), "value": &l}))
                .collect();
            (
                "object",
                Kind::Object,
                json!({"$expr": "object", "properties": members}),
            )
        }
        29 => {
            let value = json!({"$expr": "conditional", "test": l, "consequent": r,
                "alternate": id("x0")});
            ("?:", Kind::Any, value)
        }
        30 => {
            let data: Json = (0..1 + c.at(10) % 40)
                .map(|i| json!({"n": i, "l": [1, "a", null]}))
                .collect();
            ("data", Kind::List, data)
        }
        _ => {
            let text = binary("+", binary("+", id("s0"), l), r);
            ("+ +", Kind::Text, text)
        }
    };
    (row.to_owned(), kind, value)
}

fn by_schema(c: &Choices<'_>) -> (String, Kind, Json) {
    let schema = tables::schema(c.0[1], &c.0[4..4 + 1 + c.at(11) % 3]);
    let value = c.any(3);
    match c.at(2) % 2 {
        0 => (
            "filter by schema".to_owned(),
            Kind::Any,
            call("filter", vec![value, lit(schema)]),
        ),
        _ => (
            "Schema.isValid by schema".to_owned(),
            Kind::Any,
            method(id("Schema"), "isValid", vec![value, lit(schema)]),
        ),
    }
}

fn form(c: &Choices<'_>, place: usize, helpers: &mut Json) -> (String, Json) {
    let list = || c.operand(3, Kind::List);
    let (_, _, inner) = method_call(&Choices(&{
        let mut inner = *c.0;
        inner.rotate_left(2);
        inner
    }));
    // Body for each item: empty, the item, or an operation on it.
    let each = match c.at(4) % 4 {
        0 => vec![],
        1 => vec![set("result", id("it"))],
        2 => vec![set("result", binary("+", id("it"), c.any(5)))],
        _ => vec![set("result", inner)],
    };
    let target = NAMES[c.at(9) % NAMES.len()];
    let (row, step) = match c.at(1) % 16 {
        0 => (
            "map",
            json!({"op": "map", "items": list(), "as": "it", "steps": each,
            "result": "l2"}),
        ),
        1 => (
            "filter",
            json!({"op": "filter", "items": list(), "as": "it",
            "condition": if c.at(5).is_multiple_of(2) { id("it") } else { json!("it != s0") },
            "result": "l2"}),
        ),
        2 => (
            "find",
            json!({"op": "find", "items": list(), "as": "it",
            "condition": "it == x0", "result": target}),
        ),
        3 => (
            "reduce",
            json!({"op": "reduce", "items": list(), "as": "it",
            "accumulator": "acc", "initial": 0, "steps": each, "result": target}),
        ),
        4 => (
            "memoize",
            json!({"op": "memoize", "key": c.any(5),
            "steps": [set("result", c.any(6))], "result": target}),
        ),
        5 => (
            "memoize",
            json!({"op": "memoize", "steps": [set("result", c.any(6))],
            "result": target}),
        ),
        6 | 7 => {
            let name = format!("h{place}");
            let schema = tables::schema(c.0[2], &c.0[4..6]);
            let last = match c.at(1) / 16 % 3 {
                0 => json!({"op": "return", "value": id("m")}),
                1 => json!({"op": "return", "value": {"m": id("m")}}),
                _ => json!({"op": "return", "schema":
                    {"type": "object", "properties": {"m": schema}}}),
            };
            helpers[&name] = json!({"paramNames": ["m"], "steps": [last]});
            (
                "callLocal",
                json!({"op": "callLocal", "name": name, "args": [c.any(5)],
                "result": target}),
            )
        }
        8 => {
            let name = format!("r{place}");
            let depth = [3, 30, 100][c.at(5) % 3];
            helpers[&name] = json!({"paramNames": ["m"], "steps": [
                {"op": "if", "condition": "m < 1", "then": [{"op": "return", "value": lit(0)}]},
                {"op": "callLocal", "name": &name, "args": [binary("-", id("m"), lit(1))],
                    "result": "q"},
                {"op": "return", "value": id("q")}]});
            (
                "callLocal",
                json!({"op": "callLocal", "name": name,
                "args": [depth], "result": target}),
            )
        }
        9 => (
            "if",
            json!({"op": "if", "then": [],
            "condition": tables::CONDITIONS[c.at(5) % tables::CONDITIONS.len()]}),
        ),
        10 => (
            "mathCalc",
            json!({"op": "mathCalc", "result": target,
            "expr": tables::FORMULAS[c.at(5) % tables::FORMULAS.len()]}),
        ),
        11 => (
            "Error",
            json!({"op": "try", "try": [{"op": "Error", "args": [c.any(5)]}],
            "catch": []}),
        ),
        12 => {
            let row = if c.at(5).is_multiple_of(2) {
                "agentRun"
            } else {
                "runCode"
            };
            let key = if row == "agentRun" { "agentId" } else { "code" };
            let program = json!({"op": "seq", "steps": [
                {"op": "return", "value": {"t": {"$expr": "ident", "name": "a"}}}]});
            (
                row,
                json!({"op": row, key: program, "input": {"a": c.any(6)},
                "args": {"a": c.any(6)}, "result": target}),
            )
        }
        13 => (
            "varsExport",
            json!({"op": "varsExport", "keys": [NAMES[c.at(5) % NAMES.len()]],
            "result": target}),
        ),
        14 => (
            "varsLet",
            json!({"op": "scope", "steps": [
            {"op": "varsLet", "z": c.any(5)}, set(target, id("z"))]}),
        ),
        _ => (
            "push",
            json!({"op": "push", "list": Kind::List.names()[c.at(5) % 3],
            "item": c.any(6)}),
        ),
    };
    (row.to_owned(), step)
}
