//! WordPiece: texts as the numbers of a vocabulary's pieces.
//!
//! A text never produces special tokens: `[SEP]` in it is three words.

mod normalize;
mod vocabulary;

pub(crate) use vocabulary::Vocabulary;

use normalize::{is_punctuation, normalized};

/// Maximum characters of a word that is split into pieces; a longer one is unknown.
const MAX_WORD_CHARS: usize = 100;

impl Vocabulary {
    /// The tokens of a text with those of its beginning and end, at most `max`: the rest is cut
    /// off.
    pub(crate) fn encode(&self, text: &str, max: usize) -> Vec<u32> {
        let mut tokens = Tokens {
            vocabulary: self,
            ids: vec![self.start()],
            room: max.saturating_sub(1),
            word: String::new(),
            chars: 0,
        };
        for c in normalized(text) {
            if c.is_whitespace() {
                tokens.end_word();
            } else if is_punctuation(c) {
                tokens.end_word();
                tokens.push(c);
                tokens.end_word();
            } else {
                tokens.push(c);
            }
            if tokens.ids.len() >= tokens.room {
                break;
            }
        }
        tokens.end_word();
        tokens.ids.truncate(tokens.room);
        tokens.ids.push(self.end());
        tokens.ids
    }
}

/// The tokens of a text that is being read.
struct Tokens<'v> {
    vocabulary: &'v Vocabulary,
    ids: Vec<u32>,
    /// Maximum tokens before the last one.
    room: usize,
    /// The current word, as far as it may be split into pieces.
    word: String,
    /// Number of its characters.
    chars: usize,
}

impl Tokens<'_> {
    fn push(&mut self, c: char) {
        self.chars += 1;
        if self.chars <= MAX_WORD_CHARS {
            self.word.push(c);
        }
    }

    fn end_word(&mut self) {
        if self.chars > 0 {
            let before = self.ids.len();
            let known = self.chars <= MAX_WORD_CHARS && self.cut();
            if !known {
                self.ids.truncate(before);
                self.ids.push(self.vocabulary.unknown());
            }
        }
        self.word.clear();
        self.chars = 0;
    }

    /// Splits the word from its beginning into the longest pieces of the vocabulary; false if a
    /// part has none.
    fn cut(&mut self) -> bool {
        let mut rest = self.word.as_str();
        let mut is_first = true;
        while !rest.is_empty() {
            let Some((id, length)) = self.vocabulary.longest(rest, is_first) else {
                return false;
            };
            self.ids.push(id);
            rest = rest.get(length..).unwrap_or("");
            is_first = false;
        }
        true
    }
}
