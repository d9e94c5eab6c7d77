//! Well-formed images: forms of archives, layers with whiteouts, configuration, choice.

use super::make::{Layout, Tar, extract, flattened, listing, made, read_file, read_with, refused};
use a99_sandbox_cache::digest::of_bytes;
use a99_sandbox_oci::{Limits, OciCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::fs;
use std::io::Write;

fn tar() -> Tar {
    Tar::default()
}

#[test]
#[ignore = "needs erofs-utils"]
fn layers_lie_over_each_other() {
    let below = tar()
        .folder("etc/")
        .file("etc/name", "one")
        .file("etc/gone", "x")
        .folder("old/")
        .file("old/a", "a")
        .folder("old/deep/")
        .file("old/deep/b", "b")
        .file("file", "was a file")
        .folder("folder")
        .file("folder/x", "x");
    let above = tar()
        .file("etc/name", "two")
        .file("etc/.wh.gone", "")
        .file("old/new", "n")
        .file("old/.wh..wh..opq", "")
        .folder("file")
        .file("folder", "now a file")
        .file(".wh.absent", "")
        .file("nowhere/.wh.absent", "")
        .file(".wh..wh.plnk", "");
    let expected = [
        "etc/",
        "etc/name: two",
        "file/",
        "folder: now a file",
        "old/",
        "old/new: n",
    ];
    assert_eq!(flattened([below.clone(), above]), expected);
    // A mark removes nothing of its own layer, whatever stands first.
    for order in [true, false] {
        let mark = |tar: Tar| tar.file(".wh.old", "");
        let new = |tar: Tar| tar.folder("old/").file("old/new", "n");
        let above = if order {
            new(mark(tar()))
        } else {
            mark(new(tar()))
        };
        let expected = [
            "etc/",
            "etc/gone: x",
            "etc/name: one",
            "file: was a file",
            "folder/",
            "folder/x: x",
            "old/",
            "old/new: n",
        ];
        assert_eq!(flattened([below.clone(), above]), expected, "{order}");
    }
}

#[test]
#[ignore = "needs erofs-utils"]
fn links_are_resolved_inside_of_the_tree() {
    let below = tar()
        .folder("usr/lib/")
        .link("lib", "usr/lib")
        .link("abs", "/usr")
        .link("up", "../../../../../usr/lib")
        .link("dangling", "later/on");
    let above = tar()
        .file("lib/a", "a")
        .file("abs/b", "b")
        .file("up/c", "c")
        .file("dangling/d", "d")
        .file("/absolute", "e")
        .file("./dot//slashes", "f");
    let expected = [
        "abs -> /usr",
        "absolute: e",
        "dangling -> later/on",
        "dot/",
        "dot/slashes: f",
        "later/",
        "later/on/",
        "later/on/d: d",
        "lib -> usr/lib",
        "up -> ../../../../../usr/lib",
        "usr/",
        "usr/b: b",
        "usr/lib/",
        "usr/lib/a: a",
        "usr/lib/c: c",
    ];
    assert_eq!(flattened([below.clone(), above]), expected);
    // An entry for the folder replaces the link, as in containerd.
    let replaced = flattened([below, tar().folder("lib/").file("lib/a", "a")]);
    assert!(replaced.contains(&"lib/a: a".to_owned()), "{replaced:?}");
    assert!(
        !replaced.contains(&"usr/lib/a: a".to_owned()),
        "{replaced:?}"
    );
}

#[test]
fn gzip_and_zstd_give_the_same_as_plain() {
    let layer = tar().file("a", "x".repeat(100_000)).end();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&layer).unwrap();
    let gzip = gzip.finish().unwrap();
    let halves = layer.split_at(layer.len() / 2);
    let packed = |bytes| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    };
    // Two frames, one without data between them.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let zstd = [packed(halves.0), skipped, packed(halves.1)].concat();
    let of = |blob: &[u8]| {
        let mut layout = Layout::new([]);
        layout.layer(blob, &layer);
        made(&layout.finish())
    };
    let plain = of(&layer);
    assert_eq!(of(&gzip).bytes, plain.bytes);
    assert_eq!(of(&zstd).bytes, plain.bytes);
    assert_eq!(plain.image.nodes, 2);
}

#[test]
fn both_forms_of_docker_save_are_read() {
    let layer = tar().file("etc/passwd", "web:x:5:6::/srv:/bin/sh\n").end();
    let config = json!({
        "architecture": "riscv64", "os": "linux",
        "config": {"Env": ["PATH=/bin", "A=b=c"], "User": "web", "WorkingDir": "/srv",
                   "Cmd": ["serve"], "Entrypoint": null},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", of_bytes(&layer)),
                                                  format!("sha256:{}", of_bytes(&layer))]},
    });
    let config = config.to_string();
    let id = of_bytes(config.as_bytes());
    for config_name in [format!("{id}.json"), format!("blobs/sha256/{id}")] {
        let manifest = json!([{"Config": config_name, "RepoTags": ["host/box:1"],
                               "Layers": ["a/layer.tar", "b/layer.tar"]}]);
        let archive = tar()
            .file(&config_name, &config)
            .file("a/layer.tar", &layer)
            .link("b/layer.tar", "../a/layer.tar")
            .file("manifest.json", manifest.to_string())
            .end();
        let made = made(&archive);
        let image = &made.image;
        assert_eq!((image.id.as_str(), image.layers), (id.as_str(), 2));
        assert_eq!(image.reference.as_deref(), Some("host/box:1"));
        let config = &image.config;
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(config.env, [pair("PATH", "/bin"), pair("A", "b=c")]);
        assert_eq!((config.run_as.uid, config.run_as.gid), (5, 6));
        assert_eq!(config.run_as.home, "/srv");
        assert_eq!(config.working_dir.as_deref(), Some("/srv"));
        assert_eq!(config.cmd, ["serve"]);
        assert!(config.entrypoint.is_empty());
    }
}

#[test]
#[ignore = "needs erofs-utils"]
fn a_layout_in_a_folder_is_read_without_following_links() {
    let folder = tempfile::tempdir().unwrap();
    let mut layout = Layout::new([tar().file("a", "a")]);
    let manifest = layout.manifest();
    layout.index(&[manifest]);
    fs::create_dir_all(folder.path().join("blobs/sha256")).unwrap();
    for (name, bytes) in &layout.files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let open = || fs::File::open(folder.path()).unwrap();
    let limits = Limits::default();
    let made = read_file(open(), None, &limits).unwrap();
    assert_eq!(listing(&extract(&made).1), ["a: a"]);
    let index = folder.path().join("index.json");
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::copy(&index, outside.path()).unwrap();
    fs::remove_file(&index).unwrap();
    std::os::unix::fs::symlink(outside.path(), &index).unwrap();
    assert!(read_file(open(), None, &limits).is_err());
}

#[test]
fn the_image_for_the_guests_processor_is_chosen() {
    let mut layout = Layout::new([tar().file("a", "riscv")]);
    let mut ours = layout.manifest();
    ours["platform"] = json!({"architecture": "riscv64", "os": "linux"});
    layout.architecture = "amd64";
    let mut theirs = layout.manifest();
    theirs["platform"] = json!({"architecture": "amd64", "os": "linux"});
    let inner = json!({"manifests": [theirs, ours]}).to_string();
    let mut nested = layout.clone();
    let inner = nested.blob(inner.as_bytes());
    nested.index(&[inner]);
    assert_eq!(made(&nested.tar()).image.layers, 1);
    let mut other = layout.clone();
    other.index(&[theirs]);
    let error = read_with(&other.tar(), &Limits::default()).unwrap_err();
    assert_eq!(error.code, OciCode::Architecture);
    assert!(error.text.contains("amd64"), "{error}");
    assert!(error.help.unwrap().contains("--platform linux/riscv64"));
    // Without a platform in the index, the configuration decides.
    let mut bare = Layout::new([tar()]);
    bare.architecture = "arm64";
    assert_eq!(refused(&bare.finish()), "oci.architecture");
}

#[test]
fn several_images_need_a_tag() {
    let named = |layout: &mut Layout, name: &str| {
        let mut manifest = layout.manifest();
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        manifest
    };
    let mut layout = Layout::new([tar().file("a", "1")]);
    let one = named(&mut layout, "box:1");
    layout.config = json!({"Cmd": ["two"]});
    let two = named(&mut layout, "box:2");
    layout.index(&[one, two]);
    let archive = layout.tar();
    let with = |tag: Option<&str>| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&archive).unwrap();
        read_file(file, tag, &Limits::default())
    };
    let error = with(None).unwrap_err();
    assert!(error.text.contains("box:1") && error.help.unwrap().contains("--tag"));
    assert_eq!(with(Some("2")).unwrap().image.config.cmd, ["two"]);
    assert!(with(Some("box:1")).unwrap().image.config.cmd.is_empty());
    assert_eq!(with(Some("3")).unwrap_err().code, OciCode::NotFound);
}

#[test]
#[ignore = "needs erofs-utils"]
fn owners_times_modes_and_hard_links_are_kept() {
    let made = made(&Layout::new([tar().file("a", "x").hard("b", "./a")]).finish());
    let (folder, out) = extract(&made);
    let metadata = fs::metadata(out.join("a")).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!((metadata.mode() & 0o7777, metadata.mtime()), (0o644, 0o17));
    let dumped = std::process::Command::new("dump.erofs")
        .args(["--path=/b", "image"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&dumped.stdout).into_owned();
    assert!(
        text.contains("Links: 2") && text.contains("Uid: 7"),
        "{text}"
    );
    assert_eq!(fs::read(out.join("b")).unwrap(), b"x");
}
