//! Bounds of numbers, and turns of loops.

use crate::formula::{Factor, Poly};
use crate::graph::{At, Key, Kind, LoopId, NodeId, Num, SiteId, Store, Turns, Why};
use crate::solve::{Asked, Bound, CIRCULAR, Of, Solver, most, plus};
use std::collections::HashSet;

impl Solver<'_, '_> {
    /// A number, at most; below 0 counts as 0.
    pub(crate) fn high(&mut self, node: NodeId) -> Bound {
        const UNKNOWN: Why = "a number that is not known";
        if let Some(found) = self.spread(Of::High, node) {
            return found;
        }
        let asked = Asked::Node(Of::High, node);
        match self.g.nodes[node as usize].kind.clone() {
            Kind::Number(n) if n.is_finite() => Ok(Poly::number(n.max(0.0))),
            Kind::Path(place) => self.of_place(Of::High, place),
            Kind::Add(a, b) if self.texts(node).is_zero() => {
                self.once(asked, |s| plus(s.high(a), s.high(b)))
            }
            Kind::Num(num) => self.once(asked, |s| match num {
                Num::Unknown => Err(UNKNOWN),
                Num::Len(of) | Num::Index(of) => plus(s.units(of), s.len(of)),
                Num::Sub(a, b) if s.is_positive(b, &mut HashSet::new()) => s.high(a),
                Num::Mul(a, b)
                    if s.is_positive(a, &mut HashSet::new())
                        && s.is_positive(b, &mut HashSet::new()) =>
                {
                    Ok(s.high(a)?.times(&s.high(b)?)?)
                }
                Num::Div(a, b) => match s.g.nodes[b as usize].kind {
                    Kind::Number(n) if n > 0.0 => Ok(s.high(a)?.scale(1.0 / n)),
                    _ => Err(UNKNOWN),
                },
                Num::Floor(a) if s.is_positive(a, &mut HashSet::new()) => s.high(a),
                Num::Plus(a) => s.high(a),
                Num::Ceil(a) => plus(s.high(a), Ok(Poly::number(1.0))),
                Num::Min(list) => {
                    let mut best = Err(UNKNOWN);
                    for node in list {
                        let found = s.high(node);
                        let is_number =
                            |b: &Bound| b.as_ref().is_ok_and(|p| p.as_number().is_some());
                        if best.is_err() || (is_number(&found) && !is_number(&best)) {
                            best = found;
                        }
                    }
                    best
                }
                Num::Max(list) => list
                    .iter()
                    .try_fold(Poly::zero(), |sum, n| most(Ok(sum), s.high(*n))),
                _ => Err(UNKNOWN),
            }),
            _ => Err(UNKNOWN),
        }
    }

    /// Whether a number is never below 0; NaN is allowed.
    pub(crate) fn is_positive(&self, node: NodeId, seen: &mut HashSet<NodeId>) -> bool {
        if !seen.insert(node) {
            return true;
        }
        match &self.g.nodes[node as usize].kind {
            Kind::Number(n) => *n >= 0.0,
            Kind::Phi(entry, back) => entry.iter().chain(back).all(|n| self.is_positive(*n, seen)),
            Kind::Or(a, b, _) => self.is_positive(*a, seen) && self.is_positive(*b, seen),
            Kind::Unbound | Kind::Undefined | Kind::Less(..) => true,
            Kind::Load(of, Key::Name(name)) if name == b"length" => {
                let kinds = &self.kinds[*of as usize];
                kinds.places.is_empty()
                    && kinds.opaque.is_none()
                    && kinds.sites.iter().all(|s| self.g.sites[*s as usize].list)
            }
            Kind::Add(a, b) => {
                self.texts(node).is_zero()
                    && self.is_positive(*a, seen)
                    && self.is_positive(*b, seen)
            }
            Kind::Num(num) => match num {
                Num::Len(_) => true,
                Num::Mul(a, b) | Num::Div(a, b) => {
                    self.is_positive(*a, seen) && self.is_positive(*b, seen)
                }
                Num::Floor(a) | Num::Ceil(a) | Num::Plus(a) => self.is_positive(*a, seen),
                Num::Min(list) => list.iter().all(|n| self.is_positive(*n, seen)),
                Num::Max(list) => list.iter().any(|n| self.is_positive(*n, seen)),
                _ => false,
            },
            _ => false,
        }
    }

    /// How often a loop turns each time that it is entered.
    pub(crate) fn turns(&mut self, at: LoopId) -> Bound {
        let found = self.ask(Asked::Turns(at), |s| {
            let tests = s.g.loops[at as usize].tests.clone();
            let mut best: Bound = Err("its condition is not a counter below a known number");
            for (turns, exact) in tests {
                let found = match turns {
                    Turns::Each(list) => s.len(list),
                    Turns::Count {
                        low,
                        high,
                        or_equal,
                    } => s.counted(at, low, high, or_equal),
                };
                // In front of the test, a turn more may begin.
                let found = found.map(|n| if exact { n } else { n.add(&Poly::number(1.0)) });
                best = match (best, found) {
                    (Ok(a), Ok(b)) => Ok(if b.as_number().is_some() && a.as_number().is_none() {
                        b
                    } else {
                        a
                    }),
                    (Err(_), found) => found,
                    (best, Err(_)) => best,
                };
            }
            best
        });
        match found {
            Ok(n) if !n.has(|f| matches!(f, Factor::Unknown(_))) => Ok(n),
            found => {
                let why = found.err().unwrap_or(CIRCULAR);
                if !self.endless.iter().any(|(known, _)| *known == at) {
                    self.endless.push((at, why));
                }
                let turns = Poly::of(Factor::Turns(at));
                self.memo.insert(Asked::Turns(at), Ok(turns.clone()));
                Ok(turns)
            }
        }
    }

    /// Turns of a loop that goes on while a number is below another.
    pub(crate) fn counted(
        &mut self,
        at: LoopId,
        low: NodeId,
        high: NodeId,
        or_equal: bool,
    ) -> Bound {
        const NO_COUNTER: Why = "its condition compares no counter that each turn changes";
        let more = Poly::number(if or_equal { 2.0 } else { 1.0 });
        if let Some((first, step)) = self.counter(at, low, 1.0) {
            // Up, from at least this number.
            let from = match self.g.nodes[first as usize].kind {
                Kind::Number(n) => n,
                _ if self.is_positive(first, &mut HashSet::new()) => 0.0,
                _ => return Err("its counter begins at a number that is not known"),
            };
            let to = self.high(high)?;
            let turns = to.scale(1.0 / step).add(&more);
            return Ok(match turns.as_number() {
                Some(n) => Poly::number((n - from / step).max(0.0).ceil()),
                None if from < 0.0 => turns.add(&Poly::number(-from / step)),
                None => turns.add(&Poly::zero()),
            });
        }
        if let Some((first, step)) = self.counter(at, high, -1.0) {
            let to = match self.g.nodes[low as usize].kind {
                Kind::Number(n) => n,
                _ => return Err("it counts down to a number that is not known"),
            };
            let turns = self.high(first)?.scale(1.0 / step).add(&more);
            return Ok(turns.add(&Poly::number((-to / step).max(0.0))));
        }
        Err(NO_COUNTER)
    }

    /// The first value of a counter and the least step of a turn, if each turn changes it in this
    /// direction.
    pub(crate) fn counter(
        &self,
        at: LoopId,
        node: NodeId,
        direction: f64,
    ) -> Option<(NodeId, f64)> {
        let (mut todo, mut seen) = (vec![node], HashSet::new());
        while let Some(phi) = todo.pop() {
            if !seen.insert(phi) {
                continue;
            }
            match &self.g.nodes[phi as usize].kind {
                Kind::Phi(entry, back)
                    if !back.is_empty() && self.g.nodes[phi as usize].inside == Some(at) =>
                {
                    let [first] = entry[..] else { return None };
                    let kinds = &self.kinds[first as usize];
                    let is_number = kinds.scalar && kinds.opaque.is_none();
                    // The test may come after a step.
                    if !is_number || !self.texts(first).is_zero() {
                        return None;
                    }
                    self.step(node, phi, direction, 0)?;
                    let mut least = f64::INFINITY;
                    for end in back {
                        least = least.min(self.step(*end, phi, direction, 0)?);
                    }
                    // Steps that rounding swallows never end.
                    return (least >= 1.0 / 1024.0 && least.is_finite()).then_some((first, least));
                }
                Kind::Phi(entry, _) => todo.extend(entry),
                Kind::Or(first, ..) => todo.push(*first),
                Kind::Add(a, b) | Kind::Num(Num::Sub(a, b)) => todo.extend([a, b]),
                _ => {}
            }
        }
        None
    }

    /// The least step from a phi node to a value of the same turn, in a direction.
    pub(crate) fn step(
        &self,
        node: NodeId,
        from: NodeId,
        direction: f64,
        depth: usize,
    ) -> Option<f64> {
        if node == from {
            return Some(0.0);
        }
        if depth > 64 {
            return None;
        }
        let number = |n: &NodeId| match self.g.nodes[*n as usize].kind {
            Kind::Number(n) => Some(n * direction),
            _ => None,
        };
        match &self.g.nodes[node as usize].kind {
            Kind::Phi(entry, back) if back.is_empty() => {
                let mut least = f64::INFINITY;
                for node in entry {
                    least = least.min(self.step(*node, from, direction, depth + 1)?);
                }
                Some(least)
            }
            Kind::Or(first, _, _) => {
                let kinds = &self.kinds[*first as usize];
                match kinds.unbound || kinds.undefined {
                    true => None,
                    false => self.step(*first, from, direction, depth + 1),
                }
            }
            Kind::Add(a, b) => match (number(a), number(b)) {
                (_, Some(n)) if n >= 0.0 => Some(self.step(*a, from, direction, depth + 1)? + n),
                (Some(n), _) if n >= 0.0 => Some(self.step(*b, from, direction, depth + 1)? + n),
                _ => None,
            },
            Kind::Num(Num::Sub(a, b)) => match number(b) {
                Some(n) if n <= 0.0 => Some(self.step(*a, from, direction, depth + 1)? - n),
                _ => None,
            },
            _ => None,
        }
    }

    /// How often a store happens for one instance of a site.
    pub(crate) fn count(&mut self, store: &Store, site: Option<SiteId>) -> Bound {
        let until = site.and_then(|site| self.common(store, site));
        let mut times = self.turns_around(store.inside, until)?;
        if store.in_header && store.inside != until {
            times = times.add(&self.turns_around(
                store.inside.and_then(|l| self.g.loops[l as usize].parent),
                until,
            )?);
        }
        Ok(times)
    }

    /// The innermost loop around both a site and a store, if the store changes only what the site
    /// made in the same turn.
    pub(crate) fn common(&self, store: &Store, site: SiteId) -> Option<LoopId> {
        let chain = |mut at: Option<LoopId>| {
            let mut list = Vec::new();
            while let Some(l) = at {
                list.push(l);
                at = self.g.loops[l as usize].parent;
            }
            list
        };
        let found = &self.g.sites[site as usize];
        let outer = chain(found.inside);
        let shared = chain(store.inside)
            .into_iter()
            .find(|l| outer.contains(l))?;
        let around = chain(Some(shared));
        let (mut todo, mut seen) = (vec![store.target], HashSet::new());
        while let Some(node) = todo.pop() {
            if node == found.node
                || !seen.insert(node)
                || !self.kinds[node as usize].sites.contains(&site)
            {
                continue;
            }
            match &self.g.nodes[node as usize].kind {
                Kind::Phi(entry, back) => {
                    let header = !back.is_empty()
                        && self.g.nodes[node as usize]
                            .inside
                            .is_some_and(|l| around.contains(&l));
                    if header {
                        return None;
                    }
                    todo.extend(entry.iter().chain(back));
                }
                Kind::Or(a, b, _) => todo.extend([a, b]),
                _ => return None,
            }
        }
        Some(shared)
    }

    /// How often the body of a loop runs, with all loops around it up to one.
    pub(crate) fn turns_around(&mut self, inside: Option<LoopId>, until: Option<LoopId>) -> Bound {
        let mut times = Poly::number(1.0);
        let mut at = inside;
        while let Some(l) = at.filter(|l| Some(*l) != until) {
            times = times.times(&self.turns(l)?)?;
            at = self.g.loops[l as usize].parent;
        }
        Ok(times)
    }

    /// The instruction of a loop.
    pub(crate) fn at(&self, at: LoopId) -> At {
        self.g.loops[at as usize].at
    }
}
