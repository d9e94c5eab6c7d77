//! The closed set of functions and methods that a condition text may call (decision D2).
//!
//! Names only: what a method does with its receiver, and whether the receiver has it, is the
//! evaluator's business. The lists follow language section 3.5 and 3.6.

/// Functions that can be called by name.
const FUNCTIONS: &[&str] = &[
    "Date",
    "Error",
    "Set",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "filter",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
];

/// Methods of strings, arrays, numbers, booleans, namespaces, sets and dates. The forbidden
/// names are here so that they reach the evaluator, whose error is catchable (decision D44).
const METHODS: &[&str] = &[
    "__proto__",
    "abs",
    "acos",
    "acosh",
    "add",
    "any",
    "array",
    "asin",
    "asinh",
    "assign",
    "at",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "charAt",
    "charCodeAt",
    "clear",
    "clz32",
    "codePointAt",
    "concat",
    "constructor",
    "copyWithin",
    "cos",
    "cosh",
    "datetime",
    "diff",
    "email",
    "emoji",
    "endsWith",
    "entries",
    "enum",
    "error",
    "every",
    "exp",
    "expm1",
    "fill",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "floor",
    "forEach",
    "format",
    "from",
    "fromCharCode",
    "fromCodePoint",
    "fromEntries",
    "fromExample",
    "fround",
    "has",
    "hasOwn",
    "hypot",
    "imul",
    "includes",
    "indexOf",
    "infer",
    "info",
    "intersection",
    "ipv4",
    "isAfter",
    "isArray",
    "isBefore",
    "isFinite",
    "isInteger",
    "isNaN",
    "isSafeInteger",
    "isValid",
    "isWellFormed",
    "join",
    "keys",
    "lastIndexOf",
    "localeCompare",
    "log",
    "log10",
    "log1p",
    "log2",
    "map",
    "match",
    "matchAll",
    "max",
    "min",
    "normalize",
    "now",
    "null",
    "object",
    "of",
    "padEnd",
    "padStart",
    "parse",
    "parseFloat",
    "parseInt",
    "pattern",
    "pop",
    "pow",
    "prototype",
    "push",
    "random",
    "record",
    "reduce",
    "reduceRight",
    "remove",
    "repeat",
    "replace",
    "replaceAll",
    "response",
    "reverse",
    "round",
    "search",
    "shift",
    "sign",
    "sin",
    "sinh",
    "slice",
    "some",
    "sort",
    "splice",
    "split",
    "sqrt",
    "startsWith",
    "stringify",
    "substr",
    "substring",
    "tan",
    "tanh",
    "toArray",
    "toExponential",
    "toFixed",
    "toLocaleLowerCase",
    "toLocaleString",
    "toLocaleUpperCase",
    "toLowerCase",
    "toPrecision",
    "toReversed",
    "toSorted",
    "toSpliced",
    "toString",
    "toUpperCase",
    "toWellFormed",
    "trim",
    "trimEnd",
    "trimLeft",
    "trimRight",
    "trimStart",
    "trunc",
    "tuple",
    "undefined",
    "union",
    "unshift",
    "url",
    "uuid",
    "valueOf",
    "values",
    "warn",
    "with",
];

/// Whether `name(…)` is a builtin call.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.binary_search(&name).is_ok()
}

/// Whether `object.name(…)` is in the closed set.
pub(super) fn is_method(name: &str) -> bool {
    METHODS.binary_search(&name).is_ok()
}

/// The known name nearest to `name`, when one is at most two edits away.
pub(super) fn nearest(name: &str, methods: bool) -> Option<&'static str> {
    /// Longer names are not compared: no builtin is that long, and the cost is quadratic.
    const MAX_COMPARED: usize = 32;
    if name.len() > MAX_COMPARED {
        return None;
    }
    let known = if methods { METHODS } else { FUNCTIONS };
    known
        .iter()
        .map(|candidate| (edit_distance(name, candidate), *candidate))
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
    fn lists_are_sorted_for_binary_search() {
        assert!(FUNCTIONS.is_sorted());
        assert!(METHODS.is_sorted());
    }

    #[test]
    fn near_names_are_suggested() {
        assert_eq!(nearest("include", true), Some("includes"));
        assert_eq!(nearest("parseint", false), Some("parseInt"));
        assert_eq!(nearest("launchRockets", true), None);
    }
}
