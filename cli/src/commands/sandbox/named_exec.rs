//! `a99 sandbox exec NAME` and `shell NAME`: run commands in a named sandbox.

use super::exec::{CLOSED_PIPE, COLLECTED_BYTES, is_closed_pipe, show, warn_out_of_memory, write};
use super::shell::{RawMode, needs_terminal, size};
use crate::failure::{Exit, Failure};
use crate::local::Refusal;
use crate::named::client::{CommandControl, Connection};
use crate::named::error::ended;
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

/// The number of the signal that kills a command with all its processes.
const SIGKILL: u32 = 9;

/// Shells add this to the number of the signal that ended a process.
const SIGNAL_EXIT: u8 = 128;

/// How long to wait for the sandbox to confirm the kill before this process exits.
const GRACE: Duration = Duration::from_millis(500);

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

/// Refuses options that only `start` accepts.
fn fixed(name: &Name, settings: &SettingsArgs) -> Result<(), Failure> {
    if settings.has_fixed() {
        return Err(Failure::usage(format!(
            "--mount, --net, --image and --lifetime are chosen when a sandbox starts: \
             `a99 sandbox start {name}`"
        )));
    }
    Ok(())
}

fn exec(name: &Name, args: &ExecArgs) -> Result<Exit, Refusal> {
    let dir = RuntimeDir::of_user()?;
    // A terminal's input belongs to the user, so only piped input is forwarded; commands of the
    // session have no input.
    let piped = !args.detach && !args.session && !stdin().is_terminal();
    let limits = args.settings.limits;
    let timeout = args.timeout.map(|time| time.as_millis());
    let exec = Exec {
        argv: args.argv.clone(),
        env: args.settings.env.clone(),
        root: args.root,
        cwd: args.cwd.clone(),
        stdin: piped,
        // Timeouts are at most a year, and never 0.
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
        Err(error) => Err(Refusal {
            output: Some(Box::new((out, err))),
            ..error
        }),
    }
}

/// Forwards output.
fn pass(is_error: bool, bytes: &[u8]) -> std::io::Result<()> {
    match is_error {
        true => write(&mut stderr().lock(), bytes),
        false => write(&mut stdout().lock(), bytes),
    }
}

/// Forwards the first signal to the command. The second kills the command and ends this process,
/// even if the sandbox hangs.
fn follow_signals(control: CommandControl) -> Result<(), Refusal> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGQUIT]).map_err(|error| Refusal::io("signals", error))?;
    let control = Arc::new(control);
    on_a_thread(move || {
        let mut is_second = false;
        for signal in signals.forever() {
            let number = match is_second {
                true => SIGKILL,
                false => signal.unsigned_abs(),
            };
            // On a separate thread: the write blocks if the sandbox does not read.
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

fn on_a_thread(work: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let spawned = thread.spawn(work);
    spawned
        .map(drop)
        .map_err(|error| Refusal::io("no thread", error))
}

pub(super) fn shell(name: &Name, args: &ShellArgs) -> Result<Exit, Failure> {
    fixed(name, &args.settings)?;
    Ok(ended(open_shell(name, args), false))
}

fn open_shell(name: &Name, args: &ShellArgs) -> Result<Exit, Refusal> {
    needs_terminal().map_err(Refusal::from)?;
    let dir = RuntimeDir::of_user()?;
    let exec = Exec {
        env: args.settings.env.clone(),
        root: args.root,
        shell: Some(size()),
        ..Exec::default()
    };
    let connection = Connection::open(&dir, name, &Request::Exec(Box::new(exec)))?;
    let raw = RawMode::enter().map_err(|error: VmError| Refusal::from(error))?;
    follow_terminal(connection.control()?)?;
    let code = connection.follow(true, pass);
    drop(raw);
    Ok(Exit::Guest(code?.code))
}

/// Forwards the terminal's size. Ends the shell on a signal that ends this process, so that the
/// terminal is restored.
fn follow_terminal(control: CommandControl) -> Result<(), Refusal> {
    let mut signals =
        Signals::new([SIGWINCH, SIGTERM, SIGHUP]).map_err(|error| Refusal::io("signals", error))?;
    on_a_thread(move || {
        for signal in signals.forever() {
            let (rows, columns) = size();
            if signal != SIGWINCH {
                // The shell ends with the connection, which restores the terminal.
                return control.hang_up();
            }
            if control.resize(rows, columns).is_err() {
                return;
            }
        }
    })
}
