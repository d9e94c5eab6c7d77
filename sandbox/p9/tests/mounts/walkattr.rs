//! The request that only the image's kernel makes: a walk of one name that returns the
//! file's attributes.

use super::client::{Client, Fixture, RDONLY, RDWR, Request, mounts};
use a99_sandbox_p9::{Options, Server, ServerState};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::symlink;

/// Protocol name that the image's kernel uses.
const EXTENDED: &str = "9P2000.L.agent99";

/// A fixture whose client has fid 101 for the writable mount.
fn ground() -> Fixture {
    let mut g = Fixture::new();
    let server = Server::new(mounts(g.folder.path()), Options::default());
    g.client = Client::speaking(server.expect("mounts"), EXTENDED);
    g.client.walkattr(0, 101, "0").expect("the mount");
    g
}

#[test]
fn it_is_refused_unless_it_was_agreed() {
    let mut g = Fixture::new();
    let refused = g.client.walkattr(0, 109, "0");
    assert_eq!(refused.err(), Some(Errno::OPNOTSUPP));
    let mut g = ground();
    let again = Request::default().u32(u32::MAX).string("9P2000.L");
    assert!(g.client.ask(100, again).is_ok());
    let refused = g.client.walkattr(0, 109, "0");
    assert_eq!(refused.err(), Some(Errno::OPNOTSUPP));
    for unknown in ["9P2000.L.agent9", "9P2000.L.agent99.more", "9P2000.L."] {
        let version = Request::default().u32(u32::MAX).string(unknown);
        let mut answer = g.client.ask(100, version).expect("an answer");
        answer.u32();
        assert_eq!(answer.string(), b"unknown", "{unknown}");
    }
}

#[test]
fn it_tells_what_walk_and_getattr_tell() {
    let mut g = ground();
    fs::write(g.path("rw/file"), "content").expect("written");
    fs::create_dir(g.path("rw/folder")).expect("made");
    symlink("file", g.path("rw/link")).expect("linked");
    for (new, name) in (110..).zip(["file", "folder", "link"]) {
        let attributes = g.client.walkattr(101, new, name).expect("there");
        assert_eq!(
            attributes,
            g.client.stat(&format!("0/{name}")).expect("there")
        );
        assert_eq!(attributes, g.client.getattr(new).expect("a fid"));
    }
    let root = g.client.walkattr(101, 120, "..").expect("the root");
    assert_eq!(root, g.client.getattr(0).expect("the root"));
    g.client.lopen(110, RDONLY).expect("not open yet");
    assert_eq!(g.client.read(110, 0, 99), Ok(b"content".to_vec()));
}

#[test]
fn a_fid_that_is_not_open_is_taken_over() {
    let mut g = ground();
    fs::write(g.path("rw/one"), "1").expect("written");
    fs::write(g.path("rw/two"), "22").expect("written");
    assert_eq!(g.client.walkattr(101, 102, "one").expect("there").size, 1);
    assert_eq!(g.client.walkattr(101, 102, "two").expect("there").size, 2);
    assert_eq!(g.client.getattr(102).expect("a fid").size, 2);
    assert_eq!(g.client.server.state().fids.len(), 3);
    // Also the fid that it starts from, as in a walk.
    g.client.walkattr(0, 103, "0").expect("there");
    assert_eq!(g.client.walkattr(103, 103, "one").expect("there").size, 1);
    assert_eq!(
        g.client.walkattr(103, 104, "one").err(),
        Some(Errno::NOTDIR)
    );
}

#[test]
fn after_an_error_the_fids_are_as_before() {
    let mut g = ground();
    fs::write(g.path("rw/file"), "content").expect("written");
    g.client.walkattr(101, 102, "file").expect("there");
    let before = g.client.server.state();
    for (fid, new, name, errno) in [
        (101, 102, "missing", Errno::NOENT),
        (101, 105, "missing", Errno::NOENT),
        (101, 102, "", Errno::NOENT),
        (101, 102, "..\0", Errno::NOENT),
        (101, 102, "../ro", Errno::NOENT),
        (102, 102, "file", Errno::NOTDIR),
        (0, 102, "7", Errno::NOENT),
        (77, 2, "file", Errno::BADF),
        (101, u32::MAX, "file", Errno::BADF),
    ] {
        let failed = g.client.walkattr(fid, new, name);
        assert_eq!(failed.err(), Some(errno), "{fid} {new} {name:?}");
    }
    assert_eq!(g.client.server.state(), before);
}

#[test]
fn what_is_open_or_an_attribute_is_not_taken_over() {
    let mut g = ground();
    fs::write(g.path("rw/file"), "content").expect("written");
    g.client.walkattr(101, 102, "file").expect("there");
    g.client.lopen(102, RDWR).expect("opened");
    let taken = g.client.walkattr(101, 102, "file");
    assert_eq!(taken.err(), Some(Errno::BADF));
    assert_eq!(g.client.read(102, 0, 99), Ok(b"content".to_vec()));
    // Attributes that are being written are stored by their clunk.
    g.client.walkattr(101, 103, "file").expect("there");
    let create = Request::default().u32(103).string("user.a").u64(1).u32(0);
    if g.client.ask(32, create).is_ok() {
        let taken = g.client.walkattr(101, 103, "file");
        assert_eq!(taken.err(), Some(Errno::BADF));
    }
}

#[test]
fn there_are_no_more_fids_than_allowed() {
    let mut g = Fixture::new();
    fs::write(g.path("rw/file"), "").expect("written");
    let options = Options {
        max_fids: 3,
        ..Options::default()
    };
    let server = Server::new(mounts(g.folder.path()), options);
    g.client = Client::speaking(server.expect("mounts"), EXTENDED);
    g.client.walkattr(0, 101, "0").expect("the mount");
    g.client.walkattr(101, 102, "file").expect("the last");
    let more = g.client.walkattr(101, 103, "file");
    assert_eq!(more.err(), Some(Errno::MFILE));
    g.client.walkattr(101, 102, "file").expect("no other");
}

#[test]
fn a_restored_server_remembers_what_was_agreed() {
    let g = ground();
    fs::write(g.path("rw/file"), "content").expect("written");
    let plain = Fixture::new().client.server.state();
    let extended = g.client.server.state();
    assert_eq!((plain.extended, extended.extended), (false, true));
    // The format of older snapshots.
    let mut text = serde_json::to_value(&extended).expect("JSON");
    let fields = text.as_object_mut().expect("fields");
    assert!(fields.remove("extended").is_some());
    let old: ServerState = serde_json::from_value(text).expect("a state");
    let restored = |state: &ServerState| {
        let server = Server::restore(mounts(g.folder.path()), Options::default(), state);
        Client::resume(server.expect("restored")).walkattr(101, 109, "file")
    };
    assert_eq!(restored(&extended).expect("there").size, 7);
    assert_eq!(restored(&old).err(), Some(Errno::OPNOTSUPP));
}
