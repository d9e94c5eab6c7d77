//! Program launcher: prepares all data of a child before the child exists.
//!
//! The child borrows the agent's memory until `execve` (`sys`), so that starting it copies
//! no page tables and faults no page twice. It must not allocate; the candidate paths of
//! the program are therefore computed beforehand.

use super::sys::{ChildSetup, NotStarted, Started, spawn};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;

/// Search path without `PATH` (`execvp(3)`).
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Shell that runs scripts without a `#!` line (`execvp(3)`).
const SHELL: &[u8] = b"/bin/sh";

/// Variables by name.
pub(super) type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// A program to start.
#[derive(Debug)]
pub(super) struct Launch {
    /// Standard input, output and error.
    pub stdio: [OwnedFd; 3],
    /// Working directory; the agent's own if absent.
    pub cwd: Option<CString>,
    /// An inherited descriptor and its number in the child.
    pub more: Option<(OwnedFd, i32)>,
    /// Setup of the child before `execve`.
    pub setup: ChildSetup,
    /// Candidate paths of the program, in order.
    pub paths: Vec<CString>,
    /// Arguments, the first of which is the program's name, after a slot for the shell.
    pub argv: Vec<CString>,
    /// `NAME=value`.
    pub env: Vec<CString>,
}

impl Launch {
    /// Prepares the program `argv` with exactly the variables `env`. A name without a slash
    /// is looked up in their `PATH`.
    ///
    /// # Errors
    /// `EINVAL` if the name is missing, or a text contains a zero byte.
    pub(super) fn new(
        argv: &[Vec<u8>],
        env: &Variables,
        stdio: [OwnedFd; 3],
        setup: ChildSetup,
    ) -> io::Result<Self> {
        let name = argv.first().ok_or(Errno::INVAL)?;
        let path = env.iter().find(|(name, _)| name == b"PATH");
        let path = path.map_or(DEFAULT_PATH, |(_, value)| value);
        let variable = |(name, value): &(Vec<u8>, Vec<u8>)| text([name, &b"="[..], value].concat());
        let shell = text(SHELL.to_vec());
        let arguments = argv.iter().map(|argument| text(argument.clone()));
        Ok(Self {
            stdio,
            cwd: None,
            more: None,
            setup,
            paths: paths(name, path)?,
            argv: std::iter::once(shell)
                .chain(arguments)
                .collect::<Result<_, _>>()?,
            env: env.iter().map(variable).collect::<Result<_, _>>()?,
        })
    }

    /// Sets the working directory.
    ///
    /// # Errors
    /// `EINVAL` if it contains a zero byte.
    pub(super) fn in_folder(self, cwd: &[u8]) -> io::Result<Self> {
        let cwd = Some(text(cwd.to_vec())?);
        Ok(Self { cwd, ..self })
    }

    /// Starts the program.
    ///
    /// # Errors
    /// Those of `clone(2)`, of the setup, and of `execve(2)`.
    pub(super) fn start(&self) -> Result<Started, NotStarted> {
        spawn(self)
    }
}

/// Merges the agent's own variables, those of the user, and `more`; the last of a name
/// counts.
pub(super) fn variables(clear: bool, user: &[(&str, &str)], more: &Variables) -> Variables {
    let own = std::env::vars_os().filter(|_| !clear);
    let mut all: Variables = own
        .map(|(name, value): (OsString, OsString)| (name.into_vec(), value.into_vec()))
        .collect();
    let user = user.iter().filter(|_| !clear);
    let user: Variables = user
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    for (name, value) in user.iter().chain(more) {
        match all.iter_mut().find(|(present, _)| present == name) {
            Some((_, present)) => present.clone_from(value),
            None => all.push((name.clone(), value.clone())),
        }
    }
    all
}

/// Candidate paths of the program with that name.
fn paths(name: &[u8], path: &[u8]) -> Result<Vec<CString>, Errno> {
    if name.is_empty() {
        return Err(Errno::NOENT);
    }
    if name.contains(&b'/') {
        return Ok(vec![text(name.to_vec())?]);
    }
    let folders = path.split(|byte| *byte == b':');
    let path = |folder: &[u8]| match folder {
        // An empty one is the working directory.
        [] => text(name.to_vec()),
        _ => text([folder, b"/", name].concat()),
    };
    folders.map(path).collect()
}

fn text(bytes: Vec<u8>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(pairs: &[(&str, &str)]) -> Variables {
        let pair = |(name, value): &(&str, &str)| (name.as_bytes().into(), value.as_bytes().into());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn names_are_looked_up_and_paths_are_not() {
        let paths = |name: &str, path: &str| {
            let paths = paths(name.as_bytes(), path.as_bytes()).unwrap();
            let texts = paths.into_iter().map(|path| path.into_string().unwrap());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(paths("a", "/x:/y"), ["/x/a", "/y/a"]);
        assert_eq!(paths("a", "/x::y"), ["/x/a", "a", "y/a"]);
        assert_eq!(paths("./a", "/x"), ["./a"]);
        assert!(super::paths(b"", b"/x").is_err());
        assert!(super::paths(b"a\0b", b"/x").is_err());
    }

    #[test]
    fn later_variables_replace_earlier_ones() {
        let more = owned(&[("A", "1"), ("B", "2"), ("A", "3")]);
        let user = [("A", "0"), ("HOME", "/home/x")];
        let cleared = variables(true, &user, &more);
        assert_eq!(cleared, owned(&[("A", "3"), ("B", "2")]));
        let all = variables(false, &user, &more);
        assert!(all.len() > 3, "the own ones stay: {all:?}");
        let home = all.iter().find(|(name, _)| name == b"HOME");
        assert_eq!(home.unwrap().1, b"/home/x");
    }
}
