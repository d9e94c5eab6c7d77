//! `llmPredict`: text from the host's model.

use crate::def::{Adjust, Kind, host, opt, req};
use crate::grants::{Answer, estimated, granted, inputs, models, reply};
use a99_capabilities::Llm;
use a99_capabilities::ai::{ProviderLlm, TextRequest, TokenEstimate};
use a99_core::costs::MICRO;
use a99_core::sig::{Capability, Effect, Gives, JsonKinds};
use a99_vm::atom::{AtomDef, AtomError, HostCall};

/// Default time limit of model calls in milliseconds (D22).
pub(crate) const TIMEOUT_MS: u64 = 120_000;

/// Costs 1 (D28). Hosts that pay for tokens override the price.
pub(crate) fn atom() -> AtomDef {
    host(
        "llmPredict",
        "Completes a prompt with the host's language model.",
        MICRO,
        &[
            req("prompt", Kind::Text, "The prompt for the model."),
            opt(
                "options",
                Kind::Any,
                "Options for the host's model, which it may ignore.",
            )
            .told(Kind::Record),
        ],
        predict,
    )
    .needs(Capability::Llm)
    .effect(Effect::Read)
    .gives(Gives::always(JsonKinds::ANY))
    .timeout_ms(TIMEOUT_MS)
}

fn predict(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [prompt, options] = inputs(&mut call);
        if let Some(llm) = granted(&call, |c| &c.llm) {
            let told = TokenEstimate::of_value(&prompt);
            let asked = llm.predict(prompt, options);
            return reply(estimated(&call, "llm", told, asked).await);
        }
        let Some(models) = models(&call) else {
            return Err(AtomError::missing("Capability 'llm.predict' missing"));
        };
        let llm = ProviderLlm::new(models, TextRequest::default());
        reply(llm.predict(prompt, options).await)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, ScriptedAi, ScriptedLlm};

    #[test]
    fn prompts_are_answered() {
        let bench = Bench::with(Capabilities::none().with_llm(ScriptedLlm::replies(["hi"])));
        assert_eq!(
            bench.call("llmPredict", r#"["Say hi"]"#).unwrap(),
            r#""hi""#
        );
        let models = Capabilities::none().with_ai(ScriptedAi::replies(["ho"]));
        let reply = Bench::with(models).call("llmPredict", r#"["Say ho"]"#);
        assert_eq!(reply.unwrap(), r#""ho""#);
        let error = Bench::new().call("llmPredict", r#"["x"]"#).unwrap_err();
        assert_eq!(error, "Capability 'llm.predict' missing");
    }
}
