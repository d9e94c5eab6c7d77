//! `docs/a99b.md` suffices: a reader made of it reads what the engine writes,
//! and finds in it what the engine meant. A golden file pins the bytes.

use a99_testkit::a99b::{File, Pages, Tree, fingerprint, read};
use a99_testkit::vectors::{Subject, read_file};
use agent99::artifact::sign::{SecretKey, sign};
use agent99::artifact::{DecodeOptions, EncodeOptions};
use agent99::{Agent, Binding, Engine, Params, RunOptions, artifact, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> Pages {
    let page = |name: &str| fs::read_to_string(root().join("docs").join(name)).expect("a page");
    Pages::parse(&page("a99b.md"), &page("bytecode.md"))
}

fn bytes(agent: &Agent, strip: bool) -> Vec<u8> {
    agent.to_bytes(&EncodeOptions { strip }).expect("small")
}

/// Compares every field with the program that the file was made of.
fn compare(agent: &Agent, file: &File, what: &str) {
    let p = agent.artifact().program();
    let section = |name: &str| file.sections[name].to_string();
    for (name, ours) in [
        ("text", format!("{:?}", p.text)),
        ("constants", format!("{:?}", p.consts)),
        ("keys", format!("{:?}", p.keys)),
        ("shapes", format!("{:?}", p.shapes)),
        ("paths", format!("{:?}", p.paths)),
        ("literals", format!("{:?}", p.literals)),
        ("arguments", format!("{:?}", p.args)),
        ("imports", format!("{:?}", p.ops)),
        ("sites", format!("{:?}", p.sites)),
        ("memos", format!("{:?}", p.memos)),
        ("names", format!("{:?}", p.names)),
        ("outer", format!("{:?}", p.outer)),
    ] {
        assert_eq!(section(name), ours, "{what}: {name}");
    }
    let functions = file.sections["functions"].items();
    assert_eq!(functions.len(), p.functions.len(), "{what}");
    for (number, (theirs, ours)) in functions.iter().zip(&p.functions).enumerate() {
        let field = |name: &str| theirs.field(name).map(Tree::to_string);
        let steps: Vec<String> = ours
            .steps
            .iter()
            .map(|s| {
                format!(
                    "Step {{ parent: {}, start: {}, end: {}, op: {}, scope: {}, implicit: {}, value: {} }}",
                    s.parent, s.start, s.end, s.op, s.scope, s.implicit, s.value
                )
            })
            .collect();
        for (name, ours) in [
            ("name", ours.name.to_string()),
            ("params", ours.params.to_string()),
            ("registers", ours.registers.to_string()),
            ("slots", ours.slots.to_string()),
            ("code", format!("{:?}", ours.code)),
            ("blocks", format!("{:?}", ours.blocks)),
            ("charges", format!("{:?}", ours.charges)),
            ("steps", format!("[{}]", steps.join(", "))),
            ("scopes", format!("{:?}", ours.scopes)),
            ("handlers", format!("{:?}", ours.handlers)),
            ("wraps", format!("{:?}", ours.wraps)),
        ] {
            assert_eq!(field(name), Some(ours), "{what}: {name}");
        }
        if let Some(map) = file.sections.get("source-map") {
            let nodes: Vec<u32> = ours.steps.iter().map(|s| s.node.0).collect();
            let places: Vec<String> = ours
                .places
                .iter()
                .map(|p| {
                    let (pc, node, inner) = (p.pc, p.node.0, p.inner);
                    format!("SourceLocation {{ pc: {pc}, node: {node}, inner: {inner:?} }}")
                })
                .collect();
            let ours = format!("({nodes:?}, [{}])", places.join(", "));
            assert_eq!(map.items()[number].to_string(), ours, "{what}");
        }
    }
    assert_eq!(file.identity, p.identity(), "{what}");
}

/// Reads a program's file, whole and stripped, and compares.
fn check(pages: &Pages, agent: &Agent, what: &str) {
    for strip in [false, true] {
        let bytes = bytes(agent, strip);
        let file = read(pages, &bytes).unwrap_or_else(|why| panic!("{what}: {why}"));
        compare(agent, &file, what);
        assert_eq!(file.sections.contains_key("source"), !strip, "{what}");
        // The notes cover the file without a gap.
        let end = file.notes.iter().fold(0, |at, note| {
            assert_eq!(note.offset, at, "{what}: {}", note.text);
            at + note.length
        });
        assert_eq!(end, bytes.len(), "{what}");
    }
}

fn folder(path: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(path)).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|p| extension.is_empty() || p.extension().is_some_and(|e| e == extension));
    files.sort();
    files
}

#[test]
fn the_page_is_enough_to_read_examples_and_vectors() {
    let (pages, engine) = (pages(), Engine::new());
    for example in folder("examples", "") {
        let Ok(program) = fs::read(example.join("agent.json")) else {
            continue;
        };
        let agent = engine.compile(program).expect("an example");
        check(&pages, &agent, &example.display().to_string());
    }
    let mut read = 0;
    for file in folder("tests/vectors", "jsonl") {
        for vector in read_file(&file).expect("vectors") {
            if !matches!(vector.subject, Subject::Program) {
                continue;
            }
            let Ok(spec) = vector.run_spec() else {
                // Refused for its options, which are no part of a program.
                continue;
            };
            let program = spec.program;
            let value = program.to_value(program.root());
            if let Ok(agent) = engine.compile_value(&value) {
                check(&pages, &agent, &vector.id);
                read += 1;
            }
        }
    }
    assert!(read > 1_000, "{read}");
}

#[test]
fn the_page_is_enough_to_derive_the_fingerprints() {
    assert_eq!(pages().instruction_set, artifact::instruction_set());
    let engine = Engine::new();
    let mut seen = 0;
    for atom in engine.atoms().iter() {
        let sig = &atom.sig;
        let mut texts: Vec<Vec<u8>> = vec![sig.name.as_bytes().to_vec()];
        match &sig.params {
            Params::Open => texts.push(b"*".to_vec()),
            Params::Raw => texts.push(b"**".to_vec()),
            Params::Named(params) => {
                for param in params.iter() {
                    texts.push(param.name.into());
                    texts.push(match param.binding {
                        Binding::Value => vec![b'v', 0],
                        Binding::Literal => vec![b'l', 0],
                        Binding::TextOrValue => vec![b't', 0],
                        Binding::TemplateVars { template } => vec![b'p', template],
                        Binding::Vars => vec![b'o', 0],
                    });
                }
            }
        }
        texts.push(sig.input_schema.as_bytes().to_vec());
        texts.push(sig.output_schema.as_bytes().to_vec());
        texts.push(sig.form.map_or("", |form| form.name()).into());
        let dynamic = format!("{:?}", sig.cost).starts_with("Dynamic");
        texts.push(if dynamic { "dynamic" } else { "fixed" }.into());
        let derived = fingerprint(texts.iter().map(Vec::as_slice));
        assert_eq!(derived, sig.fingerprint(), "{}", sig.name);
        seen += 1;
    }
    assert!(seen >= 60, "{seen}");
}

#[test]
fn the_page_is_enough_to_find_the_signature() {
    let agent = Engine::new().compile(PROGRAM).expect("a program");
    let key = SecretKey::from_seed(&[9; 32], None);
    let signed = sign(&bytes(&agent, false), &key, &DecodeOptions::default()).expect("signed");
    let file = read(&pages(), &signed).expect("an artifact");
    let id = file.key_id.expect("a key");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, key.id().to_string());
    let public: serde_json::Value = serde_json::from_str(&key.to_public_json()).expect("JSON");
    let digits = public["public"].as_str().expect("digits");
    let bytes: Vec<u8> = (0..64)
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("a byte"))
        .collect();
    assert_eq!(Sha256::digest(bytes)[..16], id);
}

/// What the golden file holds: text, a literal, a loop, a handler, a helper's
/// worth of tables.
const PROGRAM: &str = r#"{"op":"seq","steps":[{"op":"varsImport","keys":["n"]},{"op":"varSet","key":"s","value":{"$expr":"literal","value":[1,{"a":"é"}]}},{"op":"try","try":[{"op":"while","condition":"n > 0","body":[{"op":"mathCalc","expr":"n - 1.5","result":"n"}]},{"op":"split","str":"a,b","sep":",","result":"s"}],"catch":[{"op":"return","value":{"failed":true}}]},{"op":"return","schema":{"type":"object","properties":{"s":{},"n":{"type":"number"}}}}]}"#;

/// The file with a line for each field: offset, bytes, meaning.
fn annotated(file: &File, bytes: &[u8]) -> String {
    let mut out = String::new();
    for note in &file.notes {
        let piece = &bytes[note.offset..note.offset + note.length];
        let mut at = note.offset;
        for (row, chunk) in piece.chunks(16).enumerate() {
            let hex: Vec<String> = chunk.iter().map(|b| format!("{b:02x}")).collect();
            let text = if row == 0 { note.text.as_str() } else { "" };
            let line = format!("{at:05x}  {:<47}  {text}", hex.join(" "));
            writeln!(out, "{}", line.trim_end()).expect("a string");
            at += chunk.len();
        }
    }
    out
}

/// Stored programs outlive an update that only adds builtins or raises prices.
#[test]
fn e1_artifacts_of_earlier_instruction_sets_run() {
    let path = root().join("tests/goldens/a99b/earlier.a99b");
    let bytes = fs::read(path).expect("the golden file");
    let set = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
    assert!(artifact::EARLIER_SETS.contains(&set), "{set:016x}");
    let engine = Engine::new();
    let earlier = engine.load(&bytes).expect("an earlier artifact");
    let now = engine.compile(PROGRAM).expect("a program");
    let run = |agent: &Agent| {
        let outcome = engine.run_sync(agent, json!({"n": 3}), RunOptions::new());
        let error = outcome.error.as_ref().map(ToString::to_string);
        (outcome.result.to_json_string(), error, outcome.fuel_used)
    };
    assert_eq!(run(&earlier), run(&now));
}

#[test]
fn the_golden_file_is_as_recorded() {
    let folder = root().join("tests/goldens/a99b");
    let (binary, listing) = (folder.join("sample.a99b"), folder.join("sample.listing"));
    let engine = Engine::new();
    let agent = engine.compile(PROGRAM).expect("a program");
    let bytes = bytes(&agent, false);
    let file = read(&pages(), &bytes).expect("an artifact");
    let text = annotated(&file, &bytes);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&binary, &bytes).expect("to write");
        fs::write(&listing, &text).expect("to write");
        return;
    }
    let recorded = fs::read(&binary).expect("the golden file");
    assert!(
        recorded == bytes,
        "the same program gives other bytes than tests/goldens/a99b/sample.a99b. If the layout or \
         the meaning of a field changed, raise artifact::FORMAT_VERSION, since old files would be \
         misread. If only instructions, atoms, prices or the compiler changed, the hashes in \
         the file tell, and the version stays. Then `cargo xtask bless`."
    );
    assert_eq!(fs::read_to_string(&listing).expect("the listing"), text);
    assert!(engine.load(&recorded).is_ok());
}
