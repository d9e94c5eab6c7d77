//! Lowers the source form, a subset of JavaScript, to the JSON tree of a program.
//!
//! [`read`] parses a source, never executes it, and returns the
//! [`Document`](a99_core::json::Document) of the program. The nodes of the document know their
//! places in the source. Findings about forms outside of the subset name the place and an
//! alternative.
//!
//! A source without newer forms is lowered once. Else it is rewritten first, as text whose parts
//! keep their places (`edits`): `declared` writes enums and inheritance plainly. What is refused
//! then gets the classes that stand behind it (`provided`) and loses its closures (`closures`); if
//! that is refused, too, `desugar` removes sugar such as `var`, and the rest begins again.
//!
//! ```
//! use a99_source::read;
//! # struct None;
//! # impl a99_core::sig::Signatures for None {
//! #     fn signature(&self, _: &str) -> Option<&a99_core::sig::AtomSig> { Option::None }
//! #     fn op_names(&self) -> Box<dyn Iterator<Item = &str> + '_> { Box::new([].into_iter()) }
//! # }
//! # let atoms = None;
//! let read = read("function agent({ n }) { return n * 2 }", &atoms)?;
//! let program = String::from_utf8(read.json)?;
//! assert!(program.starts_with(r#"{"op":"seq","a99":4,"steps":[{"op":"varsImport","keys":["n"]}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(unreachable_pub)]

mod asked;
mod atom;
mod bits;
mod bodies;
mod call;
mod callback;
mod chars;
mod closures;
mod code;
pub mod codes;
mod common;
mod conditions;
mod control;
mod dates;
mod declared;
mod defined;
mod desugar;
mod dispatch;
mod edits;
mod effect;
mod errors;
mod exec;
mod expr;
mod finally;
mod guard;
mod higher;
mod holes;
mod indexes;
mod inline;
mod instance;
mod iterable;
mod kept;
mod keys;
mod keywords;
mod known;
mod leave;
mod library;
mod literals;
mod locale;
mod lower;
mod made;
mod maps;
mod missing;
mod missing_values;
mod module;
mod outline;
mod pattern;
mod print;
mod promise;
mod provided;
mod quote;
mod reduce;
mod regex;
mod replaced;
mod required;
mod scoping;
mod sort;
mod spell;
mod spread;
mod state;
mod steps;
mod stmt;
mod texts;
mod then;
mod tool_loop;
mod tree;
mod turn;
mod types;
mod typos;
mod unused_results;
mod value;
mod words;

use a99_core::diag::{Diagnostic, Diagnostics};
use a99_core::sig::Signatures;
use guard::Words;
use hashbrown::HashSet;
use lower::{Lowerer, MAX_NESTING, place};
use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;
use scoping::Scoping;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tree::{Names, Tree};

pub use atom::form_of;
pub use guard::{MAX_BYTES, MAX_DEPTH};
pub use outline::{Outline, outline};
pub use print::print;
pub use texts::texts;

/// Bytes of stack for parsing and lowering deeply nested sources. It suffices for everything that
/// the guard accepts, in builds without optimisation too.
#[cfg(not(target_family = "wasm"))]
const STACK: usize = 64 << 20;

/// Maximum nesting of a source that is read on the caller's thread, as both the guard and
/// lowering count it. It fits 1 MiB of stack in builds without optimisation, too
/// (`compiler/source/tests/stack.rs`). Starting a thread takes as long as the rest of a short
/// source, because its memory is new each time.
const SHALLOW: u32 = 32;

/// Maximum nesting of a source whose names are resolved.
const MAX_SCOPING: u32 = 2 * MAX_NESTING;

/// Maximum bytes of the program's JSON.
const MAX_PROGRAM: usize = 16 << 20;

/// A lowered program with its source map and warnings.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program as JSON text.
    pub json: Vec<u8>,
    /// Byte range in the source for each value and key of the JSON, in the order in which a
    /// reader numbers them.
    pub places: Vec<(u32, u32)>,
    /// Forms that mean something else in JavaScript.
    pub warnings: Diagnostics,
    /// Arguments that the program requires, with the offsets of their names: they have no
    /// default, and the source never tests whether they are given.
    pub required: Vec<(String, u32)>,
}

/// Parses and lowers a source that may call these atoms.
///
/// # Errors
/// All errors, with their places in the source.
pub fn read(
    source: impl AsRef<[u8]>,
    atoms: &(dyn Signatures + Sync),
) -> Result<Program, Diagnostics> {
    let bytes = source.as_ref();
    let read = match str::from_utf8(bytes) {
        Ok(source) => guarded(source, atoms),
        Err(error) => {
            let at = error.valid_up_to() as u32;
            let found = Diagnostic::error(codes::SYNTAX, "the source is not UTF-8", "");
            let found = found.with_span(at..at + 1);
            Err(found.with_help("save the file as UTF-8").into())
        }
    };
    read.map_err(|mut found| {
        found.locate(bytes);
        found
    })
}

/// Reads a source on the caller's stack, or on a larger one if it may nest deeper.
fn guarded(source: &str, atoms: &(dyn Signatures + Sync)) -> Result<Program, Diagnostics> {
    let words = guard::names(source).map_err(|found| *found)?;
    if words.nesting <= SHALLOW {
        let read = || rewritten(source, atoms, words, SHALLOW);
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(Some(read)) => return read,
            Ok(None) => {}
            Err(_) => return Err(unread("the parser failed")),
        }
    }
    on_stack(source, atoms)
}

/// Builds the finding for a source that cannot be read, with no place.
fn unread(why: &str) -> Diagnostics {
    let message = format!("the source could not be read: {why}");
    Diagnostic::error(codes::TOO_LARGE, message, "").into()
}

#[cfg(not(target_family = "wasm"))]
fn on_stack(source: &str, atoms: &(dyn Signatures + Sync)) -> Result<Program, Diagnostics> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let spawned = thread.spawn_scoped(scope, || whole(source, atoms));
        match spawned.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(read)) => read,
            Ok(Err(_)) => Err(unread("the parser failed")),
            Err(error) => Err(unread(&error.to_string())),
        }
    })
}

/// Maximum nesting on WebAssembly, where no thread has a larger stack: the embedder's stack is
/// often 1 MiB, and overflowing it ends the module.
#[cfg(target_family = "wasm")]
const MAX_WASM: u32 = 64;

#[cfg(target_family = "wasm")]
fn on_stack(source: &str, atoms: &(dyn Signatures + Sync)) -> Result<Program, Diagnostics> {
    let words = guard::names(source).map_err(|found| *found)?;
    if words.nesting > MAX_WASM {
        let message = format!("the source nests more than {MAX_WASM} levels deep, the limit here");
        let found = Diagnostic::error(codes::TOO_DEEP, message, "");
        return Err(found.with_help("bind parts to variables").into());
    }
    let read = rewritten(source, atoms, words, MAX_WASM);
    read.unwrap_or_else(|| Err(unread("it nests too deep")))
}

#[cfg(not(target_family = "wasm"))]
fn whole(source: &str, atoms: &(dyn Signatures + Sync)) -> Result<Program, Diagnostics> {
    let words = guard::names(source).map_err(|found| *found)?;
    let read = rewritten(source, atoms, words, MAX_NESTING);
    read.unwrap_or_else(|| Err(unread("it nests too deep")))
}

/// Lowers a source whose enums and classes are rewritten first; `None` if it nests deeper than
/// `most`.
fn rewritten(
    source: &str,
    atoms: &(dyn Signatures + Sync),
    words: Words<'_>,
    most: u32,
) -> Option<Result<Program, Diagnostics>> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, source);
    let can = !parsed.panicked
        && !parsed.diagnostics.has_errors()
        && words.nesting <= MAX_SCOPING
        && source.len() <= edits::MAX_SOURCE;
    let changed = match can {
        true => declared::rewrite(source, &parsed.program),
        false => None,
    };
    let Some(changed) = changed else {
        let parsed = Parsed {
            end: source.len() as u32,
            source,
            words,
            allocator: &allocator,
            parsed,
        };
        return lower(parsed, atoms, most);
    };
    let words = match guard::names(&changed.text) {
        Ok(words) => words,
        Err(found) => return Some(Err(changed.original((*found).into(), source))),
    };
    let allocator = Allocator::default();
    let done = lower(
        Parsed {
            end: changed.end,
            source: &changed.text,
            words,
            allocator: &allocator,
            parsed: parse(&allocator, &changed.text),
        },
        atoms,
        most,
    )?;
    Some(changed.original_result(done, source))
}

/// A source that is parsed.
struct Parsed<'a> {
    source: &'a str,
    /// The functions behind this are generated.
    end: u32,
    words: Words<'a>,
    allocator: &'a Allocator,
    parsed: oxc_parser::ParserReturn<'a>,
}

/// Lowers a source, without its sugar if it cannot be lowered as it is.
fn lower(
    of: Parsed<'_>,
    atoms: &(dyn Signatures + Sync),
    most: u32,
) -> Option<Result<Program, Diagnostics>> {
    let (source, end) = (of.source, of.end);
    let is_shallow = of.words.nesting <= MAX_SCOPING;
    let found = match lower_as_is(of, atoms, most)? {
        Err(found) if is_shallow => found,
        done => return Some(done),
    };
    // Sources without sugar are lowered once, so that their programs stay the same.
    let Some(changed) = desugar::rewrite(source) else {
        return Some(Err(found));
    };
    let allocator = Allocator::default();
    let done = match guard::names(&changed.text) {
        Ok(words) => lower_as_is(
            Parsed {
                source: &changed.text,
                end: changed.behind(end).start,
                words,
                allocator: &allocator,
                parsed: parse(&allocator, &changed.text),
            },
            atoms,
            most,
        )?,
        Err(found) => Err((*found).into()),
    };
    Some(changed.original_result(done, source))
}

/// Lowers a source without removing sugar.
fn lower_as_is(
    of: Parsed<'_>,
    atoms: &(dyn Signatures + Sync),
    most: u32,
) -> Option<Result<Program, Diagnostics>> {
    let Parsed {
        source,
        end,
        words,
        allocator,
        mut parsed,
    } = of;
    let written = source.len() as u32;
    let (mut source, mut words, mut behind) = (source, words, None);
    if !parsed.panicked
        && !parsed.diagnostics.has_errors()
        // Looking for calls might overflow the stack, as resolving names might.
        && words.nesting <= MAX_SCOPING
        && source.contains("JSON")
        && let Some((code, call)) = library::needed(&parsed.program)
    {
        source = allocator.alloc_str(&format!("{source}{code}"));
        parsed = parse(allocator, source);
        behind = Some(call);
        words = match guard::names(source) {
            Ok(words) => words,
            Err(found) => return Some(Err((*found).into())),
        };
    }
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return Some(Err(refused(source, &parsed.diagnostics)));
    }
    let is_shallow = words.nesting <= MAX_SCOPING;
    let names: Vec<&str> = words.all.iter().copied().collect();
    let set_up = |lowerer: &mut Lowerer<'_>| (lowerer.end, lowerer.behind) = (end, behind);
    let (lowerer, done) = attempt(source, atoms, words, &parsed.program, most, &set_up)?;
    let found = match done {
        Err(found) if is_shallow => found,
        done => return Some(done),
    };
    // Sources without closures never come here, so that their programs stay the same.
    let Some(agent) = lowerer.by_value.agent_at else {
        return Some(Err(found));
    };
    // What a class of JavaScript stands behind is written out first.
    let library = written..source.len() as u32;
    let changed = provided::with_classes(source, &parsed.program, (agent, library.clone()));
    let mut done = match &changed {
        None => {
            let of = (agent, library);
            closed(source, &parsed.program, of, (&names, &found), atoms, most)?
        }
        Some(changed) => {
            let text = &changed.text;
            let (Ok(words), Some(agent)) = (guard::names(text), changed.destination(agent)) else {
                return Some(Err(found));
            };
            let names: Vec<&str> = words.all.iter().copied().collect();
            let allocator = Allocator::default();
            let parsed = parse(&allocator, text);
            let of = (agent, changed.behind(written));
            let unplaced = Diagnostics::default();
            let done = closed(text, &parsed.program, of, (&names, &unplaced), atoms, most)?;
            done.map(|done| changed.original_result(done, source))
        }
    }
    .unwrap_or(Err(found));
    if let Some(call) = behind {
        match &mut done {
            Ok(program) => {
                library::placed(&mut program.places, end, call);
                library::moved(&mut program.warnings.0, end, call);
            }
            Err(found) => library::moved(&mut found.0, end, call),
        }
    }
    Some(done)
}

/// Lowers a source without its closures; the inner `None` if it has none, and the outer if it nests
/// deeper than `most`.
fn closed(
    source: &str,
    program: &oxc_ast::ast::Program<'_>,
    of: (u32, Range<u32>),
    (names, found): (&[&str], &Diagnostics),
    atoms: &(dyn Signatures + Sync),
    most: u32,
) -> Option<Option<Result<Program, Diagnostics>>> {
    Some(match closures::rewrite(source, program, of, names, found) {
        None => None,
        Some(Err(found)) => Some(Err(found)),
        Some(Ok(rewritten)) => Some(again(&rewritten, source, atoms, most)?),
    })
}

fn parse<'a>(allocator: &'a Allocator, text: &'a str) -> oxc_parser::ParserReturn<'a> {
    let options = ParseOptions {
        preserve_parens: false,
        enable_ident_hashes: false,
        ..ParseOptions::default()
    };
    let parser = Parser::new(allocator, text, SourceType::ts());
    parser.with_options(options).parse()
}

/// Lowers a source in which closures are rewritten; places are those of the source as written.
fn again(
    rewritten: &closures::Rewritten,
    source: &str,
    atoms: &(dyn Signatures + Sync),
    most: u32,
) -> Option<Result<Program, Diagnostics>> {
    let (changed, text) = (rewritten.changed(), &rewritten.changed().text);
    let words = match guard::names(text) {
        Ok(words) => words,
        Err(found) => return Some(Err(changed.original((*found).into(), source))),
    };
    let allocator = Allocator::default();
    let parsed = parse(&allocator, text);
    if parsed.panicked || parsed.diagnostics.has_errors() {
        let found = refused(text, &parsed.diagnostics);
        return Some(Err(changed.original(found, source)));
    }
    if words.nesting > MAX_SCOPING {
        return Some(Err(unread("it nests too deep")));
    }
    let set_up = |lowerer: &mut Lowerer<'_>| {
        lowerer.end = text.len() as u32;
        let by_value = &mut lowerer.by_value;
        by_value.dispatches.clone_from(rewritten.dispatches());
        by_value.agent_at = Some(rewritten.agent());
    };
    let (_, done) = attempt(text, atoms, words, &parsed.program, most, &set_up)?;
    Some(changed.original_result(done, source))
}

/// Lowers a parsed source, once more if it needs errors as objects or all arguments; `None` if it
/// nests too deep for the current stack.
fn attempt<'a>(
    source: &'a str,
    atoms: &'a (dyn Signatures + Sync),
    words: Words<'a>,
    program: &'a oxc_ast::ast::Program<'a>,
    most: u32,
    set_up: &dyn Fn(&mut Lowerer<'a>),
) -> Option<(Lowerer<'a>, Result<Program, Diagnostics>)> {
    // The count of nesting leaves a margin. Beyond the limit every variable counts as set,
    // because resolving names might overflow the stack.
    let scoping = || match words.nesting <= MAX_SCOPING {
        true => Scoping::read(program),
        false => Scoping::default(),
    };
    let mut lowerer = Lowerer::new(source, atoms, (words.clone(), scoping()), most);
    set_up(&mut lowerer);
    let mut root = lowerer.module(program);
    if (lowerer.errors.is_wanted || lowerer.wants_all_arguments) && !lowerer.is_too_deep {
        let errors = lowerer.errors.is_wanted.then(|| lowerer.errors.again());
        let wants_all_arguments = lowerer.wants_all_arguments;
        lowerer = Lowerer::new(source, atoms, (words.clone(), scoping()), most);
        set_up(&mut lowerer);
        lowerer.errors = errors.unwrap_or_default();
        lowerer.wants_all_arguments = wants_all_arguments;
        root = lowerer.module(program);
    }
    if lowerer.is_too_deep {
        return None;
    }
    let done = finish(&mut lowerer, root);
    Some((lowerer, done))
}

/// The program of a lowered source.
fn finish(lowerer: &mut Lowerer<'_>, root: Option<Tree>) -> Result<Program, Diagnostics> {
    let captures = lowerer.captures();
    lowerer.check_calls(&captures);
    lowerer.check_copies(&captures);
    let end = lowerer.end;
    if let Some(call) = lowerer.behind {
        library::moved(&mut lowerer.found, end, call);
    }
    let (Some(root), false) = (root, lowerer.is_denied()) else {
        let causes = std::mem::take(&mut lowerer.causes);
        let is_cause = |one: &Diagnostic| {
            let at = one.span.as_ref().map(|span| span.start);
            at.is_some_and(|at| causes.contains(&at))
        };
        if lowerer.found.iter().any(is_cause) {
            lowerer.found.retain(is_cause);
        }
        return Err(Diagnostics(std::mem::take(&mut lowerer.found)));
    };
    let captured = |ids: &Vec<usize>| {
        let names = ids.iter().map(|id| lowerer.bindings[*id].name.clone());
        names.collect()
    };
    let captures: Vec<Vec<String>> = captures.iter().map(captured).collect();
    let variables: &HashSet<String> = &lowerer.variables;
    let names = Names {
        is_name: &|text| {
            let text = String::from_utf8_lossy(text);
            let root = text.split('.').next().unwrap_or_default();
            root == "args" || variables.contains(root)
        },
        captures: &captures,
        max: MAX_PROGRAM,
    };
    let (json, mut places) = tree::write(&root, &names);
    if let Some(call) = lowerer.behind {
        library::placed(&mut places, end, call);
    }
    if json.len() > MAX_PROGRAM {
        let message = format!("the program is larger than {MAX_PROGRAM} bytes");
        return Err(Diagnostic::error(codes::TOO_LARGE, message, "").into());
    }
    let required = lowerer.required_arguments();
    let mut warnings = Diagnostics(std::mem::take(&mut lowerer.found));
    warnings.locate(lowerer.source.as_bytes());
    Ok(Program {
        json,
        places,
        warnings,
        required,
    })
}

/// Reports a source that the parser rejects; a text in another format gets one specific finding.
fn refused(source: &str, found: &oxc_diagnostics::Diagnostics) -> Diagnostics {
    let Some((name, help)) = words::other_format(source) else {
        let found = found.errors();
        return found.map(|found| syntax(source, found)).collect();
    };
    let start = (source.len() - source.trim_start().len()) as u32;
    let line = source.trim_start().lines().next().unwrap_or_default();
    let message = format!("this is {name}, not JavaScript");
    let found = Diagnostic::error(codes::SYNTAX, message, "")
        .with_span(start..start + line.len() as u32)
        .with_offending(a99_core::diag::excerpt(line));
    found.with_help(help).into()
}

/// Converts a syntax error of the parser to a finding.
fn syntax(source: &str, found: &oxc_diagnostics::OxcDiagnostic) -> Diagnostic {
    let label = found.labels.first();
    let start = label.map_or(0, |label| label.offset());
    let len = label.map_or(1, |label| label.len());
    // A missing semicolon is the least likely cause.
    let help = found.help.as_deref();
    let help = help.filter(|help| !help.starts_with("Try inserting a semicolon"));
    let written = source.get(start as usize..(start + len) as usize);
    let written = written.and_then(|part| part.lines().next());
    // If the label is empty because something is missing, the finding shows the line.
    let written = written.map(str::trim).filter(|part| !part.is_empty());
    let before = source.get(..start as usize).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let line = source.get(line..).and_then(|rest| rest.lines().next());
    Diagnostic::error(codes::SYNTAX, found.message.to_string(), "")
        .with_span(place(oxc_span::Span::new(start, start + len)))
        .with_offending(a99_core::diag::excerpt(
            written.or(line.map(str::trim)).unwrap_or_default(),
        ))
        .with_help(help.unwrap_or_else(|| words::syntax_help(source, start as usize)))
}
