//! Codes of errors that the parts of this crate give.

/// A queue of messages was created outside of a tokio runtime.
pub const NO_RUNTIME: &str = "host.no_runtime";
/// A queue cannot drain, because it is paused while messages wait.
pub const QUEUE_PAUSED: &str = "agent.queue_paused";
/// The operation was interrupted by a pause.
pub const PAUSED: &str = "turn.paused";
/// The stored settings or the configuration do not fit; defaults apply.
pub const BAD_SETTINGS: &str = "agent.bad_settings";
/// The model called a tool that was not offered.
pub const UNKNOWN_TOOL: &str = "call.unknown_tool";
/// Too many questions wait for an approval.
pub const TOO_MANY_QUESTIONS: &str = "agent.too_many_questions";
/// A tracked message is complete already.
pub const ENDED: &str = "turn.message_ended";
/// The input of a tool is too long for a person to judge.
pub const TOO_LONG: &str = "agent.input_too_long";
