//! Drives a run whose calls are recorded, or answered from a recording.

use super::{Answered, OwnState, RecordedCall, Recording, RunEnvironment, encode};
use crate::drive::{Calls, UnderWay};
use crate::{Agent, Engine};
use a99_capabilities::{
    AgentCall, AgentTurn, Capabilities, CapabilityError, FnAgentRunner, HashEmbedder,
    MemoryProcedures, MemoryStore, ProcedureLimits, ScriptedAi, ScriptedLlm, ScriptedLlmBattery,
    ScriptedXml,
};
use a99_core::fuel::Fuel;
use a99_core::text::hex;
use a99_core::value::Value;
use a99_vm::atom::{AtomError, HostReply};
use a99_vm::{Call, CallCharges, Next, Outcome, Run, RunOptions};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::sync::Arc;

/// A replayed run.
#[derive(Debug)]
pub struct Replayed {
    /// The outcome. After a departure it is that of an aborted run.
    pub outcome: Outcome,
    /// The first difference from the recording.
    pub departure: Option<Departure>,
}

/// Where a run departs from its recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Departure {
    /// The run makes another call than the recorded one, or one more.
    Call {
        /// The id of the call.
        id: String,
        /// JSON pointer of the calling step.
        pointer: Option<String>,
        /// The atom and inputs of the run.
        made: (String, Value),
        /// The atom and inputs of the recording, `undefined` if it has their digest; `None` if
        /// it has no such call.
        recorded: Option<(String, Value)>,
    },
    /// The run ended before it made this recorded call.
    Ended {
        /// The id of the call.
        id: String,
        /// The atom of the recording.
        atom: String,
    },
}

impl Engine {
    /// Runs an agent as [`Engine::run`] does, and writes a recording of it
    /// ([`replay`](crate::replay)).
    ///
    /// The recording has the arguments, and the inputs and answers of calls; it has no
    /// capabilities, headers of the host or request context.
    ///
    /// # Errors
    /// The recording could not be written; the run is aborted then.
    pub async fn record(
        &self,
        agent: &Agent,
        args: Value,
        options: RunOptions,
        granted: Capabilities,
        to: &mut (dyn Write + Send),
    ) -> io::Result<Outcome> {
        let mut seed = [0; 32];
        let environment = &self.environment();
        environment.random(&mut seed);
        let own = OwnState::of(&granted);
        let names = granted.granted().into_iter().map(str::to_owned);
        let recording = Recording::begin(args, environment.now_ms(), seed, names.collect());
        recording.write_head(to)?;
        let mut driven = Driven::start(self, agent, &recording, options, granted);
        loop {
            match driven.run.next(driven.calls.elapsed()) {
                Next::Call(call) => driven.begin(*call, own),
                Next::Pause => tokio::task::yield_now().await,
                Next::Wait(until) => {
                    for (call, result) in driven.calls.wait(until).await {
                        let written = driven.finish(call, result, environment.now_ms(), to);
                        if let Err(error) = written {
                            driven.run.abort();
                            return Err(error);
                        }
                    }
                }
                Next::Done(outcome) => {
                    to.flush()?;
                    return Ok(*outcome);
                }
            }
        }
    }

    /// Runs an agent with the arguments and answers of a recording. It needs no capabilities, and
    /// the program may be another one than the recorded.
    pub async fn replay(
        &self,
        agent: &Agent,
        recording: &Recording,
        options: RunOptions,
    ) -> Replayed {
        self.replay_turn(agent, recording, options, None).await
    }

    /// [`Engine::replay`] of a turn of a long-lived agent: its atoms act on `turn`, apart from
    /// those of its tables and of methods, which the recording answers.
    pub async fn replay_turn(
        &self,
        agent: &Agent,
        recording: &Recording,
        options: RunOptions,
        turn: Option<Arc<dyn AgentTurn>>,
    ) -> Replayed {
        let mut granted = stand_ins(recording);
        let own = OwnState::of(&granted);
        let acts = |call: &Call| turn.is_none() || !is_kept_for_replay(&call.atom);
        granted.agent_turn.clone_from(&turn);
        let mut driven = Driven::start(self, agent, recording, options, granted);
        let mut answered = 0;
        let mut departure = None;
        let outcome = loop {
            match driven.run.next(driven.calls.elapsed()) {
                Next::Call(call) => {
                    let id = call.id.to_string();
                    if own.has(&call.atom, call.args(), call.capability)
                        && acts(&call)
                        && !recording.calls.contains_key(&id)
                    {
                        driven.begin(*call, own);
                        continue;
                    }
                    match recorded(&call, recording) {
                        Ok(found) => {
                            answered += 1;
                            driven.repeat(&call, found);
                        }
                        Err(found) => {
                            departure = Some(*found);
                            driven.run.abort();
                        }
                    }
                }
                Next::Pause => tokio::task::yield_now().await,
                Next::Wait(until) => {
                    for (call, result) in driven.calls.wait(until).await {
                        let _ = driven.run.answer(&call.id, result);
                    }
                }
                Next::Done(outcome) => break *outcome,
            }
        };
        if departure.is_none()
            && let Some(id) = recording.order.get(answered)
            && let Some(call) = recording.calls.get(id)
        {
            departure = Some(Departure::Ended {
                id: id.clone(),
                atom: call.atom.clone(),
            });
        }
        Replayed { outcome, departure }
    }
}

/// Capabilities that are there and answer nothing: the recording answers every call.
fn stand_ins(recording: &Recording) -> Capabilities {
    const NO_TEXTS: [&str; 0] = [];
    let absent = |_: &Value, _, _: &AgentCall| Err(CapabilityError::new("not recorded"));
    let random = Arc::new(RunEnvironment::new(&recording.seed, "", recording.began));
    let table = MemoryProcedures::with_random(ProcedureLimits::default(), random);
    let table = Arc::new(table);
    let names = recording.granted.iter();
    names.fold(Capabilities::none(), |all, name| match name.as_str() {
        "store" => all.with_store(MemoryStore::new()),
        "embedder" => all.with_embedder(HashEmbedder::new(1)),
        "llm" => all.with_llm(ScriptedLlm::replies(NO_TEXTS)),
        "llm_battery" => all.with_llm_battery(ScriptedLlmBattery::replies(NO_TEXTS)),
        "ai" => all.with_ai(ScriptedAi::replies(NO_TEXTS)),
        "agent" => all.with_agent(FnAgentRunner::new(absent)),
        "xml" => all.with_xml(ScriptedXml::new()),
        "procedures" => all.with_procedures(Arc::clone(&table)),
        _ => all,
    })
}

/// Whether an atom works on the tables of an agent.
#[must_use]
pub fn is_table(atom: &str) -> bool {
    atom.starts_with("agentStorage")
}

/// Whether an atom of a turn reads or changes what a replay of the turn lacks: the agent's tables
/// and the methods of others. It runs again with the turn; its answer is kept for replays only.
#[must_use]
pub fn is_kept_for_replay(atom: &str) -> bool {
    is_table(atom) || matches!(atom, "agentCallMethod" | "agentMethodResult")
}

/// A digest of a call's inputs.
#[must_use]
pub fn inputs_digest(inputs: &Value) -> Value {
    let text = encode(inputs).unwrap_or_default();
    hex(&Sha256::digest(text)).into()
}

/// The recorded call that is the same as this one.
fn recorded<'r>(call: &Call, recording: &'r Recording) -> Result<&'r RecordedCall, Box<Departure>> {
    let inputs = call.inputs();
    let found = recording.calls.get(call.id.to_string().as_str());
    let is_same = |found: &RecordedCall| match recording.has_digests {
        true => found.inputs == inputs_digest(&inputs),
        false => encode(&found.inputs) == encode(&inputs),
    };
    if let Some(found) = found
        && found.atom == *call.atom
        && is_same(found)
    {
        return Ok(found);
    }
    let shown = |found: &RecordedCall| match recording.has_digests {
        true => Value::Undefined,
        false => found.inputs.clone(),
    };
    Err(Box::new(Departure::Call {
        id: call.id.to_string(),
        pointer: call.pointer(),
        made: (call.atom.to_string(), inputs),
        recorded: found.map(|found| (found.atom.clone(), shown(found))),
    }))
}

/// What is recorded of a call; `None` if it acts on the run.
type Kept = Option<(Value, CallCharges)>;

struct Driven {
    run: Run,
    environment: Arc<RunEnvironment>,
    calls: Calls<Kept>,
}

impl Driven {
    fn start(
        engine: &Engine,
        agent: &Agent,
        recording: &Recording,
        mut options: RunOptions,
        mut granted: Capabilities,
    ) -> Driven {
        let environment = RunEnvironment::new(&recording.seed, "", recording.began);
        let environment = Arc::new(environment);
        options.environment = Some(environment.clone());
        if granted.procedures.is_none() {
            let limits = ProcedureLimits::default();
            let table = MemoryProcedures::with_random(limits, environment.clone());
            granted.procedures = Some(Arc::new(table));
        }
        Driven {
            run: engine.start(agent, recording.args.clone(), options, granted),
            environment,
            calls: Calls::new(),
        }
    }

    /// Starts the atom of a call.
    fn begin(&mut self, call: Call, own: OwnState) {
        let is_own = own.has(&call.atom, call.args(), call.capability);
        self.calls.begin(call, |call, deadline| match is_own {
            true => (call.start(deadline), None),
            false => {
                let inputs = call.inputs();
                let (answer, charges) = call.start_measured(deadline);
                (answer, Some((inputs, charges)))
            }
        });
    }

    /// Records an answer and gives it to the run.
    fn finish(
        &mut self,
        call: UnderWay<Kept>,
        result: Result<HostReply, AtomError>,
        now: f64,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let UnderWay { id, atom, kept, .. } = call;
        let Some((inputs, charges)) = kept else {
            let _ = self.run.answer(&id, result);
            return Ok(());
        };
        let answered = Answered {
            result,
            charged: charges.settle(),
            at: now,
            models: None,
        };
        let one = RecordedCall {
            atom,
            inputs,
            answered,
        };
        one.write(&id.to_string(), to)?;
        self.environment.advance(now);
        // The run ignores answers to calls that timed out.
        let _ = self.run.answer(&id, one.answered.result);
        Ok(())
    }

    /// Answers a call from the recording.
    fn repeat(&mut self, call: &Call, found: &RecordedCall) {
        if found.answered.charged > Fuel::ZERO {
            call.charge(found.answered.charged);
        }
        self.environment.advance(found.answered.at);
        let _ = self.run.answer(&call.id, found.answered.result.clone());
    }
}
