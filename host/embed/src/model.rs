//! A model in memory.

use crate::config::{Config, MAX_CONFIG_BYTES};
use crate::encoder::Encoder;
use crate::error::{EmbedCode, EmbedError};
use crate::files::{self, PIP_DOWNLOAD};
use crate::matrix::Precision;
use crate::safetensors::Safetensors;
use crate::tokenizer::Vocabulary;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Maximum tokens of a text, including those of its beginning and end: the limit in the model's
/// training. The rest is cut off.
pub const MAX_TOKENS: usize = 256;

/// Maximum bytes of a vocabulary.
const MAX_VOCABULARY_BYTES: usize = 4 << 20;

/// Maximum tokens of a batch of texts: more do not fit into the processor's cache.
const BATCH_TOKENS: usize = 512;

/// A model of sentence embeddings: texts become vectors of length one, and texts of similar
/// meaning have vectors of similar direction.
#[derive(Debug)]
pub struct EmbedModel {
    vocabulary: Vocabulary,
    encoder: Encoder,
    dimension: usize,
    max_tokens: usize,
}

impl EmbedModel {
    /// Loads the model that [`import`](crate::import) put into a folder. Hashes are not
    /// verified again; sizes and shapes are.
    ///
    /// # Errors
    /// If a file is missing, damaged, or not part of such a model.
    pub fn load(folder: &Path, precision: Precision) -> Result<EmbedModel, EmbedError> {
        let path = folder.join(files::CONFIG);
        let config = read_text(&path, MAX_CONFIG_BYTES, EmbedCode::Config)?;
        let config = Config::parse(config.as_bytes()).map_err(|error| error.in_file(&path))?;
        let path = folder.join(files::VOCABULARY);
        let vocabulary = read_text(&path, MAX_VOCABULARY_BYTES, EmbedCode::Vocabulary)?;
        let vocabulary = Vocabulary::parse(&vocabulary, config.vocabulary);
        let vocabulary = vocabulary.map_err(|error| error.in_file(&path))?;
        let path = folder.join(files::WEIGHTS);
        let dimension = config.hidden;
        let max_tokens = MAX_TOKENS.min(config.positions);
        let encoder = Safetensors::open(BufReader::new(open(&path)?))
            .and_then(|mut file| Encoder::read(config, max_tokens, &mut file, precision))
            .map_err(|error| error.in_file(&path))?;
        Ok(EmbedModel {
            vocabulary,
            encoder,
            dimension,
            max_tokens,
        })
    }

    /// The dimension of the vectors.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Approximate bytes of the model in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.encoder.memory_bytes() + self.vocabulary.memory_bytes()
    }

    /// The tokens of a text, as numbers of the vocabulary.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.vocabulary.encode(text, self.max_tokens)
    }

    /// The vector of a text.
    #[must_use]
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.embed_batch(&[text]).pop().unwrap_or_default()
    }

    /// The vectors of texts, in order, equal to those of [`embed`](EmbedModel::embed).
    #[must_use]
    pub fn embed_batch(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch = Vec::new();
        let mut tokens = 0;
        for text in texts {
            let text = self.tokens(text);
            if tokens + text.len() > BATCH_TOKENS {
                vectors.extend(self.forward(&batch));
                batch.clear();
                tokens = 0;
            }
            tokens += text.len();
            batch.push(text);
        }
        vectors.extend(self.forward(&batch));
        vectors
    }

    fn forward(&self, batch: &[Vec<u32>]) -> Vec<Vec<f32>> {
        self.encoder.forward(batch, &|| false).unwrap_or_default()
    }

    /// The vector of a text. `stop` is called between layers and gives true once no caller
    /// waits; the result is then an error.
    pub(crate) fn embed_watched(
        &self,
        text: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, EmbedError> {
        let vectors = self.encoder.forward(&[self.tokens(text)], stop);
        let vector = vectors.and_then(|mut vectors| vectors.pop());
        let stopped = || EmbedError::new(EmbedCode::Stopped, "the embedding was stopped");
        let vector = vector.ok_or_else(stopped)?;
        match vector.iter().all(|number| number.is_finite()) {
            true => Ok(vector),
            false => {
                let why = "the weights give this text a vector that is not finite";
                Err(EmbedError::new(EmbedCode::Weights, why))
            }
        }
    }
}

fn open(path: &Path) -> Result<File, EmbedError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let message = format!("{} is missing: no model is there", path.display());
            EmbedError::new(EmbedCode::NotFound, message).with_help(PIP_DOWNLOAD)
        }
        _ => EmbedError::io(path, &error),
    })
}

/// Reads a text file of at most `most` bytes.
fn read_text(path: &Path, most: usize, code: EmbedCode) -> Result<String, EmbedError> {
    let mut bytes = Vec::new();
    let file = open(path)?.take(most as u64 + 1);
    let mut file = BufReader::new(file);
    file.read_to_end(&mut bytes)
        .map_err(|error| EmbedError::io(path, &error))?;
    let wrong = |what: String| EmbedError::new(code, what).in_file(path);
    if bytes.len() > most {
        return Err(wrong(format!("more than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))
}
