//! Activation: an awake agent. It reads its channel, executes the commands of the delivery
//! state machine, and reports their results to it.

mod alarm;
mod faults;
mod filter;
mod group_commit;
mod hook;
mod load;
pub(crate) mod turns;

pub(crate) use group_commit::Kept;
pub(crate) use load::Loading;

use crate::agent::Identity;
use crate::error::AgentError;
use crate::hub::{Ephemeral, Reader};
use crate::kill;
use crate::metrics::OfAgent;
use crate::runner::{AnyState, Output, Runner, Work};
use crate::shared::Shared;
use crate::turn::{Changes, TurnClient};
use a99_runtime_engine::{
    Command, CommitFault, Delivery, Event, Fence, Input, Machine, Millis, Receipt, Sender, Seq,
    StopReason, StoreError, TimerRow, Trigger, TurnCommit, TurnId, TurnResult, deep_merge_into,
};
use a99_runtime_engine::{EventKind, EventOptions, Progress};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;

/// Messages to an awake agent.
#[derive(Debug)]
pub(crate) enum Signal {
    /// One of its timers is due.
    Timer(TimerRow),
    /// A user changed these members of its settings.
    Settings(Value),
    /// Sleep once the running turns have ended.
    Drain,
    /// Cancel the running turns.
    Halt,
    /// Another host has the agent's shard: stop at once.
    Lost,
}

/// The end of an activation.
#[derive(Debug)]
pub(crate) enum Ended {
    Asleep {
        /// The last sequence number that was read.
        cursor: Seq,
    },
    /// It stopped without being asked to.
    Stopped(StopReason),
    /// It cannot start: its state, its hooks or the store prevent it.
    Failed(AgentError),
}

/// The published status of an activation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) checkpoint: Seq,
    /// Processed events after the checkpoint.
    pub(crate) done: BTreeSet<Seq>,
    pub(crate) state: Option<Arc<str>>,
    /// Whether the start hooks have run.
    pub(crate) is_up: bool,
    pub(crate) turns: u64,
    pub(crate) failed: u64,
    /// Events dropped because they passed through too many agents.
    pub(crate) hop_limited: u64,
    pub(crate) last_error: Option<AgentError>,
    /// A group commit failed: turns commit one by one.
    pub(crate) commit_alone: bool,
}

/// A turn that is not committed yet.
struct Running {
    trigger: Trigger,
    attempt: u32,
    began: Instant,
    client: TurnClient,
    /// The span of the attempt, until it has failed or is committed.
    span: tracing::Span,
    /// The state at its beginning, and that state's revision.
    base: Arc<str>,
    revision: u64,
    cancel: Option<oneshot::Sender<()>>,
    /// The handler's output.
    output: Option<Output>,
    /// Further changes to commit with it.
    changes: Changes,
    /// A prepared commit, kept for a retry.
    commit: Option<Box<TurnCommit>>,
}

/// The cause of a turn, kept until the turn is committed.
enum Subject {
    Event(Arc<Event>),
    Timer(TimerRow),
    Hook(fn() -> Work),
}

enum Happened {
    /// The result of recording a start. The permit is the host's crash isolation.
    Recorded(TurnId, Option<OwnedSemaphorePermit>, Result<(), StoreError>),
    Handled(TurnId, u32, Result<Output, AgentError>, bool),
    Committed(TurnId, Trigger, Result<Receipt, StoreError>),
    /// The commit of a turn joined the group commit.
    Held(TurnId),
    Saved(Result<Receipt, StoreError>),
    /// A timer that is due, and whether the store still has it.
    Due(TimerRow, bool),
}

type Pending = Pin<Box<dyn Future<Output = Happened> + Send>>;

pub(crate) struct Activation {
    shared: Arc<Shared>,
    identity: Arc<Identity>,
    runner: Arc<dyn Runner>,
    sender: Arc<Sender>,
    fence: Fence,
    delivery: Delivery,
    filter: EventOptions,
    machine: Machine,
    state: AnyState,
    json: Arc<str>,
    /// The state of the last commit.
    committed: Arc<str>,
    revision: u64,
    replays: u64,
    /// The effective settings, and the users' changes.
    settings: Arc<Value>,
    saved_settings: Value,
    reader: Reader,
    passing: Option<broadcast::Receiver<Ephemeral>>,
    /// The last event that was read.
    cursor: Seq,
    /// Events up to this one were in the log before the agent woke.
    replay_until: Seq,
    subjects: HashMap<Trigger, Subject>,
    /// Subjects that are not logged events, and their limit.
    unlogged: usize,
    max_loose: usize,
    running: BTreeMap<TurnId, Running>,
    /// Why the store refused turns that will be given up, or their starts.
    refusals: BTreeMap<TurnId, String>,
    work: FuturesUnordered<Pending>,
    /// When the machine gets its next time input: by the clock, and at the latest.
    wake_at: Option<(Millis, Instant)>,
    signals: mpsc::UnboundedReceiver<Signal>,
    status: watch::Sender<Status>,
    timers_changed: Arc<tokio::sync::Notify>,
    /// The crash isolation permit of a turn that crashed the process before, and the sender
    /// whose drop ends the wait for one.
    suspect: Option<OwnedSemaphorePermit>,
    cancel_isolation: Option<oneshot::Sender<()>>,
    /// Whether the agent declares tables.
    has_tables: bool,
    group_commit: group_commit::GroupCommit,
    counts: Arc<OfAgent>,
    is_draining: bool,
    /// True once all senders of signals are gone.
    is_disconnected: bool,
}

impl Activation {
    /// Runs until the agent sleeps or stops.
    pub(crate) async fn live(mut self, first: Vec<Command>) -> Ended {
        self.status.send_modify(|status| status.is_up = true);
        let mut stop = self.execute(first);
        let mut idle_since = Instant::now();
        loop {
            if let Some(reason) = stop {
                return self.stopped(reason).await;
            }
            if self.group_commit.is_due() {
                stop = self.settle().await;
                // A group commit can loop without pending: give other tasks a turn.
                tokio::task::yield_now().await;
                continue;
            }
            if let Some(happened) = self.group_commit.happened.pop_front() {
                stop = self.take(happened);
                continue;
            }
            match self.read_on().await {
                Ok(None) => {}
                Ok(reason) => {
                    stop = reason;
                    continue;
                }
                Err(error) => return Ended::Failed(error.into()),
            }
            let idle =
                self.machine.is_idle() && self.work.is_empty() && self.group_commit.is_empty();
            // Filtered events are processed at once but stored later.
            if idle && self.machine.progress().checkpoint != self.status.borrow().checkpoint {
                self.show();
            }
            if self.is_active() {
                idle_since = Instant::now();
            }
            let alarm = self.alarm();
            let sleep =
                (idle && !self.is_draining).then(|| idle_since + self.shared.options.idle_debounce);
            let has_room = self.machine.room() > 0 && !self.is_draining;
            let reads_on = self.machine.wants() > 0 && !self.is_draining;
            tokio::select! {
                Some(happened) = self.work.next() => stop = self.take(happened),
                signal = self.signals.recv(), if !self.is_disconnected => match signal {
                    Some(signal) => stop = self.on_signal(signal),
                    None => {
                        self.is_disconnected = true;
                        stop = self.on_signal(Signal::Drain);
                    }
                },
                () = self.reader.changed(), if reads_on => {}
                event = next_ephemeral(&mut self.passing), if has_room && self.has_loose_room() => {
                    if let Some(event) = event {
                        stop = self.pass(event);
                    }
                }
                () = after(alarm) => {
                    self.wake_at = None;
                    stop = self.input(Input::Time);
                }
                () = at(sleep) => stop = self.on_signal(Signal::Drain),
                // Keeps signals served while turns follow each other without a pause.
                () = ready(()), if !self.group_commit.is_empty() => {}
            }
        }
    }

    /// Ends the activation: runs the last hook if it drained.
    async fn stopped(mut self, reason: StopReason) -> Ended {
        for running in self.running.values_mut() {
            running.client.0.give_up();
        }
        if reason != StopReason::Drained {
            return Ended::Stopped(reason);
        }
        kill::point("sleep.before");
        match self.hook(Work::Sleep).await {
            Ok(()) => {}
            Err(error) => self.warn(&error, "on_sleep failed"),
        }
        kill::point("sleep.after");
        Ended::Asleep {
            cursor: self.cursor,
        }
    }

    fn warn(&self, error: &AgentError, what: &str) {
        let message = format!("{what}: {error}");
        let key = Some(&self.fence.key);
        self.shared
            .log
            .say(crate::log::LogLevel::Warn, key, error.code(), &message);
    }

    fn input(&mut self, input: Input) -> Option<StopReason> {
        let commands = self.machine.handle(self.shared.now(), input);
        self.execute(commands)
    }

    fn on_signal(&mut self, signal: Signal) -> Option<StopReason> {
        match signal {
            Signal::Timer(row) => {
                let trigger = Trigger::Timer(row.name.clone(), row.due);
                if self.subjects.contains_key(&trigger) {
                    return None;
                }
                // The sender may have read the timer before it was removed.
                let agents = Arc::clone(self.shared.agents());
                let key = self.fence.key.clone();
                self.work.push(Box::pin(async move {
                    let kept = agents.timers(&key).await;
                    let is_there = kept.is_ok_and(|kept| kept.contains(&row));
                    Happened::Due(row, is_there)
                }));
                None
            }
            Signal::Settings(partial) => {
                deep_merge_into(&mut self.saved_settings, &partial);
                self.settle_settings();
                let trigger = Trigger::Once(self.shared.fresh());
                self.trigger(trigger, Subject::Hook(|| Work::SettingsChanged))
            }
            Signal::Drain => {
                self.is_draining = true;
                self.cancel_isolation = None;
                self.input(Input::Drain)
            }
            Signal::Halt => {
                self.is_draining = true;
                self.cancel_isolation = None;
                self.input(Input::Halt)
            }
            Signal::Lost => Some(StopReason::Fenced),
        }
    }

    /// Reads the log while the machine has room.
    async fn read_on(&mut self) -> Result<Option<StopReason>, StoreError> {
        while !self.is_draining {
            let room = self.machine.wants();
            if room == 0 || self.cursor >= self.reader.look() {
                break;
            }
            let name = self.fence.key.channel().to_owned();
            let hub = Arc::clone(self.shared.hub());
            let events = hub
                .read(&name, &self.reader.channel, self.cursor, room)
                .await?;
            if events.is_empty() {
                break;
            }
            // A settings change made before an event was published takes effect first.
            while let Ok(signal) = self.signals.try_recv() {
                if let Some(reason) = self.on_signal(signal) {
                    return Ok(Some(reason));
                }
            }
            if self.is_draining {
                break;
            }
            for event in events {
                if let Some(reason) = self.read(event) {
                    return Ok(Some(reason));
                }
            }
        }
        Ok(None)
    }

    fn read(&mut self, event: Arc<Event>) -> Option<StopReason> {
        let seq = event.seq?;
        self.cursor = seq;
        let event = match seq <= self.replay_until {
            true => Arc::new(Event {
                kind: EventKind::Replay,
                ..Event::clone(&event)
            }),
            false => event,
        };
        let deliver = !self.machine.progress().has(seq) && self.wants(&event);
        if deliver {
            self.subjects
                .insert(Trigger::Event(seq), Subject::Event(event));
        }
        self.input(Input::Event { seq, deliver })
    }

    /// Takes an ephemeral event.
    fn pass(&mut self, event: Arc<Event>) -> Option<StopReason> {
        if !self.wants(&event) {
            return None;
        }
        let trigger = Trigger::Once(self.shared.fresh());
        self.trigger(trigger, Subject::Event(event))
    }

    /// Whether another unlogged subject may wait. The limit is the machine's: it never refuses
    /// what starts here.
    fn has_loose_room(&self) -> bool {
        self.unlogged < self.max_loose
    }

    /// Begins a turn without a logged event, unless there are too many.
    fn trigger(&mut self, trigger: Trigger, subject: Subject) -> Option<StopReason> {
        if !self.has_loose_room() || self.is_draining {
            return None;
        }
        if self.subjects.insert(trigger.clone(), subject).is_none() {
            self.unlogged += 1;
        }
        self.input(Input::Trigger(trigger))
    }

    /// Drops the subject of a turn.
    fn forget(&mut self, trigger: &Trigger) {
        if self.subjects.remove(trigger).is_some() && trigger.seq().is_none() {
            self.unlogged -= 1;
        }
    }

    /// Finds the timers of interrupted turns, so that recurring ones continue.
    async fn remember_timers(&mut self, lost: &[Trigger]) -> Result<(), StoreError> {
        if !lost.iter().any(|lost| matches!(lost, Trigger::Timer(..))) {
            return Ok(());
        }
        for row in self.shared.agents().timers(&self.fence.key).await? {
            let trigger = Trigger::Timer(row.name.clone(), row.due);
            if lost.contains(&trigger)
                && self.subjects.insert(trigger, Subject::Timer(row)).is_none()
            {
                self.unlogged += 1;
            }
        }
        Ok(())
    }

    /// Executes the machine's commands.
    fn execute(&mut self, commands: impl Into<VecDeque<Command>>) -> Option<StopReason> {
        let mut queue = commands.into();
        while let Some(command) = queue.pop_front() {
            if self.waits(&command) {
                self.put_off(std::iter::once(command).chain(queue));
                return None;
            }
            match command {
                Command::Record {
                    turn,
                    trigger,
                    attempt,
                    progress,
                } => self.record(turn, trigger, attempt, progress),
                Command::Run {
                    turn,
                    trigger,
                    attempt,
                } => self.run(turn, trigger, attempt),
                Command::Cancel(turn) => {
                    let running = self.running.get_mut(&turn);
                    if let Some(cancel) = running.and_then(|running| running.cancel.take()) {
                        // The handler may have ended already.
                        let _ = cancel.send(());
                    }
                }
                Command::Commit {
                    turn,
                    trigger,
                    end,
                    progress,
                } => self.commit(turn, &trigger, end, progress),
                Command::Save(progress) => self.save(progress),
                Command::WakeAt(at) => self.wake_at = Some((at, Instant::now() + self.left(at))),
                // The `on_lost` hook handled them at waking.
                Command::Lost(_) => {}
                Command::Stop(reason) => return Some(reason),
            }
        }
        None
    }

    fn save(&mut self, progress: Progress) {
        let mut commit = TurnCommit::new(self.fence.clone(), self.shared.now());
        commit.progress = Some(progress);
        let agents = Arc::clone(self.shared.agents());
        self.work.push(Box::pin(async move {
            kill::point("save.before");
            let saved = agents.commit(commit).await;
            kill::point("save.after");
            Happened::Saved(saved)
        }));
    }

    fn take(&mut self, happened: Happened) -> Option<StopReason> {
        match happened {
            Happened::Recorded(turn, suspect, recorded) => {
                self.cancel_isolation = None;
                self.suspect = self.suspect.take().or(suspect);
                match recorded {
                    Ok(()) => self.input(Input::Recorded(turn)),
                    Err(error) => {
                        let fault = match faults::fault(&error) {
                            // The next waking retries it.
                            CommitFault::Unavailable if self.is_draining => {
                                CommitFault::Unavailable
                            }
                            _ => self.not_written(turn, error, "the start of a turn"),
                        };
                        self.input(Input::NotRecorded(turn, fault))
                    }
                }
            }
            Happened::Handled(turn, attempt, result, was_cancelled) => {
                self.handled(turn, attempt, result, was_cancelled)
            }
            Happened::Committed(turn, trigger, result) => self.committed(turn, &trigger, result),
            Happened::Held(turn) => self.input(Input::Committed(turn)),
            Happened::Saved(Ok(_)) => {
                self.show();
                self.input(Input::Saved)
            }
            Happened::Due(row, is_there) => {
                kill::point("timer.due");
                let trigger = Trigger::Timer(row.name.clone(), row.due);
                if !is_there || self.subjects.contains_key(&trigger) {
                    return None;
                }
                self.trigger(trigger, Subject::Timer(row))
            }
            Happened::Saved(Err(error)) => self.input(Input::NotSaved(faults::fault(&error))),
        }
    }

    /// Publishes the status.
    fn show(&self) {
        let progress = self.machine.progress();
        self.status.send_modify(|status| {
            status.checkpoint = progress.checkpoint;
            status.done.clone_from(&progress.done);
            status.state = Some(Arc::clone(&self.json));
        });
    }
}

async fn next_ephemeral(from: &mut Option<broadcast::Receiver<Ephemeral>>) -> Option<Arc<Event>> {
    match from {
        // A slow agent may miss ephemeral events.
        Some(from) => match from.recv().await {
            Ok(passing) => Some(passing.event),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => pending().await,
        },
        None => pending().await,
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => pending().await,
    }
}

/// Maps a handler's result to the machine's input.
fn told(result: &Result<Output, AgentError>, was_cancelled: bool) -> TurnResult {
    match result {
        Ok(_) => TurnResult::Done,
        Err(_) if was_cancelled => TurnResult::Cancelled,
        Err(error) => TurnResult::Failed {
            code: error.code().to_owned(),
            error: error.to_string(),
            is_final: error.is_final(),
        },
    }
}
