//! Session directory, shared by the agent and the session's shell: it names pipes and
//! texts. The shell inherits it as a descriptor; in a guest no path leads to it, so that
//! commands of any user cannot find its files.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Descriptor number in the shell: above those that scripts use, and not 200, which some
/// use for a lock.
const NUMBER: i32 = 97;

/// Path of the directory for the shell with that process id and its children: faster to
/// resolve than `/proc/self`.
pub(super) fn path_in(shell: Pid) -> String {
    format!("/proc/{}/fd/{NUMBER}", shell.as_raw_nonzero())
}

/// File name of the running script.
const SCRIPT: &str = "script";

/// Mode of files that only agent and session may access.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// A session's directory; see the module.
#[derive(Debug)]
pub(super) struct SessionDir {
    folder: OwnedFd,
    /// Path of the directory, if it must be removed.
    path: Option<PathBuf>,
    /// Number of names given so far.
    made: u64,
    /// File of scripts, and an upper bound of its length.
    script: Option<(OwnedFd, usize)>,
    outputs: Option<[(String, OwnedFd); 2]>,
}

/// One output of a script.
#[derive(Debug)]
pub(super) struct OutputPipe {
    /// Name in the directory.
    pub name: String,
    /// Non-blocking read end.
    pub read: OwnedFd,
    /// A write end: without one the pipe would end before the shell opens it.
    pub write: OwnedFd,
}

impl SessionDir {
    /// Uses an empty folder.
    pub(super) fn at(folder: OwnedFd) -> Self {
        Self {
            folder,
            path: None,
            made: 0,
            script: None,
            outputs: None,
        }
    }

    /// Creates a temporary folder for this process.
    ///
    /// # Errors
    /// Those of making it.
    pub(super) fn temporary() -> io::Result<Self> {
        let name = format!("agent99-session-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Left by a process that had the same id and died.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&path, flags, Mode::empty())?;
        let mut session_dir = Self::at(folder);
        session_dir.path = Some(path);
        Ok(session_dir)
    }

    /// Its descriptor for a shell, with its number there.
    pub(super) fn for_child(&self) -> io::Result<(OwnedFd, i32)> {
        Ok((self.folder.try_clone()?, NUMBER))
    }

    /// Removes all names: an ended shell may have left processes that know them.
    pub(super) fn clear(&mut self) {
        self.script = None;
        self.outputs = None;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = rustix::fs::openat(&self.folder, c".", flags, Mode::empty());
        let Ok(entries) = entries.and_then(Dir::new) else {
            return;
        };
        for entry in entries.flatten() {
            // `.` and `..` cannot be removed, and need not be.
            let _ = rustix::fs::unlinkat(&self.folder, entry.file_name(), AtFlags::empty());
        }
    }

    fn name(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}{}", self.made)
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.folder, name, flags | OFlags::CLOEXEC, PRIVATE)
    }

    /// Makes a pipe that never ends, with both its ends in one descriptor, and returns its
    /// name.
    ///
    /// # Errors
    /// Those of making it.
    pub(super) fn pipe(&mut self, kind: &str) -> io::Result<(String, OwnedFd)> {
        let name = self.name(kind);
        self.make_pipe(&name)?;
        let both = self.open(&name, OFlags::RDWR | OFlags::NONBLOCK)?;
        Ok((name, both))
    }

    /// Opens another, blocking read end of a pipe.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) fn reader(&self, name: &str) -> io::Result<OwnedFd> {
        Ok(self.open(name, OFlags::RDONLY)?)
    }

    fn make_pipe(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::mknodat(&self.folder, name, FileType::Fifo, PRIVATE, 0)
    }

    /// Stores a text that can be read by its name.
    ///
    /// # Errors
    /// Those of writing it.
    pub(super) fn text(&mut self, text: &[u8]) -> io::Result<String> {
        let name = self.name("text");
        let file = self.open(&name, OFlags::WRONLY | OFlags::CREATE)?;
        write_at_start(&file, text)?;
        Ok(name)
    }

    /// Stores the text of the next script, replacing the last one; returns its name.
    ///
    /// # Errors
    /// Those of writing it.
    pub(super) fn script(&mut self, text: &[u8]) -> io::Result<&'static str> {
        let (file, length) = match &mut self.script {
            Some(script) => script,
            None => {
                let file = self.open(SCRIPT, OFlags::WRONLY | OFlags::CREATE)?;
                self.script.insert((file, 0))
            }
        };
        let before = std::mem::replace(length, text.len().max(*length));
        write_at_start(file, text)?;
        if text.len() < before {
            // Not truncated before: the file keeps its memory for the next script.
            rustix::fs::ftruncate(&*file, text.len() as u64)?;
        }
        *length = text.len();
        Ok(SCRIPT)
    }

    /// Returns the outputs of the next script: those of the last one if no process has them
    /// any more, else new ones.
    ///
    /// # Errors
    /// Those of making or opening them.
    pub(super) fn outputs(&mut self) -> io::Result<[OutputPipe; 2]> {
        let ends = match self.outputs.take().filter(|old| old.iter().all(is_over)) {
            Some(ends) => ends,
            None => [self.new_output("out")?, self.new_output("err")?],
        };
        let output = |(name, read): &(String, OwnedFd)| -> io::Result<OutputPipe> {
            let write = self.open(name, OFlags::WRONLY | OFlags::NONBLOCK)?;
            Ok(OutputPipe {
                name: name.clone(),
                read: read.try_clone()?,
                write,
            })
        };
        let outputs = [output(&ends[0])?, output(&ends[1])?];
        self.outputs = Some(ends);
        Ok(outputs)
    }

    fn new_output(&mut self, kind: &str) -> io::Result<(String, OwnedFd)> {
        let name = self.name(kind);
        self.make_pipe(&name)?;
        let read = self.open(&name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        Ok((name, read))
    }
}

/// Whether an output has no writers left, and was read to its end.
fn is_over((_, read): &(String, OwnedFd)) -> bool {
    rustix::io::read(read, &mut [0; 1]) == Ok(0)
}

fn write_at_start(file: &OwnedFd, text: &[u8]) -> io::Result<()> {
    let mut at = 0;
    while at < text.len() {
        at += rustix::io::pwrite(file, &text[at..], at as u64)?;
    }
    Ok(())
}

impl Drop for SessionDir {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A leftover folder does no harm.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn outputs_are_used_again_when_nobody_has_them() {
        let (_folder, mut session_dir) = temporary();
        let [first, _] = session_dir.outputs().unwrap();
        let name = first.name.clone();
        let left = first.write.try_clone().unwrap();
        drop(first);
        // Another process may still write to it.
        let [second, _] = session_dir.outputs().unwrap();
        assert_ne!(second.name, name);
        let name = second.name.clone();
        drop(second);
        let [third, _] = session_dir.outputs().unwrap();
        assert_eq!(third.name, name);
        drop(left);
    }

    #[test]
    fn a_script_takes_the_place_of_a_longer_one() {
        let (_folder, mut session_dir) = temporary();
        session_dir.script(b"a long script").unwrap();
        for text in ["short", "", "a longer script", "another script", "a"] {
            let name = session_dir.script(text.as_bytes()).unwrap();
            let file = session_dir.open(name, OFlags::RDONLY).unwrap();
            let read = io::read_to_string(std::fs::File::from(file)).unwrap();
            assert_eq!(read, text);
        }
        session_dir.clear();
        assert_eq!(
            session_dir.open(SCRIPT, OFlags::RDONLY).unwrap_err(),
            Errno::NOENT
        );
    }

    /// A session's directory in a temporary folder, which is removed with the first of the
    /// two.
    fn temporary() -> (TempDir, SessionDir) {
        let temporary = tempfile::tempdir().unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(temporary.path(), flags, Mode::empty()).unwrap();
        (temporary, SessionDir::at(folder))
    }
}
