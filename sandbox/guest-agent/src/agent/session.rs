//! Session shell: one `sh` that keeps its state from script to script.
//!
//! The shell reads one line for each script from its standard input. The line reads the
//! script from a file in memory by `command .`, so that an open quote, a `return` or an
//! error ends only the script. Standard input of a script is empty; its outputs are
//! separate pipes. Nothing is printed into the outputs to mark the end: the shell reports
//! exported variables and status on another pipe. All of these have names in the session's
//! directory (`session_dir`), which the shell inherits and no other process can find.
//!
//! The steps after each script are a function that the shell knows from its start, because
//! a shell takes longer to read a line than to run it. The script itself is not run by a
//! function, which would change its arguments.
//!
//! A subshell that meets an error of the shell itself (`${x?}`, no process available)
//! continues after the nearest `command`, which is the session's: busybox and dash fork
//! with the handler of their parent. So the first step after a script is to end every
//! process that is not the shell. The lines come from standard input for the same reason:
//! after a `command` read from another file, such a subshell of busybox searches for that
//! file for ever.
//!
//! When the shell ends, by `exit`, by `set -e` or by a signal, the next script gets a new
//! one in the last working directory with the last exported variables. Processes that the
//! old one left running are killed.

use super::group::{Group, Groups};
use super::launch::{Launch, Variables};
use super::session_dir::{SessionDir, path_in};
use super::streams::{Output, nothing};
use super::sys::ChildSetup;
use super::task::Failure;
use super::views::Views;
use crate::protocol::{Ending, Limits, Reason, Stream, User};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Maximum bytes of exported variables kept for a new shell.
const MAX_EXPORTS: usize = 1 << 20;

/// Shell function that reports the end of a script: a short name, because the shell reads
/// it after every script.
const REPORT: &str = "_a99";

/// Initial state of a new shell.
#[derive(Debug, Default)]
struct SavedState {
    cwd: Option<OsString>,
    /// Output of `export -p`.
    exports: Vec<u8>,
}

/// The session, with or without a running shell.
#[derive(Debug)]
pub(super) struct Session {
    dir: SessionDir,
    shell: Option<Shell>,
    saved: SavedState,
    /// Whether the shell ended since the last script's end.
    reset: bool,
}

/// Result of a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptEnd {
    /// Id of the script.
    pub id: u64,
    /// How the script ended.
    pub ending: Ending,
    /// See [`Exited::session_reset`](crate::protocol::Exited::session_reset).
    pub session_reset: bool,
    /// See [`Exited::out_of_memory`](crate::protocol::Exited::out_of_memory).
    pub out_of_memory: bool,
}

/// Exit codes from this on mean a signal.
const SIGNALLED: u8 = 128;

impl Session {
    /// Creates a session without a shell, in that directory or a new one.
    ///
    /// # Errors
    /// Those of making a directory.
    pub(super) fn new(dir: Option<OwnedFd>) -> io::Result<Self> {
        Ok(Self {
            dir: dir.map_or_else(SessionDir::temporary, |dir| Ok(SessionDir::at(dir)))?,
            shell: None,
            saved: SavedState::default(),
            reset: false,
        })
    }

    /// Starts the shell unless it runs.
    pub(super) fn start(
        &mut self,
        groups: Option<&mut Groups>,
        views: &Views,
        env: &Variables,
    ) -> io::Result<()> {
        if self.shell.is_none() {
            let mut group = groups.map(|g| g.make(&Limits::default())).transpose()?;
            if let Some(group) = &mut group {
                // The process that takes too much memory ends, not the shell with its
                // state.
                group.die_apart()?;
            }
            let shell = Shell::start(&mut self.dir, &self.saved, group, views, env)?;
            self.shell = Some(shell);
        }
        Ok(())
    }

    /// Applies variables and limits to a shell that is already running.
    pub(super) fn adopt(&mut self, env: &[(Vec<u8>, Vec<u8>)], limits: &Limits) {
        let Some(shell) = &mut self.shell else {
            return;
        };
        if let Some(group) = &shell.group
            && let Err(error) = group.limit(limits)
        {
            eprintln!("agent99-agent: limits of the session: {error}");
        }
        if !env.is_empty()
            && let Err(error) = shell.export(&mut self.dir, env)
        {
            eprintln!("agent99-agent: variables of the session: {error}");
        }
    }

    /// Limits a shell that is already running.
    pub(super) fn limit(&self, limits: &Limits) -> io::Result<()> {
        let group = self.shell.as_ref().and_then(|shell| shell.group.as_ref());
        group.map_or(Ok(()), |group| group.limit(limits))
    }

    /// Runs a script; returns its outputs.
    pub(super) fn run(&mut self, id: u64, script: &[u8]) -> Result<Vec<Output>, Failure> {
        let refused = |errno, text: &str| Failure(Reason::Other, errno, text.to_owned());
        let shell = self.shell.as_mut();
        let shell = shell.ok_or_else(|| refused(0, "there is no session shell"))?;
        if shell.script.is_some() {
            let errno = Errno::BUSY.raw_os_error() as u32;
            return Err(refused(errno, "the session shell runs another script"));
        }
        let outputs = shell.run(&mut self.dir, id, script);
        let outputs = outputs.map_err(|error| Failure::new("run the script", &error))?;
        Ok(outputs)
    }

    /// Pipe on which the shell reports the end of a script.
    pub(super) fn status(&self) -> Option<&OwnedFd> {
        self.shell.as_ref().map(|shell| &shell.status)
    }

    /// Whether the process is the shell.
    pub(super) fn is_shell(&self, pid: Pid) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.pid == pid)
    }

    /// Whether that script is running.
    pub(super) fn runs(&self, id: u64) -> bool {
        let script = self.shell.as_ref().and_then(|shell| shell.script.as_ref());
        script.is_some_and(|script| script.id == id)
    }

    /// Reads the shell's reports; returns the end of the script once it is complete.
    pub(super) fn poll_status(&mut self) -> Option<ScriptEnd> {
        let shell = self.shell.as_mut()?;
        shell.read_status();
        let mut end = None;
        while let Some(message) = shell.next_message() {
            match ShellMessage::of(message) {
                ShellMessage::Exports(text) => shell.exports = Some(text),
                ShellMessage::End(code) => {
                    self.saved.cwd = shell.cwd().or(self.saved.cwd.take());
                    self.saved.exports = shell.exports.take().unwrap_or_default();
                    let script = shell.script.take();
                    end = script.map(|script| ScriptEnd {
                        id: script.id,
                        ending: Ending::Code(code),
                        session_reset: std::mem::take(&mut self.reset),
                        out_of_memory: code >= SIGNALLED && shell.lost_to_memory(),
                    });
                }
                ShellMessage::Exit(cwd) => {
                    self.saved.cwd = Some(cwd);
                    self.saved.exports = shell.exports.take().unwrap_or_default();
                }
            }
        }
        end
    }

    /// Handles the shell's end; returns the end of a running script, and the group of
    /// leftover processes.
    pub(super) fn shell_ended(&mut self, ending: Ending) -> (Option<ScriptEnd>, Option<Group>) {
        let reported = self.poll_status();
        let Some(shell) = self.shell.take() else {
            return (reported, None);
        };
        shell.kill();
        let group = shell.group;
        let script = shell.script.map(|script| ScriptEnd {
            id: script.id,
            ending,
            session_reset: true,
            out_of_memory: group.as_ref().is_some_and(Group::ran_out_of_memory),
        });
        self.reset = script.is_none();
        (reported.or(script), group)
    }

    /// Ends the shell and its script without a report; returns the group of leftover
    /// processes.
    pub(super) fn abandon(&mut self) -> Option<Group> {
        // Its reported state is kept; the end of its script is discarded.
        self.poll_status();
        let shell = self.shell.take()?;
        shell.kill();
        self.reset = true;
        shell.group
    }

    /// Does the same for a shell that was never used, so that its replacement is not
    /// reported as a reset.
    pub(super) fn replace(&mut self) -> Option<Group> {
        let group = self.abandon();
        self.reset = false;
        group
    }

    /// Kills the shell and all processes it started.
    pub(super) fn kill(&self) {
        if let Some(shell) = &self.shell {
            shell.kill();
        }
    }

    /// Sends a signal to the processes that the shell runs, not to the shell.
    pub(super) fn signal(&self, number: u32) -> Result<(), Errno> {
        let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
        let signal = signal.ok_or(Errno::INVAL)?;
        let Some(shell) = &self.shell else {
            return Ok(());
        };
        match &shell.group {
            Some(group) => {
                let processes = group.processes().into_iter().filter_map(Pid::from_raw);
                for process in processes.filter(|process| *process != shell.pid) {
                    // The process may have just ended.
                    let _ = rustix::process::kill_process(process, signal);
                }
                Ok(())
            }
            None => rustix::process::kill_process_group(shell.pid, signal),
        }
    }
}

/// A message of the shell.
#[derive(Debug, PartialEq, Eq)]
enum ShellMessage {
    /// The exported variables; the event follows.
    Exports(Vec<u8>),
    /// A script ended with that status.
    End(u8),
    /// The shell ends, in that working directory.
    Exit(OsString),
}

impl ShellMessage {
    fn of(text: Vec<u8>) -> Self {
        let number = |text| str::from_utf8(text).ok()?.parse().ok();
        match text.split_first() {
            Some((b'S', status)) => number(status).map_or(Self::Exports(Vec::new()), Self::End),
            Some((b'X', cwd)) => Self::Exit(OsStr::from_bytes(cwd).to_owned()),
            _ => Self::Exports(text),
        }
    }
}

/// A running shell.
#[derive(Debug)]
struct Shell {
    pid: Pid,
    /// Process id in its namespace.
    inner: Pid,
    group: Option<Group>,
    /// Processes of its group killed for lack of memory, up to the last reported script.
    memory_kills: u64,
    /// Its standard input.
    lines: OwnedFd,
    /// Pipe of its reports.
    status: OwnedFd,
    /// The path of its directory.
    dir: String,
    /// Incomplete reports.
    status_buffer: Vec<u8>,
    /// Exported variables whose event has not arrived yet.
    exports: Option<Vec<u8>>,
    script: Option<RunningScript>,
}

/// Descriptors that stay open while a script runs.
#[derive(Debug)]
struct RunningScript {
    id: u64,
    _stdout: OwnedFd,
    _stderr: OwnedFd,
}

impl Shell {
    fn start(
        dir: &mut SessionDir,
        saved: &SavedState,
        group: Option<Group>,
        views: &Views,
        env: &Variables,
    ) -> io::Result<Self> {
        dir.clear();
        let (lines_name, lines) = dir.pipe("lines")?;
        let (status_name, status) = dir.pipe("status")?;
        let prelude = dir.text(&saved.exports)?;
        let argv = ["/bin/sh", "-s"].map(|text| text.as_bytes().to_vec());
        let cwd = saved
            .cwd
            .as_deref()
            .filter(|cwd| rustix::fs::access(*cwd, rustix::fs::Access::EXEC_OK).is_ok());
        let setup = ChildSetup {
            group: group.as_ref().map(Group::procs_fd).transpose()?,
            terminal: false,
            mortal: views.mortal,
            descriptors: views.descriptors,
            rights: views.rights(User::Ordinary),
            identity: views.identity.clone(),
        };
        let stdio = [dir.reader(&lines_name)?, nothing()?, nothing()?];
        let env = views.variables(User::Ordinary, false, env);
        let mut launch = Launch::new(&argv, &env, stdio, setup)?;
        launch.more = Some(dir.for_child()?);
        let cwd = cwd.map(OsStr::as_bytes);
        if let Some(cwd) = cwd.or(views.home(User::Ordinary)) {
            launch = launch.in_folder(cwd)?;
        }
        let started = launch.start();
        let started = started.map_err(|error| io::Error::from(error.errno()))?;
        let path = path_in(started.inner);
        let first = format!(
            "\\command . {path}/{prelude}\n\
             trap '{{ \\command export -p; \\command printf \"\\0X%s\\0\" \"$PWD\"; }} \
             >{path}/{status_name}' EXIT\n\
             {REPORT}() {{ _=$?; \\command [ /proc/self -ef /proc/$$ ] || \\exit \"$_\"; \
             {{ \\command export -p; \\command printf '\\0S%d\\0' \"$_\"; }} \
             >{path}/{status_name}; }}\n",
        );
        write_line(&lines, &first)?;
        Ok(Self {
            pid: started.process,
            inner: started.inner,
            group,
            memory_kills: 0,
            lines,
            status,
            dir: path,
            status_buffer: Vec::new(),
            exports: None,
            script: None,
        })
    }

    /// Exports variables before the next script.
    fn export(&mut self, dir: &mut SessionDir, env: &[(Vec<u8>, Vec<u8>)]) -> io::Result<()> {
        let text = dir.text(&export_text(env))?;
        let path = &self.dir;
        write_line(&self.lines, &format!("\\command . {path}/{text}\n"))
    }

    fn run(&mut self, dir: &mut SessionDir, id: u64, script: &[u8]) -> io::Result<Vec<Output>> {
        let text = dir.script(script)?;
        let [stdout, stderr] = dir.outputs()?;
        let path = &self.dir;
        // The shell's standard error is the empty stream. All is one line: a subshell that
        // continues after the script has read it, and needs no more.
        let line = format!(
            "\\command . {path}/{text} <&2 >{path}/{out} 2>{path}/{err};{REPORT}\n",
            out = stdout.name,
            err = stderr.name,
        );
        let outputs = vec![
            Output::nonblocking(stdout.read, Stream::Stdout),
            Output::nonblocking(stderr.read, Stream::Stderr),
        ];
        write_line(&self.lines, &line)?;
        self.script = Some(RunningScript {
            id,
            _stdout: stdout.write,
            _stderr: stderr.write,
        });
        Ok(outputs)
    }

    /// Whether a process of it was killed for lack of memory since the last call.
    fn lost_to_memory(&mut self) -> bool {
        let kills = self.group.as_ref().map_or(0, Group::memory_kills);
        std::mem::replace(&mut self.memory_kills, kills) < kills
    }

    fn read_status(&mut self) {
        let mut buffer = [0; 1024];
        loop {
            match rustix::io::read(&self.status, &mut buffer) {
                Ok(count @ 1..) => {
                    self.status_buffer.extend(&buffer[..count]);
                    // No shell reports that many bytes: a script that writes here loses its
                    // variables instead of exhausting the agent's memory.
                    if self.status_buffer.len() > 2 * MAX_EXPORTS {
                        self.status_buffer.clear();
                    }
                    if count < buffer.len() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Takes the next complete message, which never exceeds the kept size.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let end = self.status_buffer.iter().position(|byte| *byte == 0)?;
        let mut message: Vec<u8> = self.status_buffer.drain(..=end).collect();
        message.pop();
        if message.len() > MAX_EXPORTS {
            message.clear();
        }
        Some(message)
    }

    fn cwd(&self) -> Option<OsString> {
        let link = format!("/proc/{}/cwd", self.inner.as_raw_nonzero());
        let path = rustix::fs::readlink(link, Vec::new()).ok()?;
        Some(OsStr::from_bytes(path.to_bytes()).to_owned())
    }

    fn kill(&self) {
        let killed = self
            .group
            .as_ref()
            .is_some_and(|group| group.kill().is_ok());
        if !killed {
            // The process may have just ended.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// Shell commands that export variables; names that are invalid in a shell are skipped, as
/// a shell does.
fn export_text(env: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in env {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if !name.iter().all(is_name) || name.first().is_none_or(u8::is_ascii_digit) {
            continue;
        }
        text.extend(b"\\export ");
        text.extend(name);
        text.extend(b"='");
        for byte in value {
            match byte {
                b'\'' => text.extend(br"'\''"),
                _ => text.push(*byte),
            }
        }
        text.extend(b"'\n");
    }
    text
}

/// Writes a line, shorter than a pipe's capacity, to a shell that has read all earlier
/// ones.
fn write_line(fd: &OwnedFd, line: &str) -> io::Result<()> {
    rustix::io::write(fd, line.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_its_first_letter_and_all_the_rest_say() {
        let of = |text: &str| ShellMessage::of(text.into());
        assert_eq!(of("S0"), ShellMessage::End(0));
        assert_eq!(of("S255"), ShellMessage::End(255));
        assert_eq!(of("X/a b\n"), ShellMessage::Exit("/a b\n".into()));
        assert_eq!(of("X"), ShellMessage::Exit("".into()));
        let text = "export A='1'\n";
        assert_eq!(of(text), ShellMessage::Exports(text.into()));
        for nothing in ["", "S", "S256", "S-1", "Stopped\nexport A='1'\n"] {
            assert_eq!(of(nothing), ShellMessage::Exports(Vec::new()), "{nothing}");
        }
    }

    #[test]
    fn variables_are_quoted_and_only_names_of_shells_are_exported() {
        let variable = |name: &str, value: &str| (name.as_bytes().to_vec(), value.into());
        let env = [
            variable("A", "it's $B\n"),
            variable("1x", ""),
            variable("a;b", "x"),
            variable("", "x"),
            variable("_b2", ""),
        ];
        let text = String::from_utf8(export_text(&env)).unwrap();
        assert_eq!(text, "\\export A='it'\\''s $B\n'\n\\export _b2=''\n");
    }
}
