//! The prompt: its size, its programs and its rules, each of which is run, and programs for
//! ten tasks that follow its rules.

use agent99::{AtomSet, AtomSets, Engine, PromptForm, RunOptions, atom, builtins, json};
use serde_json::Value as Json;

/// Counts words.
#[atom(cost = 1)]
fn count_words(text: &str, least: Option<u8>) -> usize {
    let least = usize::from(least.unwrap_or(0));
    text.split(' ').filter(|word| word.len() >= least).count()
}

fn short() -> String {
    Engine::new().prompt(PromptForm::Short)
}

/// The result of a program, which must compile without findings.
fn run(program: &str, args: &Json) -> Json {
    let engine = Engine::builder().lint(true).build();
    let agent = engine.compile(program.to_owned());
    let agent = agent.unwrap_or_else(|refused| panic!("{refused}\n{program}"));
    assert!(
        agent.warnings().is_empty(),
        "{}\n{program}",
        agent.warnings()
    );
    let outcome = engine.run_sync(&agent, args.clone(), RunOptions::new());
    assert_eq!(outcome.error, None, "{program}");
    outcome.result.to_json()
}

#[test]
fn the_short_prompt_has_at_most_1100_tokens() {
    let text = short();
    for (name, vocabulary) in [
        ("o200k_base", tiktoken_rs::o200k_base_singleton()),
        ("cl100k_base", tiktoken_rs::cl100k_base_singleton()),
    ] {
        let tokens = vocabulary.encode_ordinary(&text).len();
        println!("{tokens} tokens of {name}");
        assert!((900..=1100).contains(&tokens), "{tokens} tokens of {name}");
    }
}

#[test]
fn the_prompt_of_the_source_form_has_at_most_800_tokens() {
    let text = Engine::new().prompt(PromptForm::Source);
    for (name, vocabulary) in [
        ("o200k_base", tiktoken_rs::o200k_base_singleton()),
        ("cl100k_base", tiktoken_rs::cl100k_base_singleton()),
    ] {
        let tokens = vocabulary.encode_ordinary(&text).len();
        assert!((500..=800).contains(&tokens), "{tokens} tokens of {name}");
    }
    assert!(text.contains("httpFetch({ url, method?"), "{text}");
    assert!(!text.contains("varSet"), "{text}");
}

#[test]
fn its_programs_run() {
    let text = short();
    let programs: Vec<&str> = text
        .match_indices("\n{\"op\":\"seq\"")
        .map(|(at, _)| text[at + 1..].split("\n\n").next().unwrap_or_default())
        .collect();
    let [total, capitals] = programs[..] else {
        panic!("{programs:?}");
    };
    let order = json!({"lines": [{"price": 2, "count": 3}, {"price": 4, "count": 1}], "rate": 0.5});
    assert_eq!(
        run(total, &order),
        json!({"total": 15, "note": "Total: 15"})
    );
    let people = json!({"people": [{"name": "Ada"}]});
    assert_eq!(run(capitals, &people), json!({"names": ["ADA"]}));
    assert_eq!(run(capitals, &json!({})), json!({"failed": "no people"}));
}

/// The text between backquotes: the fragment, a program with it, arguments, result. `...` in
/// a fragment is a wildcard.
const FRAGMENTS: &[(&str, &str, &str, &str)] = &[
    (
        r#"{"op":"seq","steps":[...]}"#,
        r#"{"op":"seq","steps":[{"op":"return","value":{"a":1}}]}"#,
        "{}",
        r#"{"a":1}"#,
    ),
    (
        r#""result":"x""#,
        r#"{"op":"seq","steps":[{"op":"split","str":"a b","sep":" ","result":"x"},
            {"op":"return","schema":{"type":"object","properties":{"x":{}}}}]}"#,
        "{}",
        r#"{"x":["a","b"]}"#,
    ),
    (
        r#""vars":{"n":"args.n"}"#,
        r#"{"op":"seq","steps":[{"op":"mathCalc","expr":"n * 2","vars":{"n":"args.n"},"result":"a"},
            {"op":"return","schema":{"type":"object","properties":{"a":{}}}}]}"#,
        r#"{"n":4}"#,
        r#"{"a":8}"#,
    ),
    (
        r#""n""#,
        r#"{"op":"seq","steps":[{"op":"varsImport","keys":["n"]},{"op":"varSet","key":"a","value":"n"},
            {"op":"return","schema":{"type":"object","properties":{"a":{}}}}]}"#,
        r#"{"n":4}"#,
        r#"{"a":4}"#,
    ),
    (
        r#""n.list.0""#,
        r#"{"op":"seq","steps":[{"op":"varsImport","keys":["n"]},
            {"op":"varSet","key":"a","value":"n.list.0"},
            {"op":"return","schema":{"type":"object","properties":{"a":{}}}}]}"#,
        r#"{"n":{"list":[7]}}"#,
        r#"{"a":7}"#,
    ),
    (
        r#""args.n""#,
        r#"{"op":"seq","steps":[{"op":"varSet","key":"a","value":"args.n"},
            {"op":"return","schema":{"type":"object","properties":{"a":{}}}}]}"#,
        r#"{"n":4}"#,
        r#"{"a":4}"#,
    ),
    (
        r#"{"total":{"$expr":"ident","name":"total"}}"#,
        r#"{"op":"seq","steps":[{"op":"varSet","key":"total","value":5},
            {"op":"return","value":{"total":{"$expr":"ident","name":"total"}}}]}"#,
        "{}",
        r#"{"total":5}"#,
    ),
    (
        r#""name.startsWith('a') && Math.abs(n) > 2""#,
        r#"{"op":"seq","steps":[{"op":"varSet","key":"a","value":false},
            {"op":"if","condition":"name.startsWith('a') && Math.abs(n) > 2",
            "then":[{"op":"varSet","key":"a","value":true}]},
            {"op":"return","schema":{"type":"object","properties":{"a":{}}}}]}"#,
        r#"{"n":-3,"name":"ab"}"#,
        r#"{"a":true}"#,
    ),
    (
        "order.lines[0].price",
        r#"{"op":"seq","steps":[{"op":"varsImport","keys":["order"]},
            {"op":"mathCalc","expr":"order.lines[0].price * 2 > 3","result":"a"},
            {"op":"return","schema":{"type":"object","properties":{"a":{}}}}]}"#,
        r#"{"order":{"lines":[{"price":2}]}}"#,
        r#"{"a":true}"#,
    ),
    (
        r#""helpers":{"h":{"paramNames":["x"],"steps":[...]}}"#,
        HELPER,
        r#"{"n":3}"#,
        r#"{"y":9}"#,
    ),
    (
        r#"{"op":"callLocal","name":"h","args":["n"],"result":"y"}"#,
        HELPER,
        r#"{"n":3}"#,
        r#"{"y":9}"#,
    ),
    (
        r#""a99":4"#,
        r#"{"op":"seq","a99":4,"steps":[{"op":"return","value":{"r":{"=":"1 + 1"}}}]}"#,
        "{}",
        r#"{"r":2}"#,
    ),
    (
        r#"{"=":"Math.round(a.b)"}"#,
        r#"{"op":"seq","a99":4,"steps":[{"op":"return","value":{"r":[{"=":"Math.round(a.b)"}]}}]}"#,
        r#"{"a":{"b":2.6}}"#,
        r#"{"r":[3]}"#,
    ),
];

const HELPER: &str = r#"{"op":"seq","helpers":{"h":{"paramNames":["x"],"steps":[
    {"op":"mathCalc","expr":"x * x","result":"s"},{"op":"return","value":"s"}]}},
    "steps":[{"op":"varsImport","keys":["n"]},
    {"op":"callLocal","name":"h","args":["n"],"result":"y"},
    {"op":"return","schema":{"type":"object","properties":{"y":{}}}}]}"#;

#[test]
fn each_fragment_of_its_rules_runs() {
    let text = short();
    for (fragment, program, args, result) in FRAGMENTS {
        assert!(text.contains(&format!("`{fragment}`")), "{fragment}");
        for part in fragment.split("...") {
            assert!(program.contains(part), "{fragment} in {program}");
        }
        let json = |text: &str| -> Json { serde_json::from_str(text).expect("JSON") };
        assert_eq!(run(program, &json(args)), json(result), "{fragment}");
    }
    // Words, names that do not exist, and the form of nodes.
    let bare = |piece: &&str| piece.contains(['"', '.']) && !piece.contains("TAG");
    for piece in text.split('`').skip(1).step_by(2).filter(bare) {
        let told_not_to = [r#""a + 1""#, r#""Hi {{a}}""#].contains(&piece);
        let is_run = FRAGMENTS.iter().any(|row| row.0 == piece);
        assert!(
            told_not_to || is_run || piece == "Math.round(x)",
            "`{piece}` is in no test"
        );
    }
}

/// Statements of the rules about unresolved names, iterations and scopes.
#[test]
fn what_the_rules_deny_is_not() {
    let run = |steps: Json, args: Json| {
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}});
        let mut steps = steps.as_array().cloned().unwrap_or_default();
        steps.push(json!({"op": "return", "schema": schema}));
        let program = json!({"op": "seq", "steps": steps}).to_string();
        let engine = Engine::builder().lint(true).build();
        let agent = engine
            .compile(program)
            .map_err(|refused| refused.to_string())?;
        let warned = !agent.warnings().is_empty();
        let outcome = engine.run_sync(&agent, args, RunOptions::new());
        Ok::<_, String>((warned, outcome.error.is_some(), outcome.result.to_json()))
    };
    let n = json!({"n": 2});
    // An argument in a formula, and as a text.
    let formula = run(
        json!([{"op": "mathCalc", "expr": "n + 1", "result": "a"}]),
        n.clone(),
    );
    assert_eq!(formula, Ok((true, false, json!({"a": null}))));
    let text = json!([{"op": "varSet", "key": "a", "value": "n"},
        {"op": "varSet", "key": "b", "value": ["args.n"]}]);
    assert_eq!(
        run(text, n.clone()).map(|run| run.2),
        Ok(json!({"a": "n", "b": ["args.n"]}))
    );
    // `args` in a condition, a call in a formula, a regex, a template string.
    let found = |condition: &str| {
        let then = json!([{"op": "varSet", "key": "a", "value": 1}]);
        run(
            json!([{"op": "if", "condition": condition, "then": then}]),
            n.clone(),
        )
    };
    assert_eq!(found("n == 2"), Ok((true, false, json!({"a": 1}))));
    assert_eq!(found("args.n == 2"), Ok((true, false, json!({}))));
    assert!(found("/a/.test(n)").is_err() && found("`${n}` == '2'").is_err());
    for formula in ["Math.abs(2)", "1 > 0 ? 1 : 2"] {
        let steps = json!([{"op": "mathCalc", "expr": formula, "result": "a"}]);
        assert!(run(steps, json!({})).is_ok_and(|run| run.1), "{formula}");
    }
    // Variables set in an iteration are lost.
    let turns = json!([{"op": "varSet", "key": "a", "value": 0},
        {"op": "map", "items": [1, 2], "as": "x", "result": "b", "steps": [
            {"op": "varSet", "key": "a", "value": "x"},
            {"op": "varSet", "key": "result", "value": "x"}]}]);
    assert_eq!(
        run(turns, json!({})).map(|run| run.2),
        Ok(json!({"a": 0, "b": [1, 2]}))
    );
}

#[test]
fn ten_tasks_are_solved_by_its_rules() {
    let tasks: Vec<Json> = include_str!("prompt_tasks.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(tasks.len(), 10);
    for task in tasks {
        let result = run(&task["program"].to_string(), &task["args"]);
        assert_eq!(result, task["result"], "{}", task["task"]);
    }
}

#[test]
fn it_tells_of_what_the_host_has() {
    assert!(short().contains("\nsplit(str, sep)\n") && !short().contains("runCode"));
    let engine = Engine::builder()
        .atoms(AtomSet::core().with(COUNT_WORDS))
        .build();
    let text = engine.prompt(PromptForm::Short);
    assert!(
        text.contains("\ncountWords(text, least?): Counts words.\n"),
        "{text}"
    );
    assert!(text.starts_with(short().split("\nAtoms").next().unwrap_or_default()));
    let full = engine.prompt(PromptForm::Full);
    assert!(full.contains("- countWords(text, least?): Counts words.\n  - text (text)"));
    // Rules and programs with missing atoms are left out.
    let mut few = AtomSet::new();
    for atom in AtomSet::core().iter() {
        if !["reduce", "callLocal"].contains(&&*atom.sig.name) {
            few.insert(agent99::AtomDef::clone(atom));
        }
    }
    let text = Engine::builder()
        .atoms(few)
        .build()
        .prompt(PromptForm::Full);
    assert!(
        !text.contains("reduce(") && !text.contains("callLocal"),
        "{text}"
    );
    assert!(
        !text.contains("Loops: ") && !text.contains("A total:"),
        "{text}"
    );
    assert!(text.contains("Capitals:"), "{text}");
}

#[test]
fn the_full_one_has_all_atoms_and_builtins() {
    let engine = Engine::new();
    let text = engine.prompt(PromptForm::Full);
    for atom in engine
        .atoms()
        .iter()
        .filter(|atom| !atom.sig.name.contains(':'))
    {
        assert!(
            text.contains(&format!("- {}(", atom.sig.name)),
            "{}",
            atom.sig.name
        );
        for input in atom.sig.inputs.iter() {
            assert!(
                text.contains(&format!("  - {} (", input.name)),
                "{}",
                input.name
            );
        }
    }
    for function in builtins::FUNCTIONS {
        assert!(text.contains(&format!("- {}: ", function.full_name())));
    }
    for method in builtins::METHODS {
        assert!(text.contains(&format!("- .{}: ", method.name)));
    }
}
