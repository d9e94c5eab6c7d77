//! Scripted model: a mock that answers with turns in order, without delay.

use super::model_script::{ModelFault, ModelScript, ModelTurn};
use super::{
    AiCode, AiError, AiProvider, Cost, DEFAULT_ROLE, StreamEvent, StreamHandle, TextRequest, Usage,
};
use crate::error::{BoxFuture, ready};
use crate::script::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// The name of the only model.
const MODEL: &str = "scripted";

/// Roles of the mock.
const ROLES: [&str; 4] = ["fast", "smart", "code", DEFAULT_ROLE];

/// Plays a [`ModelScript`] without a network. Each request gets the next matching turn at once;
/// after the last turn the model is unavailable. Delays of turns are ignored.
///
/// ```
/// use a99_capabilities::ai::{AiProvider, ScriptedAi, TextRequest};
/// use a99_capabilities::block_on;
///
/// let model = ScriptedAi::replies(["Hello!"]);
/// let answer = block_on(model.generate_text(TextRequest::new("Say hello")))?;
/// assert_eq!(answer.text, "Hello!");
/// # Ok::<(), a99_capabilities::AiError>(())
/// ```
#[derive(Debug, Default)]
pub struct ScriptedAi {
    turns: Mutex<VecDeque<ModelTurn>>,
    requests: Mutex<Vec<TextRequest>>,
    /// Stalled streams: keeping their sinks keeps them from ending.
    stalled: Mutex<Vec<super::StreamSink>>,
}

impl ScriptedAi {
    /// Plays this script.
    #[must_use]
    pub fn new(script: ModelScript) -> ScriptedAi {
        ScriptedAi {
            turns: Mutex::new(script.turns.into()),
            ..ScriptedAi::default()
        }
    }

    /// Answers with these texts, in order.
    pub fn replies<T: Into<String>>(replies: impl IntoIterator<Item = T>) -> ScriptedAi {
        let turns = replies.into_iter().map(ModelTurn::text).collect();
        ScriptedAi::new(ModelScript { turns })
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<TextRequest> {
        lock(&self.requests).clone()
    }

    /// Number of stalled streams that still have a reader.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        let mut stalled = lock(&self.stalled);
        stalled.retain(|sink| !sink.is_closed());
        stalled.len()
    }

    fn play(&self, turn: &ModelTurn, prompt_bytes: usize, sink: super::StreamSink) {
        if let Some(status) = turn.status {
            let code = AiCode::of_status(status);
            let message = turn.message.clone();
            let message = message.unwrap_or_else(|| format!("the model answers with {status}"));
            return sink.fail(AiError::new(code, message).retry_after(turn.retry_after));
        }
        sink.answered_by(MODEL);
        // A cut counts bytes on the wire, which a mock lacks: it sends half of the pieces.
        let half = turn.pieces().count() / 2;
        for (at, piece) in turn.pieces().enumerate() {
            match turn.fault {
                Some(ModelFault::Cut(_)) if at >= half => return,
                Some(ModelFault::Stall(pieces)) if at >= pieces => {
                    return lock(&self.stalled).push(sink);
                }
                Some(ModelFault::Malformed(pieces)) if at >= pieces => {
                    let text = "what the model sends is no event";
                    return sink.fail(AiError::new(AiCode::Malformed, text));
                }
                _ => {}
            }
            if !sink.send(piece) {
                return;
            }
        }
        match turn.fault {
            Some(ModelFault::Cut(_)) => {}
            Some(ModelFault::Stall(_)) => lock(&self.stalled).push(sink),
            Some(ModelFault::Malformed(_)) => {
                let text = "what the model sends is no event";
                sink.fail(AiError::new(AiCode::Malformed, text));
            }
            None => {
                sink.send(StreamEvent::Usage(turn.tokens(prompt_bytes)));
                sink.finish(turn.stop_reason());
            }
        }
    }
}

impl AiProvider for ScriptedAi {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        let roles = ROLES
            .iter()
            .map(|role| ((*role).to_owned(), MODEL.to_owned()));
        ready(Ok(roles.collect()))
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let mut requests = lock(&self.requests);
        let id = format!("scripted-{}", requests.len() + 1);
        if let Err(error) = request.check() {
            return StreamHandle::failed(id, error);
        }
        if let Some(model) = request.model.as_ref().filter(|model| *model != MODEL) {
            let text = format!("there is no model `{model}`: the script has `{MODEL}`");
            return StreamHandle::failed(id, AiError::new(AiCode::UnknownModel, text));
        }
        if let Some(role) = &request.role
            && request.model.is_none()
            && !ROLES.contains(&role.as_str())
        {
            let known = ROLES.join(", ");
            let text = format!("no model has the role `{role}`; known are {known}");
            return StreamHandle::failed(id, AiError::new(AiCode::UnknownRole, text));
        }
        let bytes = request.prompt_bytes();
        let turn = ModelTurn::next(&mut lock(&self.turns), |text| request.says(text));
        requests.push(request);
        drop(requests);
        let (sink, handle) = StreamHandle::new(id);
        match turn {
            Some(turn) => self.play(&turn, bytes, sink),
            None => {
                let text = "the scripted model has no more replies";
                sink.fail(AiError::new(AiCode::Unavailable, text));
            }
        }
        handle
    }

    /// A mock costs nothing.
    fn price(&self, _: Option<&str>, _: Usage) -> Option<Cost> {
        Some(Cost::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::suite::Case;
    use crate::testing::block_on;

    #[test]
    fn the_scripted_model_conforms() {
        let cases = Case::all();
        assert!(cases.len() >= 60, "{}", cases.len());
        for case in cases {
            let model = ScriptedAi::new(case.script());
            if let Err(law) = block_on(case.run(&model)) {
                panic!("{}: {law}", case.name);
            }
        }
    }

    #[test]
    fn a_turn_may_be_for_some_requests_only() {
        let of = |when: &str, said: &str| ModelTurn {
            when: (!when.is_empty()).then(|| when.to_owned()),
            ..ModelTurn::text(said)
        };
        let turns = vec![of("cats", "a"), of("dogs", "b"), of("", "c")];
        let model = ScriptedAi::new(ModelScript { turns });
        for (asked, said) in [
            ("What of dogs?", Some("b")),
            ("And dogs?", Some("c")),
            ("And dogs?", None),
            ("Of cats?", Some("a")),
        ] {
            let answer = block_on(model.generate_text(TextRequest::new(asked)));
            let answer = answer.ok().map(|answer| answer.text);
            assert_eq!(answer.as_deref(), said, "{asked}");
        }
    }

    #[test]
    fn streams_that_stall_are_kept_until_nobody_reads() {
        let stall = ModelTurn {
            fault: Some(ModelFault::Stall(1)),
            ..ModelTurn::text("a")
        };
        let model = ScriptedAi::new(ModelScript { turns: vec![stall] });
        let stream = model.stream_text(TextRequest::new("x"));
        assert_eq!(model.open_streams(), 1);
        drop(stream);
        assert_eq!(model.open_streams(), 0);
    }
}
