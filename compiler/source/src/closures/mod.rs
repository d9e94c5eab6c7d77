//! Closures: functions as values, functions that set outer variables, and classes.
//!
//! The whole program is known, so that each call of a value has a known set of functions. The
//! source is rewritten to one without closures, which is lowered as any other: a function that is
//! a value moves to the top and takes the variables that it needs as parameters; its value is an
//! object with its number and these variables. A variable that several functions share and set
//! becomes an object. An instance of a class is an object, and its methods are functions.

mod apply;
mod assign;
mod calls;
mod check;
mod classes;
mod emit;
mod emit_calls;
mod expr;
mod flow;
mod instances;
mod model;
mod namespaces;
mod plan;
mod queries;
mod sites;
pub(crate) mod text;
mod walk;

use crate::codes;
use crate::dispatch::Dispatch;
use crate::lower::{MAX_FINDINGS, place};
use a99_core::diag::{Diagnostic, Diagnostics, excerpt};
use emit::Emitter;
use hashbrown::HashMap;
use model::Model;
use oxc_ast::ast::Program as Syntax;
use oxc_span::Span;

/// Maximum bytes of a source whose closures are rewritten: the analysis takes more than linear
/// time.
const MAX_SOURCE: usize = 128 << 10;

/// A source without closures.
pub(crate) struct Rewritten {
    inner: emit::Rewritten,
    agent: u32,
}

/// Rewrites the closures of a source. `None` if it has none, or a form that only lowering knows.
pub(crate) fn rewrite<'a>(
    source: &'a str,
    program: &'a Syntax<'a>,
    agent: u32,
    names: &[&str],
) -> Option<Result<Rewritten, Diagnostics>> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let mut model = Model::read(source, program, agent);
    if model.is_foreign || !model.flow.solve() {
        return None;
    }
    let plan = model.plan()?;
    if model.is_plain(&plan) {
        return None;
    }
    if !model.problems.is_empty() {
        let problems = std::mem::take(&mut model.problems);
        let found = problems.into_iter().map(|(at, what, help)| {
            let message = format!("{what} is outside of the subset");
            finding(source, at, message, help)
        });
        let mut all: Vec<Diagnostic> = Vec::new();
        for one in found {
            let is_known = all
                .iter()
                .any(|known| known.span == one.span && known.message == one.message);
            if !is_known && all.len() < MAX_FINDINGS {
                all.push(one);
            }
        }
        return Some(Err(Diagnostics(all)));
    }
    let taken = names.iter().map(|name| (*name).to_owned()).collect();
    let inner = Emitter::new(&model, &plan, taken).write();
    let agent = inner.changed.destination(agent)?;
    Some(Ok(Rewritten { inner, agent }))
}

fn finding(source: &str, at: Span, message: String, help: String) -> Diagnostic {
    let written = source.get(at.start as usize..at.end as usize);
    let line = written
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default();
    Diagnostic::error(codes::UNSUPPORTED, message, "")
        .with_span(place(at))
        .with_offending(excerpt(line))
        .with_help(help)
}

impl Rewritten {
    pub(crate) fn text(&self) -> &str {
        &self.inner.changed.text
    }

    pub(crate) fn dispatches(&self) -> &HashMap<String, Dispatch> {
        &self.inner.dispatches
    }

    /// Offset of the agent's function in the text.
    pub(crate) fn agent(&self) -> u32 {
        self.agent
    }

    /// The text, with the places of its parts in the source.
    pub(crate) fn changed(&self) -> &text::Changed {
        &self.inner.changed
    }
}
