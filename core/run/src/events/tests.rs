//! Guarantees of channels.

use super::*;
use crate::events::{CallEnd, MAX_TEXT_BYTES};
use a99_core::call_id::CallId;
use a99_core::value::Value;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts its wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn text(text: &str) -> RunEventKind {
    RunEventKind::Text {
        call: CallId::default(),
        text: text.to_owned(),
    }
}

fn chunk(n: f64) -> RunEventKind {
    RunEventKind::Chunk {
        call: CallId::default(),
        value: n.into(),
    }
}

fn next(stream: &mut EventStream) -> Option<RunEventKind> {
    stream.try_next().map(|event| event.kind)
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>, waker: &Arc<Count>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(waker));
    future.poll(&mut Context::from_waker(&waker))
}

#[test]
fn senders_wait_for_room_in_their_order() {
    let (sink, mut stream) = event_channel(1);
    let count = Arc::new(Count::default());
    let mut first = pin!(sink.send(chunk(1.0)));
    assert!(poll(first.as_mut(), &count).is_ready());
    let mut second = pin!(sink.send(chunk(2.0)));
    let mut third = pin!(sink.send(chunk(3.0)));
    assert!(poll(second.as_mut(), &count).is_pending());
    assert!(poll(third.as_mut(), &count).is_pending());
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    assert_eq!(next(&mut stream), Some(chunk(1.0)));
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "one has room");
    assert!(poll(third.as_mut(), &count).is_pending(), "not its turn");
    assert!(poll(second.as_mut(), &count).is_ready());
    assert_eq!(next(&mut stream), Some(chunk(2.0)));
    assert!(poll(third.as_mut(), &count).is_ready());
    assert_eq!(next(&mut stream), Some(chunk(3.0)));
    assert_eq!(next(&mut stream), None);
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    let (sink, mut stream) = event_channel(1);
    sink.try_send(chunk(0.0));
    let count = Arc::new(Count::default());
    for n in 0..1_000 {
        let mut given_up = Box::pin(sink.send(chunk(f64::from(n))));
        assert!(poll(given_up.as_mut(), &count).is_pending());
    }
    assert!(stream.0.lock().writers.is_empty());
    // The next sender is woken when the one before it gives up.
    let mut first = Box::pin(sink.send(chunk(1.0)));
    assert!(poll(first.as_mut(), &count).is_pending());
    let mut second = pin!(sink.send(chunk(2.0)));
    assert!(poll(second.as_mut(), &count).is_pending());
    let before = count.0.load(Ordering::Relaxed);
    assert_eq!(next(&mut stream), Some(chunk(0.0)));
    drop(first);
    assert!(count.0.load(Ordering::Relaxed) > before);
    assert!(poll(second.as_mut(), &count).is_ready());
    assert_eq!(next(&mut stream), Some(chunk(2.0)));
}

#[test]
fn what_has_no_room_is_counted_where_it_is_missed() {
    let (sink, mut stream) = event_channel(2);
    let sink = sink.without_waiting();
    for n in 0..5 {
        assert_eq!(sink.try_send(chunk(f64::from(n))), n < 2);
    }
    assert_eq!(next(&mut stream), Some(chunk(0.0)));
    sink.try_send(chunk(5.0));
    let missed = |events| Some(RunEventKind::Missed { events });
    assert_eq!(next(&mut stream), Some(chunk(1.0)));
    assert_eq!(next(&mut stream), missed(3));
    assert_eq!(next(&mut stream), Some(chunk(5.0)));
    sink.try_send(chunk(6.0));
    sink.try_send(chunk(7.0));
    sink.try_send(chunk(8.0));
    drop(sink);
    assert_eq!(next(&mut stream), Some(chunk(6.0)));
    assert_eq!(next(&mut stream), Some(chunk(7.0)));
    assert_eq!(next(&mut stream), missed(1), "before the end, too");
    assert_eq!(next(&mut stream), None);
}

#[test]
fn bytes_are_bounded_and_one_large_event_passes() {
    let limits = EventLimits {
        events: 1_000,
        bytes: 100_000,
    };
    let (sink, mut stream) = event_channel(limits);
    let piece = "x".repeat(MAX_TEXT_BYTES);
    let sent = (0..100).filter(|_| sink.try_send(text(&piece))).count();
    assert_eq!(sent, 100_000 / MAX_TEXT_BYTES);
    assert!(stream.waiting_bytes() <= 100_000);
    while stream.try_next().is_some() {}
    assert_eq!(stream.waiting_bytes(), 0);
    let large = RunEventKind::Chunk {
        call: CallId::default(),
        value: "y".repeat(1 << 20).as_str().into(),
    };
    assert!(sink.try_send(large.clone()));
    assert!(!sink.try_send(chunk(1.0)));
    assert_eq!(next(&mut stream), Some(large));
}

#[test]
fn ends_have_room() {
    let (sink, mut stream) = event_channel(1);
    sink.try_send(chunk(1.0));
    let end = RunEventKind::CallEnded {
        call: CallId::default(),
        end: CallEnd::Answered,
    };
    sink.send_beyond(end.clone());
    assert_eq!(next(&mut stream), Some(chunk(1.0)));
    assert_eq!(next(&mut stream), Some(end));
}

#[test]
fn a_stream_ends_with_its_last_sink() {
    let (sink, mut stream) = event_channel(4);
    let child = sink.in_agent("a").in_agent("b");
    drop(sink);
    let count = Arc::new(Count::default());
    {
        let mut read = pin!(stream.next());
        assert!(poll(read.as_mut(), &count).is_pending());
        child.try_send(chunk(1.0));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let Poll::Ready(Some(event)) = poll(read.as_mut(), &count) else {
            panic!("there is one");
        };
        let names: Vec<String> = event.agents.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a", "b"]);
    }
    let mut read = pin!(stream.next());
    assert!(poll(read.as_mut(), &count).is_pending());
    drop(child);
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
    assert!(matches!(poll(read.as_mut(), &count), Poll::Ready(None)));
}

#[test]
fn nobody_waits_for_a_reader_that_is_gone() {
    let (sink, stream) = event_channel(1);
    sink.try_send(chunk(1.0));
    let count = Arc::new(Count::default());
    let mut waits = pin!(sink.send(chunk(2.0)));
    assert!(poll(waits.as_mut(), &count).is_pending());
    drop(stream);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(poll(waits.as_mut(), &count).is_ready());
    assert!(sink.is_closed() && !sink.try_send(chunk(3.0)));
    let mut more = pin!(sink.send(chunk(4.0)));
    assert!(poll(more.as_mut(), &count).is_ready());
}

#[test]
fn long_texts_are_sent_in_pieces() {
    let (sink, mut stream) = event_channel(100);
    let long = "aé€😀".repeat(10_000);
    let count = Arc::new(Count::default());
    let call = CallId::default();
    let mut send = pin!(sink.send_text(&call, &long, false));
    assert!(poll(send.as_mut(), &count).is_ready());
    let mut all = String::new();
    while let Some(RunEventKind::Text { text, .. }) = next(&mut stream) {
        assert!(text.len() <= MAX_TEXT_BYTES && !text.is_empty());
        all.push_str(&text);
    }
    assert_eq!(all, long);
}

#[test]
fn a_function_that_panics_is_not_called_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let sink = EventSink::to_function(move |event| {
        seen.fetch_add(1, Ordering::Relaxed);
        assert_eq!(event.kind.name(), "chunk");
    });
    assert!(sink.try_send(chunk(1.0)));
    assert!(!sink.is_closed());
    assert!(!sink.try_send(text("x")));
    assert!(sink.is_closed() && !sink.try_send(chunk(2.0)));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn threads_lose_and_repeat_nothing() {
    const SENDERS: usize = 4;
    const EACH: usize = 2_000;
    let (sink, mut stream) = event_channel(3);
    let wait = |future: std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>| {
        let mut future = future;
        let thread = Arc::new(Unpark(std::thread::current()));
        let waker = Waker::from(thread);
        while future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            std::thread::park();
        }
    };
    let mut next_of = [0.0; SENDERS];
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let sink = sink.in_agent(&sender.to_string());
            scope.spawn(move || {
                for n in 0..EACH {
                    wait(Box::pin(sink.send(chunk(n as f64))));
                }
            });
        }
        drop(sink);
        let mut got = 0;
        while let Some(event) = stream.next_blocking() {
            let sender: usize = event.agents[0].to_string().parse().unwrap();
            let RunEventKind::Chunk {
                value: Value::Number(n),
                ..
            } = event.kind
            else {
                panic!("{event:?}");
            };
            assert_eq!(n, next_of[sender], "in order");
            next_of[sender] += 1.0;
            got += 1;
        }
        assert_eq!(got, SENDERS * EACH);
    });
}
