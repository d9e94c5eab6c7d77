//! `a99 check`: compiles and verifies programs and looks for what they most
//! likely get wrong; artifacts are verified as by `a99 verify`.

use crate::args::CheckArgs;
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::{input, output};
use agent99::{Diagnostics, Engine, Map, Value};
use std::path::{Path, PathBuf};

/// What makes a program fail for certain where it is reached: names that nothing
/// has here.
const UNKNOWN: [&str; 3] = [
    "lint.unknown_atom",
    "lint.unknown_expression",
    "lint.unknown_function",
];

/// Files of a folder that are checked.
const EXTENSIONS: [&str; 2] = ["json", "a99b"];

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let engine = Engine::builder().lint(true).build();
    let files = files_of(&args.programs)?;
    let format = match args.json {
        true => Format::Json,
        false => Format::Human,
    };
    let mut exit = Exit::Ok;
    for file in &files {
        let done = check(&engine, file, args, files.len() > 1);
        let done = done.unwrap_or_else(|failure| failure.report(format));
        // A file that cannot be read weighs more than one that is rejected.
        if exit == Exit::Ok || done == Exit::Usage {
            exit = done;
        }
    }
    Ok(exit)
}

/// The files to check: those of a folder in the order of their names, and those
/// of the folders in it.
fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        let mut folders = vec![path.clone()];
        while let Some(folder) = folders.pop() {
            let failed = |error| Failure::about(&folder.display().to_string(), error);
            let mut entries = std::fs::read_dir(&folder)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(failed)?;
            entries.sort_by_key(std::fs::DirEntry::path);
            for entry in entries {
                let path = entry.path();
                let kind = entry.file_type().map_err(failed)?;
                let extension = path.extension().and_then(|e| e.to_str());
                // Links are not followed into folders: they may lead around.
                if kind.is_dir() {
                    folders.push(path);
                } else if extension.is_some_and(|e| EXTENSIONS.contains(&e)) {
                    files.push(path);
                }
            }
        }
        if files.len() == before {
            let text = "no programs in this folder: they end in `.json` or `.a99b`";
            return Err(Failure::about(&path.display().to_string(), text));
        }
        files[before..].sort();
    }
    Ok(files)
}

fn check(engine: &Engine, file: &Path, args: &CheckArgs, several: bool) -> Result<Exit, Failure> {
    let source = input::read(file)?;
    if source.is_artifact() {
        return super::verify::report(&source, None, args.json);
    }
    let (agent, source) = input::agent_of(engine, source)?;
    let warnings = agent.warnings();
    let denied = args.deny_warnings && !warnings.is_empty();
    let refused = denied || !args.allow_unknown && has_unknown(warnings);
    if args.json {
        let mut map = Map::new();
        map.insert("ok", !refused);
        if several {
            map.insert("file", source.name.as_str());
        }
        map.insert("diagnostics", warnings.to_json());
        output::json(&Value::Object(map));
    } else {
        super::show_warnings(&agent, &source);
        let found = match warnings.len() {
            0 => String::new(),
            1 => ", 1 warning".to_owned(),
            n => format!(", {n} warnings"),
        };
        let word = match refused {
            true if denied => "warnings are denied",
            true => "names are unknown (accepted with `--allow-unknown`)",
            false => "ok",
        };
        output::note(&source.name, &format!("{word}{found}"));
    }
    Ok(match refused {
        true => Exit::Rejected,
        false => Exit::Ok,
    })
}

fn has_unknown(warnings: &Diagnostics) -> bool {
    warnings.iter().any(|found| UNKNOWN.contains(&found.code))
}
