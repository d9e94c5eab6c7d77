//! Tar archive of a portable image's parts: plain files (POSIX.1-1988, "ustar"), so that
//! common tools can list it and show its licence texts.
//!
//! The reader parses only the size of the first file. Every other header is known from the
//! manifest before it is read, and must match to the byte: the reader takes no names from
//! headers, and there are no links, folders or devices.

/// Size of a header in bytes; contents are padded to a multiple of it.
pub(super) const BLOCK: usize = 512;

/// Zero blocks that end an archive.
pub(super) const END_BLOCKS: usize = 2;

/// Maximum bytes of a file name: the header's field.
pub(super) const MAX_NAME: usize = 100;

/// Position of the size's octal digits.
const SIZE: std::ops::Range<usize> = 124..135;

/// Position of the checksum over the header's bytes; spaces while it is computed.
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Builds the header of a file with fixed owner and time, so that equal contents give equal
/// archives. The name has at most [`MAX_NAME`] bytes.
pub(super) fn header(name: &str, size: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(MAX_NAME)]);
    put(100, b"0000644");
    put(108, b"0000000");
    put(116, b"0000000");
    put(SIZE.start, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(CHECKSUM.start, b"        ");
    // A regular file.
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

/// Returns the size in a header, if it is the one that [`header`] makes for a plain file of
/// this name.
pub(super) fn size_of(block: &[u8; BLOCK], name: &str) -> Option<u64> {
    let digits = std::str::from_utf8(&block[SIZE]).ok()?;
    let size = u64::from_str_radix(digits, 8).ok()?;
    (header(name, size) == *block).then_some(size)
}

/// Bytes of zero padding between a file of this size and the next header.
pub(super) const fn padding(size: u64) -> usize {
    let over = (size % BLOCK as u64) as usize;
    (BLOCK - over) % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn other_tools_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let text = b"some text";
        let mut archive = header("licences/a.txt", text.len() as u64).to_vec();
        archive.extend(text);
        archive.resize(archive.len() + padding(text.len() as u64), 0);
        archive.resize(archive.len() + END_BLOCKS * BLOCK, 0);
        std::fs::write(&path, archive).unwrap();
        let run = |args: &[&str]| {
            let output = Command::new("tar").args(args).arg(&path).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty());
            output.stdout
        };
        assert_eq!(run(&["-tf"]), b"licences/a.txt\n");
        assert_eq!(run(&["-xOf"]), text);
    }

    #[test]
    fn only_our_own_headers_are_believed() {
        let block = header("a", 0o1234567);
        assert_eq!(size_of(&block, "a"), Some(0o1234567));
        assert_eq!(size_of(&block, "b"), None);
        for at in 0..BLOCK {
            let mut other = block;
            other[at] ^= 1;
            assert_eq!(size_of(&other, "a"), None, "byte {at}");
        }
    }

    #[test]
    fn contents_are_filled_up() {
        assert_eq!([0, 1, 511, 512, 513].map(padding), [0, 511, 1, 0, 511]);
    }
}
