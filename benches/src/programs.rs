//! Programs of the benchmarks as JSON text, with their inputs.

use a99_benches_work::inputs;
use agent99::{Value, json};

/// W1: the condition, once a run, with operands from the arguments.
pub const CONDITION: &str = r#"{"op": "seq", "steps": [
    {"op": "if", "condition": "a*b + c/d - e%f > 10 && name == \"x\"",
     "then": [{"op": "return", "value": {"ok": true}}]}
]}"#;

/// W1 with bound variables: the condition in every turn of a loop.
pub const CONDITION_LOOP: &str = r#"{"op": "seq", "steps": [
    {"op": "varsImport", "keys": ["a", "b", "c", "d", "e", "f", "name", "n"]},
    {"op": "varSet", "key": "i", "value": 0},
    {"op": "varSet", "key": "hits", "value": 0},
    {"op": "while", "condition": "i < n", "body": [
        {"op": "if", "condition": "a*b + c/d - e%f > 10 && name == \"x\"",
         "then": [{"op": "varSet", "key": "hits",
                   "value": {"$expr": "binary", "op": "+",
                             "left": {"$expr": "ident", "name": "hits"}, "right": 1}}]},
        {"op": "varSet", "key": "i",
         "value": {"$expr": "binary", "op": "+",
                   "left": {"$expr": "ident", "name": "i"}, "right": 1}}
    ]},
    {"op": "return", "schema": {"type": "object", "properties": {"hits": {}}}}
]}"#;

/// The inputs of W1; the condition holds.
pub fn condition_args(turns: u32) -> Value {
    json!({"a": 3.5, "b": 4, "c": 9, "d": 2, "e": 7, "f": 4, "name": "x", "n": turns}).into()
}

/// W2: `s = s + i * i % 7` in every turn.
pub fn sum_of_remainders() -> String {
    sum(r#"{"$expr": "binary", "op": "%", "left": SQUARE, "right": 7}"#)
}

/// W2d: `s = s + i * i` in every turn.
pub fn sum_of_squares() -> String {
    sum("SQUARE")
}

/// W2 with the expression as text.
pub fn sum_by_calc() -> String {
    let step = r#"{"op": "mathCalc", "expr": "s + i * i % 7", "result": "s"},"#;
    counted(step, &[], "s")
}

fn sum(term: &str) -> String {
    const SQUARE: &str = r#"{"$expr": "binary", "op": "*",
        "left": {"$expr": "ident", "name": "i"}, "right": {"$expr": "ident", "name": "i"}}"#;
    let body = r#"{"op": "varSet", "key": "s",
        "value": {"$expr": "binary", "op": "+", "left": {"$expr": "ident", "name": "s"},
                  "right": TERM}},"#;
    counted(
        &body.replace("TERM", term).replace("SQUARE", SQUARE),
        &[],
        "s",
    )
}

/// A loop that counts `i` to the argument `n`, and runs these steps before it counts. It imports
/// these arguments; the variable `s` starts at 0; the result is `result`.
fn counted(steps: &str, imports: &[&str], result: &str) -> String {
    let imports: String = imports.iter().map(|name| format!(", \"{name}\"")).collect();
    format!(
        r#"{{"op": "seq", "steps": [
            {{"op": "varSet", "key": "s", "value": 0}},
            {{"op": "varSet", "key": "i", "value": 0}},
            {{"op": "varsImport", "keys": ["n"{imports}]}},
            {{"op": "while", "condition": "i < n", "body": [
                {steps}
                {{"op": "varSet", "key": "i",
                  "value": {{"$expr": "binary", "op": "+",
                             "left": {{"$expr": "ident", "name": "i"}}, "right": 1}}}}
            ]}},
            {{"op": "return", "schema": {{"type": "object", "properties": {{"{result}": {{}}}}}}}}
        ]}}"#
    )
}

/// A loop that only counts: the others are measured net of it.
pub fn empty_loop() -> String {
    counted("", &[], "i")
}

/// A loop that runs these steps, as JSON text, in every turn. It imports `n` and these arguments.
pub fn looped(steps: &str, imports: &[&str]) -> String {
    counted(&format!("{steps},"), imports, "i")
}

/// W7: calls the host function `op` in every turn, and returns the last answer.
pub fn host_call_loop(op: &str) -> String {
    let step = format!(r#"{{"op": "{op}", "x": "i", "result": "s"}},"#);
    counted(&step, &[], "s")
}

/// The argument of the loops.
pub fn turns(n: u32) -> Value {
    json!({"n": n}).into()
}

/// W3: a recursive helper.
pub const FIBONACCI: &str = r#"{"op": "seq",
    "helpers": {"fib": {"paramNames": ["n"], "steps": [
        {"op": "if", "condition": "n < 2", "then": [{"op": "return", "value": "n"}]},
        {"op": "callLocal", "name": "fib", "result": "a",
         "args": [{"$expr": "binary", "op": "-",
                   "left": {"$expr": "ident", "name": "n"}, "right": 1}]},
        {"op": "callLocal", "name": "fib", "result": "b",
         "args": [{"$expr": "binary", "op": "-",
                   "left": {"$expr": "ident", "name": "n"}, "right": 2}]},
        {"op": "return", "value": {"$expr": "binary", "op": "+",
         "left": {"$expr": "ident", "name": "a"}, "right": {"$expr": "ident", "name": "b"}}}]}},
    "steps": [
        {"op": "varsImport", "keys": ["n"]},
        {"op": "callLocal", "name": "fib", "args": ["n"], "result": "f"},
        {"op": "return", "schema": {"type": "object", "properties": {"f": {}}}}
    ]}"#;

/// W4: objects built, mapped, filtered, reduced, and counted by a field.
pub const ROWS_BY_TAG: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "varsImport", "keys": ["ids", "tags"]},
    {"op": "map", "items": "ids", "as": "i", "result": "rows", "steps": [
        {"op": "varSet", "key": "result",
         "value": {"id": {"=": "i"}, "price": {"=": "i % 97 + 0.5"}, "qty": {"=": "i % 5 + 1"},
                   "tag": {"=": "tags[i % 4]"}}}]},
    {"op": "map", "items": "rows", "as": "row", "result": "totals", "steps": [
        {"op": "varSet", "key": "result",
         "value": {"id": {"=": "row.id"}, "tag": {"=": "row.tag"}, "total": {"=": "row.price * row.qty"}}}]},
    {"op": "filter", "items": "totals", "as": "t", "condition": "t.total > 50",
     "result": "large"},
    {"op": "reduce", "items": "large", "as": "t", "accumulator": "sum", "initial": 0,
     "result": "sum", "steps": [
        {"op": "varSet", "key": "result", "value": {"=": "sum + t.total"}}]},
    {"op": "varSet", "key": "counts", "value": {}},
    {"op": "forEach", "items": "large", "as": "t", "steps": [
        {"op": "memberSet", "object": "counts", "key": "t.tag",
         "value": {"=": "(counts[t.tag] ?? 0) + 1"}}]},
    {"op": "return", "schema": {"type": "object", "properties": {"sum": {}, "counts": {}}}}
]}"#;

/// The inputs of [`ROWS_BY_TAG`].
pub fn items(n: u32) -> Value {
    json!({"ids": (0..n).collect::<Vec<_>>(), "tags": inputs::TAGS}).into()
}

/// W5: a text split, its parts in templates, joined.
pub const WORDS: &str = r#"{"op": "seq", "steps": [
    {"op": "varsImport", "keys": ["text"]},
    {"op": "split", "str": "text", "sep": " ", "result": "words"},
    {"op": "map", "items": "words", "as": "word", "result": "lines", "steps": [
        {"op": "template", "tmpl": "<li>{{word}}</li>", "vars": {"word": "word"},
         "result": "result"}]},
    {"op": "join", "list": "lines", "sep": "\n", "result": "page"},
    {"op": "return", "schema": {"type": "object", "properties": {"page": {}}}}
]}"#;

/// The inputs of [`WORDS`].
pub fn words(n: u32) -> Value {
    json!({"text": inputs::text(n)}).into()
}

/// W6: a JSON document parsed, transformed and written.
pub const ORDERS: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "varsImport", "keys": ["text"]},
    {"op": "jsonParse", "str": "text", "result": "orders"},
    {"op": "map", "items": "orders", "as": "order", "result": "short", "steps": [
        {"op": "pick", "obj": "order", "keys": ["id", "customer", "total"], "result": "picked"},
        {"op": "keys", "obj": "order", "result": "names"},
        {"op": "len", "list": "names", "result": "fields"},
        {"op": "merge", "a": "picked", "b": {"seen": true, "fields": {"=": "fields"}}, "result": "result"}]},
    {"op": "jsonStringify", "value": "short", "result": "written"},
    {"op": "return", "schema": {"type": "object", "properties": {"written": {}}}}
]}"#;

/// The inputs of [`ORDERS`].
pub fn orders(n: u32) -> Value {
    json!({"text": inputs::orders(n)}).into()
}

/// W8: an agent of ten steps.
pub const TEN_STEPS: &str = r#"{"op": "seq", "steps": [
    {"op": "varsImport", "keys": ["name", "price", "quantity", "tags"]},
    {"op": "mathCalc", "expr": "price * quantity", "result": "total"},
    {"op": "varSet", "key": "discount", "value": 0},
    {"op": "if", "condition": "total > 100",
     "then": [{"op": "varSet", "key": "discount", "value": 0.1}]},
    {"op": "mathCalc", "expr": "total * (1 - discount)", "result": "net"},
    {"op": "len", "list": "tags", "result": "count"},
    {"op": "template", "tmpl": "{{name}} owes {{net}}",
     "vars": {"name": "name", "net": "net"}, "result": "text"},
    {"op": "varSet", "key": "label",
     "value": {"$expr": "methodCall", "object": {"$expr": "ident", "name": "name"},
               "method": "toUpperCase", "arguments": []}},
    {"op": "join", "list": "tags", "sep": ",", "result": "joined"},
    {"op": "return", "schema": {"type": "object", "properties":
        {"net": {}, "count": {}, "text": {}, "label": {}, "joined": {}}}}
]}"#;

/// The inputs of [`TEN_STEPS`].
pub fn ten_steps_args() -> Value {
    json!({"name": "Ada", "price": 12.5, "quantity": 10, "tags": ["a", "b", "c"]}).into()
}

/// W9: a run that waits for the host forever.
pub const SUSPENDED: &str = r#"{"op": "seq", "steps": [
    {"op": "varSet", "key": "i", "value": 1},
    {"op": "wait", "x": "i", "result": "answer"},
    {"op": "return", "schema": {"type": "object", "properties": {"answer": {}}}}
]}"#;

/// A program with this many steps, for measuring compilation.
pub fn many_steps(n: usize) -> String {
    let step = r#"{"op": "mathCalc", "expr": "x * 2 + y / 3", "result": "x"}"#;
    let steps = vec![step; n].join(",\n");
    format!(
        r#"{{"op": "seq", "steps": [
            {{"op": "varsImport", "keys": ["x", "y"]}}, {steps},
            {{"op": "return", "schema": {{"type": "object", "properties": {{"x": {{}}}}}}}}]}}"#
    )
}

/// A program of about `n` steps of most kinds, in an author's style: each ten steps bind, test,
/// loop, fill a template and call a builtin.
pub fn mixed_steps(n: usize) -> String {
    let round = |i: usize| {
        format!(
            r#"{{"op": "varSet", "key": "n{i}", "value": {i}}},
            {{"op": "mathCalc", "expr": "n{i} * 2 + total", "result": "total"}},
            {{"op": "if", "condition": "total > {i} && names.length > 1",
              "then": [{{"op": "varSet", "key": "label", "value": "large"}}],
              "else": [{{"op": "varSet", "key": "label", "value": "small"}}]}},
            {{"op": "template", "tmpl": "{{{{label}}}}: {{{{n}}}}", "vars": {{"label": "label", "n": "n{i}"}}, "result": "line{i}"}},
            {{"op": "push", "list": "lines", "item": "line{i}"}},
            {{"op": "forEach", "items": "names", "as": "name", "steps": [
              {{"op": "varSet", "key": "last", "value": {{"$expr": "methodCall", "object": {{"$expr": "ident", "name": "name"}}, "method": "trim", "arguments": []}}}}]}},
            {{"op": "filter", "items": "names", "as": "name", "condition": "name.length > {i}", "result": "long{i}"}},
            {{"op": "len", "list": "long{i}", "result": "total"}}"#
        )
    };
    let rounds: Vec<String> = (0..n.div_ceil(10)).map(round).collect();
    format!(
        r#"{{"op": "seq", "steps": [
            {{"op": "varsImport", "keys": ["names"]}},
            {{"op": "varsLet", "total": 0, "lines": [], "last": "", "label": ""}},
            {},
            {{"op": "return", "schema": {{"type": "object", "properties": {{"total": {{}}, "lines": {{}}, "last": {{}}}}}}}}]}}"#,
        rounds.join(",\n")
    )
}

/// A source of a hundred lines: a helper, loops, callbacks, texts.
pub fn hundred_lines() -> String {
    let mut lines = vec![
        "export default function agent({ orders, rate = 0.25, names }) {".to_owned(),
        "  let total = 0".to_owned(),
    ];
    for part in 0..12 {
        let block = [
            format!("  const kept{part} = orders.filter((order) => order.count > {part})"),
            format!("  for (const order of kept{part}) {{"),
            "    if (order.price < 0) throw new Error(`price of ${order.name}`)".to_owned(),
            "    total += amount(order) * (1 + rate)".to_owned(),
            "  }".to_owned(),
            format!("  const names{part} = kept{part}.map((order) => order.name.trim())"),
            format!("  const first{part} = names{part}[0] ?? 'none'"),
            format!("  if (first{part} === names) return {{ total, first: first{part} }}"),
        ];
        lines.extend(block);
    }
    lines.push("  return { total } }".to_owned());
    lines.push("const amount = ({ price, count }) => price * count".to_owned());
    lines.join("\n")
}
