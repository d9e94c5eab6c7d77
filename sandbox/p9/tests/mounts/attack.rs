//! Escape attempts: to leave a mount, and to write protected files.

use super::client::{Client, Fid, Fixture, RDONLY, RDWR, Request, Set, TRUNC, WRONLY, mounts};
use a99_sandbox_p9::{GitWrites, Mount, MountMode, Options, Server};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Walks these names, any of which may be refused.
fn walked(client: &mut Client, fid: Fid, names: &[&str]) -> Option<Fid> {
    client.walk_from(fid, names).ok()
}

#[test]
fn s06_dot_dot_ends_at_the_root() {
    let mut g = Fixture::new();
    fs::create_dir(g.path("rw/a")).expect("made");
    let root = g.client.stat("").expect("the root").qid;
    for path in [
        "..",
        "../..",
        "0/..",
        "0/../..",
        "0/a/../../..",
        "0/a/../..",
    ] {
        let attr = g.client.stat(path).expect("a way");
        assert_eq!(attr.qid, root, "{path}");
    }
    assert_eq!(g.client.walk("0/../host"), Err(Errno::NOENT));
    let dir = g.client.walk("0").expect("there");
    for name in [
        "../host",
        "a/../../host",
        "/etc/passwd",
        "/",
        "a\0b",
        ".",
        "",
    ] {
        assert_eq!(walked(&mut g.client, dir, &[name]), None, "{name:?}");
    }
    // A folder that the host moves out of the mount leads no further up.
    let inner = g.client.walk("0/a").expect("there");
    fs::rename(g.path("rw/a"), g.path("host/a")).expect("moved");
    assert_eq!(walked(&mut g.client, inner, &[".."]), None);
}

#[test]
fn s06_links_are_not_followed() {
    let mut g = Fixture::new();
    fs::write(g.path("host/secret"), "secret").expect("written");
    symlink(g.path("host"), g.path("rw/absolute")).expect("linked");
    symlink("../host", g.path("rw/relative")).expect("linked");
    symlink("../host/secret", g.path("rw/file")).expect("linked");
    symlink("/proc/self/root", g.path("rw/magic")).expect("linked");
    for link in ["absolute", "relative", "magic"] {
        assert_eq!(
            g.client.walk(&format!("0/{link}/secret")),
            Err(Errno::NOTDIR)
        );
        assert_eq!(
            g.client.create(&format!("0/{link}"), "new", RDWR, 0o644),
            Err(Errno::NOTDIR)
        );
        assert_eq!(
            g.client.mkdir(&format!("0/{link}"), "new", 0o755),
            Err(Errno::NOTDIR)
        );
    }
    let open = g.client.open("0/file", RDONLY);
    assert_eq!(open, Err(Errno::LOOP));
    assert_eq!(g.client.open("0/file", WRONLY | TRUNC), Err(Errno::LOOP));
    assert_eq!(g.client.truncate("0/file", 0), Err(Errno::INVAL));
    assert_eq!(g.client.link("0/file", "0", "second"), Ok(()));
    assert!(
        fs::symlink_metadata(g.path("rw/second"))
            .expect("there")
            .is_symlink()
    );
    assert_eq!(fs::read(g.path("host/secret")).expect("there"), b"secret");
    assert_eq!(fs::read_dir(g.path("host")).expect("there").count(), 1);
}

/// The host, or another guest, swaps a folder for a link and back while the guest opens a
/// file below it.
#[test]
fn s06_a_swap_of_folder_and_link_is_no_way_out() {
    let mut g = Fixture::new();
    fs::create_dir(g.path("rw/real")).expect("made");
    fs::write(g.path("rw/real/file"), "inside").expect("written");
    fs::write(g.path("host/file"), "secret").expect("written");
    symlink(g.path("host"), g.path("rw/link")).expect("linked");
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let folder = g.folder.path().join("rw");
        let stop = &stop;
        scope.spawn(move || {
            let swap = |from: &str, to: &str| {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, folder.join(from), CWD, folder.join(to), flags)
            };
            while !stop.load(Ordering::Relaxed) {
                swap("real", "link").expect("swapped");
            }
        });
        for _ in 0..4000 {
            match g.client.open("0/real/file", RDONLY) {
                Ok(fid) => {
                    assert_eq!(g.client.read(fid, 0, 20), Ok(b"inside".to_vec()));
                    g.client.clunk(fid).expect("closed");
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(
        inside > 0 && refused > 0,
        "{inside} {refused}: the race was run"
    );
}

#[test]
fn s06_nothing_is_moved_or_linked_between_mounts() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["one", "two"] {
        fs::create_dir(folder.path().join(name)).expect("made");
    }
    fs::write(folder.path().join("one/file"), "x").expect("written");
    let mount = |name| Mount::new(name, folder.path().join(name), MountMode::ReadWrite);
    let server = Server::new(vec![mount("one"), mount("two")], Options::default());
    let mut client = Client::new(server.expect("shared"));
    assert_eq!(
        client.rename(("0", "file"), ("1", "file")),
        Err(Errno::XDEV)
    );
    assert_eq!(client.link("0/file", "1", "file"), Err(Errno::XDEV));
    let (file, dir) = (
        client.walk("0/file").expect("a fid"),
        client.walk("1").expect("a fid"),
    );
    let request = Request::default().u32(file).u32(dir).string("file");
    assert_eq!(client.ask(20, request).err(), Some(Errno::XDEV));
    assert_eq!(
        fs::read_dir(folder.path().join("two"))
            .expect("there")
            .count(),
        0
    );
}

#[test]
fn s06_the_kernels_interfaces_are_no_files() {
    // The whole host, writable, as a careless user might share it.
    let mount = Mount::new("/host", "/", MountMode::ReadWrite);
    let mut client = Client::new(Server::new(vec![mount], Options::default()).expect("shared"));
    for path in ["0/proc", "0/sys", "0/dev/pts"] {
        if Path::new(&path[1..]).exists() {
            assert_eq!(client.walk(path), Err(Errno::ACCESS), "{path}");
        }
    }
    assert_eq!(
        client.open("0/dev/null", RDONLY),
        Err(Errno::PERM),
        "no device is opened"
    );
    assert_eq!(client.open("0/dev/null", RDWR), Err(Errno::PERM));
}

#[test]
fn s06_a_fifo_of_the_host_is_not_opened_and_does_not_block() {
    let mut g = Fixture::new();
    mknodat(CWD, g.path("rw/fifo"), FileType::Fifo, Mode::RWXU, 0).expect("made");
    for flags in [RDONLY, WRONLY, RDWR] {
        assert_eq!(g.client.open("0/fifo", flags), Err(Errno::PERM));
        assert_eq!(g.client.create("0", "fifo", flags, 0o644), Err(Errno::PERM));
    }
    assert_eq!(g.client.truncate("0/fifo", 0), Err(Errno::INVAL));
    assert_eq!(g.client.link("0/fifo", "0", "second"), Err(Errno::PERM));
    assert_eq!(
        g.client.stat("0/fifo").expect("there").mode & 0o170_000,
        0o010_000
    );
}

#[test]
fn s07_a_read_only_mount_stays_as_it_is() {
    for mode in [MountMode::ReadOnly, MountMode::Overlay] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("folder")).expect("made");
        fs::write(path("file"), "content").expect("written");
        let before = fs::metadata(path("file")).expect("there");
        let mount = Mount::new("/x", folder.path(), mode);
        let mut client = Client::new(Server::new(vec![mount], Options::default()).expect("shared"));
        let rofs = Err(Errno::ROFS);
        for flags in [WRONLY, RDWR, RDONLY | TRUNC] {
            assert_eq!(client.open("0/file", flags).map(drop), rofs);
        }
        assert_eq!(client.create("0", "new", RDONLY, 0o644).map(drop), rofs);
        assert_eq!(client.create("0", "file", RDONLY, 0o644).map(drop), rofs);
        assert_eq!(client.mkdir("0", "new", 0o755), rofs);
        assert_eq!(client.symlink("0", "new", "file"), rofs);
        assert_eq!(client.mknod("0", "new", 0o100_644), rofs);
        assert_eq!(client.link("0/file", "0", "new"), rofs);
        assert_eq!(client.rename(("0", "file"), ("0", "new")), rofs);
        assert_eq!(client.unlink("0", "file", 0), rofs);
        assert_eq!(client.unlink("0", "folder", 0x200), rofs);
        assert_eq!(client.chmod("0/file", 0o777), rofs);
        assert_eq!(client.truncate("0/file", 0), rofs);
        assert_eq!(client.setxattr("0/file", "user.a", b"x", 0), rofs);
        for valid in [2, 4, 0x10, 0x20, 0x40, 0x1ff] {
            let set = Set {
                valid,
                ..Set::default()
            };
            assert_eq!(client.set("0/file", set), rofs);
        }
        let file = client.walk("0/file").expect("there");
        assert_eq!(
            client.ask(122, Request::default().u32(file)).map(drop),
            rofs
        );
        let open = client.open("0/file", RDONLY).expect("reading is allowed");
        assert_eq!(client.write(open, 0, b"x"), Err(Errno::BADF));
        assert_eq!(client.read(open, 0, 20), Ok(b"content".to_vec()));
        let after = fs::metadata(path("file")).expect("there");
        assert_eq!(
            (after.ctime(), after.ctime_nsec()),
            (before.ctime(), before.ctime_nsec())
        );
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 2);
    }
}

#[test]
fn s07_no_devices_fifos_or_sockets_are_made() {
    let mut g = Fixture::new();
    for kind in [
        0o010_000, 0o020_000, 0o060_000, 0o140_000, 0o120_000, 0o040_000,
    ] {
        assert_eq!(g.client.mknod("0", "x", kind | 0o666), Err(Errno::PERM));
    }
    assert_eq!(fs::read_dir(g.path("rw")).expect("there").count(), 0);
}

#[test]
fn s07_setuid_and_setgid_are_not_given() {
    let mut g = Fixture::new();
    g.client.create("0", "file", RDWR, 0o6755).expect("created");
    g.client.mkdir("0", "folder", 0o6755).expect("made");
    g.client.mknod("0", "node", 0o106_755).expect("made");
    for name in ["file", "folder", "node"] {
        let path = format!("0/{name}");
        assert_eq!(g.client.chmod(&path, 0o4755), Err(Errno::PERM));
        assert_eq!(g.client.chmod(&path, 0o2755), Err(Errno::PERM));
        let mode = fs::metadata(g.path(&format!("rw/{name}")))
            .expect("there")
            .mode();
        assert_eq!(mode & 0o7777, 0o755, "{name}");
    }
    // A guest may disarm a setuid file that the host made, but not write to it.
    fs::set_permissions(g.path("rw/file"), fs::Permissions::from_mode(0o4755)).expect("set");
    assert_eq!(g.client.open("0/file", WRONLY), Err(Errno::PERM));
    assert_eq!(g.client.open("0/file", RDONLY | TRUNC), Err(Errno::PERM));
    assert_eq!(g.client.truncate("0/file", 5), Err(Errno::PERM));
    assert_eq!(g.client.chmod("0/file", 0o755), Ok(()));
    assert!(g.client.open("0/file", WRONLY).is_ok());
}

#[test]
fn s07_only_user_attributes_are_reached() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "x").expect("written");
    for name in [
        "security.capability",
        "trusted.overlay.opaque",
        "system.posix_acl_access",
        "User.a",
        "a",
    ] {
        let refused = Err(Errno::OPNOTSUPP);
        assert_eq!(
            g.client.setxattr("0/file", name, b"x", 0),
            refused,
            "{name}"
        );
        assert_eq!(
            g.client.getxattr("0/file", name).map(drop),
            refused,
            "{name}"
        );
    }
    let long = format!("user.{}", "x".repeat(300));
    assert_eq!(
        g.client.setxattr("0/file", &long, b"x", 0),
        Err(Errno::RANGE)
    );
    let fid = g.client.walk("0/file").expect("there");
    let request = Request::default().u32(fid).string("user.a");
    let huge = g.client.ask(32, request.u64(1 << 40).u32(0));
    assert_eq!(huge.err(), Some(Errno::TOOBIG));
}

/// A repository, and the parts of it that a guest must not write.
fn repository(folder: &Path) {
    for made in [
        ".git/hooks",
        ".git/modules/m/hooks",
        ".git/modules/m/objects",
        ".git/modules/m/refs",
        ".git/objects",
        ".git/refs",
        "plain/hooks",
    ] {
        fs::create_dir_all(folder.join(made)).expect("made");
    }
    for path in [
        ".git/config",
        ".git/index",
        ".git/modules/m/config",
        ".git/modules/m/HEAD",
        ".git/hooks/pre-commit",
        "plain/config",
    ] {
        fs::write(folder.join(path), "host's").expect("written");
    }
}

#[test]
fn s07_what_the_hosts_git_runs_is_not_written() {
    let mut g = Fixture::new();
    repository(&g.path("rw"));
    let perm = Err(Errno::PERM);
    let protected = [
        (".git", "config"),
        (".git/hooks", "pre-commit"),
        (".git/modules/m", "config"),
    ];
    for (folder, name) in protected {
        let (folder, path) = (format!("0/{folder}"), format!("0/{folder}/{name}"));
        assert!(g.client.open(&path, RDONLY).is_ok(), "{path} can be read");
        for flags in [WRONLY, RDWR, RDONLY | TRUNC] {
            assert_eq!(g.client.open(&path, flags).map(drop), perm, "{path}");
        }
        assert_eq!(g.client.create(&folder, name, RDWR, 0o644).map(drop), perm);
        assert_eq!(g.client.truncate(&path, 0), perm);
        assert_eq!(g.client.chmod(&path, 0o755), perm);
        assert_eq!(g.client.setxattr(&path, "user.a", b"x", 0), perm);
        assert_eq!(g.client.unlink(&folder, name, 0), perm);
        assert_eq!(g.client.rename((&folder, name), ("0", "away")), perm);
        assert_eq!(
            g.client.rename(("0/plain", "config"), (&folder, name)),
            perm
        );
        assert_eq!(g.client.link(&path, "0", "alias"), perm);
        let fid = g.client.walk(&path).expect("there");
        assert_eq!(
            g.client.ask(122, Request::default().u32(fid)).map(drop),
            perm
        );
    }
    for name in ["hooks", "HOOKS", "Config", "config.worktree", "commondir"] {
        assert_eq!(g.client.mkdir("0/.git", name, 0o755), perm, "{name}");
        assert_eq!(g.client.symlink("0/.git", name, "../plain/hooks"), perm);
        assert_eq!(g.client.mknod("0/.git", name, 0o100_644), perm);
    }
    assert_eq!(
        g.client
            .create("0/.git/hooks", "post-commit", RDWR, 0o755)
            .map(drop),
        perm
    );
    // The guest's git may write the rest of the repository.
    assert!(g.client.open("0/.git/index", RDWR).is_ok());
    g.client
        .create("0/.git", "index.lock", RDWR, 0o644)
        .expect("created");
    assert_eq!(
        g.client
            .rename(("0/.git", "index.lock"), ("0/.git", "index")),
        Ok(())
    );
    assert!(g.client.open("0/plain/config", RDWR).is_ok());
}

#[test]
fn s07_no_rename_of_a_folder_opens_a_repository() {
    let mut g = Fixture::new();
    repository(&g.path("rw"));
    let perm = Err(Errno::PERM);
    assert_eq!(g.client.rename(("0", ".git"), ("0", "unprotected")), perm);
    assert_eq!(g.client.rename(("0/.git/modules", "m"), ("0", "m")), perm);
    assert_eq!(g.client.rename(("0/.git", "modules"), ("0", "m")), perm);
    assert_eq!(g.client.rename(("0", "plain"), ("0/.git", "modules")), perm);
    assert_eq!(
        g.client.rename(("0/plain", "hooks"), ("0/.git", "hooks")),
        perm
    );
    assert_eq!(g.client.mkdir("0", "project", 0o755), Ok(()));
    assert_eq!(g.client.rename(("0", "plain"), ("0/project", ".git")), perm);
    assert_eq!(g.client.rename(("0", "plain"), ("0/project", ".GIT")), perm);
    assert_eq!(
        g.client
            .rename(("0/plain", "config"), ("0/project", ".git")),
        perm
    );
    assert_eq!(
        g.client.create("0/project", ".git", RDWR, 0o644).map(drop),
        perm
    );
    assert_eq!(g.client.symlink("0/project", ".git", "../plain"), perm);
    assert_eq!(g.client.link("0/plain/config", "0/project", ".git"), perm);
    assert_eq!(g.client.symlink("0/.git", "worktrees", "../plain"), perm);
    assert_eq!(g.client.symlink("0", "x", "plain"), Ok(()));
    assert_eq!(g.client.rename(("0", "x"), ("0/.git", "worktrees")), perm);
    assert_eq!(g.client.link("0/x", "0/.git", "worktrees"), perm);
    // The guest can make no repository; the settings of one that the host makes are
    // protected too.
    assert_eq!(g.client.mkdir("0/project", ".git", 0o755), perm);
    fs::create_dir(g.path("rw/project/.git")).expect("made");
    assert_eq!(
        g.client
            .create("0/project/.git", "config", RDWR, 0o644)
            .map(drop),
        perm
    );
    // Names of folders above change nothing.
    assert_eq!(g.client.rename(("0", "project"), ("0", "renamed")), Ok(()));
    assert_eq!(
        g.client
            .create("0/renamed/.git", "config", RDWR, 0o644)
            .map(drop),
        perm
    );
}

#[test]
fn s07_a_mount_inside_a_repository_is_no_way_around() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let mount = |path: &str, git| Mount {
        git,
        ..Mount::new(path, folder.path().join(path), MountMode::ReadWrite)
    };
    let named = GitWrites::Named(vec![".git/config".into()]);
    let mounts = vec![
        mount(".git", GitWrites::Refused),
        mount(".git/hooks", GitWrites::Refused),
        mount("", named),
        mount("", GitWrites::Allowed),
    ];
    let mut client = Client::new(Server::new(mounts, Options::default()).expect("shared"));
    assert_eq!(client.open("0/config", RDWR), Err(Errno::PERM));
    assert_eq!(
        client.create("1", "post-commit", RDWR, 0o755),
        Err(Errno::PERM)
    );
    assert_eq!(client.open("1/pre-commit", RDWR), Err(Errno::PERM));
    assert!(client.open("2/.git/config", RDWR).is_ok(), "it was named");
    assert_eq!(
        client.open("2/.git/hooks/pre-commit", RDWR),
        Err(Errno::PERM)
    );
    assert!(client.open("3/.git/hooks/pre-commit", RDWR).is_ok());
    assert_eq!(client.rename(("3", ".git"), ("3", "git")), Ok(()));
}

#[test]
fn messages_of_all_lengths_get_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["rw", "ro"] {
        fs::create_dir(folder.path().join(name)).expect("made");
    }
    let mut server = Server::new(mounts(folder.path()), Options::default()).expect("shared");
    let mut reply = Vec::new();
    let mut expect = |bytes: &[u8], errno: Errno| {
        server.answer(bytes, &mut reply);
        assert_eq!(reply[..5], [11, 0, 0, 0, 7]);
        let found = u32::from_le_bytes([reply[7], reply[8], reply[9], reply[10]]);
        assert_eq!(found, errno.raw_os_error() as u32, "{bytes:?}");
    };
    for len in 0..7 {
        expect(&vec![7; len], Errno::PROTO);
    }
    expect(&[8, 0, 0, 0, 120, 0, 0], Errno::PROTO);
    // Each request, truncated at each byte.
    for kind in (8..=126).step_by(2) {
        for len in 7..40u8 {
            let mut bytes = vec![0xff; usize::from(len)];
            bytes[..7].copy_from_slice(&[len, 0, 0, 0, kind, 1, 0]);
            server_survives(&bytes, folder.path());
        }
    }
    let mut long = vec![0; (512 << 10) + 1];
    long[..5].copy_from_slice(&[1, 0, 8, 0, 120]);
    expect(&long, Errno::PROTO);
}

/// A new server answers these bytes, and continues.
fn server_survives(bytes: &[u8], folder: &Path) {
    let mut server = Server::new(mounts(folder), Options::default()).expect("shared");
    let mut reply = Vec::new();
    server.answer(bytes, &mut reply);
    assert!(reply.len() >= 7);
    assert_eq!(
        Client::new(server).stat("0").map(|attr| attr.qid.0),
        Ok(0x80)
    );
}
