//! Event loop of a guest's thread: guest steps, messages of callers, reports of the agent,
//! deadlines, limits, and sleep.

use super::command::{CommandState, QueuedScript};
use super::error::{VmCode, VmError};
use super::frozen::Frozen;
use super::guest::{Guest, Next};
use super::guest_time::GuestTime;
use super::handle::random_id;
use super::instance::Linked;
use super::ledger::Ledger;
use super::mailbox::{Event, FrozenSlot, Mailbox, Message, SpawnRequest, stopped};
use super::watchdog::Watchdog;
use a99_sandbox_protocol::{Ending, Exited, Report, Request, Stream, WINDOW_BYTES};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit for a guest's start: a thousand times its usual duration.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that the caller of an expired command waits for its processes to end, to learn how
/// they did. On an idle host they end in milliseconds. After that the error goes out
/// without it.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// Guest time in which a killed command must end: a hundred times the time that five
/// hundred processes take. A guest that fails to end it is unusable.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Signal by which killed commands end.
const SIGKILL: u8 = 9;

/// Bytes that a killed command may still write: more than pipes hold.
const KILLED_CREDIT_BYTES: u32 = 1 << 30;

/// Bytes read before each acknowledgement to the guest: a quarter of the window, so that
/// acknowledgements are few and the guest never waits.
pub const CREDIT_BYTES: u32 = WINDOW_BYTES / 4;

/// Steps within which a guest must come to rest to be frozen.
const FREEZE_STEPS: u32 = 2_000;

/// Limits of a guest's lifetime.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Maximum time from start to end.
    pub time: Option<Duration>,
    /// Maximum instructions.
    pub instructions: Option<u64>,
}

/// Base of saved guests: the image's module and name.
#[derive(Clone, Debug)]
pub(super) struct Base {
    pub linked: Linked,
    pub name: String,
}

/// State of the loop apart from the guest.
struct EventLoop {
    mailbox: Arc<Mailbox>,
    base: Base,
    commands: HashMap<u64, CommandState>,
    /// The script that runs in the session shell, and the queued ones.
    script: Option<u64>,
    scripts: VecDeque<QueuedScript>,
    /// Deadline of the guest's start.
    start_deadline: Option<Instant>,
    /// Callers who await a frozen guest, each with the steps until that fails.
    freezing: Vec<(FrozenSlot, u32)>,
    /// Deadline of a requested shutdown.
    shutdown_deadline: Option<Instant>,
    /// Ids of the shutdown requests.
    shutdown_ids: Vec<u64>,
    is_drained: bool,
    /// Deadline of the guest's lifetime, and its limits.
    life_deadline: Option<Instant>,
    bounds: Bounds,
    /// Instructions before the first step.
    retired_before: Option<u64>,
    /// Time that the guest had.
    guest_time: GuestTime,
    watchdog: Watchdog,
}

/// Runs a guest until it ends or is stopped.
pub(super) fn run(guest: Guest, mailbox: Arc<Mailbox>, base: Base, bounds: Bounds) {
    let mut event_loop = EventLoop {
        mailbox: Arc::clone(&mailbox),
        base,
        commands: HashMap::new(),
        script: None,
        scripts: VecDeque::new(),
        start_deadline: Some(Instant::now() + START_TIMEOUT),
        freezing: Vec::new(),
        shutdown_deadline: None,
        shutdown_ids: Vec::new(),
        is_drained: false,
        life_deadline: bounds
            .time
            .and_then(|time| Instant::now().checked_add(time)),
        bounds,
        retired_before: None,
        guest_time: GuestTime::new(),
        watchdog: Watchdog::default(),
    };
    let mut guest = guest;
    let ended = loop {
        if let Err(error) = event_loop.step(&mut guest) {
            break error;
        }
    };
    // Free the memory before reporting the end.
    drop(guest);
    event_loop.finish(&ended);
}

/// Reports to all callers that a guest could not be created.
pub(super) fn fail(mailbox: &Mailbox, error: &VmError) {
    for message in mailbox.close(error) {
        refuse(message, error);
    }
    mailbox.status.change(|status| status.gone = true);
}

/// Answers a message that came too late.
pub fn refuse(message: Message, error: &VmError) {
    match message {
        Message::Spawn(mut spawn) => (spawn.sink)(Event::Failed(error.clone())),
        Message::Freeze(slot) => slot.change(|slot| *slot = Some(Err(error.clone()))),
        Message::Send(..) | Message::Cancel(_) | Message::Shutdown(_) | Message::Stop => {}
    }
}

impl EventLoop {
    fn step(&mut self, guest: &mut Guest) -> Result<(), VmError> {
        for message in self.mailbox.collect(guest.retired()) {
            self.handle_message(guest, message)?;
        }
        self.guest_time.update();
        self.check_deadlines(guest, Instant::now())?;
        self.check_watchdog(guest)?;
        let mut failed = None;
        let next = guest.step(|guest, id, report| {
            // Reports after a protocol violation mean nothing.
            if failed.is_none() {
                failed = self.on_report(guest, id, report).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if self.is_drained {
            return Err(stopped());
        }
        self.check_instructions(guest)?;
        if !self.freezing.is_empty() {
            self.freeze(guest);
        } else if let Next::Wait(until) = next {
            self.park(guest, until);
        }
        Ok(())
    }

    fn handle_message(&mut self, guest: &mut Guest, message: Message) -> Result<(), VmError> {
        match message {
            Message::Spawn(spawn) => self.spawn(guest, spawn),
            Message::Send(id, request) => {
                if let Some(command) = self.commands.get_mut(&id) {
                    match &request {
                        Request::Stdin(bytes) => command.ledger.send(bytes.len()),
                        Request::Credit(stream, bytes) => command.ledger.grant(*stream, *bytes),
                        _ => {}
                    }
                    guest.request(id, &request);
                }
            }
            Message::Cancel(id) => {
                let failure = VmError::new(VmCode::Cancelled, "the command was cancelled");
                self.kill(guest, id, failure);
            }
            Message::Freeze(slot) => self.freezing.push((slot, FREEZE_STEPS)),
            // The difference is invisible from outside.
            Message::Shutdown(_) if guest.is_alone() => return Err(stopped()),
            Message::Shutdown(deadline) => {
                self.shutdown_deadline = Some(deadline);
                let id = random_id()?;
                self.shutdown_ids.push(id);
                guest.request(id, &Request::Drain);
            }
            Message::Stop => return Err(stopped()),
        }
        Ok(())
    }

    /// Ends everything that is past its deadline.
    fn check_deadlines(&mut self, guest: &mut Guest, now: Instant) -> Result<(), VmError> {
        if self
            .shutdown_deadline
            .is_some_and(|deadline| deadline <= now)
        {
            return Err(stopped());
        }
        if self.start_deadline.is_some_and(|deadline| deadline <= now) {
            let text = "the guest did not get ready";
            return Err(VmError::new(VmCode::NotReady, text));
        }
        if self.life_deadline.is_some_and(|deadline| deadline <= now) {
            let text = format!(
                "the sandbox lived longer than {:?}",
                self.bounds.time.unwrap_or_default()
            );
            return Err(VmError::new(VmCode::TimeLimit, text));
        }
        let is_over =
            |command: &CommandState| command.deadline.is_some_and(|deadline| deadline <= now);
        let running = self.commands.iter().filter(|(_, command)| is_over(command));
        let waiting = self
            .scripts
            .iter()
            .filter(|queued| is_over(&queued.command));
        let ids: Vec<u64> = running
            .map(|(id, _)| *id)
            .chain(waiting.map(|queued| queued.id))
            .collect();
        for id in ids {
            self.on_deadline(guest, id);
        }
        self.check_killed()
    }

    /// Kills a command past its deadline. The second call reports its end before it has
    /// ended.
    fn on_deadline(&mut self, guest: &mut Guest, id: u64) {
        if let Some(command) = self.commands.get_mut(&id)
            && let Some(failure) = command.failure.clone()
        {
            // The killed command can only end this way.
            let exited = Exited {
                ending: Ending::Signal(SIGKILL),
                session_reset: self.script == Some(id),
                ..Exited::default()
            };
            command.emit(Event::Failed(failure.with_end(exited)));
            command.sink = None;
            command.deadline = None;
            return;
        }
        let command = self.commands.get(&id).or_else(|| {
            let mut scripts = self.scripts.iter();
            scripts.find_map(|queued| (queued.id == id).then_some(&queued.command))
        });
        let limit = command
            .and_then(|command| command.timeout)
            .unwrap_or_default();
        let text = format!("the command ran longer than {limit:?}");
        self.kill(guest, id, VmError::new(VmCode::TimedOut, text));
    }

    /// Ends the guest if a killed command does not end in time.
    fn check_killed(&self) -> Result<(), VmError> {
        let now = self.guest_time.elapsed();
        let over = |command: &CommandState| {
            let killed = command.killed;
            killed.is_some_and(|killed| now.saturating_sub(killed) > KILL_TIMEOUT)
        };
        if self.commands.values().any(over) {
            let text = "a command was killed and does not end";
            return Err(VmError::new(VmCode::Unresponsive, text));
        }
        Ok(())
    }

    /// Whether a caller waits for the agent.
    fn is_awaited(&self, guest: &Guest) -> bool {
        let busy = !self.commands.is_empty() || !self.freezing.is_empty();
        busy || self.start_deadline.is_some()
            || self.shutdown_deadline.is_some()
            || guest.backlog() > 0
    }

    /// Pings the agent when a ping is due.
    fn check_watchdog(&mut self, guest: &mut Guest) -> Result<(), VmError> {
        let mut drawn = Ok(0);
        let asked = self
            .watchdog
            .check(self.is_awaited(guest), self.guest_time.elapsed(), || {
                drawn = random_id();
                *drawn.as_ref().unwrap_or(&0)
            })
            .map_err(|error| VmError::new(error.code, error.text + &guest.broken()))?;
        drawn?;
        if let Some(id) = asked {
            guest.request(id, &Request::Ping);
        }
        Ok(())
    }

    fn check_instructions(&mut self, guest: &Guest) -> Result<(), VmError> {
        let before = *self.retired_before.get_or_insert(guest.retired());
        match self.bounds.instructions {
            Some(limit) if guest.retired() - before > limit => {
                let text = format!("the sandbox ran more than {limit} instructions");
                Err(VmError::new(VmCode::CpuLimit, text))
            }
            _ => Ok(()),
        }
    }

    /// Freezes the guest for all who wait for that, if it is at rest.
    fn freeze(&mut self, guest: &mut Guest) {
        let made = guest.freeze(&self.base.linked, &self.base.name);
        match made {
            Ok(None) => {
                for (_, steps) in &mut self.freezing {
                    *steps -= 1;
                }
                let text = "the guest does not come to rest to be frozen";
                let failed = VmError::new(VmCode::NotReady, text);
                self.freezing.retain(|(slot, steps)| {
                    if *steps == 0 {
                        slot.change(|slot| *slot = Some(Err(failed.clone())));
                    }
                    *steps > 0
                });
            }
            Ok(Some(frozen)) => self.frozen(&Ok(frozen)),
            Err(error) => self.frozen(&Err(error)),
        }
    }

    fn frozen(&mut self, result: &Result<Frozen, VmError>) {
        for (slot, _) in self.freezing.drain(..) {
            slot.change(|slot| *slot = Some(result.clone()));
        }
    }

    /// Parks the thread until the guest's wake-up time, a deadline, or a message.
    fn park(&mut self, guest: &Guest, until: Option<u64>) {
        // Requests of the last step, such as credit, need another step.
        if guest.backlog() > 0 {
            return;
        }
        let now = guest.emulator.now_ns();
        let guests = until.map(|until| Duration::from_nanos(until.saturating_sub(now)));
        let deadlines = self
            .commands
            .values()
            .filter_map(|command| command.deadline);
        let queued = self.scripts.iter().filter_map(|q| q.command.deadline);
        let ours = [
            self.start_deadline,
            self.shutdown_deadline,
            self.life_deadline,
        ];
        let nearest = deadlines
            .chain(queued)
            .chain(ours.into_iter().flatten())
            .min();
        let ours = nearest.map(|at| at.saturating_duration_since(Instant::now()));
        // Killed commands are polled.
        let killed = self
            .commands
            .values()
            .any(|command| command.killed.is_some());
        let poll = killed.then_some(KILL_TIMEOUT / 4);
        let watchdog = self.watchdog.poll_interval(self.is_awaited(guest));
        let timeout = [guests, ours, poll, watchdog].into_iter().flatten().min();
        self.guest_time.park(timeout, || self.mailbox.wait(timeout));
    }

    /// Spawns a command; a script waits for those before it.
    fn spawn(&mut self, guest: &mut Guest, spawn: SpawnRequest) {
        let SpawnRequest {
            id,
            request,
            sink,
            eager,
            timeout,
            deadline,
            output_limit,
        } = spawn;
        let command = CommandState {
            sink: Some(sink),
            eager,
            deadline,
            output_limit,
            written: 0,
            unacked: [0; 2],
            ledger: Ledger::default(),
            failure: None,
            killed: None,
            timeout,
        };
        if matches!(request, Request::Script(_)) {
            if self.script.is_some() {
                self.scripts.push_back(QueuedScript {
                    id,
                    request,
                    command,
                });
                return;
            }
            self.script = Some(id);
        }
        guest.request(id, &request);
        self.commands.insert(id, command);
    }

    /// Kills a command and records why; a queued script ends at once.
    fn kill(&mut self, guest: &mut Guest, id: u64, failure: VmError) {
        if let Some(command) = self.commands.get_mut(&id) {
            if command.failure.is_none() {
                guest.request(id, &Request::Kill);
                if !command.eager {
                    // The command ends once the host has all its output, which the caller
                    // no longer reads.
                    for stream in [Stream::Stdout, Stream::Stderr] {
                        command.ledger.grant(stream, KILLED_CREDIT_BYTES);
                        guest.request(id, &Request::Credit(stream, KILLED_CREDIT_BYTES));
                    }
                }
                command.failure = Some(failure);
                command.killed = Some(self.guest_time.elapsed());
                command.deadline = Some(Instant::now() + KILL_GRACE);
            }
        } else if let Some(at) = self.scripts.iter().position(|queued| queued.id == id)
            && let Some(mut queued) = self.scripts.remove(at)
        {
            queued.command.emit(Event::Failed(failure));
        }
    }

    /// Handles a report of the agent. A report about an unknown id does not come from the
    /// agent, unless it was in flight when the guest was saved.
    fn on_report(&mut self, guest: &mut Guest, id: u64, report: Report) -> Result<(), VmError> {
        let asked = match &report {
            Report::Resumed { .. } => self.start_deadline.is_some() && id == guest.resumed_as(),
            Report::Drained => self.shutdown_ids.contains(&id),
            Report::Pong => self.watchdog.on_pong(id, self.guest_time.elapsed()),
            Report::Ready { .. } | Report::Prepared(_) => false,
            _ => self.commands.contains_key(&id),
        };
        if !asked && self.start_deadline.is_some() {
            return Ok(());
        }
        if !asked {
            let text = "the guest's agent broke the protocol: a report that nobody asked for";
            return Err(VmError::new(VmCode::Protocol, text));
        }
        self.watchdog.on_report(self.guest_time.elapsed());
        match report {
            Report::Resumed {
                failure,
                interrupted,
            } => return self.resumed(failure, interrupted),
            Report::Drained => self.is_drained = true,
            Report::Output(stream, bytes) => {
                self.output(guest, id, stream, bytes)?;
            }
            Report::Started(process) => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.ledger.start()?;
                    command.emit(Event::Started(process));
                }
            }
            Report::Credit(bytes) => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.ledger.returned(bytes)?;
                    command.emit(Event::Credit(bytes));
                }
            }
            Report::Exited(exited) => {
                // A caller that sees the end may ask for the instruction count at once.
                self.mailbox.note_retired(guest.retired());
                let failure = self
                    .commands
                    .get_mut(&id)
                    .and_then(|command| command.failure.take());
                let event = failure.map_or(Event::Exited(exited), |failure| {
                    // Add the exit status, for the other details of the end.
                    Event::Failed(failure.with_end(exited))
                });
                self.forward(id, event);
                self.close(guest, id);
            }
            Report::Failed(reason, _, text) => {
                self.forward(id, Event::Failed(VmError::not_started(reason, text)));
                self.close(guest, id);
            }
            Report::Ready { .. } | Report::Prepared(_) | Report::Pong => {}
        }
        Ok(())
    }

    fn resumed(&mut self, failure: Option<String>, interrupted: u32) -> Result<(), VmError> {
        self.start_deadline = None;
        if let Some(text) = failure {
            let text = format!("the guest could not be set up: {text}");
            return Err(VmError::new(VmCode::NotReady, text));
        }
        let status = &self.mailbox.status;
        status.change(|status| status.started = Some(interrupted));
        Ok(())
    }

    fn forward(&mut self, id: u64, event: Event) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.emit(event);
        }
    }

    fn output(
        &mut self,
        guest: &mut Guest,
        id: u64,
        stream: Stream,
        mut bytes: Vec<u8>,
    ) -> Result<(), VmError> {
        let Some(command) = self.commands.get_mut(&id) else {
            return Ok(());
        };
        command.ledger.receive(stream, bytes.len())?;
        let count = bytes.len() as u32;
        if command.eager {
            let unacked = &mut command.unacked[usize::from(stream == Stream::Stderr)];
            *unacked += count;
            if *unacked >= CREDIT_BYTES {
                let credit = std::mem::take(unacked);
                command.ledger.grant(stream, credit);
                guest.request(id, &Request::Credit(stream, credit));
            }
        }
        // A killed command may write until it dies; that output is discarded.
        if command.failure.is_some() {
            return Ok(());
        }
        let limit = command.output_limit.unwrap_or(u64::MAX);
        let room = limit - command.written;
        let over = u64::from(count) > room;
        if over {
            bytes.truncate(room as usize);
        }
        command.written += bytes.len() as u64;
        command.emit(Event::Output(stream, bytes));
        if over {
            let text = format!("the command wrote more than {limit} bytes");
            self.kill(guest, id, VmError::new(VmCode::OutputLimit, text));
        }
        Ok(())
    }

    /// Removes a finished command and starts the next queued script.
    fn close(&mut self, guest: &mut Guest, id: u64) {
        self.commands.remove(&id);
        if self.script != Some(id) {
            return;
        }
        self.script = None;
        if let Some(next) = self.scripts.pop_front() {
            self.script = Some(next.id);
            guest.request(next.id, &next.request);
            self.commands.insert(next.id, next.command);
        }
    }

    /// Reports the guest's end to all callers.
    fn finish(mut self, ended: &VmError) {
        for message in self.mailbox.close(ended) {
            refuse(message, ended);
        }
        self.frozen(&Err(ended.clone()));
        let queued = self.scripts.into_iter().map(|queued| queued.command);
        for mut command in self.commands.into_values().chain(queued) {
            command.emit(Event::Failed(ended.clone()));
        }
        self.mailbox.status.change(|status| status.gone = true);
    }
}
