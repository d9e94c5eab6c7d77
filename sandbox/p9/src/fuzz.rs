//! Body of the fuzz target `p9`: a hostile guest with arbitrary requests, on a writable
//! folder, a read-only one, and one outside its mounts.
//!
//! No request may panic, each answer is well-formed, and files that the guest may not
//! change stay unchanged.

use super::wire::{HEADER_BYTES, message};
use super::{Mount, MountMode, Options, P9_MESSAGE_BYTES, Server, ServerState};
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Maximum requests of one input.
const MAX_REQUESTS: usize = 400;

/// Limits small enough to be reached.
const OPTIONS: Options = Options {
    max_fids: 12,
    max_open: 8,
    max_locks: 6,
};

/// A field of a request.
#[derive(Clone, Copy)]
enum Field {
    Byte,
    Count,
    Word,
    Flags,
    Mode,
    Long,
    Fid,
    Name,
    Names,
    Data,
}

use Field::{Byte, Count, Data, Fid, Flags, Long, Mode, Name, Names, Word};

/// The requests and their fields.
const SHAPES: &[(u8, &[Field])] = &[
    (message::VERSION, &[Word, Name]),
    (message::ATTACH, &[Fid, Fid, Name, Name, Word]),
    (message::FLUSH, &[Count]),
    (message::WALK, &[Fid, Fid, Names]),
    (message::WALK, &[Fid, Fid, Names]),
    (message::WALK, &[Fid, Fid, Names]),
    (message::WALKATTR, &[Fid, Fid, Name]),
    (message::WALKATTR, &[Fid, Fid, Name]),
    (message::CLUNK, &[Fid]),
    (message::REMOVE, &[Fid]),
    (message::LOPEN, &[Fid, Flags]),
    (message::LOPEN, &[Fid, Flags]),
    (message::LCREATE, &[Fid, Name, Flags, Mode, Word]),
    (message::READ, &[Fid, Long, Word]),
    (message::WRITE, &[Fid, Long, Data]),
    (message::WRITE, &[Fid, Long, Data]),
    (message::FSYNC, &[Fid, Word]),
    (message::READDIR, &[Fid, Long, Word]),
    (message::READLINK, &[Fid]),
    (message::GETATTR, &[Fid, Long]),
    (
        message::SETATTR,
        &[Fid, Flags, Mode, Word, Word, Long, Long, Long, Long, Long],
    ),
    (message::STATFS, &[Fid]),
    (message::MKDIR, &[Fid, Name, Mode, Word]),
    (message::SYMLINK, &[Fid, Name, Name, Word]),
    (message::MKNOD, &[Fid, Name, Mode, Word, Word, Word]),
    (message::LINK, &[Fid, Fid, Name]),
    (message::RENAME, &[Fid, Fid, Name]),
    (message::RENAMEAT, &[Fid, Name, Fid, Name]),
    (message::RENAMEAT, &[Fid, Name, Fid, Name]),
    (message::UNLINKAT, &[Fid, Name, Flags]),
    (message::LOCK, &[Fid, Byte, Word, Long, Long, Word, Name]),
    (message::GETLOCK, &[Fid, Byte, Long, Long, Word, Name]),
    (message::XATTRWALK, &[Fid, Fid, Name]),
    (message::XATTRCREATE, &[Fid, Name, Long, Word]),
];

/// Names with a meaning in the folders or to a file system.
const NAMES: [&[u8]; 25] = [
    b"0",
    b"1",
    b"a",
    b"b",
    b"file",
    b"folder",
    b".git",
    b".GIT",
    b"config",
    b"hooks",
    b"modules",
    b"out",
    b"up",
    b"..",
    b".",
    b"",
    b"../outside/secret",
    b"/etc/passwd",
    b"nul\0",
    b"user.a",
    b"security.capability",
    b"9P2000.L",
    b"9P2000.L.agent99",
    b"fifo",
    b"\xff\xfe",
];

/// Reads the choices of an input.
struct Script<'a> {
    data: &'a [u8],
}

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.data.split_first()?;
        self.data = rest;
        Some(*first)
    }

    fn choose(&mut self) -> u8 {
        self.byte().unwrap_or(0)
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.data.split_at(len.min(self.data.len()));
        self.data = rest;
        taken
    }

    /// A number, mostly a small one or a boundary.
    fn number(&mut self) -> u64 {
        match self.choose() {
            small @ 0..=199 => u64::from(small),
            shift @ 200..=239 => 1 << (shift - 200),
            240..=247 => (1 << 63) - u64::from(self.choose()),
            _ => u64::MAX - u64::from(self.choose()),
        }
    }

    fn name(&mut self) -> &'a [u8] {
        match usize::from(self.choose()) {
            own @ 250.. => self.take(own - 250),
            known => NAMES[known % NAMES.len()],
        }
    }

    fn put(&mut self, field: Field, body: &mut Vec<u8>) {
        match field {
            Byte => body.push(self.choose() % 4),
            Count => body.extend_from_slice(&u16::from(self.choose()).to_le_bytes()),
            Word => body.extend_from_slice(&(self.number() as u32).to_le_bytes()),
            Flags | Mode => {
                let bits = [self.choose(), self.choose(), self.choose(), 0];
                body.extend_from_slice(&u32::from_le_bytes(bits).to_le_bytes());
            }
            Long => body.extend_from_slice(&self.number().to_le_bytes()),
            Fid => {
                let number = match self.choose() {
                    255 => u32::MAX,
                    number => u32::from(number % 16),
                };
                body.extend_from_slice(&number.to_le_bytes());
            }
            Name => put_string(self.name(), body),
            Names => {
                let count = u16::from(self.choose() % 5);
                body.extend_from_slice(&count.to_le_bytes());
                for _ in 0..count {
                    put_string(self.name(), body);
                }
            }
            Data => {
                let len = usize::from(self.choose() % 32);
                let data = self.take(len);
                body.extend_from_slice(&(data.len() as u32).to_le_bytes());
                body.extend_from_slice(data);
            }
        }
    }

    /// The next request: mostly well-formed, sometimes arbitrary bytes.
    fn request(&mut self) -> Option<Vec<u8>> {
        let choice = self.byte()?;
        let mut request = vec![0; HEADER_BYTES];
        if choice >= 250 {
            let len = usize::from(self.choose());
            let mut raw = self.take(len).to_vec();
            // Half of them pass the length check.
            if choice & 1 == 1 && raw.len() >= 4 {
                let size = raw.len() as u32;
                raw[..4].copy_from_slice(&size.to_le_bytes());
            }
            return Some(raw);
        }
        let (kind, fields) = SHAPES[usize::from(choice) % SHAPES.len()];
        for field in fields {
            self.put(*field, &mut request);
        }
        let size = request.len() as u32;
        request[..4].copy_from_slice(&size.to_le_bytes());
        request[4] = kind;
        request[5..HEADER_BYTES].copy_from_slice(&[choice, 1]);
        Some(request)
    }
}

fn put_string(text: &[u8], body: &mut Vec<u8>) {
    body.extend_from_slice(&(text.len() as u16).to_le_bytes());
    body.extend_from_slice(text);
}

/// Runs the requests encoded in `data` on `folder`, which must be empty and is filled.
///
/// # Panics
/// If the server fails, or changed a protected file.
pub fn messages(folder: &Path, data: &[u8]) {
    prepare(folder).expect("the folder can be filled");
    let mounts = || {
        vec![
            Mount::new("/rw", folder.join("rw"), MountMode::ReadWrite),
            Mount::new("/ro", folder.join("ro"), MountMode::ReadOnly),
        ]
    };
    let mut server = Server::new(mounts(), OPTIONS).expect("the folders can be shared");
    let mut script = Script { data };
    let mut reply = Vec::new();
    // Preconditions of most requests: the full protocol, the root, the first mount.
    for start in [
        &b"\x1d\0\0\0\x64\xff\xff\0\0\x08\0\x10\09P2000.L.agent99"[..],
        b"\x17\0\0\0\x68\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0",
        b"\x14\0\0\0\x6e\0\0\0\0\0\0\x01\0\0\0\x01\0\x01\0\x30",
    ] {
        server.answer(start, &mut reply);
        check_answer(start, &reply);
        assert_ne!(reply[4], message::RLERROR, "{reply:?}");
    }
    for _ in 0..MAX_REQUESTS {
        let Some(request) = script.request() else {
            break;
        };
        server.answer(&request, &mut reply);
        check_answer(&request, &reply);
    }
    let state = server.state();
    drop(server);
    restores(mounts(), &state);
    check_folder(folder);
}

/// Restores a state in another server, which must then have the same fids.
fn restores(mounts: Vec<Mount>, state: &ServerState) {
    let server = Server::restore(mounts, OPTIONS, state).expect("the folders are still there");
    let numbers =
        |state: &ServerState| -> Vec<u32> { state.fids.iter().map(|saved| saved.fid).collect() };
    assert_eq!(numbers(&server.state()), numbers(state));
}

fn check_answer(request: &[u8], reply: &[u8]) {
    assert!((HEADER_BYTES..=P9_MESSAGE_BYTES).contains(&reply.len()));
    let size = u32::from_le_bytes([reply[0], reply[1], reply[2], reply[3]]);
    assert_eq!(size as usize, reply.len());
    if let Some(asked) = request.get(..HEADER_BYTES) {
        assert_eq!(reply[5..HEADER_BYTES], asked[5..], "the tag comes back");
        assert!(reply[4] == message::RLERROR || reply[4] == asked[4].wrapping_add(1));
    }
    if reply[4] == message::RLERROR {
        assert_eq!(reply.len(), HEADER_BYTES + 4);
        assert_ne!(reply[HEADER_BYTES..], [0; 4], "an error has a number");
    }
}

fn prepare(folder: &Path) -> std::io::Result<()> {
    for made in ["rw/folder", "rw/.git/hooks", "ro/folder", "outside"] {
        fs::create_dir_all(folder.join(made))?;
    }
    for path in PROTECTED {
        fs::write(folder.join(path), path)?;
    }
    fs::write(folder.join("rw/file"), "content")?;
    symlink("../outside", folder.join("rw/out"))?;
    symlink("..", folder.join("rw/up"))?;
    symlink("/", folder.join("ro/out"))
}

/// Files that the guest may not change.
const PROTECTED: [&str; 5] = [
    "rw/.git/config",
    "rw/.git/hooks/pre-commit",
    "ro/file",
    "ro/folder/a",
    "outside/secret",
];

fn check_folder(folder: &Path) {
    // The guest may have closed these.
    for path in ["rw", "rw/.git"] {
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join(path), open).expect("it is ours");
    }
    for path in PROTECTED {
        let found = fs::read(folder.join(path)).expect("the guest may not remove it");
        assert_eq!(found, path.as_bytes());
    }
    let entries = |path: &str| fs::read_dir(folder.join(path)).expect("a folder").count();
    assert_eq!(entries(""), 3);
    assert_eq!(entries("outside"), 1);
    assert_eq!(entries("ro"), 3);
    assert_eq!(entries("rw/.git/hooks"), 1);
    let mut folders = vec![folder.join("rw")];
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let path = entry.path();
            let stat = statat(CWD, path.as_os_str().as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
            let Ok(stat) = stat else { continue };
            assert_eq!(stat.st_mode & 0o6000, 0, "{}", path.display());
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => folders.push(path),
                FileType::RegularFile | FileType::Symlink => {}
                other => panic!("{} is a {other:?}", path.display()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_hostile_guest_harms_nothing(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            let folder = tempfile::tempdir().expect("a folder");
            messages(folder.path(), &data);
        }
    }

    #[test]
    fn an_empty_input_finds_the_folders_as_they_were() {
        let folder = tempfile::tempdir().expect("a folder");
        messages(folder.path(), &[]);
    }
}
