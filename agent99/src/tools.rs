//! Atoms as tools for models: OpenAI's function form (language section 4.11).

use crate::Engine;
use a99_core::sig::Form;
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

impl Engine {
    /// The atoms as OpenAI function tools, in the order of registration.
    pub fn tools(&self, filter: &ToolFilter) -> Vec<Value> {
        self.atoms()
            .iter()
            .filter(|atom| !a99_atoms::is_internal(&atom.sig.name))
            .filter(|atom| match filter {
                ToolFilter::All => true,
                ToolFilter::Flow => atom.sig.form.is_some_and(is_flow),
                ToolFilter::Names(names) => names.iter().any(|n| *n == atom.sig.name),
            })
            .map(|atom| {
                let parameters: Value =
                    serde_json::from_str(&atom.sig.input_schema).unwrap_or_else(|_| json!({}));
                json!({
                    "type": "function",
                    "function": {
                        "name": atom.sig.name,
                        "description": atom.sig.docs,
                        "parameters": parameters,
                    }
                })
            })
            .collect()
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
