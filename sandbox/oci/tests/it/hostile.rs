//! Hostile archives: each is refused with a stable code, or does no harm.

use super::make::{Layout, Tar, extract, flattened, listing, made, refused, refused_with};
use a99_sandbox_cache::digest::of_bytes;
use a99_sandbox_oci::Limits;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;

fn tar() -> Tar {
    Tar::default()
}

fn one(layer: Tar) -> Vec<u8> {
    Layout::new([layer]).finish()
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_paths_do_not_lead_out() {
    for path in ["../x", "a/../../x", "/../x", "a/..", "..", "./.."] {
        assert_eq!(refused(&one(tar().file(path, "x"))), "oci.path", "{path}");
        assert_eq!(refused(&one(tar().folder(path))), "oci.path", "{path}");
        assert_eq!(refused(&one(tar().hard("a", path))), "oci.path", "{path}");
    }
    // A link out of the tree leads to its root.
    let layers = [
        tar().link("out", "../../../../etc").link("abs", "/tmp"),
        tar().file("out/x", "x").file("abs/y", "y"),
    ];
    let found = flattened(layers);
    assert!(found.contains(&"etc/x: x".to_owned()) && found.contains(&"tmp/y: y".to_owned()));
    for (path, code) in [
        ("..", "oci.damaged"),
        (".", "oci.damaged"),
        ("", "oci.damaged"),
    ] {
        assert_eq!(refused(&one(tar().file(&format!(".wh.{path}"), ""))), code);
    }
    assert_eq!(refused(&one(tar().file(".wh.a/b", ""))), "oci.damaged");
    assert_eq!(refused(&one(tar().file("/", "the root"))), "oci.damaged");
    assert_eq!(refused(&one(tar().link(".", "/etc"))), "oci.damaged");
}

#[test]
fn s13_links_in_circles_end() {
    let circle = tar().link("a", "b").link("b", "a").file("a/x", "x");
    assert_eq!(refused(&one(circle)), "oci.path");
    let itself = tar().link("a", "a/a").file("a/x", "x");
    assert_eq!(refused(&one(itself)), "oci.path");
    let chain = (0..100).fold(tar(), |tar, i| {
        tar.link(&format!("l{i}"), &format!("l{}", i + 1))
    });
    assert_eq!(refused(&one(chain.file("l0/x", "x"))), "oci.path");
    let steps = (0..50).fold(tar(), |tar, i| {
        tar.link(&format!("l{i}"), &format!("{}l{}", "./".repeat(20), i + 1))
    });
    assert_eq!(refused(&one(steps.file("l0/x", "x"))), "oci.path");
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_hard_links_lead_to_files_that_are_there() {
    for layer in [
        tar().hard("a", "b"),
        tar().hard("a", "b").file("b", "later"),
        tar().hard("a", "a"),
        tar().hard("a", "b").hard("b", "a"),
        tar().folder("d").hard("a", "d"),
        tar().hard("a", "/"),
        tar().hard("a", "/etc/passwd"),
        tar().link("out", "/etc").hard("a", "out/passwd"),
    ] {
        assert_eq!(refused(&one(layer)), "oci.path");
    }
    let kept = flattened([tar().file("a", "x"), tar().hard("b", "a").file(".wh.a", "")]);
    assert_eq!(kept, ["b: x"]);
    let itself = flattened([tar().file("a", "x").hard("a", "a")]);
    assert_eq!(itself, ["a: x"]);
}

#[test]
fn s13_devices_are_dropped_and_pipes_are_kept() {
    let layer = tar()
        .file("sda", "replaced")
        .raw(b"sda", b'4', b"", 0, b"")
        .raw(b"white", b'3', b"", 0, b"")
        .raw(b"pipe", b'6', b"", 0, b"");
    let made = made(&one(layer));
    assert_eq!(made.image.devices_dropped, 2);
    assert_eq!(made.image.nodes, 2);
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_links_do_not_stand_where_a_guest_mounts() {
    let layer = tar()
        .link("dev", "/etc")
        .link("proc", "../../..")
        .file("sys", "x")
        .hard("run", "sys");
    assert_eq!(flattened([layer]), ["dev/", "proc/", "run/", "sys/"]);
}

#[test]
fn s13_bombs_are_cut_off() {
    let limits = Limits {
        unpacked: 1 << 30,
        ..Limits::default()
    };
    let zeros = vec![0u8; 1 << 20];
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&tar().raw(b"big", b'0', b"", 80 << 20, b"").0)
        .unwrap();
    for _ in 0..80 {
        gzip.write_all(&zeros).unwrap();
    }
    let gzip = gzip.finish().unwrap();
    let of = |blob: &[u8]| {
        let mut layout = Layout::new([]);
        layout.layer(blob, b"");
        layout.finish()
    };
    // 80 MiB of 80 KiB: by the ratio, since it is more than 64 MiB.
    assert_eq!(
        refused_with(
            &of(&gzip),
            &Limits {
                ratio: 16,
                ..limits.clone()
            }
        ),
        "oci.limit"
    );
    let limits = Limits {
        unpacked: 8 << 20,
        ..limits
    };
    // Zeros after the end of a layer count too.
    let mut tail = GzEncoder::new(Vec::new(), Compression::best());
    tail.write_all(&tar().file("a", "a").end()).unwrap();
    for _ in 0..9 {
        tail.write_all(&zeros).unwrap();
    }
    let tail = tail.finish().unwrap();
    assert_eq!(
        refused_with(
            &of(&tail),
            &Limits {
                ratio: 10_000,
                ..limits.clone()
            }
        ),
        "oci.limit"
    );
    // Frames of zstd with one byte for 128 KiB, 1,000 of them.
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    for _ in 0..1000 {
        let header: u32 = (128 << 10) << 3 | 1 << 1;
        zstd.extend(&header.to_le_bytes()[..3]);
        zstd.push(0);
    }
    zstd.extend([1, 0, 0]);
    assert_eq!(refused_with(&of(&zstd), &limits), "oci.limit");
    // Two layers together.
    let layer = [
        tar().raw(b"big", b'0', b"", 6 << 20, &vec![1; 6 << 20]),
        tar().raw(b"b", b'0', b"", 6 << 20, &vec![1; 6 << 20]),
    ];
    assert_eq!(
        refused_with(&Layout::new(layer).finish(), &limits),
        "oci.limit"
    );
    // A window that does not fit into memory.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 1, 0, 0];
    assert_eq!(refused(&of(&window)), "oci.damaged");
}

#[test]
fn s13_sizes_that_headers_invent_are_refused() {
    let size = |size: u64| one(tar().raw(b"a", b'0', b"", size, b""));
    assert_eq!(refused(&size(0o77_777_777_777)), "oci.damaged");
    let pax = |value: &[u8]| one(tar().pax(&[("size", value)]).file("a", ""));
    assert_eq!(refused(&pax(b"99999999999999")), "oci.limit");
    for value in [&b"18446744073709551616"[..], b"-1", b"x", b""] {
        assert_eq!(refused(&pax(value)), "oci.damaged");
    }
    let sparse = tar().raw(b"a", b'S', b"", 0, b"");
    assert_eq!(refused(&one(sparse)), "oci.unsupported");
    let sparse = tar()
        .pax(&[("GNU.sparse.realsize", b"999999999999")])
        .file("a", "");
    assert_eq!(refused(&one(sparse)), "oci.unsupported");
    let volume = tar().raw(b"a", b'M', b"", 0, b"");
    assert_eq!(refused(&one(volume)), "oci.unsupported");
}

#[test]
fn s13_extended_headers_are_bounded() {
    let large = vec![b'x'; 2 << 20];
    assert_eq!(
        refused(&one(tar().pax(&[("comment", &large)]).file("a", ""))),
        "oci.limit"
    );
    assert_eq!(
        refused(&one(tar().pax(&[("path", &large[..5000])]).file("a", ""))),
        "oci.limit"
    );
    let long = tar()
        .raw(b"x", b'L', b"", 5000, &large[..5000])
        .file("a", "");
    assert_eq!(refused(&one(long)), "oci.limit");
    assert_eq!(refused(&one(tar().file(&"x".repeat(256), ""))), "oci.limit");
    let many = (0..9).fold(tar(), |tar, _| tar.pax(&[("comment", b"x")]));
    assert_eq!(refused(&one(many.file("a", ""))), "oci.limit");
    for body in [
        &b"5"[..],
        b"99 a=b\n",
        b"x a=b\n",
        b"6 ab\n\n",
        b"0 \n",
        b"7 a=bcd",
        b"18446744073709551616 a=b\n",
    ] {
        let broken = tar()
            .raw(b"p", b'x', b"", body.len() as u64, body)
            .file("a", "");
        assert_eq!(refused(&one(broken)), "oci.damaged", "{body:?}");
    }
    let global = tar()
        .raw(b"g", b'g', b"", 12, b"12 path=abc\n")
        .file("a", "");
    assert_eq!(refused(&one(global)), "oci.unsupported");
    assert_eq!(
        refused(&one(tar().pax(&[("path", b"a\0b")]).file("a", ""))),
        "oci.damaged"
    );
    let depth = "d/".repeat(300);
    assert_eq!(
        refused(&one(tar().file(&format!("{depth}x"), ""))),
        "oci.limit"
    );
}

#[test]
fn s13_lies_about_digests_and_sizes_are_found() {
    let layer = tar().file("a", "a").end();
    let changed = |change: &dyn Fn(&mut Layout)| {
        let mut layout = Layout::new([]);
        layout.layer(&layer, &layer);
        change(&mut layout);
        layout.finish()
    };
    assert_eq!(
        refused(&changed(&|l: &mut Layout| l.files[0].1[0] ^= 1)),
        "oci.damaged"
    );
    // A byte after the archive's end changes nothing but the digest.
    assert_eq!(
        refused(&changed(&|l: &mut Layout| *l.files[0]
            .1
            .last_mut()
            .unwrap() = 1)),
        "oci.digest"
    );
    assert_eq!(
        refused(&changed(&|l: &mut Layout| l.layers[0]["size"] = json!(1))),
        "oci.digest"
    );
    assert_eq!(
        refused(&changed(
            &|l: &mut Layout| l.diff_ids[0] = format!("sha256:{}", of_bytes(b""))
        )),
        "oci.digest"
    );
    assert_eq!(
        refused(&changed(&|l: &mut Layout| l.diff_ids.clear())),
        "oci.damaged"
    );
    assert_eq!(
        refused(&changed(
            &|l: &mut Layout| l.layers[0]["digest"] = json!("sha256:x")
        )),
        "oci.damaged"
    );
    assert_eq!(
        refused(&changed(
            &|l: &mut Layout| l.layers[0]["digest"] = json!("sha512:x")
        )),
        "oci.unsupported"
    );
    let path = "sha256:../../../../../../etc/passwd";
    assert_eq!(
        refused(&changed(
            &|l: &mut Layout| l.layers[0]["digest"] = json!(path)
        )),
        "oci.damaged"
    );
    assert_eq!(
        refused(&changed(&|l: &mut Layout| {
            l.files.remove(0);
        })),
        "oci.not_found"
    );
    let mut layout = Layout::new([]);
    layout.layer(&layer, &layer);
    let manifest = layout.manifest();
    layout.index(&[manifest]);
    // Configuration and manifest.
    for index in [1, 2] {
        let mut changed = layout.clone();
        changed.files[index].1.push(b' ');
        assert_eq!(refused(&changed.clone().tar()), "oci.digest");
        let last = changed.files[index].1.len() - 2;
        changed.files[index].1.pop();
        changed.files[index].1[last - 1] = b' ';
        assert_eq!(refused(&changed.tar()), "oci.digest");
    }
    let config = "{}";
    let manifest = json!([{"Config": "config.json", "Layers": []}]).to_string();
    let unnamed = tar()
        .file("config.json", config)
        .file("manifest.json", manifest);
    assert_eq!(refused(&unnamed.end()), "oci.damaged");
}

#[test]
fn s13_numbers_are_bounded() {
    let mut layout = Layout::new([tar()]);
    layout.layers = vec![layout.layers[0].clone(); 100_000];
    layout.diff_ids = vec![layout.diff_ids[0].clone(); 100_000];
    assert_eq!(refused(&layout.finish()), "oci.limit");
    let mut layout = Layout::new([tar()]);
    layout.layers = vec![layout.layers[0].clone(); 600];
    layout.diff_ids = vec![layout.diff_ids[0].clone(); 600];
    assert_eq!(refused(&layout.finish()), "oci.limit");
    let members = (0..10_000).fold(tar(), |tar, i| tar.file(&i.to_string(), ""));
    assert_eq!(refused(&members.end()), "oci.limit");
    let limits = Limits {
        entries: 10,
        names: 1000,
        ..Limits::default()
    };
    let many = (0..11).fold(tar(), |tar, i| tar.file(&i.to_string(), ""));
    assert_eq!(refused_with(&one(many), &limits), "oci.limit");
    let implied = (0..6).fold(tar(), |tar, i| tar.file(&format!("{i}/{i}"), ""));
    assert_eq!(refused_with(&one(implied), &limits), "oci.limit");
    let names = (0..9).fold(tar(), |tar, i| {
        tar.file(&format!("{i}{}", "n".repeat(190)), "")
    });
    assert_eq!(refused_with(&one(names), &limits), "oci.limit");
    // Indexes in each other, and in themselves.
    let mut layout = Layout::new([]);
    let mut index = layout.manifest();
    for _ in 0..6 {
        index = layout.blob(json!({"manifests": [index]}).to_string().as_bytes());
    }
    layout.index(&[index]);
    assert_eq!(refused(&layout.tar()), "oci.limit");
    let many: Vec<_> = (0..300)
        .map(|i| json!({"digest": format!("sha256:{i:064}"), "size": 1}))
        .collect();
    let mut layout = Layout::new([]);
    layout.index(&many);
    assert_eq!(refused(&layout.tar()), "oci.not_found");
    let mut layout = Layout::new([]);
    layout.config = json!({"Env": ["A=b".repeat(100_000)]});
    assert_eq!(refused(&layout.finish()), "oci.limit");
    for config in [
        json!({"Env": ["A"]}),
        json!({"Env": ["=b"]}),
        json!({"Cmd": ["a\0"]}),
        json!({"WorkingDir": "relative"}),
        json!({"Cmd": "text"}),
    ] {
        let mut layout = Layout::new([]);
        layout.config = config;
        assert_eq!(refused(&layout.finish()), "oci.damaged");
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        refused(&tar().file("index.json", deep).end()),
        "oci.damaged"
    );
}

#[test]
fn s13_sweeping_a_large_folder_again_and_again_is_linear() {
    let mut layer = (0..5000).fold(tar(), |tar, i| tar.file(&format!("d/{i}"), ""));
    for _ in 0..5000 {
        layer = layer.file("d/.wh..wh..opq", "").file(".wh.d", "");
    }
    let start = std::time::Instant::now();
    let made = made(&Layout::new([tar().folder("d"), layer]).finish());
    assert_eq!(made.image.nodes, 5002);
    // Quadratic work would be 25 million removals.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
#[ignore = "needs erofs-utils"]
fn s13_duplicates_and_odd_names_are_kept_as_bytes() {
    let layer = tar()
        .file("a", "1")
        .file("./a", "2")
        .raw(b"\xff\xfe\x01", b'0', b"", 1, b"x")
        .file("A", "3");
    let made = made(&one(layer));
    let (_folder, out) = extract(&made);
    let found = listing(&out);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.contains(&"a: 2".to_owned()) && found.contains(&"A: 3".to_owned()));
}

#[test]
fn s13_an_archive_that_is_cut_anywhere_is_refused() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let layer = tar().folder("d").file("d/a", "abc").link("l", "d/a").end();
    gzip.write_all(&layer).unwrap();
    let mut layout = Layout::new([]);
    layout.layer(&gzip.finish().unwrap(), &layer);
    let whole = layout.finish();
    made(&whole);
    // The index is the last member; after its content only zeros follow.
    let end = whole.len() - 1024;
    let last = (0..end).rev().find(|at| whole[*at] != 0).unwrap();
    for cut in (0..last).step_by(7).chain(last - 2..=last) {
        let code = refused(&whole[..cut]);
        assert!(
            matches!(code, "oci.damaged" | "oci.not_found"),
            "{cut}: {code}"
        );
    }
    // The layer alone, with a digest that fits.
    for cut in (1..layer.len() - 1024).step_by(101) {
        let mut layout = Layout::new([]);
        layout.layer(&layer[..cut], &layer[..cut]);
        let refused = super::make::read_with(&layout.finish(), &Limits::default());
        // A cut between two entries is a shorter layer.
        assert!(cut % 512 == 0 || refused.is_err(), "{cut}");
    }
}

#[test]
fn s13_changed_bytes_never_panic() {
    let layer = tar()
        .pax(&[("path", b"long/name")])
        .file("x", "abc")
        .hard("h", "long/name")
        .link("l", "h")
        .end();
    let mut layout = Layout::new([]);
    layout.layer(&layer, &layer);
    let whole = layout.finish();
    let mut seed = 7u64;
    for _ in 0..3000 {
        let mut changed = whole.clone();
        for _ in 0..3 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = (seed >> 33) as usize % changed.len();
            changed[at] = (seed >> 20) as u8;
        }
        if let Err(error) = super::make::read_with(&changed, &Limits::default()) {
            assert!(error.code.name().starts_with("oci."), "{error}");
        }
    }
}
