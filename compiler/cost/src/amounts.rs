//! Conversions, copies and sums of sizes.

use crate::builtins::SCALAR;
use crate::formula::{Factor, Measure, Poly};
use crate::graph::{Deep, Key, Kind, NodeId, SiteId, What};
use crate::solve::{Bound, Of, Solver, plus};
use a99_core::costs::{CROSSING_ELEMENT, CROSSING_MEMBER, CROSSING_VALUE, ELEMENT, UNIT};

impl Solver<'_, '_> {
    /// Units of a value as text.
    pub(crate) fn conv(&mut self, node: NodeId) -> Bound {
        let kinds = self.kinds[node as usize].clone();
        let mut sum = self.units(node)?;
        match self.g.nodes[node as usize].kind {
            Kind::Number(n) => return Ok(Poly::number(number_units(n))),
            Kind::Undefined | Kind::Unbound => return Ok(Poly::number(9.0)),
            Kind::Literal(..) | Kind::Units(_) | Kind::Text(_) => return Ok(sum),
            Kind::Builtin(_) => return Ok(Poly::number(64.0)),
            _ => {}
        }
        if kinds.scalar || kinds.date {
            sum = sum.add(&Poly::number(SCALAR));
        }
        for place in kinds.places {
            sum = sum.add(&self.size(Measure::Digits, place)?);
            sum = sum.add(&self.size(Measure::Inner, place)?);
            sum = sum.add(&self.of_place(Of::Deep(Deep::Elements), place)?);
            sum = sum.add(&self.of_place(Of::Deep(Deep::Objects), place)?.scale(SCALAR));
        }
        for site in kinds.sites {
            for (deep, times) in [
                (Deep::Units, 1.0),
                (Deep::Digits, 1.0),
                (Deep::Elements, 1.0),
                (Deep::Objects, SCALAR),
            ] {
                if self.g.sites[site as usize].list {
                    sum = sum.add(&self.site_deep(deep, site)?.scale(times));
                }
            }
            sum = sum.add(&Poly::number(SCALAR));
        }
        Ok(sum.checked()?)
    }

    /// The price of a conversion to text, without the text.
    pub(crate) fn text_price(&mut self, node: NodeId) -> Bound {
        let kinds = self.kinds[node as usize].clone();
        let mut sum = Poly::zero();
        let is_list = |s: &Self, site: &SiteId| s.g.sites[*site as usize].list;
        let lists: Vec<SiteId> = kinds
            .sites
            .iter()
            .copied()
            .filter(|site| is_list(self, site))
            .collect();
        let each = [
            (Deep::Elements, 8.0 * ELEMENT as f64),
            (Deep::Digits, 3.0 * UNIT as f64),
            (Deep::Units, UNIT as f64),
            (Deep::Objects, 3.0 * SCALAR * UNIT as f64),
        ];
        for (deep, price) in each {
            for place in &kinds.places {
                // A scalar or text is written where it is used.
                let total = match deep {
                    Deep::Digits => self
                        .of_place(Of::Deep(Deep::Elements), *place)?
                        .scale(SCALAR),
                    Deep::Units => self.size(Measure::Inner, *place)?,
                    _ => self.of_place(Of::Deep(deep), *place)?,
                };
                sum = sum.add(&total.scale(price));
            }
            for site in &lists {
                sum = sum.add(&self.site_deep(deep, *site)?.scale(price));
            }
        }
        // Separators.
        for site in &lists {
            sum = sum.add(&self.site_deep(Deep::Elements, *site)?.scale(UNIT as f64));
        }
        for place in &kinds.places {
            sum = sum.add(
                &self
                    .of_place(Of::Deep(Deep::Elements), *place)?
                    .scale(UNIT as f64),
            );
        }
        Ok(sum.checked()?)
    }

    /// The price of a conversion to a number.
    pub(crate) fn number_price(&mut self, node: NodeId) -> Bound {
        let kinds = self.kinds[node as usize].clone();
        let mut sum = self.units(node)?.scale(2.0 * UNIT as f64);
        let lists = kinds
            .sites
            .iter()
            .any(|site| self.g.sites[*site as usize].list);
        if lists || !kinds.places.is_empty() {
            // Only lists are written as texts first.
            sum = sum.add(&self.text_price(node)?.scale(3.0));
        }
        Ok(sum.checked()?)
    }

    pub(crate) fn crossing(&mut self, node: NodeId) -> Bound {
        let parts = [
            (Deep::Texts, CROSSING_VALUE),
            (Deep::Objects, CROSSING_VALUE),
            (Deep::Units, UNIT),
            (Deep::Elements, CROSSING_ELEMENT),
            (Deep::Members, CROSSING_MEMBER),
        ];
        let spec = parts.map(|(deep, price)| (price as f64, What::Deep(deep, node)));
        self.sum(&spec)
    }

    /// The price of writing JSON.
    pub(crate) fn json(&mut self, node: NodeId) -> Bound {
        let (unit, element) = (UNIT as f64, ELEMENT as f64);
        let parts = [
            (Deep::Units, 6.0 * unit),
            (Deep::Digits, 3.0 * unit),
            (Deep::Texts, 2.0 * unit),
            (
                Deep::Objects,
                2.0 * element + 2.0 * unit + 3.0 * SCALAR * unit,
            ),
            (Deep::Elements, 2.0 * element + 5.0 * unit),
            (Deep::Members, 16.0 * element + 8.0 * unit),
        ];
        let spec = parts.map(|(deep, price)| (price, What::Deep(deep, node)));
        self.sum(&spec)
    }

    pub(crate) fn sum(&mut self, spec: &[(f64, What)]) -> Bound {
        let mut sum = Ok(Poly::zero());
        for (times, what) in spec {
            if *times != 0.0 {
                sum = plus(sum, self.what(what).map(|poly| poly.scale(*times)));
            }
        }
        sum
    }

    pub(crate) fn what(&mut self, what: &What) -> Bound {
        match what {
            What::One => Ok(Poly::number(1.0)),
            What::Units(node) => self.units(*node),
            What::Len(node) => self.len(*node),
            What::Conv(node) => self.conv(*node),
            What::Deep(deep, node) => self.deep(*deep, *node),
            What::High(node) => self.high(*node),
            What::SortSteps(node) => {
                let len = self.len(*node)?;
                if let Some(n) = len.as_number() {
                    return Ok(Poly::number(n * n.max(1.0).log2().ceil()));
                }
                self.logs.push(len.clone());
                Ok(len.times(&Poly::of(Factor::Log(self.logs.len() as u32 - 1)))?)
            }
            What::ToNumber(node) => self.number_price(*node),
            What::ToText(node) => self.text_price(*node),
            What::Added(node) => {
                let Kind::Add(a, b) = self.g.nodes[*node as usize].kind else {
                    return Ok(Poly::zero());
                };
                let text = self.units(*node)?.scale(UNIT as f64);
                plus(Ok(text), plus(self.text_price(a), self.text_price(b)))
            }
            What::Crossing(node) => self.crossing(*node),
            What::Json(node) => self.json(*node),
            What::LengthOf(node) => {
                // Of an object that is no list.
                let (sites, kinds) = self.sites_of(*node);
                if kinds.places.is_empty() && sites.iter().all(|s| self.g.sites[*s as usize].list) {
                    return Ok(Poly::zero());
                }
                self.loaded(Of::High, *node, &Key::Name(b"length".to_vec()))
            }
            What::Times(a, b) => Ok(self.what(a)?.times(&self.what(b)?)?),
            What::Call(_) => Ok(Poly::zero()),
            What::Fails(why) => Err(why),
        }
    }
}

/// Units of a number as text.
fn number_units(n: f64) -> f64 {
    if n.fract() == 0.0 && n.abs() < 1e15 {
        return (n.abs().max(1.0).log10().floor() + 2.0).max(1.0);
    }
    SCALAR
}
