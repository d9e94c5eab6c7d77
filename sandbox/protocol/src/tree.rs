//! File tree stream: serialises files and folders to copy them between host and guest.
//!
//! Both sides run this code: [`send`] walks a file or a folder and writes the stream,
//! [`receive`] recreates it below a folder. The copy keeps contents to the byte, permission
//! bits, modification times and symbolic links. It drops owners, hard links (each becomes a
//! file) and set-id bits. Devices, pipes and sockets are skipped and counted.
//!
//! The receiver trusts no input: names are single components, every folder is created or
//! opened without following a link, and every file is created anew, so all writes stay
//! below the target. A symbolic link that would lead out of the tree is skipped and
//! counted, unless the receiver allows such links (the guest does: there they lead only
//! into the guest). Entries that the receiver's [`Guard`] refuses are skipped and counted
//! too. A file gets its name when it is complete.
//!
//! A stream is the line [`MAGIC`] and records: a kind, a name, and the kind's content.
//! Folders hold records up to their end record. The walk does not recurse: folders are
//! entered one after the other, at most [`MAX_DEPTH`] deep.

mod file;

use file::Unfinished;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The first bytes of a stream.
pub const MAGIC: &[u8; 8] = b"a99tree1";

/// Maximum nesting of folders: each needs an open descriptor while it is walked, and
/// processes may have 1,024.
pub const MAX_DEPTH: usize = 256;

/// Maximum bytes of a name (`NAME_MAX`), and of a link target (`PATH_MAX`).
const MAX_NAME: usize = 255;
const MAX_TARGET: usize = 4096;

/// Maximum bytes of file content in a chunk.
const CHUNK_BYTES: usize = 32 << 10;

/// Permission bits that a copy keeps.
const PERMISSIONS: u32 = 0o777;

/// Record kinds.
const FOLDER: u8 = b'd';
const FILE: u8 = b'f';
const LINK: u8 = b'l';
const END: u8 = b'e';
/// End of the stream; the number of skipped entries follows.
const DONE: u8 = b'.';

/// Counts of a finished copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Number of files.
    pub files: u64,
    /// Number of folders.
    pub folders: u64,
    /// Number of symbolic links.
    pub links: u64,
    /// Total bytes of file content.
    pub bytes: u64,
    /// Number of skipped entries: devices, pipes, sockets, links that would lead out, and
    /// entries that the receiver refuses.
    pub left_out: u64,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// Whether the receiver must skip an entry of that name and kind in a folder.
pub type Guard = fn(BorrowedFd<'_>, &CStr, EntryKind) -> io::Result<bool>;

/// Options and limits of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveOptions {
    /// Maximum bytes of file content; more is an error.
    pub max_bytes: u64,
    /// Maximum entries; more is an error.
    pub max_entries: u64,
    /// Creates symbolic links that lead out of the tree.
    pub any_link: bool,
    /// Skips further entries, with all entries below them.
    pub guard: Option<Guard>,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self {
            max_bytes: u64::MAX,
            max_entries: u64::MAX,
            any_link: false,
            guard: None,
        }
    }
}

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// A folder that is being walked.
struct FolderWalk {
    entries: Dir,
    folder: OwnedFd,
}

/// Writes the tree at `path`: a file, a folder or a link to one.
///
/// # Errors
/// Those of the file system and of `out`; a tree that is too deep.
pub fn send(path: &Path, out: &mut impl Write) -> io::Result<Copied> {
    let mut sender = Sender {
        out,
        copied: Copied::default(),
    };
    sender.out.write_all(MAGIC)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let top = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&top)?;
    // The receiver names the top.
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => sender.folder(b"", top, &stat)?,
        FileType::RegularFile => sender.file(b"", top, &stat)?,
        _ => return Err(invalid("neither a file nor a folder")),
    }
    sender.out.write_all(&[DONE])?;
    sender
        .out
        .write_all(&sender.copied.left_out.to_le_bytes())?;
    sender.out.flush()?;
    Ok(sender.copied)
}

struct Sender<'a, W> {
    out: &'a mut W,
    copied: Copied,
}

impl<W: Write> Sender<'_, W> {
    fn head(&mut self, kind: u8, name: &[u8], stat: &rustix::fs::Stat) -> io::Result<()> {
        self.out.write_all(&[kind])?;
        self.text(name)?;
        let mode = stat.st_mode & PERMISSIONS;
        self.out.write_all(&mode.to_le_bytes())?;
        self.out.write_all(&stat.st_mtime.to_le_bytes())?;
        self.out
            .write_all(&(stat.st_mtime_nsec as u32).to_le_bytes())
    }

    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.out.write_all(bytes)
    }

    fn file(&mut self, name: &[u8], fd: OwnedFd, stat: &rustix::fs::Stat) -> io::Result<()> {
        self.head(FILE, name, stat)?;
        let mut file = File::from(fd);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    self.text(&chunk[..count])?;
                    self.copied.bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.copied.files += 1;
        self.text(b"")
    }

    /// Sends a folder and all entries below it.
    fn folder(&mut self, name: &[u8], fd: OwnedFd, stat: &rustix::fs::Stat) -> io::Result<()> {
        self.head(FOLDER, name, stat)?;
        let mut walks = vec![walk(fd)?];
        while let Some(walk_now) = walks.last_mut() {
            let Some(entry) = walk_now.entries.next() else {
                walks.pop();
                self.copied.folders += 1;
                self.out.write_all(&[END])?;
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let folder = walk_now.folder.as_fd();
            if let Some((fd, stat)) = self.entry(folder, name)? {
                if walks.len() == MAX_DEPTH {
                    return Err(too_deep());
                }
                self.head(FOLDER, name.to_bytes(), &stat)?;
                walks.push(walk(fd)?);
            }
        }
        Ok(())
    }

    /// Sends an entry of a folder; a subfolder is returned for the caller to walk.
    fn entry(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<Option<(OwnedFd, rustix::fs::Stat)>> {
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Removed since the listing.
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let fd = rustix::fs::openat(folder, name, flags | OFlags::DIRECTORY, Mode::empty());
                return Ok(Some((fd?, stat)));
            }
            FileType::RegularFile => {
                let fd = rustix::fs::openat(folder, name, flags, Mode::empty())?;
                // The opened file may differ from the one that `statat` saw.
                let stat = rustix::fs::fstat(&fd)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                    self.file(name.to_bytes(), fd, &stat)?;
                } else {
                    self.copied.left_out += 1;
                }
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
                self.head(LINK, name.to_bytes(), &stat)?;
                self.text(target.to_bytes())?;
                self.copied.links += 1;
            }
            _ => self.copied.left_out += 1,
        }
        Ok(None)
    }
}

fn walk(folder: OwnedFd) -> io::Result<FolderWalk> {
    let entries = Dir::read_from(&folder)?;
    Ok(FolderWalk { entries, folder })
}

/// Recreates a stream's tree at `path`.
///
/// The entries of an existing folder are added to or replaced; a file replaces a file.
///
/// # Errors
/// Those of the file system and of `input`; an invalid or truncated stream, or one that
/// exceeds `options`. Complete entries stay; an incomplete file leaves no trace.
pub fn receive(input: &mut impl Read, path: &Path, options: &ReceiveOptions) -> io::Result<Copied> {
    let mut magic = [0; MAGIC.len()];
    input.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(invalid("not a stream of files"));
    }
    let mut receiver = Receiver {
        input,
        options,
        copied: Copied::default(),
        entries: 0,
        open: Vec::new(),
        left: 0,
    };
    receiver.top(path)?;
    receiver.rest()?;
    Ok(receiver.copied)
}

/// Header of an entry, before its content.
struct EntryHeader {
    name: CString,
    mode: Mode,
    times: Timestamps,
}

/// A folder that is being filled. Mode and times are set last.
struct OpenFolder {
    folder: OwnedFd,
    mode: Mode,
    times: Timestamps,
}

struct Receiver<'a, R> {
    input: &'a mut R,
    options: &'a ReceiveOptions,
    copied: Copied,
    entries: u64,
    open: Vec<OpenFolder>,
    /// Depth within a skipped folder.
    left: usize,
}

impl<R: Read> Receiver<'_, R> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn text(&mut self, max: usize) -> io::Result<Vec<u8>> {
        let len = u32::from_le_bytes(self.array()?) as usize;
        if len > max {
            return Err(invalid(format!("{len} bytes where {max} are allowed")));
        }
        let mut bytes = vec![0; len];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads an entry's header; only the top entry has no name.
    fn head(&mut self, top: bool) -> io::Result<EntryHeader> {
        let name = self.text(MAX_NAME)?;
        let is_component =
            !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/');
        if top != name.is_empty() || !(top || is_component) {
            return Err(invalid("a name that is no name of a file"));
        }
        let name = CString::new(name)?;
        let mode = u32::from_le_bytes(self.array()?) & PERMISSIONS;
        let tv_sec = i64::from_le_bytes(self.array()?);
        let nanoseconds = u32::from_le_bytes(self.array()?).min(999_999_999);
        self.entries += 1;
        if self.entries > self.options.max_entries {
            let text = format!("more than {} entries", self.options.max_entries);
            return Err(invalid(text));
        }
        Ok(EntryHeader {
            name,
            mode: Mode::from_raw_mode(mode),
            times: Timestamps {
                last_access: Timespec {
                    tv_sec: 0,
                    tv_nsec: rustix::fs::UTIME_OMIT as _,
                },
                last_modification: Timespec {
                    tv_sec,
                    tv_nsec: nanoseconds as _,
                },
            },
        })
    }

    fn top(&mut self, path: &Path) -> io::Result<()> {
        let [kind] = self.array()?;
        let head = self.head(true)?;
        // The caller chose this path, so links in it are followed.
        let (above, name) = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) if above != Path::new("") => (above, name),
            _ => (Path::new("."), path.as_os_str()),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = rustix::fs::open(above, flags, Mode::empty())?;
        let name = CString::new(name.as_bytes())?;
        let kind = self.kind(kind)?;
        if self.is_refused(above.as_fd(), &name, kind)? {
            let text = "nothing is copied to where the host's git looks for what it runs";
            return Err(named(
                &name,
                io::Error::new(io::ErrorKind::PermissionDenied, text),
            ));
        }
        match kind {
            EntryKind::Folder => self.enter(above.as_fd(), &name, &head, OFlags::empty()),
            EntryKind::File => self.file(above.as_fd(), &name, &head),
            EntryKind::Link => Err(invalid("neither a file nor a folder")),
        }
    }

    fn kind(&self, byte: u8) -> io::Result<EntryKind> {
        match byte {
            FOLDER => Ok(EntryKind::Folder),
            FILE => Ok(EntryKind::File),
            LINK => Ok(EntryKind::Link),
            _ => Err(invalid("an entry of no known kind")),
        }
    }

    fn is_refused(&self, folder: BorrowedFd<'_>, name: &CStr, kind: EntryKind) -> io::Result<bool> {
        match self.options.guard {
            Some(guard) => guard(folder, name, kind),
            None => Ok(false),
        }
    }

    fn rest(&mut self) -> io::Result<()> {
        loop {
            let [kind] = self.array()?;
            if kind == DONE && self.open.is_empty() {
                let left_out = u64::from_le_bytes(self.array()?);
                self.copied.left_out = self.copied.left_out.saturating_add(left_out);
                return Ok(());
            }
            let Some(open) = self.open.last() else {
                return Err(invalid("an entry outside of the tree"));
            };
            if kind == END && self.left > 0 {
                self.left -= 1;
                continue;
            }
            if kind == END {
                rustix::fs::fchmod(&open.folder, open.mode)?;
                rustix::fs::futimens(&open.folder, &open.times)?;
                self.open.pop();
                self.copied.folders += 1;
                continue;
            }
            // Duplicated, since the list of open folders may grow meanwhile.
            let folder = open.folder.try_clone()?;
            let head = self.head(false)?;
            let name = head.name.clone();
            let kind = self.kind(kind)?;
            let refused = self.left == 0 && self.is_refused(folder.as_fd(), &name, kind)?;
            self.copied.left_out += u64::from(refused);
            if refused || self.left > 0 {
                self.pass(kind)?;
                continue;
            }
            match kind {
                EntryKind::Folder => self.enter(folder.as_fd(), &name, &head, OFlags::NOFOLLOW)?,
                EntryKind::File => self.file(folder.as_fd(), &name, &head)?,
                EntryKind::Link => self.link(folder.as_fd(), &head)?,
            }
        }
    }

    /// Discards the content of a skipped entry.
    fn pass(&mut self, kind: EntryKind) -> io::Result<()> {
        match kind {
            EntryKind::Folder if self.open.len() + self.left == MAX_DEPTH => Err(too_deep()),
            EntryKind::Folder => {
                self.left += 1;
                Ok(())
            }
            EntryKind::Link => self.text(MAX_TARGET).map(drop),
            EntryKind::File => self.content(&mut io::sink()),
        }
    }

    fn enter(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        head: &EntryHeader,
        follow: OFlags,
    ) -> io::Result<()> {
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep());
        }
        match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(named(name, error.into())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | follow;
        let folder = rustix::fs::openat(parent, name, flags, Mode::empty())
            .map_err(|error| named(name, error.into()))?;
        self.open.push(OpenFolder {
            folder,
            mode: head.mode,
            times: head.times.clone(),
        });
        Ok(())
    }

    fn file(&mut self, parent: BorrowedFd<'_>, name: &CStr, head: &EntryHeader) -> io::Result<()> {
        let filled = Unfinished::new(parent).and_then(|mut file| {
            self.content(file.file())?;
            rustix::fs::fchmod(file.file(), head.mode)?;
            rustix::fs::futimens(file.file(), &head.times)?;
            file.finish(name)
        });
        filled.map_err(|error| named(name, error))?;
        self.copied.files += 1;
        Ok(())
    }

    /// Copies the content of a file.
    fn content(&mut self, out: &mut impl Write) -> io::Result<()> {
        loop {
            let chunk = self.text(CHUNK_BYTES)?;
            if chunk.is_empty() {
                return Ok(());
            }
            self.copied.bytes += chunk.len() as u64;
            if self.copied.bytes > self.options.max_bytes {
                let text = format!("more than {} bytes", self.options.max_bytes);
                return Err(invalid(text));
            }
            out.write_all(&chunk)?;
        }
    }

    fn link(&mut self, parent: BorrowedFd<'_>, head: &EntryHeader) -> io::Result<()> {
        let target = self.text(MAX_TARGET)?;
        if !self.options.any_link && leads_out(&target, self.open.len()) {
            self.copied.left_out += 1;
            return Ok(());
        }
        remove_file(parent, &head.name)?;
        let target = CString::new(target)?;
        rustix::fs::symlinkat(target, parent, &head.name)
            .map_err(|error| named(&head.name, error.into()))?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(parent, &head.name, &head.times, flags)?;
        self.copied.links += 1;
        Ok(())
    }
}

fn too_deep() -> io::Error {
    invalid(format!("folders nested more than {MAX_DEPTH} deep"))
}

/// Makes room for a link. A folder stays, and the following step fails.
fn remove_file(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => Ok(()),
        Err(error) => Err(named(name, error.into())),
    }
}

/// Whether a link in a folder of that depth (1: in the top folder) may lead out of the
/// tree. A path that leaves through a link is refused wherever a `..` follows a name.
fn leads_out(target: &[u8], depth: usize) -> bool {
    let path = Path::new(OsStr::from_bytes(target));
    if target.is_empty() || path.is_absolute() {
        return true;
    }
    let mut up = 0;
    let mut named = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if named => return true,
            b".." => up += 1,
            _ => named = true,
        }
    }
    up >= depth
}

fn named(name: &CStr, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", name.to_string_lossy()))
}

#[cfg(test)]
mod tests;
