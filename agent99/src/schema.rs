//! JSON Schema (2020-12) of programs: for editors, for validators, and for models
//! whose answers are held to a schema.
//!
//! Both forms follow from the tables that the compiler and its findings read: the
//! rows of the atoms' inputs, the grammar of programs and the builtins.

mod full;
mod strict;

use crate::Engine;
use serde_json::{Value, json};

/// How strictly a schema says what a program is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum SchemaForm {
    /// Every program that is written as the language wants: for editors and
    /// validators.
    #[default]
    Full,
    /// A part of the language that OpenAI's structured outputs, and engines that
    /// hold a model to a grammar, take: every input stands in every step, and is
    /// `null` where it is not given; objects of any members are written as nodes
    /// `{"$expr": "object"}`. Programs of this form need no conversion.
    ///
    /// It has no helpers, no `vars` of conditions and of `mathCalc`, and none of
    /// the atoms that need what this form cannot say, such as `varsLet`.
    Strict,
}

impl Engine {
    /// The JSON Schema of programs for the atoms of this engine.
    ///
    /// ```
    /// use agent99::{Engine, SchemaForm};
    ///
    /// let schema = Engine::new().program_schema(SchemaForm::Full);
    /// assert_eq!(schema["required"], serde_json::json!(["op", "steps"]));
    /// ```
    #[must_use]
    pub fn program_schema(&self, form: SchemaForm) -> Value {
        let atoms = self.atoms().iter().map(|atom| &atom.sig);
        let atoms = atoms.filter(|sig| !a99_atoms::is_internal(&sig.name));
        match form {
            SchemaForm::Full => full::program(atoms),
            SchemaForm::Strict => strict::program(atoms),
        }
    }
}

/// A reference to a definition of the schema.
fn definition(name: &str) -> Value {
    let mut fragment = String::new();
    for byte in name.bytes() {
        match byte {
            b'~' => fragment.push_str("~0"),
            b'/' => fragment.push_str("~1"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                fragment.push(char::from(byte));
            }
            other => fragment.push_str(&format!("%{other:02X}")),
        }
    }
    json!({ "$ref": format!("#/$defs/{fragment}") })
}
