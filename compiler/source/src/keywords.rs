//! Keywords that affect the guard's bound of nesting and its reading of `/`.

/// Keywords after which a `/` starts a regular expression.
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

/// Contextual keywords, which may also be names.
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

/// Keywords that may deepen the parser's recursion without a bracket.
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
