//! Programs that arrive at run time, and what compiling says of hostile ones
//! (classes A4, A5 and A11).

use crate::attack::{
    ENGINE, forever, id, lit, ret, rich, run_with, seq, set, stopped, times, within,
};
use agent99::{CostModel, Engine, ErrorCode, RunOptions, json};
use serde_json::Value as Json;

/// A program with so many helpers, each of which calls the next.
fn with_helpers(helpers: usize, steps: Json) -> String {
    let list: serde_json::Map<String, Json> = (0..helpers)
        .map(|i| {
            let body = match i + 1 < helpers {
                true => json!([{"op": "callLocal", "name": format!("h{}", i + 1), "result": "r"},
                    {"op": "return", "value": "r"}]),
                false => json!([{"op": "return", "value": i}]),
            };
            (format!("h{i}"), json!({"paramNames": [], "steps": body}))
        })
        .collect();
    json!({"op": "seq", "helpers": list, "steps": steps}).to_string()
}

fn inline(steps: Json) -> Json {
    json!({"op": "agentRun", "agentId": {"op": "seq", "steps": steps}, "input": {}, "result": "x"})
}

#[test]
fn a5_helpers_that_nobody_calls_cost_nothing() {
    let fuel = |helpers: usize| {
        let agent = ENGINE
            .compile(with_helpers(
                helpers,
                json!([times(300, json!([inline(json!([]))]))]),
            ))
            .expect("a program");
        // Each of 300 compilations of all helpers would take a good part of a second.
        let outcome = within(60_000, || {
            ENGINE.run_sync(&agent, json!({}), rich().timeout_ms(60_000))
        });
        assert_eq!(outcome.error, None);
        outcome.fuel_used
    };
    assert_eq!(fuel(1), fuel(5_000));
}

#[test]
fn a5_what_is_compiled_is_paid() {
    let call = |name: &str| {
        json!([
            inline(json!([
            {"op": "callLocal", "name": name, "result": "r"},
            {"op": "return", "schema": {"type": "object", "properties": {"r": {}}}}])),
            ret(id("x"))
        ])
    };
    let run = |name: &str, options: RunOptions| {
        let agent = ENGINE
            .compile(with_helpers(200, call(name)))
            .expect("a program");
        let outcome = ENGINE.run_sync(&agent, json!({}), options);
        assert_eq!(outcome.error, None, "{name}");
        assert_eq!(outcome.result.to_json(), json!({"r": {"r": 199}}), "{name}");
        outcome.fuel_used.to_f64()
    };
    // The last helper alone, and one that needs the hundred after it as well.
    let (one, hundred) = (run("h199", rich()), run("h99", rich()));
    assert!(hundred > one + 100.0 * 0.1, "{one}, {hundred}");
    let flat = |name| run(name, rich().cost_model(CostModel::Flat));
    // Calls cost what they cost in the references; compiling costs nothing there.
    assert!((flat("h99") - flat("h199") - 100.0 * 0.3).abs() < 10.0);
    // A name that is only known when it runs means any of them.
    let steps = json!([inline(json!([{"op": "callLocal", "name": 5}]))]);
    let agent = ENGINE.compile(with_helpers(200, steps)).expect("a program");
    let outcome = ENGINE.run_sync(&agent, json!({}), rich());
    assert!(outcome.fuel_used.to_f64() > one + 200.0 * 0.05);
}

#[test]
fn a4_compiling_stops_at_the_deadline() {
    let many: Vec<Json> = (0..12_000).map(|i| set(&format!("v{i}"), lit(i))).collect();
    for model in [CostModel::Metered, CostModel::Flat] {
        let steps = json!([forever(json!([inline(many.clone().into())]))]);
        let options = rich().timeout_ms(300).cost_model(model);
        let agent = ENGINE.compile(seq(steps)).expect("a program");
        let outcome = within(3_000, || ENGINE.run_sync(&agent, json!({}), options));
        stopped(&outcome, ErrorCode::RunTimeout);
    }
}

#[test]
fn a4_a_name_in_many_scopes_is_the_same_as_in_few() {
    // Loops inside each other, each of which may bind the name; the value of the
    // innermost one that did is read, and a constant stays one.
    for bound in [0usize, 1, 4, 7, 11] {
        let mut steps = json!([set("seen", id("n")), set("result", id("seen"))]);
        for level in (0..12).rev() {
            let mut body = vec![json!({"op": "if", "condition":
                {"$expr": "binary", "op": "==", "left": id("bound"), "right": lit(level)},
                "then": [{"op": "varSet", "key": "n", "value": level}]})];
            body.extend(steps.as_array().cloned().unwrap_or_default());
            steps = json!([{"op": "map", "items": {"$expr": "array", "elements": [lit(1)]},
                "as": "i", "steps": body, "result": "result"}]);
        }
        let mut program = vec![set("bound", lit(bound))];
        program.extend(steps.as_array().cloned().unwrap_or_default());
        program.push(ret(id("result")));
        let outcome = run_with(program.into(), json!({}), rich());
        assert_eq!(outcome.error, None);
        let mut expected = json!(bound);
        (0..12).for_each(|_| expected = json!([expected]));
        assert_eq!(outcome.result.to_json(), json!({"r": expected}), "{bound}");
    }
    let mut steps = json!([set("k", lit(2))]);
    for _ in 0..9 {
        let mut body = vec![json!({"op": "if", "condition": id("never"),
            "then": [{"op": "constSet", "key": "k", "value": 3}]})];
        body.extend(steps.as_array().cloned().unwrap_or_default());
        steps = json!([{"op": "scope", "steps": body}]);
    }
    let program = json!([{"op": "constSet", "key": "k", "value": 1}, steps[0]]);
    let error = run_with(program, json!({}), rich())
        .error
        .expect("an error");
    assert_eq!(
        error.message.to_string(),
        "Cannot reassign const variable 'k'"
    );
}

#[test]
fn a11_findings_are_bounded() {
    let unknown: Vec<Json> = (0..50_000)
        .map(|i| json!({"op": format!("varSte{i}")}))
        .collect();
    let agent = ENGINE.compile(seq(unknown.into())).expect("warnings only");
    assert_eq!(agent.warnings().len(), 101);
    assert!(agent.warnings().to_json().to_json_string().len() < 64 << 10);
    let last = agent.warnings().iter().last().map(|d| d.message.clone());
    assert_eq!(last.as_deref(), Some("... and 49900 more findings"));

    let long = "x".repeat(1 << 20);
    let condition = format!("{} + )", "a + ".repeat(1 << 20));
    let hostile = [
        json!([{"op": long}]),
        json!([{"op": "callLocal", "name": long}]),
        json!([{"op": "mathCalc", "expr": format!("{long} +")}]),
        json!([{"op": "if", "condition": condition, "then": []}]),
        json!([{"op": "varSet", "key": "a", "value": {"$expr": "call", "callee": long, "arguments": []}}]),
        json!([{"op": "varSet", "key": "a", "value":
            {"$expr": "methodCall", "object": lit(1), "method": long, "arguments": []}}]),
        json!([{"op": "varSet", "key": "a", "value": {"$expr": long}}]),
        json!([{"op": "scope", "steps": [{"op": "scope", "steps": [{long.as_str(): 1, "op": 5}]}]}]),
        json!([{"op": "varsLet", "__proto__": 1, "constructor": long}]),
    ];
    for steps in hostile {
        let (findings, shown) = match ENGINE.compile(seq(steps)) {
            Ok(agent) => (agent.warnings().to_json(), agent.warnings().render(None)),
            Err(refused) => (refused.to_json(), refused.render(None)),
        };
        let text = findings.to_json_string();
        assert!(text.len() < 8192, "{} bytes: {}", text.len(), &text[..500]);
        assert!(shown.len() < 8192);
    }
}

#[test]
fn a11_comparing_names_takes_bounded_work() {
    let helpers: serde_json::Map<String, Json> = (0..20_000)
        .map(|i| (format!("helper{i}"), json!({"paramNames": [], "steps": []})))
        .collect();
    let steps: Vec<Json> = (0..20_000)
        .map(|i| json!({"op": "callLocal", "name": format!("halper{i}")}))
        .collect();
    let program = json!({"op": "seq", "helpers": helpers, "steps": steps}).to_string();
    // All pairs would take minutes.
    let agent = within(20_000, || ENGINE.compile(program)).expect("warnings only");
    assert!(agent.warnings().iter().any(|d| d.help.is_some()));
}

/// Each of so many names is unknown, and as many are known: no list of those is made for
/// each of these.
#[test]
fn a11_listing_names_takes_bounded_work() {
    const MANY: usize = 10_000;
    let each = |f: &dyn Fn(usize) -> Json| (0..MANY).map(f).collect::<Vec<Json>>();
    let object = |name: &str, value: &Json| -> Json {
        let members = (0..MANY).map(|i| (format!("{name}{i}"), value.clone()));
        Json::Object(members.collect())
    };
    let schema = json!({"type": "object", "properties": object("variable", &json!({}))});
    let set = |i: usize| {
        json!({"op": "varSet", "key": format!("variable{i}"), "value":
            {"$expr": "ident", "name": format!("varaible{i}")}})
    };
    let get = |i: usize| json!({"$kind": "arg", "path": format!("varaible{i}")});
    let holes: String = (0..MANY).map(|i| format!("{{{{varaible{i}}}}}")).collect();
    let required = each(&|i| format!("varaible{i}").into());
    let programs = [
        json!({"op": "seq", "steps": each(&set)}),
        json!({"op": "seq", "inputSchema": schema, "steps":
            each(&|i| json!({"op": "varSet", "key": "x", "value": get(i)}))}),
        json!({"op": "seq", "steps": [{"op": "template", "tmpl": holes,
            "vars": object("variable", &json!(1)), "result": "t"}]}),
        json!({"op": "seq", "steps": [], "inputSchema": {"type": "object",
            "properties": object("variable", &json!({})), "required": required}}),
        json!({"op": "seq", "steps": [{"op": "return", "schema": schema}]}),
    ];
    let engine = Engine::builder().lint(true).build();
    for program in programs {
        let text = program.to_string();
        // Lists of all for each would take minutes.
        let agent = within(20_000, || engine.compile(text)).expect("warnings only");
        assert!(
            agent.warnings().iter().count() > 0,
            "{}",
            &program.to_string()[..80]
        );
    }
}
