//! Tests that forms outside of the subset are refused at their place, with a form that works.

use a99_core::diag::Severity;
use a99_source::codes::*;

/// Statements of an agent with `a`, `items` and a function `f`: the code, the reported text, and
/// a part of the help.
const DENIED: [(&str, &str, &str, &str); 105] = [
    (
        "let last; try { f(a) } catch (e) { last = e } return { last }",
        UNSUPPORTED,
        "e",
        "asked for `last.message`",
    ),
    (
        "const g = (k) => k(1); return [g((x) => x), g(a)]",
        UNSUPPORTED,
        "k(1)",
        "apart from data",
    ),
    (
        "return a.toLocaleString('de-DE')",
        UNSUPPORTED,
        "a.toLocaleString('de-DE')",
        "one locale",
    ),
    (
        "return a.toLocaleString(items)",
        UNSUPPORTED,
        "a.toLocaleString(items)",
        "one locale",
    ),
    (
        "return a.toLocaleString('en-US', { era: 'short' })",
        UNSUPPORTED,
        "a.toLocaleString('en-US', { era: 'short' })",
        "minimumFractionDigits",
    ),
    (
        "return a.toLocaleString(undefined, items)",
        UNSUPPORTED,
        "a.toLocaleString(undefined, items)",
        "write the options there",
    ),
    (
        "const m = a.match(/(b)/); m.push(1)",
        UNSUPPORTED,
        "m.push(1)",
        "[...match]",
    ),
    (
        "return a.match(/(b)/).sort()",
        UNSUPPORTED,
        "a.match(/(b)/).sort()",
        "[...match]",
    ),
    (
        "return a.match(/(?<constructor>b)/)",
        UNSUPPORTED,
        "/(?<constructor>b)/",
        "another name",
    ),
    (
        "return Number.isNaN(new Date(a))",
        BAD_CALL,
        "Number.isNaN(new Date(a))",
        "getTime()",
    ),
    (
        "Object.assign(a, items)",
        UNSUPPORTED,
        "Object.assign(a, items)",
        "target.y = 2",
    ),
    (
        "const o = {}; return Object.assign(o, { y: 2 })",
        UNSUPPORTED,
        "Object.assign(o, { y: 2 })",
        "...target",
    ),
    (
        "return Object.assign(f(a), { y: 2 })",
        UNSUPPORTED,
        "Object.assign(f(a), { y: 2 })",
        "...target",
    ),
    (
        "return a.localeCompare(items, 'de', { numeric: true })",
        UNSUPPORTED,
        "a.localeCompare(items, 'de', { numeric: true })",
        "sensitivity",
    ),
    ("class A extends f {}", UNSUPPORTED, "f", "both classes"),
    (
        "const A = class {}",
        UNSUPPORTED,
        "class {}",
        "plain objects",
    ),
    ("return this", UNSUPPORTED, "this", "parameters"),
    ("return new Map()", UNSUPPORTED, "new Map()", "fromEntries"),
    (
        "return new RegExp(a)",
        UNSUPPORTED,
        "new RegExp(a)",
        "return its members",
    ),
    ("return new Foo()", UNSUPPORTED, "new Foo()", "dates, sets"),
    (
        "return new Date(1, 2, 3, 4, 5, 6, 7, 8)",
        UNSUPPORTED,
        "new Date(1, 2, 3, 4, 5, 6, 7, 8)",
        "milliseconds",
    ),
    (
        "const d = new Date(a); d.setDate(1); items.push(d)",
        UNSUPPORTED,
        "d",
        "`new Date(d)`",
    ),
    (
        "const d = new Date(a); d.setDate(1); const e = d",
        UNSUPPORTED,
        "d",
        "`new Date(d)`",
    ),
    (
        "let d = new Date(a); d.setDate(1); d = items[0]",
        UNSUPPORTED,
        "items[0]",
        "d = new Date(...)",
    ),
    (
        "items[0].setUTCHours(1)",
        UNSUPPORTED,
        "items[0].setUTCHours(1)",
        "const d = new Date(date)",
    ),
    (
        "const d = new Date(a); const g = () => { d.setDate(1); return 1 }; g()",
        UNSUPPORTED,
        "d.setDate(1)",
        "where it was made",
    ),
    (
        "const d = new Date(a); d.setDate(1, 2)",
        BAD_CALL,
        "d.setDate(1, 2)",
        "d.setDate(value)",
    ),
    (
        "return new Date(a).toLocaleDateString('de-DE')",
        UNSUPPORTED,
        "new Date(a).toLocaleDateString('de-DE')",
        "'en-US'",
    ),
    (
        "return new Intl.NumberFormat('en-US', { notation: 'scientific' }).format(a)",
        UNSUPPORTED,
        "new Intl.NumberFormat('en-US', { notation: 'scientific' })",
        "`useGrouping`",
    ),
    (
        "const o = Object.freeze({ n: 1 }); o.n = 2",
        UNSUPPORTED,
        "o.n",
        "...frozen",
    ),
    (
        "const l = Object.freeze([1]); l.push(2)",
        UNSUPPORTED,
        "l.push(2)",
        "...frozen",
    ),
    (
        "return function* () {}",
        UNSUPPORTED,
        "function* () {}",
        "name it",
    ),
    ("return eval(a)", UNSUPPORTED, "eval", "the code itself"),
    (
        "return require(a)",
        UNSUPPORTED,
        "require",
        "nothing is imported",
    ),
    (
        "return process.env.A",
        UNSUPPORTED,
        "process",
        "context('env.NAME')",
    ),
    ("setTimeout(a, 5)", UNSUPPORTED, "setTimeout", "remove it"),
    (
        "return a.contains(1)",
        BAD_CALL,
        "a.contains",
        ".includes(x)",
    ),
    ("return a.length()", BAD_CALL, "a.length", "without a call"),
    (
        "return new Date(a).getYear()",
        BAD_CALL,
        "new Date(a).getYear",
        "getFullYear",
    ),
    (
        "return delay(5)",
        UNKNOWN_NAME,
        "delay",
        "await sleep({ ms })",
    ),
    (
        "return sleep(5)",
        BAD_CALL,
        "sleep(5)",
        "sleep({ ms: value })",
    ),
    ("return (x) => x", UNSUPPORTED, "(x) => x", "no data"),
    ("return f", UNSUPPORTED, "f", "no data"),
    ("return Math", UNSUPPORTED, "Math", "call it"),
    ("return 10n", UNSUPPORTED, "10n", "2 ** 53"),
    ("return /a/", UNSUPPORTED, "/a/", "return its members"),
    ("return a`x`", UNSUPPORTED, "a`x`", "call a function"),
    ("return [1, , 2]", UNSUPPORTED, ",", "undefined"),
    (
        "return { get x() { return 1 } }",
        UNSUPPORTED,
        "get x() { return 1 }",
        "call it",
    ),
    (
        "return { x() { return 1 } }",
        UNSUPPORTED,
        "{ x() { return 1 } }",
        "no data",
    ),
    (
        "return { __proto__: a }",
        UNSUPPORTED,
        "__proto__: a",
        "no prototypes",
    ),
    ("return { x: 1, x: 2 }", BAD_BINDING, "x: 2", "drop one"),
    ("for (a of items) {}", UNSUPPORTED, "a", "declare"),
    (
        "x: { if (a) break x }",
        UNSUPPORTED,
        "x: { if (a) break x }",
        "function",
    ),
    (
        "x: for (const y of items) { try { for (const z of y) continue x } finally { f() } }",
        UNSUPPORTED,
        "continue x",
        "into a function",
    ),
    (
        "try { f() } catch (e) { return e }",
        UNSUPPORTED,
        "e",
        "e.message",
    ),
    (
        "try { f() } catch (e) { return e.stack }",
        UNSUPPORTED,
        "e.stack",
        "`message`",
    ),
    (
        "const re = /a/; return [re]",
        UNSUPPORTED,
        "[re]",
        "return its members",
    ),
    ("const re = /a/; re = a", BAD_BINDING, "re", "another name"),
    (
        "const re = /a/; return a.includes(re)",
        UNSUPPORTED,
        "re",
        "matchAll",
    ),
    ("break", UNSUPPORTED, "break", "callback"),
    ("return b", UNKNOWN_NAME, "b", "as an argument"),
    ("b = 1", UNKNOWN_NAME, "b", "let b"),
    ("return itmes", UNKNOWN_NAME, "itmes", "`items`"),
    ("const b = b + 1", BAD_BINDING, "b", "declare it first"),
    ("const b = 1; b = 2", BAD_BINDING, "b", "`let`"),
    ("let b = 1; let b = 2", BAD_BINDING, "b", "another name"),
    ("f = 1", BAD_BINDING, "f", "another name"),
    (
        "const g = () => n; g(); const n = 1",
        BAD_BINDING,
        "g()",
        "before the call",
    ),
    (
        "await memoize({ key: 'k', steps: () => { a = 1 } })",
        BAD_BINDING,
        "a",
        "return the value",
    ),
    ("a.length = 5", UNSUPPORTED, "a.length", "splice"),
    ("a()", UNSUPPORTED, "a()", "declare it"),
    ("a.b()()", UNSUPPORTED, "a.b()", "by their names"),
    ("f?.(a)", UNSUPPORTED, "f?.(a)", "without `?.`"),
    ("return context(a)", UNSUPPORTED, "context(a)", "user.id"),
    (
        "const context = 1; return context('user.id')",
        UNSUPPORTED,
        "context('user.id')",
        "function",
    ),
    (
        "Math.hypot(...items)",
        UNSUPPORTED,
        "...items",
        "one by one",
    ),
    ("agent({})", UNSUPPORTED, "agent({})", "function of its own"),
    (
        "return fetch(a)",
        UNSUPPORTED,
        "fetch",
        "await httpFetch({ url })",
    ),
    (
        "return len(items)",
        BAD_CALL,
        "len(items)",
        "`xs.length`, or `await len({ list: xs })`",
    ),
    ("return len({ items })", BAD_CALL, "items", "list"),
    ("return len({})", BAD_CALL, "len({})", "list"),
    ("return len({ ...a })", UNSUPPORTED, "...a", "one by one"),
    (
        "return len({ list: a, result: 'x' })",
        BAD_CALL,
        "result: 'x'",
        "const name",
    ),
    (
        "map({ items, as: 'x' })",
        UNSUPPORTED,
        "map({ items, as: 'x' })",
        "items.map",
    ),
    (
        "return a.frobnicate()",
        BAD_CALL,
        "a.frobnicate",
        "builtins",
    ),
    (
        "return a.toUppercase()",
        BAD_CALL,
        "a.toUppercase",
        "toUpperCase",
    ),
    ("return a.then(f)", UNSUPPORTED, "a.then(f)", "await"),
    (
        "return a.match('x')",
        UNSUPPORTED,
        "a.match('x')",
        "regular expression",
    ),
    (
        "return Math.sum(a)",
        UNSUPPORTED,
        "Math.sum",
        "`Math` has `abs`",
    ),
    (
        "return Math.TAU",
        UNSUPPORTED,
        "Math.TAU",
        "`Math` has `abs`",
    ),
    (
        "return Date('2026')",
        UNSUPPORTED,
        "Date('2026')",
        "new Date",
    ),
    (
        "return a instanceof Map",
        UNSUPPORTED,
        "a instanceof Map",
        "typeof",
    ),
    (
        "return items.map(a)",
        UNSUPPORTED,
        "items.map(a)",
        ".map((x) => ...)",
    ),
    (
        "items.map((x, i, all, more) => more)",
        UNSUPPORTED,
        "more",
        "constant",
    ),
    (
        "return callAll({ calls: items })",
        UNSUPPORTED,
        "callAll({ calls: items })",
        "calls: [a(",
    ),
    (
        "return Promise.race(items)",
        UNSUPPORTED,
        "Promise.race(items)",
        "Promise.all",
    ),
    (
        "return items.reduceRight((x, y, i) => x + i)",
        UNSUPPORTED,
        "items.reduceRight((x, y, i) => x + i)",
        "toReversed",
    ),
    (
        "return items.findLastIndex((x, i, all) => all)",
        UNSUPPORTED,
        "items.findLastIndex((x, i, all) => all)",
        "name the list before",
    ),
    (
        "let b; return ([b] = items)",
        UNSUPPORTED,
        "[b] = items",
        "statement of its own",
    ),
    (
        "for (a in items) {}",
        UNSUPPORTED,
        "a",
        "const key in object",
    ),
    (
        "return a.replace(items[0], (m) => m)",
        UNSUPPORTED,
        "a.replace(items[0], (m) => m)",
        "regular expression literal",
    ),
    (
        "return a.replaceAll(/b/, (m) => m)",
        UNSUPPORTED,
        "/b/",
        "flag `g`",
    ),
    (
        "return await Promise.allSettled(items)",
        UNSUPPORTED,
        "Promise.allSettled(items)",
        "urls.map",
    ),
    (
        "return a instanceof Error",
        UNSUPPORTED,
        "a instanceof Error",
        "typeof",
    ),
];

#[test]
fn forms_outside_are_refused_in_place() {
    let atoms = a99_atoms::all_atoms();
    let mut wrong = Vec::new();
    for (code, is, offending, help) in DENIED {
        let source = format!(
            "export async function agent({{ a, items }}) {{\n  {code}\n}}\nfunction f(x) {{ return 1 }}"
        );
        let Err(found) = a99_source::read(&source, &atoms) else {
            wrong.push(format!("accepted: {code}\n"));
            continue;
        };
        let shown = found.render(Some(("a.ajs", source.as_bytes())));
        let errors = found
            .iter()
            .filter(|found| found.severity == Severity::Error);
        let fits = errors.into_iter().any(|found| {
            let at = found.span.clone().unwrap_or_default();
            found.code == is
                && &source[at.start as usize..at.end as usize] == offending
                && found
                    .help
                    .as_deref()
                    .is_some_and(|text| text.contains(help))
                && found.region.is_some_and(|region| region.line == 2)
        });
        if !fits {
            wrong.push(format!("{code}: {is}, `{offending}`, {help}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
