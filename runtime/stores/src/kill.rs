//! Kill points: places between two durable actions at which tests kill the process.

/// Kills the process here if `A99_KILL_POINT` has this name and the number of this pass.
#[cfg(feature = "testing")]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let wanted = std::env::var("A99_KILL_POINT").ok()?;
        let (name, pass) = wanted.split_once(':')?;
        Some((name.to_owned(), pass.parse().ok()?))
    });
    if let Some((wanted, pass)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *pass
    {
        std::process::abort();
    }
}

/// Does nothing: kill points are for tests.
#[cfg(not(feature = "testing"))]
pub(crate) const fn point(_name: &str) {}
