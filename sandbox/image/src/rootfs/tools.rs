//! GNU coreutils commands instead of busybox's, which read or write byte by byte: in a
//! guest their output takes ten to twenty times as long.
//!
//! GNU's commands take two milliseconds more to start (they are not static), so only those
//! that make or measure large output are replaced. They must need no library other than the
//! C library. `df` is included because busybox's does not show a root file system in
//! memory.

use super::super::cpio::{Content, Node, Tree};
use super::super::error::ImageError;
use super::unexpected;
use std::path::Path;

/// Package that provides them.
pub(super) const PACKAGE: &str = "coreutils";

/// Commands taken from it, with its licence.
pub(super) const TAKEN: [&str; 5] = ["df", "head", "seq", "wc", "yes"];

/// Commands of the image's disk that busybox has too, with fewer options. Busybox's `wget`
/// and its TLS helper accept every certificate.
pub(super) const ON_DISK: [&str; 4] = ["less", "ssl_client", "unzip", "wget"];

/// Adds the commands from the unpacked package.
pub(super) fn add(tree: &mut Tree, unpacked: &Path) -> Result<(), ImageError> {
    for name in TAKEN {
        let path = format!("usr/bin/{name}");
        let file = unpacked.join(&path);
        if !file.is_file() {
            return Err(unexpected(PACKAGE, format!("it has no {path}")));
        }
        tree.put(path, Node::File(0o755, Content::At(file)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_taken_is_there_and_nothing_else() {
        let package = tempfile::tempdir().unwrap();
        let folder = package.path().join("usr/bin");
        fs::create_dir_all(&folder).unwrap();
        let mut tree = Tree::default();
        for name in ["df", "head", "ls", "seq", "wc"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let error = add(&mut tree, package.path()).unwrap_err();
        assert!(error.reason.contains("usr/bin/yes"), "{error:?}");
        fs::write(folder.join("yes"), "yes").unwrap();
        add(&mut tree, package.path()).unwrap();
        let files = tree
            .iter()
            .filter(|(_, node)| matches!(node, Node::File(0o755, _)));
        let paths: Vec<&str> = files.map(|(path, _)| path).collect();
        let expected = TAKEN.map(|name| format!("usr/bin/{name}"));
        assert_eq!(paths, expected);
    }
}
