//! `cargo xtask stranger`: a package on a machine that has nothing else.
//!
//! The machine is a bare Debian root made by debootstrap, without a toolchain, without a network
//! and with an empty cache. Its first command imports and compiles the image; a pack beside it is
//! imported when a sandbox first needs it.

use crate::package;
use crate::shell::{Failed, failed, output, run, target, works};
use crate::stage::Outcome;
use a99_core::artifact::sign::SecretKey;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Release of Debian of the bare machine.
const RELEASE: &str = "bookworm";

/// The folder of the package there, and the home of its user.
const FOLDER: &str = "opt/agent99";
const HOME: &str = "home";

/// What a bare machine must not have.
const ABSENT: [&str; 4] = [
    "usr/bin/cc",
    "usr/bin/cargo",
    "usr/bin/rustc",
    "usr/bin/python3",
];

/// Most seconds from nothing to the first line of output.
const MOST_SECONDS: f64 = 60.0;

/// The pack that a package of this task has.
const PACK: &str = "py";

/// A program with it, and what it prints.
const NUMPY: [&str; 2] = [
    "import numpy; print(numpy.arange(6).reshape(2, 3).sum(axis=0).tolist())",
    "[3, 5, 7]\n",
];

/// Makes a package, or takes the one in a folder, and runs it on the bare machine.
pub(crate) fn test(args: &[&str]) -> Result<(), Failed> {
    let folder = match *args {
        [] => {
            let key = new_key()?;
            package::package(&["--packs", PACK, "--key", &key.to_string_lossy()])?;
            target()?.join("package")
        }
        ["--package", folder] => PathBuf::from(folder),
        _ => return Err(Failed("expected [--package DIR]".to_owned())),
    };
    match in_bare_root(&folder)? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => Err(Failed(reason)),
    }
}

fn in_bare_root(folder: &Path) -> Result<Outcome, Failed> {
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        return Ok(Outcome::Skipped("changing the root needs root".to_owned()));
    }
    let root = bare_root()?;
    let archive = archive_in(folder)?;
    let bytes = fs::metadata(&archive)
        .map_err(|error| failed(archive.display(), error))?
        .len();
    for below in [FOLDER, HOME] {
        let folder = root.join(below);
        // Only what an earlier run left.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| failed(folder.display(), error))?;
    }
    let carried = root.join(FOLDER).join("package.tar.gz");
    fs::copy(&archive, &carried).map_err(|error| failed(archive.display(), error))?;
    let start = Instant::now();
    let there = format!("/{FOLDER}");
    let unpack = ["tar", "-xzf", "package.tar.gz", "--strip-components=1"];
    inside(&root, &[&["env", "-C", &there][..], &unpack].concat())?;
    let unpacked = start.elapsed().as_secs_f64();
    let command = format!("{there}/a99");
    let expect = |line: &[&str], wanted: &str| {
        let start = Instant::now();
        let printed = inside(&root, &[&[&*command, "sandbox", "exec"], line].concat())?;
        match printed == wanted {
            true => Ok(start.elapsed().as_secs_f64()),
            false => Err(failed(
                line.join(" "),
                format!("{wanted:?} was expected: {printed:?}"),
            )),
        }
    };
    let first = expect(&["--", "echo", "hi"], "hi\n")?;
    let second = expect(&["--", "echo", "hi"], "hi\n")?;
    let python = expect(&["--", "python3", "-c", "print(6 * 7)"], "42\n")?;
    let pack = package::pack_file(PACK);
    let numpy = match fs::copy(folder.join(&pack), root.join(FOLDER).join(&pack)) {
        Ok(bytes) => {
            let [program, printed] = NUMPY;
            let line = ["--pack", PACK, "--", "python3", "-c", program];
            let first = expect(&line, printed)?;
            let second = expect(&line, printed)?;
            format!("pack of {bytes} bytes: numpy {first:.1} s, second {second:.1} s")
        }
        Err(_) => format!("no {pack}"),
    };
    let cache = root.join(HOME).join(".cache/agent99");
    let cached = output(Command::new("du").arg("-sk").arg(&cache))?;
    let cached = cached
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    println!(
        "archive {bytes} bytes, unpacked in {unpacked:.1} s; first echo {first:.1} s, second \
         {second:.3} s, python3 {python:.2} s; {numpy}; cache {cached} KiB"
    );
    match unpacked + first <= MOST_SECONDS {
        true => Ok(Outcome::Passed),
        false => Err(Failed(format!(
            "the first echo took more than {MOST_SECONDS} s"
        ))),
    }
}

/// A key for this package alone: only signed packs are imported without a question.
fn new_key() -> Result<PathBuf, Failed> {
    let mut seed = [0; 32];
    let random = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    random.map_err(|error| failed("/dev/urandom", error))?;
    let file = target()?.join("stranger.key");
    let text = SecretKey::from_seed(&seed, None).to_secret_json();
    fs::write(&file, text).map_err(|error| failed(file.display(), error))?;
    Ok(file)
}

/// The bare root, made at the first run.
fn bare_root() -> Result<PathBuf, Failed> {
    let root = target()?.join("stranger/root");
    // The last file that debootstrap writes is its log's removal: this folder goes at its end.
    let is_whole = root.join("bin/sh").exists() && !root.join("debootstrap").exists();
    if !is_whole {
        if !works(Command::new("debootstrap").arg("--version")) {
            run(Command::new("apt-get").args(["install", "-y", "-qq", "debootstrap"]))?;
        }
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).map_err(|error| failed(root.display(), error))?;
        run(Command::new("debootstrap")
            .args(["--variant=minbase", RELEASE])
            .arg(&root))?;
    }
    match ABSENT.iter().find(|file| root.join(file).exists()) {
        Some(file) => Err(failed(
            root.display(),
            format!("is not bare: it has {file}"),
        )),
        None => Ok(root),
    }
}

fn archive_in(folder: &Path) -> Result<PathBuf, Failed> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder.display(), error))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let found = files.find(|file| file.to_string_lossy().ends_with(".tar.gz"));
    found.ok_or_else(|| failed(folder.display(), "has no package"))
}

/// Runs a command in the root: with its own processes and without a network.
fn inside(root: &Path, command_line: &[&str]) -> Result<String, Failed> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--net"]);
    command.arg(format!("--mount-proc={}", root.join("proc").display()));
    command.arg("chroot").arg(root).args(["/usr/bin/env", "-i"]);
    command
        .arg("PATH=/usr/bin:/bin")
        .arg(format!("HOME=/{HOME}"));
    output(command.args(command_line))
}
