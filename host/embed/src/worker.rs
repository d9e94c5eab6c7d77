//! The capability: separate threads embed the texts of programs, so that the model never blocks
//! a run's driver.

use crate::error::{EmbedCode, EmbedError};
use crate::model::EmbedModel;
use a99_capabilities::{CapabilityError, Embedder, Reply};
use a99_core::value::Value;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Limits of a program's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedLimits {
    /// Maximum bytes of a text.
    pub max_bytes: usize,
    /// Maximum concurrent texts, each on a thread, at least one; others wait.
    pub at_once: usize,
}

impl Default for EmbedLimits {
    /// 1 MiB, of which the model sees the first 256 tokens; as many texts at once as there are
    /// processors, at most four.
    fn default() -> EmbedLimits {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        EmbedLimits {
            max_bytes: 1 << 20,
            at_once: processors.min(4),
        }
    }
}

/// Embeds texts with a model. Clones share the model and its threads.
///
/// Threads run only while there are texts. When the caller of a text gives up, its work stops
/// before the model's next layer.
#[derive(Clone, Debug)]
pub struct TextEmbedder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    model: EmbedModel,
    limits: EmbedLimits,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Job>>,
    threads: usize,
}

/// A text, and its result.
#[derive(Debug)]
struct Job {
    text: String,
    is_left: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    result: Option<Result<Vec<f32>, EmbedError>>,
    waker: Option<Waker>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TextEmbedder {
    /// An embedder with the default limits.
    #[must_use]
    pub fn new(model: EmbedModel) -> TextEmbedder {
        TextEmbedder::with_limits(model, EmbedLimits::default())
    }

    /// An embedder with other limits.
    #[must_use]
    pub fn with_limits(model: EmbedModel, limits: EmbedLimits) -> TextEmbedder {
        TextEmbedder(Arc::new(Shared {
            model,
            limits,
            queue: Mutex::default(),
        }))
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &EmbedModel {
        &self.0.model
    }

    /// The vector of a text, computed on another thread. Dropping the future stops the work.
    ///
    /// # Errors
    /// If the text is too long, or no thread can be started.
    pub async fn embed_text(&self, text: String) -> Result<Vec<f32>, EmbedError> {
        self.0.check_size(text.len())?;
        let job = Arc::new(Job {
            text,
            is_left: AtomicBool::new(false),
            state: Mutex::default(),
        });
        self.0.enqueue(&job);
        let shared = Arc::clone(&self.0);
        Waiting { shared, job }.await
    }
}

impl Shared {
    fn check_size(&self, bytes: usize) -> Result<(), EmbedError> {
        let most = self.limits.max_bytes;
        if bytes <= most {
            return Ok(());
        }
        let message = format!("the text has {bytes} bytes; an embedding takes {most}");
        Err(EmbedError::new(EmbedCode::TooLarge, message))
    }

    fn enqueue(self: &Arc<Shared>, job: &Arc<Job>) {
        let mut queue = locked(&self.queue);
        queue.waiting.push_back(Arc::clone(job));
        if queue.threads >= self.limits.at_once.max(1) {
            return;
        }
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("a99-embed".to_owned());
        match thread.spawn(move || shared.work()) {
            Ok(_) => queue.threads += 1,
            // A running thread will take it.
            Err(_) if queue.threads > 0 => {}
            Err(error) => {
                queue.waiting.retain(|waiting| !Arc::ptr_eq(waiting, job));
                drop(queue);
                let message = format!("no thread for an embedding: {error}");
                job.end(Err(EmbedError::new(EmbedCode::Failed, message)));
            }
        }
    }

    /// The loop of a thread: runs until there are no texts.
    fn work(self: Arc<Shared>) {
        while let Some(job) = self.next() {
            let is_left = || job.is_left.load(Ordering::Relaxed);
            // A panic becomes the caller's error; a pass changes nothing in the model.
            let pass = AssertUnwindSafe(|| self.model.embed_watched(&job.text, &is_left));
            let result = catch_unwind(pass).unwrap_or_else(|_| {
                let message = "the embedding ended in a fault";
                Err(EmbedError::new(EmbedCode::Failed, message))
            });
            job.end(result);
        }
    }

    /// The next text. Without one the thread stops counting, so that a later text starts
    /// another.
    fn next(&self) -> Option<Arc<Job>> {
        let mut queue = locked(&self.queue);
        let job = queue.waiting.pop_front();
        if job.is_none() {
            queue.threads = queue.threads.saturating_sub(1);
        }
        job
    }
}

impl Job {
    fn end(&self, result: Result<Vec<f32>, EmbedError>) {
        let mut state = locked(&self.state);
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A caller that waits for a text.
#[derive(Debug)]
struct Waiting {
    shared: Arc<Shared>,
    job: Arc<Job>,
}

impl Future for Waiting {
    type Output = Result<Vec<f32>, EmbedError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(&self.job.state);
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.job.is_left.store(true, Ordering::Relaxed);
        let mut queue = locked(&self.shared.queue);
        queue.waiting.retain(|job| !Arc::ptr_eq(job, &self.job));
    }
}

impl TextEmbedder {
    async fn embed_value(&self, text: &Value) -> Result<Vec<f32>, EmbedError> {
        let Some(found) = text.as_text() else {
            let message = format!("the text to embed is a string, not {}", text.kind());
            return Err(EmbedError::new(EmbedCode::Input, message));
        };
        self.0.check_size(found.len_bytes())?;
        // These replace lone surrogates; the model would ignore them.
        let text = found.to_string_lossy().replace('\u{FFFD}', "");
        self.embed_text(text).await
    }
}

impl Embedder for TextEmbedder {
    fn is_billed(&self) -> bool {
        false
    }

    /// Lone surrogates are ignored.
    fn embed(&self, text: Value) -> Reply<'_> {
        Box::pin(async move {
            let vector = self.embed_value(&text).await;
            let vector = vector.map_err(|error| CapabilityError::new(error.to_string()))?;
            let numbers = vector
                .into_iter()
                .map(|number| Value::Number(number.into()));
            Ok(Value::Array(numbers.collect()))
        })
    }
}
