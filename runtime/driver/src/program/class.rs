//! Call classes: which calls are journaled, and how an interrupted call is handled.

use a99_capabilities::Capabilities;
use a99_runtime_engine::StepClass;
use agent99::replay::OwnState;
use agent99::{Call, Capability, Effect, Value};
use std::collections::BTreeMap;

/// How a call behaves when its turn is retried.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CallClass {
    /// The call belongs to the turn or the run. It is not journaled and runs again.
    InPlace,
    /// The call is journaled.
    Journaled(StepClass),
}

/// The grants that determine the class of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// The classes that the host set for single atoms.
    pub(super) own: BTreeMap<String, CallClass>,
    /// The state that is private to the run.
    pub(super) own_state: OwnState,
    /// Whether sub-agents run with the same journal.
    pub(super) drives_agents: bool,
}

impl Classes {
    /// The classes under these grants, before the run's private parts are known.
    pub(super) fn of(
        own: &BTreeMap<String, CallClass>,
        granted: &Capabilities,
        drives_agents: bool,
    ) -> Classes {
        Classes {
            own: own.clone(),
            own_state: OwnState::of(granted),
            drives_agents,
        }
    }

    pub(super) fn class(&self, call: &Call) -> CallClass {
        self.class_of(&call.atom, call.args(), call.effect, call.capability)
    }

    fn class_of(
        &self,
        atom: &str,
        args: &[Value],
        effect: Effect,
        capability: Option<Capability>,
    ) -> CallClass {
        if let Some(class) = self.own.get(atom) {
            return *class;
        }
        if self.own_state.has(atom, args, capability) {
            return CallClass::InPlace;
        }
        CallClass::Journaled(match atom {
            // The sub-agent's own calls are journaled.
            "agentRun" if self.drives_agents => StepClass::Idempotent,
            "httpFetch" => fetch(args),
            _ => match effect {
                Effect::Pure | Effect::Mutates | Effect::Read => StepClass::Read,
                Effect::Idempotent => StepClass::Idempotent,
                Effect::Unsafe => StepClass::Unsafe,
            },
        })
    }
}

/// Classifies by the HTTP method, the second input.
fn fetch(args: &[Value]) -> StepClass {
    let method = args.get(1).filter(|method| !method.is_nullish());
    let Some(method) = method else {
        return StepClass::Read;
    };
    let method = method.as_str().unwrap_or_default().to_ascii_uppercase();
    match &*method {
        "GET" | "HEAD" | "OPTIONS" => StepClass::Read,
        "PUT" | "DELETE" => StepClass::Idempotent,
        _ => StepClass::Unsafe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_from_atoms_and_grants() {
        let class = |granted: &Capabilities, atom: &str, args: &[Value]| {
            let classes = Classes::of(&BTreeMap::new(), granted, false);
            let atoms = agent99::all_atoms();
            let sig = &atoms.get(atom).expect("an atom").sig;
            classes.class_of(atom, args, sig.effect, sig.capability)
        };
        let none = Capabilities::none();
        let all = none
            .clone()
            .with_store(a99_capabilities::MemoryStore::new());
        assert_eq!(class(&none, "storeSet", &[]), CallClass::InPlace);
        let idempotent = CallClass::Journaled(StepClass::Idempotent);
        assert_eq!(class(&all, "storeSet", &[]), idempotent);
        assert_eq!(class(&all, "agentSend", &[]), CallClass::InPlace);
        assert_eq!(class(&all, "agentCallMethod", &[]), CallClass::InPlace);
        assert_eq!(class(&all, "agentInvite", &[]), idempotent);
        let roster = CallClass::Journaled(StepClass::Read);
        assert_eq!(class(&all, "agentRoster", &[]), roster);
        let get = ["u".into(), "get".into()];
        let read = CallClass::Journaled(StepClass::Read);
        assert_eq!(class(&none, "httpFetch", &get), read);
        let post = ["u".into(), "POST".into()];
        let other = CallClass::Journaled(StepClass::Unsafe);
        assert_eq!(class(&none, "httpFetch", &post), other);
        assert_eq!(class(&none, "agentRun", &["a".into()]), other);
        assert_eq!(
            class(&none, "agentRun", &["proc_1".into()]),
            CallClass::InPlace
        );
        assert_eq!(class(&none, "shellExec", &[]), other);
    }
}
