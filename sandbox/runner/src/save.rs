//! Saved guest: a running guest as data, stored as the difference of its memory from its
//! image.
//!
//! All of a guest's state is in the emulator's linear memory. Between two calls the
//! emulator's stack is empty, and the snapshot builder rejects an image with other mutable
//! globals than the stack pointer (`snapshot`). So the memory is the guest, its devices
//! included. It never holds host code.
//!
//! A saved guest is the mark [`MAGIC`], the length of a manifest, the manifest (JSON), the
//! runs of pages that it lists, and SHA-256 of all that. Pages that became zero, such as
//! those of the image's decoded code, are only listed. The manifest names the image, and
//! the saved guest fits no other; processor and machine do not matter. All of it is checked
//! before any part is used. The hash detects damage, not malice: an attacker who can write
//! a saved guest controls the code in the restored guest, and no more than that.

use super::error::{VmCode, VmError};
use super::instance::{Emulator, Linked};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// First bytes of a saved guest; the digit is the format's version.
const MAGIC: &[u8; 8] = b"a99vm\0\x002";

/// Size of the guest's pages, so that little more than its writes is saved.
const PAGE_BYTES: usize = 4096;

/// Bytes of SHA-256.
const HASH_BYTES: usize = 32;

/// Maximum memory of an emulator: 32-bit addresses.
const MAX_MEMORY: u64 = 4 << 30;

/// Maximum bytes of a manifest: a run for every second page of the largest memory would be
/// 20 MB of text; no guest is so scattered.
const MAX_MANIFEST: usize = 16 << 20;

const ZERO: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// First page and number of pages, ascending.
type Runs = Vec<(u32, u32)>;

/// Manifest of a saved guest.
#[derive(Debug, Serialize, Deserialize)]
struct SavedManifest {
    /// Name of the image.
    image: String,
    /// Bytes of memory.
    memory: u64,
    /// Pages that follow the manifest.
    runs: Runs,
    /// Pages that became zero.
    zeros: Runs,
    /// Bytes of an incomplete frame, whose rest is still in the guest.
    unread: Vec<u8>,
    /// State of the mount server.
    files: Option<serde_json::Value>,
}

/// A saved guest that passed all checks.
pub struct Saved {
    manifest: SavedManifest,
    bytes: Vec<u8>,
    /// Offset of its pages in `bytes`.
    pages: usize,
}

impl std::fmt::Debug for Saved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved")
            .field("image", &self.manifest.image)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Saves the difference to a new instance of `base`.
pub(super) fn save(
    emulator: &mut Emulator,
    base: &Linked,
    image: &str,
    unread: &[u8],
    files: Option<serde_json::Value>,
) -> Result<Vec<u8>, VmError> {
    let base = Emulator::new(base, 1, false)?;
    let (memory, old) = (emulator.memory(), base.memory());
    let (runs, zeros) = changed(memory, old);
    let manifest = SavedManifest {
        image: image.to_owned(),
        memory: memory.len() as u64,
        runs,
        zeros,
        unread: unread.to_vec(),
        files,
    };
    let text = serde_json::to_vec(&manifest)
        .map_err(|error| VmError::new(VmCode::Protocol, format!("manifest: {error}")))?;
    let pages: usize = manifest.runs.iter().map(|(_, count)| *count as usize).sum();
    let mut bytes =
        Vec::with_capacity(MAGIC.len() + 4 + text.len() + pages * PAGE_BYTES + HASH_BYTES);
    bytes.extend(MAGIC);
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text);
    for (first, count) in &manifest.runs {
        let start = *first as usize * PAGE_BYTES;
        bytes.extend(&memory[start..start + *count as usize * PAGE_BYTES]);
    }
    let hash = Sha256::digest(&bytes);
    bytes.extend(hash);
    Ok(bytes)
}

/// Finds runs of pages in `new` that differ from `old`, which is zero beyond its end: those
/// with contents, and those that are zero now.
fn changed(new: &[u8], old: &[u8]) -> (Runs, Runs) {
    let (mut full, mut zeros) = (Runs::new(), Runs::new());
    for (number, page) in new.chunks_exact(PAGE_BYTES).enumerate() {
        let start = number * PAGE_BYTES;
        if page == old.get(start..start + PAGE_BYTES).unwrap_or(&ZERO) {
            continue;
        }
        let runs = if page == ZERO { &mut zeros } else { &mut full };
        match runs.last_mut() {
            Some((first, count)) if (*first + *count) as usize == number => *count += 1,
            _ => runs.push((number as u32, 1)),
        }
    }
    (full, zeros)
}

impl Saved {
    /// Parses and checks a saved guest.
    ///
    /// # Errors
    /// [`VmCode::Saved`] if the bytes are not a saved guest, are damaged, or have another
    /// version.
    pub fn open(bytes: Vec<u8>) -> Result<Self, VmError> {
        let Some((content, hash)) = bytes.split_last_chunk::<HASH_BYTES>() else {
            return Err(wrong("it is too short"));
        };
        let Some(rest) = content.strip_prefix(MAGIC) else {
            return Err(wrong("it is no saved guest, or of another version"));
        };
        if Sha256::digest(content)[..] != hash[..] {
            return Err(wrong("it is damaged: its hash differs"));
        }
        let Some((len, rest)) = rest.split_first_chunk::<4>() else {
            return Err(wrong("it is too short"));
        };
        let len = u32::from_le_bytes(*len) as usize;
        let text = rest.get(..len).filter(|_| len <= MAX_MANIFEST);
        let text = text.ok_or_else(|| wrong("its manifest is not whole"))?;
        let manifest: SavedManifest = serde_json::from_slice(text)
            .map_err(|error| wrong(&format!("its manifest: {error}")))?;
        manifest.check(rest.len() - len)?;
        let pages = MAGIC.len() + 4 + len;
        Ok(Self {
            manifest,
            bytes,
            pages,
        })
    }

    /// Name of its image.
    pub fn image(&self) -> &str {
        &self.manifest.image
    }

    /// State of the mount server.
    pub fn files(&self) -> Option<&serde_json::Value> {
        self.manifest.files.as_ref()
    }

    /// Bytes of an incomplete frame that the host had read.
    pub(super) fn unread(&self) -> &[u8] {
        &self.manifest.unread
    }

    /// Restores the memory in a new instance of its image.
    pub(super) fn apply(&self, emulator: &mut Emulator) -> Result<(), VmError> {
        emulator.grow(self.manifest.memory as usize)?;
        let mut rest = &self.bytes[self.pages..];
        for (first, count) in &self.manifest.runs {
            let (pages, later) = rest.split_at(*count as usize * PAGE_BYTES);
            emulator.write(u64::from(*first) * PAGE_BYTES as u64, pages)?;
            rest = later;
        }
        for (first, count) in &self.manifest.zeros {
            for page in *first..*first + *count {
                emulator.write(u64::from(page) * PAGE_BYTES as u64, &ZERO)?;
            }
        }
        Ok(())
    }
}

impl SavedManifest {
    /// Checks that the runs ascend, lie inside the memory and are complete.
    fn check(&self, bytes: usize) -> Result<(), VmError> {
        let pages = self.memory / PAGE_BYTES as u64;
        let total = in_order(&self.runs, pages);
        let zeros = in_order(&self.zeros, pages);
        let (Some(total), Some(_)) = (total, zeros) else {
            return Err(wrong("its pages are out of order"));
        };
        if self.memory > MAX_MEMORY || total * PAGE_BYTES as u64 != bytes as u64 {
            return Err(wrong("its pages are not whole"));
        }
        Ok(())
    }
}

/// Counts the pages of runs; `None` unless they ascend within the first `pages`.
fn in_order(runs: &[(u32, u32)], pages: u64) -> Option<u64> {
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

fn wrong(what: &str) -> VmError {
    VmError::new(
        VmCode::Saved,
        format!("the saved guest cannot be used: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(manifest: &SavedManifest, pages: &[u8]) -> Vec<u8> {
        let text = serde_json::to_vec(manifest).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text);
        bytes.extend(pages);
        let hash = Sha256::digest(&bytes);
        bytes.extend(hash);
        bytes
    }

    fn manifest(memory: u64, runs: &[(u32, u32)]) -> SavedManifest {
        SavedManifest {
            image: "i".to_owned(),
            memory,
            runs: runs.to_vec(),
            zeros: Vec::new(),
            unread: vec![1],
            files: None,
        }
    }

    #[test]
    fn only_pages_that_changed_are_kept() {
        let old = [1; 3 * PAGE_BYTES];
        let mut new = vec![1; 3 * PAGE_BYTES];
        new.resize(6 * PAGE_BYTES, 0);
        new[PAGE_BYTES] = 2;
        new[2 * PAGE_BYTES] = 2;
        new[5 * PAGE_BYTES] = 2;
        new[..PAGE_BYTES].fill(0);
        assert_eq!(
            changed(&new, &old),
            (vec![(1, 2), (5, 1)], vec![(0, 1)]),
            "pages that were and are zero are none"
        );
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let good = saved(&manifest(1 << 20, &[(1, 1), (4, 1)]), &[5; 2 * PAGE_BYTES]);
        let opened = Saved::open(good.clone()).unwrap();
        assert_eq!((opened.image(), opened.unread()), ("i", &[1][..]));
        for at in [0, 9, 20, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(Saved::open(bad).unwrap_err().code, VmCode::Saved, "{at}");
        }
        for len in [0, 8, 31, 40, good.len() - 1] {
            assert!(Saved::open(good[..len].to_vec()).is_err(), "{len}");
        }
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
            (1 << 20, &[(u32::MAX, u32::MAX)]),
        ] {
            let bytes = saved(&manifest(memory, runs), &pages);
            assert!(Saved::open(bytes).is_err(), "{runs:?}");
            let zeros = SavedManifest {
                zeros: runs.to_vec(),
                ..manifest(memory, &[])
            };
            let is_wrong = Saved::open(saved(&zeros, &[])).is_err();
            assert_eq!(is_wrong, runs != [(0, 3)], "{runs:?}");
        }
    }
}
