//! Rules for models: the inputs of conversations and their tools.
//!
//! Codes: `lint.missing_input`, `lint.unknown_input`, `lint.wrong_value`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// Roles of messages.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];

/// Other names of roles, with the valid one.
const OTHER_ROLES: &[(&str, &str)] = &[
    ("human", "user"),
    ("customer", "user"),
    ("ai", "assistant"),
    ("bot", "assistant"),
    ("agent", "assistant"),
    ("model", "assistant"),
    ("function", "tool"),
];

/// Messages and tools that are checked.
const MOST: usize = 64;

impl Rules<'_, '_> {
    /// A member that is present and not null.
    fn not_null(&self, of: NodeId, key: &str) -> Option<NodeId> {
        let doc = self.doc;
        doc.get(of, key).filter(|n| doc.kind(*n) != Kind::Null)
    }

    /// Checks the inputs of `llmChat` and `llmToolLoop`.
    pub(super) fn lint_model(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let known = |key: &[u8]| {
            let sig = self.signature(op);
            let mut inputs = sig.iter().flat_map(|sig| sig.inputs.iter());
            matches!(key, b"op" | b"result" | b"resultConst")
                || inputs.any(|input| input.name.as_bytes() == key)
        };
        let asks = self
            .not_null(step, "prompt")
            .or(self.not_null(step, "messages"));
        // An unknown key has its own finding and may be the missing input.
        if asks.is_none() && doc.members(step).all(|(key, _)| known(key)) {
            let message = format!("`{op}` needs `prompt` or `messages`: nothing is asked");
            let help = "add `\"prompt\"` with what the model is asked";
            self.found(codes::MISSING_INPUT, step, message, op, help);
        }
        if let Some(budget) = self.not_null(step, "budget") {
            self.lint_budget(budget);
        }
        if let Some(list) = self.not_null(step, "messages") {
            self.lint_messages(list);
        }
        let choice = self.not_null(step, "toolChoice");
        if let Some(choice) = choice.filter(|_| self.not_null(step, "tools").is_none())
            && !matches!(doc.str(choice), Some(b"auto" | b"none") | None)
        {
            let message = "there are no `tools` that the model could ask for";
            let help = "add `tools`, or leave `toolChoice` out";
            self.found(codes::MISSING_INPUT, choice, message, "", help);
        }
        let Some(tools) = self
            .not_null(step, "tools")
            .filter(|n| doc.kind(*n) == Kind::Array)
        else {
            return;
        };
        if op == "llmChat" {
            self.lint_chat_tools(tools);
        }
        if let Some(choice) = self.not_null(step, "toolChoice") {
            self.lint_tool_choice(choice, tools);
        }
    }

    fn lint_budget(&mut self, budget: NodeId) {
        let doc = self.doc;
        if !self.is_literal_object(budget) || self.is_expr(budget) {
            return;
        }
        for (key, node) in doc.members(budget) {
            if key != b"tokens" {
                let shown = Self::shown(key);
                let message = format!(
                    "a budget has no `{}`, so it bounds nothing",
                    excerpt(&shown)
                );
                let help = match shown.to_ascii_lowercase().contains("token") {
                    true => "write `tokens`",
                    false => "it has `tokens`; rounds are bounded by `maxRounds`, fuel by the run",
                };
                self.found(codes::UNKNOWN_INPUT, node, message, &shown, help);
            } else if let Kind::Number(n) = doc.kind(node)
                && (n < 1.0 || n.fract() != 0.0)
            {
                let message = format!("`tokens` cannot be {n}");
                let help = "write a whole number from 1 on, as in `5000`";
                self.found(codes::WRONG_VALUE, node, message, "", help);
            }
        }
    }

    fn lint_messages(&mut self, list: NodeId) {
        let doc = self.doc;
        for said in doc.elements(list).take(MOST) {
            if doc.kind(said) != Kind::Object || self.is_expr(said) {
                continue;
            }
            let Some(node) = doc.get(said, "role") else {
                let message = "a message says who says it: it has no `role`";
                let help = "write `{\"role\": \"user\", \"content\": \"...\"}`";
                self.found(codes::MISSING_INPUT, said, message, "", help);
                continue;
            };
            let Some(role) = super::text_of(doc, node) else {
                continue;
            };
            if ROLES.contains(&role.as_str()) {
                let says = doc.get(said, "content").is_some() || role == "assistant";
                if !says {
                    let message = "this message says nothing: it has no `content`";
                    let other = ["text", "message", "prompt", "parts", "value"];
                    let other = other.iter().find_map(|key| doc.get(said, key));
                    let help = "write `{\"role\": \"user\", \"content\": \"...\"}`";
                    self.found(
                        codes::MISSING_INPUT,
                        other.unwrap_or(said),
                        message,
                        "",
                        help,
                    );
                }
                continue;
            }
            let lower = role.to_ascii_lowercase();
            let other = OTHER_ROLES.iter().find(|row| row.0 == lower);
            let near = match other {
                Some(row) => Some(row.1.to_owned()),
                None => self.nearest(&role, ROLES.iter().copied()),
            };
            let message = format!("there is no role `{}`", excerpt(&role));
            let help = match near {
                Some(near) => format!("write `\"{near}\"`"),
                None => format!("roles are {}", ROLES.join(", ")),
            };
            self.found(codes::WRONG_VALUE, node, message, &role, help);
        }
    }

    /// Checks the tools that a model may request from `llmChat`.
    fn lint_chat_tools(&mut self, tools: NodeId) {
        let doc = self.doc;
        for tool in doc.elements(tools).take(MOST) {
            if doc.kind(tool) != Kind::Object || self.is_expr(tool) {
                continue;
            }
            let (node, message, help) = if let Some(inner) = doc.get(tool, "function") {
                let help = "write `{\"name\": ..., \"description\": ..., \"inputSchema\": ...}`, \
                            without `function` around it";
                (inner, "a tool of `llmChat` has no `function`", help)
            } else if doc.get(tool, "name").is_none() {
                let help = "write `{\"name\": ..., \"description\": ..., \"inputSchema\": ...}`";
                (tool, "a tool of `llmChat` needs a `name`", help)
            } else if let Some(schema) = ["parameters", "input_schema", "schema"]
                .iter()
                .find_map(|key| doc.get(tool, key))
            {
                let message = "the schema of a tool's input is its `inputSchema`";
                (schema, message, "write `inputSchema`")
            } else {
                continue;
            };
            self.found(codes::UNKNOWN_INPUT, node, message, "", help);
        }
    }

    /// Reports a `toolChoice` that names no tool of the step.
    fn lint_tool_choice(&mut self, choice: NodeId, tools: NodeId) {
        let doc = self.doc;
        let Some(text) = doc.str(choice).filter(|text| self.is_plain_text(text)) else {
            return;
        };
        let shown = Self::shown(text);
        let mut names = Vec::new();
        for tool in doc.elements(tools).take(MOST) {
            let name = ["name", "atom", "agent"]
                .iter()
                .find_map(|key| doc.get(tool, key));
            match name.and_then(|name| super::text_of(doc, name)) {
                Some(name) => names.push(name),
                None => return,
            }
        }
        let words = ["auto", "none", "required"];
        if words.contains(&shown.as_str()) || names.contains(&shown) {
            return;
        }
        let all = names.iter().map(String::as_str).chain(words);
        let help = match self.nearest(&shown, all.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if matches!(shown.as_str(), "any" | "always") => "write `\"required\"`".to_owned(),
            None => format!(
                "it is one of {}",
                excerpt(&all.collect::<Vec<_>>().join(", "))
            ),
        };
        let message = format!("no tool is called `{}`", excerpt(&shown));
        self.found(codes::WRONG_VALUE, choice, message, &shown, help);
    }
}
