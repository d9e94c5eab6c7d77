//! Methods of an agent of agents.toml: `[agent.methods.NAME]`.

use super::fields::Fields;
use super::needed;
use crate::config::file::{Mistakes, Places};
use a99_runtime::program::ProgramMethod;
use serde_json::Value as Json;
use std::cell::RefCell;
use toml::de::DeValue;

const OF_METHOD: &[&str] = &["description", "parameters", "returns", "timeout"];

const EXAMPLE: &str = "{ pay = { description = \"Adds to an account.\" } }";

/// The methods of an agent, by name.
pub(super) fn methods(
    fields: &Fields<'_, '_>,
    places: &Places<'_>,
    wrong: &RefCell<Mistakes>,
) -> Vec<(String, ProgramMethod)> {
    let Some((_, table)) = fields.table("methods", EXAMPLE) else {
        return Vec::new();
    };
    let mut methods = Vec::new();
    for (key, value) in table.iter() {
        let (at, name) = (value.span().start, key.get_ref());
        let called = format!("[agent.methods.{name}]");
        if name.trim().is_empty() {
            let text = "a method without a name";
            fields.blame(key.span().start, text, "give it one");
            continue;
        }
        let DeValue::Table(table) = value.get_ref() else {
            let text = format!("the method `{name}`: expected a table");
            fields.blame(at, &text, format!("write it as in `methods = {EXAMPLE}`"));
            continue;
        };
        let method = Fields::new((at, table), &called, places, wrong);
        method.refuse_others(OF_METHOD);
        let description = needed(&method, "description", "\"Adds to an account.\"", OF_METHOD);
        let mut made = ProgramMethod::new(description.map_or_else(String::new, |(_, text)| text));
        if let Some(schema) = schema(&method, "parameters") {
            made = made.parameters(schema);
        }
        if let Some(schema) = schema(&method, "returns") {
            made = made.returns(schema);
        }
        if let Some((_, timeout)) = method.time("timeout") {
            made = made.timeout(timeout);
        }
        methods.push((name.to_string(), made));
    }
    methods
}

/// A JSON Schema, given as a table.
fn schema(method: &Fields<'_, '_>, key: &str) -> Option<Json> {
    let (at, schema) = method.json(key)?;
    if schema.is_object() {
        return Some(schema);
    }
    let help = format!("write `{key} = {{ type = \"object\", properties = {{}} }}`");
    let text = format!("`{key}`: expected a table, a JSON Schema");
    method.blame(at, &text, help);
    None
}
