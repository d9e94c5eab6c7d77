//! Container images by command: archives that are added, run and removed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::*;
use serde_json::{Value as Json, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An archive of `docker save` with one layer of these files.
struct Archive {
    folder: tempfile::TempDir,
}

impl Archive {
    /// The layer has a static busybox, which is the guest's own, by these names.
    fn new(home: &Home, names: &[&str]) -> Self {
        let bytes = home.run(&["exec", "--", "cat", "/bin/busybox"]).stdout;
        assert!(bytes.starts_with(b"\x7fELF"), "{} bytes", bytes.len());
        Self::of(&bytes, names)
    }

    /// The layer has this program, by these names.
    fn of(program: &[u8], names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for path in ["bin", "srv", "tmp"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("bin/program"), program).unwrap();
        for (path, mode) in [("bin/program", 0o755), ("tmp", 0o1777)] {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        for name in names {
            symlink("program", root.join("bin").join(name)).unwrap();
        }
        Self { folder }
    }

    /// Writes the archive with this configuration, for this processor.
    fn write(&self, processor: &str, config: &Json) -> PathBuf {
        let folder = self.folder.path();
        let tar = |arguments: &[&str]| {
            let mut tar = Command::new("tar");
            let status = tar.current_dir(folder).args(arguments).status();
            assert!(status.unwrap().success(), "{arguments:?}");
        };
        let owner = ["--owner=0", "--group=0"];
        tar(&[&owner[..], &["-C", "root", "-cf", "layer.tar", "."]].concat());
        let config = json!({
            "architecture": processor,
            "os": "linux",
            "config": config,
            "rootfs": {
                "type": "layers",
                "diff_ids": [format!("sha256:{}", sha256(&folder.join("layer.tar")))],
            },
        });
        fs::write(folder.join("config"), config.to_string()).unwrap();
        let name = format!("{}.json", sha256(&folder.join("config")));
        fs::rename(folder.join("config"), folder.join(&name)).unwrap();
        let manifest = json!([{
            "Config": name,
            "RepoTags": ["box:1"],
            "Layers": ["layer.tar"],
        }]);
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        tar(&["-cf", "image.tar", "manifest.json", &name, "layer.tar"]);
        folder.join("image.tar")
    }
}

fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

/// Adds an archive under a name that [`Added`] removes at the end.
fn add<'a>(home: &'a Home, name: &'static str, file: &Path) -> Added<'a> {
    let _ = home.run(&["image", "rm", name]);
    let text = home.ok(&[
        "image",
        "add",
        "--json",
        "--name",
        name,
        file.to_str().unwrap(),
    ]);
    let image: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(image["name"], name, "{image}");
    Added { home, name }
}

struct Added<'a> {
    home: &'a Home,
    name: &'static str,
}

impl Drop for Added<'_> {
    fn drop(&mut self) {
        let _ = self.home.run(&["image", "rm", self.name]);
    }
}

#[test]
#[ignore = "needs the image"]
fn a_container_image_runs_with_its_own_settings() {
    let home = Home::new("container");
    let archive = Archive::new(&home, &["sh", "id", "cat", "ls", "touch", "echo"]);
    let file = archive.write(
        "riscv64",
        &json!({
            "Env": ["COLOR=green", "PATH=/bin"],
            "User": "1234:55",
            "WorkingDir": "/srv",
            "Entrypoint": ["/bin/echo", "from"],
            "Cmd": ["its", "command"],
        }),
    );
    let added = add(&home, "a99-test-settings", &file);
    let exec = |more: &[&str]| home.ok(&[&["exec", "--image", added.name], more].concat());
    assert_eq!(exec(&[]), "from its command\n");
    let script = "id -u; id -g; pwd; echo $COLOR; ls -a / | cat";
    let text = exec(&["--", "sh", "-c", script]);
    let (settings, root) = text.split_once("green\n").unwrap();
    assert_eq!(settings, "1234\n55\n/srv\n");
    // Its root is the image's alone: ours has Python and an agent.
    assert!(root.contains("srv\n") && !root.contains("usr\n"), "{root}");
    // What a guest writes stays in it.
    let text = exec(&["--", "sh", "-c", "echo new >/tmp/file; cat /tmp/file"]);
    assert_eq!(text, "new\n");
    let text = exec(&["--", "sh", "-c", "cat /tmp/file || echo nothing"]);
    assert_eq!(text, "nothing\n");
    home.ok(&["start", "box", "--image", added.name]);
    home.ok(&["exec", "box", "--session", "--", "STATE=kept; cd /tmp"]);
    let text = home.ok(&["exec", "box", "--session", "--", "echo $STATE; pwd"]);
    assert_eq!(text, "kept\n/tmp\n");
    let listed: Json = serde_json::from_str(&home.ok(&["image", "ls", "--json"])).unwrap();
    let mut images = listed["images"].as_array().unwrap().iter();
    assert!(images.any(|image| image["name"] == added.name), "{listed}");
}

#[test]
#[ignore = "needs the image"]
fn a_container_image_without_a_shell_runs_its_programs() {
    let home = Home::new("shell-less");
    let archive = Archive::new(&home, &["echo"]);
    let file = archive.write("riscv64", &json!({"Cmd": ["/bin/echo", "alone"]}));
    let added = add(&home, "a99-test-shell-less", &file);
    let image = ["exec", "--image", added.name];
    assert_eq!(home.ok(&image), "alone\n");
    assert_eq!(
        home.ok(&[&image[..], &["--", "echo", "a  b"]].concat()),
        "a  b\n"
    );
    let output = home.run(&[&image[..], &["--", "sh", "-c", "true"]].concat());
    assert_eq!(output.status.code(), Some(127), "{output:?}");
}

#[test]
fn a_container_image_for_another_processor_is_refused() {
    let home = Home::new("processor");
    let archive = Archive::of(b"no program", &[]);
    let file = archive.write("amd64", &json!({}));
    let output = home.run(&["image", "add", "--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"]["code"], "oci.architecture", "{report}");
    let help = report["error"]["help"].as_str().unwrap();
    assert!(help.contains("--override-arch riscv64"), "{help}");
}
