//! Included agents.toml files, by folder name or pattern.

use super::FILE;
use crate::config::BAD_VALUE;
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// The files that match these patterns, sorted. A pattern is relative to the folder of the file
/// that contains it.
///
/// # Errors
/// A pattern without a match.
pub(super) fn files(from: &Path, patterns: &[(String, String)]) -> Result<Vec<PathBuf>, Failure> {
    let folder = from.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    for (place, pattern) in patterns {
        let path = folder.join(pattern);
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let found = match name.split_once('*') {
            Some((before, after)) if !after.contains('*') => {
                let inside = path.parent().unwrap_or(Path::new(""));
                matching(inside, before, after)
            }
            _ if path.is_dir() => vec![path.join(FILE)],
            _ => vec![path.clone()],
        };
        let found: Vec<PathBuf> = found.into_iter().filter(|file| file.is_file()).collect();
        if found.is_empty() {
            let text = format!("{place}: `{pattern}` is no folder with {FILE} in it");
            let help = "write `include = [\"agents/*\"]`: all folders in `agents` that have one";
            return Err(Failure::coded(BAD_VALUE, text, help));
        }
        files.extend(found);
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// The agents.toml files in folders with matching names.
fn matching(inside: &Path, before: &str, after: &str) -> Vec<PathBuf> {
    let inside = match inside.as_os_str().is_empty() {
        true => Path::new("."),
        false => inside,
    };
    let Ok(entries) = std::fs::read_dir(inside) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names = names.filter(|name| {
        let rest = name.strip_prefix(before);
        rest.is_some_and(|rest| rest.ends_with(after)) && !name.starts_with('.')
    });
    names.map(|name| inside.join(name).join(FILE)).collect()
}
