//! Client of a host: one request over its socket, and its answers.

use super::error::{NO_ANSWER, NO_HOST};
use super::place::{Place, pause};
use super::socket;
use super::wire::{Answer, Call, InspectCall, MAX_LINE, Refusal, Request, Said, line};
use crate::failure::Failure;
use crate::output;
use serde_json::Value as Json;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
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
    stream: BufReader<UnixStream>,
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
            stream: BufReader::new(stream),
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
                let store = place.store.display();
                let left = within.as_secs();
                output::note(
                    "note",
                    &format!("no host runs on {store}; waiting up to {left} s for one to start"),
                );
            }
            pause(attempt);
        }
        let text = format!(
            "no host runs on {}, and {what} needs one",
            place.store.display()
        );
        let help = "start one: `a99 agent host`";
        Err(Refusal::new(NO_HOST, text).helped(help).failure())
    }

    /// Sends a request, passes its events to `event`, and returns the result. A call with a timeout
    /// waits that long and [`GRACE`] more; one without waits as long as the host still answers a
    /// probe.
    ///
    /// # Errors
    /// The host's error; a host that disconnected or hangs.
    pub(super) fn ask(
        &mut self,
        call: Call,
        mut event: impl FnMut(&Json),
    ) -> Result<Json, Failure> {
        let gone = |why: String| {
            let help = "see whether it still runs; what was acknowledged is in its store";
            let text = format!("the host gave no answer: {why}");
            Refusal::new(NO_ANSWER, text).helped(help).failure()
        };
        let limit = call.limit().map(|limit| limit.saturating_add(GRACE));
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let request = line(&Request { id: 1, call }).map_err(|why| {
            let help = "send less at a time";
            Refusal::new(super::error::BAD_REQUEST, why)
                .helped(help)
                .failure()
        })?;
        let written = self.write(&request);
        written.map_err(|error| gone(error.to_string()))?;
        loop {
            let answer = self.read(until).map_err(gone)?;
            match answer.said {
                Said::Event(json) => event(&json),
                Said::Result(json) => return Ok(json),
                Said::Error(refusal) => return Err(refusal.failure()),
            }
        }
    }

    fn write(&mut self, request: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.set_write_timeout(Some(SIGN_OF_LIFE))?;
        stream.write_all(request)
    }

    /// Reads the next answer: until a deadline, or as long as the host answers a probe.
    fn read(&mut self, until: Option<Instant>) -> Result<Answer, String> {
        let mut line = Vec::new();
        loop {
            // Time spent on printing earlier events does not count against the host.
            let wait = until.map_or(SILENCE, |until| {
                until.saturating_duration_since(Instant::now()).max(GRACE)
            });
            let timed = self.stream.get_ref().set_read_timeout(Some(wait));
            timed.map_err(|error| error.to_string())?;
            let left = (MAX_LINE + 1).saturating_sub(line.len());
            let mut bounded = (&mut self.stream).take(left as u64);
            match bounded.read_until(b'\n', &mut line) {
                Ok(_) => break,
                Err(error) if is_late(&error) && until.is_none() && self.is_alive() => {}
                Err(error) if is_late(&error) => {
                    return Err("it stands still: it said nothing in its time".to_owned());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        match line.last() {
            None => Err("it ended".to_owned()),
            Some(b'\n') => serde_json::from_slice(&line).map_err(|error| error.to_string()),
            Some(_) if line.len() > MAX_LINE => {
                Err(format!("a line of more than {MAX_LINE} bytes"))
            }
            Some(_) => Err("it ended amid an answer".to_owned()),
        }
    }

    /// Probes whether the host answers another request with anything. A host that is stopping
    /// accepts no connection but still serves its clients, so it counts as alive.
    fn is_alive(&self) -> bool {
        let mut stream = match socket::connect(&self.socket) {
            Ok(Some(stream)) => stream,
            Ok(None) => return true,
            Err(_) => return false,
        };
        let call = Call::Inspect(InspectCall {
            agent: Some(String::new()),
        });
        let Ok(request) = line(&Request { id: 1, call }) else {
            return true;
        };
        let mut answer = [0];
        let asked = stream
            .set_read_timeout(Some(SIGN_OF_LIFE))
            .and_then(|()| stream.set_write_timeout(Some(SIGN_OF_LIFE)))
            .and_then(|()| stream.write_all(&request))
            .and_then(|()| stream.read(&mut answer));
        !asked.is_err_and(|error| is_late(&error))
    }
}

/// Whether a read or write timed out.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
