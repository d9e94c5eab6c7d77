//! Tools in the providers' forms, checked against their published rules, which are JSON
//! Schemas under `providers` with their sources.

use agent99::{
    AtomDef, AtomSet, AtomSets, AtomSig, Engine, Params, ToolFilter, ToolForm, atom, json,
};
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

/// A key that some forms cannot name.
#[atom(cost = 1)]
fn odd_key(#[atom(name = "how much?")] how_much: f64) -> f64 {
    how_much
}

pub(crate) fn engine() -> Engine {
    let atoms = AtomSet::all()
        .with(ADD_REMARK)
        .with(SET_LEVEL)
        .with(OPEN)
        .with(ODD_KEY);
    // Atoms of a host without schemas, with arbitrary keys.
    let bare = |name, params| {
        let mut atom = AtomDef::clone(atoms.get("len").expect("an atom"));
        atom.sig = AtomSig {
            params,
            ..AtomSig::new(name, "Anything.", 0)
        };
        atom
    };
    let (any, raw) = (
        bare("anyKeys", Params::Open),
        bare("asWritten", Params::Raw),
    );
    Engine::builder()
        .atoms(atoms.clone().with(any).with(raw))
        .build()
}

pub(crate) const FORMS: [ToolForm; 5] = [
    ToolForm::OpenAi,
    ToolForm::OpenAiStrict,
    ToolForm::Anthropic,
    ToolForm::Gemini,
    ToolForm::Mcp,
];

fn rules(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).expect("JSON");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

#[track_caller]
pub(crate) fn assert_valid(rules: &Validator, value: &Value) {
    let errors: Vec<String> = rules
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
}

/// The rules of a form and the place of the input's schema.
pub(crate) fn rules_of(form: ToolForm) -> (Validator, &'static str) {
    let (text, place) = match form {
        ToolForm::OpenAi => (
            include_str!("providers/openai.json"),
            "/function/parameters",
        ),
        ToolForm::OpenAiStrict => (
            include_str!("providers/openai_strict.json"),
            "/function/parameters",
        ),
        ToolForm::Anthropic => (include_str!("providers/anthropic.json"), "/input_schema"),
        ToolForm::Gemini => (include_str!("providers/gemini.json"), "/parameters"),
        ToolForm::Mcp => (include_str!("providers/mcp.json"), "/inputSchema"),
    };
    (rules(text), place)
}

#[test]
fn every_tool_follows_the_rules() {
    let engine = engine();
    let atoms = engine.tools(&ToolFilter::All).len();
    for form in FORMS {
        let (rules, place) = rules_of(form);
        let tools = engine.tools_as(&ToolFilter::All, form);
        assert_eq!(tools.len(), atoms, "{form:?}");
        // OpenAI: "A max of 128 functions are supported."
        assert!(tools.len() <= 128);
        for tool in tools {
            assert_valid(&rules, &tool);
            let Some(schema) = tool.pointer(place) else {
                let parameters = named(tool["name"].as_str().unwrap(), ToolForm::OpenAi);
                let parameters = &parameters["function"]["parameters"]["properties"];
                assert_eq!((form, parameters), (ToolForm::Gemini, &json!({})));
                continue;
            };
            let properties = schema["properties"].as_object().expect("members");
            let required = schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten() {
                assert!(properties.contains_key(name.as_str().unwrap()), "{tool:#}");
            }
            if form == ToolForm::Gemini {
                continue;
            }
            let sound = jsonschema::draft202012::meta::validate(schema);
            assert!(sound.is_ok(), "{form:?} {schema:#}");
            jsonschema::draft202012::new(schema).expect("references lead somewhere");
        }
    }
}

/// Members, nesting, values and characters of a schema.
pub(crate) fn measure(schema: &Value, depth: usize, of: &mut [usize; 4]) {
    of[1] = of[1].max(depth);
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "properties" | "$defs" => {
                for (name, inner) in value.as_object().expect("members") {
                    of[0] += usize::from(key == "properties");
                    of[3] += name.len();
                    measure(inner, depth + 1, of);
                }
            }
            "enum" => {
                let values = value.as_array().expect("values");
                of[2] += values.len();
                let characters = values.iter().map(|v| v.to_string().len()).sum::<usize>();
                of[3] += characters;
                // Of one list of texts, too.
                assert!(values.len() <= 250 || characters <= 15_000, "{schema:#}");
            }
            "items" => measure(value, depth, of),
            "anyOf" => {
                let branches = value.as_array().expect("branches");
                branches
                    .iter()
                    .for_each(|branch| measure(branch, depth, of));
            }
            _ => {}
        }
    }
}

/// "A schema may have up to 5000 object properties total, with up to 10 levels
/// of nesting", 1,000 values of enums, 120,000 characters of names and values
/// (structured outputs, supported schemas).
#[test]
fn all_tools_are_strict_within_the_limits() {
    for tool in engine().tools_as(&ToolFilter::All, ToolForm::OpenAiStrict) {
        assert_eq!(tool["function"]["strict"], true, "{tool:#}");
        let mut of = [0; 4];
        measure(&tool["function"]["parameters"], 0, &mut of);
        let within = of.iter().zip([5_000, 10, 1_000, 120_000]);
        assert!(within.into_iter().all(|(n, most)| *n <= most), "{of:?}");
    }
}

#[test]
fn the_rules_refuse() {
    let [openai, strict, anthropic, gemini, mcp] = FORMS.map(|form| rules_of(form).0);
    let parameters = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let function = |name: &str, strict: bool| {
        json!({"type": "function", "function": {
            "name": name, "strict": strict, "parameters": parameters}})
    };
    assert!(openai.is_valid(&function("a", false)));
    assert!(!openai.is_valid(&function("a.b", false)));
    assert!(!openai.is_valid(&function(&"a".repeat(65), false)));
    let of = |parameters: Value| json!({"type": "function", "function": {"name": "a", "parameters": parameters}});
    assert!(!openai.is_valid(&of(json!({}))));
    assert!(!openai.is_valid(&of(json!({"type": "object"}))));
    let list = json!({"type": "object", "properties": {"a": {"type": ["array", "null"]}}});
    assert!(!openai.is_valid(&of(list)));
    assert!(!strict.is_valid(&function("a", true)));
    assert!(strict.is_valid(&function("a", false)));
    assert!(!anthropic.is_valid(&json!({"name": "a", "input_schema": {}})));
    let either = json!({"type": "object", "anyOf": [{"required": ["a"]}]});
    assert!(!anthropic.is_valid(&json!({"name": "a", "input_schema": either})));
    assert!(!mcp.is_valid(&json!({"name": "a", "inputSchema": {"type": "string"}})));
    let of = |a: Value| {
        json!({"name": "a", "description": "A.",
            "parameters": {"type": "OBJECT", "properties": {"a": a}}})
    };
    assert!(gemini.is_valid(&of(json!({"type": "STRING", "nullable": true}))));
    for bad in [
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["STRING", "NULL"]}),
        json!({"type": "OBJECT"}),
        json!({"type": "OBJECT", "properties": {}}),
        json!({"type": "ARRAY"}),
        json!({"type": "STRING", "items": {"type": "STRING"}}),
        json!({"type": "NUMBER", "enum": ["1"]}),
        json!({"type": "STRING", "default": "a"}),
        json!({"type": "STRING", "additionalProperties": false}),
        json!({"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}], "description": "A."}),
    ] {
        assert!(!gemini.is_valid(&of(bad.clone())), "{bad}");
    }
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
    // The atom accepts every call that is valid under the strict schema.
    let validator = jsonschema::draft202012::new(parameters).unwrap();
    let said = json!({"level": 1, "mood": {"sad": {"why": "rain"}}, "remark": {
        "text": "t", "mood": null, "answers": [{"text": "u", "mood": "glad", "answers": []}]}});
    assert_valid(&validator, &said);
    assert!(serde_json::from_value::<SetLevelInput>(said).is_ok());
    assert!(!validator.is_valid(&json!({"level": 1})));
    // Inputs without a strict form are JSON texts.
    let tool = named("addRemark", ToolForm::OpenAiStrict);
    let inputs = &tool["function"]["parameters"]["properties"];
    assert!(inputs["remark"].get("$ref").is_some() || inputs["remark"]["type"] == "object");
    let at = inputs["at"]["description"].as_str().unwrap();
    assert_eq!(at, "Written as the JSON text of an array.");
    let least = &inputs["least"];
    assert_eq!(least["description"], "Default: 3.");
    let tool = named("varsLet", ToolForm::OpenAiStrict);
    assert_eq!(
        tool["function"]["parameters"]["required"],
        json!(["inputs"])
    );
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
