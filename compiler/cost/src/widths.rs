//! Widths of values, and totals with all that is in them.

use crate::builtins::SCALAR;
use crate::formula::{Factor, Measure, Poly};
use crate::graph::{Deep, Kind, NodeId, SiteId, Store};
use crate::solve::{Asked, Bound, Of, Solver, most, plus};
use std::collections::BTreeSet;

impl Solver<'_, '_> {
    /// Own units of a text.
    pub(crate) fn units(&mut self, node: NodeId) -> Bound {
        if let Some(found) = self.spread(Of::Units, node) {
            return found;
        }
        match self.g.nodes[node as usize].kind.clone() {
            Kind::Literal(_, n) | Kind::Units(n) => Ok(Poly::number(f64::from(n))),
            Kind::Path(place) => self.size(Measure::Chars, place),
            Kind::Text(spec) => self.once(Asked::Node(Of::Units, node), |s| s.sum(&spec)),
            Kind::Add(a, b) => self.once(Asked::Node(Of::Units, node), |s| {
                let texts = s.texts(a).max(&s.texts(b));
                if texts.is_zero() {
                    return Ok(Poly::zero());
                }
                let both = plus(s.conv(a), s.conv(b))?;
                match texts.as_number() {
                    Some(_) => Ok(both),
                    // A text that grows is one whatever else is one.
                    None => s.if_text(&texts, both),
                }
            }),
            _ => Ok(Poly::zero()),
        }
    }

    /// A formula times an indicator, except for unknowns, which are 0 if it is.
    pub(crate) fn if_text(&mut self, texts: &Poly, formula: Poly) -> Bound {
        let (mut open, mut rest) = (Poly::zero(), Poly::zero());
        for (factors, times) in formula.0 {
            let unknown = factors.iter().any(|f| matches!(f, Factor::Unknown(_)));
            let to = if unknown { &mut open } else { &mut rest };
            to.0.insert(factors, times);
        }
        Ok(rest.times(texts)?.add(&open))
    }

    /// Elements or members.
    pub(crate) fn len(&mut self, node: NodeId) -> Bound {
        if let Some(found) = self.spread(Of::Len, node) {
            return found;
        }
        match self.g.nodes[node as usize].kind {
            Kind::Path(place) => self.of_place(Of::Len, place),
            Kind::New(site) => self.site_len(site),
            _ => Ok(Poly::zero()),
        }
    }

    pub(crate) fn of_place(&mut self, of: Of, place: u32) -> Bound {
        let measures: &[Measure] = match of {
            Of::Units => &[Measure::Chars],
            Of::Len => &[Measure::Len],
            Of::High => &[Measure::Value],
            Of::Deep(Deep::Units) => &[Measure::Chars, Measure::Inner],
            Of::Deep(Deep::Digits) => &[Measure::Digits],
            Of::Deep(Deep::Texts) => &[Measure::Texts],
            Of::Deep(Deep::Objects) => &[Measure::Objects],
            Of::Deep(Deep::Elements) => &[Measure::Elements],
            Of::Deep(Deep::Members) => &[Measure::Members],
        };
        let mut sum = Ok(Poly::zero());
        for measure in measures {
            sum = plus(sum, self.size(*measure, place));
        }
        if matches!(of, Of::Len | Of::Deep(_)) && !self.changed.is_empty() {
            sum = plus(sum, self.ask(Asked::Changed(of), |s| s.added(of)));
        }
        sum
    }

    /// What changes add to what may be an input.
    pub(crate) fn added(&mut self, of: Of) -> Bound {
        let mut sum = Ok(Poly::zero());
        {
            for at in self.changed.clone() {
                let store = self.g.stores[at].clone();
                let times = self.count(&store, None);
                let each = match of {
                    Of::Len => Ok(Poly::number(1.0)),
                    Of::Deep(deep) => self.entry(deep, &store, false),
                    _ => Ok(Poly::zero()),
                };
                sum = plus(sum, Ok(times?.times(&each?)?));
            }
        }
        sum
    }

    pub(crate) fn site_len(&mut self, site: SiteId) -> Bound {
        self.ask(Asked::Site(Of::Len, site), |s| {
            let found = s.g.sites[site as usize].clone();
            let mut sum = s.sum(&found.len)?;
            if !found.list {
                let names: BTreeSet<&Vec<u8>> = found.fields.iter().map(|(name, _)| name).collect();
                sum = sum.add(&Poly::number(names.len() as f64));
            }
            for (from, _) in &found.spreads {
                sum = sum.add(&s.len(*from)?);
                if !found.list {
                    sum = sum.add(&s.units(*from)?);
                }
            }
            for at in s.by_site.get(&site).cloned().unwrap_or_default() {
                let store = s.g.stores[at].clone();
                sum = sum.add(&s.count(&store, Some(site))?);
            }
            Ok(sum.checked()?)
        })
    }

    /// What an entry adds to the totals of what it is stored in.
    pub(crate) fn entry(&mut self, deep: Deep, store: &Store, list: bool) -> Bound {
        let value = self.deep(deep, store.value);
        match (deep, store.name) {
            (Deep::Elements, None) => plus(value, Ok(Poly::number(1.0))),
            (Deep::Elements | Deep::Members, Some(_)) if !list => {
                plus(value, Ok(Poly::number(1.0)))
            }
            (Deep::Elements, Some(_)) => plus(value, Ok(Poly::number(1.0))),
            (Deep::Units, Some(name)) => plus(value, self.conv(name)),
            _ => value,
        }
    }

    /// A total of a value with all that is in it.
    pub(crate) fn deep(&mut self, deep: Deep, node: NodeId) -> Bound {
        if let Some(found) = self.spread(Of::Deep(deep), node) {
            return found;
        }
        let kind = self.g.nodes[node as usize].kind.clone();
        match (deep, kind) {
            (_, Kind::New(site)) => self.site_deep(deep, site),
            (_, Kind::Path(place)) => self.of_place(Of::Deep(deep), place),
            (Deep::Units, Kind::Date) => Ok(Poly::number(32.0)),
            (Deep::Objects | Deep::Texts, Kind::Date) => Ok(Poly::number(1.0)),
            (Deep::Units, _) => self.units(node),
            (Deep::Texts, Kind::Literal(..) | Kind::Units(_) | Kind::Text(_)) => {
                Ok(Poly::number(1.0))
            }
            (Deep::Texts, Kind::Add(..)) => Ok(self.texts(node)),
            (Deep::Digits, Kind::Number(_) | Kind::Num(_) | Kind::Add(..)) => {
                Ok(Poly::number(SCALAR))
            }
            _ => Ok(Poly::zero()),
        }
    }

    pub(crate) fn site_deep(&mut self, deep: Deep, site: SiteId) -> Bound {
        let asked = Asked::Site(Of::Deep(deep), site);
        if self.active.contains_key(&asked) {
            return Err("a value that may hold itself");
        }
        self.ask(asked, |s| {
            let found = s.g.sites[site as usize].clone();
            let mut sum = Ok(match deep {
                Deep::Objects => Poly::number(1.0),
                _ => Poly::zero(),
            });
            let (mut each, extra) = (Ok(Poly::zero()), s.sum(&found.len)?);
            if deep
                == if found.list {
                    Deep::Elements
                } else {
                    Deep::Members
                }
            {
                sum = plus(sum, Ok(extra.clone()));
            }
            for node in &found.elems {
                each = most(each, s.deep(deep, *node));
            }
            if deep == Deep::Units && !found.units.is_empty() {
                sum = plus(sum, s.sum(&found.units));
            } else if !found.elems.is_empty() {
                sum = plus(sum, Ok(extra.times(&each?)?));
            }
            let mut names: Vec<&Vec<u8>> = found.fields.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            if found.list {
                for (_, node) in &found.fields {
                    sum = plus(sum, s.deep(deep, *node));
                }
            } else {
                for name in names {
                    let own = match deep {
                        Deep::Members => 1.0,
                        Deep::Units => f64::from(crate::build::units(name)),
                        _ => 0.0,
                    };
                    let mut value = Ok(Poly::zero());
                    for (_, node) in found.fields.iter().filter(|(known, _)| known == name) {
                        value = most(value, s.deep(deep, *node));
                    }
                    sum = plus(sum, plus(value, Ok(Poly::number(own))));
                }
            }
            for (from, other) in &found.spreads {
                sum = plus(sum, s.deep(deep, *from));
                match deep {
                    Deep::Elements if *other => sum = plus(sum, s.len(*from)),
                    // Texts spread to their units, lists to members named by indices.
                    Deep::Members if !found.list => {
                        sum = plus(sum, plus(s.len(*from), s.units(*from)));
                    }
                    Deep::Units if !found.list => {
                        let names = plus(s.len(*from), s.units(*from))?;
                        sum = plus(sum, Ok(names.scale(8.0)));
                    }
                    Deep::Texts if !found.list => sum = plus(sum, s.units(*from)),
                    _ => {}
                }
            }
            for at in s.by_site.get(&site).cloned().unwrap_or_default() {
                let store = s.g.stores[at].clone();
                let times = s.count(&store, Some(site))?;
                let entry = s.entry(deep, &store, found.list)?;
                sum = plus(sum, Ok(times.times(&entry)?));
            }
            sum
        })
    }
}
