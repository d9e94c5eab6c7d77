//! Paths named by git's configuration: files of a working tree that the host's git runs, or
//! reads as further configuration, because one of the user's settings names them.
//!
//! Examples are `core.hooksPath = .husky/_`, `include.path = ../.gitconfig`, and a filter
//! that is a script of the tree: the setting is the host's, but a guest could write the
//! file. So these paths are protected like git's own files. Programs that such a file runs
//! in turn (the scripts of a `package.json`, say) are beyond what can be known here.

use super::git::{GitPlace, fold};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of a configuration that is read in bytes; git's own are a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum depth of includes; git allows 10.
const MAX_DEPTH: usize = 10;

/// Maximum cached configurations.
const MAX_REMEMBERED: usize = 256;

/// Type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    /// A folder or file that git reads or runs.
    Path,
    /// Another configuration.
    Include,
    /// A command line.
    Command,
}

/// Type of a setting's value, if it names a path; section and key are in lower case.
fn leads(section: &str, key: &str) -> Option<Leads> {
    Some(match (section, key) {
        ("include" | "includeif", "path") => Leads::Include,
        ("core", "hookspath" | "attributesfile") | ("init", "templatedir") => Leads::Path,
        (
            "core",
            "fsmonitor"
            | "sshcommand"
            | "editor"
            | "pager"
            | "askpass"
            | "gitproxy"
            | "alternaterefscommand",
        )
        | ("sequence", "editor")
        | ("gpg", "program" | "defaultkeycommand")
        | ("filter", "clean" | "smudge" | "process")
        | ("diff", "command" | "textconv" | "external")
        | ("merge", "driver")
        | ("mergetool" | "difftool" | "man" | "browser", "cmd" | "path")
        | ("credential", "helper")
        | ("alias" | "pager", _)
        | ("interactive", "difffilter")
        | ("uploadpack", "packobjectshook")
        | ("remote", "uploadpack" | "receivepack")
        | ("trailer" | "hook" | "tar", "command" | "cmd")
        | ("submodule", "update") => Leads::Command,
        _ => return None,
    })
}

/// A setting that names a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    leads: Leads,
    value: String,
}

/// Classifies the absolute path `path` by the configurations of the working trees above it.
/// A path that they name, or one below it, is protected; a path on the way to one must not
/// become a link or be replaced as a whole.
pub(super) fn place(path: &Path) -> GitPlace {
    let mut place = GitPlace::Outside;
    for top in path.ancestors().skip(1) {
        for led in led_to(top) {
            if is_below(path, &led) {
                return GitPlace::Protected;
            }
            if is_below(&led, path) {
                place = GitPlace::Inside;
            }
        }
    }
    place
}

/// Whether `path` is `folder` or below it, on the most permissive file system.
fn is_below(path: &Path, folder: &Path) -> bool {
    let mut components = path.components();
    folder.components().all(|folder| {
        let component = components.next();
        component.is_some_and(|component| {
            component == folder || fold(component.as_os_str()) == fold(folder.as_os_str())
        })
    })
}

/// The paths that the configuration of the working tree at `top` names.
fn led_to(top: &Path) -> Vec<PathBuf> {
    let Some(configurations) = configurations(top) else {
        return Vec::new();
    };
    let mut led = Vec::new();
    for file in configurations {
        add(&file, top, MAX_DEPTH, &mut led);
    }
    // If the host has links there, both ends are protected.
    let ends: Vec<PathBuf> = led.iter().filter_map(|path| real(path)).collect();
    led.extend(ends);
    led
}

/// The configurations that git reads in the working tree at `top`, if it is one.
fn configurations(top: &Path) -> Option<Vec<PathBuf>> {
    let dot = top.join(".git");
    let metadata = fs::symlink_metadata(&dot).ok()?;
    let own = match metadata.is_file() {
        true => {
            let text = fs::read_to_string(&dot).ok()?;
            absolute(top, text.strip_prefix("gitdir:")?.trim())
        }
        false => dot,
    };
    let common = match fs::read_to_string(own.join("commondir")) {
        Ok(text) => absolute(&own, text.trim()),
        Err(_) => own.clone(),
    };
    let mut files = vec![
        PathBuf::from("/etc/gitconfig"),
        common.join("config"),
        own.join("config.worktree"),
    ];
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let settings = settings.or_else(|| Some(home.as_ref()?.join(".config")));
    files.extend(home.map(|home| home.join(".gitconfig")));
    files.extend(settings.map(|settings| settings.join("git/config")));
    Some(files)
}

/// Adds the paths that a configuration names.
fn add(file: &Path, top: &Path, depth: usize, led: &mut Vec<PathBuf>) {
    for setting in settings_of(file).iter() {
        let Setting { leads, value } = setting;
        match leads {
            Leads::Include => {
                let included = absolute(file.parent().unwrap_or(top), value);
                if depth > 0 && !led.contains(&included) {
                    led.push(included.clone());
                    add(&included, top, depth - 1, led);
                }
            }
            Leads::Path => {
                let path = absolute(top, value);
                match path.file_name().is_some_and(|name| name == "_") {
                    // Husky's hooks run those in the folder above.
                    true => led.extend(path.parent().map(Path::to_owned)),
                    false => led.push(path),
                }
            }
            Leads::Command => {
                let paths = files(value).into_iter().map(|word| absolute(top, word));
                // A folder is where the command works; only files are run.
                led.extend(paths.filter(|path| !path.is_dir()));
            }
        }
    }
}

/// Words of a command line that may be files of the tree. A command without a slash is
/// looked up in `PATH`; its arguments count as files if they have an extension.
fn files(line: &str) -> Vec<&str> {
    let mut files = Vec::new();
    for command in line.split([';', '|', '&', '(', ')', '`', '\n']) {
        let words = command.split(|c: char| c.is_whitespace() || "\"'<>=!".contains(c));
        let words = words.filter(|word| !word.is_empty());
        for (number, word) in words.enumerate() {
            let is_file = word.contains('/') || (number > 0 && word.contains('.'));
            if is_file && !word.starts_with(['-', '%', '$']) {
                files.push(word);
            }
        }
    }
    files
}

/// Resolves a path, possibly relative to a folder, without `.` and `..`.
fn absolute(folder: &Path, path: &str) -> PathBuf {
    let joined = match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(path),
    };
    let mut plain = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    plain
}

/// Resolves links in a path whose last component may be missing.
fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok().or_else(|| {
        let folder = fs::canonicalize(path.parent()?).ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// File metadata that reveals a change.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

fn stamp(metadata: &Metadata) -> Stamp {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        (metadata.mtime(), metadata.mtime_nsec()),
        (metadata.ctime(), metadata.ctime_nsec()),
    )
}

/// The path-naming settings of a file; empty if it cannot be read.
fn settings_of(file: &Path) -> Arc<[Setting]> {
    type Remembered = HashMap<PathBuf, (Stamp, Arc<[Setting]>)>;
    static REMEMBERED: Mutex<Option<Remembered>> = Mutex::new(None);
    let Ok(metadata) = fs::metadata(file) else {
        return Arc::default();
    };
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Arc::default();
    }
    let now = stamp(&metadata);
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let remembered = remembered.get_or_insert_default();
    if let Some((then, settings)) = remembered.get(file)
        && *then == now
    {
        return Arc::clone(settings);
    }
    let text = fs::read(file).unwrap_or_default();
    let settings: Arc<[Setting]> = parse(&String::from_utf8_lossy(&text)).into();
    if remembered.len() >= MAX_REMEMBERED {
        remembered.clear();
    }
    remembered.insert(file.to_owned(), (now, Arc::clone(&settings)));
    settings
}

/// Parses the path-naming settings of a configuration (`git-config(1)`, "Syntax").
fn parse(text: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start();
        while let Some(rest) = line.strip_prefix('[') {
            let Some((name, rest)) = head(rest) else {
                break;
            };
            section = name;
            line = rest.trim_start();
        }
        let key = line.split(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        let key = key.into_iter().next().unwrap_or_default();
        let Some(start) = line[key.len()..].trim_start().strip_prefix('=') else {
            continue;
        };
        let value = value(start, &mut lines);
        let key = key.to_ascii_lowercase();
        if let Some(leads) = leads(&section, &key)
            // Only an alias that starts with `!` runs a program; others are git commands.
            && (section != "alias" || value.starts_with('!'))
        {
            settings.push(Setting { leads, value });
        }
    }
    settings
}

/// Parses a section header after its bracket; returns the section and the rest.
fn head(text: &str) -> Option<(String, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == ']' && !quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        ends
    })?;
    let name = text[..end].split(|c: char| c == '"' || c == '.' || c.is_whitespace());
    let name = name.into_iter().next().unwrap_or_default();
    Some((name.to_ascii_lowercase(), &text[end + 1..]))
}

/// Parses a value after its `=`; a trailing backslash continues it in the next line.
fn value<'a>(start: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut line = start.trim_start();
    loop {
        let mut chars = line.chars();
        let mut goes_on = false;
        while let Some(c) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '#' | ';' if !quoted => break,
                '\\' => match chars.next() {
                    None => goes_on = true,
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => drop(value.pop()),
                    Some(c) => value.push(c),
                },
                c => value.push(c),
            }
        }
        let next = if goes_on { lines.next() } else { None };
        match next {
            Some(next) => line = next,
            None => return value.trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_settings_that_lead_somewhere_are_read() {
        let text = "\u{feff}[core]\n\tbare = false\n  hooksPath=.husky/_ ; why\n\
            [include] path = \"../a b\"\n[filter \"x]y\"]\nclean = sh \\\n  tools/c.sh %f\n\
            [alias]\nst = status\nx = !./run\n[remote \"o\"]\n\turl = ../o\n[CORE]\nEditor = e/d";
        let found = parse(text);
        let found: Vec<_> = found
            .iter()
            .map(|setting| (setting.leads, setting.value.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (Leads::Path, ".husky/_"),
                (Leads::Include, "../a b"),
                (Leads::Command, "sh   tools/c.sh %f"),
                (Leads::Command, "!./run"),
                (Leads::Command, "e/d"),
            ]
        );
    }

    #[test]
    fn s3_files_of_a_command_are_found() {
        for (command, expected) in [
            ("vim", &[][..]),
            ("code --wait", &[]),
            ("./fsmonitor.sh", &["./fsmonitor.sh"]),
            (
                "python3 tools/clean.py --x=a/b %f",
                &["tools/clean.py", "a/b"],
            ),
            ("!cd sub && sh x.sh", &["x.sh"]),
            ("sh -c 'bin/a \"$1\"'", &["bin/a"]),
        ] {
            assert_eq!(files(command), expected, "{command}");
        }
    }

    #[test]
    fn s3_paths_that_settings_lead_to_are_protected_with_the_way_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(folder.path()).expect("its path");
        fs::create_dir_all(top.join("sub/.git")).expect("made");
        let write = |path: &str, text: &str| fs::write(top.join(path), text).expect("written");
        write(
            "sub/.git/config",
            "[core]\nhooksPath = .husky/_\nfsmonitor = tools/watch\n\
             [include]\npath = ../more\n[includeIf \"gitdir:x\"]\npath = more2\n",
        );
        write("sub/more", "[core]\nsshCommand = bin/ssh -v\n");
        let at = |path: &str| place(&top.join(path));
        for path in [
            "sub/.husky",
            "sub/.husky/_",
            "sub/.husky/_/pre-commit",
            "sub/.husky/pre-commit",
            "sub/.HUSKY/pre-commit",
            "sub/tools/watch",
            "sub/more",
            "sub/bin/ssh",
        ] {
            assert_eq!(at(path), GitPlace::Protected, "{path}");
        }
        for path in ["sub/tools", "sub/bin"] {
            assert_eq!(at(path), GitPlace::Inside, "{path}");
        }
        assert_eq!(at("sub/tools/other"), GitPlace::Outside);
        assert_eq!(at("sub/file"), GitPlace::Outside);
        assert_eq!(at("other/.husky/x"), GitPlace::Outside);
        // A changed configuration takes effect at once, and so does a new link on the host.
        write("sub/.git/config", "[core]\n\thooksPath = hooks\n");
        fs::create_dir(top.join("real")).expect("made");
        std::os::unix::fs::symlink("../real", top.join("sub/hooks")).expect("linked");
        assert_eq!(at("sub/.husky/x"), GitPlace::Outside);
        assert_eq!(at("sub/hooks"), GitPlace::Protected);
        // Outside the working tree its configuration does not apply.
        assert_eq!(at("real/x"), GitPlace::Outside);
    }

    #[test]
    fn s3_a_working_tree_elsewhere_has_the_common_configuration() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(folder.path()).expect("its path");
        let tree = top.join("main/.git/worktrees/w");
        fs::create_dir_all(&tree).expect("made");
        fs::create_dir(top.join("w")).expect("made");
        let write = |path: PathBuf, text: String| fs::write(path, text).expect("written");
        write(tree.join("commondir"), "../..\n".to_owned());
        write(top.join("w/.git"), format!("gitdir: {}\n", tree.display()));
        let config = "[core]\nhooksPath = scripts/hooks\n".to_owned();
        write(top.join("main/.git/config"), config);
        assert_eq!(place(&top.join("w/scripts/hooks/x")), GitPlace::Protected);
        assert_eq!(place(&top.join("w/scripts/x")), GitPlace::Outside);
    }
}
