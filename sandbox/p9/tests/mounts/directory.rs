//! Listing folders, also while they change.

use super::client::{Client, Fixture, RDONLY, RDWR};
use a99_sandbox_p9::{Mount, MountCode, MountMode, Options, Server};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;

/// Files of the large folder.
const MANY: usize = 5000;

fn names(entries: &[super::client::Entry]) -> BTreeSet<String> {
    entries.iter().map(|entry| entry.name.clone()).collect()
}

#[test]
fn five_thousand_files_are_listed_once_each() {
    let mut g = Fixture::new();
    for number in 0..MANY {
        fs::write(g.path(&format!("rw/file number {number}")), "").expect("written");
    }
    for count in [256, 4096, 500_000] {
        let fid = g.client.open("0", RDONLY).expect("open");
        let entries = g.client.list(fid, count).expect("listed");
        assert_eq!(entries.len(), MANY + 2);
        let host = fs::read_dir(g.path("rw")).expect("there");
        let mut host: BTreeSet<String> = host
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        host.extend([".".to_owned(), "..".to_owned()]);
        assert_eq!(names(&entries), host);
        // Listing can restart at any cookie.
        let middle = &entries[MANY / 2];
        let again = g.client.readdir(fid, middle.cookie, 4096).expect("listed");
        assert_eq!(again[..3], entries[MANY / 2 + 1..][..3]);
        g.client.clunk(fid).expect("closed");
    }
}

#[test]
fn removing_while_listing_skips_nothing() {
    let mut g = Fixture::new();
    for number in 0..MANY {
        fs::write(g.path(&format!("rw/{number}")), "").expect("written");
    }
    let fid = g.client.open("0", RDONLY).expect("open");
    let mut cookie = 0;
    let mut seen = 0;
    loop {
        let entries = g.client.readdir(fid, cookie, 4096).expect("listed");
        let Some(last) = entries.last() else { break };
        cookie = last.cookie;
        for entry in entries.iter().filter(|entry| !entry.name.starts_with('.')) {
            g.client.unlink("0", &entry.name, 0).expect("removed");
            seen += 1;
        }
    }
    assert_eq!(seen, MANY);
    assert_eq!(fs::read_dir(g.path("rw")).expect("there").count(), 0);
}

#[test]
fn entries_have_numbers_and_kinds() {
    let mut g = Fixture::new();
    fs::create_dir(g.path("rw/folder")).expect("made");
    fs::write(g.path("rw/file"), "").expect("written");
    std::os::unix::fs::symlink("x", g.path("rw/link")).expect("linked");
    let fid = g.client.open("0", RDONLY).expect("open");
    let entries = g.client.list(fid, 4096).expect("listed");
    for (name, kind) in [("folder", 4), ("file", 8), ("link", 10)] {
        let entry = entries.iter().find(|entry| entry.name == name);
        let entry = entry.expect("listed");
        assert_eq!(entry.kind, kind);
        let attr = g.client.stat(&format!("0/{name}")).expect("there");
        assert_eq!(entry.path, attr.qid.2);
    }
    let above = entries
        .iter()
        .find(|entry| entry.name == "..")
        .expect("listed");
    let root = g.client.stat("").expect("the root").qid.2;
    assert_eq!(above.path, root, "the host's folder above is not shown");
    assert_eq!(g.client.readdir(fid, 0, 10).err(), Some(Errno::INVAL));
    let file = g.client.open("0/file", RDONLY).expect("open");
    assert_eq!(g.client.readdir(file, 0, 4096).err(), Some(Errno::NOTDIR));
    let closed = g.client.walk("0").expect("there");
    assert_eq!(g.client.readdir(closed, 0, 4096).err(), Some(Errno::BADF));
}

#[test]
fn the_root_holds_the_mounts_and_nothing_can_be_made_there() {
    let mut g = Fixture::new();
    let fid = g.client.open("", RDONLY).expect("open");
    for count in [30, 4096] {
        let entries = g.client.list(fid, count).expect("listed");
        let listed: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(listed, [".", "..", "0", "1"]);
    }
    let served: Vec<_> = g
        .client
        .server
        .mounts()
        .map(|(name, mount)| (name, mount.guest.clone()))
        .collect();
    assert_eq!(
        served,
        [("0".into(), "/rw".into()), ("1".into(), "/ro".into())]
    );
    assert_eq!(g.client.create("", "x", RDWR, 0o644), Err(Errno::ROFS));
    assert_eq!(g.client.mkdir("", "x", 0o755), Err(Errno::ROFS));
    assert_eq!(g.client.symlink("", "x", "y"), Err(Errno::ROFS));
    assert_eq!(g.client.unlink("", "0", 0x200), Err(Errno::ROFS));
    assert_eq!(g.client.chmod("", 0o777), Err(Errno::ROFS));
    assert_eq!(g.client.rename(("", "0"), ("", "2")), Err(Errno::ROFS));
}

#[test]
fn a_file_can_be_a_mount() {
    let g = Fixture::new();
    fs::write(g.path("rw/file"), "content").expect("written");
    let mount = Mount::new("/etc/x", g.path("rw/file"), MountMode::ReadWrite);
    let server = Server::new(vec![mount], Options::default()).expect("shared");
    let mut client = Client::new(server);
    let fid = client.open("0", RDWR).expect("open");
    assert_eq!(client.read(fid, 0, 20), Ok(b"content".to_vec()));
    assert_eq!(client.write(fid, 0, b"C"), Ok(1));
    assert_eq!(client.walk("0/x"), Err(Errno::NOTDIR));
}

#[test]
fn what_cannot_be_shared_is_said() {
    let g = Fixture::new();
    let failed = |path: std::path::PathBuf| {
        let mount = Mount::new("/x", path, MountMode::ReadOnly);
        let error = Server::new(vec![mount], Options::default()).expect_err("refused");
        assert!(error.to_string().contains(error.code.as_str()), "{error}");
        error.code
    };
    assert_eq!(failed(g.path("none")), MountCode::Unreadable);
    assert_eq!(failed("/proc/self".into()), MountCode::KernelInterface);
    assert_eq!(failed("/sys".into()), MountCode::KernelInterface);
    assert_eq!(failed("/dev/null".into()), MountCode::WrongKind);
    let many = vec![Mount::new("/x", g.path("rw"), MountMode::ReadOnly); 257];
    let error = Server::new(many, Options::default()).expect_err("refused");
    assert_eq!(error.code, MountCode::TooMany);
}

#[test]
fn fids_and_open_files_are_limited() {
    let g = Fixture::new();
    fs::write(g.path("rw/file"), "").expect("written");
    let options = Options {
        max_fids: 10,
        max_open: 3,
        max_locks: 2,
    };
    let mount = Mount::new("/x", g.path("rw"), MountMode::ReadWrite);
    let mut client = Client::new(Server::new(vec![mount], options).expect("shared"));
    let open: Vec<_> = (0..3)
        .map(|_| client.open("0/file", RDONLY).expect("open"))
        .collect();
    assert_eq!(client.open("0/file", RDONLY), Err(Errno::MFILE));
    assert_eq!(client.create("0", "new", RDWR, 0o644), Err(Errno::MFILE));
    assert!(!g.path("rw/new").exists());
    client.clunk(open[0]).expect("closed");
    assert!(client.open("0/file", RDONLY).is_ok());
    while client.walk("0").is_ok() {}
    assert_eq!(client.walk("0"), Err(Errno::MFILE));
    client.clunk(open[1]).expect("closed");
    assert!(client.walk("0").is_ok());
}
