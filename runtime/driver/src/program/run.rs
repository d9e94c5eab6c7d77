//! Drives a program's run: each call goes through the journal of the turn.

use super::class::{CallClass, Classes};
use super::error::{ProgramEnd, ProgramError};
use super::journal::{AGAIN, CallJournal, CallRow, FAILED};
use super::spent::{Ledger, polled};
use super::start::Start;
use super::{OnUnknown, lock};
use crate::kill;
use crate::trace::fail;
use a99_capabilities::{Capabilities, Clock, MemoryProcedures, ProcedureLimits, StoredValue};
use a99_runtime_engine::{BoxFuture, JournalStatus, StepClass};
use agent99::replay::{Answered, RecordedCall, RunEnvironment, inputs_digest, is_kept_for_replay};
use agent99::{
    Agent, Answer, AtomError, Call, CallCharges, CallId, Engine, ErrorCode, Fuel, HostReply, Next,
    Outcome, Run, RunDriver, RunError, RunOptions, Value,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tracing::field::Empty;
use tracing::{Span, info_span};

/// State shared by all runs of a turn.
pub(super) struct Shared {
    journal: Arc<dyn CallJournal>,
    seed: [u8; 32],
    classes: Arc<BTreeMap<String, CallClass>>,
    on_unknown: OnUnknown,
    clock: Arc<dyn Clock>,
    drives_agents: bool,
    /// The calls of the turn's own run, if the host keeps them.
    calls: Option<Mutex<Calls>>,
    /// The error that stopped a run of the turn; it ends the other runs too.
    fault: Mutex<Option<ProgramError>>,
    /// Start times of pending sub-agent calls.
    callers: Mutex<HashMap<CallId, f64>>,
}

impl Shared {
    pub(super) fn new(
        journal: Arc<dyn CallJournal>,
        start: &Start,
        classes: Arc<BTreeMap<String, CallClass>>,
        on_unknown: OnUnknown,
        clock: Arc<dyn Clock>,
        drives_agents: bool,
        keeps_calls: bool,
    ) -> Shared {
        Shared {
            journal,
            seed: start.seed,
            classes,
            on_unknown,
            clock,
            drives_agents,
            calls: keeps_calls.then(Mutex::default),
            fault: Mutex::default(),
            callers: Mutex::default(),
        }
    }

    /// Runs an agent to its end.
    pub(super) async fn run(
        &self,
        engine: &Engine,
        agent: &Agent,
        args: Value,
        mut options: RunOptions,
        mut granted: Capabilities,
        now: f64,
    ) -> Result<ProgramEnd, ProgramError> {
        let parent = options.parent.as_ref().map(|id| id.to_string());
        let name = parent.unwrap_or_default();
        let keeps_calls = self.calls.is_some() && name.is_empty();
        let environment = Arc::new(RunEnvironment::new(&self.seed, &name, now));
        let classes = Classes::of(&self.classes, &granted, self.drives_agents);
        if granted.procedures.is_none() {
            let limits = ProcedureLimits::default();
            let table = MemoryProcedures::with_random(limits, environment.clone());
            granted.procedures = Some(Arc::new(table));
        }
        options.environment = Some(environment.clone());
        let driven = Driven {
            shared: self,
            environment,
            classes,
            keeps_calls,
            run: engine.start(agent, args, options, granted),
            began: Instant::now(),
            under_way: Vec::new(),
            sleeping: Vec::new(),
            step: None,
            failed: Vec::new(),
            is_unknown: false,
        };
        driven.drive().await
    }

    /// The kept calls as lines; `None` if they are not kept, or are too large.
    pub(super) fn calls(&self) -> Option<String> {
        let calls = lock(self.calls.as_ref()?);
        (!calls.are_too_large).then(|| calls.lines.clone())
    }

    /// Fails if another run of the turn was stopped.
    fn check(&self) -> Result<(), ProgramError> {
        lock(&self.fault).clone().map_or(Ok(()), Err)
    }
}

impl RunDriver for Shared {
    fn drive<'a>(
        &'a self,
        engine: &'a Engine,
        agent: &'a Agent,
        input: Value,
        options: RunOptions,
        granted: Capabilities,
    ) -> BoxFuture<'a, Outcome> {
        let parent = options.parent.as_deref();
        let now = parent.and_then(|id| lock(&self.callers).get(id).copied());
        Box::pin(async move {
            let run = self.run(engine, agent, input, options, granted, now.unwrap_or(0.0));
            match run.await {
                Ok(end) => end.outcome,
                Err(fault) => {
                    lock(&self.fault).get_or_insert(fault);
                    stopped()
                }
            }
        })
    }
}

/// The placeholder outcome of a stopped run; it is never reported.
fn stopped() -> Outcome {
    Outcome {
        result: Value::Undefined,
        error: Some(RunError::new(
            ErrorCode::Aborted,
            "agentRun",
            "The turn stopped",
        )),
        fuel_used: Fuel::ZERO,
        trace: None,
        warnings: Vec::new(),
        logs: Box::default(),
        usage: None,
    }
}

/// Maximum bytes of the kept calls of a turn.
const MAX_CALLS: usize = 16 << 20;

/// Answered calls as lines of a recording.
#[derive(Default)]
struct Calls {
    lines: String,
    are_too_large: bool,
}

/// A pending call.
struct UnderWay {
    id: CallId,
    atom: String,
    /// When the call times out, in time of the run.
    deadline: Option<Duration>,
    answer: Answer,
    /// The digest of its inputs, if the call is kept.
    inputs: Value,
    /// Its charges, if they are journaled or kept.
    charges: Option<CallCharges>,
    /// The journal row; `None` for calls that are not journaled.
    row: Option<CallRow>,
    span: Span,
    /// Its use of models, if the call is kept.
    ledger: Option<Arc<Ledger>>,
}

/// A call that timed out: its identity, atom and digest of inputs, its row and its answer.
type Late = ((CallId, String, Value), Option<CallRow>, Answered);

/// Maximum milliseconds of `sleep`.
const MAX_SLEEP: f64 = 86_400_000.0;

/// A call of `sleep` that waits for the time of its journaled answer.
struct Sleeping {
    at: tokio::time::Instant,
    id: CallId,
    inputs: Value,
    answered: Answered,
}

/// The milliseconds of a call of `sleep`; `None` for another call, and for one that fails.
fn slept(call: &Call) -> Option<f64> {
    let ms = call.args().first().and_then(Value::as_f64);
    ms.filter(|ms| &*call.atom == "sleep" && (0.0..=MAX_SLEEP).contains(ms))
}

/// A run in progress.
struct Driven<'a> {
    shared: &'a Shared,
    environment: Arc<RunEnvironment>,
    classes: Classes,
    keeps_calls: bool,
    run: Run,
    began: Instant,
    under_way: Vec<UnderWay>,
    sleeping: Vec<Sleeping>,
    /// The last step, and its failed calls.
    step: Option<u64>,
    failed: Vec<CallRow>,
    /// Whether the outcome of one of them is unknown.
    is_unknown: bool,
}

impl Driven<'_> {
    async fn drive(mut self) -> Result<ProgramEnd, ProgramError> {
        loop {
            self.shared.check()?;
            let now = self.began.elapsed();
            let late = self.take_late(now);
            let next = self.run.next(now);
            let is_stop = matches!(&next, Next::Done(end) if ProgramEnd::is_stop(end));
            if !is_stop {
                // The machine timed these calls out; journal that before anything that follows.
                for (call, row, answered) in late {
                    self.note(&call.0, call.1, call.2, &answered);
                    if let Some(row) = row {
                        self.keep(row, &answered).await?;
                    }
                }
            }
            match next {
                Next::Call(call) => self.begin(*call).await?,
                Next::Pause => tokio::task::yield_now().await,
                Next::Wait(until) => {
                    if let Some((call, result)) = self.wait(until).await {
                        self.finish(call, result).await?;
                    }
                    self.wake();
                }
                Next::Done(outcome) => return self.end(*outcome).await,
            }
        }
    }

    /// Takes the calls that timed out, with their charges.
    fn take_late(&mut self, now: Duration) -> Vec<Late> {
        let mut late = Vec::new();
        let is_late = |call: &mut UnderWay| call.deadline.is_some_and(|at| at <= now);
        for call in self.under_way.extract_if(.., is_late) {
            drop(call.answer);
            fail(&call.span, ErrorCode::AtomTimeout.as_str());
            lock(&self.shared.callers).remove(&call.id);
            let Some(charges) = call.charges else {
                continue;
            };
            let text = format!("Atom '{}' timed out", call.atom);
            let answered = Answered {
                result: Err(AtomError::coded(ErrorCode::AtomTimeout, text)),
                charged: charges.settle(),
                at: agent99::Environment::now_ms(&*self.environment),
                models: call.ledger.and_then(|ledger| ledger.used()),
            };
            late.push(((call.id, call.atom, call.inputs), call.row, answered));
        }
        late
    }

    /// Keeps a call for a replay of the turn.
    fn note(&self, id: &CallId, atom: String, inputs: Value, answered: &Answered) {
        let Some(calls) = self.shared.calls.as_ref().filter(|_| self.keeps_calls) else {
            return;
        };
        let mut calls = lock(calls);
        let call = RecordedCall {
            atom,
            inputs,
            answered: answered.clone(),
        };
        match call.line(&id.to_string()) {
            Ok(line) if calls.lines.len() + line.len() < MAX_CALLS => {
                calls.lines.push_str(&line);
                calls.lines.push('\n');
            }
            _ => calls.are_too_large = true,
        }
    }

    /// The digest of a call's inputs, if the call is kept.
    fn inputs(&self, call: &Call) -> Value {
        match self.keeps_calls {
            true => inputs_digest(&call.inputs()),
            false => Value::Undefined,
        }
    }

    /// Answers a call from the journal, or makes it.
    async fn begin(&mut self, call: Call) -> Result<(), ProgramError> {
        kill::point("call.before");
        if self.step != Some(call.step) {
            self.step = Some(call.step);
            self.failed.clear();
            self.is_unknown = false;
        }
        let CallClass::Journaled(class) = self.classes.class(&call) else {
            match self.keeps_calls && is_kept_for_replay(&call.atom) {
                true => self.make(call, None),
                false => self.start(
                    call,
                    |call, at| (call.start(at), None),
                    Value::Undefined,
                    None,
                ),
            }
            return Ok(());
        };
        let mut row = CallRow {
            name: format!("call:{}", call.id),
            class,
            body: digest(&call)?,
            status: JournalStatus::Started,
        };
        let found = self.shared.journal.find(&row.name).await?;
        if let Some(found) = found {
            if found.body != row.body || found.class != row.class {
                return Err(ProgramError::ChangedBody(row.name));
            }
            row.status = found.status;
            match &row.status {
                JournalStatus::Failed(code, _) if code == AGAIN => {}
                JournalStatus::Done(text) | JournalStatus::Failed(_, text) => {
                    let Some(answered) = Answered::decode(text) else {
                        return Err(ProgramError::Unreadable(row.name));
                    };
                    if slept(&call).is_some() {
                        self.sleep(&call, answered);
                        return Ok(());
                    }
                    call.charge(answered.charged);
                    self.environment.advance(answered.at);
                    let inputs = self.inputs(&call);
                    self.note(&call.id, call.atom.to_string(), inputs, &answered);
                    let id = call.id.clone();
                    self.answer(&id, row, answered.result);
                    return Ok(());
                }
                JournalStatus::Started
                    if class == StepClass::Unsafe && self.shared.on_unknown == OnUnknown::Fail =>
                {
                    let text = format!(
                        "{}: nobody knows whether it was done when the turn ran before",
                        call.atom
                    );
                    self.is_unknown = true;
                    let answered = Answered {
                        result: Err(AtomError::new(text)),
                        charged: Fuel::ZERO,
                        at: agent99::Environment::now_ms(&*self.environment),
                        models: None,
                    };
                    let inputs = self.inputs(&call);
                    self.note(&call.id, call.atom.to_string(), inputs, &answered);
                    // The run ignores an answer to a call that timed out.
                    let _ = self.run.answer(&call.id, answered.result);
                    return Ok(());
                }
                JournalStatus::Started => {}
            }
        }
        if let Some(ms) = slept(&call) {
            // The end is journaled first: a retry waits for the rest.
            let answered = Answered {
                result: Ok(Value::Null.into()),
                charged: Fuel::ZERO,
                at: self.shared.clock.now_ms() + ms,
                models: None,
            };
            self.keep(row, &answered).await?;
            self.sleep(&call, answered);
            return Ok(());
        }
        if class == StepClass::Unsafe {
            row.status = JournalStatus::Started;
            self.shared.journal.record(row.clone()).await?;
        }
        self.make(call, Some(row));
        Ok(())
    }

    /// Makes a call whose charges are journaled or kept.
    fn make(&mut self, call: Call, row: Option<CallRow>) {
        if &*call.atom == "agentRun" {
            lock(&self.shared.callers).insert(call.id.clone(), call.now_ms());
        }
        let inputs = self.inputs(&call);
        let start = |call: Call, at| {
            let (answer, charges) = call.start_measured(at);
            (answer, Some(charges))
        };
        self.start(call, start, inputs, row);
    }

    fn start(
        &mut self,
        call: Call,
        start: impl FnOnce(Call, Option<Instant>) -> (Answer, Option<CallCharges>),
        inputs: Value,
        row: Option<CallRow>,
    ) {
        let (id, atom, deadline) = (call.id.clone(), call.atom.to_string(), call.deadline);
        let span = info_span!(
            "step",
            otel.status_code = Empty,
            "error.type" = Empty,
            a99.step = %id,
            a99.atom = atom,
        );
        let ledger = self.keeps_calls.then(Arc::<Ledger>::default);
        let (answer, charges) = polled(&span, ledger.as_ref(), || {
            start(call, self.moment(deadline))
        });
        self.under_way.push(UnderWay {
            id,
            atom,
            deadline,
            answer,
            inputs,
            charges,
            row,
            span,
            ledger,
        });
    }

    /// Waits for the time of an answer, by the clock of the host.
    fn sleep(&mut self, call: &Call, answered: Answered) {
        let rest = answered.at - self.shared.clock.now_ms();
        // A damaged journal may have no number.
        let rest = if rest > 0.0 { rest.min(MAX_SLEEP) } else { 0.0 };
        let rest = Duration::from_secs_f64(rest / 1_000.0);
        self.sleeping.push(Sleeping {
            at: tokio::time::Instant::now() + rest,
            id: call.id.clone(),
            inputs: self.inputs(call),
            answered,
        });
    }

    /// Answers the calls of `sleep` whose time has come.
    fn wake(&mut self) {
        let now = tokio::time::Instant::now();
        let woken = self.sleeping.extract_if(.., |one| one.at <= now);
        for one in woken.collect::<Vec<_>>() {
            self.note(&one.id, "sleep".to_owned(), one.inputs, &one.answered);
            self.environment.advance(one.answered.at);
            let _ = self.run.answer(&one.id, one.answered.result);
        }
    }

    /// Converts a time of the run to the system's clock.
    fn moment(&self, at: Option<Duration>) -> Option<Instant> {
        at.and_then(|at| self.began.checked_add(at))
    }

    /// Waits for an answer until a time of the run.
    async fn wait(
        &mut self,
        until: Option<Duration>,
    ) -> Option<(UnderWay, Result<HostReply, AtomError>)> {
        let until = self.moment(until).map(tokio::time::Instant::from);
        let woken = self.sleeping.iter().map(|one| one.at);
        let until = until.into_iter().chain(woken).min();
        let mut timer = until.map(|at| Box::pin(tokio::time::sleep_until(at)));
        let calls = &mut self.under_way;
        let ready = std::future::poll_fn(|context| {
            for (at, call) in calls.iter_mut().enumerate() {
                let answer = Pin::new(&mut call.answer);
                let ready = polled(&call.span, call.ledger.as_ref(), || answer.poll(context));
                if let Poll::Ready(result) = ready {
                    if let Err(error) = &result {
                        fail(&call.span, error.code.as_str());
                    }
                    return Poll::Ready(Some((at, result)));
                }
            }
            match &mut timer {
                Some(timer) => timer.as_mut().poll(context).map(|()| None),
                None => Poll::Pending,
            }
        });
        let (at, result) = ready.await?;
        Some((self.under_way.remove(at), result))
    }

    /// Journals an answer and gives it to the run.
    async fn finish(
        &mut self,
        call: UnderWay,
        result: Result<HostReply, AtomError>,
    ) -> Result<(), ProgramError> {
        // A stopped sub-agent has no answer.
        self.shared.check()?;
        let UnderWay { id, charges, .. } = call;
        lock(&self.shared.callers).remove(&id);
        let Some(charges) = charges else {
            let _ = self.run.answer(&id, result);
            return Ok(());
        };
        // A call that is not journaled does not move the clock: a retry would not find its time.
        let at = match &call.row {
            Some(_) => self.shared.clock.now_ms(),
            None => agent99::Environment::now_ms(&*self.environment),
        };
        let answered = Answered {
            result,
            charged: charges.settle(),
            at,
            models: call.ledger.and_then(|ledger| ledger.used()),
        };
        self.note(&id, call.atom, call.inputs, &answered);
        let Some(row) = call.row else {
            let _ = self.run.answer(&id, answered.result);
            return Ok(());
        };
        let row = self.keep(row, &answered).await?;
        self.environment.advance(answered.at);
        self.answer(&id, row, answered.result);
        Ok(())
    }

    /// Journals an answer.
    async fn keep(
        &mut self,
        mut row: CallRow,
        answered: &Answered,
    ) -> Result<CallRow, ProgramError> {
        let text = answered.encode().map_err(ProgramError::Unkept)?;
        row.status = match &answered.result {
            Ok(_) => JournalStatus::Done(text),
            Err(_) => JournalStatus::Failed(FAILED.to_owned(), text),
        };
        self.shared.journal.record(row.clone()).await?;
        if answered.result.is_err() {
            self.failed.push(row.clone());
        }
        Ok(row)
    }

    /// Gives the run an answer. The run ignores answers to calls that timed out.
    fn answer(&mut self, id: &CallId, row: CallRow, result: Result<HostReply, AtomError>) {
        let is_noted = self.failed.iter().any(|noted| noted.name == row.name);
        if result.is_err() && !is_noted {
            self.failed.push(row);
        }
        let _ = self.run.answer(id, result);
    }

    /// Ends the run. Calls whose failure ended it run again at the next attempt.
    async fn end(self, outcome: Outcome) -> Result<ProgramEnd, ProgramError> {
        let is_stop = ProgramEnd::is_stop(&outcome);
        let is_unknown = self.is_unknown && outcome.error.is_some() && !is_stop;
        let mut is_retryable = is_stop;
        // A call with an unknown outcome is not retried automatically.
        if outcome.error.is_some() && !is_stop && !is_unknown {
            for mut row in self.failed {
                if let JournalStatus::Failed(code, _) = &mut row.status {
                    AGAIN.clone_into(code);
                    self.shared.journal.record(row).await?;
                    is_retryable = true;
                }
            }
        }
        Ok(ProgramEnd {
            outcome,
            is_retryable,
            is_unknown,
        })
    }
}

/// A digest of a call's atom and inputs.
fn digest(call: &Call) -> Result<u64, ProgramError> {
    let mut hash = Sha256::new().chain_update(call.atom.as_bytes());
    for arg in call.args() {
        let stored = StoredValue::of(arg, usize::MAX / 2);
        let stored = stored.map_err(|error| ProgramError::Unkept(error.to_string()))?;
        hash.update([0]);
        hash.update((stored.as_bytes().len() as u64).to_le_bytes());
        hash.update(stored.as_bytes());
    }
    let bytes: [u8; 32] = hash.finalize().into();
    let (first, _) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
    Ok(u64::from_le_bytes(*first))
}
