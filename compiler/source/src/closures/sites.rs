//! Answers about the values that a node may hold.

use super::flow::{Flow, Made, Node, Site, What};
use hashbrown::HashSet;

impl Flow {
    /// Functions that a node may hold, in order.
    pub(crate) fn functions_in(&self, node: Node) -> Vec<usize> {
        let found = self.sets[node]
            .iter()
            .filter_map(|site| match self.values[*site] {
                What::Function(function) => Some(function),
                _ => None,
            });
        let mut found: Vec<usize> = found.collect();
        found.sort_unstable();
        found
    }

    /// Classes of the instances that a node may hold, in order.
    pub(crate) fn instances_in(&self, node: Node) -> Vec<usize> {
        let found = self.sets[node]
            .iter()
            .filter_map(|site| match &self.values[*site] {
                What::Object(object) => match object.made {
                    Made::Instance(class) => Some(class),
                    _ => None,
                },
                _ => None,
            });
        let mut found: Vec<usize> = found.collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn has(&self, node: Node, site: Site) -> bool {
        self.sets[node].contains(&site)
    }

    /// True if a node may hold an object other than an instance of a class.
    pub(crate) fn has_objects(&self, node: Node) -> bool {
        self.sets[node]
            .iter()
            .any(|site| match &self.values[*site] {
                What::Object(object) => !matches!(object.made, Made::Instance(_)),
                _ => false,
            })
    }

    /// The first function, or instance for which `is_hidden` holds, that is in a value of a node
    /// at any depth.
    pub(crate) fn reaches(&self, node: Node, is_hidden: &dyn Fn(usize) -> bool) -> Option<Site> {
        let mut seen: HashSet<Site> = HashSet::new();
        let mut todo: Vec<Site> = self.sets[node].iter().copied().collect();
        todo.sort_unstable();
        while let Some(site) = todo.pop() {
            if !seen.insert(site) {
                continue;
            }
            match &self.values[site] {
                What::Function(_) | What::Class(_) => return Some(site),
                What::Object(object) => {
                    if let Made::Instance(class) = object.made
                        && is_hidden(class)
                    {
                        return Some(site);
                    }
                    todo.extend(self.sets[object.all].iter().copied());
                }
                What::Data | What::Plain => {}
            }
        }
        None
    }
}
