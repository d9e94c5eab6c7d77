//! The tools of `llmToolLoop` as the program declares them.

use super::call_all::NoCall;
use super::{Lower, schemas};
use crate::ir::key_text;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::AtomSig;
use a99_core::value::{Map, Value};

/// Default names: of the round in `stopWhen`, and of a tool's input in its call.
pub(super) const ROUND_NAME: &[u8] = b"round";
pub(super) const INPUT_NAME: &[u8] = b"input";

/// The target of a tool.
#[derive(Copy, Clone)]
pub enum Calling<'a> {
    /// A call that may read the input under a name.
    Call(NodeId, &'a [u8], NodeId),
    /// An atom, whose inputs are the members of the input.
    Atom(&'a AtomSig),
    /// An agent of the host, which gets the whole input.
    Agent(&'a AtomSig, &'a [u8]),
}

/// A tool of a loop.
pub struct ToolNode<'a> {
    /// The tool as the program declares it.
    pub node: NodeId,
    /// What it calls.
    pub calling: Calling<'a>,
    /// The model's view of the tool: name, description, schema.
    pub told: Value,
    /// Name and schema that inputs are checked against, if they differ.
    pub checked: Option<Value>,
}

impl ToolNode<'_> {
    /// The tool's name for the model.
    pub fn name(&self) -> String {
        let name = self.told.get("name").and_then(Value::as_text);
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Whether the tool has a description for the model.
    pub fn is_described(&self) -> bool {
        let text = self.told.get("description").and_then(Value::as_text);
        text.is_some_and(|text| text.as_bytes().iter().any(|b| !b.is_ascii_whitespace()))
    }
}

impl<'a> Lower<'_, 'a> {
    /// The name under a key, or the default if it is missing.
    pub(super) fn name_or(
        &self,
        of: NodeId,
        key: &str,
        default: &'static [u8],
    ) -> (&'a [u8], NodeId) {
        let doc = self.s.doc;
        match doc.get(of, key).filter(|n| doc.kind(*n) != Kind::Null) {
            Some(node) => (key_text(doc, Some(node), self.s.arena), node),
            None => (default, of),
        }
    }

    /// The tools of a loop, or the fault of the first invalid one.
    pub(super) fn tools(&self, step: NodeId) -> Result<Vec<ToolNode<'a>>, (NodeId, String)> {
        let doc = self.s.doc;
        let list = doc.get(step, "tools");
        let Some(list) = list.filter(|n| doc.kind(*n) == Kind::Array) else {
            let text = "llmToolLoop: tools is not an array";
            return Err((list.unwrap_or(step), text.to_owned()));
        };
        let tools = doc.elements(list).enumerate();
        tools
            .map(|(at, node)| {
                let tool = self.tool(node);
                tool.map_err(|why| (node, format!("llmToolLoop: tool {at} {why}")))
            })
            .collect()
    }

    fn tool(&self, node: NodeId) -> Result<ToolNode<'a>, String> {
        let doc = self.s.doc;
        if doc.kind(node) != Kind::Object {
            return Err("must be an object".to_owned());
        }
        let given = |key: &str| doc.get(node, key).filter(|n| doc.kind(*n) != Kind::Null);
        let text = |key: &str| given(key).and_then(|n| doc.str(n));
        let calling = match (given("call"), given("atom"), given("agent")) {
            (Some(call), None, None) => {
                let (name, named) = self.name_or(node, "as", INPUT_NAME);
                Calling::Call(call, name, named)
            }
            (None, Some(atom), None) => {
                let name = Self::shown(key_text(doc, Some(atom), self.s.arena));
                Calling::Atom(self.tool_atom(&name)?)
            }
            (None, None, Some(_)) => match text("agent").filter(|id| !id.is_empty()) {
                Some(id) => Calling::Agent(self.tool_atom("agentRun")?, id),
                None => return Err("needs the id of its `agent`".to_owned()),
            },
            _ => return Err("needs one of `call`, `atom` and `agent`".to_owned()),
        };
        let mut told = Map::new();
        let name = match (given("name"), calling) {
            (Some(name), _) => match doc.str(name) {
                Some(name) => Self::shown(name),
                None => return Err("needs a text as its `name`".to_owned()),
            },
            (None, Calling::Atom(sig)) => sig.name.to_string(),
            (None, Calling::Agent(_, id)) => Self::shown(id),
            (None, Calling::Call(..)) => return Err("needs a `name`".to_owned()),
        };
        told.insert("name", name);
        let described = match (given("description"), calling) {
            (Some(node), _) => Some(doc.to_value(node)),
            (None, Calling::Atom(sig)) => Some(Value::from(&*sig.docs)),
            (None, _) => None,
        };
        if let Some(described) = described {
            told.insert("description", described);
        }
        let schema = match (given("inputSchema"), calling) {
            (Some(node), _) => doc.to_value(node),
            (None, Calling::Atom(sig)) => Value::from(sig.described_schema()),
            (None, _) => {
                let mut any = Map::new();
                any.insert("type", "object");
                Value::Object(any)
            }
        };
        let checkable = schemas::checkable(&schema);
        let checked = (checkable != schema).then(|| {
            let mut checked = Map::new();
            checked.insert("name", told.get("name").cloned().unwrap_or(Value::Null));
            checked.insert("inputSchema", checkable);
            Value::Object(checked)
        });
        told.insert("inputSchema", schema);
        Ok(ToolNode {
            node,
            calling,
            checked,
            told: Value::Object(told),
        })
    }

    /// The signature of an atom that a call may name.
    fn tool_atom(&self, name: &str) -> Result<&'a AtomSig, String> {
        self.callable(name).map_err(|why| match why {
            NoCall::Unknown => format!("names an unknown atom: {name}"),
            NoCall::InProgram => format!("names '{name}', which runs in the program itself"),
        })
    }

    /// Warns of an invalid tool.
    pub(super) fn warn_tool(&mut self, node: NodeId, text: &str) {
        let doc = self.s.doc;
        let shown = excerpt(&doc.to_value(node).to_json_string());
        let help = "write `{\"name\", \"description\", \"inputSchema\", \"as\": \"input\", \
                    \"call\": {\"op\": ...}}`, `{\"atom\": ...}` or `{\"agent\": ..., \
                    \"description\"}`";
        let diag = self
            .s
            .warn(codes::MALFORMED_STEP, node, text.into())
            .with_offending(shown)
            .with_help(help);
        self.s.push(diag);
    }
}
