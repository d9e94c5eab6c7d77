//! Texts of documents, their edits, and positions by lines and columns.

use serde_json::{Value as Json, json};
use std::ops::Range;

/// What a column counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, which every client knows.
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The first encoding that a client prefers and that is known; UTF-16 without one.
    pub(crate) fn preferred(offered: &Json) -> Encoding {
        let names = offered.as_array().into_iter().flatten();
        let known = names.filter_map(|name| match name.as_str()? {
            "utf-8" => Some(Encoding::Utf8),
            "utf-16" => Some(Encoding::Utf16),
            "utf-32" => Some(Encoding::Utf32),
            _ => None,
        });
        known.clone().next().unwrap_or(Encoding::Utf16)
    }

    /// Its name in the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
            Encoding::Utf32 => "utf-32",
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// A text with the beginnings of its lines.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    text: String,
    lines: Vec<usize>,
    encoding: Encoding,
}

impl Text {
    pub(crate) fn new(text: String, encoding: Encoding) -> Text {
        let lines = lines(&text);
        Text {
            text,
            lines,
            encoding,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// A line by its number, without its end.
    fn line(&self, number: usize) -> Option<(usize, &str)> {
        let start = *self.lines.get(number)?;
        let end = self.lines.get(number + 1).copied();
        let line = &self.text[start..end.unwrap_or(self.text.len())];
        Some((start, line.trim_end_matches(['\r', '\n'])))
    }

    /// The offset of a position. A column beyond the line is its end, a line beyond the text the
    /// end of the text, as the protocol wants.
    pub(crate) fn offset(&self, position: &Json) -> Option<usize> {
        let number = |name: &str| usize::try_from(position.get(name)?.as_u64()?).ok();
        let (line, column) = (number("line")?, number("character")?);
        let Some((start, line)) = self.line(line) else {
            return Some(self.text.len());
        };
        let mut units = 0;
        for (at, c) in line.char_indices() {
            if units >= column {
                return Some(start + at);
            }
            units += self.encoding.width(c);
        }
        Some(start + line.len())
    }

    /// The offsets of a range; one whose end precedes its start is empty.
    pub(crate) fn offsets(&self, range: &Json) -> Option<Range<usize>> {
        let start = self.offset(range.get("start")?)?;
        let end = self.offset(range.get("end")?)?;
        Some(start..end.max(start))
    }

    /// The position of an offset.
    pub(crate) fn position(&self, offset: usize) -> Json {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.lines.partition_point(|start| *start <= offset) - 1;
        let before = &self.text[self.lines[line]..offset];
        let column: usize = before.chars().map(|c| self.encoding.width(c)).sum();
        json!({"line": line, "character": column})
    }

    /// The range between two offsets.
    pub(crate) fn range(&self, offsets: &Range<usize>) -> Json {
        json!({"start": self.position(offsets.start), "end": self.position(offsets.end)})
    }

    /// The offset of a place by its number of the line and of the character, both from 1, as
    /// diagnostics have it. A mark of the byte order has no column there.
    pub(crate) fn offset_of(&self, line: u32, column: u32) -> usize {
        let Some((start, text)) = self.line(line.saturating_sub(1) as usize) else {
            return self.text.len();
        };
        let mark = match (line, text.starts_with('\u{feff}')) {
            (1, true) => 1,
            _ => 0,
        };
        let at = column.saturating_sub(1) as usize + mark;
        let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
        start + at
    }

    /// Applies the change of a notification: of a range, or of the whole text.
    pub(crate) fn apply(&mut self, change: &Json) -> Option<()> {
        let new = change.get("text")?.as_str()?;
        match change.get("range").filter(|range| !range.is_null()) {
            Some(range) => {
                let range = self.offsets(range)?;
                self.text.replace_range(range, new);
            }
            None => new.clone_into(&mut self.text),
        }
        self.lines = lines(&self.text);
        Some(())
    }

    /// The edits that turn the text into another: one, of the lines that differ.
    pub(crate) fn edits_to(&self, new: &str) -> Vec<Json> {
        if self.text == new {
            return Vec::new();
        }
        let old_lines: Vec<&str> = self.text.split_inclusive('\n').collect();
        let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
        let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let head = old_lines.iter().zip(&new_lines).take_while(same).count();
        let rest = old_lines.len().min(new_lines.len()) - head;
        let pairs = old_lines.iter().rev().zip(new_lines.iter().rev());
        let tail = pairs.take(rest).take_while(same).count();
        let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
        let start = bytes(&old_lines[..head]);
        let end = self.text.len() - bytes(&old_lines[old_lines.len() - tail..]);
        let text = new_lines[head..new_lines.len() - tail].concat();
        vec![json!({"range": self.range(&(start..end)), "newText": text})]
    }
}

/// The beginnings of lines, which end with `\n`, `\r\n` or `\r`.
fn lines(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut lines = vec![0];
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => lines.push(at + 1),
            b'\r' if bytes.get(at + 1) != Some(&b'\n') => lines.push(at + 1),
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Json {
        json!({"line": line, "character": character})
    }

    #[test]
    fn positions_count_units_of_the_encoding() {
        let source = "a\u{1f600}b\r\n\u{e9}x\rlast\n";
        for (encoding, column) in [
            (Encoding::Utf8, 5),
            (Encoding::Utf16, 3),
            (Encoding::Utf32, 2),
        ] {
            let text = Text::new(source.to_owned(), encoding);
            assert_eq!(text.offset(&at(0, column)), Some(5));
            assert_eq!(text.position(5), at(0, column));
            assert_eq!(text.offset(&at(0, 99)), Some(6), "not into the next line");
            assert_eq!(text.offset(&at(1, 0)), Some(8));
            assert_eq!(text.offset(&at(2, 0)), Some(12));
            assert_eq!(text.offset(&at(99, 7)), Some(source.len()));
            assert_eq!(text.position(usize::MAX), at(3, 0));
        }
        let text = Text::new(source.to_owned(), Encoding::Utf16);
        assert_eq!(text.offset(&at(0, 2)), Some(5), "within a pair: its end");
        assert_eq!(text.offset(&json!({"line": -1, "character": 0})), None);
        assert_eq!(text.offset_of(1, 3), 5);
    }

    #[test]
    fn changes_are_applied() {
        let mut text = Text::new("one\ntwo\n".to_owned(), Encoding::Utf16);
        let range = json!({"start": at(0, 1), "end": at(1, 2)});
        text.apply(&json!({"range": range, "text": "X\nY"}))
            .unwrap();
        assert_eq!(text.as_str(), "oX\nYo\n");
        let backwards = json!({"start": at(1, 1), "end": at(0, 0)});
        text.apply(&json!({"range": backwards, "text": "-"}))
            .unwrap();
        assert_eq!(text.as_str(), "oX\nY-o\n");
        text.apply(&json!({"text": "new"})).unwrap();
        assert_eq!(text.as_str(), "new");
        assert!(text.apply(&json!({"range": 5, "text": "x"})).is_none());
        assert!(text.apply(&json!({})).is_none());
    }

    #[test]
    fn a_new_layout_is_one_edit_of_the_lines_that_differ() {
        let text = Text::new("a\nb\nc\nd\n".to_owned(), Encoding::Utf16);
        let edits = text.edits_to("a\nB\nB\nc\nd\n");
        let range = json!({"start": at(1, 0), "end": at(2, 0)});
        assert_eq!(edits, [json!({"range": range, "newText": "B\nB\n"})]);
        assert!(text.edits_to("a\nb\nc\nd\n").is_empty());
        let mut grown = text.clone();
        for new in ["", "a\nb\nc\nd\nd\n", "b\n", "a\nb\nc\nd"] {
            let mut other = grown.clone();
            other.apply(&json!({"range": text.edits_to(new)[0]["range"],
                "text": text.edits_to(new)[0]["newText"]}));
            assert_eq!(other.as_str(), new);
            grown = text.clone();
        }
    }
}
