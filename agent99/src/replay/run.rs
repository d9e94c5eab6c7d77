//! Drives a run whose calls are recorded, or answered from a recording.

use super::{Answered, OwnState, RecordedCall, Recording, RunEnvironment, encode};
use crate::{Agent, Engine};
use a99_capabilities::{
    AgentCall, Capabilities, CapabilityError, FnAgentRunner, HashEmbedder, MemoryProcedures,
    MemoryStore, ProcedureLimits, ScriptedAi, ScriptedLlm, ScriptedLlmBattery, ScriptedXml,
};
use a99_core::call_id::CallId;
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::value::Value;
use a99_vm::atom::{AtomError, HostReply};
use a99_vm::{Answer, Call, CallCharges, Next, Outcome, Run, RunOptions};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How often a waiting run looks for an abort.
const LOOK: Duration = Duration::from_millis(20);

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
        /// The atom and inputs of the recording; `None` if it has no such call.
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
            match driven.run.next(driven.began.elapsed()) {
                Next::Call(call) => driven.begin(*call, own),
                Next::Pause => pause().await,
                Next::Wait(until) => {
                    for (call, result) in driven.wait(until).await {
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
        let granted = stand_ins(&recording.granted);
        let own = OwnState::of(&granted);
        let mut driven = Driven::start(self, agent, recording, options, granted);
        let mut answered = 0;
        let mut departure = None;
        let outcome = loop {
            match driven.run.next(driven.began.elapsed()) {
                Next::Call(call) => {
                    let id = call.id.to_string();
                    if own.has(&call.atom, call.args(), call.capability)
                        && !recording.calls.contains_key(&id)
                    {
                        driven.begin(*call, own);
                        continue;
                    }
                    match recorded(&call, recording.calls.get(&id)) {
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
                Next::Pause => pause().await,
                Next::Wait(until) => {
                    for (call, result) in driven.wait(until).await {
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
fn stand_ins(granted: &[String]) -> Capabilities {
    const NO_TEXTS: [&str; 0] = [];
    let absent = |_: &Value, _, _: &AgentCall| Err(CapabilityError::new("not recorded"));
    granted
        .iter()
        .fold(Capabilities::none(), |all, name| match name.as_str() {
            "store" => all.with_store(MemoryStore::new()),
            "embedder" => all.with_embedder(HashEmbedder::new(1)),
            "llm" => all.with_llm(ScriptedLlm::replies(NO_TEXTS)),
            "llm_battery" => all.with_llm_battery(ScriptedLlmBattery::replies(NO_TEXTS)),
            "ai" => all.with_ai(ScriptedAi::replies(NO_TEXTS)),
            "agent" => all.with_agent(FnAgentRunner::new(absent)),
            "xml" => all.with_xml(ScriptedXml::new()),
            "procedures" => all.with_procedures(MemoryProcedures::new(ProcedureLimits::default())),
            _ => all,
        })
}

/// The recorded call that is the same as this one.
fn recorded<'r>(
    call: &Call,
    found: Option<&'r RecordedCall>,
) -> Result<&'r RecordedCall, Box<Departure>> {
    let inputs = call.inputs();
    if let Some(found) = found
        && found.atom == *call.atom
        && encode(&found.inputs) == encode(&inputs)
    {
        return Ok(found);
    }
    Err(Box::new(Departure::Call {
        id: call.id.to_string(),
        pointer: call.pointer(),
        made: (call.atom.to_string(), inputs),
        recorded: found.map(|found| (found.atom.clone(), found.inputs.clone())),
    }))
}

/// A call under way.
struct UnderWay {
    id: CallId,
    deadline: Option<Duration>,
    answer: Answer,
    /// What is recorded of it; `None` for a call that acts on the run.
    recorded: Option<(String, Value, CallCharges)>,
}

struct Driven {
    run: Run,
    environment: Arc<RunEnvironment>,
    began: Instant,
    under_way: Vec<UnderWay>,
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
            began: Instant::now(),
            under_way: Vec::new(),
        }
    }

    /// Starts the atom of a call.
    fn begin(&mut self, call: Call, own: OwnState) {
        let (id, deadline) = (call.id.clone(), call.deadline);
        let at = deadline.and_then(|at| self.began.checked_add(at));
        let is_own = own.has(&call.atom, call.args(), call.capability);
        let (answer, recorded) = match is_own {
            true => (call.start(at), None),
            false => {
                let (atom, inputs) = (call.atom.to_string(), call.inputs());
                let (answer, charges) = call.start_measured(at);
                (answer, Some((atom, inputs, charges)))
            }
        };
        self.under_way.push(UnderWay {
            id,
            deadline,
            answer,
            recorded,
        });
    }

    /// Waits for answers until a time of the run, or a moment if nothing happens.
    async fn wait(
        &mut self,
        until: Option<Duration>,
    ) -> Vec<(UnderWay, Result<HostReply, AtomError>)> {
        let now = self.began.elapsed();
        let rest = until.map_or(LOOK, |until| until.saturating_sub(now).min(LOOK));
        let calls = &mut self.under_way;
        let ready = std::future::poll_fn(|context| {
            let found = calls.iter_mut().enumerate().find_map(|(at, call)| {
                match Pin::new(&mut call.answer).poll(context) {
                    Poll::Ready(result) => Some((at, result)),
                    Poll::Pending => None,
                }
            });
            found.map_or(Poll::Pending, Poll::Ready)
        });
        if let Ok((at, result)) = tokio::time::timeout(rest, ready).await {
            return vec![(self.under_way.remove(at), result)];
        }
        let now = self.began.elapsed();
        let is_late = |call: &mut UnderWay| call.deadline.is_some_and(|at| at <= now);
        let late = self.under_way.extract_if(.., is_late);
        late.map(|call| {
            let atom = call.recorded.as_ref().map_or("", |(atom, ..)| atom);
            let text = format!("Atom '{atom}' timed out");
            (call, Err(AtomError::coded(ErrorCode::AtomTimeout, text)))
        })
        .collect()
    }

    /// Records an answer and gives it to the run.
    fn finish(
        &mut self,
        call: UnderWay,
        result: Result<HostReply, AtomError>,
        now: f64,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let UnderWay { id, recorded, .. } = call;
        let Some((atom, inputs, charges)) = recorded else {
            let _ = self.run.answer(&id, result);
            return Ok(());
        };
        let answered = Answered {
            result,
            charged: charges.settle(),
            at: now,
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

/// Yields to other tasks.
async fn pause() {
    let mut was_asked = false;
    std::future::poll_fn(|context| match std::mem::replace(&mut was_asked, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}
