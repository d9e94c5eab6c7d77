//! A server's state as data, and another server that continues from it.

use super::client::{Client, Fixture, RDONLY, RDWR, TRUNC, mounts};
use a99_sandbox_p9::{Options, Server, ServerState};
use rustix::io::Errno;
use std::fs;

/// Takes the state as a file would keep it, changes the host, and restores.
fn again(g: &mut Fixture, meanwhile: impl FnOnce(&Fixture)) -> Client {
    let state = serde_json::to_vec(&g.client.server.state()).expect("JSON");
    // The first server's locks end with it.
    let empty = Server::new(Vec::new(), Options::default()).expect("a server");
    drop(std::mem::replace(&mut g.client.server, empty));
    meanwhile(g);
    let state: ServerState = serde_json::from_slice(&state).expect("JSON");
    let server = Server::restore(mounts(g.folder.path()), Options::default(), &state);
    Client::resume(server.expect("restored"))
}

#[test]
fn files_are_found_again_or_stale() {
    let mut g = Fixture::new();
    fs::create_dir(g.path("rw/folder")).expect("made");
    for name in ["kept", "replaced", "removed", "moved"] {
        fs::write(g.path(&format!("rw/folder/{name}")), name).expect("written");
    }
    let folder = g.client.walk("0/folder").expect("there");
    let mut open = |name: &str| {
        g.client
            .open(&format!("0/folder/{name}"), RDWR)
            .expect("open")
    };
    let (kept, replaced, removed, moved) = (
        open("kept"),
        open("replaced"),
        open("removed"),
        open("moved"),
    );
    let cut = g
        .client
        .create("0", "cut", RDWR | TRUNC, 0o644)
        .expect("created");
    g.client.write(cut, 0, b"data").expect("written");
    let orphan = g
        .client
        .create("0", "orphan", RDWR, 0o644)
        .expect("created");
    g.client.unlink("0", "orphan", 0).expect("removed");
    // A file renamed before the snapshot is found by its new name.
    g.client
        .rename(("0/folder", "moved"), ("0", "new name"))
        .expect("renamed");
    let mut client = again(&mut g, |g| {
        fs::write(g.path("rw/other"), "other").expect("written");
        fs::rename(g.path("rw/other"), g.path("rw/folder/replaced")).expect("renamed");
        fs::remove_file(g.path("rw/folder/removed")).expect("removed");
    });
    assert_eq!(client.read(kept, 0, 20), Ok(b"kept".to_vec()));
    assert_eq!(client.write(kept, 0, b"K"), Ok(1));
    assert_eq!(client.read(moved, 0, 20), Ok(b"moved".to_vec()));
    assert_eq!(
        client.read(cut, 0, 20),
        Ok(b"data".to_vec()),
        "not cut again"
    );
    for stale in [replaced, removed, orphan] {
        assert_eq!(client.read(stale, 0, 20), Err(Errno::STALE));
        assert_eq!(client.getattr(stale).err(), Some(Errno::STALE));
        assert_eq!(client.clunk(stale), Ok(()));
    }
    assert!(client.walk_from(folder, &["kept"]).is_ok());
    assert!(client.walk("0/folder").is_ok(), "the root is a fid, too");
}

#[test]
fn locks_are_taken_again_or_their_files_are_stale() {
    let mut g = Fixture::new();
    for name in ["held", "lost", "gone"] {
        fs::write(g.path(&format!("rw/{name}")), name).expect("written");
    }
    let held = g.client.open("0/held", RDWR).expect("open");
    let lost = g.client.open("0/lost", RDWR).expect("open");
    let gone = g.client.open("0/gone", RDWR).expect("open");
    for fid in [held, lost, gone] {
        assert_eq!(g.client.lock(fid, 1, (0, 0), 7), Ok(0));
    }
    let other = fs::File::options()
        .write(true)
        .open(g.path("rw/lost"))
        .expect("open");
    let mut client = again(&mut g, |g| {
        fs::remove_file(g.path("rw/gone")).expect("removed");
        let flock = nix::libc::flock {
            l_type: nix::libc::F_WRLCK as nix::libc::c_short,
            l_whence: 0,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        let lock = nix::fcntl::FcntlArg::F_OFD_SETLK(&flock);
        nix::fcntl::fcntl(&other, lock).expect("free");
    });
    assert_eq!(client.read(held, 0, 9), Ok(b"held".to_vec()));
    assert_eq!(client.read(lost, 0, 9), Err(Errno::STALE));
    assert_eq!(client.read(gone, 0, 9), Err(Errno::STALE), "still a fid");
    assert_eq!(client.server.state().locks.len(), 1);
}

#[test]
fn a_state_that_was_made_up_gives_nothing_away() {
    let mut g = Fixture::new();
    fs::write(g.path("host/secret"), "secret").expect("written");
    fs::write(g.path("ro/file"), "content").expect("written");
    let fid = g.client.open("1/file", RDONLY).expect("open");
    let secret =
        std::os::unix::fs::MetadataExt::ino(&fs::metadata(g.path("host/secret")).expect("there"));
    let text = serde_json::to_value(g.client.server.state()).expect("JSON");
    let restore = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut text = text.clone();
        let fids = text["fids"].as_array_mut().expect("fids");
        let file = fids
            .iter_mut()
            .find(|saved| saved["fid"] == fid)
            .expect("saved");
        change(&mut file["kind"]["File"]);
        let state: ServerState = serde_json::from_value(text).expect("a state");
        let server = Server::restore(mounts(g.folder.path()), Options::default(), &state);
        Client::resume(server.expect("restored"))
    };
    let mut same = restore(&|_| {});
    assert_eq!(same.read(fid, 0, 20), Ok(b"content".to_vec()));
    let mut writing = restore(&|file| file["open"] = 2.into());
    assert_eq!(writing.write(fid, 0, b"x"), Err(Errno::STALE));
    for path in ["../host/secret", "/etc/passwd", "./../host/secret"] {
        let mut out = restore(&|file| {
            file["path"] = path.as_bytes().into();
            file["identity"]["ino"] = secret.into();
        });
        assert_eq!(out.read(fid, 0, 20), Err(Errno::STALE), "{path}");
    }
    let mut elsewhere = restore(&|file| file["mount"] = b"/none".to_vec().into());
    assert_eq!(elsewhere.read(fid, 0, 20), Err(Errno::STALE));
}
