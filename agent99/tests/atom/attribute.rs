//! Names, documentation, types and keys of the attribute.

use agent99::{Agent, AtomBody, AtomCx, AtomDef, AtomTimeout, Effect, Params, atom, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point of a plan.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Point {
    /// To the right.
    x: f64,
    y: Option<f64>,
}

/// Moves a point.
///
/// Twice, if asked.
#[atom(cost = 2.5)]
pub fn move_point(
    /// Where it is.
    point: Point,
    by_x: f64,
    #[atom(default = 1)] times: u32,
) -> Point {
    Point {
        x: point.x + by_x * f64::from(times),
        ..point
    }
}

/// What it computes is dropped.
#[atom(
    cost = 0,
    name = "wait-a-bit",
    docs = "Waits.",
    timeout_ms = 0,
    effect = "pure"
)]
fn wait(_cx: &AtomCx) {}

/// Matches.
#[atom(cost = 1, output = "{\"type\": \"string\", \"maxLength\": 3}")]
fn r#match(r#type: &str, #[atom(name = "ifNot")] otherwise: Option<String>) -> serde_json::Value {
    match otherwise {
        Some(text) if r#type.is_empty() => text.into(),
        _ => r#type.into(),
    }
}

/// Nothing.
#[atom(cost = 1, crate = a99_vm, output = Vec<Option<Point>>, timeout_ms = 20)]
fn nothing() -> serde_json::Value {
    json!([null])
}

#[test]
fn the_function_stays() {
    let start = Point { x: 1.0, y: None };
    assert_eq!(move_point(start, 2.0, 2).x, 5.0);
    assert_eq!(r#match("", Some("b".to_owned())), "b");
}

#[test]
fn names_and_documentation() {
    assert_eq!(MOVE_POINT.name, "movePoint");
    assert_eq!(MOVE_POINT.docs, "Moves a point.\n\nTwice, if asked.");
    assert_eq!((WAIT.name, WAIT.docs), ("wait-a-bit", "Waits."));
    assert_eq!((MATCH.name, MATCH.docs), ("match", "Matches."));
    let def = AtomDef::from(MATCH);
    let Params::Named(params) = &def.sig.params else {
        panic!("named parameters")
    };
    let keys: Vec<&str> = params.iter().map(|param| param.name).collect();
    assert_eq!(keys, ["type", "ifNot"]);
}

#[test]
fn calling_and_limits() {
    let def = WAIT.def();
    assert!(matches!(def.body, AtomBody::Async(_)));
    assert_eq!(
        (def.sig.effect, def.sig.timeout),
        (Effect::Pure, AtomTimeout::None)
    );
    let def = NOTHING.def();
    assert!(matches!(def.body, AtomBody::Native(_)));
    assert_eq!(
        (def.sig.effect, def.sig.timeout),
        (Effect::Pure, AtomTimeout::Ms(20))
    );
    let def = MOVE_POINT.def();
    assert_eq!(
        (def.sig.cost.fixed(), def.sig.timeout),
        (2_500_000, AtomTimeout::Ms(1000))
    );
}

#[test]
fn schemas() {
    let point = json!({
        "type": "object",
        "properties": {
            "x": {"description": "To the right.", "type": "number"},
            "y": {"type": ["number", "null"]},
        },
        "required": ["x"],
    });
    let mut described = point.clone();
    described["description"] = json!("Where it is.");
    assert_eq!(
        MOVE_POINT.input_schema(),
        json!({
            "type": "object",
            "properties": {
                "point": described,
                "byX": {"type": "number"},
                "times": {"type": "integer", "minimum": 0, "default": 1},
            },
            "required": ["point", "byX"],
            "additionalProperties": false,
        })
    );
    let mut output = point.clone();
    output["description"] = json!("A point of a plan.");
    output["required"] = json!(["x", "y"]);
    assert_eq!(MOVE_POINT.output_schema(), output);
    assert_eq!(
        MATCH.output_schema(),
        json!({"type": "string", "maxLength": 3})
    );
    assert_eq!(WAIT.output_schema(), json!({"type": "null"}));
    assert_eq!(
        WAIT.input_schema(),
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
    );
    let strict = MOVE_POINT
        .strict_input_schema()
        .expect("it has a strict form");
    assert_eq!(strict["required"], json!(["point", "byX", "times"]));
    assert_eq!(
        strict["properties"]["times"]["type"],
        json!(["integer", "null"])
    );
    assert_eq!(strict["properties"]["point"]["required"], json!(["x", "y"]));
}

#[test]
fn the_input_is_a_struct() {
    let input: MovePointInput =
        serde_json::from_value(json!({"point": {"x": 1}, "byX": 2})).unwrap();
    assert_eq!((input.point.x, input.by_x, input.times), (1.0, 2.0, 1));
    let input = MatchInput {
        r#type: "t".to_owned(),
        otherwise: None,
    };
    assert_eq!(
        format!("{:?}", input.clone()),
        r#"MatchInput { type: "t", otherwise: None }"#
    );
}

#[test]
fn the_builder_has_a_method() {
    let program = Agent::take(json!({}))
        .r#match("x", ())
        .as_("m")
        .move_point(json!({"x": 1}), 2, 3)
        .as_("p")
        .return_(json!({"type": "object", "properties": {"m": {}, "p": {}}}));
    assert_eq!(
        program.to_json().unwrap(),
        json!({"op": "seq", "steps": [
            {"op": "match", "type": "x", "result": "m"},
            {"op": "movePoint", "point": {"x": 1}, "byX": 2, "times": 3, "result": "p"},
            {"op": "return", "schema": {"type": "object", "properties": {"m": {}, "p": {}}}},
        ]})
    );
    let engine = agent99::Engine::builder()
        .atoms(agent99::core_atoms().with(MATCH).with(MOVE_POINT))
        .build();
    let agent = engine.compile_builder(&program).unwrap();
    let outcome = engine.run_sync(&agent, json!({}), agent99::RunOptions::new());
    assert_eq!(
        outcome.result.to_json(),
        json!({"m": "x", "p": {"x": 7, "y": null}})
    );
}

mod inner {
    //! The expansion resolves its names from any scope.
    #![allow(unused, reason = "it need only compile")]
    type Option = ();
    type Result = ();
    type Vec = ();
    type Box = ();
    fn ok() {}

    /// Adds up.
    #[agent99::atom(cost = 1)]
    pub(super) async fn shadowed(call: u8, args: u8, cx: u8) -> std::result::Result<u8, String> {
        Ok(call + args + cx)
    }
}

#[test]
fn names_of_the_surroundings_do_not_matter() {
    let step = json!({"op": "shadowed", "call": 1, "args": 2, "cx": 3});
    let outcome = crate::run_step([inner::SHADOWED.def()], step);
    assert_eq!(crate::value(&outcome).to_json(), json!(6));
}
