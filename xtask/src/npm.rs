//! `cargo xtask npm`: the npm packages of this platform, packed and tried in an empty project.
//!
//! The addon and the module of WebAssembly are built here; `bindings/js` compiles its TypeScript
//! and lays the packages out below `target/npm`.

use crate::shell::{Failed, cargo, failed, root, run, target};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WASM: &str = "wasm32-unknown-unknown";

/// Builds, packs, installs the packed files into an empty project, and runs README's code there.
pub(crate) fn npm(args: &[&str]) -> Result<(), Failed> {
    let should_try = match args {
        [] => true,
        ["--no-smoke"] => false,
        _ => return Err(Failed("expected [--no-smoke]".to_owned())),
    };
    build("a99-node", &[])?;
    build("a99-wasm", &["--features", "source", "--target", WASM])?;
    let native = target()?.join("release").join(addon_file());
    let wasm = target()?.join(WASM).join("release/a99_wasm.wasm");
    let out = target()?.join("npm");
    let project = root().join("bindings/js");
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

fn build(package: &str, args: &[&str]) -> Result<(), Failed> {
    run(cargo("build")
        .args(["--release", "--package", package])
        .args(args))
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
