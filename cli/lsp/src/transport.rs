//! Messages of the base protocol: a header with the length, and JSON.

use serde_json::Value as Json;
use std::io::{self, BufRead, Read as _, Write};

/// Most bytes of a message.
pub(crate) const MAX_MESSAGE: u64 = 64 << 20;

/// Most bytes of a header's line.
const MAX_LINE: u64 = 4 << 10;

/// Most lines of a header.
const MAX_LINES: usize = 32;

/// Why no further message can be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The client's end failed.
    Io(io::Error),
    /// The header is no header, so that the beginning of the next message is unknown.
    Header(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

/// Reads the bytes of a message; `None` at the end of the input.
pub(crate) fn read(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>, Fault> {
    let mut length = None;
    for number in 0..MAX_LINES {
        let mut line = Vec::new();
        reader
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err(Fault::Header("a line of the header has no end".to_owned()));
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return match length {
                Some(length) => body(reader, length).map(Some),
                None => Err(Fault::Header("the header has no Content-Length".to_owned())),
            };
        }
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once(':') else {
            return Err(Fault::Header(
                "a line of the header has no colon".to_owned(),
            ));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            length = match value.trim().parse() {
                Ok(length) if length <= MAX_MESSAGE => Some(length),
                Ok(_) => {
                    let text = format!("a message has at most {MAX_MESSAGE} bytes");
                    return Err(Fault::Header(text));
                }
                Err(_) => return Err(Fault::Header("Content-Length is no number".to_owned())),
            };
        }
    }
    Err(Fault::Header(format!(
        "a header has at most {MAX_LINES} lines"
    )))
}

/// Reads a message of this length. The memory grows with what arrives, not with what is announced.
fn body(reader: &mut impl BufRead, length: u64) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(Fault::Header("the input ends within a message".to_owned())),
    }
}

/// Writes a message.
pub(crate) fn write(writer: &mut impl Write, message: &Json) -> io::Result<()> {
    let text = message.to_string();
    write!(writer, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<String>, Option<Fault>) {
        let mut reader = text.as_bytes();
        let mut messages = Vec::new();
        loop {
            match read(&mut reader) {
                Ok(Some(bytes)) => messages.push(String::from_utf8(bytes).unwrap()),
                Ok(None) => return (messages, None),
                Err(fault) => return (messages, Some(fault)),
            }
        }
    }

    #[test]
    fn messages_are_read() {
        let text = "Content-Length: 2\r\n\r\n{}content-length:4\nContent-Type: x\n\nnull";
        let (messages, fault) = all(text);
        assert_eq!(messages, ["{}", "null"]);
        assert!(fault.is_none());
    }

    #[test]
    fn bad_headers_are_faults() {
        let long = format!("{}: 1\r\n\r\n", "x".repeat(5000));
        let many = "a: b\r\n".repeat(40);
        let cases = [
            "\r\n",
            "hello\r\n\r\n",
            "Content-Length: x\r\n\r\n",
            "Content-Length: -1\r\n\r\n",
            "Content-Length: 99999999999999999999\r\n\r\n",
            "Content-Length: 18446744073709551615\r\n\r\n{}",
            "Content-Length: 1000000\r\n\r\n{}",
            "Content-Length: 2",
            "Content-Type: x\r\n\r\n{}",
            &long,
            &many,
        ];
        for case in cases {
            let (messages, fault) = all(case);
            assert!(messages.is_empty(), "{case}");
            assert!(matches!(fault, Some(Fault::Header(_))), "{case}");
        }
    }
}
