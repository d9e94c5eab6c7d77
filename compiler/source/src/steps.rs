//! Builds steps of the JSON tree.

use crate::tree::{Place, Tree};

/// Builds a step that sets a variable.
pub(crate) fn set(name: &str, value: Tree, at: &Place) -> Tree {
    let inputs = [("key", Tree::text(name, at)), ("value", named(value))];
    Tree::step("varSet", inputs, at)
}

/// Converts a value to an input, in which a variable is a text with its name.
pub(crate) fn named(value: Tree) -> Tree {
    match value.ident_name() {
        Some(name) if a99_core::builtins::global(name).is_none() => Tree::text(name, &value.place),
        _ => value,
    }
}

/// Builds an `if` step.
pub(crate) fn branch(test: Tree, then: Vec<Tree>, other: Vec<Tree>, at: &Place) -> Tree {
    let mut step = Tree::step(
        "if",
        [("condition", test), ("then", Tree::list(then, at))],
        at,
    );
    if !other.is_empty() {
        step.put("else", Tree::list(other, at));
    }
    step
}

/// Builds a loop over items.
pub(crate) fn for_each(
    items: Tree,
    name: &str,
    index: Option<&str>,
    steps: Vec<Tree>,
    at: &Place,
) -> Tree {
    let mut step = Tree::step(
        "forEach",
        [("items", named(items)), ("as", Tree::text(name, at))],
        at,
    );
    if let Some(index) = index {
        step.put("index", Tree::text(index, at));
    }
    step.put("steps", Tree::list(steps, at));
    step
}

/// Wraps steps in a loop of one turn.
pub(crate) fn one_turn(mut steps: Vec<Tree>, at: &Place) -> Vec<Tree> {
    let op = steps.last().and_then(|last| last.get("op")?.as_str());
    if !matches!(op, Some("break" | "Error")) {
        steps.push(Tree::step("break", [], at));
    }
    let inputs = [
        ("condition", Tree::bool(true, at)),
        ("body", Tree::list(steps, at)),
    ];
    vec![Tree::step("while", inputs, at)]
}

/// Negates a condition.
pub(crate) fn not(test: Tree) -> Tree {
    let at = test.place.clone();
    Tree::unary("!", test, &at)
}
