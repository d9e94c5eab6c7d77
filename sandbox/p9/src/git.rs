//! Git write protection: what of git's own a guest may write.
//!
//! The host's git runs what some files of a repository name: programs in `hooks`,
//! filters, monitors and editors of `config`, lines of the list that an
//! interrupted rebase goes on with. So within a git directory only what is known
//! to be data may be written (`is_data`): what the index, commits, branches,
//! merges and stashes need. (Security S07, class S5.)
//!
//! A git directory is one named `.git`, or one that git would take for one
//! whatever its name: where `HEAD`, `objects` and `refs` stand, or `HEAD` and
//! `commondir`. The guest makes neither: no `.git` at all, and not the last of
//! those three ([`completes`]), in whatever order they come.
//!
//! Names are judged by their full path on the host, which the kernel tells, so
//! that neither the place of a mount nor a rename hides one. Case, ignorable
//! characters and the spellings of FAT and NTFS are folded away where a name is
//! refused, for file systems that do so themselves; names that are allowed have
//! one spelling.
//!
//! A second hard link that the host made is a file of its own.
//!
//! Servers of several guests may share a folder. So who makes one of the parts holds a
//! lock of the folder from the look at the others to the end ([`lock_parts`]).

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

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

/// Folders of a git directory in which other git directories stand: of
/// submodules and of further working trees.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// Files of a git directory that are data: what git looks at to know where it
/// stands, and texts for people. `NAME.lock` is the same for each.
const DATA: [&str; 21] = [
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "NOTES_EDITMSG",
    "index",
    "packed-refs",
    "packed-refs.new",
    "shallow",
    "gc.pid",
    "gc.log",
];

/// How temporary files that become one of those begin.
const TEMPORARY: [&str; 4] = ["index.stash.", "next-index-", "sharedindex", "shallow_"];

/// Folders of a git directory that hold data at any depth: names of commits,
/// what they were before, and how conflicts were resolved.
const DATA_FOLDERS: [&str; 3] = ["refs", "logs", "rr-cache"];

/// What makes a folder a git directory, folded.
const PARTS: [&str; 4] = ["head", "objects", "refs", "commondir"];

/// How a path stands to the git directory that it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitPlace {
    /// In none.
    Outside,
    /// It is one, by its name.
    Dot,
    /// In one, where nothing harms, or on the way to what is protected: folders and
    /// links do not come or go there as a whole.
    Inside,
    /// In one, and protected.
    Protected,
}

/// Where a path of the host lies, by its name, by what is in the folders above it, and by
/// what git's configuration of these leads to.
pub fn place_on_host(path: &Path) -> GitPlace {
    match git_place(path, &stands) {
        GitPlace::Outside => super::git_config::place(path),
        place => place,
    }
}

/// How far a path has come.
enum Way<'a> {
    Outside,
    /// In a git directory, by these names.
    In(Vec<&'a [u8]>),
}

/// Where the absolute path `path` lies. `stands` says whether a folder on the
/// way is a git directory by what is in it.
fn git_place(path: &Path, stands: &dyn Fn(&Path) -> bool) -> GitPlace {
    let mut way = Way::Outside;
    let mut folder = PathBuf::from("/");
    let mut dot = false;
    for component in path.components() {
        let Component::Normal(name) = component else {
            continue;
        };
        way = match way {
            Way::In(names) if !names.is_empty() && !leads_on(&names) => return GitPlace::Protected,
            Way::In(names) if names.is_empty() => Way::In(names),
            _ if stands(&folder) => Way::In(Vec::new()),
            way => way,
        };
        folder.push(name);
        dot = is_dot_git(&fold(name));
        way = match way {
            _ if dot => Way::In(Vec::new()),
            Way::In(mut names) => {
                names.push(name.as_bytes());
                Way::In(names)
            }
            way => way,
        };
    }
    match way {
        _ if dot => GitPlace::Dot,
        Way::Outside => GitPlace::Outside,
        Way::In(names) if is_data(&names) => GitPlace::Inside,
        Way::In(_) => GitPlace::Protected,
    }
}

/// Whether something below these names of a git directory may be data.
fn leads_on(names: &[&[u8]]) -> bool {
    is_data(names) || NESTED.iter().any(|nested| names[0] == nested.as_bytes())
}

/// Whether these names of a git directory lead to data and nothing else.
fn is_data(names: &[&[u8]]) -> bool {
    let mut texts = Vec::with_capacity(names.len());
    for name in names {
        match std::str::from_utf8(name) {
            Ok(text) => texts.push(text),
            // Names of branches have any bytes.
            Err(_) => texts.push("\u{fffd}"),
        }
    }
    match texts.as_slice() {
        [folder, ..] if DATA_FOLDERS.contains(folder) => true,
        ["objects", rest @ ..] => is_objects(rest),
        // A list of branches for transports that only read files.
        ["info"] => true,
        ["info", file] => file.starts_with("refs"),
        [file] => {
            let plain = file.strip_suffix(".lock").unwrap_or(file);
            let begins = |start: &&str| plain.starts_with(*start);
            DATA.contains(&plain) || TEMPORARY.iter().any(begins)
        }
        _ => false,
    }
}

/// Whether these names below `objects` are of objects: not the list of other
/// stores.
fn is_objects(names: &[&str]) -> bool {
    let hex = |name: &str| name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
    match names {
        [] | ["pack" | "info" | "maintenance.lock"] | ["pack", ..] => true,
        ["info", "commit-graphs", ..] => true,
        ["info", file] => {
            let file = file.strip_suffix(".lock").unwrap_or(file);
            matches!(file, "packs" | "commit-graph") || file.starts_with("tmp_")
        }
        [first, rest @ ..] if first.starts_with("tmp_") => is_objects(rest),
        [first, ..] => hex(first),
    }
}

/// Whether a folder that has what `there` says (folded) is a git directory.
fn is_repository(there: &dyn Fn(&str) -> bool) -> bool {
    there("head") && (there("commondir") || (there("objects") && there("refs")))
}

/// The name of a part as git writes it.
fn spelled(part: &str) -> &str {
    match part {
        "head" => "HEAD",
        other => other,
    }
}

/// Whether a folder of the host is a git directory by what is in it.
fn stands(folder: &Path) -> bool {
    is_repository(&|part| {
        statat(CWD, folder.join(spelled(part)), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}

/// Whether an entry of that name would make `dir` a git directory that it is
/// not yet. One that has the name of one is one.
pub fn completes(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let name = fold(OsStr::from_bytes(name));
    let has = |part: &str| statat(dir, spelled(part), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    PARTS.contains(&name.as_str())
        && !is_repository(&has)
        && is_repository(&|part| part == name || has(part))
        && !has_its_name(dir)
}

/// How long a folder's lock is waited for, and how often it is tried.
const LOCK_TRIES: u32 = 40;
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Takes the lock of a folder in which an entry of that name is to be made, if it could be
/// part of a git directory: until the descriptor is closed no other server makes another
/// part there. File systems without locks have none.
///
/// # Errors
/// `EBUSY` if somebody else holds it on.
pub fn lock_parts(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    if !PARTS.contains(&fold(OsStr::from_bytes(name)).as_str()) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(dir, ".", flags, Mode::empty())?;
    for _ in 0..LOCK_TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_INTERVAL),
            // Held, or a file system that has none.
            _ => return Ok(Some(folder)),
        }
    }
    Err(Errno::BUSY)
}

/// Whether a folder is named `.git`.
fn has_its_name(dir: BorrowedFd<'_>) -> bool {
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, link, Vec::new());
    path.is_ok_and(|path| {
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        path.file_name().is_some_and(|name| is_dot_git(&fold(name)))
    })
}

/// `.git` and the short name that FAT and NTFS give it.
fn is_dot_git(folded: &str) -> bool {
    folded == ".git" || folded == "git~1"
}

/// A name as the most forgiving file system sees it.
pub(super) fn fold(name: &OsStr) -> String {
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

    fn at(path: &str) -> GitPlace {
        git_place(Path::new(path), &|folder| folder.ends_with("bare"))
    }

    #[test]
    fn places() {
        for (path, expected) in [
            ("/a/b", GitPlace::Outside),
            ("/a/config", GitPlace::Outside),
            ("/a/bare", GitPlace::Outside),
            ("/a/.git", GitPlace::Dot),
            ("/a/.git/index", GitPlace::Inside),
            ("/a/.git/index.lock", GitPlace::Inside),
            ("/a/.git/refs/heads/config", GitPlace::Inside),
            ("/a/.git/objects/ab/cdef", GitPlace::Inside),
            ("/a/.git/objects/pack/tmp_pack_x", GitPlace::Inside),
            (
                "/a/.git/objects/tmp_objdir-incoming-x/pack/y",
                GitPlace::Inside,
            ),
            ("/a/.git/modules/bare/index", GitPlace::Inside),
            ("/a/.git/modules/x/bare/logs/HEAD", GitPlace::Inside),
            ("/a/bare/packed-refs", GitPlace::Inside),
            ("/a/.git/x/.git", GitPlace::Protected),
            ("/a/.git/refs/.git", GitPlace::Dot),
        ] {
            assert_eq!(at(path), expected, "{path}");
        }
    }

    #[test]
    fn s5_what_is_not_known_to_be_data_is_protected() {
        for path in [
            "config",
            "config.lock",
            "config.worktree",
            "hooks",
            "hooks/pre-commit",
            "commondir",
            "gitdir",
            "info/attributes",
            "info/exclude",
            "info/grafts",
            "rebase-merge",
            "rebase-merge/git-rebase-todo",
            "rebase-apply/patch",
            "sequencer/todo",
            "modules",
            "modules/x/config",
            "modules/bare/config",
            "worktrees/bare/gitdir",
            "objects/info/alternates",
            "objects/info/http-alternates",
            "objects/tmp_x/info/alternates",
            "remotes/origin",
            "branches/x",
            "BISECT_NAMES",
            "anything",
            "Index",
        ] {
            for folder in ["/a/.git", "/a/.GIT", "/a/bare", "/.git/modules/bare"] {
                let path = format!("{folder}/{path}");
                assert_eq!(at(&path), GitPlace::Protected, "{path}");
            }
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
            assert_eq!(at(path), GitPlace::Protected, "{path}");
        }
    }

    #[test]
    fn s5_the_last_part_of_a_repository_is_found() {
        use std::os::fd::AsFd;
        let orders = [
            ["HEAD", "objects", "refs"],
            ["refs", "HEAD", "objects"],
            ["objects", "refs", "head"],
            ["objects", "refs", "HEAD. "],
        ];
        for [first, second, last] in orders {
            let folder = tempfile::tempdir().expect("a folder");
            let dir = std::fs::File::open(folder.path()).expect("open");
            for name in [first, second] {
                assert!(!completes(dir.as_fd(), name.as_bytes()), "{name}");
                std::fs::write(folder.path().join(name), "").expect("written");
            }
            assert!(!completes(dir.as_fd(), b"config"));
            assert!(completes(dir.as_fd(), last.as_bytes()), "{last}");
            std::fs::write(folder.path().join(last), "").expect("written");
            if last != "HEAD. " && last != "head" {
                assert!(stands(folder.path()));
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("HEAD"), "").expect("written");
        let dir = std::fs::File::open(folder.path()).expect("open");
        assert!(completes(dir.as_fd(), b"commondir"));
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
