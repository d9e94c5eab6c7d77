//! The strict schema of programs, by OpenAI's published rules.

use crate::tools::{assert_valid, engine, measure, rules_of};
use agent99::{SchemaForm, ToolForm, json};

/// As the schema of a tool, which follows the same rules as that of an answer
/// (<https://platform.openai.com/docs/guides/structured-outputs>, supported schemas), with
/// host atoms. The limits are those of tools.
#[test]
fn the_strict_schema_of_programs_follows_the_rules() {
    let schema = engine().program_schema(SchemaForm::Strict);
    let (rules, _) = rules_of(ToolForm::OpenAiStrict);
    let tool = json!({"type": "function", "function": {
        "name": "run", "strict": true, "parameters": schema}});
    assert_valid(&rules, &tool);
    let mut of = [0; 4];
    measure(&schema, 0, &mut of);
    let within = of.iter().zip([5_000, 10, 1_000, 120_000]);
    assert!(within.into_iter().all(|(n, most)| *n <= most), "{of:?}");
    let steps = schema["$defs"]["step"]["anyOf"].as_array().expect("forms");
    let has = |op: &str| {
        let mut names = steps.iter().map(|s| &s["properties"]["op"]["enum"][0]);
        names.any(|name| name == op)
    };
    assert!(has("setLevel") && has("split") && has("return"));
    // Atoms that the strict form cannot express.
    assert!(!has("varsLet") && !has("callLocal") && !has("anyKeys"));
}

/// The full form has the schemas of host atoms, with resolvable references.
#[test]
fn host_atoms_are_in_the_schema_of_programs() {
    let schema = engine().program_schema(SchemaForm::Full);
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let program = |level| {
        json!({"op": "seq", "steps": [{"op": "setLevel", "level": level}, {"op": "asWritten", "any": 1},
            {"op": "oddKey", "how much?": 1}]})
    };
    assert_valid(&validator, &program(json!(3)));
    assert_valid(&validator, &program(json!("level")));
    assert!(!validator.is_valid(&program(json!([3]))));
}
