//! Stream of an answer: a writing and a reading end.

use super::{AiCode, AiError, Paid, StopReason, StreamEvent, TextResult, Usage};
use crate::script::lock;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Most bytes of an answer, including tool calls and reasoning.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Unread events after which pieces of text are joined.
const MAX_WAITING: usize = 256;

/// State shared by both ends.
#[derive(Default)]
struct State {
    /// Unread events.
    events: VecDeque<StreamEvent>,
    /// The answer so far.
    result: TextResult,
    bytes: usize,
    /// Outcome, once the stream ended.
    ended: Option<Result<(), AiError>>,
    /// True once the last event was read.
    over: bool,
    /// True once the reader is gone.
    abandoned: bool,
    readers: Vec<Waker>,
    writer: Option<Waker>,
    /// Reservation of the request in flight.
    paid: Option<Paid>,
    /// Usage of earlier, failed requests.
    before: Usage,
    /// Usage of the last request, once the stream ended.
    last: Option<Usage>,
    /// Pieces received of incomplete tool calls.
    pieces: u64,
}

impl State {
    fn is_closed(&self) -> bool {
        self.ended.is_some() || self.abandoned
    }

    /// Ends the stream; returns the wakers to wake.
    fn end(&mut self, event: StreamEvent, how: Result<(), AiError>) -> Vec<Waker> {
        self.result.take(&event);
        self.settle_all(how.as_ref().err());
        self.events.push_back(event);
        self.ended = Some(how);
        let mut woken = std::mem::take(&mut self.readers);
        woken.extend(self.writer.take());
        woken
    }

    /// Settles the request in flight; its usage becomes the settled one.
    fn settle(&mut self, error: Option<&AiError>) {
        if let Some(paid) = self.paid.take() {
            let pieces = std::mem::take(&mut self.pieces);
            self.result.usage = paid.settle_answer(&self.result, pieces, error);
        }
    }

    /// Settles at the end of the stream; its usage becomes that of all requests.
    fn settle_all(&mut self, error: Option<&AiError>) {
        self.settle(error);
        self.last.get_or_insert(self.result.usage);
        let before = std::mem::take(&mut self.before);
        self.result.usage = self.result.usage.plus(before);
    }

    fn fail(&mut self, mut error: AiError) -> Vec<Waker> {
        self.settle_all(Some(&error));
        let empty = self.bytes == 0;
        error.partial = (!empty).then(|| Box::new(self.result.clone()));
        self.end(StreamEvent::Error(error.clone()), Err(error))
    }

    /// The answer, once the stream ended.
    fn answer(&self) -> Option<Result<TextResult, AiError>> {
        let how = self.ended.as_ref()?;
        Some(how.clone().map(|()| self.result.clone()))
    }
}

fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

/// Adds a waker, once.
fn register(wakers: &mut Vec<Waker>, cx: &Context<'_>) {
    if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
        wakers.push(cx.waker().clone());
    }
}

/// The writing end of a stream. Dropping it before the end makes the answer an error
/// ([`AiCode::CutOff`]).
pub struct StreamSink(Arc<Mutex<State>>);

/// The reading end of a stream. Dropping it cancels the stream.
///
/// ```
/// use a99_capabilities::ai::{StopReason, StreamEvent, StreamHandle};
/// use a99_capabilities::block_on;
///
/// let (sink, mut stream) = StreamHandle::new("s1");
/// sink.send(StreamEvent::Text("Hello".into()));
/// sink.finish(StopReason::EndTurn);
/// assert_eq!(block_on(stream.next()), Some(StreamEvent::Text("Hello".into())));
/// assert_eq!(block_on(stream.next()), Some(StreamEvent::Done(StopReason::EndTurn)));
/// assert_eq!(block_on(stream.next()), None);
/// assert_eq!(block_on(stream.done())?.text, "Hello");
/// # Ok::<(), a99_capabilities::AiError>(())
/// ```
pub struct StreamHandle {
    state: Arc<Mutex<State>>,
    id: String,
}

impl StreamHandle {
    /// Creates both ends of a stream with this name.
    pub fn new(id: impl Into<String>) -> (StreamSink, StreamHandle) {
        let state: Arc<Mutex<State>> = Arc::default();
        let sink = StreamSink(Arc::clone(&state));
        let id = id.into();
        (sink, StreamHandle { state, id })
    }

    /// A stream that failed before it began.
    pub fn failed(id: impl Into<String>, error: AiError) -> StreamHandle {
        let (sink, handle) = StreamHandle::new(id);
        sink.fail(error);
        handle
    }

    /// The stream's name.
    #[must_use]
    pub fn stream_id(&self) -> &str {
        &self.id
    }

    /// The next event, or `None` after the last. Unread events are bounded by
    /// [`MAX_ANSWER_BYTES`]: a slow reader gets longer pieces of text.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let mut state = lock(&self.state);
        if let Some(event) = state.events.pop_front() {
            state.over = state.events.is_empty() && state.ended.is_some();
            return Poll::Ready(Some(event));
        }
        if state.over {
            return Poll::Ready(None);
        }
        register(&mut state.readers, cx);
        Poll::Pending
    }

    /// Cancels the stream: [`StreamHandle::done`] gives the partial answer, marked as
    /// cancelled, and the next event is [`StreamEvent::Cancelled`]. Has no effect after the
    /// end.
    pub fn cancel(&self) {
        let mut state = lock(&self.state);
        if state.ended.is_none() {
            state.events.clear();
            let woken = state.end(StreamEvent::Cancelled, Ok(()));
            drop(state);
            wake(woken);
        }
    }

    /// Settles this reservation when the stream ends, or now if it has.
    pub(super) fn paid_by(&self, paid: Paid) {
        let mut state = lock(&self.state);
        state.paid = Some(paid);
        if let Some(how) = &state.ended {
            let error = how.as_ref().err().cloned();
            state.settle(error.as_ref());
            // The error already holds a copy of the partial answer.
            let usage = state.result.usage;
            if let Some(Err(error)) = &mut state.ended
                && let Some(partial) = &mut error.partial
            {
                partial.usage = usage;
            }
        }
    }

    /// The whole answer, even if the events are not read.
    #[must_use]
    pub fn done(&self) -> Done {
        Done(Arc::clone(&self.state))
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        let woken = if state.ended.is_none() {
            state.events.clear();
            state.end(StreamEvent::Cancelled, Ok(()))
        } else {
            Vec::new()
        };
        drop(state);
        wake(woken);
    }
}

impl fmt::Debug for StreamHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = lock(&self.state).ended.is_some();
        let mut out = f.debug_struct("StreamHandle");
        out.field("stream_id", &self.id).field("ended", &ended);
        out.finish()
    }
}

/// The future of a stream's whole answer: `Result<TextResult, AiError>`.
pub struct Done(Arc<Mutex<State>>);

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}

impl Future for Done {
    type Output = Result<TextResult, AiError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.0);
        if let Some(answer) = state.answer() {
            return Poll::Ready(answer);
        }
        register(&mut state.readers, cx);
        Poll::Pending
    }
}

impl StreamSink {
    /// Sends an event. True if the stream accepts more: it has not ended, was not cancelled,
    /// and is within [`MAX_ANSWER_BYTES`]. Exceeding that limit fails the stream.
    pub fn send(&self, event: StreamEvent) -> bool {
        match event {
            StreamEvent::Done(reason) => {
                self.finish(reason);
                return false;
            }
            StreamEvent::Error(error) => {
                self.fail(error);
                return false;
            }
            StreamEvent::Cancelled => return !lock(&self.0).is_closed(),
            _ => {}
        }
        let mut state = lock(&self.0);
        if state.is_closed() {
            return false;
        }
        state.bytes = state.bytes.saturating_add(size(&event));
        let open = state.bytes <= MAX_ANSWER_BYTES;
        if matches!(event, StreamEvent::ToolUse(_)) {
            state.pieces = 0;
        }
        let woken = if open {
            state.result.take(&event);
            let waiting = state.events.len();
            match (state.events.back_mut(), event) {
                (Some(StreamEvent::Text(last)), StreamEvent::Text(piece))
                | (Some(StreamEvent::Thinking(last)), StreamEvent::Thinking(piece))
                    if waiting >= MAX_WAITING =>
                {
                    last.push_str(&piece);
                }
                (Some(StreamEvent::Usage(last)), StreamEvent::Usage(usage)) => *last = usage,
                (_, event) => state.events.push_back(event),
            }
            std::mem::take(&mut state.readers)
        } else {
            state.fail(AiError::too_large())
        };
        drop(state);
        wake(woken);
        open
    }

    /// Attaches the reservation of the next request, which may then be sent; it is settled at
    /// the request's end. False, and the reservation is released, if the stream has ended.
    #[must_use]
    pub fn pay(&self, paid: Paid) -> bool {
        let mut state = lock(&self.0);
        if state.is_closed() {
            return false;
        }
        state.paid = Some(paid);
        // No model has answered this request yet.
        state.result.model = None;
        true
    }

    /// Settles a failed request before the next one is sent.
    pub fn settle(&self, error: &AiError) {
        let mut state = lock(&self.0);
        if !state.is_closed() {
            state.settle(Some(error));
            let used = std::mem::take(&mut state.result.usage);
            state.before = state.before.plus(used);
        }
    }

    /// Tokens of the current or last request, as reported or settled.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let state = lock(&self.0);
        state.last.unwrap_or(state.result.usage)
    }

    /// Counts a piece of a tool call. A call is an event only when complete; its pieces are
    /// settled in any case.
    pub fn note_piece(&self) {
        lock(&self.0).pieces += 1;
    }

    /// Names the answering model: its service accepted the request, which is paid for from then
    /// on in any outcome.
    pub fn answered_by(&self, model: impl Into<String>) {
        let mut state = lock(&self.0);
        if !state.is_closed() {
            state.result.model = Some(model.into());
        }
    }

    /// Ends the stream with a complete answer.
    pub fn finish(&self, reason: StopReason) {
        let mut state = lock(&self.0);
        if !state.is_closed() {
            let woken = state.end(StreamEvent::Done(reason), Ok(()));
            drop(state);
            wake(woken);
        }
    }

    /// Fails the stream. The error carries the partial answer.
    pub fn fail(&self, error: AiError) {
        let mut state = lock(&self.0);
        if !state.is_closed() {
            let woken = state.fail(error);
            drop(state);
            wake(woken);
        }
    }

    /// True if a reader may have seen a part of the answer: a retry would repeat it.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        lock(&self.0).bytes > 0
    }

    /// True once the stream accepts no more events.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        lock(&self.0).is_closed()
    }

    /// Waits until the stream accepts no more events. Only one task may wait at a time.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.0);
            if state.is_closed() {
                return Poll::Ready(());
            }
            state.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for StreamSink {
    fn drop(&mut self) {
        let text = "the model's answer ended before it was whole";
        self.fail(AiError::new(AiCode::CutOff, text));
    }
}

impl fmt::Debug for StreamSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamSink")
    }
}

/// Bytes of an event, for [`MAX_ANSWER_BYTES`].
fn size(event: &StreamEvent) -> usize {
    /// Bytes of a tool call in addition to its name and input.
    const TOOL: usize = 128;
    match event {
        StreamEvent::Text(piece) | StreamEvent::Thinking(piece) => piece.len(),
        StreamEvent::ToolUse(used) => {
            let input = crate::value_bytes(&used.input);
            input
                .saturating_add(used.name.len() + used.id.len())
                .saturating_add(TOOL)
        }
        StreamEvent::Opaque(part) => crate::value_bytes(&part.value).saturating_add(TOOL),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    fn text(piece: &str) -> StreamEvent {
        StreamEvent::Text(piece.to_owned())
    }

    fn all(mut stream: StreamHandle) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        while let Some(event) = block_on(stream.next()) {
            events.push(event);
        }
        events
    }

    #[test]
    fn events_come_in_order_and_end_once() {
        let (sink, stream) = StreamHandle::new("a");
        assert!(sink.send(text("a")) && sink.send(text("b")));
        sink.finish(StopReason::EndTurn);
        assert!(!sink.send(text("c")), "nothing comes after the end");
        sink.fail(AiError::new(AiCode::CutOff, "late"));
        drop(sink);
        assert_eq!(block_on(stream.done()).unwrap().text, "ab");
        let done = StreamEvent::Done(StopReason::EndTurn);
        assert_eq!(all(stream), [text("a"), text("b"), done]);
    }

    #[test]
    fn a_cancelled_stream_ends_at_once() {
        let (sink, mut stream) = StreamHandle::new("a");
        sink.send(text("a"));
        let done = stream.done();
        stream.cancel();
        stream.cancel();
        assert!(sink.is_closed() && !sink.send(text("b")));
        block_on(sink.closed());
        let result = block_on(done).unwrap();
        assert!(result.cancelled && result.text == "a" && result.stop_reason.is_none());
        assert_eq!(block_on(stream.next()), Some(StreamEvent::Cancelled));
        assert_eq!(block_on(stream.next()), None);
    }

    #[test]
    fn who_leaves_cancels() {
        let (sink, stream) = StreamHandle::new("a");
        let done = stream.done();
        drop(stream);
        assert!(sink.is_closed());
        assert!(block_on(done).unwrap().cancelled);
    }

    #[test]
    fn a_writer_that_leaves_cuts_the_answer_off() {
        let (sink, stream) = StreamHandle::new("a");
        sink.send(text("half"));
        drop(sink);
        let error = block_on(stream.done()).unwrap_err();
        assert_eq!(error.code, AiCode::CutOff);
        assert_eq!(error.partial.unwrap().text, "half");
        assert_eq!(all(stream).len(), 2);
    }

    #[test]
    fn an_answer_is_bounded_and_so_is_what_waits() {
        let (sink, stream) = StreamHandle::new("a");
        for _ in 0..100_000 {
            assert!(sink.send(text("x")));
        }
        assert!(lock(&sink.0).events.len() <= MAX_WAITING + 1);
        assert!(sink.send(text(&"y".repeat(MAX_ANSWER_BYTES - 100_000))));
        assert!(!sink.send(text("z")));
        let error = block_on(stream.done()).unwrap_err();
        assert_eq!(error.code, AiCode::TooLarge);
        let events = all(stream);
        let got: usize = events.iter().map(size).sum();
        assert_eq!(got, MAX_ANSWER_BYTES);
    }

    #[test]
    fn a_reader_on_another_thread_is_woken() {
        let (sink, mut stream) = StreamHandle::new("a");
        let reader = std::thread::spawn(move || {
            let first = block_on(stream.next());
            (first, block_on(stream.done()))
        });
        std::thread::sleep(std::time::Duration::from_millis(5));
        sink.send(text("a"));
        sink.finish(StopReason::MaxTokens);
        let (first, whole) = reader.join().unwrap();
        assert_eq!(first, Some(text("a")));
        assert_eq!(whole.unwrap().stop_reason, Some(StopReason::MaxTokens));
    }
}
