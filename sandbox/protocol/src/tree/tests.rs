use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

/// A folder for one test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("a99-tree-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stream(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    send(path, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_tree_comes_out_as_it_went_in() {
    let scratch = Scratch::new("whole");
    let from = scratch.at("from");
    fs::create_dir_all(from.join("a/b")).unwrap();
    let content: Vec<u8> = (0..100_000u32).map(|n| (n ^ n >> 7) as u8).collect();
    fs::write(from.join("a/data"), &content).unwrap();
    fs::write(from.join("a/b/empty"), "").unwrap();
    fs::write(from.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(from.join("run"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(from.join("a/b"), fs::Permissions::from_mode(0o500)).unwrap();
    symlink("../run", from.join("a/inside")).unwrap();
    symlink("/etc/passwd", from.join("outside")).unwrap();
    let bytes = stream(&from);
    let to = scratch.at("to");
    let copied = receive(&mut &bytes[..], &to, &ReceiveOptions::default()).unwrap();
    assert_eq!(
        copied,
        Copied {
            files: 3,
            folders: 3,
            links: 1,
            bytes: 100_010,
            left_out: 1,
        }
    );
    assert!(fs::read(to.join("a/data")).unwrap() == content);
    assert_eq!(fs::read(to.join("a/b/empty")).unwrap(), b"");
    let mode = |path: &str| fs::metadata(to.join(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("run"), mode("a/b")), (0o751, 0o500));
    let time = |root: &Path| fs::metadata(root.join("a")).unwrap().mtime_nsec();
    assert_eq!(time(&from), time(&to));
    assert_eq!(
        fs::read_link(to.join("a/inside")).unwrap(),
        Path::new("../run")
    );
    assert!(fs::symlink_metadata(to.join("outside")).is_err());
    // Copies again, over the existing files.
    let any = ReceiveOptions {
        any_link: true,
        ..ReceiveOptions::default()
    };
    assert_eq!(receive(&mut &bytes[..], &to, &any).unwrap().links, 2);
}

#[test]
fn a_file_replaces_a_link_instead_of_writing_through_it() {
    let scratch = Scratch::new("through");
    fs::write(scratch.at("victim"), "old").unwrap();
    fs::create_dir(scratch.at("from")).unwrap();
    fs::write(scratch.at("from/x"), "new").unwrap();
    fs::create_dir(scratch.at("to")).unwrap();
    symlink("../victim", scratch.at("to/x")).unwrap();
    let bytes = stream(&scratch.at("from"));
    receive(
        &mut &bytes[..],
        &scratch.at("to"),
        &ReceiveOptions::default(),
    )
    .unwrap();
    assert_eq!(fs::read_to_string(scratch.at("victim")).unwrap(), "old");
    assert_eq!(fs::read_to_string(scratch.at("to/x")).unwrap(), "new");
}

fn record(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((name.len() as u32).to_le_bytes());
    bytes.extend(name);
    bytes.extend(0o755u32.to_le_bytes());
    bytes.extend([0; 12]);
    bytes
}

#[test]
fn names_and_links_that_lead_out_are_refused() {
    let scratch = Scratch::new("names");
    for name in [
        &b".."[..],
        b".",
        b"",
        b"a/b",
        b"/etc",
        b"a\0b",
        &[b'x'; 256],
    ] {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(record(FOLDER, b""));
        bytes.extend(record(FOLDER, name));
        let end = receive(
            &mut &bytes[..],
            &scratch.at("t"),
            &ReceiveOptions::default(),
        );
        assert!(end.is_err(), "{name:?}");
    }
    // A folder that replaces a link is not entered through the link.
    fs::create_dir(scratch.at("elsewhere")).unwrap();
    fs::create_dir(scratch.at("u")).unwrap();
    symlink("../elsewhere", scratch.at("u/x")).unwrap();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(record(FOLDER, b""));
    bytes.extend(record(FOLDER, b"x"));
    assert!(
        receive(
            &mut &bytes[..],
            &scratch.at("u"),
            &ReceiveOptions::default()
        )
        .is_err()
    );
    for (target, depth, out) in [
        ("a", 1, false),
        ("a/b", 1, false),
        ("..", 1, true),
        ("../a", 2, false),
        ("../../a", 2, true),
        ("a/../..", 1, true),
        ("a/../b", 3, true),
        ("/", 9, true),
        ("", 9, true),
    ] {
        assert_eq!(
            leads_out(target.as_bytes(), depth),
            out,
            "{target} at {depth}"
        );
    }
}

#[test]
fn more_than_allowed_is_an_error() {
    let scratch = Scratch::new("more");
    fs::write(scratch.at("file"), [7; 100]).unwrap();
    let bytes = stream(&scratch.at("file"));
    let limit = |max_bytes, max_entries| ReceiveOptions {
        guard: None,
        max_bytes,
        max_entries,
        any_link: false,
    };
    let to = scratch.at("to");
    assert!(receive(&mut &bytes[..], &to, &limit(99, 9)).is_err());
    assert!(receive(&mut &bytes[..], &to, &limit(100, 0)).is_err());
    assert_eq!(
        receive(&mut &bytes[..], &to, &limit(100, 1)).unwrap().bytes,
        100
    );
    let short = &bytes[..bytes.len() - 1];
    assert!(receive(&mut &*short, &to, &limit(100, 1)).is_err());
}

proptest! {
    #[test]
    fn any_stream_is_received_or_refused_within_its_place(
        kinds in prop::collection::vec((prop::sample::select(&b"dfle."[..]), "[a./]{0,3}"), 0..8),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let scratch = Scratch::new("any");
        let mut bytes = MAGIC.to_vec();
        bytes.extend(record(FOLDER, b""));
        for (kind, name) in kinds {
            bytes.extend(record(kind, name.as_bytes()));
        }
        bytes.extend(tail);
        let options = ReceiveOptions { max_bytes: 1000, max_entries: 10, ..ReceiveOptions::default() };
        let _ = receive(&mut &bytes[..], &scratch.at("to"), &options);
        for entry in fs::read_dir(&scratch.0).unwrap() {
            prop_assert_eq!(entry.unwrap().file_name(), "to");
        }
    }
}

/// A copy that ends early leaves no part of a file, and keeps the earlier content.
#[test]
fn a_file_is_there_whole_or_not_at_all() {
    let scratch = Scratch::new("partial");
    let from = scratch.at("from");
    fs::write(&from, vec![7; 100_000]).unwrap();
    let bytes = stream(&from);
    let to = scratch.at("to");
    fs::write(&to, "before").unwrap();
    for end in [bytes.len() - 10, 70_000, 60, 20] {
        receive(&mut &bytes[..end], &to, &ReceiveOptions::default()).unwrap_err();
        assert!(fs::read(&to).unwrap() == b"before");
    }
    let few = ReceiveOptions {
        max_bytes: 50_000,
        ..ReceiveOptions::default()
    };
    let new = scratch.at("new");
    receive(&mut &bytes[..], &new, &few).unwrap_err();
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 2);
    receive(&mut &bytes[..], &to, &ReceiveOptions::default()).unwrap();
    assert_eq!(fs::metadata(&to).unwrap().len(), 100_000);
}

#[test]
fn what_the_receiver_refuses_is_left_out_with_all_below_it() {
    let scratch = Scratch::new("guard");
    let from = scratch.at("from");
    fs::create_dir_all(from.join("no/deep")).unwrap();
    fs::write(from.join("no/deep/file"), "x").unwrap();
    symlink("deep", from.join("no/link")).unwrap();
    fs::write(from.join("yes"), "x").unwrap();
    let bytes = stream(&from);
    let options = ReceiveOptions {
        guard: Some(|_, name, _| Ok(name == c"no" || name == c"top")),
        ..ReceiveOptions::default()
    };
    let to = scratch.at("to");
    let copied = receive(&mut &bytes[..], &to, &options).unwrap();
    assert_eq!((copied.files, copied.left_out), (1, 1));
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
    let error = receive(&mut &bytes[..], &scratch.at("top"), &options).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(!scratch.at("top").exists());
}

/// A stream that lists a folder before each read.
struct Looking<'a> {
    stream: &'a [u8],
    folder: &'a Path,
    seen: Vec<usize>,
}

impl Read for Looking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.seen.push(fs::read_dir(self.folder).unwrap().count());
        self.stream.read(buffer)
    }
}

/// Also a copy that is killed here leaves no trace of an incomplete file.
#[test]
fn s2_a_file_on_its_way_has_no_name() {
    let scratch = Scratch::new("nameless");
    let (from, to) = (scratch.at("from"), scratch.at("to"));
    fs::write(&from, vec![7; 300_000]).unwrap();
    fs::create_dir(&to).unwrap();
    let bytes = stream(&from);
    for round in 0..2 {
        let mut input = Looking {
            stream: &bytes,
            folder: &to,
            seen: Vec::new(),
        };
        let options = ReceiveOptions::default();
        receive(&mut input, &to.join("file"), &options).unwrap();
        // The second copy replaces the first. The last read comes after the file.
        input.seen.truncate(input.seen.len() - 2);
        assert!(input.seen.len() > 10);
        assert!(
            input.seen.iter().all(|count| *count == round),
            "{:?}",
            input.seen
        );
        assert_eq!(fs::read(to.join("file")).unwrap(), fs::read(&from).unwrap());
    }
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
}
