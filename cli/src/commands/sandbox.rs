//! `a99 sandbox`: builds the image, and runs commands in a new or a named sandbox.

mod cp;
mod exec;
mod lifecycle;
mod named_exec;
pub(crate) mod packaged;
mod shell;
mod snapshot;
mod start;

pub(crate) use start::builder;

use crate::failure::{Exit, Failure};
use crate::named::{daemon, launch};
use crate::output;
use crate::sandbox_args::{BuildArgs, SandboxArgs, SandboxCommand};
use a99_sandbox::image::{
    self, Built, Cache, Entry, ErrorCode, Event, ImageError, StepEnd, Versions,
};
use a99_sandbox::vm::{self, VmCode, VmError, WasmMachine, Worker};
use serde_json::{Value as Json, json};
use std::path::Path;

/// The committed lock file, relative to the sources.
const LOCK_FILE: &str = "sandbox/image/lock.json";

/// Exit code of a command that timed out, as of `timeout`.
const TIMED_OUT: u8 = 124;
/// Exit code of a failed sandbox, as of container tools.
pub(crate) const SANDBOX_FAILED: u8 = 125;
/// Exit code of a command that could not be started, as of shells.
const CANNOT_START: u8 = 126;

pub(crate) fn run(args: &SandboxArgs) -> Result<Exit, Failure> {
    match &args.command {
        SandboxCommand::Build(args) => Ok(build(args)),
        SandboxCommand::Exec(args) => match args.name.as_ref().or(args.positional_name.as_ref()) {
            Some(name) => named_exec::run(name, args),
            None if args.detach => Err(Failure::usage(
                "--detach needs a sandbox that stays: `a99 sandbox start NAME`",
            )),
            None => Ok(exec::run(args)),
        },
        SandboxCommand::Shell(args) => match &args.name {
            Some(name) => named_exec::shell(name, args),
            None => Ok(shell::run(args)),
        },
        SandboxCommand::Start(args) => Ok(lifecycle::start(args)),
        SandboxCommand::Fork(args) => Ok(lifecycle::fork(args)),
        SandboxCommand::Snapshot(args) => Ok(snapshot::run(args)),
        SandboxCommand::Cp(args) => cp::run(args),
        SandboxCommand::Ls(args) => Ok(lifecycle::ls(args)),
        SandboxCommand::Stop(args) => Ok(lifecycle::stop(args)),
        SandboxCommand::Keep(args) => Ok(daemon::run(&args.name)),
        SandboxCommand::Work(args) => Ok(match vm::serve(&args.what) {
            true => Exit::Ok,
            false => Exit::Guest(1),
        }),
        SandboxCommand::Image(args) => Ok(super::sandbox_image::run(args)),
        SandboxCommand::Doctor(args) => Ok(super::sandbox_doctor::run(args)),
    }
}

fn build(args: &BuildArgs) -> Exit {
    if !args.pack.is_empty() || !args.with.is_empty() {
        return super::sandbox_packs::run(args);
    }
    let options = options(&args.sources, versions(args));
    let built = Cache::of_user()
        .and_then(|cache| image::build(&cache, &options, Some(&machine()?), &mut show));
    match built {
        Ok(built) => {
            if args.json {
                line(&built_json(&built));
            } else {
                summary(&built);
            }
            Exit::Ok
        }
        Err(error) => image_failed(&error, args.json),
    }
}

/// The versions of packages that the options allow.
pub(super) fn versions(args: &BuildArgs) -> Versions {
    match (args.locked, args.update) {
        (true, _) => Versions::Locked,
        (_, true) => Versions::Updated,
        _ => Versions::Preferred,
    }
}

/// Build options for a folder that may hold the sources.
pub(super) fn options(sources: &Path, versions: Versions) -> image::Options {
    let lock_file = sources.join(LOCK_FILE);
    let has_guest = sources.join("sandbox/guest/Cargo.toml").exists();
    image::Options {
        versions,
        lock_file: lock_file.exists().then_some(lock_file),
        sources: has_guest.then(|| sources.to_path_buf()),
    }
}

/// The machine that runs guests for the image builder.
pub(super) fn machine() -> Result<WasmMachine, ImageError> {
    WasmMachine::new()
        .map(|machine| machine.worker(worker()))
        .map_err(|error| ImageError::new(ErrorCode::Guest, "engine", error.to_string()))
}

/// Worker that compiles and tries foreign images: this binary, in a separate process.
fn worker() -> Worker {
    Worker::new(launch::SELF_EXE, ["sandbox", "work"])
}

/// Reports a failure about the image.
pub(super) fn image_failed(error: &ImageError, json: bool) -> Exit {
    if json {
        line(&image_error(error));
    } else {
        output::note(&format!("error[{}]", error.code.name()), &error.to_string());
    }
    Exit::Guest(SANDBOX_FAILED)
}

/// Prints progress to standard error.
pub(super) fn show(event: Event<'_>) {
    output::err(&match event {
        Event::Advanced { .. } => return,
        Event::Started { step } => format!("==> {step}\n"),
        Event::Detail { text, .. } => format!("    {text}\n"),
        Event::Note { text } => format!("    note: {text}\n"),
        Event::Finished { step, end, elapsed } => {
            let how = match end {
                StepEnd::Built => "done",
                StepEnd::Cached => "in the cache",
            };
            format!("    {step}: {how} ({:.1} s)\n", elapsed.as_secs_f64())
        }
    });
}

fn summary(built: &Built) {
    for entry in built.entries() {
        let files = entry.manifest.files.iter();
        for file in files.filter(|file| !file.path.contains('/')) {
            let path = entry.path(&file.path);
            output::out(&format!("{:>10}  {}\n", file.size, path.display()));
        }
    }
}

fn built_json(built: &Built) -> Json {
    let step = |entry: &Entry| {
        json!({
            "step": entry.manifest.step,
            "folder": entry.folder,
            "manifest": entry.manifest,
        })
    };
    json!({ "steps": built.entries().map(step).collect::<Vec<_>>() })
}

fn image_error(error: &ImageError) -> Json {
    json!({"error": {
        "code": error.code.name(),
        "subject": error.subject,
        "message": error.reason,
        "help": error.help,
    }})
}

pub(super) fn line(value: &Json) {
    output::out(&format!("{value}\n"));
}

/// Reports a failure of the sandbox itself.
fn failed(error: &VmError, json: bool) -> Exit {
    if json {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut report = json!({"error": {"code": error.code.name(), "message": error.text}});
        if let Some(output) = &error.output {
            report["stdout"] = text(&output.stdout).into();
            report["stderr"] = text(&output.stderr).into();
        }
        line(&report);
    } else {
        output::note(&format!("error[{}]", error.code.name()), &error.text);
    }
    Exit::Guest(exit_of(error))
}

/// Exit code of a failure.
pub(crate) fn exit_of(error: &VmError) -> u8 {
    match error.code {
        VmCode::TimedOut => TIMED_OUT,
        // The guest reports 126 or 127.
        VmCode::CannotStart => match &error.output {
            Some(output) => output.exited.exit_code(),
            None => CANNOT_START,
        },
        _ => SANDBOX_FAILED,
    }
}
