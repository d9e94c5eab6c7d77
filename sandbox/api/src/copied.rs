//! Copy of a sandbox: what it continues from, and the checks of that.

use super::builder::{Builder, MULTICAST};
use super::checks::bad;
#[cfg(doc)]
use super::sandbox::Sandbox;
use a99_sandbox_runner::{DiskOptions, Frozen, Origin, Saved, VmError, random_id};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Maximum bytes of the disk of a copy unless [`Builder::disk`] allows more: a file that
/// claims to be a snapshot does not choose how much space its guest may fill.
const COPIED_DISK: u64 = 10 << 30;

/// Guest that a sandbox continues.
#[derive(Clone, Debug)]
pub(super) enum Copied {
    Bytes(Vec<u8>),
    File(Arc<File>),
    Frozen(Box<Frozen>),
}

impl Builder {
    /// Restores a sandbox from the bytes of [`Sandbox::snapshot`].
    ///
    /// The snapshot must be of the same image. Mounts, network and limits come from this
    /// builder, since a snapshot refers to no resource of the host. Clocks continue from
    /// now, random number generators are reseeded, the interface gets another address, and
    /// TCP connections are reset. Detached commands and other processes in the background
    /// run on. Commands that were running otherwise end; [`Sandbox::interrupted`] counts
    /// them. The session shell keeps its state unless it was running a script.
    pub fn restore(mut self, saved: impl Into<Vec<u8>>) -> Self {
        self.copied = Some(Copied::Bytes(saved.into()));
        self
    }

    /// Restores a sandbox from the file of [`Sandbox::snapshot_to`], read from its start.
    pub fn restore_file(mut self, file: File) -> Self {
        self.copied = Some(Copied::File(Arc::new(file)));
        self
    }

    /// Starts a copy of a frozen sandbox, with the effects of [`Builder::restore`].
    ///
    /// Memory and disk are shared with the original until one of them writes. The
    /// copy needs the image of the original.
    pub fn fork_of(mut self, frozen: &Frozen) -> Self {
        self.copied = Some(Copied::Frozen(Box::new(frozen.clone())));
        self
    }
}

/// Checks the disk of a copy against the limit of its caller.
pub(super) fn check_copied_disk(
    bytes: Option<u64>,
    limit: Option<&DiskOptions>,
) -> Result<(), VmError> {
    let most = limit.map_or(COPIED_DISK, |limit| limit.bytes);
    match bytes {
        None if limit.is_some() => bad("a disk for a saved sandbox that has none"),
        Some(bytes) if bytes > most => bad(format!(
            "the saved sandbox has a disk of {bytes} bytes, and {most} are allowed"
        )),
        _ => Ok(()),
    }
}

/// Draws a MAC address, locally administered and of no group (IEEE 802).
pub(super) fn random_mac() -> Result<[u8; 6], VmError> {
    const LOCAL: u8 = 2;
    let random = random_id()?.to_le_bytes();
    let [first, b, c, d, e, f, ..] = random;
    Ok([first & !MULTICAST | LOCAL, b, c, d, e, f])
}

impl Copied {
    pub(super) fn open(self) -> Result<Origin, VmError> {
        let source: Box<dyn Read + Send> = match self {
            Self::Frozen(frozen) => return Ok(Origin::Frozen(frozen)),
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Self::File(file) => Box::new(BufReader::new(FromStart { file, at: 0 })),
        };
        Ok(Origin::Saved(Box::new(Saved::open(source)?)))
    }
}

/// Reads a file from its start without moving the offset that its descriptors share.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_copy_is_limited() {
        let check = |bytes, limit: Option<u64>| {
            let folder = None;
            let limit = limit.map(|bytes| DiskOptions { bytes, folder });
            check_copied_disk(bytes, limit.as_ref()).is_ok()
        };
        assert!(check(None, None) && check(Some(10 << 30), None));
        assert!(check(Some(20 << 30), Some(20 << 30)));
        assert!(!check(Some(20 << 30), None) && !check(Some(1 << 30), Some(1 << 20)));
        assert!(!check(None, Some(1 << 30)));
    }

    #[test]
    fn addresses_are_of_one_machine_and_differ() {
        let (first, second) = (random_mac().unwrap(), random_mac().unwrap());
        assert_ne!(first, second);
        assert_eq!((first[0] & 3, second[0] & 3), (2, 2));
    }
}
