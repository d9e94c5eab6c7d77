//! Memory release: returns unused guest pages to the host.
#![allow(unsafe_code, reason = "advice about memory that wasmtime mapped")]

use rustix::mm::{Advice, madvise};

/// Releases the pages that lie fully within a range of a guest's memory. The guest then
/// reads its image's contents there, or zeros.
///
/// A host that keeps the pages does no harm.
pub(super) fn release(memory: &mut [u8]) {
    let page = rustix::param::page_size();
    let skipped = memory.as_ptr().addr().wrapping_neg() % page;
    let Some(memory) = memory.get_mut(skipped..) else {
        return;
    };
    let whole = memory.len() - memory.len() % page;
    if whole == 0 {
        return;
    }
    let memory = &mut memory[..whole];
    // SAFETY: the pages are those of a slice that is borrowed for writing, so no other
    // reference observes them meanwhile, and bytes may have any value. They belong to a
    // WebAssembly memory, a private mapping of an image or anonymous, whose pages stay
    // mapped: Linux drops what was written, and a later access finds the image's contents
    // or zeros (madvise(2), MADV_DONTNEED).
    let dropped = unsafe { madvise(memory.as_mut_ptr().cast(), whole, Advice::LinuxDontNeed) };
    // Locked memory, for example, cannot be dropped.
    let _ = dropped;
}

#[cfg(test)]
mod tests {
    use super::release;
    use wasmtime::{Memory, MemoryType, Store};

    #[test]
    fn whole_pages_are_dropped_and_their_neighbours_stay() {
        let engine = super::super::engine().expect("an engine");
        let mut store = Store::new(&engine, ());
        let memory = Memory::new(&mut store, MemoryType::new(16, None)).expect("memory");
        let page = rustix::param::page_size();
        let data = memory.data_mut(&mut store);
        data.fill(7);
        release(&mut data[1..3 * page - 1]);
        assert!(data[..page].iter().all(|&byte| byte == 7));
        assert!(data[page..2 * page].iter().all(|&byte| byte == 0));
        assert!(data[2 * page..].iter().all(|&byte| byte == 7));
        for (start, end) in [(0, 0), (1, page), (page + 1, page + 1)] {
            release(&mut data[start..end]);
        }
        assert!(data[..page].iter().all(|&byte| byte == 7));
    }
}
