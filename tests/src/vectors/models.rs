//! A scripted model: requests in the notation of vectors, answers from the script.

use super::script::SharedScript;
use super::vm_engine::wait;
use agent99::capabilities::BoxFuture;
use agent99::capabilities::ai::{
    AiCode, AiError, AiProvider, StreamHandle, TextRequest, play_value, request_value,
};
use std::collections::BTreeMap;

/// A model that answers with `ai.generate` of the script.
pub(super) struct ScriptedModel(pub(super) SharedScript);

impl AiProvider for ScriptedModel {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        if let Err(error) = request.check() {
            return StreamHandle::failed("scripted", error);
        }
        let reply = {
            let mut script = self.0.lock().unwrap_or_else(|e| e.into_inner());
            script.call("ai.generate", &[request_value(&request)])
        };
        let (sink, handle) = StreamHandle::new("scripted");
        let answer = move || match &reply.result {
            Ok(said) => play_value(said, &sink),
            Err(message) => {
                let message = message.to_string_lossy();
                sink.fail(AiError::new(AiCode::Unavailable, message));
            }
        };
        if reply.delay_ms > 0.0 {
            tokio::spawn(async move {
                wait(reply.delay_ms).await;
                answer();
            });
        } else {
            answer();
        }
        handle
    }
}
