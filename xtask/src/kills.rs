//! Long tests of stores: processes killed during writes, and processes that write concurrently.

use crate::shell::{Failed, cargo};
use crate::stage::Progress;

/// Each store: its crate, test program and required features.
const STORES: [(&str, &str, &str); 3] = [
    ("a99-sqlite", "it", ""),
    ("a99-vectors", "store", "sqlite"),
    ("a99-postgres", "server", "cluster"),
];

/// Runs the long tests of all stores, or of one crate.
pub(crate) fn test(only: Option<&str>, progress: &Progress) -> Result<(), Failed> {
    let stores = STORES
        .iter()
        .filter(|store| only.is_none_or(|only| store.0 == only));
    let stores: Vec<_> = stores.collect();
    if stores.is_empty() {
        let names = STORES.map(|store| store.0).join(", ");
        return Err(Failed(format!("no store of that name; there are {names}")));
    }
    for (package, program, features) in stores {
        let mut test = cargo("test");
        test.args(["--package", package, "--features", features]);
        test.args([
            "--test",
            program,
            "--",
            "--ignored",
            "long_",
            "--test-threads=1",
        ]);
        progress.tests(&mut test)?;
    }
    Ok(())
}
