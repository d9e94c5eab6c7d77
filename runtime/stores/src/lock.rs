//! Lock of a store: a file beside it, which one process has locked.

use a99_runtime_engine::{StoreCode, StoreError};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Bytes of the holder's name that are read.
const MAX_HOLDER: u64 = 64;

/// Held for as long as it lives, or its process. The file stays: a lock on a file without a
/// name would be none.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl Drop for FileLock {
    /// Closing the file is not enough: a process that this one is just starting has it open,
    /// too, for a moment.
    fn drop(&mut self) {
        // It is left with the file at the latest.
        drop(self.0.unlock());
    }
}

impl FileLock {
    /// Takes the lock of a store, and writes into it who has it.
    ///
    /// # Errors
    /// [`StoreCode::Locked`] with the process that has it, and faults of the disk.
    pub(crate) fn take(store: &Path) -> Result<FileLock, StoreError> {
        let mut name = OsString::from(store);
        name.push(".lock");
        let path = PathBuf::from(name);
        let failed = |error: std::io::Error| {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => StoreCode::NotFound,
                _ => StoreCode::Unavailable,
            };
            StoreError::new(code, format!("{}: {error}", path.display()))
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(is_locked(store, &file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let pid = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(pid.as_bytes()))
            .map_err(failed)?;
        Ok(FileLock(file))
    }
}

fn is_locked(store: &Path, file: &File) -> StoreError {
    let mut holder = String::new();
    let read = file.take(MAX_HOLDER).read_to_string(&mut holder);
    let holder = match (read, holder.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("process {pid}"),
        // Between locking and writing, or where locked files cannot be read.
        _ => "another process".to_owned(),
    };
    let message = format!(
        "{}: {holder} has it open: end it, or name another file",
        store.display()
    );
    StoreError::new(StoreCode::Locked, message)
}
