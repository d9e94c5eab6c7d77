//! Steps of the JSON tree, as lowering makes them.

use crate::tree::{Place, Tree};

/// A step that sets a variable.
pub(crate) fn set(name: &str, value: Tree, at: &Place) -> Tree {
    let inputs = [("key", Tree::text(name, at)), ("value", named(value))];
    Tree::step("varSet", inputs, at)
}

/// A value of an input, where the name of a variable is a text.
pub(crate) fn named(value: Tree) -> Tree {
    match value.ident_name() {
        Some(name) if a99_core::builtins::global(name).is_none() => Tree::text(name, &value.place),
        _ => value,
    }
}

/// An `if` step.
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

/// A loop over items.
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
