//! The thread of a guest: turns, the requests that wait for it, and sleep.

use super::error::{VmCode, VmError};
use super::guest::{Guest, Next};
use a99_guest_agent::protocol::{Exited, Report, Request, Stream};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes on the way to the guest above which callers wait with input.
const MAX_BACKLOG: usize = 1 << 20;

/// What a command tells, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It runs, as that process of the guest. Not told of a script.
    Started(u32),
    /// It wrote that.
    Output(Stream, Vec<u8>),
    /// It takes that many more bytes of standard input.
    Credit(u32),
    /// It ended. The last event.
    Exited(Exited),
    /// It could not be started, or the guest ended. The last event.
    Failed(VmError),
}

/// Takes the events of a command, on the guest's thread: it must not wait.
pub(super) type Sink = Box<dyn FnMut(Event) + Send>;

/// A command to open.
pub(super) struct Open {
    pub id: u32,
    pub request: Request,
    pub sink: Sink,
    /// Output counts as consumed as soon as the sink has it.
    pub eager: bool,
}

/// What callers want of the thread.
pub(super) enum Message {
    /// Start a command.
    Open(Open),
    /// Something about a command that was opened.
    Send(u32, Request),
    /// Stop the guest as it stands.
    Stop,
}

/// What callers and the thread share.
#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    /// Set at the end: why the guest runs no more.
    ended: Option<VmError>,
    /// Instructions run so far.
    retired: u64,
    /// Bytes of requests that the guest has not taken.
    backlog: usize,
}

/// The callers' end of a guest's thread.
#[derive(Default)]
pub(super) struct Mailbox {
    inbox: Mutex<Inbox>,
    wake: Condvar,
}

impl Mailbox {
    /// The inbox. A caller that panicked while it held it left it whole.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a message.
    ///
    /// # Errors
    /// Why the guest runs no more; the message is dropped.
    pub fn post(&self, message: Message) -> Result<(), VmError> {
        let mut inbox = self.lock();
        if let Some(ended) = &inbox.ended {
            return Err(ended.clone());
        }
        inbox.messages.push(message);
        drop(inbox);
        self.wake.notify_one();
        Ok(())
    }

    /// Whether so much is on the way to the guest that more should wait.
    pub fn is_congested(&self) -> bool {
        self.lock().backlog > MAX_BACKLOG
    }

    /// Instructions that the guest has run.
    pub fn retired(&self) -> u64 {
        self.lock().retired
    }

    /// The messages so far; waits for the first one if there is none, at most
    /// `patience` (for ever without).
    fn wait(&self, patience: Option<Duration>) {
        let inbox = self.lock();
        let empty = |inbox: &mut Inbox| inbox.messages.is_empty();
        match patience {
            Some(patience) => drop(self.wake.wait_timeout_while(inbox, patience, empty)),
            None => drop(self.wake.wait_while(inbox, empty)),
        }
    }
}

/// A command that is open.
struct Opened {
    sink: Sink,
    eager: bool,
}

/// The thread's state besides the guest.
struct Turns {
    mailbox: Arc<Mailbox>,
    open: HashMap<u32, Opened>,
    /// The script that runs in the session shell, and those after it.
    script: Option<u32>,
    scripts: VecDeque<Open>,
}

/// Runs a guest until it ends or is stopped.
pub(super) fn run(mut guest: Guest, mailbox: Arc<Mailbox>) {
    let mut turns = Turns {
        mailbox,
        open: HashMap::new(),
        script: None,
        scripts: VecDeque::new(),
    };
    let ended = loop {
        if let Err(error) = turns.turn(&mut guest) {
            break error;
        }
    };
    turns.finish(&ended);
}

impl Turns {
    fn turn(&mut self, guest: &mut Guest) -> Result<(), VmError> {
        let messages = {
            let mut inbox = self.mailbox.lock();
            inbox.retired = guest.retired();
            inbox.backlog = guest.backlog();
            std::mem::take(&mut inbox.messages)
        };
        for message in messages {
            match message {
                Message::Open(open) => self.begin(guest, open),
                Message::Send(id, request) => guest.request(id, &request),
                Message::Stop => {
                    return Err(VmError::new(VmCode::Stopped, "the guest was stopped"));
                }
            }
        }
        let next = guest.turn(|guest, id, report| self.told(guest, id, report))?;
        if let Next::Wait(until) = next {
            self.rest(guest, until);
        }
        Ok(())
    }

    /// Sleeps until the guest's time, or a message.
    fn rest(&self, guest: &Guest, until: Option<u64>) {
        let now = guest.emulator.now_ns();
        let patience = until.map(|until| Duration::from_nanos(until.saturating_sub(now)));
        // Requests that the last turn made (credit) need another one.
        if guest.backlog() == 0 {
            self.mailbox.wait(patience);
        }
    }

    /// Starts a command; a script when it is its turn.
    fn begin(&mut self, guest: &mut Guest, open: Open) {
        if matches!(open.request, Request::Script(_)) {
            if self.script.is_some() {
                self.scripts.push_back(open);
                return;
            }
            self.script = Some(open.id);
        }
        guest.request(open.id, &open.request);
        let opened = Opened {
            sink: open.sink,
            eager: open.eager,
        };
        self.open.insert(open.id, opened);
    }

    /// Passes a report on.
    fn told(&mut self, guest: &mut Guest, id: u32, report: Report) {
        let Some(opened) = self.open.get_mut(&id) else {
            return;
        };
        let (event, last) = match report {
            Report::Started(process) => (Event::Started(process), false),
            Report::Output(stream, bytes) => {
                if opened.eager {
                    let count = bytes.len() as u32;
                    guest.request(id, &Request::Credit(stream, count));
                }
                (Event::Output(stream, bytes), false)
            }
            Report::Credit(bytes) => (Event::Credit(bytes), false),
            Report::Exited(exited) => (Event::Exited(exited), true),
            Report::Failed(_, text) => {
                let error = VmError::new(VmCode::CannotStart, text);
                (Event::Failed(error), true)
            }
            Report::Ready { .. } | Report::Resumed(_) | Report::Prepared(_) => return,
        };
        if last {
            // Who hears the end may ask at once what it took.
            self.mailbox.lock().retired = guest.retired();
        }
        (opened.sink)(event);
        if last {
            self.open.remove(&id);
            if self.script == Some(id) {
                self.script = None;
                if let Some(next) = self.scripts.pop_front() {
                    self.begin(guest, next);
                }
            }
        }
    }

    /// Tells everybody that it is over.
    fn finish(mut self, ended: &VmError) {
        let mut inbox = self.mailbox.lock();
        inbox.ended = Some(ended.clone());
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        let waiting = messages.into_iter().filter_map(|message| match message {
            Message::Open(open) => Some(open),
            Message::Send(..) | Message::Stop => None,
        });
        for mut open in self.scripts.drain(..).chain(waiting) {
            (open.sink)(Event::Failed(ended.clone()));
        }
        for mut opened in self.open.into_values() {
            (opened.sink)(Event::Failed(ended.clone()));
        }
    }
}
