//! A document that a program may read and change.

use crate::error::{BoxFuture, CapabilityError, Reply, ready};
use crate::script::lock;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::HashMap;
use std::sync::Mutex;

/// A document (language section 2.8). A selector without a match is the error `DOM: Element not
/// found '<selector>'`.
pub trait Dom: Send + Sync {
    /// The text of an element.
    fn text(&self, selector: Value) -> Reply<'_>;
    /// The value of a form element.
    fn value(&self, selector: Value) -> Reply<'_>;
    /// Clicks an element.
    fn click(&self, selector: Value) -> BoxFuture<'_, Result<(), CapabilityError>>;
    /// Sets the value of a form element.
    fn input(&self, selector: Value, value: Value) -> BoxFuture<'_, Result<(), CapabilityError>>;
}

#[derive(Clone, Debug)]
struct Element {
    text: Text,
    value: Value,
    clicks: u32,
}

/// A flat document: elements by their exact selector.
#[derive(Debug, Default)]
pub struct MemoryDom(Mutex<HashMap<Text, Element>>);

impl MemoryDom {
    /// A document without elements.
    #[must_use]
    pub fn new() -> MemoryDom {
        MemoryDom::default()
    }

    /// Adds an element with this text and an empty value.
    #[must_use]
    pub fn with(self, selector: &str, text: &str) -> MemoryDom {
        let element = Element {
            text: text.into(),
            value: "".into(),
            clicks: 0,
        };
        lock(&self.0).insert(selector.into(), element);
        self
    }

    /// Number of clicks on an element.
    #[must_use]
    pub fn clicks(&self, selector: &str) -> u32 {
        lock(&self.0)
            .get(selector.as_bytes())
            .map_or(0, |e| e.clicks)
    }

    fn find<T>(
        &self,
        selector: &Value,
        f: impl FnOnce(&mut Element) -> T,
    ) -> Result<T, CapabilityError> {
        let mut elements = lock(&self.0);
        match selector
            .as_text()
            .and_then(|s| elements.get_mut(s.as_bytes()))
        {
            Some(element) => Ok(f(element)),
            None => {
                let shown = selector.as_text().map_or("".into(), Text::to_string_lossy);
                Err(CapabilityError::new(format!(
                    "DOM: Element not found '{shown}'"
                )))
            }
        }
    }
}

impl Dom for MemoryDom {
    fn text(&self, selector: Value) -> Reply<'_> {
        ready(self.find(&selector, |e| Value::String(e.text.clone())))
    }

    fn value(&self, selector: Value) -> Reply<'_> {
        ready(self.find(&selector, |e| e.value.clone()))
    }

    fn click(&self, selector: Value) -> BoxFuture<'_, Result<(), CapabilityError>> {
        ready(self.find(&selector, |e| e.clicks += 1))
    }

    fn input(&self, selector: Value, value: Value) -> BoxFuture<'_, Result<(), CapabilityError>> {
        ready(self.find(&selector, |e| e.value = value))
    }
}

/// Conformance suite of [`Dom`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Dom;
    use crate::error::{SuiteResult, ensure, expect, refused};
    use a99_core::value::Value;

    /// `field` selects a form element that may be changed.
    pub async fn conformance(dom: &dyn Dom, field: &str) -> SuiteResult {
        expect(dom.text(field.into()).await, "an element has text")?;
        expect(dom.click(field.into()).await, "an element can be clicked")?;
        expect(
            dom.input(field.into(), "typed".into()).await,
            "a field takes input",
        )?;
        let value = expect(dom.value(field.into()).await, "a field has a value")?;
        ensure(
            value == Value::from("typed"),
            "a field has the value that was put in",
        )?;
        for bad in [Value::Undefined, "#no-such-element".into()] {
            refused(dom.text(bad.clone()).await, "a missing element is refused")?;
            refused(dom.click(bad).await, "a missing element cannot be clicked")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn memory_dom_conforms() {
        let dom = MemoryDom::new().with("#name", "Name");
        block_on(suite::conformance(&dom, "#name")).unwrap();
        assert_eq!(dom.clicks("#name"), 1);
        let error = block_on(dom.text("#x".into())).unwrap_err();
        assert_eq!(error.message, "DOM: Element not found '#x'");
    }
}
