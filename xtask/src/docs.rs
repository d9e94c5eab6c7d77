//! `cargo xtask docs`: the documents that are generated from tables of the
//! engine, so that they cannot drift from it.

use crate::shell::{Failed, failed, root};
use a99_atoms::{all_atoms, is_internal};
use a99_core::artifact;
use a99_core::docs::{bytecode_markdown, costs_markdown};
use std::fs;

/// The documents: path in the workspace, text.
fn documents() -> [(&'static str, String); 3] {
    let atoms = all_atoms();
    let language: Vec<_> = atoms
        .iter()
        .map(|atom| &atom.sig)
        .filter(|sig| !is_internal(&sig.name))
        .collect();
    [
        ("docs/a99b.md", artifact::markdown()),
        ("docs/bytecode.md", bytecode_markdown()),
        ("docs/costs.md", costs_markdown(&language)),
    ]
}

/// Writes the documents.
pub fn write() -> Result<(), Failed> {
    for (path, text) in documents() {
        fs::write(root().join(path), text).map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// Checks that the documents are what would be written.
pub fn check() -> Result<(), Failed> {
    for (path, text) in documents() {
        let found = fs::read_to_string(root().join(path)).map_err(|error| failed(path, error))?;
        if found != text {
            return Err(failed(path, "out of date; run `cargo xtask docs`"));
        }
    }
    Ok(())
}
