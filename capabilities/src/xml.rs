//! XML parsing, provided by the host.

use crate::error::{CapabilityError, Reply, ready};
use crate::script::Table;
use a99_core::value::Value;

/// Parses XML. An implementation reads no document type, resolves no external entity, and
/// bounds depth and expansion (security N12).
pub trait Xml: Send + Sync {
    /// Calls `parse(text)`; the shape of the reply is the host's choice.
    fn parse(&self, text: Value) -> Reply<'_>;
}

/// Answers from a table of documents; others are refused.
#[derive(Debug, Default)]
pub struct ScriptedXml(Table);

impl ScriptedXml {
    /// An empty table.
    #[must_use]
    pub fn new() -> ScriptedXml {
        ScriptedXml::default()
    }

    /// Answers this document with this value.
    #[must_use]
    pub fn on(mut self, document: &str, reply: impl Into<Value>) -> ScriptedXml {
        self.0.on(document.into(), Ok(reply.into()));
        self
    }

    /// Fails for this document with this text.
    #[must_use]
    pub fn fails(mut self, document: &str, message: &str) -> ScriptedXml {
        self.0
            .on(document.into(), Err(CapabilityError::new(message)));
        self
    }
}

impl Xml for ScriptedXml {
    fn parse(&self, text: Value) -> Reply<'_> {
        ready(
            self.0
                .answer(vec![text], "The XML document is not in the script"),
        )
    }
}

/// Conformance suite of [`Xml`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Xml;
    use crate::error::{SuiteResult, ensure, expect, refused};
    use a99_core::value::Value;

    /// `good` is a well-formed document.
    pub async fn conformance(xml: &dyn Xml, good: &str) -> SuiteResult {
        let first = expect(
            xml.parse(good.into()).await,
            "a well-formed document parses",
        )?;
        let second = expect(xml.parse(good.into()).await, "a document parses twice")?;
        ensure(first == second, "the same document gives the same value")?;
        let bomb = "<!DOCTYPE a [<!ENTITY b \"x\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
        for bad in [
            Value::Undefined,
            Value::Number(1.0),
            "<a>".into(),
            bomb.into(),
        ] {
            refused(
                xml.parse(bad).await,
                "malformed documents and entities are refused",
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
    fn scripted_xml_conforms() {
        let xml = ScriptedXml::new()
            .on("<a/>", "a")
            .fails("<b", "unclosed tag b");
        block_on(suite::conformance(&xml, "<a/>")).unwrap();
        assert_eq!(
            block_on(xml.parse("<b".into())).unwrap_err().message,
            "unclosed tag b"
        );
    }
}
