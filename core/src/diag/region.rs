//! Regions: places in a text by line and column.

use super::Diagnostics;
use super::render::inner_span;

/// A range of a text by line and column. Both count from 1, columns in Unicode scalar values; the
/// end is exclusive. A BOM at the start has no column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Line of the start.
    pub line: u32,
    /// Column of the start.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column of the exclusive end.
    pub end_column: u32,
}

/// Sets the regions of findings with a span.
pub(super) fn locate(findings: &mut Diagnostics, text: &[u8]) {
    let mut offsets = Vec::new();
    for finding in &findings.0 {
        if let Some(span) = &finding.span {
            let span = inner_span(text, span, finding.inner.as_ref());
            offsets.extend([span.start, span.end.max(span.start)]);
        }
    }
    if offsets.is_empty() {
        return;
    }
    offsets.sort_unstable();
    offsets.dedup();
    let places = places(text, &offsets);
    let place = |offset: u32| {
        let found = offsets.binary_search(&offset);
        found.map_or((1, 1), |at| places[at])
    };
    for finding in &mut findings.0 {
        finding.region = finding.span.as_ref().map(|span| {
            let span = inner_span(text, span, finding.inner.as_ref());
            let (line, column) = place(span.start);
            let (end_line, end_column) = place(span.end.max(span.start));
            Region {
                line,
                column,
                end_line,
                end_column,
            }
        });
    }
}

/// Line and column of sorted offsets, in one pass. Offsets beyond the end count as the end.
fn places(text: &[u8], offsets: &[u32]) -> Vec<(u32, u32)> {
    let mut places = Vec::with_capacity(offsets.len());
    let (mut line, mut column) = (1u32, 1u32);
    let mut left = offsets.iter().map(|&offset| offset as usize).peekable();
    let mark = text.starts_with(b"\xEF\xBB\xBF");
    for (at, byte) in text.iter().enumerate() {
        while left.next_if(|&offset| offset <= at).is_some() {
            places.push((line, column));
        }
        if left.peek().is_none() {
            break;
        }
        if *byte == b'\n' {
            (line, column) = (line.saturating_add(1), 1);
        } else if byte & 0xC0 != 0x80 && !(mark && at == 0) {
            // Every scalar value has exactly one byte that is not a continuation byte.
            column = column.saturating_add(1);
        }
    }
    places.extend(left.map(|_| (line, column)));
    places
}

#[cfg(test)]
mod tests {
    use super::super::{Diagnostic, LineIndex, codes};
    use super::*;

    #[test]
    fn the_same_places_as_the_index_of_lines() {
        for text in [
            "\u{FEFF}a\u{e9}\u{1F600}b\r\n\nc",
            "",
            "\n\n",
            "ab\u{e9}\ncd",
        ] {
            let text = text.as_bytes();
            let index = LineIndex::new(text);
            // Offsets inside a character are skipped; they have no column.
            let starts = |at: &u32| text.get(*at as usize).is_none_or(|b| b & 0xC0 != 0x80);
            let first = if text.starts_with(b"\xEF\xBB\xBF") {
                3
            } else {
                0
            };
            let offsets: Vec<u32> = (first..text.len() as u32 + 3).filter(starts).collect();
            let expected: Vec<_> = offsets.iter().map(|&o| index.line_col(text, o)).collect();
            assert_eq!(places(text, &offsets), expected, "{text:?}");
        }
    }

    #[test]
    fn findings_get_their_regions() {
        let text = b"{\n \"c\": \"a + )\"}";
        let mut all = Diagnostics::from_iter([
            Diagnostic::error(codes::BAD_CONDITION, "x", "/c")
                .with_span(8..15)
                .with_inner(4..5),
            Diagnostic::error(codes::BAD_ROOT, "y", ""),
            Diagnostic::error(codes::BAD_ROOT, "z", "").with_span(0..99),
        ]);
        all.locate(text);
        let region = |at: usize| {
            all.0[at]
                .region
                .map(|r| (r.line, r.column, r.end_line, r.end_column))
        };
        assert_eq!(region(0), Some((2, 12, 2, 13)));
        assert_eq!(region(1), None);
        assert_eq!(region(2), Some((1, 1, 2, 15)));
        let json = all.0[0].to_json().to_json_string();
        assert!(
            json.contains(r#""line":2,"column":12,"end_line":2,"end_column":13"#),
            "{json}"
        );
    }
}
