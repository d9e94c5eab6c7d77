//! Tools in the providers' forms, judged by the rules that they publish,
//! written as JSON Schema under `providers`.

use agent99::{AtomSet, AtomSets, Engine, ToolFilter, ToolForm, atom, json};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;

/// A tree of remarks.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Remark {
    text: String,
    #[serde(default)]
    answers: Vec<Remark>,
    mood: Option<Mood>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Glad,
    Sad { why: String },
}

/// Adds a remark.
#[atom(cost = 1, effect = "io")]
fn add_remark(
    /// What is remarked.
    remark: Remark,
    at: (f64, f64),
    #[atom(default = 3)] least: u8,
) -> Remark {
    let _ = (at, least);
    remark
}

/// Sets a level.
#[atom(cost = 1)]
fn set_level(level: i8, remark: Option<Remark>, mood: Option<Mood>) -> bool {
    remark.is_some() || mood.is_some() || level > 0
}

/// Anything goes.
#[atom(cost = 1)]
fn open(any: Value, counts: HashMap<String, u32>) -> HashMap<String, u32> {
    let _ = any;
    counts
}

fn engine() -> Engine {
    let atoms = AtomSet::all().with(ADD_REMARK).with(SET_LEVEL).with(OPEN);
    Engine::builder().atoms(atoms).build()
}

fn rules(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).expect("JSON");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

#[track_caller]
fn assert_valid(rules: &Validator, value: &Value) {
    let errors: Vec<String> = rules
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
}

/// Each form with its rules and the place of the input's schema.
fn forms() -> [(ToolForm, Validator, &'static str); 4] {
    let openai = include_str!("providers/openai.json");
    let strict = include_str!("providers/openai_strict.json");
    let anthropic = include_str!("providers/anthropic.json");
    let mcp = include_str!("providers/mcp.json");
    [
        (ToolForm::OpenAi, rules(openai), "/function/parameters"),
        (
            ToolForm::OpenAiStrict,
            rules(strict),
            "/function/parameters",
        ),
        (ToolForm::Anthropic, rules(anthropic), "/input_schema"),
        (ToolForm::Mcp, rules(mcp), "/inputSchema"),
    ]
}

#[test]
fn every_tool_follows_the_rules() {
    for (form, rules, place) in forms() {
        let tools = engine().tools_as(&ToolFilter::All, form);
        assert_eq!(tools.len(), 78, "{form:?}");
        for tool in tools {
            assert_valid(&rules, &tool);
            let schema = tool.pointer(place).expect("an input");
            let sound = jsonschema::draft202012::meta::validate(schema);
            assert!(sound.is_ok(), "{form:?} {schema:#}");
            jsonschema::draft202012::new(schema).expect("references lead somewhere");
        }
    }
}

#[test]
fn the_rules_refuse() {
    let [
        (_, openai, _),
        (_, strict, _),
        (_, anthropic, _),
        (_, mcp, _),
    ] = forms();
    let parameters = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let function = |name: &str, strict: bool| {
        json!({"type": "function", "function": {
            "name": name, "strict": strict, "parameters": parameters}})
    };
    assert!(openai.is_valid(&function("a", false)));
    assert!(!openai.is_valid(&function("a.b", false)));
    assert!(!openai.is_valid(&function(&"a".repeat(65), false)));
    assert!(!strict.is_valid(&function("a", true)));
    assert!(strict.is_valid(&function("a", false)));
    assert!(!anthropic.is_valid(&json!({"name": "a", "input_schema": {}})));
    assert!(!mcp.is_valid(&json!({"name": "a", "inputSchema": {"type": "string"}})));
}

fn named(name: &str, form: ToolForm) -> Value {
    let filter = ToolFilter::Names(vec![name.to_owned()]);
    engine().tools_as(&filter, form).remove(0)
}

#[test]
fn strict_where_it_can_be() {
    let tool = named("setLevel", ToolForm::OpenAiStrict);
    assert_eq!(tool["function"]["strict"], true);
    let parameters = &tool["function"]["parameters"];
    assert_eq!(parameters["required"], json!(["level", "remark", "mood"]));
    // What a model may say under the strict schema, the atom takes.
    let validator = jsonschema::draft202012::new(parameters).unwrap();
    let said = json!({"level": 1, "mood": {"sad": {"why": "rain"}}, "remark": {
        "text": "t", "mood": null, "answers": [{"text": "u", "mood": "glad", "answers": []}]}});
    assert_valid(&validator, &said);
    assert!(serde_json::from_value::<SetLevelInput>(said).is_ok());
    assert!(!validator.is_valid(&json!({"level": 1})));
    for name in ["open", "addRemark", "varSet"] {
        assert_eq!(
            named(name, ToolForm::OpenAiStrict)["function"]["strict"],
            false
        );
    }
}

#[test]
fn mcp_tells_outputs_and_effects() {
    let tool = named("addRemark", ToolForm::Mcp);
    assert_eq!(tool["outputSchema"]["type"], "object");
    assert_eq!(tool["annotations"], json!({"openWorldHint": true}));
    let tool = named("setLevel", ToolForm::Mcp);
    assert_eq!(tool.get("outputSchema"), None);
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    assert_eq!(tool["description"], "Sets a level.");
}

#[test]
fn schemas_accept_what_atoms_accept() {
    let schema = ADD_REMARK.input_schema();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let remark = json!({"text": "t", "answers": [{"text": "u"}], "mood": "glad"});
    assert_valid(&validator, &json!({"remark": remark, "at": [1, 2.5]}));
    for bad in [
        json!({"remark": remark}),
        json!({"remark": remark, "at": [1]}),
        json!({"remark": {"text": 1}, "at": [1, 2]}),
        json!({"remark": remark, "at": [1, 2], "least": 256}),
        json!({"remark": remark, "at": [1, 2], "other": 1}),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
    }
    let output = ADD_REMARK.output_schema();
    jsonschema::draft202012::meta::validate(&output).unwrap();
}
