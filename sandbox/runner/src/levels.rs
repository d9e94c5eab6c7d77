//! Levels of a guest's own disk: files one above the other, of which only the top one is
//! written.
//!
//! Freezing a disk makes its top file a level that never changes again, and which a copy of
//! the guest shares; both continue in new, empty files. A map says which level holds a
//! block. A disk that was never frozen is one file without a map.

use super::disk::{BLOCK_BYTES, nameless};
use super::error::{VmCode, VmError};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum levels below the top one; with more, all but the lowest are merged.
pub(super) const MAX_LEVELS: usize = 16;

/// Blocks of an entry of the map: 1 MiB.
const ENTRY_BLOCKS: u64 = 256;

/// Bytes copied at once.
const COPY_BYTES: u64 = 1 << 20;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Level of each block: the lowest, 0, if not noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BlockMap(BTreeMap<u64, Box<[u8]>>);

impl BlockMap {
    fn level(&self, block: u64) -> usize {
        let entry = self.0.get(&(block / ENTRY_BLOCKS));
        let level = entry.and_then(|entry| entry.get((block % ENTRY_BLOCKS) as usize));
        level.copied().unwrap_or(0).into()
    }

    fn set(&mut self, block: u64, level: usize) {
        let new = || vec![0; ENTRY_BLOCKS as usize].into();
        let entry = self.0.entry(block / ENTRY_BLOCKS).or_insert_with(new);
        if let Some(place) = entry.get_mut((block % ENTRY_BLOCKS) as usize) {
            *place = level as u8;
        }
    }

    /// Blocks above the lowest level as first block, number and level, ascending.
    fn runs(&self) -> Vec<(u64, u64, u8)> {
        let mut runs: Vec<(u64, u64, u8)> = Vec::new();
        for (entry, levels) in &self.0 {
            for (index, level) in levels.iter().enumerate().filter(|(_, level)| **level > 0) {
                let block = entry * ENTRY_BLOCKS + index as u64;
                match runs.last_mut() {
                    Some((first, count, of)) if *first + *count == block && of == level => {
                        *count += 1;
                    }
                    _ => runs.push((block, 1, *level)),
                }
            }
        }
        runs
    }
}

/// A disk as levels.
#[derive(Debug)]
pub(super) struct Levels {
    bytes: u64,
    /// Folder of its files.
    folder: PathBuf,
    below: Vec<Arc<File>>,
    map: BlockMap,
    /// The file that is written, once there is something to write.
    top: Option<File>,
}

/// A disk that no longer changes; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct FrozenDisk {
    pub bytes: u64,
    levels: Vec<Arc<File>>,
    map: BlockMap,
}

impl Levels {
    /// An empty disk. The first write creates its file.
    pub(super) fn new(folder: &Path, bytes: u64) -> Self {
        Self {
            bytes,
            folder: folder.to_owned(),
            below: Vec::new(),
            map: BlockMap::default(),
            top: None,
        }
    }

    /// A copy of a frozen disk, whose top level is in `folder`.
    pub(super) fn of(frozen: &FrozenDisk, folder: &Path) -> Self {
        Self {
            below: frozen.levels.clone(),
            map: frozen.map.clone(),
            ..Self::new(folder, frozen.bytes)
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that is written.
    pub(super) fn top(&mut self) -> io::Result<&File> {
        let top = match self.top.take() {
            Some(top) => top,
            None => {
                let top = nameless(&self.folder)?;
                top.set_len(self.bytes)?;
                top
            }
        };
        Ok(self.top.insert(top))
    }

    /// Makes all that was written so far immutable. The disk continues in another file.
    pub(super) fn freeze(&mut self) -> io::Result<FrozenDisk> {
        if self.top.is_some() && self.below.len() == MAX_LEVELS {
            self.merge()?;
        }
        self.below.extend(self.top.take().map(Arc::new));
        Ok(FrozenDisk {
            bytes: self.bytes,
            levels: self.below.clone(),
            map: self.map.clone(),
        })
    }

    /// Merges the levels between the lowest and the top into one.
    fn merge(&mut self) -> io::Result<()> {
        let merged = nameless(&self.folder)?;
        merged.set_len(self.bytes)?;
        let (mut map, top) = (BlockMap::default(), self.below.len());
        let mut buffer = Vec::new();
        for (first, count, level) in self.map.runs() {
            let level = usize::from(level);
            let to = if level == top { 2 } else { 1 };
            (first..first + count).for_each(|block| map.set(block, to));
            let Some(file) = self.below.get(level) else {
                continue;
            };
            let (mut at, end) = (first * BLOCK_BYTES, (first + count) * BLOCK_BYTES);
            while at < end {
                buffer.resize((end - at).min(COPY_BYTES) as usize, 0);
                file.read_exact_at(&mut buffer, at)?;
                merged.write_all_at(&buffer, at)?;
                at += buffer.len() as u64;
            }
        }
        self.map = map;
        self.below.truncate(1);
        self.below.push(Arc::new(merged));
        Ok(())
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        read(&self.below, self.top.as_ref(), &self.map, offset, bytes)
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.below.is_empty() || bytes.is_empty() {
            return self.top()?.write_all_at(bytes, offset);
        }
        let end = offset + bytes.len() as u64;
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        // The rest of blocks that are written in part comes from below.
        if !offset.is_multiple_of(BLOCK_BYTES) {
            self.raise(first)?;
        }
        if !end.is_multiple_of(BLOCK_BYTES) {
            self.raise(last)?;
        }
        self.top()?.write_all_at(bytes, offset)?;
        self.take(first, last + 1);
        Ok(())
    }

    /// Returns a range's space to the host; see [`Disks::discard`](super::disk::Disks).
    pub(super) fn discard(&mut self, offset: u64, len: u64, zero: bool) -> io::Result<()> {
        if len == 0 || self.top.is_none() && self.below.is_empty() {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if self.below.is_empty() {
            return match fallocate(self.top()?, flags, offset, len) {
                Err(_) if zero => self.zero(offset, offset + len),
                _ => Ok(()),
            };
        }
        // Whole blocks become holes of the top level. Levels below keep their space.
        let end = offset + len;
        let first = offset.div_ceil(BLOCK_BYTES).min(end / BLOCK_BYTES);
        let last = (end / BLOCK_BYTES).max(first);
        let (start, stop) = (first * BLOCK_BYTES, last * BLOCK_BYTES);
        if start < stop {
            if fallocate(self.top()?, flags, start, stop - start).is_ok() {
                self.take(first, last);
            } else if zero {
                self.zero(start, stop)?;
            }
        }
        if zero {
            self.zero(offset, start.clamp(offset, end))?;
            self.zero(stop.clamp(offset, end), end)?;
        }
        Ok(())
    }

    /// Writes zeros from one offset to another.
    fn zero(&mut self, from: u64, to: u64) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let count = (to - at).min(ZEROS.len() as u64);
            self.write(at, &ZEROS[..count as usize])?;
            at += count;
        }
        Ok(())
    }

    /// Copies a block to the top level.
    fn raise(&mut self, block: u64) -> io::Result<()> {
        if self.map.level(block) == self.below.len() {
            return Ok(());
        }
        let mut bytes = [0; BLOCK_BYTES as usize];
        self.read(block * BLOCK_BYTES, &mut bytes)?;
        self.top()?.write_all_at(&bytes, block * BLOCK_BYTES)?;
        self.take(block, block + 1);
        Ok(())
    }

    /// Notes that the top level holds these blocks.
    fn take(&mut self, first: u64, end: u64) {
        (first..end).for_each(|block| self.map.set(block, self.below.len()));
    }
}

/// Reads through the levels; a missing one reads as zeros.
fn read(
    levels: &[Arc<File>],
    top: Option<&File>,
    map: &BlockMap,
    offset: u64,
    bytes: &mut [u8],
) -> io::Result<()> {
    if let ([], Some(top)) = (levels, top) {
        return top.read_exact_at(bytes, offset);
    }
    let (mut at, end) = (offset, offset + bytes.len() as u64);
    let mut rest = bytes;
    while at < end {
        let level = map.level(at / BLOCK_BYTES);
        let mut until = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
        while until < end && map.level(until / BLOCK_BYTES) == level {
            until += BLOCK_BYTES;
        }
        let (now, later) = rest.split_at_mut((until.min(end) - at) as usize);
        match levels.get(level).map(|file| &**file).or(top) {
            Some(file) => file.read_exact_at(now, at)?,
            None => now.fill(0),
        }
        at += now.len() as u64;
        rest = later;
    }
    Ok(())
}

impl FrozenDisk {
    /// A frozen disk that another process sent: its levels, and which blocks are in those
    /// above the lowest.
    pub(super) fn new(
        bytes: u64,
        levels: Vec<File>,
        runs: &[(u64, u64, u8)],
    ) -> Result<Self, VmError> {
        let wrong = || VmError::new(VmCode::Saved, "its disk is not whole");
        super::disk::check(bytes)?;
        let blocks = bytes / BLOCK_BYTES;
        if levels.len() > MAX_LEVELS || !bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(wrong());
        }
        let mut map = BlockMap::default();
        for (first, count, level) in runs {
            let end = first.checked_add(*count).filter(|end| *end <= blocks);
            let end = end.filter(|_| usize::from(*level) < levels.len());
            (*first..end.ok_or_else(wrong)?).for_each(|block| map.set(block, (*level).into()));
        }
        for level in &levels {
            let len = level.metadata().map_err(|_| wrong())?.len();
            if len != bytes {
                return Err(wrong());
            }
        }
        let levels = levels.into_iter().map(Arc::new).collect();
        Ok(Self { bytes, levels, map })
    }

    pub(super) fn levels(&self) -> &[Arc<File>] {
        &self.levels
    }

    /// Blocks above the lowest level.
    pub(super) fn runs(&self) -> Vec<(u64, u64, u8)> {
        self.map.runs()
    }

    /// Written parts of the disk, as first block and number of blocks, ascending.
    pub(super) fn extents(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut extents: Vec<(u64, u64)> = Vec::new();
        for (level, file) in self.levels.iter().enumerate() {
            let mut at = 0;
            while let Some((start, end)) = data(file, at)? {
                for block in start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
                    if self.map.level(block) != level {
                        continue;
                    }
                    match extents.last_mut() {
                        Some((first, count)) if *first + *count == block => *count += 1,
                        _ => extents.push((block, 1)),
                    }
                }
                at = end;
            }
        }
        extents.sort_unstable();
        Ok(extents)
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        read(&self.levels, None, &self.map, offset, bytes)
    }
}

/// The next range of a file that is no hole (lseek(2), `SEEK_DATA`).
fn data(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start))?;
    Ok((end > from).then_some((start, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 16 << 20;

    fn contents(disk: &Levels) -> Vec<u8> {
        let mut bytes = vec![0; BYTES as usize];
        disk.read(0, &mut bytes).expect("it is read");
        bytes
    }

    /// Numbers that look random (Knuth's multiplier for linear congruence).
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 1u64;
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        }
    }

    #[test]
    fn copies_and_their_original_read_what_they_wrote() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut disks = vec![(Levels::new(folder.path(), BYTES), vec![0u8; BYTES as usize])];
        let mut number = numbers();
        for round in 0..300 {
            let chosen = number(disks.len() as u64) as usize;
            let (disk, model) = &mut disks[chosen];
            let offset = number(BYTES / 512) * 512;
            let len = ((number(64) + 1) * 512).min(BYTES - offset);
            let range = offset as usize..(offset + len) as usize;
            match number(4) {
                0 => {
                    disk.discard(offset, len, true).expect("discarded");
                    model[range].fill(0);
                }
                1 if round % 3 == 0 => {
                    let frozen = disk.freeze().expect("frozen");
                    assert!(frozen.levels.len() <= MAX_LEVELS);
                    let copy = Levels::of(&frozen, folder.path());
                    let model = model.clone();
                    if disks.len() < 6 {
                        disks.push((copy, model));
                    }
                }
                _ => {
                    let byte = number(255) as u8 + 1;
                    model[range.clone()].fill(byte);
                    disk.write(offset, &model[range]).expect("written");
                }
            }
        }
        assert_eq!(disks.len(), 6);
        for (disk, model) in &disks {
            assert!(contents(disk) == *model);
        }
    }

    #[test]
    fn many_levels_become_few() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut disk = Levels::new(folder.path(), BYTES);
        let mut model = vec![0u8; BYTES as usize];
        for round in 0..60u64 {
            let at = (round * 7 % 50) * 3000;
            model[at as usize..][..5000].fill(round as u8 + 1);
            disk.write(at, &[round as u8 + 1; 5000]).expect("written");
            let frozen = disk.freeze().expect("frozen");
            assert!(frozen.levels.len() <= MAX_LEVELS, "{round}");
            assert_eq!(
                disk.freeze().expect("frozen").levels.len(),
                frozen.levels.len(),
                "nothing was written meanwhile"
            );
            let mut bytes = vec![0; BYTES as usize];
            frozen.read(0, &mut bytes).expect("read");
            assert!(bytes == model, "{round}");
        }
    }

    #[test]
    fn extents_are_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut disk = Levels::new(folder.path(), BYTES);
        disk.write(BLOCK_BYTES, &[1; 2 * BLOCK_BYTES as usize])
            .expect("written");
        disk.freeze().expect("frozen");
        disk.write(8 * BLOCK_BYTES + 5, &[2]).expect("written");
        disk.discard(2 * BLOCK_BYTES, BLOCK_BYTES, true)
            .expect("discarded");
        let frozen = disk.freeze().expect("frozen");
        assert_eq!(frozen.extents().expect("found"), [(1, 1), (8, 1)]);
        assert_eq!(frozen.runs(), [(2, 1, 1), (8, 1, 1)]);
    }

    #[test]
    fn levels_that_do_not_fit_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |bytes| {
            let file = nameless(folder.path()).expect("a file");
            file.set_len(bytes).expect("sized");
            file
        };
        let blocks = BYTES / BLOCK_BYTES;
        assert!(FrozenDisk::new(BYTES, vec![file(BYTES)], &[(0, blocks, 0)]).is_ok());
        for (bytes, levels, runs) in [
            (BYTES, vec![], vec![(0, 1, 0)]),
            (BYTES, vec![file(5)], vec![]),
            (BYTES + 1, vec![file(BYTES + 1)], vec![]),
            (BYTES, vec![file(BYTES)], vec![(0, 1, 1)]),
            (BYTES, vec![file(BYTES)], vec![(0, blocks + 1, 0)]),
            (BYTES, vec![file(BYTES)], vec![(1, u64::MAX, 0)]),
            (1 << 50, vec![file(1 << 30)], vec![]),
        ] {
            assert!(FrozenDisk::new(bytes, levels, &runs).is_err(), "{runs:?}");
        }
    }
}
