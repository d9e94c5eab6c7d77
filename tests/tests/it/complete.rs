//! Completeness: what the product has, the others have: the oracle that judges
//! it, the vectors that show it, the generator of random programs, the documents.
//! A name that is missing is told with the file to add it to.

use a99_core::builtins::{FUNCTIONS, MEMBERS, METHODS, Receiver};
use a99_core::json::{Document, Limits};
use a99_core::program::ops::TABLE;
use a99_core::value::Value;
use a99_testkit::generate::{Case, atoms, builtins};
use a99_testkit::numbers::Numbers;
use a99_testkit::oracle::{NoHost, OracleOptions, run};
use a99_testkit::vectors::read_file;
use agent99::{Capabilities, Engine};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A name that nothing has.
const NOBODY: &str = "nobodyHasThis";

/// All vectors of the project, without blanks.
static VECTORS: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        text.push_str(&std::fs::read_to_string(path).expect("text"));
    }
    text.retain(|c| c != ' ');
    text
});

fn page(name: &str) -> String {
    file(&format!("docs/{name}"))
}

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(path)).expect("a file")
}

/// The Rust files under a folder, with their text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|of| of == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            found.push((path, text));
        }
    }
    found
}

/// What the oracle says of a step, if it fails.
fn oracle_says(step: &str) -> Option<String> {
    let text = format!(r#"{{"op":"seq","steps":[{step}]}}"#);
    let program = Document::parse(text, &Limits::default()).expect("JSON");
    let none = Value::from(a99_core::value::Map::new());
    let options = OracleOptions::default();
    let outcome = run(&program, &none, &options, &mut NoHost).ok()?;
    outcome.error.map(|error| error.message.to_string())
}

/// Whether the oracle knows what `step` names.
fn oracle_knows(step: impl Fn(&str) -> String, name: &str) -> bool {
    let unknown = oracle_says(&step(NOBODY)).expect("an unknown name is an error");
    oracle_says(&step(name)).as_deref() != Some(&unknown.replace(NOBODY, name))
}

fn check(missing: &[String]) {
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

#[test]
fn every_atom_is_everywhere() {
    let mut missing = Vec::new();
    let costs = page("costs.md");
    for atom in agent99::all_atoms().iter() {
        let name = &*atom.sig.name;
        // What the compiler alone calls: no program can.
        if name.contains(':') {
            continue;
        }
        let mut lacks = |what: &str, file: &str| missing.push(format!("{name}: {what}: {file}"));
        if !oracle_knows(|op| format!(r#"{{"op":"{op}"}}"#), name) {
            lacks("unknown to the oracle", "tests/src/oracle/atoms.rs");
        }
        if !VECTORS.contains(&format!(r#""op":"{name}""#)) {
            lacks("in no vector", "tests/vectors");
        }
        if !costs.contains(&format!("| {name} |")) {
            lacks("without a price", "docs/costs.md, by `cargo xtask docs`");
        }
    }
    check(&missing);
}

/// Instructions of the programs that the compiler makes of these texts.
fn emitted(programs: impl Iterator<Item = String>) -> HashSet<u8> {
    let engine = Engine::new();
    let compiled = programs.filter_map(|text| engine.compile(text).ok());
    compiled
        .flat_map(|agent| {
            let functions = &agent.artifact().program().functions;
            let code = functions.iter().flat_map(|f| &f.code);
            code.map(|op| op.code()).collect::<HashSet<u8>>()
        })
        .collect()
}

#[test]
fn every_instruction_is_emitted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let files = std::fs::read_dir(folder).expect("a folder");
    let vectors =
        files.flat_map(|file| read_file(&file.expect("an entry").path()).unwrap_or_default());
    let programs = vectors.filter_map(|vector| vector.run_spec().ok());
    let texts = programs.map(|spec| spec.program.to_value(spec.program.root()).to_json_string());
    let emitted = emitted(texts);
    let missing: Vec<String> = (0u8..)
        .zip(TABLE)
        .filter(|(code, _)| !emitted.contains(code))
        .map(|(_, row)| {
            format!(
                "{}: emitted for no vector: compiler/src/lower, tests/vectors",
                row.name
            )
        })
        .collect();
    check(&missing);
}

/// An expression of each kind of receiver, and the oracle's file of its methods.
fn receivers(on: &[Receiver]) -> Vec<(&'static str, &'static str)> {
    let text = (r#"{"$expr":"literal","value":"abc"}"#, "strings.rs");
    let list = (r#"{"$expr":"array","elements":[]}"#, "arrays.rs");
    let number = (r#"{"$expr":"literal","value":5}"#, "statics.rs");
    let set = (
        r#"{"$expr":"call","callee":"Set","arguments":[]}"#,
        "arrays.rs",
    );
    let date = (
        r#"{"$expr":"call","callee":"Date","arguments":[]}"#,
        "dates.rs",
    );
    let map = (
        r#"{"$expr":"methodCall","object":{"$expr":"ident","name":"Array"},"method":"toMap","arguments":[]}"#,
        "maps.rs",
    );
    on.iter()
        .flat_map(|on| match on {
            Receiver::Text => vec![text],
            Receiver::Array => vec![list],
            Receiver::Number => vec![number],
            Receiver::Set => vec![set],
            Receiver::Date => vec![date],
            Receiver::Map => vec![map],
            Receiver::Any => vec![text, number],
        })
        .collect()
}

#[test]
fn every_method_and_function_is_everywhere() {
    let mut missing = Vec::new();
    for method in METHODS {
        for (receiver, file) in receivers(method.on) {
            let step = |name: &str| {
                format!(
                    r#"{{"op":"varSet","key":"x","value":{{"$expr":"methodCall","object":{receiver},"method":"{name}","arguments":[]}}}}"#
                )
            };
            if !oracle_knows(step, method.name) {
                missing.push(format!(
                    "{} of {receiver}: unknown to the oracle: tests/src/oracle/{file}",
                    method.name
                ));
            }
        }
        for on in method.on {
            let is = |receiver: Receiver, name: &str| receiver == *on && name == method.name;
            let generated = builtins::METHODS.iter().any(|row| is(row.0, row.1));
            let left_out = builtins::METHODS_LEFT_OUT
                .iter()
                .any(|row| is(row.0, row.1));
            if generated == left_out {
                missing.push(format!(
                    "{} of {on:?}: not generated, or left out as well: \
                     tests/src/generate/builtins.rs",
                    method.name
                ));
            }
        }
        if !VECTORS.contains(&format!(r#""method":"{}""#, method.name)) {
            missing.push(format!("{}: in no vector: tests/vectors", method.name));
        }
    }
    for function in FUNCTIONS {
        let name = function.name;
        let step = |name: &str| match function.ns {
            "" => format!(
                r#"{{"op":"varSet","key":"x","value":{{"$expr":"call","callee":"{name}","arguments":[]}}}}"#
            ),
            ns => format!(
                r#"{{"op":"varSet","key":"x","value":{{"$expr":"methodCall","object":{{"$expr":"ident","name":"{ns}"}},"method":"{name}","arguments":[]}}}}"#
            ),
        };
        if !oracle_knows(step, name) {
            missing.push(format!(
                "{}: unknown to the oracle: tests/src/oracle/statics.rs",
                function.full_name()
            ));
        }
        let generated = builtins::FUNCTIONS
            .iter()
            .any(|row| (row.0, row.1) == (function.ns, name));
        let full = function.full_name();
        let left_out = builtins::LEFT_OUT.iter().any(|row| row.0 == full);
        if generated == left_out {
            missing.push(format!(
                "{full}: not generated, or left out as well: tests/src/generate/builtins.rs"
            ));
        }
        if !VECTORS.contains(&format!(r#""{name}""#)) {
            missing.push(format!(
                "{}: in no vector: tests/vectors",
                function.full_name()
            ));
        }
    }
    check(&missing);
}

#[test]
fn every_capability_is_everywhere() {
    let mut missing = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capabilities/src");
    let sources = sources(&folder);
    let suites = file("capabilities/src/lib.rs");
    let facade = file("agent99/src/capabilities.rs");
    let words = |text: &str, word: &str| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        text.split(|c| !is_word(c)).any(|found| found == word)
    };
    for (name, kind) in Capabilities::NAMES.iter().zip(Capabilities::TRAITS) {
        let mut lacks = |what: &str, file: &str| missing.push(format!("{name}: {what}: {file}"));
        let of_trait = |(_, text): &&(PathBuf, String)| text.contains(&format!("pub trait {kind}"));
        let Some((path, text)) = sources.iter().find(of_trait) else {
            lacks("without a trait", "capabilities/src");
            continue;
        };
        let own = path.strip_prefix(&folder).expect("beneath it");
        let own_text = format!("capabilities/src/{}", own.display());
        if !text.contains("mod suite") {
            lacks("without a conformance suite", &own_text);
        }
        let module = own.iter().next().map(Path::new).and_then(Path::file_stem);
        let module = module.and_then(|stem| stem.to_str()).unwrap_or_default();
        if !suites.contains(&format!("crate::{module}::suite")) {
            lacks(
                "a suite that nobody can run",
                "capabilities/src/lib.rs, `suite`",
            );
        }
        if !sources
            .iter()
            .any(|(_, text)| text.contains(&format!("impl {kind} for")))
        {
            lacks("without a version in memory or from a script", &own_text);
        }
        if !words(&facade, kind) {
            lacks(
                "not among what hosts may name",
                "agent99/src/capabilities.rs",
            );
        }
    }
    check(&missing);
}

#[test]
fn every_member_is_generated() {
    let mut missing = Vec::new();
    for (on, name, _) in MEMBERS {
        if !builtins::MEMBERS.contains(&(*on, name)) {
            missing.push(format!(
                "{name} of {on:?}: not generated: tests/src/generate/builtins.rs"
            ));
        }
    }
    check(&missing);
}

/// The atoms of random programs.
fn generated() -> BTreeSet<String> {
    fn note(value: &Value, names: &mut BTreeSet<String>) {
        if let Some(op) = value.get("op").and_then(Value::as_str) {
            names.insert(op.to_owned());
        }
        let items = value.as_array().into_iter().flatten();
        let members = value.as_object().into_iter().flat_map(|map| map.values());
        for part in items.chain(members) {
            note(part, names);
        }
    }
    let mut names = BTreeSet::new();
    let mut numbers = Numbers::of_state(7);
    for _ in 0..10_000 {
        let bytes = numbers.bytes(400);
        note(&Case::with_builtins(&bytes).program(), &mut names);
    }
    names
}

#[test]
fn every_atom_is_generated_or_left_out() {
    let generated = generated();
    let mut missing = Vec::new();
    for atom in agent99::all_atoms().iter() {
        let name = &*atom.sig.name;
        let left_out = atoms::LEFT_OUT.iter().any(|row| row.0 == name);
        if !name.contains(':') && generated.contains(name) == left_out {
            missing.push(format!(
                "{name}: not generated, or left out as well: tests/src/generate/atoms.rs"
            ));
        }
    }
    check(&missing);
}
