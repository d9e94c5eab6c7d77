//! Memory of SQLite in this process.

use rusqlite::ffi;

/// Bytes that SQLite has allocated in this process, for all files together.
#[allow(unsafe_code, reason = "SQLite's counter has no safe form")]
#[must_use]
pub fn memory_used() -> u64 {
    // SAFETY: the function takes nothing and may be called at any time, from any thread.
    let bytes = unsafe { ffi::sqlite3_memory_used() };
    u64::try_from(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::memory_used;
    use rusqlite::Connection;

    #[test]
    fn what_a_database_holds_is_counted() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch("CREATE TABLE t (b); INSERT INTO t VALUES (zeroblob(33554432))")
            .unwrap();
        assert!(memory_used() >= 32 << 20, "{}", memory_used());
    }
}
