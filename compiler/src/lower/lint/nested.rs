//! Literals in literals: data below the outermost part, and nodes that nothing evaluates.

use super::{Finding, Lower};
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};
use smallvec::{SmallVec, smallvec};

/// Lists and objects within a literal that are looked at.
const MOST: usize = 256;

impl Lower<'_, '_> {
    /// A literal without nodes: it and the lists and objects in it.
    pub(in crate::lower) fn lint_data(&mut self, node: NodeId) {
        if !self.lints() {
            return;
        }
        let doc = self.s.doc;
        let mut work: SmallVec<[NodeId; 8]> = smallvec![node];
        let mut seen = 0;
        while let Some(node) = work.pop() {
            // What is made of a program in a program is told when that is compiled.
            if doc.get(node, "op").is_some() && doc.get(node, "steps").is_some() {
                if seen == 0 {
                    self.lint_literal(node);
                }
                seen += 1;
                continue;
            }
            self.lint_literal(node);
            seen += 1;
            if seen > MOST || !self.spend_on(node) {
                return;
            }
            let is_part = |n: &NodeId| matches!(doc.kind(*n), Kind::Array | Kind::Object);
            work.extend(doc.elements(node).filter(is_part));
            work.extend(doc.members(node).map(|(_, n)| n).filter(is_part));
        }
    }

    /// A list or object in an expression that is no node: nodes in it stay data.
    pub(super) fn lint_held_node(&mut self, node: NodeId) {
        let doc = self.s.doc;
        let help = match doc.kind(node) {
            Kind::Array => "write `{\"$expr\": \"array\", \"elements\": [...]}`",
            Kind::Object if !self.is_expr(node) && doc.get(node, "$kind").is_none() => {
                "write `{\"$expr\": \"object\", \"properties\": [{\"key\": \"name\", \"value\": ...}]}`"
            }
            _ => return,
        };
        if !self.s.facts.has_nested(node) {
            return;
        }
        let message = "in an expression a list or object is taken as written: the node in it stays \
                       data";
        let finding = Finding::new(codes::UNRESOLVED_NODE, node, message);
        self.found(finding.help(help));
    }
}
