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

use crate::Program;
use crate::codes;
use crate::dispatch::Dispatch;
use crate::lower::{MAX_FINDINGS, place};
use a99_core::diag::{Diagnostic, Diagnostics, excerpt};
use emit::Emitter;
use hashbrown::HashMap;
use model::Model;
use oxc_ast::ast::Program as Syntax;
use oxc_span::Span;
use text::Changed;

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

/// What an expression may hold.
#[derive(Default)]
pub(crate) struct Holds<'a> {
    /// Names of the classes of instances.
    pub(crate) classes: Vec<&'a str>,
    pub(crate) has_functions: bool,
}

/// The expressions that may hold instances or functions, by their places; `None` if the source has
/// a form that the analysis does not know.
pub(crate) fn values<'a>(
    source: &'a str,
    program: &'a Syntax<'a>,
    agent: u32,
) -> Option<HashMap<(u32, u32), Holds<'a>>> {
    let mut model = Model::read(source, program, agent);
    if source.len() > MAX_SOURCE || model.is_foreign || !model.flow.solve() {
        return None;
    }
    let mut found = HashMap::new();
    for (at, node) in &model.nodes {
        let classes = model.flow.instances_in(*node);
        let holds = Holds {
            classes: classes
                .iter()
                .map(|class| model.classes[*class].name)
                .collect(),
            has_functions: !model.flow.functions_in(*node).is_empty(),
        };
        if holds.has_functions || !holds.classes.is_empty() {
            found.insert(*at, holds);
        }
    }
    Some(found)
}

impl Changed {
    /// Gives findings about the text their places in the source.
    pub(crate) fn original(&self, mut found: Diagnostics, source: &str) -> Diagnostics {
        for one in &mut found.0 {
            if let Some(span) = one.span.clone() {
                let (start, end) = self.origin((span.start, span.end));
                let written = source.get(start as usize..end as usize).unwrap_or_default();
                let line = written.lines().next().unwrap_or_default();
                let of = one
                    .clone()
                    .with_span(start..end)
                    .with_offending(excerpt(line));
                *one = of;
            }
        }
        found
    }

    /// Gives the parts of a program their places in the source.
    pub(crate) fn original_program(&self, program: Program, source: &str) -> Program {
        let origin = |span| self.origin(span);
        let mut warnings = self.original(program.warnings, source);
        warnings.locate(source.as_bytes());
        Program {
            json: program.json,
            places: program.places.into_iter().map(origin).collect(),
            warnings,
            required: program
                .required
                .into_iter()
                .map(|(name, at)| (name, origin((at, at + 1)).0))
                .collect(),
        }
    }
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

    /// The text with the places of its parts.
    pub(crate) fn changed(&self) -> &Changed {
        &self.inner.changed
    }
}
