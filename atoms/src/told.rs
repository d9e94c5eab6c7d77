//! Models whose answers go to the run's event sink while they stream.

use a99_capabilities::ai::{
    AiError, Cost, MeteredAi, StreamEvent, StreamHandle, TextRequest, TextResult, Usage,
};
use a99_capabilities::{AiProvider, BoxFuture};
use a99_core::call_id::CallId;
use a99_vm::EventSink;
use std::collections::BTreeMap;

/// Calls a metered provider, and forwards text and thinking of `generate_text` to the run's events
/// while they arrive. If the sink is full, the rest of the answer waits in its bounded stream.
pub(crate) struct ToldAi {
    pub(crate) provider: MeteredAi,
    pub(crate) events: EventSink,
    pub(crate) call: CallId,
}

impl AiProvider for ToldAi {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        self.provider.list_roles()
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        self.provider.stream_text(request)
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        self.provider.price(model, usage)
    }

    fn generate_text(&self, request: TextRequest) -> BoxFuture<'_, Result<TextResult, AiError>> {
        Box::pin(async move {
            let mut stream = self.provider.open(request).await;
            while !self.events.is_closed()
                && let Some(event) = stream.next().await
            {
                let (text, thinking) = match &event {
                    StreamEvent::Text(text) => (text, false),
                    StreamEvent::Thinking(text) => (text, true),
                    _ => continue,
                };
                self.events.send_text(&self.call, text, thinking).await;
            }
            stream.done().await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use a99_capabilities::ai::{ModelFault, ModelScript, ModelTurn, Payer, ScriptedAi};
    use a99_capabilities::{Capabilities, block_on};
    use a99_vm::{MAX_TEXT_BYTES, RunEventKind, event_channel};
    use std::sync::Arc;

    fn told(turn: ModelTurn) -> (Result<TextResult, AiError>, Vec<(bool, String)>) {
        let (events, mut stream) = event_channel(1_000);
        let model = ScriptedAi::new(ModelScript { turns: vec![turn] });
        let model = ToldAi {
            provider: MeteredAi::new(Arc::new(model), Payer::default()),
            events,
            call: CallId::default(),
        };
        let answer = block_on(model.generate_text(TextRequest::new("x")));
        let mut pieces = Vec::new();
        while let Some(event) = stream.try_next() {
            pieces.push(match event.kind {
                RunEventKind::Text { text, .. } => (false, text),
                RunEventKind::Thinking { text, .. } => (true, text),
                other => panic!("{other:?}"),
            });
        }
        (answer, pieces)
    }

    #[test]
    fn pieces_are_the_answer() {
        let pieces = ["Hel", "lo", &"é".repeat(MAX_TEXT_BYTES)];
        let turn = ModelTurn {
            thinking: vec!["hm".to_owned()],
            text: pieces.map(str::to_owned).to_vec(),
            ..ModelTurn::default()
        };
        let (answer, told) = told(turn);
        assert_eq!(told[0], (true, "hm".to_owned()));
        assert_eq!(told[1], (false, "Hel".to_owned()));
        let text: String = told[1..].iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(text, answer.unwrap().text);
        assert!(told.iter().all(|(_, text)| text.len() <= MAX_TEXT_BYTES));
    }

    #[test]
    fn what_fails_is_told_as_far_as_it_came() {
        let turn = ModelTurn {
            text: vec!["half".to_owned(), "more".to_owned()],
            fault: Some(ModelFault::Malformed(1)),
            ..ModelTurn::default()
        };
        let (answer, told) = told(turn);
        assert_eq!(told, [(false, "half".to_owned())]);
        assert_eq!(answer.unwrap_err().partial.unwrap().text, "half");
    }

    #[test]
    fn nobody_listens_to_whole_models() {
        let models = Capabilities::none().with_ai(ScriptedAi::replies(["hi"]));
        let (events, stream) = event_channel(1);
        drop(stream);
        let bench = Bench::with(models).telling(events);
        let reply = bench.call("llmPredict", r#"["Say hi"]"#);
        assert_eq!(reply.unwrap(), r#""hi""#);
    }
}
