//! Scans a source before the recursive parser reads it: bounds the nesting and collects the
//! names.
//!
//! The depth is an upper bound: the open brackets, and in each bracket the forms that may deepen
//! the parser's recursion without a bracket (prefixes, ternaries, arrows, nested statements).
//! Ambiguous text is refused.

use crate::chars::{comment_end, is_ascii_name, is_name, is_separator, line_end};
use crate::codes;
use crate::keywords::{BEFORE_VALUE, DEEPER, EITHER};
use crate::tree::Place;
use a99_core::diag::Diagnostic;
use hashbrown::HashSet;

/// Maximum bytes of a source.
pub const MAX_BYTES: usize = 1 << 20;

/// Maximum levels of nesting.
pub const MAX_DEPTH: u32 = 200;

/// Maximum open brackets that contain a `=` while as many others contain a `<`. Their content may
/// be parameters with defaults, or types, and the parser tries both at each level.
const MAX_SIGNED: u32 = 10;

/// Class of the previous token.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Last {
    /// A token that does not end a value.
    Operator,
    /// A name, literal or closing bracket: a following `/` divides and a `+` adds.
    Value,
    /// The bracket that closes the head of `if`, `while`, `for` or `with`.
    Head,
    Brace,
    /// A contextual keyword, after which a value may or may not begin.
    Either,
    /// `++` or `--`.
    Step,
}

struct Level {
    close: u8,
    /// True for the head of a statement.
    head: bool,
    /// Depth from nested statements, and from the current expression, without brackets.
    statements: u32,
    expression: u32,
    /// Tokens of the current expression that may wrap the preceding code in a node.
    chain: u32,
    /// Whether the current statement contains a `=`, and a `<`.
    signs: [bool; 2],
}

struct Scan<'s> {
    text: &'s [u8],
    at: usize,
    last: Last,
    /// The previous token if it is a word and not a member's name.
    word: &'s [u8],
    levels: Vec<Level>,
    depth: u32,
    /// Sum of the chains of all open brackets.
    chain: u32,
    /// Maximum of depth and chains together so far.
    most: u32,
    /// Numbers of open brackets that contain a `=`, and a `<`.
    signed: [u32; 2],
    names: HashSet<&'s str>,
    source: &'s str,
}

/// Names of a source and a bound of its nesting.
#[derive(Clone)]
pub(crate) struct Words<'s> {
    pub(crate) all: HashSet<&'s str>,
    /// Upper bound of the syntax tree's depth: brackets, nesting without brackets, and chains
    /// (`a + b + c`, `a.b.c`), which the parser reads in a loop.
    pub(crate) nesting: u32,
}

/// Collects the names of a source, or refuses a source that nests too deeply for the parser.
pub(crate) fn names(source: &str) -> Result<Words<'_>, Box<Diagnostic>> {
    if source.len() > MAX_BYTES {
        let message = format!("the source is longer than {MAX_BYTES} bytes");
        let found = Diagnostic::error(codes::TOO_LARGE, message, "");
        return Err(Box::new(
            found.with_help("hand data in as arguments of the run"),
        ));
    }
    let mut scan = Scan {
        text: source.as_bytes(),
        at: 0,
        last: Last::Operator,
        word: b"",
        levels: vec![level(0, false)],
        depth: 0,
        chain: 0,
        most: 0,
        signed: [0; 2],
        names: HashSet::new(),
        source,
    };
    scan.run()?;
    Ok(Words {
        all: scan.names,
        nesting: scan.most,
    })
}

fn level(close: u8, head: bool) -> Level {
    Level {
        close,
        head,
        statements: 0,
        expression: 0,
        chain: 0,
        signs: [false; 2],
    }
}

fn place(at: usize, len: usize) -> Place {
    at as u32..(at + len) as u32
}

fn ambiguous(what: &str, help: &str, at: usize) -> Box<Diagnostic> {
    let found = Diagnostic::error(codes::UNSUPPORTED, what, "").with_span(place(at, 1));
    Box::new(found.with_help(help))
}

impl<'s> Scan<'s> {
    fn run(&mut self) -> Result<(), Box<Diagnostic>> {
        if self.text.starts_with(b"#!") {
            self.line();
        }
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\n' | b'\r' => {
                    self.newline();
                    self.at += 1;
                }
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'/' => self.slash()?,
                b'"' | b'\'' => self.string(byte),
                b'`' => {
                    self.chained();
                    self.template()?;
                }
                b'0'..=b'9' => self.number(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'#' | b'@' | 0x80.. => self.name()?,
                b'\\' => {
                    let help = "write the characters themselves";
                    return Err(ambiguous("escapes in names are not read", help, self.at));
                }
                _ => self.operator(byte)?,
            }
        }
        Ok(())
    }

    fn top(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(level(0, false));
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn went_deeper(&mut self, at: usize) -> Result<(), Box<Diagnostic>> {
        self.depth += 1;
        self.most = self.most.max(self.depth + self.chain);
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("the source nests more than {MAX_DEPTH} levels deep");
        let found = Diagnostic::error(codes::TOO_DEEP, message, "").with_span(place(at, 1));
        Err(Box::new(found.with_help(
            "compute parts of it into constants first, or into functions",
        )))
    }

    fn expression(&mut self) -> Result<(), Box<Diagnostic>> {
        self.top().expression += 1;
        self.went_deeper(self.at)
    }

    /// Counts a token that may wrap the preceding code in a node.
    fn chained(&mut self) {
        self.top().chain += 1;
        self.chain += 1;
        self.most = self.most.max(self.depth + self.chain);
    }

    /// Records a `=` or `<` in the innermost open bracket.
    fn sign(&mut self, which: usize) -> Result<(), Box<Diagnostic>> {
        if !std::mem::replace(&mut self.top().signs[which], true) {
            self.signed[which] += 1;
        }
        if self.signed.iter().all(|count| *count > MAX_SIGNED) {
            let message = format!(
                "more than {MAX_SIGNED} open brackets have an assignment and a `<` in them"
            );
            let found = Diagnostic::error(codes::TOO_DEEP, message, "");
            let help = "compute parts of it into constants first, or into functions";
            return Err(Box::new(found.with_span(place(self.at, 1)).with_help(help)));
        }
        Ok(())
    }

    fn forget_signs(&mut self, signs: [bool; 2]) {
        for (count, sign) in self.signed.iter_mut().zip(signs) {
            *count -= u32::from(sign);
        }
    }

    fn end_expression(&mut self) {
        let top = self.top();
        let left = std::mem::take(&mut top.expression);
        let chain = std::mem::take(&mut top.chain);
        self.depth -= left;
        self.chain -= chain;
    }

    /// Ends a statement unless an `else` continues it.
    fn end_statement(&mut self) {
        self.end_expression();
        let signs = std::mem::take(&mut self.top().signs);
        self.forget_signs(signs);
        if !self.goes_on_with(b"else") {
            let left = std::mem::take(&mut self.top().statements);
            self.depth -= left;
        }
    }

    /// True if the next token, after spaces, semicolons and comments, starts with `word`.
    fn goes_on_with(&self, word: &[u8]) -> bool {
        let mut at = self.at;
        loop {
            let rest = &self.text[at.min(self.text.len())..];
            match rest {
                [b' ' | b'\t' | b'\n' | b'\r' | b';', ..] => at += 1,
                [b'/', b'/', ..] => at += line_end(rest),
                [b'/', b'*', ..] => at += comment_end(rest),
                _ => return rest.starts_with(word),
            }
        }
    }

    /// Ends a statement at a line break after a value if no operator follows.
    fn newline(&mut self) {
        if !matches!(self.last, Last::Value | Last::Brace) {
            return;
        }
        let mut at = self.at;
        while matches!(self.text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        let rest = &self.text[at..];
        let starts = matches!(rest, [b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'}', ..]);
        let word = &rest[..rest.iter().take_while(|b| is_name(**b)).count()];
        let goes_on: [&[u8]; 6] = [b"in", b"instanceof", b"as", b"satisfies", b"of", b"else"];
        if starts && !goes_on.contains(&word) && self.in_statements() {
            self.end_statement();
        }
    }

    /// True if statements may stand here: in braces or at the top.
    fn in_statements(&mut self) -> bool {
        matches!(self.top().close, 0 | b'}')
    }

    fn line(&mut self) {
        self.at += line_end(&self.text[self.at..]);
    }

    fn slash(&mut self) -> Result<(), Box<Diagnostic>> {
        let rest = &self.text[self.at..];
        match rest {
            [b'/', b'/', ..] => self.line(),
            [b'/', b'*', ..] => self.at += comment_end(rest),
            _ => match self.last {
                Last::Operator | Last::Head => self.regex(),
                Last::Value => {
                    self.chained();
                    self.at += 1;
                    self.last = Last::Operator;
                }
                Last::Brace | Last::Either | Last::Step => {
                    let help = "put the regular expression, or what is divided, into a constant";
                    let what = "a `/` that may divide or begin a regular expression here";
                    return Err(ambiguous(what, help, self.at));
                }
            },
        }
        Ok(())
    }

    fn regex(&mut self) {
        let mut class = false;
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\n' | b'\r' => break,
                b'\\' => self.at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => {
                    self.at += 1;
                    break;
                }
                _ if is_separator(&self.text[self.at..]) => break,
                _ => {}
            }
            self.at += 1;
        }
        while self.text.get(self.at).is_some_and(|byte| is_name(*byte)) {
            self.at += 1;
        }
        self.last = Last::Value;
        self.word = b"";
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' if self.text[self.at..].starts_with(b"\r\n") => self.at += 2,
                b'\\' => self.at += 1,
                b'\n' | b'\r' => break,
                _ if byte == quote => break,
                _ => {}
            }
        }
        self.last = Last::Value;
        self.word = b"";
    }

    /// Reads a template's text up to its end or to a hole.
    fn template(&mut self) -> Result<(), Box<Diagnostic>> {
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    self.last = Last::Value;
                    self.word = b"";
                    return Ok(());
                }
                b'$' if self.text.get(self.at + 1) == Some(&b'{') => {
                    self.went_deeper(self.at)?;
                    self.levels.push(level(b'`', false));
                    self.at += 2;
                    self.last = Last::Operator;
                    self.word = b"";
                    return Ok(());
                }
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn number(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            let signed = matches!(byte, b'+' | b'-')
                && matches!(self.text[self.at - 1], b'e' | b'E')
                && !self.text[..self.at].ends_with(b"0xe");
            if !(is_name(byte) || byte == b'.' || signed) {
                break;
            }
            self.at += 1;
        }
        self.last = Last::Value;
        self.word = b"";
    }

    fn name(&mut self) -> Result<(), Box<Diagnostic>> {
        let start = self.at;
        loop {
            while self.text.get(self.at).is_some_and(is_ascii_name) {
                self.at += 1;
            }
            let Some(next) = self.source[self.at..].chars().next() else {
                break;
            };
            if next == '\u{feff}' && self.at == 0 {
                self.at += next.len_utf8();
                return Ok(());
            }
            if !next.is_ascii() && !next.is_alphanumeric() {
                let help = "write plain spaces between words, and other characters in texts";
                return Err(ambiguous("this character is not read here", help, self.at));
            }
            if next.is_ascii()
                && !is_name(next as u8)
                && (self.at > start || !matches!(next, '#' | '@'))
            {
                break;
            }
            self.at += next.len_utf8();
        }
        let word = &self.text[start..self.at];
        let continued: [&[u8]; 5] = [b"in", b"instanceof", b"as", b"satisfies", b"else"];
        if self.last == Last::Brace && !continued.contains(&word) && self.in_statements() {
            self.end_statement();
        }
        let name = &self.source[start..self.at];
        self.names.insert(name);
        if self.text[..start].ends_with(b".") && !self.text[..start].ends_with(b"...") {
            self.last = Last::Value;
            self.word = b"";
            return Ok(());
        }
        self.word = word;
        self.last = match word {
            b"while" | b"for" | b"with" => Last::Operator,
            _ if BEFORE_VALUE.contains(&word) => Last::Operator,
            _ if EITHER.contains(&word) => Last::Either,
            _ => Last::Value,
        };
        if self.last != Last::Value {
            self.chained();
        }
        match word {
            b"if" | b"while" | b"for" | b"with" | b"do" | b"else" => {
                self.top().statements += 1;
                self.went_deeper(start)
            }
            _ if DEEPER.contains(&word) => self.expression(),
            _ => Ok(()),
        }
    }

    fn operator(&mut self, byte: u8) -> Result<(), Box<Diagnostic>> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"<!--") || rest.starts_with(b"-->") {
            let help = "write comments as `// ...`, and spaces between operators";
            return Err(ambiguous("comments of HTML are not read", help, self.at));
        }
        if !matches!(byte, b')' | b']' | b'}' | b';' | b',') {
            self.chained();
        }
        let after_value = matches!(
            self.last,
            Last::Value | Last::Head | Last::Brace | Last::Either | Last::Step
        );
        match (byte, rest.get(1)) {
            (b'<', next) if next != Some(&b'=') => self.sign(1)?,
            (b'=', next) if !matches!(next, Some(b'=' | b'>')) => {
                let before = self.text[..self.at].last();
                if !before.is_some_and(|byte| b"=!<>+-*/%&|^?".contains(byte)) {
                    self.sign(0)?;
                }
            }
            _ => {}
        }
        let rest = &self.text[self.at..];
        let mut last = Last::Operator;
        let mut len = 1;
        match byte {
            b'(' | b'[' | b'{' => self.open(byte)?,
            b')' | b']' | b'}' => return self.close(byte),
            b';' => {
                self.at += 1;
                self.last = Last::Operator;
                self.word = b"";
                self.end_statement();
                return Ok(());
            }
            b',' => self.end_expression(),
            b'+' | b'-' if rest.get(1) == Some(&byte) => {
                len = 2;
                last = Last::Step;
                self.expression()?;
            }
            b'+' | b'-' if after_value => {}
            b'*' if rest.get(1) != Some(&b'*') => {}
            b'.' | b'%' | b'^' | b'>' | b'|' | b'&' => {}
            b'=' if rest.starts_with(b"===") => len = 3,
            b'=' | b'!' if rest.starts_with(b"==") || rest.starts_with(b"!=") => len = 2,
            b'?' if rest.starts_with(b"?.") || rest.starts_with(b"??") => len = 2,
            b':' => {
                // A label or a type annotation; both may nest further.
                self.top().statements += u32::from(!after_value);
                self.depth += u32::from(!after_value);
                self.expression()?;
            }
            _ => self.expression()?,
        }
        self.at += len;
        self.last = last;
        self.word = b"";
        Ok(())
    }

    fn open(&mut self, byte: u8) -> Result<(), Box<Diagnostic>> {
        self.went_deeper(self.at)?;
        let close = match byte {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        let heads: [&[u8]; 4] = [b"if", b"while", b"for", b"with"];
        let head = byte == b'(' && heads.contains(&self.word);
        self.levels.push(level(close, head));
        Ok(())
    }

    fn close(&mut self, byte: u8) -> Result<(), Box<Diagnostic>> {
        let at = self.at;
        self.at += 1;
        self.word = b"";
        let hole = byte == b'}' && self.top().close == b'`';
        if self.top().close != byte && !hole {
            let text = char::from(byte);
            let found = Diagnostic::error(codes::SYNTAX, format!("`{text}` closes nothing"), "");
            return Err(Box::new(
                found
                    .with_span(place(at, 1))
                    .with_help("balance the brackets"),
            ));
        }
        let closed = self.levels.pop();
        self.forget_signs(closed.as_ref().map_or([false; 2], |level| level.signs));
        self.depth -= closed
            .as_ref()
            .map_or(0, |l| l.statements + l.expression + 1);
        self.chain -= closed.as_ref().map_or(0, |level| level.chain);
        if hole {
            self.at -= 1;
            return self.template();
        }
        self.last = match byte {
            b'}' => Last::Brace,
            _ if closed.is_some_and(|level| level.head) => Last::Head,
            _ => Last::Value,
        };
        Ok(())
    }
}
