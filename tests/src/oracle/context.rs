//! Reading of the request context (decision D75).

use super::expr::{field, name_of};
use super::machine::Machine;
use super::meter::{pay, pay_crossing, pay_metered};
use super::value::{Fail, JsStr, OVal, Res, from_value, lossy};
use a99_core::costs::{CROSSING_VALUE, READ, Sizes};
use a99_core::error::ErrorCode;
use a99_core::value::Value;

impl Machine<'_> {
    /// The path of a node that is a part of the context.
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
