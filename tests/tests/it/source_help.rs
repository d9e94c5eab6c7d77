//! Help for sources that cannot be false: names, programs to write instead, warnings.

use agent99::capabilities::Capabilities;
use agent99::{Engine, RunError, RunOptions, json};
use serde_json::Value as Json;

/// The error of a body, run with these arguments.
fn error_of(engine: &Engine, body: &str, args: Json) -> RunError {
    let code = format!("export default async function agent(input) {{ {body} }}");
    let agent = engine.compile_source(code.as_str());
    let agent = agent.unwrap_or_else(|found| panic!("{body}\n{found}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let run = engine.run(&agent, args, RunOptions::new(), Capabilities::none());
    let outcome = runtime.block_on(run);
    outcome
        .error
        .unwrap_or_else(|| panic!("{body} gives {:?}", outcome.result.to_json()))
}

/// Help names what is wrong, and never a variable of the program that has an input's name.
#[test]
fn u1_help_names_the_value_and_not_a_word() {
    let engine = Engine::builder().atoms(agent99::all_atoms()).build();
    let names = "const items = [1, 2]; const object = { a: 1 }; const key = 'k'; const value = 1;";
    for (body, wanted) in [
        (
            "return { r: input.x.map((y) => items.length + y) }",
            "`input.x` is undefined",
        ),
        (
            "return { r: input.x.filter((y) => items.length > y) }",
            "`input.x` is undefined",
        ),
        (
            "return { r: input.x.reduce((sum, y) => items.length + y, 0) }",
            "`input.x` is undefined",
        ),
        (
            "return { r: input.items.reduce((sum, y) => sum + y, 0) }",
            "`input.items` is undefined",
        ),
        (
            "const o = input.o; o.x = object; return { o }",
            "`o` is undefined",
        ),
        (
            "const o = {}; o[input.zz] = key; return { o }",
            "`input.zz` is undefined",
        ),
        (
            "const o = input.o; delete o[key]; return { o, value }",
            "`o` is undefined",
        ),
        (
            "return { h: await hash({ value: 'x' + input.value, algorithm: 'md6' }) }",
            "hash: `algorithm` is the text \"md6\", and wants one of SHA-1, SHA-256",
        ),
    ] {
        let error = error_of(&engine, &format!("{names} {body}"), json!({}));
        let help = error.help.unwrap_or_default();
        assert!(help.starts_with(wanted), "{body}\n{help}");
        assert!(help.matches('`').count() == 2, "{body}\n{help}");
    }
    // A function of the machine that a loop calls has no arguments that stand there.
    for body in [
        "for (const x of input.items) { return x }",
        "const [a] = input.items; return { a }",
    ] {
        let help = error_of(&engine, body, json!({})).help;
        let help = help.unwrap_or_default();
        assert!(!help.contains("argument"), "{body}\n{help}");
    }
}

/// The findings of a body that is refused.
fn refused(engine: &Engine, body: &str) -> Vec<(String, String)> {
    let code = format!("export default function agent({{ x, n, items }}) {{ {body} }}");
    let Err(found) = engine.compile_source(code.as_str()) else {
        panic!("{body} is accepted");
    };
    let found = found.iter().map(|one| {
        let help = one.help.clone().unwrap_or_default();
        (one.message.clone(), help)
    });
    found.collect()
}

fn int32(value: f64) -> i32 {
    match value.is_finite() {
        true => (value.trunc().rem_euclid(4_294_967_296.0) as u32).cast_signed(),
        false => 0,
    }
}

/// Operators on bits give what JavaScript does, also between other operators.
#[test]
fn operators_on_bits_are_those_of_javascript() {
    type Truth = fn(f64) -> f64;
    let engine = Engine::builder().atoms(agent99::all_atoms()).build();
    let cases: &[(&str, Truth)] = &[
        ("~x", |x| f64::from(!int32(x))),
        ("~~x", |x| f64::from(int32(x))),
        ("x | 0", |x| f64::from(int32(x))),
        ("x ^ 0", |x| f64::from(int32(x))),
        ("x >> 0", |x| f64::from(int32(x))),
        ("x >>> 0", |x| f64::from(int32(x).cast_unsigned())),
        ("x >>> 1", |x| f64::from(int32(x).cast_unsigned() >> 1)),
        ("(x + 0) >>> 33", |x| {
            f64::from(int32(x).cast_unsigned() >> 1)
        }),
        ("x >> 1", |x| f64::from(int32(x) >> 1)),
        ("x >> (2 + 1)", |x| f64::from(int32(x) >> 3)),
        ("x << 5", |x| f64::from(int32(x) << 5)),
        ("x << n", |x| f64::from(int32(x) << 4)),
        ("x & 7", |x| f64::from(int32(x) & 7)),
        ("x & 2147483647", |x| f64::from(int32(x) & i32::MAX)),
        ("x & 4294967295", |x| f64::from(int32(x))),
        ("1 << 31", |_| f64::from(i32::MIN)),
        ("NaN | 0", |_| 0.0),
        ("~5", |_| -6.0),
        ("-5 >>> 1", |_| 2_147_483_645.0),
        ("-5 & 255", |_| 251.0),
        ("3.7 | 0", |_| 3.0),
        ("4294967297.5 | 0", |_| 1.0),
    ];
    let numbers: [f64; 16] = [
        0.0,
        1.0,
        -1.0,
        5.0,
        -5.5,
        0.5,
        -0.5,
        1e6,
        2_147_483_647.0,
        -2_147_483_648.0,
        2_147_483_648.0,
        4_294_967_295.0,
        -4_294_967_297.25,
        1e15,
        -9_007_199_254_740_991.0,
        1e20,
    ];
    for (form, truth) in cases {
        let body = format!("let y = x; y |= 0; return {{ r: 2 * ({form}), s: -({form}), y }}");
        let source = format!("function agent({{ x, n }}) {{ {body} }}");
        let agent = engine.compile_source(source.as_str());
        let agent = agent.unwrap_or_else(|found| panic!("{source}\n{found}"));
        for x in numbers {
            let outcome = engine.run_sync(&agent, json!({"x": x, "n": 4}), RunOptions::new());
            let result = outcome.result.to_json();
            assert_eq!(result["r"].as_f64(), Some(2.0 * truth(x)), "{form} of {x}");
            assert_eq!(result["s"].as_f64(), Some(-truth(x)), "{form} of {x}");
            assert_eq!(result["y"].as_f64(), Some(f64::from(int32(x))), "{x}");
        }
    }
}

/// Messages of sources have no words of other systems, and near names are names of sources.
#[test]
fn u1_names_that_are_not_there_are_told_in_words_of_sources() {
    let engine = Engine::builder().atoms(agent99::all_atoms()).build();
    for (body, message) in [
        (
            "setTimeout(() => 1, 5); return {}",
            "`setTimeout` is not available: a program waits only for calls",
        ),
        (
            "setInterval(() => 1, 5); return {}",
            "`setInterval` is not available: a program waits only for calls",
        ),
        ("return { a: process.env }", "`process` is not available"),
        ("return { a: window.x }", "`window` is not available"),
        ("return { a: document.x }", "`document` is not available"),
        ("return { a: global.x }", "`global` is not available"),
        (
            "return { a: globalThis.x }",
            "`globalThis` is not available",
        ),
        ("return { a: require('fs') }", "`require` is not available"),
        ("return { a: eval('1') }", "`eval` is not available"),
    ] {
        let found = refused(&engine, body);
        assert_eq!(found[0].0, message, "{body}");
        assert!(!found[0].1.is_empty(), "{body}");
    }
    let (_, help) = &refused(&engine, "let total = 0; totl += 1; return { total }")[0];
    assert_eq!(help, "did you mean `total`?");
    let (_, help) = &refused(&engine, "return { a: escape(x) }")[0];
    assert!(!help.contains("scope"), "{help}");
}

/// `findLastIndex` and `findLast` count from the end, also where the callback takes the index.
#[test]
fn indexes_of_searches_from_the_end() {
    let engine = Engine::new();
    for (call, n, wanted) in [
        ("findLastIndex((v) => v > n)", 0, json!(3)),
        ("findLastIndex((v) => v > n)", 6, json!(1)),
        ("findLastIndex((v) => v > n)", 8, json!(-1)),
        ("findLastIndex((v, i) => i < n)", 2, json!(1)),
        ("findLast((v, i) => i < n)", 2, json!(8)),
        (
            "findLastIndex((v, i) => { i = i + 1; return i === n })",
            2,
            json!(1),
        ),
        ("findLastIndex(big)", 0, json!(1)),
    ] {
        let code = format!(
            "export default function agent({{ items, n }}) {{ return {{ i: items.{call} }} }}\n\
             function big(v) {{ return v > 6 }}"
        );
        let agent = engine.compile_source(code.as_str());
        let agent = agent.unwrap_or_else(|found| panic!("{code}\n{found}"));
        let args = json!({"items": [5, 8, 2, 4], "n": n});
        let outcome = engine.run_sync(&agent, args, RunOptions::new());
        assert_eq!(
            outcome.result.to_json(),
            json!({ "i": wanted }),
            "{call} {n}"
        );
    }
}

/// Methods of lists that go backwards, and `reduce` from the first item, take lists alone.
#[test]
fn u3_methods_of_lists_take_lists_alone() {
    let engine = Engine::new();
    for (call, name) in [
        ("findLast((v) => v)", "findLast"),
        ("reduceRight((s, v) => s + v, 0)", "reduceRight"),
        ("reduceRight((s, v) => s + v)", "reduceRight"),
        ("reduce((s, v) => s + v)", "reduce"),
    ] {
        for value in ["input.x", "new Set([1, 2])"] {
            let error = error_of(
                &engine,
                &format!("return {{ r: {value}.{call} }}"),
                json!({"x": 5}),
            );
            let wanted = format!("{value}.{name} is not a function");
            assert_eq!(error.message.to_string_lossy(), wanted, "{call}");
        }
        for x in [json!("abc"), json!({"a": 1}), json!(null)] {
            let error = error_of(
                &engine,
                &format!("return {{ r: input.x.{call} }}"),
                json!({"x": x}),
            );
            let wanted = format!("input.x.{name} is not a function");
            assert_eq!(error.message.to_string_lossy(), wanted, "{call}");
        }
    }
    let code = "function agent({ x }) {
        const m = 'a1'.match(/(a)(1)/)
        return {
            f: x.findLast((v) => v < 3), s: x.reduceRight((s, v) => s + v), t: x.reduce((s, v) => s + v),
            n: x.findLast((v) => v > 9) ?? 'none', o: x?.findLast((v) => v < 3),
            m: m.reduceRight((s, v) => s + v, ''),
        }
    }";
    let agent = engine.compile_source(code).expect("it compiles");
    assert!(agent.warnings().is_empty(), "{}", agent.warnings());
    let outcome = engine.run_sync(&agent, json!({"x": [1, 2, 3]}), RunOptions::new());
    assert_eq!(
        outcome.result.to_json(),
        json!({"f": 2, "s": 6, "t": 6, "n": "none", "o": 2, "m": "1aa1"})
    );
}

/// An argument that the program asks about anywhere may be left out, and the default that a
/// warning offers has its place in the pattern.
#[test]
fn u3_missing_arguments_are_told_as_the_source_has_them() {
    let engine = Engine::new();
    let warned = |code: &str| {
        let agent = engine.compile_source(code);
        let agent = agent.unwrap_or_else(|found| panic!("{code}\n{found}"));
        let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
        let texts = outcome
            .warnings
            .iter()
            .map(|text| text.to_string_lossy().into_owned());
        texts.collect::<Vec<String>>().join("\n")
    };
    for (code, pattern) in [
        ("function agent({ q }) { return { q: q + 1 } }", "q"),
        (
            "function agent({ title: t }) { return { t: t + 1 } }",
            "title: t",
        ),
        (
            "function agent({ \"a-b\": q }) { return { q: q + 1 } }",
            "\"a-b\": q",
        ),
        (
            "function agent(input) { const { \"a b\": q } = input; return { q: q + 1 } }",
            "\"a b\": q",
        ),
        (
            "function agent({ a }) { if (1 < 2) return { a: a + 1 }; return {} }",
            "a",
        ),
    ] {
        let text = warned(code);
        let offered = text.split('`').nth(3).expect("a pattern");
        assert_eq!(offered, format!("{{ {pattern} = ... }}"), "{text}");
        // With it the program has nothing to be warned of.
        let with = code.replace(&format!(" {pattern} }}"), &format!(" {pattern} = 1 }}"));
        assert_ne!(with, code);
        assert_eq!(warned(&with), "", "{with}");
    }
    for body in [
        "if(a) return { n: a + 1 }; return { n: 0 }",
        "return { n: a?1:2 }",
        "return { n: null == a }",
        "switch (a) { case undefined: return { n: 0 }; default: return { n: a.length } }",
        "return { n: Array.isArray(a) ? a.length : 0 }",
        "return { n: isNaN(a) ? 0 : a }",
        "const w = a; if (w) return { n: w }; return { n: 0 }",
        "let n = 0; while (a) { n++; if (n > 2) break } return { n }",
        "return { n: !a }",
        "return { n: typeof a }",
        "return { n: a?.[0] ?? 1 }",
        "return { n: (a) || 2 }",
        "return { n: [1].filter((x) => x === a).length }",
    ] {
        let code = format!("function agent({{ a }}) {{ {body} }}");
        assert_eq!(warned(&code), "", "{code}");
    }
}

/// What JavaScript does not take apart, group or match is an error here, too.
#[test]
fn u3_values_without_items_or_methods_are_errors() {
    let engine = Engine::new();
    for (body, message) in [
        (
            "const [all] = 'zz'.match(/(\\d)/); return { all }",
            "'zz'.match(/(\\d)/) is not iterable",
        ),
        (
            "const m = 'zz'.match(/(\\d)/); const [all] = m; return { all }",
            "m is not iterable",
        ),
        (
            "for (const part of 'zz'.match(/(\\d)/)) { return { part } } return {}",
            "'zz'.match(/(\\d)/) is not iterable",
        ),
        (
            "const [k] = Object.entries({}).find(([k]) => k === 'x'); return { k }",
            "Object.entries({}).find(([k]) => k === 'x') is not iterable",
        ),
        (
            "const [k] = Object.entries({})[0]; return { k }",
            "Object.entries({})[0] is not iterable",
        ),
        (
            "const es = Object.entries({ a: 1 }); es.push(7); let n = ''; \
             for (const [k] of es) { n += k } return { n }",
            "the value is not iterable",
        ),
        (
            "const es = Object.entries({ a: 1 }); es[0] = 7; return { n: es.map(([k]) => k) }",
            "the value is not iterable",
        ),
        (
            "return { g: Object.groupBy(input.x, (v) => v) }",
            "input.x is not iterable",
        ),
        (
            "return { m: input.x.match(/a/) }",
            "input.x.match is not a function",
        ),
        (
            "return { m: [...input.x.matchAll(/a/g)] }",
            "input.x.matchAll is not a function",
        ),
        (
            "return { m: input.x.split(/a/) }",
            "input.x.split is not a function",
        ),
        (
            "return { m: input.x.search(/a/) }",
            "input.x.search is not a function",
        ),
        (
            "return { m: input.x.replace(/a/, 'b') }",
            "input.x.replace is not a function",
        ),
        (
            "return { m: input.x.replace(/a/g, (m) => m) }",
            "input.x.replace is not a function",
        ),
        (
            "return { m: input.x.replaceAll('a', (m) => m) }",
            "input.x.replaceAll is not a function",
        ),
        (
            "return { m: input.y.split(/a/) }",
            "input.y.split is not a function",
        ),
    ] {
        let error = error_of(&engine, body, json!({"x": 5}));
        assert_eq!(error.message.to_string_lossy(), message, "{body}");
    }
    for (body, wanted) in [
        (
            "const [, y] = 'in 2024'.match(/(\\d+)/); const [z] = 'q'.match(/a/) ?? ['no']; \
             return { y, z }",
            json!({"y": "2024", "z": "no"}),
        ),
        (
            "const es = Object.entries({ b: 1, a: 2 }); es.sort(); let s = ''; \
             for (const [k, v] of es) s += k + v; return { s, n: es.map(([k]) => k) }",
            json!({"s": "a2b1", "n": ["a", "b"]}),
        ),
        (
            "const es = Object.entries({ a: 1 }); es.push('xy'); return { n: es.map(([k, v]) => k + v) }",
            json!({"n": ["a1", "xy"]}),
        ),
        (
            "return { g: Object.groupBy('aba', (c) => c), h: Object.groupBy(new Set([1]), (c) => c) }",
            json!({"g": {"a": ["a", "a"], "b": ["b"]}, "h": {"1": [1]}}),
        ),
        (
            "const t = input.t; return { a: input.zz?.split(/a/) ?? 'none', b: t?.split(/,/), \
             c: input.zz?.replace(/a/g, (m) => m) ?? 'no', d: t?.replace(/,/g, (m) => '-'), \
             e: t.match(/b/)?.[0], f: [...t.matchAll(/[ab]/g)].length }",
            json!({"a": "none", "b": ["a", "b"], "c": "no", "d": "a-b", "e": "b", "f": 2}),
        ),
    ] {
        let code = format!("function agent(input) {{ {body} }}");
        let agent = engine.compile_source(code.as_str());
        let agent = agent.unwrap_or_else(|found| panic!("{body}\n{found}"));
        let outcome = engine.run_sync(&agent, json!({"t": "a,b"}), RunOptions::new());
        assert_eq!(
            outcome.result.to_json(),
            wanted,
            "{body}: {:?}",
            outcome.error
        );
    }
}

/// Uncaught errors name the form in the source, not the step that it was lowered to.
#[test]
fn u1_errors_of_forms_say_what_the_source_has() {
    let engine = Engine::new();
    for (body, message, help) in [
        (
            "const o = { a: {} }; o.a.b.c = 5; return { o }",
            "cannot set `c` of `o.a.b`, which is undefined",
            "",
        ),
        (
            "const o = input.x; o.y = 1; return { o }",
            "cannot set `y` of `o`, which is the number 5",
            "",
        ),
        (
            "const o = {}; o[input.k] = 1; return { o }",
            "cannot set a member of `o`: its key is undefined",
            "`input.k` is undefined",
        ),
        (
            "const list = [1, 2]; delete list[1]; return { list }",
            "cannot delete `1` of `list`, which is a list of 2",
            "did you mean `list.splice(1, 1)`?",
        ),
        (
            "const list = [1, 2]; list[5] = 3; return { list }",
            "cannot set `5` of `list`, which is a list of 2",
            "did you mean `list.push(...)`?",
        ),
        (
            "return { s: new Set(input.x).size }",
            "input.x is not iterable",
            "",
        ),
        (
            "return { o: Object.fromEntries(input.x) }",
            "input.x is not iterable",
            "",
        ),
        (
            "return { d: input.x.toISOString() }",
            "'toISOString' is not a function",
            "`toISOString` is called on the number 5: did you mean `new Date(input.x).toISOString()`?",
        ),
    ] {
        let error = error_of(&engine, body, json!({"x": 5}));
        assert_eq!(error.message.to_string_lossy(), message, "{body}");
        let found = error.help.unwrap_or_default();
        assert!(found.starts_with(help), "{body}: {found}");
    }
    // A program in JSON has the messages of the language.
    let program = json!({"op": "seq", "a99": 4, "steps": [
        {"op": "memberSet", "object": 5, "key": "a", "value": 1},
        {"op": "return", "value": {"a": 1}},
    ]});
    let engine = Engine::builder().atoms(agent99::all_atoms()).build();
    let agent = engine.compile(program.to_string()).expect("it compiles");
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    let error = outcome.error.expect("it fails");
    assert_eq!(
        error.message.to_string_lossy(),
        "memberSet wants an object or a list, got number"
    );
}
