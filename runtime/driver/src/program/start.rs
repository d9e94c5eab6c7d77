//! Start of a turn's run: time, seed and program, identical at every retry.

use super::error::ProgramError;
use super::journal::{CallJournal, CallRow, START_ROW};
use a99_capabilities::{Clock, Random};
use a99_core::text::hex;
use a99_runtime_engine::{AgentStore, BoxFuture, JournalStatus, StepClass, StoreError};
use agent99::artifact::{ArtifactError, EncodeOptions};
use agent99::replay::{decode, encode, hex_bytes};
use agent99::{Agent, Engine, Map, Value};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Finds programs by their hash.
pub trait ProgramSource: Send + Sync {
    /// The bytes of the program with this hash.
    fn program(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>>;
}

impl<T: AgentStore + ?Sized> ProgramSource for T {
    fn program(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        AgentStore::program(self, hash)
    }
}

/// Programs in a store of agents.
pub(super) struct KeptIn(pub(super) Arc<dyn AgentStore>);

impl ProgramSource for KeptIn {
    fn program(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.0.program(hash)
    }
}

/// A program of an agent, with its bytes in the store and their hash.
#[derive(Clone, Debug)]
pub struct AgentProgram {
    agent: Agent,
    hash: [u8; 32],
    bytes: Vec<u8>,
}

impl AgentProgram {
    /// Encodes the program of an agent.
    ///
    /// # Errors
    /// A program of 4 GiB or more.
    pub fn new(agent: Agent) -> Result<AgentProgram, ArtifactError> {
        let bytes = agent.to_bytes(&EncodeOptions::default())?;
        Ok(AgentProgram {
            hash: Sha256::digest(&bytes).into(),
            agent,
            bytes,
        })
    }

    /// The compiled program.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The SHA-256 of its bytes.
    #[must_use]
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The `.a99b` file, which `AgentStore::keep_program` stores before a turn begins.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The recorded start of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Start {
    /// Milliseconds since the Unix epoch.
    pub(super) now: f64,
    pub(super) seed: [u8; 32],
    pub(super) program: [u8; 32],
}

impl Start {
    pub(super) fn encode(&self) -> Result<String, String> {
        let mut map = Map::new();
        map.insert("now", self.now);
        map.insert("seed", hex(&self.seed));
        map.insert("program", hex(&self.program));
        encode(&Value::Object(map))
    }

    pub(super) fn decode(text: &str) -> Option<Start> {
        let value = decode(text)?;
        let bytes = |name: &str| {
            let bytes = hex_bytes(value.get(name)?.as_str()?)?;
            <[u8; 32]>::try_from(bytes).ok()
        };
        Some(Start {
            now: value.get("now")?.as_f64()?,
            seed: bytes("seed")?,
            program: bytes("program")?,
        })
    }
}

/// The start recorded in the journal; a new turn records one.
pub(super) async fn of_turn(
    journal: &dyn CallJournal,
    program: &[u8; 32],
    clock: &dyn Clock,
    random: &dyn Random,
) -> Result<Start, ProgramError> {
    if let Some(row) = journal.find(START_ROW).await? {
        let JournalStatus::Done(text) = &row.status else {
            return Err(ProgramError::Unreadable(row.name));
        };
        return Start::decode(text).ok_or(ProgramError::Unreadable(row.name));
    }
    let mut start = Start {
        now: clock.now_ms(),
        seed: [0; 32],
        program: *program,
    };
    random.fill(&mut start.seed);
    let row = CallRow {
        name: START_ROW.to_owned(),
        class: StepClass::Read,
        body: 0,
        status: JournalStatus::Done(start.encode().map_err(ProgramError::Unkept)?),
    };
    journal.record(row).await?;
    Ok(start)
}

/// The program that a turn began with.
pub(super) async fn older(
    engine: &Engine,
    programs: Option<&dyn ProgramSource>,
    start: &Start,
) -> Result<Agent, ProgramError> {
    let name = hex(&start.program);
    let found = match programs {
        Some(programs) => programs.program(start.program).await?,
        None => None,
    };
    let bytes = found.ok_or_else(|| ProgramError::NoProgram(format!("{name} is not kept")))?;
    let loaded = engine.load(&bytes);
    loaded.map_err(|error| ProgramError::NoProgram(format!("{name}: {error}")))
}
