//! Variables: scopes, locations, and which are surely bound.
//!
//! Every name that a scope binds is known before its code is emitted, so each gets a register
//! (or, beyond those, a frame slot). A read follows the chain of scopes at compile time: the
//! innermost variable that surely is bound ends it; those that may be unbound cost a test each.
//! Where many nested scopes may bind one name, every few of them a summary keeps the outer
//! meaning of the name, which cannot change while the inner scope is open: a read costs the
//! same at any depth.

use a99_core::builtins::is_forbidden;
use a99_core::program::Location;
use a99_core::text::same_name;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell};
use std::hash::BuildHasher;
use std::ops::Range;

/// A variable of the function being compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct VarId(pub u32);

/// Where a variable is.
#[derive(Copy, Clone, Debug)]
pub struct Var {
    /// Its register or slot.
    pub location: Location,
    /// Holds `true` once the name is a constant.
    pub const_flag: Option<Location>,
    /// Index of its scope.
    pub scope: u32,
    /// Holds the value that outer variables of the name gave on entry to its scope, so that lookups
    /// end here.
    pub summary: bool,
}

/// Surely bound here.
const BOUND: u8 = 1;

/// Bound by code before this place, on some path.
const SET: u8 = 2;

/// Variables of one name, usually few.
pub type VarList = SmallVec<[VarId; 4]>;

/// A map from some of the variables, which are numbered from 0.
pub struct VarMap<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for VarMap<T> {
    fn default() -> Self {
        VarMap { slots: Vec::new() }
    }
}

impl<T> VarMap<T> {
    /// The entry of a variable.
    pub fn get(&self, id: VarId) -> Option<&T> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Whether the map never had an entry.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot of a variable.
    pub fn slot(&mut self, id: VarId) -> &mut Option<T> {
        let at = id.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        &mut self.slots[at]
    }

    /// Sets an entry; returns the one before.
    pub fn insert(&mut self, id: VarId, value: T) -> Option<T> {
        self.slot(id).replace(value)
    }

    /// Removes an entry.
    pub fn remove(&mut self, id: VarId) -> Option<T> {
        self.slots.get_mut(id.0 as usize)?.take()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// The entries, in the order of the variables' numbers.
    pub fn iter(&self) -> impl Iterator<Item = (VarId, &T)> {
        let slots = (0..).map(VarId).zip(&self.slots);
        slots.filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}

/// A name, and its variables that are visible, innermost last.
struct Name<'a> {
    text: &'a [u8],
    vars: VarList,
}

/// The names of all variables, including those that were forgotten.
#[derive(Default)]
struct Names<'a> {
    /// Hashed with a random key: a program chooses its names.
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    known: Vec<Name<'a>>,
    /// Recently queried names, by [`Names::slot`]: most are queried again.
    recent: [Cell<u32>; Names::RECENT],
    /// The names by first byte and length, built at the first query for similar names.
    alike: OnceCell<Alike>,
}

/// The letters and the numbers of names by their first byte and their length, each list in
/// the order of the numbers.
type Alike = HashMap<(u8, usize), Vec<(u32, u32)>>;

/// The lists of names with the same first byte and a length that differs by one at most.
pub struct AlikeLists<'v>([&'v [(u32, u32)]; 3]);

impl AlikeLists<'_> {
    /// Number of names in the lists.
    pub fn count(&self) -> usize {
        self.0.iter().map(|list| list.len()).sum()
    }
}

/// Adds the number of a name; an empty name is similar to no other.
fn note_alike(alike: &mut Alike, name: &[u8], number: u32) {
    if let Some(first) = name.first() {
        let list = alike.entry((*first, name.len())).or_default();
        list.push((letters_of(name), number));
    }
}

/// Whether at most two bits are set.
fn at_most_two(bits: u32) -> bool {
    let without = |bits: u32| bits & bits.wrapping_sub(1);
    without(without(bits)) == 0
}

/// The letters of a name, without case, one bit each; a bit may stand for several.
fn letters_of(name: &[u8]) -> u32 {
    name.iter()
        .fold(0, |bits, byte| bits | 1 << (byte.to_ascii_lowercase() & 31))
}

impl<'a> Names<'a> {
    const RECENT: usize = 16;

    /// The position of a name among the recent ones.
    fn slot(name: &[u8]) -> usize {
        let ends = name.first().zip(name.last());
        let ends = ends.map_or(0, |(first, last)| {
            5 * usize::from(*first) + usize::from(*last)
        });
        (ends + 3 * name.len()) % Names::RECENT
    }

    fn number(&self, name: &[u8]) -> Option<u32> {
        let recent = &self.recent[Names::slot(name)];
        let number = recent.get();
        if let Some(known) = self.known.get(number as usize)
            && same_name(known.text, name)
        {
            return Some(number);
        }
        self.hashed(name, recent)
    }

    /// Looks up a name that is not among the recent ones.
    #[inline(never)]
    fn hashed(&self, name: &[u8], recent: &Cell<u32>) -> Option<u32> {
        let is_same = |known: &u32| self.known[*known as usize].text == name;
        let number = self.numbers.find(self.hasher.hash_one(name), is_same)?;
        recent.set(*number);
        Some(*number)
    }

    fn vars(&self, name: &[u8]) -> &[VarId] {
        let number = self.number(name);
        let known = number.and_then(|number| self.known.get(number as usize));
        known.map_or(&[], |known| &known.vars)
    }

    /// The number of a name; a new name gets a new number.
    fn number_of(&mut self, name: &'a [u8]) -> u32 {
        let (known, hasher) = (&mut self.known, &self.hasher);
        let is_same = |number: &u32| known[*number as usize].text == name;
        let hash_of = |number: &u32| hasher.hash_one(known[*number as usize].text);
        let found = self.numbers.entry(hasher.hash_one(name), is_same, hash_of);
        let number = match found {
            Entry::Occupied(number) => *number.get(),
            Entry::Vacant(free) => {
                let number = known.len() as u32;
                let vars = VarList::new();
                known.push(Name { text: name, vars });
                if let Some(alike) = self.alike.get_mut() {
                    note_alike(alike, name, number);
                }
                free.insert(number);
                number
            }
        };
        self.recent[Names::slot(name)].set(number);
        number
    }

    fn alike(&self) -> &Alike {
        self.alike.get_or_init(|| {
            let mut alike = Alike::new();
            for (number, name) in (0..).zip(&self.known) {
                note_alike(&mut alike, name.text, number);
            }
            alike
        })
    }
}

/// The variables that are visible.
#[derive(Default)]
pub struct Vars<'a> {
    names: Names<'a>,
    all: Vec<Var>,
    /// The number of each one's name.
    names_of: Vec<u32>,
    /// Bits of [`BOUND`] and [`SET`].
    flags: Vec<u8>,
    /// Variables that became bound, in order, so that a branch can undo them.
    log: Vec<VarId>,
    /// Scopes that have only the names of a loop, each with its enclosing scope.
    loops: HashMap<u32, u32>,
}

impl<'a> Vars<'a> {
    /// Reserves capacity for `more` variables.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.all.reserve(more);
        self.names_of.reserve(more);
        self.flags.reserve(more);
        self.log.reserve(more);
        self.names.known.reserve(more);
        let (known, hasher) = (&self.names.known, &self.names.hasher);
        let hash_of = |number: &u32| hasher.hash_one(known[*number as usize].text);
        self.names.numbers.reserve(more, hash_of);
    }

    pub(crate) fn declare(&mut self, name: &'a [u8], var: Var) -> VarId {
        let id = VarId(self.all.len() as u32);
        let name = self.names.number_of(name);
        self.all.push(var);
        self.names_of.push(name);
        self.flags.push(0);
        self.names.known[name as usize].vars.push(id);
        id
    }

    /// Number of variables declared so far.
    pub(crate) fn declared(&self) -> usize {
        self.all.len()
    }

    /// Hides the variables of a scope that closes.
    pub(crate) fn forget(&mut self, declared: Range<usize>) {
        for name in &self.names_of[declared] {
            self.names.known[*name as usize].vars.pop();
        }
    }

    /// Where a variable is.
    pub fn var(&self, id: VarId) -> Var {
        self.all[id.0 as usize]
    }

    /// Whether a variable surely is bound here.
    pub fn is_bound(&self, id: VarId) -> bool {
        self.flags[id.0 as usize] & BOUND != 0
    }

    pub(crate) fn set_bound(&mut self, id: VarId) {
        let flags = &mut self.flags[id.0 as usize];
        if *flags & BOUND == 0 {
            *flags = BOUND | SET;
            self.log.push(id);
        }
    }

    /// Records that the variable may be bound from here on.
    pub(crate) fn set_maybe(&mut self, id: VarId) {
        self.flags[id.0 as usize] |= SET;
    }

    /// Whether code before this place binds the variable, on at least one path.
    pub fn is_set(&self, id: VarId) -> bool {
        self.flags[id.0 as usize] & SET != 0
    }

    /// Whether a name has variables, but no earlier path binds one.
    pub fn is_only_later(&self, name: &[u8]) -> bool {
        let ids = self.names.vars(name);
        !ids.is_empty() && !ids.iter().any(|id| self.is_set(*id))
    }

    /// The variables that a name may mean, innermost first, ending at the first that surely is
    /// bound or is a summary of the outer ones.
    pub fn chain(&self, name: &[u8]) -> VarList {
        let mut chain = VarList::new();
        for id in self.names.vars(name).iter().rev() {
            chain.push(*id);
            if self.is_bound(*id) || self.var(*id).summary {
                break;
            }
        }
        chain
    }

    /// All variables of a name, innermost last.
    pub fn of_name(&self, name: &[u8]) -> &[VarId] {
        self.names.vars(name)
    }

    /// Variables of a name, innermost first, that decide whether it is bound and whether it is a
    /// constant: all of them, or up to the first summary of the outer ones.
    pub fn all_of(&self, name: &[u8]) -> VarList {
        self.seen_of(name).collect()
    }

    /// An iterator over the variables of `all_of`.
    pub fn seen_of(&self, name: &[u8]) -> impl Iterator<Item = VarId> + '_ {
        let mut goes_on = true;
        let all = self.names.vars(name).iter().rev().copied();
        all.take_while(move |id| std::mem::replace(&mut goes_on, !self.var(*id).summary))
    }

    /// Whether any scope binds the name.
    pub fn knows(&self, name: &[u8]) -> bool {
        !self.names.vars(name).is_empty()
    }

    /// Whether a string in a value position always evaluates to itself.
    pub fn is_plain_text(&self, text: &[u8]) -> bool {
        let Some(dot) = text.iter().position(|b| *b == b'.') else {
            return !self.knows(text);
        };
        !text.starts_with(b"args.")
            && !text.split(|b| *b == b'.').any(is_forbidden)
            && !self.knows(text)
            && !self.knows(&text[..dot])
    }

    /// The names that are visible, in no order.
    pub fn known_names(&self) -> impl Iterator<Item = &[u8]> {
        let visible = self.names.known.iter().filter(|name| !name.vars.is_empty());
        visible.map(|name| name.text)
    }

    /// The lists of names with the same first byte and a length that differs by one at most.
    pub fn alike_lists(&self, name: &[u8]) -> AlikeLists<'_> {
        let (first, len) = (name.first().copied().unwrap_or_default(), name.len());
        let lists = self.names.alike();
        let list = |len: Option<usize>| {
            let list = len.and_then(|len| lists.get(&(first, len)));
            list.map_or(&[][..], Vec::as_slice)
        };
        AlikeLists([
            list(len.checked_sub(1)),
            list(Some(len)),
            list(len.checked_add(1)),
        ])
    }

    /// The names of these lists that were added from number `from` on, each with whether it is
    /// visible.
    ///
    /// With `few`, only names with at most two letters that the other one lacks. Names with other
    /// letters are not loaded: they are elsewhere in memory.
    pub fn alike(
        &self,
        lists: &AlikeLists<'_>,
        name: &[u8],
        from: usize,
        few: bool,
    ) -> impl Iterator<Item = (&[u8], bool)> {
        let letters = letters_of(name);
        let since = lists.0.map(|list| {
            let before = list.partition_point(|(_, number)| (*number as usize) < from);
            &list[before..]
        });
        let near = since.into_iter().flatten().filter(move |(other, _)| {
            !few || at_most_two(other & !letters) && at_most_two(letters & !other)
        });
        let names = near.map(|(_, number)| &self.names.known[*number as usize]);
        names.map(|name| (name.text, !name.vars.is_empty()))
    }

    /// Upper bound of the number of names.
    pub fn names_len(&self) -> usize {
        self.names.known.len()
    }

    /// Whether a variable hides an outer one that surely is bound.
    pub fn hides_bound(&self, id: VarId, name: &[u8]) -> bool {
        let ids = self.names.vars(name).iter();
        let mut outer = ids.filter(|other| self.var(**other).scope != self.var(id).scope);
        outer.any(|other| self.is_bound(*other))
    }

    /// Number of visible variables, summaries included.
    pub(crate) fn visible_count(&self) -> usize {
        self.names.known.iter().map(|name| name.vars.len()).sum()
    }

    /// The variable of a name in a scope, or in the enclosing one if the scope has only the names
    /// of a loop.
    pub fn in_scope(&self, name: &[u8], scope: u32) -> Option<VarId> {
        let id = *self.names.vars(name).last()?;
        let own = self.var(id).scope;
        // Inner scopes have higher numbers.
        let mut scope = scope;
        while own < scope {
            scope = *self.loops.get(&scope)?;
        }
        (own == scope).then_some(id)
    }

    /// Marks a scope that has only the names of a loop: other names are bound in the enclosing one.
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
            .known
            .iter()
            .flat_map(|name| name.vars.iter().map(|id| (Box::from(name.text), *id)))
            .filter(|(_, id)| !self.var(*id).summary)
            .collect();
        list.sort_by_key(|(_, id)| id.0);
        list
    }

    /// A position in the log, for [`Vars::undo`].
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Undoes the bindings since the mark and returns their variables.
    pub(crate) fn undo(&mut self, mark: usize) -> Vec<VarId> {
        let since = self.log.split_off(mark);
        for id in &since {
            self.flags[id.0 as usize] &= !BOUND;
        }
        since
    }
}
