//! Place of agents: their file, their store, and the store's socket.

use super::client::Client;
use super::config::AgentsFile;
use super::socket;
use super::wire::Refusal;
use crate::args::{PlaceArgs, ServerUrl, StorePlace};
use crate::failure::Failure;
use a99_runtime_engine::{StoreCode, derived};
use a99_runtime_stores::{RuntimeStore, StoreOptions};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a read waits for a store that does not exist yet: a host may be creating it.
const MAKING: Duration = Duration::from_secs(2);

/// How long a host waits for the store's owner: a command needs moments, a stopping host finishes
/// its turns first.
const OWNED: Duration = Duration::from_secs(60);

/// How often a host tries to own a store on a server.
const SERVER_PAUSE: Duration = Duration::from_millis(500);

/// Default time that a command waits for the store before changing it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where a command finds agents.
pub(super) struct Place {
    pub(super) store: StorePlace,
    socket: PathBuf,
    /// The agents.toml, if it was read.
    pub(super) file: Option<AgentsFile>,
}

impl Place {
    /// Resolves the options.
    ///
    /// # Errors
    /// An invalid file of agents, or a missing one while no store is named.
    pub(super) fn of(args: &PlaceArgs) -> Result<Place, Failure> {
        let file = match &args.store {
            // With `--store` the file is optional, and may be half-written.
            Some(_) => AgentsFile::read(&args.config, false).ok(),
            None => Some(AgentsFile::read(&args.config, false)?),
        };
        let named = args.store.clone();
        let in_file = || {
            StorePlace::File(
                file.as_ref()
                    .map_or_else(PathBuf::new, |file| file.store.clone()),
            )
        };
        let store = resolved(named.unwrap_or_else(in_file));
        Ok(Place {
            socket: socket_of(&store, &args.config),
            store,
            file,
        })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// Connects to the host, or opens the store for reading if no host runs.
    ///
    /// # Errors
    /// Those of both; a missing store.
    pub(super) fn read(&self) -> Result<Reached, Failure> {
        let until = Instant::now() + MAKING;
        for attempt in 0.. {
            if let Some(client) = Client::of(self)? {
                return Ok(Reached::Host(client));
            }
            if self.store.file().is_none_or(Path::exists) {
                break;
            }
            if Instant::now() >= until {
                let text = format!("{}: there is no such store", self.store);
                let help = "`a99 agent host` makes it; `--store FILE` names another";
                let refusal = Refusal::new("store.not_found", text).helped(help);
                return Err(refusal.failure());
            }
            pause(attempt);
        }
        self.reader().map(Reached::Store)
    }

    /// Opens the store for reading, also while a host runs.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) fn reader(&self) -> Result<Opened, Failure> {
        let store = open(&self.store, StoreOptions::default(), false);
        let store = super::runtime()?.block_on(store);
        store.map(Opened).map_err(Refusal::failure)
    }

    /// Connects to the host, or opens the store for changes if no host runs. Waits for other
    /// commands that have the store open, and for a host that starts or stops.
    ///
    /// # Errors
    /// Those of both; a missing store, unless `make` allows creating it.
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
            match super::runtime()?.block_on(open(&self.store, options, true)) {
                Ok(store) => return Ok(Reached::Store(Opened(store))),
                Err(error) if error.code == LOCKED && Instant::now() < until => {
                    pause(attempt);
                }
                Err(error) => return Err(error.failure()),
            }
        }
        unreachable!("attempts are counted without an end")
    }

    /// Opens the store for a host. Waits for commands that have it open, and for a host that stops,
    /// but not for one that answers.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) async fn own(
        store: &StorePlace,
        socket: Option<&Path>,
        options: &StoreOptions,
    ) -> Result<RuntimeStore, Refusal> {
        let until = Instant::now() + OWNED;
        let mut attempt = 0;
        loop {
            let error = match open(store, options.clone(), true).await {
                Ok(store) => return Ok(store),
                Err(error) => error,
            };
            let is_held = error.code == LOCKED && Instant::now() < until;
            let answers = |socket| !matches!(socket::connect(socket), Ok(None));
            if !is_held || socket.is_some_and(answers) {
                return Err(error);
            }
            // Each attempt is a new login at a server.
            let pause = store.file().map_or(SERVER_PAUSE, |_| backoff(attempt));
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}

const LOCKED: &str = StoreCode::Locked.name();

/// A store's place, its path without symbolic links, so that all processes find the same socket.
pub(super) fn resolved(store: StorePlace) -> StorePlace {
    match store {
        // Opening the store reports a bad path.
        StorePlace::File(path) => {
            StorePlace::File(a99_runtime_stores::canonical_path(&path).unwrap_or(path))
        }
        server @ StorePlace::Server(_) => server,
    }
}

/// The socket of the host of a store: beside its file; for a store on a server beside the file of
/// agents, with a name that follows from server and database.
pub(super) fn socket_of(store: &StorePlace, config: &Path) -> PathBuf {
    let base = match store {
        StorePlace::File(path) => path.clone(),
        StorePlace::Server(url) => {
            let config = a99_runtime_stores::canonical_path(config);
            let mut name = config.map_or_else(|_| OsString::from("agents"), OsString::from);
            name.push(format!(".{}", derived(&["store", &url.to_string()])));
            name.into()
        }
    };
    socket::beside(&base)
}

/// Opens a store as its owner, or for reading.
async fn open(
    store: &StorePlace,
    options: StoreOptions,
    is_owner: bool,
) -> Result<RuntimeStore, Refusal> {
    match store {
        StorePlace::File(path) if is_owner => Ok(RuntimeStore::open(path, options)?),
        StorePlace::File(path) => Ok(RuntimeStore::open_reader(path, options)?),
        StorePlace::Server(url) => connect(url, options, is_owner).await,
    }
}

#[cfg(feature = "postgres")]
async fn connect(
    url: &ServerUrl,
    options: StoreOptions,
    is_owner: bool,
) -> Result<RuntimeStore, Refusal> {
    use a99_runtime_stores::ConnectError;
    let server = crate::store::server_options(url);
    let opened = match server {
        Ok(server) if is_owner => RuntimeStore::connect(server, options).await,
        Ok(server) => RuntimeStore::connect_reader(server, options).await,
        Err(error) => Err(error.into()),
    };
    opened.map_err(|error| match error {
        ConnectError::Store(error) => error.into(),
        ConnectError::Server(error) => {
            let help = error.help().unwrap_or("see docs/channels.md");
            let text = format!("--store: {}", error.message());
            Refusal::new(error.code().name(), text).helped(help)
        }
    })
}

#[cfg(not(feature = "postgres"))]
#[allow(clippy::unused_async, reason = "as with the feature")]
async fn connect(_: &ServerUrl, _: StoreOptions, _: bool) -> Result<RuntimeStore, Refusal> {
    let missing = Failure::missing_feature("`--store` with a server", "postgres");
    Err(Refusal::of(&missing))
}

/// The host or store that a command reached.
pub(super) enum Reached {
    Host(Client),
    /// The store, because no host runs.
    Store(Opened),
}

/// Exponential back-off with jitter, from 5 ms to 100 ms.
fn backoff(attempt: u32) -> Duration {
    let most = Duration::from_millis(5 << attempt.min(4)).min(Duration::from_millis(100));
    let mut byte = [0];
    // Without randomness commands back off in step.
    let _ = getrandom::fill(&mut byte);
    most.mul_f64(0.5 + f64::from(byte[0]) / 512.0)
}

/// Waits before the next attempt.
pub(super) fn pause(attempt: u32) {
    std::thread::sleep(backoff(attempt));
}

/// A store that this process has open.
pub(super) struct Opened(RuntimeStore);

impl Opened {
    /// The states of agents whose channels are on a server: their store has no log that could
    /// end before what they handled. Other stores remain as they are.
    ///
    /// # Errors
    /// Those of opening it again.
    pub(super) fn for_states(self, place: &Place) -> Result<Opened, Failure> {
        use a99_runtime_engine::ChannelStore as _;
        let channels = super::runtime()?.block_on(self.0.channels());
        if !channels.is_ok_and(|channels| channels.is_empty()) {
            return Ok(self);
        }
        self.close()?;
        let options = StoreOptions {
            has_channels: false,
            ..StoreOptions::default()
        };
        let store = super::runtime()?.block_on(open(&place.store, options, false));
        store.map(Opened).map_err(Refusal::failure)
    }

    /// Works with the store, and closes it. The first error is that of the work.
    pub(super) fn with<T>(
        self,
        work: impl AsyncFnOnce(&RuntimeStore) -> Result<T, Refusal>,
    ) -> Result<T, Failure> {
        let done = super::runtime()?.block_on(work(&self.0));
        let closed = self.close();
        let done = done.map_err(Refusal::failure)?;
        closed.map(|()| done)
    }

    /// Closes the store. If the last host was cut off, the store stays marked so, and the next host
    /// finds it.
    fn close(self) -> Result<(), Failure> {
        use a99_runtime_engine::AgentStore as _;
        match self.0.was_cut_off().is_empty() {
            false => Ok(()),
            true => self
                .0
                .close()
                .map_err(|error| Refusal::from(error).failure()),
        }
    }
}
