//! Shards: the parts of the key space, and the rule by which an owner may acquire one.

use crate::key::{Millis, SHARDS};
use std::fmt;
use std::ops::{BitAnd, BitOr, Sub};

const WORDS: usize = SHARDS as usize / 64;

/// A set of shards.
///
/// ```
/// use a99_runtime_engine::Shards;
///
/// let half = Shards::part(0, 2);
/// assert!(half.contains(0) && half.contains(511) && !half.contains(512));
/// assert_eq!((Shards::ALL - half).to_string(), "512-1023");
/// assert_eq!([7, 9, 8].into_iter().collect::<Shards>().to_string(), "7-9");
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct Shards([u64; WORDS]);

impl Shards {
    /// No shard.
    pub const NONE: Shards = Shards([0; WORDS]);

    /// All shards of a store.
    pub const ALL: Shards = Shards([u64::MAX; WORDS]);

    /// One of several equal parts of all shards, counted from 0.
    #[must_use]
    pub fn part(n: u16, of: u16) -> Shards {
        let start = |n: u16| u32::from(n) * u32::from(SHARDS) / u32::from(of.max(1));
        let part = start(n)..start(n.saturating_add(1));
        let part = part.filter_map(|shard| u16::try_from(shard).ok());
        part.collect()
    }

    /// Whether a shard is in the set.
    #[must_use]
    pub fn contains(&self, shard: u16) -> bool {
        let word = self.0.get(usize::from(shard / 64));
        word.is_some_and(|word| word >> (shard % 64) & 1 == 1)
    }

    /// Adds a shard; a number that no shard has changes nothing.
    pub fn insert(&mut self, shard: u16) {
        if let Some(word) = self.0.get_mut(usize::from(shard / 64)) {
            *word |= 1 << (shard % 64);
        }
    }

    /// The shards in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        let set = *self;
        (0..SHARDS).filter(move |shard| set.contains(*shard))
    }

    /// The ranges of neighbours in the set, each with its first and last shard.
    pub fn ranges(&self) -> impl Iterator<Item = (u16, u16)> {
        let set = *self;
        let first =
            move |shard: &u16| set.contains(*shard) && (*shard == 0 || !set.contains(shard - 1));
        (0..SHARDS).filter(first).map(move |first| {
            let after = (first..SHARDS).find(|shard| !set.contains(*shard));
            (first, after.unwrap_or(SHARDS) - 1)
        })
    }

    /// Number of shards in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set has no shard.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Shards::NONE
    }

    fn joined(self, other: Shards, f: impl Fn(u64, u64) -> u64) -> Shards {
        let mut words = other.0.iter();
        Shards(
            self.0
                .map(|word| f(word, words.next().copied().unwrap_or_default())),
        )
    }
}

impl FromIterator<u16> for Shards {
    fn from_iter<I: IntoIterator<Item = u16>>(shards: I) -> Shards {
        let mut set = Shards::NONE;
        shards.into_iter().for_each(|shard| set.insert(shard));
        set
    }
}

impl BitOr for Shards {
    type Output = Shards;

    fn bitor(self, other: Shards) -> Shards {
        self.joined(other, |a, b| a | b)
    }
}

impl BitAnd for Shards {
    type Output = Shards;

    fn bitand(self, other: Shards) -> Shards {
        self.joined(other, |a, b| a & b)
    }
}

impl Sub for Shards {
    type Output = Shards;

    fn sub(self, other: Shards) -> Shards {
        self.joined(other, |a, b| a & !b)
    }
}

impl fmt::Display for Shards {
    /// Writes ranges: `0-511,600`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (first, last) in self.ranges() {
            match last == first {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shards({self})")
    }
}

/// Which owned shards a claim takes, beyond those that are free: released, or with a lease that
/// has ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TakeOver {
    /// Only free shards.
    Never,
    /// Shards of an owner of the same name: an earlier process of this one.
    SameName,
    /// Shards of every owner, whatever its lease says. Its later writes are refused.
    Always,
}

/// A request to own shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The shards.
    pub shards: Shards,
    /// The owner's name, not empty. Its processes that follow each other may share it.
    pub owner: String,
    /// When the lease ends unless it is renewed; `None` for ownership until it is released or
    /// taken over.
    pub until: Option<Millis>,
    /// Which shards of other owners it takes.
    pub take_over: TakeOver,
    /// The current time.
    pub now: Millis,
}

impl Claim {
    /// Whether the claim takes a shard from its recorded owner; the name is empty for a shard
    /// that was released or never owned.
    ///
    /// Times only decide who may try. What keeps two owners apart is the epoch, so that a wrong
    /// clock costs a change of owners and no data.
    #[must_use]
    pub fn takes_from(&self, owner: &str, until: Option<Millis>) -> bool {
        let is_free = owner.is_empty() || until.is_some_and(|until| until <= self.now);
        is_free
            || match self.take_over {
                TakeOver::Never => false,
                TakeOver::SameName => owner == self.owner,
                TakeOver::Always => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Shards, TakeOver};

    #[test]
    fn parts_cover_all_shards_once() {
        for of in [1, 2, 3, 7, 1024] {
            let parts = (0..of).map(|n| Shards::part(n, of));
            let count: usize = parts.clone().map(|part| part.len()).sum();
            assert_eq!(count, 1024, "{of}");
            assert_eq!(
                parts.fold(Shards::NONE, |all, part| all | part),
                Shards::ALL
            );
        }
        assert_eq!(Shards::part(2, 2), Shards::NONE);
        assert_eq!(Shards::part(0, 0), Shards::ALL);
    }

    #[test]
    fn sets_are_sets() {
        let some: Shards = [0, 63, 64, 1023, 1024, u16::MAX].into_iter().collect();
        assert_eq!(some.to_string(), "0,63-64,1023");
        assert_eq!((some & Shards::part(0, 16)).to_string(), "0,63");
        assert_eq!((Shards::ALL - some).len(), 1020);
        assert!((some - Shards::ALL).is_empty() && Shards::NONE.to_string().is_empty());
    }

    #[test]
    fn a_claim_takes_what_is_free_and_what_it_says() {
        let claim = |take_over| Claim {
            shards: Shards::ALL,
            owner: "a".to_owned(),
            until: None,
            take_over,
            now: 10,
        };
        for (take_over, of_a, of_b) in [
            (TakeOver::Never, false, false),
            (TakeOver::SameName, true, false),
            (TakeOver::Always, true, true),
        ] {
            let claim = claim(take_over);
            assert!(claim.takes_from("", None) && claim.takes_from("b", Some(10)));
            for until in [None, Some(11)] {
                assert_eq!(claim.takes_from("a", until), of_a, "{take_over:?}");
                assert_eq!(claim.takes_from("b", until), of_b, "{take_over:?}");
            }
        }
    }
}
