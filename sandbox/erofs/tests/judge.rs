//! The file systems of the writer, judged by erofs-utils: `fsck.erofs` checks and extracts
//! them, and what it extracts is compared with the tree.

use a99_sandbox_erofs::{Error, Kind, Node, Written, write};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

/// A tree with contents, from which nodes are made.
#[derive(Clone, Debug)]
enum Item {
    File(Vec<u8>, u16, u32),
    Link(Vec<u8>),
    Fifo,
    Folder(BTreeMap<Vec<u8>, Item>),
}

#[derive(Default)]
struct Made {
    nodes: Vec<Node>,
    contents: Vec<u8>,
}

impl Made {
    fn add(&mut self, item: &Item) -> u32 {
        let id = self.nodes.len();
        let node = match item {
            Item::File(bytes, mode, uid) => {
                let offset = self.contents.len() as u64;
                self.contents.extend(bytes);
                let size = bytes.len() as u64;
                Node {
                    uid: *uid,
                    gid: uid / 2,
                    mtime: i64::from(*uid) * 3,
                    ..Node::new(*mode, Kind::File { offset, size })
                }
            }
            Item::Link(target) => Node::new(0o777, Kind::Link(target.as_slice().into())),
            Item::Fifo => Node::new(0o600, Kind::Fifo),
            Item::Folder(items) => {
                self.nodes.push(Node::new(0o755, Kind::Folder(Vec::new())));
                let entry =
                    |(name, item): (&Vec<u8>, &Item)| (name.as_slice().into(), self.add(item));
                let entries = items.iter().map(entry).collect();
                self.nodes[id].kind = Kind::Folder(entries);
                return id as u32;
            }
        };
        self.nodes.push(node);
        id as u32
    }

    fn write(&self) -> Result<(Vec<u8>, Written), Error> {
        let mut contents = tempfile::tempfile().expect("a file");
        contents.write_all(&self.contents).expect("contents");
        let mut image = Vec::new();
        let written = write(&self.nodes, &contents, &mut image)?;
        Ok((image, written))
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("erofs-utils of Debian is installed");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

/// Extracts the image; the folder is returned.
fn extract(image: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("image");
    fs::write(&file, image).expect("the image");
    let target = format!("--extract={}", folder.path().join("out").display());
    let judged = run("fsck.erofs", &["-d3", &target, &file.display().to_string()]);
    // Its exit status does not say whether the checksum is right.
    assert!(
        judged.contains("Extracted filesystem successfully"),
        "{judged}"
    );
    folder
}

fn compare(item: &Item, path: &Path) {
    let metadata = fs::symlink_metadata(path).expect("the path exists");
    match item {
        Item::File(bytes, mode, uid) => {
            assert_eq!(&fs::read(path).expect("a file"), bytes, "{path:?}");
            assert_eq!(metadata.mode() & 0o7777, u32::from(*mode));
            let owner = (metadata.uid(), metadata.gid(), metadata.mtime());
            if metadata.uid() == 0 || a_superuser() {
                assert_eq!(owner, (*uid, uid / 2, i64::from(*uid) * 3));
            }
        }
        Item::Link(target) => {
            let found = fs::read_link(path).expect("a link");
            assert_eq!(found.as_os_str().as_bytes(), target);
        }
        Item::Fifo => assert!(metadata.file_type().is_fifo()),
        Item::Folder(items) => {
            let found = fs::read_dir(path).expect("a folder").count();
            assert_eq!(found, items.len(), "{path:?}");
            for (name, item) in items {
                compare(item, &path.join(std::ffi::OsStr::from_bytes(name)));
            }
        }
    }
}

/// Whether owners can be set by the extraction.
fn a_superuser() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let sizes = prop_oneof![
        Just(0usize),
        0..300usize,
        4000..4200usize,
        8100..8300usize,
        Just(4096usize),
        Just(300_000usize),
    ];
    (sizes, any::<u8>()).prop_map(|(size, seed)| {
        (0..size)
            .map(|i| (i as u8).wrapping_mul(31) ^ seed ^ (i >> 8) as u8)
            .collect()
    })
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_map(|byte| if matches!(byte, 0 | b'/') { b'-' } else { byte });
    let names = prop_oneof![vec(byte.clone(), 1..12), vec(byte, 200..=255)];
    names.prop_filter("not a name", |name| !matches!(&name[..], b"." | b".."))
}

fn item() -> impl Strategy<Value = Item> {
    let target = vec(1..=255u8, 1..80);
    let leaf = prop_oneof![
        4 => (bytes(), 0..0o1000u16, 0..200_000u32).prop_map(|(b, m, u)| Item::File(b, m, u)),
        1 => target.prop_map(Item::Link),
        1 => Just(Item::Fifo),
    ];
    leaf.prop_recursive(4, 60, 20, |item| {
        btree_map(name(), item, 0..20).prop_map(Item::Folder)
    })
}

#[test]
#[ignore = "needs erofs-utils"]
fn random_trees_come_out_as_they_went_in() {
    let mut runner = TestRunner::new(Config::with_cases(40));
    let trees = btree_map(name(), item(), 0..20).prop_map(Item::Folder);
    let judged = runner.run(&trees, |tree| {
        let mut made = Made::default();
        made.add(&tree);
        let (image, written) = made.write().expect("an image");
        assert_eq!(image.len() as u64, written.bytes);
        assert_eq!(written.nodes, made.nodes.len() as u64);
        assert_eq!(made.write().expect("the same").0, image);
        compare(&tree, &extract(&image).path().join("out"));
        Ok(())
    });
    judged.expect("every tree");
}

#[test]
#[ignore = "needs erofs-utils"]
fn large_folders_hard_links_long_links_and_devices_are_read() {
    let many = (0..5000u32).map(|i| (format!("entry-{i:05}-{}", "x".repeat(60)).into_bytes(), i));
    let many: BTreeMap<Vec<u8>, Item> = many
        .map(|(name, i)| (name, Item::File(i.to_le_bytes().to_vec(), 0o644, i)))
        .collect();
    let tree = Item::Folder(BTreeMap::from([
        (b"link".to_vec(), Item::Link(vec![b'l'; 4095])),
        (b"many".to_vec(), Item::Folder(many)),
        (b"one".to_vec(), Item::File(b"shared".to_vec(), 0o4755, 7)),
    ]));
    let mut made = Made::default();
    made.add(&tree);
    let one = made.nodes.len() as u32 - 1;
    let device = Node::new(0o600, Kind::CharacterDevice(1, 0x1234));
    made.nodes.push(device);
    let Kind::Folder(root) = &mut made.nodes[0].kind else {
        panic!("the root is a folder");
    };
    root.push((b"two".as_slice().into(), one));
    root.push((b"z-device".as_slice().into(), one + 1));
    let (image, _) = made.write().expect("an image");
    let folder = extract(&image);
    let out = folder.path().join("out");
    for i in [0, 2500, 4999] {
        let name = format!("many/entry-{i:05}-{}", "x".repeat(60));
        assert_eq!(
            fs::read(out.join(name)).expect("a file"),
            u32::to_le_bytes(i)
        );
    }
    assert_eq!(
        fs::read_dir(out.join("many")).expect("a folder").count(),
        5000
    );
    assert_eq!(
        fs::read_link(out.join("link"))
            .expect("a link")
            .as_os_str()
            .len(),
        4095
    );
    assert_eq!(fs::read(out.join("two")).expect("a file"), b"shared");
    let file = folder.path().join("image").display().to_string();
    let shown = run("dump.erofs", &["--path=/two", &file]);
    assert!(shown.contains("Links: 2"), "{shown}");
    if let Ok(device) = fs::symlink_metadata(out.join("z-device")) {
        assert!(device.file_type().is_char_device());
        assert_eq!(device.rdev(), (0x1200 << 12) | (1 << 8) | 0x34);
    } else {
        assert!(!a_superuser());
    }
}

#[test]
#[ignore = "needs erofs-utils"]
fn a_damaged_image_is_noticed_by_the_judge() {
    let mut made = Made::default();
    made.add(&Item::Folder(BTreeMap::new()));
    let (mut image, _) = made.write().expect("an image");
    image[1200] ^= 1;
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), image).expect("the image");
    let file = file.path().display().to_string();
    let judged = run("fsck.erofs", &["-d3", &file]);
    assert!(
        judged.contains("failed to verify superblock checksum"),
        "{judged}"
    );
}

#[test]
fn what_is_no_tree_is_refused() {
    let folder = |entries: &[(&str, u32)]| {
        let entries = entries
            .iter()
            .map(|(name, id)| (name.as_bytes().into(), *id));
        Node::new(0o755, Kind::Folder(entries.collect()))
    };
    let link = |target: &[u8]| Node::new(0o777, Kind::Link(target.into()));
    let long = "n".repeat(256);
    for nodes in [
        vec![],
        vec![link(b"x")],
        vec![folder(&[("a", 1)])],
        vec![folder(&[("a", 0)])],
        vec![folder(&[("a", 1), ("b", 1)]), folder(&[])],
        vec![folder(&[("a", 1)]), folder(&[("b", 1)])],
        vec![folder(&[("b", 1), ("a", 1)]), link(b"x")],
        vec![folder(&[("a", 1), ("a", 1)]), link(b"x")],
        vec![folder(&[("", 1)]), link(b"x")],
        vec![folder(&[(".", 1)]), link(b"x")],
        vec![folder(&[("..", 1)]), link(b"x")],
        vec![folder(&[("a/b", 1)]), link(b"x")],
        vec![folder(&[("a\0", 1)]), link(b"x")],
        vec![folder(&[(&long, 1)]), link(b"x")],
        vec![folder(&[("a", 1)]), link(b"")],
        vec![folder(&[("a", 1)]), link(&[b'x'; 4096])],
    ] {
        let made = Made {
            nodes,
            contents: Vec::new(),
        };
        let error = made.write().expect_err("no tree");
        assert_eq!(error.code(), "erofs.tree", "{error}");
    }
    let short = Node::new(
        0o644,
        Kind::File {
            offset: 1,
            size: 10,
        },
    );
    let made = Made {
        nodes: vec![folder(&[("a", 1)]), short],
        contents: vec![0; 5],
    };
    assert_eq!(made.write().expect_err("no content").code(), "erofs.io");
    let large = Node::new(
        0o644,
        Kind::File {
            offset: 0,
            size: u64::MAX,
        },
    );
    let made = Made {
        nodes: vec![folder(&[("a", 1)]), large],
        contents: Vec::new(),
    };
    assert_eq!(
        made.write().expect_err("too large").code(),
        "erofs.too_large"
    );
}
