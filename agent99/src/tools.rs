//! Tools for models (language section 4.11): atoms in the tool formats of providers and
//! protocols, and tool calls as steps.

mod call;
mod gemini;
mod inputs;

pub use call::ToolCallError;

use crate::Engine;
use a99_core::sig::Form;
use a99_vm::atom::AtomDef;
use serde_json::{Value, json};

/// Which atoms to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolFilter {
    /// All of them.
    #[default]
    All,
    /// The control forms: seq, if, while, return, try, varSet, varGet, scope.
    Flow,
    /// The atoms with these names.
    Names(Vec<String>),
}

/// The format of a tool definition.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolForm {
    /// OpenAI's function form, which many other services accept.
    #[default]
    OpenAi,
    /// OpenAI's function form with `strict`. Every input is required, and optional ones may
    /// be null. Inputs that strict mode cannot express, such as arbitrary data or objects
    /// with arbitrary keys, are JSON texts, which [`Engine::tool_step`] parses.
    OpenAiStrict,
    /// Anthropic's tool form.
    Anthropic,
    /// A function declaration of Gemini, with a schema in its subset of OpenAPI. Inputs that
    /// it cannot express are JSON texts, as in `OpenAiStrict`.
    Gemini,
    /// A tool of the Model Context Protocol, revision 2025-06-18 or later, with an output
    /// schema if the output is an object.
    Mcp,
}

impl Engine {
    /// The atoms as OpenAI function tools, in registration order.
    pub fn tools(&self, filter: &ToolFilter) -> Vec<Value> {
        self.tools_as(filter, ToolForm::OpenAi)
    }

    /// The atoms as tools in a given format, in registration order.
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

    /// The value of `tools` in a request or a protocol message: a list of the atoms, for
    /// Gemini one tool with all declarations.
    pub fn tool_list(&self, filter: &ToolFilter, form: ToolForm) -> Value {
        let tools = self.tools_as(filter, form);
        match form {
            ToolForm::Gemini => json!([{ "functionDeclarations": tools }]),
            _ => Value::Array(tools),
        }
    }
}

/// An atom as a tool.
pub fn tool(atom: &AtomDef, form: ToolForm) -> Value {
    let sig = &atom.sig;
    let input = inputs::schema(sig, form);
    match form {
        ToolForm::OpenAi => json!({
            "type": "function",
            "function": {"name": sig.name, "description": sig.docs, "parameters": input},
        }),
        ToolForm::OpenAiStrict => json!({
            "type": "function",
            "function": {
                "name": sig.name,
                "description": sig.docs,
                "strict": true,
                "parameters": input,
            },
        }),
        ToolForm::Anthropic => json!({
            "name": sig.name,
            "description": sig.docs,
            "input_schema": input,
        }),
        ToolForm::Gemini => {
            let mut declaration = json!({"name": sig.name, "description": sig.docs});
            // Gemini refuses an object schema without members; `parameters` is optional.
            if input["properties"]
                .as_object()
                .is_some_and(|map| !map.is_empty())
            {
                declaration["parameters"] = input;
            }
            declaration
        }
        ToolForm::Mcp => mcp(atom, input),
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
    tool["annotations"] = match sig.effect.is_local() {
        true => json!({"readOnlyHint": true, "openWorldHint": false}),
        false => json!({"openWorldHint": true}),
    };
    tool
}

fn is_flow(form: Form) -> bool {
    matches!(
        form,
        Form::Seq
            | Form::If
            | Form::While
            | Form::ForEach
            | Form::Break
            | Form::Continue
            | Form::Return
            | Form::Try
            | Form::VarSet
            | Form::VarGet
            | Form::Scope
    )
}
