//! `a99 fmt`: formats programs.

use crate::args::FmtArgs;
use crate::failure::{Exit, Failure};
use crate::layout::layout;
use crate::output::Format;
use crate::{files, input, output, write};
use a99_core::diag::codes;
use a99_core::json::{Document, Limits};
use agent99::{Diagnostic, Diagnostics, Map, Value};
use std::path::{Path, PathBuf};

/// Extensions of files in folders that may be programs.
const EXTENSIONS: [&str; 1] = ["json"];

pub(crate) fn run(args: &FmtArgs) -> Result<Exit, Failure> {
    let format = match args.json {
        true => Format::Json,
        false => Format::Human,
    };
    if args.to.is_some() {
        return to_source(args);
    }
    input::only_one_stdin(args.programs.iter().map(PathBuf::as_path))?;
    let mut exit = Exit::Ok;
    for (path, named) in files::expand(&args.programs, &EXTENSIONS)? {
        let done = match one(args, &path, named) {
            Ok(done) => done,
            Err(failure) => failure.report(format),
        };
        // A file that cannot be read or written outranks a refused one.
        if exit == Exit::Ok || done == Exit::Usage {
            exit = done;
        }
    }
    Ok(exit)
}

/// Prints a program in the source form.
fn to_source(args: &FmtArgs) -> Result<Exit, Failure> {
    let [path] = &args.programs[..] else {
        return Err(Failure::usage("`--to` prints one program"));
    };
    let engine = agent99::Engine::new();
    let (agent, source) = input::agent(&engine, path)?;
    match engine.print_source(&agent) {
        Ok(text) => {
            output::out(&text);
            Ok(Exit::Ok)
        }
        Err(mut diagnostics) => {
            place(&mut diagnostics, &agent);
            Err(Failure::Rejected {
                diagnostics,
                name: source.name,
                source: source.bytes,
            })
        }
    }
}

/// Moves diagnostics from the program with nodes for its texts to the text that was read.
fn place(found: &mut Diagnostics, agent: &agent99::Agent) {
    let document = agent.artifact().program().source.document();
    for one in &mut found.0 {
        let node = document.and_then(|document| document.find(&one.pointer));
        one.span = document
            .zip(node)
            .and_then(|(document, node)| document.span(node));
        one.region = None;
    }
    if let Some(text) = document.and_then(Document::shown) {
        found.locate(text);
    }
}

/// Formats one file; skips a file of a folder that is not a program.
fn one(args: &FmtArgs, path: &Path, named: bool) -> Result<Exit, Failure> {
    let source = input::read(path)?;
    if source.is_script() {
        let text = "only programs in JSON are laid out: a formatter of JavaScript does sources";
        return Err(Failure::about(&source.name, text));
    }
    let name = source.name;
    let text = match program_text(source.bytes) {
        Ok(text) => text,
        Err((_, diagnostics)) if !named && !diagnostics.has_syntax_errors() => return Ok(Exit::Ok),
        Err((source, Findings(diagnostics))) => {
            return Err(Failure::Rejected {
                diagnostics,
                name,
                source,
            });
        }
    };
    let laid_out = layout(&text);
    let changed = laid_out != text;
    let stdin = path == Path::new(input::STDIN);
    if args.check {
        report(
            args,
            &name,
            changed,
            if changed { "would change" } else { "ok" },
        );
        return Ok(if changed { Exit::Rejected } else { Exit::Ok });
    }
    if stdin {
        output::out(&laid_out);
        return Ok(Exit::Ok);
    }
    if changed {
        write::replace(path, laid_out.as_bytes(), std::iter::empty())?;
    }
    report(
        args,
        &name,
        changed,
        if changed { "laid out" } else { "unchanged" },
    );
    Ok(Exit::Ok)
}

fn report(args: &FmtArgs, name: &str, changed: bool, word: &str) {
    if args.json {
        let mut map = Map::new();
        map.insert("ok", !(changed && args.check));
        map.insert("file", name);
        map.insert("changed", changed);
        output::json(&Value::Object(map));
    } else if changed {
        output::note(name, word);
    }
}

/// Why a file is not a program.
struct Findings(Diagnostics);

impl Findings {
    /// Whether the file is not even JSON.
    fn has_syntax_errors(&self) -> bool {
        self.0.iter().any(|found| found.code != codes::BAD_ROOT)
    }
}

/// Checks that a text is a program: JSON whose root is a `seq`. Other mistakes do not matter.
fn program_text(bytes: Vec<u8>) -> Result<String, (Vec<u8>, Findings)> {
    let document = match Document::parse(bytes.clone(), &Limits::default()) {
        Ok(document) => document,
        Err(diagnostics) => return Err((bytes, Findings(diagnostics))),
    };
    let root = document.root();
    let op = document.get(root, "op").and_then(|op| document.str(op));
    if op != Some(b"seq") {
        let text = "only programs are laid out: objects whose `op` is `seq`";
        let found = Diagnostic::error(codes::BAD_ROOT, text, "")
            .with_span(document.span(root))
            .with_help("a program is `{\"op\": \"seq\", \"steps\": [...]}`");
        let mut found = Diagnostics::from(found);
        found.locate(&bytes);
        return Err((bytes, Findings(found)));
    }
    // The reader accepts only UTF-8.
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// The layout of a program's text; `None` for a text that is no program.
#[cfg(feature = "lsp")]
pub(super) fn laid_out(text: &str) -> Option<String> {
    program_text(text.as_bytes().to_vec())
        .ok()
        .map(|text| layout(&text))
}
