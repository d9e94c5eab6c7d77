//! Keywords: words that tell the guard how deep the parser goes, and what a `/` is.

/// Words behind which a `/` begins a regular expression.
pub(crate) const BEFORE_VALUE: [&[u8]; 14] = [
    b"return",
    b"typeof",
    b"case",
    b"in",
    b"instanceof",
    b"new",
    b"delete",
    b"void",
    b"throw",
    b"else",
    b"do",
    b"default",
    b"extends",
    b"if",
];

/// Words that are names in some places only.
pub(crate) const EITHER: [&[u8]; 8] = [
    b"await",
    b"yield",
    b"of",
    b"async",
    b"as",
    b"satisfies",
    b"type",
    b"let",
];

/// Words that may make the parser go deeper without a bracket.
pub(crate) const DEEPER: [&[u8]; 14] = [
    b"typeof",
    b"void",
    b"delete",
    b"new",
    b"await",
    b"yield",
    b"async",
    b"keyof",
    b"unique",
    b"readonly",
    b"infer",
    b"extends",
    b"asserts",
    b"is",
];
