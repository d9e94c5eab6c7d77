//! The forward pass: tokens through BERT's layers to one vector.
//!
//! A batch concatenates its texts' rows, without padding: only attention uses their boundaries.

use crate::config::Config;
use crate::error::EmbedError;
use crate::math::{Norm, gelu, normalize, softmax};
use crate::matrix::{Linear, Matrix, Precision, shaped, shaped_mut};
use crate::safetensors::Safetensors;
use ndarray::linalg::general_mat_mul;
use ndarray::s;
use std::io::{Read, Seek};

/// The weights of a model.
#[derive(Debug)]
pub(crate) struct Encoder {
    config: Config,
    words: Matrix,
    /// The embedding of each position plus that of the first token type.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// Queries, keys and values in one matrix.
    attention: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    intermediate: Linear,
    output: Linear,
    output_norm: Norm,
}

/// Working memory of a pass.
#[derive(Debug)]
struct Buffers {
    hidden: Vec<f32>,
    attention: Vec<f32>,
    context: Vec<f32>,
    intermediate: Vec<f32>,
    output: Vec<f32>,
    scores: Vec<f32>,
    panel: Vec<f32>,
}

impl Encoder {
    /// Reads the weights for texts of at most `tokens`.
    pub(crate) fn read<R: Read + Seek>(
        config: Config,
        tokens: usize,
        file: &mut Safetensors<R>,
        precision: Precision,
    ) -> Result<Encoder, EmbedError> {
        let mut reader = Weights { file, precision };
        let (hidden, wide) = (config.hidden, config.intermediate);
        let mut words = Matrix::new(precision, config.vocabulary, hidden);
        let name = "embeddings.word_embeddings.weight";
        let shape = [config.vocabulary, hidden];
        reader.file.read(name, &shape, |some| words.extend(some))?;
        let mut positions = Vec::new();
        let name = "embeddings.position_embeddings.weight";
        reader.read(name, &[config.positions, hidden], &mut positions)?;
        let mut types = Vec::new();
        let name = "embeddings.token_type_embeddings.weight";
        reader.read(name, &[config.types, hidden], &mut types)?;
        positions.truncate(tokens * hidden);
        positions.shrink_to_fit();
        for position in positions.chunks_exact_mut(hidden) {
            add(position, &types[..hidden]);
        }
        let norm = reader.norm("embeddings.LayerNorm", hidden)?;
        let mut layers = Vec::new();
        for n in 0..config.layers {
            let part = |name: &str| format!("encoder.layer.{n}.{name}");
            let [query, key, value] =
                ["query", "key", "value"].map(|name| part(&format!("attention.self.{name}")));
            layers.push(Layer {
                attention: reader.linear(&[&query, &key, &value], hidden, hidden)?,
                attention_output: reader.linear(
                    &[&part("attention.output.dense")],
                    hidden,
                    hidden,
                )?,
                attention_norm: reader.norm(&part("attention.output.LayerNorm"), hidden)?,
                intermediate: reader.linear(&[&part("intermediate.dense")], wide, hidden)?,
                output: reader.linear(&[&part("output.dense")], hidden, wide)?,
                output_norm: reader.norm(&part("output.LayerNorm"), hidden)?,
            });
        }
        Ok(Encoder {
            config,
            words,
            positions,
            norm,
            layers,
        })
    }

    /// The vectors of texts, in order. `stop` is called between layers; if it gives true, the
    /// result is `None`.
    pub(crate) fn forward(
        &self,
        texts: &[Vec<u32>],
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Vec<f32>>> {
        let hidden = self.config.hidden;
        let mut buffers = Buffers::new(&self.config, texts);
        let mut rows = buffers.hidden.chunks_exact_mut(hidden);
        for text in texts {
            let positions = self.positions.chunks_exact(hidden);
            for ((token, position), row) in text.iter().zip(positions).zip(&mut rows) {
                self.words.copy_rows(*token as usize, row);
                add(row, position);
                self.norm.apply(row, self.config.epsilon);
            }
        }
        for layer in &self.layers {
            if stop() {
                return None;
            }
            self.layer(layer, texts, &mut buffers);
        }
        let mut rows = buffers.hidden.chunks_exact(hidden);
        let vectors = texts.iter().map(|text| {
            let mut mean = vec![0.0; hidden];
            for row in rows.by_ref().take(text.len()) {
                add(&mut mean, row);
            }
            let count = text.len() as f32;
            mean.iter_mut().for_each(|number| *number /= count);
            normalize(&mut mean);
            mean
        });
        Some(vectors.collect())
    }

    fn layer(&self, layer: &Layer, texts: &[Vec<u32>], buffers: &mut Buffers) {
        let Buffers {
            hidden,
            attention,
            context,
            intermediate,
            output,
            scores,
            panel,
        } = buffers;
        layer.attention.apply(hidden, attention, panel);
        let mut row = 0;
        for text in texts {
            self.attend(row, text.len(), attention, context, scores);
            row += text.len();
        }
        layer.attention_output.apply(context, output, panel);
        self.add_and_norm(hidden, output, &layer.attention_norm);
        layer.intermediate.apply(hidden, intermediate, panel);
        gelu(intermediate);
        layer.output.apply(intermediate, output, panel);
        self.add_and_norm(hidden, output, &layer.output_norm);
    }

    /// Attention within a text of `count` tokens that begins at a row.
    fn attend(
        &self,
        row: usize,
        count: usize,
        attention: &[f32],
        context: &mut [f32],
        scores: &mut [f32],
    ) {
        let hidden = self.config.hidden;
        let rows = row..row + count;
        let all = shaped(attention, attention.len() / (3 * hidden), 3 * hidden);
        let total = context.len() / hidden;
        let mut context = shaped_mut(context, total, hidden);
        let width = hidden / self.config.heads;
        let scale = 1.0 / (width as f32).sqrt();
        for head in 0..self.config.heads {
            let part = |n: usize| {
                let first = n * hidden + head * width;
                all.slice(s![rows.clone(), first..first + width])
            };
            let (queries, keys, values) = (part(0), part(1), part(2));
            let mut weights = shaped_mut(scores, count, count);
            general_mat_mul(scale, &queries, &keys.t(), 0.0, &mut weights);
            scores[..count * count]
                .chunks_exact_mut(count)
                .for_each(softmax);
            let weights = shaped(scores, count, count);
            let first = head * width;
            let mut out = context.slice_mut(s![rows.clone(), first..first + width]);
            general_mat_mul(1.0, &weights, &values, 0.0, &mut out);
        }
    }

    /// The residual connection and normalisation after a part of a layer.
    fn add_and_norm(&self, hidden: &mut [f32], output: &[f32], norm: &Norm) {
        add(hidden, output);
        for row in hidden.chunks_exact_mut(self.config.hidden) {
            norm.apply(row, self.config.epsilon);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let layer = |layer: &Layer| {
            layer.attention.memory_bytes()
                + layer.attention_output.memory_bytes()
                + layer.attention_norm.memory_bytes()
                + layer.intermediate.memory_bytes()
                + layer.output.memory_bytes()
                + layer.output_norm.memory_bytes()
        };
        self.words.memory_bytes()
            + self.positions.capacity() * size_of::<f32>()
            + self.norm.memory_bytes()
            + self.layers.iter().map(layer).sum::<usize>()
    }
}

impl Buffers {
    fn new(config: &Config, texts: &[Vec<u32>]) -> Buffers {
        let tokens: usize = texts.iter().map(Vec::len).sum();
        let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
        let rows = |width: usize| vec![0.0; tokens * width];
        Buffers {
            hidden: rows(config.hidden),
            attention: rows(3 * config.hidden),
            context: rows(config.hidden),
            intermediate: rows(config.intermediate),
            output: rows(config.hidden),
            scores: vec![0.0; longest * longest],
            panel: Vec::new(),
        }
    }
}

fn add(to: &mut [f32], what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}

/// The file of weights, and the precision in memory.
struct Weights<'f, R> {
    file: &'f mut Safetensors<R>,
    precision: Precision,
}

impl<R: Read + Seek> Weights<'_, R> {
    fn read(&mut self, name: &str, shape: &[usize], out: &mut Vec<f32>) -> Result<(), EmbedError> {
        self.file
            .read(name, shape, |some| out.extend_from_slice(some))
    }

    /// Combines linear maps of the same input into one. Their matrices are published with a row
    /// for each output.
    fn linear(
        &mut self,
        names: &[&str],
        rows: usize,
        columns: usize,
    ) -> Result<Linear, EmbedError> {
        let width = names.len() * rows;
        let mut turned = vec![0.0; columns * width];
        let mut bias = Vec::with_capacity(width);
        for (n, name) in names.iter().enumerate() {
            let mut places = (0..rows).flat_map(|row| {
                let first = n * rows + row;
                (0..columns).map(move |column| column * width + first)
            });
            let weight = format!("{name}.weight");
            self.file.read(&weight, &[rows, columns], |some| {
                for (number, place) in some.iter().zip(&mut places) {
                    turned[place] = *number;
                }
            })?;
            self.read(&format!("{name}.bias"), &[rows], &mut bias)?;
        }
        let mut weight = Matrix::new(self.precision, columns, width);
        weight.extend(&turned);
        Ok(Linear { weight, bias })
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm, EmbedError> {
        let mut norm = Norm::default();
        self.read(&format!("{name}.weight"), &[width], &mut norm.weight)?;
        self.read(&format!("{name}.bias"), &[width], &mut norm.bias)?;
        Ok(norm)
    }
}
