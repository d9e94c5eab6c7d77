//! The `Shell` capability over the Linux sandbox.
//!
//! - `lazy`: a sandbox that starts with the first call.
//! - `guest`: commands, and how the sandbox's errors read to a program.
//! - `files`: files, by commands of the guest.
//!
//! This adapter decides no policy: mounts, network and limits are those of the
//! builder that the host gives.

mod files;
mod guest;
mod lazy;

use a99_capabilities::{Shell, ShellOutput, ShellReply, ShellRequest};
use a99_sandbox::{Builder, VmError};
use lazy::Lazy;
use std::fmt;
use std::sync::Arc;

/// A sandbox as the computer of agents. It is started by the first call, serves
/// every run that it is granted to, and is stopped by [`SandboxShell::stop`] or
/// when the last clone is dropped. A guest that ended is not started again:
/// what was on it is lost, and every later call says so.
#[derive(Clone)]
pub struct SandboxShell(Arc<Lazy>);

impl SandboxShell {
    /// Will be started like that, at the first call. A start that failed is
    /// tried again at the next call.
    #[must_use]
    pub fn new(builder: Builder) -> SandboxShell {
        SandboxShell(Arc::new(Lazy::new(builder)))
    }

    /// Whether there was a call that started it.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.0.running().is_some()
    }

    /// Why the last start failed, or the guest ended. For the host alone:
    /// programs see no more than a code, since paths of the host may be in the
    /// text (security E20).
    #[must_use]
    pub fn failure(&self) -> Option<VmError> {
        self.0.failure()
    }

    /// Stops the sandbox if it was started, and waits until mounts have what
    /// was written to them and nothing of it is left.
    pub async fn stop(&self) {
        if let Some(sandbox) = self.0.running() {
            sandbox.stop().await;
        }
    }
}

impl fmt::Debug for SandboxShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxShell")
            .field("started", &self.is_started())
            .finish_non_exhaustive()
    }
}

impl Shell for SandboxShell {
    fn exec(&self, request: ShellRequest) -> ShellReply<'_, ShellOutput> {
        Box::pin(async move {
            request.check()?;
            let sandbox = self.0.sandbox().await?;
            guest::exec(&sandbox, request).await
        })
    }

    fn write_file(&self, path: String, bytes: Vec<u8>, mode: u32) -> ShellReply<'_, ()> {
        Box::pin(async move {
            let sandbox = self.0.sandbox().await?;
            files::write(&sandbox, &path, bytes, mode).await
        })
    }

    fn read_file(&self, path: String, limit: usize) -> ShellReply<'_, Vec<u8>> {
        Box::pin(async move {
            let sandbox = self.0.sandbox().await?;
            files::read(&sandbox, &path, limit).await
        })
    }
}
