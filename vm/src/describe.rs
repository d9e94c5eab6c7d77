//! Short descriptions of values for messages.

use a99_core::value::Value;

/// Maximum characters of a text in a message.
const SHOWN_CHARS: usize = 40;

/// A text in quotes, shortened.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// A short description of a value.
#[must_use]
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Undefined | Value::Null => value.kind().to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(_) => format!("the number {}", number_text(value)),
        Value::String(text) => match text.to_str() {
            Some(text) => format!("the string {}", quoted(text)),
            None => format!("the ill-formed string {}", quoted(&text.to_string_lossy())),
        },
        Value::Array(items) => match items.len() {
            0 => "an empty array".to_owned(),
            1 => "an array of 1 element".to_owned(),
            n => format!("an array of {n} elements"),
        },
        Value::Object(_) => "an object".to_owned(),
    }
}

fn number_text(value: &Value) -> String {
    match value {
        Value::Number(n) if !n.is_finite() => n.to_string(),
        other => other.to_json_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened() {
        let text = describe(&Value::from("x".repeat(1000)));
        assert_eq!(text, format!("the string \"{}…\"", "x".repeat(SHOWN_CHARS)));
    }
}
