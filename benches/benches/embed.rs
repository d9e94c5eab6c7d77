//! Embeddings on one core: texts of 32 and 256 tokens, alone and eight at once, in both
//! precisions. The weights are random, in the sizes of the published model: what a pass
//! takes does not depend on them.

use a99_embed::{EmbedModel, Precision};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, json};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The sizes of all-MiniLM-L6-v2.
const HIDDEN: usize = 384;
const WIDE: usize = 1536;
const LAYERS: usize = 6;
const VOCABULARY: usize = 30_522;
const POSITIONS: usize = 512;

/// Names and shapes of its tensors.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut all = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![VOCABULARY, HIDDEN],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![POSITIONS, HIDDEN],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, HIDDEN],
        ),
    ];
    let mut pair = |name: String, shape: &[usize]| {
        all.push((format!("{name}.weight"), shape.to_vec()));
        all.push((format!("{name}.bias"), vec![shape[0]]));
    };
    pair("embeddings.LayerNorm".to_owned(), &[HIDDEN]);
    for n in 0..LAYERS {
        for (name, shape) in [
            ("attention.self.query", &[HIDDEN, HIDDEN][..]),
            ("attention.self.key", &[HIDDEN, HIDDEN]),
            ("attention.self.value", &[HIDDEN, HIDDEN]),
            ("attention.output.dense", &[HIDDEN, HIDDEN]),
            ("attention.output.LayerNorm", &[HIDDEN]),
            ("intermediate.dense", &[WIDE, HIDDEN]),
            ("output.dense", &[HIDDEN, WIDE]),
            ("output.LayerNorm", &[HIDDEN]),
        ] {
            pair(format!("encoder.layer.{n}.{name}"), shape);
        }
    }
    all
}

fn write(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let config = json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": 12, "intermediate_size": WIDE,
        "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12,
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    let special = ["[UNK]", "[CLS]", "[SEP]", "cat"].map(str::to_owned);
    let others = (0..VOCABULARY - special.len()).map(|n| format!("piece{n}"));
    let pieces: Vec<String> = special.into_iter().chain(others).collect();
    fs::write(folder.join("vocab.txt"), pieces.join("\n"))?;
    let (mut header, mut end) = (Map::new(), 0);
    for (name, shape) in tensors() {
        let begin = end;
        end += shape.iter().product::<usize>() * 4;
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]});
        header.insert(name, tensor);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = BufWriter::new(File::create(folder.join("model.safetensors"))?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let mut state = 1u32;
    for _ in 0..end / 4 {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let number = (state >> 8) as f32 / (1 << 27) as f32 - 0.0625;
        file.write_all(&number.to_le_bytes())?;
    }
    file.flush()
}

fn embed(c: &mut Criterion) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embed-random");
    write(&folder).expect("the model is written");
    for (name, precision) in [("f32", Precision::F32), ("int8", Precision::Int8)] {
        let model = EmbedModel::load(&folder, precision).expect("the model loads");
        for tokens in [32, 256] {
            let text = "cat ".repeat(tokens - 2);
            assert_eq!(model.tokens(&text).len(), tokens);
            let mut group = c.benchmark_group(format!("embed/{name}/{tokens}"));
            group.sample_size(20);
            group.bench_function("alone", |b| b.iter(|| black_box(model.embed(&text))));
            let batch = [text.as_str(); 8];
            group.bench_function("eight", |b| b.iter(|| black_box(model.embed_batch(&batch))));
        }
    }
}

criterion_group!(benches, embed);
criterion_main!(benches);
