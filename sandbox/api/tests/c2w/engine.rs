//! The engine as a WebAssembly module: every vector gives the same result as natively, and
//! snapshots carry runs over in both directions.
//!
//! The test is here because this crate links wasmtime; it is unrelated to images.

use a99_tests_wasm::Session;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use wasmtime::{Config, Engine, Instance, Module, Store, TypedFunc};

const TARGET: &str = "wasm32-unknown-unknown";

/// Nested steps that the compiler accepts; the root and its list of steps count.
const NESTED: usize = 508;

/// Maximum answers in a run; vectors end earlier.
const ANSWERS: usize = 200;

static MODULE: LazyLock<Module> = LazyLock::new(|| {
    let bytes = std::fs::read(build()).expect("the module");
    let engine = Engine::new(&Config::new()).expect("an engine");
    Module::new(&engine, bytes).expect("a module")
});

/// Builds the module; returns its path.
fn build() -> PathBuf {
    add_target();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--package", "a99-tests-wasm"])
        .args(["--target", TARGET, "--message-format", "json"])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the module builds: {errors}");
    let messages = String::from_utf8(built.stdout).expect("text");
    let files = messages.lines().flat_map(|line| {
        let message: Value = serde_json::from_str(line).expect("JSON");
        let files = message["filenames"].as_array().cloned();
        files.unwrap_or_default()
    });
    let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
    files
        .rfind(|file| file.ends_with("a99_tests_wasm.wasm"))
        .expect("the module's path")
}

/// Adds the target to the toolchain if it is missing.
fn add_target() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .expect("rustc runs");
    let folder = String::from_utf8(asked.stdout).expect("a path");
    if !Path::new(folder.trim()).is_dir() {
        let added = Command::new("rustup")
            .args(["target", "add", TARGET])
            .status();
        assert!(added.expect("rustup runs").success(), "{TARGET} is added");
    }
}

/// The two sides that must give the same answers.
trait Side {
    fn handle(&mut self, command: &str) -> String;
}

impl Side for Session {
    fn handle(&mut self, command: &str) -> String {
        Session::handle(self, command)
    }
}

struct Wasm {
    store: Store<()>,
    put: TypedFunc<u32, ()>,
    handle: TypedFunc<(), u32>,
    get: TypedFunc<u32, u32>,
}

impl Wasm {
    /// Creates a fresh instance without imports.
    fn new() -> Wasm {
        let mut store = Store::new(MODULE.engine(), ());
        let instance = Instance::new(&mut store, &MODULE, &[]).expect("it needs no import");
        let put = instance.get_typed_func(&mut store, "put").expect("put");
        let handle = instance.get_typed_func(&mut store, "handle");
        let get = instance.get_typed_func(&mut store, "get").expect("get");
        Wasm {
            put,
            handle: handle.expect("handle"),
            get,
            store,
        }
    }
}

impl Side for Wasm {
    fn handle(&mut self, command: &str) -> String {
        for byte in command.bytes() {
            let put = self.put.call(&mut self.store, u32::from(byte));
            put.expect("no trap");
        }
        let length = self.handle.call(&mut self.store, ()).expect("no trap");
        let byte = |at| self.get.call(&mut self.store, at).expect("no trap");
        let bytes = (0..length)
            .map(byte)
            .map(|byte| u8::try_from(byte).expect("a byte"));
        String::from_utf8(bytes.collect()).expect("text")
    }
}

fn start(program: &str, args: &Value) -> String {
    json!({"do": "start", "program": program, "args": args}).to_string()
}

fn next(side: &mut impl Side) -> String {
    side.handle(r#"{"do": "next"}"#)
}

/// The id of a call that a run requests. Not parsed by serde: inputs may have lone
/// surrogates.
fn call(wants: &str) -> Option<&str> {
    wants.strip_prefix(r#"{"call":""#)?.split('"').next()
}

fn answer(id: &str, nth: usize) -> String {
    match nth % 5 {
        4 => json!({"do": "answer", "id": id, "error": "not now"}),
        _ => json!({"do": "answer", "id": id, "value": {"n": nth, "t": "ü😀"}}),
    }
    .to_string()
}

/// Drives a run to its end and returns all its output.
fn drive(side: &mut impl Side) -> Vec<String> {
    let mut said = Vec::new();
    for nth in 0..ANSWERS {
        let wants = next(side);
        let answer = call(&wants).map(|id| answer(id, nth));
        let is_over = wants.starts_with(r#"{"done""#);
        said.push(wants);
        if is_over {
            return said;
        }
        said.extend(answer.map(|answer| side.handle(&answer)));
    }
    panic!("it ends: {said:?}");
}

/// Programs and arguments of all vectors.
fn vectors() -> Vec<(String, String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    files.sort();
    let lines = files.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).expect("a file");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines
    });
    // Rust strings cannot hold lone surrogates: the few lines with one are skipped.
    let vectors = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    vectors
        .map(|vector| {
            let id = vector["id"].as_str().unwrap_or_default().to_owned();
            (id, vector["ast"].to_string(), vector["args"].clone())
        })
        .collect()
}

#[test]
fn every_vector_gives_what_it_gives_natively() {
    let vectors = vectors();
    assert!(vectors.len() > 1_500, "{} vectors", vectors.len());
    let (mut native, mut wasm) = (Session::new(), Wasm::new());
    let (mut started, mut calls) = (0, 0);
    for (id, program, args) in &vectors {
        let command = start(program, args);
        let began = native.handle(&command);
        assert_eq!(wasm.handle(&command), began, "{id}");
        if began.starts_with(r#"{"fault""#) {
            continue;
        }
        started += 1;
        let said = drive(&mut native);
        calls += usize::from(said.len() > 1);
        assert_eq!(drive(&mut wasm), said, "{id}");
    }
    assert!(
        started > 1_200 && calls > 100,
        "{started} ran, {calls} waited"
    );
}

#[test]
fn runs_are_carried_over_by_their_snapshots() {
    let mut carried = 0;
    for (id, program, args) in vectors() {
        let (mut native, mut wasm) = (Session::new(), Wasm::new());
        let command = start(&program, &args);
        if native.handle(&command) != "{}" || call(&next(&mut native)).is_none() {
            continue;
        }
        assert_eq!(wasm.handle(&command), "{}", "{id}");
        next(&mut wasm);
        let snapshot = r#"{"do": "snapshot"}"#;
        let (ours, theirs) = (native.handle(snapshot), wasm.handle(snapshot));
        assert_eq!(ours, theirs, "{id}");
        let restore = |said: &str| {
            let said: Value = serde_json::from_str(said).expect("JSON");
            assert!(said["bytes"].is_string(), "{id}: {said}");
            json!({"do": "restore", "program": program, "bytes": said["bytes"]}).to_string()
        };
        let (mut here, mut there) = (Session::new(), Wasm::new());
        assert_eq!(here.handle(&restore(&theirs)), "{}", "{id}");
        assert_eq!(there.handle(&restore(&ours)), "{}", "{id}");
        let (here, there) = (drive(&mut here), drive(&mut there));
        assert_eq!(here, there, "{id}");
        assert!(
            here.last().is_some_and(|end| end.starts_with(r#"{"done""#)),
            "{id}"
        );
        // Restored natively, it ends in the same way.
        let mut again = Session::new();
        assert_eq!(again.handle(&restore(&ours)), "{}", "{id}");
        assert_eq!(drive(&mut again), here, "{id}");
        carried += 1;
    }
    assert!(carried > 100, "{carried} runs were carried over");
}

#[test]
fn what_is_nested_as_deeply_as_is_allowed_compiles_and_runs() {
    let ret = r#"{"op":"return","schema":{"type":"object","properties":{}}}"#;
    let nested = |open: &str, close: &str, inner: &str| {
        let steps = format!("{}{inner}{}", open.repeat(NESTED), close.repeat(NESTED));
        format!(r#"{{"op":"seq","steps":[{steps}]}}"#)
    };
    let literal = r#"{"$expr":"literal","value":1}"#;
    let depth = 900;
    let sum = format!(
        "{}{literal}{}",
        r#"{"$expr":"unary","op":"-","argument":"#.repeat(depth),
        "}".repeat(depth)
    );
    let programs = [
        nested(r#"{"op":"if","condition":"true","then":["#, "]}", ret),
        nested(
            r#"{"op":"map","items":[1],"as":"x","result":"r","steps":["#,
            "]}",
            ret,
        ),
        nested(r#"{"op":"try","try":["#, r#"],"catch":[]}"#, ret),
        nested(r#"{"op":"scope","steps":["#, "]}", ret),
        format!(r#"{{"op":"seq","steps":[{{"op":"varSet","key":"n","value":{sum}}},{ret}]}}"#),
    ];
    for program in programs {
        let command = start(&program, &json!({}));
        let (mut native, mut wasm) = (Session::new(), Wasm::new());
        assert_eq!(wasm.handle(&command), "{}");
        assert_eq!(native.handle(&command), "{}");
        assert_eq!(drive(&mut wasm), drive(&mut native));
    }
}
