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
