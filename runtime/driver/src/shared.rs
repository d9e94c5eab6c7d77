//! What all agents of a host share: stores, channels, clock, randomness, model.

use crate::bus::{Participant, Waits};
use crate::hub::{Hub, Listener};
use crate::options::HostOptions;
use a99_capabilities::{AiProvider, Clock, Random};
use a99_runtime_engine::{AgentStore, ChannelStore, Millis, Uuid};
use std::sync::Arc;

pub(crate) struct Shared {
    agents: Arc<dyn AgentStore>,
    hub: Arc<Hub>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ai: Option<Arc<dyn AiProvider>>,
    pub(crate) log: crate::log::Log,
    pub(crate) options: HostOptions,
    pub(crate) waits: Arc<Waits>,
    /// Held while settings are read, changed and written: turns and hosts both do that.
    pub(crate) settings_gate: tokio::sync::Mutex<()>,
    pub(crate) presence: Box<dyn Presence>,
}

/// Knows who is on a channel.
pub(crate) trait Presence: Send + Sync {
    fn roster(&self, channel: &str) -> Vec<Participant>;

    /// Whether everybody but one is a person.
    fn is_solo(&self, channel: &str, me: Uuid) -> bool;
}

impl Shared {
    #[allow(
        clippy::too_many_arguments,
        reason = "it is made in one place, of what a host is"
    )]
    pub(crate) fn new(
        agents: Arc<dyn AgentStore>,
        channels: Arc<dyn ChannelStore>,
        listener: Listener,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        ai: Option<Arc<dyn AiProvider>>,
        log: crate::log::Log,
        options: HostOptions,
        presence: Box<dyn Presence>,
    ) -> Shared {
        Shared {
            agents,
            hub: Arc::new(Hub::new(channels, listener)),
            clock,
            random,
            ai,
            log,
            options,
            waits: Arc::default(),
            settings_gate: tokio::sync::Mutex::const_new(()),
            presence,
        }
    }

    pub(crate) fn agents(&self) -> &Arc<dyn AgentStore> {
        &self.agents
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The present; a clock that is none gives 0.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts saturate, and NaN is 0"
    )]
    pub(crate) fn now(&self) -> Millis {
        self.clock.now_ms() as Millis
    }

    /// An identity that nothing else has (RFC 9562, version 4).
    pub(crate) fn fresh(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid::from_bytes(bytes)
    }
}
