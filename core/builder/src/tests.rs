//! Tests of the chain: order of keys, names of results, errors.

use super::*;

#[test]
fn keys_stand_in_the_given_order_and_absent_ones_not_at_all() {
    let program = Builder::take(Map::new())
        .atom(
            "x",
            vec![("b", 1.into()), ("a", ().into()), ("c", args("q"))],
        )
        .as_("r")
        .as_const("k");
    assert_eq!(
        program.to_json_string().unwrap(),
        r#"{"op":"seq","steps":[{"op":"x","b":1,"c":{"$kind":"arg","path":"q"},"result":"k","resultConst":true}]}"#
    );
}

#[test]
fn a_name_without_a_step_is_refused() {
    let refused = Builder::new().as_("x").build().unwrap_err();
    let first = refused.iter().next().unwrap();
    assert_eq!(
        (first.code, first.message.as_str(), first.pointer.as_str()),
        (codes::NO_STEP, "No step to capture", "/steps")
    );
    let refused = Builder::new().step("text").as_const("x").build();
    assert_eq!(refused.unwrap_err().0[0].pointer, "/steps/0");
}

#[test]
fn inputs_cannot_replace_the_keys_of_the_step() {
    let program = Builder::new()
        .atom("a", vec![])
        .atom("b", vec![("result", 1.into()), ("op", 2.into())]);
    let places: Vec<_> = program.findings().iter().map(|d| &d.pointer).collect();
    assert_eq!(places, ["/steps/1/result", "/steps/1/op"]);
    assert_eq!(program.steps().len(), 2);
    assert!(program.to_value().is_err());
}

#[test]
fn operands_are_what_json_has() {
    let all: [(Operand, &str); 9] = [
        (1.5.into(), "1.5"),
        (7usize.into(), "7"),
        ((-3i64).into(), "-3"),
        (true.into(), "true"),
        (val("a.b"), "\"a.b\""),
        (Some("x").into(), "\"x\""),
        ([Some(1), None].into(), "[1,null]"),
        ([("a", Some(1)), ("b", None)].into(), r#"{"a":1}"#),
        (serde_json::json!({"z": [null]}).into(), r#"{"z":[null]}"#),
    ];
    for (operand, text) in all {
        assert_eq!(operand.value().to_json_string(), text);
    }
    assert!(Operand::default().is_absent());
    let names = vec![("b".to_owned(), Some(1)), ("a".to_owned(), None)];
    assert_eq!(Operand::object(names), [("b", 1)].into());
}

#[test]
fn faults_in_bodies_have_their_place_in_the_program() {
    let program = Builder::new()
        .uuid()
        .if_else(
            "a",
            (),
            |then| then.try_catch(|b| b.uuid(), |b| b.as_("x")),
            |other| other.scope(|b| b.uuid().vars_let([("result", 1)])),
        )
        .helper("a/b", &[], |b| b.as_("y"));
    let places: Vec<_> = program.findings().iter().map(|d| &d.pointer).collect();
    assert_eq!(
        places,
        [
            "/steps/1/then/0/catch",
            "/steps/1/else/0/steps/1/result",
            "/helpers/a~1b/steps",
        ]
    );
}

#[test]
fn root_keys_stand_at_the_root_only() {
    let helper = |b: Builder| b.helper("h", &["p"], |b| b.return_value("p"));
    let program =
        helper(Builder::new()).input_schema(serde_json::json!({"schema": {"type": "object"}}));
    assert_eq!(
        program.call_local("h", [1]).to_json_string().unwrap(),
        concat!(
            r#"{"op":"seq","steps":[{"op":"callLocal","name":"h","args":[1]}],"#,
            r#""inputSchema":{"type":"object"},"helpers":{"h":{"#,
            r#""steps":[{"op":"return","value":"p"}],"paramNames":["p"]}}}"#
        )
    );
    let misplaced = Builder::new().seq(|b| helper(b).input_schema(Map::new()));
    let refused: Vec<_> = misplaced
        .findings()
        .iter()
        .map(|d| (d.code, &*d.offending))
        .collect();
    assert_eq!(
        refused,
        [
            (codes::MISPLACED_KEY, "inputSchema"),
            (codes::MISPLACED_KEY, "helpers")
        ]
    );
}

#[test]
fn a_schema_leaves_its_wrapper() {
    let text = |schema: serde_json::Value| {
        let program = Builder::new().return_(schema);
        program.steps()[0].to_json_string()
    };
    use serde_json::json;
    assert_eq!(
        text(json!({"schema": {"a": 1}})),
        r#"{"op":"return","schema":{"a":1}}"#
    );
    assert_eq!(
        text(json!({"schema": null})),
        r#"{"op":"return","schema":{"schema":null}}"#
    );
    assert_eq!(
        text(json!({"type": "object"})),
        r#"{"op":"return","schema":{"type":"object"}}"#
    );
}

#[test]
fn programs_of_version_4() {
    let program = Builder::new()
        .version(4)
        .var_set("id", context("user.id"))
        .member_set("o", ident("k"), 1);
    let text = concat!(
        r#"{"op":"seq","a99":4,"steps":[{"op":"varSet","key":"id","#,
        r#""value":{"$kind":"context","path":"user.id"}},{"op":"memberSet","object":"o","#,
        r#""key":{"$expr":"ident","name":"k"},"value":1}]}"#
    );
    assert_eq!(program.to_json_string().unwrap(), text);
}

/// One of each kind of expression node.
#[test]
fn expressions_are_nodes() {
    let all = [
        (literal(Value::Null), r#"{"$expr":"literal","value":null}"#),
        (literal(()), r#"{"$expr":"literal","value":null}"#),
        (Expr::from("x"), r#"{"$expr":"literal","value":"x"}"#),
        (ident("a"), r#"{"$expr":"ident","name":"a"}"#),
        (
            ident("a").member("b"),
            r#"{"$expr":"member","object":{"$expr":"ident","name":"a"},"property":"b"}"#,
        ),
        (
            ident("a").optional_member("b"),
            r#"{"$expr":"member","object":{"$expr":"ident","name":"a"},"property":"b","optional":true}"#,
        ),
        (
            ident("a").index(0),
            r#"{"$expr":"member","object":{"$expr":"ident","name":"a"},"property":{"$expr":"literal","value":0},"computed":true}"#,
        ),
        (
            -ident("a"),
            r#"{"$expr":"unary","op":"-","argument":{"$expr":"ident","name":"a"}}"#,
        ),
        (
            !ident("a"),
            r#"{"$expr":"unary","op":"!","argument":{"$expr":"ident","name":"a"}}"#,
        ),
        (
            conditional(true, 1, 2),
            r#"{"$expr":"conditional","test":{"$expr":"literal","value":true},"consequent":{"$expr":"literal","value":1},"alternate":{"$expr":"literal","value":2}}"#,
        ),
        (
            array([1]),
            r#"{"$expr":"array","elements":[{"$expr":"literal","value":1}]}"#,
        ),
        (
            object([("k", ident("v"))]),
            r#"{"$expr":"object","properties":[{"key":"k","value":{"$expr":"ident","name":"v"}}]}"#,
        ),
        (
            keyed_object([(ident("k"), ident("v"))]),
            r#"{"$expr":"object","properties":[{"key":{"$expr":"ident","name":"k"},"value":{"$expr":"ident","name":"v"}}]}"#,
        ),
        (
            Expr::context("user.id"),
            r#"{"$expr":"context","path":"user.id"}"#,
        ),
        (
            Expr::call("parseInt", ["7"]),
            r#"{"$expr":"call","callee":"parseInt","arguments":[{"$expr":"literal","value":"7"}]}"#,
        ),
        (
            ident("s").method::<Expr>("trim", []),
            r#"{"$expr":"methodCall","object":{"$expr":"ident","name":"s"},"method":"trim","arguments":[]}"#,
        ),
    ];
    for (expr, text) in all {
        assert_eq!(expr.value().to_json_string(), text);
    }
}

#[test]
fn operators_are_those_of_the_language() {
    let a = || ident("a");
    let all = [
        (a() + 3, "binary", "+"),
        (a() - 3, "binary", "-"),
        (a() * 3, "binary", "*"),
        (a() / 3, "binary", "/"),
        (a() % 3, "binary", "%"),
        (a().power(3), "binary", "**"),
        (a().equals(3), "binary", "=="),
        (a().differs(3), "binary", "!="),
        (a().less_than(3), "binary", "<"),
        (a().at_most(3), "binary", "<="),
        (a().greater_than(3), "binary", ">"),
        (a().at_least(3), "binary", ">="),
        (a().and(3), "logical", "&&"),
        (a().or(3), "logical", "||"),
        (a().coalesce(3), "logical", "??"),
    ];
    for (expr, tag, op) in all {
        assert_eq!(
            expr.value().to_json_string(),
            format!(
                r#"{{"$expr":"{tag}","op":"{op}","left":{{"$expr":"ident","name":"a"}},"right":{{"$expr":"literal","value":3}}}}"#
            )
        );
    }
}
