//! What nodes may be: kinds, and the lists and objects that are made or come from outside.

use crate::formula::may_write;
use crate::graph::{Key, Kind, NodeId, SiteId, Why};
use crate::solve::{Kinds, Solver, TOO_LARGE_PROGRAM, is_length};
use std::collections::BTreeSet;

impl Solver<'_, '_> {
    /// Computes what each node may be, until nothing changes.
    pub(crate) fn find_kinds(&mut self) -> Result<(), Why> {
        let mut rounds = 0;
        loop {
            rounds += 1;
            if rounds > 200 {
                return Err("the values of the program are too entangled");
            }
            self.index_stores();
            let mut changed = false;
            for node in 0..self.g.nodes.len() as NodeId {
                let mut new = self.kinds[node as usize].clone();
                self.kinds_of(node, &mut new);
                if !may_write(new.places.len() + new.text_if.len() + new.sites.len()) {
                    return Err(TOO_LARGE_PROGRAM);
                }
                if new != self.kinds[node as usize] {
                    self.kinds[node as usize] = new;
                    changed = true;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    pub(crate) fn index_stores(&mut self) {
        self.by_site.clear();
        self.changed.clear();
        for (at, store) in self.g.stores.iter().enumerate() {
            let kinds = &self.kinds[store.target as usize];
            for site in &kinds.sites {
                self.by_site.entry(*site).or_default().push(at);
            }
            if !kinds.places.is_empty() {
                self.changed.push(at);
            }
        }
    }

    pub(crate) fn kinds_of(&mut self, node: NodeId, out: &mut Kinds) {
        let kind = self.g.nodes[node as usize].kind.clone();
        let all = |s: &Self, out: &mut Kinds, nodes: &[NodeId]| {
            nodes.iter().for_each(|n| out.join(&s.kinds[*n as usize]));
        };
        match kind {
            Kind::Number(_) | Kind::Scalar | Kind::Num(_) | Kind::Less(..) | Kind::Builtin(_) => {
                out.scalar = true
            }
            Kind::Undefined => (out.scalar, out.undefined) = (true, true),
            Kind::Unbound => (out.scalar, out.unbound) = (true, true),
            Kind::Literal(..) | Kind::Units(_) | Kind::Text(_) => out.text = true,
            Kind::Date => out.date = true,
            Kind::Path(place) => {
                out.places.insert(place);
                out.undefined = true;
            }
            Kind::Phi(entry, back) => {
                all(self, out, &entry);
                all(self, out, &back);
            }
            Kind::Or(first, second, defined) => {
                let mut kinds = self.kinds[first as usize].clone();
                if kinds.unbound || (defined && kinds.undefined) {
                    all(self, out, &[second]);
                }
                kinds.unbound = false;
                out.join(&kinds);
            }
            Kind::PathOr(root, found, old) => {
                let kinds = &self.kinds[root as usize];
                let keeps = kinds.unbound || kinds.undefined;
                all(self, out, &[found]);
                if keeps {
                    all(self, out, &[old]);
                }
            }
            Kind::Add(a, b) => {
                out.scalar = true;
                for node in [a, b] {
                    let kinds = &self.kinds[node as usize];
                    out.text |= kinds.text || kinds.date || !kinds.sites.is_empty();
                    out.text_if
                        .extend(kinds.text_if.iter().chain(&kinds.places));
                    out.opaque = out.opaque.or(kinds.opaque);
                }
            }
            Kind::Load(of, key) => self.kinds_of_load(of, &key, out),
            Kind::New(site) => {
                out.sites.insert(site);
            }
            Kind::Opaque(why) => out.opaque = Some(why),
        }
    }

    /// The sites whose members a value has: its own, and those that were spread into them.
    pub(crate) fn sites_of(&self, node: NodeId) -> (BTreeSet<SiteId>, Kinds) {
        let mut kinds = self.kinds[node as usize].clone();
        let mut todo: Vec<SiteId> = kinds.sites.iter().copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(site) = todo.pop() {
            if !seen.insert(site) {
                continue;
            }
            for (from, _) in &self.g.sites[site as usize].spreads {
                let inner = self.kinds[*from as usize].clone();
                todo.extend(&inner.sites);
                kinds.join(&inner);
            }
        }
        (seen, kinds)
    }

    pub(crate) fn kinds_of_load(&mut self, of: NodeId, key: &Key, out: &mut Kinds) {
        let (sites, kinds) = self.sites_of(of);
        out.undefined = true;
        out.scalar = true;
        out.opaque = out.opaque.or(kinds.opaque);
        if !is_length(key) {
            out.text |= kinds.text || kinds.date;
            out.text_if.extend(&kinds.text_if);
        }
        for place in &kinds.places {
            let member = self.g.member(*place, key);
            out.places.insert(member);
        }
        let mut stored = Vec::new();
        if !kinds.places.is_empty() {
            stored.clone_from(&self.changed);
        }
        for site in &sites {
            if is_length(key) && self.g.sites[*site as usize].list {
                continue;
            }
            stored.extend(self.by_site.get(site).into_iter().flatten());
            for node in self.held(*site, key) {
                out.join(&self.kinds[node as usize]);
            }
        }
        for at in stored {
            out.join(&self.kinds[self.g.stores[at].value as usize]);
        }
    }

    /// The nodes that a member of a site is made of, without spreads and later changes.
    pub(crate) fn held(&self, site: SiteId, key: &Key) -> Vec<NodeId> {
        let found = &self.g.sites[site as usize];
        let mut nodes: Vec<NodeId> = found.elems.clone();
        let named = |name: &[u8]| match key {
            Key::Name(wanted) => found.list || wanted == name,
            Key::Any => true,
        };
        nodes.extend(
            found
                .fields
                .iter()
                .filter(|(name, _)| named(name))
                .map(|(_, node)| *node),
        );
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
