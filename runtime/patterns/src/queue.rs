//! Message queue: items processed in order by at most a number of tasks.

use crate::codes;
use a99_runtime::AgentError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The default of [`QueueOptions::max_queued`].
pub const MAX_QUEUED: usize = 1_000;

type Process<T> = Box<dyn Fn(T) -> BoxFuture<'static, Result<(), AgentError>> + Send + Sync>;
type OnError = Arc<dyn Fn(AgentError) + Send + Sync>;

/// Options of a [`MessageQueue`].
#[derive(Clone)]
pub struct QueueOptions {
    /// Maximum items processed at once. With more than one they begin in order and may end in
    /// any order.
    pub concurrency: NonZeroUsize,
    /// Maximum items that wait; further ones are rejected.
    pub max_queued: usize,
    /// Receives the error of each item that failed or panicked.
    pub on_error: Option<OnError>,
}

impl Default for QueueOptions {
    /// One item at a time, at most [`MAX_QUEUED`] waiting.
    fn default() -> QueueOptions {
        QueueOptions {
            concurrency: NonZeroUsize::MIN,
            max_queued: MAX_QUEUED,
            on_error: None,
        }
    }
}

impl fmt::Debug for QueueOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("QueueOptions");
        out.field("concurrency", &self.concurrency)
            .field("max_queued", &self.max_queued);
        out.finish_non_exhaustive()
    }
}

/// Why a queue did not take an item, with the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejected<T> {
    /// The queue was stopped.
    Stopped(T),
    /// As many items wait as may.
    Full(T),
}

/// The state of a queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Items that wait.
    pub pending: usize,
    /// Items that are being processed.
    pub processing: usize,
    /// Whether the queue takes no more items.
    pub stopped: bool,
    /// Whether no item begins.
    pub paused: bool,
}

struct Waiting<T> {
    items: VecDeque<T>,
    processing: usize,
    stopped: bool,
    paused: bool,
}

struct Inner<T> {
    waiting: Mutex<Waiting<T>>,
    /// Changes with every change that may end a drain.
    changed: watch::Sender<()>,
    process: Process<T>,
    options: QueueOptions,
    runtime: Handle,
}

/// A bounded queue whose items are processed first in, first out. Clones share one queue.
///
/// Items are processed by tasks of the runtime in which the queue was created; a runtime that has
/// ended drops them. Tasks that
/// outlast a turn can no longer act for it (`turn.over`): a handler that uses a queue for its
/// turn awaits [`MessageQueue::drain`]. When all clones are dropped, items that wait are still
/// processed, unless the queue is paused.
pub struct MessageQueue<T: Send + 'static>(Arc<Inner<T>>);

impl<T: Send + 'static> Clone for MessageQueue<T> {
    fn clone(&self) -> MessageQueue<T> {
        MessageQueue(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> fmt::Debug for MessageQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageQueue").field(&self.stats()).finish()
    }
}

impl<T: Send + 'static> Inner<T> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        // A panicking holder leaves the data valid.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts workers while there are items and room for them.
    fn start(self: &Arc<Inner<T>>) {
        loop {
            let mut waiting = self.waiting();
            let is_full = waiting.processing >= self.options.concurrency.get();
            if waiting.paused || is_full {
                return;
            }
            let Some(item) = waiting.items.pop_front() else {
                return;
            };
            waiting.processing += 1;
            drop(waiting);
            // A runtime that has ended drops the worker here.
            let worker = Worker(Arc::clone(self));
            self.runtime.spawn(async move { worker.run(item).await });
        }
    }

    async fn process(&self, item: T) {
        // The closures themselves may panic, too.
        let work = AssertUnwindSafe(async { (self.process)(item).await });
        let error = match work.catch_unwind().await {
            Ok(result) => result.err(),
            Err(panic) => Some(panicked(&*panic)),
        };
        if let (Some(error), Some(on_error)) = (error, &self.options.on_error) {
            drop(catch_unwind(AssertUnwindSafe(|| on_error(error))));
        }
    }
}

/// A task that processes items. It counts as one that is being processed until it is dropped.
struct Worker<T: Send + 'static>(Arc<Inner<T>>);

impl<T: Send + 'static> Worker<T> {
    async fn run(self, first: T) {
        let mut next = Some(first);
        while let Some(item) = next {
            self.0.process(item).await;
            // Items that are ready at once must not keep the thread from other tasks.
            tokio::task::yield_now().await;
            let mut waiting = self.0.waiting();
            next = match waiting.paused {
                true => None,
                false => waiting.items.pop_front(),
            };
        }
        // An item may have come while this worker still counted.
        let queue = Arc::clone(&self.0);
        drop(self);
        queue.start();
    }
}

impl<T: Send + 'static> Drop for Worker<T> {
    fn drop(&mut self) {
        self.0.waiting().processing -= 1;
        self.0.changed.send_replace(());
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> AgentError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no text");
    AgentError::new(a99_runtime::codes::PANIC, format!("it panicked: {text}"))
}

impl<T: Send + 'static> MessageQueue<T> {
    /// A queue that processes each item by `on_process`.
    ///
    /// # Errors
    /// `host.no_runtime` outside of a tokio runtime.
    pub fn new<F, R>(options: QueueOptions, on_process: F) -> Result<MessageQueue<T>, AgentError>
    where
        F: Fn(T) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        let runtime = Handle::try_current()
            .map_err(|error| AgentError::new(codes::NO_RUNTIME, error.to_string()).fatal())?;
        Ok(MessageQueue(Arc::new(Inner {
            waiting: Mutex::new(Waiting {
                items: VecDeque::new(),
                processing: 0,
                stopped: false,
                paused: false,
            }),
            changed: watch::Sender::new(()),
            process: Box::new(move |item| Box::pin(on_process(item))),
            options,
            runtime,
        })))
    }

    /// Adds an item at the end.
    ///
    /// # Errors
    /// The item, if the queue was stopped or is full.
    pub fn enqueue(&self, item: T) -> Result<(), Rejected<T>> {
        let mut waiting = self.0.waiting();
        if waiting.stopped {
            return Err(Rejected::Stopped(item));
        }
        if waiting.items.len() >= self.0.options.max_queued {
            return Err(Rejected::Full(item));
        }
        waiting.items.push_back(item);
        drop(waiting);
        self.0.start();
        Ok(())
    }

    /// Waits until no item waits or is being processed.
    ///
    /// # Errors
    /// `agent.queue_paused` if the queue is paused while items wait, or becomes so: the wait would
    /// last until another task resumes it.
    pub async fn drain(&self) -> Result<(), AgentError> {
        let mut changed = self.0.changed.subscribe();
        loop {
            let stats = self.stats();
            if stats.processing == 0 && stats.pending == 0 {
                return Ok(());
            }
            if stats.processing == 0 && stats.paused {
                let message = format!("{} items wait in a paused queue", stats.pending);
                return Err(AgentError::new(codes::QUEUE_PAUSED, message));
            }
            // The sender is in the queue, which `self` keeps.
            drop(changed.changed().await);
        }
    }

    /// Takes no more items; those that wait are still processed.
    pub fn stop(&self) {
        self.0.waiting().stopped = true;
    }

    /// Lets no further item begin; those being processed continue.
    pub fn pause(&self) {
        self.0.waiting().paused = true;
        self.0.changed.send_replace(());
    }

    /// Continues after [`MessageQueue::pause`].
    pub fn resume(&self) {
        self.0.waiting().paused = false;
        self.0.start();
    }

    /// The present state.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let waiting = self.0.waiting();
        QueueStats {
            pending: waiting.items.len(),
            processing: waiting.processing,
            stopped: waiting.stopped,
            paused: waiting.paused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageQueue, QueueOptions, QueueStats, Rejected};
    use crate::codes;
    use a99_runtime::AgentError;
    use std::num::NonZeroUsize;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::sync::Semaphore;

    type Seen = Arc<Mutex<Vec<String>>>;

    /// Notes each item; `bad` fails, `panic` panics, others wait for a permit of the gate.
    fn queue(options: QueueOptions, gate: &Arc<Semaphore>) -> (MessageQueue<&'static str>, Seen) {
        let (seen, gate) = (Seen::default(), Arc::clone(gate));
        let noted = Arc::clone(&seen);
        let queue = MessageQueue::new(options, move |item: &'static str| {
            assert_ne!(item, "panic at once");
            let (seen, gate) = (Arc::clone(&noted), Arc::clone(&gate));
            async move {
                gate.acquire().await.expect("open").forget();
                match item {
                    "panic" => panic!("of {item}"),
                    "bad" => return Err(AgentError::from("it is bad")),
                    _ => seen.lock().expect("seen").push(item.to_owned()),
                }
                Ok(())
            }
        });
        (queue.expect("a queue"), seen)
    }

    async fn drained(queue: &MessageQueue<&'static str>) {
        let ended = tokio::time::timeout(Duration::from_secs(10), queue.drain()).await;
        ended.expect("in time").expect("drained");
    }

    fn seen(seen: &Seen) -> Vec<String> {
        seen.lock().expect("seen").clone()
    }

    #[tokio::test]
    async fn items_are_processed_in_order() {
        let (queue, done) = queue(QueueOptions::default(), &Arc::new(Semaphore::new(9)));
        for item in ["a", "b", "c"] {
            queue.enqueue(item).expect("room");
        }
        drained(&queue).await;
        assert_eq!(seen(&done), ["a", "b", "c"]);
        drained(&queue).await;
    }

    #[tokio::test]
    async fn at_most_the_given_number_is_processed_at_once() {
        let gate = Arc::new(Semaphore::new(0));
        let options = QueueOptions {
            concurrency: NonZeroUsize::new(2).expect("two"),
            max_queued: 2,
            ..QueueOptions::default()
        };
        let (queue, done) = queue(options, &gate);
        for item in ["a", "b", "c", "d"] {
            queue.enqueue(item).expect("room");
        }
        assert_eq!(queue.enqueue("e"), Err(Rejected::Full("e")));
        queue.stop();
        assert_eq!(queue.enqueue("f"), Err(Rejected::Stopped("f")));
        let stats = QueueStats {
            pending: 2,
            processing: 2,
            stopped: true,
            paused: false,
        };
        assert_eq!(queue.stats(), stats);
        gate.add_permits(9);
        drained(&queue).await;
        // A stopped queue still processed what waited.
        assert_eq!(seen(&done).len(), 4);
        assert_eq!(queue.stats().processing, 0);
    }

    #[tokio::test]
    async fn a_failing_item_harms_no_other() {
        let errors = Seen::default();
        let noted = Arc::clone(&errors);
        let options = QueueOptions {
            on_error: Some(Arc::new(move |error: AgentError| {
                let text = format!("{}: {error}", error.code());
                noted.lock().expect("errors").push(text);
            })),
            ..QueueOptions::default()
        };
        let (queue, done) = queue(options, &Arc::new(Semaphore::new(9)));
        for item in ["panic", "bad", "panic at once", "a"] {
            queue.enqueue(item).expect("room");
        }
        drained(&queue).await;
        assert_eq!(seen(&done), ["a"]);
        let errors = seen(&errors);
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert_eq!(errors[0], "turn.panic: it panicked: of panic");
        assert_eq!(errors[1], "turn.failed: it is bad");
        assert!(errors[2].starts_with("turn.panic: "), "{errors:?}");
    }

    #[tokio::test]
    async fn a_paused_queue_does_not_let_drain_hang() {
        let gate = Arc::new(Semaphore::new(0));
        let (queue, done) = queue(QueueOptions::default(), &gate);
        queue.enqueue("a").expect("room");
        queue.enqueue("b").expect("room");
        let drain = tokio::spawn({
            let queue = queue.clone();
            async move { queue.drain().await }
        });
        tokio::task::yield_now().await;
        queue.pause();
        gate.add_permits(9);
        let ended = tokio::time::timeout(Duration::from_secs(5), drain).await;
        let error = ended.expect("in time").expect("no panic");
        assert_eq!(error.expect_err("paused").code(), codes::QUEUE_PAUSED);
        assert_eq!(seen(&done), ["a"]);
        queue.resume();
        drained(&queue).await;
        assert_eq!(seen(&done), ["a", "b"]);
        queue.pause();
        drained(&queue).await;
    }

    #[test]
    fn a_runtime_that_has_ended_loses_items_and_never_hangs() {
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_time().build().expect("a runtime")
        };
        let first = runtime();
        let gate = Arc::new(Semaphore::new(0));
        let (queue, done) = first.block_on(async { queue(QueueOptions::default(), &gate) });
        first.block_on(async {
            queue.enqueue("a").expect("room");
            tokio::task::yield_now().await;
        });
        drop(first);
        queue.enqueue("b").expect("room");
        runtime().block_on(drained(&queue));
        assert_eq!(queue.stats().processing, 0);
        assert!(seen(&done).is_empty());
    }

    #[test]
    fn a_queue_needs_a_runtime() {
        let made = MessageQueue::new(QueueOptions::default(), |_: u8| async { Ok(()) });
        assert_eq!(made.expect_err("no runtime").code(), codes::NO_RUNTIME);
    }
}
