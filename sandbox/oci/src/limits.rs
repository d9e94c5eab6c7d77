//! Limits of an image: far above real ones, far below what harms the host.

/// Limits of reading an archive. The largest images that people use have some 300,000
/// entries, 100 layers and 6 GB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of the archive itself.
    pub members: u64,
    /// Layers of an image.
    pub layers: u64,
    /// Entries of all layers together.
    pub entries: u64,
    /// Bytes of all layers together, unpacked.
    pub unpacked: u64,
    /// How many times larger than its blob a layer may be, beyond the first 64 MiB.
    pub ratio: u64,
    /// Bytes of an index, a manifest or a configuration.
    pub json: u64,
    /// Manifests and indexes that are looked at.
    pub manifests: u64,
    /// Bytes of an entry's path.
    pub path: usize,
    /// Depth of folders.
    pub depth: u16,
    /// Bytes of all names and link targets in the tree.
    pub names: u64,
    /// Bytes of an extended header of an entry.
    pub extended: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            members: 8192,
            layers: 512,
            entries: 1_000_000,
            unpacked: 16 << 30,
            ratio: 256,
            json: 4 << 20,
            manifests: 256,
            path: 4096,
            depth: 256,
            names: 128 << 20,
            extended: 1 << 20,
        }
    }
}

/// Unpacked bytes of a layer that its ratio does not limit.
pub(crate) const FREE_OF_RATIO: u64 = 64 << 20;

/// Links that the path of one entry may lead through, and steps of it in all.
pub(crate) const MAX_LINKS: u32 = 40;
pub(crate) const MAX_STEPS: u32 = 1024;
