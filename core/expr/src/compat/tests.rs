//! Tests that replay the condition vectors on the strict v2 dialect, and those of `mathCalc`.

use super::parse_condition_v2;
use crate::tests::{REFUSED_ACCIDENTS, condition_vectors, show};
use crate::to_expr_json;

mod math;

#[test]
fn strict_dialect_replays_the_condition_vectors() {
    let mut wrong = Vec::new();
    let mut replayed = 0;
    for vector in condition_vectors() {
        replayed += 1;
        let id = vector["id"].as_str().expect("an id");
        let text = vector["condition"].as_str().expect("a text");
        let given = parse_condition_v2(text);
        let right = if REFUSED_ACCIDENTS.contains(&id) {
            given
                .as_ref()
                .is_err_and(|error| error.starts_with("Malformed condition: "))
        } else if let Some(expected) = vector["expect"].get("expr") {
            given
                .as_ref()
                .is_ok_and(|expr| to_expr_json(expr) == *expected)
        } else {
            let expected = vector["expect"]["error"]["message"].as_str();
            given.as_ref().err().map(String::as_str) == expected
        };
        if !right {
            wrong.push(format!("{id}: {text:?} gave {given:?}"));
        }
    }
    assert!(replayed > 100, "only {replayed} vectors were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strict_dialect_names_each_accident() {
    for (text, message) in [
        (
            "a === b",
            "Malformed condition: unexpected '=' at character 4 in: a === b",
        ),
        (
            "a >",
            "Malformed condition: missing operand at character 3 in: a >",
        ),
        (
            "(a",
            "Malformed condition: unclosed '(' at character 0 in: (a",
        ),
        (
            "a.",
            "Malformed condition: missing member name after '.' at character 1 in: a.",
        ),
        (
            "'a",
            "Malformed condition: unclosed quote ' at character 0 in: 'a",
        ),
    ] {
        assert_eq!(parse_condition_v2(text), Err(message.to_owned()));
    }
}
