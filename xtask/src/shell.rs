//! Running commands and finding files.

use serde_json::Value;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a task failed.
#[derive(Debug)]
pub(crate) struct Failed(pub String);

/// A failure about a subject.
pub(crate) fn failed(subject: impl Display, reason: impl Display) -> Failed {
    Failed(format!("{subject}: {reason}"))
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo that runs this task, for this workspace. The current folder stays the user's, so that
/// relative paths keep their meaning.
pub(crate) fn cargo(command: &str) -> Command {
    cargo_of(&root().join("Cargo.toml"), command)
}

/// A cargo command for the workspace of a manifest.
pub(crate) fn cargo_of(manifest: &Path, command: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg(command);
    cargo.arg("--manifest-path").arg(manifest);
    cargo
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), Failed> {
    let name = describe(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(name, status)),
        Err(error) => Err(failed(name, error)),
    }
}

/// Builds a program of the workspace with the profile of benchmarks, and runs it.
pub(crate) fn run_program(package: &str, name: &str, args: &[&str]) -> Result<(), Failed> {
    let mut program = cargo("run");
    program.args(["--quiet", "--profile", "bench", "--package", package]);
    program.args(["--bin", name, "--"]).args(args);
    // The program has printed its error.
    run(&mut program).map_err(|_| Failed(String::new()))
}

/// Builds an example with dev-dependencies and the profile of benchmarks, and runs it.
pub(crate) fn run_example(package: &str, name: &str, args: &[&str]) -> Result<(), Failed> {
    let mut example = cargo("run");
    example.args(["--quiet", "--profile", "bench", "--package", package]);
    example.args(["--features", "testing", "--example", name, "--"]);
    // The example has printed its error.
    run(example.args(args)).map_err(|_| Failed(String::new()))
}

/// Runs a command and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failed> {
    let name = describe(command);
    let done = command.output().map_err(|error| failed(&name, error))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        return Err(failed(name, format!("{}\n{errors}", done.status)));
    }
    String::from_utf8(done.stdout).map_err(|error| failed(name, error))
}

/// Sets the variables through which a test reads its options. Each option has a value.
pub(crate) fn set_options(
    test: &mut Command,
    args: &[&str],
    known: &[(&str, &str)],
    usage: &str,
) -> Result<(), Failed> {
    for pair in args.chunks(2) {
        let found = known.iter().find(|(name, _)| pair.first() == Some(name));
        match (found, pair) {
            (Some((_, variable)), [_, value]) => drop(test.env(variable, value)),
            _ => return Err(Failed(format!("expected {usage}"))),
        }
    }
    Ok(())
}

/// The target folder of cargo.
pub(crate) fn target() -> Result<PathBuf, Failed> {
    target_of(&root().join("Cargo.toml"))
}

/// The target folder of a manifest's workspace.
pub(crate) fn target_of(manifest: &Path) -> Result<PathBuf, Failed> {
    let metadata = metadata_of(manifest)?;
    let target = metadata["target_directory"].as_str().map(PathBuf::from);
    target.ok_or_else(|| failed("cargo metadata", "no target folder"))
}

/// Cargo's metadata of the workspace, without external dependencies.
pub(crate) fn metadata() -> Result<Value, Failed> {
    metadata_of(&root().join("Cargo.toml"))
}

fn metadata_of(manifest: &Path) -> Result<Value, Failed> {
    let mut metadata = cargo_of(manifest, "metadata");
    metadata.args(["--no-deps", "--format-version", "1"]);
    let text = output(&mut metadata)?;
    serde_json::from_str(&text).map_err(|error| failed("cargo metadata", error))
}

/// Whether a command exists and succeeds; discards its output.
pub(crate) fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|done| done.status.success())
}

/// A command in the form that a user would type.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    let mut args = command.get_args();
    while let Some(arg) = args.next() {
        if arg == "--manifest-path" {
            // Drop the redundant manifest path.
            args.next();
            continue;
        }
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// The files below a folder of the workspace with the extension `ext`, sorted; empty without such a
/// folder.
pub(crate) fn files_below(folder: &str, ext: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ext) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
