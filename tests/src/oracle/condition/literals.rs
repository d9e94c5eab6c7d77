//! Object and template literals of expression texts (decision D70).

use super::{Complaint, RESERVED, Reader, literal, node, text, unescaped};
use a99_core::value::{Map, Value};

fn property(key: Value, value: Value) -> Value {
    let members = [("key", key), ("value", value)];
    let mut map = Map::new();
    for (name, value) in members {
        map.insert(name, value);
    }
    Value::Object(map)
}

impl Reader {
    /// `{key: value, name}`.
    pub(super) fn object(&mut self) -> Result<Value, Complaint> {
        self.at += 1;
        let mut properties = Vec::new();
        loop {
            self.space();
            let key = match self.peek() {
                Some('}') => break,
                Some(quote @ ('"' | '\'')) => self.string(quote)?.get("value").cloned(),
                Some('[') => {
                    self.at += 1;
                    let key = self.expression()?;
                    self.space();
                    if key.is_none() || self.peek() != Some(']') {
                        return self.fail("Expected `key: value`");
                    }
                    self.at += 1;
                    key
                }
                _ => {
                    let name = self.name()?;
                    self.space();
                    if self.peek() != Some(':') {
                        let word = name.as_str();
                        let taken = ["true", "false", "null", "typeof"].contains(&word);
                        if taken || RESERVED.contains(&word) {
                            return self.fail("Expected :");
                        }
                        let value = node("ident", [("name", text(&name))]);
                        properties.push(property(text(&name), value));
                        if !self.comma()? {
                            break;
                        }
                        continue;
                    }
                    Some(text(&name))
                }
            };
            self.space();
            if self.peek() != Some(':') {
                return self.fail("Expected :");
            }
            self.at += 1;
            let Some(value) = self.expression()? else {
                return self.fail("Expected expression");
            };
            properties.push(property(key.unwrap_or(Value::Null), value));
            if !self.comma()? {
                break;
            }
        }
        self.at += 1;
        Ok(node("object", [("properties", Value::Array(properties))]))
    }

    /// True if another entry of an object may follow.
    fn comma(&mut self) -> Result<bool, Complaint> {
        self.space();
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(true)
            }
            Some('}') => Ok(false),
            _ => self.fail("Expected }"),
        }
    }

    /// A template: its parts joined by `+`, starting with a text.
    pub(super) fn template(&mut self) -> Result<Value, Complaint> {
        self.at += 1;
        let mut parts: Vec<Value> = Vec::new();
        let mut chunk = String::new();
        loop {
            let Some(c) = self.peek() else {
                return self.fail("Unclosed `");
            };
            self.at += 1;
            let ends = c == '`' || c == '$' && self.peek() == Some('{');
            if ends && !chunk.is_empty() {
                parts.push(literal(text(&std::mem::take(&mut chunk))));
            }
            match c {
                '`' => break,
                '$' if ends => {
                    self.at += 1;
                    let Some(value) = self.expression()? else {
                        return self.fail("Expected expression");
                    };
                    self.space();
                    if self.peek() != Some('}') {
                        return self.fail("Expected }");
                    }
                    self.at += 1;
                    parts.push(value);
                }
                '\\' => {
                    let Some(escaped) = self.peek() else {
                        return self.fail("Unclosed `");
                    };
                    self.at += 1;
                    chunk.push(unescaped(escaped));
                }
                c => chunk.push(c),
            }
        }
        let is_text = |part: &Value| {
            part.get("$expr").and_then(Value::as_str) == Some("literal")
                && part.get("value").is_some_and(|v| v.as_text().is_some())
        };
        let mut parts = parts.into_iter().peekable();
        let first = parts.next_if(is_text);
        let first = first.unwrap_or_else(|| literal(text("")));
        parts.try_fold(first, |left, right| self.combine("+", left, right))
    }
}
