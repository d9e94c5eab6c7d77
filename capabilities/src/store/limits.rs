//! Limits and usage of a store's namespace.

/// Limits of a namespace and its requests. An entry counts the bytes of its key and of its
/// value as stored, plus 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of all entries.
    pub max_bytes: u64,
    /// Keys.
    pub max_keys: u64,
    /// Bytes of a stored value, which is usually JSON text.
    pub max_value_bytes: usize,
    /// Bytes of a page of keys, and in-memory bytes of a query's documents; longer answers end
    /// early.
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

/// Usage of a namespace.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct StoreUsage {
    /// Keys, including expired ones that are not deleted yet.
    pub keys: u64,
    /// Bytes of keys and values as stored, plus 64 for each entry.
    pub bytes: u64,
}

/// Error text for programs when a namespace has reached a limit of bytes, keys or documents.
#[must_use]
pub fn full_text(limit: u64, unit: &str) -> String {
    format!("Store is full: the limit is {limit} {unit}")
}

/// Refuses to replace `old` by `new` if the namespace would then exceed its limit.
///
/// # Errors
/// Error text of [`full_text`].
pub fn check_room(held: u64, old: u64, new: u64, limit: u64, unit: &str) -> Result<(), String> {
    let after = held.saturating_sub(old).saturating_add(new);
    // The limit may be lower than the current usage: a change that frees space is allowed.
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
