//! Python bytecode: the build machine compiles the guest's modules.
//!
//! Compiled modules depend only on the version of Python, not on the processor, so the same
//! package version for this machine's architecture makes them. It runs through its own
//! dynamic loader and needs no installation.

use super::super::command::output;
use super::super::cpio::{Content, Node, Tree};
use super::super::error::{At, ImageError};
use super::super::packages::Arch;
use super::unexpected;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Script that compiles the modules.
pub(crate) const SCRIPT: &str = include_str!("../../compile.py");

/// Program below the root of its unpacked packages.
const PROGRAM: &str = "usr/bin/python3.13";

/// Version tag in a compiled module's name.
const TAG: &str = "cpython-313";

/// Adds a compiled module for each module of the tree.
pub(crate) fn compile(
    tree: &mut Tree,
    guest: &Path,
    compiler: &Path,
    host: Arch,
    results: &Path,
) -> Result<(), ImageError> {
    fs::create_dir_all(results).at(results)?;
    let is_module =
        |(path, node): &(&str, &Node)| path.ends_with(".py") && matches!(node, Node::File(..));
    let modules: Vec<String> = tree
        .iter()
        .filter(is_module)
        .map(|(p, _)| p.to_owned())
        .collect();
    if modules.is_empty() {
        return Err(unexpected("libpython3.13-stdlib", "it has no modules"));
    }
    let list = results.join("modules");
    fs::write(&list, modules.join("\n") + "\n").at(&list)?;
    let script = results.join("compile.py");
    fs::write(&script, SCRIPT).at(&script)?;
    let mut command = interpreter(compiler, host);
    command.arg(&script).arg(guest).arg(results);
    output(command.stdin(File::open(&list).at(&list)?))?;
    for module in modules {
        let compiled = results.join(format!("{module}c"));
        let content = Content::Bytes(fs::read(&compiled).at(&compiled)?);
        tree.put(compiled_path(&module), Node::File(0o644, content));
    }
    Ok(())
}

/// Path at which Python looks for a compiled module (PEP 3147).
fn compiled_path(module: &str) -> String {
    let (folder, name) = module.rsplit_once('/').unwrap_or(("", module));
    let name = name.strip_suffix(".py").unwrap_or(name);
    format!("{folder}/__pycache__/{name}.{TAG}.pyc")
}

/// Prepares Python from unpacked packages, isolated from the machine's own.
fn interpreter(root: &Path, host: Arch) -> Command {
    let (folder, loader) = host.loader();
    let libraries = root.join("usr/lib").join(folder);
    let mut command = Command::new(libraries.join(loader));
    command.arg("--library-path").arg(&libraries);
    command.arg(root.join(PROGRAM));
    // No site modules, no bytecode files, no import from the script's folder.
    command.args(["-S", "-s", "-B", "-P"]);
    command.env_clear();
    command.env("PYTHONHOME", root.join("usr"));
    // Otherwise the order of constant sets would differ from run to run.
    command.env("PYTHONHASHSEED", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_modules_stand_where_python_looks() {
        assert_eq!(
            compiled_path("usr/lib/python3.13/json/__init__.py"),
            "usr/lib/python3.13/json/__pycache__/__init__.cpython-313.pyc"
        );
    }

    #[test]
    fn a_tree_without_modules_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let error = compile(&mut Tree::default(), path, path, Arch::Amd64, path).unwrap_err();
        assert!(error.reason.contains("no modules"));
    }
}
