//! The atoms of the language: core, battery and browser atoms (decision D29), and our atoms for a
//! computer and for turns of long-lived agents; one file per family.
//!
//! A program can use an atom only if the host puts it into the [`AtomSet`] of a run; there is no
//! automatic registration. Control forms have only a signature, because the compiler lowers them.
//! Native atoms work on guest values inside one instruction. All others reach the world through the
//! [`Capabilities`](a99_capabilities::Capabilities) that the host grants, and refuse with a typed
//! error without a grant. This crate has no ambient network, files, clock or environment.
//!
//! A host selects atoms by name, and adds custom ones:
//!
//! ```
//! use a99_atoms::AtomSets;
//! use a99_vm::atom::AtomSet;
//!
//! let atoms = AtomSet::core().without(&["httpFetch", "runCode"]);
//! assert!(atoms.get("httpFetch").is_none());
//!
//! let atom = atoms.get("storeGet").expect("a core atom");
//! assert_eq!(atom.sig.name, "storeGet");
//! assert!(atom.sig.input_schema.contains("key"));
//! ```

#![warn(unreachable_pub)]

mod base64;
mod browser;
mod context;
mod def;
mod forms;
mod grants;
mod guards;
mod hash;
mod io;
mod json;
mod lists;
mod logic;
mod objects;
mod output;
mod random;
mod regex;
mod sorting;
mod strings;
mod template;
#[cfg(test)]
mod testing;
mod told;
mod tool_loop;

pub use io::store::restore_store;

use a99_vm::atom::{AtomDef, AtomSet};
use std::sync::LazyLock;

/// True for internal atoms, which the compiler calls on behalf of a step: some read and write the
/// store of `cache`, others check whether an atom resolves all of its inputs. They are not part of
/// the language, no program can name them, and lists of tools must omit them.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    name.contains(':')
}

/// The core atoms in the order of the language's tables (language sections
/// 2.1 to 2.7), followed by internal ones ([`is_internal`]).
#[must_use]
pub fn core_atoms() -> AtomSet {
    static CORE: LazyLock<AtomSet> = LazyLock::new(|| collect(core_families()));
    CORE.clone()
}

fn core_families() -> [Vec<AtomDef>; 19] {
    [
        forms::flow(),
        forms::state(),
        logic::atoms(),
        forms::math(),
        lists::atoms(),
        sorting::atoms(),
        strings::atoms(),
        template::atoms(),
        regex::atoms(),
        objects::atoms(),
        io::atoms(),
        json::atoms(),
        random::atoms(),
        hash::atoms(),
        output::atoms(),
        io::procedures::atoms(),
        io::cache::atoms(),
        guards::atoms(),
        context::atoms(),
    ]
}

/// The battery atoms (language section 2.8), and `llmToolLoop` (language section 2.11), followed by
/// internal ones.
#[must_use]
pub fn battery_atoms() -> AtomSet {
    collect([io::battery::atoms(), tool_loop::atoms()])
}

/// The browser atoms (language section 2.8).
#[must_use]
pub fn browser_atoms() -> AtomSet {
    collect([browser::atoms()])
}

/// `shellExec`, `shellWriteFile` and `shellReadFile`: commands and files of the computer that the
/// `shell` capability grants. The language's references do not have these atoms.
#[must_use]
pub fn shell_atoms() -> AtomSet {
    collect([io::shell::atoms()])
}

/// `agentState`, `agentSend` and the other atoms of the `agent_turn` capability, through which a
/// program acts on its turn. The language's references do not have these atoms.
#[must_use]
pub fn turn_atoms() -> AtomSet {
    collect([io::turn::atoms()])
}

/// `sleep`. The language's references do not have it.
#[must_use]
pub fn time_atoms() -> AtomSet {
    collect([io::sleep::atoms()])
}

/// Core, battery, browser, shell, turn and time atoms.
#[must_use]
pub fn all_atoms() -> AtomSet {
    /// The definitions are shared with [`core_atoms`] if a host uses both.
    static ALL: LazyLock<AtomSet> = LazyLock::new(|| {
        let others = [
            io::battery::atoms(),
            tool_loop::atoms(),
            browser::atoms(),
            io::shell::atoms(),
            io::turn::atoms(),
            io::sleep::atoms(),
        ];
        extended(core_atoms(), others)
    });
    ALL.clone()
}

/// This crate's sets as constructors: `AtomSet::core()`.
pub trait AtomSets {
    /// [`core_atoms`].
    #[must_use]
    fn core() -> Self;
    /// [`all_atoms`].
    #[must_use]
    fn all() -> Self;
}

impl AtomSets for AtomSet {
    fn core() -> Self {
        core_atoms()
    }

    fn all() -> Self {
        all_atoms()
    }
}

fn collect<const N: usize>(families: [Vec<AtomDef>; N]) -> AtomSet {
    extended(AtomSet::new(), families)
}

fn extended<const N: usize>(mut set: AtomSet, families: [Vec<AtomDef>; N]) -> AtomSet {
    set.reserve(families.iter().map(Vec::len).sum());
    let atoms = families.into_iter().flatten();
    atoms.for_each(|atom| set.insert(atom));
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::sig::{BaseCost, Params};
    use a99_core::value::Value;
    use a99_vm::atom::AtomBody;

    #[test]
    fn the_sets_are_complete() {
        let core = core_atoms();
        let all = all_atoms();
        let (shell, turn, time) = (shell_atoms(), turn_atoms(), time_atoms());
        let sets = [
            &core,
            &battery_atoms(),
            &browser_atoms(),
            &shell,
            &turn,
            &time,
        ];
        assert!(sets.iter().all(|set| set.iter().next().is_some()));
        let count = |set: &AtomSet| set.iter().count();
        assert_eq!(
            count(&all),
            sets.iter().map(|set| count(set)).sum::<usize>()
        );
        assert!(all.replaced().is_empty() && core.replaced().is_empty());
    }

    /// Changing a set changes no other set, and the facts for linking follow the change.
    #[test]
    fn sets_share_atoms_until_one_changes() {
        use a99_core::sig::{AtomSig, Signatures};
        use std::sync::Arc;
        let (all, core) = (all_atoms(), core_atoms());
        let same = all.get("split").zip(core.get("split"));
        assert!(same.is_some_and(|(one, other)| Arc::ptr_eq(one, other)));
        let before = all.fingerprint("split");
        let own = AtomDef {
            sig: AtomSig::new("split", "Another one.", 0),
            body: AtomBody::Form,
            dynamic_cost: None,
        };
        let changed = all.clone().with(own).without(&["join"]);
        assert!(changed.get("join").is_none() && changed.replaced() == ["split"]);
        assert_ne!(changed.fingerprint("split"), before);
        for set in [all, all_atoms(), core, core_atoms()] {
            assert!(set.get("join").is_some() && set.replaced().is_empty());
            assert_eq!(set.fingerprint("split"), before);
        }
    }

    #[test]
    fn every_atom_is_described() {
        for atom in all_atoms().iter() {
            let name = &atom.sig.name;
            assert!(!atom.sig.docs.is_empty(), "{name} has no docs");
            let json: serde_json::Value = serde_json::from_str(&atom.sig.input_schema)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let schema = Value::from(json);
            if name == "return" {
                continue;
            }
            assert_eq!(
                schema.get("type").and_then(Value::as_str),
                Some("object"),
                "{name}"
            );
            let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
            assert!(closed || name == "varsLet", "{name}");
            assert_eq!(
                atom.dynamic_cost.is_some(),
                matches!(atom.sig.cost, BaseCost::Dynamic(_)),
                "{name}"
            );
            assert_eq!(
                matches!(atom.body, AtomBody::Form),
                atom.sig.form.is_some() && name != "agentRun",
                "{name}"
            );
        }
    }

    /// Artifacts are bound to fingerprints: changing one would refuse earlier artifacts. A new atom
    /// adds a line.
    #[test]
    fn fingerprints_stay() {
        let lines = all_atoms();
        let lines = lines
            .iter()
            .map(|atom| format!("{:016x} {}\n", atom.sig.fingerprint(), atom.sig.name));
        let golden = include_str!("fingerprints.txt");
        assert_eq!(lines.collect::<String>(), golden);
    }

    #[test]
    fn every_input_is_described() {
        for atom in all_atoms().iter() {
            let sig = &atom.sig;
            for input in sig.inputs.iter() {
                let place = format!("{}.{}", sig.name, input.name);
                assert!(input.docs.ends_with(['.', '>']), "{place}: {}", input.docs);
                let mentions = input.docs.contains("default") && !input.default.is_empty();
                assert!(!mentions, "{place}: the default is told twice");
                assert!(input.described().get("type").is_some() || input.name == "keys");
                let default = serde_json::from_str::<serde_json::Value>(&input.default);
                match default {
                    Ok(default) => {
                        assert!(!input.required, "{place}");
                        let text = default.as_str();
                        assert!(text.is_none_or(|text| input.allows(text)), "{place}");
                    }
                    Err(_) => assert!(input.default.is_empty(), "{place}"),
                }
            }
            let Params::Named(params) = &sig.params else {
                continue;
            };
            let named = |name| sig.input(name).is_some();
            assert!(params.iter().all(|p| named(p.name)), "{}", sig.name);
        }
    }
}
