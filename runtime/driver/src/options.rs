//! Options of a host.

use std::time::Duration;

/// Options for how a host runs its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Idle time before an agent without turn, queued event and pending call sleeps.
    pub idle_debounce: Duration,
    /// Maximum agents that an event may pass through; beyond it the event is not delivered.
    pub max_hops: u8,
    /// Timeout of hooks that are not turns of an event.
    pub hook_timeout: Duration,
    /// Size in bytes from which the log warns about a large state.
    pub warn_state_bytes: usize,
    /// How many of the last turns of each program agent the store keeps, at most 16 MiB an agent
    /// ([`ProgramAgent::replay`](crate::program::ProgramAgent::replay)); 0 for none.
    pub keep_turns: u32,
}

impl Default for HostOptions {
    /// Sleep after a minute, four hops, ten seconds for hooks, 100 kept turns.
    fn default() -> HostOptions {
        HostOptions {
            idle_debounce: Duration::from_secs(60),
            max_hops: 4,
            hook_timeout: Duration::from_secs(10),
            warn_state_bytes: 1 << 20,
            keep_turns: 100,
        }
    }
}
