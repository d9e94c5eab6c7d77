//! The stable codes of findings about sources.

/// The text is not JavaScript or TypeScript.
pub const SYNTAX: &str = "source.syntax";
/// The form is JavaScript, but outside the subset; the help shows the form that works.
pub const UNSUPPORTED: &str = "source.unsupported";
/// No declaration has the name.
pub const UNKNOWN_NAME: &str = "source.unknown_name";
/// JavaScript also refuses the declaration or assignment: a duplicate name, a constant that is
/// set again, a use before the declaration.
pub const BAD_BINDING: &str = "source.bad_binding";
/// The arguments of a call do not fit the atom, function or method.
pub const BAD_CALL: &str = "source.bad_call";
/// No function is the agent, or several could be.
pub const NO_AGENT: &str = "source.no_agent";
/// The source is nested too deeply.
pub const TOO_DEEP: &str = "source.too_deep";
/// The source, or the program that it compiles to, is too large.
pub const TOO_LARGE: &str = "source.too_large";
/// The source is accepted, but its meaning differs from JavaScript.
pub const DIFFERS: &str = "source.differs";
/// The program in JSON has no source form.
pub const UNSAYABLE: &str = "source.unsayable";
