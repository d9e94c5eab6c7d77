//! `JSON.parse` into the heap: one pass over the text, without recursion or an intermediate
//! tree.
//!
//! The text of a program is already in the heap, so strings without escapes become views of
//! it. Strings of a host's text are copied ([`Source`]). Consecutive records mostly have the
//! same members. So each object is first matched against the shape of the last one at its
//! depth, key by key, and hashes its keys only if that guess fails.

mod source;
mod strings;

pub(super) use self::source::HostText;
use self::source::Source;
pub(super) use self::strings::ESCAPE_WORK;
use self::strings::Token;
use crate::convert::{special, temp};
use crate::heap::{KeyId, ShapeId, Shapes, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{PARSED_CONTAINER, READ, Sizes, WRITTEN};
use a99_ecma::number_parse;
use std::collections::HashMap;

/// Number of members above which repeated keys are found by hash.
const SCAN_MEMBERS: usize = 16;

/// Bytes of blanks or of a string scanned between two yield points.
const SCAN_SLICE: usize = 64 << 10;

/// Maximum bytes of the text that an error message quotes.
const QUOTE_BYTES: usize = 100;

/// Parses text outside the heap.
///
/// # Errors
/// As [`parse_str`].
pub fn parse(cx: &mut Cx<'_>, text: &[u8]) -> Result<Val, Fault> {
    let text = cx.heap.alloc_str(text)?;
    parse_str(cx, text)
}

/// Parses a string of the heap. Of repeated members the last one counts; `__proto__` is an
/// ordinary member (D16).
///
/// The caller has paid for reading the text. The width of the value is paid here after
/// parsing, since only parsing determines it; it is less than half of the units.
///
/// # Errors
/// Text that is not JSON, with the message of JavaScriptCore; more than
/// [`MAX_DEPTH`](super::MAX_DEPTH) levels; fuel and memory.
pub fn parse_str(cx: &mut Cx<'_>, text: Str) -> Result<Val, Fault> {
    let val = Parser::new(cx, text).run()?;
    let sizes = match val {
        Val::Arr(r) | Val::Obj(r) => Sizes::default().out_elements(cx.heap.len(r)),
        Val::Str(s) => Sizes::default().out_units(s.units()),
        _ => return Ok(val),
    };
    cx.charge(WRITTEN, sizes)?;
    Ok(val)
}

/// Parses a value that spans a host's whole text, at the host's cost.
///
/// # Errors
/// Text that is not JSON; too deep; memory; a stop.
pub(super) fn parse_host(cx: &mut Cx<'_>, text: HostText<'_>) -> Result<Val, Fault> {
    let mut parser = Parser::new(cx, text);
    match text.bytes.first() {
        Some(b'{' | b'[') => parser.run(),
        // Most are scalars.
        _ => Ok(parser.begin()?.unwrap_or(Val::Undefined)),
    }
}

/// An open array or object.
struct ParseFrame {
    object: bool,
    /// Start of its values in [`Parser::vals`].
    vals: usize,
    /// Start of its keys in [`Parser::keys`].
    keys: usize,
    /// The shape whose first keys are the keys so far; then [`Parser::keys`] has none of
    /// them.
    guess: Option<Guess>,
    /// The slot of the next value.
    slot: usize,
    /// The keys by hash, once they are many.
    index: Option<HashMap<KeyId, usize>>,
}

/// The shape that an object is expected to have.
#[derive(Copy, Clone)]
struct Guess {
    shape: ShapeId,
    /// Whether its keys are short and need no escapes in JSON.
    plain: bool,
}

impl Guess {
    fn of(shape: ShapeId, shapes: &Shapes) -> Guess {
        /// Maximum length of a key that is compared with the text before its end is found.
        const SHORT: usize = 32;
        let plain = |text: &[u8]| text.len() <= SHORT && special(text).is_none();
        let keys = shapes.keys(shape);
        let few = keys.len() <= SCAN_MEMBERS;
        Guess {
            shape,
            plain: few && keys.iter().all(|key| plain(shapes.key_text(*key))),
        }
    }
}

struct Parser<'c, 'h, S> {
    cx: &'c mut Cx<'h>,
    text: S,
    at: usize,
    frames: Vec<ParseFrame>,
    vals: Vec<Val>,
    keys: Vec<KeyId>,
    /// The shape of the last object at each depth.
    guesses: Vec<Option<Guess>>,
    /// The last string with escapes, decoded.
    decoded: Vec<u8>,
}

#[cold]
fn syntax(what: impl std::fmt::Display) -> Fault {
    Fault::throw(format!("JSON Parse error: {what}"))
}

impl<'c, 'h, S: Source> Parser<'c, 'h, S> {
    fn new(cx: &'c mut Cx<'h>, text: S) -> Self {
        Parser {
            cx,
            text,
            at: 0,
            frames: Vec::new(),
            vals: Vec::new(),
            keys: Vec::new(),
            guesses: Vec::new(),
            decoded: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Val, Fault> {
        loop {
            self.cx.work(4)?;
            let Some(mut done) = self.begin()? else {
                continue;
            };
            loop {
                if self.frames.is_empty() {
                    return match self.next_byte()? {
                        None => Ok(done),
                        Some(_) => Err(syntax("Unable to parse JSON string")),
                    };
                }
                self.place(done)?;
                match self.after()? {
                    None => break,
                    Some(closed) => done = closed,
                }
            }
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.text.bytes(self.cx.heap)
    }

    /// Skips blanks and returns the next byte.
    #[inline(always)]
    fn next_byte(&mut self) -> Result<Option<u8>, Fault> {
        match self.bytes().get(self.at) {
            Some(byte) if !is_blank(*byte) => Ok(Some(*byte)),
            _ => self.skip_blanks(),
        }
    }

    #[inline(never)]
    fn skip_blanks(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            let bytes = self.text.bytes(self.cx.heap);
            let stop = (self.at + SCAN_SLICE).min(bytes.len());
            let mut at = self.at;
            while at < stop && is_blank(bytes[at]) {
                at += 1;
            }
            let byte = bytes.get(at).copied();
            let in_slice = at < stop || byte.is_none();
            let skipped = at - self.at;
            self.at = at;
            self.cx.work(skipped as i64)?;
            if in_slice {
                return Ok(byte);
            }
        }
    }

    /// Parses a scalar or opens a container; `None` if a value comes next.
    fn begin(&mut self) -> Result<Option<Val>, Fault> {
        let Some(byte) = self.next_byte()? else {
            return Err(syntax("Unexpected EOF"));
        };
        Ok(Some(match byte {
            b'{' | b'[' => return self.open(byte == b'{'),
            b'"' => {
                self.at += 1;
                let token = self.string()?;
                self.string_val(&token)?
            }
            b'-' | b'0'..=b'9' => Val::Num(self.number()?),
            b't' => self.word(b"true", Val::Bool(true))?,
            b'f' => self.word(b"false", Val::Bool(false))?,
            b'n' => self.word(b"null", Val::Null)?,
            _ => return Err(self.unexpected()),
        }))
    }

    fn open(&mut self, object: bool) -> Result<Option<Val>, Fault> {
        self.at += 1;
        let depth = self.frames.len();
        if depth >= self.text.max_depth() {
            return Err(self.text.too_deep());
        }
        if S::PAID {
            self.cx
                .pay_metered(READ.price(Sizes::elements(PARSED_CONTAINER)))?;
        }
        if self.guesses.len() == depth {
            self.guesses.push(None);
        }
        let (vals, keys) = (self.vals.len(), self.keys.len());
        let guess = self.guesses[depth].filter(|_| object);
        self.frames.push(ParseFrame {
            object,
            vals,
            keys,
            guess,
            slot: 0,
            index: None,
        });
        let next = self.next_byte()?;
        if next == Some(if object { b'}' } else { b']' }) {
            return self.close().map(Some);
        }
        if object {
            if next != Some(b'"') {
                return Err(syntax("Expected '}'"));
            }
            self.member()?;
        }
        Ok(None)
    }

    /// Parses the separator after a value: `None` before another value, the container if it
    /// ends here.
    fn after(&mut self) -> Result<Option<Val>, Fault> {
        let next = self.next_byte()?;
        let object = self.frames.last().is_some_and(|f| f.object);
        let end = if object { b'}' } else { b']' };
        match next {
            Some(b',') => {
                self.at += 1;
                let next = self.next_byte()?;
                if object {
                    if next != Some(b'"') {
                        return Err(syntax("Property name must be a string literal"));
                    }
                    self.member()?;
                } else if next == Some(b']') {
                    return Err(syntax("Unexpected comma at the end of array expression"));
                }
                Ok(None)
            }
            Some(b) if b == end => self.close().map(Some),
            _ => Err(syntax(format_args!("Expected '{}'", char::from(end)))),
        }
    }

    /// Parses a key and its colon.
    fn member(&mut self) -> Result<(), Fault> {
        self.at += 1;
        if !self.is_expected() {
            let token = self.string()?;
            self.find_slot(&token)?;
        }
        if self.next_byte()? != Some(b':') {
            return Err(syntax(
                "Expected ':' before value in object property definition",
            ));
        }
        self.at += 1;
        Ok(())
    }

    /// Skips the key of the expected next member, if it is next in the text.
    #[inline]
    fn is_expected(&mut self) -> bool {
        let shapes = &self.cx.heap.shapes;
        let Some(frame) = self.frames.last_mut() else {
            return false;
        };
        let Some(Guess { shape, plain: true }) = frame.guess else {
            return false;
        };
        let count = self.vals.len() - frame.vals;
        let Some(key) = shapes.keys(shape).get(count) else {
            return false;
        };
        let key = shapes.key_text(*key);
        let rest = &self.text.bytes(self.cx.heap)[self.at..];
        let is_it = rest.get(key.len()) == Some(&b'"') && rest.starts_with(key);
        if is_it {
            self.at += key.len() + 1;
            frame.slot = count;
        }
        is_it
    }

    /// Finds the slot of the member after this key.
    fn find_slot(&mut self, key: &Token) -> Result<(), Fault> {
        let (heap, mut clock) = self.cx.split();
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let count = self.vals.len() - frame.vals;
        if let Some(Guess { shape, .. }) = frame.guess {
            let text = match key {
                Token::Plain { start, end } => &self.text.bytes(heap)[*start..*end],
                Token::Decoded => &self.decoded,
            };
            let keys = heap.shapes.keys(shape);
            if keys
                .get(count)
                .is_some_and(|k| heap.shapes.key_text(*k) == text)
            {
                frame.slot = count;
                return Ok(());
            }
            frame.guess = None;
            temp::extend(heap, &mut self.keys, &keys[..count])?;
        }
        let key = match key {
            Token::Plain { start, end } => {
                let text = &self.text.bytes(heap)[*start..*end];
                match heap.shapes.find_long(text, &mut clock)? {
                    (_, Some(key)) => key,
                    (hash, None) => {
                        // Interning writes to the heap that holds the text.
                        self.decoded.clear();
                        temp::extend(heap, &mut self.decoded, text)?;
                        heap.add_key(hash, &self.decoded)?
                    }
                }
            }
            Token::Decoded => match heap.shapes.find_long(&self.decoded, &mut clock)? {
                (_, Some(key)) => key,
                (hash, None) => heap.add_key(hash, &self.decoded)?,
            },
        };
        let found = frame.find(&self.keys[frame.keys..], key);
        frame.slot = found.unwrap_or(count);
        if found.is_none() {
            if let Some(index) = &mut frame.index {
                heap.check(index.capacity() * 4 * size_of::<usize>())?;
                index.insert(key, count);
            }
            temp::push(heap, &mut self.keys, key)?;
        }
        Ok(())
    }

    /// Stores a finished value in the open container.
    #[inline]
    fn place(&mut self, val: Val) -> Result<(), Fault> {
        let Some(frame) = self.frames.last() else {
            return Ok(());
        };
        if frame.object && frame.vals + frame.slot < self.vals.len() {
            self.vals[frame.vals + frame.slot] = val;
            return Ok(());
        }
        Ok(temp::push(self.cx.heap, &mut self.vals, val)?)
    }

    /// Allocates the container that ends here.
    fn close(&mut self) -> Result<Val, Fault> {
        self.at += 1;
        let Some(frame) = self.frames.pop() else {
            return Ok(Val::Undefined);
        };
        let vals = &self.vals[frame.vals..];
        let val = if !frame.object {
            Val::Arr(self.cx.list(vals)?)
        } else {
            let heap = &mut *self.cx.heap;
            let obj = match frame.guess {
                Some(Guess { shape, .. }) if heap.shapes.keys(shape).len() == vals.len() => {
                    heap.alloc_obj(shape, vals)?
                }
                Some(Guess { shape, .. }) => {
                    let start = self.keys.len();
                    let keys = &heap.shapes.keys(shape)[..vals.len()];
                    temp::extend(heap, &mut self.keys, keys)?;
                    self.cx.object(&self.keys[start..], vals)?
                }
                None => self.cx.object(&self.keys[frame.keys..], vals)?,
            };
            if !vals.is_empty() {
                let shape = self.cx.heap.shape(obj);
                let guess = &mut self.guesses[self.frames.len()];
                if guess.is_none_or(|guess| guess.shape != shape) {
                    *guess = Some(Guess::of(shape, &self.cx.heap.shapes));
                }
            }
            Val::Obj(obj)
        };
        self.vals.truncate(frame.vals);
        self.keys.truncate(frame.keys);
        Ok(val)
    }

    // ---- scalars ----

    fn word(&mut self, word: &[u8], val: Val) -> Result<Val, Fault> {
        let rest = &self.bytes()[self.at..];
        let longer = rest.get(word.len()).is_some_and(|b| is_word(*b));
        if !rest.starts_with(word) || longer {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(val)
    }

    fn number(&mut self) -> Result<f64, Fault> {
        /// Number of digits that a double represents exactly.
        const EXACT: usize = 15;
        /// Length in bytes from which numbers are parsed in pieces.
        const LONG: usize = 4096;
        let rest = &self.bytes()[self.at..];
        let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        let digits = &rest[usize::from(rest[0] == b'-')..];
        let mut n = 0u64;
        let mut len = 0;
        while let Some(d @ b'0'..=b'9') = digits.get(len).filter(|_| len < EXACT) {
            n = n * 10 + u64::from(d - b'0');
            len += 1;
        }
        let simple = len > 0 && (digits[0] != b'0' || len == 1);
        if simple && !digits.get(len).is_some_and(is_part) {
            let negative = digits.len() < rest.len();
            self.at += len + usize::from(negative);
            return Ok(if negative { -(n as f64) } else { n as f64 });
        }
        let short = &rest[..rest.len().min(LONG)];
        let len = short.iter().take_while(|b| is_part(b)).count();
        if len < LONG {
            let Some(value) = number_parse::json_number(&rest[..len]) else {
                return Err(syntax("Invalid number"));
            };
            self.at += len;
            self.cx.work(len as i64)?;
            return Ok(value);
        }
        let read = |text: &[u8], mut tick: &mut dyn FnMut(usize) -> Result<(), Fault>| {
            let mut len = 0;
            for part in text.chunks(LONG) {
                tick(part.len())?;
                let more = part.iter().take_while(|b| is_part(b)).count();
                len += more;
                if more < part.len() {
                    break;
                }
            }
            Ok((
                len,
                number_parse::long_json_number(&text[..len], &mut tick)?,
            ))
        };
        let (len, value) = self.text.read_from(self.cx, self.at, read)?;
        self.at += len;
        value.ok_or_else(|| syntax("Invalid number"))
    }

    /// The error for an invalid start of a value.
    #[cold]
    fn unexpected(&self) -> Fault {
        let rest = &self.bytes()[self.at..];
        match rest.first() {
            Some(b'\'') => syntax("Single quotes (') are not allowed in JSON"),
            Some(b) if is_word(*b) => {
                let len = rest
                    .iter()
                    .take(QUOTE_BYTES)
                    .take_while(|b| is_word(**b))
                    .count();
                let word = String::from_utf8_lossy(&rest[..len]);
                syntax(format_args!("Unexpected identifier \"{word}\""))
            }
            Some(b @ (b'}' | b']' | b',' | b':' | b'(' | b')')) => {
                syntax(format_args!("Unexpected token '{}'", char::from(*b)))
            }
            _ => syntax(format_args!("Unrecognized token '{}'", wtf8_head(rest))),
        }
    }
}

impl ParseFrame {
    /// The member with this key; builds the index when members become many.
    fn find(&mut self, keys: &[KeyId], key: KeyId) -> Option<usize> {
        if keys.len() < SCAN_MEMBERS {
            return keys.iter().position(|k| *k == key);
        }
        let index = self.index.get_or_insert_with(|| {
            keys.iter()
                .enumerate()
                .map(|(slot, key)| (*key, slot))
                .collect()
        });
        index.get(&key).copied()
    }
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\n' | b'\r' | b'\t')
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$'
}

/// The first character, for messages.
fn wtf8_head(text: &[u8]) -> String {
    let head = &text[..text.len().min(4)];
    a99_core::text::wtf8_to_string_lossy(head)
        .chars()
        .next()
        .map(String::from)
        .unwrap_or_default()
}
