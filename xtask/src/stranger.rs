//! `cargo xtask stranger`: a package on a machine that has nothing else.
//!
//! The machine is a bare Debian root made by debootstrap, without a toolchain, without a network
//! and with an empty cache. Its first command imports and compiles the image.

use crate::package;
use crate::shell::{Failed, failed, output, run, target, works};
use crate::stage::Outcome;
use std::fs;
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

/// Makes a package, or takes the one in a folder, and runs it on the bare machine.
pub(crate) fn test(args: &[&str]) -> Result<(), Failed> {
    let folder = match *args {
        [] => {
            package::package(&[])?;
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

fn in_bare_root(package: &Path) -> Result<Outcome, Failed> {
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        return Ok(Outcome::Skipped("changing the root needs root".to_owned()));
    }
    let root = bare_root()?;
    let archive = archive_in(package)?;
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
    let exec = |command_line: &[&str]| {
        let start = Instant::now();
        let printed = inside(
            &root,
            &[&[&*command, "sandbox", "exec", "--"], command_line].concat(),
        );
        printed.map(|printed| (printed, start.elapsed().as_secs_f64()))
    };
    let expect = |line: &[&str], wanted: &str| {
        let (printed, seconds) = exec(line)?;
        match printed == wanted {
            true => Ok(seconds),
            false => Err(failed(
                line.join(" "),
                format!("{wanted:?} was expected: {printed:?}"),
            )),
        }
    };
    let first = expect(&["echo", "hi"], "hi\n")?;
    let second = expect(&["echo", "hi"], "hi\n")?;
    let python = expect(&["python3", "-c", "print(6 * 7)"], "42\n")?;
    let cache = root.join(HOME).join(".cache/agent99");
    let cached = output(Command::new("du").arg("-sk").arg(&cache))?;
    let cached = cached
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    println!(
        "archive {bytes} bytes, unpacked in {unpacked:.1} s; first echo {first:.1} s, second \
         {second:.3} s, python3 {python:.2} s; cache {cached} KiB"
    );
    match unpacked + first <= MOST_SECONDS {
        true => Ok(Outcome::Passed),
        false => Err(Failed(format!(
            "the first echo took more than {MOST_SECONDS} s"
        ))),
    }
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
