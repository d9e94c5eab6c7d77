//! `a99 watch`: checks or runs again after each change of a file.
//!
//! Each run is a separate process, independent of the previous result. An interrupt ends both
//! processes.

use crate::args::{WatchArgs, WatchCommand};
use crate::commands::check::EXTENSIONS;
use crate::failure::{Exit, Failure};
use crate::{files, input, output};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Fingerprint of a file: modification time and length; `None` if it does not exist.
type Stamp = Option<(SystemTime, u64)>;

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
            // An interrupt that only the inner command received ends this one, too.
            if status.code() == Some(i32::from(Exit::Aborted.code())) {
                return Ok(Exit::Aborted);
            }
            output::note("watching", &format!("{} files", now.len()));
            seen = Some(now);
        }
        std::thread::sleep(args.interval);
    }
}

/// The command line without `watch` and its options.
fn words(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut all = all.peekable();
    let mut before = true;
    while let Some(word) = all.next() {
        if before && word == "watch" {
            before = false;
            while let Some(option) = all.next_if(|w| w != "check" && w != "run") {
                // `--color` is a global option.
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

/// Watched paths: programs and their inputs.
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

/// Fingerprints of all files; folders are listed anew.
fn stamps(paths: &[PathBuf]) -> Vec<(PathBuf, Stamp)> {
    let mut stamps = Vec::new();
    for path in paths {
        let files = files::expand(std::slice::from_ref(path), &EXTENSIONS);
        // An empty folder is watched until it has a file.
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
