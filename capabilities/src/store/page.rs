//! Pages of keys: checked arguments of `list`.

use super::memory::MAX_KEY_BYTES;
use crate::error::CapabilityError;
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// Most keys or rows of a page.
pub const MAX_PAGE: usize = 1_000;

/// Default number of keys or rows of a page.
const DEFAULT_PAGE: usize = 100;

/// A page of keys for [`super::Store::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Prefix of the keys, in WTF-8 like all text.
    pub prefix: Text,
    /// Cursor: the last key of the previous page.
    pub after: Option<Text>,
    /// Most keys, from 1 to [`MAX_PAGE`].
    pub limit: usize,
}

impl Page {
    /// Reads a program's arguments; `undefined` and `null` stand for all keys, the first page,
    /// and 100 keys.
    ///
    /// # Errors
    /// A prefix or cursor that is no text or too long for a key, or a limit that is no number
    /// from 1 on. Larger limits are clamped to [`MAX_PAGE`].
    pub fn of(prefix: Value, cursor: Value, limit: &Value) -> Result<Page, CapabilityError> {
        Ok(Page {
            prefix: text(prefix, "prefix")?.unwrap_or_default(),
            after: text(cursor, "cursor")?,
            limit: page_limit(limit)?,
        })
    }

    /// True if a key is on this page or a later one.
    #[must_use]
    pub fn admits(&self, key: &[u8]) -> bool {
        let after = self.after.as_ref();
        key.starts_with(self.prefix.as_bytes()) && after.is_none_or(|after| key > after.as_bytes())
    }

    /// Exclusive end of the key range: the least text above all keys with the prefix, if any.
    #[must_use]
    pub fn end(&self) -> Option<Vec<u8>> {
        let mut end = self.prefix.as_bytes().to_vec();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return Some(end);
            }
        }
        None
    }

    /// The answer from the first admitted keys in order, up to one more than the limit: that
    /// one shows that a next page exists, and its cursor is added.
    #[must_use]
    pub fn answer(&self, mut keys: Vec<Text>) -> Value {
        let more = keys.len() > self.limit;
        keys.truncate(self.limit);
        let cursor = keys.last().filter(|_| more).cloned();
        let mut answer = Map::new();
        let keys = keys.into_iter().map(Value::String).collect();
        answer.insert("keys", Value::Array(keys));
        if let Some(cursor) = cursor {
            answer.insert("cursor", Value::String(cursor));
        }
        Value::Object(answer)
    }
}

fn text(value: Value, what: &str) -> Result<Option<Text>, CapabilityError> {
    match value {
        Value::Undefined | Value::Null => Ok(None),
        Value::String(text) if text.len_bytes() <= MAX_KEY_BYTES => Ok(Some(text)),
        Value::String(_) => Err(CapabilityError::new(format!(
            "The {what} is too long: the limit is {MAX_KEY_BYTES} bytes."
        ))),
        _ => Err(CapabilityError::new(format!("The {what} must be a text."))),
    }
}

/// Reads the limit of a page.
pub(super) fn page_limit(limit: &Value) -> Result<usize, CapabilityError> {
    match limit {
        Value::Undefined | Value::Null => Ok(DEFAULT_PAGE),
        Value::Number(n) if *n >= 1.0 => Ok(n.min(MAX_PAGE as f64) as usize),
        _ => Err(CapabilityError::new(
            "The limit must be a number from 1 on.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(prefix: &str, cursor: Value, limit: f64) -> Result<Page, CapabilityError> {
        Page::of(prefix.into(), cursor, &Value::Number(limit))
    }

    #[test]
    fn pages_say_what_follows() {
        let first = page("a/", Value::Undefined, 2.0).unwrap();
        assert!(first.admits(b"a/") && first.admits(b"a/1") && !first.admits(b"a0"));
        assert_eq!(first.end().unwrap(), b"a0");
        let answer = first.answer(vec!["a/1".into(), "a/2".into(), "a/3".into()]);
        assert_eq!(
            answer.to_json_string(),
            r#"{"keys":["a/1","a/2"],"cursor":"a/2"}"#
        );
        let cursor = answer.get("cursor").cloned().unwrap();
        let next = page("a/", cursor, 2.0).unwrap();
        assert!(!next.admits(b"a/2") && next.admits(b"a/20"));
        assert_eq!(
            next.answer(vec!["a/3".into()]).to_json_string(),
            r#"{"keys":["a/3"]}"#
        );
    }

    #[test]
    fn every_prefix_ends() {
        assert_eq!(page("", Value::Null, 1.0).unwrap().end(), None);
        let high = Text::from_wtf8(vec![b'a', 0xf4, 0x8f, 0xbf, 0xbf]);
        let page = Page::of(Value::String(high), Value::Null, &Value::Null).unwrap();
        let end = page.end().unwrap();
        assert!(end.as_slice() > page.prefix.as_bytes() && !page.admits(&end));
        assert_eq!(page.limit, 100);
    }

    #[test]
    fn what_no_page_is_is_refused() {
        for limit in [0.0, -1.0, f64::NAN] {
            assert!(page("", Value::Null, limit).is_err(), "{limit}");
        }
        assert_eq!(page("", Value::Null, 1e9).unwrap().limit, MAX_PAGE);
        assert!(page("", Value::Number(1.0), 1.0).is_err());
        assert!(page(&"x".repeat(MAX_KEY_BYTES + 1), Value::Null, 1.0).is_err());
    }
}
