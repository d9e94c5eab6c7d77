//! In-process test client: sends each request as bytes to the server, and parses the
//! response.

use a99_sandbox_p9::{Mount, MountMode, Options, P9_MESSAGE_BYTES, Server};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Open flags, as Linux's client sends them.
pub const RDONLY: u32 = 0;
pub const WRONLY: u32 = 1;
pub const RDWR: u32 = 2;
pub const EXCL: u32 = 0o200;
pub const TRUNC: u32 = 0o1000;

/// A fid of this client.
pub type Fid = u32;

/// Attributes in `Rgetattr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    pub qid: (u8, u32, u64),
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub nlink: u64,
    pub size: u64,
    pub blocks: u64,
    pub atime: (u64, u64),
    pub mtime: (u64, u64),
    pub ctime: (u64, u64),
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: u64,
    pub cookie: u64,
    pub kind: u8,
    pub name: String,
}

/// An empty change for `Tsetattr`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Set {
    pub valid: u32,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub atime: (u64, u64),
    pub mtime: (u64, u64),
}

/// Body of a response.
pub struct Body(Vec<u8>, usize);

impl Body {
    pub fn take(&mut self, len: usize) -> &[u8] {
        let at = self.1;
        self.1 += len;
        &self.0[at..at + len]
    }
    fn number(&mut self, len: usize) -> u64 {
        let bytes = self.take(len);
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
    pub fn u8(&mut self) -> u8 {
        self.number(1) as u8
    }
    pub fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }
    pub fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }
    pub fn u64(&mut self) -> u64 {
        self.number(8)
    }
    pub fn string(&mut self) -> Vec<u8> {
        let len = self.u16();
        self.take(len.into()).to_vec()
    }
    pub fn qid(&mut self) -> (u8, u32, u64) {
        (self.u8(), self.u32(), self.u64())
    }
    pub fn at_end(&self) -> bool {
        self.1 == self.0.len()
    }
}

/// Body of a request.
#[derive(Default)]
pub struct Request(pub Vec<u8>);

impl Request {
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }
    pub fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    pub fn string(mut self, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        self = self.u16(text.len() as u16);
        self.0.extend(text);
        self
    }
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

/// The client and its server.
pub struct Client {
    pub server: Server,
    next: Fid,
}

impl Client {
    /// Creates a client whose fid 0 is the root.
    pub fn new(server: Server) -> Self {
        Self::speaking(server, "9P2000.L")
    }

    /// Does the same with another protocol.
    pub fn speaking(server: Server, protocol: &str) -> Self {
        let mut client = Self { server, next: 1 };
        let version = Request::default().u32(u32::MAX).string(protocol);
        let mut answer = client.ask(100, version).expect("a version");
        assert_eq!(answer.u32() as usize, P9_MESSAGE_BYTES);
        assert_eq!(answer.string(), protocol.as_bytes());
        let attach = Request::default().u32(0).u32(u32::MAX);
        let attach = attach.string("root").string("").u32(0);
        client.ask(104, attach).expect("attached");
        client
    }

    /// Continues with fids of a restored server.
    pub fn resume(server: Server) -> Self {
        Self { server, next: 1000 }
    }

    /// Sends one request and returns its response.
    pub fn ask(&mut self, kind: u8, request: Request) -> Result<Body, Errno> {
        let mut message = (request.0.len() as u32 + 7).to_le_bytes().to_vec();
        message.extend([kind, 5, 1]);
        message.extend(request.0);
        let mut reply = vec![1, 2, 3];
        self.server.answer(&message, &mut reply);
        assert_eq!(reply[..4], (reply.len() as u32).to_le_bytes());
        assert_eq!(reply[5..7], [5, 1]);
        let mut body = Body(reply, 7);
        if body.0[4] == 7 {
            return Err(Errno::from_raw_os_error(body.u32() as i32));
        }
        assert_eq!(body.0[4], kind + 1);
        Ok(body)
    }

    /// Walks `names` from `fid` to a new fid; the error of an incomplete walk.
    pub fn walk_from(&mut self, fid: Fid, names: &[&str]) -> Result<Fid, Errno> {
        let new = self.next;
        self.next += 1;
        let mut request = Request::default().u32(fid).u32(new).u16(names.len() as u16);
        for name in names {
            request = request.string(name);
        }
        let walked = self.ask(110, request)?.u16();
        match names.split_at(walked.into()) {
            (_, []) => Ok(new),
            (way, rest) => {
                let end = self.walk_from(fid, way)?;
                let failed = self.walk_from(end, rest);
                self.clunk(end)?;
                failed
            }
        }
    }

    /// Walks to a path from the root, such as `0/folder/file`.
    pub fn walk(&mut self, path: &str) -> Result<Fid, Errno> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        self.walk_from(0, &names)
    }

    pub fn clunk(&mut self, fid: Fid) -> Result<(), Errno> {
        self.ask(120, Request::default().u32(fid)).map(drop)
    }

    pub fn lopen(&mut self, fid: Fid, flags: u32) -> Result<(), Errno> {
        self.ask(12, Request::default().u32(fid).u32(flags))
            .map(drop)
    }

    /// Walks to a path and opens it.
    pub fn open(&mut self, path: &str, flags: u32) -> Result<Fid, Errno> {
        let fid = self.walk(path)?;
        self.lopen(fid, flags)?;
        Ok(fid)
    }

    /// Creates a file in a folder, and opens it.
    pub fn create(
        &mut self,
        folder: &str,
        name: &str,
        flags: u32,
        mode: u32,
    ) -> Result<Fid, Errno> {
        let fid = self.walk(folder)?;
        let request = Request::default().u32(fid).string(name);
        self.ask(14, request.u32(flags).u32(mode).u32(0))?;
        Ok(fid)
    }

    pub fn read(&mut self, fid: Fid, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let mut body = self.ask(116, Request::default().u32(fid).u64(offset).u32(count))?;
        let len = body.u32() as usize;
        let bytes = body.take(len).to_vec();
        assert!(body.at_end());
        Ok(bytes)
    }

    pub fn write(&mut self, fid: Fid, offset: u64, bytes: &[u8]) -> Result<u32, Errno> {
        let request = Request::default().u32(fid).u64(offset);
        let request = request.u32(bytes.len() as u32).bytes(bytes);
        Ok(self.ask(118, request)?.u32())
    }

    pub fn fsync(&mut self, fid: Fid, data_only: u32) -> Result<(), Errno> {
        self.ask(50, Request::default().u32(fid).u32(data_only))
            .map(drop)
    }

    pub fn getattr(&mut self, fid: Fid) -> Result<Attr, Errno> {
        let body = self.ask(24, Request::default().u32(fid).u64(0x7ff))?;
        Ok(Self::attributes(body))
    }

    /// Walks to `name` in the folder `fid` with fid `new`, and returns its attributes.
    pub fn walkattr(&mut self, fid: Fid, new: Fid, name: &str) -> Result<Attr, Errno> {
        let body = self.ask(28, Request::default().u32(fid).u32(new).string(name))?;
        Ok(Self::attributes(body))
    }

    fn attributes(mut b: Body) -> Attr {
        assert_eq!(b.u64(), 0x7ff);
        let (qid, mode, uid, gid, nlink) = (b.qid(), b.u32(), b.u32(), b.u32(), b.u64());
        let (_rdev, size, _block, blocks) = (b.u64(), b.u64(), b.u64(), b.u64());
        Attr {
            qid,
            mode,
            uid,
            gid,
            nlink,
            size,
            blocks,
            atime: (b.u64(), b.u64()),
            mtime: (b.u64(), b.u64()),
            ctime: (b.u64(), b.u64()),
        }
    }

    /// Returns the attributes of a path.
    pub fn stat(&mut self, path: &str) -> Result<Attr, Errno> {
        let fid = self.walk(path)?;
        let attr = self.getattr(fid);
        self.clunk(fid)?;
        attr
    }

    pub fn setattr(&mut self, fid: Fid, set: Set) -> Result<(), Errno> {
        let request = Request::default().u32(fid).u32(set.valid).u32(set.mode);
        let request = request.u32(set.uid).u32(set.gid).u64(set.size);
        let request = request.u64(set.atime.0).u64(set.atime.1);
        self.ask(26, request.u64(set.mtime.0).u64(set.mtime.1))
            .map(drop)
    }

    /// Changes attributes of a path.
    pub fn set(&mut self, path: &str, set: Set) -> Result<(), Errno> {
        let fid = self.walk(path)?;
        self.setattr(fid, set)
    }

    pub fn chmod(&mut self, path: &str, mode: u32) -> Result<(), Errno> {
        let set = Set {
            valid: 1,
            mode,
            ..Set::default()
        };
        self.set(path, set)
    }

    pub fn truncate(&mut self, path: &str, size: u64) -> Result<(), Errno> {
        let set = Set {
            valid: 8,
            size,
            ..Set::default()
        };
        self.set(path, set)
    }

    pub fn mkdir(&mut self, folder: &str, name: &str, mode: u32) -> Result<(), Errno> {
        let fid = self.walk(folder)?;
        self.ask(
            72,
            Request::default().u32(fid).string(name).u32(mode).u32(0),
        )
        .map(drop)
    }

    pub fn symlink(&mut self, folder: &str, name: &str, target: &str) -> Result<(), Errno> {
        let fid = self.walk(folder)?;
        let request = Request::default().u32(fid).string(name).string(target);
        self.ask(16, request.u32(0)).map(drop)
    }

    pub fn readlink(&mut self, path: &str) -> Result<Vec<u8>, Errno> {
        let fid = self.walk(path)?;
        Ok(self.ask(22, Request::default().u32(fid))?.string())
    }

    pub fn link(&mut self, path: &str, folder: &str, name: &str) -> Result<(), Errno> {
        let (file, dir) = (self.walk(path)?, self.walk(folder)?);
        self.ask(70, Request::default().u32(dir).u32(file).string(name))
            .map(drop)
    }

    pub fn mknod(&mut self, folder: &str, name: &str, mode: u32) -> Result<(), Errno> {
        let fid = self.walk(folder)?;
        let request = Request::default().u32(fid).string(name).u32(mode);
        self.ask(18, request.u32(1).u32(3).u32(0)).map(drop)
    }

    pub fn rename(&mut self, from: (&str, &str), to: (&str, &str)) -> Result<(), Errno> {
        let (old, new) = (self.walk(from.0)?, self.walk(to.0)?);
        let request = Request::default().u32(old).string(from.1);
        self.ask(74, request.u32(new).string(to.1)).map(drop)
    }

    pub fn unlink(&mut self, folder: &str, name: &str, flags: u32) -> Result<(), Errno> {
        let fid = self.walk(folder)?;
        self.ask(76, Request::default().u32(fid).string(name).u32(flags))
            .map(drop)
    }

    /// Returns the entries from a cookie on that fit into `count` bytes.
    pub fn readdir(&mut self, fid: Fid, cookie: u64, count: u32) -> Result<Vec<Entry>, Errno> {
        let mut body = self.ask(40, Request::default().u32(fid).u64(cookie).u32(count))?;
        assert!(body.u32() <= count);
        let mut entries = Vec::new();
        while !body.at_end() {
            let (_, _, path) = body.qid();
            entries.push(Entry {
                path,
                cookie: body.u64(),
                kind: body.u8(),
                name: String::from_utf8(body.string()).expect("UTF-8"),
            });
        }
        Ok(entries)
    }

    /// Returns all entries of an open folder.
    pub fn list(&mut self, fid: Fid, count: u32) -> Result<Vec<Entry>, Errno> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let cookie = entries.last().map_or(0, |entry| entry.cookie);
            let more = self.readdir(fid, cookie, count)?;
            if more.is_empty() {
                return Ok(entries);
            }
            entries.extend(more);
        }
    }

    /// Returns the status of `Tlock`: 0 is done, 1 blocked by another owner.
    pub fn lock(
        &mut self,
        fid: Fid,
        kind: u8,
        range: (u64, u64),
        process: u32,
    ) -> Result<u8, Errno> {
        let request = Request::default().u32(fid).u8(kind).u32(1);
        let request = request.u64(range.0).u64(range.1).u32(process);
        Ok(self.ask(52, request.string("guest"))?.u8())
    }

    /// Does the same with the flag of `flock`, on the whole file.
    pub fn flock(&mut self, fid: Fid, kind: u8) -> Result<u8, Errno> {
        let request = Request::default().u32(fid).u8(kind).u32(1 << 31);
        let request = request.u64(0).u64(0).u32(7);
        Ok(self.ask(52, request.string("guest"))?.u8())
    }

    /// Kind and range of the conflicting lock.
    pub fn getlock(
        &mut self,
        fid: Fid,
        kind: u8,
        range: (u64, u64),
    ) -> Result<(u8, u64, u64), Errno> {
        let request = Request::default().u32(fid).u8(kind);
        let request = request.u64(range.0).u64(range.1).u32(1);
        let mut body = self.ask(54, request.string("guest"))?;
        Ok((body.u8(), body.u64(), body.u64()))
    }

    pub fn getxattr(&mut self, path: &str, name: &str) -> Result<Vec<u8>, Errno> {
        let fid = self.walk(path)?;
        let new = self.next;
        self.next += 1;
        let size = self
            .ask(30, Request::default().u32(fid).u32(new).string(name))?
            .u64();
        let value = self.read(new, 0, size as u32 + 10)?;
        assert_eq!(value.len() as u64, size);
        self.clunk(new)?;
        Ok(value)
    }

    pub fn setxattr(
        &mut self,
        path: &str,
        name: &str,
        value: &[u8],
        flags: u32,
    ) -> Result<(), Errno> {
        let fid = self.walk(path)?;
        let request = Request::default().u32(fid).string(name);
        self.ask(32, request.u64(value.len() as u64).u32(flags))?;
        if !value.is_empty() {
            self.write(fid, 0, value)?;
        }
        self.clunk(fid)
    }
}

/// A test folder: `rw` and `ro`, which are mounts 0 and 1, and `host`, where the same calls
/// are made without a server.
pub struct Fixture {
    pub folder: TempDir,
    pub client: Client,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// Does the same with limits.
    pub fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["rw", "ro", "host"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let server = Server::new(mounts(folder.path()), options);
        Self {
            client: Client::new(server.expect("mounts")),
            folder,
        }
    }

    /// Path on the host.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }
}

/// The mounts of such a folder.
pub fn mounts(folder: &Path) -> Vec<Mount> {
    vec![
        Mount::new("/rw", folder.join("rw"), MountMode::ReadWrite),
        Mount::new("/ro", folder.join("ro"), MountMode::ReadOnly),
    ]
}
