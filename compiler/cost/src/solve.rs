//! Sizes and prices of the graph as formulas.

use crate::builtins::SCALAR;
use crate::formula::{Factor, Measure, Poly, TooLarge, is_exhausted};
use crate::graph::{Deep, Graph, Key, Kind, LoopId, NodeId, Root, SiteId, Why};
use std::collections::{BTreeSet, HashMap};

/// What a node may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kinds {
    /// A text for certain, if the program reaches it.
    pub(crate) text: bool,
    pub(crate) scalar: bool,
    pub(crate) date: bool,
    pub(crate) undefined: bool,
    pub(crate) unbound: bool,
    /// Texts only if one of these places has one.
    pub(crate) text_if: BTreeSet<u32>,
    pub(crate) sites: BTreeSet<SiteId>,
    pub(crate) places: BTreeSet<u32>,
    pub(crate) opaque: Option<Why>,
}

impl Kinds {
    pub(crate) fn join(&mut self, other: &Kinds) {
        self.text |= other.text;
        self.scalar |= other.scalar;
        self.date |= other.date;
        self.undefined |= other.undefined;
        self.unbound |= other.unbound;
        self.text_if.extend(&other.text_if);
        self.sites.extend(&other.sites);
        self.places.extend(&other.places);
        self.opaque = self.opaque.or(other.opaque);
    }
}

pub(crate) type Bound = Result<Poly, Why>;

/// What is computed of a node.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    Units,
    Len,
    High,
    Deep(Deep),
}

/// What is being computed, or was.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    Node(Of, NodeId),
    Site(Of, SiteId),
    Cell(Of, SiteId, u32),
    Stored(Of, u32),
    /// What is stored in what may be an input.
    Changed(Of),
    Turns(LoopId),
}

/// Most bounds that wait for each other.
const MAX_DEPTH: usize = 150;

/// Steps of an analysis.
const MAX_WORK: usize = 400_000;

pub(crate) struct Solver<'g, 'p> {
    pub(crate) g: &'g mut Graph<'p>,
    pub(crate) kinds: Vec<Kinds>,
    /// The stores that may change a site, and those that may change a place.
    pub(crate) by_site: HashMap<SiteId, Vec<usize>>,
    pub(crate) changed: Vec<usize>,
    pub(crate) memo: HashMap<Asked, Bound>,
    pub(crate) active: HashMap<Asked, u32>,
    pub(crate) keys: Vec<Key>,
    pub(crate) unknowns: u32,
    /// Formulas of which logarithms were taken.
    pub(crate) logs: Vec<Poly>,
    /// Why loops have no bound.
    pub(crate) endless: Vec<(LoopId, Why)>,
    pub(crate) work: usize,
    /// Bounds that wait for others.
    pub(crate) depth: usize,
}

pub(crate) const TOO_LARGE_PROGRAM: Why = "the program is too large to analyse";
const TOO_LARGE: Why = "the formula is too large";
pub(crate) const GROWS: Why = "a value grows by more than a fixed size in each turn of a loop";
pub(crate) const CIRCULAR: Why = "a list or object grows by what depends on its own size";

impl From<TooLarge> for &'static str {
    fn from(_: TooLarge) -> &'static str {
        TOO_LARGE
    }
}

/// Adds a bound.
pub(crate) fn plus(a: Bound, b: Bound) -> Bound {
    Ok(a?.add(&b?).checked()?)
}

pub(crate) fn most(a: Bound, b: Bound) -> Bound {
    Ok(a?.max(&b?).checked()?)
}

impl<'g, 'p> Solver<'g, 'p> {
    pub(crate) fn new(g: &'g mut Graph<'p>) -> Result<Self, Why> {
        let kinds = vec![Kinds::default(); g.nodes.len()];
        let mut solver = Solver {
            g,
            kinds,
            by_site: HashMap::new(),
            changed: Vec::new(),
            memo: HashMap::new(),
            active: HashMap::new(),
            keys: Vec::new(),
            unknowns: 0,
            logs: Vec::new(),
            endless: Vec::new(),
            work: 0,
            depth: 0,
        };
        solver.find_kinds()?;
        Ok(solver)
    }

    /// 1 if the node may be a text, list, object or date, else 0.
    pub(crate) fn texts(&self, node: NodeId) -> Poly {
        let kinds = &self.kinds[node as usize];
        if kinds.text || kinds.date || !kinds.sites.is_empty() || kinds.opaque.is_some() {
            return Poly::number(1.0);
        }
        let places = kinds.places.iter().chain(&kinds.text_if);
        places.fold(Poly::zero(), |sum, place| {
            sum.max(&Poly::of(Factor::Size(Measure::Text, *place)))
        })
    }

    /// A size of a place.
    pub(crate) fn size(&mut self, measure: Measure, place: u32) -> Bound {
        let root = self.g.places[place as usize].root.clone();
        let parsed = match root {
            Root::Answer(at) => self
                .g
                .parsed
                .iter()
                .find(|(known, _)| *known == at)
                .map(|(_, text)| *text),
            _ => None,
        };
        let Some(text) = parsed else {
            return Ok(Poly::of(Factor::Size(measure, place)));
        };
        let of_text = match measure {
            Measure::Text => return Ok(Poly::number(1.0)),
            Measure::Value => return Err("a number in a text"),
            Measure::Chars | Measure::Inner | Measure::Digits => 1.0,
            // An element or member has a comma, a text or object two units.
            _ => 0.5,
        };
        let text = self.conv(text)?;
        Ok(text.scale(of_text).add(&Poly::number(1.0)))
    }

    /// A bound that is computed once.
    pub(crate) fn once(&mut self, asked: Asked, find: impl FnOnce(&mut Self) -> Bound) -> Bound {
        if is_exhausted() {
            return Err(TOO_LARGE_PROGRAM);
        }
        if let Some(known) = self.memo.get(&asked) {
            return known.clone();
        }
        self.work += 1;
        if self.work > MAX_WORK {
            return Err(TOO_LARGE_PROGRAM);
        }
        if self.depth > MAX_DEPTH {
            return Err("values depend on each other too deeply");
        }
        self.depth += 1;
        let found = find(self);
        self.depth -= 1;
        // What names an unknown, or failed for one, holds only as long as that.
        let open = match &found {
            Ok(poly) => poly.has(|f| matches!(f, Factor::Unknown(_))),
            Err(_) => true,
        };
        if !open || self.active.is_empty() {
            self.memo.insert(asked, found.clone());
        }
        found
    }

    /// As [`once`](Solver::once), for what may depend on itself: it is an unknown meanwhile, which
    /// `find` solves for.
    pub(crate) fn ask(&mut self, asked: Asked, find: impl FnOnce(&mut Self) -> Bound) -> Bound {
        if let Some(unknown) = self.active.get(&asked) {
            return match asked {
                Asked::Turns(_) | Asked::Site(..) | Asked::Changed(_) => Err(CIRCULAR),
                _ => Ok(Poly::of(Factor::Unknown(*unknown))),
            };
        }
        self.once(asked, |s| {
            s.unknowns += 1;
            s.active.insert(asked, s.unknowns);
            let own = Factor::Unknown(s.unknowns);
            let found = find(s);
            s.active.remove(&asked);
            match found {
                Ok(poly) if poly.has(|factor| factor == own) => Err(GROWS),
                found => found,
            }
        })
    }

    /// The least bound that alternatives allow, some of which name `asked` itself and happen this
    /// often.
    pub(crate) fn grown(
        &mut self,
        asked: Asked,
        initial: Bound,
        again: Vec<(Bound, Bound)>,
    ) -> Bound {
        let unknown = self.active.get(&asked).copied().unwrap_or_default();
        let mut first = initial?;
        let mut growth = Poly::zero();
        // The alternatives that are values themselves come first.
        for (value, times) in again {
            let Some((times_self, rest)) = value?.without(Factor::Unknown(unknown)) else {
                return Err(GROWS);
            };
            if times_self == 0.0 {
                first = first.max(&rest);
            } else if times_self == 1.0 {
                if !rest.is_zero() {
                    growth = growth.add(&times?.times(&rest)?);
                }
            } else {
                return Err(GROWS);
            }
        }
        match first.without(Factor::Unknown(unknown)) {
            Some((0.0 | 1.0, first)) => Ok(first.add(&growth).checked()?),
            _ => Err(GROWS),
        }
    }

    /// Nodes that a value is copied from, through joins that begin no loop.
    pub(crate) fn leaves(&self, node: NodeId, out: &mut Vec<NodeId>) {
        if out.len() > 64 {
            return out.push(node);
        }
        match &self.g.nodes[node as usize].kind {
            Kind::Phi(entry, back) if back.is_empty() => {
                entry.iter().for_each(|n| self.leaves(*n, out))
            }
            _ => out.push(node),
        }
    }

    /// A phi node: the values at the entry, and what turns make of them.
    pub(crate) fn phi(&mut self, of: Of, node: NodeId, entry: &[NodeId], back: &[NodeId]) -> Bound {
        let mut initial = Ok(Poly::zero());
        for node in entry {
            initial = most(initial, self.of(of, *node));
        }
        let inside = self.g.nodes[node as usize].inside;
        let times = match inside {
            Some(inside) => self.turns(inside),
            None => return Err(GROWS),
        };
        let mut leaves = Vec::new();
        back.iter().for_each(|node| self.leaves(*node, &mut leaves));
        leaves.sort_unstable();
        leaves.dedup();
        // The branches exclude each other: a turn takes the largest step of them.
        let asked = Asked::Node(of, node);
        let unknown = self.active.get(&asked).copied().unwrap_or_default();
        let mut step = Poly::zero();
        let mut again = Vec::new();
        for leaf in leaves {
            let value = self.of(of, leaf)?;
            match value.clone().without(Factor::Unknown(unknown)) {
                Some((1.0, rest)) => step = step.max(&rest),
                _ => again.push((Ok(value), times.clone())),
            }
        }
        if !step.is_zero() {
            again.push((Ok(step.add(&Poly::of(Factor::Unknown(unknown)))), times));
        }
        self.grown(asked, initial, again)
    }

    pub(crate) fn of(&mut self, of: Of, node: NodeId) -> Bound {
        match of {
            Of::Units => self.units(node),
            Of::Len => self.len(node),
            Of::High => self.high(node),
            Of::Deep(deep) => self.deep(deep, node),
        }
    }

    /// A size of what may be several values.
    pub(crate) fn spread(&mut self, of: Of, node: NodeId) -> Option<Bound> {
        match self.g.nodes[node as usize].kind.clone() {
            // Cycles of values pass a loop's header.
            Kind::Phi(entry, back) if back.is_empty() => {
                Some(self.once(Asked::Node(of, node), |s| {
                    let nodes = entry.iter();
                    nodes
                        .copied()
                        .try_fold(Poly::zero(), |sum, node| most(Ok(sum), s.of(of, node)))
                }))
            }
            Kind::Phi(entry, back) => {
                Some(self.ask(Asked::Node(of, node), |s| s.phi(of, node, &entry, &back)))
            }
            Kind::Or(first, second, defined) => {
                let kinds = &self.kinds[first as usize];
                let falls = kinds.unbound || (defined && kinds.undefined);
                Some(self.once(Asked::Node(of, node), |s| match falls {
                    true => most(s.of(of, first), s.of(of, second)),
                    false => s.of(of, first),
                }))
            }
            Kind::PathOr(root, found, old) => {
                let kinds = &self.kinds[root as usize];
                let keeps = kinds.unbound || kinds.undefined;
                Some(self.once(Asked::Node(of, node), |s| match keeps {
                    true => most(s.of(of, found), s.of(of, old)),
                    false => s.of(of, found),
                }))
            }
            Kind::Load(from, key) => {
                Some(self.once(Asked::Node(of, node), |s| s.loaded(of, from, &key)))
            }
            Kind::Opaque(why) => Some(Err(why)),
            Kind::Undefined | Kind::Unbound | Kind::Scalar | Kind::Builtin(_) | Kind::Less(..) => {
                Some(match of {
                    Of::High | Of::Deep(Deep::Digits) => {
                        Ok(Poly::number(if of == Of::High { 1.0 } else { 9.0 }))
                    }
                    _ => Ok(Poly::zero()),
                })
            }
            _ => None,
        }
    }

    /// A size of a member.
    pub(crate) fn loaded(&mut self, of: Of, from: NodeId, key: &Key) -> Bound {
        let kinds = self.kinds[from as usize].clone();
        if let Some(why) = kinds.opaque {
            return Err(why);
        }
        let length = is_length(key);
        let mut found = Ok(Poly::zero());
        if kinds.text || kinds.date || !kinds.text_if.is_empty() {
            // A unit of a text, or a part of a date.
            let one = match of {
                Of::Units | Of::Deep(Deep::Units) => {
                    if kinds.date {
                        32.0
                    } else {
                        1.0
                    }
                }
                Of::Deep(Deep::Texts) => 1.0,
                Of::Deep(Deep::Digits) => SCALAR,
                _ => 0.0,
            };
            found = Ok(Poly::number(one));
        }
        if of == Of::High {
            match length {
                true => found = most(found, plus(self.units(from), self.len(from))),
                false if kinds.text || kinds.date => return Err("a number that is not known"),
                false => {}
            }
        }
        if length && of == Of::Deep(Deep::Digits) {
            found = most(found, Ok(Poly::number(SCALAR)));
        }
        for place in kinds.places {
            let member = self.g.member(place, key);
            let size = self.of_place(of, member);
            found = most(found, size);
            for at in self.changed.clone() {
                found = most(found, self.stored(of, at));
            }
        }
        for site in kinds.sites {
            found = most(found, self.cell(of, site, key));
        }
        found
    }

    /// A size of a value that was stored in what may be an input.
    pub(crate) fn stored(&mut self, of: Of, at: usize) -> Bound {
        let store = self.g.stores[at].clone();
        let asked = Asked::Stored(of, at as u32);
        self.ask(asked, |s| {
            let value = s.of(of, store.value);
            let times = s.count(&store, None);
            s.grown(asked, Ok(Poly::zero()), vec![(value, times)])
        })
    }

    /// A size of what a site holds under a key.
    pub(crate) fn cell(&mut self, of: Of, site: SiteId, key: &Key) -> Bound {
        let known = self.keys.iter().position(|k| k == key);
        let number = known.unwrap_or_else(|| {
            self.keys.push(key.clone());
            self.keys.len() - 1
        });
        let asked = Asked::Cell(of, site, number as u32);
        self.ask(asked, |s| {
            let length = is_length(key);
            let mut again = Vec::new();
            let initial = Ok(Poly::zero());
            if length && s.g.sites[site as usize].list {
                return match of {
                    Of::High => s.site_len(site),
                    _ => Ok(Poly::number(SCALAR)),
                };
            }
            let stores = s.by_site.get(&site).cloned().unwrap_or_default();
            for at in stores {
                let store = s.g.stores[at].clone();
                let times = s.count(&store, Some(site));
                again.push((s.of(of, store.value), times));
            }
            for node in s.held(site, key) {
                // Made anew each time, from what was there before.
                let times = s.turns_around(s.g.sites[site as usize].inside, None);
                again.push((s.of(of, node), times));
            }
            for (from, _) in s.g.sites[site as usize].spreads.clone() {
                if !length {
                    let times = s.turns_around(s.g.sites[site as usize].inside, None);
                    again.push((s.loaded(of, from, key), times));
                }
            }
            s.grown(asked, initial, again)
        })
    }
}

/// Whether a name is that of a width.
pub(crate) fn is_length(key: &Key) -> bool {
    matches!(key, Key::Name(name) if name == b"length" || name == b"size")
}
