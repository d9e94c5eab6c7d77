//! Sets of atoms that a host grants, shared by engines.

use super::{AtomDef, IntoAtom};
use a99_core::sig::{AtomSig, Signatures};
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use indexmap::map::Entry as MapEntry;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The atoms that a host grants, by name. Clones share their table, copied on write.
#[derive(Clone, Debug, Default)]
pub struct AtomSet {
    atoms: Arc<Atoms>,
    replaced: Vec<String>,
}

/// Hashed with random keys: the names come from the host.
type Atoms = IndexMap<Cow<'static, str>, Entry, DefaultHashBuilder>;

/// An atom and its fingerprint, computed lazily: most atoms are never linked.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) atom: Arc<AtomDef>,
    fingerprint: OnceLock<u64>,
}

impl Entry {
    /// The fingerprint that programs are linked against.
    pub(crate) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.atom.sig.fingerprint())
    }
}

/// An atom with this name already exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateAtom(pub String);

impl fmt::Display for DuplicateAtom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an atom named '{}' is registered already", self.0)
    }
}

impl std::error::Error for DuplicateAtom {}

impl AtomSet {
    /// Creates an empty set.
    pub fn new() -> AtomSet {
        AtomSet::default()
    }

    /// Reserves room for `more` atoms.
    pub fn reserve(&mut self, more: usize) {
        Arc::make_mut(&mut self.atoms).reserve(more);
    }

    /// Adds an atom. It replaces one with the same name, and [`AtomSet::warnings`] reports
    /// that; [`AtomSet::try_with`] refuses it.
    #[must_use]
    pub fn with(mut self, atom: impl IntoAtom) -> AtomSet {
        self.insert(atom);
        self
    }

    /// Adds an atom in place, as [`AtomSet::with`].
    pub fn insert(&mut self, atom: impl IntoAtom) {
        let mut atom = atom.into_atom();
        atom.sig.describe();
        let name = atom.sig.name.clone();
        let entry = Entry {
            fingerprint: OnceLock::new(),
            atom: Arc::new(atom),
        };
        match Arc::make_mut(&mut self.atoms).entry(name) {
            MapEntry::Occupied(mut old) => {
                self.replaced.push(old.key().clone().into_owned());
                old.insert(entry);
            }
            MapEntry::Vacant(place) => {
                place.insert(entry);
            }
        }
    }

    /// Adds an atom unless its name is taken.
    ///
    /// # Errors
    /// An atom with this name already exists.
    pub fn try_with(self, atom: impl IntoAtom) -> Result<AtomSet, DuplicateAtom> {
        let atom = atom.into_atom();
        if self.atoms.contains_key(&atom.sig.name) {
            return Err(DuplicateAtom(atom.sig.name.into_owned()));
        }
        Ok(self.with(atom))
    }

    /// Removes atoms, for hosts that grant fewer.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> AtomSet {
        Arc::make_mut(&mut self.atoms).retain(|name, _| !names.contains(&name.as_ref()));
        self
    }

    /// An atom by name.
    pub fn get(&self, name: &str) -> Option<&Arc<AtomDef>> {
        self.entry(name).map(|entry| &entry.atom)
    }

    /// An atom by name, with its fingerprint.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.atoms.get(name)
    }

    /// All atoms in registration order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AtomDef>> {
        self.atoms.values().map(|entry| &entry.atom)
    }

    /// The names that were registered more than once.
    pub fn replaced(&self) -> &[String] {
        &self.replaced
    }

    /// A warning for each replaced atom, in registration order.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.replaced.iter().map(|name| {
            format!("the atom '{name}' was registered more than once; the later one is used")
        })
    }
}

impl Signatures for AtomSet {
    fn signature(&self, op: &str) -> Option<&AtomSig> {
        self.atoms.get(op).map(|entry| &entry.atom.sig)
    }

    fn fingerprint(&self, op: &str) -> Option<u64> {
        self.entry(op).map(Entry::fingerprint)
    }

    fn op_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.atoms.keys().map(|k| k.as_ref()))
    }
}
