//! Command builder: a program of its own, what to run and how.

use super::builder::check_memory;
use super::cancel::Cancel;
use super::collect::collect;
use super::process::Process;
use a99_sandbox_protocol::{Exec, PtySize, Request, User};
use a99_sandbox_runner::{GuestHandle, Output, SpawnOptions, VmError};
use std::sync::Arc;
use std::time::Duration;

/// A program to run as a fresh process, beside whatever else runs. Made by
/// [`Sandbox::command`](super::Sandbox::command); nothing happens before
/// [`Command::output`] or [`Command::spawn`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `output` or `spawn`"]
pub struct Command {
    guest: Arc<GuestHandle>,
    exec: Exec,
    stdin: Option<Vec<u8>>,
    spawn_options: SpawnOptions,
    /// Most bytes that are gathered.
    gathered: u64,
    cancel: Option<Cancel>,
}

impl Command {
    pub(super) fn new(guest: &Arc<GuestHandle>, argv: Vec<Vec<u8>>, gathered: u64) -> Self {
        Self {
            guest: Arc::clone(guest),
            exec: Exec {
                argv,
                ..Exec::default()
            },
            stdin: None,
            spawn_options: SpawnOptions::default(),
            gathered,
            cancel: None,
        }
    }

    /// One more argument.
    pub fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.exec.argv.push(argument.as_ref().to_vec());
        self
    }

    /// A variable of its environment.
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

    /// Runs it as the guest's administrator: it may change what belongs to others
    /// and install programs. It has the same limits as other commands, and can
    /// neither leave them nor reach into other commands.
    pub fn root(mut self) -> Self {
        self.exec.user = User::Root;
        self
    }

    /// Runs it as who copies files for the host.
    pub(super) fn for_copies(mut self) -> Self {
        self.exec.user = User::Files;
        self
    }

    /// Its working directory; else the home of its user, `/home/agent` or
    /// `/root`.
    pub fn cwd(mut self, folder: impl AsRef<[u8]>) -> Self {
        self.exec.cwd = Some(folder.as_ref().to_vec());
        self
    }

    /// Its standard input, for [`Command::output`]; else it is empty.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.exec.stdin = true;
        self.stdin = Some(bytes.into());
        self
    }

    /// Its standard input comes from [`Process::write`].
    pub fn piped(mut self) -> Self {
        self.exec.stdin = true;
        self
    }

    /// Longest time; then it is killed, with
    /// [`VmCode::TimedOut`](crate::vm::VmCode::TimedOut).
    pub fn timeout(mut self, time: Duration) -> Self {
        self.spawn_options.timeout = Some(time);
        self
    }

    /// Most bytes of output, both streams together; then it is killed, with
    /// [`VmCode::OutputLimit`](crate::vm::VmCode::OutputLimit). The sandbox's
    /// own limit is for [`Command::output`]; this one is for
    /// [`Command::spawn`] too.
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.spawn_options.output_limit = Some(bytes);
        self
    }

    /// Most bytes of memory. A command that needs more ends by signal 9, with
    /// [`Output::out_of_memory`]. A limit above what the guest's commands have together is
    /// refused.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.exec.limits.memory = Some(bytes);
        self
    }

    /// Most processes and threads at a time.
    pub fn process_limit(mut self, count: u32) -> Self {
        self.exec.limits.pids = Some(count);
        self
    }

    /// Leaves the processes that it started behind when it ends.
    pub fn detach(mut self) -> Self {
        self.exec.detach = true;
        self
    }

    /// Runs on a terminal of that size. Then all output is one stream, and
    /// [`Process::write`] is what is typed.
    pub fn terminal(mut self, rows: u16, columns: u16) -> Self {
        self.exec.pty = Some(PtySize {
            rows,
            cols: columns,
        });
        self
    }

    /// Ends with this switch too.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Runs it to its end. Dropping the future kills it.
    ///
    /// # Errors
    /// Why it did not start, or ended other than by itself; then with what it
    /// had written.
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

    /// Starts it, to follow its streams. That it cannot be started is reported by
    /// the process. The sandbox's limit of output does not count here: what is
    /// not read holds the command back.
    ///
    /// # Errors
    /// Why the guest runs no more; [`VmCode::BadOption`](crate::vm::VmCode::BadOption) for a
    /// limit of memory out of range.
    pub fn spawn(self) -> Result<Process, VmError> {
        check_memory(self.exec.limits.memory)?;
        Process::start(
            &self.guest,
            self.exec,
            self.spawn_options,
            self.cancel.as_ref(),
        )
    }
}

/// How a script runs; see [`Sandbox::exec_with`](super::Sandbox::exec_with).
#[derive(Clone, Debug, Default)]
pub struct ExecOptions {
    /// Run as the guest's administrator; see [`Command::root`].
    pub root: bool,
    /// Working directory.
    pub cwd: Option<String>,
    /// Variables besides those of the sandbox.
    pub env: Vec<(String, String)>,
    /// Standard input.
    pub stdin: Option<Vec<u8>>,
    /// Longest time, waiting for its turn included.
    pub timeout: Option<Duration>,
    /// Most bytes of output, both streams together.
    pub output_limit: Option<u64>,
    /// A switch that ends it.
    pub cancel: Option<Cancel>,
}

impl ExecOptions {
    /// Whether the script needs a process of its own.
    pub(super) fn is_own_process(&self) -> bool {
        self.root || self.cwd.is_some() || !self.env.is_empty() || self.stdin.is_some()
    }
}
