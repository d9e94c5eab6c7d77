//! `cargo xtask tidy`: rules of the tree that no compiler checks.
//!
//! [`layering`] has the rules between crates, [`purity`] the modules that the language's crates may
//! not name, [`proofs`] unsafe code and slow tasks, [`sources`] the rules for files, [`mod@sizes`]
//! for the sizes of crates, [`markdown`] for pages, [`metered`] the code that may work without the
//! meter, [`wording`] worn-out phrases, [`sheet`] lists of names that copy facts. [`citations`]
//! checks numbers that text cites, [`names`] the tests named as proof, [`pairs`] modules that import
//! each other. One run reports all violations.

mod citations;
mod layering;
mod manifests;
mod markdown;
mod metered;
mod names;
mod pairs;
mod proofs;
mod purity;
mod sheet;
mod sizes;
mod sources;
mod tables;
mod wording;

pub(crate) use sizes::{Size, sizes};
#[cfg(test)]
pub(crate) use tables::section;

use crate::docs;
use crate::shell::{Failed, output, root};
use std::process::Command;

pub(crate) fn tidy() -> Result<(), Failed> {
    let mut diagnostics = layering::diagnostics()?;
    let files = tracked_files()?;
    let each = || files.iter().map(|(path, text)| (&**path, &**text));
    let (pages, known) = (citations::Pages::of(each()), names::Known::of(each()));
    let tree = markdown::Tree::of(each());
    for (path, text) in each() {
        diagnostics.extend(sources::diagnostics(path, text));
        diagnostics.extend(purity::diagnostics(path, text));
        diagnostics.extend(metered::diagnostics(path, text));
        diagnostics.extend(sheet::diagnostics(path, text));
        diagnostics.extend(citations::diagnostics(path, text, &pages, &known));
        diagnostics.extend(tree.diagnostics(path, text));
        diagnostics.extend(wording::diagnostics(path, text));
    }
    diagnostics.extend(sizes::diagnostics(each()));
    diagnostics.extend(pairs::diagnostics(each()));
    diagnostics.extend(proofs::diagnostics(each(), crate::HELP));
    if let Err(Failed(reason)) = docs::check() {
        diagnostics.push(reason);
    }
    if diagnostics.is_empty() {
        return Ok(());
    }
    diagnostics.sort();
    for diagnostic in &diagnostics {
        eprintln!("  {diagnostic}");
    }
    Err(Failed(format!("{} diagnostics", diagnostics.len())))
}

/// The files of the project with their texts.
pub(crate) fn tracked_files() -> Result<Vec<(String, String)>, Failed> {
    Ok(tracked()?.into_iter().filter_map(read).collect())
}

/// A file with its text; a removed file is listed until the removal is staged.
fn read(path: String) -> Option<(String, String)> {
    let bytes = std::fs::read(root().join(&path)).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some((path, text))
}

/// Paths of the project: tracked, or new and not ignored.
fn tracked() -> Result<Vec<String>, Failed> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let list = output(git.current_dir(root()))?;
    Ok(list.lines().map(str::to_owned).collect())
}
