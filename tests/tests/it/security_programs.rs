//! Threats C13 to C16: programs made to be hard to compile.

use crate::attack::{ENGINE, bin, call, id, lit, record, rich, run_with, seq, set, within};
use agent99::{ErrorCode, RunOptions, json};
use std::time::{Duration, Instant};

#[test]
fn c13_large_programs_compile_in_linear_time() {
    let program = |n: usize, step: &dyn Fn(usize) -> String| {
        let steps: Vec<String> = (0..n).map(step).collect();
        format!(r#"{{"op":"seq","steps":[{}]}}"#, steps.join(","))
    };
    /// Makes the text of step number `n`.
    type StepText<'a> = &'a dyn Fn(usize) -> String;
    let shapes: [(&str, usize, StepText<'_>); 4] = [
        ("steps", 40_000, &|_| {
            r#"{"op":"varSet","key":"a","value":1}"#.to_owned()
        }),
        ("variables", 20_000, &|i| {
            format!(r#"{{"op":"varSet","key":"v{i}","value":{i}}}"#)
        }),
        ("ifs", 10_000, &|i| {
            format!(
                r#"{{"op":"if","condition":"x == {i}","then":[{{"op":"varSet","key":"y","value":{i}}}]}}"#
            )
        }),
        ("loops", 10_000, &|_| {
            r#"{"op":"while","condition":"false","body":[]}"#.to_owned()
        }),
    ];
    for (name, n, step) in shapes {
        let time = |n: usize| {
            let text = program(n, step);
            let started = Instant::now();
            let agent = ENGINE.compile(text).expect(name);
            let took = started.elapsed();
            let outcome = ENGINE.run_sync(&agent, json!({"x": 1}), rich());
            assert_eq!(outcome.error, None, "{name}");
            took
        };
        let (few, many) = (time(n / 4), time(n));
        assert!(
            many < few * 12 + Duration::from_millis(300),
            "{name}: {few:?} for a quarter, {many:?}"
        );
    }
}

/// `levels` times one inside the other.
fn nested(levels: usize, open: &str, close: &str, core: &str) -> String {
    [
        open.repeat(levels).as_str(),
        core,
        close.repeat(levels).as_str(),
    ]
    .concat()
}

#[test]
fn c14_deep_programs_are_refused_or_run() {
    let programs = [
        nested(
            100_000,
            r#"{"$expr":"unary","op":"!","argument":"#,
            "}",
            r#"{"$expr":"literal","value":1}"#,
        ),
        nested(
            1_000,
            r#"{"$expr":"unary","op":"!","argument":"#,
            "}",
            r#"{"$expr":"literal","value":1}"#,
        ),
        nested(100_000, r#"{"$expr":"array","elements":["#, "]}", ""),
        nested(
            20_000,
            r#"{"$expr":"binary","op":"+","left":"#,
            r#","right":1}"#,
            "1",
        ),
        nested(3_000, r#"{"a":"#, "}", "1"),
        nested(8_000, "[", "]", "1"),
        nested(1_000_000, "[", "]", "1"),
    ];
    for value in programs {
        let text =
            format!(r#"{{"op":"seq","steps":[{{"op":"varSet","key":"a","value":{value}}}]}}"#);
        if let Ok(agent) = within(8_000, || ENGINE.compile(text)) {
            let outcome = ENGINE.run_sync(&agent, json!({}), rich());
            assert!(outcome.error.is_none_or(|e| e.code != ErrorCode::Internal));
        }
    }
    for levels in [400, 510, 600, 20_000] {
        for (open, close) in [
            (r#"{"op":"if","condition":"true","then":["#, "]}"),
            (r#"{"op":"while","condition":"false","body":["#, "]}"),
            (r#"{"op":"scope","steps":["#, "]}"),
            (r#"{"op":"seq","steps":["#, "]}"),
            (r#"{"op":"map","items":[1],"as":"x","steps":["#, "]}"),
            (r#"{"op":"try","try":["#, "]}"),
            (r#"{"op":"try","try":[{"op":"nope"}],"catch":["#, "]}"),
            (r#"{"op":"memoize","key":"k","steps":["#, "]}"),
        ] {
            let text = format!(
                r#"{{"op":"seq","steps":[{}]}}"#,
                nested(levels, open, close, "")
            );
            match within(8_000, || ENGINE.compile(text)) {
                Ok(agent) => {
                    assert!(levels < 600, "{open}");
                    let outcome = ENGINE.run_sync(&agent, json!({}), rich());
                    assert!(
                        outcome.error.is_none_or(|e| e.code != ErrorCode::Internal),
                        "{open}"
                    );
                }
                Err(refused) => {
                    let first = refused.iter().next().unwrap();
                    assert!(levels > 500, "{open}: {first:?}");
                    assert!(
                        ["compile.steps_too_deep", "json.too_deep"].contains(&first.code),
                        "{first:?}"
                    );
                }
            }
        }
    }
    for condition in [
        "(".repeat(100_000),
        nested(100_000, "(", ")", "1"),
        "[".repeat(100_000),
        "a[".repeat(50_000),
        "a?".repeat(50_000),
    ] {
        let text = seq(json!([{"op": "if", "condition": condition, "then": []}]));
        within(4_000, || ENGINE.compile(text)).expect_err("too deep, or malformed");
    }
}

#[test]
fn c15_condition_bombs_are_linear() {
    let conditions = [
        "!".repeat(1_000_000) + "a",
        "-".repeat(500_000) + "a",
        vec!["a"; 100_000].join(" && "),
        vec!["a"; 100_000].join(" || "),
        vec!["1"; 100_000].join(" + "),
        vec!["a"; 100_000].join("."),
        vec!["a"; 50_000].join(" ? b : "),
        format!("'{}'", "x".repeat(5_000_000)),
        "x".repeat(5_000_000),
        " ".repeat(5_000_000),
        "1".repeat(1_000_000),
        format!("f({})", vec!["1"; 100_000].join(",")),
        format!("[{}]", vec!["1"; 100_000].join(",")),
    ];
    for condition in conditions {
        let start: String = condition.chars().take(10).collect();
        for op in ["if", "while"] {
            let body = if op == "if" { "then" } else { "body" };
            let steps = json!([{"op": op, "condition": condition, body: []}]);
            let started = Instant::now();
            if let Ok(agent) = ENGINE.compile(seq(steps)) {
                ENGINE.run_sync(&agent, json!({}), RunOptions::new().timeout_ms(100));
            }
            assert!(
                started.elapsed() < Duration::from_secs(8),
                "{start}: {:?}",
                started.elapsed()
            );
        }
        let steps = json!([{"op": "mathCalc", "expr": condition, "vars": {}, "result": "x"}]);
        within(8_000, || run_with(steps, json!({}), rich()));
    }
}

#[test]
fn c16_compiling_computes_nothing_large() {
    let bombs = [
        call(lit("x"), "repeat", json!([lit(1e9)])),
        bin(
            "**",
            lit(2),
            bin("**", lit(2), bin("**", lit(2), bin("**", lit(2), lit(9)))),
        ),
        call(
            call(lit("x"), "repeat", json!([lit(1e6)])),
            "repeat",
            json!([lit(1e6)]),
        ),
        call(
            id("Array"),
            "from",
            json!([record(&[("length", lit(1e9))])]),
        ),
    ];
    for bomb in bombs {
        let text = seq(json!([{"op": "if", "condition": lit(false), "then": [set("x", bomb)]}]));
        let agent = within(500, || ENGINE.compile(text)).unwrap();
        assert_eq!(
            ENGINE.run_sync(&agent, json!({}), RunOptions::new()).error,
            None
        );
    }
}
