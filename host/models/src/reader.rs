//! Reader of an answer: bytes in, events out. It waits for nothing, so that tests and
//! fuzzing read as the network does.

use crate::sse::EventParser;
use crate::wire::{CallIds, Decoder, Step, Wire, malformed, parse};
use a99_capabilities::ai::{AiCode, AiError, StopReason, StreamEvent, StreamSink};

/// How far an answer is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read {
    /// More is to come. Whether a part of the answer came, and whether an event did.
    More { part: bool, event: bool },
    /// The answer is whole.
    Whole(StopReason),
    /// Nobody wants more, or the answer is too large, which its stream says.
    Closed,
}

/// Reads one answer.
pub(crate) struct Reader {
    parser: EventParser,
    decoder: Box<dyn Decoder>,
    /// Why the answer is whole, once it is: whatever comes afterwards is its usage, or
    /// nothing.
    stop: Option<StopReason>,
}

impl Reader {
    pub(crate) fn new(wire: Wire, ids: CallIds) -> Reader {
        Reader {
            parser: EventParser::new(),
            decoder: wire.protocol().decoder(ids),
            stop: None,
        }
    }

    /// Whether the answer is whole, and only usage may come.
    pub(crate) fn is_whole(&self) -> bool {
        self.stop.is_some()
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
                // What is wrong after the end takes nothing from the answer.
                Err(error) => return self.stop.take().map(Read::Whole).ok_or(error),
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
        give(steps, &mut self.stop, sink).map(Some)
    }

    /// The stream ended, or broke off.
    pub(crate) fn end(&mut self) -> Result<StopReason, AiError> {
        self.stop.take().ok_or_else(cut_off)
    }
}

/// Reads an answer that came as one JSON value.
pub(crate) fn read_whole(
    wire: Wire,
    ids: CallIds,
    body: &[u8],
    sink: &StreamSink,
) -> Result<Read, AiError> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    let value = parse(text).ok_or_else(|| malformed("it is not JSON"))?;
    let mut stop = None;
    give(wire.protocol().whole(&value, ids)?, &mut stop, sink)
}

/// Gives the steps of an event to a stream.
fn give(
    steps: Vec<Step>,
    stop: &mut Option<StopReason>,
    sink: &StreamSink,
) -> Result<Read, AiError> {
    let mut part = false;
    for step in steps {
        match step {
            Step::Event(event) => {
                part |= !matches!(event, StreamEvent::Usage(_));
                if !sink.send(event) {
                    return Ok(Read::Closed);
                }
            }
            Step::Part => {
                part = true;
                sink.note_piece();
            }
            Step::Stop(reason) => {
                part = true;
                *stop = Some(reason);
            }
            Step::End => return stop.take().map(Read::Whole).ok_or_else(cut_off),
        }
    }
    Ok(Read::More { part, event: true })
}

/// A stream that ended before its answer did.
pub(crate) fn cut_off() -> AiError {
    let text = "the model's answer ended before it was whole";
    AiError::new(AiCode::CutOff, text)
}
