//! Kill points: places between two durable actions at which tests kill the process.

/// Kills the process here if `A99_KILL_POINT` (`NAME:PASS`) has this name and the number of this
/// pass. The names of all passed points are appended to the file in `A99_KILL_PASSED`.
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
    note(name);
    if let Some((wanted, pass)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *pass
    {
        kill();
    }
}

/// Records the name of a point, if the environment names a file.
#[cfg(feature = "testing")]
fn note(name: &str) {
    use std::fs::File;
    use std::io::Write;
    use std::sync::OnceLock;
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let path = std::env::var_os("A99_KILL_PASSED")?;
        File::options().append(true).create(true).open(path).ok()
    });
    if let Some(mut file) = file.as_ref() {
        // Tests that count the names notice a missing one.
        drop(file.write_all(format!("{name}\n").as_bytes()));
    }
}

/// Ends the process like `kill -9`.
#[cfg(feature = "testing")]
fn kill() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    // Fallback for systems where a process may not kill itself.
    std::process::abort();
}

/// Does nothing: kill points are for tests.
#[cfg(not(feature = "testing"))]
pub(crate) const fn point(_name: &str) {}
