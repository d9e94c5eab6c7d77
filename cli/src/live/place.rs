//! Place of agents: the file that describes them, their store, and the store's socket.

use super::config::AgentsFile;
use super::socket;
use super::wire::Refusal;
use crate::args::PlaceArgs;
use crate::failure::Failure;
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::path::{Path, PathBuf};

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
            store: store.unwrap_or_default(),
            file,
        })
    }

    /// The socket of its host.
    pub(super) fn socket(&self) -> PathBuf {
        socket::beside(&self.store)
    }

    /// Opens the store, where no host runs.
    ///
    /// # Errors
    /// Those of opening it; a file that is not there, unless it may be made.
    pub(super) fn open(&self, make: bool) -> Result<Opened, Failure> {
        if !make && !self.store.exists() {
            let text = format!("{}: there is no such store", self.store.display());
            let help = "`a99 agent host` makes it; `--store FILE` names another";
            let refusal = Refusal::new("store.not_found", text).helped(help);
            return Err(refusal.failure());
        }
        Opened::open(&self.store, StoreOptions::default()).map_err(Refusal::failure)
    }
}

/// A store that this process has open.
pub(super) struct Opened(SqliteRuntime);

impl Opened {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) fn open(path: &Path, options: StoreOptions) -> Result<Opened, Refusal> {
        Ok(Opened(SqliteRuntime::open(path, options)?))
    }

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
