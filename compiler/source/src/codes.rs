//! The stable codes of findings about sources.

/// The text is no JavaScript or TypeScript.
pub const SYNTAX: &str = "source.syntax";
/// The form is JavaScript, but outside of the subset; the help says what works.
pub const UNSUPPORTED: &str = "source.unsupported";
/// A name that nothing declares.
pub const UNKNOWN_NAME: &str = "source.unknown_name";
/// A declaration or an assignment that JavaScript refuses, too: twice the same name, a
/// constant that is set again, a use before the declaration.
pub const BAD_BINDING: &str = "source.bad_binding";
/// The arguments of a call are not what the atom, function or method takes.
pub const BAD_CALL: &str = "source.bad_call";
/// No function is the agent, or several could be.
pub const NO_AGENT: &str = "source.no_agent";
/// The source nests too deep.
pub const TOO_DEEP: &str = "source.too_deep";
/// The source, or the program that it stands for, is too large.
pub const TOO_LARGE: &str = "source.too_large";
/// What is accepted means something else than in JavaScript.
pub const DIFFERS: &str = "source.differs";
/// The program in JSON says what a source cannot say.
pub const UNSAYABLE: &str = "source.unsayable";
