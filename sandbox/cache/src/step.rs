//! Step run: returns the result of a step from the cache or makes it, and reports the
//! progress.

use super::cache::{self, Cache};
use super::digest::Inputs;
use super::entry::Entry;
use super::error::{At, ImageError, disk_full};
use super::progress::{Event, Progress, StepEnd};
use std::path::Path;
use std::time::Instant;

/// One run of a step. The caller holds the lock of the cache.
#[derive(Debug)]
pub struct StepRun<'a> {
    cache: &'a Cache,
    step: &'static str,
    start: Instant,
}

impl<'a> StepRun<'a> {
    /// Starts the run of a step, and its clock.
    pub fn new(cache: &'a Cache, step: &'static str) -> Self {
        let start = Instant::now();
        StepRun { cache, step, start }
    }

    /// Finds the result of these inputs in the cache; if it exists, the run is over.
    pub fn cached(
        &self,
        inputs: &Inputs,
        progress: &mut dyn Progress,
    ) -> Result<Option<Entry>, ImageError> {
        let found = self.cache.find(self.step, &inputs.key())?;
        if found.is_some() {
            self.finished(StepEnd::Cached, progress);
        }
        Ok(found)
    }

    /// Reports that the result is missing and the work starts.
    pub fn begin(&self, progress: &mut dyn Progress) {
        progress.event(Event::Started { step: self.step });
    }

    /// Makes the result. The work gets a scratch folder, and the empty folder of the
    /// result.
    pub fn make(
        self,
        inputs: Inputs,
        room: u64,
        progress: &mut dyn Progress,
        work: impl FnOnce(&mut dyn Progress, &Path, &Path) -> Result<(), ImageError>,
    ) -> Result<Entry, ImageError> {
        let out = self.cache.work("out")?;
        let folder = self.cache.work(self.step)?;
        check_room(&out, room)?;
        work(progress, &folder, &out)?;
        cache::remove(&folder)?;
        let elapsed = self.start.elapsed();
        let entry = self.cache.publish(self.step, inputs, &out, elapsed)?;
        self.finished(StepEnd::Built, progress);
        Ok(entry)
    }

    fn finished(&self, end: StepEnd, progress: &mut dyn Progress) {
        progress.event(Event::Finished {
            step: self.step,
            end,
            elapsed: self.start.elapsed(),
        });
    }
}

/// Checks before the work that the folder has enough space.
pub fn check_room(folder: &Path, needed: u64) -> Result<(), ImageError> {
    let free = free_bytes(folder)?;
    if free >= needed {
        return Ok(());
    }
    let megabytes = |bytes: u64| bytes / 1_000_000;
    let mut error = disk_full(folder.display().to_string());
    error.reason = format!(
        "{} MB free, {} MB needed",
        megabytes(free),
        megabytes(needed)
    );
    Err(error)
}

/// Bytes that this user may still write in a folder's file system.
pub fn free_bytes(folder: &Path) -> Result<u64, ImageError> {
    let state = rustix::fs::statvfs(folder).map_err(std::io::Error::from);
    let state = state.at(folder)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::super::error::ErrorCode;
    use super::*;

    #[test]
    fn room_is_checked_before() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).unwrap() > 0);
        assert!(free_bytes(Path::new("/none")).is_err());
        assert!(check_room(folder.path(), 1).is_ok());
        let error = check_room(folder.path(), u64::MAX).unwrap_err();
        assert_eq!(error.code, ErrorCode::DiskFull);
        assert!(error.reason.contains("MB needed"));
    }
}
