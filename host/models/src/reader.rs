//! Reader of an answer: bytes in, events out. It does no I/O, so tests and fuzzing read exactly
//! as the network does.

use crate::sse::EventParser;
use crate::wire::{CallIds, Decoder, Step, Wire, malformed, parse};
use a99_capabilities::ai::{AiCode, AiError, StopReason, StreamEvent, StreamSink};

/// The progress of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read {
    /// More will follow. Whether a part of the answer came, and whether an event did.
    More { part: bool, event: bool },
    /// The answer is complete.
    Whole(StopReason),
    /// The stream was cancelled, or the answer is too large, which the stream reports.
    Closed,
}

/// Reads one answer.
pub(crate) struct Reader {
    parser: EventParser,
    decoder: Box<dyn Decoder>,
    ending: Ending,
}

/// The end of the answer as far as the service reported it.
#[derive(Debug, Default)]
struct Ending {
    /// The last stop reason.
    reason: Option<StopReason>,
    /// Whether content followed a stop reason: then only the stream's end shows the final one.
    goes_on: bool,
}

impl Reader {
    pub(crate) fn new(wire: Wire, ids: CallIds) -> Reader {
        Reader {
            parser: EventParser::new(),
            decoder: wire.protocol().decoder(ids),
            ending: Ending::default(),
        }
    }

    /// Whether the answer is complete before its stream ends: a stop reason came, and no
    /// content after it.
    pub(crate) fn is_whole(&self) -> bool {
        self.ending.reason.is_some() && !self.ending.goes_on
    }

    /// Takes bytes of the stream.
    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &StreamSink) -> Result<Read, AiError> {
        let (mut part, mut event) = (false, false);
        loop {
            match self.step(&mut bytes, sink) {
                Ok(None) => return Ok(Read::More { part, event }),
                Ok(Some(Read::More { part: some, .. })) => {
                    event = true;
                    part |= some;
                }
                Ok(Some(end)) => return Ok(end),
                // An error after the end does not invalidate the answer.
                Err(error) => return self.broke_off(sink).map_err(|_| error),
            }
        }
    }

    /// The next event of the bytes, if there is one.
    fn step(&mut self, bytes: &mut &[u8], sink: &StreamSink) -> Result<Option<Read>, AiError> {
        let event = self
            .parser
            .next(bytes)
            .map_err(|error| malformed(&error.to_string()))?;
        let Some(event) = event else {
            return Ok(None);
        };
        let steps = self.decoder.event(&event)?;
        give(steps, &mut self.ending, sink).map(Some)
    }

    /// Handles the regular end of the stream: the last stop reason counts.
    pub(crate) fn end(&mut self, sink: &StreamSink) -> Result<Read, AiError> {
        let mut steps = self.decoder.end();
        steps.push(Step::End);
        give(steps, &mut self.ending, sink)
    }

    /// Handles a broken or timed out stream: an answer with content after a stop reason is cut
    /// off.
    pub(crate) fn broke_off(&mut self, sink: &StreamSink) -> Result<Read, AiError> {
        match self.is_whole() {
            true => self.end(sink),
            false => Err(cut_off()),
        }
    }
}

/// Reads an answer that is one JSON value.
pub(crate) fn read_whole(
    wire: Wire,
    ids: CallIds,
    body: &[u8],
    sink: &StreamSink,
) -> Result<Read, AiError> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    let value = parse(text).ok_or_else(|| malformed("it is not JSON"))?;
    let steps = wire.protocol().whole(&value, ids)?;
    give(steps, &mut Ending::default(), sink)
}

/// Applies the steps of an event to a stream.
fn give(steps: Vec<Step>, ending: &mut Ending, sink: &StreamSink) -> Result<Read, AiError> {
    let mut part = false;
    for step in steps {
        match step {
            Step::Event(event) => {
                let is_usage = matches!(event, StreamEvent::Usage(_));
                part |= !is_usage;
                // Opaque parts, such as a signature, may close an answer after its stop reason.
                let is_content = !is_usage && !matches!(event, StreamEvent::Opaque(_));
                ending.goes_on |= is_content && ending.reason.is_some();
                if !sink.send(event) {
                    return Ok(Read::Closed);
                }
            }
            Step::Part => {
                part = true;
                ending.goes_on |= ending.reason.is_some();
                sink.note_piece();
            }
            Step::Stop(reason) => {
                part = true;
                ending.reason = Some(reason);
            }
            Step::End => return ending.reason.take().map(Read::Whole).ok_or_else(cut_off),
        }
    }
    Ok(Read::More { part, event: true })
}

/// The error for a stream that ended before its answer did.
pub(crate) fn cut_off() -> AiError {
    let text = "the model's answer ended before it was whole";
    AiError::new(AiCode::CutOff, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_capabilities::ai::{StreamHandle, TextResult};

    /// Reads chunks one after the other; then the stream ends, or breaks off. Also whether the
    /// answer seemed whole after each chunk.
    fn read(wire: Wire, chunks: &[&str], breaks: bool) -> (Result<TextResult, AiCode>, Vec<bool>) {
        let (sink, handle) = StreamHandle::new("test");
        let mut reader = Reader::new(wire, CallIds::default());
        let mut whole = Vec::new();
        let mut ended = None;
        for chunk in chunks {
            match reader.push(format!("data: {chunk}\n\n").as_bytes(), &sink) {
                Ok(Read::More { .. }) => whole.push(reader.is_whole()),
                end => {
                    ended = Some(end);
                    break;
                }
            }
        }
        let ended = ended.unwrap_or_else(|| match breaks {
            true => reader.broke_off(&sink),
            false => reader.end(&sink),
        });
        match ended {
            Ok(Read::Whole(reason)) => sink.finish(reason),
            Ok(_) => {}
            Err(error) => sink.fail(error),
        }
        drop(sink);
        let result = a99_capabilities::block_on(handle.done());
        (result.map_err(|error| error.code), whole)
    }

    #[test]
    fn t6_an_answer_goes_on_after_an_early_reason() {
        let gemini = |part: &str, reason: &str| {
            format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}{reason}}}]}}"#)
        };
        let stop = r#","finishReason":"STOP""#;
        let hel = gemini(r#"{"text":"Hel"}"#, stop);
        let lo = gemini(r#"{"text":"lo"}"#, stop);
        let cut = gemini(r#"{"text":"lo"}"#, r#","finishReason":"MAX_TOKENS""#);
        let call = gemini(r#"{"functionCall":{"name":"f","args":{}}}"#, "");
        let (result, whole) = read(Wire::Gemini, &[&hel, &lo], false);
        let result = result.unwrap();
        assert_eq!(
            (&*result.text, result.stop_reason),
            ("Hello", Some(StopReason::EndTurn))
        );
        // The second reason may be as early as the first: only the stream's end is certain.
        assert_eq!(whole, [true, false]);
        let (result, _) = read(Wire::Gemini, &[&hel, &cut], false);
        assert_eq!(result.unwrap().stop_reason, Some(StopReason::MaxTokens));
        let (result, _) = read(Wire::Gemini, &[&hel, &call], false);
        let result = result.unwrap();
        assert_eq!(result.tool_uses.len(), 1);
        assert_eq!(result.stop_reason, Some(StopReason::ToolUse));
        let openai = |delta: &str, reason: &str| {
            format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":{reason}}}]}}"#)
        };
        let begin =
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#;
        let rest = r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#;
        let chunks = [
            openai(r#"{"content":"Hel","reasoning_content":"H"}"#, r#""stop""#),
            openai(r#"{"content":"lo","reasoning_content":"m"}"#, r#""stop""#),
            openai(begin, r#""stop""#),
            openai(rest, "null"),
            "[DONE]".to_owned(),
        ];
        let chunks = chunks.each_ref().map(String::as_str);
        for chunks in [&chunks[..], &chunks[..4]] {
            let (result, whole) = read(Wire::OpenAi, chunks, false);
            let result = result.unwrap();
            assert_eq!((&*result.text, &*result.thinking), ("Hello", "Hm"));
            assert_eq!(result.tool_uses[0].input.to_json_string(), r#"{"x":1}"#);
            assert_eq!(result.stop_reason, Some(StopReason::ToolUse));
            assert_eq!(whole, [true, false, false, false]);
            let back = result.opaque.iter().map(|part| part.value.to_json_string());
            assert_eq!(back.collect::<Vec<_>>(), [r#"{"reasoning_content":"Hm"}"#]);
        }
        // An answer that breaks off or lacks a stop reason is incomplete.
        let error = r#"{"error":{"message":"busy","code":503}}"#;
        for (wire, chunks, breaks, code) in [
            (Wire::Gemini, &[&*hel, &lo][..], true, AiCode::CutOff),
            (Wire::OpenAi, &chunks[..2], true, AiCode::CutOff),
            (
                Wire::Gemini,
                &[&*hel, &lo, error],
                false,
                AiCode::Unavailable,
            ),
            (Wire::Gemini, &[&*call], false, AiCode::CutOff),
            (Wire::OpenAi, &chunks[3..4], false, AiCode::CutOff),
        ] {
            assert_eq!(read(wire, chunks, breaks).0, Err(code), "{chunks:?}");
        }
        let (result, _) = read(Wire::Gemini, &[&hel], true);
        assert_eq!(result.unwrap().text, "Hel");
    }
}
