//! Sandbox handle: the operations of a running sandbox.

use super::builder::Builder;
use super::collect::collect;
use super::command::{Command, ExecOptions};
use super::copy;
use a99_sandbox_protocol::tree::Copied;
use a99_sandbox_protocol::{Request, Script};
use a99_sandbox_runner::{Frozen, GuestHandle, Output, SpawnOptions, VmError, Watch, spawn_thread};
use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long [`Sandbox::stop`] waits for unwritten data to reach the host.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Shell for scripts that run in a fresh process.
const SHELL: &str = "/bin/sh";

/// Settings fixed at a sandbox's start.
#[derive(Debug)]
pub(super) struct Settings {
    /// Maximum bytes of collected output.
    pub output_limit: u64,
    /// Memory of the guest in bytes; the most that it may be if the guest was restored.
    pub ram: u64,
    /// Maximum bytes of a copy out of the guest.
    pub copy_limit: u64,
    /// Addresses at which the host listens for the guest.
    pub forwards: OnceLock<Vec<SocketAddr>>,
    /// Cell in which the mount server reports a refused write to git's settings.
    pub git_refused: OnceLock<Arc<OnceLock<PathBuf>>>,
}

/// A running Linux guest: see the [crate's tour](crate).
///
/// Clones share one sandbox. When the last clone and its processes are dropped, the sandbox
/// halts at once; [`Sandbox::stop`] also waits, and writes back data that mounts hold in
/// memory.
///
/// All futures are `Send`, need no particular executor and never block: the sandbox's own
/// thread does the work. They start with the first poll. Programs without an executor use
/// [`block_on`](crate::block_on).
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(super) guest: Arc<GuestHandle>,
    pub(super) settings: Arc<Settings>,
    pub(super) interrupted: u32,
}

impl Sandbox {
    /// Returns a builder with default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Runs a script in the session shell, a persistent `sh`.
    ///
    /// Variables, functions and the working directory carry over to the next script.
    /// Scripts run one after the other, in the order of calls. A script that ends the shell
    /// or leaves a quote open harms only itself: see [`Output::session_reset`].
    ///
    /// Dropping the future kills the script and all processes it started.
    ///
    /// # Errors
    /// A [`VmError`]; [`VmError::output`] holds the output written before it.
    pub async fn exec(&self, script: impl AsRef<[u8]>) -> Result<Output, VmError> {
        self.exec_with(script, ExecOptions::default()).await
    }

    /// Runs a script with options.
    ///
    /// A script with a working directory, variables or standard input, or one that runs as
    /// root, gets a fresh shell beside the session.
    ///
    /// # Errors
    /// The errors of [`Sandbox::exec`].
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

    /// Prepares a program to run as a fresh process with these arguments.
    ///
    /// Such commands run concurrently, each within separate limits. A name without a slash
    /// is looked up in `PATH`.
    pub fn command<A: AsRef<[u8]>>(&self, argv: impl IntoIterator<Item = A>) -> Command {
        let argv = argv.into_iter().map(|argument| argument.as_ref().to_vec());
        Command::new(&self.guest, argv.collect(), &self.settings)
    }

    /// Prepares a login shell on a terminal of that size.
    ///
    /// Spawn it, then type with [`Process::write`](super::Process::write); Ctrl-C is the
    /// byte 3.
    pub fn shell(&self, rows: u16, columns: u16) -> Command {
        self.command([SHELL, "-l"])
            .env("TERM", "xterm-256color")
            .terminal(rows, columns)
    }

    /// Copies a file or a folder of the host to a path in the guest.
    ///
    /// The copy keeps contents, permission bits, times and symbolic links, and includes
    /// whole folders. Copies merge into an existing folder; files are replaced.
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

    /// Copies a file or a folder of the guest to a path of the host.
    ///
    /// A hostile guest cannot write outside that path. Symbolic links that lead out and
    /// devices are skipped and counted. So is everything in git directories except data:
    /// settings, hooks and other files that the host's git executes (see
    /// [`p9::GitWrites`](crate::p9::GitWrites)).
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

    /// Copies like [`Sandbox::copy_out`], including all of git directories: for guests
    /// whose git settings and hooks the host may trust.
    ///
    /// # Errors
    /// The errors of [`Sandbox::copy_out`].
    pub async fn copy_out_with_git(
        &self,
        guest: impl AsRef<str>,
        host: impl AsRef<Path>,
    ) -> Result<Copied, VmError> {
        copy::copy_out(self, guest.as_ref(), host.as_ref(), true).await
    }

    /// Path of the first refused write to files that the host's git executes, in a mount.
    ///
    /// The guest saw only `EPERM`, which does not say that
    /// [`p9::GitWrites`](crate::p9::GitWrites) of the mount would allow the write.
    pub fn refused_git_write(&self) -> Option<&Path> {
        let refused = self.settings.git_refused.get()?;
        refused.get().map(PathBuf::as_path)
    }

    /// Saves the sandbox, which then continues unaware. See [`Builder::restore`].
    ///
    /// The bytes include a separate disk; [`Sandbox::snapshot_to`] needs no memory for
    /// them.
    ///
    /// # Errors
    /// [`VmCode::NotReady`](crate::vm::VmCode::NotReady) for a guest that never comes to
    /// rest.
    pub async fn snapshot(&self) -> Result<Vec<u8>, VmError> {
        let frozen = self.freeze().await?;
        beside(move || {
            let mut bytes = Vec::new();
            frozen.save(&mut bytes, &mut |_, _| {})?;
            Ok(bytes)
        })
        .await
    }

    /// Saves the sandbox to a file; the sandbox runs on meanwhile.
    ///
    /// `progress` gets the bytes written and their total. A dropped future does not end
    /// the writing.
    ///
    /// # Errors
    /// Those of [`Sandbox::snapshot`], and [`VmCode::Io`](crate::vm::VmCode::Io).
    pub async fn snapshot_to(
        &self,
        file: File,
        mut progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<(), VmError> {
        let frozen = self.freeze().await?;
        beside(move || frozen.save(&mut BufWriter::new(file), &mut progress)).await
    }

    /// Freezes the state of the sandbox, from which any number of copies start by
    /// [`Builder::fork_of`]; the sandbox continues unaware.
    ///
    /// What was written since the last call is copied once. Memory and disk are then shared
    /// with all copies until one of them writes.
    ///
    /// # Errors
    /// Those of [`Sandbox::snapshot`].
    pub async fn freeze(&self) -> Result<Frozen, VmError> {
        self.guest.freeze().await
    }

    /// Starts a copy of the sandbox with the mounts, network and limits of `builder`. See
    /// [`Builder::fork_of`].
    ///
    /// # Errors
    /// Those of [`Sandbox::freeze`] and [`Builder::start`].
    pub async fn fork(&self, builder: Builder) -> Result<Sandbox, VmError> {
        builder.fork_of(&self.freeze().await?).start().await
    }

    /// Number of commands that were running in the snapshot this sandbox was restored from;
    /// they ended as interrupted.
    pub fn interrupted(&self) -> u32 {
        self.interrupted
    }

    /// Addresses at which the host listens for the guest, with the bound ports, in the
    /// order of the builder's forwards.
    pub fn forwards(&self) -> &[SocketAddr] {
        self.settings.forwards.get().map_or(&[], Vec::as_slice)
    }

    /// Instructions that the guest has run, boot included.
    pub fn instructions(&self) -> u64 {
        self.guest.instructions()
    }

    /// Why the guest no longer runs; `None` while it runs.
    pub fn ended(&self) -> Option<VmError> {
        self.guest.ended()
    }

    /// Ends all commands, writes back data that mounts hold in memory, and waits until the
    /// sandbox is gone.
    ///
    /// Running and later calls end with [`VmCode::Stopped`](crate::vm::VmCode::Stopped). A
    /// second call does no harm.
    pub async fn stop(&self) {
        self.guest.shutdown(STOP_TIMEOUT).await;
    }

    /// Halts the sandbox at once, without writing back or waiting.
    pub fn halt(&self) {
        self.guest.halt();
    }
}

/// Runs work that blocks on a separate thread, and waits for its result.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VmError> + Send + 'static,
) -> Result<T, VmError> {
    let done = Arc::new(Watch::new(None));
    let theirs = Arc::clone(&done);
    spawn_thread(move || {
        let result = work();
        theirs.change(|slot| *slot = Some(result));
    })?;
    done.until(Option::take).await
}
