//! The oracle on forms that the vectors of the references do not reach.

use a99_core::costs::CostModel;
use a99_core::fuel::Fuel;
use a99_core::json::{Document, Limits};
use a99_core::value::Value;
use a99_testkit::oracle::{NoHost, OracleOptions, OracleOutcome, Rejected, run};

fn program(text: &str) -> Document {
    Document::parse(text, &Limits::default()).expect("JSON")
}

fn flat() -> OracleOptions {
    OracleOptions {
        cost_model: CostModel::Flat,
        ..OracleOptions::default()
    }
}

fn with(text: &str, args: &str, options: &OracleOptions) -> Result<OracleOutcome, Rejected> {
    let args = program(args);
    let args = args.to_value(args.root());
    run(&program(text), &args, options, &mut NoHost)
}

fn steps(text: &str) -> OracleOutcome {
    let text = format!(r#"{{"op":"seq","steps":[{text}]}}"#);
    with(&text, r#"{"q":7,"o":{"k":[1,2]},"a.b":"flat"}"#, &flat()).expect("accepted")
}

fn result(text: &str) -> String {
    steps(text).result.to_json_string()
}

#[test]
fn return_by_value() {
    assert_eq!(
        result(
            r#"{"op":"return","value":{"$expr":"object","properties":[{"key":"a","value":1}]}}"#
        ),
        r#"{"a":1}"#
    );
    let outcome = steps(r#"{"op":"return","value":5}"#);
    let error = outcome.error.expect("an error");
    assert_eq!(error.message, "Agent must return an object, got number");
    assert_eq!(error.op, "return");
    // Undefined ends the run too (D30).
    let ended = steps(r#"{"op":"return","value":"args.none"},{"op":"return","value":{"a":1}}"#);
    assert!(ended.result.is_undefined() && ended.error.is_none());
}

#[test]
fn nested_nodes_in_literals() {
    // D13: nodes are resolved and paid for, texts stay.
    let outcome = steps(
        r#"{"op":"return","value":{"x":{"$kind":"arg","path":"q"},"y":["q",{"$expr":"ident","name":"q"}]}}"#,
    );
    assert_eq!(outcome.result.to_json_string(), r#"{"x":7,"y":["q",7]}"#);
    assert_eq!(outcome.fuel_used.to_string(), "0.22");
    let v3 = r#"{"op":"seq","a99":3,"steps":[{"op":"varSet","key":"n","value":3},{"op":"return","value":{"x":"n"}}]}"#;
    assert_eq!(
        with(v3, "{}", &flat())
            .expect("accepted")
            .result
            .to_json_string(),
        r#"{"x":3}"#
    );
}

#[test]
fn argument_paths() {
    // D15: the flat key first, then the path.
    let text = r#"{"op":"varsExport","keys":{"f":"args.a.b","p":"args.o.k.1","n":"args.no.x"},"result":"r"},{"op":"return","value":"r"}"#;
    assert_eq!(result(text), r#"{"f":"flat","p":2}"#);
    let shadowed = r#"{"op":"varSet","key":"args","value":{"q":"mine"}},{"op":"varSet","key":"x","value":"args.q"},{"op":"return","schema":{"properties":{"x":{}}}}"#;
    assert_eq!(result(shadowed), r#"{"x":"mine"}"#);
}

#[test]
fn helpers() {
    let text = r#"{"op":"seq","helpers":{"twice":{"paramNames":["n"],"steps":[
        {"op":"return","value":{"$expr":"binary","op":"*","left":{"$expr":"ident","name":"n"},"right":2}}]},
        "loop":{"paramNames":[],"steps":[{"op":"callLocal","name":"loop","args":[]}]}},
        "steps":[{"op":"callLocal","name":"twice","args":[{"$expr":"ident","name":"q"}],"result":"r"},
        {"op":"try","try":[{"op":"callLocal","name":"none","args":[]}],"catch":[]},
        {"op":"varSet","key":"m1","value":"error"},
        {"op":"try","try":[{"op":"callLocal","name":"loop","args":[]}],"catch":[]},
        {"op":"return","schema":{"properties":{"r":{},"m1":{},"error":{}}}}]}"#;
    let outcome = with(text, r#"{"q":21}"#, &flat()).expect("accepted");
    let part = |key: &str| outcome.result.get(key).cloned().unwrap_or(Value::Undefined);
    assert_eq!(part("r"), Value::Number(42.0));
    assert_eq!(part("m1").as_str(), Some("Unknown helper: none"));
    assert!(
        part("error")
            .as_str()
            .is_some_and(|m| m.starts_with("Maximum helper call depth (256)"))
    );
}

#[test]
fn fuel_and_quotas_cannot_be_caught() {
    let text = r#"{"op":"seq","steps":[{"op":"try","try":[{"op":"len","list":"x"},{"op":"len","list":"x"}],"catch":[]}]}"#;
    let mut options = flat();
    options.quotas.insert("len".into(), 1);
    let error = with(text, "{}", &options)
        .expect("accepted")
        .error
        .expect("an error");
    assert_eq!(error.message, "Quota exceeded for 'len': 1 call(s) allowed");
    let options = OracleOptions {
        fuel: Fuel::from_micro(1_500_000),
        ..flat()
    };
    let outcome = with(text, "{}", &options).expect("accepted");
    assert_eq!(outcome.error.expect("an error").op, "len");
    assert_eq!(outcome.fuel_used.to_string(), "2.3");
}

#[test]
fn text_conditions() {
    let branch = |condition: &str| {
        result(&format!(
            r#"{{"op":"varSet","key":"s","value":"code 404"}},{{"op":"if","condition":"{condition}","vars":{{"v":"s"}},
            "then":[{{"op":"varSet","key":"r","value":1}}],"else":[{{"op":"varSet","key":"r","value":0}}]}},
            {{"op":"return","schema":{{"properties":{{"r":{{}}}}}}}}"#
        ))
    };
    for yes in [
        "v.includes('404')",
        "s.length gt 7",
        "q === 7 ? true : false",
        "missing ?? 1",
        "o.k[1] == 2",
        "1 == 1 < 2",
        "+'3' == 3",
    ] {
        assert_eq!(branch(yes), r#"{"r":1}"#, "{yes}");
    }
    for no in ["", "a and true", "!v", "none?.x.y"] {
        assert_eq!(branch(no), r#"{"r":0}"#, "{no}");
    }
    for bad in [
        "a ==", "(a", "'x", "a b", "f(1)", "a | b", "a; b", "a = 1", "this.x",
    ] {
        let text =
            format!(r#"{{"op":"seq","steps":[{{"op":"if","condition":"{bad}","then":[]}}]}}"#);
        assert!(with(&text, "{}", &flat()).is_err(), "{bad}");
    }
}

#[test]
fn proportional_prices() {
    let text = r#"{"op":"seq","steps":[{"op":"varSet","key":"s","value":{"$expr":"binary","op":"+","left":"abcd","right":"efghij"}}]}"#;
    let outcome = with(text, "{}", &OracleOptions::default()).expect("accepted");
    assert_eq!(
        outcome.fuel_used.to_string(),
        "0.014",
        "0.005 + 0.005 + one node + two operands + ten units"
    );
    let text = r#"{"op":"seq","steps":[{"op":"varSet","key":"s","value":{"$expr":"methodCall","object":"ab","method":"repeat","arguments":[1e9]}}]}"#;
    let error = with(text, "{}", &OracleOptions::default())
        .expect("accepted")
        .error
        .expect("an error");
    assert_eq!(error.message, "Out of Fuel");
}

#[test]
fn forbidden_names_reject() {
    for step in [
        r#"{"op":"varSet","key":"__proto__","value":1}"#,
        r#"{"op":"len","list":"x","result":"constructor"}"#,
        r#"{"op":"map","items":[],"as":"prototype","steps":[]}"#,
        r#"{"op":"varsLet","constructor":1}"#,
    ] {
        let text = format!(r#"{{"op":"seq","steps":[{step}]}}"#);
        assert!(with(&text, "{}", &flat()).is_err(), "{step}");
    }
    assert_eq!(
        with(r#"{"op":"if"}"#, "{}", &flat()).unwrap_err().message,
        "Root AST must be 'seq'"
    );
}

#[test]
fn keyless_bodies_share_by_content() {
    // D25: bodies that differ in the last result name only are one; a free
    // variable with another value makes two.
    let text = r#"{"op":"varSet","key":"n","value":1},
        {"op":"memoize","steps":[{"op":"template","tmpl":"n={{n}}","vars":{"n":"n"},"result":"result"}],"result":"a"},
        {"op":"memoize","steps":[{"op":"template","tmpl":"n={{n}}","vars":{"n":"n"},"result":"other"}],"result":"b"},
        {"op":"varSet","key":"n","value":2},
        {"op":"memoize","steps":[{"op":"template","tmpl":"n={{n}}","vars":{"n":"n"},"result":"result"}],"result":"c"},
        {"op":"return","schema":{"properties":{"a":{},"b":{},"c":{}}}}"#;
    assert_eq!(result(text), r#"{"a":"n=1","b":"n=1","c":"n=2"}"#);
}

#[test]
fn inline_agents() {
    let text = r#"{"op":"varSet","key":"ast","value":{"op":"seq","steps":[{"op":"return","schema":{"properties":{"x":{}}}}]}},
        {"op":"agentRun","agentId":"ast","input":{"x":"q"},"result":"sub"},
        {"op":"try","try":[{"op":"agentRun","agentId":"proc_none","input":{}}],"catch":[]},
        {"op":"return","schema":{"properties":{"sub":{},"errorOp":{}}}}"#;
    assert_eq!(result(text), r#"{"sub":{},"errorOp":"agentRun"}"#);
}

#[test]
fn a_run_ends_unjudged_at_an_atom_of_a_host() {
    let steps = |text: &str| steps(text).not_judged;
    let loops = r#"{"op":"llmToolLoop","prompt":"x","tools":[]}"#;
    assert_eq!(steps(loops).as_deref(), Some("llmToolLoop"));
    let caught = r#"{"op":"try","try":[{"op":"storeProcedure","ast":{"op":"seq"}}],"catch":[]}"#;
    assert_eq!(steps(caught).as_deref(), Some("storeProcedure"));
    // What is not granted says so, as on the machine.
    let outcome = self::steps(r#"{"op":"shellExec","command":"ls"}"#);
    assert_eq!(outcome.not_judged, None);
    let error = outcome.error.expect("an error");
    assert_eq!(error.message, "Capability 'shell' missing");
}
