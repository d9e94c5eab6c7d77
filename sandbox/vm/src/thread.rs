//! The thread of a guest: turns, the requests that wait for it, limits, and
//! sleep.

use super::error::{VmCode, VmError};
use super::guest::{Guest, Next};
use super::handle::random_id;
use super::instance::Linked;
use super::ledger::Ledger;
use super::lived::Lived;
use super::mailbox::{Event, Mailbox, Message, Open, SaveSlot, Sink, stopped};
use super::pulse::Pulse;
use a99_sandbox_protocol::{Ending, Exited, Report, Request, Stream, WINDOW_BYTES};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a guest may take to get ready: a thousand times what it takes.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long who waits for a command that is over its time waits for the end of
/// its processes, for what that tells: they end in milliseconds on a host that
/// is not busy. Then the answer goes without.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// How much of the guest's own time a killed command may take to end: a hundred
/// times what five hundred processes take. A guest that does not end it is of no
/// more use.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// The signal that killed commands end by.
const SIGKILL: u8 = 9;

/// Bytes that a killed command may still write: more than pipes hold.
const REST_BYTES: u32 = 1 << 30;

/// Bytes that were read for each word to the guest about it: a quarter of the
/// window, so that it seldom hears of it and never waits.
pub const CREDIT_BYTES: u32 = WINDOW_BYTES / 4;

/// Turns after which a guest that is to be saved has not come to rest.
const SAVE_TURNS: u32 = 2_000;

/// Bounds of a guest's life.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Longest time from start to end.
    pub time: Option<Duration>,
    /// Most instructions.
    pub instructions: Option<u64>,
}

/// What a guest is saved against: the image's module and name.
#[derive(Clone, Debug)]
pub(super) struct Base {
    pub linked: Linked,
    pub name: String,
}

/// A command that is open, or a script that waits for its turn.
struct Opened {
    /// Nobody, once its end was told before it ended.
    sink: Option<Sink>,
    eager: bool,
    deadline: Option<Instant>,
    output_limit: Option<u64>,
    written: u64,
    /// Bytes of standard output and error that the guest was not told are read.
    owed: [u32; 2],
    ledger: Ledger,
    /// Why it was killed.
    failure: Option<VmError>,
    /// When, in the guest's time.
    killed: Option<Duration>,
    timeout: Option<Duration>,
}

impl Opened {
    fn tell(&mut self, event: Event) {
        if let Some(sink) = &mut self.sink {
            sink(event);
        }
    }
}

/// A script that waits for its turn.
struct Queued {
    id: u64,
    request: Request,
    opened: Opened,
}

/// The thread's state besides the guest.
struct Turns {
    mailbox: Arc<Mailbox>,
    base: Base,
    open: HashMap<u64, Opened>,
    /// The script that runs in the session shell, and those after it.
    script: Option<u64>,
    scripts: VecDeque<Queued>,
    /// When it must have started.
    starting: Option<Instant>,
    /// Who waits for it to be saved, and turns until that fails.
    saving: Vec<(SaveSlot, u32)>,
    /// When it ends at the latest, because it was asked to.
    settling: Option<Instant>,
    /// The ids under which it was asked to.
    settlings: Vec<u64>,
    settled: bool,
    /// When it ends at the latest, and how many instructions it may run.
    ends: Option<Instant>,
    bounds: Bounds,
    /// Instructions before its first turn.
    retired_before: Option<u64>,
    /// Time that the guest had.
    lived: Lived,
    pulse: Pulse,
}

/// Runs a guest until it ends or is stopped.
pub(super) fn run(guest: Guest, mailbox: Arc<Mailbox>, base: Base, bounds: Bounds) {
    let mut turns = Turns {
        mailbox: Arc::clone(&mailbox),
        base,
        open: HashMap::new(),
        script: None,
        scripts: VecDeque::new(),
        starting: Some(Instant::now() + START_PATIENCE),
        saving: Vec::new(),
        settling: None,
        settlings: Vec::new(),
        settled: false,
        ends: bounds
            .time
            .and_then(|time| Instant::now().checked_add(time)),
        bounds,
        retired_before: None,
        lived: Lived::new(),
        pulse: Pulse::default(),
    };
    let mut guest = guest;
    let ended = loop {
        if let Err(error) = turns.turn(&mut guest) {
            break error;
        }
    };
    // First the memory, then the word that it is over.
    drop(guest);
    turns.finish(&ended);
}

/// A guest that could not be made: tells everybody.
pub(super) fn fail(mailbox: &Mailbox, error: &VmError) {
    for message in mailbox.close(error) {
        refuse(message, error);
    }
    mailbox.status.change(|status| status.gone = true);
}

/// Answers a message that came too late.
pub fn refuse(message: Message, error: &VmError) {
    match message {
        Message::Open(mut open) => (open.sink)(Event::Failed(error.clone())),
        Message::Save(slot) => slot.change(|slot| *slot = Some(Err(error.clone()))),
        Message::Send(..) | Message::Cancel(_) | Message::Settle(_) | Message::Stop => {}
    }
}

impl Turns {
    fn turn(&mut self, guest: &mut Guest) -> Result<(), VmError> {
        for message in self.mailbox.collect(guest.retired()) {
            self.obey(guest, message)?;
        }
        self.lived.note();
        self.check_deadlines(guest, Instant::now())?;
        self.check_pulse(guest)?;
        let mut failed = None;
        let next = guest.turn(|guest, id, report| {
            // After one that breaks the protocol none means anything.
            if failed.is_none() {
                failed = self.told(guest, id, report).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if self.settled {
            return Err(stopped());
        }
        self.check_instructions(guest)?;
        if !self.saving.is_empty() {
            self.save(guest);
        } else if let Next::Wait(until) = next {
            self.rest(guest, until);
        }
        Ok(())
    }

    fn obey(&mut self, guest: &mut Guest, message: Message) -> Result<(), VmError> {
        match message {
            Message::Open(open) => self.begin(guest, open),
            Message::Send(id, request) => {
                if let Some(opened) = self.open.get_mut(&id) {
                    match &request {
                        Request::Stdin(bytes) => opened.ledger.send(bytes.len()),
                        Request::Credit(stream, bytes) => opened.ledger.grant(*stream, *bytes),
                        _ => {}
                    }
                    guest.request(id, &request);
                }
            }
            Message::Cancel(id) => {
                let failure = VmError::new(VmCode::Cancelled, "the command was cancelled");
                self.give_up(guest, id, failure);
            }
            Message::Save(slot) => self.saving.push((slot, SAVE_TURNS)),
            // Nobody outside would notice a difference.
            Message::Settle(_) if guest.is_alone() => return Err(stopped()),
            Message::Settle(deadline) => {
                self.settling = Some(deadline);
                let id = random_id()?;
                self.settlings.push(id);
                guest.request(id, &Request::Settle);
            }
            Message::Stop => return Err(stopped()),
        }
        Ok(())
    }

    /// Ends what is over time.
    fn check_deadlines(&mut self, guest: &mut Guest, now: Instant) -> Result<(), VmError> {
        if self.settling.is_some_and(|deadline| deadline <= now) {
            return Err(stopped());
        }
        if self.starting.is_some_and(|deadline| deadline <= now) {
            let text = "the guest did not get ready";
            return Err(VmError::new(VmCode::NotReady, text));
        }
        if self.ends.is_some_and(|deadline| deadline <= now) {
            let text = format!(
                "the sandbox lived longer than {:?}",
                self.bounds.time.unwrap_or_default()
            );
            return Err(VmError::new(VmCode::TimeLimit, text));
        }
        let late = |opened: &Opened| opened.deadline.is_some_and(|deadline| deadline <= now);
        let running = self.open.iter().filter(|(_, opened)| late(opened));
        let waiting = self.scripts.iter().filter(|queued| late(&queued.opened));
        let ids: Vec<u64> = running
            .map(|(id, _)| *id)
            .chain(waiting.map(|queued| queued.id))
            .collect();
        for id in ids {
            self.late(guest, id);
        }
        self.check_killed()
    }

    /// A command is over its time; the second time its end is told before it
    /// has ended.
    fn late(&mut self, guest: &mut Guest, id: u64) {
        if let Some(opened) = self.open.get_mut(&id)
            && let Some(failure) = opened.failure.clone()
        {
            // What its end will have been: nothing else can become of it.
            let exited = Exited {
                ending: Ending::Signal(SIGKILL),
                session_reset: self.script == Some(id),
                ..Exited::default()
            };
            opened.tell(Event::Failed(failure.with_end(exited)));
            opened.sink = None;
            opened.deadline = None;
            return;
        }
        let opened = self.open.get(&id).or_else(|| {
            let mut scripts = self.scripts.iter();
            scripts.find_map(|queued| (queued.id == id).then_some(&queued.opened))
        });
        let limit = opened.and_then(|opened| opened.timeout).unwrap_or_default();
        let text = format!("the command ran longer than {limit:?}");
        self.give_up(guest, id, VmError::new(VmCode::TimedOut, text));
    }

    /// A command that does not end although it was killed ends the guest.
    fn check_killed(&self) -> Result<(), VmError> {
        let lived = self.lived.time();
        let over = |opened: &Opened| {
            let killed = opened.killed;
            killed.is_some_and(|killed| lived.saturating_sub(killed) > KILL_PATIENCE)
        };
        if self.open.values().any(over) {
            let text = "a command was killed and does not end";
            return Err(VmError::new(VmCode::Unresponsive, text));
        }
        Ok(())
    }

    /// Whether somebody waits for the agent.
    fn is_awaited(&self, guest: &Guest) -> bool {
        let busy = !self.open.is_empty() || !self.saving.is_empty();
        busy || self.starting.is_some() || self.settling.is_some() || guest.backlog() > 0
    }

    /// Asks the agent whether it is there, when it is time.
    fn check_pulse(&mut self, guest: &mut Guest) -> Result<(), VmError> {
        let mut drawn = Ok(0);
        let asked = self
            .pulse
            .check(self.is_awaited(guest), self.lived.time(), || {
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

    /// Saves the guest if it is at rest, for all who want it.
    fn save(&mut self, guest: &mut Guest) {
        let made = guest.save(&self.base.linked, &self.base.name);
        match made {
            Ok(None) => {
                for (_, turns) in &mut self.saving {
                    *turns -= 1;
                }
                let text = "the guest does not come to rest to be saved";
                let failed = VmError::new(VmCode::NotReady, text);
                self.saving.retain(|(slot, turns)| {
                    if *turns == 0 {
                        slot.change(|slot| *slot = Some(Err(failed.clone())));
                    }
                    *turns > 0
                });
            }
            Ok(Some(bytes)) => self.saved(&Ok(bytes)),
            Err(error) => self.saved(&Err(error)),
        }
    }

    fn saved(&mut self, result: &Result<Vec<u8>, VmError>) {
        for (slot, _) in self.saving.drain(..) {
            slot.change(|slot| *slot = Some(result.clone()));
        }
    }

    /// Sleeps until the guest's time, a deadline, or a message.
    fn rest(&mut self, guest: &Guest, until: Option<u64>) {
        // Requests that the last turn made (credit) need another one.
        if guest.backlog() > 0 {
            return;
        }
        let now = guest.emulator.now_ns();
        let guests = until.map(|until| Duration::from_nanos(until.saturating_sub(now)));
        let deadlines = self.open.values().filter_map(|opened| opened.deadline);
        let queued = self.scripts.iter().filter_map(|q| q.opened.deadline);
        let ours = [self.starting, self.settling, self.ends];
        let nearest = deadlines
            .chain(queued)
            .chain(ours.into_iter().flatten())
            .min();
        let ours = nearest.map(|at| at.saturating_duration_since(Instant::now()));
        // Killed commands are looked at from time to time.
        let killed = self.open.values().any(|opened| opened.killed.is_some());
        let look = killed.then_some(KILL_PATIENCE / 4);
        let pulse = self.pulse.patience(self.is_awaited(guest));
        let patience = [guests, ours, look, pulse].into_iter().flatten().min();
        self.lived.rest(patience, || self.mailbox.wait(patience));
    }

    /// Starts a command; a script when it is its turn.
    fn begin(&mut self, guest: &mut Guest, open: Open) {
        let Open {
            id,
            request,
            sink,
            eager,
            timeout,
            deadline,
            output_limit,
        } = open;
        let opened = Opened {
            sink: Some(sink),
            eager,
            deadline,
            output_limit,
            written: 0,
            owed: [0; 2],
            ledger: Ledger::default(),
            failure: None,
            killed: None,
            timeout,
        };
        if matches!(request, Request::Script(_)) {
            if self.script.is_some() {
                self.scripts.push_back(Queued {
                    id,
                    request,
                    opened,
                });
                return;
            }
            self.script = Some(id);
        }
        guest.request(id, &request);
        self.open.insert(id, opened);
    }

    /// Kills a command, and says why at its end; one that waits for its turn
    /// ends at once.
    fn give_up(&mut self, guest: &mut Guest, id: u64, failure: VmError) {
        if let Some(opened) = self.open.get_mut(&id) {
            if opened.failure.is_none() {
                guest.request(id, &Request::Kill);
                if !opened.eager {
                    // It ends when all it wrote is with the host, which reads
                    // no more.
                    for stream in [Stream::Stdout, Stream::Stderr] {
                        opened.ledger.grant(stream, REST_BYTES);
                        guest.request(id, &Request::Credit(stream, REST_BYTES));
                    }
                }
                opened.failure = Some(failure);
                opened.killed = Some(self.lived.time());
                opened.deadline = Some(Instant::now() + KILL_GRACE);
            }
        } else if let Some(at) = self.scripts.iter().position(|queued| queued.id == id)
            && let Some(mut queued) = self.scripts.remove(at)
        {
            queued.opened.tell(Event::Failed(failure));
        }
    }

    /// Passes a report on. One about what nobody asked for is not the agent's,
    /// unless it was on its way when the guest was saved.
    fn told(&mut self, guest: &mut Guest, id: u64, report: Report) -> Result<(), VmError> {
        let asked = match &report {
            Report::Resumed { .. } => self.starting.is_some() && id == guest.resumed_as(),
            Report::Settled => self.settlings.contains(&id),
            Report::Pong => self.pulse.answered(id, self.lived.time()),
            Report::Ready { .. } | Report::Prepared(_) => false,
            _ => self.open.contains_key(&id),
        };
        if !asked && self.starting.is_some() {
            return Ok(());
        }
        if !asked {
            let text = "the guest's agent broke the protocol: a report that nobody asked for";
            return Err(VmError::new(VmCode::Protocol, text));
        }
        self.pulse.heard(self.lived.time());
        match report {
            Report::Resumed {
                failure,
                interrupted,
            } => return self.resumed(failure, interrupted),
            Report::Settled => self.settled = true,
            Report::Output(stream, bytes) => {
                self.output(guest, id, stream, bytes)?;
            }
            Report::Started(process) => {
                if let Some(opened) = self.open.get_mut(&id) {
                    opened.ledger.start()?;
                    opened.tell(Event::Started(process));
                }
            }
            Report::Credit(bytes) => {
                if let Some(opened) = self.open.get_mut(&id) {
                    opened.ledger.returned(bytes)?;
                    opened.tell(Event::Credit(bytes));
                }
            }
            Report::Exited(exited) => {
                // Who hears the end may ask at once what it took.
                self.mailbox.note_retired(guest.retired());
                let failure = self.open.get_mut(&id).and_then(|open| open.failure.take());
                let event = failure.map_or(Event::Exited(exited), |failure| {
                    // How it ended, for what else its end tells.
                    Event::Failed(failure.with_end(exited))
                });
                self.pass(id, event);
                self.close(guest, id);
            }
            Report::Failed(reason, _, text) => {
                self.pass(id, Event::Failed(VmError::not_started(reason, text)));
                self.close(guest, id);
            }
            Report::Ready { .. } | Report::Prepared(_) | Report::Pong => {}
        }
        Ok(())
    }

    fn resumed(&mut self, failure: Option<String>, interrupted: u32) -> Result<(), VmError> {
        self.starting = None;
        if let Some(text) = failure {
            let text = format!("the guest could not be set up: {text}");
            return Err(VmError::new(VmCode::NotReady, text));
        }
        let status = &self.mailbox.status;
        status.change(|status| status.started = Some(interrupted));
        Ok(())
    }

    fn pass(&mut self, id: u64, event: Event) {
        if let Some(opened) = self.open.get_mut(&id) {
            opened.tell(event);
        }
    }

    fn output(
        &mut self,
        guest: &mut Guest,
        id: u64,
        stream: Stream,
        mut bytes: Vec<u8>,
    ) -> Result<(), VmError> {
        let Some(opened) = self.open.get_mut(&id) else {
            return Ok(());
        };
        opened.ledger.receive(stream, bytes.len())?;
        let count = bytes.len() as u32;
        if opened.eager {
            let owed = &mut opened.owed[usize::from(stream == Stream::Stderr)];
            *owed += count;
            if *owed >= CREDIT_BYTES {
                let credit = std::mem::take(owed);
                opened.ledger.grant(stream, credit);
                guest.request(id, &Request::Credit(stream, credit));
            }
        }
        // One that was killed may write on until it dies: nobody wants that.
        if opened.failure.is_some() {
            return Ok(());
        }
        let limit = opened.output_limit.unwrap_or(u64::MAX);
        let room = limit - opened.written;
        let over = u64::from(count) > room;
        if over {
            bytes.truncate(room as usize);
        }
        opened.written += bytes.len() as u64;
        opened.tell(Event::Output(stream, bytes));
        if over {
            let text = format!("the command wrote more than {limit} bytes");
            self.give_up(guest, id, VmError::new(VmCode::OutputLimit, text));
        }
        Ok(())
    }

    /// A command is over; the next script has its turn.
    fn close(&mut self, guest: &mut Guest, id: u64) {
        self.open.remove(&id);
        if self.script != Some(id) {
            return;
        }
        self.script = None;
        if let Some(next) = self.scripts.pop_front() {
            self.script = Some(next.id);
            guest.request(next.id, &next.request);
            self.open.insert(next.id, next.opened);
        }
    }

    /// Tells everybody that it is over.
    fn finish(mut self, ended: &VmError) {
        for message in self.mailbox.close(ended) {
            refuse(message, ended);
        }
        self.saved(&Err(ended.clone()));
        let queued = self.scripts.into_iter().map(|queued| queued.opened);
        for mut opened in self.open.into_values().chain(queued) {
            opened.tell(Event::Failed(ended.clone()));
        }
        self.mailbox.status.change(|status| status.gone = true);
    }
}
