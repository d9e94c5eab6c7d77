//! Atoms that call capabilities (language sections 2.6 to 2.8, and those of the `shell` and
//! `agent_turn` capabilities), grouped by capability.

mod agent;
pub(crate) mod battery;
pub(crate) mod cache;
mod code;
mod fetch;
mod llm;
pub(crate) mod procedures;
mod search;
pub(crate) mod shell;
pub(crate) mod sleep;
pub(crate) mod store;
pub(crate) mod turn;

use a99_vm::atom::AtomDef;

/// The atoms of language section 2.6, in the order of its table.
pub(crate) fn atoms() -> Vec<AtomDef> {
    let mut all = vec![fetch::atom()];
    all.extend(store::atoms());
    all.extend([llm::atom(), agent::atom()]);
    all.extend(code::atoms());
    all.push(crate::forms::run_code());
    all
}
