//! `cargo xtask npm`: the npm packages of this platform, packed and tried in an empty project.
//!
//! The addon and the module of WebAssembly are built here; `bindings/js` compiles its TypeScript
//! and lays the packages out below `target/npm`.

use crate::shell::{Failed, cargo, failed, output, root, run, target};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WASM: &str = "wasm32-unknown-unknown";

/// Builds, packs, installs the packed files into an empty project, and runs README's code there.
pub(crate) fn npm(args: &[&str]) -> Result<(), Failed> {
    let (profile, should_try) = match *args {
        [] => ("release", true),
        ["--no-smoke"] => ("release", false),
        ["--profile", profile] => (profile, true),
        ["--profile", profile, "--no-smoke"] => (profile, false),
        _ => return Err(Failed("expected [--profile NAME] [--no-smoke]".to_owned())),
    };
    add_target()?;
    let native = build("a99-node", profile, &[])?.join(addon_file());
    let wasm = build(
        "a99-wasm",
        profile,
        &["--features", "source", "--target", WASM],
    )?;
    let wasm = target()?
        .join(WASM)
        .join(wasm.file_name().unwrap_or_default());
    let wasm = wasm.join("a99_wasm.wasm");
    let out = target()?.join("npm");
    // The tests of a clone find the engine here.
    let beside = root().join("bindings/native");
    fs::create_dir_all(&beside).map_err(|error| failed(beside.display(), error))?;
    for (from, name) in [(&native, "agent99.node"), (&wasm, "agent99.wasm")] {
        fs::copy(from, beside.join(name)).map_err(|error| failed(from.display(), error))?;
    }
    let project = project();
    if !project.join("node_modules").exists() {
        run(Command::new("npm").arg("ci").current_dir(&project))?;
    }
    node(&project, "build.mjs", &[])?;
    let version = env!("CARGO_PKG_VERSION");
    let places = [
        out.as_os_str(),
        version.as_ref(),
        native.as_os_str(),
        wasm.as_os_str(),
    ];
    node(&project, "pack.mjs", &places)?;
    match should_try {
        true => smoke(&project, &out),
        false => Ok(()),
    }
}

fn project() -> PathBuf {
    root().join("bindings/js")
}

/// Runs the tests of the package with the engines that [`npm`] built.
pub(crate) fn tests() -> Result<(), Failed> {
    let project = project();
    let folder = project.join("test");
    let entries = fs::read_dir(&folder).map_err(|error| failed(folder.display(), error))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    for backend in ["native", "wasm"] {
        let mut test = Command::new("node");
        test.args(["--test", "--test-reporter", "dot"])
            .args(&files)
            .current_dir(&project);
        run(test.env("AGENT99_BACKEND", backend))?;
    }
    node(&project, "gen.mjs", &["--check".as_ref()])?;
    let mut types = Command::new("npx");
    types.args(["--no-install", "tsc", "-p", "tsconfig.test.json"]);
    run(types.current_dir(&project))
}

/// Adds the target of WebAssembly to the toolchain if it is missing.
fn add_target() -> Result<(), Failed> {
    let mut libdir = Command::new("rustc");
    libdir.args(["--print", "target-libdir", "--target", WASM]);
    let folder = output(libdir.current_dir(root()))?;
    match Path::new(folder.trim()).is_dir() {
        true => Ok(()),
        false => run(Command::new("rustup").args(["target", "add", WASM])),
    }
}

/// Builds a package with a profile; the folder of that profile.
fn build(package: &str, profile: &str, args: &[&str]) -> Result<PathBuf, Failed> {
    run(cargo("build")
        .args(["--profile", profile, "--package", package])
        .args(args))?;
    let folder = match profile {
        "dev" => "debug",
        profile => profile,
    };
    Ok(target()?.join(folder))
}

/// The file that cargo makes of the addon's crate.
fn addon_file() -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}a99_node{DLL_SUFFIX}")
}

fn node(project: &Path, script: &str, args: &[&OsStr]) -> Result<(), Failed> {
    run(Command::new("node")
        .arg(script)
        .args(args)
        .current_dir(project))
}

/// Installs the packed files into an empty project and runs the code of README.
fn smoke(project: &Path, out: &Path) -> Result<(), Failed> {
    let empty = out.join("project");
    fs::create_dir_all(&empty).map_err(|error| failed(empty.display(), error))?;
    let manifest = empty.join("package.json");
    fs::write(&manifest, "{ \"private\": true }\n")
        .map_err(|error| failed(manifest.display(), error))?;
    let files = fs::read_dir(out).map_err(|error| failed(out.display(), error))?;
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let mut packed: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|end| end == "tgz"))
        .collect();
    packed.sort();
    // The packages of other platforms are not published; npm passes over optional ones.
    let mut install = Command::new("npm");
    install.args([
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
    ]);
    run(install.args(&packed).current_dir(&empty))?;
    node(project, "smoke.mjs", &[empty.as_os_str()])
}
