//! On-disk format (`fs/erofs/erofs_fs.h` of Linux): superblock, inodes, folder blocks.

use super::{Kind, Node};

/// Block size.
pub(crate) const BLOCK: usize = 4096;

/// Offset and size of the superblock.
pub(crate) const SUPER_OFFSET: usize = 1024;
pub(crate) const SUPER_BYTES: usize = 128;

/// Unit of node numbers, and size of an extended inode.
pub(crate) const SLOT: u64 = 32;
pub(crate) const INODE_BYTES: usize = 64;

/// Size of a folder entry without its name.
pub(crate) const ENTRY_BYTES: usize = 12;

const MAGIC: u32 = 0xE0F5_E1E2;
const BLOCK_BITS: u8 = 12;

/// Compatible features: the superblock has a checksum; times are those of the last change.
const CHECKSUM: u32 = 1;
const MTIME: u32 = 2;

/// Version bit of an extended inode, and data layouts: all blocks, or the tail beside the
/// inode.
const EXTENDED: u16 = 1;
const FLAT_PLAIN: u16 = 0;
const FLAT_INLINE: u16 = 2 << 1;

/// Place of a node's data and names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    /// Size in bytes.
    pub(crate) size: u64,
    /// Whether the tail stands beside the inode.
    pub(crate) inline: bool,
    /// First block of data.
    pub(crate) block: u32,
    /// Number of names.
    pub(crate) links: u32,
    /// Inode number that programs see.
    pub(crate) number: u32,
}

/// Encodes an inode.
pub(crate) fn inode(node: &Node, stat: &Stat) -> [u8; INODE_BYTES] {
    let layout = if stat.inline { FLAT_INLINE } else { FLAT_PLAIN };
    let mode = file_type(&node.kind).0 | (node.mode & 0o7777);
    let place = match node.kind {
        Kind::CharacterDevice(major, minor) | Kind::BlockDevice(major, minor) => {
            // `new_encode_dev` of Linux: 12 bits of the major and 20 of the minor number.
            (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xf_ff00) << 12)
        }
        _ => stat.block,
    };
    let mut inode = Bytes([0; INODE_BYTES]);
    inode.put(0, (EXTENDED | layout).to_le_bytes());
    inode.put(4, mode.to_le_bytes());
    inode.put(8, stat.size.to_le_bytes());
    inode.put(16, place.to_le_bytes());
    inode.put(20, stat.number.to_le_bytes());
    inode.put(24, node.uid.to_le_bytes());
    inode.put(28, node.gid.to_le_bytes());
    inode.put(32, node.mtime.to_le_bytes());
    inode.put(44, stat.links.to_le_bytes());
    inode.0
}

/// Mode bits and folder entry type of a kind.
fn file_type(kind: &Kind) -> (u16, u8) {
    match kind {
        Kind::File { .. } => (0o100_000, 1),
        Kind::Folder(_) => (0o040_000, 2),
        Kind::CharacterDevice(..) => (0o020_000, 3),
        Kind::BlockDevice(..) => (0o060_000, 4),
        Kind::Fifo => (0o010_000, 5),
        Kind::Socket => (0o140_000, 6),
        Kind::Link(_) => (0o120_000, 7),
    }
}

/// Writes the superblock into the first block, which is complete otherwise.
pub(crate) fn put_superblock(first: &mut [u8; BLOCK], root: u64, nodes: u64, blocks: u32) {
    let mut block = Bytes([0; SUPER_BYTES]);
    block.put(0, MAGIC.to_le_bytes());
    block.put(8, (CHECKSUM | MTIME).to_le_bytes());
    block.put(12, [BLOCK_BITS]);
    block.put(14, (root as u16).to_le_bytes());
    block.put(16, nodes.to_le_bytes());
    block.put(36, blocks.to_le_bytes());
    first[SUPER_OFFSET..SUPER_OFFSET + SUPER_BYTES].copy_from_slice(&block.0);
    // With the field of the checksum zero, and without the final inversion.
    let checksum = crc32c(&first[SUPER_OFFSET..]);
    first[SUPER_OFFSET + 4..SUPER_OFFSET + 8].copy_from_slice(&checksum.to_le_bytes());
}

/// CRC-32C without the final inversion; only 3 KB are ever summed.
fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (POLYNOMIAL * (crc & 1))
        })
    })
}

/// A name in a folder with its node.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    /// Number of its inode on disk.
    pub(crate) nid: u64,
    /// Its node; `None` for `.` and `..`.
    pub(crate) node: Option<&'a Node>,
}

/// Encodes the entries of one block of a folder.
pub(crate) fn folder_block(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut block = Vec::with_capacity(BLOCK);
    let mut name_offset = ENTRY_BYTES * entries.len();
    for entry in entries {
        let folder = file_type(&Kind::Folder(Vec::new())).1;
        let kind = entry.node.map_or(folder, |node| file_type(&node.kind).1);
        block.extend(entry.nid.to_le_bytes());
        block.extend((name_offset as u16).to_le_bytes());
        block.extend([kind, 0]);
        name_offset += entry.name.len();
    }
    for entry in entries {
        block.extend(entry.name);
    }
    block
}

struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Bytes<N> {
    fn put<const M: usize>(&mut self, at: usize, value: [u8; M]) {
        self.0[at..at + M].copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc32c() {
        // Check value of CRC-32C (RFC 3720), before its inversion.
        assert_eq!(!crc32c(b"123456789"), 0xE306_9283);
    }
}
