//! Lint pass: what an accepted program most likely gets wrong.
//!
//! It runs while a program is lowered, over the compiler's own scopes and
//! signatures, if [`CompileOptions::lint`](crate::CompileOptions) asks for it.
//! Findings are warnings (`lint.*`); a program that lists a code in `allow` at
//! its root does not want to hear of it.

mod code_text;
mod names;
mod nodes;
mod program;
mod steps;
mod synonyms;

use super::Lower;
use crate::ir::At;
use crate::vars::VarId;
use a99_core::diag::excerpt;
use a99_core::json::{Document, Kind, NodeId};
use std::collections::{HashMap, HashSet};

pub(super) use synonyms::atom_for;

/// Shorter names are not compared.
const MIN_NEAR: usize = 3;

/// What the pass knows of a program.
#[derive(Default)]
pub(super) struct Lint<'a> {
    /// Findings that were made: conditions of loops are lowered twice.
    seen: HashSet<(&'static str, At)>,
    /// Codes that the program does not want to hear of.
    allowed: HashSet<&'a [u8]>,
    /// The arguments that the input schema declares, if it does.
    arguments: Option<HashSet<&'a [u8]>>,
    /// Loops around the present step.
    pub(super) whiles: u32,
    /// The texts of templates, whose holes are filled.
    templates: HashSet<NodeId>,
    /// Variables that were set where an outer one of the name is bound, and not
    /// read since.
    lost: HashMap<VarId, NodeId>,
}

/// A finding before it is written down.
struct Finding {
    code: &'static str,
    node: NodeId,
    inner: Option<(u32, u32)>,
    message: String,
    offending: String,
    help: String,
}

impl Finding {
    fn new(code: &'static str, node: NodeId, message: impl Into<String>) -> Finding {
        Finding {
            code,
            node,
            inner: None,
            message: message.into(),
            offending: String::new(),
            help: String::new(),
        }
    }

    fn offending(self, text: &str) -> Finding {
        let offending = excerpt(text);
        Finding { offending, ..self }
    }

    fn help(self, help: impl Into<String>) -> Finding {
        let help = help.into();
        Finding { help, ..self }
    }

    fn inner(self, inner: Option<(u32, u32)>) -> Finding {
        Finding { inner, ..self }
    }
}

/// The members of an object of the schema by their names.
fn names_of(doc: &Document, node: Option<NodeId>) -> Option<HashSet<&[u8]>> {
    let node = node.filter(|n| doc.kind(*n) == Kind::Object)?;
    Some(doc.members(node).map(|(name, _)| name).collect())
}

impl<'a> Lint<'a> {
    /// Reads what a program says of itself.
    pub(super) fn of(doc: &'a Document) -> Lint<'a> {
        let root = doc.root();
        let schema = doc.get(root, "inputSchema");
        let properties = schema.and_then(|schema| doc.get(schema, "properties"));
        let list = doc.get(root, "allow").into_iter();
        let allowed = list.flat_map(|list| doc.elements(list));
        Lint {
            allowed: allowed.filter_map(|code| doc.str(code)).collect(),
            arguments: names_of(doc, properties),
            ..Lint::default()
        }
    }
}

impl<'a> Lower<'_, 'a> {
    /// Whether the program is linted.
    pub(super) fn lints(&self) -> bool {
        self.s.lint.is_some()
    }

    fn found(&mut self, finding: Finding) {
        let Some(lint) = &mut self.s.lint else { return };
        let at = At {
            node: finding.node,
            inner: finding.inner,
        };
        let place = (finding.code, at);
        if lint.allowed.contains(finding.code.as_bytes()) || !lint.seen.insert(place) {
            return;
        }
        let inner = finding.inner.map(|(from, to)| from..to);
        let mut diag = self
            .s
            .warn(finding.code, finding.node, finding.message)
            .with_inner(inner)
            .with_offending(finding.offending);
        if !finding.help.is_empty() {
            diag = diag.with_help(finding.help);
        }
        self.s.push(diag);
    }

    /// The visible variable nearest to a name.
    fn nearest_variable(&mut self, name: &str) -> Option<String> {
        let names: Vec<String> = self.vars.known_names().map(Self::shown).collect();
        self.nearest_of(name, names)
    }

    /// The nearest of these names; short ones are all near each other.
    fn nearest_of(&mut self, name: &str, mut names: Vec<String>) -> Option<String> {
        names.retain(|other| other.len() >= MIN_NEAR && other != name);
        names.sort();
        let names = names.iter().map(String::as_str);
        self.s
            .nearest(name, names)
            .filter(|_| name.len() >= MIN_NEAR)
    }
}

/// The text of a string, for messages.
fn text_of(doc: &Document, node: NodeId) -> Option<String> {
    doc.str(node).map(Lower::shown)
}
