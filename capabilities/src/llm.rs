//! Text from a language model.

use crate::error::{CapabilityError, Reply, ready};
use crate::script::Queue;
use a99_core::value::Value;

/// Completes a prompt.
pub trait Llm: Send + Sync {
    /// Calls `predict(prompt, options)`; absent `options` are `undefined` (language section
    /// 2.6).
    fn predict(&self, prompt: Value, options: Value) -> Reply<'_>;
}

/// Gives fixed replies in order, then fails.
#[derive(Debug, Default)]
pub struct ScriptedLlm(Queue);

impl ScriptedLlm {
    /// Gives these replies in order.
    pub fn replies<T: Into<Value>>(replies: impl IntoIterator<Item = T>) -> ScriptedLlm {
        ScriptedLlm(Queue::new(
            replies.into_iter().map(|reply| Ok(reply.into())),
        ))
    }

    /// Fails with this text after the replies before it.
    #[must_use]
    pub fn then_fails(self, message: &str) -> ScriptedLlm {
        self.0.push(Err(CapabilityError::new(message)));
        self
    }

    /// The calls so far, each `[prompt, options]`.
    #[must_use]
    pub fn calls(&self) -> Vec<Vec<Value>> {
        self.0.calls.list()
    }
}

impl Llm for ScriptedLlm {
    fn predict(&self, prompt: Value, options: Value) -> Reply<'_> {
        ready(self.0.answer(
            vec![prompt, options],
            "The scripted model has no more replies",
        ))
    }
}

/// Conformance suite of [`Llm`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Llm;
    use crate::error::{SuiteResult, ensure, expect};
    use a99_core::value::Value;

    /// Makes one call.
    pub async fn conformance(llm: &dyn Llm) -> SuiteResult {
        let reply = expect(
            llm.predict("Say hi".into(), Value::Undefined).await,
            "a prompt answers",
        )?;
        ensure(reply.as_text().is_some(), "the reply is text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn scripted_llm_conforms() {
        let llm = ScriptedLlm::replies(["hi"]).then_fails("tired");
        block_on(suite::conformance(&llm)).unwrap();
        let fails = || {
            block_on(llm.predict("x".into(), Value::Undefined))
                .unwrap_err()
                .message
        };
        assert_eq!(fails(), "tired");
        assert_eq!(fails(), "The scripted model has no more replies");
        assert_eq!(llm.calls()[0][0], Value::from("Say hi"));
    }
}
