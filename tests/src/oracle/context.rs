//! Reads of the request context (decision D75).

use super::expr::{field, name_of};
use super::machine::Machine;
use super::meter::{pay, pay_crossing, pay_metered};
use super::value::{Fail, JsStr, OVal, Res, from_value, lossy};
use a99_core::costs::{CROSSING_VALUE, READ, Sizes};
use a99_core::error::ErrorCode;
use a99_core::json::{Document, Limits};
use a99_core::value::Value;

impl Machine<'_> {
    /// The path of a context node.
    pub(super) fn context_path(&self, value: &Value) -> Option<JsStr> {
        let node = value.as_object().filter(|_| self.frame.version_4)?;
        (node.get("$kind")?.as_str() == Some("context")).then(|| name_of(field(node, "path")))
    }

    pub(super) fn context(&mut self, path: &JsStr) -> Res<OVal> {
        pay(READ, Sizes::units(path.len()))?;
        let path = lossy(path);
        let begins =
            |allowed: &String| path == *allowed || path.starts_with(&format!("{allowed}."));
        if !self.opts.readable_context.iter().any(begins) {
            let why = format!("The host lets no program read '{path}' of its context");
            return Err(Fail::coded(ErrorCode::Capability, why));
        }
        pay_metered(CROSSING_VALUE)?;
        let mut at = self.opts.context.clone();
        for name in path.split('.') {
            let found = match &at {
                Value::Object(_) => at.get(name).cloned(),
                Value::Array(items) => name.parse().ok().and_then(|i: usize| items.get(i).cloned()),
                _ => None,
            };
            at = found.unwrap_or(Value::Undefined);
        }
        let value = from_value(&at);
        pay_crossing(&value)?;
        Ok(value)
    }
}

/// True if a program of version 4 reads the context, in nodes or texts.
pub(super) fn reads(program: &str) -> bool {
    let document = Document::parse(program, &Limits::default());
    document.is_ok_and(|document| holds(&document.to_value(document.root())))
}

fn holds(value: &Value) -> bool {
    let member = |key: &str| value.get(key).and_then(Value::as_str);
    let text = |key: &str| match value.get(key) {
        Some(Value::String(text)) => says(&text.to_string_lossy()),
        _ => false,
    };
    let is_step = |ops: &[&str]| member("op").is_some_and(|op| ops.contains(&op));
    let of_step = is_step(&["if", "while", "filter", "find"]) && text("condition")
        || is_step(&["mathCalc"]) && text("expr");
    let of_text = super::expr::expr_text(value);
    let of_text = of_text.is_some_and(|text| says(&text.to_string_lossy()));
    let tags = ["$kind", "$expr"];
    let is_node = tags.iter().any(|key| member(key) == Some("context"));
    is_node
        || of_step
        || of_text
        || match value {
            Value::Array(items) => items.iter().any(holds),
            Value::Object(map) => map.values().any(holds),
            _ => false,
        }
}

/// True if a text contains a context node.
fn says(text: &str) -> bool {
    match super::condition::parse_expression(text) {
        Ok(Some(node)) => holds(&node),
        _ => false,
    }
}
