//! Programs as event handlers: runs driven step by step, with a journal of their external
//! calls, so that a turn can be retried (D91).
//!
//! [`ProgramAgent`] is an agent of a [`Host`](crate::Host) whose events a program handles. It
//! is built on [`ProgramHandler`], which other hosts can use too: the handler holds the
//! configuration of an agent, [`ProgramTurn`] the inputs of a turn.

mod agent;
mod builder;
mod class;
mod error;
mod journal;
mod kept;
mod record;
mod replay;
mod run;
pub(crate) mod spent;
mod start;
mod stream;
mod timeline;
mod turn;

pub use agent::{ProgramAgent, TurnRun};
pub use builder::{ProgramAgentBuilder, ProgramMethod};
pub use class::CallClass;
pub use error::{ProgramCode, ProgramEnd, ProgramError, turn_result};
pub use journal::{AGAIN, CallJournal, CallRow, FAILED, MemoryJournal, START_ROW, StoreJournal};
pub(crate) use record::TurnRecord;
pub use replay::{TurnDone, TurnReplay, program_of};
pub use start::{AgentProgram, ProgramSource};
pub use stream::{PARTIAL, STREAM_CHUNK};
pub use timeline::{TimelineCall, TurnTimeline, timeline};

use crate::hub::locked as lock;
use crate::metered::Metered;
use crate::shared::Shared as HostShared;
use a99_capabilities::{AgentTurn, Capabilities, Clock, Random};
use agent99::{AgentRegistry, Engine, RunOptions, Value};
use run::Shared;
use start::Start;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The handling of a call that must not run twice and whose outcome is unknown.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// The call fails; the program may catch the error ([`ProgramCode::UnknownOutcome`]).
    #[default]
    Fail,
    /// The call runs again.
    Retry,
}

/// The arguments of a program that handles an event, as members of one object.
#[derive(Clone, Debug)]
pub struct ProgramArgs {
    /// The event, or the occurrence of a timer.
    pub event: Value,
    /// The agent's state at the beginning of the turn.
    pub state: Value,
    /// The agent's settings.
    pub settings: Value,
    /// The agent's key.
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
    /// The program's arguments: the same at every retry of the turn.
    pub args: Value,
    /// The journal of its external calls.
    pub journal: Arc<dyn CallJournal>,
    /// The turn that its atoms act on; without one they fail.
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
    /// A handler on this engine that grants no capabilities. `clock` and `random` provide the
    /// start time and the seed of each turn; programs see values derived from them.
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

    /// The capabilities of programs, apart from their turn. A granted store is external: its
    /// calls are journaled. Without one each run has a private store. The same holds for stored
    /// programs.
    #[must_use]
    pub fn granted(self, granted: Capabilities) -> ProgramHandler {
        ProgramHandler { granted, ..self }
    }

    /// Creates the options of each turn's run: limits, fuel, quotas, account. They are created
    /// anew, because clones of quotas share one count. The turn sets the environment.
    #[must_use]
    pub fn options(self, make: impl Fn() -> RunOptions + Send + Sync + 'static) -> ProgramHandler {
        ProgramHandler {
            options: Arc::new(make),
            ..self
        }
    }

    /// The agents that programs may call with `agentRun`. Their calls use the same journal.
    #[must_use]
    pub fn agents(self, agents: AgentRegistry) -> ProgramHandler {
        ProgramHandler {
            agents: Some(agents),
            ..self
        }
    }

    /// Sets the call class of an atom. The default depends on the atom; a host atom that talks
    /// to the world is not called twice.
    #[must_use]
    pub fn class(mut self, atom: &str, class: CallClass) -> ProgramHandler {
        Arc::make_mut(&mut self.classes).insert(atom.to_owned(), class);
        self
    }

    /// The handling of calls whose outcome is unknown.
    #[must_use]
    pub fn on_unknown(self, on_unknown: OnUnknown) -> ProgramHandler {
        ProgramHandler { on_unknown, ..self }
    }

    /// The source of earlier programs, for turns that began with one.
    #[must_use]
    pub fn programs(self, programs: Arc<dyn ProgramSource>) -> ProgramHandler {
        ProgramHandler {
            programs: Some(programs),
            ..self
        }
    }

    /// The handler on a host: with its clock and randomness unless they are set, and with the
    /// programs of its store.
    fn hosted(
        &self,
        host: &HostShared,
        clock: Option<&Arc<dyn Clock>>,
        random: Option<&Arc<dyn Random>>,
    ) -> ProgramHandler {
        let mut handler = self.clone();
        handler.clock = Arc::clone(clock.unwrap_or(&host.clock));
        handler.random = Arc::clone(random.unwrap_or(&host.random));
        let ai = handler.granted.ai.take();
        handler.granted.ai = ai.map(|ai| Metered::over(ai, &host.metrics));
        handler.programs(Arc::new(start::KeptIn(Arc::clone(host.agents()))))
    }

    /// Runs a turn to its end with this program, or with the program that it began with. A turn
    /// may be retried any number of times with its journal. Dropping the future ends the run.
    ///
    /// # Errors
    /// A [`ProgramError`] if the run did not end. An error of the program itself is in its
    /// outcome.
    pub async fn handle(
        &self,
        program: &AgentProgram,
        turn: ProgramTurn,
    ) -> Result<ProgramEnd, ProgramError> {
        let start = self.start(program, &*turn.journal).await?;
        let options = (self.options)();
        self.handle_from(start, program, turn, options, None).await
    }

    fn run_options(&self) -> RunOptions {
        (self.options)()
    }

    /// The start of a turn: read from its journal, or recorded there now.
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
        record: Option<&mut TurnRecord>,
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
            record.is_some(),
        ));
        let mut granted = self.granted.clone();
        if let Some(turn) = turn.turn {
            granted.agent_turn = Some(turn);
        }
        if let Some(agents) = &self.agents {
            granted = granted.with_agent(agents.driven_by(shared.clone()));
        }
        let names = record.is_some().then(|| granted.granted());
        let run = shared.run(&self.engine, agent, turn.args, options, granted, start.now);
        let end = run.await;
        if let (Some(record), Some(names)) = (record, names) {
            record.ran(&start, names, shared.calls(), &end);
        }
        end
    }
}

/// Helpers for tests that replay recorded answers of calls.
#[cfg(feature = "testing")]
pub mod testing {
    use agent99::{AtomError, Fuel, HostReply};

    /// The answer in the text of a journal row, and the fuel that the atom charged to the run;
    /// `None` for an invalid text.
    #[must_use]
    pub fn answered(text: &str) -> Option<(Result<HostReply, AtomError>, Fuel)> {
        let answered = agent99::replay::Answered::decode(text)?;
        Some((answered.result, answered.charged))
    }
}
