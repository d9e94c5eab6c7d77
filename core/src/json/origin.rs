//! The words of the text that a document was made of.

use super::{Document, NodeId};

impl Document {
    /// The text that a node stands for in what the document was made of, if that is no JSON:
    /// one line that is short enough to be named in a message.
    #[must_use]
    pub fn origin_text(&self, id: NodeId) -> Option<&str> {
        const MAX_BYTES: usize = 60;
        let text = self.origin_part(id)?.trim();
        let is_name = !text.is_empty() && text.len() <= MAX_BYTES && !text.contains('\n');
        is_name.then_some(text)
    }

    /// The same, however long it is.
    #[must_use]
    pub fn origin_part(&self, id: NodeId) -> Option<&str> {
        let origin = self.origin.as_deref()?;
        let &(start, end) = origin.places.get(id.0 as usize)?;
        str::from_utf8(origin.text.get(start as usize..end as usize)?).ok()
    }

    /// Whether a step is a call of this name in what the document was made of, and not a form
    /// that became one.
    #[must_use]
    pub fn is_call(&self, step: NodeId, name: &str) -> bool {
        let text = self.origin_part(step).unwrap_or_default().trim_start();
        let rest = text.strip_prefix(name).unwrap_or_default();
        rest.trim_start().starts_with('(')
    }

    /// Whether the method of this name is called where a node stands: behind its `object`.
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

    /// What a step says whose `items` are no array. Of a program that was made of a source
    /// it is what JavaScript says there.
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
