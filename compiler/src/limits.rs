//! The nesting limits of decision D38, checked before any recursion, with facts about the
//! source from the same walk, and the limit of code size.

use crate::CompileOptions;
use crate::expr::MAX_NESTING;
use crate::findings::Findings;
use crate::ir::{FromJson, expr_text};
use a99_core::diag::{Diagnostic, Diagnostics, Severity, codes};
use a99_core::grammar::expression_key;
use a99_core::json::{Document, Kind, NodeId};

/// Nesting of a node: the number of steps, expression nodes and plain values around it.
#[derive(Copy, Clone, Default)]
struct Depth {
    steps: u32,
    exprs: u32,
    data: u32,
}

/// Instructions that any program may have, however short its source is.
const BASE_CODE: usize = 1 << 14;

/// Additional instructions for each byte of the source. A byte usually makes less than one. A
/// program that makes many more repeats parts, such as an expression for each hole of a
/// template that names it.
const CODE_PER_BYTE: usize = 4;

/// Bytes that a value counts as in a document without text.
const NODE_BYTES: usize = 8;

/// The largest integer whose neighbours are exact, too.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// The code budget for this source, in instructions.
pub(crate) fn max_code(doc: &Document, options: &CompileOptions) -> usize {
    let bytes = match doc.source() {
        Some(text) => text.len(),
        None => doc.node_count() * NODE_BYTES + doc.text_bytes(),
    };
    let most = BASE_CODE.saturating_add(bytes.saturating_mul(CODE_PER_BYTE));
    most.min(options.max_code.unwrap_or(usize::MAX))
}

/// Facts about a source, collected before it is compiled, so that nested parts are not walked
/// again for each level.
pub struct Facts {
    /// The depth that lowering may recurse to.
    pub depth: u32,
    /// One past the last node inside each node.
    ends: Vec<u32>,
    /// Whether a part of the request context is read (D75).
    pub reads_context: bool,
    /// Whether a step changes members of objects.
    pub sets_members: bool,
    /// Objects with the op `return`, ascending.
    returns: Vec<u32>,
    /// Expression nodes and argument nodes, ascending.
    nested: Vec<u32>,
    /// Strings that are values, ascending.
    texts: Vec<u32>,
    /// Numbers beyond those whose neighbours are exact.
    pub wide: Vec<NodeId>,
}

impl Facts {
    /// Whether the part of the source at a node contains a node of this list.
    fn holds(&self, node: NodeId, list: &[u32]) -> bool {
        let end = self.ends.get(node.0 as usize).copied().unwrap_or(0);
        let first = list.partition_point(|at| *at < node.0);
        list.get(first).is_some_and(|at| *at < end)
    }

    /// Number of nodes in a part of the source.
    pub fn size(&self, node: NodeId) -> usize {
        let end = self.ends.get(node.0 as usize).copied().unwrap_or(0);
        end.saturating_sub(node.0) as usize
    }

    /// Estimated number of instructions for a part of the source, for an initial allocation.
    pub(crate) fn room(&self, node: NodeId) -> usize {
        self.size(node).min(MANY_NODES) / 2
    }

    /// Whether there is a `return` step in this part of the source.
    pub fn has_return(&self, node: NodeId) -> bool {
        self.holds(node, &self.returns)
    }

    /// The `return` steps in this part of the source, in order.
    pub fn returns_in(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.ends.get(node.0 as usize).copied().unwrap_or(0);
        let first = self.returns.partition_point(|at| *at < node.0);
        let list = &self.returns[first..];
        list.iter()
            .take_while(move |at| **at < end)
            .map(|at| NodeId(*at))
    }

    /// Whether this part of the source contains an expression or an argument.
    pub fn has_nested(&self, node: NodeId) -> bool {
        self.holds(node, &self.nested)
    }

    /// Whether this part of the source contains a string.
    pub fn has_text(&self, node: NodeId) -> bool {
        self.holds(node, &self.texts)
    }
}

/// Checks the limits and collects facts for lowering.
///
/// # Errors
///
/// A diagnostic for each node that is one level too deep.
pub(crate) fn check(
    doc: &Document,
    options: &CompileOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Facts, Diagnostics> {
    let mut too_deep = Vec::new();
    let mut seen = 0usize;
    let mut deepest = 0;
    let (mut returns, mut nested) = (Vec::new(), Vec::new());
    let mut texts = Vec::with_capacity(doc.node_count() / 2);
    let mut wide = Vec::new();
    let texts_evaluate = is_version(doc, 4.0);
    let (mut reads_context, mut sets_members) = (false, false);
    let mut work = Vec::with_capacity(FEW_NODES);
    work.push((doc.root(), Depth::default()));
    // In reading order: the first child is pushed last.
    while let Some((node, mut depth)) = work.pop() {
        seen += 1;
        if seen.is_multiple_of(ASK_EVERY) && stop() {
            return Err(stopped().into());
        }
        let kind = doc.kind(node);
        match kind {
            Kind::String(_) => texts.push(node.0),
            Kind::Number(n) if n.abs() > MAX_SAFE => wide.push(node),
            Kind::Object => {
                let (expr, op) = (doc.get(node, "$expr"), doc.get(node, "op"));
                let kind = doc.get(node, "$kind");
                let is_context = |tag: Option<NodeId>| {
                    texts_evaluate && tag.is_some_and(|tag| doc.str(tag) == Some(b"context"))
                };
                reads_context |= is_context(kind) || is_context(expr);
                let text = texts_evaluate.then(|| expr_text(doc, node)).flatten();
                if texts_evaluate && !reads_context {
                    let of_step = op.and_then(|op| step_text(doc, node, op));
                    reads_context = [text, of_step]
                        .into_iter()
                        .flatten()
                        .any(|text| text_reads_context(doc, text));
                }
                if let Some(text) = text.and_then(|text| doc.str(text)) {
                    let around = depth.steps + depth.exprs;
                    deepest = deepest.max(around.saturating_add(may_nest(text)));
                    nested.push(node.0);
                } else if expr.is_some() {
                    depth.exprs += 1;
                } else if op.is_some() {
                    depth.steps += 1;
                }
                match op.and_then(|op| doc.str(op)) {
                    Some(b"return") => returns.push(node.0),
                    Some(b"memberSet" | b"memberDelete") => sets_members = true,
                    _ => {}
                }
                if text.is_some() {
                    // Noted above.
                } else if expr.is_some_and(|tag| FromJson::is_tag(doc, tag))
                    || kind.is_some_and(|kind| doc.str(kind) == Some(b"arg"))
                    || is_context(kind)
                {
                    nested.push(node.0);
                }
            }
            _ => {}
        }
        depth.data += 1;
        deepest = deepest.max(depth.steps + depth.exprs).max(depth.data / 2);
        if depth.exprs > options.max_expr_depth {
            let what = (codes::EXPRESSION_TOO_DEEP, "expression nodes");
            too_deep.push((node, what, options.max_expr_depth));
            continue;
        }
        if depth.steps > options.max_step_depth {
            let what = (codes::STEPS_TOO_DEEP, "steps");
            too_deep.push((node, what, options.max_step_depth));
            continue;
        }
        if matches!(kind, Kind::Object | Kind::Array) {
            work.extend(doc.parts(node).rev().map(|child| (child, depth)));
        }
    }
    if !too_deep.is_empty() {
        return Err(refused(doc, &too_deep));
    }
    // Rules check the last ones first.
    wide.reverse();
    if stop() {
        return Err(stopped().into());
    }
    Ok(Facts {
        depth: deepest,
        reads_context,
        sets_members,
        ends: doc.ends(),
        returns,
        nested,
        texts,
        wide,
    })
}

/// The text of a step that is an expression: a condition, or a formula.
fn step_text(doc: &Document, step: NodeId, op: NodeId) -> Option<NodeId> {
    doc.get(step, expression_key(doc.str(op)?)?)
}

/// Whether an expression text reads a part of the request context.
fn text_reads_context(doc: &Document, text: NodeId) -> bool {
    let text = doc.str(text).and_then(|text| str::from_utf8(text).ok());
    let text = text.filter(|text| text.contains("context"));
    let parsed = text.and_then(|text| crate::expr::parse_expression(text).ok());
    parsed.is_some_and(|parsed| parsed.reads_context())
}

/// Whether the root declares this version.
pub(crate) fn is_version(doc: &Document, version: f64) -> bool {
    let said = doc.get(doc.root(), "a99").map(|node| doc.kind(node));
    said == Some(Kind::Number(version))
}

/// Upper bound of the nesting of an expression text: each level needs a sign or a blank.
fn may_nest(text: &[u8]) -> u32 {
    let signs = text.iter().filter(|b| !b.is_ascii_alphanumeric()).count();
    signs.min(MAX_NESTING + 1) as u32
}

/// A node that is one level too deep: the code, the kind of node, and the limit.
type TooDeep = (NodeId, (&'static str, &'static str), u32);

/// The findings of nodes that are too deep, the last ones first.
fn refused(doc: &Document, nodes: &[TooDeep]) -> Diagnostics {
    let found = Findings::default();
    for (node, (code, what), limit) in nodes.iter().rev() {
        let pointer = match found.is_full(Severity::Error) {
            true => String::new(),
            false => doc.pointer(*node),
        };
        found.push(
            Diagnostic::error(code, format!("more than {limit} nested {what}"), pointer)
                .with_span(doc.span(*node))
                .with_help(
                    "split the program: move inner parts into helpers or separate variables",
                ),
        );
    }
    found.finish()
}

/// Usual number of nodes on the work list.
const FEW_NODES: usize = 64;

/// Nodes up to which the expected output is allocated at once.
const MANY_NODES: usize = 4096;

/// Nodes between two checks for cancellation.
const ASK_EVERY: usize = 1024;

/// The diagnostic of a compilation that the caller cancelled.
pub(crate) fn stopped() -> Diagnostic {
    Diagnostic::error(codes::STOPPED, "compiling was stopped", "")
}

/// The diagnostics of a deep program whose stack the system could not allocate.
pub(crate) fn no_stack(depth: u32) -> Diagnostics {
    let mut found = Diagnostics::new();
    found.push(Diagnostic::error(
        codes::STEPS_TOO_DEEP,
        format!("no memory to compile a program nested {depth} levels deep"),
        String::new(),
    ));
    found
}
