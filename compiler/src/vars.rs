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
use a99_core::text::same_name;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell};
use std::hash::BuildHasher;
use std::ops::Range;

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

/// Variables of one name, few as a rule.
pub(crate) type VarList = SmallVec<[VarId; 4]>;

/// Something for some of the variables, which are numbered from 0.
pub(crate) struct VarMap<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for VarMap<T> {
    fn default() -> Self {
        VarMap { slots: Vec::new() }
    }
}

impl<T> VarMap<T> {
    pub(crate) fn get(&self, id: VarId) -> Option<&T> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Whether there never was anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot of a variable.
    pub(crate) fn slot(&mut self, id: VarId) -> &mut Option<T> {
        let at = id.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        &mut self.slots[at]
    }

    pub(crate) fn insert(&mut self, id: VarId, value: T) -> Option<T> {
        self.slot(id).replace(value)
    }

    pub(crate) fn remove(&mut self, id: VarId) -> Option<T> {
        self.slots.get_mut(id.0 as usize)?.take()
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }

    /// The variables that have something, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (VarId, &T)> {
        let slots = (0..).map(VarId).zip(&self.slots);
        slots.filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}

/// A name, and its variables that are visible, innermost last.
struct Name<'a> {
    text: &'a [u8],
    vars: VarList,
}

/// The names that variables have, or had.
#[derive(Default)]
struct Names<'a> {
    /// Keyed at random: a program chooses its names.
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    known: Vec<Name<'a>>,
    /// Names that were asked for a moment ago, by [`Names::slot`]: most are asked for
    /// again.
    recent: [Cell<u32>; Names::RECENT],
    /// The names by first byte and length, once somebody asks for names like another.
    alike: OnceCell<Alike>,
}

/// The letters and the numbers of names by their first byte and their length, each list in
/// the order of the numbers.
type Alike = HashMap<(u8, usize), Vec<(u32, u32)>>;

/// The lists of names that begin as one does and are as long, but for a byte.
pub(crate) struct AlikeLists<'v>([&'v [(u32, u32)]; 3]);

impl AlikeLists<'_> {
    /// How many names are in them.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|list| list.len()).sum()
    }
}

/// Notes the number of a name; one without bytes is like no other.
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

/// The letters of a name in whatever case, a bit each; a bit may stand for several.
fn letters_of(name: &[u8]) -> u32 {
    name.iter()
        .fold(0, |bits, byte| bits | 1 << (byte.to_ascii_lowercase() & 31))
}

impl<'a> Names<'a> {
    const RECENT: usize = 16;

    /// Where a name stands among the recent ones.
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

    /// The same for a name that is none of the recent ones.
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

    /// The number of a name, a new one if nothing had the name before.
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
pub(crate) struct Vars<'a> {
    names: Names<'a>,
    all: Vec<Var>,
    /// The number of each one's name.
    names_of: Vec<u32>,
    /// Bits of [`BOUND`] and [`SET`].
    flags: Vec<u8>,
    /// Variables that became bound, in order: what a branch must undo.
    log: Vec<VarId>,
    /// Scopes that have but the names of a loop, with those around them.
    loops: HashMap<u32, u32>,
}

impl<'a> Vars<'a> {
    /// Makes room for so many variables more.
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

    /// How many variables were declared so far.
    pub(crate) fn declared(&self) -> usize {
        self.all.len()
    }

    /// Variables of a scope that closes are not visible any more.
    pub(crate) fn forget(&mut self, declared: Range<usize>) {
        for name in &self.names_of[declared] {
            self.names.known[*name as usize].vars.pop();
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
        let ids = self.names.vars(name);
        !ids.is_empty() && !ids.iter().any(|id| self.is_set(*id))
    }

    /// The variables a name may mean, innermost first, ending at the first
    /// that surely is bound or stands for all further out.
    pub(crate) fn chain(&self, name: &[u8]) -> VarList {
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
    pub(crate) fn of_name(&self, name: &[u8]) -> &[VarId] {
        self.names.vars(name)
    }

    /// Variables of a name, innermost first, that tell whether it is bound and
    /// whether it is a constant: all of them, or up to one that stands for those
    /// further out.
    pub(crate) fn all_of(&self, name: &[u8]) -> VarList {
        self.seen_of(name).collect()
    }

    /// The same, one by one.
    pub(crate) fn seen_of(&self, name: &[u8]) -> impl Iterator<Item = VarId> + '_ {
        let mut goes_on = true;
        let all = self.names.vars(name).iter().rev().copied();
        all.take_while(move |id| std::mem::replace(&mut goes_on, !self.var(*id).summary))
    }

    /// Whether any scope binds the name.
    pub(crate) fn knows(&self, name: &[u8]) -> bool {
        !self.names.vars(name).is_empty()
    }

    /// The names that are visible, in no order.
    pub(crate) fn known_names(&self) -> impl Iterator<Item = &[u8]> {
        let visible = self.names.known.iter().filter(|name| !name.vars.is_empty());
        visible.map(|name| name.text)
    }

    /// The names that begin as this one does and are as long, but for a byte.
    pub(crate) fn alike_lists(&self, name: &[u8]) -> AlikeLists<'_> {
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

    /// Those of them that were known when there were `from` names or later, and if `few` is
    /// wanted have at most two letters that the other one has not, each with whether it is
    /// visible. Names of other letters are not even looked at: they lie elsewhere in memory.
    pub(crate) fn alike(
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

    /// How many names there are at most.
    pub(crate) fn names_len(&self) -> usize {
        self.names.known.len()
    }

    /// Whether a variable hides one of an outer scope that surely is bound.
    pub(crate) fn hides_bound(&self, id: VarId, name: &[u8]) -> bool {
        let ids = self.names.vars(name).iter();
        let mut outer = ids.filter(|other| self.var(**other).scope != self.var(id).scope);
        outer.any(|other| self.is_bound(*other))
    }

    /// How many variables are visible, summaries included.
    pub(crate) fn visible_count(&self) -> usize {
        self.names.known.iter().map(|name| name.vars.len()).sum()
    }

    /// The variable of a name in a scope, or in the one around where it has but
    /// the names of a loop.
    pub(crate) fn in_scope(&self, name: &[u8], scope: u32) -> Option<VarId> {
        let id = *self.names.vars(name).last()?;
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
            .known
            .iter()
            .flat_map(|name| name.vars.iter().map(|id| (Box::from(name.text), *id)))
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
