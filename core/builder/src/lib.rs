//! The fluent builder: programs written as a chain of calls (language section
//! 4.13).
//!
//! A [`Builder`] only makes the JSON of a program; it runs and compiles nothing. Each atom of
//! the language has a chain method, control forms take closures that fill a nested builder, and
//! [`Builder::atom`] adds a step of any other atom. Extension traits for host atoms call it:
//!
//! ```
//! use a99_builder::{Builder, Operand};
//!
//! trait GreetBuilder {
//!     fn greet(self, name: impl Into<Operand>) -> Self;
//! }
//!
//! impl GreetBuilder for Builder {
//!     fn greet(self, name: impl Into<Operand>) -> Self {
//!         self.atom("greet", vec![("name", name.into())])
//!     }
//! }
//!
//! let program = Builder::new().greet("Ada").as_("greeting");
//! assert_eq!(
//!     program.to_json_string()?,
//!     r#"{"op":"seq","steps":[{"op":"greet","name":"Ada","result":"greeting"}]}"#
//! );
//! # Ok::<(), a99_core::diag::Diagnostics>(())
//! ```
//!
//! Methods have their atoms' names in snake case, with a final underscore for Rust's keywords
//! (`if_`, `as_`). Inputs have the order of the language's tables; a single optional input
//! takes `()` for absent, several are a struct of options. The reference's `custom(atoms)` has
//! no counterpart, since extension traits do its work.
//!
//! No chain method panics or stops the chain. An error, such as a result name before the first
//! step, is recorded with its place, and [`Builder::build`] and its relatives refuse the
//! program. The compiler checks that atoms exist and conditions parse.

#![warn(unreachable_pub)]

mod batteries;
mod chain;
mod data;
mod expr;
mod flow;
mod io;
mod lists;
mod operand;
mod shell;
mod state;
mod turn;

pub use batteries::{ChatOptions, ChatTool, LlmOptions, LoopBounds, SearchOptions, VisionOptions};
pub use data::RandomOptions;
pub use expr::{Expr, array, conditional, ident, keyed_object, literal, object};
pub use io::{FetchOptions, PageOptions, ProcedureOptions, QueryOptions, VectorSearchOptions};
pub use operand::{Operand, args, context, val};
pub use shell::{ReadFileOptions, ShellOptions, WriteFileOptions};
pub use turn::{CallMethodOptions, PublishOptions, SendOptions, TimerOptions, UpdateOptions};

use a99_core::diag::{Diagnostic, Diagnostics, codes};
use a99_core::value::{Map, Value};

/// Keys of a step that are not inputs of its atom (language section 1.2).
const STEP_KEYS: &[&str] = &["op", "result", "resultConst"];

/// A program under construction.
///
/// Each chain method consumes the builder and returns it with one more step.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until its program is taken out"]
pub struct Builder {
    steps: Vec<Value>,
    /// Other keys of the root, which a body must not have.
    root: Root,
    findings: Vec<Diagnostic>,
}

/// Keys of a program's root other than `op` and `steps` (language section 1.1).
#[derive(Clone, Debug, Default)]
struct Root {
    version: Option<u32>,
    input_schema: Option<Value>,
    /// Helpers by name.
    helpers: Map,
}

impl Builder {
    /// A program without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// A program for arguments of this schema. As in the reference, the schema documents the
    /// program and is not part of it; see [`Builder::input_schema`].
    pub fn take(_schema: impl Into<Value>) -> Self {
        Self::default()
    }

    /// Sets the version of the program, `a99` at its root (decision D62).
    pub fn version(mut self, version: u32) -> Self {
        self.root.version = Some(version);
        self
    }

    /// Adds a step of any atom, with its inputs in the given order; absent operands are left
    /// out.
    ///
    /// [`Builder::build`] refuses an input named like one of the step's own keys (`op`,
    /// `result`, `resultConst`).
    pub fn atom(mut self, op: &str, params: Vec<(&'static str, Operand)>) -> Self {
        self.push_step(
            op,
            params
                .into_iter()
                .map(|(key, operand)| (key, operand.into_value())),
        );
        self
    }

    /// Adds an existing step, unchanged.
    pub fn step(mut self, node: impl Into<Value>) -> Self {
        self.steps.push(node.into());
        self
    }

    /// Names the variable that receives the last step's value.
    ///
    /// Before the first step this is the error `No step to capture`.
    pub fn as_(mut self, name: &str) -> Self {
        self.capture(name, false);
        self
    }

    /// Names the constant that receives the last step's value
    /// (`resultConst`).
    ///
    /// Before the first step this is the error `No step to capture`.
    pub fn as_const(mut self, name: &str) -> Self {
        self.capture(name, true);
        self
    }

    /// Errors of the chain so far.
    #[must_use]
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// The steps so far.
    #[must_use]
    pub fn steps(&self) -> &[Value] {
        &self.steps
    }

    /// The program: `{"op": "seq", "steps": [..]}`, then `inputSchema` and `helpers` if given.
    ///
    /// # Errors
    /// Every fault of the chain, with a pointer to its place in the program.
    pub fn build(self) -> Result<Value, Diagnostics> {
        if !self.findings.is_empty() {
            return Err(Diagnostics::from_iter(self.findings));
        }
        let mut root = Map::new();
        root.insert("op", "seq");
        if let Some(version) = self.root.version {
            root.insert("a99", f64::from(version));
        }
        root.insert("steps", self.steps);
        if let Some(schema) = self.root.input_schema {
            root.insert("inputSchema", schema);
        }
        if !self.root.helpers.is_empty() {
            root.insert("helpers", self.root.helpers);
        }
        Ok(Value::Object(root))
    }

    /// The program; the builder can continue.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn to_value(&self) -> Result<Value, Diagnostics> {
        self.clone().build()
    }

    /// The program as a `serde_json` value.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn to_json(&self) -> Result<serde_json::Value, Diagnostics> {
        self.to_value().map(|program| program.to_json())
    }

    /// The program as JSON text.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn to_json_string(&self) -> Result<String, Diagnostics> {
        self.to_value().map(|program| program.to_json_string())
    }

    fn push_step(&mut self, op: &str, params: impl IntoIterator<Item = (impl AsRef<str>, Value)>) {
        let mut step = Map::new();
        step.insert("op", op);
        for (key, value) in params {
            let key = key.as_ref();
            if STEP_KEYS.contains(&key) {
                self.findings.push(reserved(self.steps.len(), key));
            } else if !value.is_undefined() {
                step.insert(key, value);
            }
        }
        self.steps.push(Value::Object(step));
    }

    fn capture(&mut self, name: &str, constant: bool) {
        let Some(Value::Object(step)) = self.steps.last_mut() else {
            let place = self.steps.len().checked_sub(1);
            self.findings.push(nothing_to_capture(place, name));
            return;
        };
        step.insert("result", name);
        if constant {
            step.insert("resultConst", true);
        }
    }
}

fn nothing_to_capture(step: Option<usize>, name: &str) -> Diagnostic {
    let pointer = step.map_or_else(|| "/steps".to_owned(), |at| format!("/steps/{at}"));
    Diagnostic::error(codes::NO_STEP, "No step to capture", pointer)
        .with_offending(name)
        .with_help("add the step whose value the name is for before naming it")
}

fn reserved(step: usize, key: &str) -> Diagnostic {
    let message = format!("'{key}' belongs to the step and cannot be an input");
    Diagnostic::error(codes::INPUT_IS_KEY, message, format!("/steps/{step}/{key}"))
        .with_offending(key)
        .with_help("give the input another name; `as_` and `as_const` name a step's result")
}

#[cfg(test)]
mod tests;
