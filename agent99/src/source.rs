//! Programs in the source form.

use crate::agent::{Agent, Required};
use crate::engine::{Engine, Refused, verified};
use crate::load::SourceCheck;
use crate::nodes::with_nodes;
use a99_core::diag::{Diagnostic, Diagnostics};
use a99_core::json::Document;
use a99_lint::compile_watched;
use a99_source::codes::UNSAYABLE;
use std::sync::Arc;

/// Bytes of a variable's name to show, at most.
const MAX_VARIABLE: usize = 120;

impl Engine {
    /// Compiles a program in the source form, a subset of JavaScript (docs/source.md). Places
    /// refer to the source; [`Agent::source`] is the JSON it was lowered to.
    ///
    /// ```
    /// use agent99::{Engine, RunOptions, json};
    ///
    /// let engine = Engine::new();
    /// let agent = engine.compile_source("function agent({ n }) { return { twice: n * 2 } }")?;
    /// let outcome = engine.run_sync(&agent, json!({"n": 4}), RunOptions::new());
    /// assert_eq!(outcome.result.to_json(), json!({"twice": 8}));
    /// # Ok::<(), agent99::Refused>(())
    /// ```
    ///
    /// # Errors
    /// Every finding that rejects the program, with places in the source.
    pub fn compile_source(&self, source: impl Into<Vec<u8>>) -> Result<Agent, Refused> {
        let source = source.into();
        let (document, warnings, required) = self.read(&source)?;
        let options = &self.0.compiler.options;
        let mut program = compile_watched(&Arc::new(document), self.atoms(), options, &|| false)?;
        program.warnings.0.splice(0..0, warnings);
        let artifact = verified(program, &|| false).map_err(|mut found| {
            found.locate(&source);
            found
        })?;
        Ok(self.link(&artifact)?.with_required(required))
    }

    /// Lowers a source to its program, with warnings about differences from JavaScript.
    ///
    /// # Errors
    /// As [`Engine::compile_source`], without those of the lowered program.
    pub fn read_source(&self, source: &[u8]) -> Result<(Document, Diagnostics), Refused> {
        let (document, warnings, _) = self.read(source)?;
        Ok((document, warnings))
    }

    fn read(&self, source: &[u8]) -> Result<(Document, Diagnostics, Vec<Required>), Refused> {
        let read = a99_source::read(source, self.atoms())?;
        let document = Document::parse(read.json, &self.0.compiler.limits)?;
        let document = document.with_origin(source.to_vec(), read.places);
        let required = read.required.into_iter();
        let required = required.map(|(name, at)| {
            let pattern = pattern_of(&name, source.get(at as usize..).unwrap_or_default());
            (name, pattern, document.line_col(at))
        });
        let required = required.collect();
        Ok((document, read.warnings, required))
    }

    /// The JSON of an agent: the text it was compiled from. For the source form it is the
    /// lowered program, with expressions as texts. That program has the same behavior and
    /// cost, but its errors name inputs of steps instead of the source's text.
    pub fn program_json(&self, agent: &Agent) -> Option<Vec<u8>> {
        let source = &agent.artifact().program().source;
        match source.document() {
            Some(document) if document.has_origin() => {
                Some(a99_source::texts(document, self.atoms()))
            }
            _ => agent.source().map(std::borrow::Cow::into_owned),
        }
    }

    /// Prints a program in the source form: JavaScript that compiles to the same behavior
    /// (docs/source.md).
    ///
    /// ```
    /// use agent99::Engine;
    ///
    /// let engine = Engine::new();
    /// let agent = engine.compile(
    ///     r#"{"op": "seq", "a99": 4, "steps": [{"op": "return", "value": {"=": "n * 2"}}]}"#,
    /// )?;
    /// let source = engine.print_source(&agent)?;
    /// assert!(source.contains("agent({ n }) {\n  return n * 2\n}"), "{source}");
    /// # Ok::<(), agent99::Refused>(())
    /// ```
    ///
    /// # Errors
    /// The place that the source form cannot express.
    pub fn print_source(&self, agent: &Agent) -> Result<String, Refused> {
        let source = &agent.artifact().program().source;
        let Some(document) = source.document() else {
            let found = Diagnostic::error(UNSAYABLE, "the artifact has no source", "");
            return Err(found.with_help("compile it without `--strip`").into());
        };
        let nodes = Document::parse(with_nodes(document), &self.0.compiler.limits)?;
        a99_source::print(&nodes, self.atoms())
    }

    /// Whether the original text, if any, compiles to the agent's source.
    pub(crate) fn compare_origin(&self, agent: &Agent) -> SourceCheck {
        let source = &agent.artifact().program().source;
        let Some((text, places)) = source.origin() else {
            return SourceCheck::Matches;
        };
        let again = a99_source::read(text, self.atoms());
        let is_same = |again: a99_source::Program| {
            again.places == places && source.text().as_deref() == Some(again.json.as_slice())
        };
        match again.is_ok_and(is_same) {
            true => SourceCheck::Matches,
            false => SourceCheck::Differs,
        }
    }
}

/// The binding of an argument in the parameter pattern, given the source text from its
/// variable's name on.
fn pattern_of(name: &str, source: &[u8]) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let text = String::from_utf8_lossy(&source[..source.len().min(MAX_VARIABLE)]);
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let variable = &text[..end];
    let is_word = name.chars().all(is_part) && !name.starts_with(|c: char| c.is_numeric());
    match is_word {
        _ if name == variable => name.to_owned(),
        true => format!("{name}: {variable}"),
        false => format!("{}: {variable}", serde_json::Value::from(name)),
    }
}
