//! Help that cannot be false: what errors say of a program is true of it.

use a99_core::builtins::{FUNCTIONS, METHODS};
use a99_core::sig::{JsonKinds, Params};
use agent99::capabilities::Capabilities;
use agent99::{Engine, RunError, RunOptions, json};
use serde_json::Value as Json;

/// Names of the engine and of the references, which no program of a user has.
const INTERNAL: &[&str] = &[
    "AsyncJS",
    "vm.run()",
    "timeoutMs",
    "maxHeapBytes",
    "toReversed",
    "items is not",
    "memberSet",
    "memberDelete",
    "Type error",
];

/// Values of each kind, and what help calls them.
fn values() -> Vec<(Json, &'static str)> {
    vec![
        (json!(null), "null"),
        (json!(true), "true"),
        (json!(5), "the number 5"),
        (json!("zq"), "the text \"zq\""),
        (json!([7]), "a list of 1"),
        (json!({"zk": 1}), "an object"),
    ]
}

/// The parts of a text that stand in backticks, each with what follows.
fn quoted(text: &str) -> Vec<(&str, &str)> {
    let mut parts = text.split('`');
    let _ = parts.next();
    let mut found = Vec::new();
    while let (Some(code), Some(behind)) = (parts.next(), parts.next()) {
        found.push((code, behind));
    }
    found
}

/// Holds an error against the program: its text, and what the value in it is.
fn check(program: &str, error: &RunError, value: &str, name: &str, is_source: bool) {
    let help = error.help.clone().unwrap_or_default();
    let message = error.message.to_string_lossy();
    let shown = format!("{program}\n{message}\n{help}");
    for internal in INTERNAL.iter().filter(|name| !program.contains(**name)) {
        let in_message = is_source && message.contains(internal);
        assert!(
            !in_message && !help.contains(internal),
            "{internal}: {shown}"
        );
    }
    for (code, behind) in quoted(&help) {
        // An advice says what is not there yet.
        if help.contains("did you mean") && behind.starts_with('?') {
            continue;
        }
        assert!(program.contains(code), "`{code}`: {shown}");
        if let Some(found) = behind.strip_prefix(" is ")
            && !behind.starts_with(" is called on ")
        {
            let is_its = code == name || program.contains(&format!("{code}: {name}"));
            let is_json = program.contains(&format!(
                "\"{code}\":{{\"$expr\":\"ident\",\"name\":\"{name}\"}}"
            ));
            if is_its || is_json {
                assert!(found.starts_with(value), "{found} for {value}: {shown}");
            }
        }
        if let Some(found) = behind.strip_prefix(" is called on ") {
            assert!(found.starts_with(value), "{found} for {value}: {shown}");
        }
    }
}

/// A value that an input takes.
fn fitting(kinds: JsonKinds) -> Json {
    let of = [
        (JsonKinds::STRING, json!("hi")),
        (JsonKinds::OBJECT, json!({"id": "a"})),
        (JsonKinds::ARRAY, json!(["a"])),
        (JsonKinds::NUMBER, json!(1)),
        (JsonKinds::BOOLEAN, json!(true)),
    ];
    let fits = of.into_iter().find(|(kind, _)| kinds.contains(*kind));
    fits.map_or(json!("hi"), |(_, value)| value)
}

fn run(engine: &Engine, agent: &agent99::Agent, args: Json) -> Option<RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let options = RunOptions::new().timeout_ms(5_000);
    let run = engine.run(agent, args, options, Capabilities::none());
    runtime.block_on(run).error
}

/// No atom whose capability is missing says that an input is, which was given.
#[test]
fn u1_atoms_without_their_grant_say_nothing_false() {
    let engine = Engine::builder().atoms(agent99::all_atoms()).build();
    let (mut refused, mut ran) = (0, 0);
    for atom in agent99::all_atoms().iter() {
        let Params::Named(params) = &atom.sig.params else {
            continue;
        };
        if atom.sig.name.contains(':') {
            continue;
        }
        let mut steps = Vec::new();
        let mut step = json!({"op": &*atom.sig.name, "result": "out"});
        for (at, param) in params.iter().enumerate() {
            let Some(input) = atom.sig.input(param.name) else {
                continue;
            };
            let name = format!("given{at}");
            let value = json!({"$expr": "literal", "value": fitting(input.kinds)});
            steps.push(json!({"op": "varSet", "key": name, "value": value}));
            step[param.name] = json!({"$expr": "ident", "name": name});
        }
        steps.push(step);
        steps.push(json!({"op": "return", "value": {"ok": true}}));
        let program = json!({"a99": 4, "op": "seq", "steps": steps}).to_string();
        // An atom that refuses literals of these kinds does so when it is compiled.
        let Ok(agent) = engine.compile(program.as_str()) else {
            continue;
        };
        ran += 1;
        let Some(error) = run(&engine, &agent, json!({})) else {
            continue;
        };
        refused += 1;
        let help = error.help.unwrap_or_default();
        for word in ["is undefined", "is null", "no variable has"] {
            assert!(!help.contains(word), "{program}\n{}\n{help}", error.message);
        }
    }
    assert!(
        ran > 40 && refused > 10,
        "{ran} ran, {refused} were refused"
    );
}

/// Each builtin and method, called with and on each kind of value.
#[test]
fn u1_builtins_with_wrong_values_say_nothing_false() {
    let engine = Engine::new();
    let mut failed = 0;
    let mut calls = Vec::new();
    for row in METHODS {
        for arguments in ["", "x", "x, x"] {
            calls.push(format!("x.{}({arguments})", row.name));
        }
    }
    for row in FUNCTIONS.iter().filter(|row| row.ns != "Schema") {
        for arguments in ["", "x", "x, x", "x, x, x"] {
            calls.push(format!("{}({arguments})", row.full_name()));
        }
    }
    for call in calls {
        let program = format!("function agent({{ x }}) {{ return {{ out: {call} }} }}");
        // What the subset refuses is refused with its own words.
        let Ok(agent) = engine.compile_source(program.as_str()) else {
            continue;
        };
        for (value, name) in values() {
            if let Some(error) = run(&engine, &agent, json!({ "x": value })) {
                failed += 1;
                check(&program, &error, name, "x", true);
            }
        }
    }
    assert!(failed > 500, "{failed}");
}

/// Forms that become steps and calls of others.
#[test]
fn u1_lowered_forms_with_wrong_values_say_nothing_false() {
    let engine = Engine::new();
    let forms = [
        "for (const a of x) { n += 1 }",
        "for (const [a, b] of x) { n += a }",
        "for (const { a } of x) { n += a }",
        "for (const [i, a] of x.entries()) { n += i }",
        "for (const k in x) { n += 1 }",
        "x.forEach((a) => { n += a })",
        "n = x.map((a) => a + 1)",
        "n = x.map(({ a }) => a)",
        "n = x.filter((a) => a > 1)",
        "n = x.find((a) => a > 1)",
        "n = x.findIndex((a) => a > 1)",
        "n = x.findLast((a) => a > 1)",
        "n = x.some((a) => a > 1)",
        "n = x.every((a) => a > 1)",
        "n = x.reduce((s, a) => s + a, 0)",
        "n = x.reduceRight((s, a) => s + a, 0)",
        "n = x.flatMap((a) => [a])",
        "n = x.sort((a, b) => a - b)",
        "n = x.toSorted((a, b) => a - b)",
        "n = [...x]",
        "n = [1, ...x, 2]",
        "n = { ...x, a: 1 }",
        "n = Math.max(...x)",
        "const l = []; l.push(...x); n = l",
        "const [a, ...b] = x; n = [a, b]",
        "const [a] = x; n = a",
        "const { a, ...b } = x; n = [a, b]",
        "const [[a]] = [x]; n = a",
        "let a = 1; let b = 2; [a, b] = x; n = a + b",
        "n = `${x} and ${x.a}`",
        "n = x.a.b",
        "n = x?.a?.b ?? 1",
        "n = 'a' in x",
        "n = new Set(x).size",
        "n = Object.groupBy(x, (a) => a)",
        "n = x.trim().toUpperCase()",
        "const f = (a, b) => a; n = f(...x)",
        "x.push(1); n = x",
        "x.a = 1; n = x",
        "x[0] = 1; n = x",
        "n = x.replace(/a/g, (m) => m)",
        "n = x.matchAll(/a/g)",
        "switch (x) { case 1: n = 1; break; default: n = x.length }",
        "throw new Error(x)",
        "const { a: { b } } = x; n = b",
    ];
    let mut failed = 0;
    for form in forms {
        let program =
            format!("function agent({{ x }}) {{\n  let n = 0\n  {form}\n  return {{ n }}\n}}");
        let agent = engine.compile_source(program.as_str());
        let agent = agent.unwrap_or_else(|found| panic!("{program}\n{found}"));
        for (value, name) in values() {
            if let Some(error) = run(&engine, &agent, json!({ "x": value })) {
                failed += 1;
                check(&program, &error, name, "x", true);
            }
        }
    }
    assert!(failed > 100, "{failed}");
}

/// What JavaScript does not iterate is an error that names it.
#[test]
fn u3_what_cannot_be_iterated_is_an_error() {
    let engine = Engine::new();
    for (code, message) in [
        ("return [...x]", "x is not iterable"),
        ("const [a] = x; return a", "x is not iterable"),
        ("const [a] = x.y; return a", "x.y is not iterable"),
        ("for (const a of x) { return a }", "x is not iterable"),
        ("return Math.max(...x)", "x is not iterable"),
        ("return x.map((a) => a)", "x.map is not a function"),
        ("return x.sort((a, b) => a - b)", "x.sort is not a function"),
        (
            "try { x.map((a) => a) } catch (e) { throw new Error('not: ' + e.message) }",
            "not: x.map is not a function",
        ),
    ] {
        let agent = engine.compile_source(format!("function agent({{ x }}) {{ {code} }}"));
        let agent = agent.expect("it compiles");
        for value in [json!(5), json!(true), json!({"a": 1})] {
            let error = run(&engine, &agent, json!({ "x": value })).expect("it fails");
            assert_eq!(
                error.message.to_string_lossy(),
                message,
                "{code} of {value}"
            );
        }
    }
    for (code, wanted) in [
        (
            "const [a, ...b] = 'héy'; return { a, b }",
            json!({"a": "h", "b": ["é", "y"]}),
        ),
        ("return { ...'ab' }", json!({"0": "a", "1": "b"})),
        (
            "return { n: [...new Set(x)].length, ...5, ...null }",
            json!({"n": 2}),
        ),
        (
            "const [, year] = 'in 2024'.match(/(\\d+)/); return { year }",
            json!({"year": "2024"}),
        ),
        (
            "let [a, b] = x; [a, b] = [b, a]; return { a, b }",
            json!({"a": 2, "b": 1}),
        ),
        (
            "return { l: [...'a😀'].length, s: Object.entries({ q: 1 }).map(([k, v]) => k + v) }",
            json!({"l": 2, "s": ["q1"]}),
        ),
    ] {
        let agent = engine.compile_source(format!("function agent({{ x }}) {{ {code} }}"));
        let agent = agent.expect("it compiles");
        let outcome = engine.run_sync(&agent, json!({"x": [1, 2]}), RunOptions::new());
        assert_eq!(
            outcome.result.to_json(),
            wanted,
            "{code}: {:?}",
            outcome.error
        );
    }
}

/// Lines of `console` reach the host, and are bounded and paid.
#[test]
fn u3_console_reaches_the_host() {
    let engine = Engine::new();
    let code = "function agent({ n }) {
        console.log('a', n, { b: [1, 'x', null] })
        console.debug(undefined)
        console.warn('careful')
        console.error('bad')
        for (let i = 0; i < n; i++) console.info('x'.repeat(1000))
        return 1
    }";
    let agent = engine.compile_source(code).expect("it compiles");
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = seen.clone();
    let options = RunOptions::new().console(move |line| {
        sink.lock()
            .expect("no panic")
            .push(line.text.to_string_lossy().into_owned());
    });
    let outcome = engine.run_sync(&agent, json!({"n": 400}), options);
    assert!(outcome.error.is_none(), "{outcome:?}");
    let seen = seen.lock().expect("no panic");
    let first = [
        "a 400 {\"b\":[1,\"x\",null]}",
        "undefined",
        "careful",
        "bad",
    ];
    assert_eq!(&seen[..4], first);
    assert_eq!(seen.len(), 404);
    let kept: usize = outcome.logs.iter().map(|line| line.text.len_bytes()).sum();
    assert!(kept <= 256 << 10 && outcome.logs.len() > 200, "{kept}");
    assert!(
        outcome
            .warnings
            .iter()
            .any(|text| text.to_string_lossy().contains("console:"))
    );
    // A line that is cut ends with a whole character, and every turn of a loop is a line.
    let code = "function agent({ x }) { console.log('a' + x); [1, 2].forEach(console.log) }";
    let agent = engine.compile_source(code).expect("it compiles");
    let outcome = engine.run_sync(&agent, json!({"x": "é".repeat(9_000)}), RunOptions::new());
    let lines: Vec<String> = outcome
        .logs
        .iter()
        .map(|line| line.text.to_string_lossy().into_owned())
        .collect();
    assert!(
        lines[0].ends_with("é…") && lines[0].len() <= (16 << 10) + 3,
        "{lines:?}"
    );
    assert_eq!(lines[1..], ["1", "2"]);
    // What is long costs more.
    let fuel = |text: &str| {
        let code = "function agent({ x }) { console.log(x); return 1 }";
        let agent = engine.compile_source(code).expect("it compiles");
        let outcome = engine.run_sync(&agent, json!({ "x": text }), RunOptions::new());
        outcome.fuel_used.to_f64()
    };
    assert!(fuel(&"x".repeat(100_000)) > 2.0 * fuel("x"));
}

/// An argument that is not given and that the program counts on is told.
#[test]
fn u3_a_missing_argument_is_told() {
    let engine = Engine::new();
    let warned = |code: &str, args: Json| {
        let agent = engine.compile_source(code).expect("it compiles");
        let outcome = engine.run_sync(&agent, args, RunOptions::new());
        let texts = outcome
            .warnings
            .iter()
            .map(|text| text.to_string_lossy().into_owned());
        texts.collect::<Vec<String>>().join("\n")
    };
    let code = "function agent({ price, n = 2 }) {\n  return { total: price * n }\n}";
    let text = warned(code, json!({}));
    assert!(
        text.contains("`price` is not given") && text.contains("line 1, column 18"),
        "{text}"
    );
    assert_eq!(warned(code, json!({"price": 1})), "");
    for asked in [
        "function agent({ a }) { return { a: a ?? 1 } }",
        "function agent({ a }) { if (a === undefined) return { a: 0 }; return { a } }",
        "function agent({ a }) { if (!a) { return { a: 0 } } return { a: a + 1 } }",
        "function agent({ a }) { return { a: a ? a.b : 1 } }",
        "function agent({ a }) { return { b: a?.b } }",
        "function agent({ a }: { a?: number }) { return { a } }",
    ] {
        assert_eq!(warned(asked, json!({})), "", "{asked}");
    }
}

/// Two variables of one name have nothing to do with each other.
#[test]
fn u4_names_are_told_apart_by_their_scope() {
    let engine = Engine::new();
    let reads = "function count(path) {
        const re = /a/g
        let n = 0
        let m
        while ((m = re.exec(path)) !== null) { n += m[0].length }
        return n
    }";
    for other in [
        "function other() { let path = 1; path = 2; const re = 3; return path + re }",
        "function other() { let path = 1; { let path = 2; path++ } return path }",
        "const other = () => { let [path] = [1]; [path] = [2]; return path }",
        "function other() { let path = 0; for (path of [1, 2]) {} return path }",
        "function other() { return ['x'].map((path) => { path = path + 're'; return path }).length }",
    ] {
        let code = format!(
            "{reads}\n{other}\nfunction agent({{ x }}) {{ return {{ n: count(x), o: other() }} }}"
        );
        let agent = engine.compile_source(code.as_str());
        // A loop that sets a variable is refused for itself.
        let Err(found) = agent else { continue };
        assert!(!found.to_string().contains("exec"), "{code}\n{found}");
    }
    for code in [
        "function f() { let last = null; try { g() } catch (e) { last = e } return last?.message }
         function g() { throw new Error('no') }
         function h() { let last = 1; last += 1; return [last].length + String(last) }
         export default function agent({}) { return { m: f(), h: h() } }",
        "function f() { const d = new Date(0); d.setDate(2); return d.getTime() }
         function g(x) { const d = new Date(x); const e = d; return e.getTime() }
         export default function agent({}) { return { f: f(), g: g(0) } }",
    ] {
        let agent = engine.compile_source(code);
        let agent = agent.unwrap_or_else(|found| panic!("{code}\n{found}"));
        let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
    }
}

/// Memory that is written to.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A trace that is written while the run goes on has every event, as the outcome's has.
#[test]
fn u2_the_lines_of_a_trace_are_its_events() {
    let engine = Engine::new();
    let code = "function agent({ n }) {
        let s = 0
        for (let i = 0; i < n; i++) { s += i / 8 }
        try { n.x.map((a) => a) } catch (e) { s += 1 }
        return { s, t: `${s} and \"x\"` }
    }";
    let agent = engine.compile_source(code).expect("it compiles");
    let written = Shared::default();
    let file = std::sync::Arc::new(agent99::TraceLines::new(written.clone()));
    let options = RunOptions::new().trace(true).trace_to(file.clone());
    let outcome = engine.run_sync(&agent, json!({"n": 200}), options);
    file.finish().expect("it is written");
    let text = String::from_utf8(written.0.lock().expect("no panic").clone()).expect("UTF-8");
    let events = outcome.trace.expect("a trace");
    let lines: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), events.len());
    for (line, event) in lines.iter().zip(&events) {
        let mut line = line.clone();
        let place = event.pointer.as_deref().and_then(|at| agent.line_col(at));
        let members = line.as_object_mut().expect("an object");
        let (row, column) = (members.remove("line"), members.remove("column"));
        assert_eq!(
            row.map(|row| row.as_u64()),
            place.map(|place| Some(u64::from(place.0)))
        );
        assert_eq!(
            column.map(|at| at.as_u64()),
            place.map(|place| Some(u64::from(place.1)))
        );
        assert_eq!(
            line.to_string(),
            serde_json::to_value(event).expect("JSON").to_string()
        );
    }
}
