//! Decoding of strings with escapes in a host's JSON text.
//!
//! The results belong to the host, not to the run: they take no heap.

use super::parse::ESCAPE_WORK;
use crate::native::{Cx, Fault};
use a99_core::text::{push_code_point, push_wtf8};

/// Bytes copied between two yield points.
const SLICE: usize = 64 << 10;

/// Bytes copied per unit of work.
const BYTES_A_UNIT: i64 = 4;

/// The string between two quotes of a scanned text.
///
/// # Errors
/// A stop.
pub(super) fn decoded(cx: &mut Cx<'_>, text: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let slice = &rest[..rest.len().min(SLICE)];
        let len = memchr::memchr(b'\\', slice).unwrap_or(slice.len());
        cx.work(len as i64 / BYTES_A_UNIT)?;
        out.extend_from_slice(&slice[..len]);
        rest = &rest[len..];
        if rest.first() == Some(&b'\\') {
            cx.work(ESCAPE_WORK)?;
            rest = &rest[escape(rest, &mut out)..];
        }
    }
    Ok(out)
}

/// Appends the character of an escape; returns the escape's length in bytes.
fn escape(text: &[u8], out: &mut Vec<u8>) -> usize {
    let byte = match text.get(1) {
        Some(b'b') => 0x08,
        Some(b'f') => 0x0C,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => {
            let digits = text.get(2..6).unwrap_or_default().iter();
            let digits = digits.filter_map(|digit| char::from(*digit).to_digit(16));
            let unit = digits.fold(0, |unit, digit| unit * 16 + digit);
            let mut encoded = Vec::with_capacity(4);
            push_code_point(&mut encoded, unit);
            // Halves of a pair are joined.
            push_wtf8(out, &encoded);
            return text.len().min(6);
        }
        Some(byte) => *byte,
        None => return text.len(),
    };
    out.push(byte);
    2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Bench;
    use crate::json::parse;

    #[test]
    fn strings_are_those_that_a_program_reads() {
        let long = "é".repeat(SLICE);
        let texts = [
            r#"\"\\\/\b\f\n\r\t"#.to_owned(),
            r"\u0041\u00e9\ud83d\ude00 \ud800\ud83d\uDE00\udfff".to_owned(),
            r"\ud83dx\ude00\u0000\uFFFD".to_owned(),
            format!("x{long}\\u0041{long}\\n"),
        ];
        for text in texts {
            let mut bench = Bench::default();
            let read = parse(&mut bench.cx(), format!("\"{text}\"").as_bytes());
            let Ok(crate::heap::Val::Str(read)) = read else {
                panic!("{text:.40} is a string");
            };
            let read = bench.heap.bytes(read).to_vec();
            assert_eq!(decoded(&mut bench.cx(), text.as_bytes()).ok(), Some(read));
        }
    }
}
