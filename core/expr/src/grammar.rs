//! The grammar of condition texts (chumsky), over tokens with paired brackets.
//!
//! Brackets are parsed innermost first (see `condition`), and a finished bracket is one token
//! in the enclosing list. So the grammar below has no recursive rule, building it costs
//! nothing, and no input can increase its stack use:
//!
//! ```text
//! list    := { single ',' }
//! single  := operand { infix operand }
//! operand := { prefix } atom { '.' name | '?.' name | [ '?.' ] '[…]' | '(…)' }
//! ```
//!
//! The two stacks of [`Builder`] resolve precedence (language section 3.10) while the flat
//! list `operand { infix operand }` is parsed.

use chumsky::input::MapExtra;
use chumsky::inspector::SimpleState;
use chumsky::prelude::*;
use smallvec::SmallVec;
use std::ops::Range;

use super::MAX_NESTING;
use super::arena::{BinOp, Expr, ExprId, ExprKind, Infix, Lit, UnOp};
use super::builtins;
use super::error::{ParseError, ParseErrorKind};

/// Maximum number of errors kept per text: enough to fix it, and a hostile text cannot
/// produce a report larger than itself.
const MAX_ERRORS: usize = 32;

/// A token with its role.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Tok {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// The roles of tokens.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number,
    String,
    Ident,
    Prefix(UnOp),
    /// With its precedence, which differs between `and` and `&&`.
    Infix(Infix, u8),
    Question,
    Colon,
    Dot,
    OptionalDot,
    Comma,
    /// A finished group or array literal.
    Node(ExprId),
    /// A finished `[index]`.
    IndexBy(ExprId),
    /// A finished argument list: an index into [`Builder::lists`].
    Args(u32),
}

/// The function that reads a part of the request context (D75).
const CONTEXT: &str = "context";

fn no_path(span: Range<u32>) -> ParseError {
    ParseError::unsupported("`context` takes one text, the path of what is read", span)
        .with_help("write `context('user.id')`")
}

impl Kind {
    /// Whether an operand can end with this token.
    pub(super) const fn ends_operand(self) -> bool {
        matches!(
            self,
            Self::Number
                | Self::String
                | Self::Ident
                | Self::Node(_)
                | Self::IndexBy(_)
                | Self::Args(_)
        )
    }
}

/// An operator that waits for its right operand.
#[derive(Copy, Clone)]
enum Pending {
    Infix(Infix, u8),
    /// `test ?`, waiting for `:`.
    Question(Tok),
    /// `test ? consequent :`.
    Colon,
}

/// The state of the grammar's actions: the arena, the operator stacks and the errors.
pub(super) struct Builder<'s> {
    pub text: &'s str,
    pub expr: Expr,
    pub lists: Vec<Vec<ExprId>>,
    /// Whether the text belongs to version 4, which may read the request context.
    is_current: bool,
    errors: Vec<ParseError>,
    operands: SmallVec<[ExprId; 8]>,
    pending: SmallVec<[Pending; 8]>,
}

impl<'s> Builder<'s> {
    pub(super) fn new(text: &'s str, is_current: bool) -> Self {
        Self {
            text,
            is_current,
            expr: Expr::default(),
            lists: Vec::new(),
            errors: Vec::new(),
            operands: SmallVec::new(),
            pending: SmallVec::new(),
        }
    }

    /// The tree and the errors.
    pub(super) fn into_parts(self) -> (Expr, Vec<ParseError>) {
        (self.expr, self.errors)
    }

    /// The source of a token.
    pub(super) fn source(&self, tok: Tok) -> &'s str {
        &self.text[tok.start as usize..tok.end as usize]
    }

    /// Adds an error. Exceeded limits always count; others up to a maximum.
    pub(super) fn error(&mut self, error: ParseError) {
        if self.errors.len() < MAX_ERRORS || error.kind == ParseErrorKind::TooDeep {
            self.errors.push(error);
        }
    }

    /// Drops an incomplete list of operands, after an error.
    pub(super) fn reset(&mut self) {
        self.operands.clear();
        self.pending.clear();
    }

    /// A node for a token that is an operand by itself.
    fn atom(&mut self, tok: Tok) -> ExprId {
        let source = self.source(tok);
        let kind = match tok.kind {
            Kind::Node(id) => return id,
            // The lexer's numbers are a subset of those that `f64` parses.
            Kind::Number => ExprKind::Literal(Lit::Number(source.parse().unwrap_or(f64::NAN))),
            Kind::String => ExprKind::Literal(Lit::String(unescape(source))),
            _ => match source {
                "true" => ExprKind::Literal(Lit::Bool(true)),
                "false" => ExprKind::Literal(Lit::Bool(false)),
                "null" => ExprKind::Literal(Lit::Null),
                "this" => {
                    self.error(
                        ParseError::unsupported(
                            "`this` is not available in a condition",
                            tok.start..tok.end,
                        )
                        .with_help("use the name of a variable"),
                    );
                    ExprKind::Literal(Lit::Null)
                }
                name => ExprKind::Ident(name.into()),
            },
        };
        self.expr.push(kind, tok.start..tok.end)
    }

    fn prefix(&mut self, op: Tok, arg: ExprId) -> ExprId {
        let Kind::Prefix(unary) = op.kind else {
            return arg;
        };
        let end = self.expr.node(arg).span.end;
        self.expr
            .push(ExprKind::Unary { op: unary, arg }, op.start..end)
    }

    fn member(&mut self, object: ExprId, name: Tok, optional: bool) -> ExprId {
        let start = self.expr.node(object).span.start;
        let property = self.source(name).into();
        self.expr.push(
            ExprKind::Member {
                object,
                property,
                optional,
            },
            start..name.end,
        )
    }

    fn index(&mut self, object: ExprId, tok: Tok, optional: bool) -> ExprId {
        let Kind::IndexBy(index) = tok.kind else {
            return object;
        };
        let start = self.expr.node(object).span.start;
        self.expr.push(
            ExprKind::Index {
                object,
                index,
                optional,
            },
            start..tok.end,
        )
    }

    /// Converts the name or member just parsed to a call of it. Its arguments were parsed
    /// before it, so children still precede their parent.
    fn call(&mut self, callee: ExprId, tok: Tok) -> ExprId {
        let Kind::Args(list) = tok.kind else {
            return callee;
        };
        let args = std::mem::take(&mut self.lists[list as usize]);
        let path = self.path(&args);
        let node = &mut self.expr.nodes[callee.0 as usize];
        let name_span = node.span.clone();
        node.span.end = tok.end;
        let kind = std::mem::replace(&mut node.kind, ExprKind::Literal(Lit::Null));
        let (called, refusal) = match kind {
            ExprKind::Ident(callee) if self.is_current && &*callee == CONTEXT => match path {
                Some(path) => (ExprKind::Context(path), None),
                None => (
                    ExprKind::Ident(callee),
                    Some(no_path(name_span.start..tok.end)),
                ),
            },
            ExprKind::Ident(callee) => {
                let refusal = (!builtins::is_function(&callee))
                    .then(|| unknown_callee("function", &callee, false, name_span));
                (ExprKind::Call { callee, args }, refusal)
            }
            ExprKind::Member {
                object,
                property: method,
                optional,
            } => {
                let refusal = (!builtins::is_method(&method))
                    .then(|| unknown_callee("method", &method, true, name_span));
                (
                    ExprKind::MethodCall {
                        object,
                        method,
                        args,
                        optional,
                    },
                    refusal,
                )
            }
            other => (other, Some(unnamed_callee(name_span.start..tok.end))),
        };
        node.kind = called;
        if let Some(refusal) = refusal {
            self.error(refusal);
        }
        callee
    }

    /// The path given by the single argument of `context`.
    fn path(&self, args: &[ExprId]) -> Option<Box<str>> {
        let [path] = args else {
            return None;
        };
        match &self.expr.node(*path).kind {
            ExprKind::Literal(Lit::String(path)) => str::from_utf8(path).ok().map(Box::from),
            _ => None,
        }
    }

    /// Adds the first operand, or the one after an infix operator.
    fn operand(&mut self, id: ExprId) {
        self.operands.push(id);
    }

    /// Adds an infix operator, after reducing operators that bind tighter.
    fn infix(&mut self, tok: Tok) {
        match tok.kind {
            Kind::Infix(op, level) => {
                while let Some(Pending::Infix(_, top)) = self.pending.last().copied() {
                    let right_assoc = op == Infix::Binary(BinOp::Pow);
                    if top < level || (right_assoc && top == level) {
                        break;
                    }
                    self.reduce();
                }
                self.pending.push(Pending::Infix(op, level));
            }
            Kind::Question => {
                while matches!(self.pending.last(), Some(Pending::Infix(..))) {
                    self.reduce();
                }
                self.pending.push(Pending::Question(tok));
            }
            _ => self.colon(tok),
        }
        if self.pending.len() == MAX_NESTING + 1 {
            self.error(too_deep(tok.start..tok.end));
        }
    }

    /// Processes the `:` of a conditional.
    fn colon(&mut self, tok: Tok) {
        while matches!(
            self.pending.last(),
            Some(Pending::Infix(..) | Pending::Colon)
        ) {
            self.reduce();
        }
        match self.pending.last_mut() {
            Some(top) => *top = Pending::Colon,
            None => {
                self.error(
                    ParseError::syntax("`:` without a `?` before it", tok.start..tok.end)
                        .with_help("write `test ? a : b`"),
                );
                // Keeps the number of operands correct for the rest of the list.
                let stand_in = Infix::Binary(BinOp::Eq);
                self.pending
                    .push(Pending::Infix(stand_in, stand_in.precedence()));
            }
        }
    }

    /// Applies the operator on top of the stack.
    fn reduce(&mut self) {
        let (Some(op), Some(right), Some(left)) =
            (self.pending.pop(), self.operands.pop(), self.operands.pop())
        else {
            return;
        };
        let id = match op {
            Pending::Infix(op, _) => self.expr.push_infix(op, left, right),
            Pending::Colon => {
                let Some(test) = self.operands.pop() else {
                    return;
                };
                let span = self.expr.node(test).span.start..self.expr.node(right).span.end;
                let kind = ExprKind::Conditional {
                    test,
                    consequent: left,
                    alternate: right,
                };
                self.expr.push(kind, span)
            }
            Pending::Question(tok) => {
                self.error(
                    ParseError::syntax("`?` without a `:` after it", tok.start..tok.end)
                        .with_help("write `test ? a : b`, or `??` for a default"),
                );
                left
            }
        };
        self.operands.push(id);
    }

    /// Reduces the rest at the end of a list and returns the whole expression.
    fn finish(&mut self) -> ExprId {
        while !self.pending.is_empty() {
            self.reduce();
        }
        let root = self.operands.pop();
        self.reset();
        // The grammar has parsed at least one operand.
        root.unwrap_or(ExprId(0))
    }
}

/// The error of a call whose callee is neither a name nor a member.
fn unnamed_callee(span: Range<u32>) -> ParseError {
    ParseError::unsupported("Only a named function or method can be called", span)
        .with_help("call a builtin, as in `parseInt(x)`, or a method, as in `name.trim()`")
}

/// The error of a call outside the closed set.
fn unknown_callee(what: &str, name: &str, methods: bool, span: Range<u32>) -> ParseError {
    let error = ParseError::unsupported(
        format!("`{name}` is not a {what} that a condition can call"),
        span,
    );
    match builtins::nearest(name, methods) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help("compute the value in a step before and test the result"),
    }
}

/// The error of a text that is nested too deeply.
pub(super) fn too_deep(span: Range<u32>) -> ParseError {
    ParseError::new(
        ParseErrorKind::TooDeep,
        format!("The condition nests deeper than {MAX_NESTING} levels"),
        span,
    )
    .with_help("split it into several steps")
}

/// The bytes of a string token (language section 3.10): six escapes; any other escaped
/// character is literal.
pub(super) fn unescape(token: &str) -> Vec<u8> {
    // The placeholder of an unclosed string may lack the second quote.
    unescaped(token.get(1..token.len() - 1).unwrap_or_default())
}

/// The bytes of a text between quotes.
pub(super) fn unescaped(inner: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.extend(rest.next().map(|escaped| match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 0x08,
            b'f' => 0x0C,
            b'v' => 0x0B,
            other => other,
        }));
    }
    bytes
}

/// The type parameters of the parsers: cheap errors, and the builder as state.
pub(super) type Extra<'t, 's> = extra::Full<Simple<'t, Tok>, SimpleState<Builder<'s>>, ()>;

/// One expression.
pub(super) fn single<'t, 's: 't>() -> impl Parser<'t, &'t [Tok], ExprId, Extra<'t, 's>> + Clone {
    let infix = select! {
        tok @ Tok { kind: Kind::Infix(..) | Kind::Question | Kind::Colon, .. } => tok,
    };
    operand()
        .map_with(|first, e| e.state().operand(first))
        .foldl_with(infix.then(operand()).repeated(), |(), (op, next), e| {
            e.state().infix(op);
            e.state().operand(next);
        })
        .map_with(|(), e| e.state().finish())
}

/// Comma-separated expressions, possibly none.
pub(super) fn list<'t, 's: 't>() -> impl Parser<'t, &'t [Tok], Vec<ExprId>, Extra<'t, 's>> + Clone {
    let comma = select! { Tok { kind: Kind::Comma, .. } => () };
    single().separated_by(comma).collect()
}

/// An atom with its prefix operators and suffixes.
fn operand<'t, 's: 't>() -> impl Parser<'t, &'t [Tok], ExprId, Extra<'t, 's>> + Clone {
    let prefix = select! { tok @ Tok { kind: Kind::Prefix(_), .. } => tok };
    let atom = select! {
        tok @ Tok { kind: Kind::Number | Kind::String | Kind::Ident | Kind::Node(_), .. } => tok,
    };
    let dot = select! { tok @ Tok { kind: Kind::Dot | Kind::OptionalDot, .. } => tok };
    let after_dot = select! { tok @ Tok { kind: Kind::Ident | Kind::IndexBy(_), .. } => tok };
    let direct =
        select! { tok @ Tok { kind: Kind::IndexBy(_) | Kind::Args(_), .. } => (None, tok) };
    let postfix = choice((dot.map(Some).then(after_dot), direct));
    let postfixed = atom
        .map_with(|tok, e: &mut MapExtra<'t, '_, &'t [Tok], Extra<'t, 's>>| e.state().atom(tok))
        .foldl_with(postfix.repeated(), |object, (dot, tok), e| {
            let optional = dot.is_some_and(|dot| dot.kind == Kind::OptionalDot);
            match tok.kind {
                Kind::Ident => e.state().member(object, tok, optional),
                Kind::IndexBy(_) => e.state().index(object, tok, optional),
                _ => e.state().call(object, tok),
            }
        });
    prefix
        .repeated()
        .foldr_with(postfixed, |op, arg, e| e.state().prefix(op, arg))
}
