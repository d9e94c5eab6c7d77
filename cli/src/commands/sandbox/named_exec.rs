//! `a99 sandbox exec NAME` and `shell NAME`: commands in a sandbox that has a
//! name.

use super::exec::{CLOSED_PIPE, COLLECTED_BYTES, is_closed_pipe, show, warn_out_of_memory, write};
use super::shell::{RawMode, needs_terminal, size};
use crate::failure::{Exit, Failure};
use crate::named::client::{CommandControl, Connection};
use crate::named::error::{NamedError, ended};
use crate::named::name::Name;
use crate::named::runtime_dir::RuntimeDir;
use crate::named::wire::{Exec, Request};
use crate::output;
use crate::sandbox_args::{ExecArgs, SettingsArgs, ShellArgs};
use a99_sandbox::VmError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

/// The number of the signal that ends a command with all that it started.
const SIGKILL: u32 = 9;

/// Added to the number of a signal that ended a process, as shells do.
const SIGNAL_EXIT: u8 = 128;

/// How long the sandbox may take to say that a command was ended, before this
/// process ends without its word.
const GRACE: Duration = Duration::from_millis(500);

/// Runs a command.
pub(super) fn run(name: &Name, args: &ExecArgs) -> Result<Exit, Failure> {
    fixed(name, &args.settings)?;
    let limits = args.settings.limits;
    if args.session
        && (!args.settings.env.is_empty() || limits.memory.is_some() || limits.processes.is_some())
    {
        return Err(Failure::usage(
            "--env, --memory and --processes do not apply to the session's shell; `export` sets \
             variables there",
        ));
    }
    Ok(ended(exec(name, args), args.json))
}

/// What was chosen at the start stays.
fn fixed(name: &Name, settings: &SettingsArgs) -> Result<(), Failure> {
    if settings.has_fixed() {
        return Err(Failure::usage(format!(
            "--mount, --net, --image and --lifetime are chosen when a sandbox starts: \
             `a99 sandbox start {name}`"
        )));
    }
    Ok(())
}

fn exec(name: &Name, args: &ExecArgs) -> Result<Exit, NamedError> {
    let dir = RuntimeDir::of_user()?;
    // What a person types is meant for the command only if it is piped; the
    // session's commands have none.
    let piped = !args.detach && !args.session && !stdin().is_terminal();
    let limits = args.settings.limits;
    let timeout = args.timeout.map(|time| time.as_millis());
    let exec = Exec {
        argv: args.argv.clone(),
        env: args.settings.env.clone(),
        root: args.root,
        cwd: args.cwd.clone(),
        stdin: piped,
        // Time limits are a year at most, and not nothing.
        timeout_ms: timeout.map(|time| u64::try_from(time).unwrap_or(u64::MAX).max(1)),
        output_limit: limits
            .output_limit
            .or(args.json.then_some(COLLECTED_BYTES))
            .filter(|_| !args.detach),
        memory: limits.memory,
        processes: limits.processes,
        session: args.session,
        shell: None,
        detach: args.detach,
    };
    let connection = Connection::open(&dir, name, &Request::Exec(Box::new(exec)))?;
    if args.detach {
        let started = connection.reply()?;
        let shown = if args.json { &started } else { &started["pid"] };
        output::out(&format!("{shown}\n"));
        return Ok(Exit::Ok);
    }
    follow_signals(connection.control()?)?;
    if !args.json {
        let mut is_closed = false;
        let code = connection.follow(piped, |is_error, bytes| {
            let written = pass(is_error, bytes);
            is_closed = written.as_ref().is_err_and(is_closed_pipe);
            written
        });
        return match code {
            // The command ends with the connection.
            Err(_) if is_closed => Ok(Exit::Guest(CLOSED_PIPE)),
            ended => {
                let ended = ended?;
                warn_out_of_memory(ended.out_of_memory);
                Ok(Exit::Guest(ended.code))
            }
        };
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = connection.follow(piped, |is_error, bytes| {
        if is_error { &mut err } else { &mut out }.extend(bytes);
        Ok(())
    });
    match code {
        Ok(code) => Ok(show(code, &out, &err)),
        Err(error) => Err(NamedError {
            output: Some((out, err)),
            ..error
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

/// The first signal is the command's. The second one ends the command and this
/// process, whatever the sandbox does: it may be one that answers no more.
fn follow_signals(control: CommandControl) -> Result<(), NamedError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGQUIT])
        .map_err(|error| NamedError::io("signals", error))?;
    let control = Arc::new(control);
    on_a_thread(move || {
        let mut is_second = false;
        for signal in signals.forever() {
            let number = match is_second {
                true => SIGKILL,
                false => signal.unsigned_abs(),
            };
            // On a thread of its own: whoever writes may wait for a sandbox that
            // does not read.
            let theirs = Arc::clone(&control);
            let sent = on_a_thread(move || {
                let _ = theirs.signal(number);
            });
            if is_second || sent.is_err() {
                std::thread::sleep(GRACE);
                let code = SIGNAL_EXIT.saturating_add(signal.unsigned_abs() as u8);
                std::process::exit(code.into());
            }
            is_second = true;
        }
    })
}

fn on_a_thread(work: impl FnOnce() + Send + 'static) -> Result<(), NamedError> {
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let spawned = thread.spawn(work);
    spawned
        .map(drop)
        .map_err(|error| NamedError::io("no thread", error))
}

/// Opens a shell.
pub(super) fn shell(name: &Name, args: &ShellArgs) -> Result<Exit, Failure> {
    fixed(name, &args.settings)?;
    Ok(ended(open_shell(name, args), false))
}

fn open_shell(name: &Name, args: &ShellArgs) -> Result<Exit, NamedError> {
    needs_terminal().map_err(NamedError::from)?;
    let dir = RuntimeDir::of_user()?;
    let exec = Exec {
        env: args.settings.env.clone(),
        root: args.root,
        shell: Some(size()),
        ..Exec::default()
    };
    let connection = Connection::open(&dir, name, &Request::Exec(Box::new(exec)))?;
    let raw = RawMode::enter().map_err(|error: VmError| NamedError::from(error))?;
    follow_terminal(connection.control()?)?;
    let code = connection.follow(true, pass);
    drop(raw);
    Ok(Exit::Guest(code?.code))
}

/// Sends the shell the terminal's size; ends it when this process is to end,
/// so that the terminal is left as it was.
fn follow_terminal(control: CommandControl) -> Result<(), NamedError> {
    let mut signals = Signals::new([SIGWINCH, SIGTERM, SIGHUP])
        .map_err(|error| NamedError::io("signals", error))?;
    on_a_thread(move || {
        for signal in signals.forever() {
            let (rows, columns) = size();
            if signal != SIGWINCH {
                // The shell ends with the connection, and the terminal is left
                // as it was.
                return control.hang_up();
            }
            if control.resize(rows, columns).is_err() {
                return;
            }
        }
    })
}
