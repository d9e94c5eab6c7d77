//! Parser of condition strings and `mathCalc` texts (decisions D2 to D4, language section
//! 3.10); its result is expression nodes as JSON.
//!
//! One parser serves both: `mathCalc` keeps the messages of v1 and refuses v1's refused forms
//! at evaluation; conditions accept the superset and refuse all else at once.

mod literals;

use a99_core::builtins;
use a99_core::value::{Map, Value};

/// Parse error; conditions use only its presence.
pub(super) type Complaint = String;

/// Parses a condition; `None` for blank text.
pub(super) fn parse_condition(text: &str) -> Result<Option<Value>, Complaint> {
    Reader::new(text, false).whole()
}

/// Parses an expression text, or a condition or formula of version 4 (decisions D70, D71);
/// `None` for blank text.
pub(super) fn parse_expression(text: &str) -> Result<Option<Value>, Complaint> {
    let mut reader = Reader::new(text, false);
    reader.literals = true;
    reader.whole()
}

/// Parses a `mathCalc` text; `None` for blank text.
pub(super) fn parse_calc(text: &str) -> Result<Option<Value>, Complaint> {
    Reader::new(text, true).whole()
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    calc: bool,
    /// True if object and template literals are allowed.
    literals: bool,
}

/// Binary operators with their precedence; `**` alone is right-associative.
const BINARY: [(&str, u8); 31] = [
    ("||", 1),
    ("??", 1),
    ("and", 1),
    ("or", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("==", 6),
    ("!=", 6),
    ("===", 6),
    ("!==", 6),
    ("eq", 6),
    ("neq", 6),
    ("<", 7),
    (">", 7),
    ("<=", 7),
    (">=", 7),
    ("gt", 7),
    ("lt", 7),
    ("ge", 7),
    ("le", 7),
    ("<<", 8),
    (">>", 8),
    (">>>", 8),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
    ("**", 11),
];

fn node<const N: usize>(tag: &str, members: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    map.insert("$expr", text(tag));
    for (key, value) in members {
        map.insert(key, value);
    }
    Value::Object(map)
}

fn text(s: &str) -> Value {
    Value::String(s.into())
}

fn literal(value: Value) -> Value {
    node("literal", [("value", value)])
}

fn refused(why: &str) -> Value {
    node("refused", [("why", text(why))])
}

/// The character of an escape.
fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        other => other,
    }
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '$' || c as u32 >= 128
}

fn in_name(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit()
}

impl Reader {
    fn new(source: &str, calc: bool) -> Reader {
        Reader {
            chars: source.chars().collect(),
            at: 0,
            calc,
            literals: false,
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn fail<T>(&self, why: impl std::fmt::Display) -> Result<T, Complaint> {
        Err(format!("{why} at character {}", self.at))
    }

    fn unexpected<T>(&self) -> Result<T, Complaint> {
        let c = self.peek().map(String::from).unwrap_or_default();
        self.fail(format_args!("Unexpected \"{c}\""))
    }

    fn whole(mut self) -> Result<Option<Value>, Complaint> {
        let blank = self
            .chars
            .iter()
            .all(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
        let mut nodes = self.expressions(None)?;
        match nodes.len() {
            1 => Ok(nodes.pop()),
            0 if blank || !self.calc => Ok(None),
            _ if self.calc => Ok(Some(refused("Unknown node type: Compound"))),
            _ => self.fail("more than one expression"),
        }
    }

    /// Expressions up to `until` or the end.
    fn expressions(&mut self, until: Option<char>) -> Result<Vec<Value>, Complaint> {
        let mut nodes = Vec::new();
        while self.at < self.chars.len() {
            if self.calc && matches!(self.peek(), Some(';' | ',')) {
                self.at += 1;
            } else if let Some(node) = self.expression()? {
                nodes.push(node);
            } else if self.at < self.chars.len() {
                if self.peek() == until {
                    break;
                }
                return self.unexpected();
            }
        }
        Ok(nodes)
    }

    fn expression(&mut self) -> Result<Option<Value>, Complaint> {
        let Some(test) = self.binary(0)? else {
            return Ok(None);
        };
        self.space();
        if self.peek() != Some('?') {
            return Ok(Some(test));
        }
        self.at += 1;
        let Some(consequent) = self.expression()? else {
            return self.fail("Expected expression");
        };
        self.space();
        if self.peek() != Some(':') {
            return self.fail("Expected :");
        }
        self.at += 1;
        let Some(alternate) = self.expression()? else {
            return self.fail("Expected expression");
        };
        if self.calc {
            return Ok(Some(refused("Unknown node type: ConditionalExpression")));
        }
        let parts = [
            ("test", test),
            ("consequent", consequent),
            ("alternate", alternate),
        ];
        Ok(Some(node("conditional", parts)))
    }

    /// The longest binary operator here.
    fn operator(&mut self) -> Option<(&'static str, u8)> {
        self.space();
        let here = &self.chars[self.at..];
        let fits = |op: &&(&'static str, u8)| {
            let letters: Vec<char> = op.0.chars().collect();
            here.starts_with(&letters)
                && (!starts_name(letters[0])
                    || here.get(letters.len()).is_some_and(|c| !in_name(*c)))
        };
        BINARY
            .iter()
            .filter(fits)
            .max_by_key(|op| op.0.len())
            .copied()
    }

    fn binary(&mut self, least: u8) -> Result<Option<Value>, Complaint> {
        let Some(mut left) = self.token()? else {
            return Ok(None);
        };
        loop {
            let start = self.at;
            let Some((op, precedence)) = self.operator() else {
                return Ok(Some(left));
            };
            if precedence < least {
                self.at = start;
                return Ok(Some(left));
            }
            self.at += op.len();
            let next = if op == "**" {
                precedence
            } else {
                precedence + 1
            };
            let Some(right) = self.binary(next)? else {
                return self.fail(format_args!("Expected expression after {op}"));
            };
            left = self.combine(op, left, right)?;
        }
    }

    fn combine(&mut self, op: &str, left: Value, right: Value) -> Result<Value, Complaint> {
        let op = match op {
            "and" => "&&",
            "or" => "||",
            "eq" => "==",
            "neq" => "!=",
            "gt" => ">",
            "lt" => "<",
            "ge" => ">=",
            "le" => "<=",
            other => other,
        };
        if !self.calc && matches!(op, "|" | "^" | "&" | "<<" | ">>" | ">>>") {
            return self.fail(format_args!("{op} is not supported"));
        }
        let logical = matches!(op, "&&" | "||") || (op == "??" && !self.calc);
        let tag = if logical { "logical" } else { "binary" };
        Ok(node(
            tag,
            [("op", text(op)), ("left", left), ("right", right)],
        ))
    }

    fn token(&mut self) -> Result<Option<Value>, Complaint> {
        self.space();
        let Some(c) = self.peek() else {
            return Ok(None);
        };
        let value = match c {
            '0'..='9' | '.' => return self.number().map(Some),
            '"' | '\'' => self.string(c)?,
            '[' => {
                self.at += 1;
                let items = self.arguments(']')?;
                node("array", [("elements", Value::Array(items))])
            }
            '{' if self.literals => self.object()?,
            '`' if self.literals => self.template()?,
            '-' | '!' | '~' | '+' => return self.prefix(c).map(Some),
            '(' => match self.group()? {
                Some(value) => value,
                None => return Ok(None),
            },
            c if starts_name(c) => {
                let start = self.at;
                let name = self.name()?;
                match name.as_str() {
                    "true" => literal(Value::Bool(true)),
                    "false" => literal(Value::Bool(false)),
                    "null" => literal(Value::Null),
                    "this" if self.calc => refused("Unknown node type: ThisExpression"),
                    "typeof" if !self.calc => return self.typeof_(),
                    word if !self.calc && RESERVED.contains(&word) => {
                        self.at = start;
                        return self.fail(format_args!("{word} is not supported"));
                    }
                    _ => node("ident", [("name", text(&name))]),
                }
            }
            _ => return Ok(None),
        };
        self.properties(value).map(Some)
    }

    fn typeof_(&mut self) -> Result<Option<Value>, Complaint> {
        match self.token()? {
            Some(argument) => Ok(Some(node(
                "unary",
                [("op", text("typeof")), ("argument", argument)],
            ))),
            None => self.fail("Expected expression after typeof"),
        }
    }

    fn prefix(&mut self, c: char) -> Result<Value, Complaint> {
        self.at += 1;
        let Some(argument) = self.token()? else {
            return self.fail("missing unaryOp argument");
        };
        if c == '~' && !self.calc {
            return self.fail("~ is not supported");
        }
        Ok(node(
            "unary",
            [("op", text(&c.to_string())), ("argument", argument)],
        ))
    }

    fn group(&mut self) -> Result<Option<Value>, Complaint> {
        self.at += 1;
        let mut nodes = self.expressions(Some(')'))?;
        if self.peek() != Some(')') {
            return self.fail("Unclosed (");
        }
        self.at += 1;
        match nodes.len() {
            1 => Ok(nodes.pop()),
            0 => Ok(None),
            _ if self.calc => Ok(Some(refused("Unknown node type: SequenceExpression"))),
            _ => self.fail("more than one expression"),
        }
    }

    fn name(&mut self) -> Result<String, Complaint> {
        let start = self.at;
        match self.peek() {
            Some(c) if starts_name(c) => {}
            other => {
                let c = other.map(String::from).unwrap_or_default();
                return self.fail(format_args!("Unexpected {c}"));
            }
        }
        while self.peek().is_some_and(in_name) {
            self.at += 1;
        }
        Ok(self.chars[start..self.at].iter().collect())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Value, Complaint> {
        let start = self.at;
        self.digits();
        if self.peek() == Some('.') {
            self.at += 1;
            self.digits();
        }
        let so_far = |r: &Reader| r.chars[start..r.at].iter().collect::<String>();
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            let before = self.at;
            self.digits();
            if self.at == before {
                let c = self.peek().map(String::from).unwrap_or_default();
                return self.fail(format_args!("Expected exponent ({}{c})", so_far(self)));
            }
        }
        let number = so_far(self);
        match self.peek() {
            Some(c) if starts_name(c) => self.fail(format_args!(
                "Variable names cannot start with a number ({number}{c})"
            )),
            next if next == Some('.') || number == "." => self.fail("Unexpected period"),
            _ => Ok(literal(Value::Number(a99_ecma::number_parse::parse_float(
                number.as_bytes(),
            )))),
        }
    }

    fn string(&mut self, quote: char) -> Result<Value, Complaint> {
        self.at += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                c if c == quote => return Ok(literal(text(&out))),
                '\\' => {
                    let Some(escaped) = self.peek() else { break };
                    self.at += 1;
                    out.push(unescaped(escaped));
                }
                c => out.push(c),
            }
        }
        self.fail(format_args!("Unclosed quote after \"{out}\""))
    }

    /// Members, indices and calls after an operand.
    fn properties(&mut self, mut value: Value) -> Result<Value, Complaint> {
        loop {
            self.space();
            let mut optional = false;
            match self.peek() {
                Some('.' | '[' | '(') => {}
                Some('?') if self.chars.get(self.at + 1) == Some(&'.') => {
                    optional = true;
                    self.at += 2;
                    self.space();
                }
                _ => return Ok(value),
            }
            value = match self.peek() {
                Some('[') => {
                    self.at += 1;
                    let Some(index) = self.expression()? else {
                        return self.unexpected();
                    };
                    self.space();
                    if self.peek() != Some(']') {
                        return self.fail("Unclosed [");
                    }
                    self.at += 1;
                    let parts = [
                        ("object", value),
                        ("property", index),
                        ("computed", Value::Bool(true)),
                        ("optional", Value::Bool(optional)),
                    ];
                    node("member", parts)
                }
                Some('(') => {
                    self.at += 1;
                    let arguments = self.arguments(')')?;
                    self.called(value, arguments, optional)?
                }
                _ => {
                    if !optional {
                        self.at += 1;
                    }
                    self.space();
                    let name = self.name()?;
                    let parts = [
                        ("object", value),
                        ("property", text(&name)),
                        ("optional", Value::Bool(optional)),
                    ];
                    node("member", parts)
                }
            };
        }
    }

    /// A call: conditions allow only the closed set, by name.
    fn called(
        &mut self,
        callee: Value,
        arguments: Vec<Value>,
        optional: bool,
    ) -> Result<Value, Complaint> {
        if self.calc {
            return Ok(refused("Function calls not supported in expressions"));
        }
        let arguments = Value::Array(arguments);
        let part = |key: &str| callee.get(key).cloned().unwrap_or(Value::Undefined);
        let tag = part("$expr");
        if tag.as_str() == Some("ident") && !optional {
            let name = part("name");
            if self.literals && name.as_str() == Some("context") {
                return match arguments.as_array() {
                    Some([path])
                        if path.get("$expr").and_then(Value::as_str) == Some("literal") =>
                    {
                        match path.get("value") {
                            Some(path @ Value::String(_)) => {
                                Ok(node("context", [("path", path.clone())]))
                            }
                            _ => self.fail("a path is a text"),
                        }
                    }
                    _ => self.fail("a path is a text"),
                };
            }
            return match builtins::function("", name.as_str().unwrap_or_default()) {
                Some(_) => Ok(node("call", [("callee", name), ("arguments", arguments)])),
                None => self.fail("unknown function"),
            };
        }
        let method = part("property");
        let name = method.as_str().unwrap_or_default();
        let known = builtins::method(name).is_some() || builtins::is_static_member(name);
        if tag.as_str() != Some("member") || !known || optional {
            return self.fail("this cannot be called");
        }
        let parts = [
            ("object", part("object")),
            ("method", method.clone()),
            ("arguments", arguments),
            ("optional", part("optional")),
        ];
        Ok(node("methodCall", parts))
    }

    /// Expressions between commas up to a closing bracket.
    fn arguments(&mut self, close: char) -> Result<Vec<Value>, Complaint> {
        let mut items = Vec::new();
        let mut commas = 0;
        while self.at < self.chars.len() {
            self.space();
            match self.peek() {
                Some(c) if c == close => {
                    self.at += 1;
                    if commas > 0 && commas >= items.len() && (close == ')' || !self.calc) {
                        return self.fail(format_args!("Unexpected token {close}"));
                    }
                    return Ok(items);
                }
                Some(',') => {
                    self.at += 1;
                    commas += 1;
                    if commas != items.len() {
                        if close == ')' || !self.calc {
                            return self.fail("Unexpected token ,");
                        }
                        while items.len() < commas {
                            items.push(refused("null is not an object (evaluating 'node.type')"));
                        }
                    }
                }
                _ if items.len() != commas && (commas != 0 || !self.calc && !items.is_empty()) => {
                    return self.fail("Expected comma");
                }
                _ => match self.expression()? {
                    Some(item) => items.push(item),
                    None => return self.fail("Expected comma"),
                },
            }
        }
        self.fail(format_args!("Expected {close}"))
    }
}

/// Words of other languages that would read as names.
const RESERVED: [&str; 12] = [
    "this",
    "new",
    "delete",
    "void",
    "in",
    "instanceof",
    "function",
    "return",
    "let",
    "const",
    "var",
    "await",
];
