//! Randomly keyed hashes of names: no program can choose names that collide.
//!
//! Most names have at most 15 bytes. They are hashed by multiply-shift with 128-bit
//! multipliers (Thorup, "High speed hashing for integers and strings": the hashing of
//! vectors), which is strongly universal: any two names collide with the probability of a
//! random function, as long as the multipliers are secret. Longer names are hashed by
//! `SipHash`. Lists of keys are hashed as values of a polynomial modulo 2^61 - 1, hashed
//! again: two of n keys have the same value at n of 2^61 points at most.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Bytes of a name hashed or compared between two yield points.
pub(super) const NAME_PIECE: usize = 16 << 10;

/// The longest name that is hashed by multiply-shift.
const SHORT: usize = 15;

/// The modulus of polynomials, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// The random multipliers of a process.
#[derive(Copy, Clone, Debug)]
struct Multipliers {
    head: u128,
    tail: u128,
    len: u128,
    add: u128,
}

static MULTIPLIERS: LazyLock<Multipliers> = LazyLock::new(|| {
    let state = RandomState::new();
    let number = |at: u64| u128::from(state.hash_one(at)) << 64 | u128::from(state.hash_one(!at));
    Multipliers {
        head: number(1),
        tail: number(2),
        len: number(3),
        add: number(4),
    }
});

/// Hashes names, and lists of key ids.
#[derive(Debug)]
pub(super) struct NameHasher {
    short: Multipliers,
    long: RandomState,
}

impl Default for NameHasher {
    fn default() -> NameHasher {
        NameHasher {
            short: *MULTIPLIERS,
            long: RandomState::new(),
        }
    }
}

impl NameHasher {
    /// The hash of a name.
    #[inline]
    pub(super) fn name(&self, text: &[u8]) -> u64 {
        match words(text) {
            Some([head, tail]) => self.short.hash(head, tail, text.len()),
            None => self.long_name(text),
        }
    }

    /// The hash of a name longer than [`SHORT`].
    fn long_name(&self, text: &[u8]) -> u64 {
        let mut hasher = self.pieces();
        text.chunks(NAME_PIECE).for_each(|part| hasher.write(part));
        hasher.finish()
    }

    /// The incremental hasher for a name longer than a piece.
    pub(super) fn pieces(&self) -> impl Hasher {
        self.long.build_hasher()
    }

    /// The hash of a list: a polynomial at a secret point.
    pub(super) fn list(&self, keys: &[super::KeyId]) -> u64 {
        let at = self.short.add as u64 & PRIME;
        let polynomial = keys.iter().fold(1, |sum, key| {
            let sum = u128::from(sum) * u128::from(at) + u128::from(key.0);
            // Reduced twice: each time the part above 61 bits is added to them.
            let sum = (sum >> 61) as u64 + (sum as u64 & PRIME);
            (sum >> 61) + (sum & PRIME)
        });
        self.short.hash(polynomial, 0, keys.len())
    }
}

impl Multipliers {
    #[inline]
    fn hash(&self, head: u64, tail: u64, len: usize) -> u64 {
        let sum = [(self.head, head), (self.tail, tail), (self.len, len as u64)]
            .into_iter()
            .fold(self.add, |sum, (multiplier, word)| {
                sum.wrapping_add(multiplier.wrapping_mul(u128::from(word)))
            });
        (sum >> 64) as u64
    }
}

/// A short name as two numbers, unique among names of its length.
#[inline]
fn words(text: &[u8]) -> Option<[u64; 2]> {
    let four = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    if text.len() > SHORT {
        return None;
    }
    if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        return Some([u64::from_le_bytes(*head), u64::from_le_bytes(*tail)]);
    }
    if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        return Some([four(head), four(tail)]);
    }
    Some(match *text {
        [] => [0, 0],
        [a] => [u64::from(a), 0],
        [a, b] => [u64::from(a) | u64::from(b) << 8, 0],
        [a, b, c] => [u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16, 0],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Names of which many differ in little, and some are parts of others.
    fn names() -> Vec<Vec<u8>> {
        let mut names = vec![vec![]];
        for len in 1..=24 {
            names.push(vec![b'a'; len]);
            for at in 0..len {
                for byte in [0, b'`', b'b', 0xFF] {
                    let mut name = vec![b'a'; len];
                    name[at] = byte;
                    names.push(name);
                }
            }
        }
        names
    }

    #[test]
    fn words_of_short_names_are_one_to_one() {
        let names: HashSet<Vec<u8>> = names().into_iter().collect();
        let short = names.iter().filter(|name| name.len() <= SHORT);
        let words: Vec<_> = short
            .map(|name| (name.len(), words(name).unwrap()))
            .collect();
        let distinct: HashSet<_> = words.iter().collect();
        assert_eq!(distinct.len(), words.len());
        assert!(
            names
                .iter()
                .all(|name| words.len() > 100 && words_are_none_for_long(name))
        );
    }

    fn words_are_none_for_long(name: &[u8]) -> bool {
        words(name).is_none() == (name.len() > SHORT)
    }

    #[test]
    fn hashes_differ_and_come_again() {
        let hasher = NameHasher::default();
        let names: HashSet<Vec<u8>> = names().into_iter().collect();
        let hashes: HashSet<u64> = names.iter().map(|name| hasher.name(name)).collect();
        assert_eq!(hashes.len(), names.len());
        // Each part of a hash chooses a place of a table.
        for shift in [0, 57] {
            let buckets: HashSet<u64> = hashes.iter().map(|hash| hash >> shift & 0x7F).collect();
            assert!(buckets.len() > 100, "{}", buckets.len());
        }
        assert!(names.iter().all(|name| hashes.contains(&hasher.name(name))));
    }

    /// A long name has the hash of its pieces.
    #[test]
    fn a_long_name_is_hashed_by_pieces() {
        let hasher = NameHasher::default();
        let name = vec![b'x'; 2 * NAME_PIECE + 5];
        let mut pieces = hasher.pieces();
        name.chunks(NAME_PIECE).for_each(|part| pieces.write(part));
        assert_eq!(pieces.finish(), hasher.name(&name));
    }
}
