//! Text answers for programs: complete, and in the requested form.

use super::{AiCode, AiError, AiProvider, Format, Message, StopReason, TextRequest, TextResult};
use a99_core::json::{Document, Limits};
use a99_core::schema::{Schema, Unmetered, check};
use a99_core::value::Value;

/// Most repair requests for an answer without the requested form.
const REPAIRS: u32 = 2;

/// The error code of an incomplete answer; `None` if it is complete.
fn incomplete(reason: &StopReason) -> Option<(AiCode, String)> {
    let (code, why) = match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse => return None,
        StopReason::MaxTokens => (AiCode::Length, "it has as many tokens as it may"),
        StopReason::Refusal => (AiCode::Refusal, "the model refuses to answer"),
        StopReason::ContentFilter => (AiCode::ContentFilter, "a content filter stopped it"),
        StopReason::Other(word) if word == "pause_turn" => {
            (AiCode::Paused, "the model paused in the middle of its turn")
        }
        StopReason::Other(word) => {
            let why = format!(
                "it ended for the reason `{}`",
                a99_core::diag::excerpt(word)
            );
            return Some((AiCode::Incomplete, why));
        }
    };
    Some((code, why.to_owned()))
}

/// The answer if it is complete.
///
/// # Errors
/// A code for each cause; the error carries the partial answer.
pub(super) fn whole(result: TextResult) -> Result<TextResult, AiError> {
    match result.stop_reason.as_ref().and_then(incomplete) {
        None => Ok(result),
        Some((code, why)) => {
            let text = format!("the model's answer is not complete: {why}");
            Err(AiError::new(code, text).with_partial(result))
        }
    }
}

/// Explains with a place why an answer does not have the requested form. An answer with tool
/// calls is not checked.
fn misfit(format: &Format, result: &TextResult) -> Option<String> {
    let text = &result.text;
    let schema = match format {
        _ if !result.tool_uses.is_empty() => return None,
        Format::Text => return None,
        Format::Json => None,
        Format::Schema { schema, .. } => Some(schema),
    };
    let limits = Limits {
        max_bytes: text.len(),
        ..Limits::default()
    };
    let value = match Document::parse_data(text.trim(), &limits) {
        Ok(document) => document.to_value(document.root()),
        Err(_) => return Some("it is no JSON".to_owned()),
    };
    let Some(schema) = schema else {
        let is_object = value.as_object().is_some();
        return (!is_object).then(|| "it is no JSON object".to_owned());
    };
    let Ok(checked) = check(&value, &Schema::parse(schema), &mut Unmetered, true);
    let unknown = || unknown_member(&value, schema, "");
    checked
        .err()
        .map(|error| error.to_string())
        .or_else(unknown)
}

/// The first member that a schema with `additionalProperties: false` does not declare; `at` is
/// the path of the value, keys and indices joined by dots.
fn unknown_member(value: &Value, schema: &Value, at: &str) -> Option<String> {
    /// Deepest level that is checked.
    const MAX_DEPTH: usize = 64;
    if at.matches('.').count() > MAX_DEPTH {
        return None;
    }
    let below = |key: &str, value: &Value, schema: &Value| {
        let at = match at {
            "" => key.to_owned(),
            at => format!("{at}.{key}"),
        };
        unknown_member(value, schema, &at)
    };
    match value {
        Value::Object(members) => {
            let known = schema.get("properties");
            let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
            members.iter().find_map(|(key, value)| {
                let key = key.to_string_lossy();
                match known.and_then(|known| known.get(&key)) {
                    Some(schema) => below(&key, value, schema),
                    None if closed => {
                        let at = if at.is_empty() { "root" } else { at };
                        let key = a99_core::diag::excerpt(&key);
                        Some(format!("{at}: the schema has no member `{key}`"))
                    }
                    None => None,
                }
            })
        }
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(n, value)| below(&n.to_string(), value, schema))
        }
        _ => None,
    }
}

/// Asks, and asks for repairs, with the error, until the answer has the requested form. An
/// answer with tool calls is returned unchecked.
///
/// # Errors
/// Errors of the provider; [`AiCode::Form`], with the answer, if no repair has the form.
pub(super) async fn ask(
    provider: &dyn AiProvider,
    mut request: TextRequest,
) -> Result<TextResult, AiError> {
    let mut used = super::Usage::default();
    let mut round = 0;
    loop {
        let mut result = provider.generate_text(request.clone()).await?;
        used = used.plus(result.usage);
        result.usage = used;
        if request.format == Format::Text || !result.tool_uses.is_empty() {
            return Ok(result);
        }
        let result = whole(result)?;
        let Some(why) = misfit(&request.format, &result) else {
            return Ok(result);
        };
        if round >= REPAIRS {
            let text = format!("the model's answer does not have the form it was asked for: {why}");
            return Err(AiError::new(AiCode::Form, text).with_partial(result));
        }
        let wrong = format!(
            "Your answer does not have the form that was asked for: {why}. Write all of it again, \
             as JSON and nothing else."
        );
        request.messages.push(Message::assistant(result.text));
        request.messages.push(Message::user(wrong));
        round += 1;
    }
}
