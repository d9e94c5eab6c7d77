//! `cargo xtask tidy`: rules of the tree that no compiler checks.
//!
//! The walls between crates are in [`walls`], the rules for files in
//! [`sources`], what may work without the meter in [`metered`]. All findings are told at once.

mod metered;
mod sources;
mod walls;

use crate::docs;
use crate::shell::{Failed, output, root};
use std::process::Command;

/// Checks everything.
pub fn tidy() -> Result<(), Failed> {
    let mut findings = walls::findings()?;
    for path in tracked()? {
        // Files that a change has removed are still listed until it is staged.
        if let Ok(bytes) = std::fs::read(root().join(&path)) {
            let text = String::from_utf8_lossy(&bytes);
            findings.extend(sources::findings(&path, &text));
            findings.extend(metered::findings(&path, &text));
        }
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

/// The files of the project: tracked, or new and not ignored.
fn tracked() -> Result<Vec<String>, Failed> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let list = output(git.current_dir(root()))?;
    Ok(list.lines().map(str::to_owned).collect())
}
