//! Frozen guest: the state of a running guest at one moment, shared copy-on-write by the
//! guest and its copies, in this process and in others.

use super::cow::{Layer, MAX_LAYERS, PAGE_BYTES, Runs};
use super::disk::OwnDisk;
use super::error::{VmCode, VmError};
use super::instance::Emulator;
use super::levels::{FrozenDisk, MAX_LEVELS};
use super::save::{MAX_MEMORY, Saved, in_order, wrong};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// Most descriptors of a frozen guest: the files of its memory and of its two disks.
pub const MAX_DESCRIPTORS: usize = MAX_LAYERS + 2 * MAX_LEVELS;

/// A guest's state apart from the contents of memory and disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// Name of the image.
    pub image: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of an incomplete frame, whose rest is still in the guest.
    pub unread: Vec<u8>,
    /// State of the mount server.
    pub files: Option<serde_json::Value>,
    /// SHA-256 of each layer of the root's files, in hexadecimal.
    #[serde(default)]
    pub root_layers: Vec<String>,
}

/// A running guest's state at one moment, from which any number of copies start; cheap to
/// clone. It keeps memory and disk space of the host until it and its copies are gone.
#[derive(Clone)]
pub struct Frozen {
    pub(super) head: Head,
    pub(super) layers: Vec<Arc<Layer>>,
    pub(super) disk: Option<FrozenDisk>,
    /// Files that did not fit memory.
    pub(super) swap: Option<FrozenDisk>,
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frozen")
            .field("image", &self.head.image)
            .field("disk", &self.disk.is_some())
            .finish_non_exhaustive()
    }
}

/// Description of a frozen guest for another process, which also gets its descriptors.
#[derive(Debug, Serialize, Deserialize)]
struct Parts {
    head: Head,
    /// Pages of each layer of memory.
    layers: Vec<Runs>,
    disk: Option<DiskParts>,
    swap: Option<DiskParts>,
}

/// Size and levels of a frozen disk, and the blocks above the lowest level.
#[derive(Debug, Serialize, Deserialize)]
struct DiskParts {
    bytes: u64,
    levels: usize,
    blocks: Vec<(u64, u64, u8)>,
}

impl DiskParts {
    fn of(disk: &FrozenDisk) -> Self {
        Self {
            bytes: disk.bytes,
            levels: disk.levels().len(),
            blocks: disk.runs(),
        }
    }
}

impl Frozen {
    /// Its description and files, for a process of the same user.
    pub fn parts(&self) -> (Vec<u8>, Vec<BorrowedFd<'_>>) {
        let parts = Parts {
            head: self.head.clone(),
            layers: self.layers.iter().map(|l| l.runs().clone()).collect(),
            disk: self.disk.as_ref().map(DiskParts::of),
            swap: self.swap.as_ref().map(DiskParts::of),
        };
        let memory = self.layers.iter().map(|layer| layer.file().as_fd());
        let disks = self.disk.iter().chain(&self.swap);
        let levels = disks.flat_map(FrozenDisk::levels);
        let files = memory.chain(levels.map(|level| level.as_fd())).collect();
        // Plain data always serialises.
        (serde_json::to_vec(&parts).unwrap_or_default(), files)
    }

    /// Puts the parts together that another process sent.
    ///
    /// # Errors
    /// [`VmCode::Saved`] if they do not fit each other, or memory could still change.
    pub fn from_parts(description: &[u8], files: Vec<OwnedFd>) -> Result<Self, VmError> {
        let parts: Parts = serde_json::from_slice(description)
            .map_err(|error| wrong(&format!("its description: {error}")))?;
        let Parts { head, layers, .. } = parts;
        let disks = parts.disk.iter().chain(&parts.swap);
        let count = disks.fold(layers.len(), |all, disk| all.saturating_add(disk.levels));
        if head.memory > MAX_MEMORY || files.len() != count {
            return Err(wrong("its files are not whole"));
        }
        super::save::check_swap(parts.swap.as_ref().map(|swap| swap.bytes))?;
        let pages = head.memory / PAGE_BYTES as u64;
        let mut files = files.into_iter().map(File::from);
        let mut taken = Vec::new();
        for runs in layers {
            if in_order(&runs, pages).is_none() {
                return Err(wrong("its pages are out of order"));
            }
            let file = files
                .next()
                .ok_or_else(|| wrong("its files are not whole"))?;
            let layer = Layer::new(file, runs).map_err(|error| wrong(&error.to_string()))?;
            taken.push(Arc::new(layer));
        }
        let mut disk = |disk: Option<DiskParts>| {
            let disk = disk.map(|disk| {
                let levels = files.by_ref().take(disk.levels).collect();
                FrozenDisk::new(disk.bytes, levels, &disk.blocks)
            });
            disk.transpose()
        };
        Ok(Self {
            head,
            layers: taken,
            disk: disk(parts.disk)?,
            swap: disk(parts.swap)?,
        })
    }
}

/// What a guest continues from, instead of its image alone.
#[derive(Debug)]
pub enum Origin {
    /// A saved guest.
    Saved(Box<Saved>),
    /// A frozen guest.
    Frozen(Box<Frozen>),
}

impl Origin {
    fn head(&self) -> &Head {
        match self {
            Self::Saved(saved) => saved.head(),
            Self::Frozen(frozen) => &frozen.head,
        }
    }

    /// Name of its image.
    pub fn image(&self) -> &str {
        &self.head().image
    }

    /// SHA-256 of each layer of its root's files; its copy needs the same ones.
    pub fn root_layers(&self) -> &[String] {
        &self.head().root_layers
    }

    /// State of the mount server.
    pub fn files(&self) -> Option<&serde_json::Value> {
        self.head().files.as_ref()
    }

    /// Bytes of its own disk.
    pub fn disk_bytes(&self) -> Option<u64> {
        match self {
            Self::Saved(saved) => saved.disk_bytes(),
            Self::Frozen(frozen) => frozen.disk.as_ref().map(|disk| disk.bytes),
        }
    }

    /// Creates the disk of the copy, with a file in `folder`.
    ///
    /// # Errors
    /// Those of [`OwnDisk::new`].
    pub fn disk(&self, folder: Option<PathBuf>) -> Result<Option<OwnDisk>, VmError> {
        match self {
            Self::Saved(saved) => {
                let bytes = saved.disk_bytes();
                let options = bytes.map(|bytes| super::disk::DiskOptions { bytes, folder });
                options.as_ref().map(OwnDisk::new).transpose()
            }
            Self::Frozen(frozen) => {
                let disk = frozen.disk.as_ref();
                disk.map(|disk| OwnDisk::of(disk, folder)).transpose()
            }
        }
    }

    /// Creates the disk of the copy for files that do not fit memory, if the guest has one.
    pub fn swap(&self) -> Option<OwnDisk> {
        match self {
            Self::Saved(saved) => saved.has_swap().then(OwnDisk::swap),
            Self::Frozen(frozen) => frozen.swap.as_ref().map(OwnDisk::swap_of),
        }
    }

    /// Restores memory and disks in a new instance of the image; returns the layers of the
    /// memory, and the bytes of an incomplete frame.
    pub(super) fn apply(
        self,
        emulator: &mut Emulator,
        disks: [Option<&mut OwnDisk>; 2],
    ) -> Result<(Vec<Arc<Layer>>, Vec<u8>), VmError> {
        emulator.grow(self.head().memory as usize)?;
        match self {
            Self::Saved(saved) => Ok((Vec::new(), saved.restore(emulator.memory_mut(), disks)?)),
            Self::Frozen(frozen) => {
                for layer in &frozen.layers {
                    let mapped = layer.map(emulator.memory_mut());
                    mapped.map_err(|error| {
                        VmError::new(VmCode::Resources, format!("memory of a guest: {error}"))
                    })?;
                }
                Ok((frozen.layers, frozen.head.unread))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_sandbox_abi::SWAP_BYTES;

    fn frozen() -> Frozen {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = vec![7; 4 * PAGE_BYTES];
        let mut layers = Vec::new();
        let pages = vec![true, false, true, true];
        super::super::cow::freeze(&memory, pages, &mut layers).expect("frozen");
        let mut swap = super::super::levels::Levels::new(folder.path(), SWAP_BYTES);
        let unused = swap.freeze().expect("frozen");
        assert!(unused.levels().is_empty());
        swap.write(0, &[3; 4096]).expect("written");
        let mut disk = super::super::levels::Levels::new(folder.path(), 16 << 20);
        disk.write(8192, &[1; 4096]).expect("written");
        disk.freeze().expect("frozen");
        disk.write(4096, &[2; 4096]).expect("written");
        Frozen {
            head: Head {
                image: "i".to_owned(),
                memory: memory.len() as u64,
                unread: vec![9],
                files: None,
                root_layers: Vec::new(),
            },
            layers,
            disk: Some(disk.freeze().expect("frozen")),
            swap: Some(swap.freeze().expect("frozen")),
        }
    }

    #[test]
    fn parts_make_the_same_guest_elsewhere() {
        let ours = frozen();
        let (text, files) = ours.parts();
        let files = |skip| {
            let files = files.iter().skip(skip);
            files
                .map(|file| file.try_clone_to_owned().expect("a descriptor"))
                .collect()
        };
        let theirs = Frozen::from_parts(&text, files(0)).expect("whole");
        assert_eq!(theirs.head.unread, [9]);
        assert_eq!(theirs.layers[0].runs(), &[(0, 1), (2, 2)]);
        let mut bytes = [0; 3 * 4096];
        let disk = theirs.disk.expect("a disk");
        disk.read(0, &mut bytes).expect("read");
        assert_eq!((bytes[0], bytes[4096], bytes[8192]), (0, 2, 1));
        let swap = theirs.swap.expect("a disk");
        swap.read(0, &mut bytes).expect("read");
        assert_eq!((bytes[0], bytes[4096]), (3, 0));
        // Not all files, another order, other pages.
        assert!(Frozen::from_parts(&text, files(1)).is_err());
        let mut turned: Vec<OwnedFd> = files(0);
        turned.reverse();
        assert!(Frozen::from_parts(&text, turned).is_err());
        let text = String::from_utf8(text).expect("JSON");
        for (from, to) in [
            ("[2,2]", "[2,3]"),
            ("[2,2]", "[0,2]"),
            ("\"memory\":16384", "\"memory\":8192"),
            ("\"memory\":16384", "\"memory\":9999999999"),
            ("\"levels\":2", "\"levels\":18446744073709551615"),
            ("\"bytes\":4294967296", "\"bytes\":16777216"),
        ] {
            let bad = text.replace(from, to);
            assert_ne!(bad, text, "{from}");
            assert!(
                Frozen::from_parts(bad.as_bytes(), files(0)).is_err(),
                "{to}"
            );
        }
    }
}
