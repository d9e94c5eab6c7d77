//! Range locks, against the host's and among the guest's own processes.

use super::client::{Fixture, RDONLY, RDWR};
use a99_sandbox_p9::Options;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::io::Errno;
use std::fs::{self, File};

const READ: u8 = 0;
const WRITE: u8 = 1;
const UNLOCK: u8 = 2;

const DONE: u8 = 0;
const BLOCKED: u8 = 1;

/// Takes or releases a lock of a program of the host.
fn host_lock(file: &File, kind: libc::c_int, start: i64, length: i64) -> bool {
    let flock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&flock)).is_ok()
}

fn ground() -> (Fixture, File) {
    let g = Fixture::with(Options {
        max_locks: 100,
        ..Options::default()
    });
    fs::write(g.path("rw/file"), "0123456789").expect("written");
    fs::write(g.path("ro/file"), "0123456789").expect("written");
    let open = File::options()
        .read(true)
        .write(true)
        .open(g.path("rw/file"));
    (g, open.expect("open"))
}

#[test]
fn locks_hold_against_the_host_and_back() {
    let (mut g, host) = ground();
    let fid = g.client.open("0/file", RDWR).expect("open");
    assert_eq!(g.client.lock(fid, WRITE, (2, 3), 7), Ok(DONE));
    assert!(!host_lock(&host, libc::F_RDLCK, 4, 1));
    assert!(host_lock(&host, libc::F_WRLCK, 5, 5));
    assert_eq!(g.client.lock(fid, READ, (0, 0), 7), Ok(BLOCKED));
    assert!(
        !host_lock(&host, libc::F_RDLCK, 4, 1),
        "the first is still held"
    );
    assert_eq!(g.client.getlock(fid, READ, (0, 0)), Ok((WRITE, 5, 5)));
    assert_eq!(g.client.getlock(fid, WRITE, (0, 4)), Ok((UNLOCK, 0, 4)));
    assert!(host_lock(&host, libc::F_UNLCK, 0, 0));
    assert_eq!(g.client.lock(fid, READ, (0, 0), 7), Ok(DONE));
    assert!(host_lock(&host, libc::F_RDLCK, 0, 0), "shared with readers");
    assert!(!host_lock(&host, libc::F_WRLCK, 9, 1));
    assert_eq!(g.client.lock(fid, UNLOCK, (0, 5), 7), Ok(DONE));
    assert!(host_lock(&host, libc::F_WRLCK, 0, 5));
    assert!(!host_lock(&host, libc::F_WRLCK, 5, 1));
    g.client.clunk(fid).expect("closed");
    assert!(
        host_lock(&host, libc::F_WRLCK, 0, 0),
        "a closed file has none"
    );
}

#[test]
fn processes_of_the_guest_are_one_to_the_host() {
    let (mut g, host) = ground();
    let first = g.client.open("0/file", RDWR).expect("open");
    let second = g.client.open("0/file", RDWR).expect("open");
    // One process, two files: its own lock does not conflict.
    assert_eq!(g.client.lock(first, WRITE, (0, 10), 7), Ok(DONE));
    assert_eq!(g.client.lock(second, WRITE, (0, 10), 7), Ok(DONE));
    // Linux requests the next lock before it releases the previous one.
    assert_eq!(g.client.lock(second, WRITE, (0, 10), 8), Ok(DONE));
    assert_eq!(g.client.lock(second, UNLOCK, (0, 10), 7), Ok(DONE));
    assert!(
        !host_lock(&host, libc::F_RDLCK, 0, 1),
        "the second process has it"
    );
    assert_eq!(g.client.lock(first, READ, (0, 10), 9), Ok(DONE));
    assert_eq!(g.client.lock(second, UNLOCK, (0, 10), 8), Ok(DONE));
    assert!(host_lock(&host, libc::F_RDLCK, 0, 1), "a reader is left");
    assert!(!host_lock(&host, libc::F_WRLCK, 0, 1));
    g.client.clunk(second).expect("closed");
    assert!(
        !host_lock(&host, libc::F_WRLCK, 0, 1),
        "it was taken through the first"
    );
    g.client.clunk(first).expect("closed");
    assert!(host_lock(&host, libc::F_WRLCK, 0, 1));
}

#[test]
fn s10_a_lock_in_a_read_only_mount_stays_in_the_guest() {
    let (mut g, _) = ground();
    let host = File::options()
        .read(true)
        .write(true)
        .open(g.path("ro/file"));
    let host = host.expect("open");
    let fid = g.client.open("1/file", RDONLY).expect("open");
    for kind in [READ, WRITE] {
        assert_eq!(g.client.lock(fid, kind, (0, 0), 7), Ok(DONE));
        assert!(host_lock(&host, libc::F_WRLCK, 0, 0), "the host's own file");
        assert!(host_lock(&host, libc::F_UNLCK, 0, 0));
    }
    // Nor does a lock of the host block the guest.
    assert!(host_lock(&host, libc::F_WRLCK, 0, 0));
    assert_eq!(g.client.lock(fid, WRITE, (0, 0), 7), Ok(DONE));
    assert_eq!(g.client.getlock(fid, WRITE, (0, 0)), Ok((UNLOCK, 0, 0)));
}

#[test]
fn wrong_locks_are_refused_and_leave_nothing() {
    let (mut g, host) = ground();
    let fid = g.client.open("0/file", RDWR).expect("open");
    assert_eq!(g.client.lock(fid, 3, (0, 1), 7), Err(Errno::INVAL));
    assert_eq!(
        g.client.lock(fid, WRITE, (u64::MAX, 1), 7),
        Err(Errno::INVAL)
    );
    assert_eq!(
        g.client.lock(fid, WRITE, (1, u64::MAX), 7),
        Err(Errno::INVAL)
    );
    assert_eq!(g.client.lock(fid, UNLOCK, (0, 1), 7), Ok(DONE));
    let closed = g.client.walk("0/file").expect("there");
    assert_eq!(g.client.lock(closed, WRITE, (0, 1), 7), Err(Errno::BADF));
    assert!(host_lock(&host, libc::F_WRLCK, 0, 0));
    assert_eq!(g.client.lock(fid, WRITE, (0, 1), 7), Ok(BLOCKED));
    assert!(g.client.server.state().locks.is_empty());
    assert!(host_lock(&host, libc::F_UNLCK, 0, 0));
    let mut taken = 0;
    let mut refused = Ok(DONE);
    for number in 0..150 {
        refused = g.client.lock(fid, WRITE, (2 * number, 1), 7);
        taken += u32::from(refused == Ok(DONE));
    }
    assert_eq!((taken, refused), (100, Err(Errno::NOLCK)));
}
