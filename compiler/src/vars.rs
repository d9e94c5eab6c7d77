//! Variables: scopes, locations, and what is known to be bound.
//!
//! Every name that a scope binds is known before its code is emitted, so each
//! gets a register (or, beyond those, a frame slot). A read follows the chain
//! of scopes at compile time: the innermost variable that surely is bound ends
//! it; those that may be unbound cost a test each. Where many scopes inside each
//! other may bind one name, every few of them a summary keeps what the name
//! meant outside, which nobody can change while the inner scope is open: a read
//! costs the same however deep it stands.

use a99_core::program::Location;
use std::collections::HashMap;

/// A variable of the function being compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct VarId(pub u32);

#[derive(Copy, Clone, Debug)]
pub(crate) struct Var {
    pub location: Location,
    /// Holds `true` once the name is a constant.
    pub const_flag: Option<Location>,
    /// Index of its scope.
    pub scope: u32,
    /// Holds what the variables of the name around its scope gave on entry, so
    /// that nobody looks further out.
    pub summary: bool,
}

/// Surely bound here.
const BOUND: u8 = 1;

/// Bound by code that stands before this place, on some path.
const SET: u8 = 2;

/// The variables that are visible, innermost last for each name.
#[derive(Default)]
pub(crate) struct Vars {
    names: HashMap<Box<[u8]>, Vec<VarId>>,
    pub all: Vec<Var>,
    /// Bits of [`BOUND`] and [`SET`].
    flags: Vec<u8>,
    /// Variables that became bound, in order: what a branch must undo.
    log: Vec<VarId>,
    /// Scopes that have but the names of a loop, with those around them.
    loops: HashMap<u32, u32>,
}

impl Vars {
    pub(crate) fn declare(&mut self, name: &[u8], var: Var) -> VarId {
        let id = VarId(self.all.len() as u32);
        self.all.push(var);
        self.flags.push(0);
        match self.names.get_mut(name) {
            Some(list) => list.push(id),
            None => {
                self.names.insert(name.into(), vec![id]);
            }
        }
        id
    }

    pub(crate) fn forget(&mut self, name: &[u8]) {
        if let Some(list) = self.names.get_mut(name) {
            list.pop();
        }
    }

    pub(crate) fn var(&self, id: VarId) -> Var {
        self.all[id.0 as usize]
    }

    pub(crate) fn is_bound(&self, id: VarId) -> bool {
        self.flags[id.0 as usize] & BOUND != 0
    }

    pub(crate) fn set_bound(&mut self, id: VarId) {
        let flags = &mut self.flags[id.0 as usize];
        if *flags & BOUND == 0 {
            *flags = BOUND | SET;
            self.log.push(id);
        }
    }

    /// The variable may be bound from here on.
    pub(crate) fn set_maybe(&mut self, id: VarId) {
        self.flags[id.0 as usize] |= SET;
    }

    /// Whether code before this place binds the variable, on some path at least.
    pub(crate) fn is_set(&self, id: VarId) -> bool {
        self.flags[id.0 as usize] & SET != 0
    }

    /// Whether a name has variables, none of which is bound on any path before.
    pub(crate) fn is_only_later(&self, name: &[u8]) -> bool {
        let ids = self.names.get(name).map_or(&[][..], Vec::as_slice);
        !ids.is_empty() && !ids.iter().any(|id| self.is_set(*id))
    }

    /// The variables a name may mean, innermost first, ending at the first
    /// that surely is bound or stands for all further out.
    pub(crate) fn chain(&self, name: &[u8]) -> Vec<VarId> {
        let mut chain = Vec::new();
        for id in self.names.get(name).into_iter().flatten().rev() {
            chain.push(*id);
            if self.is_bound(*id) || self.var(*id).summary {
                break;
            }
        }
        chain
    }

    /// Variables of a name, innermost first, that tell whether it is bound and
    /// whether it is a constant: all of them, or up to one that stands for those
    /// further out.
    pub(crate) fn all_of(&self, name: &[u8]) -> Vec<VarId> {
        let mut all = Vec::new();
        for id in self.names.get(name).into_iter().flatten().rev() {
            all.push(*id);
            if self.var(*id).summary {
                break;
            }
        }
        all
    }

    /// Whether any scope binds the name.
    pub(crate) fn knows(&self, name: &[u8]) -> bool {
        self.names.get(name).is_some_and(|ids| !ids.is_empty())
    }

    /// The names that are visible, in no order.
    pub(crate) fn known_names(&self) -> impl Iterator<Item = &[u8]> {
        let visible = self.names.iter().filter(|(_, ids)| !ids.is_empty());
        visible.map(|(name, _)| &**name)
    }

    /// How many names there are at most.
    pub(crate) fn names_len(&self) -> usize {
        self.names.len()
    }

    /// Whether a variable hides one of an outer scope that surely is bound.
    pub(crate) fn hides_bound(&self, id: VarId, name: &[u8]) -> bool {
        let ids = self.names.get(name).into_iter().flatten();
        let mut outer = ids.filter(|other| self.var(**other).scope != self.var(id).scope);
        outer.any(|other| self.is_bound(*other))
    }

    /// How many variables are visible, summaries included.
    pub(crate) fn visible_count(&self) -> usize {
        self.names.values().map(Vec::len).sum()
    }

    /// The variable of a name in a scope, or in the one around where it has but
    /// the names of a loop.
    pub(crate) fn in_scope(&self, name: &[u8], scope: u32) -> Option<VarId> {
        let id = *self.names.get(name)?.last()?;
        let own = self.var(id).scope;
        // Scopes inside have higher numbers.
        let mut scope = scope;
        while own < scope {
            scope = *self.loops.get(&scope)?;
        }
        (own == scope).then_some(id)
    }

    /// A scope has but the names of a loop: others are bound in the one around.
    pub(crate) fn is_loop(&mut self, scope: u32, around: u32) {
        self.loops.insert(scope, around);
    }

    /// The scope that a step binds its names in.
    pub(crate) fn binding_scope(&self, scope: u32) -> u32 {
        let mut scope = scope;
        while let Some(around) = self.loops.get(&scope) {
            scope = *around;
        }
        scope
    }

    /// Names visible now, outermost scope first, with the innermost variable
    /// of each last.
    pub(crate) fn visible(&self) -> Vec<(Box<[u8]>, VarId)> {
        let mut list: Vec<_> = self
            .names
            .iter()
            .flat_map(|(name, ids)| ids.iter().map(|id| (name.clone(), *id)))
            .filter(|(_, id)| !self.var(*id).summary)
            .collect();
        list.sort_by_key(|(_, id)| id.0);
        list
    }

    /// A point in time for [`Vars::undo`].
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Forgets what became bound since the mark and tells what that was.
    pub(crate) fn undo(&mut self, mark: usize) -> Vec<VarId> {
        let since = self.log.split_off(mark);
        for id in &since {
            self.flags[id.0 as usize] &= !BOUND;
        }
        since
    }
}
