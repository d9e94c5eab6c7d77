//! Limits of a namespace of a store, and what it holds.

/// What may be kept in a namespace, and asked of it. An entry counts the bytes of its key
/// and of its value as stored, and 64 more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of all entries.
    pub max_bytes: u64,
    /// Keys.
    pub max_keys: u64,
    /// Bytes of a value as stored, which is JSON text for most.
    pub max_value_bytes: usize,
    /// Bytes of a page of keys, and of the documents that a query gives as they are in
    /// memory; longer ones end early.
    pub max_page_bytes: usize,
}

impl Default for StoreLimits {
    /// 1 GiB, ten million keys, 8 MiB a value, 4 MiB a page.
    fn default() -> StoreLimits {
        StoreLimits {
            max_bytes: 1 << 30,
            max_keys: 10_000_000,
            max_value_bytes: 8 << 20,
            max_page_bytes: 4 << 20,
        }
    }
}

/// What a namespace holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct StoreUsage {
    /// Keys, with those that have expired and are not removed yet.
    pub keys: u64,
    /// Bytes of keys and values as stored, and 64 for each entry.
    pub bytes: u64,
}

/// What a program is told when a namespace holds as many bytes, keys or documents as it may.
#[must_use]
pub fn full_text(limit: u64, unit: &str) -> String {
    format!("Store is full: the limit is {limit} {unit}")
}

/// Refuses that a namespace takes something new in place of something old, where it then
/// would hold more than its limit.
///
/// # Errors
/// The text of [`full_text`].
pub fn check_room(held: u64, old: u64, new: u64, limit: u64, unit: &str) -> Result<(), String> {
    let after = held.saturating_sub(old).saturating_add(new);
    // Limits may be lower than when it was filled: who takes less may go on.
    match after > limit && after > held {
        true => Err(full_text(limit, unit)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_room;

    #[test]
    fn n19_what_takes_less_may_go_on() {
        let room = |held, old, new| check_room(held, old, new, 10, "keys");
        for (held, old, new) in [(0, 0, 10), (9, 0, 1), (20, 5, 5), (20, 5, 4), (10, 1, 1)] {
            assert_eq!(room(held, old, new), Ok(()), "{held} {old} {new}");
        }
        for (held, old, new) in [(0, 0, 11), (10, 0, 1), (20, 5, 6), (1, 0, u64::MAX)] {
            let text = "Store is full: the limit is 10 keys";
            assert_eq!(
                room(held, old, new),
                Err(text.to_owned()),
                "{held} {old} {new}"
            );
        }
    }
}
