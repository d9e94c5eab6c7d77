//! Classifies nodes before they are spelled.

use crate::spell::Speller;
use a99_core::builtins::{Global, global};
use a99_core::json::{Kind, NodeId};

impl Speller<'_> {
    /// True if a node is a builtin function, or a function of a namespace.
    pub(crate) fn is_function(&self, node: NodeId) -> bool {
        let object = self.doc.get(node, "object");
        let name = self.str(object.unwrap_or(node), "name");
        let name = name.and_then(|name| str::from_utf8(name).ok());
        let is_node = matches!(self.str(node, "$expr"), Some(b"ident" | b"member"));
        let known = name.and_then(global);
        is_node && !matches!(known, None | Some(Global::Constant(_)))
    }

    /// True if a node makes a map: `new Map(...)` in a source.
    pub(crate) fn is_map(&self, node: NodeId) -> bool {
        let is_made = self.str(node, "method") == Some(b"toMap");
        self.is_script() && is_made && self.is_of(node, b"Array")
    }

    /// True if a call of a method is `Date.parse`, which makes a date in a source.
    pub(crate) fn is_date(&self, node: NodeId) -> bool {
        let is_parse = self.str(node, "method") == Some(b"parse");
        self.is_script() && is_parse && self.is_of(node, b"Date")
    }

    /// True for a call of `Object.assign` whose first argument may have an alias: the builtin
    /// copies it, JavaScript would change it.
    pub(crate) fn copies_first(&self, node: NodeId) -> bool {
        let doc = self.doc;
        let first = doc
            .get(node, "arguments")
            .and_then(|list| doc.elements(list).next());
        let is_new = |first: NodeId| match self.str(first, "$expr") {
            Some(b"object") => true,
            Some(b"methodCall") => self.is_of(first, b"Object"),
            Some(_) => false,
            None => doc.kind(first) == Kind::Object,
        };
        let is_assign = self.str(node, "method") == Some(b"assign") && self.is_of(node, b"Object");
        self.is_script() && is_assign && first.is_some_and(|first| !is_new(first))
    }
}
