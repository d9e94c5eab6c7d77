//! File selection: which files of the unpacked packages go into the image.

use super::super::cpio::{Content, Node, Tree};
use super::super::error::{At, ImageError};
use super::unexpected;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Paths to leave out: a folder or file with all paths below it, or, with a trailing star,
/// every path with that prefix.
const LEFT_OUT: &[&str] = &[
    // Documentation, translations, support files for other parts of Debian.
    "usr/share/doc*",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/share/binfmts",
    "usr/share/initramfs-tools",
    "usr/share/python3",
    "usr/share/bash-completion",
    "usr/share/debianutils",
    "usr/share/fish",
    "usr/share/gitweb",
    "usr/share/menu",
    "usr/share/perl5",
    "usr/share/zsh",
    "usr/lib/mime",
    "usr/lib/systemd",
    "usr/lib/udev",
    "etc/bash_completion.d",
    "etc/cron.d",
    "etc/e2scrub.conf",
    "etc/gss",
    "etc/skel",
    "usr/share/common-licenses",
    "usr/share/base-files",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/tabset",
    "usr/lib/binfmt.d",
    "usr/lib/os-release",
    // `base-files` is only needed for licence texts; its configuration is replaced by ours.
    "bin",
    "boot",
    "etc/apt",
    "etc/debian_version",
    "etc/dpkg",
    "etc/issue*",
    "etc/motd",
    "etc/update-motd.d",
    "home",
    "lib",
    "lib64",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr/games",
    "usr/include",
    "usr/local",
    "usr/sbin",
    "usr/src",
    "var",
    // The single certificates; programs read the bundle.
    "etc/ca-certificates",
    "etc/ca-certificates.conf",
    "usr/share/ca-certificates",
    // Tables that no program of the image reads.
    "etc/ethertypes",
    "etc/networks",
    "etc/rpc",
    // Scripts of Debian's Python packaging, which costs each start of Python a search for a
    // crash reporter.
    "etc/python3.13",
    "usr/bin/py3*",
    "usr/lib/python3.13/sitecustomize.py",
    // Python's tests, examples, and modules whose libraries are missing.
    "usr/lib/python3.13/__phello__",
    "usr/lib/python3.13/idlelib",
    "usr/lib/python3.13/pydoc_data",
    "usr/lib/python3.13/test",
    "usr/lib/python3.13/tkinter",
    "usr/lib/python3.13/turtledemo",
    "usr/lib/python3.13/lib-dynload/_ctypes_test*",
    "usr/lib/python3.13/lib-dynload/_dbm*",
    "usr/lib/python3.13/lib-dynload/_gdbm*",
    "usr/lib/python3.13/lib-dynload/_test*",
    "usr/lib/python3.13/lib-dynload/_tkinter*",
    "usr/lib/python3.13/lib-dynload/_xxtest*",
    "usr/lib/python3.13/lib-dynload/xx*",
    // Parts of git for servers, and those that need Perl or a web server.
    "usr/bin/git-shell",
    "usr/bin/scalar",
    "usr/lib/git-core/git-daemon",
    "usr/lib/git-core/git-http-backend",
    "usr/lib/git-core/git-http-push",
    "usr/lib/git-core/git-imap-send",
    "usr/lib/git-core/git-instaweb",
    "usr/lib/git-core/git-shell",
    "usr/lib/git-core/scalar",
    // Programs for desktop users.
    "usr/bin/bashbug",
    "usr/bin/clear_console",
    "usr/bin/lessfile",
    "usr/bin/lesspipe",
    "usr/bin/unzipsfx",
    // Programs that make locales, time zones and caches of libraries.
    "etc/default",
    "etc/ld.so.conf*",
    "usr/bin/iconv",
    "usr/bin/ld.so",
    "usr/bin/ldd",
    "usr/bin/localedef",
    "usr/bin/pldd",
    "usr/bin/tzselect",
    "usr/bin/zdump",
    // Libraries that no program of the image uses. Conversions between old character sets
    // use Python's own tables.
    "usr/lib/riscv64-linux-gnu/engines-3",
    "usr/lib/riscv64-linux-gnu/gconv",
    "usr/lib/riscv64-linux-gnu/libBrokenLocale*",
    "usr/lib/riscv64-linux-gnu/libanl*",
    "usr/lib/riscv64-linux-gnu/libc_malloc_debug*",
    "usr/lib/riscv64-linux-gnu/libexpatw*",
    "usr/lib/riscv64-linux-gnu/libformw*",
    "usr/lib/riscv64-linux-gnu/libhistory*",
    "usr/lib/riscv64-linux-gnu/libmemusage*",
    "usr/lib/riscv64-linux-gnu/libmenuw*",
    "usr/lib/riscv64-linux-gnu/libnsl*",
    "usr/lib/riscv64-linux-gnu/libnss_compat*",
    "usr/lib/riscv64-linux-gnu/libnss_hesiod*",
    "usr/lib/riscv64-linux-gnu/libpcprofile*",
    "usr/lib/riscv64-linux-gnu/libthread_db*",
    "usr/lib/riscv64-linux-gnu/libtic*",
    "usr/lib/riscv64-linux-gnu/ossl-modules",
];

fn is_left_out(path: &str) -> bool {
    matches(LEFT_OUT, path)
}

/// Whether a path is one of these patterns.
pub(crate) fn matches(patterns: &[&str], path: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => {
                let rest = path.strip_prefix(pattern);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        })
}

/// Collects the selected files, with normalised permissions that do not depend on the user
/// who unpacked them.
pub(super) fn tree(unpacked: &Path) -> Result<Tree, ImageError> {
    tree_without(unpacked, &is_left_out)
}

/// Collects the files with another selection.
pub(crate) fn tree_without(
    unpacked: &Path,
    is_left_out: &dyn Fn(&str) -> bool,
) -> Result<Tree, ImageError> {
    let mut tree = Tree::default();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let host_folder = unpacked.join(&folder);
        for entry in fs::read_dir(&host_folder).at(&host_folder)? {
            let host_path = entry.at(&host_folder)?.path();
            let name = host_path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| unexpected(&folder, "a name that is no text"))?;
            let path = match folder.as_str() {
                "" => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
            if is_left_out(&path) {
                continue;
            }
            let metadata = fs::symlink_metadata(&host_path).at(&host_path)?;
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&host_path).at(&host_path)?;
                tree.put(path, Node::Link(target.to_string_lossy().into_owned()));
            } else if metadata.is_file() {
                let runs = metadata.permissions().mode() & 0o111 != 0;
                let mode = if runs { 0o755 } else { 0o644 };
                tree.put(path, Node::File(mode, Content::At(host_path)));
            } else {
                return Err(unexpected(&path, "neither file nor link"));
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_whole_names_unless_starred() {
        assert!(is_left_out("usr/share/man"));
        assert!(is_left_out("usr/share/man/man1/ls.1"));
        assert!(!is_left_out("usr/share/mandala"));
        assert!(is_left_out("usr/bin/py3compile"));
        assert!(!is_left_out("usr/bin/python3.13"));
        assert!(!is_left_out("usr/lib/python3.13/testing.py"));
        assert!(!is_left_out("usr/lib/python3.13/runpy.py"));
        assert!(!is_left_out("libexec"));
        assert!(!is_left_out("usr/lib"));
    }

    #[test]
    fn permissions_are_plain_and_empty_folders_go() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("usr/bin")).unwrap();
        fs::create_dir_all(at("usr/empty")).unwrap();
        fs::create_dir_all(at("usr/share/doc/x")).unwrap();
        fs::write(at("usr/share/doc/x/copyright"), "").unwrap();
        for (name, mode) in [("usr/bin/setuid", 0o4711), ("usr/bin/data", 0o600)] {
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink("data", at("usr/bin/link")).unwrap();
        let tree = tree(folder.path()).unwrap();
        let file = |mode, path| Node::File(mode, Content::At(at(path)));
        let expected = [
            ("usr", Node::Folder(0o755)),
            ("usr/bin", Node::Folder(0o755)),
            ("usr/bin/data", file(0o644, "usr/bin/data")),
            ("usr/bin/link", Node::Link("data".to_owned())),
            ("usr/bin/setuid", file(0o755, "usr/bin/setuid")),
        ];
        let found: Vec<_> = tree
            .iter()
            .map(|(path, node)| (path, node.clone()))
            .collect();
        assert_eq!(found, expected);
    }
}
