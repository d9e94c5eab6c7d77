//! Programs as handlers of events: runs that are driven by hand, with a journal of what they
//! ask of the world, so that a turn can be run again (D91).
//!
//! [`ProgramAgent`] is an agent of a [`Host`](crate::Host) whose events a program handles.
//! Beneath it, and for other hosts, [`ProgramHandler`] is what a host has of an agent,
//! [`ProgramTurn`] what it has of a turn.

mod agent;
mod answer;
mod builder;
mod class;
mod environment;
mod error;
mod journal;
mod kept;
mod run;
mod start;
mod stream;
mod turn;

pub use agent::{ProgramAgent, TurnRun};
pub use builder::{ProgramAgentBuilder, ProgramMethod};
pub use class::CallClass;
pub use error::{ProgramCode, ProgramEnd, ProgramError, turn_result};
pub use journal::{AGAIN, CallJournal, CallRow, FAILED, MemoryJournal, START_ROW, StoreJournal};
pub use start::{AgentProgram, ProgramSource};
pub use stream::{PARTIAL, STREAM_CHUNK};

use crate::hub::locked as lock;
use crate::shared::Shared as HostShared;
use a99_capabilities::{AgentTurn, Capabilities, Clock, Random};
use agent99::{AgentRegistry, Engine, RunOptions, Value};
use run::Shared;
use start::Start;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What becomes of a call that is not to be made twice, and of which nobody knows how it
/// ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// It fails, which the program may catch ([`ProgramCode::UnknownOutcome`]).
    #[default]
    Fail,
    /// It is made again.
    Retry,
}

/// Arguments of a program that handles an event: an object of these.
#[derive(Clone, Debug)]
pub struct ProgramArgs {
    /// The event, or the occurrence of a timer.
    pub event: Value,
    /// The agent's state when the turn began.
    pub state: Value,
    /// The agent's settings.
    pub settings: Value,
    /// Who the agent is.
    pub identity: Value,
}

impl From<ProgramArgs> for Value {
    fn from(args: ProgramArgs) -> Value {
        let members = [
            ("event", args.event),
            ("state", args.state),
            ("settings", args.settings),
            ("identity", args.identity),
        ];
        Value::Object(members.into_iter().collect())
    }
}

/// A turn of a program.
#[derive(Clone)]
pub struct ProgramTurn {
    /// What the program gets: the same each time that the turn is run.
    pub args: Value,
    /// What it asked of the world.
    pub journal: Arc<dyn CallJournal>,
    /// What it may do with its turn; nothing if there is none.
    pub turn: Option<Arc<dyn AgentTurn>>,
}

impl fmt::Debug for ProgramTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramTurn").finish_non_exhaustive()
    }
}

type MakeOptions = dyn Fn() -> RunOptions + Send + Sync;

/// Runs the turns of programs.
#[derive(Clone)]
pub struct ProgramHandler {
    engine: Engine,
    granted: Capabilities,
    options: Arc<MakeOptions>,
    agents: Option<AgentRegistry>,
    classes: Arc<BTreeMap<String, CallClass>>,
    on_unknown: OnUnknown,
    programs: Option<Arc<dyn ProgramSource>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl fmt::Debug for ProgramHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramHandler")
            .field("on_unknown", &self.on_unknown)
            .finish_non_exhaustive()
    }
}

impl ProgramHandler {
    /// A handler on this engine that grants nothing. The time of turns and their seeds are of
    /// these sources; programs see what follows from them.
    #[must_use]
    pub fn new(engine: Engine, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> ProgramHandler {
        ProgramHandler {
            engine,
            granted: Capabilities::none(),
            options: Arc::new(RunOptions::new),
            agents: None,
            classes: Arc::default(),
            on_unknown: OnUnknown::Fail,
            programs: None,
            clock,
            random,
        }
    }

    /// What programs are granted beside their turn. A store is the world's: what is done to it
    /// is in the journal. Without one each run has a store of its own, and so it is with
    /// stored programs.
    #[must_use]
    pub fn granted(self, granted: Capabilities) -> ProgramHandler {
        ProgramHandler { granted, ..self }
    }

    /// Options of a turn's run: limits, fuel, quotas, account. They are made for each run,
    /// since clones of quotas share their count. The environment is the turn's.
    #[must_use]
    pub fn options(self, make: impl Fn() -> RunOptions + Send + Sync + 'static) -> ProgramHandler {
        ProgramHandler {
            options: Arc::new(make),
            ..self
        }
    }

    /// Agents that programs call by `agentRun`, whose calls are in the same journal.
    #[must_use]
    pub fn agents(self, agents: AgentRegistry) -> ProgramHandler {
        ProgramHandler {
            agents: Some(agents),
            ..self
        }
    }

    /// Says of an atom what becomes of its calls; by default that follows from the atom, and
    /// an atom of the host's that talks to the world is not called twice.
    #[must_use]
    pub fn class(mut self, atom: &str, class: CallClass) -> ProgramHandler {
        Arc::make_mut(&mut self.classes).insert(atom.to_owned(), class);
        self
    }

    /// What becomes of calls of which nobody knows how they ended.
    #[must_use]
    pub fn on_unknown(self, on_unknown: OnUnknown) -> ProgramHandler {
        ProgramHandler { on_unknown, ..self }
    }

    /// Where a turn finds the program that it began with, if that is not the current one.
    #[must_use]
    pub fn programs(self, programs: Arc<dyn ProgramSource>) -> ProgramHandler {
        ProgramHandler {
            programs: Some(programs),
            ..self
        }
    }

    /// The same on a host: with its clock and randomness, unless there are others, and with
    /// the programs that its store keeps.
    fn hosted(
        &self,
        host: &HostShared,
        clock: Option<&Arc<dyn Clock>>,
        random: Option<&Arc<dyn Random>>,
    ) -> ProgramHandler {
        let mut handler = self.clone();
        handler.clock = Arc::clone(clock.unwrap_or(&host.clock));
        handler.random = Arc::clone(random.unwrap_or(&host.random));
        handler.programs(Arc::new(start::KeptIn(Arc::clone(host.agents()))))
    }

    /// Runs a turn to its end: with this program, or with the one that it began with. The turn
    /// may be run any number of times with its journal; dropping the future ends the run.
    ///
    /// # Errors
    /// What keeps the run from its end ([`ProgramError`]). An error of the program is in its
    /// outcome.
    pub async fn handle(
        &self,
        program: &AgentProgram,
        turn: ProgramTurn,
    ) -> Result<ProgramEnd, ProgramError> {
        let start = self.start(program, &*turn.journal).await?;
        let options = (self.options)();
        self.handle_from(start, program, turn, options).await
    }

    fn run_options(&self) -> RunOptions {
        (self.options)()
    }

    /// What a turn began with: what its journal says, or what is kept there now.
    async fn start(
        &self,
        program: &AgentProgram,
        journal: &dyn CallJournal,
    ) -> Result<Start, ProgramError> {
        start::of_turn(journal, program.hash(), &*self.clock, &*self.random).await
    }

    async fn handle_from(
        &self,
        start: Start,
        program: &AgentProgram,
        turn: ProgramTurn,
        options: RunOptions,
    ) -> Result<ProgramEnd, ProgramError> {
        let older = match start.program == *program.hash() {
            true => None,
            false => Some(start::older(&self.engine, self.programs.as_deref(), &start).await?),
        };
        let agent = older.as_ref().unwrap_or(program.agent());
        let shared = Arc::new(Shared::new(
            turn.journal,
            &start,
            self.classes.clone(),
            self.on_unknown,
            self.clock.clone(),
            self.agents.is_some(),
        ));
        let mut granted = self.granted.clone();
        if let Some(turn) = turn.turn {
            granted.agent_turn = Some(turn);
        }
        if let Some(agents) = &self.agents {
            granted = granted.with_agent(agents.driven_by(shared.clone()));
        }
        let run = shared.run(&self.engine, agent, turn.args, options, granted, start.now);
        run.await
    }
}

/// What tests of programs need that answer calls as they were answered before.
#[cfg(feature = "testing")]
pub mod testing {
    use agent99::{AtomError, Fuel, HostReply};

    /// The answer that the text of a journal's row has, and what the atom took of the run's
    /// fuel beside it; nothing for a text that is none of an answer.
    #[must_use]
    pub fn answered(text: &str) -> Option<(Result<HostReply, AtomError>, Fuel)> {
        let answered = super::answer::Answered::decode(text)?;
        Some((answered.result, answered.charged))
    }
}
