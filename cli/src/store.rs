//! Store of a run: in the file or on the server of `--store`.

use crate::args::ServerUrl;
pub(crate) use crate::args::StorePlace;
use crate::config::EffectiveConfig;
use crate::failure::Failure;
use agent99::Capabilities;
use agent99::capabilities::{FixedClock, Store};
use std::path::Path;
use std::sync::Arc;

/// The open store, if the run has one.
#[derive(Default)]
pub(crate) struct Opened(Option<OpenStore>);

/// A store with the handle that closes it.
struct OpenStore {
    store: Arc<dyn Store>,
    close: Box<dyn FnOnce() + Send + Sync>,
}

/// Opens the file, or connects to the server. Expiry uses this clock, if given.
pub(crate) fn open(config: &EffectiveConfig, clock: Option<FixedClock>) -> Result<Opened, Failure> {
    match &config.set.store {
        None => Ok(Opened::default()),
        Some(StorePlace::File(path)) => open_file(config, path, clock),
        Some(StorePlace::Server(url)) if !is_postgres(url) => {
            // The rest may hold a password.
            let scheme = a99_core::diag::excerpt(url.parts().0);
            let why = format!(
                "there is no store on `{scheme}://`: one is in a file, or on a server of PostgreSQL"
            );
            let help = "write a path, or a URL such as postgres://user@host:5432/database";
            Err(config.wrong("store", 0, why, help))
        }
        Some(StorePlace::Server(url)) => connect(config, url, clock),
    }
}

fn is_postgres(url: &ServerUrl) -> bool {
    matches!(url.parts().0, "postgres" | "postgresql")
}

#[cfg(feature = "sqlite")]
fn open_file(
    config: &EffectiveConfig,
    path: &Path,
    clock: Option<FixedClock>,
) -> Result<Opened, Failure> {
    if path == Path::new(crate::input::STDIN) {
        let why = "a store needs a file";
        return Err(config.wrong("store", 0, why, "name one"));
    }
    let mut options = a99_vectors::SqliteOptions::default();
    // A wait for a lock may not exceed the run's timeout either.
    if let Some(time) = config.set.timeout {
        options.busy_timeout = options.busy_timeout.min(time);
    }
    let store = a99_vectors::VectorStore::open_with(path, options)
        .map_err(|error| failed(config, error.code().name(), error.message(), error.help()))?;
    let database = store.keys().database().clone();
    Ok(opened(store, clock, || database.close()))
}

#[cfg(not(feature = "sqlite"))]
fn open_file(config: &EffectiveConfig, _: &Path, _: Option<FixedClock>) -> Result<Opened, Failure> {
    let what = format!("`{}` with a file", config.named("store", 0));
    Err(Failure::missing_feature(&what, "sqlite"))
}

/// The options of a server's URL.
///
/// # Errors
/// Another scheme, or a URL that cannot be read.
#[cfg(feature = "postgres")]
pub(crate) fn server_options(
    url: &ServerUrl,
) -> Result<a99_postgres::PostgresOptions, a99_postgres::PostgresError> {
    a99_postgres::PostgresOptions::of_url(&url.0)
}

#[cfg(feature = "postgres")]
fn connect(
    config: &EffectiveConfig,
    url: &ServerUrl,
    clock: Option<FixedClock>,
) -> Result<Opened, Failure> {
    let connected = server_options(url).and_then(a99_vectors::PostgresVectorStore::connect);
    let store = connected
        .map_err(|error| failed(config, error.code().name(), error.message(), error.help()))?;
    let keys = store.keys().clone();
    Ok(opened(store, clock, || keys.close()))
}

#[cfg(not(feature = "postgres"))]
fn connect(
    config: &EffectiveConfig,
    _: &ServerUrl,
    _: Option<FixedClock>,
) -> Result<Opened, Failure> {
    let what = format!("`{}` with a server", config.named("store", 0));
    Err(Failure::missing_feature(&what, "postgres"))
}

/// A failure with the library's code.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn failed(
    config: &EffectiveConfig,
    code: &'static str,
    message: &str,
    help: Option<&'static str>,
) -> Failure {
    let text = format!("{}: {message}", config.named("store", 0));
    Failure::coded(code, text, help.unwrap_or("see docs/grants.md"))
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn opened<B: a99_vectors::Backend>(
    store: a99_vectors::WithVectors<B>,
    clock: Option<FixedClock>,
    close: impl FnOnce() + Send + Sync + 'static,
) -> Opened {
    let store = match clock {
        Some(clock) => store.with_clock(Arc::new(clock)),
        None => store,
    };
    Opened(Some(OpenStore {
        store: Arc::new(store),
        close: Box::new(close),
    }))
}

impl Opened {
    /// Adds the store.
    pub(crate) fn grant(
        &self,
        config: &EffectiveConfig,
        mut set: Capabilities,
    ) -> Result<Capabilities, Failure> {
        match &self.0 {
            Some(_) if config.yields("store", set.store.is_some()) => Ok(set),
            Some(_) if set.store.is_some() => {
                let why = "it and the script's `store` or `vectors` exclude each other";
                Err(config.wrong("store", 0, why, "leave one of them out"))
            }
            Some(opened) => {
                set.store = Some(Arc::clone(&opened.store));
                Ok(set)
            }
            None => Ok(set),
        }
    }

    /// Waits until all writes are in the file or at the server.
    pub(crate) fn close(self) {
        if let Some(OpenStore { store, close }) = self.0 {
            drop(store);
            close();
        }
    }
}
