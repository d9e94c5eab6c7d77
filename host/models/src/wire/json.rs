//! JSON of the wire formats: parsing within limits, and access to members.

use super::{AiError, malformed};
use a99_core::json::{Document, Limits};
use a99_core::value::{Map, Value};

/// Maximum nesting levels.
const MAX_DEPTH: u32 = 512;

/// Maximum values and keys of one JSON text.
const MAX_NODES: u32 = 1 << 20;

/// Parses JSON within the limits.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let limits = Limits {
        max_bytes: text.len(),
        max_depth: MAX_DEPTH,
        max_nodes: MAX_NODES,
    };
    let document = Document::parse_data(text, &limits).ok()?;
    Some(document.to_value(document.root()))
}

/// The JSON objects of an event's data. There are several if a service ends events with one
/// line break, and none in other data such as a keep-alive.
pub(super) fn objects(text: &str) -> Result<Vec<Value>, AiError> {
    let text = text.trim();
    if !text.starts_with('{') {
        return Ok(Vec::new());
    }
    if let Some(value) = parse(text) {
        return Ok(vec![value]);
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let values: Option<Vec<Value>> = lines.map(parse).collect();
    let objects = values.filter(|all| all.iter().all(|value| value.as_object().is_some()));
    objects.ok_or_else(|| malformed("an event is not JSON"))
}

/// A text; a lone surrogate becomes U+FFFD.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    let text = value.as_text()?;
    Some(text.to_string_lossy().into_owned())
}

/// The text of a member; empty if it is absent or null.
pub(super) fn text(of: &Value, key: &str) -> Result<String, AiError> {
    match of.get(key) {
        None | Some(Value::Null | Value::Undefined) => Ok(String::new()),
        Some(value) => text_of(value).ok_or_else(|| malformed(&format!("`{key}` is no text"))),
    }
}

/// A number of tokens or an index, if valid.
pub(super) fn count(of: &Value, key: &str) -> Option<u64> {
    count_of(of.get(key)?)
}

/// An index, which some services send as text.
pub(super) fn index(of: &Value) -> Option<u64> {
    let index = of.get("index")?;
    count_of(index).or_else(|| index.as_str()?.trim().parse().ok())
}

fn count_of(value: &Value) -> Option<u64> {
    /// The largest number up to which doubles represent every integer.
    const MAX: f64 = 9_007_199_254_740_992.0;
    let number = value.as_f64()?;
    (number.fract() == 0.0 && (0.0..=MAX).contains(&number)).then_some(number as u64)
}

/// The items of a member; empty if it is absent or null.
pub(super) fn items<'v>(of: &'v Value, key: &str) -> Result<&'v [Value], AiError> {
    match of.get(key) {
        None | Some(Value::Null | Value::Undefined) => Ok(&[]),
        Some(value) => match value.as_array() {
            Some(items) => Ok(items),
            None => Err(malformed(&format!("`{key}` is no list"))),
        },
    }
}

/// An object of these members.
pub(crate) fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::with_capacity(N);
    for (key, value) in members {
        map.insert(key, value);
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b5_of_repeated_keys_in_events_the_last_counts() {
        let event = r#"{"choices":[],"usage":{"prompt_tokens":1,"prompt_tokens":7},"choices":[1]}"#;
        let read = objects(event).unwrap();
        let expected = r#"{"choices":[1],"usage":{"prompt_tokens":7}}"#;
        assert_eq!(read[0].to_json_string(), expected);
    }
}
