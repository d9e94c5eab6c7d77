//! `a99 sandbox exec NAME` and `shell NAME`: commands in a sandbox that has a
//! name.

use super::exec::{COLLECTED_BYTES, show, write};
use super::shell::{Raw, needs_terminal, size};
use crate::failure::{Exit, Failure};
use crate::named::client::{Connection, Remote};
use crate::named::name::Name;
use crate::named::place::Place;
use crate::named::problem::{Problem, ended};
use crate::named::wire::{Exec, Request};
use crate::output;
use crate::sandbox_args::{ExecArgs, SettingsArgs, ShellArgs};
use a99_sandbox::VmError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::time::{Duration, Instant};

/// The number of the signal that ends a command with all that it started.
const SIGKILL: u32 = 9;

/// How soon a second Ctrl-C ends a command that did not end at the first.
const IMPATIENCE: Duration = Duration::from_millis(500);

/// Runs a command.
pub(super) fn run(name: &Name, args: &ExecArgs) -> Result<Exit, Failure> {
    fixed(name, &args.settings)?;
    Ok(ended(exec(name, args), args.json))
}

/// What was chosen at the start stays.
fn fixed(name: &Name, settings: &SettingsArgs) -> Result<(), Failure> {
    if settings.has_fixed() {
        return Err(Failure::usage(format!(
            "--mount and --net are chosen when a sandbox starts: `a99 sandbox start {name}`"
        )));
    }
    Ok(())
}

fn exec(name: &Name, args: &ExecArgs) -> Result<Exit, Problem> {
    let place = Place::of_user()?;
    // What a person types is meant for the command only if it is piped.
    let piped = !args.detach && !stdin().is_terminal();
    let timeout = args.timeout.map(|time| time.as_millis());
    let exec = Exec {
        argv: args.argv.clone(),
        env: args.settings.env.clone(),
        cwd: args.cwd.clone(),
        stdin: piped,
        // Time limits are a year at most, and not nothing.
        timeout_ms: timeout.map(|time| u64::try_from(time).unwrap_or(u64::MAX).max(1)),
        output_limit: args
            .json
            .then_some(COLLECTED_BYTES)
            .filter(|_| !args.detach),
        shell: None,
        detach: args.detach,
    };
    let connection = Connection::open(&place, name, &Request::Exec(Box::new(exec)))?;
    if args.detach {
        let started = connection.reply()?;
        let shown = if args.json { &started } else { &started["pid"] };
        output::out(&format!("{shown}\n"));
        return Ok(Exit::Ok);
    }
    follow_signals(connection.remote())?;
    if !args.json {
        return Ok(Exit::Guest(connection.follow(piped, pass)?));
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = connection.follow(piped, |is_error, bytes| {
        if is_error { &mut err } else { &mut out }.extend(bytes);
        Ok(())
    });
    match code {
        Ok(code) => Ok(show(code, &out, &err)),
        Err(problem) => Err(Problem {
            output: Some((out, err)),
            ..problem
        }),
    }
}

/// Passes output on as it comes.
fn pass(is_error: bool, bytes: &[u8]) -> std::io::Result<()> {
    match is_error {
        true => write(&mut stderr().lock(), bytes),
        false => write(&mut stdout().lock(), bytes),
    }
}

/// Signals are the command's, except for a second Ctrl-C at once, which ends it
/// in any case.
fn follow_signals(remote: Remote) -> Result<(), Problem> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGQUIT]).map_err(|error| Problem::io("signals", error))?;
    let mut last: Option<Instant> = None;
    on_a_thread(move || {
        for signal in signals.forever() {
            let is_impatient = last.is_some_and(|last| last.elapsed() < IMPATIENCE);
            let number = match signal {
                SIGINT if is_impatient => SIGKILL,
                signal => signal.unsigned_abs(),
            };
            if signal == SIGINT {
                last = Some(Instant::now());
            }
            if remote.signal(number).is_err() {
                return;
            }
        }
    })
}

fn on_a_thread(work: impl FnOnce() + Send + 'static) -> Result<(), Problem> {
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let spawned = thread.spawn(work);
    spawned
        .map(drop)
        .map_err(|error| Problem::io("no thread", error))
}

/// Opens a shell.
pub(super) fn shell(name: &Name, args: &ShellArgs) -> Result<Exit, Failure> {
    fixed(name, &args.settings)?;
    Ok(ended(open_shell(name, args), false))
}

fn open_shell(name: &Name, args: &ShellArgs) -> Result<Exit, Problem> {
    needs_terminal().map_err(Problem::from)?;
    let place = Place::of_user()?;
    let exec = Exec {
        env: args.settings.env.clone(),
        shell: Some(size()),
        ..Exec::default()
    };
    let connection = Connection::open(&place, name, &Request::Exec(Box::new(exec)))?;
    let raw = Raw::enter().map_err(|error: VmError| Problem::from(error))?;
    follow_terminal(connection.remote())?;
    let code = connection.follow(true, pass);
    drop(raw);
    Ok(Exit::Guest(code?))
}

/// Tells the shell of the terminal's size; ends it when this process is to end,
/// so that the terminal is left as it was.
fn follow_terminal(remote: Remote) -> Result<(), Problem> {
    let mut signals =
        Signals::new([SIGWINCH, SIGTERM, SIGHUP]).map_err(|error| Problem::io("signals", error))?;
    on_a_thread(move || {
        for signal in signals.forever() {
            let (rows, columns) = size();
            let told = match signal {
                SIGWINCH => remote.resize(rows, columns),
                _ => remote.signal(SIGKILL),
            };
            if told.is_err() {
                return;
            }
        }
    })
}
