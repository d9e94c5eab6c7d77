//! Atoms as tools for models (language section 4.11), in the forms that model
//! providers and tool protocols publish.

use crate::Engine;
use a99_core::sig::{Effect, Form};
use a99_vm::atom::AtomDef;
use a99_vm::typed::strict;
use serde_json::{Map, Value, json};

/// Which atoms to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolFilter {
    /// All of them.
    #[default]
    All,
    /// The control forms: seq, if, while, return, try, varSet, varGet, scope.
    Flow,
    /// Those with these names.
    Names(Vec<String>),
}

/// How a tool is written down.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolForm {
    /// OpenAI's function form, which many others read.
    #[default]
    OpenAi,
    /// The same with `strict`: every input is named as required, and what is
    /// optional may be null. An atom whose input has no strict form, since a
    /// part of it may be anything, says `"strict": false`.
    OpenAiStrict,
    /// Anthropic's tool form.
    Anthropic,
    /// A tool of the Model Context Protocol, revision 2025-06-18 or later,
    /// with the output's schema where it is an object.
    Mcp,
}

impl Engine {
    /// The atoms as OpenAI function tools, in the order of registration.
    pub fn tools(&self, filter: &ToolFilter) -> Vec<Value> {
        self.tools_as(filter, ToolForm::OpenAi)
    }

    /// The atoms as tools of a form, in the order of registration.
    pub fn tools_as(&self, filter: &ToolFilter, form: ToolForm) -> Vec<Value> {
        self.atoms()
            .iter()
            .filter(|atom| !a99_atoms::is_internal(&atom.sig.name))
            .filter(|atom| match filter {
                ToolFilter::All => true,
                ToolFilter::Flow => atom.sig.form.is_some_and(is_flow),
                ToolFilter::Names(names) => names.iter().any(|n| *n == atom.sig.name),
            })
            .map(|atom| tool(atom, form))
            .collect()
    }
}

/// An atom as a tool.
pub fn tool(atom: &AtomDef, form: ToolForm) -> Value {
    let sig = &atom.sig;
    let input: Value = serde_json::from_str(&sig.input_schema).unwrap_or_else(|_| json!({}));
    match form {
        ToolForm::OpenAi => json!({
            "type": "function",
            "function": {"name": sig.name, "description": sig.docs, "parameters": input},
        }),
        ToolForm::OpenAiStrict => {
            let strict = strict(&input);
            json!({
                "type": "function",
                "function": {
                    "name": sig.name,
                    "description": sig.docs,
                    "strict": strict.is_some(),
                    "parameters": strict.unwrap_or_else(|| object(input)),
                },
            })
        }
        ToolForm::Anthropic => json!({
            "name": sig.name,
            "description": sig.docs,
            "input_schema": object(input),
        }),
        ToolForm::Mcp => mcp(atom, object(input)),
    }
}

fn mcp(atom: &AtomDef, input: Value) -> Value {
    let sig = &atom.sig;
    let mut tool = json!({
        "name": sig.name,
        "description": sig.docs,
        "inputSchema": input,
    });
    let output = serde_json::from_str::<Value>(&sig.output_schema).unwrap_or_default();
    if output.get("type").is_some_and(|kind| kind == "object") {
        tool["outputSchema"] = output;
    }
    tool["annotations"] = match sig.effect {
        Effect::Pure => json!({"readOnlyHint": true, "openWorldHint": false}),
        Effect::Io => json!({"openWorldHint": true}),
    };
    tool
}

/// A schema that says that it is one of an object: some forms insist.
fn object(schema: Value) -> Value {
    match schema {
        Value::Object(map) if map.contains_key("type") => Value::Object(map),
        Value::Object(map) => {
            let mut typed = Map::new();
            typed.insert("type".to_owned(), json!("object"));
            typed.extend(map);
            Value::Object(typed)
        }
        _ => json!({"type": "object"}),
    }
}

fn is_flow(form: Form) -> bool {
    matches!(
        form,
        Form::Seq
            | Form::If
            | Form::While
            | Form::Return
            | Form::Try
            | Form::VarSet
            | Form::VarGet
            | Form::Scope
    )
}
