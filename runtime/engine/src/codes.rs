//! Codes of keys, and of turns that the state machine gives up or tries again by itself.

/// A name of an agent, a channel or a handle is none.
pub const BAD_KEY: &str = "agent.bad_key";
/// The process was cut off too often while the turn ran.
pub const KILLED_THE_PROCESS: &str = "turn.killed_the_process";
/// The turn was cancelled, or its agent was stopped.
pub const CANCELLED: &str = "turn.cancelled";
/// Another turn changed the state that this one had read, again and again.
pub const CONFLICT: &str = "turn.conflict";
/// The store refused what the turn changed.
pub const REFUSED: &str = "turn.refused";
/// The agent stands in front of a turn that was given up, as `OnDead::Stop` asks.
pub const DEAD: &str = "turn.dead";
