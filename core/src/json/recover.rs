//! Messages for malformed JSON, and recovery.
//!
//! Each function reports one kind of mistake. `Ok` means that parsing continues after it,
//! `Err(ParseStopped)` that it cannot.

use super::parse::{ParseStopped, Parser, closer, is_number_part, is_word};
use super::{Tag, word};
use crate::diag::{Diagnostic, codes};
use crate::text::escape_for_terminal;

/// Mistakes after which parsing stops: the text is hardly JSON.
const MAX_SLIPS: usize = 20;
/// Characters of the text quoted in a message.
const MAX_EXCERPT: usize = 40;
/// Longest pointer in a finding in bytes. Keys come from the text and may be long.
pub(super) const MAX_POINTER: usize = 4096;

/// Short quotable form of text, without hidden characters.
pub(super) fn excerpt(text: &str) -> String {
    let mut out: String = text.chars().take(MAX_EXCERPT).collect();
    if out.len() < text.len() {
        out.push_str("...");
    }
    escape_for_terminal(&out)
}

/// Cuts a pointer to a bounded size; a cut pointer ends in `...`.
pub(super) fn pointer_limited(mut pointer: String) -> String {
    if pointer.len() > MAX_POINTER {
        pointer.truncate(pointer.floor_char_boundary(MAX_POINTER));
        pointer.push_str("...");
    }
    pointer
}

impl Parser<'_> {
    fn text(&self, start: usize, end: usize) -> String {
        let bytes = &self.src[start.min(end)..end.min(self.src.len())];
        excerpt(&String::from_utf8_lossy(bytes))
    }

    /// End of the character at `at`.
    fn char_end(&self, at: usize) -> usize {
        let tail = self.src.get(at + 1..).unwrap_or_default();
        at + 1 + tail.iter().take_while(|&&byte| byte & 0xC0 == 0x80).count()
    }

    fn finding(&self, message: String, pointer: String, start: usize, end: usize) -> Diagnostic {
        Diagnostic::error(codes::JSON_SYNTAX, message, pointer)
            .with_span(word(start)..word(end))
            .with_offending(self.text(start, end))
    }

    /// Reports a mistake; too many stop the parser.
    fn slip(&mut self, finding: Diagnostic, help: &str) -> Result<(), ParseStopped> {
        self.found.push(finding.with_help(help));
        self.slips += 1;
        if self.slips < MAX_SLIPS {
            Ok(())
        } else {
            Err(ParseStopped)
        }
    }

    fn fatal(&mut self, finding: Diagnostic, help: &str) -> ParseStopped {
        self.found.push(finding.with_help(help));
        ParseStopped
    }

    pub(super) fn empty_document(&mut self) -> Result<(), ParseStopped> {
        let at = self.pos;
        let finding = self.finding("the document is empty".into(), String::new(), at, at);
        Err(self.fatal(
            finding,
            "a program is a JSON object such as {\"op\": \"seq\", \"steps\": []}",
        ))
    }

    pub(super) fn trailing_text(&mut self) -> Result<(), ParseStopped> {
        let end = self.char_end(self.pos);
        let message = "there is more text after the end of the document".into();
        let finding = self.finding(message, String::new(), self.pos, end);
        let help = match self.src[self.pos] {
            b'}' | b']' => "remove this bracket: it closes nothing",
            b'{' => "a file is one document: put each into a file of its own",
            _ => "a document is one value; remove the rest or put the values into an array",
        };
        Err(self.fatal(finding, help))
    }

    pub(super) fn too_deep(&mut self) -> ParseStopped {
        let most = self.limits.max_depth;
        let finding = Diagnostic {
            code: codes::JSON_TOO_DEEP,
            ..self.finding(
                format!("arrays and objects are nested more than {most} deep"),
                self.value_pointer(),
                self.pos,
                self.pos + 1,
            )
        };
        self.fatal(finding, "split the program or raise the limit")
    }

    pub(super) fn too_many_nodes(&mut self) -> ParseStopped {
        let most = self.limits.max_nodes;
        let message = format!("the document has more than {most} values and keys");
        let finding = Diagnostic {
            code: codes::JSON_TOO_LARGE,
            ..self.finding(message, self.value_pointer(), self.pos, self.pos)
        };
        self.fatal(finding, "split the document or raise the limit")
    }

    /// Skips `//`, `/* */` and `#` comments, which JSON lacks.
    pub(super) fn comment(&mut self) -> Result<(), ParseStopped> {
        let start = self.pos;
        let rest = &self.src[start..];
        let line = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        let end = match rest {
            [b'#', ..] | [b'/', b'/', ..] => start + line,
            [b'/', b'*', body @ ..] => match body.windows(2).position(|pair| pair == b"*/") {
                Some(at) => start + at + 4,
                None => self.src.len(),
            },
            _ => return Err(self.unexpected()),
        };
        self.pos = end;
        let message = "JSON has no comments".into();
        let finding = self.finding(message, self.container_pointer(), start, end);
        self.slip(finding, "remove the comment")
    }

    /// Reports a token that cannot start a value.
    fn unexpected(&mut self) -> ParseStopped {
        let at = self.pos;
        let Some(byte) = self.peek() else {
            return self.unclosed_bracket();
        };
        let end = self.char_end(at);
        let shown = self.text(at, end);
        let finding = self.finding(
            format!("unexpected \"{shown}\" where a value is expected"),
            self.value_pointer(),
            at,
            end,
        );
        let help = match byte {
            b',' => "write a value before the comma, or remove the comma",
            b'}' | b']' => "write a value before the closing bracket",
            b':' => "a colon stands only between a key and its value",
            0x80.. => "only straight double quotes and plain spaces have a meaning in JSON",
            _ => {
                "a value is an object, an array, a string in double quotes, a number, true, false or null"
            }
        };
        self.fatal(finding, help)
    }

    /// Reports a text that ends inside a container.
    fn unclosed_bracket(&mut self) -> ParseStopped {
        let Some(frame) = self.stack.last() else {
            return self.fatal(
                self.finding(
                    "the document ends too early".into(),
                    String::new(),
                    self.pos,
                    self.pos,
                ),
                "write a value",
            );
        };
        let (kind, bracket) = match frame.object {
            true => ("object", "}"),
            false => ("array", "]"),
        };
        let open = self.nodes[frame.node as usize].start as usize;
        let message = format!("the {kind} that starts here is not closed");
        let finding = self.finding(message, self.container_pointer(), open, open + 1);
        let help = format!("the text ends without the closing `{bracket}`");
        self.fatal(finding, &help)
    }

    pub(super) fn unclosed_string(&mut self, start: usize) -> ParseStopped {
        let message = "the string that starts here is not closed".into();
        let finding = self.finding(message, self.value_pointer(), start, self.pos);
        self.fatal(
            finding,
            "end it with a double quote on the same line; a line break inside a string is written \\n",
        )
    }

    pub(super) fn control_character(&mut self, control: u8) -> Result<(), ParseStopped> {
        let at = self.pos;
        let message = "control characters in strings must be escaped".into();
        let finding = self.finding(message, self.value_pointer(), at, at + 1);
        let help = match control {
            b'\t' => "write \\t".to_owned(),
            other => format!("write \\u{other:04x}"),
        };
        self.slip(finding, &help)
    }

    /// Reports a backslash that does not start a JSON escape. The current position may be anywhere
    /// inside.
    pub(super) fn bad_escape(&mut self, start: usize) -> Result<(), ParseStopped> {
        let letter = self.src.get(start + 1).copied();
        let end = self.char_end(start + 1);
        let shown = self.text(start, end);
        let message = format!("`{shown}` is not an escape of JSON");
        let finding = self.finding(message, self.value_pointer(), start, end);
        let help = match letter {
            Some(b'\'' | b'`') => "this quote needs no backslash",
            Some(b'u') => "\\u is followed by exactly four hexadecimal digits",
            Some(b'x') => "write \\u00XX instead of \\xXX",
            _ => "JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX; a backslash itself is \\\\",
        };
        self.slip(finding, help)
    }

    /// Recovers a value that does not start like a JSON value.
    pub(super) fn odd_value(&mut self) -> Result<(), ParseStopped> {
        match self.peek() {
            Some(quote @ (b'\'' | b'`')) => self.odd_quotes(quote),
            Some(b'+' | b'.') => {
                let start = self.pos;
                self.odd_number(start)?;
                self.node(Tag::Number, start, 0, 0).map(|_| ())
            }
            Some(byte) if byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$') => {
                self.odd_word()
            }
            _ => Err(self.unexpected()),
        }
    }

    fn odd_quotes(&mut self, quote: u8) -> Result<(), ParseStopped> {
        let at = self.pos;
        let message = "strings are written in double quotes".into();
        let finding = self.finding(message, self.value_pointer(), at, at + 1);
        let help = format!("replace {} by \" at both ends", char::from(quote));
        self.slip(finding, &help)?;
        self.string(quote)
    }

    fn word_end(&self) -> usize {
        let rest = &self.src[self.pos..];
        self.pos + rest.iter().take_while(|&&byte| is_word(byte)).count()
    }

    fn odd_word(&mut self) -> Result<(), ParseStopped> {
        let (start, end) = (self.pos, self.word_end());
        let (tag, help) = match &self.src[start..end] {
            b"NaN" | b"Infinity" => (
                Tag::Null,
                "JSON has only finite numbers; write null or a string",
            ),
            b"undefined" | b"None" | b"nil" | b"NULL" | b"Null" => (Tag::Null, "write null"),
            b"True" | b"TRUE" => (Tag::True, "write true"),
            b"False" | b"FALSE" => (Tag::False, "write false"),
            _ => (Tag::SourceString, "put the text into double quotes"),
        };
        let shown = self.text(start, end);
        let message = format!("`{shown}` is not a value of JSON");
        let finding = self.finding(message, self.value_pointer(), start, end);
        self.slip(finding, help)?;
        self.pos = end;
        let (a, b) = match tag {
            Tag::SourceString => (word(start), word(end - start)),
            _ => (0, 0),
        };
        self.node(tag, start, a, b).map(|_| ())
    }

    /// Parses a number that is not a plain whole number, by RFC 8259 §6.
    pub(super) fn long_number(&mut self) -> Result<f64, ParseStopped> {
        let start = self.pos;
        let rest = &self.src[start..];
        let end = start + 1 + rest[1..].iter().take_while(|&&b| is_number_part(b)).count();
        let text = std::str::from_utf8(&self.src[start..end]).unwrap_or_default();
        if is_json_number(text.as_bytes())
            && let Ok(number) = text.parse()
        {
            self.pos = end;
            return Ok(number);
        }
        self.odd_number(start)?;
        Ok(0.0)
    }

    fn odd_number(&mut self, start: usize) -> Result<(), ParseStopped> {
        let rest = &self.src[start..];
        let end = start + 1 + rest[1..].iter().take_while(|&&b| is_number_part(b)).count();
        let digits = rest[..end - start].trim_ascii_start();
        let digits = digits.strip_prefix(b"-").unwrap_or(digits);
        let help = match digits {
            [b'+', ..] => "remove the plus sign",
            [b'.', b'.', ..] => "write what is left out here, or remove the points",
            [b'.', ..] => "write a zero before the point",
            [b'I' | b'N', ..] => "JSON has only finite numbers; write null or a string",
            [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', ..] => "write the number in decimal",
            [b'0', b'0'..=b'9', ..] => "remove the leading zeros",
            [.., b'.'] => "write a digit after the point, or remove the point",
            _ if digits.contains(&b'_') => "remove the underscores",
            [.., b'n'] => "remove the `n`: JSON has no big integers",
            _ => "a number is digits with an optional sign, fraction and exponent, such as -1.5e3",
        };
        let shown = self.text(start, end);
        let message = format!("`{shown}` is not a number of JSON");
        let finding = self.finding(message, self.value_pointer(), start, end);
        self.pos = end;
        self.slip(finding, help)
    }

    /// Recovers a key that is not a string.
    pub(super) fn odd_key(&mut self) -> Result<(), ParseStopped> {
        let (start, end) = (self.pos, self.word_end());
        match self.peek() {
            None => return Err(self.unclosed_bracket()),
            Some(quote @ (b'\'' | b'`')) => return self.odd_quotes(quote),
            Some(byte) if is_word(byte) && byte < 0x80 => {}
            Some(_) => {
                let end = self.char_end(start);
                let shown = self.text(start, end);
                let curly = ["“", "”", "„", "‘", "’", "«"].contains(&&*shown);
                let message = format!("unexpected \"{shown}\" where a key is expected");
                let finding = self.finding(message, self.container_pointer(), start, end);
                let help = match &*shown {
                    _ if curly => "write straight double quotes, `\"`, in place of curly ones",
                    "." => "write out what `...` stands for: JSON leaves nothing out",
                    text if text.chars().all(|c| c.is_whitespace() || c == '\u{200b}') => {
                        "this is no plain space: write one, or nothing"
                    }
                    _ => "a key is a string in double quotes",
                };
                return Err(self.fatal(finding, help));
            }
        }
        let shown = self.text(start, end);
        let message = format!("the key `{shown}` is not in double quotes");
        let finding = self.finding(message, self.container_pointer(), start, end);
        self.slip(finding, &format!("write \"{shown}\""))?;
        self.pos = end;
        self.node(Tag::SourceString, start, word(start), word(end - start))
            .map(|_| ())
    }

    pub(super) fn missing_colon(&mut self, key: u32) -> Result<(), ParseStopped> {
        let (at, end) = (self.pos, self.char_end(self.pos).min(self.src.len()));
        let key = excerpt(&String::from_utf8_lossy(self.key_text(key)));
        let message = format!("a colon is missing after the key \"{key}\"");
        let finding = self.finding(message, self.container_pointer(), at, end);
        if self.peek() == Some(b'=') {
            self.pos += 1;
            return self.slip(finding, "write `:` instead of `=`");
        }
        Err(self.fatal(finding, "write the key, a colon and the value"))
    }

    /// Reports a comma at `comma` before a closing bracket or another comma.
    pub(super) fn extra_comma(&mut self, comma: usize) -> Result<(), ParseStopped> {
        let (message, help) = match self.peek() {
            Some(b',') => ("there is nothing between two commas", "remove one comma"),
            _ => (
                "there is a comma before the closing bracket",
                "remove the comma",
            ),
        };
        let finding = self.finding(message.into(), self.container_pointer(), comma, comma + 1);
        self.slip(finding, help)
    }

    /// Reports a missing comma or a wrong bracket after a value.
    pub(super) fn missing_comma(&mut self, object: bool) -> Result<(), ParseStopped> {
        let at = self.pos;
        let Some(byte) = self.peek() else {
            return Err(self.unclosed_bracket());
        };
        let end = self.char_end(at);
        let bracket = char::from(closer(object));
        let (kind, pointer) = (
            if object { "object" } else { "array" },
            self.container_pointer(),
        );
        if matches!(byte, b'}' | b']') {
            let wrong = char::from(byte);
            let message = format!("`{wrong}` closes an {kind}, which needs `{bracket}`");
            let open = self
                .stack
                .last()
                .map_or(0, |frame| self.nodes[frame.node as usize].start);
            let line = crate::diag::LineIndex::new(self.src)
                .line_col(self.src, open)
                .0;
            let finding = self.finding(message, pointer, at, end);
            let help = format!("the {kind} starts on line {line}");
            return Err(self.fatal(finding, &help));
        }
        let starts = match object {
            true => matches!(byte, b'"' | b'\''),
            false => {
                matches!(byte, b'"' | b'\'' | b'{' | b'[' | b'-') || is_word(byte) && byte < 0x80
            }
        };
        let message = format!("a comma or `{bracket}` is missing");
        let finding = self.finding(message, pointer, at, end);
        if starts {
            return self.slip(finding, "write a comma before this");
        }
        let help = format!("after a value of an {kind} comes a comma or `{bracket}`");
        Err(self.fatal(finding, &help))
    }
}

/// Matches the grammar of RFC 8259 §6.
fn is_json_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', digits @ ..] => digits,
            digits => digits,
        };
        let count = digits(exponent);
        if count == 0 {
            return false;
        }
        rest = &exponent[count..];
    }
    rest.is_empty()
}
