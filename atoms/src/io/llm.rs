//! `llmPredict`: text from the host's model.

use crate::def::{Adjust, Kind, host, opt, req};
use crate::grants::{Answer, inputs, reply, required};
use a99_core::costs::MICRO;
use a99_core::sig::{Gives, JsonKinds};
use a99_vm::atom::{AtomDef, HostCall};

/// Default time limit of model calls in milliseconds (D22).
pub(crate) const TIMEOUT_MS: u64 = 120_000;

/// Costs 1 (D28); hosts that pay for tokens override it.
pub(crate) fn atom() -> AtomDef {
    host(
        "llmPredict",
        "Completes a prompt with the host's language model.",
        MICRO,
        &[
            req("prompt", Kind::Text, "What the model is asked."),
            opt(
                "options",
                Kind::Any,
                "Options of the host's model, which it may ignore.",
            )
            .told(Kind::Record),
        ],
        predict,
    )
    .gives(Gives::always(JsonKinds::ANY))
    .timeout_ms(TIMEOUT_MS)
}

fn predict(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [prompt, options] = inputs(&mut call);
        let llm = required(&call, |c| &c.llm, "Capability 'llm.predict' missing")?;
        reply(llm.predict(prompt, options).await)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, ScriptedLlm};

    #[test]
    fn prompts_are_answered() {
        let bench = Bench::with(Capabilities::none().with_llm(ScriptedLlm::replies(["hi"])));
        assert_eq!(
            bench.call("llmPredict", r#"["Say hi"]"#).unwrap(),
            r#""hi""#
        );
        let error = Bench::new().call("llmPredict", r#"["x"]"#).unwrap_err();
        assert_eq!(error, "Capability 'llm.predict' missing");
    }
}
