//! The forward pass beside one that is written as the papers have it: loops over `f64`,
//! one token after the other.

use crate::small::{EPSILON, HEADS, HIDDEN, LAYERS, Small, WIDE, cosine, random};
use a99_embed::Precision;

type Row = Vec<f64>;

struct Reference<'m>(&'m Small);

impl Reference<'_> {
    fn row(&self, name: &str, at: usize, width: usize) -> Row {
        let numbers = self.0.numbers(name);
        let row = &numbers[at * width..(at + 1) * width];
        row.iter().map(|n| f64::from(*n)).collect()
    }

    fn linear(&self, name: &str, input: &Row, rows: usize) -> Row {
        let bias = self.row(&format!("{name}.bias"), 0, rows);
        let weight = format!("{name}.weight");
        let output = |i: usize| {
            let row = self.row(&weight, i, input.len());
            bias[i] + row.iter().zip(input).map(|(a, b)| a * b).sum::<f64>()
        };
        (0..rows).map(output).collect()
    }

    fn norm(&self, name: &str, input: &Row) -> Row {
        let count = input.len() as f64;
        let mean = input.iter().sum::<f64>() / count;
        let variance = input.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let weight = self.row(&format!("{name}.weight"), 0, input.len());
        let bias = self.row(&format!("{name}.bias"), 0, input.len());
        let items = input.iter().zip(weight).zip(bias);
        items
            .map(|((x, weight), bias)| (x - mean) / (variance + EPSILON).sqrt() * weight + bias)
            .collect()
    }

    fn attention(&self, name: &str, rows: &[Row]) -> Vec<Row> {
        let of = |part: &str| -> Vec<Row> {
            let name = format!("{name}.self.{part}");
            rows.iter()
                .map(|row| self.linear(&name, row, HIDDEN))
                .collect()
        };
        let (queries, keys, values) = (of("query"), of("key"), of("value"));
        let width = HIDDEN / HEADS;
        let mut out = vec![vec![0.0; HIDDEN]; rows.len()];
        for head in (0..HIDDEN).step_by(width) {
            for (query, out) in queries.iter().zip(&mut out) {
                let score = |key: &Row| {
                    let dot: f64 = (head..head + width).map(|i| query[i] * key[i]).sum();
                    (dot / (width as f64).sqrt()).exp()
                };
                let scores: Vec<f64> = keys.iter().map(score).collect();
                let total: f64 = scores.iter().sum();
                for (score, value) in scores.iter().zip(&values) {
                    for i in head..head + width {
                        out[i] += score / total * value[i];
                    }
                }
            }
        }
        out
    }

    fn embed(&self, tokens: &[u32]) -> Vec<f32> {
        let add = |a: &Row, b: &Row| -> Row { a.iter().zip(b).map(|(a, b)| a + b).collect() };
        let first = |(position, token): (usize, &u32)| {
            let word = self.row("embeddings.word_embeddings.weight", *token as usize, HIDDEN);
            let place = self.row("embeddings.position_embeddings.weight", position, HIDDEN);
            let kind = self.row("embeddings.token_type_embeddings.weight", 0, HIDDEN);
            self.norm("embeddings.LayerNorm", &add(&add(&word, &place), &kind))
        };
        let mut rows: Vec<Row> = tokens.iter().enumerate().map(first).collect();
        for n in 0..LAYERS {
            let name = |part: &str| format!("encoder.layer.{n}.{part}");
            let attended = self.attention(&name("attention"), &rows);
            for (row, attended) in rows.iter_mut().zip(attended) {
                let output = self.linear(&name("attention.output.dense"), &attended, HIDDEN);
                *row = self.norm(&name("attention.output.LayerNorm"), &add(&output, row));
                let wide = self.linear(&name("intermediate.dense"), row, WIDE);
                let gelu = |x: f64| x * 0.5 * (1.0 + libm::erf(x / 2f64.sqrt()));
                let wide = wide.into_iter().map(gelu).collect();
                let output = self.linear(&name("output.dense"), &wide, HIDDEN);
                *row = self.norm(&name("output.LayerNorm"), &add(&output, row));
            }
        }
        let mut mean = vec![0.0; HIDDEN];
        for row in &rows {
            mean = add(&mean, row);
        }
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        mean.iter().map(|x| (x / length) as f32).collect()
    }
}

/// Texts of one token and of many, the longest one cut.
fn texts() -> Vec<String> {
    let mut next = random(9);
    let mut text = |words: usize| {
        let mut word =
            || ["the", "cat", "hello", "world", "x", "?"][(next().abs() * 5.99) as usize];
        (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
    };
    [0, 1, 2, 6, 30, 100, 254, 400].map(&mut text).to_vec()
}

#[test]
fn vectors_are_those_of_the_reference() {
    for seed in 1..4 {
        let small = Small::new(seed);
        let model = small.load(Precision::F32);
        let packed = small.load(Precision::Int8);
        for text in texts() {
            let tokens = model.tokens(&text);
            let exact = Reference(&small).embed(&tokens);
            let vector = model.embed(&text);
            let worst = vector.iter().zip(&exact).map(|(a, b)| (a - b).abs());
            let worst = worst.fold(0.0, f32::max);
            assert!(worst < 2e-5, "{} tokens: {worst}", tokens.len());
            let near = cosine(&packed.embed(&text), &exact);
            assert!(near > 0.999, "{} tokens: {near}", tokens.len());
        }
    }
}

#[test]
fn eight_bits_change_something() {
    let small = Small::new(1);
    let text = "hello world";
    let (exact, near) = (small.load(Precision::F32), small.load(Precision::Int8));
    assert_ne!(exact.embed(text), near.embed(text));
    let share = near.memory_bytes() as f64 / exact.memory_bytes() as f64;
    assert!(share < 0.6, "{share}");
}

#[test]
fn a_batch_gives_what_each_text_gives() {
    for precision in [Precision::F32, Precision::Int8] {
        let model = Small::new(2).load(precision);
        let texts = texts();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let alone: Vec<_> = texts.iter().map(|text| model.embed(text)).collect();
        assert_eq!(model.embed_batch(&texts), alone);
    }
    let model = Small::new(2).load(Precision::F32);
    assert!(model.embed_batch(&[]).is_empty());
}

#[test]
fn vectors_have_length_one() {
    let model = Small::new(3).load(Precision::F32);
    for text in texts() {
        let vector = model.embed(&text);
        assert_eq!(vector.len(), model.dimension());
        let length: f32 = vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
    }
}
