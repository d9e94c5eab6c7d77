//! Store of compiled guest code in the user's cache folder.
//!
//! A pack is a file of modules compiled for one layout, with an index of the pages that they
//! are for. Loading a module executes it, so the index is sealed with the cache's key and
//! holds the hash of each module, and file and folder must be this user's alone. Packs are
//! written whole, renamed into place and never changed, so processes need no lock; a pack
//! that another process removes can still be read through its descriptor. Small packs are
//! merged into the next one. The least recently used are removed when all are larger than
//! the limit.
#![allow(unsafe_code, reason = "loading machine code that is sealed")]

use super::known_code::PageKey;
use super::precompiled::open_trusted;
use a99_sandbox_cache::SealKey;
use a99_sandbox_cache::digest::hex;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use wasmtime::{Engine, Module};

/// Maximum size of all packs in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// Maximum packs of a layout that are read; merging keeps them fewer.
const MAX_PACKS: usize = 256;

/// Packs below this size are merged into the next one.
const SMALL: u64 = 4 << 20;

/// Maximum size of an index in bytes, and of a module.
const MAX_INDEX: u64 = 32 << 20;
const MAX_MODULE: u64 = 64 << 20;

/// Time after which a file that was never renamed is removed.
const LEFT_OVER: Duration = Duration::from_secs(3600);

/// First bytes of a pack, followed by the seal in hexadecimal, the length of the index (32
/// bits, little-endian as all numbers), the index, and the modules.
const MAGIC: &[u8; 8] = b"A99PACK1";
const SEAL_BYTES: usize = 64;
const HEAD_BYTES: usize = MAGIC.len() + SEAL_BYTES + 4;

/// Extension of packs.
const PACK: &str = "pack";

/// A region of a page and its function in a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// The page.
    pub key: PageKey,
    /// Number of the function.
    pub function: usize,
    /// The offsets that were hot.
    pub roots: Vec<u16>,
    /// Entries: offset and node.
    pub entries: Vec<(u16, u8)>,
}

/// A serialised module of functions.
#[derive(Clone, Debug)]
pub(super) struct PackedBundle {
    regions: Vec<Region>,
    hash: [u8; 32],
    bytes: Bytes,
}

/// Where the bytes of a module are.
#[derive(Clone, Debug)]
enum Bytes {
    Memory(Arc<Vec<u8>>),
    File(Arc<Pack>, u64, usize),
}

/// An open pack.
#[derive(Debug)]
struct Pack {
    file: File,
    is_used: AtomicBool,
}

impl PackedBundle {
    /// A module that was just compiled.
    pub(super) fn new(regions: Vec<Region>, bytes: Vec<u8>) -> Self {
        Self {
            regions,
            hash: Sha256::digest(&bytes).into(),
            bytes: Bytes::Memory(Arc::new(bytes)),
        }
    }

    pub(super) fn regions(&self) -> &[Region] {
        &self.regions
    }

    fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::File(_, _, len) => *len,
        }
    }

    /// The module, if it is the one that was sealed.
    fn read(&self) -> Option<Arc<Vec<u8>>> {
        let bytes = match &self.bytes {
            Bytes::Memory(bytes) => return Some(Arc::clone(bytes)),
            Bytes::File(pack, at, len) => {
                let mut bytes = vec![0; *len];
                pack.file.read_exact_at(&mut bytes, *at).ok()?;
                bytes
            }
        };
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        (hash == self.hash).then(|| Arc::new(bytes))
    }
}

/// The folder of packs; see the module.
#[derive(Debug)]
pub(super) struct CodeStore {
    folder: PathBuf,
    key: SealKey,
    max_bytes: u64,
    damaged: AtomicU64,
    saving: Mutex<()>,
}

impl CodeStore {
    /// A store in a cache folder with that key.
    pub(super) fn new(cache: &Path, key: SealKey) -> Self {
        Self {
            folder: cache.join("code"),
            key,
            max_bytes: MAX_BYTES,
            damaged: AtomicU64::new(0),
            saving: Mutex::new(()),
        }
    }

    /// Number of damaged packs and modules found.
    pub(super) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// All modules stored for a layout.
    pub(super) fn scan(&self, layout: &[u8; 32]) -> Vec<PackedBundle> {
        let mut bundles = Vec::new();
        for path in self.packs(layout) {
            bundles.extend(self.open(&path, layout).unwrap_or_default());
        }
        bundles
    }

    /// Loads a module; `None` if it vanished or is damaged.
    pub(super) fn load(&self, engine: &Engine, bundle: &PackedBundle) -> Option<(Module, usize)> {
        let bytes = bundle.read();
        // SAFETY: wasmtime requires the unchanged output of its own serialization. The bytes
        // are in memory of this process, and their SHA-256 is in an index with an HMAC whose
        // key only this user knows, which only `save` computes, for modules that this
        // program compiled with an engine of the same compatibility: that is part of the
        // layout, which is sealed too. wasmtime checks the engine again.
        let module = bytes.map(|bytes| unsafe { Module::deserialize(engine, &*bytes) });
        let Some(Ok(module)) = module else {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if let Bytes::File(pack, ..) = &bundle.bytes
            && !pack.is_used.swap(true, Ordering::Relaxed)
        {
            // Without its time of use it is only removed earlier.
            let _ = pack.file.set_modified(SystemTime::now());
        }
        Some((module, bundle.len()))
    }

    /// Stores modules of a layout as a pack, and removes the oldest packs above the limit.
    pub(super) fn save(&self, layout: &[u8; 32], bundles: Vec<PackedBundle>) -> io::Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let mut all = bundles;
        let mut merged = Vec::new();
        for path in self.packs(layout) {
            let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() < SMALL);
            if is_small && let Some(bundles) = self.open(&path, layout) {
                all.extend(bundles);
                merged.push(path);
            }
        }
        // Other processes may have stored the same.
        let mut seen = std::collections::HashSet::new();
        all.retain(|bundle| seen.insert(bundle.hash));
        let modules: Vec<_> = all.iter().map(PackedBundle::read).collect();
        let (all, modules): (Vec<_>, Vec<_>) = all
            .iter()
            .zip(modules)
            .filter_map(|(bundle, bytes)| Some((bundle, bytes?)))
            .unzip();
        let index = encode(&all);
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("{}-{}", hex(&layout[..8]), hex(&random));
        let path = self.folder.join(&name).with_added_extension(PACK);
        let temporary = self.folder.join(&name).with_added_extension("new");
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        let written = file
            .write_all(MAGIC)
            .and_then(|()| file.write_all(self.seal(layout, &index).as_bytes()))
            .and_then(|()| file.write_all(&(index.len() as u32).to_le_bytes()))
            .and_then(|()| file.write_all(&index))
            .and_then(|()| modules.iter().try_for_each(|bytes| file.write_all(bytes)))
            .and_then(|()| fs::rename(&temporary, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        for path in merged {
            let _ = fs::remove_file(path);
        }
        self.evict(&path)
    }

    /// Packs that may be of a layout.
    fn packs(&self, layout: &[u8; 32]) -> Vec<PathBuf> {
        let prefix = hex(&layout[..8]);
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&prefix) && path.extension().is_some_and(|is| is == PACK)
        });
        paths.take(MAX_PACKS).collect()
    }

    /// Opens a pack, and removes it if it is damaged; `None` if it may not be used.
    fn open(&self, path: &Path, layout: &[u8; 32]) -> Option<Vec<PackedBundle>> {
        // Of another user, or removed meanwhile.
        let file = open_trusted(path).ok()?;
        let bundles = self.parse(file, layout);
        if bundles.is_none() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            let _ = fs::remove_file(path);
        }
        bundles
    }

    fn parse(&self, file: File, layout: &[u8; 32]) -> Option<Vec<PackedBundle>> {
        let len = file.metadata().ok()?.len();
        let mut head = [0; HEAD_BYTES];
        file.read_exact_at(&mut head, 0).ok()?;
        let (magic, rest) = head.split_at(MAGIC.len());
        let (seal, index_len) = rest.split_at(SEAL_BYTES);
        let index_len = u32::from_le_bytes(index_len.try_into().ok()?);
        if magic != MAGIC || u64::from(index_len) > MAX_INDEX.min(len) {
            return None;
        }
        let mut index = vec![0; index_len as usize];
        file.read_exact_at(&mut index, HEAD_BYTES as u64).ok()?;
        let text = sealed_text(layout, &index);
        if !self.key.is_sealed(&text, std::str::from_utf8(seal).ok()?) {
            return None;
        }
        let pack = Arc::new(Pack {
            file,
            is_used: AtomicBool::new(false),
        });
        let mut at = (HEAD_BYTES + index.len()) as u64;
        let mut bundles = Vec::new();
        let mut reader = Reader(&index);
        while !reader.0.is_empty() {
            let (hash, len) = (reader.take()?, reader.number()?);
            let count = reader.number()?;
            let regions = (0..count).map(|_| reader.region()).collect::<Option<_>>()?;
            bundles.push(PackedBundle {
                regions,
                hash,
                bytes: Bytes::File(Arc::clone(&pack), at, len as usize),
            });
            at += u64::from(len);
        }
        let is_whole = at == len && bundles.iter().all(|b| b.len() as u64 <= MAX_MODULE);
        is_whole.then_some(bundles)
    }

    fn seal(&self, layout: &[u8; 32], index: &[u8]) -> String {
        self.key.seal(&sealed_text(layout, index))
    }

    /// Removes the least recently used packs above the limit, except for one, and what was
    /// left over.
    fn evict(&self, kept: &Path) -> io::Result<()> {
        let mut packs = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension().is_some_and(|is| is == PACK) {
                packs.push((modified, metadata.len(), path));
            } else if modified.elapsed().is_ok_and(|age| age > LEFT_OVER) {
                let _ = fs::remove_file(path);
            }
        }
        packs.sort();
        let mut total: u64 = packs.iter().map(|pack| pack.1).sum();
        for (_, len, path) in packs {
            if total <= self.max_bytes {
                break;
            }
            if path != kept && fs::remove_file(&path).is_ok() {
                total -= len;
            }
        }
        Ok(())
    }
}

/// What the seal covers.
fn sealed_text(layout: &[u8; 32], index: &[u8]) -> Vec<u8> {
    [MAGIC, &layout[..], index].concat()
}

/// Encodes an index: of each module hash, length and regions.
fn encode(bundles: &[&PackedBundle]) -> Vec<u8> {
    let mut index = Vec::new();
    for bundle in bundles {
        index.extend(bundle.hash);
        index.extend((bundle.len() as u32).to_le_bytes());
        index.extend((bundle.regions.len() as u32).to_le_bytes());
        for region in &bundle.regions {
            index.extend(region.key);
            index.extend((region.function as u32).to_le_bytes());
            index.extend((region.roots.len() as u32).to_le_bytes());
            index.extend(region.roots.iter().flat_map(|root| root.to_le_bytes()));
            index.extend((region.entries.len() as u32).to_le_bytes());
            for (offset, node) in &region.entries {
                index.extend(offset.to_le_bytes());
                index.push(*node);
            }
        }
    }
    index
}

/// Reads an index.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn region(&mut self) -> Option<Region> {
        let key = self.take()?;
        let function = self.number()? as usize;
        let roots = self.number()?;
        let roots = (0..roots).map(|_| self.take().map(u16::from_le_bytes));
        let roots = roots.collect::<Option<_>>()?;
        let entries = self.number()?;
        let entries = (0..entries).map(|_| {
            let [low, high, node] = self.take()?;
            Some((u16::from_le_bytes([low, high]), node))
        });
        Some(Region {
            key,
            function,
            roots,
            entries: entries.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests;
