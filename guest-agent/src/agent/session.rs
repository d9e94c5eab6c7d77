//! The session shell: one `sh` that keeps its state from script to script.
//!
//! The shell reads what it is to do from a pipe of its own, not from standard
//! input: one line for each script, which reads the script from a file in
//! memory by `command .`, so that an open quote, a `return` or an error is the
//! script's own end and no more. Standard input of a script is empty; its
//! outputs are pipes of its own, opened by the shell through the agent's
//! `/proc/PID/fd`. Nothing is printed into the outputs to mark the end: the
//! shell tells status and exported variables on another pipe.
//!
//! When the shell ends, by `exit`, by `set -e` or by a signal, the next script
//! gets a new one in the last working directory with the last exported
//! variables. What the old one left running is killed.

use super::group::{Group, Groups};
use super::launch::{Launch, Variables, variables};
use super::port::set_nonblocking;
use super::streams::{Output, nothing, pipe};
use super::sys::ChildSetup;
use super::task::Failure;
use crate::protocol::{Ending, Limits, Stream};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Most bytes of exported variables that are kept for a new shell.
const MAX_EXPORTS: usize = 1 << 20;

/// What a new shell starts with.
#[derive(Debug, Default)]
struct Kept {
    cwd: Option<OsString>,
    /// As `export -p` prints them.
    exports: Vec<u8>,
}

/// The session, with or without a living shell.
#[derive(Debug, Default)]
pub(super) struct Session {
    shell: Option<Shell>,
    kept: Kept,
    /// The shell ended since the last script's end.
    reset: bool,
}

/// How a script ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptEnd {
    /// Its id.
    pub id: u32,
    /// How.
    pub ending: Ending,
    /// See [`Exited::session_reset`](crate::protocol::Exited::session_reset).
    pub session_reset: bool,
    /// See [`Exited::out_of_memory`](crate::protocol::Exited::out_of_memory).
    pub out_of_memory: bool,
}

impl Session {
    /// Starts the shell unless it runs.
    pub fn start(
        &mut self,
        groups: Option<&mut Groups>,
        mortal: bool,
        env: &Variables,
    ) -> io::Result<()> {
        if self.shell.is_none() {
            let mut group = groups.map(|g| g.make(&Limits::default())).transpose()?;
            if let Some(group) = &mut group {
                // What takes too much ends, not the shell with its state.
                group.die_apart()?;
            }
            self.shell = Some(Shell::start(&self.kept, group, mortal, env)?);
        }
        Ok(())
    }

    /// Gives the shell that runs already variables and limits.
    pub fn adopt(&mut self, env: &[(Vec<u8>, Vec<u8>)], limits: &Limits) {
        let Some(shell) = &mut self.shell else {
            return;
        };
        if let Some(group) = &shell.group
            && let Err(error) = group.limit(limits)
        {
            eprintln!("agent99-agent: limits of the session: {error}");
        }
        if !env.is_empty()
            && let Err(error) = shell.export(env)
        {
            eprintln!("agent99-agent: variables of the session: {error}");
        }
    }

    /// Runs a script; its outputs.
    pub fn run(&mut self, id: u32, script: &[u8]) -> Result<Vec<Output>, Failure> {
        let shell = self.shell.as_mut();
        let shell = shell.ok_or_else(|| Failure(0, "there is no session shell".to_owned()))?;
        if shell.script.is_some() {
            let text = "the session shell runs another script".to_owned();
            return Err(Failure(Errno::BUSY.raw_os_error() as u32, text));
        }
        let outputs = shell.run(id, script);
        let outputs = outputs.map_err(|error| Failure::new("run the script", &error))?;
        Ok(outputs)
    }

    /// The pipe on which the shell tells the end of a script.
    pub fn status(&self) -> Option<&OwnedFd> {
        self.shell.as_ref().map(|shell| &shell.status.0)
    }

    /// Whether the process is the shell.
    pub fn is_shell(&self, pid: Pid) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.pid == pid)
    }

    /// Whether that script runs now.
    pub fn runs(&self, id: u32) -> bool {
        let script = self.shell.as_ref().and_then(|shell| shell.script.as_ref());
        script.is_some_and(|script| script.id == id)
    }

    /// Reads what the shell told; the end of the script if that was it.
    pub fn listen(&mut self) -> Option<ScriptEnd> {
        let shell = self.shell.as_mut()?;
        shell.read_status();
        let mut end = None;
        while let Some(message) = shell.next_message() {
            match (shell.exports_follow, message.split_first()) {
                (true, _) => {
                    shell.exports_follow = false;
                    self.kept.cwd = shell.cwd().or(self.kept.cwd.take());
                    self.kept.exports = message;
                }
                (false, Some((b'S', number))) => {
                    let code = str::from_utf8(number).ok().and_then(|n| n.parse().ok());
                    let script = shell.script.take();
                    end = script.map(|script| ScriptEnd {
                        id: script.id,
                        ending: Ending::Code(code.unwrap_or(0)),
                        session_reset: std::mem::take(&mut self.reset),
                        out_of_memory: false,
                    });
                    shell.exports_follow = true;
                }
                (false, Some((b'X', cwd))) => {
                    self.kept.cwd = Some(OsString::from_vec(cwd.to_vec()));
                    shell.exports_follow = true;
                }
                // A script wrote here what it should not.
                (false, _) => {}
            }
        }
        end
    }

    /// The shell ended. The script's end, if one ran, and the group of what is
    /// left.
    pub fn shell_ended(&mut self, ending: Ending) -> (Option<ScriptEnd>, Option<Group>) {
        let told = self.listen();
        let Some(shell) = self.shell.take() else {
            return (told, None);
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
        (told.or(script), group)
    }

    /// Ends the shell with its script, about which nobody wants to hear. The
    /// group of what is left.
    pub fn abandon(&mut self) -> Option<Group> {
        // What it told of itself is kept; its script's end is not wanted.
        self.listen();
        let shell = self.shell.take()?;
        shell.kill();
        self.reset = true;
        shell.group
    }

    /// Ends the shell and all that it started.
    pub fn kill(&self) {
        if let Some(shell) = &self.shell {
            shell.kill();
        }
    }

    /// Sends a signal to what the shell runs, not to the shell.
    pub fn signal(&self, number: u32) -> Result<(), Errno> {
        let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
        let signal = signal.ok_or(Errno::INVAL)?;
        let Some(shell) = &self.shell else {
            return Ok(());
        };
        match &shell.group {
            Some(group) => {
                let processes = group.processes().into_iter().filter_map(Pid::from_raw);
                for process in processes.filter(|process| *process != shell.pid) {
                    // It may have ended at this moment.
                    let _ = rustix::process::kill_process(process, signal);
                }
                Ok(())
            }
            None => rustix::process::kill_process_group(shell.pid, signal),
        }
    }
}

/// A living shell.
#[derive(Debug)]
struct Shell {
    pid: Pid,
    group: Option<Group>,
    /// Its lines: end to read, which it opens by its path, and end to write.
    lines: (OwnedFd, OwnedFd),
    /// What it tells: likewise.
    status: (OwnedFd, OwnedFd),
    told: Vec<u8>,
    /// The head of a message came; the exported variables are still to come,
    /// while the script's end is already known.
    exports_follow: bool,
    script: Option<RunningScript>,
    /// What it reads before the first script: the kept variables, and those
    /// that it adopts.
    preludes: Vec<OwnedFd>,
}

/// What must stay open while a script runs.
#[derive(Debug)]
struct RunningScript {
    id: u32,
    _text: OwnedFd,
    _stdout: OwnedFd,
    _stderr: OwnedFd,
}

impl Shell {
    fn start(kept: &Kept, group: Option<Group>, mortal: bool, env: &Variables) -> io::Result<Self> {
        let lines = pipe()?;
        let status = pipe()?;
        set_nonblocking(&status.0)?;
        let prelude = text_file(&kept.exports)?;
        let read_lines = format!("\\command . {}", path_of(&lines.0));
        let argv = ["/bin/sh", "-c", &read_lines, "sh"].map(|text| text.as_bytes().to_vec());
        let cwd = kept
            .cwd
            .as_deref()
            .filter(|cwd| rustix::fs::access(*cwd, rustix::fs::Access::EXEC_OK).is_ok());
        let setup = ChildSetup {
            group: group.as_ref().map(Group::door).transpose()?,
            terminal: false,
            mortal,
        };
        let stdio = [nothing()?, nothing()?, nothing()?];
        let mut launch = Launch::new(&argv, &variables(false, env), stdio, setup)?;
        if let Some(cwd) = cwd {
            launch = launch.in_folder(cwd.as_bytes())?;
        }
        let pid = launch.start()?;
        let first = format!(
            "\\command . {prelude}\n\
             trap '{{ \\command printf \"X%s\\0\" \"$PWD\"; \\command export -p; \
             \\command printf \"\\0\"; }} >{status}' EXIT\n",
            prelude = path_of(&prelude),
            status = path_of(&status.1),
        );
        write_line(&lines.1, &first)?;
        Ok(Self {
            pid,
            group,
            lines,
            status,
            told: Vec::new(),
            exports_follow: false,
            script: None,
            preludes: vec![prelude],
        })
    }

    /// Exports variables before the next script.
    fn export(&mut self, env: &[(Vec<u8>, Vec<u8>)]) -> io::Result<()> {
        let text = text_file(&export_text(env))?;
        write_line(&self.lines.1, &format!("\\command . {}\n", path_of(&text)))?;
        self.preludes.push(text);
        Ok(())
    }

    fn run(&mut self, id: u32, script: &[u8]) -> io::Result<Vec<Output>> {
        let text = text_file(script)?;
        let stdout = pipe()?;
        let stderr = pipe()?;
        let line = format!(
            "\\command . {text} </dev/null >{stdout} 2>{stderr}\n\
             {{ \\command printf 'S%d\\0' \"$?\"; \\command export -p; \
             \\command printf '\\0'; }} >{status}\n",
            text = path_of(&text),
            stdout = path_of(&stdout.1),
            stderr = path_of(&stderr.1),
            status = path_of(&self.status.1),
        );
        let outputs = vec![
            Output::new(stdout.0, Stream::Stdout)?,
            Output::new(stderr.0, Stream::Stderr)?,
        ];
        write_line(&self.lines.1, &line)?;
        self.script = Some(RunningScript {
            id,
            _text: text,
            _stdout: stdout.1,
            _stderr: stderr.1,
        });
        Ok(outputs)
    }

    fn read_status(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            match rustix::io::read(&self.status.0, &mut buffer) {
                Ok(count @ 1..) => {
                    self.told.extend(&buffer[..count]);
                    // No shell tells so much: a script that writes here loses
                    // its variables, not our memory.
                    if self.told.len() > 2 * MAX_EXPORTS {
                        self.told.clear();
                    }
                }
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// The next whole message, which is never longer than what is kept.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let end = self.told.iter().position(|byte| *byte == 0)?;
        let mut message: Vec<u8> = self.told.drain(..=end).collect();
        message.pop();
        if message.len() > MAX_EXPORTS {
            message.clear();
        }
        Some(message)
    }

    fn cwd(&self) -> Option<OsString> {
        let link = format!("/proc/{}/cwd", self.pid.as_raw_nonzero());
        let path = rustix::fs::readlink(link, Vec::new()).ok()?;
        Some(OsStr::from_bytes(path.to_bytes()).to_owned())
    }

    fn kill(&self) {
        let killed = self
            .group
            .as_ref()
            .is_some_and(|group| group.kill().is_ok());
        if !killed {
            // It may have ended at this moment.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// The shell's text that exports variables; those whose name is no shell name
/// are left out, as a shell leaves them out.
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

/// A file in memory with that text, to be read from its start by its path.
fn text_file(text: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("script", MemfdFlags::CLOEXEC)?;
    let mut rest = text;
    while !rest.is_empty() {
        let count = rustix::io::write(&fd, rest)?;
        rest = &rest[count..];
    }
    Ok(fd)
}

/// Writes a line, which is shorter than what a pipe takes at once, to a shell
/// that has read all earlier ones.
fn write_line(fd: &OwnedFd, line: &str) -> io::Result<()> {
    rustix::io::write(fd, line.as_bytes())?;
    Ok(())
}

/// A path by which another process of the same user opens a descriptor of this
/// one.
fn path_of(fd: impl AsFd) -> String {
    let fd: BorrowedFd<'_> = fd.as_fd();
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

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
