//! `a99 sandbox shell`: opens a shell in a new sandbox, on this terminal.

use super::exec::{pass_input, streamed, warn_refused_git_write};
use super::start::{ended, start};
use crate::failure::Exit;
use crate::sandbox_args::ShellArgs;
use a99_sandbox::{Process, VmCode, VmError, block_on};
use rustix::termios::{OptionalActions, Termios};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;

/// Size for a terminal that does not report its size.
const USUAL_SIZE: (u16, u16) = (24, 80);

pub(super) fn run(args: &ShellArgs) -> Exit {
    ended(shell(args), false)
}

fn shell(args: &ShellArgs) -> Result<Exit, VmError> {
    needs_terminal()?;
    if args.settings.foreign().is_some() {
        let text = "an image of container2wasm has one terminal, which commands travel over; \
                    `a99 sandbox start NAME --image FILE` keeps one for \
                    `a99 sandbox exec NAME --session`";
        return Err(VmError::new(VmCode::Unsupported, text));
    }
    let sandbox = start(&args.settings)?;
    let (rows, columns) = size();
    let shell = sandbox.shell(rows, columns);
    let shell = if args.root { shell.root() } else { shell };
    let shell = Arc::new(shell.spawn()?);
    let raw = RawMode::enter()?;
    follow_signals(&shell)?;
    pass_input(&shell)?;
    let result = streamed(&shell);
    drop(raw);
    block_on(sandbox.stop());
    warn_refused_git_write(sandbox.refused_git_write());
    result
}

/// Requires a terminal.
pub(super) fn needs_terminal() -> Result<(), VmError> {
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(());
    }
    let text = "a shell needs a terminal; `a99 sandbox exec` runs commands without one";
    Err(VmError::new(VmCode::BadOption, text))
}

pub(super) fn size() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => USUAL_SIZE,
    }
}

/// Raw mode of this terminal, which passes every key on; restored when dropped.
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Enters raw mode.
    pub(super) fn enter() -> Result<Self, VmError> {
        let failed = |error| VmError::new(VmCode::Io, format!("terminal: {error}"));
        let before = rustix::termios::tcgetattr(stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// Forwards the terminal's size. Ends the shell on a signal that ends this process, so that the
/// terminal is restored.
fn follow_signals(shell: &Arc<Process>) -> Result<(), VmError> {
    let failed = |error| VmError::new(VmCode::Resources, format!("signals: {error}"));
    let mut signals = Signals::new([SIGWINCH, SIGTERM, SIGHUP]).map_err(failed)?;
    let shell = Arc::clone(shell);
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let spawned = thread.spawn(move || {
        for signal in signals.forever() {
            let (rows, columns) = size();
            let sent = match signal {
                SIGWINCH => shell.resize(rows, columns),
                _ => shell.kill(),
            };
            if sent.is_err() {
                return;
            }
        }
    });
    spawned.map(drop).map_err(failed)
}
