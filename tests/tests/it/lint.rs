//! Lint pass: what it finds in programs that are wrong, and that it is silent
//! where nothing is.

use a99_core::diag::{Diagnostic, Diagnostics};
use agent99::{Engine, atom};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set to have the list of alarms written anew.
const BLESS: &str = "BLESS";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// An atom of the host, which knows the type of its input.
#[atom(cost = 1)]
fn postpone(days: u8) -> String {
    format!("in {days} days")
}

fn engine() -> Engine {
    let atoms = agent99::all_atoms().with(POSTPONE);
    Engine::builder().atoms(atoms).lint(true).build()
}

/// What is found in a program, whether it is accepted or not.
fn found(engine: &Engine, program: &Value) -> Diagnostics {
    match engine.compile(program.to_string()) {
        Ok(agent) => agent.warnings().clone(),
        Err(found) => found,
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    let lines = text
        .lines()
        .filter(|line| line.contains("\"ast\"") || line.contains("\"program\""));
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Each program of the corpus has the finding that it is there for: its code, its
/// place, and what its advice says.
#[test]
fn bad_programs_are_told_what_is_wrong() {
    let engine = engine();
    let mut cases = lines(&folder("diagnostics/programs.jsonl"));
    cases.extend(lines(&folder("diagnostics/foreign.jsonl")));
    assert!(cases.len() > 900);
    let mut failed = Vec::new();
    for case in &cases {
        let text = |key: &str| case[key].as_str().expect("text");
        let all = found(&engine, &case["program"]);
        let good = all.iter().any(|d| {
            let help = d.help.as_deref().unwrap_or_default();
            d.code == text("code") && d.pointer == text("pointer") && help.contains(text("help"))
        });
        if !good {
            failed.push(format!("{}:\n{}", text("id"), all.render(None)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Each warning about a program has one in the corpus.
#[test]
fn each_warning_has_a_program() {
    let mut cases = lines(&folder("diagnostics/programs.jsonl"));
    cases.extend(lines(&folder("diagnostics/foreign.jsonl")));
    let shown: BTreeSet<&str> = cases
        .iter()
        .filter_map(|case| case["code"].as_str())
        .collect();
    for row in a99_core::diag::codes::TABLE {
        // A count of others.
        if row.family() == "lint" && row.name != "lint.more_findings" {
            let name = row.name;
            assert!(
                shown.contains(name),
                "{name}: add a case to tests/diagnostics/programs.jsonl"
            );
        }
    }
}

/// Programs that look odd and are right.
#[test]
fn programs_that_look_odd_raise_no_alarm() {
    let engine = engine();
    let cases = lines(&folder("diagnostics/valid.jsonl"));
    assert!(cases.len() > 100);
    for case in &cases {
        let found = found(&engine, &case["program"]);
        let id = &case["id"];
        assert!(found.is_empty(), "{id}: {}", found.render(None));
    }
}

/// A code that the program lists is not heard.
#[test]
fn a_program_may_allow_a_code() {
    let engine = engine();
    let mut program: Value = serde_json::json!({
        "op": "seq", "steps": [{"op": "split", "str": "a,b", "sep": ","}]
    });
    assert_eq!(found(&engine, &program).len(), 1);
    program["allow"] = serde_json::json!(["lint.dropped_result"]);
    assert_eq!(found(&engine, &program).len(), 0);
    // Without the pass nothing is looked for.
    program["allow"] = Value::Null;
    assert_eq!(found(&Engine::new(), &program).len(), 0);
}

/// The answer of every atom that only reads must be kept, and so must that of a `callAll`
/// of them.
#[test]
fn dropped_reads_are_found() {
    let atoms = agent99::all_atoms();
    let engine = engine();
    let reads = (atoms.iter()).filter(|atom| {
        let sig = &atom.sig;
        let is_read = sig.effect == agent99::Effect::Read && sig.form.is_none();
        is_read && !sig.name.contains(':')
    });
    let mut names = Vec::new();
    for atom in reads {
        let mut step = serde_json::json!({"op": atom.sig.name});
        for input in atom.sig.inputs.iter().filter(|input| input.required) {
            step[&*input.name] = "args.x".into();
        }
        let mut steps = vec![step.clone()];
        if !matches!(atom.body, agent99::AtomBody::Native(_)) {
            steps.push(serde_json::json!({"op": "callAll", "calls": [step]}));
        }
        for step in steps {
            let program = serde_json::json!({"op": "seq", "steps": [step]});
            let found = found(&engine, &program);
            let dropped = |found: &Diagnostic| found.code == "lint.dropped_result";
            assert!(found.iter().any(dropped), "{program}: {found:?}");
        }
        names.push(&*atom.sig.name);
    }
    // A list of the pass lacked these.
    for name in ["storeList", "llmChat"] {
        assert!(names.contains(&name), "{name}");
    }
}

/// The alarms in programs of the vectors that end well are those of the list,
/// where each code has its reason.
#[test]
fn vectors_that_end_well_raise_no_other_alarm() {
    let engine = engine();
    let mut alarms = BTreeSet::new();
    let mut files: Vec<_> = std::fs::read_dir(folder("vectors"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    for case in files.iter().flat_map(|path| lines(path)) {
        if case["ast"].is_object() && case["expect"]["error"].is_null() {
            let id = case["id"].as_str().expect("text");
            let found = found(&engine, &case["ast"]);
            for alarm in found.iter().filter(|found| found.code.starts_with("lint.")) {
                alarms.insert(format!("{} {id}", alarm.code));
            }
        }
    }
    let path = folder("diagnostics/vectors.txt");
    let list = std::fs::read_to_string(&path).unwrap_or_default();
    let reasons: Vec<&str> = list.lines().filter(|line| line.starts_with('#')).collect();
    if std::env::var_os(BLESS).is_some() {
        let alarms: Vec<&str> = alarms.iter().map(String::as_str).collect();
        let text = format!("{}\n{}\n", reasons.join("\n"), alarms.join("\n"));
        std::fs::write(&path, text).expect("written");
        return;
    }
    let known: BTreeSet<String> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let new: Vec<_> = alarms.difference(&known).collect();
    let gone: Vec<_> = known.difference(&alarms).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new alarms: {new:#?}\nno longer: {gone:#?}\n{BLESS}=1 writes {} anew",
        path.display()
    );
    for code in known.iter().filter_map(|line| line.split(' ').next()) {
        let reason = format!("# {code}: ");
        assert!(
            reasons.iter().any(|line| line.starts_with(&reason)),
            "no reason for {code}"
        );
    }
}

/// Examples are clean.
#[test]
fn examples_raise_no_alarm() {
    let engine = engine();
    let mut checked = 0;
    let examples = std::fs::read_dir(folder("../examples")).expect("a folder");
    for folder in examples.map(|entry| entry.expect("an entry").path()) {
        let Ok(files) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in files.map(|entry| entry.expect("an entry").path()) {
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            let Ok(program) = serde_json::from_str::<Value>(&text) else {
                continue;
            };
            if program["op"] != "seq" {
                continue;
            }
            checked += 1;
            let found = found(&engine, &program);
            assert!(
                found.is_empty(),
                "{}: {}",
                path.display(),
                found.render(None)
            );
        }
    }
    assert!(checked >= 8, "{checked}");
}

/// What is found in a source, whether it is accepted or not.
fn found_in_source(engine: &Engine, source: &str) -> Diagnostics {
    match engine.compile_source(source) {
        Ok(agent) => agent.warnings().clone(),
        Err(found) => found,
    }
}

/// Each source of the corpus has the finding that it is there for, and its advice speaks
/// of JavaScript: no step, node or key of JSON is in it.
#[test]
fn bad_sources_are_told_what_is_wrong() {
    let engine = engine();
    let text = std::fs::read_to_string(folder("diagnostics/sources.jsonl")).expect("a file");
    let cases = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let cases: Vec<Value> = cases.collect();
    assert!(cases.len() > 60, "{}", cases.len());
    let mut failed = Vec::new();
    for case in &cases {
        let text = |key: &str| case[key].as_str().expect("text");
        let all = found_in_source(&engine, text("source"));
        let good = all.iter().any(|d| {
            let help = d.help.as_deref().unwrap_or_default();
            d.code == text("code")
                && d.offending == text("offending")
                && help.contains(text("help"))
        });
        let of_json = [
            "{\"op\"",
            "{\"$expr\"",
            "\"result\"",
            " result}",
            "`inputSchema`",
        ];
        let spoken = all.iter().all(|d| {
            let help = d.help.as_deref().unwrap_or_default();
            !of_json.iter().any(|part| help.contains(part)) && !d.offending.contains("{\"$expr\"")
        });
        if !good || !spoken {
            failed.push(format!("{}:\n{}", text("id"), all.render(None)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Tasks that are written as sources are clean.
#[test]
fn sources_of_examples_raise_no_alarm() {
    let engine = engine();
    let mut checked = 0;
    for entry in std::fs::read_dir(folder("../examples/tasks")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "ajs") {
            continue;
        }
        checked += 1;
        let source = std::fs::read_to_string(&path).expect("a file");
        let found = found_in_source(&engine, &source);
        assert!(
            found.is_empty(),
            "{}: {}",
            path.display(),
            found.render(None)
        );
    }
    assert!(checked >= 8, "{checked}");
}
