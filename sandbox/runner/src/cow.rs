//! Copy-on-write memory of guests: finds the pages that a guest wrote, freezes them in
//! sealed files, and maps those files over the memory of any number of guests.
//!
//! A guest's memory begins as a private mapping of its image. What it writes becomes
//! anonymous memory, which `/proc/self/pagemap` distinguishes. Freezing copies these pages
//! into files in memory (layers), seals them, and maps them privately over the same pages:
//! the guest and its copies then share the layers until one of them writes. So memory is
//! copied once, and the next freeze copies only what was written since.
#![allow(
    unsafe_code,
    reason = "maps sealed files over memory that wasmtime mapped"
)]

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Size of the guest's pages, and of the host's where memory can be shared.
pub(super) const PAGE_BYTES: usize = 4096;

/// First page and number of pages, ascending.
pub(super) type Runs = Vec<(u32, u32)>;

/// Maximum runs of all layers of a guest. Each is a mapping of the host's process, which
/// has 65,530 for all its guests by default.
const MAX_RUNS: usize = 256;

/// Maximum layers of a guest. What is frozen absorbs layers less than twice its size, so
/// for the pages of 4 GiB 11 layers suffice, and 12 where a thread copied more than
/// [`COPY_PAGES`].
pub(super) const MAX_LAYERS: usize = 24;

/// Bytes that are mapped at once; adjacent pieces of a file become one mapping.
const MAP_BYTES: usize = 4 << 20;

/// Pages from which a second thread copies, and the maximum number of threads.
const COPY_PAGES: u64 = 2048;
const MAX_THREADS: usize = 4;

/// Seals of a layer: neither its size nor its contents ever change.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::WRITE)
    .union(SealFlags::SEAL);

/// Pages of a guest in a sealed file in memory, one run after the other.
#[derive(Debug)]
pub(super) struct Layer {
    file: File,
    runs: Runs,
}

impl Layer {
    /// Accepts a layer that another process made, after checking that it is sealed and has
    /// all the pages of its runs.
    pub(super) fn new(file: File, runs: Runs) -> io::Result<Self> {
        let seals = rustix::fs::fcntl_get_seals(&file)?;
        let bytes = pages_of(&runs) * PAGE_BYTES as u64;
        if seals.contains(SEALS) && file.metadata()?.len() == bytes {
            return Ok(Self { file, runs });
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "memory that is not sealed",
        ))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Maps the layer over the memory of a guest, which is large enough.
    pub(super) fn map(&self, memory: &mut [u8]) -> io::Result<()> {
        let mut offset = 0;
        for (first, count) in &self.runs {
            let (at, len) = (*first as usize * PAGE_BYTES, *count as usize * PAGE_BYTES);
            let place = memory.get_mut(at..at + len);
            let place = place.ok_or(io::ErrorKind::InvalidInput)?;
            // Other threads of the process wait while pages are given back.
            for piece in place.chunks_mut(MAP_BYTES) {
                map(piece, &self.file, offset)?;
                offset += piece.len() as u64;
            }
        }
        Ok(())
    }
}

/// Number of pages of runs.
pub(super) fn pages_of(runs: &[(u32, u32)]) -> u64 {
    runs.iter().map(|(_, count)| u64::from(*count)).sum()
}

/// Maps a part of a sealed file over whole pages of a guest's memory.
fn map(memory: &mut [u8], file: &File, offset: u64) -> io::Result<()> {
    let page = rustix::param::page_size();
    if page != PAGE_BYTES || !memory.as_ptr().addr().is_multiple_of(page) {
        return file.read_exact_at(memory, offset);
    }
    let (protection, flags) = (
        ProtFlags::READ | ProtFlags::WRITE,
        MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
    );
    // SAFETY: the pages are those of a slice that is borrowed for writing, so no other
    // reference observes them meanwhile, and bytes may have any value. They belong to a
    // WebAssembly memory, which wasmtime unmaps as a whole, whatever is mapped there. The
    // new mapping is as accessible as the old one, private, and of a file whose seals keep
    // its size and contents for ever, so it neither changes nor faults. A failing call
    // leaves the old mapping, as Linux checks the limits of mappings first.
    let mapped = unsafe {
        mmap(
            memory.as_mut_ptr().cast(),
            memory.len(),
            protection,
            flags,
            file,
            offset,
        )
    };
    Ok(mapped.map(drop)?)
}

/// Finds the pages of a guest's memory that differ from what is mapped there, by the page
/// table: written pages are anonymous.
///
/// # Errors
/// The host does not show its page table, or has pages of another size.
pub(super) fn written(memory: &[u8]) -> io::Result<Vec<bool>> {
    /// Bits of an entry of `/proc/self/pagemap`: in memory, in swap, of a file.
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const FILE: u64 = 1 << 61;
    let page = rustix::param::page_size();
    let address = memory.as_ptr().addr();
    if page != PAGE_BYTES || !address.is_multiple_of(page) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut entries = vec![0; memory.len() / page * size_of::<u64>()];
    let offset = address / page * size_of::<u64>();
    File::open("/proc/self/pagemap")?.read_exact_at(&mut entries, offset as u64)?;
    let (entries, _) = entries.as_chunks();
    let is_written = |entry: &[u8; 8]| {
        let entry = u64::from_ne_bytes(*entry);
        entry & SWAPPED != 0 || entry & (PRESENT | FILE) == PRESENT
    };
    Ok(entries.iter().map(is_written).collect())
}

/// Finds the pages of `new` that differ from `old`, which is zero beyond its end.
pub(super) fn different(new: &[u8], old: &[u8]) -> Vec<bool> {
    let pages = new.chunks_exact(PAGE_BYTES).enumerate();
    let differs = pages.map(|(number, page)| {
        let start = number * PAGE_BYTES;
        let before = old.get(start..start + PAGE_BYTES);
        before.map_or_else(
            || page.iter().any(|byte| *byte != 0),
            |before| page != before,
        )
    });
    differs.collect()
}

/// Freezes the pages in `pages` in new layers, and adds them to the layers that the memory
/// consists of. They are returned, to be mapped over the memory before it changes.
pub(super) fn freeze(
    memory: &[u8],
    mut pages: Vec<bool>,
    layers: &mut Vec<Arc<Layer>>,
) -> io::Result<Vec<Arc<Layer>>> {
    let count = |pages: &[bool]| pages.iter().filter(|page| **page).count() as u64;
    let mut total = count(&pages);
    if total == 0 {
        return Ok(Vec::new());
    }
    let mut kept = layers.clone();
    // Each layer has more than twice the pages of all that is frozen later, so there are few,
    // and a page is copied again only with at least half as many new ones.
    while let Some(layer) = kept.pop_if(|layer| pages_of(&layer.runs) <= 2 * total) {
        mark(&mut pages, &layer.runs);
        total = count(&pages);
    }
    let mut gap = 1;
    let runs = loop {
        let runs = runs_of(&pages, gap);
        let others: usize = kept.iter().map(|layer| layer.runs.len()).sum();
        // Half of the runs is left to later layers, which would else absorb this one.
        if runs.len() <= MAX_RUNS.saturating_sub(others) / 2 {
            break runs;
        }
        // Wider gaps cost copies of the pages between, until a layer costs no more.
        let bound = if runs.len() == 1 {
            u64::MAX
        } else {
            pages_of(&runs)
        };
        match kept.pop_if(|layer| pages_of(&layer.runs) <= bound) {
            Some(layer) => mark(&mut pages, &layer.runs),
            None => gap *= 2,
        }
    };
    let new = copy(memory, runs)?;
    kept.extend(new.iter().cloned());
    *layers = kept;
    Ok(new)
}

fn mark(pages: &mut [bool], runs: &[(u32, u32)]) {
    for (first, count) in runs {
        let first = *first as usize;
        if let Some(pages) = pages.get_mut(first..first + *count as usize) {
            pages.fill(true);
        }
    }
}

/// Runs of the pages that are set; runs less than `gap` pages apart become one.
fn runs_of(pages: &[bool], gap: u32) -> Runs {
    let mut runs = Runs::new();
    for (number, _) in pages.iter().enumerate().filter(|(_, page)| **page) {
        let number = number as u32;
        match runs.last_mut() {
            Some((first, count)) if number - (*first + *count) < gap => {
                *count = number - *first + 1;
            }
            _ => runs.push((number, 1)),
        }
    }
    runs
}

/// Copies runs of pages into new layers: one for each thread, since only one thread at a time
/// writes to a file.
fn copy(memory: &[u8], runs: Runs) -> io::Result<Vec<Arc<Layer>>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let count = threads.min(MAX_THREADS) as u64;
    let share = pages_of(&runs).div_ceil(count).max(COPY_PAGES);
    let mut parts = divide(runs, share as u32).into_iter();
    let first = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let helpers: Vec<_> = parts
            .map(|runs| {
                let thread = std::thread::Builder::new().name("a99-sandbox-copy".to_owned());
                thread.spawn_scoped(scope, || copy_part(memory, runs))
            })
            .collect();
        let mut layers = vec![copy_part(memory, first)];
        for helper in helpers {
            let panicked = |_| Err(io::Error::other("a thread panicked"));
            layers.push(helper.and_then(|helper| helper.join().unwrap_or_else(panicked)));
        }
        layers.into_iter().collect()
    })
}

/// Divides runs into parts of `share` pages; the last one may have fewer.
fn divide(runs: Runs, share: u32) -> Vec<Runs> {
    let (mut parts, mut part, mut room) = (Vec::new(), Runs::new(), share);
    for (mut first, mut count) in runs {
        while count > 0 {
            let taken = count.min(room);
            part.push((first, taken));
            (first, count, room) = (first + taken, count - taken, room - taken);
            if room == 0 {
                parts.push(std::mem::take(&mut part));
                room = share;
            }
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Copies runs of pages into a new sealed file.
fn copy_part(memory: &[u8], runs: Runs) -> io::Result<Arc<Layer>> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("a99-guest", flags)?);
    for (first, count) in &runs {
        let start = *first as usize * PAGE_BYTES;
        let run = memory.get(start..start + *count as usize * PAGE_BYTES);
        file.write_all(run.ok_or(io::ErrorKind::InvalidInput)?)?;
    }
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(Arc::new(Layer { file, runs }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::{Memory, MemoryType, Store};

    /// Bytes of the memory of these tests.
    const BYTES: usize = 1 << 20;

    fn store() -> (Store<()>, Memory) {
        let engine = super::super::engine().expect("an engine");
        let mut store = Store::new(&engine, ());
        let memory = Memory::new(&mut store, MemoryType::new(16, None)).expect("memory");
        (store, memory)
    }

    /// Freezes what was written, and maps it.
    fn frozen(data: &mut [u8], layers: &mut Vec<Arc<Layer>>) {
        let pages = written(data).expect("a page table");
        for layer in freeze(data, pages, layers).expect("frozen") {
            layer.map(data).expect("mapped");
        }
    }

    fn set(pages: &[bool]) -> Vec<usize> {
        let set = pages.iter().enumerate().filter(|(_, page)| **page);
        set.map(|(number, _)| number).collect()
    }

    #[test]
    fn a_copy_and_its_original_share_what_neither_writes() {
        let ((mut ours, memory), (mut other, copied)) = (store(), store());
        let data = memory.data_mut(&mut ours);
        for page in [3, 4, 9] {
            data[page * PAGE_BYTES..][..PAGE_BYTES].fill(page as u8);
        }
        let mut layers = Vec::new();
        let pages = written(data).expect("a page table");
        assert_eq!(set(&pages), [3, 4, 9]);
        frozen(data, &mut layers);
        assert!(set(&written(data).expect("a page table")).is_empty());
        let theirs = copied.data_mut(&mut other);
        layers[0].map(theirs).expect("mapped");
        // Only these are read: a page of zeros that was read looks written.
        assert_eq!((theirs[3 * PAGE_BYTES], theirs[9 * PAGE_BYTES]), (3, 9));
        // Either writes for itself.
        data[3 * PAGE_BYTES] = 70;
        theirs[4 * PAGE_BYTES] = 80;
        assert_eq!((theirs[3 * PAGE_BYTES], data[4 * PAGE_BYTES]), (3, 4));
        assert_eq!(set(&written(data).expect("a page table")), [3]);
        assert_eq!(set(&written(theirs).expect("a page table")), [4]);
        // The next layer has what was written since.
        frozen(data, &mut layers);
        assert_eq!(layers.len(), 2, "{layers:?}");
        assert_eq!(layers[1].runs, [(3, 1)]);
        layers[1].map(theirs).expect("mapped");
        assert_eq!((theirs[3 * PAGE_BYTES], theirs[4 * PAGE_BYTES]), (70, 80));
    }

    #[test]
    fn layers_and_runs_are_few() {
        let (mut store, memory) = store();
        let data = memory.data_mut(&mut store);
        let mut layers = Vec::new();
        for round in 0..40u8 {
            for page in 0..BYTES / PAGE_BYTES {
                if page.is_multiple_of(1 + usize::from(round) * 7 % 30) {
                    data[page * PAGE_BYTES + usize::from(round)] = round + 1;
                }
            }
            frozen(data, &mut layers);
            assert!(layers.len() <= MAX_LAYERS, "{round}");
            let runs: usize = layers.iter().map(|layer| layer.runs.len()).sum();
            assert!(runs <= MAX_RUNS);
            let (mut other, copied) = self::store();
            let theirs = copied.data_mut(&mut other);
            for layer in &layers {
                layer.map(theirs).expect("mapped");
            }
            assert!(theirs == data, "{round}");
        }
    }

    #[test]
    fn runs_join_over_gaps() {
        let mut pages = vec![false; 20];
        for page in [1, 2, 4, 9] {
            pages[page] = true;
        }
        assert_eq!(runs_of(&pages, 1), [(1, 2), (4, 1), (9, 1)]);
        assert_eq!(runs_of(&pages, 2), [(1, 4), (9, 1)]);
        assert_eq!(runs_of(&pages, 8), [(1, 9)]);
    }

    #[test]
    fn parts_of_runs_have_the_same_size() {
        let parts = divide(vec![(0, 3), (5, 1), (8, 7)], 4);
        assert_eq!(parts, [vec![(0, 3), (5, 1)], vec![(8, 4)], vec![(12, 3)]]);
        assert!(divide(Vec::new(), 4).is_empty());
    }

    /// Scattered writes after a large freeze do not copy all of it again.
    #[test]
    fn a_large_layer_stays_when_few_pages_were_written() {
        let pages = 16 * COPY_PAGES as usize;
        let mut memory = vec![1; pages * PAGE_BYTES];
        // Every second 16 pages: more runs than a layer may have.
        let first = (0..pages).map(|page| page / 16 % 2 == 0).collect();
        let mut layers = Vec::new();
        freeze(&memory, first, &mut layers).expect("frozen");
        let large = layers.len();
        memory.fill(2);
        let few = (0..pages).map(|page| page % 1000 == 0).collect();
        let new = freeze(&memory, few, &mut layers).expect("frozen");
        assert_eq!(layers.len(), large + new.len());
        let copied: u64 = new.iter().map(|layer| pages_of(&layer.runs)).sum();
        assert!(copied < pages as u64 / 4, "{copied} of {pages}");
    }

    #[test]
    fn what_can_still_change_is_no_layer() {
        let layer = copy_part(&[5; 2 * PAGE_BYTES], vec![(0, 2)]).expect("a layer");
        let file = layer.file();
        assert!(file.write_all_at(&[1], 0).is_err() && file.set_len(0).is_err());
        let again = || file.try_clone().expect("a descriptor");
        assert!(Layer::new(again(), vec![(7, 2)]).is_ok());
        assert!(Layer::new(again(), vec![(7, 3)]).is_err());
        let plain = tempfile::tempfile().expect("a file");
        assert!(Layer::new(plain, Vec::new()).is_err());
        let open = rustix::fs::memfd_create("x", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        assert!(Layer::new(open.expect("a file").into(), Vec::new()).is_err());
    }

    #[test]
    fn pages_are_compared_where_the_page_table_is_hidden() {
        let old = [1; 2 * PAGE_BYTES];
        let mut new = vec![1; 2 * PAGE_BYTES];
        new.resize(4 * PAGE_BYTES, 0);
        new[PAGE_BYTES] = 2;
        new[3 * PAGE_BYTES + 1] = 1;
        assert_eq!(set(&different(&new, &old)), [1, 3]);
    }
}
