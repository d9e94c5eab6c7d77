//! Marker scanner of a terminal's output, and text encoding that survives a terminal's
//! input.
//!
//! A mark is a line that the shell prints: a control character, an unguessable token, a
//! number, the control character again. The command that prints a mark contains the token
//! without the control character, so that its echo is not a mark. A mark counts only when
//! it is complete, even if its bytes arrive in pieces.

use a99_sandbox_runner::{VmCode, VmError};

/// Delimiter of a mark: the record separator, which text does not contain.
const SEPARATOR: u8 = 0x1e;

/// Maximum characters of a mark's number, sign included.
const MAX_DIGITS: usize = 11;

/// Maximum bytes of a typed line: shells with a line editor read 1,023 at once, and
/// terminals lose bytes beyond 4,095.
const MAX_LINE: usize = 900;

/// Identifier of a mark: 128 random bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token(String);

impl Token {
    pub(crate) fn new() -> Result<Self, VmError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| VmError::new(VmCode::Resources, format!("no randomness: {error}")))?;
        Ok(Self(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// Text of the token.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The command that prints the mark with the status of the previous command.
    pub(crate) fn command(&self) -> String {
        format!("command printf '\\036%s:%d\\036\\n' {} $?", self.0)
    }
}

/// A mark that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Output before the mark.
    pub before: Vec<u8>,
    /// Index of the matching token.
    pub which: usize,
    /// Number in the mark.
    pub number: i32,
    /// A terminal made two bytes of its line end, or two terminals three.
    pub translated: bool,
}

/// Output that was not scanned yet.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    bytes: Vec<u8>,
    /// No mark begins before this offset.
    from: usize,
}

/// Result of matching a mark at an offset.
enum At {
    Nothing,
    /// The beginning of a mark: more bytes are needed.
    Part,
    /// A complete mark: its number, whether it was translated, its end.
    Whole(i32, bool, usize),
}

impl Scanner {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Bytes that certainly precede the next mark.
    pub(crate) fn passed(&self) -> usize {
        self.from
    }

    /// Takes the bytes that certainly precede the next mark.
    pub(crate) fn drop_passed(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.from);
        self.from = 0;
        std::mem::replace(&mut self.bytes, rest)
    }

    /// Finds the first mark of one of those tokens. Repeated calls scan each byte once,
    /// except for the beginning of a mark.
    pub(crate) fn find(&mut self, tokens: &[&Token]) -> Option<Mark> {
        loop {
            let rest = &self.bytes[self.from..];
            let Some(offset) = rest.iter().position(|&byte| byte == SEPARATOR) else {
                self.from = self.bytes.len();
                return None;
            };
            self.from += offset;
            let mut partial = false;
            for (which, token) in tokens.iter().enumerate() {
                match self.match_mark(token) {
                    At::Nothing => {}
                    At::Part => partial = true,
                    At::Whole(number, translated, end) => {
                        let mut before = self.drop_passed();
                        self.bytes.drain(..end);
                        before.shrink_to_fit();
                        return Some(Mark {
                            before,
                            which,
                            number,
                            translated,
                        });
                    }
                }
            }
            if partial {
                return None;
            }
            self.from += 1;
        }
    }

    /// Matches a token's mark at the current offset.
    fn match_mark(&self, token: &Token) -> At {
        let here = &self.bytes[self.from + 1..];
        let head = token.0.as_bytes();
        let common = here.len().min(head.len());
        if here[..common] != head[..common] {
            return At::Nothing;
        }
        let Some(rest) = here.get(head.len()..) else {
            return At::Part;
        };
        let rest = match rest {
            [] => return At::Part,
            [b':', rest @ ..] => rest,
            _ => return At::Nothing,
        };
        let digits = rest.iter().take(MAX_DIGITS);
        let digits = digits
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-'))
            .count();
        let (digits, tail) = rest.split_at(digits);
        let (translated, line_end) = match tail {
            [] | [SEPARATOR] | [SEPARATOR, b'\r'] | [SEPARATOR, b'\r', b'\r']
                if digits.len() < MAX_DIGITS =>
            {
                return At::Part;
            }
            [SEPARATOR, b'\n', ..] => (false, 2),
            [SEPARATOR, b'\r', b'\n', ..] => (true, 3),
            // A terminal within a terminal.
            [SEPARATOR, b'\r', b'\r', b'\n', ..] => (true, 4),
            _ => return At::Nothing,
        };
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok());
        match number {
            Some(number) => {
                let end = 1 + head.len() + 1 + digits.len() + line_end;
                At::Whole(number, translated, end)
            }
            None => At::Nothing,
        }
    }
}

/// Encodes a script as formats of `printf` commands, each for one typed line, in single
/// quotes: no character in it has a meaning to a terminal, a line editor or a shell.
///
/// # Errors
/// [`VmCode::BadOption`] for a zero byte, which no shell accepts in a script.
pub(super) fn formats(script: &[u8]) -> Result<Vec<String>, VmError> {
    if let Some(place) = script.iter().position(|&byte| byte == 0) {
        let text = format!("byte {place} of the script is zero, which a shell cannot read");
        return Err(VmError::new(VmCode::BadOption, text));
    }
    Ok(escapes(script))
}

/// Encodes bytes as formats of `printf`, each short enough for a typed line.
pub(super) fn escapes(bytes: &[u8]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for &byte in bytes {
        let mut line = lines.pop().unwrap_or_default();
        // Leaves room for the longest escape.
        if line.len() + 4 > MAX_LINE {
            lines.push(line);
            line = String::new();
        }
        match byte {
            b'\n' => line.push_str("\\n"),
            b'\'' | b'"' | b'\\' | b'%' | b'$' | b'`' | b'!' | 0..=0x1f | 0x7f.. => {
                line.push_str(&format!("\\{byte:03o}"));
            }
            _ => line.push(char::from(byte)),
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token(text.to_owned())
    }

    #[test]
    fn a_mark_counts_when_it_is_whole() {
        // AgentVM read a mark whose digits were in the next chunk as status 0.
        let wanted = token("abc");
        let output = b"text\x1eabc:127\x1e\nrest\x1eabc:-1\x1e\r\n";
        for cut in 0..=output.len() {
            let mut scanner = Scanner::default();
            scanner.feed(&output[..cut]);
            let early = scanner.find(&[&wanted]);
            assert_eq!(early.is_some(), cut >= 14, "{cut}");
            scanner.feed(&output[cut..]);
            let first = early.or_else(|| scanner.find(&[&wanted])).unwrap();
            assert_eq!((first.number, first.translated), (127, false));
            assert_eq!(first.before, b"text");
            let second = scanner.find(&[&wanted]).unwrap();
            assert_eq!((second.number, second.translated), (-1, true));
            assert_eq!(second.before, b"rest");
            assert_eq!(scanner.find(&[&wanted]), None);
        }
    }

    #[test]
    fn what_looks_like_a_mark_is_output() {
        let (wanted, other) = (token("abc"), token("abd"));
        let mut scanner = Scanner::default();
        let noise = b"\x1e\x1eab\x1eabx\x1eabc\x1eabc:\x1e\n\x1eabc:9x\x1eabc:12345678901234\x1e\n";
        scanner.feed(noise);
        assert_eq!(scanner.find(&[&wanted, &other]), None);
        scanner.feed(b"\x1eabd:0\x1e\n");
        let mark = scanner.find(&[&wanted, &other]).unwrap();
        assert_eq!((mark.which, &mark.before[..]), (1, &noise[..]));
    }

    #[test]
    fn an_echo_of_what_is_typed_is_no_mark() {
        let token = Token::new().unwrap();
        let mut scanner = Scanner::default();
        scanner.feed(token.command().as_bytes());
        scanner.feed(b"\r\n+ printf '\\036%s:%d\\036\\n' ");
        scanner.feed(token.text().as_bytes());
        scanner.feed(b" 0\n");
        assert_eq!(scanner.find(&[&token]), None);
    }

    #[test]
    fn scripts_are_plain_text_in_short_lines() {
        let script: Vec<u8> = (1..=255).cycle().take(5000).collect();
        let lines = formats(&script).unwrap();
        assert!(lines.len() > 5);
        let mut all = Vec::new();
        for line in &lines {
            assert!(line.len() <= MAX_LINE);
            assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            assert!(!line.contains(['\'', '"', '$', '`', '!', '%']));
            let mut bytes = line.bytes();
            while let Some(byte) = bytes.next() {
                all.push(match byte {
                    b'\\' => match bytes.next().unwrap() {
                        b'n' => b'\n',
                        high => {
                            let low = [bytes.next().unwrap(), bytes.next().unwrap()];
                            (high - b'0') * 64 + (low[0] - b'0') * 8 + (low[1] - b'0')
                        }
                    },
                    byte => byte,
                });
            }
        }
        assert_eq!(all, script);
        assert_eq!(formats(b"a\0").unwrap_err().code, VmCode::BadOption);
    }
}
