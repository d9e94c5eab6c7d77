//! The stable codes of diagnostics: E for errors and W for warnings in a
//! program (decision D44), L for programs that a host's atoms do not fit. A code
//! is never reused for another meaning.

/// The text is not JSON.
pub const E0001: &str = "A99-E0001";
/// An object has the same key twice.
pub const E0002: &str = "A99-E0002";
/// The JSON is nested too deeply.
pub const E0003: &str = "A99-E0003";
/// The document has too many bytes or values.
pub const E0004: &str = "A99-E0004";
/// The text is not UTF-8.
pub const E0005: &str = "A99-E0005";
/// The root is not an object, or not a `seq`.
pub const E0101: &str = "A99-E0101";
/// Steps are nested too deeply (decision D38).
pub const E0102: &str = "A99-E0102";
/// Expression nodes are nested too deeply (decision D38).
pub const E0103: &str = "A99-E0103";
/// A condition string is malformed (decisions D2, D3, D4, D47).
pub const E0104: &str = "A99-E0104";
/// A forbidden name is bound (decision D16).
pub const E0105: &str = "A99-E0105";
/// The program is too large, or makes far more code than its text is long.
pub const E0106: &str = "A99-E0106";
/// Whoever asked for the compilation wants it to stop.
pub const E0107: &str = "A99-E0107";
/// There are more findings than are shown, errors among them.
pub const E0199: &str = "A99-E0199";
/// A builder's chain names the result of no step (language section 4.13).
pub const E0301: &str = "A99-E0301";
/// A builder's step has an input with the name of one of its own keys.
pub const E0302: &str = "A99-E0302";
/// A body made by a builder has `helpers` or `inputSchema`, which belong to the
/// root (language section 1.1).
pub const E0303: &str = "A99-E0303";
/// The atom is not known.
pub const W0201: &str = "A99-W0201";
/// The expression tag or operator is not known.
pub const W0202: &str = "A99-W0202";
/// The builtin or method is not known.
pub const W0203: &str = "A99-W0203";
/// A forbidden member is read (decision D16).
pub const W0204: &str = "A99-W0204";
/// A `then`, `body`, `steps` or step is missing or malformed.
pub const W0205: &str = "A99-W0205";
/// A body without a result of its own may read an inherited one (decision D32).
pub const W0206: &str = "A99-W0206";
/// A `mathCalc` expression is malformed.
pub const W0207: &str = "A99-W0207";
/// A step can never be reached, because a `return` precedes it.
pub const W0208: &str = "A99-W0208";
/// There are more findings than are shown.
pub const W0299: &str = "A99-W0299";
/// A host registered two atoms of one name.
pub const W0401: &str = "A99-W0401";
/// The program needs an atom that the host does not grant.
pub const L0001: &str = "A99-L0001";
/// The host's atom is another than the program was compiled against (security
/// B05).
pub const L0002: &str = "A99-L0002";
/// A call passes another number of inputs than the atom takes.
pub const L0003: &str = "A99-L0003";
/// At the host's prices some of the program would run for nothing (security
/// B04).
pub const L0004: &str = "A99-L0004";
