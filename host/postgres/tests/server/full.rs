//! A full disk: a small file system that holds a database.

use crate::certificates::shared;
use crate::{block_on, open, text};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_postgres::{PostgresCode, PostgresStore};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;

/// A file system in memory, unmounted on drop.
struct Disk(PathBuf);

impl Disk {
    /// Mounts a file system of `mib` MiB in a new folder, for the owner of the parent folder.
    fn mount(at: PathBuf, mib: u32) -> Disk {
        fs::create_dir(&at).unwrap();
        let owner = at.parent().unwrap().metadata().unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&at)
            .output();
        let is_mounted = mounted.as_ref().is_ok_and(|mount| mount.status.success());
        assert!(
            is_mounted,
            "this test fills a small disk, which it mounts: run it as root, and where mounts are \
             allowed ({mounted:?})"
        );
        let disk = Disk(at);
        chown(&disk.0, Some(owner.uid()), Some(owner.gid())).unwrap();
        fs::set_permissions(&disk.0, fs::Permissions::from_mode(0o700)).unwrap();
        disk
    }

    fn grow(&self, mib: u32) {
        let size = format!("remount,size={mib}m");
        let grown = Command::new("mount")
            .args(["-o", &size])
            .arg(&self.0)
            .status();
        assert!(grown.unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The server has files of it open until it ends.
        let gone = Command::new("umount").arg("-l").arg(&self.0).status();
        drop(gone);
    }
}

/// An incompressible text for a number.
fn noise(n: u64, length: usize) -> Value {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state >> 40) as u8 % 94)
    });
    let text: String = letters
        .filter(|c| !matches!(c, '"' | '\\'))
        .take(length)
        .collect();
    text.into()
}

/// Sets keys from `from` on until an error; returns their number and the error.
fn fill(store: &PostgresStore, from: u64) -> (u64, String) {
    for n in from..from + 10_000 {
        let set = store.set(n.to_string().as_str().into(), noise(n, 50_000));
        if let Err(error) = block_on(set) {
            return (n, text(&error));
        }
    }
    panic!("the disk is never full");
}

fn is_there(store: &PostgresStore, keys: u64) {
    for n in 0..keys {
        let found = block_on(store.get(n.to_string().as_str().into()));
        let found = found.unwrap();
        assert!(found == noise(n, 50_000), "{n}");
    }
    assert_eq!(store.usage().wait().unwrap().keys, keys);
}

#[test]
#[ignore = "mounts a disk, which needs root: `cargo xtask kills a99-postgres`"]
fn long_a_full_disk_takes_no_more_and_loses_nothing() {
    let disk = Disk::mount(shared().at("small-disk"), 20);
    let elsewhere = shared().database();
    elsewhere.sql(&format!(
        "CREATE TABLESPACE small LOCATION '{}'",
        disk.0.display()
    ));
    let database = shared().database_on("small");
    let store = open(&database.url()).unwrap();
    let (keys, error) = fill(&store, 0);
    assert_eq!(error, "Store is full");
    assert!(keys > 20, "{keys}");
    // The host sees the cause.
    let probe = store.write(|tx| {
        let sql =
            "CREATE TABLE much AS SELECT n, repeat('x', 100) FROM generate_series(1, 200000) n";
        tx.execute(sql, Vec::new())
    });
    let error = probe.wait().unwrap_err();
    assert_eq!(error.code(), PostgresCode::Full, "{error}");
    assert!(error.help().unwrap().contains("make room"), "{error}");
    // With a little room reads work: without any the server may lack space for what it writes
    // while it reads. With more room writes work too.
    disk.grow(21);
    is_there(&store, keys);
    let next = open(&database.url()).unwrap();
    is_there(&next, keys);
    disk.grow(40);
    let (more, error) = fill(&next, keys);
    assert!(more > keys + 20, "{keys}, then {more}");
    assert_eq!(error, "Store is full");
    disk.grow(41);
    is_there(&store, more);
    store.close();
    next.close();
    elsewhere.sql(&format!("DROP DATABASE {} WITH (FORCE)", database.name));
    elsewhere.sql("DROP TABLESPACE small");
}
