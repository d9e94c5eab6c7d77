//! Layout: where every inode and every block of data stands, before anything is written.

use super::format::{BLOCK, ENTRY_BYTES, INODE_BYTES, SLOT, SUPER_BYTES, SUPER_OFFSET, Stat};
use super::{Error, Kind, MAX_LINK, MAX_NAME, Node};

/// Number of the root.
pub(crate) const ROOT: u32 = 0;

/// Mark of a node that was not placed.
const ABSENT: u32 = u32::MAX;

/// A node with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) id: u32,
    /// The folder above, for `..`.
    pub(crate) parent: u32,
    /// Offset of the inode.
    pub(crate) offset: u64,
    pub(crate) stat: Stat,
}

/// Places of all nodes that the root leads to, in the order of their inodes.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) placed: Vec<Placed>,
    /// Index in `placed` by node.
    index: Vec<u32>,
    /// Blocks of inodes, and all blocks.
    pub(crate) meta_blocks: u32,
    pub(crate) blocks: u32,
}

impl Layout {
    pub(crate) fn new(nodes: &[Node]) -> Result<Self, Error> {
        if !matches!(nodes.first(), Some(node) if is_folder(node)) {
            return Err(Error::Tree(ROOT, "the root is not a folder"));
        }
        let mut layout = Self {
            placed: Vec::new(),
            index: vec![ABSENT; nodes.len()],
            meta_blocks: 0,
            blocks: 0,
        };
        let meta_end = layout.place_inodes(nodes)?;
        layout.place_data(meta_end)?;
        Ok(layout)
    }

    /// Returns the place of a node that the root leads to.
    pub(crate) fn of(&self, id: u32) -> Result<&Placed, Error> {
        let index = self.index.get(id as usize).copied().unwrap_or(ABSENT);
        let placed = self.placed.get(index as usize);
        placed.ok_or(Error::Tree(id, "there is no such node"))
    }

    /// Number of a node on disk.
    pub(crate) fn nid(&self, id: u32) -> Result<u64, Error> {
        Ok(self.of(id)?.offset / SLOT)
    }

    /// Gives every inode its place, folders before their contents; returns the end.
    fn place_inodes(&mut self, nodes: &[Node]) -> Result<u64, Error> {
        let mut end = (SUPER_OFFSET + SUPER_BYTES) as u64;
        let mut waiting = vec![(ROOT, ROOT)];
        while let Some((id, parent)) = waiting.pop() {
            let node = nodes.get(id as usize);
            let node = node.ok_or(Error::Tree(id, "there is no such node"))?;
            let index = self.index[id as usize];
            if let Some(known) = self.placed.get_mut(index as usize) {
                if is_folder(node) {
                    return Err(Error::Tree(id, "a folder has two names"));
                }
                known.stat.links += 1;
                continue;
            }
            let size = check(id, node)?;
            let tail = (size % BLOCK as u64) as usize;
            let inline = tail > 0 && INODE_BYTES + tail <= BLOCK;
            let bytes = INODE_BYTES + if inline { tail } else { 0 };
            let offset = fitting(end, bytes);
            end = offset + bytes as u64;
            self.index[id as usize] = u32::try_from(self.placed.len()).unwrap_or(ABSENT);
            let mut links = 1;
            if let Kind::Folder(entries) = &node.kind {
                // The name, `.`, and `..` of each folder in it.
                links = 2;
                for (_, child) in entries.iter().rev() {
                    links += u32::from(nodes.get(*child as usize).is_some_and(is_folder));
                    waiting.push((*child, id));
                }
            }
            let stat = Stat {
                size,
                inline,
                block: 0,
                links,
                number: self.placed.len() as u32 + 1,
            };
            self.placed.push(Placed {
                id,
                parent,
                offset,
                stat,
            });
        }
        Ok(end)
    }

    fn place_data(&mut self, meta_end: u64) -> Result<(), Error> {
        let mut next = meta_end.div_ceil(BLOCK as u64);
        let number = |block: u64| u32::try_from(block).map_err(|_| Error::TooLarge);
        self.meta_blocks = number(next)?;
        for placed in &mut self.placed {
            let blocks = data_blocks(&placed.stat);
            if blocks > 0 {
                placed.stat.block = number(next)?;
            }
            next = next.saturating_add(blocks);
        }
        self.blocks = number(next)?;
        Ok(())
    }
}

/// Blocks of data that do not stand beside the inode.
pub(crate) fn data_blocks(stat: &Stat) -> u64 {
    let block = BLOCK as u64;
    if stat.inline {
        stat.size / block
    } else {
        stat.size.div_ceil(block)
    }
}

fn is_folder(node: &Node) -> bool {
    matches!(node.kind, Kind::Folder(_))
}

/// The next offset at which an inode and its tail stand in one block.
fn fitting(end: u64, bytes: usize) -> u64 {
    let offset = end.next_multiple_of(SLOT);
    let block = BLOCK as u64;
    if offset % block + bytes as u64 > block {
        offset.next_multiple_of(block)
    } else {
        offset
    }
}

/// Checks a node; returns the size of its data.
fn check(id: u32, node: &Node) -> Result<u64, Error> {
    match &node.kind {
        Kind::Folder(entries) => {
            check_names(id, entries)?;
            Ok(folder_size(&names(entries)))
        }
        Kind::File { size, .. } => Ok(*size),
        Kind::Link(target) if target.is_empty() || target.len() > MAX_LINK => {
            Err(Error::Tree(id, "the link's target is empty or too long"))
        }
        Kind::Link(target) => Ok(target.len() as u64),
        Kind::CharacterDevice(..) | Kind::BlockDevice(..) | Kind::Fifo | Kind::Socket => Ok(0),
    }
}

fn check_names(id: u32, entries: &[(Box<[u8]>, u32)]) -> Result<(), Error> {
    let mut last: &[u8] = b"";
    for (name, _) in entries {
        let plain = !name.iter().any(|byte| matches!(byte, b'/' | 0));
        if name.len() > MAX_NAME || !plain || matches!(&**name, b"" | b"." | b"..") {
            return Err(Error::Tree(id, "it has a name that cannot be one"));
        }
        if **name <= *last {
            return Err(Error::Tree(id, "its names are not ascending"));
        }
        last = name;
    }
    Ok(())
}

/// Names of a folder in the order of the disk, with their nodes; the folder itself and the
/// one above have none.
pub(crate) fn names(entries: &[(Box<[u8]>, u32)]) -> Vec<(&[u8], Option<u32>)> {
    let mut all: Vec<(&[u8], Option<u32>)> = Vec::with_capacity(entries.len() + 2);
    all.extend([(&b"."[..], None), (&b".."[..], None)]);
    all.extend(entries.iter().map(|(name, id)| (&**name, Some(*id))));
    all.sort_unstable_by_key(|(name, _)| *name);
    all
}

/// Splits the names of a folder into those of each block.
pub(crate) fn blocks_of<'a, 'n>(
    names: &'a [(&'n [u8], Option<u32>)],
) -> impl Iterator<Item = &'a [(&'n [u8], Option<u32>)]> {
    let mut rest = names;
    std::iter::from_fn(move || {
        let mut used = 0;
        let fits = |(name, _): &&(&[u8], Option<u32>)| {
            used += ENTRY_BYTES + name.len();
            used <= BLOCK
        };
        let count = rest.iter().take_while(fits).count();
        let (block, more) = rest.split_at_checked(count).filter(|_| count > 0)?;
        rest = more;
        Some(block)
    })
}

fn folder_size(names: &[(&[u8], Option<u32>)]) -> u64 {
    let used = |block: &[(&[u8], Option<u32>)]| -> u64 {
        let bytes = block.iter().map(|(name, _)| ENTRY_BYTES + name.len());
        bytes.sum::<usize>() as u64
    };
    let (mut full, mut last) = (0, 0);
    for block in blocks_of(names) {
        (full, last) = (full + 1, used(block));
    }
    (full - 1) * BLOCK as u64 + last
}
