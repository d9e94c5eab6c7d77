//! `cargo xtask tidy`: rules of the tree that no compiler checks.
//!
//! The rules between crates are in [`layering`], what the language's crates may
//! not name in [`purity`], the rules for files in [`sources`], those for pages in
//! [`markdown`], what may work without the meter in [`metered`]; what is cited by
//! number or named as proof exists ([`citations`], [`names`]). Everything that is
//! wrong is told at once.

mod citations;
mod layering;
mod markdown;
mod metered;
mod names;
mod purity;
mod sources;
mod tables;

use crate::docs;
use crate::shell::{Failed, output, root};
use std::process::Command;

/// Checks everything.
pub fn tidy() -> Result<(), Failed> {
    let mut findings = layering::diagnostics()?;
    let files: Vec<(String, String)> = tracked()?.into_iter().filter_map(read).collect();
    let each = || files.iter().map(|(path, text)| (&**path, &**text));
    let (pages, known) = (citations::Pages::of(each()), names::Known::of(each()));
    let tree = markdown::Tree::of(each());
    for (path, text) in each() {
        findings.extend(sources::findings(path, text));
        findings.extend(purity::diagnostics(path, text));
        findings.extend(metered::findings(path, text));
        findings.extend(citations::findings(path, text, &pages, &known));
        findings.extend(tree.findings(path, text));
    }
    if let Err(Failed(reason)) = docs::check() {
        findings.push(reason);
    }
    if findings.is_empty() {
        return Ok(());
    }
    findings.sort();
    for finding in &findings {
        eprintln!("  {finding}");
    }
    Err(Failed(format!("{} findings", findings.len())))
}

/// A file with its text; files that a change has removed are still listed until
/// it is staged.
fn read(path: String) -> Option<(String, String)> {
    let bytes = std::fs::read(root().join(&path)).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some((path, text))
}

/// The files of the project: tracked, or new and not ignored.
fn tracked() -> Result<Vec<String>, Failed> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let list = output(git.current_dir(root()))?;
    Ok(list.lines().map(str::to_owned).collect())
}
