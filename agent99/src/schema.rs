//! JSON Schema (2020-12) of programs, for editors, validators, and models with structured
//! outputs.
//!
//! Both forms derive from the tables that the compiler reads: the inputs of atoms, the
//! grammar of programs and the builtins.

mod full;
mod strict;

use crate::Engine;
use serde_json::{Value, json};

/// How strict the schema of programs is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum SchemaForm {
    /// Every program in the recommended form, for editors and validators.
    #[default]
    Full,
    /// The subset for structured outputs of OpenAI and for grammar-constrained decoding.
    ///
    /// Every input occurs in every step; a missing one is `null`. Objects with arbitrary
    /// members are written as nodes `{"$expr": "object"}`. Programs of this form need no
    /// conversion.
    ///
    /// It leaves out helpers, `vars` of conditions and of `mathCalc`, and atoms that it
    /// cannot express, such as `varsLet`.
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
