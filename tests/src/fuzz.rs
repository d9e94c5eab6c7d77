//! Bodies of the fuzz targets: each takes any bytes, and panics if an invariant is violated.
//!
//! They are plain functions, so that cargo-fuzz (the crate `fuzz`), the replay of stored inputs
//! in ordinary tests, and a loop of random mutation on the stable toolchain share them.

pub mod artifact;
mod builders;
mod damage;
pub mod snapshot;
mod source;

use crate::differential;
use crate::generate::Case;
use a99_core::json::{Document, Limits};
use a99_core::value::Value;
pub use a99_sandbox_guest::fuzz::{riscv_decode, virtio};
use agent99::capabilities::{Query, StoredKey, StoredValue};
use agent99::{Agent, Capabilities, Engine, Outcome, RunOptions};
pub use source::any_text as source;
use std::sync::LazyLock;

/// Fuel of a fuzzed run.
const FUEL: f64 = 20.0;
/// Heap bytes of a fuzzed run.
const HEAP_BYTES: usize = 2 << 20;
/// Timeout of a fuzzed run in milliseconds.
const TIMEOUT_MS: u64 = 200;

/// The body of a target.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 15] = [
    ("reader", reader),
    ("condition", condition),
    ("compile", compile),
    ("source", source::any_text),
    ("verify", verify),
    ("decode", artifact::any_bytes),
    ("artifact", artifact::mutated),
    ("snapshot", snapshot::any_bytes),
    ("run", run),
    ("differential", agree),
    ("builders", builders),
    ("virtio", virtio),
    ("riscv_decode", riscv_decode),
    ("p9", p9),
    ("stored", stored),
];

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builder().build());

/// The 9p server, with a hostile guest, on temporary folders.
///
/// # Panics
/// If the server fails, or changed protected data.
pub fn p9(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    a99_sandbox_p9::fuzz::messages(folder.path(), data);
}

/// A damaged store: decoded values encode to bytes that decode to the same value, and a decoded
/// query selects from any documents.
///
/// # Panics
/// If they differ.
pub fn stored(data: &[u8]) {
    let Some(value) = StoredValue::read(data) else {
        return;
    };
    let again = StoredValue::of(&value, usize::MAX).expect("a value that was read");
    assert_eq!(StoredValue::read(again.as_bytes()), Some(value.clone()));
    if let Ok(query) = Query::of(&value) {
        let mut selection = query.select();
        selection.offer(&"a/1".into(), &value);
        selection.offer(&"a/2".into(), &Value::Null);
        let _ = selection.answer();
    }
    let _ = StoredKey::of(value);
}

/// The JSON reader: accepted text is written and read again unchanged.
///
/// # Panics
/// If the value changed.
pub fn reader(data: &[u8]) {
    let Ok(document) = Document::parse(data, &Limits::default()) else {
        return;
    };
    let value = document.to_value(document.root());
    let mut text = Vec::new();
    document.write_json(document.root(), &mut text);
    let again = Document::parse(text, &Limits::default()).expect("written JSON is JSON");
    let mut second = Vec::new();
    again.write_json(again.root(), &mut second);
    assert_eq!(
        again.to_value(again.root()).to_json_string(),
        value.to_json_string()
    );
    let mut third = Vec::new();
    document.write_json(document.root(), &mut third);
    assert_eq!(second, third);
}

/// The parsers of condition texts and formulas, in both dialects.
///
/// # Panics
/// If a parser panics.
pub fn condition(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let quoted = Value::from(text.as_ref()).to_json_string();
    let _ = a99_compiler::compat::parse_condition_v2(&text);
    let _ = crate::oracle::strict::parse(&text);
    let program = format!(
        r#"{{"op":"seq","steps":[{{"op":"mathCalc","expr":{quoted}}},
            {{"op":"while","condition":{quoted},"body":[]}}]}}"#
    );
    compile(program.as_bytes());
}

/// The compiler, which verifies its output.
///
/// # Panics
/// If it panics, or its program does not verify.
pub fn compile(data: &[u8]) {
    if let Err(refused) = ENGINE.compile(data.to_vec()) {
        assert!(refused.iter().next().is_some(), "a refusal says why");
        assert!(!refused.to_string().is_empty());
    }
}

/// The verifier: a compiled program is damaged at random; an accepted one must run without a
/// panic.
///
/// # Panics
/// If any step panics.
pub fn verify(data: &[u8]) {
    let (seed, damage) = data.split_at(data.len() / 2);
    damage::damaged(&Case::from_bytes(seed).program(), damage);
}

/// A whole program: compiled and run with little fuel, memory and time.
///
/// # Panics
/// If any step panics.
pub fn run(data: &[u8]) {
    let Ok(agent) = ENGINE.compile(data.to_vec()) else {
        return;
    };
    let _ = little(&agent, Capabilities::none());
}

/// Runs an agent with little fuel, memory and time.
fn little(agent: &Agent, granted: Capabilities) -> Option<Outcome> {
    let mut options = RunOptions::new();
    options.fuel = a99_core::fuel::Fuel::from_decimal(FUEL).unwrap_or(options.fuel);
    options.timeout_ms = Some(TIMEOUT_MS);
    options.limits.heap_bytes = HEAP_BYTES;
    let args = Document::parse(
        r#"{"n":3,"s":"text","xs":[1,"b",null],"o":{"a":1}}"#,
        &Limits::default(),
    )
    .map_or(Value::Undefined, |d| d.to_value(d.root()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let run = ENGINE.run(agent, args, options, granted);
    runtime.ok().map(|runtime| runtime.block_on(run))
}

/// The VM against the oracle.
///
/// # Panics
/// If they disagree.
pub fn agree(data: &[u8]) {
    let case = Case::from_bytes(data);
    if let Some(why) = differential::difference(&case) {
        panic!("{why}\n{case:?}");
    }
}

/// Chains of builder calls: the program survives a round trip through JSON, and compiles alike.
///
/// # Panics
/// If it does not, or the builder's errors differ from the injected ones.
pub fn builders(data: &[u8]) {
    builders::round_trip(data);
}
