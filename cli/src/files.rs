//! Input files of a command, named or found in folders; and bounded reads of regular files.

use crate::failure::Failure;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The name of a configuration file.
pub(crate) const CONFIGURATION: &str = "agent99.toml";

/// Opens a regular file: a pipe may block its reader, a device may be endless.
///
/// # Errors
/// Why it cannot be opened.
pub(crate) fn open_regular(path: &Path) -> Result<File, String> {
    let regular = |found: std::io::Result<std::fs::Metadata>| match found {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err("it is no regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    // Opening a pipe would block.
    regular(path.metadata())?;
    let file = File::open(path).map_err(|error| error.to_string())?;
    // The path may have been replaced meanwhile.
    regular(file.metadata())?;
    Ok(file)
}

/// Reads a text of at most `max_kib` KiB.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn read_bounded(file: File, max_kib: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let max = max_kib << 10;
    let read = file.take(max as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() > max {
        return Err(format!("it has more than {max_kib} KiB"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// Expands folders to their files with one of these extensions, sorted by name, recursively.
/// Returns each path with whether it was named explicitly.
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
            let help = format!(
                "name files, or a folder of files that end in {}",
                list.join(" or ")
            );
            let text = "no programs in this folder";
            return Err(Failure::advised(&path.display().to_string(), text, help));
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
            // Links to folders are not followed: they may form cycles.
            if kind.is_dir() {
                folders.push(path);
            } else if extension.is_some_and(|e| extensions.contains(&e)) {
                found.push(path);
            }
        }
    }
    Ok(found)
}
