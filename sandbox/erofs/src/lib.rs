//! EROFS writer: a tree of files as one file that Linux mounts read-only.
//!
//! The result is uncompressed and depends on the tree alone: the same tree gives the same
//! bytes. Contents of files come from a second file and are copied piece by piece, so
//! memory holds the names and nodes of the tree and nothing else. A node with several names
//! is one inode (hard links). The last part of a file stands beside its inode where it fits.
//!
//! Extended attributes are not written: the guest's kernel is built without them.
//!
//! ```
//! use a99_sandbox_erofs::{Kind, Node, write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut contents = tempfile::tempfile()?;
//! std::io::Write::write_all(&mut contents, b"hello\n")?;
//! let file = Node::new(0o644, Kind::File { offset: 0, size: 6 });
//! let root = Node::new(0o755, Kind::Folder(vec![(b"greeting".as_slice().into(), 1)]));
//! let mut image = Vec::new();
//! write(&[root, file], &contents, &mut image)?;
//! assert_eq!(image.len(), 4096);
//! # Ok(())
//! # }
//! ```

#![warn(unreachable_pub)]

mod format;
mod layout;
mod write;

pub use write::write;

use std::fmt;
use std::io;

/// Longest name of an entry in bytes.
pub const MAX_NAME: usize = 255;

/// Longest target of a symbolic link in bytes.
pub const MAX_LINK: usize = 4095;

/// A file, folder or other node. Its number is its index; the root has number 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Permission bits, with set-user-id, set-group-id and sticky bit.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Time of the last change in seconds since 1970.
    pub mtime: i64,
    /// What it is.
    pub kind: Kind,
}

/// Kind of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder: names, strictly ascending, with the numbers of their nodes.
    Folder(Vec<(Box<[u8]>, u32)>),
    /// A file, with the place of its content.
    File {
        /// First byte in the file of contents.
        offset: u64,
        /// Length in bytes.
        size: u64,
    },
    /// A symbolic link, with its target.
    Link(Box<[u8]>),
    /// A character device: major and minor number.
    CharacterDevice(u32, u32),
    /// A block device: major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl Node {
    /// Creates a node of the administrator, last changed at time 0.
    pub fn new(mode: u16, kind: Kind) -> Self {
        Self {
            mode,
            uid: 0,
            gid: 0,
            mtime: 0,
            kind,
        }
    }
}

/// Source of the contents of files.
pub trait Contents {
    /// Fills the buffer from that position.
    ///
    /// # Errors
    /// Those of reading, and [`io::ErrorKind::UnexpectedEof`].
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Contents for std::fs::File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }
}

/// Figures of a written file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Length of the file system in bytes.
    pub bytes: u64,
    /// Nodes that the root leads to.
    pub nodes: u64,
}

/// Failure of writing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The contents cannot be read, or the result cannot be written.
    Io(io::Error),
    /// The tree cannot be a file system: the node and the reason.
    Tree(u32, &'static str),
    /// The file system would have more than 16 TiB.
    TooLarge,
}

impl Error {
    /// Returns the code as stable text, for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            Error::Io(_) => "erofs.io",
            Error::Tree(..) => "erofs.tree",
            Error::TooLarge => "erofs.too_large",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => write!(f, "file system: {error}"),
            Error::Tree(node, reason) => write!(f, "node {node} of the tree: {reason}"),
            Error::TooLarge => write!(f, "the file system has more than 16 TiB"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}
