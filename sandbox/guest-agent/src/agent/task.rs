//! Task: a command or script with its host-side id.

use super::group::{Group, Groups};
use super::launch::Launch;
use super::port::{Port, set_nonblocking};
use super::streams::{Flow, Input, Output, TERMINAL_EOF, nothing, pipe};
use super::sys::{ChildSetup, NotStarted};
use super::views::Views;
use crate::protocol::{Ending, Exec, Exited, PtySize, Reason, Report, Stream};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Why a request failed: reason, errno (0 if unknown) and text.
#[derive(Debug)]
pub(super) struct Failure(pub Reason, pub u32, pub String);

impl Failure {
    /// Wraps a failure of the system while doing `what`.
    pub(super) fn new(what: &str, error: &io::Error) -> Self {
        let number = error.raw_os_error().unwrap_or(0);
        let text = format!("cannot {what}: {error}");
        Self(Reason::Other, number as u32, text)
    }

    /// Describes a program that did not start, or a bad working directory.
    fn of_start(error: NotStarted, program: &[u8], cwd: &[u8]) -> Self {
        let shown = |bytes: &[u8]| OsStr::from_bytes(bytes).display().to_string();
        let (reason, what) = match error {
            NotStarted::Setup(_) => (Reason::Other, format!("prepare {}", shown(program))),
            NotStarted::Folder(_) => {
                let text = format!("enter the working directory {}", shown(cwd));
                (Reason::Folder, text)
            }
            NotStarted::Program(Errno::NOENT | Errno::NOTDIR) => {
                (Reason::NotFound, format!("run {}", shown(program)))
            }
            NotStarted::Program(_) => (Reason::NotExecutable, format!("run {}", shown(program))),
        };
        let Failure(_, number, text) = Self::new(&what, &error.errno().into());
        Self(reason, number, text)
    }
}

/// A command or script that runs under an id.
#[derive(Debug)]
pub(super) struct Task {
    pub id: u64,
    /// Process of a command; a script runs in the session's shell.
    pub process: Option<Pid>,
    /// Process id in the namespace of commands.
    pub inner: Option<Pid>,
    group: Option<Group>,
    outputs: Vec<Output>,
    input: Option<Input>,
    /// The agent's side of the terminal, to change its size.
    terminal: Option<OwnedFd>,
    detach: bool,
    end: Option<Exited>,
}

impl Task {
    /// Creates the task of a script with these outputs.
    pub(super) fn script(id: u64, outputs: Vec<Output>) -> Self {
        Self {
            id,
            process: None,
            inner: None,
            group: None,
            outputs,
            input: None,
            terminal: None,
            detach: false,
            end: None,
        }
    }

    /// Starts a command.
    pub(super) fn start(
        id: u64,
        exec: &Exec,
        groups: Option<&mut Groups>,
        views: &Views,
    ) -> Result<Self, Failure> {
        let none = || {
            let text = "the command has no program".to_owned();
            Failure(Reason::Other, 0, text)
        };
        let program = exec.argv.first().ok_or_else(none)?;
        let mut task = Self::script(id, Vec::new());
        task.detach = exec.detach;
        let stdio = match exec.pty {
            Some(size) => task.connect_terminal(size, views),
            None => task.connect_pipes(exec.stdin),
        };
        let stdio = stdio.map_err(|error| Failure::new("connect the command", &error))?;
        let limited = |error| Failure::new("make a control group", &error);
        task.group = groups
            .map(|g| g.make(&exec.limits))
            .transpose()
            .map_err(limited)?;
        let setup = ChildSetup {
            group: task
                .group
                .as_ref()
                .map(Group::procs_fd)
                .transpose()
                .map_err(limited)?,
            terminal: exec.pty.is_some(),
            mortal: views.mortal,
            descriptors: views.descriptors,
            rights: views.rights(exec.user),
            identity: views.identity.clone(),
        };
        let env = views.variables(exec.user, exec.clear_env, &exec.env);
        let cwd = exec.cwd.as_deref().or(views.home(exec.user));
        let launch = Launch::new(&exec.argv, &env, stdio, setup);
        let launch = launch.and_then(|launch| match cwd {
            Some(cwd) => launch.in_folder(cwd),
            None => Ok(launch),
        });
        let launch = launch.map_err(|error| {
            let what = format!("run {}", OsStr::from_bytes(program).display());
            Failure::new(&what, &error)
        })?;
        let started = launch.start();
        let started =
            started.map_err(|error| Failure::of_start(error, program, cwd.unwrap_or_default()))?;
        task.process = Some(started.process);
        task.inner = Some(started.inner);
        Ok(task)
    }

    /// Makes the pipes of its streams; returns the command's ends.
    fn connect_pipes(&mut self, stdin: bool) -> io::Result<[OwnedFd; 3]> {
        let input = if stdin {
            let (read, write) = pipe()?;
            self.input = Some(Input::new(write)?);
            read
        } else {
            nothing()?
        };
        let (read, output) = pipe()?;
        self.outputs.push(Output::new(read, Stream::Stdout)?);
        let (read, errors) = pipe()?;
        self.outputs.push(Output::new(read, Stream::Stderr)?);
        Ok([input, output, errors])
    }

    /// Makes its terminal; returns the command's side.
    fn connect_terminal(&mut self, size: PtySize, views: &Views) -> io::Result<[OwnedFd; 3]> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = views.new_terminal()?;
        rustix::pty::unlockpt(&master)?;
        resize(&master, size)?;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
        set_nonblocking(&master)?;
        self.outputs
            .push(Output::new(master.try_clone()?, Stream::Stdout)?);
        self.input = Some(Input::new(master.try_clone()?)?);
        self.terminal = Some(master);
        Ok([slave.try_clone()?, slave.try_clone()?, slave])
    }

    /// Outputs that the host's credit allows to read.
    pub(super) fn readable(&self) -> impl Iterator<Item = &Output> {
        self.outputs.iter().filter(|output| output.wants_data())
    }

    /// Standard input, if bytes wait for it.
    pub(super) fn writable(&self) -> Option<&Input> {
        self.input.as_ref().filter(|input| input.is_waiting())
    }

    /// Queues standard input. If the command has closed it, the bytes count as taken.
    pub(super) fn feed(&mut self, port: &mut Port, bytes: &[u8]) {
        match &mut self.input {
            Some(input) => {
                input.push(bytes);
                self.pump_input(port);
            }
            None => port.send(self.id, &Report::Credit(bytes.len() as u32)),
        }
    }

    /// Ends standard input.
    pub(super) fn feed_end(&mut self, port: &mut Port) {
        if let Some(input) = &mut self.input {
            if self.terminal.is_some() {
                input.push(&[TERMINAL_EOF]);
            } else {
                input.finish();
            }
            self.pump_input(port);
        }
    }

    /// Moves standard input on.
    pub(super) fn pump_input(&mut self, port: &mut Port) {
        if let Some(input) = &mut self.input {
            let useful = input.pump();
            if let Some(bytes) = input.take_credit() {
                port.send(self.id, &Report::Credit(bytes));
            }
            if !useful {
                self.input = None;
            }
        }
    }

    /// Adds credit for an output.
    pub(super) fn grant(&mut self, stream: Stream, bytes: u32) {
        let output = self.outputs.iter_mut().find(|o| o.stream() == stream);
        if let Some(output) = output {
            output.grant(bytes);
        }
    }

    /// Resizes the terminal.
    pub(super) fn resize(&self, size: PtySize) {
        if let Some(terminal) = &self.terminal {
            // Fails only for a closed terminal.
            let _ = resize(terminal, size);
        }
    }

    /// Whether its processes outlive the command that started them.
    pub(super) fn is_detached(&self) -> bool {
        self.detach
    }

    /// Sends a signal to its process group.
    pub(super) fn signal(&self, number: u32) -> Result<(), Errno> {
        let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
        match (self.process, self.end) {
            (Some(process), None) => {
                rustix::process::kill_process_group(process, signal.ok_or(Errno::INVAL)?)
            }
            _ => Ok(()),
        }
    }

    /// Kills its process and all processes it started.
    pub(super) fn kill(&self) {
        let killed = self
            .group
            .as_ref()
            .is_some_and(|group| group.kill().is_ok());
        if let (false, Some(process), None) = (killed, self.process, self.end) {
            // The process may have just ended.
            let _ = rustix::process::kill_process_group(process, Signal::KILL);
        }
    }

    /// Handles the end of its process.
    pub(super) fn process_ended(&mut self, ending: Ending) {
        let group = self.group.as_ref();
        let exited = Exited {
            ending,
            out_of_memory: group.is_some_and(Group::ran_out_of_memory),
            session_reset: false,
        };
        if !self.detach {
            match (group, self.process) {
                (Some(group), _) => {
                    let _ = group.kill();
                }
                // Without a control group: kills the children that stayed in its process
                // group.
                (None, Some(process)) => {
                    let _ = rustix::process::kill_process_group(process, Signal::KILL);
                }
                (None, None) => {}
            }
        }
        self.finish(exited);
    }

    /// Records the end.
    pub(super) fn finish(&mut self, exited: Exited) {
        self.end = Some(exited);
    }

    /// Moves output on. Once the end is known and all output is sent, reports the end and
    /// returns `true`.
    pub(super) fn pump(&mut self, port: &mut Port) -> bool {
        let ended = self.end.is_some();
        let wait_for_end = self.group.is_some() && !self.detach;
        let mut held = false;
        let id = self.id;
        self.outputs.retain_mut(|output| {
            let mut flow = output.pump(port, id);
            // The last chunk may not be recognisable as the last.
            while ended && flow == Flow::Moved {
                flow = output.pump(port, id);
            }
            held |= match flow {
                Flow::Moved | Flow::Held => true,
                // Its holders are being killed, so its end will come.
                Flow::Dry => wait_for_end,
                Flow::Ended => false,
            };
            flow != Flow::Ended
        });
        match self.end {
            Some(exited) if !held => {
                port.send(id, &Report::Exited(exited));
                true
            }
            _ => false,
        }
    }

    /// Takes it apart: outputs that other processes may still write to, and its group.
    pub(super) fn dissolve(self) -> (impl Iterator<Item = OwnedFd>, Option<Group>) {
        let group = self.group.filter(|_| !self.detach);
        (self.outputs.into_iter().map(Output::into_fd), group)
    }
}

fn resize(terminal: &OwnedFd, size: PtySize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}
