//! The schemas of programs, judged by a validator and by a grammar engine for
//! constrained decoding, neither of which is ours.

use agent99::{Engine, RunOptions, SchemaForm};
use jsonschema::Validator;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Set to have the page written anew.
const BLESS: &str = "BLESS";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn engine() -> Engine {
    Engine::builder().lint(true).build()
}

fn validator(form: SchemaForm) -> Validator {
    let schema = engine().program_schema(form);
    let sound = jsonschema::draft202012::meta::validate(&schema);
    assert!(sound.is_ok(), "{:?}", sound.err());
    jsonschema::draft202012::new(&schema).expect("references lead somewhere")
}

fn faults(validator: &Validator, program: &Value) -> String {
    let faults = validator.iter_errors(program);
    let faults = faults.map(|fault| format!("{}: {fault}", fault.instance_path()));
    faults.collect::<Vec<_>>().join("\n")
}

/// What is found in a program, whether it is accepted or not.
fn found(engine: &Engine, program: &Value) -> String {
    match engine.compile(program.to_string()) {
        Ok(agent) => agent.warnings().render(None),
        Err(found) => found.render(None),
    }
}

#[test]
fn the_page_is_what_the_engine_says() {
    let page = path("docs/program.schema.json");
    let schema = Engine::new().program_schema(SchemaForm::Full);
    let text = format!("{}\n", serde_json::to_string_pretty(&schema).expect("JSON"));
    assert!(text.len() < 300_000, "{}", text.len());
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&page, text).expect("written");
    } else {
        let written = std::fs::read_to_string(&page).unwrap_or_default();
        assert!(written == text, "{BLESS}=1 writes {} anew", page.display());
    }
}

#[test]
fn examples_name_the_page_and_are_valid() {
    let validator = validator(SchemaForm::Full);
    let folders = std::fs::read_dir(path("examples")).expect("a folder");
    let mut count = 0;
    for folder in folders.map(|entry| entry.expect("an entry").path()) {
        let Ok(text) = std::fs::read_to_string(folder.join("agent.json")) else {
            continue;
        };
        let program: Value = serde_json::from_str(&text).expect("JSON");
        let named = program["$schema"].as_str().unwrap_or_default();
        let page = folder.join(named).canonicalize().ok();
        assert_eq!(page, path("docs/program.schema.json").canonicalize().ok());
        assert_eq!(faults(&validator, &program), "", "{}", folder.display());
        count += 1;
    }
    assert!(count > 5);
}

/// An operator of `logical` that is none is `||`, which nothing is found about.
const QUIRK: &str = "quirk-logical-other-op";

/// What `check --deny-warnings` accepts is valid.
#[test]
fn vectors_without_warnings_are_valid() {
    let (engine, validator) = (engine(), validator(SchemaForm::Full));
    let folder = std::fs::read_dir(path("tests/vectors")).expect("a folder");
    let mut bad = Vec::new();
    let mut good = 0;
    for file in folder.map(|entry| entry.expect("an entry").path()) {
        for case in lines(&file) {
            let program = &case["ast"];
            if !program.is_object() || !found(&engine, program).is_empty() {
                continue;
            }
            good += 1;
            if !validator.is_valid(program) && case["id"] != QUIRK {
                let faults = faults(&validator, program);
                bad.push(format!("{}: {faults}", case["id"]));
            }
        }
    }
    assert!(good > 500, "{good}");
    assert!(
        bad.is_empty(),
        "{} of {good}: {}",
        bad.len(),
        bad.join("\n")
    );
}

/// Of the corpus of bad programs the schema refuses at least half: the others have
/// names and texts that no schema knows.
#[test]
fn half_of_what_is_found_is_invalid() {
    let validator = validator(SchemaForm::Full);
    let cases = lines(&path("tests/diagnostics/programs.jsonl"));
    let refused = |case: &&Value| !validator.is_valid(&case["program"]);
    let refused = cases.iter().filter(refused).count();
    assert!(refused * 2 >= cases.len(), "{refused} of {}", cases.len());
}

/// A program as the strict form has it: what is not given is null, and members
/// stand in the order of the schema.
fn in_strict_form(program: &Value, schema: &Value) -> Value {
    fn of_kind<'s>(choices: &'s Value, key: &str, value: &Value) -> Option<&'s Value> {
        let named = |form: &&Value| form["properties"][key]["enum"][0] == value[key];
        choices["anyOf"].as_array()?.iter().find(named)
    }
    let whole = |map: &Map<String, Value>, form: &Value| -> Value {
        let names = form["properties"].as_object().expect("members");
        for key in map.keys() {
            assert!(names.contains_key(key), "{key}");
        }
        let member = |name: &String| {
            let value = map.get(name).cloned().unwrap_or_default();
            (name.clone(), in_strict_form(&value, schema))
        };
        names.keys().map(member).collect::<Map<_, _>>().into()
    };
    let definitions = &schema["$defs"];
    match program {
        Value::Array(list) => list.iter().map(|v| in_strict_form(v, schema)).collect(),
        Value::Object(map) => {
            let form = of_kind(&definitions["node"], "$expr", program)
                .or_else(|| {
                    of_kind(&definitions["step"], "op", program)
                        .filter(|_| !map.contains_key("$expr"))
                })
                .unwrap_or(match map.contains_key("$kind") {
                    true => &definitions["argument"],
                    false => &json!(null),
                });
            match form.is_object() {
                true => whole(map, form),
                // A property of an object.
                false => map
                    .iter()
                    .map(|(k, v)| (k.clone(), in_strict_form(v, schema)))
                    .collect::<Map<_, _>>()
                    .into(),
            }
        }
        scalar => scalar.clone(),
    }
}

fn whole_in_strict_form(program: &Value, schema: &Value) -> Value {
    json!({"op": "seq", "steps": in_strict_form(&program["steps"], schema)})
}

/// Programs that use what the strict form has, arguments, and what they give.
fn programs() -> Vec<(Value, Value, Value)> {
    let ident = |name: &str| json!({"$expr": "ident", "name": name});
    let object = |members: &[(&str, Value)]| {
        let members = members
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value}));
        json!({"$expr": "object", "properties": members.collect::<Vec<_>>()})
    };
    vec![
        (
            json!({"op": "seq", "steps": [
                {"op": "varSet", "key": "total", "value": 0},
                {"op": "map", "items": {"$kind": "arg", "path": "lines"}, "as": "line", "steps": [
                    {"op": "varSet", "key": "result", "value": {"$expr": "binary", "op": "*",
                        "left": {"$expr": "member", "object": ident("line"), "property": "price"},
                        "right": {"$expr": "member", "object": ident("line"), "property": "count"}}},
                ], "result": "prices"},
                {"op": "reduce", "items": "prices", "as": "price", "accumulator": "sum",
                    "initial": 0, "steps": [
                        {"op": "mathCalc", "expr": "sum + price", "result": "result"}],
                    "result": "total"},
                {"op": "if", "condition": "total > 10", "then": [
                    {"op": "template", "tmpl": "much: {{n}}",
                        "vars": object(&[("n", ident("total"))]), "result": "text"},
                ], "else": [{"op": "varSet", "key": "text", "value": "little"}]},
                {"op": "return", "value": object(&[("text", ident("text")), ("total", ident("total"))])},
            ]}),
            json!({"lines": [{"price": 2, "count": 3}, {"price": 5, "count": 1}]}),
            json!({"text": "much: 11", "total": 11}),
        ),
        (
            json!({"op": "seq", "steps": [
                {"op": "varsImport", "keys": ["words"]},
                {"op": "filter", "items": "words", "as": "word", "condition": "word.length > 2",
                    "result": "long"},
                {"op": "join", "list": "long", "sep": "-", "result": "joined"},
                {"op": "try", "try": [
                    {"op": "if", "condition": "joined == 'one-three'", "then": [
                        {"op": "Error", "args": ["no"]}]},
                ], "catch": [{"op": "push", "list": "long", "item": "error"}]},
                {"op": "while", "condition": "long.length < 5", "body": [
                    {"op": "push", "list": "long", "item": {"$expr": "methodCall",
                        "object": "a", "method": "toUpperCase", "arguments": []}}]},
                {"op": "memoize", "steps": [
                    {"op": "random", "min": 3, "max": 4, "format": "integer", "result": "result"}],
                    "result": "three"},
                {"op": "varSet", "key": "answer", "value": object(&[
                    ("long", ident("long")), ("three", ident("three"))])},
                {"op": "return", "value": "answer"},
            ]}),
            json!({"words": ["one", "to", "three"]}),
            json!({"long": ["one", "three", "no", "A", "A"], "three": 3}),
        ),
    ]
}

/// Null is the same as nothing where an input may be left out, so that programs of
/// the strict form run as they are.
#[test]
fn strict_programs_run_as_they_are() {
    let engine = engine();
    let schema = engine.program_schema(SchemaForm::Strict);
    let (strict, full) = (validator(SchemaForm::Strict), validator(SchemaForm::Full));
    for (program, args, expected) in programs() {
        assert_eq!(faults(&full, &program), "");
        assert!(!strict.is_valid(&program));
        let filled = whole_in_strict_form(&program, &schema);
        for program in [&program, &filled] {
            let agent = engine.compile(program.to_string());
            let agent = agent.unwrap_or_else(|refused| panic!("{}", refused.render(None)));
            assert_eq!(agent.warnings().render(None), "");
            let outcome = engine.run_sync(&agent, args.clone(), RunOptions::new());
            assert_eq!(outcome.result.to_json(), expected, "{:?}", outcome.error);
        }
        assert_eq!(faults(&full, &filled), "");
        assert_eq!(faults(&strict, &filled), "");
    }
}

/// Each step with null for all that may be left out is that step without it.
#[test]
fn null_is_what_is_left_out() {
    let engine = engine();
    let schema = engine.program_schema(SchemaForm::Strict);
    let steps = schema["$defs"]["step"]["anyOf"].as_array().expect("forms");
    let mut wrong = Vec::new();
    for form in steps {
        let inputs = form["properties"].as_object().expect("members");
        let may_be_null = |schema: &Value| match schema["type"].as_array() {
            Some(kinds) => kinds.contains(&json!("null")),
            None => schema["type"] == "null",
        };
        let op = &inputs["op"]["enum"][0];
        let sig = engine
            .atoms()
            .get(op.as_str().expect("text"))
            .expect("an atom");
        let (mut bare, mut filled) = (Map::new(), Map::new());
        for (name, schema) in inputs {
            let required = sig.sig.input(name).is_some_and(|input| input.required);
            let value = match name.as_str() {
                "op" => op.clone(),
                _ if !required && name != "value" => {
                    let null = may_be_null(schema)
                        || schema["anyOf"]
                            .as_array()
                            .is_some_and(|all| all.iter().any(may_be_null))
                        || schema["anyOf"][0]["$ref"] == "#/$defs/value";
                    assert!(null, "{op} {name}: {schema}");
                    filled.insert(name.clone(), Value::Null);
                    continue;
                }
                "condition" => json!("1 < 2"),
                "expr" => json!("1 + 2"),
                _ if schema["items"]["$ref"] == "#/$defs/step" => json!([]),
                _ => json!("x"),
            };
            bare.insert(name.clone(), value.clone());
            filled.insert(name.clone(), value);
        }
        let codes = |step: Map<String, Value>| {
            let program = json!({"op": "seq", "steps": [step]});
            let found = match engine.compile(program.to_string()) {
                Ok(agent) => agent.warnings().clone(),
                Err(found) => found,
            };
            found
                .iter()
                .map(|d| (d.code.to_string(), d.pointer.clone()))
                .collect::<Vec<_>>()
        };
        let (with, without) = (codes(filled), codes(bare));
        if with != without {
            wrong.push(format!("{op}: {with:?} {without:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How many bytes of a text a grammar engine takes, and whether it may end there.
fn decode(matcher: &mut Matcher, text: &str) -> (usize, bool) {
    let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
    let taken = matcher.try_consume_tokens(&bytes).expect("no failure");
    (
        taken,
        taken == bytes.len() && matcher.is_accepting().expect("no failure"),
    )
}

/// The strict form compiles in llguidance, the grammar engine of several model
/// servers, and holds a model to it byte by byte.
#[test]
fn a_grammar_engine_takes_the_strict_form() {
    let schema = engine().program_schema(SchemaForm::Strict);
    let bytes = ApproximateTokEnv::single_byte_env();
    let mut factory = ParserFactory::new_simple(&bytes).expect("a factory");
    factory.quiet();
    let grammar = TopLevelGrammar::from_json_schema(schema.clone());
    let parser = factory.create_parser(grammar).expect("a grammar");
    let mut matcher = Matcher::new(Ok(parser));
    assert_eq!(matcher.grammar_warnings(), Vec::<String>::new());
    for (program, ..) in programs() {
        matcher.reset().expect("a start");
        let text = whole_in_strict_form(&program, &schema).to_string();
        let (taken, may_end) = decode(&mut matcher, &text);
        assert!(may_end, "{}", &text[..taken]);
    }
    for (good, bad) in [
        (r#"{"op":"seq","steps":[{"op":""#, "foreach"),
        (
            r#"{"op":"seq","steps":[{"op":"len","list":{"$expr":""#,
            "lambda",
        ),
        (
            r#"{"op":"seq","steps":[{"op":"len","list":{"$expr":"binary","op":""#,
            "=\"",
        ),
        (
            r#"{"op":"seq","steps":[{"op":"hash","value":"a","algorithm":""#,
            "MD5",
        ),
        (r#"{"op":"seq","steps":[{"op":"len","#, r#""array""#),
        (r#"{"op":"seq","#, r#""helpers""#),
    ] {
        matcher.reset().expect("a start");
        let (taken, _) = decode(&mut matcher, &format!("{good}{bad}"));
        let most = good.len() + bad.len();
        assert!((good.len()..most).contains(&taken), "{good}{bad}: {taken}");
    }
}
