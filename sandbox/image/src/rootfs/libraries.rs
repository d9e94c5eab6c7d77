//! Library check: every program and library of the image finds the libraries that it needs.

use super::super::cpio::{Node, Tree};
use super::super::elf::{self, Elf};
use super::super::error::{ErrorCode, ImageError};

/// Search path of the guest's dynamic loader (ld.so(8), Debian's multiarch).
const FOLDERS: [&str; 2] = ["usr/lib/riscv64-linux-gnu", "usr/lib"];

/// Maximum links followed.
const MAX_LINKS: usize = 8;

/// Checks all files; the error names the first with a missing library.
pub(super) fn check(tree: &Tree) -> Result<(), ImageError> {
    for (path, node) in tree.iter() {
        let Node::File(_, content) = node else {
            continue;
        };
        if let Some(elf) = elf::read(&content.read()?) {
            check_one(tree, path, &elf)?;
        }
    }
    Ok(())
}

fn check_one(tree: &Tree, path: &str, elf: &Elf) -> Result<(), ImageError> {
    let error = |reason: String| ImageError::new(ErrorCode::LibraryMissing, path, reason);
    if elf.machine != elf::RISCV {
        return Err(error(format!("is for machine {}, not RISC-V", elf.machine)));
    }
    if let Some(interpreter) = &elf.interpreter {
        let path_in_image = interpreter.trim_start_matches('/');
        if !is_file(tree, path_in_image) {
            return Err(error(format!("{interpreter} is not in the image")));
        }
    }
    for name in &elf.needed {
        let found = FOLDERS
            .iter()
            .any(|folder| is_file(tree, &format!("{folder}/{name}")));
        if !found {
            return Err(error(format!("needs {name}, which is not in the image")));
        }
    }
    Ok(())
}

/// Whether a path leads to a file, following links as the guest would.
fn is_file(tree: &Tree, path: &str) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match tree.get(&path) {
            Some(Node::File(..)) => return true,
            Some(Node::Link(target)) => path = beside(&path, target),
            Some(_) => return false,
            // A parent folder may be a link, such as `lib`.
            None => match above_link(tree, &path) {
                Some(resolved) => path = resolved,
                None => return false,
            },
        }
    }
    false
}

/// Resolves the first linked folder of a path.
fn above_link(tree: &Tree, path: &str) -> Option<String> {
    path.match_indices('/')
        .find_map(|(slash, _)| match tree.get(&path[..slash]) {
            Some(Node::Link(target)) => Some(beside(&path[..slash], target) + &path[slash..]),
            _ => None,
        })
}

/// Turns a link's target into a path from the root.
fn beside(link: &str, target: &str) -> String {
    match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None => match link.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{target}"),
            None => target.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cpio::Content;
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        let file = || Node::File(0o755, Content::Bytes(Vec::new()));
        let link = |target: &str| Node::Link(target.to_owned());
        tree.put("usr/lib/riscv64-linux-gnu/ld.so", file());
        tree.put("usr/lib/riscv64-linux-gnu/libx.so.1.2", file());
        tree.put("usr/lib/riscv64-linux-gnu/libx.so.1", link("libx.so.1.2"));
        tree.put("usr/lib/riscv64-linux-gnu/dangling.so", link("gone.so"));
        tree.put("usr/lib/riscv64-linux-gnu/around.so", link("around.so"));
        tree.put("usr/lib/ld.so", link("riscv64-linux-gnu/ld.so"));
        tree.put("lib", link("usr/lib"));
        tree
    }

    fn program(needed: &[&str]) -> Elf {
        Elf {
            machine: elf::RISCV,
            interpreter: Some("/lib/ld.so".to_owned()),
            needed: needed.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn libraries_are_found_over_links() {
        check_one(&tree(), "p", &program(&["libx.so.1", "ld.so"])).unwrap();
    }

    #[test]
    fn what_is_missing_is_named() {
        for name in ["liby.so", "dangling.so", "around.so"] {
            let error = check_one(&tree(), "p", &program(&["libx.so.1", name])).unwrap_err();
            assert_eq!(error.code, ErrorCode::LibraryMissing);
            assert!(error.reason.contains(name));
        }
        let mut other = program(&[]);
        other.interpreter = Some("/lib/other".to_owned());
        assert!(check_one(&tree(), "p", &other).is_err());
        let mut foreign = program(&[]);
        foreign.machine = 62;
        assert!(check_one(&tree(), "p", &foreign).is_err());
    }
}
