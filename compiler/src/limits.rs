//! The nesting limits of decision D38, checked before anything recurses.

use crate::CompileOptions;
use a99_core::diag::{Diagnostic, Diagnostics, codes};
use a99_core::json::{Document, Kind, NodeId};

/// Nesting of a node: how many steps, expression nodes and plain values are
/// around it.
#[derive(Copy, Clone, Default)]
struct Depth {
    steps: u32,
    exprs: u32,
    data: u32,
}

/// Checks the limits and gives the depth that lowering may recurse to.
///
/// # Errors
/// A diagnostic for each node that is one level too deep.
pub(crate) fn check(doc: &Document, options: &CompileOptions) -> Result<u32, Diagnostics> {
    let mut found = Diagnostics::new();
    let mut deepest = 0;
    let mut work = vec![(doc.root(), Depth::default())];
    while let Some((node, mut depth)) = work.pop() {
        if doc.kind(node) == Kind::Object {
            if doc.get(node, "$expr").is_some() {
                depth.exprs += 1;
            } else if doc.get(node, "op").is_some() {
                depth.steps += 1;
            }
        }
        depth.data += 1;
        deepest = deepest.max(depth.steps + depth.exprs).max(depth.data / 2);
        if depth.exprs > options.max_expr_depth {
            found.push(too_deep(
                doc,
                node,
                codes::E0103,
                "expression nodes",
                options.max_expr_depth,
            ));
            continue;
        }
        if depth.steps > options.max_step_depth {
            found.push(too_deep(
                doc,
                node,
                codes::E0102,
                "steps",
                options.max_step_depth,
            ));
            continue;
        }
        work.extend(doc.elements(node).map(|child| (child, depth)));
        work.extend(doc.members(node).map(|(_, child)| (child, depth)));
    }
    if found.is_empty() {
        Ok(deepest)
    } else {
        Err(found)
    }
}

fn too_deep(
    doc: &Document,
    node: NodeId,
    code: &'static str,
    what: &str,
    limit: u32,
) -> Diagnostic {
    Diagnostic::error(
        code,
        format!("more than {limit} nested {what}"),
        doc.pointer(node),
    )
    .with_span(doc.span(node))
    .with_help("split the program: move inner parts into helpers or separate variables")
}

/// The system would not give the stack that a deep program needs.
pub(crate) fn no_stack(depth: u32) -> Diagnostics {
    let mut found = Diagnostics::new();
    found.push(Diagnostic::error(
        codes::E0102,
        format!("no memory to compile a program nested {depth} levels deep"),
        String::new(),
    ));
    found
}
