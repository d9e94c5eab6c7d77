//! Cpio writer: archives in the `newc` format that the kernel unpacks
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Archives are reproducible: entries are ordered by path, belong to root, and date from
//! the first second of 1970. Device nodes are written as entries, which needs no privilege
//! to create them.

use super::error::{At, ErrorCode, ImageError};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// File types, as in `st_mode` (inode(7)).
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTERS: u32 = 0o020_000;

/// Alignment of entries and contents in bytes.
const ALIGNMENT: usize = 4;

/// Name of the last entry of an archive.
const TRAILER: &str = "TRAILER!!!";

/// An entry of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A folder with its permissions.
    Folder(u32),
    /// A file with its permissions and content.
    File(u32, Content),
    /// A symbolic link to a path.
    Link(String),
    /// A character device: permissions, major, minor.
    Characters(u32, u32, u32),
}

/// Source of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A file of the build machine.
    At(PathBuf),
}

impl Content {
    /// Reads the content.
    pub fn read(&self) -> Result<Vec<u8>, ImageError> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.clone()),
            Content::At(path) => fs::read(path).at(path),
        }
    }
}

/// A tree of files by path, without a leading slash. A folder's path sorts before its
/// entries, as the kernel requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// Adds an entry and its missing parent folders.
    pub fn put(&mut self, path: impl Into<String>, node: Node) {
        let path = path.into();
        for (slash, _) in path.match_indices('/') {
            let above = self.0.entry(path[..slash].to_owned());
            above.or_insert(Node::Folder(0o755));
        }
        self.0.insert(path, node);
    }

    /// Returns the entry at a path.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.0.get(path)
    }

    /// Removes the entry at a path.
    pub fn remove(&mut self, path: &str) -> Option<Node> {
        self.0.remove(path)
    }

    /// Iterates over all paths and entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Writes the archive.
    pub fn archive(&self) -> Result<Vec<u8>, ImageError> {
        let mut archive = ArchiveWriter::default();
        for (path, node) in self.iter() {
            match node {
                Node::Folder(mode) => archive.entry(path, FOLDER | mode, &[], (0, 0))?,
                Node::File(mode, content) => {
                    archive.entry(path, REGULAR | mode, &content.read()?, (0, 0))?;
                }
                Node::Link(target) => {
                    archive.entry(path, LINK | 0o777, target.as_bytes(), (0, 0))?;
                }
                Node::Characters(mode, major, minor) => {
                    archive.entry(path, CHARACTERS | mode, &[], (*major, *minor))?;
                }
            }
        }
        archive.end()
    }
}

#[derive(Default)]
struct ArchiveWriter {
    bytes: Vec<u8>,
    entries: u32,
}

impl ArchiveWriter {
    fn entry(
        &mut self,
        path: &str,
        mode: u32,
        content: &[u8],
        device: (u32, u32),
    ) -> Result<(), ImageError> {
        let length = |what: usize| {
            u32::try_from(what).map_err(|_| {
                ImageError::new(
                    ErrorCode::UnexpectedPackage,
                    path,
                    "too large for an archive",
                )
            })
        };
        let is_trailer = path == TRAILER;
        self.entries += u32::from(!is_trailer);
        let fields = [
            if is_trailer { 0 } else { self.entries },
            mode,
            0, // user
            0, // group
            1, // links
            0, // time
            length(content.len())?,
            0, // the device that the file is on
            0,
            device.0,
            device.1,
            length(path.len() + 1)?,
            0, // checksum, unused in this form
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
        Ok(())
    }

    fn align(&mut self) {
        let length = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(length, 0);
    }

    fn end(mut self) -> Result<Vec<u8>, ImageError> {
        self.entry(TRAILER, 0, &[], (0, 0))?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn file(text: &str) -> Node {
        Node::File(0o644, Content::Bytes(text.into()))
    }

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.put("dev/console", Node::Characters(0o600, 5, 1));
        tree.put("etc/passwd", file("root"));
        tree.put("etc-x", file(""));
        tree.put("bin", Node::Link("usr/bin".to_owned()));
        tree
    }

    /// Mode, device, name and content.
    type CpioEntry = (u32, (u32, u32), String, Vec<u8>);

    fn parse(mut bytes: &[u8]) -> Vec<CpioEntry> {
        let total = bytes.len();
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            let field = |i: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * i..14 + 8 * i]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            assert_eq!(&bytes[..6], b"070701");
            let name_end = 110 + field(11) as usize;
            let name = String::from_utf8(bytes[110..name_end - 1].to_vec()).unwrap();
            let start = (total - bytes.len() + name_end).next_multiple_of(4);
            let start = start - (total - bytes.len());
            let end = start + field(6) as usize;
            entries.push((
                field(1),
                (field(9), field(10)),
                name,
                bytes[start..end].to_vec(),
            ));
            bytes = &bytes[end.next_multiple_of(4)..];
        }
        entries
    }

    #[test]
    fn archives_hold_the_tree_in_order() {
        let entries = parse(&tree().archive().unwrap());
        let names: Vec<&str> = entries.iter().map(|entry| entry.2.as_str()).collect();
        assert_eq!(
            names,
            [
                "bin",
                "dev",
                "dev/console",
                "etc",
                "etc-x",
                "etc/passwd",
                TRAILER
            ]
        );
        assert_eq!(entries[0].0, 0o120_777);
        assert_eq!(entries[0].3, b"usr/bin");
        assert_eq!((entries[2].0, entries[2].1), (0o020_600, (5, 1)));
        assert_eq!(entries[3].0, 0o040_755);
        assert_eq!((entries[5].0, &entries[5].3[..]), (0o100_644, &b"root"[..]));
    }

    #[test]
    fn the_order_of_putting_does_not_matter() {
        let mut other = Tree::default();
        let tree = tree();
        let nodes: Vec<_> = tree.iter().collect();
        for (path, node) in nodes.into_iter().rev() {
            other.put(path, node.clone());
        }
        assert_eq!(other.archive().unwrap(), tree.archive().unwrap());
    }

    #[test]
    fn contents_can_be_files() {
        let content = tempfile::NamedTempFile::new().unwrap();
        fs::write(content.path(), "root").unwrap();
        let mut other = tree();
        let node = Node::File(0o644, Content::At(content.path().to_owned()));
        other.put("etc/passwd", node);
        assert_eq!(other.archive().unwrap(), tree().archive().unwrap());
        drop(content);
        assert_eq!(other.archive().unwrap_err().code, ErrorCode::Io);
    }

    #[test]
    fn the_usual_program_reads_it() {
        let spawned = Command::new("cpio")
            .args(["-it", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        // cpio is not needed for building, so it may be missing.
        let Ok(mut cpio) = spawned else { return };
        let archive = tree().archive().unwrap();
        cpio.stdin.take().unwrap().write_all(&archive).unwrap();
        let listed = cpio.wait_with_output().unwrap();
        assert!(listed.status.success());
        let names = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(names, "bin\ndev\ndev/console\netc\netc-x\netc/passwd\n");
    }
}
