//! Lock of a store: one process at a time owns its file, by any path, or several share it.
//!
//! There are two locks. The one on `<file>.lock` carries the owner's process id, then the
//! [tokens](crate::token) of the store, one a line, each after the inode of its file; versions
//! that know no other lock respect it. On Linux the store's file itself is locked as well, so
//! that hard links and a deleted lock file admit no second owner. On other systems and on
//! network file systems `flock` on the file would block SQLite's own locks.

use crate::token::LENGTH;
use a99_runtime_engine::{StoreCode, StoreError};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes read of a lock file.
const MAX_NOTE: u64 = 1_024;

/// Appends to a file name: the path of a file beside another.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

/// The path of a store without symbolic links. The file need not exist, but its folder must.
///
/// # Errors
/// Those of the file system.
pub fn canonical_path(path: &Path) -> std::io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let path = std::path::absolute(path)?;
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(error);
            };
            let folder = folder.canonicalize()?;
            match folder.join(name).read_link() {
                Ok(target) => canonical_path(&folder.join(target)),
                Err(_) => Ok(folder.join(name)),
            }
        }
        found => found,
    }
}

pub(crate) fn failed(path: &Path, error: &std::io::Error) -> StoreError {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory => StoreCode::NotFound,
        _ => StoreCode::Unavailable,
    };
    StoreError::new(code, format!("{}: {error}", path.display()))
}

/// Opens a file for locking; a new one is readable by its user only.
fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| failed(path, &error))
}

/// A file that is locked until this is dropped or the process ends. The file is never deleted:
/// a lock on an unlinked file would exclude no other process.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    /// Closing is not enough: a child process that is being spawned may briefly share the
    /// descriptor.
    fn drop(&mut self) {
        // Closing releases it at the latest.
        drop(self.0.unlock());
    }
}

impl Locked {
    /// Locks a file; gives the file back if another process holds the lock.
    fn take(path: &Path, file: File, is_shared: bool) -> Result<Result<Locked, File>, StoreError> {
        let taken = match is_shared {
            true => file.try_lock_shared(),
            false => file.try_lock(),
        };
        match taken {
            Ok(()) => Ok(Ok(Locked(file))),
            Err(TryLockError::WouldBlock) => Ok(Err(file)),
            Err(TryLockError::Error(error)) => Err(failed(path, &error)),
        }
    }
}

/// Ownership of a store's file.
#[derive(Debug)]
pub(crate) struct FileLock {
    // Field order is drop order, after SQLite's descriptors: closing any descriptor of a file
    // drops all `fcntl` locks that the process has on it.
    note: Locked,
    path: PathBuf,
    /// The tokens of the lock file, each with its file's inode.
    tokens: Vec<(u64, String)>,
    #[cfg(target_os = "linux")]
    _file: inode::Owned,
}

impl FileLock {
    /// Locks a store by its [canonical](canonical_path) path, and records an owner that does not
    /// share it.
    ///
    /// # Errors
    /// [`StoreCode::Locked`] with the owning process; [`StoreCode::Unavailable`] for a file
    /// with several names, and for disk errors.
    pub(crate) fn take(store: &Path, is_shared: bool) -> Result<FileLock, StoreError> {
        let path = beside(store, ".lock");
        let note = match Locked::take(&path, open(&path)?, is_shared)? {
            Ok(note) => note,
            Err(file) => return Err(is_locked(store, &holder(&file))),
        };
        #[cfg(target_os = "linux")]
        let file = inode::Owned::take(store, is_shared)?;
        check_names(store)?;
        let lock = FileLock {
            tokens: tokens(&text(&note.0)),
            note,
            path,
            #[cfg(target_os = "linux")]
            _file: file,
        };
        if !is_shared {
            lock.write()?;
        }
        Ok(lock)
    }

    /// The tokens that the lock file had for a store's file when it was locked.
    pub(crate) fn tokens(&self, inode: u64) -> impl Iterator<Item = &str> {
        let of_file = self.tokens.iter().filter(move |(of, _)| *of == inode);
        of_file.map(|(_, token)| token.as_str())
    }

    /// Writes the valid tokens of a store's file.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn note(&mut self, inode: u64, tokens: Vec<String>) -> Result<(), StoreError> {
        self.tokens = tokens.into_iter().map(|token| (inode, token)).collect();
        self.write()
    }

    /// Waits until the tokens are on disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let synced = self.note.0.sync_data();
        synced.map_err(|error| failed(&self.path, &error))
    }

    fn write(&self) -> Result<(), StoreError> {
        let lines = self.tokens.iter();
        let lines = lines.map(|(inode, token)| format!("{inode} {token}\n"));
        let text = format!("{}\n{}", std::process::id(), lines.collect::<String>());
        let mut written = &self.note.0;
        written
            .set_len(0)
            .and_then(|()| written.rewind())
            .and_then(|()| written.write_all(text.as_bytes()))
            .map_err(|error| failed(&self.path, &error))
    }
}

/// The content of a lock file; empty on systems where locked files cannot be read.
fn text(mut file: &File) -> String {
    let mut text = String::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MAX_NOTE).read_to_string(&mut text));
    read.map(|_| text).unwrap_or_default()
}

/// Parses the tokens of a lock file. Incomplete lines are skipped.
fn tokens(text: &str) -> Vec<(u64, String)> {
    let token = |line: &str| {
        let (inode, token) = line.strip_suffix('\n')?.split_once(' ')?;
        let is_token = token.len() == LENGTH && token.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some((inode.parse().ok()?, is_token.then(|| token.to_owned())?))
    };
    text.split_inclusive('\n').filter_map(token).collect()
}

/// The owner recorded in a lock file. Owners that share the store are not recorded.
fn holder(file: &File) -> String {
    if file.try_lock_shared().is_ok() {
        return "another host, which shares it,".to_owned();
    }
    let text = text(file);
    match text.lines().next().unwrap_or_default().parse::<u32>() {
        Ok(pid) => format!("process {pid}"),
        // The owner has not written it yet, or locked files cannot be read.
        _ => "another process".to_owned(),
    }
}

fn is_locked(store: &Path, holder: &str) -> StoreError {
    let message = format!(
        "{}: {holder} has it open: end it, or name another file",
        store.display()
    );
    StoreError::new(StoreCode::Locked, message)
}

/// Refuses a file with several names. SQLite names the log after the file: under another name
/// the last commits are missing, and writes damage the file.
///
/// # Errors
/// [`StoreCode::Unavailable`]
pub(crate) fn check_names(store: &Path) -> Result<(), StoreError> {
    #[cfg(unix)]
    if let Ok(found) = store.metadata() {
        let names = std::os::unix::fs::MetadataExt::nlink(&found);
        if found.is_file() && names > 1 {
            let message = format!(
                "{}: the file has {names} names (hard links), and its log lies beside one of \
                 them: remove the others, or copy the file",
                store.display()
            );
            return Err(StoreError::new(StoreCode::Unavailable, message));
        }
    }
    let _ = store;
    Ok(())
}

/// The lock on the store's file itself.
#[cfg(target_os = "linux")]
mod inode {
    use super::{Locked, failed, is_locked, open};
    use crate::runtime::locked;
    use a99_runtime_engine::StoreError;
    use std::collections::BTreeMap;
    use std::fs::{File, Metadata};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::Mutex;

    /// Files that this process owns, by device and inode. They are not opened again, because
    /// closing a descriptor would drop SQLite's locks.
    static OWNED: Mutex<BTreeMap<(u64, u64), Held>> = Mutex::new(BTreeMap::new());

    /// A file that this process owns; without a lock on network file systems.
    struct Held {
        _file: Option<Locked>,
        /// Number of handles that share it; 0 for one that is alone.
        sharing: usize,
    }

    /// Network file systems whose clients turn a `flock` into a lock of the whole file at the
    /// server, where it conflicts with SQLite's `fcntl` locks. Numbers of `statfs(2)`: NFS,
    /// SMB, CIFS, SMB2 and 9P.
    const NETWORK: [u32; 5] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997];

    /// Whether a file is on one of these; false if `statfs` fails.
    fn is_on_network(file: &File) -> bool {
        rustix::fs::fstatfs(file).is_ok_and(|found| is_network(found.f_type))
    }

    /// The number has 32 bits, in a word whose size and sign depend on the machine.
    fn is_network(kind: impl Into<i128>) -> bool {
        let kind = kind.into() & i128::from(u32::MAX);
        NETWORK.iter().any(|network| i128::from(*network) == kind)
    }

    fn of(found: &Metadata) -> (u64, u64) {
        (found.dev(), found.ino())
    }

    #[derive(Debug)]
    pub(super) struct Owned((u64, u64));

    impl Owned {
        pub(super) fn take(store: &Path, is_shared: bool) -> Result<Owned, StoreError> {
            let io = |error: std::io::Error| failed(store, &error);
            let mut owned = locked(&OWNED);
            if let Ok(found) = store.metadata()
                && let Some(held) = owned.get_mut(&of(&found))
            {
                if is_shared && held.sharing > 0 {
                    held.sharing += 1;
                    return Ok(Owned(of(&found)));
                }
                let own = format!("process {}", std::process::id());
                return Err(is_locked(store, &own));
            }
            let file = open(store)?;
            let inode = of(&file.metadata().map_err(io)?);
            // On a network the lock file and the in-process list still protect the store.
            let file = match is_on_network(&file) {
                true => None,
                false => match Locked::take(store, file, is_shared)? {
                    Ok(file) => Some(file),
                    Err(_) => return Err(is_locked(store, "another process")),
                },
            };
            let sharing = usize::from(is_shared);
            owned.insert(
                inode,
                Held {
                    _file: file,
                    sharing,
                },
            );
            Ok(Owned(inode))
        }
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            let mut owned = locked(&OWNED);
            if let Some(held) = owned.get_mut(&self.0) {
                held.sharing = held.sharing.saturating_sub(1);
                if held.sharing == 0 {
                    owned.remove(&self.0);
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::{is_network, is_on_network};

        #[test]
        fn t7_files_on_a_network_are_not_locked_as_a_whole() {
            // As the machine's word has them, with and without their sign.
            for kind in [0x6969_u32, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997] {
                assert!(
                    is_network(kind) && is_network(kind.cast_signed()),
                    "{kind:x}"
                );
            }
            for kind in [
                0xEF53_u32,
                0x0102_1994,
                0x5846_5342,
                0x9123_683E,
                0x794C_7630,
            ] {
                assert!(!is_network(kind), "{kind:x}");
            }
            let file = tempfile::tempfile().expect("a file");
            assert!(!is_on_network(&file));
        }
    }
}
