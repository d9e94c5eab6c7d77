//! `a99 check`: compiles, verifies and lints programs; checks artifacts as `a99 verify` does.

use super::sarif;
use super::verify::{self, Verified};
use crate::args::{CheckArgs, FindingsForm};
use crate::failure::{Exit, Failure};
use crate::input::Source;
use crate::{files, input, output};
use a99_core::json::{Document, Limits};
use agent99::cost::Cost;
use agent99::{Diagnostics, Engine, Map, Value};
use std::path::{Path, PathBuf};

/// Codes of unknown names, which fail for certain when the step is reached.
const UNKNOWN: [&str; 3] = [
    "lint.unknown_atom",
    "lint.unknown_expression",
    "lint.unknown_function",
];

/// Extensions of files in folders that are checked.
pub(crate) const EXTENSIONS: [&str; 3] = ["json", "a99b", "ajs"];

/// Result for one file.
#[derive(Debug)]
pub(crate) struct Report {
    /// The path as given.
    pub path: PathBuf,
    /// The finding, or why the file could not be checked.
    pub finding: Result<Finding, Failure>,
}

/// A file that was compiled or verified.
#[derive(Debug)]
pub(crate) enum Finding {
    /// A program, perhaps refused for its warnings.
    Program {
        source: Source,
        /// The compiler's warnings.
        warnings: Diagnostics,
        /// Why its warnings refuse it.
        refused: Option<&'static str>,
        /// What its runs cost at most, if that was asked for.
        cost: Option<Box<Cost>>,
    },
    Artifact {
        name: String,
        verified: Verified,
    },
    /// A JSON file of a folder that is not a program, and was not named.
    Other,
}

impl Report {
    fn exit(&self) -> Exit {
        match &self.finding {
            Ok(Finding::Program {
                refused: Some(_), ..
            }) => Exit::Rejected,
            Ok(_) => Exit::Ok,
            Err(failure) => failure.exit(),
        }
    }
}

pub(crate) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let engine = Engine::builder().lint(true).build();
    input::only_one_stdin(args.programs.iter().map(PathBuf::as_path))?;
    let files = files::expand(&args.programs, &EXTENSIONS)?;
    let mut exit = Exit::Ok;
    let mut reports = Vec::new();
    let mut programs = 0;
    for (path, named) in files {
        let finding = check(&engine, &path, named, args);
        programs += usize::from(!matches!(finding, Ok(Finding::Other)));
        let report = Report { path, finding };
        // A file that cannot be read outranks a rejected one.
        let done = report.exit();
        if exit == Exit::Ok || done == Exit::Usage {
            exit = done;
        }
        match args.form() {
            FindingsForm::Human => show(&report),
            FindingsForm::Json => output::json(&Value::Object(to_json(&report))),
            FindingsForm::Sarif => reports.push(report),
        }
    }
    if programs == 0 {
        return Err(Failure::usage("none of the files is a program"));
    }
    if args.form() == FindingsForm::Sarif {
        output::json(&sarif::log(&reports, exit.code()));
    }
    Ok(exit)
}

fn check(engine: &Engine, path: &Path, named: bool, args: &CheckArgs) -> Result<Finding, Failure> {
    let source = input::read(path)?;
    if !named && is_other(&source) {
        return Ok(Finding::Other);
    }
    if source.is_artifact() {
        let verified = verify::verify(&source, None)?;
        let name = source.name;
        return Ok(Finding::Artifact { name, verified });
    }
    let (agent, source) = input::agent_in(engine, source, args.lenient)?;
    let warnings = agent.warnings().clone();
    let refused = if args.deny_warnings && !warnings.is_empty() {
        Some("warnings are denied")
    } else if !args.allow_unknown && has_unknown(&warnings) {
        Some("names are unknown (accepted with `--allow-unknown`)")
    } else {
        None
    };
    let cost = args.cost.then(|| Box::new(engine.cost(&agent)));
    Ok(Finding::Program {
        source,
        warnings,
        refused,
        cost,
    })
}

/// Whether a file is JSON without any sign of a program: arguments, scripts and results often stand
/// beside programs.
fn is_other(source: &Source) -> bool {
    if source.is_script() {
        return false;
    }
    match Document::parse(source.bytes.clone(), &Limits::default()) {
        Err(_) => false,
        Ok(document) => {
            let has = |key| document.get(document.root(), key).is_some();
            !has("op") && !has("steps")
        }
    }
}

fn has_unknown(warnings: &Diagnostics) -> bool {
    warnings.iter().any(|found| UNKNOWN.contains(&found.code))
}

/// Prints a report for people.
fn show(report: &Report) {
    match &report.finding {
        Err(failure) => failure.show(),
        Ok(Finding::Other) => output::note(&input::name_of(&report.path), "no program, left out"),
        Ok(Finding::Artifact { name, verified }) => output::note(name, &verified.to_text()),
        Ok(Finding::Program {
            source,
            warnings,
            refused,
            cost,
        }) => {
            super::show_findings(warnings, source);
            let found = match warnings.len() {
                0 => String::new(),
                1 => ", 1 warning".to_owned(),
                n => format!(", {n} warnings"),
            };
            let word = refused.unwrap_or("ok");
            output::note(&source.name, &format!("{word}{found}"));
            if let Some(cost) = cost {
                output::out(&cost.to_string());
            }
        }
    }
}

/// `{ok, file, diagnostics}` of a program, `{ok, file, ..}` of an artifact,
/// `{ok, file, error, diagnostics}` of a refused file, `{ok, file, left_out}` of a file that is
/// not a program.
fn to_json(report: &Report) -> Map {
    let mut map = Map::new();
    map.insert("ok", report.exit() == Exit::Ok);
    map.insert("file", input::name_of(&report.path));
    match &report.finding {
        Err(failure) => map.extend(failure.to_json()),
        Ok(Finding::Artifact { verified, .. }) => map.extend(verified.to_json()),
        Ok(Finding::Program { warnings, cost, .. }) => {
            map.insert("diagnostics", warnings.to_json());
            if let Some(cost) = cost {
                map.insert("cost", cost.to_json());
            }
        }
        Ok(Finding::Other) => {
            map.insert("left_out", true);
        }
    }
    map
}
