//! Fragments of the text that a document was generated from.

use super::{Document, NodeId};

impl Document {
    /// The origin text of a node: a single line, short enough to quote in a message. `None` if the
    /// document was not generated.
    #[must_use]
    pub fn origin_text(&self, id: NodeId) -> Option<&str> {
        const MAX_BYTES: usize = 60;
        let text = self.origin_part(id)?.trim();
        let is_name = !text.is_empty() && text.len() <= MAX_BYTES && !text.contains('\n');
        is_name.then_some(text)
    }

    /// The origin text of a node, of any length.
    #[must_use]
    pub fn origin_part(&self, id: NodeId) -> Option<&str> {
        let origin = self.origin.as_deref()?;
        let &(start, end) = origin.places.get(id.0 as usize)?;
        str::from_utf8(origin.text.get(start as usize..end as usize)?).ok()
    }

    /// True if the origin text of a step is a call of this name, and not another form that compiles
    /// to one.
    #[must_use]
    pub fn is_call(&self, step: NodeId, name: &str) -> bool {
        let text = self.origin_part(step).unwrap_or_default().trim_start();
        let rest = text.strip_prefix(name).unwrap_or_default();
        rest.trim_start().starts_with('(')
    }

    /// True if a node's origin text calls the method of this name on the node's `object`.
    #[must_use]
    pub fn is_method_call(&self, node: NodeId, name: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let behind = || {
            let origin = self.origin.as_deref()?;
            let (_, end) = *origin.places.get(node.0 as usize)?;
            let object = self.get(node, "object")?;
            let (_, start) = *origin.places.get(object.0 as usize)?;
            let text = origin.text.get(start as usize..end as usize)?;
            let text = str::from_utf8(text).ok()?;
            let text = text.trim_start_matches(|c: char| c.is_whitespace() || ")!".contains(c));
            let text = text.strip_prefix('?').unwrap_or(text).strip_prefix('.')?;
            text.trim_start().strip_prefix(name)
        };
        behind().is_some_and(|rest| !rest.starts_with(is_part))
    }

    /// Error message for a step whose `items` are not an array. For generated programs it is
    /// JavaScript's message.
    #[must_use]
    pub fn not_items(&self, step: NodeId, form: &str) -> String {
        let items = self.get(step, "items");
        let Some(items) = items.and_then(|items| self.origin_text(items)) else {
            return match self.has_origin() {
                true => "the value is not iterable".to_owned(),
                false => format!("{form}: items is not an array"),
            };
        };
        let called = self.origin_part(step).and_then(|text| {
            let rest = text.trim().strip_prefix(items)?.trim_start();
            let rest = rest.strip_prefix('?').unwrap_or(rest).strip_prefix('.')?;
            let end = rest.find(|c: char| !c.is_alphanumeric())?;
            (end > 0).then(|| &rest[..end])
        });
        match called {
            Some(method) => format!("{items}.{method} is not a function"),
            None => format!("{items} is not iterable"),
        }
    }
}
