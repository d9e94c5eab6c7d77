//! Cargo builds of the image's own two programs: the emulator as a WebAssembly module, and
//! the agent that runs inside the guest.
//!
//! They need a clone of the project and its Rust toolchain; rustup adds missing targets.

use super::command::{finish, lasting, logged, output, program, tail};
use super::digest::{self, Inputs};
use super::error::{At, ErrorCode, ImageError};
use super::step::{Step, StepContext};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Space for cargo's work, in bytes.
const ROOM: u64 = 500_000_000;

/// Workspace files that affect how a crate is built.
const WORKSPACE_FILES: [&str; 3] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];

/// Variables of a surrounding cargo, or of its user, that would change the build.
const FOREIGN: [&str; 5] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_TARGET_DIR",
];

/// Folders of a crate that are not part of the program.
const NOT_BUILT: [&str; 3] = ["tests", "benches", "examples"];

/// Build recipe of one program.
#[derive(Debug)]
pub struct Recipe {
    /// Name of the step.
    step: &'static str,
    /// Crate folder in the workspace.
    folder: &'static str,
    /// Folders of the workspace crates that it depends on.
    needs: &'static [&'static str],
    /// Rust's name of the target.
    target: &'static str,
    /// Arguments of cargo.
    arguments: &'static [&'static str],
    /// Flags of the compiler.
    flags: &'static str,
    /// Linker, if not the target's default.
    linker: Option<&'static str>,
    /// Path of the program below cargo's folder for the target.
    made: &'static str,
    /// File name in the result.
    pub result: &'static str,
}

/// The emulator, a reactor without a `main`.
pub static EMULATOR: Recipe = Recipe {
    step: "emulator",
    folder: "sandbox/guest",
    needs: &["sandbox/abi"],
    target: "wasm32-wasip1",
    arguments: &[
        "rustc",
        "-p",
        "a99-sandbox-guest",
        "--lib",
        "--profile",
        "emulator",
        "--crate-type",
        "cdylib",
    ],
    // The embedder adds translated code to the function table.
    flags: "-Clink-arg=--export-table -Clink-arg=--growable-table",
    linker: None,
    made: "emulator/a99_sandbox_guest.wasm",
    result: "emulator.wasm",
};

/// The agent, linked statically so that it starts without a loader.
pub static AGENT: Recipe = Recipe {
    step: "agent",
    folder: "sandbox/guest-agent",
    needs: &["sandbox/protocol"],
    target: "riscv64gc-unknown-linux-gnu",
    arguments: &[
        "build",
        "-p",
        "a99-sandbox-guest-agent",
        "--bins",
        "--profile",
        "agent",
    ],
    flags: "-Ctarget-feature=+crt-static",
    linker: Some("riscv64-linux-gnu-gcc"),
    made: "agent/agent99-agent",
    result: "agent99-agent",
};

impl Recipe {
    /// Whether the clone has the crate.
    pub fn is_in(&self, sources: &Path) -> bool {
        sources.join(self.folder).join("Cargo.toml").is_file()
    }
}

/// Step that builds one of the programs.
#[derive(Clone, Debug)]
pub struct CrateBuild {
    recipe: &'static Recipe,
    sources: PathBuf,
    cargo_folder: PathBuf,
}

impl CrateBuild {
    /// Builds from the sources of a clone. cargo works in a persistent folder, so that
    /// unchanged code is not recompiled.
    pub fn new(recipe: &'static Recipe, sources: &Path, cargo_folder: &Path) -> CrateBuild {
        CrateBuild {
            recipe,
            sources: sources.to_path_buf(),
            cargo_folder: cargo_folder.to_path_buf(),
        }
    }

    fn cargo(&self) -> Command {
        let Recipe {
            target,
            arguments,
            flags,
            linker,
            ..
        } = self.recipe;
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut cargo = lasting(&cargo);
        for name in FOREIGN {
            cargo.env_remove(name);
        }
        // The path of the clone must not be part of the program.
        let remap = format!("--remap-path-prefix={}=agent99", self.sources.display());
        let of_target = |setting: &str| {
            let target = target.to_uppercase().replace('-', "_");
            format!("CARGO_TARGET_{target}_{setting}")
        };
        cargo.env(
            of_target("RUSTFLAGS"),
            format!("{remap} {flags}").trim_end(),
        );
        if let Some(linker) = linker {
            cargo.env(of_target("LINKER"), linker);
        }
        cargo
            .current_dir(&self.sources)
            .args(*arguments)
            .arg("--locked");
        cargo
            .args(["--target", target, "--target-dir"])
            .arg(&self.cargo_folder);
        cargo
    }
}

impl Step for CrateBuild {
    fn name(&self) -> &'static str {
        self.recipe.step
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.value("cargo", self.recipe.arguments.join(" "));
        inputs.value("flags", self.recipe.flags);
        let mut rustc = program("rustc");
        inputs.value(
            "rustc",
            output(rustc.current_dir(&self.sources).arg("-vV"))?,
        );
        if let Some(linker) = self.recipe.linker {
            let version = output(program(linker).arg("--version"))?;
            inputs.value("linker", version.lines().next().unwrap_or_default());
        }
        for name in WORKSPACE_FILES {
            let path = self.sources.join(name);
            inputs.value(name, digest::of_file(&path)?);
        }
        for folder in std::iter::once(&self.recipe.folder).chain(self.recipe.needs) {
            for (name, path) in source_files(&self.sources, folder)? {
                inputs.value(name, digest::of_file(&path)?);
            }
        }
        Ok(())
    }

    fn room(&self) -> u64 {
        ROOM
    }

    fn run(&self, context: &mut StepContext<'_>, out: &Path) -> Result<(), ImageError> {
        add_target(&self.sources, self.recipe.target)?;
        logged(&mut self.cargo(), &context.work().join("log"))?;
        let made = self
            .cargo_folder
            .join(self.recipe.target)
            .join(self.recipe.made);
        fs::copy(&made, out.join(self.recipe.result)).at(&made)?;
        Ok(())
    }
}

/// Lists the files of a crate that affect its program, by name.
fn source_files(sources: &Path, folder: &str) -> Result<BTreeMap<String, PathBuf>, ImageError> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let host_folder = sources.join(&folder);
        for entry in fs::read_dir(&host_folder).at(&host_folder)? {
            let path = entry.at(&host_folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let below = format!("{folder}/{name}");
            if !path.is_dir() {
                files.insert(below, path);
            } else if !NOT_BUILT.contains(&&*name) {
                folders.push(below);
            }
        }
    }
    Ok(files)
}

/// Adds a target to the toolchain if it is missing.
fn add_target(sources: &Path, target: &str) -> Result<(), ImageError> {
    let mut rustc = program("rustc");
    rustc.current_dir(sources);
    let folder = output(rustc.args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    let advice = format!("`rustup target add {target}`, or another way to get it");
    let mut rustup = program("rustup");
    let printed = finish(rustup.current_dir(sources).args(["target", "add", target]));
    let reason = match printed {
        Ok(printed) if printed.status.success() => return Ok(()),
        Ok(printed) => tail(&printed.stderr),
        Err(error) => error.reason,
    };
    Err(ImageError::new(ErrorCode::ToolsMissing, target, reason).help(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_the_program_are_inputs_and_tests_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("sandbox/guest/src/cpu")).unwrap();
        fs::create_dir_all(at("sandbox/guest/tests")).unwrap();
        for folder in EMULATOR.needs {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for name in WORKSPACE_FILES {
            fs::write(at(name), "").unwrap();
        }
        fs::write(at("sandbox/guest/Cargo.toml"), "").unwrap();
        fs::write(at("sandbox/guest/src/cpu/mod.rs"), "1").unwrap();
        fs::write(at("sandbox/guest/tests/all.rs"), "1").unwrap();
        let files = source_files(folder.path(), "sandbox/guest").unwrap();
        let names: Vec<&String> = files.keys().collect();
        assert_eq!(
            names,
            ["sandbox/guest/Cargo.toml", "sandbox/guest/src/cpu/mod.rs"]
        );
        let key = || {
            let mut inputs = Inputs::default();
            let build = CrateBuild::new(&EMULATOR, folder.path(), folder.path());
            build.inputs(&mut inputs).unwrap();
            inputs.key()
        };
        let before = key();
        fs::write(at("sandbox/guest/tests/all.rs"), "2").unwrap();
        assert_eq!(key(), before);
        fs::write(at("sandbox/guest/src/cpu/mod.rs"), "2").unwrap();
        assert_ne!(key(), before);
    }

    #[test]
    fn crates_that_a_program_depends_on_are_inputs() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for recipe in [&EMULATOR, &AGENT] {
            let manifest = sources.join(recipe.folder).join("Cargo.toml");
            let manifest = fs::read_to_string(manifest).unwrap();
            let (_, needed) = manifest
                .split_once("\n[dependencies]\n")
                .unwrap_or_default();
            let (needed, _) = needed.split_once("\n[").unwrap_or((needed, ""));
            let ours = needed.lines().filter(|line| line.starts_with("a99-"));
            assert_eq!(ours.count(), recipe.needs.len(), "{}", recipe.folder);
            for folder in recipe.needs {
                let files = source_files(&sources, folder).unwrap();
                assert!(files.contains_key(&format!("{folder}/Cargo.toml")));
            }
        }
    }

    #[test]
    fn what_surrounds_does_not_change_the_program() {
        let build = CrateBuild::new(&AGENT, Path::new("clone"), Path::new("target"));
        let cargo = build.cargo();
        let set = |name: &str| cargo.get_envs().find(|(key, _)| *key == name).unwrap().1;
        assert_eq!(set("RUSTFLAGS"), None);
        let flags = set("CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_RUSTFLAGS").unwrap();
        assert_eq!(
            flags.to_str().unwrap(),
            "--remap-path-prefix=clone=agent99 -Ctarget-feature=+crt-static"
        );
        let linker = set("CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_LINKER").unwrap();
        assert_eq!(linker, "riscv64-linux-gnu-gcc");
    }
}
