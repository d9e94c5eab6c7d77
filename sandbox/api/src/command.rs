//! Command builder: a program to run in a fresh process, and its options.

use super::cancel::Cancel;
use super::checks::check_memory;
use super::collect::collect;
use super::process::Process;
use super::sandbox::Settings;
use a99_sandbox_protocol::{Exec, PtySize, Request, User};
use a99_sandbox_runner::{GuestHandle, Output, SpawnOptions, VmError};
use std::sync::Arc;
use std::time::Duration;

/// A program to run as a fresh process, beside other commands.
///
/// [`Sandbox::command`](super::Sandbox::command) creates it; it starts with
/// [`Command::output`] or [`Command::spawn`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `output` or `spawn`"]
pub struct Command {
    guest: Arc<GuestHandle>,
    exec: Exec,
    stdin: Option<Vec<u8>>,
    spawn_options: SpawnOptions,
    /// Maximum bytes of collected output.
    gathered: u64,
    /// Memory of the guest in bytes.
    ram: u64,
    cancel: Option<Cancel>,
}

impl Command {
    pub(super) fn new(guest: &Arc<GuestHandle>, argv: Vec<Vec<u8>>, settings: &Settings) -> Self {
        Self {
            guest: Arc::clone(guest),
            exec: Exec {
                argv,
                ..Exec::default()
            },
            stdin: None,
            spawn_options: SpawnOptions::default(),
            gathered: settings.output_limit,
            ram: settings.ram,
            cancel: None,
        }
    }

    /// Appends an argument.
    pub fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.exec.argv.push(argument.as_ref().to_vec());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        let variable = (name.as_ref().to_vec(), value.as_ref().to_vec());
        self.exec.env.push(variable);
        self
    }

    /// Starts from an empty environment instead of the sandbox's.
    pub fn clear_env(mut self) -> Self {
        self.exec.clear_env = true;
        self
    }

    /// Runs the command as the guest's administrator, who may change files of other users
    /// and install programs.
    ///
    /// It has the same limits as other commands, and can neither leave them nor reach into
    /// other commands.
    pub fn root(mut self) -> Self {
        self.exec.user = User::Root;
        self
    }

    /// Runs the command as the user that copies files for the host.
    pub(super) fn for_copies(mut self) -> Self {
        self.exec.user = User::Files;
        self
    }

    /// Sets the working directory; defaults to the home of its user, `/home/agent` or
    /// `/root`.
    pub fn cwd(mut self, folder: impl AsRef<[u8]>) -> Self {
        self.exec.cwd = Some(folder.as_ref().to_vec());
        self
    }

    /// Sets standard input for [`Command::output`]; empty by default.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.exec.stdin = true;
        self.stdin = Some(bytes.into());
        self
    }

    /// Connects standard input to [`Process::write`].
    pub fn piped(mut self) -> Self {
        self.exec.stdin = true;
        self
    }

    /// Limits the running time; on expiry the command is killed, with
    /// [`VmCode::TimedOut`](crate::vm::VmCode::TimedOut).
    pub fn timeout(mut self, time: Duration) -> Self {
        self.spawn_options.timeout = Some(time);
        self
    }

    /// Limits the output in bytes, both streams together; at the limit the command is
    /// killed, with [`VmCode::OutputLimit`](crate::vm::VmCode::OutputLimit).
    ///
    /// The sandbox's default limit applies only to [`Command::output`]; this limit applies
    /// to [`Command::spawn`] too.
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.spawn_options.output_limit = Some(bytes);
        self
    }

    /// Limits the memory in bytes.
    ///
    /// A command that needs more ends by signal 9, with [`Output::out_of_memory`]. A limit
    /// above the memory that all commands of the guest share is refused.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.exec.limits.memory = Some(bytes);
        self
    }

    /// Limits the processes and threads at a time.
    pub fn process_limit(mut self, count: u32) -> Self {
        self.exec.limits.pids = Some(count);
        self
    }

    /// Leaves the command's child processes running when it ends.
    pub fn detach(mut self) -> Self {
        self.exec.detach = true;
        self
    }

    /// Runs the command on a terminal of that size.
    ///
    /// All output is then one stream, and [`Process::write`] types into the terminal.
    pub fn terminal(mut self, rows: u16, columns: u16) -> Self {
        self.exec.pty = Some(PtySize {
            rows,
            cols: columns,
        });
        self
    }

    /// Ends the command when `cancel` is used.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Runs the command to its end; dropping the future kills it.
    ///
    /// # Errors
    /// Why the command did not start or did not end by itself, with its output so far.
    pub async fn output(self) -> Result<Output, VmError> {
        let stdin = self.stdin.or(self.exec.stdin.then(Vec::new));
        let request = Request::Exec(self.exec);
        let cancel = self.cancel.as_ref();
        let spawn_options = SpawnOptions {
            output_limit: self.spawn_options.output_limit.or(Some(self.gathered)),
            ..self.spawn_options
        };
        collect(&self.guest, request, stdin, spawn_options, cancel).await
    }

    /// Starts the command and returns a handle to its streams.
    ///
    /// The process reports a failed start. The sandbox's output limit does not apply:
    /// unread output blocks the command.
    ///
    /// # Errors
    /// Why the guest no longer runs; [`VmCode::BadOption`](crate::vm::VmCode::BadOption)
    /// for a memory limit out of range.
    pub fn spawn(self) -> Result<Process, VmError> {
        check_memory(self.exec.limits.memory, self.ram)?;
        Process::start(
            &self.guest,
            self.exec,
            self.spawn_options,
            self.cancel.as_ref(),
        )
    }
}

/// Options of a script; see [`Sandbox::exec_with`](super::Sandbox::exec_with).
#[derive(Clone, Debug, Default)]
pub struct ExecOptions {
    /// Run as the guest's administrator; see [`Command::root`].
    pub root: bool,
    /// Working directory.
    pub cwd: Option<String>,
    /// Variables added to those of the sandbox.
    pub env: Vec<(String, String)>,
    /// Standard input.
    pub stdin: Option<Vec<u8>>,
    /// Time limit, queueing included.
    pub timeout: Option<Duration>,
    /// Maximum bytes of output, both streams together.
    pub output_limit: Option<u64>,
    /// Switch that ends the script.
    pub cancel: Option<Cancel>,
}

impl ExecOptions {
    /// Whether the script needs a fresh process.
    pub(super) fn is_own_process(&self) -> bool {
        self.root || self.cwd.is_some() || !self.env.is_empty() || self.stdin.is_some()
    }
}
