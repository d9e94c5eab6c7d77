//! Git write protection: which of git's own files a guest may write.
//!
//! The host's git executes programs that some files of a repository name: programs in
//! `hooks`, filters, monitors and editors of `config`, lines of the list that an
//! interrupted rebase continues with. So within a git directory only known data may be
//! written (`is_data`): the files that the index, commits, branches, merges and stashes
//! need. (Security S07, class S5.)
//!
//! A git directory is named `.git`, or is one that git would accept under any name: a
//! folder with `HEAD`, `objects` and `refs`, or with `HEAD` and `commondir`. The guest can
//! create neither: no `.git` at all, and not the entry that completes such a set
//! ([`completes`]), in any order.
//!
//! Names are judged by their full path on the host, which comes from the kernel, so that
//! neither the place of a mount nor a rename hides one. Refused names are compared with
//! case, ignorable characters and the spellings of FAT and NTFS folded away, for file
//! systems that fold names themselves; allowed names have one spelling.
//!
//! A second hard link that the host made is a separate file.
//!
//! Servers of several guests may share a folder. So a server that creates one of the parts
//! holds a lock of the folder from the check of the others to the end ([`lock_parts`]).

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Which of git's own files a guest may write in a writable mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GitWrites {
    /// No file that makes the host's git run programs.
    #[default]
    Refused,
    /// These paths, relative to the mount, and all paths below them, for instance
    /// `.git/config`.
    Named(Vec<PathBuf>),
    /// All files.
    Allowed,
}

/// Folders of a git directory that contain other git directories: of submodules and of
/// linked working trees.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// Files of a git directory that are data: state that git reads, and texts for people.
/// `NAME.lock` counts as `NAME`.
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

/// Prefixes of temporary files that become one of those.
const TEMPORARY: [&str; 4] = ["index.stash.", "next-index-", "sharedindex", "shallow_"];

/// Folders of a git directory that hold data at any depth: refs, their logs, and
/// resolutions of conflicts.
const DATA_FOLDERS: [&str; 3] = ["refs", "logs", "rr-cache"];

/// Entries that make a folder a git directory, folded.
const PARTS: [&str; 4] = ["head", "objects", "refs", "commondir"];

/// Position of a path relative to the git directory around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitPlace {
    /// Outside any git directory.
    Outside,
    /// A git directory, by its name.
    Dot,
    /// Inside a git directory, on data or on the way to protected files: folders and links
    /// may not appear, move or vanish there.
    Inside,
    /// Inside a git directory, and protected.
    Protected,
}

/// Classifies a path of the host by its name, by the contents of the folders above it, and
/// by paths that their git configuration names.
pub fn place_on_host(path: &Path) -> GitPlace {
    match git_place(path, &stands) {
        GitPlace::Outside => super::git_config::place(path),
        place => place,
    }
}

/// Progress along a path.
enum Way<'a> {
    Outside,
    /// Inside a git directory, below these names.
    In(Vec<&'a [u8]>),
}

/// Classifies the absolute path `path`; `stands` returns whether a folder on the way is a
/// git directory by its contents.
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

/// Whether paths below these names of a git directory may be data.
fn leads_on(names: &[&[u8]]) -> bool {
    is_data(names) || NESTED.iter().any(|nested| names[0] == nested.as_bytes())
}

/// Whether these names of a git directory lead only to data.
fn is_data(names: &[&[u8]]) -> bool {
    let mut texts = Vec::with_capacity(names.len());
    for name in names {
        match std::str::from_utf8(name) {
            Ok(text) => texts.push(text),
            // Branch names may contain any bytes.
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

/// Whether these names below `objects` are of objects, and not the list of alternate object
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

/// Whether a folder is a git directory; `there` returns whether it has a (folded) entry.
fn is_repository(there: &dyn Fn(&str) -> bool) -> bool {
    there("head") && (there("commondir") || (there("objects") && there("refs")))
}

/// A part's name as git spells it.
fn spelled(part: &str) -> &str {
    match part {
        "head" => "HEAD",
        other => other,
    }
}

/// Whether a folder of the host is a git directory by its contents.
fn stands(folder: &Path) -> bool {
    is_repository(&|part| {
        statat(CWD, folder.join(spelled(part)), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}

/// Whether an entry of that name would make `dir` a git directory. A folder with the name
/// of one already is one.
pub fn completes(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let name = fold(OsStr::from_bytes(name));
    let has = |part: &str| statat(dir, spelled(part), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    PARTS.contains(&name.as_str())
        && !is_repository(&has)
        && is_repository(&|part| part == name || has(part))
        && !has_its_name(dir)
}

/// How often a folder's lock is tried, and at which interval.
const LOCK_TRIES: u32 = 40;
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Locks a folder before an entry of that name is created, if it could be part of a git
/// directory. Until the descriptor is closed, no other server creates another part there.
/// On file systems without locks this does nothing.
///
/// # Errors
/// `EBUSY` if another process keeps the lock.
pub fn lock_parts(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    if !PARTS.contains(&fold(OsStr::from_bytes(name)).as_str()) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(dir, ".", flags, Mode::empty())?;
    for _ in 0..LOCK_TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_INTERVAL),
            // Locked, or a file system without locks.
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

/// Whether a name is `.git` or its short name on FAT and NTFS.
fn is_dot_git(folded: &str) -> bool {
    folded == ".git" || folded == "git~1"
}

/// Folds a name as the most permissive file system would.
pub(super) fn fold(name: &OsStr) -> String {
    let text = String::from_utf8_lossy(name.as_bytes());
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // Characters that casefolding drops or rewrites (Unicode 12.1 as in Linux
            // `fs/unicode`), for the letters of these names only.
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
    /// Whether `relative`, a protected path in the mount, may be written.
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
