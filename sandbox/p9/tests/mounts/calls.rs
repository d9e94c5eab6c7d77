//! Each call in a mount, compared with the same call on the host.

use super::client::{EXCL, Fixture, RDONLY, RDWR, Request, Set, TRUNC, WRONLY};
use a99_sandbox_p9::Budget;
use rustix::fs::{CWD, Mode, OFlags, openat, statvfs};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

/// Fields that `Tsetattr` changes.
const ATIME: u32 = 0x10;
const MTIME: u32 = 0x20;
const GIVEN: u32 = 0x180;

#[test]
fn files_are_written_and_read_as_on_the_host() {
    let mut g = Fixture::new();
    let fid = g.client.create("0", "file", RDWR, 0o644).expect("created");
    assert_eq!(g.client.write(fid, 0, b"hello world"), Ok(11));
    assert_eq!(g.client.write(fid, 6, b"there"), Ok(5));
    assert_eq!(g.client.read(fid, 0, 100), Ok(b"hello there".to_vec()));
    assert_eq!(g.client.read(fid, 11, 100), Ok(Vec::new()));
    assert_eq!(g.client.read(fid, 6, 2), Ok(b"th".to_vec()));
    assert_eq!(g.client.fsync(fid, 0), Ok(()));
    assert_eq!(g.client.fsync(fid, 1), Ok(()));
    assert_eq!(fs::read(g.path("rw/file")).expect("there"), b"hello there");
    fs::write(g.path("rw/file"), "by the host").expect("written");
    assert_eq!(g.client.read(fid, 0, 100), Ok(b"by the host".to_vec()));
    let again = g.client.open("0/file", WRONLY | TRUNC).expect("open");
    assert_eq!(g.client.getattr(fid).expect("there").size, 0);
    assert_eq!(g.client.read(again, 0, 1), Err(Errno::BADF));
    let reader = g.client.open("0/file", RDONLY).expect("open");
    assert_eq!(g.client.write(reader, 0, b"x"), Err(Errno::BADF));
}

#[test]
fn creating_obeys_its_flags() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/there"), "content").expect("written");
    let twice = g.client.create("0", "there", RDWR | EXCL, 0o600);
    assert_eq!(twice, Err(Errno::EXIST));
    let open = g.client.create("0", "there", RDWR, 0o600).expect("opened");
    assert_eq!(g.client.read(open, 0, 9), Ok(b"content".to_vec()));
    let cut = g
        .client
        .create("0", "there", RDWR | TRUNC, 0o600)
        .expect("opened");
    assert_eq!(g.client.read(cut, 0, 9), Ok(Vec::new()));
    symlink("there", g.path("rw/link")).expect("linked");
    assert_eq!(g.client.create("0", "link", RDWR, 0o600), Err(Errno::LOOP));
    assert_eq!(
        g.client.create("0", "no/name", RDWR, 0o600),
        Err(Errno::INVAL)
    );
    let long = "x".repeat(256);
    assert_eq!(
        g.client.create("0", &long, RDWR, 0o600),
        Err(Errno::NAMETOOLONG)
    );
    // The creator of an unreadable file can write to it.
    let own = g.client.create("0", "own", WRONLY, 0).expect("created");
    assert_eq!(g.client.write(own, 0, b"x"), Ok(1));
}

#[test]
fn modes_are_those_that_were_asked_for() {
    let mut g = Fixture::new();
    for mode in [0o755, 0o777, 0o600, 0o4, 0o1777, 0o111, 0o666] {
        let name = format!("{mode:o}");
        g.client.create("0", &name, RDWR, mode).expect("created");
        g.client
            .mkdir("0", &format!("d{name}"), mode)
            .expect("made");
        let on_host = |path: &str| fs::metadata(g.path(path)).expect("there").mode() & 0o7777;
        assert_eq!(on_host(&format!("rw/{name}")), mode);
        assert_eq!(on_host(&format!("rw/d{name}")), mode);
        assert_eq!(g.client.chmod(&format!("0/{name}"), mode ^ 0o222), Ok(()));
        let attr = g.client.stat(&format!("0/{name}")).expect("there");
        assert_eq!(attr.mode, 0o100_000 | (mode ^ 0o222));
    }
    symlink("755", g.path("rw/link")).expect("linked");
    let at_host = rustix::fs::chmodat(
        CWD,
        g.path("rw/link"),
        Mode::RUSR,
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    );
    assert_eq!(at_host, Err(Errno::OPNOTSUPP));
    assert_eq!(g.client.chmod("0/link", 0o400), Err(Errno::OPNOTSUPP));
}

#[test]
fn attributes_are_the_hosts() {
    let mut g = Fixture::new();
    let mut file = File::create(g.path("rw/file")).expect("created");
    file.write_all(&[7; 10_000]).expect("written");
    symlink("target", g.path("rw/link")).expect("linked");
    fs::create_dir(g.path("rw/folder")).expect("made");
    fs::hard_link(g.path("rw/file"), g.path("rw/second")).expect("linked");
    for name in ["file", "link", "folder", "second"] {
        let host = fs::symlink_metadata(g.path(&format!("rw/{name}"))).expect("there");
        let attr = g.client.stat(&format!("0/{name}")).expect("there");
        let time = |seconds: i64, ns: i64| (seconds as u64, ns as u64);
        assert_eq!((attr.mode, attr.size), (host.mode(), host.size()));
        assert_eq!((attr.nlink, attr.blocks), (host.nlink(), host.blocks()));
        assert_eq!(attr.mtime, time(host.mtime(), host.mtime_nsec()));
        assert_eq!(attr.atime, time(host.atime(), host.atime_nsec()));
        assert_eq!(attr.ctime, time(host.ctime(), host.ctime_nsec()));
        // Made by this user, who is the guest's ordinary one.
        assert_eq!((attr.uid, attr.gid), (1000, 1000));
    }
    let root = g.client.stat("").expect("the root");
    assert_eq!((root.mode, root.nlink), (0o040_555, 4));
}

#[test]
fn numbers_of_files_are_unique_and_versions_follow_changes() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "1").expect("written");
    fs::hard_link(g.path("rw/file"), g.path("ro/file")).expect("linked");
    let first = g.client.stat("0/file").expect("there").qid;
    let other = g.client.stat("1/file").expect("there").qid;
    assert_ne!(
        first.2, other.2,
        "one file in two mounts is two to the guest"
    );
    assert_eq!(g.client.stat("0/file").expect("there").qid, first);
    assert_ne!(first.1, 0, "the guest may cache");
    fs::write(g.path("rw/file"), "2!").expect("written");
    let changed = g.client.stat("0/file").expect("there").qid;
    assert_eq!(changed.2, first.2);
    assert_ne!(changed.1, first.1, "the guest sees that it changed");
    fs::rename(g.path("rw/file"), g.path("rw/moved")).expect("renamed");
    assert_eq!(g.client.stat("0/moved").expect("there").qid.2, first.2);
}

#[test]
fn times_are_set_left_and_taken_from_the_clock() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "x").expect("written");
    let set = Set {
        valid: ATIME | MTIME | GIVEN,
        atime: (1_000_000_001, 5),
        mtime: (2_000_000_002, 999_999_999),
        ..Set::default()
    };
    assert_eq!(g.client.set("0/file", set), Ok(()));
    let host = fs::metadata(g.path("rw/file")).expect("there");
    assert_eq!((host.atime(), host.atime_nsec()), (1_000_000_001, 5));
    assert_eq!(
        (host.mtime(), host.mtime_nsec()),
        (2_000_000_002, 999_999_999)
    );
    let now = Set {
        valid: MTIME,
        ..Set::default()
    };
    assert_eq!(g.client.set("0/file", now), Ok(()));
    let host = fs::metadata(g.path("rw/file")).expect("there");
    assert_eq!(host.atime(), 1_000_000_001, "left as it was");
    let age = host
        .modified()
        .expect("a time")
        .elapsed()
        .unwrap_or_default();
    assert!(age.as_secs() < 60, "{age:?}");
    let wrong = Set {
        mtime: (0, 1_000_000_000),
        ..set
    };
    assert_eq!(g.client.set("0/file", wrong), Err(Errno::INVAL));
    // A link has separate times.
    symlink("file", g.path("rw/link")).expect("linked");
    assert_eq!(g.client.set("0/link", set), Ok(()));
    let link = fs::symlink_metadata(g.path("rw/link")).expect("there");
    assert_eq!(link.mtime(), 2_000_000_002);
    assert_ne!(
        fs::metadata(g.path("rw/file")).expect("there").mtime(),
        2_000_000_002
    );
}

/// Also for a server of the host's root, who could change them.
#[test]
fn owners_are_not_changed() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "x").expect("written");
    let before = fs::metadata(g.path("rw/file")).expect("there");
    let change = |valid, uid| Set {
        valid,
        uid,
        gid: uid,
        ..Set::default()
    };
    for same in [1000, 0] {
        let set = g.client.set("0/file", change(2 | 4, same));
        assert_eq!(set, Ok(()), "they are");
    }
    for (valid, uid) in [(2, 1234), (4, 1234), (2 | 4, 1234), (2, u32::MAX)] {
        let changed = g.client.set("0/file", change(valid, uid));
        assert_eq!(changed, Err(Errno::PERM), "{valid} {uid}");
    }
    let after = fs::metadata(g.path("rw/file")).expect("there");
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_eq!(after.ctime_nsec(), before.ctime_nsec());
}

#[test]
fn sparse_and_large_files_keep_their_holes() {
    let mut g = Fixture::new();
    let fid = g
        .client
        .create("0", "sparse", RDWR, 0o644)
        .expect("created");
    let host = File::create(g.path("host/sparse")).expect("created");
    let far = 5 << 30;
    assert_eq!(g.client.write(fid, far, b"end"), Ok(3));
    host.write_all_at(b"end", far).expect("written");
    let attr = g.client.getattr(fid).expect("there");
    let host = host.metadata().expect("there");
    assert_eq!((attr.size, attr.blocks), (host.size(), host.blocks()));
    assert!(attr.blocks < 100, "a hole takes no room");
    assert_eq!(g.client.read(fid, far - 2, 9), Ok(b"\0\0end".to_vec()));
    assert_eq!(g.client.read(fid, u64::MAX - 1, 9), Err(Errno::INVAL));
    assert_eq!(
        g.client.write(fid, i64::MAX as u64, b"x"),
        Err(Errno::INVAL)
    );
    let big: Vec<u8> = (0..4_000_000u32).flat_map(|i| [(i >> 3) as u8]).collect();
    let fid = g.client.create("0", "large", RDWR, 0o644).expect("created");
    for (number, part) in big.chunks(500_000).enumerate() {
        let at = number as u64 * 500_000;
        assert_eq!(g.client.write(fid, at, part), Ok(part.len() as u32));
    }
    assert_eq!(fs::read(g.path("rw/large")).expect("there"), big);
    let mut read = Vec::new();
    loop {
        let part = g
            .client
            .read(fid, read.len() as u64, u32::MAX)
            .expect("read");
        if part.is_empty() {
            break;
        }
        read.extend(part);
    }
    assert_eq!(read, big);
}

#[test]
fn truncating_cuts_and_extends() {
    let mut g = Fixture::new();
    for path in ["rw/file", "host/file"] {
        fs::write(g.path(path), "0123456789").expect("written");
    }
    let host = File::options()
        .write(true)
        .open(g.path("host/file"))
        .expect("open");
    for size in [4, 4096, 0, 3] {
        assert_eq!(g.client.truncate("0/file", size), Ok(()));
        host.set_len(size).expect("cut");
        let read = |path| fs::read(g.path(path)).expect("there");
        assert_eq!(read("rw/file"), read("host/file"));
    }
    fs::create_dir(g.path("rw/folder")).expect("made");
    assert_eq!(g.client.truncate("0/folder", 0), Err(Errno::ISDIR));
    assert_eq!(g.client.truncate("0/file", u64::MAX), Err(Errno::INVAL));
    // A file open for writing can be truncated regardless of its current mode.
    let fid = g.client.open("0/file", RDWR).expect("open");
    g.client.chmod("0/file", 0).expect("changed");
    let cut = Set {
        valid: 8,
        size: 1,
        ..Set::default()
    };
    assert_eq!(g.client.setattr(fid, cut), Ok(()));
    assert_eq!(g.client.getattr(fid).expect("there").size, 1);
}

#[test]
fn pages_written_back_through_an_appending_file_go_where_they_belong() {
    const APPEND: u32 = 0o2000;
    let mut g = Fixture::new();
    fs::write(g.path("rw/log"), "0123").expect("written");
    let fid = g.client.open("0/log", WRONLY | APPEND).expect("open");
    assert_eq!(g.client.write(fid, 4, b"end"), Ok(3));
    assert_eq!(g.client.write(fid, 0, b"page"), Ok(4));
    assert_eq!(fs::read(g.path("rw/log")).expect("there"), b"pageend");
}

#[test]
fn names_move_as_on_the_host() {
    let mut g = Fixture::new();
    for base in ["rw", "host"] {
        for folder in ["a", "b", "full/x"] {
            fs::create_dir_all(g.path(&format!("{base}/{folder}"))).expect("made");
        }
        fs::write(g.path(&format!("{base}/a/file")), "content").expect("written");
        fs::write(g.path(&format!("{base}/other")), "other").expect("written");
    }
    let moves = [
        (("a", "file"), ("b", "moved")),
        (("b", "moved"), ("", "other")),
        (("", "a"), ("b", "a")),
        (("", "b"), ("b/a", "inside itself")),
        (("", "b"), ("", "full")),
        (("", "other"), ("", "full")),
        (("", "full"), ("", "other")),
        (("", "none"), ("", "other")),
        (("b", "a"), ("full", "x")),
    ];
    for (from, to) in moves {
        let place = |(folder, name): (&str, &str)| g.path(&format!("host/{folder}/{name}"));
        let host = fs::rename(place(from), place(to)).map_err(|error| error.raw_os_error());
        let (old, new) = (format!("0/{}", from.0), format!("0/{}", to.0));
        let guest = g.client.rename((&old, from.1), (&new, to.1));
        assert_eq!(
            guest.map_err(|errno| Some(errno.raw_os_error())),
            host,
            "{from:?} {to:?}"
        );
    }
    assert_eq!(fs::read(g.path("rw/other")).expect("moved"), b"content");
    assert!(g.path("rw/full/x").is_dir() && !g.path("rw/b/a").exists());
}

#[test]
fn fids_survive_renames_and_removals() {
    let mut g = Fixture::new();
    fs::create_dir(g.path("rw/folder")).expect("made");
    let fid = g
        .client
        .create("0/folder", "file", RDWR, 0o644)
        .expect("created");
    let dir = g.client.walk("0/folder").expect("there");
    g.client
        .rename(("0", "folder"), ("0", "renamed"))
        .expect("renamed");
    assert!(g.client.walk_from(dir, &["file"]).is_ok());
    fs::rename(g.path("rw/renamed"), g.path("rw/by host")).expect("renamed");
    assert!(g.client.walk_from(dir, &["file"]).is_ok());
    assert_eq!(g.client.unlink("0/by host", "file", 0), Ok(()));
    assert_eq!(g.client.walk("0/by host/file"), Err(Errno::NOENT));
    assert_eq!(g.client.write(fid, 0, b"still"), Ok(5));
    assert_eq!(g.client.read(fid, 0, 9), Ok(b"still".to_vec()));
    let attr = g.client.getattr(fid).expect("still there");
    assert_eq!((attr.nlink, attr.size), (0, 5));
    assert_eq!(g.client.clunk(fid), Ok(()));
    assert_eq!(g.client.getattr(fid), Err(Errno::BADF));
}

#[test]
fn the_older_requests_rename_and_remove_by_fid() {
    let mut g = Fixture::new();
    fs::create_dir(g.path("rw/folder")).expect("made");
    fs::write(g.path("rw/file"), "x").expect("written");
    let (file, dir) = (g.client.walk("0/file"), g.client.walk("0/folder"));
    let (file, dir) = (file.expect("there"), dir.expect("there"));
    let request = Request::default().u32(file).u32(dir).string("moved");
    g.client.ask(20, request).expect("renamed");
    assert!(g.path("rw/folder/moved").is_file());
    let remove = |client: &mut super::client::Client, fid| {
        client.ask(122, Request::default().u32(fid)).map(drop)
    };
    let full = g.client.walk("0/folder").expect("there");
    assert_eq!(remove(&mut g.client, full), Err(Errno::NOTEMPTY));
    assert_eq!(
        g.client.getattr(full),
        Err(Errno::BADF),
        "forgotten in any case"
    );
    assert_eq!(remove(&mut g.client, file), Ok(()));
    assert_eq!(remove(&mut g.client, dir), Ok(()));
    assert!(!g.path("rw/folder").exists());
    let root = g.client.walk("0").expect("there");
    assert_eq!(remove(&mut g.client, root), Err(Errno::BUSY));
}

#[test]
fn entries_are_made_and_removed_as_on_the_host() {
    let mut g = Fixture::new();
    assert_eq!(g.client.symlink("0", "link", "../any/where"), Ok(()));
    assert_eq!(g.client.symlink("0", "link", "x"), Err(Errno::EXIST));
    assert_eq!(g.client.readlink("0/link"), Ok(b"../any/where".to_vec()));
    let target = fs::read_link(g.path("rw/link")).expect("a link");
    assert_eq!(target.to_str(), Some("../any/where"));
    assert_eq!(g.client.mknod("0", "file", 0o100_640), Ok(()));
    let made = fs::metadata(g.path("rw/file")).expect("there");
    assert_eq!(made.mode(), 0o100_640);
    assert_eq!(g.client.link("0/file", "0", "second"), Ok(()));
    assert_eq!(
        fs::metadata(g.path("rw/second")).expect("there").ino(),
        made.ino()
    );
    assert_eq!(g.client.link("0/link", "0", "link2"), Ok(()));
    assert!(
        fs::symlink_metadata(g.path("rw/link2"))
            .expect("there")
            .is_symlink()
    );
    assert_eq!(g.client.mkdir("0", "folder", 0o755), Ok(()));
    assert_eq!(g.client.mkdir("0", "folder", 0o755), Err(Errno::EXIST));
    assert_eq!(g.client.link("0/folder", "0", "no"), Err(Errno::PERM));
    assert_eq!(g.client.unlink("0", "folder", 0), Err(Errno::ISDIR));
    assert_eq!(g.client.unlink("0", "file", 0x200), Err(Errno::NOTDIR));
    assert_eq!(g.client.unlink("0", "folder", 0x200), Ok(()));
    for name in ["file", "second", "link", "link2"] {
        assert_eq!(g.client.unlink("0", name, 0), Ok(()), "{name}");
    }
    assert_eq!(fs::read_dir(g.path("rw")).expect("there").count(), 0);
}

#[test]
fn file_systems_tell_the_truth() {
    let mut g = Fixture::new();
    let fid = g.client.walk("0").expect("there");
    let mut b = g
        .client
        .ask(8, Request::default().u32(fid))
        .expect("statfs");
    let host = statvfs(g.path("rw")).expect("statvfs");
    assert_eq!(b.u32(), 0x0102_1997);
    assert_eq!(u64::from(b.u32()), host.f_frsize);
    assert_eq!(b.u64(), host.f_blocks);
    // Other processes write to the disk meanwhile.
    let (free, available) = (b.u64(), b.u64());
    assert!(free.abs_diff(host.f_bfree) < host.f_blocks / 20);
    // No more than the guest's budget.
    let budget = Budget::default().bytes / host.f_frsize;
    let most = host.f_bavail.min(budget);
    assert!(available.abs_diff(most) < host.f_blocks / 20 && available <= budget);
    assert_eq!(b.u64(), host.f_files);
    assert!(b.u64().abs_diff(host.f_ffree) < host.f_files / 20);
    assert_eq!(b.u64(), host.f_fsid);
    assert_eq!(u64::from(b.u32()), host.f_namemax);
    // `df` finds the root of all mounts for any of them.
    let mut root = g.client.ask(8, Request::default().u32(0)).expect("statfs");
    root.u32();
    assert_eq!(u64::from(root.u32()), host.f_frsize);
    assert_eq!(root.u64(), host.f_blocks);
}

#[test]
fn user_attributes_are_the_hosts() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "x").expect("written");
    let path = g.path("rw/file");
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&path, "user.probe", b"1", flags) == Err(Errno::OPNOTSUPP) {
        let refused = g.client.setxattr("0/file", "user.a", b"value", 0);
        assert_eq!(refused, Err(Errno::OPNOTSUPP));
        return;
    }
    assert_eq!(g.client.setxattr("0/file", "user.a", b"value", 0), Ok(()));
    let mut value = [0; 20];
    let host = rustix::fs::getxattr(&path, "user.a", &mut value);
    assert_eq!((host, &value[..5]), (Ok(5), &b"value"[..]));
    assert_eq!(g.client.getxattr("0/file", "user.a"), Ok(b"value".to_vec()));
    assert_eq!(g.client.getxattr("0/file", "user.none"), Err(Errno::NODATA));
    let names = g.client.getxattr("0/file", "").expect("names");
    let mut names: Vec<_> = names.split(|byte| *byte == 0).collect();
    names.sort();
    assert_eq!(names, [&b""[..], b"user.a", b"user.probe"]);
    let exists = g.client.setxattr("0/file", "user.a", b"new", 1);
    assert_eq!(exists, Err(Errno::EXIST));
    let removed = g.client.setxattr("0/file", "user.a", b"", 2);
    assert_eq!(removed, Ok(()));
    assert_eq!(g.client.getxattr("0/file", "user.a"), Err(Errno::NODATA));
    let open = openat(CWD, &path, OFlags::RDONLY, Mode::empty());
    assert!(open.is_ok());
}

#[test]
fn walks_go_as_far_as_they_can() {
    let mut g = Fixture::new();
    fs::create_dir_all(g.path("rw/a/b")).expect("made");
    let walk = |client: &mut super::client::Client, fid: u32, names: &[&str]| {
        let count = names.len() as u16;
        let mut request = Request::default().u32(0).u32(fid).u16(count);
        for name in names {
            request = request.string(name);
        }
        client.ask(110, request).map(|mut body| body.u16())
    };
    assert_eq!(walk(&mut g.client, 50, &["0", "a", "none", "x"]), Ok(2));
    assert_eq!(g.client.getattr(50), Err(Errno::BADF), "no fid was made");
    assert_eq!(walk(&mut g.client, 50, &["2"]), Err(Errno::NOENT));
    assert_eq!(walk(&mut g.client, 50, &["00"]), Err(Errno::NOENT));
    assert_eq!(walk(&mut g.client, 50, &["0", "a", "b", "..", ".."]), Ok(5));
    assert_eq!(
        g.client.getattr(50).expect("a fid").qid,
        g.client.stat("0").expect("there").qid
    );
    assert_eq!(
        walk(&mut g.client, 50, &[]),
        Err(Errno::BADF),
        "it is taken"
    );
    assert_eq!(walk(&mut g.client, u32::MAX, &[]), Err(Errno::BADF));
    assert_eq!(walk(&mut g.client, 51, &["0"; 17]), Err(Errno::INVAL));
    let permissions = fs::metadata(g.path("rw/a")).expect("there").permissions();
    assert_eq!(
        permissions.mode() & 0o777,
        g.client.stat("0/a").expect("there").mode & 0o777
    );
}

#[test]
fn other_requests_get_an_error_and_flush_an_answer() {
    let mut g = Fixture::new();
    assert!(g.client.ask(108, Request::default().u16(1)).is_ok());
    for kind in [0, 1, 6, 10, 98, 102, 106, 112, 124, 126, 255] {
        let answer = g.client.ask(kind, Request::default().u32(0));
        assert_eq!(answer.err(), Some(Errno::OPNOTSUPP), "{kind}");
    }
    let old = Request::default().u32(9000).string("9P2000.u");
    let mut answer = g.client.ask(100, old).expect("an answer");
    assert_eq!((answer.u32(), answer.string()), (9000, b"unknown".to_vec()));
    assert_eq!(
        g.client.getattr(0),
        Err(Errno::BADF),
        "a version begins anew"
    );
    let small = Request::default().u32(100).string("9P2000.L");
    assert_eq!(g.client.ask(100, small).err(), Some(Errno::MSGSIZE));
}
