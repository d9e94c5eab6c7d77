//! Rules for tools of `llmToolLoop`: definitions that models and their services do not accept.
//!
//! Codes: `lint.missing_input`, `lint.unknown_input`, `lint.unresolved_node`, `lint.unused_item`,
//! `lint.wrong_kind`, `lint.wrong_value`.

use super::Rules;
use super::bodies::mentions;
use super::inference::of_schema;
use super::kinds::Holds;
use a99_compiler::pass::{Calling, ToolNode};
use a99_core::diag::{codes, excerpt, suggest};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Params;
use std::collections::HashMap;

/// Valid members of a tool.
const MEMBERS: [&str; 7] = [
    "name",
    "description",
    "inputSchema",
    "as",
    "call",
    "atom",
    "agent",
];

/// Synonyms of these members.
const OTHER_NAMES: [(&str, &str); 10] = [
    ("parameters", "inputSchema"),
    ("input_schema", "inputSchema"),
    ("schema", "inputSchema"),
    ("args", "inputSchema"),
    ("function", "call"),
    ("execute", "call"),
    ("run", "call"),
    ("handler", "call"),
    ("op", "atom"),
    ("agentId", "agent"),
];

impl<'a> Rules<'_, 'a> {
    pub(super) fn on_tools(&mut self, step: NodeId, tools: &[ToolNode<'a>]) {
        if tools.is_empty() {
            let message = "a loop without tools has one round";
            let help = "ask with `llmChat`";
            self.found(codes::WRONG_VALUE, step, message, "tools", help);
        }
        let mut seen: HashMap<String, NodeId> = HashMap::new();
        for tool in tools {
            if !self.spend_on(tool.node) {
                return;
            }
            self.lint_tool(tool);
            let name = tool.name();
            if seen.insert(name.clone(), tool.node).is_some() {
                let shown = excerpt(&name);
                let message = format!("two tools are called `{shown}`");
                let help = "give each a `name` of its own: services refuse the request";
                self.found(codes::WRONG_VALUE, tool.node, message, &name, help);
            }
        }
    }

    /// Records the kind of a tool's input, by the tool's schema.
    pub(super) fn on_tool_input(&mut self, name: &[u8], tool: NodeId) {
        let doc = self.doc;
        let schema = doc.get(tool, "inputSchema");
        let holds = schema.map_or(Holds::Any, |schema| of_schema(doc, schema));
        self.lint_holds(name, holds);
    }

    fn lint_tool(&mut self, tool: &ToolNode<'a>) {
        let doc = self.doc;
        let node = tool.node;
        self.lint_tool_members(tool);
        let name = tool.name();
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !(1..=64).contains(&name.len()) || !name.bytes().all(is_name) {
            let shown = excerpt(&name);
            let message = format!("`{shown}` is no name that services take for a tool");
            let at = doc.get(node, "name").unwrap_or(node);
            let help = "give it a `name` of 1 to 64 letters, digits, `_` and `-`";
            self.found(codes::WRONG_VALUE, at, message, &name, help);
        }
        if !tool.is_described() {
            let message = "this tool has no description, by which models choose";
            let help = "add `\"description\": \"what it does and when to use it\"`";
            self.found(codes::MISSING_INPUT, node, message, &name, help);
        }
        let schema = doc.get(node, "inputSchema");
        let properties = schema.and_then(|schema| doc.get(schema, "properties"));
        match tool.calling {
            Calling::Call(call, input, _) => {
                if let Some(result) = doc.get(call, "result") {
                    let message = "a tool's call binds no name: its answer goes to the model";
                    let help = "remove it; the `calls` of the loop's result have it";
                    self.found(codes::UNKNOWN_INPUT, result, message, "", help);
                }
                let input = Self::shown(input);
                let takes = properties.is_some_and(|map| doc.len(map) > 0);
                if takes && !input.starts_with('_') && !mentions(doc, call, &input) {
                    let shown = excerpt(&input);
                    let message = format!(
                        "this call does not look at the tool's input, which is called `{shown}`"
                    );
                    let help = format!("give `{shown}.NAME` to the call, or take no input");
                    self.found(codes::UNUSED_ITEM, call, message, &input, help);
                }
            }
            Calling::Atom(sig) if matches!(sig.params, Params::Named(_)) => {
                let members: Vec<(&[u8], NodeId)> = properties
                    .into_iter()
                    .flat_map(|map| doc.members(map))
                    .collect();
                for (key, at) in members {
                    let key = Self::shown(key);
                    if sig.input(&key).is_none() {
                        let shown = excerpt(&key);
                        let message = format!("`{}` has no input `{shown}`", sig.name);
                        let known = super::steps::listed(&sig.inputs);
                        let help = format!("it has {known}; with others write a `call`");
                        self.found(codes::UNKNOWN_INPUT, at, message, &key, help);
                    }
                }
            }
            Calling::Atom(_) | Calling::Agent(..) => {}
        }
    }

    /// Reports members that a tool does not have, or that are useless beside others.
    fn lint_tool_members(&mut self, tool: &ToolNode<'a>) {
        let doc = self.doc;
        let members: Vec<(&[u8], NodeId)> = doc.members(tool.node).collect();
        for (key, at) in members {
            let key = Self::shown(key);
            if !MEMBERS.contains(&&*key) {
                let shown = excerpt(&key);
                let message = format!("a tool of `llmToolLoop` has no `{shown}`");
                let other = OTHER_NAMES.iter().find(|row| row.0 == key).map(|row| row.1);
                let near = other.map(str::to_owned);
                let near = near.or_else(|| suggest(&key, MEMBERS.into_iter()));
                let help = match near {
                    Some(near) => format!("write `{near}`"),
                    None => "it has `name`, `description`, `inputSchema`, and `as` with `call`, \
                             `atom` or `agent`"
                        .to_owned(),
                };
                self.found(codes::UNKNOWN_INPUT, at, message, &key, help);
            } else if key == "as" && !matches!(tool.calling, Calling::Call(..)) {
                let message = "`as` names the input for a `call`, and there is none";
                self.found(codes::UNKNOWN_INPUT, at, message, "", "remove it");
            } else if key != "call" && self.facts.has_nested(at) {
                let message =
                    format!("`{key}` of a tool is taken as written: the node in it stays data");
                let help = "write the value itself here";
                self.found(codes::UNRESOLVED_NODE, at, message, &key, help);
            } else if key == "inputSchema" && doc.kind(at) != Kind::Object {
                let message = "`inputSchema` is a JSON Schema, an object";
                let help = "write `{\"type\": \"object\", \"properties\": {...}}`";
                self.found(codes::WRONG_KIND, at, message, "", help);
            }
        }
    }
}
