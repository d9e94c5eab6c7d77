//! Sandbox handle: what a running sandbox does.

use super::builder::Builder;
use super::collect::collect;
use super::command::{Command, ExecOptions};
use super::copy;
use a99_sandbox_protocol::tree::Copied;
use a99_sandbox_protocol::{Request, Script};
use a99_sandbox_runner::{GuestHandle, Output, SpawnOptions, VmError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long [`Sandbox::stop`] waits for what is not on the host yet.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The shell that runs scripts in processes of their own.
const SHELL: &str = "/bin/sh";

/// What is fixed at a sandbox's start.
#[derive(Debug)]
pub(super) struct Settings {
    /// Most bytes of output that are gathered.
    pub output_limit: u64,
    /// Most bytes that a copy out of the guest may have.
    pub copy_limit: u64,
    /// Where the host listens for the guest.
    pub forwards: OnceLock<Vec<SocketAddr>>,
    /// Where the server of its mounts says that git's settings were refused.
    pub git_refused: OnceLock<Arc<OnceLock<PathBuf>>>,
}

/// A computer of its own that runs Linux: see the [crate's tour](crate).
/// Clones are the same sandbox. When the last one and its processes are
/// dropped, it stops as it stands; [`Sandbox::stop`] also waits, and writes
/// back what mounts have in memory.
///
/// All futures are `Send`, need no particular executor and never block; what
/// takes time happens on the sandbox's own thread. They start with the first
/// poll. Programs without an executor use [`block_on`](crate::block_on).
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(super) guest: Arc<GuestHandle>,
    pub(super) settings: Arc<Settings>,
    pub(super) interrupted: u32,
}

impl Sandbox {
    /// A sandbox with the usual settings, to be changed and started.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Runs a script in the session shell, an `sh` that stays: its variables,
    /// functions and working directory are there for the next script. Scripts
    /// run one after the other, in the order of calls. A script that ends the
    /// shell, or leaves a quote open, harms only itself: see
    /// [`Output::session_reset`].
    ///
    /// Dropping the future kills the script with all that it started.
    ///
    /// # Errors
    /// A [`VmError`]; where something was written before, it is in
    /// [`VmError::output`].
    pub async fn exec(&self, script: impl AsRef<[u8]>) -> Result<Output, VmError> {
        self.exec_with(script, ExecOptions::default()).await
    }

    /// Runs a script with options. One with a working directory, variables or
    /// standard input of its own, or of the administrator, runs in a fresh shell,
    /// beside the session.
    ///
    /// # Errors
    /// As [`Sandbox::exec`].
    pub async fn exec_with(
        &self,
        script: impl AsRef<[u8]>,
        options: ExecOptions,
    ) -> Result<Output, VmError> {
        let spawn_options = SpawnOptions {
            eager: true,
            timeout: options.timeout,
            output_limit: options.output_limit.or(Some(self.settings.output_limit)),
        };
        let cancel = options.cancel.as_ref();
        if !options.is_own_process() {
            let text = script.as_ref().to_vec();
            let request = Request::Script(Script { text });
            return collect(&self.guest, request, None, spawn_options, cancel).await;
        }
        let mut command = self.command([SHELL.as_bytes(), b"-c", script.as_ref()]);
        if options.root {
            command = command.root();
        }
        if let Some(cwd) = &options.cwd {
            command = command.cwd(cwd);
        }
        for (name, value) in &options.env {
            command = command.env(name, value);
        }
        if let Some(stdin) = options.stdin {
            command = command.stdin(stdin);
        }
        if let Some(time) = options.timeout {
            command = command.timeout(time);
        }
        if let Some(bytes) = options.output_limit {
            command = command.output_limit(bytes);
        }
        if let Some(cancel) = cancel {
            command = command.cancel(cancel);
        }
        command.output().await
    }

    /// A program to run as a fresh process, with its arguments. Such commands
    /// run side by side, each within limits of its own. A name without a slash
    /// is looked up in `PATH`.
    pub fn command<A: AsRef<[u8]>>(&self, argv: impl IntoIterator<Item = A>) -> Command {
        let argv = argv.into_iter().map(|argument| argument.as_ref().to_vec());
        Command::new(&self.guest, argv.collect(), self.settings.output_limit)
    }

    /// A login shell on a terminal of that size, to be spawned: what is typed
    /// goes in by [`Process::write`](super::Process::write), Ctrl-C is the byte
    /// 3.
    pub fn shell(&self, rows: u16, columns: u16) -> Command {
        self.command([SHELL, "-l"])
            .env("TERM", "xterm-256color")
            .terminal(rows, columns)
    }

    /// Copies a file or a folder of the host to a path in the guest: contents,
    /// permission bits, times and symbolic links, whole folders with all below.
    /// A folder that is there is added to; files are replaced.
    ///
    /// # Errors
    /// [`VmCode::Copy`](crate::vm::VmCode::Copy) with the side that failed.
    pub async fn copy_in(
        &self,
        host: impl AsRef<Path>,
        guest: impl AsRef<str>,
    ) -> Result<Copied, VmError> {
        copy::copy_in(self, host.as_ref(), guest.as_ref()).await
    }

    /// Copies a file or a folder of the guest to a path of the host. Nothing is
    /// written outside of that path, whatever the guest sends: symbolic links
    /// that lead out are left out and counted, and so are devices, and of git
    /// directories all but data: settings, hooks and what else the host's git
    /// runs (see [`p9::GitWrites`](crate::p9::GitWrites)).
    ///
    /// # Errors
    /// [`VmCode::Copy`](crate::vm::VmCode::Copy) with the side that failed.
    pub async fn copy_out(
        &self,
        guest: impl AsRef<str>,
        host: impl AsRef<Path>,
    ) -> Result<Copied, VmError> {
        copy::copy_out(self, guest.as_ref(), host.as_ref(), false).await
    }

    /// The same with git directories as they are: for guests whose settings and
    /// hooks the host's git may follow.
    ///
    /// # Errors
    /// As [`Sandbox::copy_out`].
    pub async fn copy_out_with_git(
        &self,
        guest: impl AsRef<str>,
        host: impl AsRef<Path>,
    ) -> Result<Copied, VmError> {
        copy::copy_out(self, guest.as_ref(), host.as_ref(), true).await
    }

    /// Where the guest first tried, in a mount, to change what the host's git
    /// runs, and was refused: it saw `EPERM`, which does not say that
    /// [`p9::GitWrites`](crate::p9::GitWrites) of the mount would allow it.
    pub fn refused_git_write(&self) -> Option<&Path> {
        let refused = self.settings.git_refused.get()?;
        refused.get().map(PathBuf::as_path)
    }

    /// Saves the sandbox as it is; it goes on as if nothing had happened. See
    /// [`Builder::restore`].
    ///
    /// # Errors
    /// [`VmCode::NotReady`](crate::vm::VmCode::NotReady) for a guest that never
    /// comes to rest.
    pub async fn snapshot(&self) -> Result<Vec<u8>, VmError> {
        self.guest.save().await
    }

    /// How many commands ran when the sandbox was saved that this one was
    /// restored from: they were ended as interrupted.
    pub fn interrupted(&self) -> u32 {
        self.interrupted
    }

    /// Where the host listens for the guest: the builder's forwards, in their
    /// order, with the ports that were found.
    pub fn forwards(&self) -> &[SocketAddr] {
        self.settings.forwards.get().map_or(&[], Vec::as_slice)
    }

    /// Instructions that the guest has run, boot included.
    pub fn instructions(&self) -> u64 {
        self.guest.instructions()
    }

    /// Why it runs no more, if it does not.
    pub fn ended(&self) -> Option<VmError> {
        self.guest.ended()
    }

    /// Ends all commands, writes back what mounts have in memory, stops, and
    /// waits until nothing of the sandbox is left. What runs ends with
    /// [`VmCode::Stopped`](crate::vm::VmCode::Stopped), and so does what is
    /// asked of it afterwards. A second call does no harm.
    pub async fn stop(&self) {
        self.guest.shutdown(STOP_TIMEOUT).await;
    }

    /// Stops it as it stands, at once and without waiting.
    pub fn halt(&self) {
        self.guest.halt();
    }
}
