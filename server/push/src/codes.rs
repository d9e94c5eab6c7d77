//! Codes of errors.

/// A request is not of its form, or one of its events has no sequence number.
pub const BAD_REQUEST: &str = "push.bad_request";
/// The signature of a request is missing or wrong.
pub const BAD_SIGNATURE: &str = "push.bad_signature";
/// The time of a request is too far from now.
pub const OLD: &str = "push.old_timestamp";
/// A request with this id was answered before.
pub const REPLAYED: &str = "push.replayed";
/// The body of a request is too large.
pub const TOO_LARGE: &str = "push.body_too_large";
/// The agent is not registered here.
pub const UNKNOWN_AGENT: &str = "push.unknown_agent";
/// Another process has the agents at the moment, or this one is about to close them.
pub const NOT_OWNER: &str = "push.not_owner";
/// The agent stopped for good.
pub const STOPPED: &str = "push.agent_stopped";
/// The address, the secret or the file of a registration cannot be used.
pub const BAD_REGISTRATION: &str = "push.bad_registration";
/// The receiver did not answer, or not in its form.
pub const BAD_ANSWER: &str = "push.bad_answer";

/// All codes of this crate.
pub const ALL: [&str; 10] = [
    BAD_REQUEST,
    BAD_SIGNATURE,
    OLD,
    REPLAYED,
    TOO_LARGE,
    UNKNOWN_AGENT,
    NOT_OWNER,
    STOPPED,
    BAD_REGISTRATION,
    BAD_ANSWER,
];
