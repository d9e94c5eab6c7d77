//! Long walks in pieces, with yield points between them.

use crate::pace::Pace;
use std::ops::Range;

/// Elements per piece.
pub(super) const PIECE: usize = 1024;

/// Length of runs that are sorted at once.
const RUN: usize = 2048;

/// Work to sort or merge an element.
const SORTED: usize = 16;

/// Moves elements to a lower or the same index.
pub(super) fn copy_down<T: Copy, P: Pace>(
    list: &mut [T],
    from: Range<usize>,
    to: usize,
    watch: &mut P,
) -> Result<(), P::Stop> {
    if from.start == to {
        return Ok(());
    }
    // Each piece is read before it can be overwritten.
    let piece = (64 << 10) / size_of::<T>();
    let mut at = from.start;
    while at < from.end {
        let end = from.end.min(at + piece);
        list.copy_within(at..end, to + (at - from.start));
        watch.work((end - at) * size_of::<T>() / 4)?;
        at = end;
    }
    Ok(())
}

/// Fills a list with a value.
pub(super) fn fill<T: Copy, P: Pace>(list: &mut [T], val: T, watch: &mut P) -> Result<(), P::Stop> {
    for part in list.chunks_mut(PIECE) {
        part.fill(val);
        watch.work(part.len())?;
    }
    Ok(())
}

/// A stable sort that allocates nothing if the list is already sorted.
pub(super) fn sort_by_key<T: Copy, K: Ord, P: Pace>(
    list: &mut Vec<T>,
    key: impl Fn(&T) -> K,
    watch: &mut P,
) -> Result<(), P::Stop> {
    if list.len() <= RUN {
        list.sort_by_key(key);
        return Ok(());
    }
    let mut sorted = true;
    for at in (0..list.len()).step_by(PIECE) {
        let end = list.len().min(at + PIECE + 1);
        watch.work(2 * PIECE)?;
        sorted &= list[at..end].is_sorted_by_key(&key);
        if !sorted {
            break;
        }
    }
    if sorted {
        return Ok(());
    }
    for run in list.chunks_mut(RUN) {
        run.sort_by_key(&key);
        watch.work(run.len() * SORTED)?;
    }
    let mut out: Vec<T> = Vec::with_capacity(list.len());
    let mut width = RUN;
    while width < list.len() {
        out.clear();
        for pair in list.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut out, &key, watch)?;
        }
        std::mem::swap(list, &mut out);
        width *= 2;
    }
    Ok(())
}

/// Merges two sorted runs, stably.
fn merge<T: Copy, K: Ord, P: Pace>(
    left: &[T],
    right: &[T],
    out: &mut Vec<T>,
    key: &impl Fn(&T) -> K,
    watch: &mut P,
) -> Result<(), P::Stop> {
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        let end = out.len() + PIECE;
        while out.len() < end && i < left.len() && j < right.len() {
            if key(&right[j]) < key(&left[i]) {
                out.push(right[j]);
                j += 1;
            } else {
                out.push(left[i]);
                i += 1;
            }
        }
        watch.work(PIECE * SORTED)?;
    }
    for part in left[i..].chunks(PIECE).chain(right[j..].chunks(PIECE)) {
        out.extend_from_slice(part);
        watch.work(part.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Still;
    use crate::pace::Watch;

    #[test]
    fn long_lists_are_sorted_and_stable() {
        let mut watch = Watch::new(&Still);
        for n in [0usize, 1, RUN, RUN + 1, 3 * RUN + 7, 9 * RUN] {
            let mut list: Vec<(usize, usize)> =
                (0..n).map(|i| (i.wrapping_mul(7_919) % 501, i)).collect();
            let mut expected = list.clone();
            expected.sort_by_key(|item| item.0);
            sort_by_key(&mut list, |item| item.0, &mut watch).unwrap();
            assert_eq!(list, expected);
            // Already sorted.
            sort_by_key(&mut list, |item| item.0, &mut watch).unwrap();
            assert_eq!(list, expected);
        }
    }

    #[test]
    fn elements_move_down_in_pieces() {
        let mut watch = Watch::new(&Still);
        let mut list: Vec<u64> = (0..100_000).collect();
        copy_down(&mut list, 10..90_000, 3, &mut watch).unwrap();
        assert!((3..89_993).all(|at| list[at] == at as u64 + 7));
        fill(&mut list[5..70_000], 9, &mut watch).unwrap();
        assert_eq!(
            (list[4], list[5], list[69_999], list[70_000]),
            (11, 9, 9, 70_007)
        );
    }
}
