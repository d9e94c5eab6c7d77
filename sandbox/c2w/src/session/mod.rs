//! Session over a terminal: commands are typed to a shell in the guest.
//!
//! An image has only a terminal, so commands travel as typed lines and their results as
//! printed output. This relies on:
//!
//! - marks with a token for each call ([`marker`](super::marker)) around a command's
//!   output, printed to the terminal itself even if the shell's own output is redirected;
//! - scripts that are typed as escapes only, through a file if they are long, so that none
//!   of their characters has a meaning to the terminal, and an open quote ends with the
//!   script;
//! - `/dev/null` as a command's input, so that it does not read the lines typed after it;
//! - a session shell inside a loop of the image's own shell: when it ends, the loop reports
//!   that and starts another, which takes over the folder and the exported variables. The
//!   image's shell itself must not end, since the machine would then turn itself off.
//!
//! A program that ignores every signal of a terminal's keys cannot be ended: the call that
//! started it ends with an error that says so, and so do later calls while it runs.

mod upload;

use super::marker::{Mark, Scanner, Token, formats};
use super::options::Run;
use a99_sandbox_runner::{self as vm, VmCode, VmError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit of the shell's answer when no other program runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that a command gets to end after each of the terminal's signals.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);

/// Interval at which the running command's cancellation is polled.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Silence after which a text that ends like a prompt counts as one.
const PROMPT_QUIET: Duration = Duration::from_millis(100);

/// Silence after which the shell is probed without a recognised prompt.
const BOOT_QUIET: Duration = Duration::from_secs(3);

/// Interval of probes while the guest boots.
const PROBE_PERIOD: Duration = Duration::from_secs(5);

/// Maximum bytes kept of output between commands.
const MAX_BACKGROUND: usize = 64 << 10;

/// Bytes of console output that an error quotes.
const QUOTED: usize = 400;

/// Candidate folders in the guest for scripts and the session's state: those in memory
/// first, because a mount may cover the others.
const FOLDERS: [&str; 4] = ["/dev/shm", "/run", "/tmp", "/var/tmp"];

/// Standard input of a command without one.
const NOTHING: &str = "/dev/null";

/// Sets up the terminal: no echo, bytes unchanged.
const TERMINAL: &str = "stty -echo -opost icanon isig 2>/dev/null";

/// Keys that end a command, gentlest first.
const KEYS: [(u8, &str); 3] = [
    (0x03, ""),
    (0x1c, ""),
    // Stops the command; the shell, back at its prompt, then kills it.
    (0x1a, "kill -9 %% 2>/dev/null"),
];

pub(super) trait Terminal {
    fn type_in(&self, bytes: &[u8], until: Option<Instant>) -> Result<(), VmError>;

    /// Returns the output since the last call; waits for some until `until`, then returns
    /// none.
    fn output(&self, until: Option<Instant>) -> Result<Vec<u8>, VmError>;
}

/// Result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output and standard error together, as exact bytes: a terminal has one
    /// stream.
    pub stdout: Vec<u8>,
    /// Messages of the emulator itself during the command, not of the command.
    pub stderr: Vec<u8>,
    /// Exit code; for a command that a signal ended, 128 plus its number.
    pub exit_code: i32,
    /// The shell ended and another one took over: unexported variables, functions and jobs
    /// are gone.
    pub session_reset: bool,
}

/// A shell in the guest.
#[derive(Debug)]
pub(super) struct Session<T> {
    terminal: T,
    scanner: Scanner,
    /// Mark that is printed when the session shell has ended.
    ended: Token,
    /// Marks go to `/dev/tty`, so that they arrive even if output is redirected.
    has_tty: bool,
    /// Prefix of our file names in the guest.
    files: Option<String>,
    /// Output between commands.
    background: Vec<u8>,
    /// A new shell took over since the last result.
    was_reset: bool,
    /// A command that could not be ended may still hold the terminal.
    is_lost: bool,
    /// A terminal around the shell's own makes two bytes of each line end, regardless of
    /// the shell's settings.
    is_translated: bool,
    /// Set when the caller no longer wants the running command.
    cancel: Option<Arc<AtomicBool>>,
}

/// Result of waiting for a mark.
enum Waited {
    Found(Mark),
    TimedOut,
    TooMuch,
}

impl<T: Terminal> Session<T> {
    /// Waits for the image's shell and sets it up.
    ///
    /// # Errors
    /// [`VmCode::NotReady`] if no shell answers within `timeout`.
    pub(crate) fn begin(terminal: T, timeout: Duration) -> Result<Self, VmError> {
        Self::begin_in(&FOLDERS, terminal, timeout)
    }

    /// Does the same, with files in the first of these folders that is writable.
    fn begin_in(folders: &[&str], terminal: T, timeout: Duration) -> Result<Self, VmError> {
        let deadline = Instant::now() + timeout;
        let mut session = Self {
            terminal,
            scanner: Scanner::default(),
            ended: Token::new()?,
            has_tty: false,
            files: None,
            background: Vec::new(),
            was_reset: false,
            is_lost: false,
            is_translated: false,
            cancel: None,
        };
        session.wait_prompt(deadline)?;
        session.probe(deadline)?;
        session.run_line(&format!(
            "{TERMINAL}; PS1= PS2= HISTFILE=/dev/null; export PS1 PS2 HISTFILE; trap : INT"
        ))?;
        let say = session.ended.command();
        session.type_line(&format!("while :; do sh -i; {say}; done"))?;
        session.find_abilities(folders)?;
        session.set_up_shell()?;
        session.background.clear();
        Ok(session)
    }

    /// Waits until the guest's output ends like a prompt.
    fn wait_prompt(&mut self, deadline: Instant) -> Result<(), VmError> {
        let mut quiet = BOOT_QUIET;
        while Instant::now() < deadline {
            let output = self
                .terminal
                .output(Some(deadline.min(Instant::now() + quiet)))?;
            if output.is_empty() {
                return Ok(());
            }
            self.remember(&output);
            let end = self.background.trim_ascii_end().last();
            quiet = match end {
                Some(b'#' | b'$' | b'%' | b'>') => PROMPT_QUIET,
                _ => BOOT_QUIET,
            };
        }
        Ok(())
    }

    /// Types probes until a shell answers.
    fn probe(&mut self, deadline: Instant) -> Result<(), VmError> {
        loop {
            let token = Token::new()?;
            self.type_line(&token.command())?;
            let until = deadline.min(Instant::now() + PROBE_PERIOD);
            if let Waited::Found(mark) = self.wait(&[&token], Some(until), None)? {
                self.remember(&mark.before);
                return Ok(());
            }
            let passed = self.scanner.drop_passed();
            self.remember(&passed);
            if Instant::now() >= deadline {
                let text = "no shell answers on the image's console in time; it ends with";
                return Err(self.not_ready(text));
            }
        }
    }

    /// Detects the guest's abilities.
    fn find_abilities(&mut self, folders: &[&str]) -> Result<(), VmError> {
        self.run_line(TERMINAL)?;
        self.has_tty = self.run_line("true 2>/dev/null >/dev/tty")? == 0;
        for folder in folders {
            if self.run_line(&format!("[ -d {folder} ] && [ -w {folder} ]"))? == 0 {
                let id = &self.ended.text()[..12];
                self.files = Some(format!("{folder}/.a99-{id}"));
                break;
            }
        }
        Ok(())
    }

    /// Sets up a fresh session shell with the state of the last one.
    fn set_up_shell(&mut self) -> Result<(), VmError> {
        self.run_line(&format!("PS1= PS2=; {TERMINAL}"))?;
        let save = match &self.files {
            Some(files) => format!("export -p >|{files}.env; pwd >|{files}.cwd"),
            None => ":".to_owned(),
        };
        self.run_line(&format!("a99_save() {{ {save}; }}"))?;
        let to = self.to_tty();
        self.run_line(&format!(
            "a99_end() {{ a99_code=$?; a99_save 2>/dev/null; \
             command printf '\\036%s:%d\\036\\n' \"$1\" $a99_code{to}; }}"
        ))?;
        if let Some(files) = self.files.clone() {
            self.run_line(&format!("[ -f {files}.env ] && . {files}.env"))?;
            self.run_line(&format!("[ -f {files}.cwd ] && cd \"$(cat {files}.cwd)\""))?;
        }
        self.run_line("trap a99_save EXIT")?;
        Ok(())
    }

    /// Redirection for marks.
    fn to_tty(&self) -> &'static str {
        match self.has_tty {
            true => " >/dev/tty",
            false => "",
        }
    }

    /// Runs a line of ours; returns its status.
    fn run_line(&mut self, line: &str) -> Result<i32, VmError> {
        let token = Token::new()?;
        let to = self.to_tty();
        self.type_line(&format!("{line}; {}{to}", token.command()))?;
        match self.wait(&[&token], Some(Instant::now() + ANSWER_TIMEOUT), None)? {
            Waited::Found(mark) => {
                self.remember(&mark.before);
                Ok(mark.number)
            }
            _ => Err(self.not_ready("the image's shell does not answer; its console ends with")),
        }
    }

    fn not_ready(&self, text: &str) -> VmError {
        let end = &self.background[self.background.len().saturating_sub(QUOTED)..];
        let quoted = end.escape_ascii();
        VmError::new(VmCode::NotReady, format!("{text} \"{quoted}\""))
    }

    fn type_line(&self, line: &str) -> Result<(), VmError> {
        let until = Some(Instant::now() + ANSWER_TIMEOUT);
        self.terminal.type_in(format!("{line}\n").as_bytes(), until)
    }

    /// Keeps the end of output that belongs to no command.
    fn remember(&mut self, bytes: &[u8]) {
        self.background.extend(bytes);
        let excess = self.background.len().saturating_sub(MAX_BACKGROUND);
        self.background.drain(..excess);
    }

    /// Takes output between commands: of background programs, and the shell's messages
    /// about them. The last 64 KiB are kept.
    pub(crate) fn take_background(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.background)
    }

    /// Waits for a mark, until a time or until more than `limit` bytes came before it.
    fn wait(
        &mut self,
        tokens: &[&Token],
        until: Option<Instant>,
        limit: Option<usize>,
    ) -> Result<Waited, VmError> {
        loop {
            if let Some(mark) = self.scanner.find(tokens) {
                let fits = limit.is_none_or(|limit| mark.before.len() <= limit);
                return Ok(match fits {
                    true => Waited::Found(mark),
                    false => Waited::TooMuch,
                });
            }
            if limit.is_some_and(|limit| self.scanner.passed() > limit) {
                return Ok(Waited::TooMuch);
            }
            if limit.is_none() {
                // Only the end of long output is kept.
                let passed = self.scanner.drop_passed();
                self.remember(&passed);
            }
            if until.is_some_and(|until| Instant::now() >= until) || self.is_cancelled() {
                return Ok(Waited::TimedOut);
            }
            let poll = self
                .cancel
                .as_ref()
                .map(|_| Instant::now() + CANCEL_POLL_INTERVAL);
            let output = self.terminal.output(until.into_iter().chain(poll).min())?;
            self.scanner.feed(&output);
        }
    }

    /// Runs a script in the session shell.
    ///
    /// # Errors
    /// [`VmCode::TimedOut`], [`VmCode::OutputLimit`] and [`VmCode::Cancelled`] for the
    /// limits, [`VmCode::NotReady`] if the shell does not answer, and why the image no
    /// longer runs.
    pub(crate) fn exec(&mut self, script: &[u8], run: &Run) -> Result<Output, VmError> {
        let (timeout, output_limit) = (run.timeout, run.output_limit);
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let lines = formats(script)?;
        self.check_shell()?;
        let load = self.load(lines)?;
        let input = self.load_input(run.stdin.as_deref())?;
        let [begin, end, after] = [Token::new()?, Token::new()?, Token::new()?];
        let to = self.to_tty();
        let around = match self.has_tty {
            true => format!("<{input} >/dev/tty 2>&1"),
            false => format!("<{input}"),
        };
        // The second line is for a script whose error ends the first.
        self.type_line(&format!(
            "{}{to}; eval \"$({load})\" {around}; a99_end {}\n{{ a99_end {}; }} 2>/dev/null",
            begin.command(),
            end.text(),
            after.text(),
        ))?;
        let ended = self.ended.clone();
        self.cancel = run.cancel.clone();
        let started = self.wait(&[&begin, &ended], deadline, None);
        let waited = started.and_then(|started| match started {
            Waited::Found(mark) if mark.which == 0 => {
                self.remember(&mark.before);
                self.wait(&[&end, &after, &ended], deadline, Some(output_limit))
            }
            Waited::Found(mark) => Ok(Waited::Found(Mark { which: 2, ..mark })),
            waited => Ok(waited),
        });
        let is_cancelled = self.is_cancelled();
        self.cancel = None;
        let waited = waited?;
        let mark = match waited {
            Waited::Found(mark) => mark,
            Waited::TimedOut if is_cancelled => {
                let text = "the command was cancelled".to_owned();
                return Err(self.kill(VmCode::Cancelled, text, run));
            }
            Waited::TimedOut => {
                let text = format!(
                    "the command ran longer than {:?}",
                    timeout.unwrap_or_default()
                );
                return Err(self.kill(VmCode::TimedOut, text, run));
            }
            Waited::TooMuch => {
                let text = format!("the command wrote more than {output_limit} bytes");
                return Err(self.kill(VmCode::OutputLimit, text, run));
            }
        };
        match mark.which {
            0 => self.finish_line(&after)?,
            1 => {}
            _ => self.renew()?,
        }
        if input != NOTHING {
            // If the command did not end, the next input replaces the file.
            self.run_line(&format!("command rm -f {input}"))?;
        }
        Ok(Output {
            stdout: self.as_written(mark.before),
            stderr: Vec::new(),
            exit_code: mark.number,
            session_reset: std::mem::take(&mut self.was_reset),
        })
    }

    /// Whether the caller cancelled the running command.
    fn is_cancelled(&self) -> bool {
        let cancel = self.cancel.as_ref();
        cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Checks that the shell listens, and restores the terminal's settings, which a command
    /// may have changed.
    fn check_shell(&mut self) -> Result<(), VmError> {
        let ended = self.ended.clone();
        for attempt in 0.. {
            let token = Token::new()?;
            let to = self.to_tty();
            self.type_line(&format!("{}{to}", token.command()))?;
            match self.wait_for_answer(&[&token, &ended])? {
                Some(mark) if mark.which == 1 => self.renew()?,
                Some(mark) => {
                    let typed = token.text().as_bytes();
                    let mut windows = mark.before.windows(typed.len());
                    let echoed = windows.any(|window| window == typed);
                    if !mark.translated && !echoed {
                        self.remember(&mark.before);
                        self.is_translated = false;
                        return Ok(());
                    }
                    self.run_line(TERMINAL)?;
                    if attempt > 0 {
                        // There is no stty, or another terminal translates: each line end
                        // is two bytes, and is turned back into one.
                        self.is_translated = mark.translated;
                        return Ok(());
                    }
                }
                None if attempt == 0 && !self.is_lost && self.interrupt()? => {}
                None => {
                    let text = "a program that cannot be interrupted still has the guest's \
                                terminal; it ends with";
                    return Err(self.not_ready(text));
                }
            }
        }
        Ok(())
    }

    /// Waits for a mark that comes at once if the shell listens; the output before it is
    /// kept with it.
    fn wait_for_answer(&mut self, tokens: &[&Token]) -> Result<Option<Mark>, VmError> {
        let timeout = match self.is_lost {
            true => INTERRUPT_GRACE,
            false => ANSWER_TIMEOUT,
        };
        let until = Some(Instant::now() + timeout);
        let mut waited = self.wait(tokens, until, Some(MAX_BACKGROUND))?;
        if let Waited::TooMuch = waited {
            // A background program writes a lot.
            waited = self.wait(tokens, until, None)?;
        }
        match waited {
            Waited::Found(mark) => {
                self.is_lost = false;
                Ok(Some(mark))
            }
            Waited::TimedOut | Waited::TooMuch => Ok(None),
        }
    }

    /// The shell also reads the line that handles errors.
    fn finish_line(&mut self, after: &Token) -> Result<(), VmError> {
        let ended = self.ended.clone();
        let until = Some(Instant::now() + ANSWER_TIMEOUT);
        match self.wait(&[after, &ended], until, None)? {
            Waited::Found(mark) => {
                self.remember(&mark.before);
                if mark.which == 1 {
                    self.renew()?;
                }
            }
            // The next command will detect it.
            Waited::TimedOut | Waited::TooMuch => {}
        }
        Ok(())
    }

    /// Sets up the shell that replaced an ended one.
    fn renew(&mut self) -> Result<(), VmError> {
        self.was_reset = true;
        self.set_up_shell()
    }

    /// Ends the running command after a limit; the error has its output so far.
    fn kill(&mut self, code: VmCode, text: String, run: &Run) -> VmError {
        let written = self.scanner.drop_passed();
        let mut stdout = self.as_written(written);
        stdout.truncate(run.output_limit);
        let output = vm::Output {
            stdout,
            ..vm::Output::default()
        };
        let error = match self.interrupt() {
            Err(error) => error,
            Ok(true) => VmError::new(code, text),
            Ok(false) => {
                self.is_lost = true;
                let text = format!("{text}, ignores the terminal's interrupts and still runs");
                VmError::new(code, text)
            }
        };
        VmError {
            output: Some(Box::new(output)),
            ..error
        }
    }

    /// Undoes the terminal's translation of a command's output.
    fn as_written(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.is_translated {
            let mut kept = 0;
            for at in 0..bytes.len() {
                if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                    continue;
                }
                bytes[kept] = bytes[at];
                kept += 1;
            }
            bytes.truncate(kept);
        }
        bytes
    }

    /// Ends the command that holds the terminal; returns whether the shell is back.
    fn interrupt(&mut self) -> Result<bool, VmError> {
        let ended = self.ended.clone();
        for (key, then) in KEYS {
            let until = Instant::now() + INTERRUPT_GRACE;
            self.terminal.type_in(&[key], Some(until))?;
            // The key discards pending typed input, so the next line must come later.
            self.drain(PROMPT_QUIET)?;
            let token = Token::new()?;
            let to = self.to_tty();
            self.type_line(&format!("{then}\n{}{to}", token.command()))?;
            match self.wait(&[&token, &ended], Some(until), None)? {
                Waited::Found(mark) => {
                    if mark.which == 1 {
                        self.renew()?;
                    }
                    return Ok(true);
                }
                Waited::TimedOut | Waited::TooMuch => {}
            }
        }
        Ok(false)
    }

    /// Lets the guest print for a moment.
    fn drain(&mut self, span: Duration) -> Result<(), VmError> {
        let until = Instant::now() + span;
        while Instant::now() < until {
            let output = self.terminal.output(Some(until))?;
            self.remember(&output);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
