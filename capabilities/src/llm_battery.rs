//! Chat with tools, structured output and images.

use crate::error::{CapabilityError, Reply, ready};
use crate::script::Queue;
use a99_core::value::Value;

/// A chat model (language section 2.8).
pub trait LlmBattery: Send + Sync {
    /// Calls `predict(system, user, tools, format)`. `user` is text, a list of messages, or
    /// `{text, images}`; absent `tools` and `format` are `undefined`. The reply is the
    /// assistant's message, an object.
    fn predict(&self, system: Value, user: Value, tools: Value, format: Value) -> Reply<'_>;
}

/// Gives fixed messages in order, then fails.
#[derive(Debug, Default)]
pub struct ScriptedLlmBattery(Queue);

impl ScriptedLlmBattery {
    /// Gives these messages in order.
    pub fn replies<T: Into<Value>>(replies: impl IntoIterator<Item = T>) -> ScriptedLlmBattery {
        ScriptedLlmBattery(Queue::new(
            replies.into_iter().map(|reply| Ok(reply.into())),
        ))
    }

    /// Fails with this text after the replies before it.
    #[must_use]
    pub fn then_fails(self, message: &str) -> ScriptedLlmBattery {
        self.0.push(Err(CapabilityError::new(message)));
        self
    }

    /// The calls so far, each `[system, user, tools, format]`.
    #[must_use]
    pub fn calls(&self) -> Vec<Vec<Value>> {
        self.0.calls.list()
    }
}

impl LlmBattery for ScriptedLlmBattery {
    fn predict(&self, system: Value, user: Value, tools: Value, format: Value) -> Reply<'_> {
        let args = vec![system, user, tools, format];
        ready(
            self.0
                .answer(args, "The scripted model has no more replies"),
        )
    }
}

/// Conformance suite of [`LlmBattery`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::LlmBattery;
    use crate::error::{SuiteResult, ensure, expect};
    use a99_core::value::Value;

    /// Makes one call.
    pub async fn conformance(llm: &dyn LlmBattery) -> SuiteResult {
        let call = llm.predict(
            "Be brief.".into(),
            "hi".into(),
            Value::Undefined,
            Value::Undefined,
        );
        let reply = expect(call.await, "a message answers")?;
        ensure(reply.as_object().is_some(), "the reply is a message object")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;
    use a99_core::value::Map;

    #[test]
    fn scripted_battery_conforms() {
        let message: Map = [("content", "hello")].into_iter().collect();
        let llm = ScriptedLlmBattery::replies([message]);
        block_on(suite::conformance(&llm)).unwrap();
        assert_eq!(llm.calls()[0].len(), 4);
    }
}
