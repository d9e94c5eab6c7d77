//! Small models with random weights, written as files.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The sizes of a small model.
pub(crate) const HIDDEN: usize = 64;
pub(crate) const LAYERS: usize = 2;
pub(crate) const HEADS: usize = 4;
pub(crate) const WIDE: usize = 96;
pub(crate) const POSITIONS: usize = 300;
pub(crate) const EPSILON: f64 = 1e-5;

/// What its vocabulary has beside single ASCII characters.
pub(crate) const PIECES: [&str; 37] = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "un",
    "##aff",
    "##able",
    "##ab",
    "cafe",
    "elan",
    "istanbul",
    "hello",
    "world",
    "##ing",
    "##s",
    "我",
    "喜",
    "豈",
    "は",
    "ᄒ",
    "##ᅡ",
    "##ᆫ",
    "привет",
    "ss",
    "ß",
    "fi",
    "ﬁ",
    "€",
    "“",
    "”",
    "ω",
    "e",
    "embed",
    "##ding",
];

/// A model: what the three files hold.
#[derive(Clone, Debug)]
pub(crate) struct Small {
    pub(crate) config: Value,
    pub(crate) vocabulary: Vec<String>,
    pub(crate) tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

/// Numbers that look random, the same each time.
pub(crate) fn random(seed: u32) -> impl FnMut() -> f32 {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}

impl Small {
    pub(crate) fn new(seed: u32) -> Small {
        let mut vocabulary: Vec<String> = PIECES.map(str::to_owned).to_vec();
        for c in (33u8..127).map(char::from) {
            for piece in [c.to_string(), format!("##{c}")] {
                if !vocabulary.contains(&piece) {
                    vocabulary.push(piece);
                }
            }
        }
        let mut next = random(seed);
        let mut tensors = BTreeMap::new();
        let mut put = |name: &str, shape: &[usize], middle: f32, spread: f32| {
            let count = shape.iter().product();
            let numbers = (0..count).map(|_| middle + spread * next()).collect();
            tensors.insert(name.to_owned(), (shape.to_vec(), numbers));
        };
        put(
            "embeddings.word_embeddings.weight",
            &[vocabulary.len(), HIDDEN],
            0.0,
            1.0,
        );
        put(
            "embeddings.position_embeddings.weight",
            &[POSITIONS, HIDDEN],
            0.0,
            0.3,
        );
        put(
            "embeddings.token_type_embeddings.weight",
            &[2, HIDDEN],
            0.0,
            0.3,
        );
        put("embeddings.LayerNorm.weight", &[HIDDEN], 1.0, 0.2);
        put("embeddings.LayerNorm.bias", &[HIDDEN], 0.0, 0.2);
        for n in 0..LAYERS {
            for (name, rows, columns) in [
                ("attention.self.query", HIDDEN, HIDDEN),
                ("attention.self.key", HIDDEN, HIDDEN),
                ("attention.self.value", HIDDEN, HIDDEN),
                ("attention.output.dense", HIDDEN, HIDDEN),
                ("intermediate.dense", WIDE, HIDDEN),
                ("output.dense", HIDDEN, WIDE),
            ] {
                let name = format!("encoder.layer.{n}.{name}");
                put(&format!("{name}.weight"), &[rows, columns], 0.0, 0.3);
                put(&format!("{name}.bias"), &[rows], 0.0, 0.2);
            }
            for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
                let name = format!("encoder.layer.{n}.{name}");
                put(&format!("{name}.weight"), &[HIDDEN], 1.0, 0.2);
                put(&format!("{name}.bias"), &[HIDDEN], 0.0, 0.2);
            }
        }
        let config = json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": WIDE, "vocab_size": vocabulary.len(),
            "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
            "layer_norm_eps": EPSILON, "position_embedding_type": "absolute",
        });
        Small {
            config,
            vocabulary,
            tensors,
        }
    }

    /// Where a piece is in the vocabulary.
    pub(crate) fn id(&self, piece: &str) -> u32 {
        let at = self.vocabulary.iter().position(|found| found == piece);
        at.unwrap_or_else(|| panic!("{piece:?} is no piece")) as u32
    }

    /// The numbers of a tensor.
    pub(crate) fn numbers(&self, name: &str) -> &[f32] {
        &self.tensors[name].1
    }

    /// The file of weights. The published one has a tensor of another type, so this one
    /// has, too.
    pub(crate) fn safetensors(&self) -> Vec<u8> {
        let mut header = Map::new();
        header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
        let mut data = 7u64.to_le_bytes().to_vec();
        let positions = json!({"dtype": "I64", "shape": [1], "data_offsets": [0, 8]});
        header.insert("embeddings.position_ids".to_owned(), positions);
        for (name, (shape, numbers)) in &self.tensors {
            let begin = data.len();
            data.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
            let tensor =
                json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]});
            header.insert(name.clone(), tensor);
        }
        file(&Value::Object(header).to_string(), &data)
    }

    pub(crate) fn write(&self, folder: &Path) {
        fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        fs::write(folder.join("vocab.txt"), self.vocabulary.join("\n") + "\n").unwrap();
        fs::write(folder.join("model.safetensors"), self.safetensors()).unwrap();
    }

    /// The model as it is loaded.
    pub(crate) fn load(&self, precision: a99_embed::Precision) -> a99_embed::EmbedModel {
        let folder = tempfile::tempdir().unwrap();
        self.write(folder.path());
        a99_embed::EmbedModel::load(folder.path(), precision).unwrap()
    }
}

/// A file of weights with this header.
pub(crate) fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
