//! The parser: one loop with an explicit stack, so deep nesting cannot overflow the host's stack
//! (decision D38).
//!
//! After a mistake with an obvious intent it recovers, to find more faults; the document is refused
//! all the same. `recover` has the messages.

use super::{Document, Limits, NONE, Node, Repeated, Tag, number_words, word};
use crate::diag::{Diagnostic, Diagnostics, LineIndex, codes};
use std::sync::OnceLock;

/// Parsing cannot continue; the findings contain the reason.
pub(super) struct ParseStopped;

/// Program text bytes per node, measured on typical programs; sizes the arena.
const BYTES_PER_NODE: usize = 8;

/// An open container.
pub(super) struct ParseFrame {
    pub(super) node: u32,
    /// Start of its children in `pending`.
    pub(super) base: usize,
    pub(super) object: bool,
    /// The key whose value is being parsed, or `NONE`.
    pub(super) key: u32,
}

/// State of the parser; the arena grows in place.
pub(super) struct Parser<'a> {
    pub(super) src: &'a [u8],
    pub(super) pos: usize,
    pub(super) limits: &'a Limits,
    pub(super) repeated: Repeated,
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<u32>,
    pub(super) strings: Vec<u8>,
    pub(super) keys: usize,
    pub(super) pending: Vec<u32>,
    pub(super) stack: Vec<ParseFrame>,
    pub(super) found: Diagnostics,
    /// Mistakes that the parser recovered from.
    pub(super) slips: usize,
    /// Duplicate keys, reported or not.
    pub(super) duplicates: usize,
    pub(super) lines: OnceLock<LineIndex>,
}

/// Expected next token.
enum Expect {
    Value,
    Separator,
}

pub(super) fn parse(
    text: Vec<u8>,
    limits: &Limits,
    repeated: Repeated,
) -> Result<Document, Diagnostics> {
    if let Err(mut found) = check_bytes(&text, limits) {
        found.locate(&text);
        return Err(found);
    }
    let room = (text.len() / BYTES_PER_NODE + 1).min(limits.max_nodes as usize);
    let mut parser = Parser {
        src: &text,
        pos: if text.starts_with(b"\xEF\xBB\xBF") {
            3
        } else {
            0
        },
        limits,
        repeated,
        nodes: Vec::with_capacity(room),
        links: Vec::with_capacity(room / 4 * 3),
        strings: Vec::new(),
        keys: 0,
        pending: Vec::with_capacity(32),
        stack: Vec::with_capacity(16),
        found: Diagnostics::new(),
        slips: 0,
        duplicates: 0,
        lines: OnceLock::new(),
    };
    // A stop has recorded its reason as a finding.
    let _ = parser.document();
    parser.report_unlisted_duplicates();
    if !parser.found.is_empty() {
        let syntax = parser
            .found
            .iter()
            .any(|found| found.code == codes::JSON_SYNTAX);
        let foreign = syntax.then(|| super::format::foreign(&text)).flatten();
        let mut found = foreign.map_or(parser.found, Diagnostics::from);
        found.locate(&text);
        return Err(found);
    }
    let Parser {
        nodes,
        links,
        strings,
        keys,
        lines,
        ..
    } = parser;
    Ok(Document {
        source: Some(text),
        strings,
        nodes,
        links,
        keys,
        lines,
        index: OnceLock::new(),
        origin: None,
    })
}

/// Checks size and encoding before parsing.
fn check_bytes(text: &[u8], limits: &Limits) -> Result<(), Diagnostics> {
    let most = limits.max_bytes.min(NONE as usize - 1);
    if text.len() > most {
        let message = format!("the document has {} bytes, more than {most}", text.len());
        return Err(Diagnostic::error(codes::JSON_TOO_LARGE, message, "").into());
    }
    let encoding = match text {
        [0xFF, 0xFE, ..] | [b'{' | b'[' | b'"' | b' ' | b'\n' | b'\r', 0, ..] => Some("UTF-16LE"),
        [0xFE, 0xFF, ..] | [0, b'{' | b'[' | b'"' | b' ' | b'\n' | b'\r', ..] => Some("UTF-16BE"),
        _ => None,
    };
    if let Some(encoding) = encoding {
        let message = format!("the document is {encoding}, not UTF-8");
        return Err(Diagnostic::error(codes::NOT_UTF8, message, "")
            .with_span(0..2)
            .with_help("save the file as UTF-8")
            .into());
    }
    if let Err(error) = std::str::from_utf8(text) {
        let at = word(error.valid_up_to());
        let bad = text[error.valid_up_to()];
        return Err(
            Diagnostic::error(codes::NOT_UTF8, "the document is not UTF-8", "")
                .with_span(at..at + 1)
                .with_offending(format!("byte 0x{bad:02X}"))
                .with_help("save the file as UTF-8")
                .into(),
        );
    }
    Ok(())
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.src.get(self.pos).copied()
    }

    /// Skips white space (RFC 8259 §2).
    #[inline]
    fn space(&mut self) -> Result<(), ParseStopped> {
        loop {
            match self.peek() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.pos += 1,
                Some(b'/' | b'#') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn document(&mut self) -> Result<(), ParseStopped> {
        self.space()?;
        if self.peek().is_none() {
            return self.empty_document();
        }
        let mut expect = Expect::Value;
        loop {
            expect = match expect {
                Expect::Value => self.value()?,
                Expect::Separator if self.stack.is_empty() => break,
                Expect::Separator => self.separator()?,
            };
        }
        self.space()?;
        match self.peek() {
            None => Ok(()),
            Some(_) => self.trailing_text(),
        }
    }

    /// Parses a value at the current position. For a container, advances to its first value.
    fn value(&mut self) -> Result<Expect, ParseStopped> {
        let start = self.pos;
        match self.peek() {
            Some(b'"') => self.string(b'"')?,
            Some(b'{') => return self.open(true),
            Some(b'[') => return self.open(false),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') if self.word_is(b"true") => self.leaf(Tag::True, start, 4)?,
            Some(b'f') if self.word_is(b"false") => self.leaf(Tag::False, start, 5)?,
            Some(b'n') if self.word_is(b"null") => self.leaf(Tag::Null, start, 4)?,
            _ => self.odd_value()?,
        }
        self.child_done();
        Ok(Expect::Separator)
    }

    /// True if `word` stands here as a whole word.
    fn word_is(&self, word: &[u8]) -> bool {
        let rest = &self.src[self.pos..];
        rest.starts_with(word) && !rest.get(word.len()).is_some_and(|&b| is_word(b))
    }

    fn leaf(&mut self, tag: Tag, start: usize, width: usize) -> Result<(), ParseStopped> {
        self.pos = start + width;
        self.node(tag, start, 0, 0).map(|_| ())
    }

    /// Adds a node that spans from `start` to the current position.
    pub(super) fn node(
        &mut self,
        tag: Tag,
        start: usize,
        a: u32,
        b: u32,
    ) -> Result<u32, ParseStopped> {
        let at = self.nodes.len();
        if at >= self.limits.max_nodes as usize {
            return Err(self.too_many_nodes());
        }
        self.nodes.push(Node {
            tag,
            names: [0; 3],
            parent: self.stack.last().map_or(NONE, |frame| frame.node),
            start: word(start),
            end: word(self.pos),
            a,
            b,
        });
        Ok(word(at))
    }

    /// Adds the completed last node to the open container.
    fn child_done(&mut self) {
        let node = word(self.nodes.len() - 1);
        self.add_child(node);
    }

    pub(super) fn add_child(&mut self, node: u32) {
        if let Some(frame) = self.stack.last_mut() {
            frame.key = NONE;
            self.pending.push(node);
        }
    }

    fn open(&mut self, object: bool) -> Result<Expect, ParseStopped> {
        if self.stack.len() >= self.limits.max_depth as usize {
            return Err(self.too_deep());
        }
        let start = self.pos;
        self.pos += 1;
        let tag = if object { Tag::Object } else { Tag::Array };
        let node = self.node(tag, start, 0, 0)?;
        self.stack.push(ParseFrame {
            node,
            base: self.pending.len(),
            object,
            key: NONE,
        });
        self.space()?;
        if self.peek() == Some(closer(object)) {
            self.close();
            return Ok(Expect::Separator);
        }
        self.before_value(object)
    }

    /// Parses a key and its colon if the container is an object.
    fn before_value(&mut self, object: bool) -> Result<Expect, ParseStopped> {
        if object {
            let start = self.pos;
            match self.peek() {
                Some(b'"') => self.string(b'"')?,
                _ => self.odd_key()?,
            }
            debug_assert!(self.pos > start);
            self.keys += 1;
            let key = word(self.nodes.len() - 1);
            self.space()?;
            match self.peek() {
                Some(b':') => self.pos += 1,
                _ => self.missing_colon(key)?,
            }
            if let Some(frame) = self.stack.last_mut() {
                frame.key = key;
            }
            self.space()?;
        }
        Ok(Expect::Value)
    }

    /// Parses a comma or the closing bracket after a value.
    fn separator(&mut self) -> Result<Expect, ParseStopped> {
        self.space()?;
        let object = self.stack.last().is_some_and(|frame| frame.object);
        match self.peek() {
            Some(b',') => {
                let comma = self.pos;
                self.pos += 1;
                self.space()?;
                if matches!(self.peek(), Some(b'}' | b']' | b',')) {
                    self.extra_comma(comma)?;
                    return Ok(Expect::Separator);
                }
            }
            Some(byte) if byte == closer(object) => {
                self.close();
                return Ok(Expect::Separator);
            }
            _ => self.missing_comma(object)?,
        }
        self.before_value(object)
    }

    /// Parses a number, with a fast path for short whole numbers.
    fn number(&mut self) -> Result<(), ParseStopped> {
        /// Decimal digits that `f64` always represents exactly.
        const EXACT_DIGITS: usize = 15;
        let start = self.pos;
        let negative = self.src[start] == b'-';
        let first = start + usize::from(negative);
        let mut at = first;
        let mut whole = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.src.get(at).copied()
            && at - first < EXACT_DIGITS
        {
            whole = whole * 10 + u64::from(digit - b'0');
            at += 1;
        }
        let ends = !self.src.get(at).is_some_and(|&b| is_number_part(b));
        let leading_zero = at - first > 1 && self.src[first] == b'0';
        let number = if ends && at > first && !leading_zero {
            self.pos = at;
            // Exact by the limit on digits. The sign is applied last, for -0.
            let number = whole as f64;
            if negative { -number } else { number }
        } else {
            self.long_number()?
        };
        let (a, b) = number_words(number);
        self.node(Tag::Number, start, a, b).map(|_| ())
    }
}

pub(super) fn closer(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// True for bytes of names: ASCII and all other letters.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// True for bytes that continue a number or a malformed number.
pub(super) fn is_number_part(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'.' | b'+' | b'-')
}
