//! The `Shell` capability over the Linux sandbox.
//!
//! - `lazy`: a sandbox that the first call starts.
//! - `guest`: commands, and the sandbox's errors as programs see them.
//! - `files`: files, by commands of the guest.
//!
//! This adapter decides no policy: mounts, network and limits are those of the host's builder.

mod files;
mod guest;
mod lazy;

use a99_capabilities::{Shell, ShellOutput, ShellReply, ShellRequest};
use a99_sandbox::{Builder, VmError};
use lazy::Lazy;
use std::fmt;
use std::sync::Arc;

/// A sandbox as the computer of agents. The first call starts it. It serves every run that it
/// is granted to. [`SandboxShell::stop`] or dropping the last clone stops it. A guest that
/// ended is not restarted: its data is lost, and every later call fails with that error.
#[derive(Clone)]
pub struct SandboxShell(Arc<Lazy>);

impl SandboxShell {
    /// A shell that starts this sandbox at the first call. After a failed start, the next call
    /// tries again.
    #[must_use]
    pub fn new(builder: Builder) -> SandboxShell {
        SandboxShell(Arc::new(Lazy::new(builder)))
    }

    /// Whether a call has started it.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.0.running().is_some()
    }

    /// Why the last start failed, or the guest ended. For the host only: programs see no more
    /// than a code, because the text may contain paths of the host (security E20).
    #[must_use]
    pub fn failure(&self) -> Option<VmError> {
        self.0.failure()
    }

    /// Stops a started sandbox, and waits until all written data has reached the mounts and no
    /// part of the sandbox remains.
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
