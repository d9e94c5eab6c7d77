//! Images that Debian's skopeo and umoci make, in all forms.

use super::make::{extract, listing, read_file};
use a99_sandbox_oci::Limits;
use std::fs;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output();
    let output = output.expect("skopeo and umoci of Debian are installed");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
}

/// Makes a layout `box:1` with two layers, the second of which removes.
fn layout(folder: &Path) {
    run(folder, "umoci", &["init", "--layout", "box"]);
    run(folder, "umoci", &["new", "--image", "box:1"]);
    let configured = [
        "config",
        "--image",
        "box:1",
        "--architecture",
        "riscv64",
        "--os",
        "linux",
    ];
    let more = [
        "--config.user",
        "5:6",
        "--config.workingdir",
        "/srv",
        "--config.cmd",
        "a",
        "--config.env",
        "A=1",
    ];
    run(folder, "umoci", &[&configured[..], &more].concat());
    for step in ["one", "two"] {
        run(
            folder,
            "umoci",
            &["unpack", "--rootless", "--image", "box:1", step],
        );
        let root = folder.join(step).join("rootfs");
        if step == "one" {
            fs::create_dir(root.join("d")).expect("a changed tree");
            fs::write(root.join("d/gone"), "g").expect("a changed tree");
            fs::write(root.join("d/stays"), "s").expect("a changed tree");
            std::os::unix::fs::symlink("/d", root.join("link")).expect("a changed tree");
            fs::hard_link(root.join("d/stays"), root.join("hard")).expect("a changed tree");
        } else {
            fs::remove_file(root.join("d/gone")).expect("a changed tree");
            fs::write(root.join("new"), "x".repeat(100_000)).expect("a changed tree");
        }
        run(folder, "umoci", &["repack", "--image", "box:1", step]);
    }
}

#[test]
#[ignore = "needs erofs-utils, skopeo and umoci"]
fn every_form_of_skopeo_gives_the_same_tree() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    layout(folder);
    let source = "oci:box:1";
    let copy = |more: &[&str], to: &str| {
        let arguments = [
            &["--insecure-policy", "copy", "--override-arch", "riscv64"],
            more,
            &[source, to],
        ];
        run(folder, "skopeo", &arguments.concat());
    };
    copy(&[], "docker-archive:saved.tar:box:1");
    copy(&[], "oci-archive:layout.tar:box:1");
    copy(&["--dest-compress-format", "zstd"], "oci:packed:1");
    copy(&["--dest-decompress"], "dir:plain");
    let expected = [
        "d/".to_owned(),
        "d/stays: s".into(),
        "hard: s".into(),
        "link -> /d".into(),
        format!("new: {}", "x".repeat(100_000)),
        // Its working directory.
        "srv/".into(),
    ];
    let mut images = Vec::new();
    for form in ["saved.tar", "layout.tar", "box", "packed"] {
        let file = fs::File::open(folder.join(form)).unwrap();
        let made = read_file(file, Some("1"), &Limits::default())
            .unwrap_or_else(|e| panic!("{form}: {e}"));
        let config = &made.image.config;
        assert_eq!((config.run_as.uid, config.run_as.gid), (5, 6), "{form}");
        assert_eq!(config.working_dir.as_deref(), Some("/srv"));
        assert_eq!(config.cmd, ["a"]);
        assert!(config.env.contains(&("A".into(), "1".into())));
        assert_eq!(listing(&extract(&made).1), expected, "{form}");
        images.push(made.bytes);
    }
    assert!(images.windows(2).all(|pair| pair[0] == pair[1]));
}
