//! Process: agents whose code runs in another process than their host.
//!
//! The host keeps the store, the language model and its keys, and the process has a socket to
//! it. A turn is run there and committed here: what it sends and sets comes with its end, and
//! what it must know meanwhile (its tables, steps, the channel, the model) it asks for, each
//! time with the token of its attempt, which the host forgets when the attempt is over.
//!
//! - `frame`, `wire`: what goes over the socket;
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

pub use agents::AgentProcess;
pub use frame::MAX_FRAME_BYTES;
pub(crate) use link::Link;
pub(crate) use wire::Sending;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Variables by which a process that was started knows where its host is.
const SOCKET: &str = "A99_PROCESS_SOCKET";
const TOKEN: &str = "A99_PROCESS_TOKEN";

/// Another process that runs agents of a host: one that the host starts, and again when it
/// ended, or one that connects by itself. It runs [`AgentProcess`].
///
/// Its environment is empty but for what is given here: no key of the host's is in it.
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
    /// Without arguments and values of the environment, which may be secret.
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

    /// A program that the host starts when an agent of it is needed first, and stops when it
    /// has drained.
    pub fn command(program: impl Into<OsString>) -> Process {
        Process::new(How::Command(Command {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
        }))
    }

    /// A process that somebody else starts, and that connects by itself
    /// ([`AgentProcess::attach`]): the socket and its token are files of this folder, which
    /// the host makes for this user only.
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

    /// An argument of the program.
    #[must_use]
    pub fn arg(self, arg: impl Into<OsString>) -> Process {
        self.with_command(|command| command.args.push(arg.into()))
    }

    /// Arguments of the program.
    #[must_use]
    pub fn args<T: Into<OsString>>(self, args: impl IntoIterator<Item = T>) -> Process {
        self.with_command(|command| command.args.extend(args.into_iter().map(Into::into)))
    }

    /// A variable of the program's environment.
    #[must_use]
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Process {
        self.with_command(|command| command.env.push((name.into(), value.into())))
    }

    /// A variable of this process, as it is now, for the program's environment too.
    #[must_use]
    pub fn inherit(self, name: impl Into<OsString>) -> Process {
        let name = name.into();
        match std::env::var_os(&name) {
            Some(value) => self.env(name, value),
            None => self,
        }
    }

    /// The folder in which the program runs.
    #[must_use]
    pub fn current_dir(self, folder: impl Into<PathBuf>) -> Process {
        self.with_command(|command| command.folder = Some(folder.into()))
    }

    /// How long it may take to connect; 30 seconds if nothing is said.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Process {
        self.start_timeout = timeout;
        self
    }

    /// How long the host waits for answers that are no turns; 30 seconds if nothing is said. A
    /// process that does not give a cancelled turn up in this time is replaced.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Process {
        self.call_timeout = timeout;
        self
    }

    /// How long the host waits before it starts the program again that ended without having
    /// ended a turn: it doubles each time from the first to the most. A tenth of a second and
    /// half a minute, if nothing is said.
    #[must_use]
    pub fn pauses(mut self, first: Duration, most: Duration) -> Process {
        self.pauses = (first, most);
        self
    }
}
