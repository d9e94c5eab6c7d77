//! Lint pass: warnings about likely mistakes in an accepted program.
//!
//! It watches a program being lowered, over the compiler's own scopes and signatures, as a
//! [`Pass`]. Findings are warnings (`lint.*`); a program disables a code by listing it in `allow`
//! at its root.
//!
//! [`compile`] compiles a program, with the pass if the options ask for it.

#![warn(unreachable_pub)]

mod accepted_kinds;
mod agents;
mod argument_mentions;
mod arguments;
mod atom_literals;
mod bodies;
mod calls;
mod code_text;
mod comparisons;
mod constants;
mod dropped_results;
mod empty_bodies;
mod events;
mod expressions;
mod flow;
mod foreign_trees;
mod homoglyphs;
mod inference;
mod inputs;
mod interpreted_inputs;
mod iterations;
mod kind_help;
mod kinds;
mod lost_assignments;
mod member_names;
mod misplaced_steps;
mod misplaced_values;
mod misread_values;
mod models;
mod names;
mod nested_literals;
mod nodes;
mod numeric_bounds;
mod origins;
mod outer_names;
mod patterns;
mod placeholders;
mod program;
mod ranges;
mod repeated_work;
mod schema_keywords;
mod schemas;
mod shell;
mod source_help;
mod steps;
mod stores;
mod synonyms;
mod template_holes;
mod text_parts;
mod tool_loop;
mod typos;
mod unused_names;

use a99_compiler::ir::At;
use a99_compiler::pass::{NewPass, Pass, View};
use a99_compiler::vars::VarMap;
use a99_compiler::{CompileOptions, compile_with_pass};
use a99_core::diag::{Diagnostics, codes, excerpt, suggest};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::Program;
use a99_core::sig::{Form, Signatures};
use a99_core::text::wtf8_to_string_lossy;
use hashbrown::{HashMap, HashSet};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use flow::Writer;
use kinds::Holds;

/// Compiles a program, with the lint pass if [`CompileOptions::lint`] is set.
///
/// # Errors
///
/// As [`a99_compiler::compile`].
pub fn compile(
    source: &Arc<Document>,
    signatures: &(dyn Signatures + Sync),
    options: &CompileOptions,
) -> Result<Program, Diagnostics> {
    compile_watched(source, signatures, options, &|| false)
}

/// Compiles a program that the caller can cancel, with the lint pass if [`CompileOptions::lint`]
/// is set.
///
/// # Errors
///
/// As [`a99_compiler::compile_watched`].
pub fn compile_watched(
    source: &Arc<Document>,
    signatures: &(dyn Signatures + Sync),
    options: &CompileOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Program, Diagnostics> {
    let pass = options.lint.then_some(new_pass as NewPass);
    compile_with_pass(source, signatures, options, stop, pass)
}

/// The lint pass for a program.
fn new_pass<'a>(doc: &'a Document) -> Box<dyn Pass<'a> + 'a> {
    Box::new(Lint::of(doc))
}

/// Nodes that the rules may walk in addition to lowering, in total: each level of nesting
/// searches the bodies inside it.
const MAX_WALKED: usize = 1 << 20;

/// Codes whose findings explain an unused variable.
const MISSES: &[&str] = &[
    codes::UNKNOWN_NAME,
    codes::UNSET_PROPERTY,
    codes::NAME_AS_TEXT,
    codes::NOT_VISIBLE,
    codes::LOST_ASSIGNMENT,
    codes::OVERWRITTEN_VALUE,
    codes::CODE_AS_TEXT,
    codes::FOREIGN_NODE,
    codes::UNKNOWN_ATOM,
    codes::UNKNOWN_FUNCTION,
    codes::UNKNOWN_EXPRESSION,
    codes::UNKNOWN_INPUT,
    codes::UNREACHABLE_STEP,
    codes::MALFORMED_STEP,
    codes::MALFORMED_NODE,
    codes::BAD_MATH,
    codes::WRONG_KIND,
    codes::WRONG_VALUE,
    codes::NO_RESULT,
    codes::MISSING_RESULT,
    codes::INHERITED_RESULT,
    codes::FORBIDDEN_MEMBER,
];

/// Whether a finding of this code may be the reason that a name is unused.
fn explains_unused(code: &str) -> bool {
    MISSES.contains(&code)
}

/// Shorter names get no spelling suggestions.
const MIN_NEAR: usize = 3;

/// State of the lint pass for one program.
#[derive(Default)]
struct Lint<'a> {
    /// Findings so far, for deduplication: conditions of loops are lowered twice.
    seen: HashSet<(&'static str, At)>,
    /// Codes that the program disables by `allow`.
    allowed: HashSet<&'a [u8]>,
    /// The arguments that the input schema declares, if it does.
    arguments: Option<HashSet<&'a [u8]>>,
    /// Number of enclosing loops.
    whiles: u32,
    /// The texts of templates, whose holes are filled.
    templates: HashSet<NodeId>,
    /// Assigned variables that hide a bound outer one of the same name and are not yet read.
    lost: VarMap<NodeId>,
    /// Data flow: bindings and reads, in order.
    flow: flow::Flow,
    /// Texts with a finding, which other rules skip.
    told: HashSet<NodeId>,
    /// Names that a faulty step would bind if it were correct.
    expected: HashSet<&'a [u8]>,
    /// Item names of the enclosing loops.
    items: Vec<&'a [u8]>,
    /// The item name and step of a condition that is checked before its item is bound.
    chosen: Option<(&'a [u8], NodeId)>,
    /// Item names of the loops that ended.
    left: HashSet<&'a [u8]>,
    /// Whether a finding may explain an unused name: an unknown name, or a lost value.
    misses: bool,
    /// Names that the program's steps bind, collected at the first query by a helper.
    outer: Option<HashSet<String>>,
    /// Helpers that steps call.
    called: HashSet<&'a [u8]>,
    /// Whether the program runs programs made at run time, which may call its helpers.
    runs_others: bool,
    /// Texts that no name resembled, with the number of names at that time.
    unlike: HashMap<Box<[u8]>, usize>,
    /// Nodes walked in addition to lowering.
    walked: usize,
    /// The last queried step and its form: rules query the same step repeatedly.
    last_form: Cell<(Option<NodeId>, Option<Form>)>,
    /// The vector length of each collection.
    collections: stores::Collections<'a>,
}

/// The member names of an object of the schema.
fn names_of(doc: &Document, node: Option<NodeId>) -> Option<HashSet<&[u8]>> {
    let node = node.filter(|n| doc.kind(*n) == Kind::Object)?;
    Some(doc.members(node).map(|(name, _)| name).collect())
}

impl<'a> Lint<'a> {
    /// Reads the root's `allow` and `inputSchema`.
    fn of(doc: &'a Document) -> Lint<'a> {
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

/// The rules at one event: what they see, and their state.
struct Rules<'v, 'a> {
    view: View<'v, 'a>,
    lint: &'v mut Lint<'a>,
}

impl<'v, 'a> Deref for Rules<'v, 'a> {
    type Target = View<'v, 'a>;

    fn deref(&self) -> &View<'v, 'a> {
        &self.view
    }
}

impl<'a> Rules<'_, 'a> {
    /// The name as text, for messages.
    fn shown(name: &[u8]) -> String {
        wtf8_to_string_lossy(name).into_owned()
    }

    /// Whether the program was written as a source. There, quotes distinguish texts from names, and
    /// lowering makes the names that begin with `_`.
    fn is_source(&self) -> bool {
        self.doc.has_origin()
    }

    /// Reports a finding, unless the program allows its code. The text that is blamed is that of
    /// the place, if none is given.
    fn found(
        &mut self,
        code: &'static str,
        at: impl Into<At>,
        message: impl Into<String>,
        offending: &str,
        help: impl Into<String>,
    ) {
        let (at, help) = (at.into(), help.into());
        if self.lint.allowed.contains(code.as_bytes()) || !self.lint.seen.insert((code, at)) {
            return;
        }
        let offending = match offending.is_empty() {
            true => self.written_at(at.node, at.inner),
            false => excerpt(offending),
        };
        let mut diag = self
            .warn(code, at.node, message.into())
            .with_inner(at.inner.map(|(from, to)| from..to))
            .with_offending(offending);
        if !help.is_empty() {
            diag = diag.with_help(match self.is_source() {
                true => source_help::in_source(&help).into_owned(),
                false => help,
            });
        }
        self.lint.on_finding(code);
        self.report(diag);
    }

    /// The text under a key of a node.
    fn text(&self, node: NodeId, key: &str) -> Option<String> {
        text_of(self.doc, self.doc.get(node, key)?)
    }

    /// Takes budget for a walk through a part of the source; returns whether it sufficed.
    fn spend_on(&mut self, node: NodeId) -> bool {
        let size = self.facts.size(node);
        let lint = &mut *self.lint;
        lint.walked = lint.walked.saturating_add(size);
        lint.walked <= MAX_WALKED
    }

    /// Marks a text as reported, so that other rules skip it.
    fn told(&mut self, node: NodeId) {
        self.lint.told.insert(node);
    }

    /// Records a name that a faulty step would bind if it were correct.
    fn expect_name(&mut self, name: &'a [u8]) {
        self.lint.expected.insert(name);
    }

    fn is_expected(&self, name: &[u8]) -> bool {
        self.lint.expected.contains(name)
    }

    /// The visible variable that is nearest to a name.
    fn nearest_variable(&mut self, name: &str) -> Option<String> {
        if !self.affords(self.vars.names_len()) {
            return None;
        }
        let names = self.vars.known_names().map(Self::shown);
        nearest_of(name, names.collect())
    }
}

/// The nearest of names for whose list [there was budget](View::affords); short names
/// are all near each other.
fn nearest_of(name: &str, mut names: Vec<String>) -> Option<String> {
    if name.len() < MIN_NEAR {
        return None;
    }
    names.retain(|other| other.len() >= MIN_NEAR && other != name);
    names.sort();
    suggest(name, names.iter().map(String::as_str))
}

/// The text of a string, for messages.
fn text_of(doc: &Document, node: NodeId) -> Option<String> {
    doc.str(node).map(Rules::shown)
}
