//! Advice for programs and steps in another format, which have no `op`.

use super::Lower;
use crate::advice;
use a99_core::diag::{Diagnostic, codes, excerpt};
use a99_core::json::{Document, Kind, NodeId};

/// Keys that hold the op in other formats.
const OP_KEYS: &[&str] = &[
    "type",
    "action",
    "atom",
    "name",
    "tool",
    "function",
    "fn",
    "kind",
    "step",
    "call",
    "command",
    "cmd",
    "method",
    "operation",
    "operator",
    "instruction",
    "Op",
    "OP",
    "opcode",
    "task",
    "do",
    "use",
    "uses",
    "$op",
    "op_name",
    "opName",
    "func",
    "node",
];

/// Ops of other systems that are also keys of values: no evidence by themselves.
const NO_OPS: &[&str] = &[
    "input", "result", "text", "string", "str", "model", "code", "check", "is", "times", "counter",
    "retries", "answer", "reply", "final", "done",
];

/// Keys that hold a list of steps in other formats.
const STEP_KEYS: &[&str] = &[
    "body",
    "tasks",
    "actions",
    "commands",
    "instructions",
    "nodes",
    "program",
    "pipeline",
    "operations",
    "stages",
    "activities",
    "jobs",
    "blocks",
    "children",
    "do",
    "run",
    "workflow",
    "sequence",
    "step",
    "ops",
];

/// Keys that identify the format of another system, with its name.
const SYSTEMS: &[(&[&str], &str)] = &[
    (
        &["StartAt", "States"],
        "a state machine of AWS Step Functions",
    ),
    (&["nodes", "connections"], "a workflow of n8n"),
    (
        &["trigger", "actions"],
        "a workflow of triggers and actions",
    ),
    (&["lc", "type"], "an object of LangChain"),
    (&["lc"], "an object of LangChain"),
    (&["tool_calls"], "a model's answer with calls of tools"),
    (&["function_call"], "a model's answer with a call of a tool"),
    (&["choices", "model"], "an answer of a model's service"),
    (&["messages"], "a conversation with a model"),
    (&["openapi"], "a description of OpenAPI"),
    (&["swagger"], "a description of OpenAPI"),
    (&["jsonrpc", "method"], "a request of JSON-RPC"),
    (&["on", "jobs"], "a workflow of GitHub Actions"),
    (&["apiVersion", "kind"], "a manifest of Kubernetes"),
    (&["dag_id"], "a DAG of Airflow"),
    (&["initial", "states"], "a state machine"),
    (&["nodes", "edges"], "a graph of nodes and edges"),
    (&["resources"], "a template of infrastructure"),
    (&["dependencies"], "a manifest of a package"),
    (&["cells", "nbformat"], "a notebook"),
];

/// Advice for an object that is not a step.
struct Advice {
    node: NodeId,
    offending: String,
    help: String,
}

impl Lower<'_, '_> {
    fn is_op(&self, name: &str) -> bool {
        self.s.signature(name).is_some() && !name.contains(':')
    }

    /// The op for a name: itself, or that of a synonym with one form.
    fn op_meant(&self, name: &str) -> Option<String> {
        if self.is_op(name) {
            return Some(name.to_owned());
        }
        advice::atom_for(name).and_then(|help| {
            let op = help.strip_prefix("use `")?;
            let end = op.find([' ', '`']).unwrap_or(op.len());
            Some(op[..end].to_owned()).filter(|op| self.is_op(op))
        })
    }

    fn members_text(&self, node: NodeId) -> String {
        let doc = self.s.doc;
        let names = doc
            .members(node)
            .map(|(name, _)| format!(", \"{}\": ...", Self::shown(name)));
        excerpt(&names.collect::<String>())
    }

    fn advice_without_op(&self, step: NodeId) -> Advice {
        let doc = self.s.doc;
        for key in OP_KEYS {
            let Some(node) = doc.get(step, key) else {
                continue;
            };
            let Some(name) = text_of(doc, node) else {
                continue;
            };
            let Some(op) = self.op_meant(&name) else {
                continue;
            };
            let wrapped = [
                "arguments",
                "args",
                "input",
                "inputs",
                "params",
                "parameters",
                "with",
            ];
            let inner = wrapped.iter().find_map(|key| doc.get(step, key));
            let help = match inner.filter(|n| doc.kind(*n) == Kind::Object) {
                Some(inner) => format!(
                    "write `op`, and the inputs beside it: `{{\"op\": \"{op}\"{}}}`",
                    self.members_text(inner)
                ),
                None => format!("write `\"op\": \"{op}\"` instead of `\"{key}\"`"),
            };
            return Advice {
                node,
                offending: format!("\"{key}\": \"{}\"", excerpt(&name)),
                help,
            };
        }
        // `{"varSet": {...}}`: the op is the key.
        for (key, node) in doc.members(step) {
            let name = Self::shown(key);
            let is_key = NO_OPS.contains(&name.as_str());
            let Some(op) = self.op_meant(&name).filter(|_| !is_key) else {
                continue;
            };
            let help = match doc.kind(node) {
                Kind::Object => format!(
                    "the op is a member: `{{\"op\": \"{op}\"{}}}`",
                    self.members_text(node)
                ),
                _ => format!("the op is a member: `{{\"op\": \"{op}\", ...}}`"),
            };
            return Advice {
                node,
                offending: name,
                help,
            };
        }
        Advice {
            node: step,
            offending: String::new(),
            help: "name an atom: `{\"op\": \"varSet\", \"key\": \"a\", \"value\": 1}`; `docs/atoms.md` \
                   lists them"
                .to_owned(),
        }
    }

    /// The key that holds the steps of a step or of the root, where `steps` is missing.
    pub(super) fn steps_elsewhere(&self, owner: NodeId, diag: Diagnostic) -> Diagnostic {
        let doc = self.s.doc;
        if owner != doc.root() {
            return diag;
        }
        let list = STEP_KEYS.iter().find_map(|key| {
            let list = doc.get(owner, key)?;
            (doc.kind(list) == Kind::Array).then_some((*key, list))
        });
        let Some((key, list)) = list else { return diag };
        let at = self.s.error_pointer(list);
        Diagnostic {
            pointer: at,
            ..diag
        }
        .with_span(doc.key_span(list).or(doc.span(list)))
        .with_offending(key)
        .with_help(format!("write `steps` instead of `{key}`"))
    }

    /// Warns of a step whose `op` is missing or is not a text.
    pub(super) fn warn_without_op(&mut self, step: NodeId) {
        let doc = self.s.doc;
        if let Some(op) = doc.get(step, "op") {
            let inner = ["name", "op", "type"]
                .iter()
                .find_map(|key| doc.get(op, key));
            let name = inner.and_then(|n| text_of(doc, n));
            let help = match name.and_then(|name| self.op_meant(&name)) {
                Some(name) => format!("write `\"op\": \"{name}\"`"),
                None => "write the name of an atom: `\"op\": \"varSet\"`".to_owned(),
            };
            let diag = self
                .s
                .warn(
                    codes::UNKNOWN_ATOM,
                    op,
                    "`op` is the name of an atom, a text".into(),
                )
                .with_help(help);
            return self.s.push(diag);
        }
        let advice = self.advice_without_op(step);
        let mut diag = self
            .s
            .warn(codes::UNKNOWN_ATOM, step, "this step has no `op`".into())
            .with_help(advice.help);
        if !advice.offending.is_empty() {
            diag = diag.with_offending(excerpt(&advice.offending));
        }
        if let Some(span) = doc.span(advice.node).filter(|_| advice.node != step) {
            diag = diag.with_span(span);
        }
        self.s.push(diag);
        self.on_faulty_step(step);
    }

    /// Warns of a value in the place of a step that is not an object.
    pub(super) fn warn_no_step(&mut self, step: NodeId) {
        let doc = self.s.doc;
        let help = match doc.kind(step) {
            Kind::Array => {
                let first = doc.element(step, 0);
                let name = first.and_then(|n| text_of(doc, n));
                match name.and_then(|name| self.op_meant(&name)) {
                    Some(op) => format!("write an object: `{{\"op\": \"{op}\", ...}}`"),
                    None if first.is_some_and(|n| doc.kind(n) == Kind::Object) => {
                        "steps stand in one list: take the inner brackets away".to_owned()
                    }
                    None => "write an object: `{\"op\": \"varSet\", ...}`".to_owned(),
                }
            }
            Kind::String(text) => {
                let text = Self::shown(text);
                let word: String = text
                    .trim_start()
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if text.trim_start().starts_with('{') {
                    "this is the text of a step: give the object itself, without quotes".to_owned()
                } else if let Some(op) = self.op_meant(&word) {
                    format!("write an object: `{{\"op\": \"{op}\", ...}}`")
                } else {
                    "a step is an object: `{\"op\": \"varSet\", \"key\": \"a\", \"value\": 1}`"
                        .to_owned()
                }
            }
            _ => "remove it, or write an object: `{\"op\": \"varSet\", ...}`".to_owned(),
        };
        let text = "a step must be an object with an op".to_owned();
        let diag = self
            .s
            .warn(codes::MALFORMED_STEP, step, text)
            .with_help(help);
        self.s.push(diag);
    }

    /// Help for a tag that is the text of an expression.
    pub(super) fn help_for_tag(&self, tag: &str) -> Option<String> {
        let is_code = tag.contains([' ', '(', '+', '*', '[']) || tag.contains('.');
        let is_code = is_code && tag.len() < 500 && self.s.parse_text(tag).is_ok();
        is_code.then(|| {
            let version = match self.s.version_4 {
                true => "",
                false => ", with `\"a99\": 4` at the root",
            };
            format!(
                "a tag names a node: for the text of an expression write `{{\"=\": \"{}\"}}`{version}",
                excerpt(tag)
            )
        })
    }

    /// Help for an unknown helper.
    pub(super) fn help_for_helper(&self) -> String {
        let doc = self.s.doc;
        let helpers = doc.get(doc.root(), "helpers");
        let names = helpers.into_iter().flat_map(|helpers| doc.members(helpers));
        let names: Vec<String> = names.take(8).map(|(name, _)| Self::shown(name)).collect();
        match names.is_empty() {
            true => {
                "the program has no `helpers`: write `\"helpers\": {\"name\": {\"paramNames\": \
                     [], \"steps\": []}}` at its root"
                    .to_owned()
            }
            false => format!("the helpers are `{}`", excerpt(&names.join("`, `"))),
        }
    }
}

/// The text of a string, for messages.
fn text_of(doc: &Document, node: NodeId) -> Option<String> {
    doc.str(node).map(Lower::shown)
}

/// The fault of a root that is not a program: the place, the message and the help.
pub(super) fn root_advice(doc: &Document, root: NodeId) -> (NodeId, String, String) {
    let text = |node: NodeId| text_of(doc, node);
    let wrap = "write `{\"op\": \"seq\", \"steps\": [...]}`";
    match doc.kind(root) {
        Kind::Array => {
            let help =
                format!("a list of steps is no program yet: {wrap}, with the list as `steps`");
            return (root, "[".to_owned(), help);
        }
        Kind::String(inner) => {
            let shown = Lower::shown(inner);
            let help = match shown.trim_start().starts_with(['{', '[']) {
                true => {
                    "this is the text of a program: give the object itself, without quotes and \
                         backslashes"
                        .to_owned()
                }
                false => format!("this is a text: {wrap}"),
            };
            return (root, excerpt(&shown), help);
        }
        Kind::Object => {}
        _ => return (root, String::new(), format!("this is no object: {wrap}")),
    }
    if let Some(op) = doc.get(root, "op") {
        let name = text(op).unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        let sequence = matches!(
            lower.trim(),
            "seq"
                | "sequence"
                | "sequential"
                | "block"
                | "do"
                | "begin"
                | "program"
                | "main"
                | "steps"
        );
        let help = if sequence || doc.get(root, "steps").is_some() {
            "write `\"op\": \"seq\"`".to_owned()
        } else {
            format!("this is one step: {wrap}, with the step in `steps`")
        };
        return (op, name, help);
    }
    for key in [
        "program", "ast", "code", "agent", "plan", "workflow", "script", "input", "body", "root",
        "result", "data", "json", "content",
    ] {
        let Some(inner) = doc.get(root, key) else {
            continue;
        };
        if doc.get(inner, "op").is_some() || doc.get(inner, "steps").is_some() {
            let help = format!("the program is the value of `{key}`: give that object itself");
            return (inner, key.to_owned(), help);
        }
        let is_text = doc
            .str(inner)
            .is_some_and(|t| t.trim_ascii_start().starts_with(b"{\""));
        if is_text {
            let help = format!("the program is the text in `{key}`: give that as an object");
            return (inner, key.to_owned(), help);
        }
    }
    let is_system =
        |(keys, _): &&(&[&str], &str)| keys.iter().all(|key| doc.get(root, key).is_some());
    let system = SYSTEMS.iter().find(is_system);
    if let Some(kind) = doc
        .get(root, "type")
        .or_else(|| doc.get(root, "$expr"))
        .filter(|_| system.is_none())
    {
        let name = text(kind).unwrap_or_default();
        let help = match name.as_str() {
            "Program" | "File" | "Module" => {
                format!("this is the syntax tree of another language: {wrap}")
            }
            "function" | "tool_use" | "tool_call" => {
                format!("this is a call of a tool: make it a step, and {wrap}")
            }
            "object" => format!("this is a schema: give it as `inputSchema` of a program; {wrap}"),
            _ if doc.get(root, "steps").is_some() => "write `\"op\": \"seq\"`".to_owned(),
            _ => wrap.to_owned(),
        };
        return (kind, name, help);
    }
    if doc.get(root, "steps").is_some() {
        let help = "add `\"op\": \"seq\"`".to_owned();
        return (root, "steps".to_owned(), help);
    }
    let named = doc.get(root, "name").or_else(|| doc.get(root, "tool"));
    if let Some(name) = named.filter(|_| {
        let keys = ["arguments", "args", "input", "parameters"];
        keys.iter().any(|key| doc.get(root, key).is_some())
    }) {
        let help = format!("this is a call of a tool: make it a step, and {wrap}");
        return (name, text(name).unwrap_or_default(), help);
    }
    if let Some((keys, what)) = system {
        let node = doc.get(root, keys[0]).unwrap_or(root);
        let help = format!("this is {what}: {wrap}, and its parts as steps");
        return (node, keys[0].to_owned(), help);
    }
    for key in STEP_KEYS.iter().copied() {
        if let Some(list) = doc.get(root, key).filter(|n| doc.kind(*n) == Kind::Array) {
            let help = format!("{wrap}, with the list of `{key}` as `steps`");
            return (list, key.to_owned(), help);
        }
    }
    if doc.get(root, "properties").is_some() || doc.get(root, "$schema").is_some() {
        let help = format!("this is a schema: give it as `inputSchema` of a program; {wrap}");
        return (root, "properties".to_owned(), help);
    }
    let first = doc.members(root).next().map(|(key, _)| Lower::shown(key));
    (root, first.unwrap_or_default(), wrap.to_owned())
}
