//! Saved guest: a running guest as data, stored as the difference of its memory from its
//! image, and the contents of its disks.
//!
//! All of a guest's state is in the emulator's linear memory and on its disk. Between two
//! calls the emulator's stack is empty, and the snapshot builder rejects an image with
//! other mutable globals than the stack pointer (`snapshot`). So the memory is the guest,
//! its devices included. It never holds host code.
//!
//! A saved guest is the mark [`MAGIC`], the length of a manifest, the manifest (JSON),
//! SHA-256 of all that, the runs of pages that it lists, the written blocks of the disks,
//! and SHA-256 of everything before. Pages that became zero, such as those of the image's
//! decoded code, are only listed. The manifest names the image, and the saved guest fits no
//! other; processor and machine do not matter. A guest runs only after all of it was
//! checked. The hash detects damage, not malice: an attacker who can write a saved guest
//! controls the code in the restored guest, and no more than that.

use super::cow::{PAGE_BYTES, Runs};
use super::disk::{BLOCK_BYTES, OwnDisk};
use super::error::{VmCode, VmError};
use super::frozen::{Frozen, Head};
use super::levels::FrozenDisk;
use a99_sandbox_abi::SWAP_BYTES;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// First bytes of a saved guest; the digit is the format's version.
const MAGIC: &[u8; 8] = b"a99vm\0\x003";

/// Bytes of SHA-256.
const HASH_BYTES: usize = 32;

/// Maximum memory of an emulator: 32-bit addresses.
pub(super) const MAX_MEMORY: u64 = 4 << 30;

/// Maximum bytes of a manifest: a run for every second page of the largest memory would be
/// 20 MB of text; no guest is so scattered.
const MAX_MANIFEST: usize = 16 << 20;

/// Bytes copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// Manifest of a saved guest.
#[derive(Debug, Serialize, Deserialize)]
struct SavedManifest {
    #[serde(flatten)]
    head: Head,
    /// Pages that follow the manifest.
    runs: Runs,
    /// Pages that became zero.
    zeros: Runs,
    /// The disk, whose blocks follow the pages.
    disk: Option<SavedDisk>,
    /// The disk for files that did not fit memory, whose blocks come last.
    #[serde(default)]
    swap: Option<SavedDisk>,
}

/// A disk of the guest.
#[derive(Debug, Serialize, Deserialize)]
struct SavedDisk {
    bytes: u64,
    /// First block and number of blocks, ascending.
    extents: Vec<(u64, u64)>,
}

/// Hashes what passes through.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        let hash = Sha256::new();
        Self { inner, hash }
    }
}

impl<T: Write> Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), VmError> {
        self.hash.update(bytes);
        self.inner.write_all(bytes).map_err(failed)
    }

    /// Writes the hash of what was written so far.
    fn write_hash(&mut self) -> Result<(), VmError> {
        let hash = self.hash.clone().finalize();
        self.write(&hash)
    }
}

impl<T: Read> Hashing<T> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), VmError> {
        self.inner.read_exact(bytes).map_err(cut)?;
        self.hash.update(bytes);
        Ok(())
    }

    /// Reads the hash of what was read so far, and compares it.
    fn check(&mut self) -> Result<(), VmError> {
        let expected = self.hash.clone().finalize();
        let mut hash = [0; HASH_BYTES];
        self.read(&mut hash)?;
        if hash[..] == expected[..] {
            return Ok(());
        }
        Err(wrong("it is damaged: its hash differs"))
    }
}

impl Frozen {
    /// Writes it as a saved guest; `progress` gets the bytes written and their total.
    ///
    /// # Errors
    /// [`VmCode::Io`].
    pub fn save(
        &self,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), VmError> {
        let places = self.places();
        let mut page = [0; PAGE_BYTES];
        let (mut runs, mut zeros) = (Runs::new(), Runs::new());
        for (number, place) in &places {
            self.read_page(*place, &mut page)?;
            let is_zero = page.iter().all(|byte| *byte == 0);
            let runs = if is_zero { &mut zeros } else { &mut runs };
            match runs.last_mut() {
                Some((first, count)) if *first + *count == *number => *count += 1,
                _ => runs.push((*number, 1)),
            }
        }
        let saved = |disk: &Option<FrozenDisk>| {
            let disk = disk.as_ref().map(|disk| {
                Ok(SavedDisk {
                    bytes: disk.bytes,
                    extents: disk.extents()?,
                })
            });
            disk.transpose().map_err(failed)
        };
        let manifest = SavedManifest {
            head: self.head.clone(),
            runs,
            zeros,
            disk: saved(&self.disk)?,
            swap: saved(&self.swap)?,
        };
        let text = serde_json::to_vec(&manifest).map_err(|error| failed(error.into()))?;
        let mut out = Hashing::new(out);
        out.write(MAGIC)?;
        out.write(&(text.len() as u32).to_le_bytes())?;
        out.write(&text)?;
        out.write_hash()?;
        let (mut done, total) = (0, manifest.content_bytes());
        for (first, count) in &manifest.runs {
            for number in *first..*first + *count {
                let Some(place) = places.get(&number) else {
                    continue;
                };
                self.read_page(*place, &mut page)?;
                out.write(&page)?;
            }
            done += u64::from(*count) * PAGE_BYTES as u64;
            progress(done, total);
        }
        let mut buffer = Vec::new();
        for ((mut at, end), disk) in manifest.extents() {
            let disk = if disk == 0 { &self.disk } else { &self.swap };
            while at < end
                && let Some(disk) = disk
            {
                buffer.resize((end - at).min(COPY_BYTES) as usize, 0);
                disk.read(at, &mut buffer).map_err(failed)?;
                out.write(&buffer)?;
                at += buffer.len() as u64;
                done += buffer.len() as u64;
                progress(done, total);
            }
        }
        out.write_hash()?;
        out.inner.flush().map_err(failed)
    }

    /// Layer of each page that differs from the image, and offset in its file.
    fn places(&self) -> BTreeMap<u32, (usize, u64)> {
        let mut places = BTreeMap::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let pages = layer
                .runs()
                .iter()
                .flat_map(|(first, n)| *first..*first + *n);
            for (index, page) in pages.enumerate() {
                places.insert(page, (number, index as u64 * PAGE_BYTES as u64));
            }
        }
        places
    }

    fn read_page(
        &self,
        (layer, offset): (usize, u64),
        page: &mut [u8; PAGE_BYTES],
    ) -> Result<(), VmError> {
        let layer = self
            .layers
            .get(layer)
            .ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        layer.file().read_exact_at(page, offset).map_err(failed)
    }
}

/// A saved guest whose manifest passed all checks; its contents are checked as they are
/// restored.
pub struct Saved {
    manifest: SavedManifest,
    source: Hashing<Box<dyn Read + Send>>,
}

impl std::fmt::Debug for Saved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved")
            .field("image", &self.manifest.head.image)
            .finish_non_exhaustive()
    }
}

impl Saved {
    /// Reads and checks the manifest of a saved guest.
    ///
    /// # Errors
    /// [`VmCode::Saved`] if the bytes are not a saved guest, are damaged, or have another
    /// version; [`VmCode::Io`].
    pub fn open(source: Box<dyn Read + Send>) -> Result<Self, VmError> {
        let mut source = Hashing::new(source);
        let mut mark = [0; MAGIC.len()];
        source.read(&mut mark)?;
        if mark != *MAGIC {
            return Err(wrong("it is no saved guest, or of another version"));
        }
        let mut len = [0; 4];
        source.read(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > MAX_MANIFEST {
            return Err(wrong("its manifest is not whole"));
        }
        let mut text = vec![0; len];
        source.read(&mut text)?;
        source.check()?;
        let manifest: SavedManifest = serde_json::from_slice(&text)
            .map_err(|error| wrong(&format!("its manifest: {error}")))?;
        manifest.check()?;
        Ok(Self { manifest, source })
    }

    pub(super) fn head(&self) -> &Head {
        &self.manifest.head
    }

    /// Bytes of its disk.
    pub(super) fn disk_bytes(&self) -> Option<u64> {
        self.manifest.disk.as_ref().map(|disk| disk.bytes)
    }

    /// Whether it has a disk for files that do not fit memory.
    pub(super) fn has_swap(&self) -> bool {
        self.manifest.swap.is_some()
    }

    /// Restores the memory of a new instance, and empty disks; returns the bytes of an
    /// incomplete frame. After an error, nothing of these may be used.
    pub(super) fn restore(
        mut self,
        memory: &mut [u8],
        mut disks: [Option<&mut OwnDisk>; 2],
    ) -> Result<Vec<u8>, VmError> {
        let small = || wrong("its pages are not whole");
        let mut range = |(first, count): &(u32, u32), take: &mut dyn FnMut(&mut [u8]) -> _| {
            let (at, len) = (*first as usize * PAGE_BYTES, *count as usize * PAGE_BYTES);
            let place = memory.get_mut(at..at + len).ok_or_else(small)?;
            take(place)
        };
        for run in &self.manifest.runs {
            range(run, &mut |place| {
                let mut pieces = place.chunks_mut(COPY_BYTES as usize);
                pieces.try_for_each(|piece| self.source.read(piece))
            })?;
        }
        for run in &self.manifest.zeros {
            range(run, &mut |place| {
                place.fill(0);
                Ok(())
            })?;
        }
        let mut buffer = Vec::new();
        for ((mut at, end), disk) in self.manifest.extents() {
            while at < end {
                buffer.resize((end - at).min(COPY_BYTES) as usize, 0);
                self.source.read(&mut buffer)?;
                let disk = disks[disk].as_mut();
                let disk = disk.ok_or_else(|| wrong("it has a disk"))?;
                disk.write(at, &buffer).map_err(failed)?;
                at += buffer.len() as u64;
            }
        }
        self.source.check()?;
        match self.source.inner.read(&mut [0]) {
            Ok(0) => Ok(self.manifest.head.unread),
            _ => Err(wrong("there is more after its end")),
        }
    }
}

impl SavedManifest {
    /// Checks that pages and blocks ascend, and lie inside memory and disks.
    fn check(&self) -> Result<(), VmError> {
        let memory = self.head.memory;
        let pages = memory / PAGE_BYTES as u64;
        let runs = [&self.runs, &self.zeros];
        if memory > MAX_MEMORY || runs.iter().any(|runs| in_order(runs, pages).is_none()) {
            return Err(wrong("its pages are out of order"));
        }
        check_swap(self.swap.as_ref().map(|swap| swap.bytes))?;
        for disk in self.disk.iter().chain(&self.swap) {
            super::disk::check(disk.bytes).map_err(|error| wrong(&error.text))?;
            let mut end = 0;
            for (first, count) in &disk.extents {
                let next = first.checked_add(*count);
                match next.filter(|next| *next <= disk.bytes / BLOCK_BYTES) {
                    Some(next) if *first >= end && *count > 0 => end = next,
                    _ => return Err(wrong("the blocks of its disk are out of order")),
                }
            }
        }
        Ok(())
    }

    /// Extents of its disks in bytes, first that of its own, number 0.
    fn extents(&self) -> impl Iterator<Item = ((u64, u64), usize)> {
        let disks = [&self.disk, &self.swap].into_iter().enumerate();
        disks.flat_map(|(number, disk)| {
            let extents = disk.iter().flat_map(|disk| &disk.extents);
            extents.map(move |extent| (bytes_of(extent), number))
        })
    }

    /// Bytes of pages and blocks.
    fn content_bytes(&self) -> u64 {
        let blocks: u64 = self.extents().map(|((at, end), _)| end - at).sum();
        super::cow::pages_of(&self.runs) * PAGE_BYTES as u64 + blocks
    }
}

/// First byte of an extent, and the one after its last.
fn bytes_of((first, count): &(u64, u64)) -> (u64, u64) {
    (first * BLOCK_BYTES, (first + count) * BLOCK_BYTES)
}

/// Counts the pages of runs; `None` unless they ascend within the first `pages`.
pub(super) fn in_order(runs: &[(u32, u32)], pages: u64) -> Option<u64> {
    let (mut end, mut total) = (0, 0);
    for (first, count) in runs {
        let (first, count) = (u64::from(*first), u64::from(*count));
        if first < end || count == 0 || first + count > pages {
            return None;
        }
        end = first + count;
        total += count;
    }
    Some(total)
}

/// Checks the size of a disk for files that do not fit memory, which the guest's kernel
/// knows.
pub(super) fn check_swap(bytes: Option<u64>) -> Result<(), VmError> {
    match bytes {
        None | Some(SWAP_BYTES) => Ok(()),
        Some(_) => Err(wrong("its files that did not fit memory are not whole")),
    }
}

pub(super) fn wrong(what: &str) -> VmError {
    VmError::new(
        VmCode::Saved,
        format!("the saved guest cannot be used: {what}"),
    )
}

fn failed(error: io::Error) -> VmError {
    VmError::new(VmCode::Io, format!("a saved guest: {error}"))
}

/// Error of reading a saved guest.
fn cut(error: io::Error) -> VmError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => wrong("it is too short"),
        _ => failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskOptions;

    const MEMORY: usize = 1 << 20;

    fn saved(manifest: &SavedManifest, content: &[u8]) -> Vec<u8> {
        let mut out = Hashing::new(Vec::new());
        let text = serde_json::to_vec(manifest).unwrap();
        out.write(MAGIC).unwrap();
        out.write(&(text.len() as u32).to_le_bytes()).unwrap();
        out.write(&text).unwrap();
        out.write_hash().unwrap();
        out.write(content).unwrap();
        out.write_hash().unwrap();
        out.inner
    }

    fn manifest(memory: u64, runs: &[(u32, u32)]) -> SavedManifest {
        SavedManifest {
            head: Head {
                image: "i".to_owned(),
                memory,
                unread: vec![1],
                files: None,
                root_layers: Vec::new(),
            },
            runs: runs.to_vec(),
            zeros: Vec::new(),
            disk: None,
            swap: None,
        }
    }

    fn open(bytes: &[u8]) -> Result<Saved, VmError> {
        Saved::open(Box::new(io::Cursor::new(bytes.to_vec())))
    }

    fn restored(bytes: &[u8]) -> Result<Vec<u8>, VmError> {
        let mut memory = vec![3; MEMORY];
        open(bytes)?.restore(&mut memory, [None, None])?;
        Ok(memory)
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let good = saved(&manifest(1 << 20, &[(1, 1), (4, 1)]), &[5; 2 * PAGE_BYTES]);
        let memory = restored(&good).unwrap();
        assert_eq!(memory[..PAGE_BYTES], [3; PAGE_BYTES]);
        assert_eq!(memory[PAGE_BYTES..2 * PAGE_BYTES], [5; PAGE_BYTES]);
        for at in [0, 9, 20, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(restored(&bad).unwrap_err().code, VmCode::Saved, "{at}");
        }
        for len in [0, 8, 31, 40, good.len() - 1] {
            let error = restored(&good[..len]).unwrap_err();
            assert_eq!(error.code, VmCode::Saved, "{len}");
        }
        assert!(restored(&[&good[..], &[0]].concat()).is_err());
    }

    #[test]
    fn runs_that_lie_are_refused() {
        let pages = [5; 2 * PAGE_BYTES];
        for (memory, runs) in [
            (1 << 20, &[(1, 1), (1, 1)][..]),
            (1 << 20, &[(4, 1), (1, 1)]),
            (1 << 20, &[(255, 2)]),
            (1 << 20, &[(0, 3)]),
            (1 << 20, &[(0, 0), (0, 2)]),
            (8 << 30, &[(0, 2)]),
            // More memory than the instance has.
            (1 << 30, &[(1000, 2)]),
            (1 << 20, &[(u32::MAX, u32::MAX)]),
        ] {
            let bytes = saved(&manifest(memory, runs), &pages);
            assert!(restored(&bytes).is_err(), "{runs:?}");
            let zeros = SavedManifest {
                zeros: runs.to_vec(),
                ..manifest(memory, &[])
            };
            let is_wrong = restored(&saved(&zeros, &[])).is_err();
            assert_eq!(is_wrong, runs != [(0, 3)], "{runs:?}");
        }
    }

    #[test]
    fn disks_that_lie_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let block = [6; BLOCK_BYTES as usize];
        let of = |bytes, extents: &[(u64, u64)]| {
            let manifest = SavedManifest {
                disk: Some(SavedDisk {
                    bytes,
                    extents: extents.to_vec(),
                }),
                ..manifest(1 << 20, &[])
            };
            let saved = open(&saved(&manifest, &block))?;
            let bytes = saved.disk_bytes().unwrap();
            let mut disk = OwnDisk::new(&DiskOptions {
                bytes,
                folder: Some(folder.path().to_owned()),
            })?;
            saved.restore(&mut vec![0; MEMORY], [Some(&mut disk), None])?;
            let frozen = disk.freeze()?;
            Ok::<_, VmError>(frozen.extents().unwrap())
        };
        assert_eq!(of(16 << 20, &[(7, 1)]).unwrap(), [(7, 1)]);
        for (bytes, extents) in [
            (16 << 20, &[(7, 2)][..]),
            (16 << 20, &[]),
            (16 << 20, &[(4096, 1)]),
            (16 << 20, &[(u64::MAX, 1)]),
            (16 << 20, &[(1, 0), (7, 1)]),
            (1, &[]),
            (u64::MAX, &[(7, 1)]),
        ] {
            let error = of(bytes, extents).unwrap_err();
            assert_eq!(error.code, VmCode::Saved, "{bytes} {extents:?}");
        }
    }
}
