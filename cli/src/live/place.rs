//! Place of agents: the file that describes them, their store, and the store's socket.

use super::client::Client;
use super::config::AgentsFile;
use super::socket;
use super::wire::Refusal;
use crate::args::PlaceArgs;
use crate::failure::Failure;
use a99_runtime_engine::StoreCode;
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long what is read may be in the making.
const MAKING: Duration = Duration::from_secs(2);

/// How long a host waits for those that have its store: a command takes moments, and a host
/// that ends lets its turns end first.
const OWNED: Duration = Duration::from_secs(60);

/// How long a command that changes the store waits for it, unless it has an option for that.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where a command finds agents.
pub(super) struct Place {
    /// The file of the store.
    pub(super) store: PathBuf,
    /// What describes the agents, if it was read.
    pub(super) file: Option<AgentsFile>,
}

impl Place {
    /// The place that the options name.
    ///
    /// # Errors
    /// A file of agents that is wrong, or is not there while no store is named.
    pub(super) fn of(args: &PlaceArgs) -> Result<Place, Failure> {
        let file = match &args.store {
            // It is not needed, and may be at work.
            Some(_) => AgentsFile::read(&args.config, false).ok(),
            None => Some(AgentsFile::read(&args.config, false)?),
        };
        let named = args.store.clone();
        let store = named.or_else(|| Some(file.as_ref()?.store.clone()));
        Ok(Place {
            store: resolved(store.unwrap_or_default()),
            file,
        })
    }

    /// The socket of its host.
    pub(super) fn socket(&self) -> PathBuf {
        socket::beside(&self.store)
    }

    /// The host, or the store to read, where none runs.
    ///
    /// # Errors
    /// Those of both; a file that is not there.
    pub(super) fn read(&self) -> Result<Reached, Failure> {
        let until = Instant::now() + MAKING;
        for attempt in 0.. {
            if let Some(client) = Client::of(self)? {
                return Ok(Reached::Host(client));
            }
            if self.store.exists() {
                break;
            }
            if Instant::now() >= until {
                let text = format!("{}: there is no such store", self.store.display());
                let help = "`a99 agent host` makes it; `--store FILE` names another";
                let refusal = Refusal::new("store.not_found", text).helped(help);
                return Err(refusal.failure());
            }
            pause(attempt);
        }
        let store = SqliteRuntime::open_reader(&self.store, StoreOptions::default());
        let store = store.map_err(|error| Refusal::from(error).failure())?;
        Ok(Reached::Store(Opened(store)))
    }

    /// The host, or the store to change, where none runs. Waits for other commands that have
    /// the store, and for a host that starts or ends.
    ///
    /// # Errors
    /// Those of both; a file that is not there, unless it may be made.
    pub(super) fn change(&self, make: bool, within: Duration) -> Result<Reached, Failure> {
        if !make && let Reached::Host(client) = self.read()? {
            return Ok(Reached::Host(client));
        }
        let until = Instant::now() + within;
        for attempt in 0.. {
            if let Some(client) = Client::of(self)? {
                return Ok(Reached::Host(client));
            }
            let options = StoreOptions {
                refuses_copies: true,
                ..StoreOptions::default()
            };
            match SqliteRuntime::open(&self.store, options) {
                Ok(store) => return Ok(Reached::Store(Opened(store))),
                Err(error) if error.code() == StoreCode::Locked && Instant::now() < until => {
                    pause(attempt);
                }
                Err(error) => return Err(Refusal::from(error).failure()),
            }
        }
        unreachable!("attempts are counted without an end")
    }

    /// Opens the store for a host. Waits for commands that have it, and for a host that ends,
    /// but not for one that answers.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) async fn own(
        store: &Path,
        options: &StoreOptions,
    ) -> Result<SqliteRuntime, Refusal> {
        let until = Instant::now() + OWNED;
        let mut attempt = 0;
        loop {
            let error = match SqliteRuntime::open(store, options.clone()) {
                Ok(store) => return Ok(store),
                Err(error) => error,
            };
            let is_held = error.code() == StoreCode::Locked && Instant::now() < until;
            if !is_held || !matches!(socket::connect(&socket::beside(store)), Ok(None)) {
                return Err(error.into());
            }
            tokio::time::sleep(backoff(attempt)).await;
            attempt += 1;
        }
    }
}

/// The path of a store without symbolic links, so that all find the same socket.
pub(super) fn resolved(store: PathBuf) -> PathBuf {
    // What is wrong with it opening it says.
    a99_runtime_stores::canonical_path(&store).unwrap_or(store)
}

/// What a command reached.
pub(super) enum Reached {
    /// The host that runs.
    Host(Client),
    /// The store, where none runs.
    Store(Opened),
}

/// Exponential back-off with jitter, from five milliseconds to a tenth of a second.
fn backoff(attempt: u32) -> Duration {
    let most = Duration::from_millis(5 << attempt.min(4)).min(Duration::from_millis(100));
    let mut byte = [0];
    // Without randomness commands still wait, together.
    let _ = getrandom::fill(&mut byte);
    most.mul_f64(0.5 + f64::from(byte[0]) / 512.0)
}

/// Waits before the next attempt.
pub(super) fn pause(attempt: u32) {
    std::thread::sleep(backoff(attempt));
}

/// A store that this process has open.
pub(super) struct Opened(SqliteRuntime);

impl Opened {
    /// The store.
    pub(super) fn store(&self) -> &SqliteRuntime {
        &self.0
    }

    /// Closes it. What the last host left when it was cut off is still for the next one to
    /// know: then it is as if this process had been cut off, too.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn close(self) -> Result<(), Failure> {
        use a99_runtime_engine::AgentStore as _;
        match self.0.was_cut_off() {
            true => Ok(()),
            false => self
                .0
                .close()
                .map_err(|error| Refusal::from(error).failure()),
        }
    }
}
