//! Scratch buffers with a size controlled by guest data.
//!
//! They exist for one instruction and are not part of the heap's count. So each growth is
//! checked against the ceiling first (D20), and refused memory is an error instead of an
//! abort of the process.

use crate::heap::{Heap, Oom, reserve_mapped};

/// Capacity after the first growth.
const FIRST: usize = 16;

pub(crate) fn reserve<T>(heap: &Heap, buf: &mut Vec<T>, n: usize) -> Result<(), Oom> {
    if buf.capacity() - buf.len() >= n {
        return Ok(());
    }
    let more = n.max(buf.len()).max(FIRST);
    let wanted = buf
        .len()
        .saturating_add(more)
        .saturating_mul(size_of::<T>());
    // Doubling is optional: near the ceiling only the needed room is reserved.
    let more = if heap.check(wanted).is_ok() { more } else { n };
    let wanted = buf
        .len()
        .saturating_add(more)
        .saturating_mul(size_of::<T>());
    heap.check(wanted)?;
    reserve_mapped(buf, more, heap.room()).map_err(|_| Oom { wanted })
}

/// Appends one element.
#[inline]
pub(crate) fn push<T>(heap: &Heap, buf: &mut Vec<T>, item: T) -> Result<(), Oom> {
    if buf.len() == buf.capacity() {
        reserve(heap, buf, 1)?;
    }
    buf.push(item);
    Ok(())
}

/// A buffer with room for exactly `n` elements.
pub(crate) fn with_room<T>(heap: &Heap, n: usize) -> Result<Vec<T>, Oom> {
    let wanted = n.saturating_mul(size_of::<T>());
    heap.check(wanted)?;
    let mut buf = Vec::new();
    buf.try_reserve_exact(n).map_err(|_| Oom { wanted })?;
    Ok(buf)
}

/// Appends copies.
pub(crate) fn extend<T: Copy>(heap: &Heap, buf: &mut Vec<T>, items: &[T]) -> Result<(), Oom> {
    reserve(heap, buf, items.len())?;
    buf.extend_from_slice(items);
    Ok(())
}
