//! Process: agents whose code runs in another process than their host.
//!
//! The host keeps the store, the language model and its credentials. The process connects to it
//! over a socket. A turn runs in the process and commits in the host: sent events and timers
//! arrive with the turn's end. During a turn the process requests data (its tables, steps, the
//! channel, the model) with the token of the attempt, which the host revokes when the attempt
//! is over.
//!
//! - `frame`, `wire`: the wire format, in frames of [`a99_frame`];
//! - `peer`: one end of a connection;
//! - `link`, `start`, `runner`, `calls`: the host's side;
//! - `agents`, `remote`: the process's side;
//! - `ai`: the language model, both sides.

mod agents;
mod ai;
mod calls;
mod frame;
mod link;
mod peer;
mod remote;
mod runner;
mod start;
mod wire;

pub use a99_frame::MAX_FRAME_BYTES;
pub use agents::AgentProcess;
pub(crate) use link::Link;
pub(crate) use wire::Sending;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Environment variables that give a started process the address of its host.
const SOCKET: &str = "A99_PROCESS_SOCKET";
const TOKEN: &str = "A99_PROCESS_TOKEN";

/// Another process that runs agents of a host. The host starts it and restarts it when it
/// exits, or it connects by itself. It runs [`AgentProcess`].
///
/// Its environment contains only the variables given here, never the host's credentials.
///
/// ```no_run
/// use a99_runtime::{Host, Process};
///
/// let process = Process::command("./my-agents").inherit("PATH").env("LEVEL", "2");
/// let builder = Host::builder().process(process, ["echo", "counter"]);
/// ```
#[derive(Clone)]
pub struct Process {
    how: How,
    start_timeout: Duration,
    call_timeout: Duration,
    pauses: (Duration, Duration),
}

impl std::fmt::Debug for Process {
    /// Omits arguments and environment values, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Process");
        match &self.how {
            How::Command(command) => out.field("program", &command.program),
            How::Attached(folder) => out.field("folder", folder),
        };
        out.finish_non_exhaustive()
    }
}

#[derive(Clone)]
enum How {
    Command(Command),
    Attached(PathBuf),
}

#[derive(Clone)]
struct Command {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
}

impl Process {
    fn new(how: How) -> Process {
        Process {
            how,
            start_timeout: peer::CALL_TIMEOUT,
            call_timeout: peer::CALL_TIMEOUT,
            pauses: (Duration::from_millis(100), Duration::from_secs(30)),
        }
    }

    /// A program that the host starts when one of its agents is first needed, and stops after
    /// draining.
    pub fn command(program: impl Into<OsString>) -> Process {
        Process::new(How::Command(Command {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
        }))
    }

    /// A process that is started elsewhere and connects by itself ([`AgentProcess::attach`]).
    /// The host creates the socket and its token as files of this folder, for this user only.
    pub fn attached(folder: impl Into<PathBuf>) -> Process {
        Process::new(How::Attached(folder.into()))
    }

    fn is_attached(&self) -> bool {
        matches!(self.how, How::Attached(_))
    }

    fn with_command(mut self, change: impl FnOnce(&mut Command)) -> Process {
        if let How::Command(command) = &mut self.how {
            change(command);
        }
        self
    }

    /// Adds an argument of the program.
    #[must_use]
    pub fn arg(self, arg: impl Into<OsString>) -> Process {
        self.with_command(|command| command.args.push(arg.into()))
    }

    /// Adds arguments of the program.
    #[must_use]
    pub fn args<T: Into<OsString>>(self, args: impl IntoIterator<Item = T>) -> Process {
        self.with_command(|command| command.args.extend(args.into_iter().map(Into::into)))
    }

    /// Sets an environment variable of the program.
    #[must_use]
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Process {
        self.with_command(|command| command.env.push((name.into(), value.into())))
    }

    /// Copies an environment variable of this process, with its current value.
    #[must_use]
    pub fn inherit(self, name: impl Into<OsString>) -> Process {
        let name = name.into();
        match std::env::var_os(&name) {
            Some(value) => self.env(name, value),
            None => self,
        }
    }

    /// Sets the program's working directory.
    #[must_use]
    pub fn current_dir(self, folder: impl Into<PathBuf>) -> Process {
        self.with_command(|command| command.folder = Some(folder.into()))
    }

    /// How long the process may take to connect; 30 seconds by default.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Process {
        self.start_timeout = timeout;
        self
    }

    /// Timeout of answers that are not turns; 30 seconds by default. A process that does not
    /// give up a cancelled turn in this time is replaced.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Process {
        self.call_timeout = timeout;
        self
    }

    /// Back-off before the program restarts after it exited without ending a turn: the pause
    /// doubles from `first` to `most`. The default is 0.1 to 30 seconds.
    #[must_use]
    pub fn pauses(mut self, first: Duration, most: Duration) -> Process {
        self.pauses = (first, most);
        self
    }
}
