//! The vocabulary of a model: one piece a line, numbered by line.

use crate::error::{EmbedCode, EmbedError};
use std::collections::HashMap;

/// The prefix of a piece that continues a word.
const CONTINUATION: &str = "##";

/// Maximum bytes of a piece.
const MAX_PIECE_BYTES: usize = 512;

/// Word pieces with their numbers.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    first: HashMap<Box<str>, u32>,
    following: HashMap<Box<str>, u32>,
    /// Bytes of the longest piece, without its prefix.
    longest: usize,
    start: u32,
    end: u32,
    unknown: u32,
}

impl Vocabulary {
    /// Parses the text of `vocab.txt`, which has `size` lines.
    pub(crate) fn parse(text: &str, size: usize) -> Result<Vocabulary, EmbedError> {
        let wrong = |what: String| EmbedError::new(EmbedCode::Vocabulary, what);
        let mut vocabulary = Vocabulary {
            first: HashMap::new(),
            following: HashMap::new(),
            longest: 0,
            start: 0,
            end: 0,
            unknown: 0,
        };
        let mut lines = 0;
        for (id, line) in (0u32..).zip(text.lines()) {
            lines += 1;
            if lines > size {
                return Err(wrong(format!("more than the {size} pieces of the model")));
            }
            let (pieces, piece) = match line.strip_prefix(CONTINUATION) {
                Some(piece) if !piece.is_empty() => (&mut vocabulary.following, piece),
                _ => (&mut vocabulary.first, line),
            };
            if piece.is_empty() || piece.len() > MAX_PIECE_BYTES {
                return Err(wrong(format!(
                    "line {lines}: a piece has 1 to {MAX_PIECE_BYTES} bytes, not {}",
                    piece.len()
                )));
            }
            if pieces.insert(piece.into(), id).is_some() {
                return Err(wrong(format!("line {lines}: {line:?} is there twice")));
            }
            vocabulary.longest = vocabulary.longest.max(piece.len());
        }
        if lines < size {
            return Err(wrong(format!("{lines} pieces, and the model has {size}")));
        }
        let special = |name: &str| {
            let id = vocabulary.first.get(name).copied();
            id.ok_or_else(|| wrong(format!("{name} is missing")))
        };
        let (start, end) = (special("[CLS]")?, special("[SEP]")?);
        let unknown = special("[UNK]")?;
        Ok(Vocabulary {
            start,
            end,
            unknown,
            ..vocabulary
        })
    }

    /// The token for the beginning of a text.
    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    /// The token for the end of a text.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// The token for a word without pieces.
    pub(crate) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Approximate bytes of the tables.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entry = size_of::<(Box<str>, u32)>() + 1;
        let tables = [&self.first, &self.following];
        let of_table = |table: &&HashMap<Box<str>, u32>| {
            let texts: usize = table.keys().map(|piece| piece.len()).sum();
            table.capacity() * entry * 8 / 7 + texts
        };
        tables.iter().map(of_table).sum()
    }

    /// The longest piece at the beginning of a text, and its bytes.
    pub(super) fn longest(&self, text: &str, is_first: bool) -> Option<(u32, usize)> {
        let pieces = if is_first {
            &self.first
        } else {
            &self.following
        };
        let most = text.len().min(self.longest);
        (1..=most).rev().find_map(|length| {
            let id = pieces.get(text.get(..length)?)?;
            Some((*id, length))
        })
    }
}
