//! Codes of keys, and of turns that the state machine gives up or tries again by itself.

/// A name of an agent, a channel or a handle is invalid.
pub const BAD_KEY: &str = "agent.bad_key";
/// The process died too often during the turn.
pub const KILLED_THE_PROCESS: &str = "turn.killed_the_process";
/// The turn was cancelled, or its agent was stopped.
pub const CANCELLED: &str = "turn.cancelled";
/// Other turns changed the state repeatedly while this one ran.
pub const CONFLICT: &str = "turn.conflict";
/// The store refused the turn's changes.
pub const REFUSED: &str = "turn.refused";
/// The agent stops before a dead letter, as `OnDead::Stop` demands.
pub const DEAD: &str = "turn.dead";
