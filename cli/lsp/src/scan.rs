//! Tokens of a text that may be unfinished: JavaScript or JSON.
//!
//! Where a programmer types, the text has no tree. Its tokens, and which brackets belong together,
//! are enough to say what is at a place.

use std::ops::Range;

/// Most brackets without an end that a closing bracket looks past.
const MAX_UNCLOSED: usize = 64;

/// A kind of token.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Word,
    Number,
    /// A string, a part of a template, or a regular expression; its quotes included.
    Text,
    /// One character of punctuation.
    Mark(u8),
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub place: Range<usize>,
    /// For a bracket the token that closes or opens it.
    pub partner: Option<usize>,
}

/// The tokens of a text.
#[derive(Debug)]
pub(crate) struct Tokens<'t> {
    pub text: &'t str,
    all: Vec<Token>,
    /// Places of comments.
    comments: Vec<Range<usize>>,
}

impl<'t> Tokens<'t> {
    pub(crate) fn of(text: &'t str) -> Tokens<'t> {
        let mut scanner = Scanner {
            text,
            bytes: text.as_bytes(),
            at: 0,
            tokens: Vec::new(),
            comments: Vec::new(),
            open: Vec::new(),
        };
        while scanner.step() {}
        Tokens {
            text,
            all: scanner.tokens,
            comments: scanner.comments,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Token> {
        self.all.get(index)
    }

    /// The text of a token; empty beyond the end.
    pub(crate) fn str(&self, index: usize) -> &'t str {
        self.get(index)
            .map_or("", |token| &self.text[token.place.clone()])
    }

    /// True if the token is this character of punctuation.
    pub(crate) fn is_mark(&self, index: usize, mark: u8) -> bool {
        self.get(index)
            .is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    pub(crate) fn is_word(&self, index: usize) -> bool {
        self.get(index)
            .is_some_and(|token| token.kind == Kind::Word)
    }

    pub(crate) fn is_text(&self, index: usize) -> bool {
        self.get(index)
            .is_some_and(|token| token.kind == Kind::Text)
    }

    /// The word at this index, if it is one.
    pub(crate) fn word(&self, index: usize) -> Option<&'t str> {
        self.is_word(index).then(|| self.str(index))
    }

    /// The content of a string without its quotes, and its place.
    pub(crate) fn content(&self, index: usize) -> Option<(Range<usize>, &'t str)> {
        let token = self.get(index).filter(|token| token.kind == Kind::Text)?;
        let text = &self.text[token.place.clone()];
        let quote = text.chars().next()?;
        let inner = text.strip_prefix(quote)?;
        let inner = inner.strip_suffix(quote).unwrap_or(inner);
        let start = token.place.start + quote.len_utf8();
        Some((start..start + inner.len(), inner))
    }

    /// The number of tokens that begin before an offset.
    pub(crate) fn before(&self, offset: usize) -> usize {
        self.all.partition_point(|token| token.place.start < offset)
    }

    /// The token that holds an offset or ends at it; of two that meet, the word or the string.
    pub(crate) fn at(&self, offset: usize) -> Option<usize> {
        let after = self
            .all
            .partition_point(|token| token.place.start <= offset);
        let is_at = |index: &usize| {
            self.get(*index).is_some_and(|token| {
                token.place.contains(&offset)
                    || (token.place.end == offset && !matches!(token.kind, Kind::Mark(_)))
            })
        };
        let last = after.checked_sub(1).filter(is_at);
        let earlier = after.checked_sub(2).filter(is_at);
        match (last, earlier) {
            (Some(last), Some(earlier)) => {
                let is_mark = matches!(self.all[last].kind, Kind::Mark(_));
                Some(if is_mark { earlier } else { last })
            }
            (last, earlier) => last.or(earlier),
        }
    }

    /// True if the offset is inside a comment.
    pub(crate) fn is_comment(&self, offset: usize) -> bool {
        let after = self
            .comments
            .partition_point(|comment| comment.start < offset);
        let last = after.checked_sub(1).map(|index| &self.comments[index]);
        last.is_some_and(|comment| offset <= comment.end)
    }

    /// The innermost bracket that is open before the token with this index.
    pub(crate) fn enclosing(&self, index: usize) -> Option<usize> {
        let mut at = index;
        while let Some(before) = at.checked_sub(1) {
            at = match (self.all[before].kind, self.all[before].partner) {
                (Kind::Mark(b')' | b']' | b'}'), Some(open)) => open,
                (Kind::Mark(b'(' | b'[' | b'{'), _) => return Some(before),
                _ => before,
            };
        }
        None
    }

    /// The index after the bracket that closes the one at `open`; the end if it is missing.
    pub(crate) fn close(&self, open: usize) -> usize {
        let partner = self.get(open).and_then(|token| token.partner);
        partner.unwrap_or(self.len())
    }
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tokens: Vec<Token>,
    comments: Vec<Range<usize>>,
    /// Open brackets, and whether a `{` belongs to a template.
    open: Vec<(usize, bool)>,
}

impl Scanner<'_> {
    /// Reads a token; false at the end.
    fn step(&mut self) -> bool {
        let Some(&byte) = self.bytes.get(self.at) else {
            return false;
        };
        let start = self.at;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
            b'/' if self.rest().starts_with("//") => {
                let end = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += end;
                self.comments.push(start..self.at);
            }
            b'/' if self.rest().starts_with("/*") => {
                let end = self.rest()[2..].find("*/");
                self.at += end.map_or(self.rest().len(), |end| end + 4);
                self.comments.push(start..self.at);
            }
            b'/' if self.may_be_pattern() => self.pattern(),
            b'"' | b'\'' => self.string(byte),
            b'`' => self.template(),
            b'0'..=b'9' => {
                self.take(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
                self.push(Kind::Number, start);
            }
            byte if byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$') || byte >= 0x80 => {
                self.take(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
                if self.at == start {
                    // Another character beyond ASCII, such as a blank.
                    self.at += self.rest().chars().next().map_or(1, char::len_utf8);
                } else {
                    self.push(Kind::Word, start);
                }
            }
            byte => self.mark(byte),
        }
        true
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) {
        let end = self
            .rest()
            .find(|c| !is_part(c))
            .unwrap_or(self.rest().len());
        self.at += end;
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token {
            kind,
            place: start..self.at,
            partner: None,
        });
    }

    fn mark(&mut self, byte: u8) {
        let start = self.at;
        self.at += 1;
        let index = self.tokens.len();
        self.push(Kind::Mark(byte), start);
        match byte {
            b'(' | b'[' | b'{' => self.open.push((index, false)),
            b')' | b']' | b'}' => {
                let opens = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                let is_partner =
                    |(open, _): &(usize, bool)| self.tokens[*open].kind == Kind::Mark(opens);
                // Brackets that were never closed are dropped.
                let least = self.open.len().saturating_sub(MAX_UNCLOSED);
                let Some(found) = self.open[least..].iter().rposition(is_partner) else {
                    return;
                };
                let found = least + found;
                let (open, is_template) = self.open[found];
                self.open.truncate(found);
                self.tokens[open].partner = Some(index);
                self.tokens[index].partner = Some(open);
                if is_template {
                    self.template_part();
                }
            }
            _ => {}
        }
    }

    fn string(&mut self, quote: u8) {
        let start = self.at;
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => break,
                b'\\' => self.at += 2,
                byte if byte == quote => {
                    self.at += 1;
                    break;
                }
                _ => self.at += 1,
            }
        }
        self.settle();
        self.push(Kind::Text, start);
    }

    fn template(&mut self) {
        self.template_part();
    }

    /// Reads a part of a template up to its end or to an expression. It begins at the quote or
    /// after the bracket of the last expression.
    fn template_part(&mut self) {
        let start = self.at;
        if self.bytes.get(self.at) == Some(&b'`') && !self.follows_expression() {
            self.at += 1;
        }
        loop {
            match self.bytes.get(self.at) {
                None => break,
                Some(b'`') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => self.at += 2,
                Some(b'$') if self.bytes.get(self.at + 1) == Some(&b'{') => {
                    self.settle();
                    self.push(Kind::Text, start);
                    self.at += 1;
                    let start = self.at;
                    self.at += 1;
                    self.open.push((self.tokens.len(), true));
                    self.push(Kind::Mark(b'{'), start);
                    return;
                }
                Some(_) => self.at += 1,
            }
        }
        self.settle();
        self.push(Kind::Text, start);
    }

    /// True directly after the `}` of a template's expression.
    fn follows_expression(&self) -> bool {
        let last = self.tokens.last();
        last.is_some_and(|token| {
            let opened = token.partner.map(|open| self.tokens[open].place.start);
            let dollar = opened.and_then(|start| start.checked_sub(1));
            token.kind == Kind::Mark(b'}')
                && token.place.end == self.at
                && dollar.is_some_and(|at| self.bytes[at] == b'$')
        })
    }

    /// Moves to the end of the text, or of the character.
    fn settle(&mut self) {
        self.at = self.text.ceil_char_boundary(self.at.min(self.text.len()));
    }

    /// True if a slash begins a regular expression: where a value may begin.
    fn may_be_pattern(&self) -> bool {
        match self.tokens.last() {
            None => true,
            Some(token) => match token.kind {
                Kind::Mark(byte) => !matches!(byte, b')' | b']' | b'}'),
                Kind::Word => matches!(
                    &self.text[token.place.clone()],
                    "return" | "typeof" | "case" | "in" | "of"
                ),
                Kind::Number | Kind::Text => false,
            },
        }
    }

    fn pattern(&mut self) {
        let start = self.at;
        let mut is_class = false;
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\n' => break,
                b'\\' => self.at += 1,
                b'[' => is_class = true,
                b']' => is_class = false,
                b'/' if !is_class => break,
                _ => {}
            }
        }
        self.settle();
        self.take(|c| c.is_ascii_alphabetic());
        self.push(Kind::Text, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let tokens = Tokens::of(text);
        (0..tokens.len()).map(|index| tokens.str(index)).collect()
    }

    #[test]
    fn tokens_of_javascript() {
        assert_eq!(
            words("const a = `x ${f(b)} y` // c\n;/d[/]/g.test('e\\'')"),
            [
                "const", "a", "=", "`x ", "{", "f", "(", "b", ")", "}", " y`", ";", "/d[/]/g", ".",
                "test", "(", "'e\\''", ")"
            ]
        );
        assert_eq!(words("a / b / c"), ["a", "/", "b", "/", "c"]);
        assert_eq!(
            words("`${a}${b}` `c`"),
            ["`", "{", "a", "}", "", "{", "b", "}", "`", "`c`"]
        );
    }

    #[test]
    fn unfinished_texts_have_tokens() {
        for text in [
            "'a",
            "`a",
            "`a ${",
            "/a",
            "/* a",
            "\"a\\",
            "'\u{1f600}\\",
            "}}}{",
            "\u{feff}a",
        ] {
            let tokens = Tokens::of(text);
            assert!(tokens.len() <= 4, "{text}");
            for offset in 0..=text.len() + 1 {
                let _ = (
                    tokens.at(offset),
                    tokens.is_comment(offset),
                    tokens.before(offset),
                );
            }
            let _ = tokens.enclosing(tokens.len());
        }
    }

    #[test]
    fn brackets_enclose() {
        let tokens = Tokens::of("f({ a: [1], b: ");
        let open = tokens.enclosing(tokens.len()).unwrap();
        assert_eq!((tokens.str(open), tokens.close(open)), ("{", tokens.len()));
        let tokens = Tokens::of("a.b");
        assert_eq!(tokens.at(1).map(|at| tokens.str(at)), Some("a"));
        assert_eq!(tokens.at(2).map(|at| tokens.str(at)), Some("b"));
    }
}
