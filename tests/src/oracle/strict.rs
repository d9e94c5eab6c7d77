//! Condition grammar of the v2 builder (language section 3.11); inputs that it accepted by
//! accident are errors.

use a99_core::value::{Map, Value};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Number(f64, String),
    Word(String),
    Mark(&'static str),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Text(s) => format!("\"{s}\""),
            Token::Number(_, s) | Token::Word(s) => s.clone(),
            Token::Mark(m) => (*m).to_owned(),
        }
    }
}

const MARKS: [&str; 21] = [
    "&&", "||", "==", "!=", ">=", "<=", ">", "<", "!", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    ".", "?", ":",
];

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    accident: Option<String>,
}

/// Parses a condition into the expression node that the builder yields.
///
/// # Errors
/// The builder's error about leftover text, or the description of an input that it would have
/// accepted by accident.
pub fn parse(source: &str) -> Result<Value, String> {
    let mut parser = Parser {
        source,
        tokens: Vec::new(),
        at: 0,
        accident: None,
    };
    parser.scan();
    let node = parser.level(0);
    if parser.at < parser.tokens.len() {
        let rest: Vec<String> = parser.tokens[parser.at..]
            .iter()
            .map(Token::shown)
            .collect();
        return Err(format!(
            "Unsupported condition syntax near '{}' in: {}\nSupported: comparisons, &&, ||, !, \
             arithmetic, member access (a.b), literals",
            rest.join(" "),
            parser.source
        ));
    }
    match parser.accident {
        Some(why) => Err(why),
        None => Ok(node),
    }
}

fn node<const N: usize>(tag: &str, members: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    map.insert("$expr", Value::String(tag.into()));
    for (key, value) in members {
        map.insert(key, value);
    }
    Value::Object(map)
}

const LEVELS: [&[&str]; 5] = [
    &["||"],
    &["&&"],
    &["==", "!=", ">", "<", ">=", "<="],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser<'_> {
    fn blame(&mut self, why: impl Into<String>) {
        self.accident.get_or_insert_with(|| why.into());
    }

    fn scan(&mut self) {
        let chars: Vec<char> = self.source.chars().collect();
        let mut i = 0;
        while i < chars.len() {
            let c = chars[i];
            if c.is_whitespace() || c == '\u{feff}' {
                i += 1;
            } else if c == '"' || c == '\'' {
                i = self.quoted(&chars, i);
            } else if c.is_ascii_digit() {
                let start = i;
                while i < chars.len() && (chars[i].is_ascii_digit() || chars[i] == '.') {
                    i += 1;
                }
                let text: String = chars[start..i].iter().collect();
                if text.matches('.').count() > 1 {
                    self.blame("a number with two periods");
                }
                let n = a99_ecma::number_parse::parse_float(text.as_bytes());
                self.tokens
                    .push(Token::Number(n, a99_ecma::number_text::number_to_string(n)));
            } else if c.is_ascii_alphabetic() || c == '_' {
                let start = i;
                while i < chars.len() && (chars[i].is_ascii_alphanumeric() || chars[i] == '_') {
                    i += 1;
                }
                self.tokens
                    .push(Token::Word(chars[start..i].iter().collect()));
            } else {
                let rest: String = chars[i..].iter().take(2).collect();
                match MARKS.iter().find(|m| rest.starts_with(**m)) {
                    Some(mark) => {
                        self.tokens.push(Token::Mark(mark));
                        i += mark.len();
                    }
                    None => {
                        self.blame(format!("the character '{c}' means nothing here"));
                        i += 1;
                    }
                }
            }
        }
    }

    fn quoted(&mut self, chars: &[char], start: usize) -> usize {
        let mut i = start + 1;
        let mut out = String::new();
        while i < chars.len() && chars[i] != chars[start] {
            if chars[i] == '\\' {
                i += 1;
            }
            if let Some(c) = chars.get(i) {
                out.push(*c);
            }
            i += 1;
        }
        if i >= chars.len() {
            self.blame("a quote is not closed");
        }
        self.tokens.push(Token::Text(out));
        i + 1
    }

    fn mark(&self) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Mark(m)) => Some(m),
            _ => None,
        }
    }

    fn level(&mut self, depth: usize) -> Value {
        let Some(ops) = LEVELS.get(depth) else {
            return self.unary();
        };
        let mut left = self.level(depth + 1);
        while let Some(op) = self.mark().filter(|m| ops.contains(m)) {
            self.at += 1;
            let right = self.level(depth + 1);
            let tag = if depth < 2 { "logical" } else { "binary" };
            left = node(
                tag,
                [
                    ("op", Value::String(op.into())),
                    ("left", left),
                    ("right", right),
                ],
            );
        }
        left
    }

    fn unary(&mut self) -> Value {
        match self.mark() {
            Some(op @ ("!" | "-")) => {
                self.at += 1;
                let argument = self.unary();
                node(
                    "unary",
                    [("op", Value::String(op.into())), ("argument", argument)],
                )
            }
            _ => self.primary(),
        }
    }

    fn primary(&mut self) -> Value {
        let literal = |value| node("literal", [("value", value)]);
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        match token {
            Some(Token::Mark("(")) => {
                let inner = self.level(0);
                match self.mark() {
                    Some(")") => self.at += 1,
                    _ => self.blame("a parenthesis is not closed"),
                }
                inner
            }
            Some(Token::Text(s)) => literal(Value::String(s.into())),
            Some(Token::Number(n, _)) => literal(Value::Number(n)),
            Some(Token::Word(w)) => match w.as_str() {
                "true" => literal(Value::Bool(true)),
                "false" => literal(Value::Bool(false)),
                "null" => literal(Value::Null),
                _ => self.members(node("ident", [("name", Value::String(w.into()))])),
            },
            _ => {
                self.blame("an operand is missing");
                literal(Value::Null)
            }
        }
    }

    fn members(&mut self, mut object: Value) -> Value {
        while self.mark() == Some(".") {
            self.at += 1;
            let name = match self.tokens.get(self.at) {
                Some(Token::Word(w)) => w.clone(),
                // The grammar accepts any token that spells a name; punctuation does not.
                Some(Token::Number(_, text)) => text.clone(),
                Some(other) => {
                    let shown = other.shown();
                    self.blame("a member name is missing");
                    shown
                }
                None => {
                    self.blame("a member name is missing");
                    String::new()
                }
            };
            self.at = (self.at + 1).min(self.tokens.len());
            object = node(
                "member",
                [("object", object), ("property", Value::String(name.into()))],
            );
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn accidents_are_errors() {
        for text in [
            "", "a +", "a === b", "(a", "'x", "a.", "1.2.3", "$x", "()", "!", "a++",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        // One level of comparisons, left to right.
        let shown = parse("a == b < c").expect("a condition").to_json_string();
        assert!(
            shown.starts_with(r#"{"$expr":"binary","op":"<","left":{"$expr":"binary","op":"==""#)
        );
    }
}
