//! Sets of atoms: what a host grants, shared by the engines that have the same.

use super::{AtomDef, IntoAtom};
use a99_core::sig::{AtomSig, Signatures};
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use indexmap::map::Entry as MapEntry;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The atoms that a host grants, by name. Cloning is cheap: clones share their table until
/// one of them changes.
#[derive(Clone, Debug, Default)]
pub struct AtomSet {
    atoms: Arc<Atoms>,
    replaced: Vec<String>,
}

/// Keyed at random; the names are the host's.
type Atoms = IndexMap<Cow<'static, str>, Entry, DefaultHashBuilder>;

/// An atom, and what programs are linked by: few atoms of a set are ever asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) atom: Arc<AtomDef>,
    fingerprint: OnceLock<u64>,
}

impl Entry {
    /// What programs are linked by.
    pub(crate) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.atom.sig.fingerprint())
    }
}

/// An atom of that name is registered already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateAtom(pub String);

impl fmt::Display for DuplicateAtom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an atom named '{}' is registered already", self.0)
    }
}

impl std::error::Error for DuplicateAtom {}

impl AtomSet {
    /// No atoms at all.
    pub fn new() -> AtomSet {
        AtomSet::default()
    }

    /// Makes room for so many atoms more.
    pub fn reserve(&mut self, more: usize) {
        Arc::make_mut(&mut self.atoms).reserve(more);
    }

    /// Adds an atom. One of the same name is replaced, which
    /// [`AtomSet::warnings`] tells; [`AtomSet::try_with`] refuses it instead.
    #[must_use]
    pub fn with(mut self, atom: impl IntoAtom) -> AtomSet {
        self.insert(atom);
        self
    }

    /// Adds an atom in place; as [`AtomSet::with`].
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
    /// An atom of that name is there already.
    pub fn try_with(self, atom: impl IntoAtom) -> Result<AtomSet, DuplicateAtom> {
        let atom = atom.into_atom();
        if self.atoms.contains_key(&atom.sig.name) {
            return Err(DuplicateAtom(atom.sig.name.into_owned()));
        }
        Ok(self.with(atom))
    }

    /// Takes atoms away, for hosts that grant less.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> AtomSet {
        Arc::make_mut(&mut self.atoms).retain(|name, _| !names.contains(&name.as_ref()));
        self
    }

    /// An atom by name.
    pub fn get(&self, name: &str) -> Option<&Arc<AtomDef>> {
        self.entry(name).map(|entry| &entry.atom)
    }

    /// The same with its fingerprint.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.atoms.get(name)
    }

    /// All atoms in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AtomDef>> {
        self.atoms.values().map(|entry| &entry.atom)
    }

    /// The names that were registered more than once.
    pub fn replaced(&self) -> &[String] {
        &self.replaced
    }

    /// One text for each replacement, in the order in which they happened.
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
