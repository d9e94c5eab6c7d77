//! Threats C01 to C12: work without end, and work out of proportion.

use crate::attack::{
    ENGINE, bin, call, forever, func, id, index, list, lit, record, ret, rich, run_with, seq, set,
    stopped, times, within,
};
use agent99::{CostModel, ErrorCode, RunOptions, json};
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Slack over a limit: debug builds on busy machines.
const SLACK_MS: u64 = 250;

/// Fuel that a run spent, in units.
fn spent(steps: Json, args: Json) -> f64 {
    let outcome = run_with(steps, args, rich());
    assert_eq!(outcome.error, None);
    outcome.fuel_used.to_f64()
}

#[test]
fn c01_endless_loops_stop_at_the_deadline() {
    let bodies = [
        json!([]),
        json!([set("x", bin("+", id("x"), lit(1)))]),
        json!([set("x", call(lit("ab"), "repeat", json!([lit(1000)])))]),
        json!([{"op": "if", "condition": lit(false), "then": [set("y", lit(1))]}]),
        json!([{"op": "map", "items": [1, 2, 3], "as": "x", "steps": []}]),
        json!([{"op": "try", "try": [{"op": "nope"}], "catch": []}]),
        json!([{"op": "storeGet", "key": "k"}]),
        json!([{"op": "memoize", "key": "k", "steps": [set("result", lit(1))], "result": "m"}]),
        json!([{"op": "while", "condition": lit(false), "body": []}]),
        json!([{"op": "continue"}]),
        json!([{"op": "forEach", "items": [1, 2, 3], "as": "x", "steps": [{"op": "continue"}]}]),
        json!([{"op": "forEach", "items": [1, 2, 3], "as": "x", "steps": [{"op": "break"}]}]),
        json!([set("x", call(id("JSON"), "parse", json!([lit("[1,2,3]")])))]),
    ];
    for body in bodies {
        let agent = ENGINE.compile(seq(json!([forever(body.clone())]))).unwrap();
        for fuel in [1e9, 9e12, u64::MAX as f64] {
            let Ok(options) = RunOptions::new().fuel(fuel) else {
                continue;
            };
            let outcome = within(50 + SLACK_MS, || {
                ENGINE.run_sync(&agent, json!({}), options.timeout_ms(50))
            });
            stopped(&outcome, ErrorCode::RunTimeout);
        }
    }
}

#[test]
fn c01_a_long_body_is_no_hiding_place() {
    let body: Vec<Json> = (0..20_000)
        .map(|i| set(&format!("v{}", i % 50), lit(i)))
        .collect();
    let agent = ENGINE.compile(seq(json!([forever(json!(body))]))).unwrap();
    let options = rich().timeout_ms(50);
    let outcome = within(50 + SLACK_MS, || {
        ENGINE.run_sync(&agent, json!({}), options)
    });
    stopped(&outcome, ErrorCode::RunTimeout);
}

#[test]
fn c02_regular_expressions_are_linear() {
    let text = "a".repeat(60_000);
    for pattern in [
        "(a+)+$",
        "(a|aa)+$",
        "a*a*a*b",
        "(a*)*b",
        "(.*)(.*)(.*)(.*)x",
        "(a?){50}a{50}c",
    ] {
        let steps = json!([{"op": "regexMatch", "pattern": pattern, "value": "args.text", "result": "m"}, ret(id("m"))]);
        let outcome = within(4_000, || run_with(steps, json!({"text": text}), rich()));
        if outcome.error.is_none() {
            assert!(
                outcome.fuel_used.to_f64() > 5.0,
                "{pattern}: reading is paid: {}",
                outcome.fuel_used
            );
        }
    }
    // String methods take text literally: no engine behind them at all.
    for method in ["match", "matchAll", "search", "split", "replace"] {
        let steps = json!([ret(call(
            id("text"),
            method,
            json!([lit("(a+)+b"), lit("")])
        ))]);
        within(2_000, || {
            run_with(steps, json!({"text": "a".repeat(100_000)}), rich())
        });
    }
}

#[test]
fn c02_finding_is_linear() {
    let text = "a".repeat(20_000);
    for pattern in [
        "((a*)*)*b",
        "(a|aa)+$",
        "(|a)*(a??b?)*c",
        "(.*)(.*)(.*)x",
        "(a?){20}a{20}c",
    ] {
        for op in ["regexFind", "regexFindAll", "regexReplace", "regexSplit"] {
            let mut step =
                json!({"op": op, "pattern": pattern, "text": "args.text", "result": "m"});
            if op == "regexReplace" {
                step["replacement"] = lit("$1$1");
            }
            let steps = json!([step, ret(lit(1))]);
            let outcome = within(8_000, || run_with(steps, json!({"text": text}), rich()));
            assert_eq!(outcome.error, None, "{op} {pattern}");
            let used = outcome.fuel_used.to_f64();
            assert!(used > 50.0, "{op} {pattern}: {used}");
        }
    }
    // Each search goes to the end of the text: that is paid, and bounded without prices.
    let steps =
        json!([{"op": "regexFindAll", "pattern": "a.*z|a", "text": "args.text", "result": "m"}]);
    let options = RunOptions::new().fuel(1_000.0).unwrap();
    let args = json!({"text": text});
    let outcome = within(8_000, || run_with(steps.clone(), args.clone(), options));
    stopped(&outcome, ErrorCode::OutOfFuel);
    let flat = rich().cost_model(CostModel::Flat);
    let outcome = within(60_000, || run_with(steps, args, flat));
    let error = outcome.error.expect("a bound").message.to_string();
    assert!(error.starts_with("Regex too costly"), "{error}");
}

#[test]
fn c02_backtracking_is_paid() {
    let args = json!({"text": format!("{}b", "a".repeat(20_000))});
    for pattern in ["(a+)+\\1$", "(?=(a+)+$)a", "(?:(a?){90}){90}\\1c"] {
        let step = json!({"op": "regexFind", "pattern": pattern, "text": "args.text"});
        let run = |options| within(8_000, || run_with(json!([step]), args.clone(), options));
        let paid = run(RunOptions::new().fuel(1_000.0).unwrap());
        stopped(&paid, ErrorCode::OutOfFuel);
        assert!(run(rich()).error.is_some(), "the limit of a call");
    }
}

#[test]
fn c02_replacements_are_paid() {
    for (pattern, with, text) in [
        ("a(b)?", "$1".repeat(10_000), "a".repeat(5_000)),
        ("a", "$`$'".repeat(100), "a".repeat(10_000)),
        ("", "x".repeat(10_000), "a".repeat(100_000)),
        ("b", "$".repeat(100_000), "a".repeat(10)),
    ] {
        let steps = json!([{"op": "regexReplace", "pattern": pattern, "text": "args.text",
            "replacement": "args.with", "all": true, "result": "m"}]);
        let options = RunOptions::new().fuel(100.0).unwrap();
        let args = json!({"text": text, "with": with});
        let outcome = within(4_000, || run_with(steps, args, options));
        stopped(&outcome, ErrorCode::OutOfFuel);
    }
}

#[test]
fn c02_patterns_in_schemas_are_linear() {
    let properties: serde_json::Map<String, Json> = (0..200)
        .map(|i| {
            (
                format!("p{i}"),
                json!({"type": "string", "pattern": "(a+)+b$"}),
            )
        })
        .collect();
    let steps = json!([
        set("o", call(id("Object"), "fromEntries", json!([call(id("keys"), "map", json!([id("Array")]))]))),
        {"op": "return", "schema": {"type": "object", "properties": properties}},
    ]);
    let keys: Vec<String> = (0..200).map(|i| format!("p{i}")).collect();
    within(4_000, || run_with(steps, json!({"keys": keys}), rich()));
}

#[test]
fn c03_pattern_bombs_are_refused() {
    let bombs = [
        "(a{1000}){1000}".to_owned(),
        "((a{100}){100}){100}".to_owned(),
        r"(\w{1000}){1000}".to_owned(),
        r"((\W|\d){900}\s{900}){900}".to_owned(),
        "(".repeat(50_000),
        "[".repeat(50_000),
        "a|".repeat(500_000),
        format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000)),
        "x".repeat(1 << 20),
        "a{99999999999}".to_owned(),
    ];
    for bomb in bombs {
        let steps =
            json!([{"op": "regexMatch", "pattern": bomb, "value": "args.text", "result": "m"}]);
        let outcome = within(2_000, || run_with(steps, json!({"text": "aaa"}), rich()));
        let start: String = bomb.chars().take(30).collect();
        let error = outcome.error.unwrap_or_else(|| panic!("{start} was taken"));
        assert_eq!(error.code, ErrorCode::Program, "{start}");
        assert!(
            error.message.len_bytes() < 4_096,
            "{start}: {} bytes",
            error.message.len_bytes()
        );
    }
    // Without a flag for it, this is the letter p; with classes it is refused.
    let steps =
        json!([{"op": "regexMatch", "pattern": r"\pL{1000}", "value": "args.text", "result": "m"}]);
    within(2_000, || run_with(steps, json!({"text": "aaa"}), rich()));
}

#[test]
fn c04_work_on_data_is_paid_by_its_size() {
    let text = |s: &str| id(s);
    let works: Vec<(&str, Json)> = vec![
        ("includes", call(text("t"), "includes", json!([lit("zz")]))),
        ("indexOf", call(text("t"), "indexOf", json!([lit("zz")]))),
        ("split", call(text("t"), "split", json!([lit("")]))),
        ("upper", call(text("t"), "toUpperCase", json!([]))),
        ("repeat", call(text("t"), "repeat", json!([lit(2)]))),
        (
            "replaceAll",
            call(text("t"), "replaceAll", json!([lit("a"), lit("b")])),
        ),
        ("concat", bin("+", text("t"), text("t"))),
        ("number", bin("-", text("t"), lit(1))),
        ("encode", func("encodeURIComponent", json!([text("t")]))),
        (
            "array includes",
            call(id("l"), "includes", json!([lit(-1)])),
        ),
        ("array indexOf", call(id("l"), "indexOf", json!([lit(-1)]))),
        ("slice", call(id("l"), "slice", json!([]))),
        ("join", call(id("l"), "join", json!([]))),
        ("reverse", call(id("l"), "reverse", json!([]))),
        ("sort", call(id("l"), "sort", json!([]))),
        ("map", call(id("l"), "map", json!([id("isNaN")]))),
        ("stringify", call(id("JSON"), "stringify", json!([id("l")]))),
        ("loose equality", bin("==", id("l"), lit("x"))),
        ("text of a list", bin("+", id("l"), lit(""))),
        ("keys", call(id("Object"), "keys", json!([id("o")]))),
        ("entries", call(id("Object"), "entries", json!([id("o")]))),
        (
            "assign",
            call(id("Object"), "assign", json!([id("o"), id("o")])),
        ),
        ("Set", func("Set", json!([id("l")]))),
        ("from", call(id("Array"), "from", json!([id("t")]))),
    ];
    let args = |n: usize| {
        let o: serde_json::Map<String, Json> =
            (0..n).map(|i| (format!("k{i}"), json!(i))).collect();
        json!({"t": "a".repeat(10 * n), "l": (0..n).collect::<Vec<_>>(), "o": o})
    };
    let (small, large) = (args(100), args(2_000));
    for (name, work) in works {
        let steps = json!([set("x", work)]);
        let (few, many) = (
            spent(steps.clone(), small.clone()),
            spent(steps, large.clone()),
        );
        assert!(many > few + 0.7, "{name}: {few} for 100, {many} for 2,000");
    }
    let atoms: Vec<Json> = vec![
        json!({"op": "split", "str": "args.t", "sep": ""}),
        json!({"op": "join", "list": "args.l", "sep": ","}),
        json!({"op": "jsonStringify", "value": "args.l"}),
        json!({"op": "hash", "value": id("t")}),
        json!({"op": "merge", "a": "args.o", "b": "args.o"}),
        json!({"op": "keys", "obj": "args.o"}),
        json!({"op": "template", "tmpl": "args.t", "vars": {}}),
        json!({"op": "consoleWarn", "message": "args.t"}),
    ];
    for step in atoms {
        let (few, many) = (
            spent(json!([step]), small.clone()),
            spent(json!([step]), large.clone()),
        );
        assert!(many > few + 0.7, "{step}: {few} for 100, {many} for 2,000");
    }
}

#[test]
fn c05_sorting_is_n_log_n_whatever_the_order() {
    let n = 20_000usize;
    let orders: [Vec<usize>; 4] = [
        (0..n).collect(),
        (0..n).rev().collect(),
        (0..n / 2).chain((0..n / 2).rev()).collect(),
        (0..n).map(|i| (i * 7919) % 101).collect(),
    ];
    for order in orders {
        let args = json!({"l": order});
        for comparator in [json!([]), json!([id("isNaN")]), json!([id("parseInt")])] {
            let steps = json!([set("x", call(id("l"), "sort", comparator))]);
            let outcome = within(8_000, || run_with(steps, args.clone(), rich()));
            // 20,000 * 15 elements at 0.0016.
            assert!(
                outcome.error.is_some() || outcome.fuel_used.to_f64() > 250.0,
                "{outcome:?}"
            );
        }
    }
}

/// `a = [a, a]` so many times over.
fn dag(levels: u32) -> Json {
    json!([
        set("a", list(json!([lit(1)]))),
        times(levels, json!([set("a", list(json!([id("a"), id("a")])))])),
    ])
}

/// A program that uses a DAG with 2^40 paths.
fn on_dag(step: Json) -> Json {
    let mut steps = dag(40);
    let list = steps.as_array_mut().expect("a list");
    list.push(set("b", lit("x")));
    list.push(step);
    steps
}

#[test]
fn c06_dags_do_not_explode() {
    let a = || id("a");
    let uses = [
        set("x", bin("==", a(), lit("1"))),
        set("x", bin("+", a(), lit(""))),
        set("x", call(a(), "join", json!([lit(",")]))),
        set("x", call(id("JSON"), "stringify", json!([a()]))),
        set("x", call(a(), "toString", json!([]))),
        set("x", call(a(), "flat", json!([lit(100)]))),
        set("x", call(a(), "indexOf", json!([a()]))),
        set("x", call(a(), "sort", json!([]))),
        set("x", index(record(&[]), a())),
        set("x", func("filter", json!([a(), lit(json!([1]))]))),
        set("x", func("isNaN", json!([a()]))),
        json!({"op": "hash", "value": "a"}),
        json!({"op": "template", "tmpl": "{{a}}", "vars": {"a": "a"}}),
        json!({"op": "jsonStringify", "value": "a"}),
        json!({"op": "memoize", "key": "a", "steps": [set("result", lit(1))]}),
        json!({"op": "memoize", "steps": [set("result", a())]}),
        json!({"op": "cache", "key": "a", "steps": [set("result", lit(1))]}),
        json!({"op": "storeSet", "key": "k", "value": "a"}),
        json!({"op": "consoleWarn", "message": "a"}),
        json!({"op": "agentRun", "agentId": "a", "input": {"a": "a"}}),
        json!({"op": "push", "list": "a", "item": "a"}),
        ret(a()),
        json!({"op": "return", "schema": {"type": "object", "properties": {"a": {"type": "array"}}}}),
    ];
    for step in uses {
        let outcome = within(6_000, || {
            run_with(on_dag(step.clone()), json!({}), RunOptions::new())
        });
        if let Some(error) = &outcome.error {
            let code = error.code;
            stopped(&outcome, code);
            assert_ne!(code, ErrorCode::Internal, "{step}");
            assert_ne!(code, ErrorCode::RunTimeout, "{step}");
        }
    }
}

#[test]
fn c07_huge_allocations_are_refused_before_allocating() {
    let huge = [
        call(
            id("Array"),
            "from",
            json!([record(&[("length", lit(2e8))])]),
        ),
        call(
            id("Array"),
            "from",
            json!([record(&[("length", lit(1e300))])]),
        ),
        call(lit("x"), "repeat", json!([lit(2e9)])),
        call(lit("x"), "repeat", json!([lit(1e300)])),
        call(lit("xyz"), "repeat", json!([lit(4_294_967_295u32)])),
        call(lit("x"), "padStart", json!([lit(2_147_483_648u32)])),
        call(
            lit("x"),
            "padEnd",
            json!([lit(2_147_483_648u32), lit("ab")]),
        ),
        call(lit("x"), "padStart", json!([lit(1e300), lit("\u{1f600}")])),
        call(
            id("l"),
            "join",
            json!([call(lit("x"), "repeat", json!([lit(1 << 20)]))]),
        ),
        call(
            id("l"),
            "concat",
            json!([call(
                id("Array"),
                "from",
                json!([record(&[("length", lit(1e9))])])
            )]),
        ),
        call(lit(1), "toFixed", json!([lit(1e9)])),
    ];
    for fuel in [1_000.0, 9e12] {
        for expr in &huge {
            let args = json!({"l": vec![0; 100_000]});
            let options = RunOptions::new().fuel(fuel).unwrap().timeout_ms(60_000);
            let outcome = within(1_500, || {
                run_with(json!([set("x", expr.clone())]), args, options)
            });
            let error = outcome.error.unwrap_or_else(|| panic!("{expr}"));
            let expected = [
                ErrorCode::HeapLimit,
                ErrorCode::OutOfFuel,
                ErrorCode::Program,
            ];
            assert!(expected.contains(&error.code), "{expr}: {error:?}");
        }
    }
    // The flat model has caps instead of prices.
    for expr in huge {
        let options = rich().cost_model(CostModel::Flat);
        let args = json!({"l": vec![0; 100_000]});
        let outcome = within(1_500, || {
            run_with(json!([set("x", expr.clone())]), args, options)
        });
        assert!(outcome.error.is_some(), "{expr}");
    }
}

#[test]
fn c08_numbers_are_bounded() {
    let digits = "9".repeat(2_000_000);
    let exprs = [
        call(lit(1e308), "toFixed", json!([lit(100)])),
        call(lit(1e308), "toPrecision", json!([lit(100)])),
        call(lit(1e-323), "toString", json!([lit(2)])),
        call(lit(1.797e308), "toString", json!([lit(36)])),
        call(lit(5e-324), "toExponential", json!([lit(100)])),
        call(lit(1e300), "toLocaleString", json!([])),
        bin(
            "**",
            lit(10),
            bin("**", lit(10), bin("**", lit(10), lit(10))),
        ),
        bin("%", lit(1e308), lit(5e-324)),
        bin("-", id("digits"), lit(0)),
        func("parseInt", json!([id("digits")])),
        func("parseInt", json!([id("digits"), lit(7)])),
        func("parseFloat", json!([id("digits")])),
        call(id("JSON"), "parse", json!([id("digits")])),
        call(id("Math"), "pow", json!([lit(1.0000001), lit(1e300)])),
    ];
    for expr in exprs {
        let outcome = within(4_000, || {
            run_with(
                json!([set("x", expr.clone())]),
                json!({"digits": digits}),
                rich(),
            )
        });
        assert!(
            outcome.error.is_none_or(|e| e.code == ErrorCode::Program),
            "{expr}"
        );
    }
}

#[test]
fn c09_hostile_json_is_linear() {
    let texts = [
        "[".repeat(1_000_000),
        format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000)),
        "{\"a\":".repeat(300_000),
        format!("[{}[]]", "[],".repeat(500_000)),
        format!("{{{}\"a\":1}}", "\"a\":1,".repeat(300_000)),
        format!("\"{}\"", "\\ud83d".repeat(200_000)),
        "-".repeat(1_000_000),
    ];
    for text in texts {
        let start: String = text.chars().take(12).collect();
        let expr = call(id("JSON"), "parse", json!([id("t")]));
        let outcome = within(5_000, || {
            run_with(json!([set("x", expr)]), json!({"t": text}), rich())
        });
        if let Some(error) = &outcome.error {
            let typed = [ErrorCode::Program, ErrorCode::HeapLimit].contains(&error.code);
            assert!(typed, "{start}: {error:?}");
        }
        let paid = outcome.fuel_used.to_f64();
        assert!(paid > 5.0, "{start}: {paid}");
        let step = json!({"op": "jsonParse", "str": "args.t"});
        within(5_000, || {
            run_with(json!([step]), json!({"t": text}), rich())
        });
        // The same as a program.
        within(5_000, || ENGINE.compile(text.clone()).is_err());
    }
    let deep = format!("{}1{}", "[".repeat(600), "]".repeat(600));
    let outcome = run_with(
        json!([set("x", call(id("JSON"), "parse", json!([id("t")])))]),
        json!({"t": deep}),
        rich(),
    );
    assert!(outcome.error.is_none_or(|e| e.code == ErrorCode::Program));
}

#[test]
fn c10_colliding_keys_stay_linear() {
    // Keys that collide in simple multiplicative hashes, and sequences.
    let crafted = |n: usize| -> String {
        let keys: Vec<String> = (0..n)
            .map(|i| {
                let bits: String = (0..16)
                    .map(|b| if i >> b & 1 == 1 { "Aa" } else { "BB" })
                    .collect();
                format!("\"{bits}{}\":{i}", "x".repeat(i % 3))
            })
            .collect();
        format!("{{{}}}", keys.join(","))
    };
    let plain = |n: usize| -> String {
        let keys: Vec<String> = (0..n)
            .map(|i| format!("\"{i:032}k{}\":{i}", "x".repeat(i % 3)))
            .collect();
        format!("{{{}}}", keys.join(","))
    };
    let time = |text: String| {
        let steps = json!([
            set("x", call(id("JSON"), "parse", json!([id("t")]))),
            set("k", call(id("Object"), "keys", json!([id("x")])))
        ]);
        let started = Instant::now();
        let outcome = run_with(steps, json!({"t": text}), rich());
        assert_eq!(outcome.error, None);
        started.elapsed()
    };
    let (ordinary, hostile) = (time(plain(20_000)), time(crafted(20_000)));
    assert!(
        hostile < ordinary * 4 + Duration::from_millis(200),
        "{hostile:?} against {ordinary:?}"
    );
}

#[test]
fn c11_template_bombs_are_paid_before_they_are_built() {
    let template = "{{a}}".repeat(40_000);
    let steps =
        json!([{"op": "template", "tmpl": "args.t", "vars": {"a": "args.a"}, "result": "x"}]);
    let args = json!({"t": template, "a": "x".repeat(10_000)});
    for fuel in [1_000.0, 1e9] {
        let options = RunOptions::new().fuel(fuel).unwrap().timeout_ms(60_000);
        let outcome = within(2_000, || run_with(steps.clone(), args.clone(), options));
        let expected = if fuel < 1e6 {
            ErrorCode::OutOfFuel
        } else {
            ErrorCode::HeapLimit
        };
        stopped(&outcome, expected);
    }
}

#[test]
fn c12_text_explosions_are_paid_before_they_are_built() {
    let long = call(lit("ab"), "repeat", json!([lit(100_000)]));
    let bombs = [
        call(id("s"), "replaceAll", json!([lit("a"), id("s")])),
        call(id("s"), "replaceAll", json!([lit(""), id("s")])),
        call(id("s"), "replaceAll", json!([lit("a"), lit("$`$'$`$'")])),
        call(
            call(id("s"), "split", json!([lit("a")])),
            "join",
            json!([id("s")]),
        ),
        call(
            call(id("s"), "split", json!([lit("")])),
            "join",
            json!([id("s")]),
        ),
        call(
            call(id("s"), "split", json!([lit("")])),
            "join",
            json!([call(id("s"), "split", json!([lit("")]))]),
        ),
    ];
    for bomb in bombs {
        for fuel in [1_000.0, 1e9] {
            let options = RunOptions::new().fuel(fuel).unwrap().timeout_ms(60_000);
            let steps = json!([set("s", long.clone()), set("x", bomb.clone())]);
            let outcome = within(4_000, || run_with(steps, json!({}), options));
            let error = outcome.error.unwrap_or_else(|| panic!("{bomb}"));
            assert!(
                [ErrorCode::OutOfFuel, ErrorCode::HeapLimit].contains(&error.code),
                "{bomb}: {error:?}"
            );
        }
    }
}
