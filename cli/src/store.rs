//! Store of a run, in the file that `--store` names.

use crate::config::InForce;
use crate::failure::Failure;
use agent99::Capabilities;
use agent99::capabilities::FixedClock;

/// The store, if there is one.
pub(crate) struct Opened {
    #[cfg(feature = "sqlite")]
    store: Option<a99_vectors::VectorStore>,
}

/// Opens the file. What expires does so by this clock, if there is one.
#[cfg(feature = "sqlite")]
pub(crate) fn open(config: &InForce, clock: Option<FixedClock>) -> Result<Opened, Failure> {
    use std::path::Path;
    let Some(path) = &config.set.store else {
        return Ok(Opened { store: None });
    };
    if path == Path::new(crate::input::STDIN) {
        let why = "a store needs a file";
        return Err(config.wrong("store", 0, why, "name one"));
    }
    let store = a99_vectors::VectorStore::open(path).map_err(|error| {
        let help = error.help().unwrap_or("see docs/grants.md");
        let text = format!("{}: {}", config.named("store", 0), error.message());
        Failure::coded(error.code().name(), text, help)
    })?;
    let store = match clock {
        Some(clock) => store.with_clock(std::sync::Arc::new(clock)),
        None => store,
    };
    Ok(Opened { store: Some(store) })
}

#[cfg(not(feature = "sqlite"))]
pub(crate) fn open(config: &InForce, _: Option<FixedClock>) -> Result<Opened, Failure> {
    match config.set.store {
        Some(_) => Err(Failure::missing_feature(
            &format!("`{}`", config.named("store", 0)),
            "sqlite",
        )),
        None => Ok(Opened {}),
    }
}

impl Opened {
    /// What the run is granted with it.
    #[cfg(feature = "sqlite")]
    pub(crate) fn grant(
        &self,
        config: &InForce,
        set: Capabilities,
    ) -> Result<Capabilities, Failure> {
        match &self.store {
            Some(_) if set.store.is_some() => {
                let why = "it and the script's `store` or `vectors` exclude each other";
                Err(config.wrong("store", 0, why, "leave one of them out"))
            }
            Some(store) => Ok(set.with_store(store.clone())),
            None => Ok(set),
        }
    }

    #[cfg(not(feature = "sqlite"))]
    pub(crate) fn grant(&self, _: &InForce, set: Capabilities) -> Result<Capabilities, Failure> {
        Ok(set)
    }

    /// Waits until all is in the file.
    pub(crate) fn close(self) {
        #[cfg(feature = "sqlite")]
        if let Some(store) = self.store {
            store.keys().database().clone().close();
        }
    }
}
