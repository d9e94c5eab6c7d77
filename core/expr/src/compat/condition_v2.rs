//! Conditions in the strict v2 dialect: the grammar of the second generation's builder.
//!
//! It implements language section 3.11: its tokens, one level of comparison, escapes that
//! keep the next character, and the message that quotes the leftover tokens. Texts that the
//! reference accepts by accident (dropped characters, missing operands, unclosed quotes and
//! parentheses) are errors here (decision D3). A text that the reference refuses gets the
//! reference's message even if it also has such accidents.
//!
//! The parser keeps operators and open parentheses on a stack and does not recurse.

use crate::{BinOp, Expr, ExprId, ExprKind, Infix, Lit, LogOp, MAX_TEXT_BYTES, UnOp};

/// Parses a condition text in the strict v2 dialect.
///
/// # Errors
/// The reference's message for leftover tokens, or a message about the first accident.
pub fn parse_condition_v2(text: &str) -> Result<Expr, String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("Condition is longer than {MAX_TEXT_BYTES} bytes"));
    }
    let mut accident = None;
    let tokens = tokenize(text, &mut accident);
    let mut parser = Parser {
        tokens,
        next: 0,
        end: text.len() as u32,
        expr: Expr::default(),
        operands: Vec::new(),
        pending: Vec::new(),
        accident,
    };
    let root = parser.run();
    let rest = &parser.tokens[parser.next..];
    if !rest.is_empty() {
        let rest: Vec<String> = rest.iter().map(Token::shown).collect();
        return Err(format!(
            "Unsupported condition syntax near '{}' in: {text}\nSupported: comparisons, &&, \
             ||, !, arithmetic, member access (a.b), literals",
            rest.join(" ")
        ));
    }
    match parser.accident {
        Some(Accident { what, at }) => {
            // Positions in messages count UTF-16 units, as in `mathCalc`.
            let at = text[..at as usize].encode_utf16().count();
            Err(format!(
                "Malformed condition: {what} at character {at} in: {text}"
            ))
        }
        None => {
            parser.expr.root = root;
            Ok(parser.expr)
        }
    }
}

/// The first error that the reference would accept, and its byte offset.
struct Accident {
    what: String,
    at: u32,
}

/// Records the first accident.
fn note(accident: &mut Option<Accident>, what: impl FnOnce() -> String, at: u32) {
    if accident.is_none() {
        *accident = Some(Accident { what: what(), at });
    }
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
enum TokenKind {
    Name(Box<str>),
    Number(Box<str>),
    String(String),
    Symbol(&'static str),
}

/// A token with its place.
struct Token {
    kind: TokenKind,
    start: u32,
    end: u32,
}

impl Token {
    /// The token as quoted in the leftover message.
    fn shown(&self) -> String {
        match &self.kind {
            TokenKind::Name(text) | TokenKind::Number(text) => text.to_string(),
            TokenKind::String(value) => format!("\"{value}\""),
            TokenKind::Symbol(symbol) => (*symbol).to_owned(),
        }
    }
}

/// The symbols, longer ones first.
const SYMBOLS: &[&str] = &[
    "&&", "||", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ".", "?", ":",
    "!", "<", ">",
];

/// Splits the text into tokens; other characters are recorded as accidents and dropped.
fn tokenize(text: &str, accident: &mut Option<Accident>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = if c.is_whitespace() || c == '\u{FEFF}' {
            (None, c.len_utf8())
        } else if c.is_ascii_alphabetic() || c == '_' {
            let length = span_of(rest, |b| b.is_ascii_alphanumeric() || b == b'_');
            (Some(TokenKind::Name(rest[..length].into())), length)
        } else if c.is_ascii_digit() {
            let length = span_of(rest, |b| b.is_ascii_digit() || b == b'.');
            (Some(TokenKind::Number(rest[..length].into())), length)
        } else if c == '"' || c == '\'' {
            let (value, length, closed) = string(rest, c);
            if !closed {
                note(accident, || format!("unclosed quote {c}"), at as u32);
            }
            (Some(TokenKind::String(value)), length)
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (Some(TokenKind::Symbol(symbol)), symbol.len())
        } else {
            note(accident, || format!("unexpected '{c}'"), at as u32);
            (None, c.len_utf8())
        };
        let end = at + length;
        tokens.extend(kind.map(|kind| Token {
            kind,
            start: at as u32,
            end: end as u32,
        }));
        at = end;
    }
    tokens
}

/// The length of the prefix whose bytes satisfy `part`.
fn span_of(text: &str, part: impl Fn(u8) -> bool) -> usize {
    text.bytes()
        .position(|byte| !part(byte))
        .unwrap_or(text.len())
}

/// Parses a string at the start of `text`: its value, its length in bytes, and whether it is
/// closed. A backslash keeps the next character.
fn string(text: &str, quote: char) -> (String, usize, bool) {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return (value, at + 1, true);
        }
        if c == '\\' {
            value.extend(chars.next().map(|(_, escaped)| escaped));
        } else {
            value.push(c);
        }
    }
    (value, text.len(), false)
}

/// An operator or parenthesis on the stack.
enum PendingOperator {
    Infix(Infix, u8),
    Prefix(UnOp, u32),
    Parenthesis(u32),
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    end: u32,
    expr: Expr,
    operands: Vec<ExprId>,
    pending: Vec<PendingOperator>,
    accident: Option<Accident>,
}

impl Parser {
    /// Parses one condition; `next` is then at the first leftover token.
    fn run(&mut self) -> Option<ExprId> {
        loop {
            self.operand();
            loop {
                self.apply_prefixes();
                if let Some(op) = self.infix() {
                    self.pending.push(op);
                    break;
                }
                // Without an operator the innermost parenthesis ends, or the condition.
                self.reduce(0);
                match self.pending.pop() {
                    Some(PendingOperator::Parenthesis(at)) => self.close(at),
                    _ => return self.operands.pop(),
                }
            }
        }
    }

    fn symbol(&self) -> Option<&'static str> {
        match self.tokens.get(self.next)?.kind {
            TokenKind::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// Parses prefix operators, opening parentheses and one operand.
    fn operand(&mut self) {
        loop {
            let Some(token) = self.tokens.get(self.next) else {
                let end = self.end;
                note(&mut self.accident, || "missing operand".into(), end);
                return self.literal(Lit::Null, end, end);
            };
            let (start, end) = (token.start, token.end);
            let waiting = match &token.kind {
                TokenKind::Symbol("(") => PendingOperator::Parenthesis(start),
                TokenKind::Symbol("!") => PendingOperator::Prefix(UnOp::Not, start),
                TokenKind::Symbol("-") => PendingOperator::Prefix(UnOp::Neg, start),
                _ => return self.primary(start, end),
            };
            self.pending.push(waiting);
            self.next += 1;
        }
    }

    fn literal(&mut self, value: Lit, start: u32, end: u32) {
        let id = self.expr.push(ExprKind::Literal(value), start..end);
        self.operands.push(id);
    }

    /// Parses a literal, or a name with its members.
    fn primary(&mut self, start: u32, end: u32) {
        let kind = self.tokens[self.next].kind.clone();
        self.next += 1;
        match kind {
            TokenKind::String(value) => self.literal(Lit::String(value.into_bytes()), start, end),
            TokenKind::Number(digits) => {
                // `parseFloat` stops at the second dot.
                let used = digits
                    .match_indices('.')
                    .nth(1)
                    .map_or(digits.len(), |(at, _)| at);
                if used < digits.len() {
                    note(
                        &mut self.accident,
                        || format!("'{digits}' is not a number"),
                        start,
                    );
                }
                let value = digits[..used].parse().unwrap_or(f64::NAN);
                self.literal(Lit::Number(value), start, end);
            }
            TokenKind::Name(name) => match &*name {
                "true" => self.literal(Lit::Bool(true), start, end),
                "false" => self.literal(Lit::Bool(false), start, end),
                "null" => self.literal(Lit::Null, start, end),
                _ => {
                    let id = self.expr.push(ExprKind::Ident(name), start..end);
                    let id = self.members(id, start);
                    self.operands.push(id);
                }
            },
            TokenKind::Symbol(symbol) => {
                // The reference treats any other token as the literal null.
                note(
                    &mut self.accident,
                    || format!("missing operand before '{symbol}'"),
                    start,
                );
                self.literal(Lit::Null, start, end);
            }
        }
    }

    /// Parses repeated `.name`.
    fn members(&mut self, mut object: ExprId, start: u32) -> ExprId {
        while self.symbol() == Some(".") {
            let dot = self.tokens[self.next].start;
            self.next += 1;
            let token = self.tokens.get(self.next);
            self.next += usize::from(token.is_some());
            let (property, end) = match token {
                Some(Token {
                    kind: TokenKind::Name(text) | TokenKind::Number(text),
                    end,
                    ..
                }) => (text.clone(), *end),
                other => {
                    let end = other.map_or(self.end, |token| token.end);
                    note(
                        &mut self.accident,
                        || "missing member name after '.'".into(),
                        dot,
                    );
                    ("".into(), end)
                }
            };
            let member = ExprKind::Member {
                object,
                property,
                optional: false,
            };
            object = self.expr.push(member, start..end);
        }
        object
    }

    /// Applies the prefix operators directly before the last operand.
    fn apply_prefixes(&mut self) {
        while let Some(PendingOperator::Prefix(op, start)) = self.pending.last() {
            let (op, start) = (*op, *start);
            self.pending.pop();
            let Some(arg) = self.operands.pop() else {
                return;
            };
            let end = self.expr.node(arg).span.end;
            let id = self.expr.push(ExprKind::Unary { op, arg }, start..end);
            self.operands.push(id);
        }
    }

    /// Parses an infix operator, after reducing operators that bind at least as tightly.
    fn infix(&mut self) -> Option<PendingOperator> {
        let (op, level) = match self.symbol()? {
            "||" => (Infix::Logical(LogOp::Or), 1),
            "&&" => (Infix::Logical(LogOp::And), 2),
            // One level for all comparisons, unlike the superset grammar.
            "==" => (Infix::Binary(BinOp::Eq), 3),
            "!=" => (Infix::Binary(BinOp::Ne), 3),
            ">" => (Infix::Binary(BinOp::Gt), 3),
            "<" => (Infix::Binary(BinOp::Lt), 3),
            ">=" => (Infix::Binary(BinOp::Ge), 3),
            "<=" => (Infix::Binary(BinOp::Le), 3),
            "+" => (Infix::Binary(BinOp::Add), 4),
            "-" => (Infix::Binary(BinOp::Sub), 4),
            "*" => (Infix::Binary(BinOp::Mul), 5),
            "/" => (Infix::Binary(BinOp::Div), 5),
            "%" => (Infix::Binary(BinOp::Rem), 5),
            _ => return None,
        };
        self.next += 1;
        self.reduce(level);
        Some(PendingOperator::Infix(op, level))
    }

    /// Reduces while the operator on top binds at least as tightly as `level`.
    fn reduce(&mut self, level: u8) {
        while let Some(PendingOperator::Infix(op, top)) = self.pending.last() {
            let op = *op;
            if *top < level {
                return;
            }
            self.pending.pop();
            let (Some(right), Some(left)) = (self.operands.pop(), self.operands.pop()) else {
                return;
            };
            let id = self.expr.push_infix(op, left, right);
            self.operands.push(id);
        }
    }

    /// Closes the parenthesis that began at byte `at`.
    fn close(&mut self, at: u32) {
        if self.symbol() == Some(")") {
            self.next += 1;
        } else {
            note(&mut self.accident, || "unclosed '('".into(), at);
        }
    }
}
