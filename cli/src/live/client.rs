//! Client of a host: a request over its socket, and what comes back.

use super::error::{NO_ANSWER, NO_HOST};
use super::place::{Place, pause};
use super::socket;
use super::wire::{Answer, Call, MAX_LINE, Refusal, Request, Said, line};
use crate::failure::Failure;
use crate::output;
use serde_json::Value as Json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a host that may be starting is waited for, and when that is said.
const STARTING: Duration = Duration::from_secs(10);
const NOTED: Duration = Duration::from_secs(1);

/// A connection to a host.
pub(super) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the host of a place; nothing if none runs.
    ///
    /// # Errors
    /// A socket that cannot be used.
    pub(super) fn of(place: &Place) -> Result<Option<Client>, Failure> {
        let stream = socket::connect(&place.socket()).map_err(Refusal::failure)?;
        Ok(stream.map(|stream| Client {
            stream: BufReader::new(stream),
        }))
    }

    /// The same where a host is needed. One may just be starting, in the background of the
    /// same script: it is waited for a while.
    ///
    /// # Errors
    /// None runs.
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

    /// Asks, hands on what happens, and gives the result.
    ///
    /// # Errors
    /// The host's, and a host that went away.
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
        let request = line(&Request { id: 1, call }).map_err(|why| {
            let help = "send less at a time";
            Refusal::new(super::error::BAD_REQUEST, why)
                .helped(help)
                .failure()
        })?;
        let written = self.stream.get_mut().write_all(&request);
        written.map_err(|error| gone(error.to_string()))?;
        loop {
            let answer = self.read().map_err(gone)?;
            match answer.said {
                Said::Event(json) => event(&json),
                Said::Result(json) => return Ok(json),
                Said::Error(refusal) => return Err(refusal.failure()),
            }
        }
    }

    fn read(&mut self) -> Result<Answer, String> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(MAX_LINE as u64 + 1);
        let read = bounded.read_until(b'\n', &mut line);
        read.map_err(|error| error.to_string())?;
        match line.last() {
            None => Err("it ended".to_owned()),
            Some(b'\n') => serde_json::from_slice(&line).map_err(|error| error.to_string()),
            Some(_) if line.len() > MAX_LINE => {
                Err(format!("a line of more than {MAX_LINE} bytes"))
            }
            Some(_) => Err("it ended amid an answer".to_owned()),
        }
    }
}
