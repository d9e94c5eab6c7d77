//! Which names below a `.git` a guest may not write: those that make the
//! host's git run something. `hooks` and `config` are programs and settings
//! that name programs; `config.worktree` and `commondir` lead to such, and so
//! does a `.git` that is a file or a symbolic link. (Rule S07.)
//!
//! Names are judged by their full path on the host, which the kernel tells, so
//! that neither the place of a mount nor a rename hides one. Case, ignorable
//! characters and the spellings of FAT and NTFS are folded away, for file
//! systems that do so themselves.
//!
//! Repositories without a `.git` (bare ones) are not recognised, and a second
//! hard link that the host made is a file of its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What of git's own a guest may write in a mount that it may write to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GitWrites {
    /// Nothing that makes the host's git run programs.
    #[default]
    Refused,
    /// These paths, relative to the mount, and all below them, for instance
    /// `.git/config`.
    Named(Vec<PathBuf>),
    /// All.
    Allowed,
}

/// The names in a git directory that are protected, with all below them; the
/// last two are what FAT makes of the two before.
const PROTECTED: [&str; 6] = [
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "config~1.wor",
    "common~1",
];

/// Folders of a git directory whose children are git directories, too.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// How a path stands to the git directory that it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In none.
    Outside,
    /// It is one, by its name.
    Dot,
    /// In one, where nothing harms.
    Inside,
    /// In one, and protected.
    Protected,
}

/// Where the absolute path `path` lies.
pub(crate) fn place(path: &Path) -> Place {
    let mut place = Place::Outside;
    // Whether each folder that follows may be a git directory, too.
    let mut nested = false;
    for component in path.components() {
        let Component::Normal(name) = component else {
            continue;
        };
        let name = fold(name);
        place = match place {
            Place::Protected => Place::Protected,
            _ if is_dot_git(&name) => {
                nested = false;
                Place::Dot
            }
            Place::Outside => Place::Outside,
            Place::Dot if NESTED.contains(&name.as_str()) => {
                nested = true;
                Place::Inside
            }
            Place::Dot => judge(&name),
            Place::Inside if nested => judge(&name),
            Place::Inside => Place::Inside,
        };
    }
    place
}

fn judge(name: &str) -> Place {
    if PROTECTED.contains(&name) {
        Place::Protected
    } else {
        Place::Inside
    }
}

/// `.git` and the short name that FAT and NTFS give it.
fn is_dot_git(folded: &str) -> bool {
    folded == ".git" || folded == "git~1"
}

/// A name as the most forgiving file system sees it.
fn fold(name: &OsStr) -> String {
    let text = String::from_utf8_lossy(name.as_bytes());
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // Characters that casefolding leaves out or writes otherwise
            // (Unicode 12.1 as in Linux `fs/unicode`): of these letters only.
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{180b}'..='\u{180e}' => {}
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => {}
            '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => {}
            '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => {}
            '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' => {}
            '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => {}
            '\u{017f}' => folded.push('s'),
            '\u{212a}' => folded.push('k'),
            '\u{fb01}' => folded.push_str("fi"),
            c => folded.push(c.to_ascii_lowercase()),
        }
    }
    // NTFS ends a name at a colon; FAT and NTFS drop dots and spaces there.
    let end = folded.find(':').unwrap_or(folded.len());
    folded.truncate(end);
    folded.truncate(folded.trim_end_matches(['.', ' ']).len());
    folded
}

impl GitWrites {
    /// Whether `relative`, a path in the mount, may be written although it is
    /// protected.
    pub(super) fn allows(&self, relative: &Path) -> bool {
        match self {
            Self::Refused => false,
            Self::Named(named) => named.iter().any(|named| relative.starts_with(named)),
            Self::Allowed => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (path, expected) in [
            ("/a/b", Place::Outside),
            ("/a/config", Place::Outside),
            ("/a/.git", Place::Dot),
            ("/a/.git/index", Place::Inside),
            ("/a/.git/refs/heads/config", Place::Inside),
            ("/a/.git/config", Place::Protected),
            ("/a/.git/hooks/pre-commit", Place::Protected),
            ("/a/.git/commondir", Place::Protected),
            ("/a/.git/modules", Place::Inside),
            ("/a/.git/modules/x", Place::Inside),
            ("/a/.git/modules/x/y/config", Place::Protected),
            ("/a/.git/worktrees/w/config.worktree", Place::Protected),
            ("/a/.git/x/.git", Place::Dot),
        ] {
            assert_eq!(place(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn s07_spellings_of_git_names_are_one() {
        for path in [
            "/.GIT/Config",
            "/.git./config. ",
            "/git~1/HOOKS/x",
            "/.g\u{200c}it/con\u{fb01}g",
            "/.git/hoo\u{212a}\u{17f}/x",
            "/.git/config::$DATA",
        ] {
            assert_eq!(place(Path::new(path)), Place::Protected, "{path}");
        }
    }

    #[test]
    fn named_exceptions_are_paths_in_the_mount() {
        let named = GitWrites::Named(vec![".git/hooks".into()]);
        assert!(named.allows(Path::new(".git/hooks/pre-commit")));
        assert!(!named.allows(Path::new(".git/hooksome")));
        assert!(!named.allows(Path::new("sub/.git/hooks")));
        assert!(GitWrites::Allowed.allows(Path::new("x")));
    }
}
