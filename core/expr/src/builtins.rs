//! Callable names: the closed set of functions and methods that a condition text may call
//! (decision D2), from the tables of `core`.
//!
//! Only names are checked here. The evaluator decides whether a receiver has the method.

use a99_core::builtins::{
    CallContext, FUNCTIONS, METHODS, is_forbidden, is_function_in, is_method_in,
};

/// Whether `name(…)` is a builtin call.
pub(super) fn is_function(name: &str) -> bool {
    is_function_in(name, CallContext::Condition)
}

/// Whether `object.name(…)` is in the closed set. Forbidden names are accepted: the evaluator
/// rejects them with a catchable error (decision D44).
pub(super) fn is_method(name: &str) -> bool {
    is_forbidden(name.as_bytes()) || is_method_in(name, CallContext::Condition)
}

/// The names of functions or of methods, possibly with duplicates.
fn known(methods: bool) -> impl Iterator<Item = &'static str> {
    let here = |places: &[CallContext]| places.contains(&CallContext::Condition);
    let functions = FUNCTIONS
        .iter()
        .filter(move |f| f.ns.is_empty() != methods && here(f.places))
        .map(|f| f.name);
    let methods = METHODS
        .iter()
        .filter(move |m| methods && here(m.places))
        .map(|m| m.name);
    functions.chain(methods)
}

/// The known name nearest to `name`, if it is at most two edits away.
pub(super) fn nearest(name: &str, methods: bool) -> Option<&'static str> {
    /// Longer names are not compared: no builtin is that long, and the cost is quadratic.
    const MAX_COMPARED: usize = 32;
    if name.len() > MAX_COMPARED {
        return None;
    }
    known(methods)
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 2 && *distance < candidate.len() / 2)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            let substituted = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            row[j + 1] = substituted.min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_a_condition_may_call() {
        assert!(is_function("parseInt") && !is_function("trim"));
        assert!(is_method("trim") && is_method("keys") && is_method("__proto__"));
        assert!(!is_method("anchor") && !is_method("launchRockets"));
    }

    #[test]
    fn near_names_are_suggested() {
        assert_eq!(nearest("include", true), Some("includes"));
        assert_eq!(nearest("parseint", false), Some("parseInt"));
        assert_eq!(nearest("launchRockets", true), None);
    }
}
