//! Atoms as tools for models (language section 4.11), in the forms that model
//! providers and tool protocols publish, and the calls that come back as steps.

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
    /// optional may be null. What the rules have no form for, such as data of
    /// any kind or an object with members of any name, is given as a text of
    /// JSON, which [`Engine::tool_step`] reads.
    OpenAiStrict,
    /// Anthropic's tool form.
    Anthropic,
    /// A function declaration of Gemini, with a schema of the part of OpenAPI
    /// that it knows. What that has no form for is a text of JSON, as above.
    Gemini,
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

    /// The atoms as what a request, or an answer of the protocol, has under
    /// `tools`: a list of them, for Gemini one tool with all declarations.
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
            // An object without members is refused; a function may be without
            // parameters.
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
