//! WordPiece: texts as the numbers of a vocabulary's pieces.
//!
//! What a text says is never a special token: `[SEP]` in it is three words.

mod normalize;
mod vocabulary;

pub(crate) use vocabulary::Vocabulary;

use normalize::{is_punctuation, normalized};

/// Characters of a word that is cut into pieces; a longer one is unknown as a whole.
const MAX_WORD_CHARS: usize = 100;

impl Vocabulary {
    /// The tokens of a text between those of its beginning and end, at most `max` with
    /// them: what is beyond is cut off.
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

/// Tokens while a text is read.
struct Tokens<'v> {
    vocabulary: &'v Vocabulary,
    ids: Vec<u32>,
    /// Tokens there may be before the last one.
    room: usize,
    /// The word that is being read, as far as it may be cut into pieces.
    word: String,
    /// Its characters.
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

    /// Cuts the word into the longest pieces that the vocabulary has, from its
    /// beginning on; false if some part has none.
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
