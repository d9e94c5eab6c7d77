//! HTTP requests, made by the host.

use crate::error::{CapabilityError, Reply, ready};
use crate::script::Table;
use a99_core::value::Value;

/// Fetches a URL. The host decides which are allowed; there is no ambient network (security
/// N01).
pub trait Fetch: Send + Sync {
    /// Calls `fetch(url, options)` (language section 2.6). `options` is an object with those of
    /// `method`, `headers`, `body` and `responseType` that the program gave. The reply is the
    /// program's value; D56 defines it for each status.
    fn fetch(&self, url: Value, options: Value) -> Reply<'_>;

    /// True if programs may have another service fetch this URL, such as an image for a model's
    /// service. That service resolves the name itself, so that only the URL's text can be
    /// checked. The default is false.
    fn allows(&self, url: &str) -> bool {
        let _ = url;
        false
    }
}

/// Answers from a table of URLs; other URLs are refused.
#[derive(Debug, Default)]
pub struct ScriptedFetch(Table);

impl ScriptedFetch {
    /// An empty table.
    #[must_use]
    pub fn new() -> ScriptedFetch {
        ScriptedFetch::default()
    }

    /// Answers `url` with this value, every time.
    #[must_use]
    pub fn on(mut self, url: &str, reply: impl Into<Value>) -> ScriptedFetch {
        self.0.on(url.into(), Ok(reply.into()));
        self
    }

    /// Fails for `url` with this text, every time.
    #[must_use]
    pub fn fails(mut self, url: &str, message: &str) -> ScriptedFetch {
        self.0.on(url.into(), Err(CapabilityError::new(message)));
        self
    }

    /// The calls so far, each `[url, options]`.
    #[must_use]
    pub fn calls(&self) -> Vec<Vec<Value>> {
        self.0.calls.list()
    }
}

impl Fetch for ScriptedFetch {
    fn fetch(&self, url: Value, options: Value) -> Reply<'_> {
        ready(self.0.answer(
            vec![url, options],
            "Fetch refused: the URL is not in the script",
        ))
    }

    fn allows(&self, url: &str) -> bool {
        self.0.has(&url.into())
    }
}

/// Conformance suite of [`Fetch`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Fetch;
    use crate::error::{SuiteResult, expect, refused};
    use a99_core::value::{Map, Value};

    /// `known` is a URL with a response.
    pub async fn conformance(fetch: &dyn Fetch, known: &str) -> SuiteResult {
        let options = || Value::Object(Map::new());
        expect(
            fetch.fetch(known.into(), options()).await,
            "a known URL answers",
        )?;
        expect(
            fetch.fetch(known.into(), options()).await,
            "a known URL answers twice",
        )?;
        for bad in [
            Value::Undefined,
            Value::Number(1.0),
            "".into(),
            "file:///etc/hosts".into(),
        ] {
            refused(
                fetch.fetch(bad, options()).await,
                "what is not an http URL is refused",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn scripted_fetch_conforms() {
        let fetch = ScriptedFetch::new()
            .on("https://a.test", "ok")
            .fails("https://b.test", "down");
        block_on(suite::conformance(&fetch, "https://a.test")).unwrap();
        let error = block_on(fetch.fetch("https://b.test".into(), Value::Undefined)).unwrap_err();
        assert_eq!(error.message, "down");
        assert_eq!(fetch.calls().len(), 7);
    }
}
