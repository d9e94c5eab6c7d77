//! Runtime directory: the folder with the sockets of a user's sandboxes.
//!
//! It is `$XDG_RUNTIME_DIR/agent99`, else `agent99-UID` in the folder for temporary files. A
//! process that can write there can pose as a sandbox, so the folder must belong to this user and
//! give others no access. It is opened once, and all access goes through its descriptor,
//! `/proc/self/fd` for sockets: the checked folder is the used one, and a long path still fits a
//! socket's address.

use super::error::UNTRUSTED_FOLDER;
use super::lock::{self, LockState};
use super::name::Name;
use crate::local::Refusal;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Extensions of a sandbox's files.
const SOCKET: &str = "sock";
const LOCK: &str = "lock";
const LOG: &str = "log";

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Most bytes of a log to show, from its end.
const SHOWN_LOG_BYTES: usize = 2048;

/// A process by its pidfd, which never refers to another process.
#[derive(Debug)]
pub(crate) struct Holder {
    pid: Pid,
    fd: OwnedFd,
}

impl Holder {
    fn of(pid: Pid) -> Option<Self> {
        // Never signal init or this process.
        if pid.as_raw_pid() <= 1 || pid == rustix::process::getpid() {
            return None;
        }
        let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, fd })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends it a signal; ignored if it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = rustix::process::pidfd_send_signal(&self.fd, signal);
    }
}

/// The open runtime directory.
#[derive(Debug)]
pub(crate) struct RuntimeDir {
    folder: OwnedFd,
    path: PathBuf,
}

impl RuntimeDir {
    /// The user's runtime directory, created if missing.
    ///
    /// # Errors
    /// [`UNTRUSTED_FOLDER`] if others have access to it; I/O errors.
    pub(crate) fn of_user() -> Result<Self, Refusal> {
        Self::at(a99_sandbox::p9::runtime_folder())
    }

    fn at(path: PathBuf) -> Result<Self, Refusal> {
        match rustix::fs::mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(Refusal::io(path.display(), error)),
        }
        let untrusted = |why: &str| {
            let text = format!(
                "{}: {why}; sockets of sandboxes need a folder of this user with mode 700, \
                 without a symbolic link (`XDG_RUNTIME_DIR` says where)",
                path.display()
            );
            Refusal::new(UNTRUSTED_FOLDER, text)
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(untrusted("it is not a folder")),
            Err(Errno::ACCESS) => return Err(untrusted("it belongs to somebody else")),
            Err(error) => return Err(Refusal::io(path.display(), error)),
        };
        let stat = rustix::fs::fstat(&folder).map_err(|e| Refusal::io(path.display(), e))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(untrusted("it belongs to somebody else"));
        }
        if stat.st_mode & OTHERS != 0 {
            return Err(untrusted("others have access to it"));
        }
        Ok(Self { folder, path })
    }

    fn file(name: &Name, ending: &str) -> String {
        format!("{name}.{ending}")
    }

    /// Path of the socket, valid while this folder is open.
    fn socket(&self, name: &Name) -> PathBuf {
        let folder = self.folder.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{folder}/{name}.{SOCKET}"))
    }

    /// Connects to a sandbox's daemon.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn connect(&self, name: &Name) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.socket(name))
    }

    /// Listens for a sandbox's clients. Only the holder of its lock may call this: a stale socket
    /// is removed.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn listen(&self, name: &Name) -> Result<UnixListener, Refusal> {
        self.remove_socket(name);
        UnixListener::bind(self.socket(name))
            .map_err(|error| Refusal::io(self.path(name, SOCKET).display(), error))
    }

    /// The path of a file, for messages.
    fn path(&self, name: &Name, ending: &str) -> PathBuf {
        self.path.join(Self::file(name, ending))
    }

    /// The daemon's log file.
    pub(crate) fn log_path(&self, name: &Name) -> PathBuf {
        self.path(name, LOG)
    }

    /// Opens the log, emptied.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn new_log(&self, name: &Name) -> Result<File, Refusal> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&self.folder, Self::file(name, LOG), flags, mode)
            .map(File::from)
            .map_err(|error| Refusal::io(self.log_path(name).display(), error))
    }

    /// The end of the log, if it exists.
    pub(crate) fn log_text(&self, name: &Name) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = Self::file(name, LOG);
        let log = rustix::fs::openat(&self.folder, file, flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        File::from(log).read_to_end(&mut bytes).ok()?;
        let start = bytes.len().saturating_sub(SHOWN_LOG_BYTES);
        let text = String::from_utf8_lossy(&bytes[start..]).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Takes a name's lock; without `make`, only if its file exists.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn lock(&self, name: &Name, make: bool) -> Result<LockState, Refusal> {
        lock::take(self.folder.as_fd(), &Self::file(name, LOCK), make)
            .map_err(|error| Refusal::io(self.path(name, LOCK).display(), error))
    }

    /// The daemon of a sandbox according to the kernel: the process that listens on its socket, or
    /// else the one that holds its lock. The content of files proves nothing: others may have
    /// written it.
    pub(crate) fn holder(&self, name: &Name) -> Option<Holder> {
        self.listener(name).or_else(|| self.locker(name))
    }

    /// The process that listens on a sandbox's socket.
    fn listener(&self, name: &Name) -> Option<Holder> {
        let stream = self.connect(name).ok()?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        let holder = Holder::of(peer.pid)?;
        // It still listens, so the pid was not reused before the pidfd was opened.
        let again = self.connect(name).ok()?;
        let again = rustix::net::sockopt::socket_peercred(&again).ok()?;
        (again.pid == peer.pid && peer.uid == rustix::process::geteuid()).then_some(holder)
    }

    /// The process that holds a sandbox's lock.
    fn locker(&self, name: &Name) -> Option<Holder> {
        let file = Self::file(name, LOCK);
        let stat = rustix::fs::statat(&self.folder, file, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let pid = lock::holder(stat.st_dev, stat.st_ino)?;
        let holder = Holder::of(pid)?;
        (lock::holder(stat.st_dev, stat.st_ino) == Some(pid)).then_some(holder)
    }

    /// Removes the socket, so that no client finds the sandbox any more.
    pub(crate) fn remove_socket(&self, name: &Name) {
        self.remove(name, SOCKET);
    }

    /// Removes the log after a normal end.
    pub(crate) fn remove_log(&self, name: &Name) {
        self.remove(name, LOG);
    }

    /// Removes the files of a sandbox whose lock this process holds.
    pub(crate) fn clear(&self, name: &Name, held: lock::Lock) {
        self.remove_socket(name);
        // Remove it while it is held: a waiting process then finds that the name no longer refers
        // to the file it locked.
        self.remove(name, LOCK);
        drop(held);
    }

    /// Removes a file. Errors are ignored: a file that cannot be removed is replaced by the next
    /// start.
    fn remove(&self, name: &Name, ending: &str) {
        let _ = rustix::fs::unlinkat(&self.folder, Self::file(name, ending), AtFlags::empty());
    }

    /// Names of all sandboxes that run or left files behind, sorted.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn names(&self) -> Result<Vec<Name>, Refusal> {
        let failed = |error| Refusal::io(self.path.display(), error);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(file) = entry.file_name().to_str() else {
                continue;
            };
            let path = Path::new(file);
            let is_ours = path.extension() == Some(OsStr::new(LOCK));
            let stem = path.file_stem().and_then(OsStr::to_str);
            if let (true, Some(Ok(name))) = (is_ours, stem.map(str::parse)) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether a socket of that name exists, used or stale.
    #[cfg(test)]
    fn has_socket(&self, name: &Name) -> bool {
        let file = Self::file(name, SOCKET);
        rustix::fs::statat(&self.folder, file, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_socket())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("a99-runtime-dir-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn a_folder_is_made_for_its_user_alone() {
        let top = folder("made");
        let dir = RuntimeDir::at(top.join("p")).unwrap();
        let mode = std::fs::metadata(top.join("p")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        assert_eq!(dir.names(), Ok(vec![]));
        assert!(RuntimeDir::at(top.join("p")).is_ok());
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let top = folder("shared");
        for mode in [0o755, 0o710, 0o701, 0o770] {
            std::fs::set_permissions(&top, PermissionsExt::from_mode(mode)).unwrap();
            let code = RuntimeDir::at(top.clone()).unwrap_err().code;
            assert_eq!(code, UNTRUSTED_FOLDER, "{mode:o}");
        }
        std::fs::set_permissions(&top, PermissionsExt::from_mode(0o700)).unwrap();
        symlink(&top, top.join("link")).unwrap();
        std::fs::write(top.join("file"), "").unwrap();
        for name in ["link", "file"] {
            let code = RuntimeDir::at(top.join(name)).unwrap_err().code;
            assert_eq!(code, UNTRUSTED_FOLDER, "{name}");
        }
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_name_is_held_once_and_left_by_its_holder() {
        let top = folder("held");
        std::fs::set_permissions(&top, PermissionsExt::from_mode(0o700)).unwrap();
        let dir = RuntimeDir::at(top.clone()).unwrap();
        let name: Name = "box".parse().unwrap();
        assert!(matches!(dir.lock(&name, false), Ok(LockState::Absent)));
        let Ok(LockState::Taken(lock)) = dir.lock(&name, true) else {
            panic!("nobody holds it");
        };
        assert!(matches!(dir.lock(&name, true), Ok(LockState::Held)));
        let stat = rustix::fs::statat(&dir.folder, "box.lock", AtFlags::empty()).unwrap();
        let holder = lock::holder(stat.st_dev, stat.st_ino).unwrap();
        assert_eq!(holder, rustix::process::getpid());
        assert!(dir.holder(&name).is_none(), "never this process");
        assert_eq!(dir.names(), Ok(vec![name.clone()]));
        dir.clear(&name, lock);
        assert!(matches!(dir.lock(&name, false), Ok(LockState::Absent)));
        std::fs::remove_dir_all(top).unwrap();
    }

    /// A number in a file proves nothing: every process that can write the folder can forge it.
    #[test]
    fn s9_a_number_in_a_file_is_no_process() {
        let top = folder("number");
        std::fs::set_permissions(&top, PermissionsExt::from_mode(0o700)).unwrap();
        let dir = RuntimeDir::at(top.clone()).unwrap();
        let name: Name = "box".parse().unwrap();
        let mut other = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        std::fs::write(top.join("box.lock"), format!("{}\n", other.id())).unwrap();
        assert!(dir.holder(&name).is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        // A real holder is found, regardless of the file's content.
        let lock = top.join("box.lock");
        let mut holder = std::process::Command::new("flock")
            .args([lock.as_os_str(), "sleep".as_ref(), "100".as_ref()])
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let found = loop {
            match dir.holder(&name) {
                Some(found) => break found,
                None if std::time::Instant::now() > deadline => panic!("nobody holds it"),
                None => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        };
        assert_eq!(found.pid().as_raw_pid() as u32, holder.id());
        found.signal(Signal::KILL);
        assert!(!holder.wait().unwrap().success());
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_socket_is_reached_below_a_long_path() {
        let top = folder("long");
        let deep = top.join("x".repeat(120));
        let dir = RuntimeDir::at(deep).unwrap();
        let name: Name = "box".parse().unwrap();
        let listener = dir.listen(&name).unwrap();
        assert!(dir.has_socket(&name));
        let client = dir.connect(&name).unwrap();
        let (server, _) = listener.accept().unwrap();
        drop((client, server, listener));
        // The state after a kill. A process that another test starts has the listener too until it
        // runs its program.
        assert!(dir.has_socket(&name));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while dir.connect(&name).is_ok() {
            assert!(std::time::Instant::now() < deadline, "somebody listens");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(dir.listen(&name).is_ok());
        std::fs::remove_dir_all(top).unwrap();
    }
}
