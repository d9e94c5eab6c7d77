//! Names that a source declares, each with the part of the text that sees it.

use crate::scan::{Kind, Tokens};
use std::collections::HashSet;
use std::ops::Range;

/// What declares a name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    Variable,
    Constant,
    Function,
    Parameter,
}

impl Declared {
    /// The word that declares it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Declared::Variable => "let",
            Declared::Constant => "const",
            Declared::Function => "function",
            Declared::Parameter => "parameter",
        }
    }
}

/// A declared name.
#[derive(Clone, Debug)]
pub(crate) struct Name<'t> {
    pub name: &'t str,
    pub declared: Declared,
    /// Where the name stands in its declaration.
    pub at: usize,
    /// Tokens that see the name.
    pub scope: Range<usize>,
}

/// All names that a source declares.
pub(crate) fn declared<'t>(tokens: &Tokens<'t>) -> Vec<Name<'t>> {
    let mut finder = Finder {
        tokens,
        names: Vec::new(),
        enclosing: Vec::new(),
        ends: expression_ends(tokens),
    };
    for index in 0..tokens.len() {
        finder.visit(index);
    }
    finder.names
}

/// The names that are seen at a token, inner ones first; of equal names only the innermost.
pub(crate) fn seen<'n, 't>(names: &'n [Name<'t>], index: usize) -> Vec<&'n Name<'t>> {
    let mut all: Vec<&Name<'t>> = names
        .iter()
        .filter(|name| name.scope.contains(&index))
        .collect();
    all.sort_by_key(|name| name.scope.len());
    let mut known = HashSet::new();
    all.retain(|name| known.insert(name.name));
    all
}

/// For each token the end of an expression that begins there: a comma, a semicolon or a bracket
/// that closes more. Filled from the last on, so that nested functions take no longer.
fn expression_ends(tokens: &Tokens<'_>) -> Vec<usize> {
    let mut ends = vec![tokens.len(); tokens.len() + 1];
    for at in (0..tokens.len()).rev() {
        let kind = tokens.get(at).map(|token| token.kind);
        ends[at] = match kind {
            Some(Kind::Mark(b')' | b']' | b'}' | b',' | b';')) => at,
            Some(Kind::Mark(b'(' | b'[' | b'{')) => {
                let after = (tokens.close(at) + 1).min(tokens.len());
                ends[after]
            }
            _ => ends[at + 1],
        };
    }
    ends
}

struct Finder<'s, 't> {
    tokens: &'s Tokens<'t>,
    names: Vec<Name<'t>>,
    /// Brackets that are open.
    enclosing: Vec<usize>,
    /// For each token the end of an expression that begins there.
    ends: Vec<usize>,
}

impl<'t> Finder<'_, 't> {
    fn visit(&mut self, index: usize) {
        let tokens = self.tokens;
        match tokens.get(index).map(|token| token.kind) {
            Some(Kind::Mark(b'(' | b'[' | b'{')) => self.enclosing.push(index),
            Some(Kind::Mark(b')' | b']' | b'}')) => {
                self.enclosing.pop();
            }
            Some(Kind::Mark(b'=')) if tokens.is_mark(index + 1, b'>') => self.arrow(index),
            Some(Kind::Word)
                if !index
                    .checked_sub(1)
                    .is_some_and(|at| tokens.is_mark(at, b'.')) =>
            {
                match tokens.str(index) {
                    "let" | "var" => self.variables(index, Declared::Variable),
                    "const" => self.variables(index, Declared::Constant),
                    "function" => self.function(index),
                    "catch" if tokens.is_mark(index + 1, b'(') => self.parameters(index + 1),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The tokens of the innermost block; of a loop's head, those of the loop.
    fn block(&self) -> Range<usize> {
        match self.enclosing.last() {
            None => 0..self.tokens.len() + 1,
            Some(&open) => {
                let close = self.tokens.close(open);
                let is_head = self.tokens.is_mark(open, b'(');
                let end = match is_head && self.tokens.is_mark(close + 1, b'{') {
                    true => self.tokens.close(close + 1),
                    false => close,
                };
                open..end + 1
            }
        }
    }

    fn put(&mut self, index: usize, declared: Declared, scope: Range<usize>) {
        if let Some(name) = self.tokens.word(index) {
            self.names.push(Name {
                name,
                declared,
                at: index,
                scope,
            });
        }
    }

    fn function(&mut self, index: usize) {
        let mut open = index + 1;
        if self.tokens.is_mark(open, b'*') {
            open += 1;
        }
        if self.tokens.is_word(open) {
            self.put(open, Declared::Function, self.block());
            open += 1;
        }
        if self.tokens.is_mark(open, b'(') {
            self.parameters(open);
        }
    }

    /// Parameters in brackets, which the next block sees.
    fn parameters(&mut self, open: usize) {
        let close = self.tokens.close(open);
        // A type of the result may stand between.
        let limit = (close + 64).min(self.tokens.len());
        let body = (close + 1..limit).find(|at| {
            let is_open = self.tokens.is_mark(*at, b'{');
            is_open && !self.tokens.is_mark(at - 1, b':') && !self.tokens.is_mark(at - 1, b'|')
        });
        let end = body.map_or(close, |body| self.tokens.close(body));
        self.list(open + 1..close, open..end + 1);
    }

    /// The parameters of an arrow function, by the token of its arrow.
    fn arrow(&mut self, arrow: usize) {
        let tokens = self.tokens;
        let body = arrow + 2;
        let end = match tokens.is_mark(body, b'{') {
            true => tokens.close(body),
            false => self.ends.get(body).copied().unwrap_or(tokens.len()),
        };
        let Some(last) = arrow.checked_sub(1) else {
            return;
        };
        match tokens.get(last).map(|token| (token.kind, token.partner)) {
            Some((Kind::Mark(b')'), Some(open))) => self.list(open + 1..last, open..end + 1),
            Some((Kind::Word, _)) => self.put(last, Declared::Parameter, last..end + 1),
            _ => {}
        }
    }

    /// A list of parameters, each a pattern with perhaps a type and a default.
    fn list(&mut self, inside: Range<usize>, scope: Range<usize>) {
        let mut at = inside.start;
        while at < inside.end {
            at = self.pattern(at, Declared::Parameter, &scope);
            // The type and the default.
            while at < inside.end && !self.tokens.is_mark(at, b',') {
                at = self.skip(at);
            }
            at += 1;
        }
    }

    /// The names of a pattern; the index after it.
    fn pattern(&mut self, start: usize, declared: Declared, scope: &Range<usize>) -> usize {
        let tokens = self.tokens;
        let mut open = start;
        while tokens.is_mark(open, b'.') {
            open += 1;
        }
        if tokens.is_word(open) {
            self.put(open, declared, scope.clone());
            return open + 1;
        }
        let is_object = tokens.is_mark(open, b'{');
        if !is_object && !tokens.is_mark(open, b'[') {
            return open + 1;
        }
        let close = tokens.close(open);
        // Nested patterns are walked in the same loop, so that no nesting is too deep.
        let mut at = open + 1;
        while at < close {
            let token_is = |mark| tokens.is_mark(at, mark);
            if token_is(b'=') {
                at += 1;
                while at < close && !tokens.is_mark(at, b',') && !self.closes(at) {
                    at = self.skip(at);
                }
            } else if tokens.is_word(at) && !tokens.is_mark(at + 1, b':') {
                self.put(at, declared, scope.clone());
                at += 1;
            } else {
                at += 1;
            }
        }
        close + 1
    }

    fn closes(&self, at: usize) -> bool {
        [b')', b']', b'}']
            .iter()
            .any(|mark| self.tokens.is_mark(at, *mark))
    }

    /// The index after a token, or after the bracket that it opens.
    fn skip(&self, at: usize) -> usize {
        match self.tokens.get(at).map(|token| token.kind) {
            Some(Kind::Mark(b'(' | b'[' | b'{')) => self.tokens.close(at) + 1,
            _ => at + 1,
        }
    }

    /// The variables of a declaration.
    fn variables(&mut self, keyword: usize, declared: Declared) {
        let scope = self.block();
        let mut at = keyword + 1;
        while at < self.tokens.len() {
            at = self.pattern(at, declared, &scope);
            while !self.ends_declarator(at) {
                at = self.skip(at);
            }
            if !self.tokens.is_mark(at, b',') {
                return;
            }
            at += 1;
        }
    }

    /// True at the comma after a declarator, or at what ends the statement.
    fn ends_declarator(&self, at: usize) -> bool {
        const STATEMENTS: [&str; 14] = [
            "const", "let", "var", "return", "if", "for", "while", "do", "switch", "try", "throw",
            "function", "break", "continue",
        ];
        match self.tokens.get(at).map(|token| token.kind) {
            None => true,
            Some(Kind::Mark(mark)) => matches!(mark, b',' | b';') || self.closes(at),
            Some(Kind::Word) => matches!(self.tokens.str(at), word if STATEMENTS.contains(&word)),
            Some(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_at(source: &str) -> Vec<String> {
        let offset = source.find('|').expect("a cursor");
        let source = source.replacen('|', "", 1);
        let tokens = Tokens::of(&source);
        let names = declared(&tokens);
        let mut seen: Vec<String> = seen(&names, tokens.before(offset))
            .iter()
            .map(|name| format!("{} {}", name.declared.as_str(), name.name))
            .collect();
        seen.sort();
        seen
    }

    #[test]
    fn names_are_seen_where_they_are_declared() {
        let source = "const RATE = 2\nfunction agent({ lines, rate: r = RATE, ...rest }: { x: number }, b) {\n\
            let [first, { second }] = lines, third = 3\n for (const line of lines) { const inner = 1 }\n|\n}\n";
        assert_eq!(
            seen_at(source),
            [
                "const RATE",
                "function agent",
                "let first",
                "let second",
                "let third",
                "parameter b",
                "parameter lines",
                "parameter r",
                "parameter rest"
            ]
        );
        let source = "const f = (a, [b]) => a.map((c) => c + |1), g = (d) => d\n";
        assert_eq!(
            seen_at(source),
            [
                "const f",
                "const g",
                "parameter a",
                "parameter b",
                "parameter c"
            ]
        );
        let source = "for (const [i, x] of xs.entries()) { try { f() } catch (e) { | } }";
        assert_eq!(seen_at(source), ["const i", "const x", "parameter e"]);
        assert_eq!(seen_at("x => { let x = 1; |"), ["let x"]);
    }

    #[test]
    fn unfinished_sources_have_names() {
        assert_eq!(
            seen_at("function agent({ a }) { const b = |"),
            ["const b", "function agent", "parameter a"]
        );
    }
}
