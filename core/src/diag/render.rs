//! Renders diagnostics for people in the style of `rustc`.
//!
//! All text that comes from the program is escaped, so hostile text cannot control the terminal
//! (security P05).

use super::Diagnostic;
use crate::text::{escape_for_terminal, is_hidden};
use std::fmt::Write as _;
use std::ops::Range;

/// Characters shown of a source line; longer lines are cut around the column.
const MAX_LINE: usize = 100;
/// Characters shown before the column of a cut line.
const BEFORE_COLUMN: usize = 40;
/// Characters shown of a pointer or of offending text.
const MAX_TEXT: usize = 200;

/// Index of line starts: maps byte offsets to line and column.
///
/// Lines end at LF; a CR before it belongs to the ending. A BOM at the start
/// has no column.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes a text in one pass. Offsets beyond `u32` are not indexed.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let bom = if text.starts_with(b"\xEF\xBB\xBF") {
            3
        } else {
            0
        };
        let mut starts = vec![bom];
        starts.extend(
            text.iter()
                .enumerate()
                .filter(|&(_, &byte)| byte == b'\n')
                .filter_map(|(at, _)| u32::try_from(at + 1).ok()),
        );
        Self { starts }
    }

    /// Line (from 1) and column (from 1, in Unicode scalar values) of a byte offset. An offset
    /// beyond the end counts as the end.
    #[must_use]
    pub fn line_col(&self, text: &[u8], offset: u32) -> (u32, u32) {
        let offset = offset.min(u32::try_from(text.len()).unwrap_or(u32::MAX));
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        let before = text.get(self.starts[line - 1] as usize..offset as usize);
        // Every scalar value has exactly one byte that is not a continuation byte.
        let column = before
            .unwrap_or_default()
            .iter()
            .filter(|&&byte| byte & 0xC0 != 0x80)
            .count();
        (to_u32(line), to_u32(column + 1))
    }

    /// The bytes of a line (from 1) without its ending.
    fn line<'t>(&self, text: &'t [u8], line: u32) -> &'t [u8] {
        let at = line as usize;
        let start = at.checked_sub(1).and_then(|at| self.starts.get(at));
        let end = self
            .starts
            .get(at)
            .map_or(text.len(), |&next| next as usize - 1);
        let bytes = start
            .and_then(|&start| text.get(start as usize..end))
            .unwrap_or_default();
        bytes.strip_suffix(b"\r").unwrap_or(bytes)
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Renders one diagnostic: message, place, the source line with a caret, help. `source` is the name
/// and the text of the file. The result ends with a newline.
#[must_use]
pub fn render(diag: &Diagnostic, source: Option<(&str, &[u8])>) -> String {
    let mut out = String::new();
    let index = source.map(|(_, text)| LineIndex::new(text));
    render_into(&mut out, diag, source, index.as_ref());
    out
}

pub(super) fn render_into(
    out: &mut String,
    diag: &Diagnostic,
    source: Option<(&str, &[u8])>,
    index: Option<&LineIndex>,
) {
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "{}[{}]: {}",
        diag.severity.as_str(),
        diag.code,
        escape_for_terminal(&diag.message)
    );
    match (source, index, &diag.span) {
        (Some((name, text)), Some(index), Some(span)) => {
            let span = &inner_span(text, span, diag.inner.as_ref());
            let (line, column) = index.line_col(text, span.start);
            let name = escape_for_terminal(name);
            let _ = write!(out, "  --> {name}:{line}:{column}");
            write_pointer(out, &diag.pointer);
            write_snippet(out, index.line(text, line), line, column, text, span);
        }
        _ => {
            let name =
                source.map_or_else(|| "program".into(), |(name, _)| escape_for_terminal(name));
            let _ = write!(out, "  --> {name}");
            write_pointer(out, &diag.pointer);
            if !diag.offending.is_empty() {
                let _ = writeln!(out, "   | {}", shorten(&diag.offending));
                if let Some(inner) = &diag.inner {
                    write_inner(out, &diag.offending, inner);
                }
            }
        }
    }
    if let Some(help) = &diag.help {
        let _ = writeln!(out, "  = help: {}", escape_for_terminal(help));
    }
}

/// The span of a place inside a source string. A string without escapes has the same offsets as its
/// text; otherwise the span is the whole string.
pub(super) fn inner_span(text: &[u8], span: &Range<u32>, inner: Option<&Range<u32>>) -> Range<u32> {
    let string = text.get(span.start as usize..span.end as usize);
    match (string, inner) {
        (Some([b'"', body @ .., b'"']), Some(inner))
            if !body.contains(&b'\\') && inner.end as usize <= body.len() =>
        {
            let start = span.start + 1 + inner.start;
            start..(span.start + 1 + inner.end).max(start + 1)
        }
        _ => span.clone(),
    }
}

fn write_pointer(out: &mut String, pointer: &str) {
    if pointer.is_empty() {
        out.push('\n');
    } else {
        let _ = writeln!(out, " ({})", shorten(pointer));
    }
}

fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_TEXT).collect();
    let cut = shown.len() < text.len();
    shown = escape_for_terminal(&shown);
    if cut {
        shown.push_str("...");
    }
    shown
}

/// Writes a caret line under `offending` for a place inside it.
fn write_inner(out: &mut String, offending: &str, inner: &Range<u32>) {
    let start = inner.start as usize;
    let width = |range: Range<usize>| {
        let text = offending.get(range).unwrap_or_default();
        escape_for_terminal(text).chars().count()
    };
    if start <= offending.len() && offending.chars().take(MAX_TEXT + 1).count() <= MAX_TEXT {
        let end = (inner.end as usize).min(offending.len()).max(start);
        let _ = writeln!(
            out,
            "   | {}{}",
            " ".repeat(width(0..start)),
            "^".repeat(width(start..end).max(1))
        );
    }
}

/// Writes the source line with carets under the part of the span on that line.
fn write_snippet(
    out: &mut String,
    line: &[u8],
    number: u32,
    column: u32,
    text: &[u8],
    span: &Range<u32>,
) {
    let column = column as usize - 1;
    let skip = if column > MAX_LINE - BEFORE_COLUMN {
        column - BEFORE_COLUMN
    } else {
        0
    };
    let span_text = text
        .get(span.start as usize..(span.end as usize).min(span.start as usize + 4 * MAX_LINE))
        .unwrap_or_default();
    let carets_on_line = chars(span_text)
        .take_while(|&c| c != '\n' && c != '\r')
        .count()
        .max(1);
    let mut shown = String::new();
    let mut marks = String::new();
    let mut rest = chars(line).skip(skip);
    if skip > 0 {
        shown.push_str("...");
        marks.push_str("   ");
    }
    for (position, c) in (skip..).zip(rest.by_ref().take(MAX_LINE)) {
        let marked = (column..column + carets_on_line).contains(&position);
        let width = push_shown(&mut shown, c);
        match (marked, c) {
            (true, _) => marks.extend(std::iter::repeat_n('^', width)),
            // Tabs stay tabs, which keeps the columns aligned.
            (false, '\t') => marks.push('\t'),
            (false, _) => marks.extend(std::iter::repeat_n(' ', width)),
        }
    }
    if rest.next().is_some() {
        shown.push_str("...");
    }
    let marks = marks.trim_end();
    let marks = match marks.contains('^') {
        true => marks.to_owned(),
        // The span is at the end of the line or of the text.
        false => format!("{}^", " ".repeat(shown.chars().count())),
    };
    let gutter = number.to_string();
    let blank = " ".repeat(gutter.len());
    let _ = writeln!(out, "{blank} |\n{gutter} | {shown}\n{blank} | {marks}");
}

/// Appends a character in its displayed form and returns its width in characters.
fn push_shown(out: &mut String, c: char) -> usize {
    if c != '\t' && is_hidden(c) {
        let escape = c.escape_unicode();
        let width = escape.len();
        out.extend(escape);
        width
    } else {
        out.push(c);
        1
    }
}

/// Decodes bytes to characters lazily; ill-formed sequences become U+FFFD.
fn chars(bytes: &[u8]) -> impl Iterator<Item = char> + '_ {
    bytes.utf8_chunks().flat_map(|chunk| {
        let bad = !chunk.invalid().is_empty();
        chunk
            .valid()
            .chars()
            .chain(bad.then_some(char::REPLACEMENT_CHARACTER))
    })
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    fn error(span: Range<u32>) -> Diagnostic {
        Diagnostic::error(codes::JSON_SYNTAX, "bad \u{1b}[2J", "/steps/0").with_span(span)
    }

    #[test]
    fn like_rustc() {
        let text = b"{\n\t\"op\": \"sqe\"\r\n}";
        let diagnostic = Diagnostic::error(codes::BAD_ROOT, "not a seq", "/op")
            .with_span(9..14)
            .with_help("write `seq`");
        assert_eq!(
            render(&diagnostic, Some(("a.json", text))),
            "error[compile.bad_root]: not a seq\n  --> a.json:2:8 (/op)\n  |\n\
             2 | \t\"op\": \"sqe\"\n  | \t      ^^^^^\n  = help: write `seq`\n"
        );
    }

    #[test]
    fn hostile_text_is_escaped() {
        let text = "\"\u{1b}[31m\u{202e}x\"".as_bytes();
        let shown = render(&error(1..6), Some(("\u{7}.json", text)));
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown}");
        assert!(shown.contains("\\u{1b}[31m\\u{202e}x"), "{shown}");
    }

    #[test]
    fn long_lines_are_cut_around_the_column() {
        let text = format!("[{}x{}]", "1,".repeat(5000), ",2".repeat(500_000));
        let shown = render(&error(10_001..10_002), Some(("f", text.as_bytes())));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].contains("f:1:10002"));
        assert!(
            lines[3].len() < 130 && lines[3].starts_with("1 | ..."),
            "{shown}"
        );
        let caret = lines[4].find('^').unwrap();
        assert_eq!(&lines[3][caret..=caret], "x");
    }

    #[test]
    fn end_of_text_and_nonsense_spans() {
        let shown = render(&error(3..3), Some(("f", b"[1,")));
        assert!(shown.ends_with("1 | [1,\n  |    ^\n"), "{shown}");
        for span in [0..0, 99..120, Range { start: 2, end: 1 }] {
            assert!(render(&error(span), Some(("f", b"\xFF\n"))).contains("error"));
        }
        assert!(render(&error(0..0), Some(("f", b""))).contains('^'));
    }

    #[test]
    fn without_source() {
        let diagnostic = Diagnostic::error(codes::BAD_CONDITION, "unexpected", "/c")
            .with_offending("a + ) b")
            .with_inner(4..5);
        assert_eq!(
            render(&diagnostic, None),
            "error[compile.bad_condition]: unexpected\n  --> program (/c)\n   | a + ) b\n   |     ^\n"
        );
    }

    #[test]
    fn lines_and_columns() {
        let text = "\u{FEFF}a\u{e9}\u{1F600}b\r\n\nc".as_bytes();
        let index = LineIndex::new(text);
        let at = |offset| index.line_col(text, offset);
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(3), (1, 1));
        assert_eq!(at(10), (1, 4));
        assert_eq!(at(13), (2, 1));
        assert_eq!(at(14), (3, 1));
        assert_eq!(at(1000), (3, 2));
    }
}
