//! Client of a host: one request over its socket, and its answers.

use super::error::{NO_ANSWER, NO_HOST};
use super::place::{Place, pause};
use super::socket;
use super::wire::{AGENT, Call, EVENT, InspectCall, Refusal, other_version};
use crate::failure::Failure;
use crate::local::{Connection, Lost};
use crate::output;
use a99_frame::{Body, Envelope, Frame};
use serde_json::Value as Json;
use std::io;
use std::io::ErrorKind::{TimedOut, WouldBlock};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait for a host that may be starting, and when to print a note about it.
const STARTING: Duration = Duration::from_secs(10);
const NOTED: Duration = Duration::from_secs(1);

/// Silence after which a client probes the host, and the timeout of that probe.
const SILENCE: Duration = Duration::from_secs(5);
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Extra time for the host after the timeout of a call.
const GRACE: Duration = Duration::from_secs(5);

/// A connection to a host.
pub(super) struct Client {
    connection: Connection,
    socket: PathBuf,
}

impl Client {
    /// Connects to the host of a place; `None` if no host runs.
    ///
    /// # Errors
    /// An unusable socket.
    pub(super) fn of(place: &Place) -> Result<Option<Client>, Failure> {
        let socket = place.socket();
        let stream = socket::connect(&socket).map_err(Refusal::failure)?;
        Ok(stream.map(|stream| Client {
            connection: Connection::new(stream),
            socket,
        }))
    }

    /// Connects to a required host. The same script may just be starting one in the background, so
    /// this retries for a while.
    ///
    /// # Errors
    /// No host runs.
    pub(super) fn needed(place: &Place, within: Duration, what: &str) -> Result<Client, Failure> {
        let (began, within) = (Instant::now(), within.min(STARTING));
        let mut is_noted = false;
        for attempt in 0.. {
            if let Some(client) = Client::of(place)? {
                return Ok(client);
            }
            let waited = began.elapsed();
            if waited >= within {
                break;
            }
            if waited >= NOTED && !is_noted {
                is_noted = true;
                let store = &place.store;
                let left = within.as_secs();
                output::note(
                    "note",
                    &format!("no host runs on {store}; waiting up to {left} s for one to start"),
                );
            }
            pause(attempt);
        }
        let text = format!("no host runs on {}, and {what} needs one", place.store);
        let help = "start one: `a99 agent host`";
        Err(Refusal::new(NO_HOST, text).helped(help).failure())
    }

    /// Sends a request, passes its notifications to `event`, and returns the result. A call with a
    /// timeout waits that long and [`GRACE`] more; one without waits as long as the host still
    /// answers a probe.
    ///
    /// # Errors
    /// The host's error; a host that disconnected or hangs.
    pub(super) fn ask(&mut self, call: Call, event: impl FnMut(Json)) -> Result<Json, Failure> {
        self.answered(&call, event).map_err(|lost| {
            let why = match lost {
                Lost::Refused(refusal) => return refusal.failure(),
                Lost::OtherVersion => return other_version().failure(),
                Lost::Late => "it stands still: it said nothing in its time".to_owned(),
                Lost::Gone(why) => why,
            };
            let help = "see whether it still runs; what was acknowledged is in its store";
            let text = format!("the host gave no answer: {why}");
            Refusal::new(NO_ANSWER, text).helped(help).failure()
        })
    }

    fn answered(&mut self, call: &Call, mut event: impl FnMut(Json)) -> Result<Json, Lost> {
        let limit = call.limit().map(|limit| limit.saturating_add(GRACE));
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let request = call.frame().map_err(Lost::Refused)?;
        let timed = self.connection.stream.set_write_timeout(Some(SIGN_OF_LIFE));
        let sent = timed.and_then(|()| self.connection.send(&request));
        sent.map_err(|error| Lost::Gone(error.to_string()))?;
        let json = |body: Body| body.json().map_err(|_| Lost::OtherVersion);
        loop {
            let frame = self.next(until)?;
            match frame.envelope {
                Envelope::Notice(method) if [EVENT, AGENT].contains(&method.as_str()) => {
                    event(json(frame.body)?);
                }
                Envelope::Answer(_) => return json(frame.body),
                _ => return Err(Lost::OtherVersion),
            }
        }
    }

    /// Reads the next part of the answer: until a deadline, or as long as the host answers a probe.
    fn next(&mut self, until: Option<Instant>) -> Result<Frame, Lost> {
        loop {
            // Time spent on printing earlier events does not count against the host.
            let wait = until.map_or(SILENCE, |until| {
                until.saturating_duration_since(Instant::now()).max(GRACE)
            });
            let timed = self.connection.stream.set_read_timeout(Some(wait));
            timed.map_err(|error| Lost::Gone(error.to_string()))?;
            match self.connection.next() {
                Err(Lost::Late) if until.is_none() && self.is_alive() => {}
                said => return said,
            }
        }
    }

    /// Probes whether the host answers another request with anything. A host that is stopping
    /// accepts no connection but still serves its clients, so it counts as alive.
    fn is_alive(&self) -> bool {
        let stream = match socket::connect(&self.socket) {
            Ok(Some(stream)) => stream,
            Ok(None) => return true,
            Err(_) => return false,
        };
        let call = Call::Inspect(InspectCall {
            agent: Some(String::new()),
        });
        let timed = stream
            .set_read_timeout(Some(SIGN_OF_LIFE))
            .and_then(|()| stream.set_write_timeout(Some(SIGN_OF_LIFE)));
        let mut probe = Connection::new(stream);
        let (Ok(()), Ok(request)) = (timed, call.frame()) else {
            return true;
        };
        let is_late = |error: io::Error| matches!(error.kind(), WouldBlock | TimedOut);
        match probe.send(&request) {
            Err(error) => !is_late(error),
            Ok(()) => !matches!(probe.next(), Err(Lost::Late)),
        }
    }
}
