//! States: listeners of an agent's committed state.

use crate::error::codes;
use crate::hub::locked;
use crate::log::{Log, LogLevel};
use a99_runtime_engine::AgentKey;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// A commit that changed an agent's state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    /// The state before, an object.
    pub prev: Value,
    /// The state after.
    pub next: Value,
    /// The members of the first level that differ, sorted.
    pub changed_keys: Vec<String>,
}

type Listener = Arc<dyn Fn(&StateChange) + Send + Sync>;

#[derive(Default)]
struct Known {
    listeners: HashMap<AgentKey, Vec<(u64, Listener)>>,
    next: u64,
}

/// The listeners of a host.
#[derive(Clone, Default)]
pub(crate) struct States(Arc<Mutex<Known>>);

/// Listens to an agent's state until dropped.
#[must_use = "dropping it ends the subscription"]
pub struct StateSubscription {
    states: States,
    key: AgentKey,
    id: u64,
}

impl fmt::Debug for StateSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("StateSubscription");
        out.field("key", &self.key).finish_non_exhaustive()
    }
}

impl Drop for StateSubscription {
    fn drop(&mut self) {
        let mut known = locked(&self.states.0);
        if let Some(of_key) = known.listeners.get_mut(&self.key) {
            of_key.retain(|(id, _)| *id != self.id);
            if of_key.is_empty() {
                known.listeners.remove(&self.key);
            }
        }
    }
}

impl StateChange {
    /// `None` if both texts are the same state.
    fn between(prev: &str, next: &str) -> Option<StateChange> {
        let [prev, next] = [prev, next].map(serde_json::from_str::<Value>);
        let (prev, next) = (prev.ok()?, next.ok()?);
        let (before, after) = (prev.as_object()?, next.as_object()?);
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        let new = after
            .iter()
            .filter(|(name, value)| before.get(*name) != Some(value));
        let mut changed_keys: Vec<String> =
            removed.chain(new.map(|(name, _)| name)).cloned().collect();
        changed_keys.sort_unstable();
        (!changed_keys.is_empty()).then_some(StateChange {
            prev,
            next,
            changed_keys,
        })
    }
}

impl States {
    pub(crate) fn subscribe(
        &self,
        key: &AgentKey,
        listener: impl Fn(&StateChange) + Send + Sync + 'static,
    ) -> StateSubscription {
        let mut known = locked(&self.0);
        known.next += 1;
        let id = known.next;
        let of_key = known.listeners.entry(key.clone()).or_default();
        of_key.push((id, Arc::new(listener)));
        StateSubscription {
            states: self.clone(),
            key: key.clone(),
            id,
        }
    }

    /// Reports a commit to the agent's listeners. One that panics harms no other.
    pub(crate) fn tell(&self, key: &AgentKey, prev: &str, next: &str, log: &Log) {
        let listeners = match locked(&self.0).listeners.get(key) {
            Some(listeners) if prev != next => listeners.clone(),
            _ => return,
        };
        let Some(change) = StateChange::between(prev, next) else {
            return;
        };
        for (_, listener) in listeners {
            if catch_unwind(AssertUnwindSafe(|| listener(&change))).is_err() {
                let message = "a listener of the state panicked";
                log.say(LogLevel::Warn, Some(key), codes::PANIC, message);
            }
        }
    }
}
