//! Whole-file locks (`flock`), against the host's and beside range locks (`fcntl`).

use super::client::{Client, Fid, Fixture, RDONLY, RDWR, mounts};
use a99_sandbox_p9::{Options, Server, ServerState};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};

const READ: u8 = 0;
const WRITE: u8 = 1;
const UNLOCK: u8 = 2;

const DONE: u8 = 0;
const BLOCKED: u8 = 1;

/// Protocol name that the image's kernel uses.
const EXTENDED: &str = "9P2000.L.agent99";

/// A fixture with a client that speaks like the image's kernel, and the host's open files
/// in the writable and in the read-only mount.
fn ground() -> (Fixture, File, File) {
    let mut g = Fixture::new();
    let options = Options {
        max_locks: 3,
        ..Options::default()
    };
    let server = Server::new(mounts(g.folder.path()), options);
    g.client = Client::speaking(server.expect("mounts"), EXTENDED);
    let open = |name: &str| {
        fs::write(g.path(name), "0123456789").expect("written");
        let file = File::options().read(true).write(true).open(g.path(name));
        file.expect("open")
    };
    let (writable, read_only) = (open("rw/file"), open("ro/file"));
    (g, writable, read_only)
}

fn open(g: &mut Fixture) -> Fid {
    g.client.open("0/file", RDWR).expect("open")
}

/// Whether a program of the host gets a lock of `flock`, which it releases.
fn host_flock(file: &File, operation: FlockOperation) -> bool {
    let got = flock(file, operation).is_ok();
    flock(file, FlockOperation::Unlock).expect("given back");
    got
}

/// Whether it gets a lock of `fcntl` on the whole file; released.
fn host_fcntl(file: &File, kind: libc::c_int) -> bool {
    let lock = |kind: libc::c_int| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let got = fcntl(file, FcntlArg::F_OFD_SETLK(&lock(kind))).is_ok();
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock(libc::F_UNLCK))).expect("given back");
    got
}

const SHARED: FlockOperation = FlockOperation::NonBlockingLockShared;
const EXCLUSIVE: FlockOperation = FlockOperation::NonBlockingLockExclusive;

#[test]
fn both_kinds_are_independent() {
    let (mut g, host, _) = ground();
    let fid = open(&mut g);
    assert_eq!(g.client.flock(fid, WRITE), Ok(DONE));
    assert!(!host_flock(&host, SHARED));
    assert!(
        host_fcntl(&host, libc::F_WRLCK),
        "no lock of the other kind"
    );
    assert_eq!(g.client.lock(fid, WRITE, (0, 0), 7), Ok(DONE));
    assert!(!host_fcntl(&host, libc::F_RDLCK));
    assert_eq!(g.client.flock(fid, UNLOCK), Ok(DONE));
    assert!(host_flock(&host, EXCLUSIVE));
    assert!(!host_fcntl(&host, libc::F_RDLCK), "the other is kept");
    assert_eq!(g.client.flock(fid, WRITE), Ok(DONE));
    assert_eq!(g.client.lock(fid, UNLOCK, (0, 0), 7), Ok(DONE));
    assert!(host_fcntl(&host, libc::F_WRLCK));
    assert!(!host_flock(&host, SHARED), "the other is kept");
    // A query about one kind does not see the other.
    assert_eq!(g.client.getlock(fid, WRITE, (0, 0)), Ok((UNLOCK, 0, 0)));
    g.client.clunk(fid).expect("closed");
    assert!(host_flock(&host, EXCLUSIVE), "a closed file has none");
}

#[test]
fn a_lock_belongs_to_the_open_file() {
    let (mut g, host, _) = ground();
    let (first, second) = (open(&mut g), open(&mut g));
    assert_eq!(g.client.flock(first, READ), Ok(DONE));
    assert_eq!(g.client.flock(second, READ), Ok(DONE));
    assert!(host_flock(&host, SHARED), "shared with readers");
    assert!(!host_flock(&host, EXCLUSIVE));
    assert_eq!(g.client.flock(first, UNLOCK), Ok(DONE));
    assert!(!host_flock(&host, EXCLUSIVE), "the second has its own");
    assert_eq!(g.client.flock(second, WRITE), Ok(DONE), "a stronger one");
    assert!(!host_flock(&host, SHARED));
    assert_eq!(g.client.flock(second, READ), Ok(DONE), "a weaker one");
    assert!(host_flock(&host, SHARED));
    g.client.clunk(first).expect("closed");
    assert!(!host_flock(&host, EXCLUSIVE));
    g.client.clunk(second).expect("closed");
    assert!(host_flock(&host, EXCLUSIVE));
}

#[test]
fn the_hosts_lock_is_in_the_way() {
    let (mut g, host, _) = ground();
    let fid = open(&mut g);
    flock(&host, EXCLUSIVE).expect("free");
    assert_eq!(g.client.flock(fid, READ), Ok(BLOCKED));
    assert!(g.client.server.state().flocks.is_empty());
    flock(&host, SHARED).expect("its own");
    assert_eq!(g.client.flock(fid, READ), Ok(DONE));
    // As on the host, a failed change leaves no lock.
    assert_eq!(g.client.flock(fid, WRITE), Ok(BLOCKED));
    assert!(g.client.server.state().flocks.is_empty());
    assert!(host_flock(&host, EXCLUSIVE));
}

#[test]
fn s10_a_lock_in_a_read_only_mount_stays_in_the_guest() {
    let (mut g, _, host) = ground();
    let fid = g.client.open("1/file", RDONLY).expect("open");
    for kind in [READ, WRITE] {
        assert_eq!(g.client.flock(fid, kind), Ok(DONE));
        assert!(host_flock(&host, EXCLUSIVE), "the host's own file");
    }
    flock(&host, EXCLUSIVE).expect("free");
    assert_eq!(g.client.flock(fid, READ), Ok(DONE));
}

#[test]
fn both_kinds_have_one_limit() {
    let (mut g, _, _) = ground();
    let fids: Vec<Fid> = (0..3).map(|_| open(&mut g)).collect();
    assert_eq!(g.client.flock(fids[0], READ), Ok(DONE));
    assert_eq!(g.client.lock(fids[0], READ, (0, 1), 7), Ok(DONE));
    assert_eq!(g.client.flock(fids[1], READ), Ok(DONE));
    assert_eq!(g.client.flock(fids[2], READ), Err(Errno::NOLCK));
    assert_eq!(g.client.lock(fids[0], READ, (5, 1), 7), Err(Errno::NOLCK));
    assert_eq!(g.client.flock(fids[1], READ), Ok(DONE), "it has one");
    assert_eq!(g.client.flock(fids[1], UNLOCK), Ok(DONE));
    assert_eq!(g.client.flock(fids[1], UNLOCK), Ok(DONE));
    assert_eq!(g.client.lock(fids[0], READ, (5, 1), 7), Ok(DONE));
}

#[test]
fn another_client_has_locks_of_ranges_only() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "0123456789").expect("written");
    let path = g.path("rw/file");
    let host = File::options().read(true).write(true).open(path);
    let host = host.expect("open");
    let fid = open(&mut g);
    assert_eq!(g.client.flock(fid, WRITE), Ok(DONE));
    assert!(host_flock(&host, EXCLUSIVE));
    assert!(!host_fcntl(&host, libc::F_RDLCK));
}

#[test]
fn they_are_taken_again_from_a_snapshot() {
    let (mut g, host, _) = ground();
    fs::write(g.path("rw/lost"), "lost").expect("written");
    let fid = open(&mut g);
    let lost = g.client.open("0/lost", RDWR).expect("open");
    assert_eq!(g.client.flock(fid, WRITE), Ok(DONE));
    assert_eq!(g.client.flock(lost, WRITE), Ok(DONE));
    let text = serde_json::to_vec(&g.client.server.state()).expect("JSON");
    // The first server's locks end with it.
    let empty = Server::new(Vec::new(), Options::default()).expect("a server");
    drop(std::mem::replace(&mut g.client.server, empty));
    assert!(host_flock(&host, EXCLUSIVE));
    let other = File::open(g.path("rw/lost")).expect("open");
    flock(&other, SHARED).expect("free");
    let state: ServerState = serde_json::from_slice(&text).expect("JSON");
    let server = Server::restore(mounts(g.folder.path()), Options::default(), &state);
    let mut client = Client::resume(server.expect("restored"));
    assert!(!host_flock(&host, SHARED));
    assert_eq!(client.read(fid, 0, 4), Ok(b"0123".to_vec()));
    assert_eq!(client.read(lost, 0, 4), Err(Errno::STALE));
    assert_eq!(client.flock(fid, UNLOCK), Ok(DONE));
    assert!(host_flock(&host, EXCLUSIVE));
}
