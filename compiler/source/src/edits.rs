//! Writes a changed source together with the place of each part in the original.

use crate::Program;
use a99_core::diag::{Diagnostics, excerpt};
use oxc_span::Span;
use std::ops::Range;

/// Maximum bytes of a source that is rewritten: the analysis of closures takes more than linear
/// time.
pub(crate) const MAX_SOURCE: usize = 128 << 10;

/// A part of the text that replaces a range of the source.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Text that the source lacks.
    New(String),
    /// A range of the source, with the edits inside.
    Old(Span),
    /// A range of the source without the edits that wrap it.
    Inner(Span),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Piece {
        Piece::New(text.to_owned())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Piece {
        Piece::New(text)
    }
}

impl From<Span> for Piece {
    fn from(span: Span) -> Piece {
        Piece::Old(span)
    }
}

/// Replacement of a range, or an insertion if the range is empty.
struct Edit {
    span: Span,
    pieces: Vec<Piece>,
    /// True for an edit that writes its range as a part, which another edit may replace.
    wraps: bool,
}

/// Edits of a source. Ranges nest or are disjoint; an edit replaces those inside, except in the
/// ranges that its pieces name.
#[derive(Default)]
pub(crate) struct Edits {
    all: Vec<Edit>,
}

/// Part of the changed source with its origin.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u32,
    /// Range of the source, of the same length unless the part is new.
    from: Span,
    is_new: bool,
}

/// A changed source, and where its parts come from.
pub(crate) struct Changed {
    pub(crate) text: String,
    /// Where the parts after the source begin.
    pub(crate) end: u32,
    segments: Vec<Segment>,
}

impl Edits {
    pub(crate) fn replace(&mut self, span: Span, pieces: Vec<Piece>) {
        self.all.push(Edit {
            span,
            pieces,
            wraps: false,
        });
    }

    /// Writes something around a range, which may have edits of its own.
    pub(crate) fn wrap(&mut self, span: Span, pieces: Vec<Piece>) {
        self.all.push(Edit {
            span,
            pieces,
            wraps: true,
        });
    }

    pub(crate) fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.replace(Span::new(at, at), vec![Piece::New(text.into())]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Writes the source with all edits, and further parts after it.
    pub(crate) fn write(mut self, source: &str, appended: &[(Span, Vec<Piece>)]) -> Changed {
        // Stable, so that insertions at one place keep their order and precede a replacement there;
        // an outer range precedes those inside.
        self.all.sort_by_key(|edit| {
            let len = edit.span.size();
            (
                edit.span.start,
                len > 0,
                std::cmp::Reverse(len),
                !edit.wraps,
            )
        });
        let mut writer = Writer {
            source,
            edits: &self.all,
            active: Vec::new(),
            changed: Changed {
                text: String::with_capacity(source.len() * 2),
                end: 0,
                segments: Vec::new(),
            },
        };
        writer.range(Span::new(0, source.len() as u32), false);
        writer.changed.end = writer.changed.text.len() as u32;
        for (span, pieces) in appended {
            writer.new_text("\n", *span);
            writer.pieces(pieces, *span);
        }
        writer.changed
    }
}

struct Writer<'s> {
    source: &'s str,
    edits: &'s [Edit],
    /// Edits whose pieces are being written; an edit does not apply within itself.
    active: Vec<usize>,
    changed: Changed,
}

impl Writer<'_> {
    /// Writes a range with the edits that lie in it.
    fn range(&mut self, span: Span, is_inner: bool) {
        let mut at = span.start;
        let is_all = span.end as usize == self.source.len();
        let first = self.edits.partition_point(|edit| edit.span.start < at);
        let edits = self.edits;
        for (index, edit) in edits.iter().enumerate().skip(first) {
            let start = edit.span.start;
            if start > span.end || (start == span.end && !is_all) {
                break;
            }
            // What stands before a part is written with the whole.
            if edit.span.is_empty() && start == span.start && start > 0 {
                continue;
            }
            if is_inner && edit.wraps && edit.span == span {
                continue;
            }
            if start < at || edit.span.end > span.end || self.active.contains(&index) {
                continue;
            }
            self.old(Span::new(at, start));
            self.active.push(index);
            self.pieces(&edit.pieces, edit.span);
            self.active.pop();
            at = edit.span.end;
        }
        self.old(Span::new(at, span.end));
    }

    fn pieces(&mut self, pieces: &[Piece], of: Span) {
        for piece in pieces {
            match piece {
                Piece::New(text) => self.new_text(text, of),
                Piece::Old(span) => self.range(*span, false),
                Piece::Inner(span) => self.range(*span, true),
            }
        }
    }

    fn old(&mut self, span: Span) {
        let text = self.source.get(span.start as usize..span.end as usize);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.segment(span, false);
            self.changed.text.push_str(text);
        }
    }

    fn new_text(&mut self, text: &str, of: Span) {
        if !text.is_empty() {
            self.segment(of, true);
            self.changed.text.push_str(text);
        }
    }

    fn segment(&mut self, from: Span, is_new: bool) {
        self.changed.segments.push(Segment {
            start: self.changed.text.len() as u32,
            from,
            is_new,
        });
    }
}

impl Changed {
    /// Returns the range of the source that a range of the changed text comes from.
    pub(crate) fn origin(&self, span: (u32, u32)) -> (u32, u32) {
        let first = self.place(span.0);
        if span.1 <= span.0 {
            return (first.0, first.0.max(first.1.min(first.0)));
        }
        let last = self.place(span.1 - 1);
        match first.0 <= last.1 {
            true => (first.0, last.1),
            false => first,
        }
    }

    /// Gives findings about the text their places in the source.
    pub(crate) fn original(&self, mut found: Diagnostics, source: &str) -> Diagnostics {
        for one in &mut found.0 {
            if let Some(span) = one.span.clone() {
                let (start, end) = self.origin((span.start, span.end));
                let written = source.get(start as usize..end as usize).unwrap_or_default();
                let line = written.lines().next().unwrap_or_default();
                let of = one
                    .clone()
                    .with_span(start..end)
                    .with_offending(excerpt(line));
                *one = of;
            }
        }
        found
    }

    /// Gives what was made of the text its places in the source.
    pub(crate) fn original_result(
        &self,
        done: Result<Program, Diagnostics>,
        source: &str,
    ) -> Result<Program, Diagnostics> {
        match done {
            Err(found) => Err(self.original(found, source)),
            Ok(program) => Ok(self.original_program(program, source)),
        }
    }

    /// Gives the parts of a program their places in the source.
    fn original_program(&self, program: Program, source: &str) -> Program {
        let origin = |span| self.origin(span);
        let mut warnings = self.original(program.warnings, source);
        warnings.locate(source.as_bytes());
        Program {
            json: program.json,
            places: program.places.into_iter().map(origin).collect(),
            warnings,
            required: program
                .required
                .into_iter()
                .map(|(name, at)| (name, origin((at, at + 1)).0))
                .collect(),
        }
    }

    /// Returns the offset in the text of a byte of the source.
    pub(crate) fn destination(&self, at: u32) -> Option<u32> {
        let mut parts = self.segments.iter();
        let part =
            parts.find(|part| !part.is_new && part.from.start <= at && at < part.from.end)?;
        Some(part.start + (at - part.from.start))
    }

    /// Where the part of the source behind `end` stands in the text.
    pub(crate) fn behind(&self, end: u32) -> Range<u32> {
        self.destination(end).unwrap_or(self.end)..self.end
    }

    /// Returns the range of the source for one byte of the text: the byte, or the whole range
    /// that new text replaces.
    fn place(&self, at: u32) -> (u32, u32) {
        let after = self.segments.partition_point(|part| part.start <= at);
        let Some(part) = after.checked_sub(1).and_then(|i| self.segments.get(i)) else {
            return (0, 0);
        };
        match part.is_new {
            true => (part.from.start, part.from.end),
            false => {
                let start = part.from.start + (at - part.start);
                (start, start + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_nest_and_places_come_back() {
        let source = "let n = f(a, b)";
        let mut edits = Edits::default();
        edits.replace(Span::new(10, 11), vec!["a.v".into()]);
        let call = vec!["g(".into(), Span::new(13, 14).into(), ", ".into()];
        let call = [call, vec![Span::new(10, 11).into(), ")".into()]].concat();
        edits.replace(Span::new(8, 15), call);
        edits.insert(15, ";");
        let end = vec!["function x() {}".into()];
        let changed = edits.write(source, &[(Span::new(4, 5), end)]);
        assert_eq!(changed.text, "let n = g(b, a.v);\nfunction x() {}");
        assert_eq!(changed.origin((4, 5)), (4, 5));
        assert_eq!(changed.origin((10, 11)), (13, 14));
        assert_eq!(changed.origin((13, 16)), (10, 11));
        assert_eq!(changed.origin((20, 25)), (4, 5));
    }
}
