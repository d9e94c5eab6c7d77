//! Condition texts: from tokens to an [`Expr`], one bracket at a time.
//!
//! One pass over the raw tokens assigns each its role (`-` after an operand is infix, `and`
//! after a dot is a name, `(` after an operand opens arguments) and keeps the open brackets
//! on a stack. When a bracket closes, the grammar parses its tokens. In the list of the
//! enclosing bracket, one token then represents the result. So each bracket is parsed
//! separately: an error in one does not hide the errors in the others.

use chumsky::Parser;
use chumsky::inspector::SimpleState;
use logos::Logos;

use super::arena::{
    BinOp, Expr, ExprId, ExprKind, Infix, Lit, LogOp, ObjKey, UnOp, WORD_PRECEDENCE,
};
use super::diagnose;
use super::error::{ParseError, ParseErrorKind, ParseErrors};
use super::grammar::{self, Builder, Kind, Tok, too_deep};
use super::token::Raw;
use super::{MAX_NESTING, MAX_TEXT_BYTES};

/// Parses a condition text by the superset grammar of decisions D2, D3, D4 and D47.
///
/// Precedence is JSEP's (language section 3.10): equality below relation; `||`, `??`, `and` and
/// `or` on one level. Blank text gives an [`Expr`] without root.
///
/// # Errors
/// Every distinguishable error, ordered by position. No text is accepted by accident: unknown
/// characters, missing operands, and unclosed quotes and brackets are errors.
pub fn parse_condition(text: &str) -> Result<Expr, ParseErrors> {
    parse(text, false)
}

/// Parses an expression text of a program of version 4 (decision D70): the grammar of
/// conditions, plus object literals and template literals.
///
/// # Errors
/// As [`parse_condition`].
pub fn parse_expression(text: &str) -> Result<Expr, ParseErrors> {
    parse(text, true)
}

fn parse(text: &str, literals: bool) -> Result<Expr, ParseErrors> {
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("The condition is longer than {MAX_TEXT_BYTES} bytes");
        let error = ParseError::new(ParseErrorKind::TooLong, message, 0..text.len() as u32);
        return Err(ParseErrors(vec![error]));
    }
    let mut reader = Reader::new(text, literals);
    let mut lexer = Raw::lexer(text);
    while let Some(raw) = lexer.next() {
        let span = lexer.span();
        let (start, end) = (span.start as u32, span.end as u32);
        if let Err(fatal) = reader.take(raw, start, end) {
            return Err(ParseErrors(vec![fatal]));
        }
        if let Some(from) = reader.chunk.take() {
            match reader.template_chunk(from) {
                Ok(to) => lexer.bump(to - end as usize),
                Err(fatal) => return Err(ParseErrors(vec![fatal])),
            }
        }
    }
    reader.finish()
}

/// Whether a word is a variable, so that an object literal may use it as a shorthand.
fn is_variable(word: &str) -> bool {
    !matches!(word, "true" | "false" | "null" | "this" | "typeof")
        && diagnose::reserved_word(word, 0, 0).is_none()
}

/// The role of an operator with its usual precedence.
pub(super) const fn infix_kind(op: Infix) -> Kind {
    Kind::Infix(op, op.precedence())
}

/// The kind of an open bracket.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    /// The whole text.
    Text,
    /// `( expression )`
    Group,
    /// `callee ( arguments )`
    Args,
    /// `object [ index ]`
    Index,
    /// `[ elements ]`
    Array,
    /// `{ key: value }`
    Object,
    /// A template literal: its texts and holes.
    Template,
    /// `${ expression }`
    Hole,
}

/// An open bracket with its tokens.
struct Open {
    bracket: Bracket,
    start: u32,
    toks: Vec<Tok>,
}

/// The pass over the raw tokens.
struct Reader<'s> {
    state: SimpleState<Builder<'s>>,
    /// The brackets around `current`, outermost first.
    outer: Vec<Open>,
    current: Open,
    /// Number of consecutive prefix operators.
    prefix_run: usize,
    /// Whether object and template literals are supported.
    literals: bool,
    /// Start of a template's text that is parsed next.
    chunk: Option<u32>,
}

impl<'s> Reader<'s> {
    fn new(text: &'s str, literals: bool) -> Self {
        let current = Open {
            bracket: Bracket::Text,
            start: 0,
            toks: Vec::with_capacity(8),
        };
        Self {
            state: SimpleState(Builder::new(text, literals)),
            outer: Vec::new(),
            current,
            prefix_run: 0,
            literals,
            chunk: None,
        }
    }

    fn error(&mut self, error: ParseError) {
        self.state.error(error);
    }

    fn push(&mut self, kind: Kind, start: u32, end: u32) {
        self.current.toks.push(Tok { kind, start, end });
    }

    /// Processes one raw token; only exceeding a limit is fatal.
    fn take(&mut self, raw: Result<Raw, ()>, start: u32, end: u32) -> Result<(), ParseError> {
        let previous = self.current.toks.last().copied();
        let after_operand = previous.is_some_and(|tok| tok.kind.ends_operand());
        let infix = |op| infix_kind(Infix::Binary(op));
        let kind = match raw {
            Ok(Raw::ParenOpen) => {
                let bracket = if after_operand {
                    Bracket::Args
                } else {
                    Bracket::Group
                };
                return self.open(bracket, start, end);
            }
            Ok(Raw::BracketOpen) => {
                let optional = previous.is_some_and(|tok| tok.kind == Kind::OptionalDot);
                let bracket = if after_operand || optional {
                    Bracket::Index
                } else {
                    Bracket::Array
                };
                return self.open(bracket, start, end);
            }
            Ok(Raw::ParenClose | Raw::BracketClose) => {
                self.close(start, end);
                return Ok(());
            }
            Ok(Raw::Brace) if self.literals => {
                let opens = self.state.text.as_bytes().get(start as usize) == Some(&b'{');
                if opens && !after_operand {
                    return self.open(Bracket::Object, start, end);
                }
                if !opens {
                    self.close(start, end);
                    return Ok(());
                }
                let error = ParseError::syntax("`{` after a value", start..end);
                self.error(error.with_help("an object stands where a value may begin"));
                return Ok(());
            }
            Ok(Raw::Backtick) if self.literals && !after_operand => {
                self.chunk = Some(end);
                return self.open(Bracket::Template, start, end);
            }
            Ok(Raw::Ident) => match self.name(previous, start, end) {
                Some(kind) => kind,
                None => return Ok(()),
            },
            Ok(Raw::Number) => {
                if let Some(error) = diagnose::glued_number(&self.state, previous, start, end) {
                    self.error(error);
                    return Ok(());
                }
                Kind::Number
            }
            Ok(Raw::String) => Kind::String,
            Ok(Raw::Plus) if !after_operand => Kind::Prefix(UnOp::Plus),
            Ok(Raw::Minus) if !after_operand => Kind::Prefix(UnOp::Neg),
            Ok(Raw::Not) => Kind::Prefix(UnOp::Not),
            Ok(Raw::Plus) => infix(BinOp::Add),
            Ok(Raw::Minus) => infix(BinOp::Sub),
            Ok(Raw::Star) => infix(BinOp::Mul),
            Ok(Raw::Slash) => infix(BinOp::Div),
            Ok(Raw::Percent) => infix(BinOp::Rem),
            Ok(Raw::StarStar) => infix(BinOp::Pow),
            Ok(Raw::EqEq) => infix(BinOp::Eq),
            Ok(Raw::NotEq) => infix(BinOp::Ne),
            Ok(Raw::EqEqEq) => infix(BinOp::StrictEq),
            Ok(Raw::NotEqEq) => infix(BinOp::StrictNe),
            Ok(Raw::Lt) => infix(BinOp::Lt),
            Ok(Raw::Gt) => infix(BinOp::Gt),
            Ok(Raw::Le) => infix(BinOp::Le),
            Ok(Raw::Ge) => infix(BinOp::Ge),
            Ok(Raw::AndAnd) => infix_kind(Infix::Logical(LogOp::And)),
            Ok(Raw::OrOr) => infix_kind(Infix::Logical(LogOp::Or)),
            Ok(Raw::Nullish) => infix_kind(Infix::Logical(LogOp::Nullish)),
            Ok(Raw::Question) => Kind::Question,
            Ok(Raw::Colon) => Kind::Colon,
            Ok(Raw::Dot) => Kind::Dot,
            Ok(Raw::OptionalDot) => Kind::OptionalDot,
            Ok(Raw::Comma) => Kind::Comma,
            refused => {
                let (error, stand_in) =
                    diagnose::refused(&self.state, refused.ok(), after_operand, start, end);
                self.error(error);
                match stand_in {
                    Some(kind) => kind,
                    None => return Ok(()),
                }
            }
        };
        self.prefix_run = if matches!(kind, Kind::Prefix(_)) {
            self.prefix_run + 1
        } else {
            0
        };
        if self.prefix_run > MAX_NESTING {
            return Err(too_deep(start..end));
        }
        self.push(kind, start, end);
        Ok(())
    }

    /// The role of a word; `None` if it was refused and is skipped.
    fn name(&mut self, previous: Option<Tok>, start: u32, end: u32) -> Option<Kind> {
        let word = &self.state.text[start as usize..end as usize];
        // A key may be any word.
        if self.current.bracket == Bracket::Object
            && previous.is_none_or(|tok| tok.kind == Kind::Comma)
        {
            return Some(Kind::Ident);
        }
        let Some(previous) = previous else {
            return self.first_word(word, start, end);
        };
        if matches!(previous.kind, Kind::Dot | Kind::OptionalDot) {
            return Some(Kind::Ident);
        }
        if !previous.kind.ends_operand() {
            return self.first_word(word, start, end);
        }
        if let Some(error) = diagnose::glued_number(&self.state, Some(previous), start, end) {
            self.error(error);
            return None;
        }
        let op = match word {
            "gt" => Infix::Binary(BinOp::Gt),
            "lt" => Infix::Binary(BinOp::Lt),
            "ge" => Infix::Binary(BinOp::Ge),
            "le" => Infix::Binary(BinOp::Le),
            "eq" => Infix::Binary(BinOp::Eq),
            "neq" => Infix::Binary(BinOp::Ne),
            "and" => return Some(Kind::Infix(Infix::Logical(LogOp::And), WORD_PRECEDENCE)),
            "or" => return Some(Kind::Infix(Infix::Logical(LogOp::Or), WORD_PRECEDENCE)),
            "in" | "instanceof" => {
                self.error(diagnose::refused_infix_word(word, start, end));
                Infix::Binary(BinOp::Eq)
            }
            _ => return Some(Kind::Ident),
        };
        Some(infix_kind(op))
    }

    /// The role of a word at the start of an operand.
    fn first_word(&mut self, word: &str, start: u32, end: u32) -> Option<Kind> {
        if word == "typeof" {
            return Some(Kind::Prefix(UnOp::Typeof));
        }
        if let Some(error) = diagnose::reserved_word(word, start, end) {
            self.error(error);
            return None;
        }
        Some(Kind::Ident)
    }

    fn open(&mut self, bracket: Bracket, start: u32, end: u32) -> Result<(), ParseError> {
        if self.outer.len() >= MAX_NESTING {
            return Err(too_deep(start..end));
        }
        self.prefix_run = 0;
        let inner = Open {
            bracket,
            start,
            toks: Vec::new(),
        };
        self.outer.push(std::mem::replace(&mut self.current, inner));
        Ok(())
    }

    /// Processes a closing bracket.
    fn close(&mut self, start: u32, end: u32) {
        self.prefix_run = 0;
        let closer = &self.state.text[start as usize..end as usize];
        let expected = match self.current.bracket {
            Bracket::Text => {
                let error = ParseError::syntax(format!("`{closer}` closes nothing"), start..end)
                    .with_help(format!("remove it or open the bracket before `{closer}`"));
                self.error(error);
                return;
            }
            Bracket::Group | Bracket::Args => ")",
            Bracket::Index | Bracket::Array => "]",
            Bracket::Object | Bracket::Hole => "}",
            Bracket::Template => "`",
        };
        if closer != expected {
            let error = ParseError::syntax(
                format!("Expected `{expected}` but found `{closer}`"),
                start..end,
            );
            self.error(error.with_help(format!("write `{expected}` here")));
        }
        self.end_bracket(end);
    }

    /// Parses the tokens of the innermost bracket and adds the result to the enclosing one.
    fn end_bracket(&mut self, end: u32) {
        let Some(outer) = self.outer.pop() else {
            return;
        };
        let Open {
            bracket,
            start,
            mut toks,
        } = std::mem::replace(&mut self.current, outer);
        let kind = match bracket {
            Bracket::Args => {
                let args = self.list(&toks, bracket, start, end);
                self.state.lists.push(args);
                Kind::Args(self.state.lists.len() as u32 - 1)
            }
            Bracket::Array => {
                // As in JSEP, an array literal may have a trailing comma; arguments may not.
                if toks.len() > 1 && toks.last().is_some_and(|tok| tok.kind == Kind::Comma) {
                    toks.pop();
                }
                let items = self.list(&toks, bracket, start, end);
                Kind::Node(self.state.expr.push(ExprKind::Array(items), start..end))
            }
            Bracket::Index => Kind::IndexBy(self.single(&toks, bracket, start, end)),
            Bracket::Object => {
                let entries = self.entries(&toks, start, end);
                let kind = ExprKind::Object(entries);
                Kind::Node(self.state.expr.push(kind, start..end))
            }
            Bracket::Template => Kind::Node(self.template(&toks, start, end)),
            Bracket::Hole => {
                self.chunk = Some(end);
                Kind::Node(self.single(&toks, bracket, start, end))
            }
            Bracket::Group | Bracket::Text => Kind::Node(self.single(&toks, bracket, start, end)),
        };
        self.push(kind, start, end);
    }

    /// Parses exactly one expression; an error yields a placeholder.
    fn single(&mut self, toks: &[Tok], bracket: Bracket, start: u32, end: u32) -> ExprId {
        let result = grammar::single().parse_with_state(toks, &mut self.state);
        let (root, errors) = result.into_output_errors();
        if let Some(root) = root {
            return root;
        }
        let at = errors.first().map_or(0, |error| error.span().start);
        self.complain(toks, at, bracket, start, end);
        self.state
            .expr
            .push(ExprKind::Literal(Lit::Null), start..end)
    }

    /// Parses comma-separated expressions.
    fn list(&mut self, toks: &[Tok], bracket: Bracket, start: u32, end: u32) -> Vec<ExprId> {
        let result = grammar::list().parse_with_state(toks, &mut self.state);
        let (items, errors) = result.into_output_errors();
        if let Some(items) = items {
            return items;
        }
        let at = errors.first().map_or(0, |error| error.span().start);
        self.complain(toks, at, bracket, start, end);
        Vec::new()
    }

    /// The entries of an object literal, whose inner brackets are already single tokens.
    fn entries(&mut self, toks: &[Tok], start: u32, end: u32) -> Vec<(ObjKey, ExprId)> {
        let mut entries = Vec::new();
        let mut parts: Vec<&[Tok]> = toks.split(|tok| tok.kind == Kind::Comma).collect();
        // As in JavaScript, a trailing comma is allowed; `{}` has no entries.
        if parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        for part in parts {
            let key = match part.first().map(|tok| (tok.kind, self.state.source(*tok))) {
                Some((Kind::Ident, name)) => Some(ObjKey::Name(name.into())),
                Some((Kind::String, text)) => {
                    let text = grammar::unescape(text);
                    Some(ObjKey::Name(String::from_utf8_lossy(&text).into()))
                }
                Some((Kind::Node(id), text)) if text.starts_with('[') => {
                    match &self.state.expr.node(id).kind {
                        ExprKind::Array(keys) if keys.len() == 1 => Some(ObjKey::Computed(keys[0])),
                        _ => None,
                    }
                }
                _ => None,
            };
            let value = match (&key, part) {
                (Some(_), [_, colon, value @ ..]) if colon.kind == Kind::Colon => {
                    let end = value.last().map_or(colon.end, |tok| tok.end);
                    self.single(value, Bracket::Group, colon.end, end)
                }
                (Some(ObjKey::Name(key)), [name])
                    if name.kind == Kind::Ident && is_variable(key) =>
                {
                    self.single(part, Bracket::Group, name.start, name.end)
                }
                _ => {
                    let at = part.first().map_or(start..end, |tok| tok.start..tok.end);
                    let error = ParseError::syntax("Expected `key: value`", at);
                    self.error(
                        error.with_help("a key is a name, a text in quotes, or `[expression]`"),
                    );
                    continue;
                }
            };
            entries.extend(key.map(|key| (key, value)));
        }
        entries
    }

    /// Parses a text of a template up to its end or the next hole; returns where the lexer
    /// continues.
    fn template_chunk(&mut self, from: u32) -> Result<usize, ParseError> {
        let text = self.state.text;
        let bytes = text.as_bytes();
        let mut at = from as usize;
        let stop = loop {
            match bytes.get(at) {
                None => break None,
                Some(b'\\') => at += 2,
                Some(b'`') => break Some(1),
                Some(b'$') if bytes.get(at + 1) == Some(&b'{') => break Some(2),
                Some(_) => at += 1,
            }
        };
        let to = at.min(bytes.len());
        let (start, end) = (from, to as u32);
        if let Some(part) = text.get(from as usize..to).filter(|part| !part.is_empty()) {
            let part = Lit::String(grammar::unescaped(part));
            let id = self.state.expr.push(ExprKind::Literal(part), start..end);
            self.push(Kind::Node(id), start, end);
        }
        match stop {
            Some(1) => self.end_bracket(end + 1),
            Some(_) => self.open(Bracket::Hole, end, end + 2)?,
            None => return Ok(to),
        }
        Ok(to + stop.unwrap_or(0))
    }

    /// Concatenates the texts and values of a template with `+`, starting with a text so that
    /// the result is always text.
    fn template(&mut self, toks: &[Tok], start: u32, end: u32) -> ExprId {
        let expr = &mut self.state.expr;
        let mut parts = toks.iter().filter_map(|tok| match tok.kind {
            Kind::Node(id) => Some(id),
            _ => None,
        });
        let is_text = |expr: &Expr, id: ExprId| {
            matches!(expr.node(id).kind, ExprKind::Literal(Lit::String(_)))
        };
        let mut parts = parts.by_ref().collect::<Vec<_>>().into_iter().peekable();
        let mut whole = match parts.next_if(|id| is_text(expr, *id)) {
            Some(first) => first,
            None => expr.push(ExprKind::Literal(Lit::String(Vec::new())), start..start + 1),
        };
        for part in parts {
            let (left, right) = (whole, part);
            let op = BinOp::Add;
            whole = expr.push(ExprKind::Binary { op, left, right }, start..end);
        }
        whole
    }

    fn complain(&mut self, toks: &[Tok], at: usize, bracket: Bracket, start: u32, end: u32) {
        self.state.reset();
        let error = diagnose::grammar_error(&self.state, toks, at, bracket, start..end);
        self.error(error);
    }

    /// Closes open brackets and parses the outermost list.
    fn finish(mut self) -> Result<Expr, ParseErrors> {
        let end = self.state.text.len() as u32;
        while !self.outer.is_empty() {
            let start = self.current.start;
            let (opener, closer) = match self.current.bracket {
                Bracket::Index | Bracket::Array => ("[", "]"),
                Bracket::Object => ("{", "}"),
                Bracket::Hole => ("${", "}"),
                Bracket::Template => ("`", "`"),
                _ => ("(", ")"),
            };
            let error = ParseError::syntax(
                format!("Unclosed `{opener}`"),
                start..start + opener.len() as u32,
            );
            self.error(error.with_help(format!("close it with `{closer}`")));
            self.end_bracket(end);
        }
        let toks = std::mem::take(&mut self.current.toks);
        if !toks.is_empty() {
            let root = self.single(&toks, Bracket::Text, 0, end);
            self.state.expr.root = Some(root);
        }
        let (expr, mut errors) = self.state.0.into_parts();
        if errors.is_empty() {
            return Ok(expr);
        }
        errors.sort_by_key(|error| (error.span.start, error.span.end));
        Err(ParseErrors(errors))
    }
}
