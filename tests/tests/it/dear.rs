//! Operands that take more time than others of their size: what they pay (D107), alike on all
//! engines.

use crate::attack::{ENGINE, call, id, lit, ret, rich, seq};
use a99_testkit::differential::difference_of;
use agent99::{Fuel, json};
use serde_json::Value as Json;

/// What a method of the argument `v` costs.
fn fuel(value: &Json, method: &str, arguments: &Json) -> Fuel {
    let program = seq(json!([ret(call(id("v"), method, arguments.clone()))]));
    let ast: Json = serde_json::from_str(&program).expect("JSON");
    alike(&ast, &json!({"v": value}))
}

/// What a program costs, the same on all engines.
fn alike(ast: &Json, args: &Json) -> Fuel {
    let vector = json!({
        "id": "dear", "title": "", "generation": "v3", "ast": ast, "args": args,
        "options": {"costModel": "metered"}, "expect": {},
    });
    let different = difference_of(&vector.into());
    assert_eq!(different, None, "{ast}");
    let agent = ENGINE.compile(ast.to_string()).expect("it compiles");
    let outcome = ENGINE.run_sync(&agent, args.clone(), rich());
    assert_eq!(outcome.error, None, "{ast}");
    outcome.fuel_used
}

#[test]
fn e1_dear_operands_pay_on_all_engines() {
    let (plain, wide) = (json!("x".repeat(300)), json!("ж".repeat(300)));
    // One half of a pair, which no JSON text of the test can say.
    let half = call(lit("😀"), "charAt", json!([lit(0)]));
    let letter = lit("a");
    for (method, arguments) in [
        ("normalize", json!([])),
        ("normalize", json!([lit("NFD")])),
        ("localeCompare", json!([letter])),
        ("indexOf", json!([letter])),
        ("lastIndexOf", json!([letter])),
        ("includes", json!([letter])),
        ("search", json!([letter])),
        ("match", json!([letter])),
        ("matchAll", json!([letter])),
        ("split", json!([letter])),
        ("replace", json!([letter, letter])),
        ("replaceAll", json!([letter, letter])),
    ] {
        let (less, more) = (
            fuel(&plain, method, &arguments),
            fuel(&wide, method, &arguments),
        );
        assert!(less < more, "{method} {arguments}: {less} {more}");
    }
    for method in ["indexOf", "lastIndexOf", "includes", "replaceAll", "split"] {
        let with = |needle: &Json| match method {
            "replaceAll" => json!([needle, letter]),
            _ => json!([needle]),
        };
        let whole = fuel(&wide, method, &with(&letter));
        let part = fuel(&wide, method, &with(&half));
        assert!(
            whole.micro() + 300 * 300 < part.micro(),
            "{method}: {whole} {part}"
        );
    }
    for (method, few, many) in [
        ("toFixed", 17, 18),
        ("toExponential", 17, 18),
        ("toPrecision", 17, 100),
        ("toString", 16, 3),
    ] {
        let of = |digits: i32| fuel(&json!(1e200), method, &json!([lit(digits)]));
        let (less, more) = (of(few), of(many));
        match method {
            // Both texts are long.
            "toString" => assert!(less.micro() > 50_000 && more.micro() > 50_000, "{method}"),
            _ => assert!(
                less.micro() + 50_000 <= more.micro(),
                "{method}: {less} {more}"
            ),
        }
    }
}

#[test]
fn e1_holes_of_long_templates_pay_on_all_engines() {
    let of = |holes: usize, text: &str, newest: bool| {
        let mut ast = json!({"op": "seq", "steps": [
            {"op": "template", "tmpl": text.repeat(holes), "vars": {"p": "args.v"}, "result": "t"},
            ret(id("t")),
        ]});
        if newest {
            ast["a99"] = json!(4);
        }
        let args = json!({"v": ""});
        alike(&ast, &args).micro()
    };
    // A linked template, one that is read at each call, and one of paths.
    for (text, newest, dear) in [
        ("{{p}}", false, 60),
        ("{{p}}", false, 500),
        ("{{p}}", true, 60),
    ] {
        let each = (of(32, text, newest) - of(24, text, newest)) / 8;
        let more = (of(dear, text, newest) - of(32, text, newest)) / (dear as i64 - 32);
        assert_eq!(more, each + 4 * 400, "{dear} {newest}");
    }
}
