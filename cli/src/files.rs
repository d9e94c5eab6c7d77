//! Files of a command that takes several: those that are named, and those in
//! folders.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// The name of a configuration file.
pub(crate) const CONFIGURATION: &str = "agent99.toml";

/// The files that are meant: those of a folder with one of these extensions in the
/// order of their names, and those of the folders in it. Each with whether it was
/// named itself.
pub(crate) fn expand(
    paths: &[PathBuf],
    extensions: &[&str],
) -> Result<Vec<(PathBuf, bool)>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push((path.clone(), true));
            continue;
        }
        let mut found = within(path, extensions)?;
        if found.is_empty() {
            let list: Vec<String> = extensions.iter().map(|e| format!("`.{e}`")).collect();
            let text = format!(
                "no programs in this folder: they end in {}",
                list.join(" or ")
            );
            return Err(Failure::about(&path.display().to_string(), text));
        }
        found.sort();
        files.extend(found.into_iter().map(|file| (file, false)));
    }
    Ok(files)
}

fn within(path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = |error| Failure::about(&folder.display().to_string(), error);
        let entries = std::fs::read_dir(&folder)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed)?;
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().map_err(failed)?;
            let extension = path.extension().and_then(|e| e.to_str());
            // Links are not followed into folders: they may lead around.
            if kind.is_dir() {
                folders.push(path);
            } else if extension.is_some_and(|e| extensions.contains(&e)) {
                found.push(path);
            }
        }
    }
    Ok(found)
}
