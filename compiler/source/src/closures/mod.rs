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
mod walk;

use crate::codes;
use crate::dispatch::Dispatch;
use crate::edits::{Changed, MAX_SOURCE};
use crate::lower::{MAX_FINDINGS, place};
use a99_core::diag::{Diagnostic, Diagnostics, excerpt};
use emit::Emitter;
use hashbrown::HashMap;
use model::Model;
use oxc_ast::ast::Program as Syntax;
use oxc_span::Span;
use std::ops::Range;

/// A source without closures.
pub(crate) struct Rewritten {
    inner: emit::Rewritten,
    agent: u32,
}

/// Rewrites the closures of a source, which could not be lowered for these findings. `None` if it
/// has none.
pub(crate) fn rewrite<'a>(
    source: &'a str,
    program: &'a Syntax<'a>,
    (agent, library): (u32, Range<u32>),
    names: &[&str],
    found: &Diagnostics,
) -> Option<Result<Rewritten, Diagnostics>> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let mut model = Model::read(source, program, (agent, library));
    if !model.flow.solve() {
        return None;
    }
    let plan = model.plan()?;
    if model.is_plain(&plan) {
        return None;
    }
    if let Some(at) = model.foreign {
        return Some(Err(unknown_form(source, at, found)));
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

/// The findings about a form that closures do not know. Lowering, which knows no closures, may have
/// said what to write for it; the rest of what it found is about closures.
fn unknown_form(source: &str, at: Span, found: &Diagnostics) -> Diagnostics {
    let is_there = |one: &&Diagnostic| {
        let span = one.span.as_ref();
        span.is_some_and(|span| span.start < at.end && at.start < span.end)
    };
    let there: Vec<Diagnostic> = found.iter().filter(is_there).cloned().collect();
    if !there.is_empty() {
        return Diagnostics(there);
    }
    let message = "this form is outside of the subset beside functions as values and classes";
    let help = "write it without the form, or without functions that are values";
    finding(source, at, message.to_owned(), help.to_owned()).into()
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
    (agent, library): (u32, Range<u32>),
) -> Option<HashMap<(u32, u32), Holds<'a>>> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let mut model = Model::read(source, program, (agent, library));
    if model.foreign.is_some() || !model.flow.solve() {
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

impl Rewritten {
    pub(crate) fn changed(&self) -> &Changed {
        &self.inner.changed
    }

    pub(crate) fn dispatches(&self) -> &HashMap<String, Dispatch> {
        &self.inner.dispatches
    }

    /// Offset of the agent's function in the text.
    pub(crate) fn agent(&self) -> u32 {
        self.agent
    }
}
