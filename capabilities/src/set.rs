//! The set of capabilities that a host grants to a run.

use crate::{
    AgentRunner, AgentTurn, AiProvider, Clock, Dom, Embedder, Fetch, Llm, LlmBattery, LocalStorage,
    Procedures, Random, Shell, Store, Transpiler, Xml,
};
use std::fmt;
use std::sync::Arc;

/// Conversion into a capability of the kind `K`, the trait as `dyn`: an implementation, or a
/// shared `Arc` of one. `Form` distinguishes these and is always inferred:
///
/// ```
/// use a99_capabilities::{Capabilities, MemoryStore, Store};
/// use std::sync::Arc;
///
/// let mine = Arc::new(MemoryStore::new());
/// let any: Arc<dyn Store> = mine.clone();
/// for set in [
///     Capabilities::none().with_store(MemoryStore::new()),
///     Capabilities::none().with_store(mine),
///     Capabilities::none().with_store(any),
/// ] {
///     assert_eq!(set.granted(), ["store"]);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no capability of the kind `{K}`",
    label = "implements no such trait",
    note = "a capability is a type with an `impl` of its trait, or an `Arc` of one"
)]
pub trait Grant<K: ?Sized, Form> {
    /// The capability, shared.
    fn grant(self) -> Arc<K>;
}

macro_rules! capabilities {
    ($($(#[$doc:meta])* $field:ident: $with:ident, $kind:ident;)*) => {
        /// Capabilities of a run; everything is absent until granted. A run never changes its
        /// set (security N15), so one may serve many runs.
        #[derive(Clone, Default)]
        pub struct Capabilities {
            $($(#[$doc])* pub $field: Option<Arc<dyn $kind>>,)*
        }

        impl Capabilities {
            /// The names of all capabilities, in the order of this table.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
            /// Names of the traits, in the same order.
            pub const TRAITS: &'static [&'static str] = &[$(stringify!($kind)),*];

            /// The empty set.
            #[must_use]
            pub fn none() -> Capabilities {
                Capabilities::default()
            }

            $(
                $(#[$doc])*
                #[must_use]
                pub fn $with<Form>(
                    mut self,
                    granted: impl Grant<dyn $kind, Form>,
                ) -> Capabilities {
                    self.$field = Some(granted.grant());
                    self
                }
            )*

            /// The names of the capabilities granted.
            #[must_use]
            pub fn granted(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() {
                    names.push(stringify!($field));
                })*
                names
            }
        }

        $(
            impl<T: $kind + 'static> Grant<dyn $kind, ()> for T {
                fn grant(self) -> Arc<dyn $kind> {
                    Arc::new(self)
                }
            }

            impl<T: $kind + 'static> Grant<dyn $kind, Arc<T>> for Arc<T> {
                fn grant(self) -> Arc<dyn $kind> {
                    self
                }
            }

            impl Grant<dyn $kind, Arc<dyn $kind>> for Arc<dyn $kind> {
                fn grant(self) -> Arc<dyn $kind> {
                    self
                }
            }
        )*
    };
}

capabilities! {
    /// HTTP.
    fetch: with_fetch, Fetch;
    /// Keys, values, queries and vectors.
    store: with_store, Store;
    /// Embeddings (`vector` in the language).
    embedder: with_embedder, Embedder;
    /// Text completion.
    llm: with_llm, Llm;
    /// Chat with tools and images.
    llm_battery: with_llm_battery, LlmBattery;
    /// Language models with streams; `llm` and `llmBattery` are derived from it unless granted.
    ai: with_ai, AiProvider;
    /// Sub-agents.
    agent: with_agent, AgentRunner;
    /// The turn of a long-lived agent.
    agent_turn: with_agent_turn, AgentTurn;
    /// XML parsing.
    xml: with_xml, Xml;
    /// Source code to programs.
    transpiler: with_transpiler, Transpiler;
    /// A document.
    dom: with_dom, Dom;
    /// A browser's local storage (`storage` in the language).
    local_storage: with_local_storage, LocalStorage;
    /// A computer to run commands on.
    shell: with_shell, Shell;
    /// Stored programs.
    procedures: with_procedures, Procedures;
    /// The time of day; the machine's clock when absent.
    clock: with_clock, Clock;
    /// Randomness; the operating system's when absent.
    random: with_random, Random;
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Capabilities")
            .field(&self.granted())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, ScriptedFetch};
    use std::collections::BTreeSet;

    #[test]
    fn what_atoms_need_can_be_granted() {
        use a99_core::sig::Capability;
        let needed: BTreeSet<&str> = Capability::ALL.iter().map(|c| c.name()).collect();
        let granted = Capabilities::NAMES.iter().copied().collect();
        assert_eq!(needed, granted, "core/src/sig/capability.rs");
    }

    #[test]
    fn only_what_was_granted() {
        let set = Capabilities::none();
        assert!(set.granted().is_empty() && set.fetch.is_none());
        let set = set
            .with_fetch(ScriptedFetch::new())
            .with_store(MemoryStore::new());
        assert_eq!(format!("{set:?}"), r#"Capabilities(["fetch", "store"])"#);
    }
}
