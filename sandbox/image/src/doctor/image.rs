//! Image checks: whether it exists, is complete, safe, for this engine, and built from
//! these sources.

use super::super::cache::Cache;
use super::super::entry::Entry;
use super::super::machine::{MODULE, Machine};
use super::super::module::COMPATIBILITY;
use super::super::portable::{is_foreign, is_imported};
use super::super::seal::SealKey;
use super::super::{ErrorCode, ImageError, Options, find_built};
use super::{Diagnostic, Status};

/// Steps whose results every guest needs.
const NEEDED: [&str; 2] = ["snapshot", "module"];

/// Steps with results after a build, but not after an import.
const PARTS: [&str; 3] = ["kernel", "rootfs", "emulator"];

const BUILD: &str = "`a99 sandbox build`, or `a99 sandbox image import FILE`";

/// Kind of the installed image.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    Built,
    Imported,
}

/// Examines the image that guests start from.
pub(super) fn state(
    cache: &Cache,
    machine: &dyn Machine,
    diagnostics: &mut Vec<Diagnostic>,
) -> State {
    let check = "image";
    if let Some(missing) = NEEDED.iter().find(|step| !cache.names(step)) {
        let text = format!("there is none (no {missing})");
        diagnostics.push(Diagnostic::new(check, Status::Error, text).help(BUILD));
        return State::Missing;
    }
    let mut entries = Vec::new();
    for step in NEEDED.iter().chain(&PARTS).filter(|step| cache.names(step)) {
        // A lost part only slows down the next build; guests start without it.
        let severity = match NEEDED.contains(step) {
            true => Status::Error,
            false => Status::Warning,
        };
        match cache.current(step) {
            Ok(Some(entry)) => {
                diagnostics.extend(damage(&entry, severity));
                entries.push(entry);
            }
            Ok(None) => {
                let text = format!("the {step} is gone, damaged, or others may write to it");
                diagnostics.push(Diagnostic::new(check, severity, text).help(BUILD));
            }
            Err(error) => diagnostics.push(Diagnostic::of(check, severity, &error)),
        }
    }
    let of = |step: &str| entries.iter().find(|entry| entry.manifest.step == step);
    let (Some(snapshot), Some(module)) = (of("snapshot"), of("module")) else {
        return State::Missing;
    };
    let state = match is_imported(snapshot) {
        true => State::Imported,
        false => State::Built,
    };
    if !diagnostics
        .iter()
        .any(|diagnostic| diagnostic.check == check)
    {
        diagnostics.push(Diagnostic::ok(check, format!("{}, whole", whence(state))));
    }
    diagnostics.extend(module_diagnostics(
        module,
        machine,
        cache.key(),
        is_foreign(snapshot),
    ));
    state
}

fn whence(state: State) -> &'static str {
    match state {
        State::Imported => "imported",
        State::Missing | State::Built => "built here",
    }
}

/// Lists the files of a result with modified contents.
fn damage(entry: &Entry, severity: Status) -> Option<Diagnostic> {
    let damaged = entry.damaged();
    let names = damaged.join(", ");
    let folder = entry.folder.display();
    let text = format!("{folder}: other contents than were written: {names}");
    let help = format!("`rm -r {folder}`, then {BUILD}");
    let diagnostic = Diagnostic::new("image", severity, text).help(help);
    (!damaged.is_empty()).then_some(diagnostic)
}

/// Checks that the compiled module is for this engine, and that a guest starts from it.
fn module_diagnostics(
    module: &Entry,
    machine: &dyn Machine,
    key: Result<SealKey, ImageError>,
    foreign: bool,
) -> [Diagnostic; 2] {
    let compiled_for = module.manifest.inputs.get(COMPATIBILITY);
    let engine = "engine";
    let guest = "guest";
    if compiled_for != Some(machine.compatibility(foreign).as_str()) {
        let text = "the image is compiled for another wasmtime or processor";
        let help = "nothing: the next start compiles it again, which takes seconds";
        return [
            Diagnostic::new(engine, Status::Warning, text).help(help),
            Diagnostic::new(guest, Status::Warning, "not started: see engine"),
        ];
    }
    let tested = key.and_then(|key| machine.smoke_test(&module.path(MODULE), &key, foreign));
    [
        Diagnostic::ok(
            engine,
            "the image is compiled for this wasmtime and processor",
        ),
        match tested {
            Ok(()) => Diagnostic::ok(guest, "starts and runs a command"),
            Err(error) => Diagnostic::of(guest, Status::Error, &error),
        },
    ]
}

/// Checks whether a build here and now would change the image.
pub(super) fn freshness(cache: &Cache, options: &Options, machine: &dyn Machine) -> Diagnostic {
    let check = "sources";
    if options.sources.is_none() {
        return Diagnostic::ok(check, "none here that the image could be compared with");
    }
    match find_built(cache, options, Some(machine)) {
        Ok(built) if built.entries().all(|entry| cache.is_current(entry)) => {
            Diagnostic::ok(check, "the image is of these sources")
        }
        Ok(_) => {
            let text = "the image of these sources is in the cache, but another one is used";
            Diagnostic::new(check, Status::Warning, text).help("`a99 sandbox build` switches to it")
        }
        Err(error) if error.code == ErrorCode::NotBuilt => {
            let text = format!(
                "the image is of other sources, beginning with the {}",
                error.subject
            );
            Diagnostic::new(check, Status::Warning, text).help("`a99 sandbox build`")
        }
        Err(error) => Diagnostic::of(check, Status::Warning, &error),
    }
}
