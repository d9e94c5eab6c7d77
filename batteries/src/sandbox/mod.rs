//! The `Shell` capability over the Linux sandbox.
//!
//! - `guest`: commands, and how the sandbox's errors read to a program;
//!   `collect`: waiting for a command that may be given up.
//! - `files`: files, by commands of the guest; `task`: blocking work as a
//!   future.
//!
//! This adapter decides no policy: mounts, network and limits are those of the
//! sandbox that the host starts.

mod collect;
mod files;
mod guest;
mod task;

use a99_capabilities::{Shell, ShellOutput, ShellReply, ShellRequest};
use a99_sandbox::vm::{Sandbox, VmError};
use guest::Trouble;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use task::Cancel;

/// Starts a sandbox. It may take as long as it needs: it is called on a thread
/// of its own.
type Start = dyn Fn() -> Result<Sandbox, VmError> + Send + Sync;

/// A sandbox as the computer of agents. It is started by the first call, serves
/// every run that it is granted to, and is stopped when the last clone is
/// dropped and no call runs any more. A guest that ended is not started again:
/// what was on it is lost, and every later call says so.
#[derive(Clone)]
pub struct SandboxShell(Arc<Lazy>);

/// A sandbox that is started when it is needed.
struct Lazy {
    start: Box<Start>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sandbox: Option<Arc<Sandbox>>,
    failure: Option<VmError>,
}

impl SandboxShell {
    /// Will be started like that, at the first call. A start that failed is
    /// tried again at the next call.
    #[must_use]
    pub fn new(
        start: impl Fn() -> Result<Sandbox, VmError> + Send + Sync + 'static,
    ) -> SandboxShell {
        SandboxShell(Arc::new(Lazy {
            start: Box::new(start),
            state: Mutex::default(),
        }))
    }

    /// Whether there was a call that started it.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.0.lock().sandbox.is_some()
    }

    /// Why the last start failed, or the guest ended. For the host alone:
    /// programs see no more than a code, since paths of the host may be in the
    /// text (security E20).
    #[must_use]
    pub fn failure(&self) -> Option<VmError> {
        self.0.lock().failure.clone()
    }

    /// Blocking work on the sandbox as a future. Dropping it cancels the work.
    fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sandbox, &Cancel) -> Result<T, Trouble> + Send + 'static,
    ) -> ShellReply<'static, T> {
        let lazy = Arc::clone(&self.0);
        task::spawn(move |cancel| {
            let sandbox = lazy.sandbox().map_err(|e| guest::unavailable(&e))?;
            work(&sandbox, cancel).map_err(|trouble| {
                lazy.note(&trouble);
                trouble.into_error()
            })
        })
    }
}

impl fmt::Debug for SandboxShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxShell")
            .field("started", &self.is_started())
            .finish_non_exhaustive()
    }
}

impl Lazy {
    /// The state. Whoever panicked while holding it, in a start, left it as it
    /// was.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox, started if need be. Calls side by side wait for one start.
    fn sandbox(&self) -> Result<Arc<Sandbox>, VmError> {
        let mut state = self.lock();
        if let Some(sandbox) = &state.sandbox {
            return Ok(Arc::clone(sandbox));
        }
        match (self.start)() {
            Ok(sandbox) => {
                state.failure = None;
                Ok(Arc::clone(state.sandbox.insert(Arc::new(sandbox))))
            }
            Err(error) => {
                state.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Keeps for the host why the guest ended.
    fn note(&self, trouble: &Trouble) {
        if let Some(error) = trouble.end() {
            self.lock().failure.get_or_insert_with(|| error.clone());
        }
    }
}

impl Shell for SandboxShell {
    fn exec(&self, request: ShellRequest) -> ShellReply<'_, ShellOutput> {
        if let Err(error) = request.check() {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.call(move |sandbox, cancel| guest::exec(sandbox, &request, cancel))
    }

    fn write_file(&self, path: String, bytes: Vec<u8>, mode: u32) -> ShellReply<'_, ()> {
        self.call(move |sandbox, cancel| files::write(sandbox, &path, bytes, mode, cancel))
    }

    fn read_file(&self, path: String, limit: usize) -> ShellReply<'_, Vec<u8>> {
        self.call(move |sandbox, cancel| files::read(sandbox, &path, limit, cancel))
    }
}
