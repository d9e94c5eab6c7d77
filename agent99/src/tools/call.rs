//! Converts a model's tool call to a step of a program.

use super::ToolForm;
use super::inputs::{ALL, Given, given};
use crate::Engine;
use serde_json::{Map, Value};
use std::fmt;

/// A tool call that cannot become a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCallError {
    /// There is no tool of that name.
    UnknownTool(String),
    /// The arguments are not an object.
    NoObject,
    /// The input must be JSON text and is not.
    NotJson {
        /// The name of the input.
        input: String,
        /// The parse error.
        error: String,
    },
}

impl fmt::Display for ToolCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolCallError::UnknownTool(name) => write!(f, "there is no tool named '{name}'"),
            ToolCallError::NoObject => f.write_str("the arguments of a tool are an object"),
            ToolCallError::NotJson { input, error } => {
                write!(f, "`{input}` is not the JSON text that it must be: {error}")
            }
        }
    }
}

impl std::error::Error for ToolCallError {}

impl Engine {
    /// Converts a model's tool call to a step: `op` and the inputs. `form` is the format in
    /// which the model got the tools.
    ///
    /// In OpenAI's strict form and in Gemini's, JSON texts are parsed and null inputs, which
    /// mean missing ones there, are left out.
    ///
    /// ```
    /// use agent99::{Engine, ToolForm, json};
    ///
    /// let step = Engine::new().tool_step(ToolForm::Gemini, "push", json!({
    ///     "list": "[1]", "item": "{\"n\": 2}",
    /// }))?;
    /// assert_eq!(step, json!({"op": "push", "list": [1], "item": {"n": 2}}));
    /// # Ok::<(), agent99::ToolCallError>(())
    /// ```
    ///
    /// # Errors
    /// The name is not a tool's, or the arguments do not match the tool's form.
    pub fn tool_step(
        &self,
        form: ToolForm,
        name: &str,
        arguments: Value,
    ) -> Result<Value, ToolCallError> {
        let atom = self
            .atoms()
            .get(name)
            .filter(|_| !a99_atoms::is_internal(name))
            .ok_or_else(|| ToolCallError::UnknownTool(name.to_owned()))?;
        let Value::Object(mut arguments) = arguments else {
            return Err(ToolCallError::NoObject);
        };
        match given(&atom.sig, form) {
            Given::Together => {
                let whole = arguments.remove(ALL).unwrap_or_default();
                arguments = match read(ALL, whole)? {
                    Value::Object(map) => map,
                    _ => return Err(ToolCallError::NoObject),
                };
            }
            Given::Named(texts) => {
                if matches!(form, ToolForm::OpenAiStrict | ToolForm::Gemini) {
                    arguments.retain(|_, value| !value.is_null());
                }
                for name in texts {
                    if let Some(value) = arguments.get_mut(&name) {
                        *value = read(&name, value.take())?;
                    }
                }
            }
        }
        let mut step = Map::new();
        step.insert("op".to_owned(), Value::String(name.to_owned()));
        step.extend(arguments.into_iter().filter(|(key, _)| key != "op"));
        Ok(Value::Object(step))
    }
}

fn read(input: &str, value: Value) -> Result<Value, ToolCallError> {
    let wrong = |error: String| ToolCallError::NotJson {
        input: input.to_owned(),
        error,
    };
    match value {
        Value::String(text) => {
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
        }
        _ => Err(wrong("it is no text".to_owned())),
    }
}
