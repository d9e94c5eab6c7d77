//! Options of a host.

use std::time::Duration;

/// How a host runs its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// An agent without turn, queued event and pending call sleeps after this time.
    pub idle_debounce: Duration,
    /// Events that came through more agents than this are delivered to none.
    pub max_hops: u8,
    /// How long hooks that are no turns of an event may take.
    pub hook_timeout: Duration,
    /// Bytes of a state from which on the log says that it is large.
    pub warn_state_bytes: usize,
}

impl Default for HostOptions {
    /// Sleep after a minute, four hops, ten seconds for hooks.
    fn default() -> HostOptions {
        HostOptions {
            idle_debounce: Duration::from_secs(60),
            max_hops: 4,
            hook_timeout: Duration::from_secs(10),
            warn_state_bytes: 1 << 20,
        }
    }
}
