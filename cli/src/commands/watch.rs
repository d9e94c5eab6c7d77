//! `a99 watch`: checks or runs again whenever a file changes.
//!
//! Each time is a process of its own: it begins anew, whatever became of the one
//! before, and an interrupt ends both.

use crate::args::{WatchArgs, WatchCommand};
use crate::commands::check::EXTENSIONS;
use crate::failure::{Exit, Failure};
use crate::{files, input, output};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What tells whether a file has changed: when it was written and how long it is;
/// nothing if it is not there.
type Stamp = Option<(SystemTime, u64)>;

/// Runs the command until it is interrupted.
pub(crate) fn run(args: &WatchArgs) -> Result<Exit, Failure> {
    let paths = paths(args);
    if paths.iter().any(|path| path == Path::new(input::STDIN)) {
        return Err(Failure::usage(
            "standard input cannot be watched: name a file",
        ));
    }
    let name = "cannot start `a99`";
    let program = std::env::current_exe().map_err(|error| Failure::about(name, error))?;
    let words = words(std::env::args_os().skip(1));
    let mut seen = None;
    loop {
        let now = stamps(&paths);
        if seen.as_ref() != Some(&now) {
            if seen.is_some() {
                output::err("\n");
            }
            let status = Command::new(&program).args(&words).status();
            let status = status.map_err(|error| Failure::about(name, error))?;
            // On its own, an interrupt of the inner command is one of this too.
            if status.code() == Some(i32::from(Exit::Aborted.code())) {
                return Ok(Exit::Aborted);
            }
            output::note("watching", &format!("{} files", now.len()));
            seen = Some(now);
        }
        std::thread::sleep(args.interval);
    }
}

/// The command line without the word `watch` and its own options.
fn words(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut all = all.peekable();
    let mut before = true;
    while let Some(word) = all.next() {
        if before && word == "watch" {
            before = false;
            while let Some(option) = all.next_if(|w| w != "check" && w != "run") {
                // `--color` belongs to every command.
                if option.to_string_lossy().starts_with("--color") {
                    let value = (option == "--color").then(|| all.next()).flatten();
                    words.push(option);
                    words.extend(value);
                }
            }
            continue;
        }
        words.push(word);
    }
    words
}

/// What is watched: programs and what they are given.
fn paths(args: &WatchArgs) -> Vec<PathBuf> {
    match &args.command {
        WatchCommand::Check(args) => args.programs.clone(),
        WatchCommand::Run(args) => super::run::input_files(args)
            .map(Path::to_path_buf)
            .chain(crate::config::found_for(
                &args.config,
                &args.program.program,
            ))
            .collect(),
    }
}

/// The files as they are now; folders are looked through again.
fn stamps(paths: &[PathBuf]) -> Vec<(PathBuf, Stamp)> {
    let mut stamps = Vec::new();
    for path in paths {
        let files = files::expand(std::slice::from_ref(path), &EXTENSIONS);
        // An empty folder is watched until there is something in it.
        let files = files.unwrap_or_else(|_| vec![(path.clone(), true)]);
        stamps.extend(files.into_iter().map(|(file, _)| {
            let stamp = std::fs::metadata(&file)
                .and_then(|about| Ok((about.modified()?, about.len())))
                .ok();
            (file, stamp)
        }));
    }
    stamps
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_inner_command_line() {
        let inner = |line: &str| {
            let words = words(line.split(' ').map(Into::into));
            let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
            words.join(" ")
        };
        assert_eq!(inner("watch run a.json --fuel 5"), "run a.json --fuel 5");
        assert_eq!(inner("watch --interval 1s check watch"), "check watch");
        assert_eq!(
            inner("--color never watch --color always check a"),
            "--color never --color always check a"
        );
    }
}
