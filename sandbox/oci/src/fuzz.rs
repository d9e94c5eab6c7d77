//! Body of the fuzz target `oci`: an arbitrary archive.
//!
//! No archive may panic. One that is read gives a file system of the described length, and
//! reading it twice gives the same bytes.

use super::{Image, Input, Limits, read};
use std::fs::File;
use std::io::{Seek, Write};

/// Limits small enough to be reached.
fn limits() -> Limits {
    Limits {
        members: 64,
        layers: 8,
        entries: 200,
        unpacked: 1 << 20,
        ratio: 16,
        json: 64 << 10,
        manifests: 8,
        path: 300,
        depth: 12,
        names: 10_000,
        extended: 4096,
    }
}

/// Reads the archive.
///
/// # Panics
/// If two readings differ, or the files of the test cannot be written.
pub fn archive(data: &[u8]) {
    let first = read_once(data);
    if let Some((image, bytes)) = &first {
        assert_eq!(image.bytes, bytes.len() as u64);
        assert!(bytes.len().is_multiple_of(4096));
        assert_eq!(read_once(data).as_ref(), first.as_ref());
    }
}

fn read_once(data: &[u8]) -> Option<(Image, Vec<u8>)> {
    let file = |bytes: &[u8]| -> std::io::Result<File> {
        let memory = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = File::from(memory);
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(file)
    };
    let (archive, spool) = (file(data).ok()?, file(&[]).ok()?);
    let input = Input {
        archive,
        tag: None,
        spool: &spool,
    };
    let mut bytes = Vec::new();
    let image = read(input, &limits(), &mut bytes, &mut |_| {}).ok()?;
    Some((image, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that made earlier versions of readers like this one fail.
    const REPRODUCERS: [&[u8]; 5] = [
        b"",
        &[0; 1024],
        &[0x28, 0xb5, 0x2f, 0xfd, 0xff],
        &[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        &[0xff; 512],
    ];

    #[test]
    fn reproducers_and_random_bytes_do_no_harm() {
        for bytes in REPRODUCERS {
            archive(bytes);
            assert_eq!(read_once(bytes), None);
        }
        let mut seed = 1u64;
        for length in (0..4096).step_by(64) {
            let mut byte = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            };
            let bytes: Vec<u8> = (0..length).map(|_| byte()).collect();
            archive(&bytes);
        }
    }
}
