//! Further hostile archives, by what they try.

use super::make::{Layout, Made, Tar, extract, flattened, made, read_file, refused};
use a99_sandbox_cache::digest::of_bytes;
use a99_sandbox_oci::{Limits, OciError};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

fn tar() -> Tar {
    Tar::default()
}

fn one(layer: Tar) -> Vec<u8> {
    Layout::new([layer]).finish()
}

#[test]
fn s13_100_000_layers_are_refused() {
    for count in [513, 100_000] {
        let mut layout = Layout::new([tar()]);
        layout.layers = vec![layout.layers[0].clone(); count];
        layout.diff_ids = vec![layout.diff_ids[0].clone(); count];
        assert_eq!(refused(&layout.finish()), "oci.limit");
    }
    let config = json!({"architecture": "riscv64", "os": "linux",
                        "rootfs": {"diff_ids": vec![format!("sha256:{}", of_bytes(b"")); 100_000]}});
    let config = config.to_string();
    let name = format!("{}.json", of_bytes(config.as_bytes()));
    let manifest = json!([{"Config": name, "Layers": vec!["layer"; 100_000]}]);
    let saved = tar().file(&name, config).file("layer", "");
    let saved = saved.file("manifest.json", manifest.to_string()).end();
    assert_eq!(refused(&saved), "oci.limit");
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_whiteouts_of_what_is_not_there_remove_nothing() {
    let below = tar()
        .file("a", "a")
        .folder("d")
        .file("d/b", "b")
        .link("l", "d");
    let marks = [
        ".wh.none",
        "none/.wh.none",
        "d/.wh.none",
        "d/none/deep/.wh.b",
        "none/.wh..wh..opq",
        "a/.wh.b",
        ".wh..wh.aufs",
        ".wh..wh.plnk",
        ".wh.A",
        ".wh.a/",
    ];
    let expected = ["a: a", "d/", "d/b: b", "l -> d"];
    for mark in &marks[..marks.len() - 1] {
        let found = flattened([below.clone(), tar().file(mark, "")]);
        assert_eq!(found, expected, "{mark}");
        // In the lowest layer there is nothing either.
        assert!(flattened([tar().file(mark, "")]).is_empty(), "{mark}");
    }
    // A slash at the end changes nothing, and a link on the way leads inside.
    let found = flattened([below.clone(), tar().file(".wh.a/", "")]);
    assert_eq!(found, expected[1..]);
    let found = flattened([below.clone(), tar().file("l/.wh.b", "")]);
    assert_eq!(found, ["a: a", "d/", "l -> d"]);
    // Twice, and of what the same layer adds again.
    let twice = tar().file(".wh.a", "").file(".wh.a", "").file("a", "new");
    let found = flattened([below, twice.file(".wh.a", "")]);
    assert_eq!(found[0], "a: new");
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_opaque_whiteouts_hide_what_is_below_alone() {
    let below = tar()
        .file("a", "a")
        .folder("d")
        .file("d/b", "b")
        .file("d/e/c", "c")
        .link("l", "/d");
    let of = |above: Tar| flattened([below.clone(), above]);
    let mark = |folder: &str| tar().file(&format!("{folder}.wh..wh..opq"), "");
    assert!(of(mark("")).is_empty());
    assert!(of(mark("/")).is_empty());
    assert_eq!(of(mark("d/")), ["a: a", "d/", "l -> /d"]);
    assert_eq!(of(mark("l/")), ["a: a", "d/", "l -> /d"]);
    assert_eq!(
        of(mark("d/").file("d/e/new", "n")),
        ["a: a", "d/", "d/e/", "d/e/new: n", "l -> /d"]
    );
    assert_eq!(refused(&one(mark("d/../"))), "oci.path");
    assert_eq!(refused(&one(mark(".wh.d/"))), "oci.damaged");
    // A folder, a link and a device as the mark remove as a file does.
    for kind in [b'5', b'2', b'3', b'6'] {
        let above = tar().raw(b"d/.wh..wh..opq", kind, b"x", 0, b"");
        assert_eq!(of(above), ["a: a", "d/", "l -> /d"], "{kind}");
    }
}

/// An archive of `docker save` with these names of layers; `files` stand beside.
fn saved(layers: &[&str], files: Tar) -> Vec<u8> {
    let diff_ids: Vec<String> = layers
        .iter()
        .map(|_| format!("sha256:{}", of_bytes(b"")))
        .collect();
    let config =
        json!({"architecture": "riscv64", "os": "linux", "rootfs": {"diff_ids": diff_ids}});
    let config = config.to_string();
    let name = format!("{}.json", of_bytes(config.as_bytes()));
    let manifest = json!([{"Config": name, "Layers": layers}]).to_string();
    files
        .file(&name, config)
        .file("manifest.json", manifest)
        .end()
}

#[test]
fn s13_names_of_layers_do_not_lead_out() {
    for name in [
        "../layer",
        "a/../../layer",
        "..",
        "/../x",
        "/etc/passwd",
        "",
        "./",
        "nul\0",
    ] {
        assert_eq!(refused(&saved(&[name], tar())), "oci.not_found", "{name:?}");
    }
    // Members whose own name leads out are not there, whatever asks for them.
    let outside = tar()
        .file("../layer", "x")
        .link("layer", "../layer")
        .hard("hard", "../layer");
    for name in ["../layer", "layer", "hard"] {
        assert_eq!(
            refused(&saved(&[name], outside.clone())),
            "oci.not_found",
            "{name}"
        );
    }
    let circle = tar().link("layer", "again").hard("again", "layer");
    assert_eq!(refused(&saved(&["layer"], circle)), "oci.damaged");
    // A layer may be any member, so the configuration is no layer by accident.
    let found = refused(&saved(&["manifest.json"], tar()));
    assert_eq!(found, "oci.damaged");
    // In a folder, links out are followed by nothing.
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).unwrap();
    fs::write(folder.path().join("secret"), "").unwrap();
    let config = json!({"architecture": "riscv64", "os": "linux",
                        "rootfs": {"diff_ids": [format!("sha256:{}", of_bytes(b""))]}});
    let config = config.to_string();
    let config_name = format!("{}.json", of_bytes(config.as_bytes()));
    fs::write(inside.join(&config_name), &config).unwrap();
    symlink("../secret", inside.join("link")).unwrap();
    symlink("..", inside.join("up")).unwrap();
    symlink("/etc", inside.join("etc")).unwrap();
    let add = |name: &str| {
        let manifest = json!([{"Config": config_name, "Layers": [name]}]);
        fs::write(inside.join("manifest.json"), manifest.to_string()).unwrap();
        read_folder(&inside)
    };
    for name in [
        "../secret",
        "link",
        "up/secret",
        "etc/passwd",
        "/etc/passwd",
        ".",
    ] {
        let error = add(name).expect_err(name);
        let code = error.code.name();
        assert!(
            matches!(code, "oci.not_found" | "oci.io" | "oci.damaged"),
            "{name}: {error}"
        );
    }
    fs::write(inside.join("layer"), "").unwrap();
    add("layer").expect("a layer without entries");
}

fn read_folder(folder: &Path) -> Result<Made, OciError> {
    read_file(
        File::open(folder).expect("a folder"),
        None,
        &Limits::default(),
    )
}

#[test]
fn s13_headers_of_absurd_numbers_are_refused() {
    let with = |field: std::ops::Range<usize>, value: &[u8]| {
        let mut tar = tar().file("a", "");
        tar.0[field.start..field.start + value.len()].copy_from_slice(value);
        tar.0[148..156].copy_from_slice(b"        ");
        let sum: u32 = tar.0[..512].iter().map(|byte| u32::from(*byte)).sum();
        tar.0[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        refused(&one(tar))
    };
    // Sizes in base 256: minus one, the largest, and beyond 64 bits.
    assert_eq!(with(124..136, &[0xff; 12]), "oci.damaged");
    assert_eq!(
        with(
            124..136,
            &[0x80, 0, 0, 0, 0x7f, 255, 255, 255, 255, 255, 255, 255]
        ),
        "oci.limit"
    );
    assert_eq!(
        with(124..136, &[0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        "oci.damaged"
    );
    assert_eq!(with(124..136, b"99999999999\0"), "oci.damaged");
    assert_eq!(with(108..116, &[0x80, 0, 0, 1, 0, 0, 0, 0]), "oci.damaged");
    assert_eq!(with(116..124, b"7777777\x008"), "oci.damaged");
    let pax = |key: &str, value: &[u8]| refused(&one(tar().pax(&[(key, value)]).file("a", "")));
    for (key, value) in [
        ("uid", &b"4294967296"[..]),
        ("gid", b"-1"),
        ("mtime", b"1e9"),
        ("mtime", b"99999999999999999999"),
        ("size", b"0x10"),
        ("size", b"+"),
    ] {
        assert_eq!(pax(key, value), "oci.damaged", "{key}");
    }
    for key in [
        "GNU.sparse.major",
        "GNU.sparse.map",
        "GNU.sparse.size",
        "GNU.sparse.numblocks",
    ] {
        assert_eq!(pax(key, b"1"), "oci.unsupported", "{key}");
    }
    // Times before 1970 and far away are kept or cut, and harm nothing.
    for time in [&b"-62135596800"[..], b"9223372036854775807", b"1.999999999"] {
        made(&one(tar().pax(&[("mtime", time)]).file("a", "")));
    }
}

#[test]
fn s13_packed_layers_that_lie_about_themselves_are_refused() {
    let layer = tar().file("a", "a").end();
    let of = |blob: &[u8]| {
        let mut layout = Layout::new([]);
        layout.layer(blob, &layer);
        refused(&layout.finish())
    };
    let gzip = |bytes: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let whole = gzip(&layer);
    // A header whose name never ends.
    let mut named = whole[..10].to_vec();
    named[3] = 8;
    named.extend(vec![b'n'; 1 << 20]);
    assert_eq!(of(&named), "oci.damaged");
    // A wrong checksum and a wrong length at the end, and something after it.
    for at in [whole.len() - 1, whole.len() - 8] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert_eq!(of(&changed), "oci.damaged", "{at}");
    }
    assert_eq!(of(&[&whole[..], b"garbage"].concat()), "oci.damaged");
    // A second member that unpacks to more than the layer's digest names.
    assert_eq!(of(&[&whole[..], &gzip(b"more")].concat()), "oci.digest");
    assert_eq!(of(&gzip(&whole)), "oci.damaged");
    // Frames of zstd that announce a dictionary, a reserved block, and more than there is.
    for bytes in [
        &[0x28, 0xb5, 0x2f, 0xfd, 0x23, 0x58, 1, 0, 0, 0, 0][..],
        &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 7, 0, 0],
        &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 0xf9, 0xff, 0xff],
        &[0x28, 0xb5, 0x2f, 0xfd, 8, 0x58, 1, 0, 0],
    ] {
        let code = of(bytes);
        assert!(
            matches!(code, "oci.damaged" | "oci.digest"),
            "{bytes:x?}: {code}"
        );
    }
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_many_names_of_a_file_and_large_folders_are_kept() {
    let names = (0..70_000).fold(tar().file("d/file", "x"), |tar, i| {
        tar.hard(&format!("d/{i}"), "d/file")
    });
    let made = made(&one(names));
    assert_eq!(made.image.nodes, 3);
    let (_folder, out) = extract(&made);
    assert_eq!(fs::read_dir(out.join("d")).unwrap().count(), 70_001);
    assert_eq!(fs::read(out.join("d/69999")).unwrap(), b"x");
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_entries_of_another_kind_replace_whole() {
    // A file under a name that was a file, a link to itself, and back again.
    let layer = tar()
        .file("a", "1")
        .file("a/b", "2")
        .link("c", "c")
        .folder("c")
        .file("c/d", "3");
    assert_eq!(flattened([layer]), ["a/", "a/b: 2", "c/", "c/d: 3"]);
    let below = tar().file("x/y", "1").hard("kept", "x/y").link("l", "x");
    let above = tar().file("x", "2").file("l/z", "3");
    assert_eq!(
        flattened([below, above]),
        ["kept: 1", "l -> x", "x/", "x/z: 3"]
    );
    // A folder that a hard link names is not one, and a link's own name is.
    let links = tar().link("l", "/none").hard("m", "l");
    assert_eq!(flattened([links]), ["l -> /none", "m -> /none"]);
}

#[test]
fn s13_configurations_that_name_no_user_are_refused() {
    let user = |user: &str| {
        let mut layout = Layout::new([tar().file("etc/passwd", "a:x:4294967295:0::/:\n")]);
        layout.config = json!({"User": user});
        refused(&layout.finish())
    };
    // To the kernel the last number means "unchanged", which is root.
    for name in ["4294967295", "0:4294967295", "a", "b", "-1", " ", "0x0"] {
        assert_eq!(user(name), "oci.not_found", "{name}");
    }
    let documents: [Json; 5] = [
        json!({"manifests": [{"digest": 1, "size": 1}]}),
        json!({"manifests": [{"digest": "sha256:0", "size": -1}]}),
        json!({"manifests": [{"digest": "sha256:0", "size": 1e300}]}),
        json!({"manifests": {"0": 1}}),
        json!([]),
    ];
    for document in documents {
        let archive = tar().file("index.json", document.to_string()).end();
        assert_eq!(refused(&archive), "oci.damaged", "{document}");
    }
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_configurations_that_fit_no_process_are_refused() {
    let with = |config: Json| {
        let mut layout = Layout::new([tar().file("a", "a")]);
        layout.config = config;
        layout
    };
    let variables = |count| (0..count).map(|i| format!("A{i}=")).collect::<Vec<_>>();
    for config in [
        json!({"Env": variables(1001)}),
        json!({"Env": [format!("A={}", "x".repeat(128 << 10))]}),
        json!({"Cmd": ["x".repeat(128 << 10)]}),
        json!({"Cmd": vec!["x"; 128 << 10]}),
        json!({"WorkingDir": "/a".repeat(300)}),
        json!({"WorkingDir": format!("/{}", "x".repeat(256))}),
    ] {
        assert_eq!(refused(&with(config).finish()), "oci.limit");
    }
    made(&with(json!({"Env": variables(1000)})).finish());
    // A working directory is made inside the tree.
    for (folder, expected) in [
        ("/srv/box", &["a: a", "srv/", "srv/box/"][..]),
        ("/../../srv/..", &["a: a", "srv/"]),
        ("//.//", &["a: a"]),
    ] {
        let made = made(&with(json!({"WorkingDir": folder})).finish());
        assert_eq!(
            super::make::listing(&extract(&made).1),
            expected,
            "{folder}"
        );
    }
}
