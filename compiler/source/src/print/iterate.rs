//! Prints the iterables of loops. The step takes lists only, `for ... of` also texts and sets. If
//! the source does not show that a value is a list, the printer casts it or uses a callback.

use super::{Printed, Printer};
use a99_core::builtins::{Gives, function_gives, gives};
use a99_core::json::{Kind, NodeId};
use std::collections::BTreeSet;

/// Iterable of a `for ... of`.
pub(super) enum Over {
    /// An expression that `for ... of` iterates as it stands.
    Items(String),
    /// An expression that must be a list, which the source does not show.
    Lists(String),
}

impl Over {
    /// Returns the expression without a cast.
    pub(super) fn text(self) -> String {
        match self {
            Over::Items(text) | Over::Lists(text) => text,
        }
    }

    /// Returns the expression, cast to a list if the source does not show that it is one.
    pub(super) fn lists(self) -> String {
        match self {
            Over::Items(text) => text,
            Over::Lists(text) => {
                let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_$.".contains(&b);
                match text.bytes().all(is_plain) {
                    true => format!("{text} as any[]"),
                    false => format!("({text}) as any[]"),
                }
            }
        }
    }
}

impl<'d> Printer<'d> {
    /// Prints the iterable of a loop without a callback.
    pub(super) fn over(&mut self, step: NodeId) -> Printed<Over> {
        let node = self.doc.get(step, "items");
        let counts = self.str(step, "index").is_some();
        let any = node.and_then(|node| self.any_items(node));
        if let Some(any) = any.filter(|_| !counts) {
            return Ok(Over::Items(self.expression(any)?));
        }
        let text = self.items(step, false)?;
        Ok(match node.is_some_and(|node| self.is_list(node)) {
            true => Over::Items(text),
            false => Over::Lists(text),
        })
    }

    /// Returns the variable of items in the form that splits a text into characters and keeps
    /// other values.
    fn any_items(&self, node: NodeId) -> Option<NodeId> {
        let doc = self.doc;
        let field = |node: NodeId, key: &str| doc.get(node, key);
        let is = |node: NodeId, key: &str, text: &str| self.str(node, key) == Some(text.as_bytes());
        let test = field(node, "test").filter(|_| is(node, "$expr", "conditional"))?;
        let variable = field(node, "alternate")?;
        let name = self.str(variable, "name")?;
        let same =
            |node: NodeId| is(node, "$expr", "ident") && self.str(node, "name") == Some(name);
        let kind = field(test, "left").filter(|_| is(test, "op", "==="))?;
        let right = field(test, "right")?;
        let text = doc.str(right).or_else(|| self.str(right, "value"));
        let list = field(node, "consequent").filter(|list| is(*list, "method", "from"))?;
        let arguments = field(list, "arguments")?;
        let fits = text == Some(b"string")
            && is(kind, "op", "typeof")
            && field(kind, "argument").is_some_and(same)
            && same(variable)
            && field(list, "object").is_some_and(|object| is(object, "name", "Array"))
            && doc.len(arguments) == 1
            && doc.element(arguments, 0).is_some_and(same);
        fits.then_some(variable)
    }

    /// True if the source shows that a value is a list.
    pub(super) fn is_list(&self, node: NodeId) -> bool {
        let doc = self.doc;
        let text = match doc.kind(node) {
            Kind::Array => return true,
            Kind::String(text) => Some(text),
            _ => None,
        };
        match self.str(node, "$expr") {
            Some(b"array") => true,
            Some(b"literal") => doc
                .get(node, "value")
                .is_some_and(|value| doc.kind(value) == Kind::Array),
            Some(b"methodCall") => {
                let object = doc.get(node, "object");
                let object = object.and_then(|object| self.str(object, "name"));
                let method = self.str(node, "method").unwrap_or_default();
                let method = str::from_utf8(method).unwrap_or_default();
                let is_made =
                    object == Some(b"Array") && function_gives("Array", method) == Gives::List;
                doc.get(node, "optional").is_none()
                    && (is_made
                        || matches!(gives(method), Gives::List | Gives::Texts | Gives::Items))
            }
            Some(b"ident") => self
                .str(node, "name")
                .is_some_and(|name| self.is_kept(name)),
            Some(_) => false,
            None if self.str(node, "$kind") == Some(b"arg") => self
                .str(node, "path")
                .is_some_and(|key| self.is_list_argument(key)),
            None => text.is_some_and(|text| match text.strip_prefix(b"args.") {
                Some(key) => self.is_list_argument(key),
                None => self.is_kept(text),
            }),
        }
    }

    /// True if a name is a variable that only ever holds a list.
    fn is_kept(&self, name: &[u8]) -> bool {
        if self.lists.contains(name) {
            return self.scopes.is_declared(name);
        }
        let argument = self.arguments.iter().find(|(_, js)| js.as_bytes() == name);
        argument.is_some_and(|(key, _)| self.is_list_argument(key)) && !self.rebound.contains(name)
    }

    fn is_list_argument(&self, key: &[u8]) -> bool {
        let doc = self.doc;
        let Ok(key) = str::from_utf8(key) else {
            return false;
        };
        let schema = doc.get(doc.root(), "inputSchema");
        let property = schema.and_then(|schema| doc.get(doc.get(schema, "properties")?, key));
        property.and_then(|property| self.str(property, "type")) == Some(b"array")
    }

    /// Records the variables that a single step binds, to a list, and the variables that any step
    /// binds.
    pub(super) fn note_lists(&mut self) {
        let (mut bound, mut lists) = (BTreeSet::new(), BTreeSet::new());
        let mut again = BTreeSet::new();
        for node in (0..self.doc.ends().len() as u32).map(NodeId) {
            let params = self.doc.get(node, "paramNames").into_iter();
            let params = params.flat_map(|list| self.doc.elements(list));
            for name in params.filter_map(|param| self.doc.str(param)) {
                bound.insert(name.to_vec());
                again.insert(name.to_vec());
            }
            let Some(op) = self.op(node) else {
                continue;
            };
            let mut names = self.binds(node);
            names.extend(
                ["as", "index", "catchParam", "accumulator"]
                    .iter()
                    .filter_map(|key| self.str(node, key)),
            );
            let gives = match op {
                "varSet" | "constSet" => {
                    let value = self.doc.get(node, "value");
                    value.is_some_and(|value| self.doc.str(value).is_none() && self.is_list(value))
                }
                "map" | "filter" => true,
                _ => false,
            };
            for name in names {
                if !bound.insert(name.to_vec()) {
                    again.insert(name.to_vec());
                } else if gives {
                    lists.insert(name.to_vec());
                }
            }
        }
        lists.retain(|name| !again.contains(name));
        (self.lists, self.rebound) = (lists, bound);
    }
}
