//! Chooses the block that declares a name: the innermost block that holds all mentions.

use super::Printer;
use a99_core::json::{Kind, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Returns the members of a form that hold steps and share the enclosing variables.
pub(crate) fn bodies(op: &str) -> &'static [&'static str] {
    match op {
        "seq" | "forEach" => &["steps"],
        "if" => &["then", "else"],
        "while" => &["body"],
        "try" => &["try", "catch"],
        _ => &[],
    }
}

impl<'d> Printer<'d> {
    /// Collects the first segment of every text in a node that may be a name.
    pub(crate) fn mentions(&self, node: NodeId) -> BTreeSet<&'d [u8]> {
        let doc = self.doc;
        let mut found = BTreeSet::new();
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            match doc.kind(node) {
                Kind::String(text) => {
                    let root = text.split(|byte| *byte == b'.').next();
                    found.extend(root);
                }
                Kind::Array => todo.extend(doc.elements(node)),
                Kind::Object => {
                    if self.op(node) == Some("varsLet") || doc.get(node, "keys").is_some() {
                        found.extend(doc.members(node).map(|(key, _)| key));
                        let keys = doc.get(node, "keys").into_iter();
                        found.extend(keys.flat_map(|keys| doc.members(keys)).map(|(key, _)| key));
                    }
                    if self.op(node) == Some("return") {
                        let schema = doc.get(node, "schema");
                        let names = schema.and_then(|schema| doc.get(schema, "properties"));
                        let names = names.into_iter().flat_map(|names| doc.members(names));
                        found.extend(names.map(|(name, _)| name));
                    }
                    let tag = self.str(node, "$expr");
                    let members = doc.members(node);
                    let members =
                        members.filter(|(key, value)| !is_no_name(tag, key, doc.kind(*value)));
                    todo.extend(members.map(|(_, value)| value));
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the names that a step itself binds in the enclosing scope.
    pub(crate) fn binds(&self, step: NodeId) -> Vec<&'d [u8]> {
        let doc = self.doc;
        let mut names: Vec<&[u8]> = Vec::new();
        match self.op(step) {
            Some("varSet" | "constSet") => names.extend(self.str(step, "key")),
            Some("varsLet") => {
                let keys = doc.members(step).map(|(key, _)| key);
                names
                    .extend(keys.filter(|key| !matches!(*key, b"op" | b"result" | b"resultConst")));
            }
            Some("varsImport") => {
                let keys = doc.get(step, "keys");
                let list = keys.into_iter().flat_map(|keys| doc.elements(keys));
                names.extend(list.filter_map(|key| doc.str(key)));
                let map = keys.into_iter().flat_map(|keys| doc.members(keys));
                names.extend(map.map(|(name, _)| name));
            }
            Some("try") => {
                let caught = self.caught(step).into_iter().flatten();
                names.extend(caught.filter(|name| self.escaping.contains(*name)));
            }
            _ => {}
        }
        names.extend(self.str(step, "result"));
        names
    }

    /// Returns the names that the `catch` of a step binds.
    pub(crate) fn caught(&self, step: NodeId) -> Option<[&'d [u8]; 2]> {
        self.doc.get(step, "catch")?;
        let name = self.str(step, "catchParam").unwrap_or(b"error");
        Some([name, b"errorOp"])
    }

    /// Records the names bound by a `catch` that code outside of such a `catch` reads.
    pub(super) fn note_escaping(&mut self) {
        let doc = self.doc;
        let nodes = (0..doc.ends().len() as u32).map(NodeId);
        let bound: BTreeSet<&[u8]> = nodes
            .clone()
            .filter(|node| self.op(*node) == Some("try"))
            .filter_map(|step| self.caught(step))
            .flatten()
            .collect();
        if bound.is_empty() {
            return;
        }
        for node in nodes {
            let around = doc.parent(node);
            let texts = match doc.kind(node) {
                Kind::String(text) if !around.is_some_and(|around| self.is_word(around, node)) => {
                    vec![text]
                }
                // The keys of a returned schema name variables.
                Kind::Object if self.is_returned(node) => {
                    doc.members(node).map(|(key, _)| key).collect()
                }
                _ => continue,
            };
            for text in texts {
                let root = text.split(|byte| *byte == b'.').next().unwrap_or_default();
                if bound.contains(root) && !self.is_caught(node, root) {
                    self.escaping.insert(root.to_vec());
                }
            }
        }
    }

    /// True if a text in this object can never be a name.
    fn is_word(&self, around: NodeId, text: NodeId) -> bool {
        let is_literal = self.str(around, "$expr") == Some(b"literal");
        is_literal || self.doc.get(around, "op") == Some(text)
    }

    /// True if an object is the `properties` of a returned schema.
    fn is_returned(&self, node: NodeId) -> bool {
        let schema = self.doc.parent(node);
        let schema = schema.filter(|schema| self.doc.get(*schema, "properties") == Some(node));
        let step = schema.and_then(|schema| self.doc.parent(schema));
        step.is_some_and(|step| self.op(step) == Some("return"))
    }

    /// True if a node is inside the `catch` that binds a name, or is the text that declares the
    /// name.
    fn is_caught(&self, node: NodeId, name: &[u8]) -> bool {
        let doc = self.doc;
        let mut inner = node;
        while let Some(around) = doc.parent(inner) {
            let binds = self.op(around) == Some("try")
                && self
                    .caught(around)
                    .is_some_and(|names| names.contains(&name));
            let is_within = doc.get(around, "catch") == Some(inner);
            let is_name = doc.get(around, "catchParam") == Some(inner);
            if binds && (is_within || is_name) {
                return true;
            }
            inner = around;
        }
        false
    }

    /// Collects all names that steps bind, including the steps of their bodies.
    pub(crate) fn all_bound(&self, steps: &[NodeId]) -> BTreeSet<&'d [u8]> {
        let mut names = BTreeSet::new();
        // A loop's own names belong to its turns.
        let own: Rc<Vec<&[u8]>> = Rc::default();
        let mut todo: Vec<_> = steps.iter().map(|step| (*step, Rc::clone(&own))).collect();
        while let Some((step, own)) = todo.pop() {
            let bound = self.binds(step).into_iter();
            names.extend(bound.filter(|name| !own.contains(name)));
            let op = self.op(step).unwrap_or_default();
            let mut inner = Rc::clone(&own);
            if op == "forEach" {
                let those = ["as", "index"].iter().filter_map(|key| self.str(step, key));
                Rc::make_mut(&mut inner).extend(those);
            }
            for key in bodies(op) {
                let body = self.doc.get(step, key).into_iter();
                let steps = body.flat_map(|body| self.doc.elements(body));
                todo.extend(steps.map(|step| (step, Rc::clone(&inner))));
            }
        }
        names
    }

    /// Returns, for each of these names that the steps bind, the inner list of steps that
    /// declares it. This list declares the names without an entry.
    pub(crate) fn inner(
        &self,
        steps: &[NodeId],
        names: &BTreeSet<&'d [u8]>,
    ) -> BTreeMap<NodeId, BTreeSet<&'d [u8]>> {
        let mut found: BTreeMap<NodeId, BTreeSet<&[u8]>> = BTreeMap::new();
        let mentions: Vec<_> = steps.iter().map(|step| self.mentions(*step)).collect();
        for name in names {
            let mut those = (0..steps.len()).filter(|at| mentions[*at].contains(name));
            let (Some(at), None) = (those.next(), those.next()) else {
                continue;
            };
            if let Some(body) = self.only_body(steps[at], name) {
                found.entry(body).or_default().insert(name);
            }
        }
        found
    }

    /// Returns the only body of a step that mentions a name if that body can declare it.
    fn only_body(&self, step: NodeId, name: &[u8]) -> Option<NodeId> {
        let doc = self.doc;
        let op = self.op(step)?;
        let mut only = None;
        for (key, value) in doc.members(step) {
            if !self.mentions(value).contains(name) {
                continue;
            }
            let is_body = bodies(op).iter().any(|body| body.as_bytes() == key);
            if !is_body || only.replace(value).is_some() {
                return None;
            }
        }
        let body = only?;
        // A name that the body reads first would keep its value from turn to turn in an enclosing
        // loop.
        let mut those = doc
            .elements(body)
            .filter(|step| self.mentions(*step).contains(name));
        let first = those.next()?;
        let is_within = || self.only_body(first, name).is_some();
        let is_new = self.sets_first(first, name) || those.next().is_none() && is_within();
        is_new.then_some(body)
    }

    /// True if a step assigns a name without reading it.
    fn sets_first(&self, step: NodeId, name: &[u8]) -> bool {
        let others = self
            .doc
            .members(step)
            .filter(|(key, _)| !matches!(*key, b"key" | b"result"));
        let mut others = others.map(|(_, value)| value);
        // Names that a `catch` binds are declared around its `try`.
        let is_own = self.op(step) != Some("try") || self.str(step, "result") == Some(name);
        is_own
            && self.binds(step).contains(&name)
            && !others.any(|value| self.mentions(value).contains(name))
    }

    /// Returns the names that a list declares at their first assignment; it declares the others
    /// at its beginning.
    pub(crate) fn declared_in_place(
        &self,
        steps: &[NodeId],
        names: &BTreeSet<&'d [u8]>,
    ) -> BTreeSet<&'d [u8]> {
        let mut in_place = BTreeSet::new();
        for name in names {
            let first = steps
                .iter()
                .find(|step| self.mentions(**step).contains(name));
            if first.is_some_and(|step| self.sets_first(*step, name)) {
                in_place.insert(*name);
            }
        }
        in_place
    }
}

/// True if a text under this key, in a node with this tag or elsewhere, cannot name a variable.
fn is_no_name(tag: Option<&[u8]>, key: &[u8], kind: Kind<'_>) -> bool {
    let is_text = matches!(kind, Kind::String(_));
    match (tag, key) {
        (Some(b"literal"), b"value") => true,
        (Some(b"ident"), b"name") => false,
        (Some(_), _) => is_text,
        (None, b"op" | b"$expr" | b"tmpl" | b"pattern") => true,
        _ => false,
    }
}
