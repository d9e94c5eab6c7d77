//! The file of the registrations: read whole, replaced in one step.
//!
//! It is separate because it has secrets: each reader of a channel may read the
//! channel's configuration.

use super::bad;
use a99_runtime::{AgentError, AgentKey, Participant, Seq};
use a99_runtime_engine::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The form of the file.
const VERSION: u32 = 1;

/// An agent whose events are pushed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registration {
    /// The agent, with its channel.
    pub agent: AgentKey,
    /// The receiver's address, to which the paths of requests are appended.
    pub url: String,
    /// The secret that signs the requests.
    pub secret: String,
    /// The agent's configuration.
    #[serde(default)]
    pub config: Value,
    /// Types of events for which the agent is called, such as `message`; all that wake agents
    /// if it is empty. It also gets the events between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Whether it gets events that are in no log.
    #[serde(default)]
    pub ephemeral: bool,
}

/// Events that were given up. The log has them: the receiver reads them with the next request
/// that succeeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dead {
    /// The first event.
    pub first: Seq,
    /// The last event.
    pub last: Seq,
    /// The code of the last failure.
    pub code: String,
    /// Its message.
    pub message: String,
    /// Attempts of the last batch.
    pub attempts: u32,
    /// When it was given up.
    pub at: Millis,
}

/// What is kept of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Row {
    pub(super) registration: Registration,
    pub(super) is_ready: bool,
    pub(super) acknowledged: Seq,
    pub(super) wake_at: Option<Millis>,
    pub(super) dead: Option<Dead>,
    pub(super) participant: Option<Participant>,
}

impl Row {
    pub(super) fn new(registration: Registration) -> Row {
        Row {
            registration,
            is_ready: false,
            acknowledged: 0,
            wake_at: None,
            dead: None,
            participant: None,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page<R> {
    version: u32,
    agents: R,
}

pub(super) fn unusable(path: &Path, error: &dyn std::fmt::Display) -> AgentError {
    bad(format!("the file {}: {error}", path.display()))
}

/// The registrations of a file; none without a file.
pub(super) fn read(path: &Path) -> Result<Vec<Row>, AgentError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(path, &error)),
    };
    let page: Page<Vec<Row>> =
        serde_json::from_slice(&bytes).map_err(|error| unusable(path, &error))?;
    match page.version {
        VERSION => Ok(page.agents),
        other => Err(unusable(
            path,
            &format!("its version is {other}, not {VERSION}"),
        )),
    }
}

/// Replaces the registrations of a file. Only its owner may read it.
pub(super) fn write(path: &Path, agents: &[Row]) -> io::Result<()> {
    let version = VERSION;
    let text = serde_json::to_vec_pretty(&Page { version, agents })?;
    let partial = PathBuf::from(format!("{}.partial", path.display()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&partial)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // The rename is durable when the folder is.
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
