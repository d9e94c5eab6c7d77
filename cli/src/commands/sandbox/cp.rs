//! `a99 sandbox cp`: copies files and folders to and from a named sandbox.
//!
//! The daemon copies; it runs as this user and sees the same files. An existing folder as the
//! target receives the source under its name, as with `cp -r`.

use crate::failure::{Exit, Failure};
use crate::local::Refusal;
use crate::named::args::{CpArgs, Endpoint};
use crate::named::client::{self, Connection};
use crate::named::error::ended;
use crate::named::name::Name;
use crate::named::runtime_dir::RuntimeDir;
use crate::named::wire::Request;
use crate::output;
use a99_sandbox::VmCode;
use serde_json::Value as Json;
use std::path::Path;

pub(super) fn run(args: &CpArgs) -> Result<Exit, Failure> {
    let copied = match (&args.source, &args.target) {
        (Endpoint::Host(host), Endpoint::Guest(name, guest)) => copy_in(name, host, guest),
        (Endpoint::Guest(name, guest), Endpoint::Host(host)) => {
            copy_out(name, guest, host, args.git)
        }
        _ => {
            return Err(Failure::usage(
                "expected NAME:PATH on one side and a path of this computer on the other \
                 (./PATH if it looks like NAME:PATH)",
            ));
        }
    };
    Ok(ended(
        copied.map(|reply| show(&reply, args.json)),
        args.json,
    ))
}

fn show(reply: &Json, json: bool) -> Exit {
    if json {
        output::out(&format!("{reply}\n"));
    } else if reply["leftOut"].as_u64().is_some_and(|count| count > 0) {
        let text = format!(
            "{} left out: devices, pipes, sockets, links that lead out, and what this \
             computer's git would run (`--git` copies that)",
            reply["leftOut"]
        );
        output::note("note", &text);
    }
    Exit::Ok
}

fn failed(side: &str, path: &str, why: &str) -> Refusal {
    Refusal::new(VmCode::Copy.name(), format!("{side}: {path}: {why}"))
}

fn copy_in(name: &Name, host: &str, guest: &str) -> Result<Json, Refusal> {
    let dir = RuntimeDir::of_user()?;
    let source = source_of(host);
    let into = |folder: &str| Ok(client::run(&dir, name, &["test", "-d", folder])? == 0);
    let guest = target(source, guest, into).map_err(|why| {
        why.unwrap_or_else(|| failed("host", host, "it has no name to be copied under"))
    })?;
    let host = absolute(source.path)?;
    Connection::open(&dir, name, &Request::CopyIn { host, guest })?.reply()
}

fn copy_out(name: &Name, guest: &str, host: &str, git: bool) -> Result<Json, Refusal> {
    let dir = RuntimeDir::of_user()?;
    let source = source_of(guest);
    let into = |folder: &str| Ok(Path::new(folder).is_dir());
    let host = target(source, host, into).map_err(|why| {
        why.unwrap_or_else(|| failed("guest", guest, "it has no name to be copied under"))
    })?;
    let host = absolute(&host)?;
    let guest = source.path.to_owned();
    Connection::open(&dir, name, &Request::CopyOut { guest, host, git })?.reply()
}

/// The daemon runs in another folder.
fn absolute(path: &str) -> Result<String, Refusal> {
    let full = std::path::absolute(path).map_err(|error| Refusal::io(path, error))?;
    let full = full.into_os_string().into_string();
    full.map_err(|_| failed("host", path, "the path of this folder is no UTF-8"))
}

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CopySource<'a> {
    path: &'a str,
    /// Whether to copy only the content of the folder.
    is_content: bool,
}

/// `PATH/.` means the content of a folder.
fn source_of(text: &str) -> CopySource<'_> {
    let content = text.strip_suffix("/.").or((text == ".").then_some("."));
    match content {
        Some("") => CopySource {
            path: "/",
            is_content: true,
        },
        Some(path) => CopySource {
            path,
            is_content: true,
        },
        None => CopySource {
            path: text,
            is_content: false,
        },
    }
}

/// The path of the copy: inside the target under the source's name, if the target is a folder.
/// `Err(None)` for a source without a name.
fn target(
    source: CopySource<'_>,
    target: &str,
    is_folder: impl FnOnce(&str) -> Result<bool, Refusal>,
) -> Result<String, Option<Refusal>> {
    if source.is_content || !(target.ends_with('/') || is_folder(target).map_err(Some)?) {
        return Ok(target.to_owned());
    }
    let name = Path::new(source.path).file_name().ok_or(None)?;
    let name = name.to_str().ok_or(None)?;
    Ok(format!("{}/{name}", target.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_the_source_in_under_its_name() {
        let target_of =
            |source, into: &str| target(source_of(source), into, |path| Ok(path == "/dir"));
        for (source, into, expected) in [
            ("a", "/dir", "/dir/a"),
            ("x/a/", "/dir", "/dir/a"),
            ("x/a", "/new", "/new"),
            ("x/a", "/new/", "/new/a"),
            ("x/a", "/", "/a"),
            ("x/a/.", "/dir", "/dir"),
            (".", "/dir", "/dir"),
            ("/.", "/new", "/new"),
        ] {
            assert_eq!(target_of(source, into), Ok(expected.to_owned()), "{source}");
        }
        for nameless in ["..", "/", "a/.."] {
            assert_eq!(target_of(nameless, "/dir"), Err(None), "{nameless}");
        }
    }

    #[test]
    fn a_dot_means_the_content() {
        for (text, path, is_content) in [
            ("a/.", "a", true),
            ("/.", "/", true),
            (".", ".", true),
            ("a.", "a.", false),
            ("a/..", "a/..", false),
        ] {
            assert_eq!(source_of(text), CopySource { path, is_content }, "{text}");
        }
    }
}
