//! Container images by command: archives that are added, run and removed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::*;
use serde_json::{Value as Json, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
fn copies_have_the_container_image_of_their_original() {
    let home = Home::new("container-copies");
    let archive = Archive::new(&home, &["sh", "id", "cat", "ls"]);
    let config =
        json!({"User": "1234:55", "WorkingDir": "/srv", "Env": ["COLOR=green", "PATH=/bin"]});
    let file = archive.write("riscv64", &config);
    let added = add(&home, "a99-test-copies", &file);
    home.ok(&["start", "box", "--image", added.name]);
    home.ok(&["exec", "box", "--", "sh", "-c", "echo new >/tmp/file"]);
    let saved = home.0.join("box.snapshot");
    let saved = saved.to_str().unwrap();
    home.ok(&["snapshot", "box", saved]);
    home.ok(&["fork", "box", "fork"]);
    home.ok(&["start", "again", "--from", saved]);
    let script = "id -u; pwd; echo $COLOR; cat /tmp/file; ls /";
    let original = home.ok(&["exec", "box", "--", "sh", "-c", script]);
    assert!(
        original.starts_with("1234\n/srv\ngreen\nnew\n"),
        "{original}"
    );
    for copy in ["fork", "again"] {
        assert_eq!(
            home.ok(&["exec", copy, "--", "sh", "-c", script]),
            original,
            "{copy}"
        );
    }
    // Removing says what it frees; guests that run keep their file.
    let text = home.ok(&["image", "rm", "--json", added.name]);
    let removed: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(removed["removed"], json!([added.name]));
    assert!(removed["bytes"].as_u64().unwrap() > 100_000, "{removed}");
    assert_eq!(
        home.ok(&["exec", "fork", "--", "sh", "-c", script]),
        original
    );
    for args in [
        &["start", "new", "--from", saved][..],
        &["fork", "box", "new"],
    ] {
        let output = home.run(&[args, &["--json"]].concat());
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["error"]["code"], "sandbox.saved", "{report}");
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains("a99 sandbox image add"), "{message}");
    }
    // The same image under another name is the same image.
    let added = add(&home, "a99-test-copies-again", &file);
    home.ok(&["start", "new", "--from", saved]);
    assert_eq!(
        home.ok(&["exec", "new", "--", "sh", "-c", script]),
        original
    );
    drop(added);
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

/// Compiles the probe for musl, whose library is in this folder.
fn compiled_for_musl(library: &Path) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/named/probe.c");
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-nostdlib", "-fno-stack-protector", "-fno-builtin"]);
    gcc.arg("-Wl,--dynamic-linker=/lib/ld-musl-riscv64.so.1");
    gcc.arg("-o").arg(&program).arg(source);
    // By its name, which musl's loader takes for its own.
    let search = format!("-L{}", library.display());
    let output = gcc.args([&search, "-lc"]).output();
    let output = output.expect("gcc-riscv64-linux-gnu of Debian");
    assert!(output.status.success(), "{output:?}");
    fs::read(program).unwrap()
}

/// Alpine's layout with Debian's musl: its library, which is the loader too, and a program.
#[test]
#[ignore = "needs the image, builds a pack"]
fn dynamic_programs_of_musl_run_without_a_shell_and_as_any_user() {
    let home = Home::new("musl");
    home.ok(&["build", "--with", "musl", "--as", "musltest"]);
    let path = "/usr/lib/riscv64-linux-musl/libc.so";
    let library = home.run(&["exec", "--pack", "musltest", "--", "cat", path]);
    home.ok(&["image", "rm", "--pack", "musltest"]);
    let file = home.0.join("libc.so");
    fs::write(&file, library.stdout).unwrap();
    let archive = Archive::of(&compiled_for_musl(&home.0), &[]);
    let root = archive.folder.path().join("root");
    for folder in ["lib", "etc", "home"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::copy(&file, root.join("lib/ld-musl-riscv64.so.1")).unwrap();
    fs::write(root.join("etc/passwd"), "app:x:1000:1000::/home:/bin/sh\n").unwrap();
    for (path, mode) in [("lib/ld-musl-riscv64.so.1", 0o755), ("home", 0o777)] {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (user, folder, expected) in [
        ("", "/srv", "0 0 nobody /srv green\n40000 written"),
        ("app", "/home", "1000 1000 app /home green\n40000 written"),
        ("app", "/srv", "1000 1000 app /srv green\n40000 not written"),
        (
            "65532:65532",
            "/home",
            "65532 65532 nobody /home green\n40000 written",
        ),
    ] {
        let config = json!({
            "Env": ["COLOR=green", "PATH=/bin"],
            "User": user,
            "WorkingDir": folder,
            "Entrypoint": ["/bin/program"],
        });
        let added = add(&home, "a99-test-musl", &archive.write("riscv64", &config));
        let image = ["exec", "--image", added.name];
        let text = home.ok(&image);
        assert_eq!(
            text,
            format!("{expected}\nchild again 2.000\nstatus 7\n"),
            "{user}"
        );
        let output = home.run(&[&image[..], &["--", "program", "x"]].concat());
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        let loader = ["--", "/lib/ld-musl-riscv64.so.1", "/bin/program"];
        assert_eq!(home.ok(&[&image[..], &loader].concat()), text);
    }
}

/// Debian's docker-registry on a port of the loopback, with an empty store.
struct Registry {
    process: Child,
    host: String,
    folder: tempfile::TempDir,
}

impl Registry {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = free.local_addr().unwrap().to_string();
        drop(free);
        let (file, store) = (
            folder.path().join("config.yml"),
            folder.path().join("store"),
        );
        let config = json!({
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": store}},
            "http": {"addr": host},
        });
        fs::write(&file, config.to_string()).unwrap();
        let mut command = Command::new("docker-registry");
        let command = command.arg("serve").arg(&file);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("docker-registry of Debian");
        eventually(|| std::net::TcpStream::connect(&host).is_ok());
        Self {
            process,
            host,
            folder,
        }
    }

    /// Removes the layers that it has.
    fn lose_layers(&self) {
        let store = self.folder.path().join("store");
        let mut find = Command::new("find");
        let found = find
            .arg(store)
            .args(["-name", "data", "-size", "+99k", "-delete", "-print"]);
        let found = found.output().unwrap();
        assert!(!found.stdout.is_empty(), "{found:?}");
    }

    /// Pushes an archive by Debian's skopeo; returns its name.
    fn push(&self, file: &Path, name: &str) -> String {
        let to = format!("docker://{}/{name}", self.host);
        let from = format!("docker-archive:{}", file.display());
        let flags = ["--insecure-policy", "copy", "--dest-tls-verify=false"];
        let mut skopeo = Command::new("skopeo");
        let output = skopeo.args(flags).args([&from, &to]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        to
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "needs the image, docker-registry and skopeo"]
fn an_image_of_a_registry_is_added_and_runs() {
    let home = Home::new("registry");
    let registry = Registry::new();
    let archive = Archive::new(&home, &["echo"]);
    let config = json!({"Entrypoint": ["/bin/echo", "from"], "Cmd": ["a registry"]});
    let name = registry.push(&archive.write("riscv64", &config), "some/box:1");
    let added = Added {
        home: &home,
        name: "a99-test-registry",
    };
    let _ = home.run(&["image", "rm", added.name]);
    let add = |name: &str| {
        let flags = ["image", "add", "--json", "--insecure", "--name", added.name];
        home.run(&[&flags[..], &[name]].concat())
    };
    let output = add(&name);
    let image: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{image}");
    assert_eq!(image["name"], added.name);
    let reference = name.strip_prefix("docker://").unwrap();
    assert_eq!(image["reference"], reference);
    assert_eq!(
        home.ok(&["exec", "--image", added.name]),
        "from a registry\n"
    );
    // What is there already is not downloaded again.
    registry.lose_layers();
    let again = add(&name);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(again.stdout, output.stdout);
    // What cannot be added changes nothing, and says what there is to do.
    let other = registry.push(&archive.write("amd64", &config), "some/box:2");
    let missing = format!("{}:3", other.strip_suffix(":2").unwrap());
    let unknown = format!("docker://{}/other/box:1", registry.host);
    let digest = format!(
        "{}@sha256:{}",
        other.strip_suffix(":2").unwrap(),
        "0".repeat(64)
    );
    for (name, code) in [
        (&other, "oci.architecture"),
        (&missing, "oci.not_found"),
        (&unknown, "oci.not_found"),
        (&digest, "oci.not_found"),
    ] {
        let output = add(name);
        assert_eq!(output.status.code(), Some(125), "{name}");
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["error"]["code"], code, "{report}");
        assert!(report["error"]["help"].is_string(), "{report}");
    }
    let output = home.run(&["image", "add", "--json", &name]);
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"]["code"], "oci.denied", "{report}");
    let help = format!("--net full:{}", registry.host);
    assert_eq!(report["error"]["help"], help, "{report}");
    assert_eq!(
        home.ok(&["exec", "--image", added.name]),
        "from a registry\n"
    );
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
