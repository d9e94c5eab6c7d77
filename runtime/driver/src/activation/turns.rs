//! Turns of an activation: how a handler runs, which of its changes commit, and the result of
//! the commit.

use super::load::lost_letter;
use super::{Activation, Happened, Pending, Running, Subject, told};
use crate::agent::Alarm;
use crate::calls::RunningCall;
use crate::error::{AgentError, codes};
use crate::kill;
use crate::methods::{MethodCall, method_result};
use crate::metrics::Attempt;
use crate::runner::{AnyState, Output, Work};
use crate::shared::Shared;
use crate::trace;
use crate::turn::{Changes, TurnClient, TurnInner};
use a99_runtime_engine::{
    Body, CommitFault, DeadLetter, Event, Input, NewEvent, NewState, Progress, Receipt, StopReason,
    StoreCode, StoreError, Trigger, TurnCommit, TurnEnd, TurnId, Uuid, deep_merge,
};
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

/// How long a turn that crashed the process before may wait to run alone.
const MAX_ISOLATION_WAIT: Duration = Duration::from_secs(60);

/// Converts a panic into an error.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> AgentError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no text");
    AgentError::new(codes::PANIC, format!("the handler panicked: {text}"))
}

/// Resolves when the method call of a turn is cancelled; never for other turns.
async fn cancelled(call: &mut Option<(Uuid, RunningCall)>) {
    match call {
        Some((_, call)) => call.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Commits together with a change of the settings.
pub(super) async fn write(
    shared: &Shared,
    mut commit: TurnCommit,
    settings: Option<&Value>,
) -> Result<Receipt, StoreError> {
    let Some(settings) = settings else {
        return shared.agents().commit(commit).await;
    };
    let (_gate, merged) = shared.merged_settings(&commit.fence.key, settings).await?;
    commit.settings = Some(merged);
    shared.agents().commit(commit).await
}

/// The state that a handler left, if it differs from the state at the beginning.
pub(super) fn changed(output: &Output, began: &str, version: u32, base: u64) -> Option<NewState> {
    (output.json != began).then(|| NewState {
        json: output.json.clone(),
        version,
        base,
    })
}

impl Activation {
    /// The span of an attempt of a turn, and the context of what it sends.
    fn span(&self, trigger: &Trigger, attempt: u32) -> (Span, Option<Arc<str>>) {
        let key = &self.fence.key;
        let (event, parent) = match self.subjects.get(trigger) {
            Some(Subject::Event(event)) => (event.seq, trace::parent(event)),
            _ => (None, None),
        };
        let span = info_span!(
            "turn",
            otel.kind = "consumer",
            otel.status_code = Empty,
            "error.type" = Empty,
            a99.agent = key.as_str(),
            a99.channel = key.channel(),
            a99.event = event.map(trace::int),
            a99.attempt = trace::int(attempt),
            a99.outcome = Empty,
            traceparent = parent.as_deref(),
        );
        let tracer = &self.shared.tracer;
        tracer.follow(&span, parent.as_deref());
        let context = tracer.within(&span, parent);
        (span, context)
    }

    pub(super) fn client(
        &self,
        trigger: Trigger,
        attempt: u32,
        hops: u8,
        trace: Option<Arc<str>>,
    ) -> TurnClient {
        let mut inner = TurnInner::new(
            Arc::clone(&self.shared),
            Arc::clone(&self.identity),
            Arc::clone(&self.sender),
            self.fence.clone(),
            self.delivery,
            (trigger, attempt),
            hops,
            self.machine.progress().checkpoint,
            self.replays,
            self.has_tables,
            self.group_commit.wait(),
        );
        inner.trace = trace;
        TurnClient(Arc::new(inner))
    }

    pub(super) fn record(
        &mut self,
        turn: TurnId,
        trigger: Trigger,
        attempt: u32,
        progress: Option<Progress>,
    ) {
        self.group_commit.record(turn);
        let agents = Arc::clone(self.shared.agents());
        let fence = self.fence.clone();
        // The process crashed during an earlier attempt. Such turns run one at a time, so that
        // the guilty one crashes alone and the others do not count its crashes.
        let is_suspect = attempt > 1 && self.suspect.is_none() && !self.is_draining;
        let gate = is_suspect.then(|| {
            let (left, leaves) = oneshot::channel();
            self.cancel_isolation = Some(left);
            (Arc::clone(&self.shared.crash_isolation), leaves)
        });
        self.work.push(Box::pin(async move {
            let suspect = match gate {
                Some((crash_isolation, leaves)) => tokio::select! {
                    biased;
                    suspect = crash_isolation.acquire_owned() => suspect.ok(),
                    // A turn that runs this long does not crash at its start; this one may run
                    // beside it.
                    () = tokio::time::sleep(MAX_ISOLATION_WAIT) => None,
                    _ = leaves => {
                        let left = StoreError::new(StoreCode::Unavailable, "the agent stops");
                        return Happened::Recorded(turn, None, Err(left));
                    }
                },
                None => None,
            };
            kill::point("record.before");
            let recorded = agents.record_start(fence, trigger, attempt, progress).await;
            kill::point("record.after");
            Happened::Recorded(turn, suspect, recorded)
        }));
    }

    /// The work of a turn, and the hop count of the events it sends.
    fn subject(&self, trigger: &Trigger) -> (Option<Work>, u8) {
        let me = self.sender.id;
        match self.subjects.get(trigger) {
            Some(Subject::Event(event)) => {
                let work = match &event.body {
                    Body::MethodCall {
                        call_id,
                        method_name,
                        provider_id,
                        args,
                    } if *provider_id == me => {
                        let call = MethodCall {
                            call_id: *call_id,
                            caller: Arc::clone(&event.sender),
                            args: args.clone(),
                        };
                        Work::Method(method_name.clone(), call)
                    }
                    _ => Work::Event(Event::clone(event)),
                };
                (Some(work), event.hops.saturating_add(1))
            }
            Some(Subject::Timer(row)) => {
                let alarm = Alarm {
                    name: row.name.clone(),
                    due: row.due,
                    payload: row.payload.clone(),
                };
                (Some(Work::Alarm(alarm)), row.hops)
            }
            Some(Subject::Hook(work)) => (Some(work()), 1),
            None => (None, 1),
        }
    }

    pub(super) fn run(&mut self, turn: TurnId, trigger: Trigger, attempt: u32) {
        let (work, hops) = self.subject(&trigger);
        let (span, context) = self.span(&trigger, attempt);
        let client = self.client(trigger.clone(), attempt, hops, context);
        let (cancel, cancelled) = oneshot::channel();
        if attempt > 1 {
            self.counts.redeliveries.inc();
        }
        let running = Running {
            trigger,
            attempt,
            began: Instant::now(),
            client: client.clone(),
            span: span.clone(),
            base: Arc::clone(&self.json),
            revision: self.revision,
            cancel: Some(cancel),
            output: None,
            changes: Changes::default(),
            commit: None,
        };
        self.refusals.remove(&turn);
        if let Some(earlier) = self.running.insert(turn, running) {
            // A given-up attempt of the same turn.
            earlier.client.0.give_up();
        }
        let handler = self.handler(work, client).instrument(span);
        let mut work: Pending = Box::pin(async move {
            tokio::select! {
                biased;
                _ = cancelled => {
                    let error = AgentError::new(codes::CANCELLED, "the turn was cancelled");
                    Happened::Handled(turn, attempt, Err(error), true)
                }
                result = handler => Happened::Handled(turn, attempt, result, false),
            }
        });
        if self.group_commit.is_on() {
            // Poll once inline: many turns end at once. A pending one is polled again with a
            // real waker.
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(happened) = work.as_mut().poll(&mut context) {
                self.group_commit.happened.push_back(happened);
                return;
            }
        }
        self.work.push(work);
    }

    /// Runs a handler with its timeout, catches panics, and builds a method's answer.
    pub(super) fn handler(
        &self,
        work: Option<Work>,
        client: TurnClient,
    ) -> impl Future<Output = Result<Output, AgentError>> + Send + 'static {
        let runner = Arc::clone(&self.runner);
        let unchanged = (Arc::clone(&self.state), Arc::clone(&self.json));
        let settings = Arc::clone(&self.settings);
        let limit = runner.turn_timeout();
        async move {
            let Some(work) = work else {
                let message = "what the turn is about was given up";
                return Err(AgentError::new(codes::FAILED, message));
            };
            let mut call = match &work {
                Work::Method(_, call) => {
                    let calls = &client.0.shared.calls;
                    Some((call.call_id, calls.begin(call.call_id, call.caller.id)))
                }
                _ => None,
            };
            let run =
                Arc::clone(&runner).run(work, client.clone(), Arc::clone(&unchanged.0), settings);
            let run = AssertUnwindSafe(run).catch_unwind();
            kill::point("handler.before");
            let run = tokio::time::timeout(limit, run);
            let result = tokio::select! {
                biased;
                () = cancelled(&mut call) => Err(AgentError::new(
                    codes::CANCELLED,
                    "the caller cancelled the call",
                )),
                result = run => match result {
                    Ok(Ok(result)) => result,
                    Ok(Err(panic)) => Err(panicked(&*panic)),
                    Err(_) => Err(AgentError::new(
                        codes::TIMEOUT,
                        format!("the turn took longer than {limit:?}"),
                    )),
                },
            };
            kill::point("handler.after");
            let result = result.and_then(|output| {
                // A transaction that SQLite rolled back must not commit as half a turn.
                client.0.check_tables()?;
                if *output.json != *unchanged.1 {
                    runner.check(&output.json)?;
                }
                Ok(output)
            });
            let Some((call_id, _)) = call else {
                return result;
            };
            // A method's error is its answer.
            let (output, answer) = match result {
                Ok(output) => {
                    let answer = output.answer.clone();
                    (output, Ok(answer))
                }
                Err(error) => {
                    client.0.give_up();
                    let output = Output {
                        state: unchanged.0,
                        json: unchanged.1.to_string(),
                        settings: None,
                        answer: None,
                    };
                    (output, Err(error))
                }
            };
            client.0.answer(method_result(call_id, answer));
            Ok(output)
        }
    }

    pub(super) fn handled(
        &mut self,
        turn: TurnId,
        attempt: u32,
        result: Result<Output, AgentError>,
        was_cancelled: bool,
    ) -> Option<StopReason> {
        let running = self
            .running
            .get_mut(&turn)
            .filter(|running| running.attempt == attempt)?;
        let told = told(&result, was_cancelled);
        match result {
            Ok(mut output) => {
                // Operations of the handler's leftover tasks are refused from here.
                running.changes = running.client.0.end();
                output.change_settings(running.changes.settings.take());
                running.output = Some(output);
            }
            Err(error) => {
                let outcome = match was_cancelled {
                    true => Attempt::Cancelled,
                    false => Attempt::Failed,
                };
                self.counts.attempt(outcome, running.began.elapsed());
                running.client.0.give_up();
                let span = std::mem::replace(&mut running.span, Span::none());
                span.record("a99.outcome", outcome.name());
                trace::fail(&span, error.code());
                self.suspect = None;
                self.status.send_modify(|status| {
                    status.failed += 1;
                    status.last_error = Some(error.clone());
                });
                self.warn(&error, "a turn failed");
            }
        }
        self.input(Input::Ended(turn, attempt, told))
    }

    pub(super) fn commit(
        &mut self,
        turn: TurnId,
        trigger: &Trigger,
        end: TurnEnd,
        progress: Option<Progress>,
    ) {
        let earlier = self
            .running
            .get_mut(&turn)
            .and_then(|running| running.commit.take());
        if let (Some(running), TurnEnd::Dead { .. } | TurnEnd::Lost) =
            (self.running.get(&turn), &end)
        {
            running.client.0.abandon_tables();
        }
        let is_held = earlier.is_none() && self.may_hold(turn, trigger, &end);
        let commit = match earlier {
            // A commit that was prepared and could not be written.
            Some(mut commit) => {
                commit.progress = progress;
                commit
            }
            None => Box::new(self.prepare(turn, trigger, end, progress)),
        };
        if is_held {
            self.hold(turn, *commit);
            return;
        }
        let (shared, about) = (Arc::clone(&self.shared), trigger.clone());
        let mut settings = None;
        if let Some(running) = self.running.get_mut(&turn) {
            running.commit = Some(commit.clone());
            let output = running.output.as_ref().filter(|_| commit.dead.is_none());
            settings = output.and_then(|output| output.settings.clone());
        }
        self.work.push(Box::pin(async move {
            kill::point("commit.before");
            let written = write(&shared, *commit, settings.as_ref()).await;
            kill::point("commit.after");
            Happened::Committed(turn, about, written)
        }));
    }

    fn prepare(
        &mut self,
        turn: TurnId,
        trigger: &Trigger,
        end: TurnEnd,
        progress: Option<Progress>,
    ) -> TurnCommit {
        let now = self.shared.now();
        let mut commit = TurnCommit::new(self.fence.clone(), now);
        commit.trigger = Some(trigger.clone());
        commit.progress = progress;
        if let Some(Subject::Timer(row)) = self.subjects.get(trigger)
            && let Some(cron) = &row.cron
        {
            // Missed occurrences are skipped.
            commit.again = crate::cron::next(cron, row.zone.as_deref(), now.max(row.due)).ok();
        }
        // Earlier turns of the group may have become durable since it began.
        let kept = self.group_commit.is_on().then_some(self.revision);
        let running = self.running.get_mut(&turn);
        match end {
            TurnEnd::Done => {
                let Some(running) = running else {
                    return commit;
                };
                let changes = std::mem::take(&mut running.changes);
                (commit.outbox, commit.timers) = (changes.outbox, changes.timers);
                commit.tables = running.client.0.tables_id();
                let Some(output) = &running.output else {
                    return commit;
                };
                // Compare with the state at the beginning: commits by others since then are not
                // this turn's changes, and two turns that change the state alike still
                // conflict.
                let version = self.runner.version();
                let revision = kept.unwrap_or(running.revision);
                commit.state = changed(output, &running.base, version, revision);
                let client = &running.client.0;
                commit.kept = client.kept((&running.base, revision), &commit, changes.at_once);
            }
            TurnEnd::Dead {
                code,
                mut error,
                attempts,
            } => {
                if let Some(why) = self.refusals.remove(&turn) {
                    error = format!("{error}: {why}");
                }
                commit.outbox = self.failure(trigger, &code, &error).into_iter().collect();
                commit.dead = Some(DeadLetter {
                    trigger: trigger.clone(),
                    code,
                    error,
                    attempts,
                    at: now,
                });
                if let Some(running) = self.running.get(&turn) {
                    let began = (&running.base, kept.unwrap_or(running.revision));
                    commit.kept = running.client.0.kept(began, &commit, Vec::new());
                }
            }
            TurnEnd::Lost => commit.dead = lost_letter(trigger, now),
        }
        commit
    }

    /// The event that announces that a turn was given up.
    fn failure(&self, trigger: &Trigger, code: &str, error: &str) -> Option<NewEvent> {
        let Some(Subject::Event(event)) = self.subjects.get(trigger) else {
            return None;
        };
        let id = match &event.body {
            Body::Message(message) => message.id,
            _ => event.id,
        };
        let key = &self.fence.key;
        let body = Body::Error {
            id,
            error: error.to_owned(),
            code: Some(code.to_owned()),
        };
        let (sender, hops) = (Arc::clone(&self.sender), event.hops.saturating_add(1));
        let told = trigger.replayed(key, self.replays, "dead");
        Some(NewEvent::new(key.channel(), told, sender, hops, body))
    }

    pub(super) fn committed(
        &mut self,
        turn: TurnId,
        trigger: &Trigger,
        result: Result<Receipt, StoreError>,
    ) -> Option<StopReason> {
        match result {
            Ok(receipt) => {
                self.suspect = None;
                self.group_commit.committed();
                if let Some(running) = self.running.remove(&turn) {
                    self.count(&running);
                    self.forget(&running.trigger);
                    self.keep(running, &receipt);
                } else {
                    // It was given up without having run.
                    self.forget(trigger);
                    self.timers_changed.notify_one();
                }
                self.shared.hub().tell(&receipt.appended);
                kill::point("commit.told");
                let stop = self.input(Input::Committed(turn));
                self.show();
                stop
            }
            Err(error) => {
                let code = error.code().name();
                let fault = self.not_written(turn, error, "a turn");
                if matches!(fault, CommitFault::Conflict | CommitFault::Refused)
                    && let Some(running) = self.running.get_mut(&turn)
                {
                    // The handler runs again, or the turn is given up.
                    running.commit = None;
                    trace::fail(&running.span, code);
                    running.span = Span::none();
                    running.client.0.abandon_tables();
                }
                self.input(Input::NotCommitted(turn, fault))
            }
        }
    }

    /// Counts a committed turn.
    fn count(&self, running: &Running) {
        match &running.commit {
            Some(commit) if commit.dead.is_some() => self.counts.dead_letters.inc(),
            _ => {
                running.span.record("a99.outcome", Attempt::Done.name());
                let took = running.began.elapsed();
                self.counts.attempt(Attempt::Done, took);
            }
        }
    }

    /// Applies a committed turn to the agent.
    pub(super) fn keep(&mut self, running: Running, receipt: &Receipt) {
        let Some(commit) = running.commit else { return };
        if !commit.timers.is_empty() || commit.again.is_some() {
            self.timers_changed.notify_one();
        }
        self.status.send_modify(|status| status.turns += 1);
        let is_kept = commit.dead.is_none() && !receipt.is_gone;
        let (Some(output), true) = (running.output, is_kept) else {
            return;
        };
        if commit.state.is_some() {
            self.revision = receipt.revision;
            self.take_state(output.state, output.json);
            self.tell_state();
        }
        if let Some(changed) = output.settings {
            self.saved_settings = deep_merge(&self.saved_settings, &changed);
            self.settle_settings();
        }
    }

    /// Calls the listeners of the state after a commit.
    pub(super) fn tell_state(&mut self) {
        let before = std::mem::replace(&mut self.committed, Arc::clone(&self.json));
        let (shared, key) = (&self.shared, &self.fence.key);
        shared.states.tell(key, &before, &self.json, &shared.log);
    }

    /// Sets the agent's state.
    pub(super) fn take_state(&mut self, state: AnyState, json: String) {
        (self.state, self.json) = (state, json.into());
        let (bytes, most) = (self.json.len(), self.shared.options.warn_state_bytes);
        if bytes > most {
            let message =
                format!("the state has {bytes} bytes: each turn that changes it writes them all");
            let key = Some(&self.fence.key);
            self.shared
                .log
                .say(crate::log::LogLevel::Warn, key, "state.large", &message);
        }
    }
}
