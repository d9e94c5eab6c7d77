//! Interrupts: pausing an agent's work, and aborting the operations that are in progress.

use crate::codes;
use crate::text::cut;
use a99_runtime::{
    Agent, AgentError, Body, EventBus, LogLevel, Method, Methods, PauseStatus, Seq, Trigger,
    TurnClient, Uuid,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// The method whose call pauses the agent that it is aimed at.
pub const PAUSE: &str = "pause";

/// The method whose call lets a paused agent continue.
pub const RESUME: &str = "resume";

/// Maximum characters of a reason.
const MAX_REASON: usize = 500;

type Callback = Arc<dyn Fn(&str) -> Result<(), AgentError> + Send + Sync>;

/// When a handler is called.
#[derive(Copy, Clone, PartialEq, Eq)]
enum When {
    Pause,
    Resume,
}

#[derive(Default)]
struct Inner {
    paused: Option<String>,
    is_aborted: bool,
    handlers: BTreeMap<u64, (When, Callback)>,
    next_handler: u64,
    live: Vec<Weak<watch::Sender<bool>>>,
}

/// Pauses an agent and aborts its operations. Clones share one controller.
///
/// A controller belongs to an awake agent: it is not part of the state, so an agent that wakes
/// is not paused.
#[derive(Clone, Default)]
pub struct InterruptController(Arc<Mutex<Inner>>);

/// A registered handler. Dropping it unsubscribes.
#[must_use = "a handler that is dropped is not called"]
pub struct Handler {
    controller: Weak<Mutex<Inner>>,
    id: u64,
}

impl Drop for Handler {
    fn drop(&mut self) {
        if let Some(inner) = self.controller.upgrade() {
            // A handler may own what unsubscribes others: drop it after the lock.
            let handler = locked(&inner).handlers.remove(&self.id);
            drop(handler);
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handler").field(&self.id).finish()
    }
}

/// The cancellation token of one operation. Clones share it.
#[derive(Clone, Debug)]
pub struct AbortToken(Arc<watch::Sender<bool>>);

fn locked(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    // No holder runs code of others, so the data is valid after a panic.
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AbortToken {
    /// Whether the operation was aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the operation is aborted.
    pub async fn aborted(&self) {
        // The sender is in the token, which `self` keeps.
        drop(self.0.subscribe().wait_for(|is_aborted| *is_aborted).await);
    }

    /// Runs an operation; an abort drops it.
    ///
    /// # Errors
    /// `turn.paused` after an abort; those of the operation.
    pub async fn run<T>(
        &self,
        operation: impl Future<Output = Result<T, AgentError>>,
    ) -> Result<T, AgentError> {
        tokio::select! {
            biased;
            () = self.aborted() => Err(paused("the operation was aborted")),
            result = operation => result,
        }
    }
}

fn paused(message: &str) -> AgentError {
    AgentError::new(codes::PAUSED, message)
}

impl fmt::Debug for InterruptController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = locked(&self.0);
        let mut out = f.debug_struct("InterruptController");
        out.field("paused", &inner.paused);
        out.finish_non_exhaustive()
    }
}

impl InterruptController {
    /// A controller that is not paused.
    #[must_use]
    pub fn new() -> InterruptController {
        InterruptController::default()
    }

    /// Whether the agent is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        locked(&self.0).paused.is_some()
    }

    /// Pauses, and calls the handlers of pauses with the reason; no effect if it is paused.
    /// Gives the errors of handlers, also their panics: one that fails stops no other.
    pub fn pause(&self, reason: &str) -> Vec<AgentError> {
        let mut inner = locked(&self.0);
        if inner.paused.is_some() {
            return Vec::new();
        }
        inner.paused = Some(reason.to_owned());
        drop(inner);
        self.call(When::Pause, reason)
    }

    /// Ends a pause, and calls the handlers of resumes with the reason of the pause; no effect
    /// if it is not paused.
    pub fn resume(&self) -> Vec<AgentError> {
        let reason = locked(&self.0).paused.take();
        reason.map_or_else(Vec::new, |reason| self.call(When::Resume, &reason))
    }

    /// Calls a function at each pause.
    pub fn on_pause(
        &self,
        f: impl Fn(&str) -> Result<(), AgentError> + Send + Sync + 'static,
    ) -> Handler {
        self.add(When::Pause, Arc::new(f))
    }

    /// Calls a function at the end of each pause.
    pub fn on_resume(
        &self,
        f: impl Fn(&str) -> Result<(), AgentError> + Send + Sync + 'static,
    ) -> Handler {
        self.add(When::Resume, Arc::new(f))
    }

    fn add(&self, when: When, f: Callback) -> Handler {
        let mut inner = locked(&self.0);
        let id = inner.next_handler;
        inner.next_handler += 1;
        inner.handlers.insert(id, (when, f));
        Handler {
            controller: Arc::downgrade(&self.0),
            id,
        }
    }

    fn call(&self, when: When, reason: &str) -> Vec<AgentError> {
        let all = locked(&self.0).handlers.clone();
        let called = all.into_values().filter(|(at, _)| *at == when);
        let failed = called.filter_map(|(_, handler)| {
            match catch_unwind(AssertUnwindSafe(|| handler(reason))) {
                Ok(result) => result.err(),
                Err(_) => {
                    let message = "a handler of a pause panicked";
                    Some(AgentError::new(a99_runtime::codes::PANIC, message))
                }
            }
        });
        failed.collect()
    }

    /// A fresh token for an operation that begins.
    #[must_use]
    pub fn begin(&self) -> AbortToken {
        let token = AbortToken(Arc::new(watch::Sender::new(false)));
        let mut inner = locked(&self.0);
        inner.live.retain(|live| live.strong_count() > 0);
        inner.live.push(Arc::downgrade(&token.0));
        inner.is_aborted = false;
        token
    }

    /// Aborts all operations whose tokens are in use.
    pub fn abort(&self) {
        let mut inner = locked(&self.0);
        inner.is_aborted = true;
        for live in std::mem::take(&mut inner.live) {
            if let Some(token) = live.upgrade() {
                token.send_replace(true);
            }
        }
    }

    /// Whether operations were aborted, and none began since.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        locked(&self.0).is_aborted
    }

    /// Aborts all operations, removes all handlers and ends a pause without calling them.
    pub fn cleanup(&self) {
        self.abort();
        let mut inner = locked(&self.0);
        let handlers = std::mem::take(&mut inner.handlers);
        (inner.paused, inner.is_aborted) = (None, false);
        drop(inner);
        drop(handlers);
    }

    /// Waits for a call of the method [`PAUSE`] that is aimed at this agent. Then it pauses,
    /// aborts all operations, announces the pause of a message (`execution-pause`) in the log,
    /// and gives the reason.
    ///
    /// It reads the channel from the turn's event on, so it also finds a call that an earlier
    /// attempt of the turn did not see. A pause thus interrupts the turns of all events before
    /// it.
    ///
    /// # Errors
    /// `turn.over`; errors of the store.
    pub async fn watch(&self, client: &TurnClient, message_id: Uuid) -> Result<String, AgentError> {
        let reason = called(client).await?;
        self.interrupt(client, message_id, &reason).await?;
        Ok(reason)
    }

    async fn interrupt(
        &self,
        client: &TurnClient,
        message_id: Uuid,
        reason: &str,
    ) -> Result<(), AgentError> {
        for error in self.pause(reason) {
            client.log(LogLevel::Warn, &error.to_string());
        }
        self.abort();
        let (status, reason) = (PauseStatus::Paused, Some(reason.to_owned()));
        let announced = client.announce_pause(message_id, status, reason);
        announced.await.map(drop)
    }

    /// Runs an operation on a message until it ends or a call of [`PAUSE`] interrupts it, which
    /// drops it.
    ///
    /// # Errors
    /// `turn.paused` after an interruption; those of the operation and of
    /// [`InterruptController::watch`].
    pub async fn run<T>(
        &self,
        client: &TurnClient,
        message_id: Uuid,
        operation: impl Future<Output = Result<T, AgentError>>,
    ) -> Result<T, AgentError> {
        let token = self.begin();
        let reason = tokio::select! {
            biased;
            reason = called(client) => Some(reason?),
            // Another operation of the agent may have seen the call first.
            () = token.aborted() => locked(&self.0).paused.clone(),
            result = operation => return result,
        };
        let Some(reason) = reason else {
            return Err(paused("the operation was aborted"));
        };
        self.interrupt(client, message_id, &reason).await?;
        Err(paused(&reason))
    }

    /// Adds the methods [`PAUSE`] and [`RESUME`]. Others can call only methods that the agent
    /// offers, and the call's answer is a turn after the interrupted one.
    #[must_use]
    pub fn with_methods<A: Agent>(&self, methods: Methods<A>) -> Methods<A> {
        let reason = json!({"type": "object", "properties": {"reason": {"type": "string"}}});
        let (pauses, resumes) = (self.clone(), self.clone());
        let pause = Method::new("Pauses the agent's work.", move |_: &A, _, call| {
            let pauses = pauses.clone();
            Box::pin(async move {
                pauses.pause(&reason_of(&call.args));
                pauses.abort();
                Ok(json!({"paused": true}))
            })
        });
        let resume = Method::new("Lets a paused agent continue.", move |_: &A, _, _| {
            let resumes = resumes.clone();
            Box::pin(async move {
                resumes.resume();
                Ok(json!({"paused": false}))
            })
        });
        methods
            .with(PAUSE, pause.parameters(reason))
            .with(RESUME, resume)
    }
}

/// Waits for a call of [`PAUSE`] that is aimed at the client's agent, and gives its reason.
async fn called(client: &TurnClient) -> Result<String, AgentError> {
    let after: Seq = match client.trigger() {
        Trigger::Event(seq) => *seq,
        _ => client.checkpoint(),
    };
    let mut events = client.subscribe(Some(after)).await?;
    loop {
        let event = events.next().await?;
        if let Body::MethodCall {
            method_name,
            provider_id,
            args,
            ..
        } = &event.body
            && method_name == PAUSE
            && *provider_id == client.client_id()
        {
            return Ok(reason_of(args));
        }
    }
}

fn reason_of(args: &serde_json::Value) -> String {
    cut(
        args["reason"].as_str().unwrap_or("it was asked to"),
        MAX_REASON,
    )
}

#[cfg(test)]
mod tests {
    use super::InterruptController;
    use crate::codes;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    fn count(of: &Arc<AtomicU32>) -> impl Fn(&str) -> Result<(), a99_runtime::AgentError> + use<> {
        let of = Arc::clone(of);
        move |_| {
            of.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn handlers_are_called_once_for_each_pause_and_resume() {
        let controller = InterruptController::new();
        let [pauses, resumes, others] = [(); 3].map(|()| Arc::<AtomicU32>::default());
        let _fails = controller.on_pause(|_| Err("no".into()));
        let _panics = controller.on_pause(|_| panic!("no"));
        let _pause = controller.on_pause(count(&pauses));
        let _resume = controller.on_resume(count(&resumes));
        drop(controller.on_pause(count(&others)));
        assert!(controller.resume().is_empty());
        let errors = controller.pause("a");
        let errors: Vec<_> = errors.iter().map(|error| error.code()).collect();
        assert_eq!(errors, ["turn.failed", "turn.panic"]);
        assert!(controller.pause("b").is_empty());
        assert!(controller.is_paused());
        controller.resume();
        controller.resume();
        assert!(!controller.is_paused());
        let counts = [pauses, resumes, others].map(|n| n.load(Ordering::Relaxed));
        assert_eq!(counts, [1, 1, 0]);
    }

    #[tokio::test]
    async fn an_abort_reaches_all_live_operations() {
        let controller = InterruptController::new();
        let (first, second) = (controller.begin(), controller.begin());
        let waiting = tokio::spawn({
            let first = first.clone();
            async move { first.run(std::future::pending::<Result<(), _>>()).await }
        });
        tokio::task::yield_now().await;
        controller.abort();
        assert!(first.is_aborted() && second.is_aborted() && controller.is_aborted());
        let waited = tokio::time::timeout(Duration::from_secs(5), waiting).await;
        let result = waited.expect("in time").expect("no panic");
        assert_eq!(result.expect_err("aborted").code(), codes::PAUSED);
        let third = controller.begin();
        assert!(!third.is_aborted() && !controller.is_aborted());
        assert_eq!(third.run(async { Ok(7) }).await, Ok(7));
    }

    #[test]
    fn cleanup_resets() {
        let controller = InterruptController::new();
        let pauses = Arc::default();
        let handler = controller.on_pause(count(&pauses));
        let token = controller.begin();
        controller.pause("a");
        controller.cleanup();
        assert!(token.is_aborted());
        assert!(!controller.is_paused() && !controller.is_aborted());
        controller.pause("b");
        assert_eq!(pauses.load(Ordering::Relaxed), 1);
        drop(handler);
    }
}
