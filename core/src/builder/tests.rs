//! The chain itself: order of keys, names of results, faults.

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
        (codes::E0301, "No step to capture", "/steps")
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
}
