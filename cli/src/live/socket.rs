//! Socket of a host: a file beside its store that only its owner can use.
//!
//! Only the process that has locked the store listens there, so a socket that it finds was left by
//! a dead host.

use super::error::NO_ANSWER;
use super::wire::Refusal;
use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;

/// Longest path that fits a socket address on every system.
const MAX_ADDRESS: usize = 100;

/// Timeout of a connection attempt.
const CONNECTING: Duration = Duration::from_secs(10);

pub(super) fn beside(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".sock");
    PathBuf::from(name)
}

/// Calls with a path that fits a socket address: the path itself, or via its folder's descriptor if
/// it is too long.
fn with_address<T>(path: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= MAX_ADDRESS {
        return call(path);
    }
    let folder = File::open(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().unwrap_or_default();
    let by_descriptor = format!("/proc/self/fd/{}", folder.as_raw_fd());
    call(&Path::new(&by_descriptor).join(name))
}

/// A listening socket with its owner. Dropping it removes the file.
pub(super) struct Listening {
    pub(super) listener: UnixListener,
    path: PathBuf,
    owner: u32,
    /// Device and inode of the file: a later host may replace it.
    inode: (u64, u64),
}

impl Listening {
    /// Listens, and replaces the socket of a dead host. Only the store's owner may call this.
    ///
    /// # Errors
    /// The path is not a socket; I/O errors.
    pub(super) fn at(path: PathBuf) -> Result<Listening, Refusal> {
        let failed = |error: io::Error| {
            Refusal::new("store.unavailable", format!("{}: {error}", path.display()))
                .helped("the host's socket lies beside its store: see that it may be made there")
        };
        match path.symlink_metadata() {
            Ok(found) if found.file_type().is_socket() => {
                std::fs::remove_file(&path).map_err(failed)?;
            }
            Ok(_) => {
                let text = format!("{}: it is no socket", path.display());
                let help = "remove the file, or name another store with `--store FILE`";
                return Err(Refusal::new("store.unavailable", text).helped(help));
            }
            Err(_) => {}
        }
        let listener =
            with_address(&path, |address| UnixListener::bind(address)).map_err(failed)?;
        let owner = std::fs::set_permissions(&path, Permissions::from_mode(0o600))
            .and_then(|()| path.symlink_metadata())
            .map_err(failed)?;
        Ok(Listening {
            listener,
            owner: owner.uid(),
            inode: (owner.dev(), owner.ino()),
            path,
        })
    }

    /// Whether the peer is the owner: right after its creation the file may be open to others.
    pub(super) fn is_owner(&self, stream: &tokio::net::UnixStream) -> bool {
        stream
            .peer_cred()
            .is_ok_and(|peer| peer.uid() == self.owner)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let is_mine = |found: Metadata| (found.dev(), found.ino()) == self.inode;
        if self.path.symlink_metadata().is_ok_and(is_mine) {
            // A stale socket is removed by the next host.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Connects to a host; `None` if no host listens.
///
/// # Errors
/// A socket of another user, one that does not accept, and I/O errors.
pub(super) fn connect(path: &Path) -> Result<Option<UnixStream>, Refusal> {
    match in_time(path) {
        Ok(stream) => Ok(Some(stream)),
        // No host, a dead one, or a file of another kind, which the next host's start reports.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => {
            let text = format!("{}: {error}", path.display());
            let help =
                "the host is somebody else's, stands still, or is ending: see whether it runs";
            Err(Refusal::new(NO_ANSWER, text).helped(help))
        }
    }
}

/// Connects within [`CONNECTING`]: a hanging host accepts until its backlog is full, and then
/// `connect` blocks.
fn in_time(path: &Path) -> io::Result<UnixStream> {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let path = path.to_path_buf();
    std::thread::Builder::new().spawn(move || {
        let connected = with_address(&path, |address| UnixStream::connect(address));
        // The receiver is gone after a timeout.
        drop(tell.send(connected));
    })?;
    let late = |_| io::Error::new(ErrorKind::TimedOut, "the host accepts no connection");
    told.recv_timeout(CONNECTING).map_err(late)?
}
