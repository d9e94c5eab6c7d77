//! Start of a process of agents: its socket, its program, and the check of connections.

use super::frame::{self, Envelope, parsed};
use super::wire::{Hello, PROTOCOL};
use super::{Command, How, Process, SOCKET, TOKEN};
use crate::error::{AgentError, codes};
use a99_capabilities::{Random, SystemRandom};
use a99_core::text::hex;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;

/// Timeout of a connection's first request.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Poll interval for a started program.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a program may take to exit after its connection ended.
const GRACE: Duration = Duration::from_secs(2);

/// File names in the folder of an attached process.
pub(super) const SOCKET_FILE: &str = "socket";
pub(super) const TOKEN_FILE: &str = "token";

fn not_started(what: impl std::fmt::Display, error: impl std::fmt::Display) -> AgentError {
    AgentError::new(codes::NOT_STARTED, format!("{what}: {error}"))
}

/// A random secret.
fn secret() -> String {
    let mut bytes = [0; 32];
    SystemRandom.fill(&mut bytes);
    hex(&bytes)
}

/// The socket on which the host waits for a process.
pub(super) struct Listening {
    folder: PathBuf,
    listener: UnixListener,
    /// This user's id.
    uid: u32,
    /// Whether the folder is temporary and removed on drop.
    is_own: bool,
    /// The token of an attached process; a started program gets a new one each time.
    token: Option<String>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The files are useless after this; an error is harmless.
        drop(fs::remove_file(self.folder.join(SOCKET_FILE)));
        if self.token.is_some() {
            drop(fs::remove_file(self.folder.join(TOKEN_FILE)));
        }
        if self.is_own {
            drop(fs::remove_dir(&self.folder));
        }
    }
}

/// Checks that only this user has access to a folder, or creates such a folder. Gives the
/// user's id.
fn private(folder: &Path, is_own: bool) -> io::Result<u32> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => return Ok(fs::symlink_metadata(folder)?.uid()),
        Err(error) if is_own || error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let refuse = |why: &str| Err(io::Error::other(why));
    if !found.is_dir() {
        return refuse("it is not a folder");
    }
    if found.mode() & 0o077 != 0 {
        return refuse("others have access to it: it must have mode 700");
    }
    // A file created here belongs to this user.
    let probe = folder.join(format!("probe-{}", secret()));
    let mine = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&probe)?
        .metadata()?
        .uid();
    fs::remove_file(&probe)?;
    match found.uid() == mine {
        true => Ok(mine),
        false => refuse("it belongs to somebody else"),
    }
}

impl Listening {
    pub(super) fn new(process: &Process) -> Result<Listening, AgentError> {
        let (folder, is_own) = match &process.how {
            How::Attached(folder) => (folder.clone(), false),
            How::Command(_) => {
                let name = format!("a99-{}", secret().get(..16).unwrap_or_default());
                (std::env::temp_dir().join(name), true)
            }
        };
        let failed = |error: io::Error| not_started(folder.display(), error);
        let uid = private(&folder, is_own).map_err(failed)?;
        let socket = folder.join(SOCKET_FILE);
        if !is_own {
            match fs::remove_file(&socket) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(failed)?;
        let token = (!is_own).then(secret);
        let listening = Listening {
            folder: folder.clone(),
            listener,
            uid,
            is_own,
            token,
        };
        if let Some(token) = &listening.token {
            // Rename makes the file appear complete.
            let part = folder.join(format!("{TOKEN_FILE}.part"));
            drop(fs::remove_file(&part));
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            let written = options
                .open(&part)
                .and_then(|mut file| file.write_all(token.as_bytes()))
                .and_then(|()| fs::rename(&part, folder.join(TOKEN_FILE)));
            written.map_err(failed)?;
        }
        Ok(listening)
    }

    /// Starts the program, if there is one, and waits until it has connected.
    pub(super) async fn connect(
        &self,
        process: &Process,
        agents: &[String],
        refused: impl Fn(&AgentError),
    ) -> Result<(UnixStream, Option<Running>), AgentError> {
        let until = Instant::now() + process.start_timeout;
        let (token, mut running) = match (&process.how, &self.token) {
            (How::Command(command), _) => {
                let token = secret();
                let running = Running::start(command, &self.folder.join(SOCKET_FILE), &token)?;
                (token, Some(running))
            }
            (How::Attached(_), token) => (token.clone().unwrap_or_default(), None),
        };
        loop {
            let stream = tokio::select! {
                stream = self.listener.accept() => {
                    stream.map_err(|error| not_started("the socket", error))?.0
                }
                () = tokio::time::sleep(POLL_INTERVAL) => {
                    if let Some(why) = running.as_mut().and_then(Running::has_ended) {
                        return Err(not_started("the program ended before it connected", why));
                    }
                    if Instant::now() >= until {
                        let limit = format!("{:?}", process.start_timeout);
                        return Err(not_started("no process connected in its time", limit));
                    }
                    continue;
                }
            };
            let mut stream = stream;
            let greeted =
                tokio::time::timeout(HELLO_TIMEOUT, self.greet(&mut stream, &token, agents));
            let greeted = greeted.await.unwrap_or_else(|_| {
                let message = "who connected did not say who it is";
                Err(AgentError::new(codes::REFUSED, message))
            });
            match greeted {
                Ok(()) => return Ok((stream, running)),
                Err(error) => refused(&error),
            }
        }
    }

    /// Authenticates a connection.
    async fn greet(
        &self,
        stream: &mut UnixStream,
        token: &str,
        agents: &[String],
    ) -> Result<(), AgentError> {
        let lost = |error: io::Error| AgentError::new(codes::LOST, error.to_string());
        let refuse = |message: String| AgentError::new(codes::REFUSED, message).fatal();
        let peer = stream.peer_cred().map_err(lost)?;
        if peer.uid() != self.uid {
            return Err(refuse("the socket is another user's".to_owned()));
        }
        let gone = || AgentError::new(codes::LOST, "who connected has gone");
        let frame = frame::read(stream).await?.ok_or_else(gone)?;
        let judged = || {
            let Envelope::Request(id, method, _) = &frame.envelope else {
                return Err((0, refuse("the first frame is no request".to_owned())));
            };
            if method != "hello" {
                return Err((*id, refuse(format!("'{method}' comes before 'hello'"))));
            }
            let hello: Hello = parsed(&frame.body, "hello").map_err(|error| (*id, error))?;
            if hello.protocol != PROTOCOL {
                let message = format!("protocol {} of {PROTOCOL}", hello.protocol);
                return Err((*id, refuse(message)));
            }
            if !is_same(&hello.token, token) {
                return Err((*id, refuse("the token is another one".to_owned())));
            }
            let missing = agents.iter().find(|name| !hello.agents.contains(name));
            match missing {
                Some(name) => Err((*id, refuse(format!("the process runs no agent '{name}'")))),
                None => Ok(*id),
            }
        };
        match judged() {
            Ok(id) => {
                let answer = frame::answer(id, &())?;
                stream.write_all(&answer).await.map_err(lost)
            }
            Err((id, error)) => {
                let answer = frame::failed(id, &error)?;
                stream.write_all(&answer).await.map_err(lost)?;
                Err(error)
            }
        }
    }
}

/// Compares texts in a time that depends on their lengths only.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// A started program; killed on drop.
pub(super) struct Running(Option<Child>);

impl Running {
    fn start(command: &Command, socket: &Path, token: &str) -> Result<Running, AgentError> {
        let mut to_run = std::process::Command::new(&command.program);
        to_run
            .args(&command.args)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .env(SOCKET, socket)
            .env(TOKEN, token)
            .stdin(Stdio::null());
        if let Some(folder) = &command.folder {
            to_run.current_dir(folder);
        }
        let started = to_run.spawn();
        let named = command.program.to_string_lossy();
        let child = started.map_err(|error| not_started(named, error))?;
        Ok(Running(Some(child)))
    }

    /// The exit status, if it has exited.
    fn has_ended(&mut self) -> Option<String> {
        let ended = self.0.as_mut()?.try_wait().ok()??;
        self.0 = None;
        Some(ended.to_string())
    }

    /// Gives the program time to exit, then kills it.
    pub(super) async fn stop(mut self) {
        let until = Instant::now() + GRACE;
        while self.0.is_some() && self.has_ended().is_none() && Instant::now() < until {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have exited already. Reaping may take a while, hence the thread.
            drop(child.kill());
            std::thread::spawn(move || child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that looks for the token until it is there finds all of it.
    #[tokio::test]
    async fn a_token_is_whole_as_soon_as_it_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("agents");
        let process = Process::attached(&folder);
        let file = folder.join(TOKEN_FILE);
        std::thread::scope(|threads| {
            let watching = threads.spawn(|| {
                let found = std::iter::repeat_with(|| fs::read_to_string(&file));
                for token in found.filter_map(Result::ok).take(1_000) {
                    assert_eq!(token.len(), 64, "'{token}'");
                }
            });
            while !watching.is_finished() {
                drop(Listening::new(&process).unwrap());
            }
        });
    }
}
