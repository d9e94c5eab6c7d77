//! Writing: inodes with their tails, then blocks of data, in one pass from the beginning.

use super::format::{BLOCK, Entry, SLOT, folder_block, inode, put_superblock};
use super::layout::{Layout, Placed, ROOT, blocks_of, data_blocks, names};
use super::{Contents, Error, Kind, Node, Written};
use std::io::Write;

/// Bytes copied at a time.
const CHUNK: usize = 64 * BLOCK;

/// Writes the tree whose root is the first node.
///
/// # Errors
/// [`Error::Tree`] if the nodes are no tree, and the errors of reading and writing.
pub fn write(
    nodes: &[Node],
    contents: &impl Contents,
    out: &mut impl Write,
) -> Result<Written, Error> {
    let layout = Layout::new(nodes)?;
    let job = Job {
        nodes,
        layout: &layout,
        contents,
    };
    let mut out = Out {
        out,
        first: Some([0; BLOCK]),
        position: 0,
        root: layout.nid(ROOT)?,
        nodes: layout.placed.len() as u64,
        blocks: layout.blocks,
    };
    for placed in &layout.placed {
        out.pad_to(placed.offset)?;
        out.put(&inode(job.node(placed)?, &placed.stat))?;
        if placed.stat.inline {
            out.put(&job.tail(placed)?)?;
        }
    }
    out.pad_to(u64::from(layout.meta_blocks) * BLOCK as u64)?;
    for placed in &layout.placed {
        job.write_blocks(placed, &mut out)?;
    }
    out.out.flush()?;
    Ok(Written {
        bytes: out.position,
        nodes: out.nodes,
    })
}

struct Job<'a, C> {
    nodes: &'a [Node],
    layout: &'a Layout,
    contents: &'a C,
}

impl<C: Contents> Job<'_, C> {
    fn node(&self, placed: &Placed) -> Result<&Node, Error> {
        let node = self.nodes.get(placed.id as usize);
        node.ok_or(Error::Tree(placed.id, "there is no such node"))
    }

    /// The data beside the inode.
    fn tail(&self, placed: &Placed) -> Result<Vec<u8>, Error> {
        let blocks = data_blocks(&placed.stat);
        let size = placed.stat.size - blocks * BLOCK as u64;
        match &self.node(placed)?.kind {
            Kind::File { offset, .. } => {
                let mut tail = vec![0; size as usize];
                let from = offset.saturating_add(blocks * BLOCK as u64);
                self.contents.read_exact_at(&mut tail, from)?;
                Ok(tail)
            }
            Kind::Folder(entries) => {
                let names = names(entries);
                let last = blocks_of(&names).last().unwrap_or_default();
                self.folder_block(placed, last)
            }
            Kind::Link(target) => Ok(target.to_vec()),
            _ => Ok(Vec::new()),
        }
    }

    /// Writes the data that does not stand beside the inode.
    fn write_blocks(&self, placed: &Placed, out: &mut Out<'_, impl Write>) -> Result<(), Error> {
        let blocks = data_blocks(&placed.stat);
        if blocks == 0 {
            return Ok(());
        }
        out.pad_to(u64::from(placed.stat.block) * BLOCK as u64)?;
        match &self.node(placed)?.kind {
            Kind::File { offset, size } => {
                let mut left = (blocks * BLOCK as u64).min(*size);
                let mut from = *offset;
                let mut chunk = vec![0; left.min(CHUNK as u64) as usize];
                while left > 0 {
                    let count = left.min(CHUNK as u64);
                    let part = &mut chunk[..count as usize];
                    self.contents.read_exact_at(part, from)?;
                    out.put(part)?;
                    left -= count;
                    from = from.saturating_add(count);
                }
            }
            Kind::Folder(entries) => {
                let names = names(entries);
                for block in blocks_of(&names).take(blocks as usize) {
                    out.put(&self.folder_block(placed, block)?)?;
                    out.pad_to(out.position.next_multiple_of(BLOCK as u64))?;
                }
            }
            Kind::Link(target) => out.put(target)?,
            _ => {}
        }
        out.pad_to(out.position.next_multiple_of(BLOCK as u64))
    }

    fn folder_block(
        &self,
        placed: &Placed,
        names: &[(&[u8], Option<u32>)],
    ) -> Result<Vec<u8>, Error> {
        let entry = |(name, id): &(&'_ [u8], Option<u32>)| {
            let (nid, node) = match id {
                Some(id) => (self.layout.nid(*id)?, self.nodes.get(*id as usize)),
                None if *name == b".." => (self.layout.nid(placed.parent)?, None),
                None => (placed.offset / SLOT, None),
            };
            Ok((nid, node))
        };
        let found: Vec<(u64, Option<&Node>)> =
            names.iter().map(entry).collect::<Result<_, Error>>()?;
        let entries = names.iter().zip(found);
        let entries: Vec<Entry<'_>> = entries
            .map(|((name, _), (nid, node))| Entry { name, nid, node })
            .collect();
        Ok(folder_block(&entries))
    }
}

/// Output that keeps the first block until it is complete, because the superblock in it has
/// a checksum of all of it.
struct Out<'a, W> {
    out: &'a mut W,
    first: Option<[u8; BLOCK]>,
    position: u64,
    root: u64,
    nodes: u64,
    blocks: u32,
}

impl<W: Write> Out<'_, W> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        if let Some(first) = &mut self.first {
            let at = self.position as usize;
            let count = bytes.len().min(BLOCK - at);
            first[at..at + count].copy_from_slice(&bytes[..count]);
            self.position += count as u64;
            bytes = &bytes[count..];
            if self.position == BLOCK as u64 {
                put_superblock(first, self.root, self.nodes, self.blocks);
                self.out.write_all(first)?;
                self.first = None;
            }
        }
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn pad_to(&mut self, end: u64) -> Result<(), Error> {
        const ZEROS: [u8; BLOCK] = [0; BLOCK];
        while self.position < end {
            let count = (end - self.position).min(BLOCK as u64);
            self.put(&ZEROS[..count as usize])?;
        }
        Ok(())
    }
}
