//! Image disk: programs that are useful but too large for the guest's memory. It is a
//! read-only file system (EROFS), uncompressed, so that a read is a plain copy; the host
//! keeps it in one file for all guests.
//!
//! It is mounted at [`PLACE`]. The root file system has a link for each of its folders or
//! files that do not exist there, so that every path is as in Debian.

use super::super::command::{finish, output, program};
use super::super::cpio::{Content, Node, Tree};
use super::super::digest::Inputs;
use super::super::error::{At, ImageError};
use super::{select, unexpected};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Mount point in the guest, mounted by `init`.
pub const PLACE: &str = "usr/lib/agent99";

/// Program that makes the file system.
const MAKE: &str = "mkfs.erofs";

/// A package of which only some programs are taken, into the folder of all programs.
pub(super) const FORMAT_PACKAGE: &str = "e2fsprogs";
const FORMAT_PROGRAMS: [&str; 1] = ["usr/sbin/mke2fs"];

/// The part of the standard library's package on the disk.
const VENV: &str = "usr/lib/python3.13/venv";

/// File that keeps pip from installing outside virtual environments (PEP 668). It is left
/// out, because a guest has no other package manager and lasts no longer than its task.
const EXTERNALLY_MANAGED: &str = "usr/lib/python3.13/EXTERNALLY-MANAGED";

/// Additional files of ours on the disk: path, content.
pub(super) const OWN: [(&str, &str); 2] = [
    (
        "usr/lib/python3.13/ensurepip/__init__.py",
        include_str!("../../ensurepip/__init__.py"),
    ),
    (
        "usr/lib/python3.13/ensurepip/__main__.py",
        include_str!("../../ensurepip/__main__.py"),
    ),
];

/// Files that git's package contains twice, under two names.
const SAME: [(&str, &str); 1] = [("usr/lib/git-core/git", "/usr/bin/git")];

/// Collects the files of the disk: those of its packages, unpacked in `folder`, the
/// formatting programs, unpacked in `format`, and the virtual environment support of
/// Python's standard library, unpacked in `guest`.
pub(super) fn tree(folder: &Path, format: &Path, guest: &Path) -> Result<Tree, ImageError> {
    let host_path = folder.join(VENV);
    if let Some(above) = host_path.parent() {
        fs::create_dir_all(above).at(above)?;
    }
    fs::rename(guest.join(VENV), &host_path).at(&host_path)?;
    let refusal = guest.join(EXTERNALLY_MANAGED);
    fs::remove_file(&refusal).at(&refusal)?;
    for (path, content) in OWN {
        let host_path = folder.join(path);
        if let Some(above) = host_path.parent() {
            fs::create_dir_all(above).at(above)?;
        }
        fs::write(&host_path, content).at(&host_path)?;
    }
    let mut tree = select::tree(folder)?;
    for path in FORMAT_PROGRAMS {
        let file = format.join(path);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !file.is_file() {
            return Err(unexpected(FORMAT_PACKAGE, format!("it has no {path}")));
        }
        let to = format!("usr/bin/{name}");
        tree.put(to, Node::File(0o755, Content::At(file.clone())));
    }
    for (path, same) in SAME {
        if tree.get(path).is_none() {
            return Err(unexpected("git", format!("it has no {path}")));
        }
        tree.put(path, Node::Link(same.to_owned()));
    }
    Ok(tree)
}

/// Adds the links to the root file system.
pub(super) fn link(tree: &mut Tree, disk: &Tree) {
    tree.put(PLACE, Node::Folder(0o755));
    // A linked folder, which covers all entries below it.
    let mut linked: Option<String> = None;
    for (path, node) in disk.iter() {
        let is_below = |folder: &String| path.starts_with(&format!("{folder}/"));
        if linked.as_ref().is_some_and(is_below) || tree.get(path).is_some() {
            continue;
        }
        tree.put(path, Node::Link(format!("/{PLACE}/{path}")));
        if matches!(node, Node::Folder(_)) {
            linked = Some(path.to_owned());
        }
    }
}

/// Merges both trees as the guest sees them, for checks.
pub(super) fn mounted(tree: &Tree, disk: &Tree) -> Tree {
    let mut all = tree.clone();
    for (path, node) in disk.iter() {
        all.put(format!("{PLACE}/{path}"), node.clone());
    }
    all
}

/// Makes the file system in `file`, from a copy of the files in `work`.
pub(crate) fn write(tree: &Tree, work: &Path, file: &Path) -> Result<(), ImageError> {
    let mut listed = Inputs::default();
    fs::create_dir_all(work).at(work)?;
    for (path, node) in tree.iter() {
        let host_path = work.join(path);
        match node {
            Node::Folder(_) => fs::create_dir(&host_path).at(&host_path)?,
            Node::File(mode, content) => {
                let content = content.read()?;
                listed.content(path, &content);
                fs::write(&host_path, content).at(&host_path)?;
                fs::set_permissions(&host_path, fs::Permissions::from_mode(*mode))
                    .at(&host_path)?;
            }
            Node::Link(target) => {
                listed.value(path, target);
                symlink(target, &host_path).at(&host_path)?;
            }
            Node::Characters(..) => return Err(unexpected(path, "a device on the disk")),
        }
    }
    // Owned by root, dated 1970, without extended attributes, and with an identifier
    // derived from the contents: the same files give the same disk.
    let mut make = program(MAKE);
    make.args(["--quiet", "--all-root", "-T0", "-x-1"]);
    make.arg(format!("-U{}", identifier(&listed.key())));
    output(make.arg(file).arg(work)).map(drop)
}

/// Makes a UUID from a hash (RFC 9562, section 5.8).
fn identifier(hash: &str) -> String {
    let digits: String = hash
        .chars()
        .chain(std::iter::repeat('0'))
        .take(32)
        .collect();
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[13..16]);
    format!("{a}-{b}-8{c}-8{}-{}", &digits[17..20], &digits[20..32])
}

/// Returns the program's version, since other versions may make another image of the same
/// files. Empty if it is not installed.
pub(crate) fn version() -> String {
    // Older versions print it, and then reject the option.
    let printed = finish(program(MAKE).arg("--version"));
    let lines = printed.map(|printed| printed.stdout).unwrap_or_default();
    lines.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Node {
        Node::File(0o644, Content::Bytes(text.into()))
    }

    #[test]
    fn the_highest_folder_that_is_missing_is_linked() {
        let mut tree = Tree::default();
        tree.put("usr/bin/sh", file("sh"));
        tree.put("usr/bin/less", file("mine"));
        let mut disk = Tree::default();
        for path in [
            "usr/bin/git",
            "usr/bin/less",
            "usr/lib/git-core/add",
            "usr/lib/git-core/x/y",
        ] {
            disk.put(path, file("disk"));
        }
        link(&mut tree, &disk);
        let link = |path: &str| match tree.get(path) {
            Some(Node::Link(target)) => Some(target.as_str()),
            _ => None,
        };
        assert_eq!(link("usr/bin/git"), Some("/usr/lib/agent99/usr/bin/git"));
        assert_eq!(tree.get("usr/bin/less"), Some(&file("mine")));
        assert_eq!(
            link("usr/lib/git-core"),
            Some("/usr/lib/agent99/usr/lib/git-core")
        );
        assert_eq!(tree.get("usr/lib/git-core/add"), None);
        assert_eq!(tree.get(PLACE), Some(&Node::Folder(0o755)));
        let all = mounted(&tree, &disk);
        assert_eq!(all.get("usr/lib/agent99/usr/bin/git"), Some(&file("disk")));
    }

    #[test]
    fn identifiers_have_their_form() {
        let id = identifier(&"abcdef0123456789".repeat(4));
        assert_eq!(id, "abcdef01-2345-8789-8bcd-ef0123456789");
        assert_eq!(identifier("").len(), 36);
    }

    #[test]
    fn init_mounts_it() {
        let init = super::super::files::OWN[0].2;
        assert!(init.contains(&format!("/dev/vda /{PLACE}")), "{init}");
    }
}
