//! Runs under way: the calls they wait for, and their next events.

use crate::asks::Asks;
use crate::atoms::Checks;
use crate::codes;
use crate::event::{self, NoLongerWanted};
use crate::failure::Failure;
use crate::options::Members;
use crate::timers::{Moment, watched};
use a99_core::error::{ErrorCode, HostCode};
use agent99::capabilities::{CapabilityError, Clock};
use agent99::{
    Answer, AtomError, Call, CallId, Cancelled, Fuel, HostReply, Next, Outcome, Quota, Run,
    RunClock, RunEvent, Text, Value,
};
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Computing between two pauses.
const SLICE: Duration = Duration::from_millis(1);

/// A call whose atom this crate's side runs with capabilities of the host.
struct UnderWay {
    id: CallId,
    cancelled: Cancelled,
    answer: Answer,
}

/// A run and the calls that it waits for.
pub(crate) struct ActiveRun {
    run: Run,
    /// The atoms that the host runs.
    host_atoms: Arc<HashMap<String, Checks>>,
    asks: Asks,
    under_way: Vec<UnderWay>,
    /// Calls that were passed to the host.
    host_calls: Vec<Call>,
    quotas: Vec<(String, Quota)>,
    clock: Arc<dyn Clock>,
    happened: Option<Happened>,
    /// The next event, if what happened before it was passed to the host first.
    next: Option<Stepped>,
}

/// Events of a run that the host has not seen. The fuel of the run bounds their number.
pub(crate) type Happened = Arc<Mutex<Vec<RunEvent>>>;

/// The time of a run while it computes: what the host said at the call, and the time since the
/// first slice of work. Short steps read no clock.
struct Watch<'a> {
    base: Duration,
    clock: &'a Arc<dyn Clock>,
    since: OnceLock<Moment>,
}

impl Watch<'_> {
    /// Time since the first slice of work, which this begins.
    fn passed(&self) -> Duration {
        self.since.get_or_init(|| Moment::now(self.clock)).passed()
    }
}

impl RunClock for Watch<'_> {
    fn elapsed(&self) -> Duration {
        self.base + self.since.get().map_or(Duration::ZERO, Moment::passed)
    }

    fn is_past(&self, moment: Duration) -> bool {
        self.base + self.passed() >= moment
    }
}

/// A duration of a host's milliseconds; zero for a number that is no duration.
pub(crate) fn millis(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms.max(0.0) / 1000.0).unwrap_or_default()
}

/// Functions of the host that answer calls of their atoms at once, without an event.
///
/// They are called between the steps of the engine, in the order of the program, on the thread that
/// does the operation.
pub trait Caller: Sync {
    /// The answer; `None` if the host wants the event of the call.
    fn call(&self, call: &DirectCall<'_>) -> Option<DirectAnswer>;
}

/// A call that the host may answer at once.
#[derive(Debug)]
pub struct DirectCall<'a> {
    /// Name of the atom.
    pub op: &'a str,
    /// Its place among the atoms that the host gave its engine.
    pub place: usize,
    /// The inputs.
    pub inputs: &'a Value,
    /// Fuel that the run has left.
    pub fuel_left: Fuel,
}

/// What the host says of a call at once.
#[derive(Debug)]
pub struct DirectAnswer {
    /// A value, or an error's object.
    pub answer: Result<Value, Value>,
    /// As in an answer to an event: `charge` and `warnings`.
    pub extra: Value,
    /// Whether the host must have a say before the run goes on: the event is then a pause.
    pub stops: bool,
}

/// What became of a call of an atom of the host.
enum Made {
    Event(Value),
    Answered { stops: bool },
}

/// What a step of a run gives: the event, and whether the run is over.
pub(crate) struct Stepped {
    pub(crate) event: Value,
    pub(crate) is_over: bool,
}

impl ActiveRun {
    pub(crate) fn new(
        run: Run,
        host_atoms: Arc<HashMap<String, Checks>>,
        asks: Asks,
        quotas: Vec<(String, Quota)>,
        clock: Arc<dyn Clock>,
        happened: Option<Happened>,
    ) -> ActiveRun {
        ActiveRun {
            run,
            host_atoms,
            asks,
            under_way: Vec::new(),
            host_calls: Vec::new(),
            quotas,
            clock,
            happened,
            next: None,
        }
    }

    /// Goes on until the host is needed.
    pub(crate) fn step(
        &mut self,
        handle: u64,
        elapsed: Duration,
        caller: Option<&dyn Caller>,
    ) -> Stepped {
        if let Some(next) = self.next.take() {
            return next;
        }
        let stepped = self.advance(handle, elapsed, caller);
        let happened = self.happened.as_ref().map(|happened| {
            let mut happened = happened.lock().unwrap_or_else(|e| e.into_inner());
            std::mem::take(&mut *happened)
        });
        match happened {
            Some(happened) if !happened.is_empty() => {
                self.next = Some(stepped);
                Stepped {
                    event: event::events(handle, &happened),
                    is_over: false,
                }
            }
            _ => stepped,
        }
    }

    fn advance(&mut self, handle: u64, elapsed: Duration, caller: Option<&dyn Caller>) -> Stepped {
        let host_atoms = Arc::clone(&self.host_atoms);
        let clock = Arc::clone(&self.clock);
        let watch = Watch {
            base: elapsed,
            clock: &clock,
            since: OnceLock::new(),
        };
        let event = loop {
            let mut timer = None;
            if !self.under_way.is_empty() {
                timer = watched(|| self.poll());
                if let Some(request) = self.asks.take() {
                    break event::request(handle, request, self.cancelled());
                }
            }
            match self.run.next(Borrowed(&watch)) {
                Next::Done(outcome) => return self.done(*outcome),
                Next::Call(call) if let Some(checks) = host_atoms.get(&*call.atom) => {
                    match self.call_host(handle, call, checks, caller) {
                        Made::Event(event) => break event,
                        Made::Answered { stops } if stops || watch.passed() >= SLICE => {
                            break event::pause(handle);
                        }
                        Made::Answered { .. } => {}
                    }
                }
                Next::Call(call) => {
                    let (id, cancelled) = (call.id.clone(), call.cancelled());
                    let answer = call.start(None);
                    self.under_way.push(UnderWay {
                        id,
                        cancelled,
                        answer,
                    });
                }
                Next::Wait(until) => {
                    let timer = timer.map(|rest| watch.elapsed() + rest);
                    let until = [until, timer].into_iter().flatten().min();
                    break event::wait(handle, until, self.cancelled());
                }
                Next::Pause if watch.passed() >= SLICE => break event::pause(handle),
                Next::Pause => {}
            }
        };
        Stepped {
            event,
            is_over: false,
        }
    }

    /// Calls an atom of the host: its function, if that answers at once, or by an event.
    fn call_host(
        &mut self,
        handle: u64,
        call: Box<Call>,
        checks: &Checks,
        caller: Option<&dyn Caller>,
    ) -> Made {
        let inputs = call.inputs();
        if let Err(error) = checks.input(&call.atom, &inputs) {
            let _ = self.run.answer(&call.id, Err(error));
            return Made::Answered { stops: false };
        }
        let cancelled = self.cancelled();
        let direct = caller.filter(|_| checks.is_direct && cancelled.is_empty());
        let made = DirectCall {
            op: &call.atom,
            place: checks.place,
            inputs: &inputs,
            fuel_left: call.fuel_left(),
        };
        let Some(direct) = direct.and_then(|host| host.call(&made)) else {
            let event = event::call(handle, &call, inputs, cancelled);
            self.host_calls.push(*call);
            return Made::Event(event);
        };
        // The binding made it itself.
        let extra = Extra::of(&direct.extra).unwrap_or_default();
        self.settle(&call, checks, direct.answer, extra);
        Made::Answered {
            stops: direct.stops,
        }
    }

    /// Answers a call of an atom of the host.
    fn settle(&mut self, call: &Call, checks: &Checks, answer: Result<Value, Value>, extra: Extra) {
        if let Some(charge) = extra.charge {
            call.charge(charge);
        }
        extra.warnings.into_iter().for_each(|text| call.warn(text));
        let answer = answer.map_err(|error| atom_error(&error));
        let answer = answer.and_then(|value| {
            checks.output(&call.atom, &value)?;
            Ok(HostReply {
                fuel_used: extra.fuel_used,
                ..HostReply::from(value)
            })
        });
        // An error says that the time of the call was up.
        let _ = self.run.answer(&call.id, answer);
    }

    fn done(&mut self, outcome: Outcome) -> Stepped {
        Stepped {
            event: event::done(outcome, &self.quotas),
            is_over: true,
        }
    }

    /// Passes answers of atoms on that are ready, and drops atoms whose answer is not wanted.
    fn poll(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut at = 0;
        while let Some(call) = self.under_way.get_mut(at) {
            if call.cancelled.is_set() {
                self.under_way.remove(at);
                continue;
            }
            match Pin::new(&mut call.answer).poll(&mut context) {
                Poll::Pending => at += 1,
                Poll::Ready(answer) => {
                    let call = self.under_way.remove(at);
                    // An error says that the time of the call was up.
                    let _ = self.run.answer(&call.id, answer);
                }
            }
        }
    }

    /// Ids that were passed to the host and whose answers are no longer wanted.
    fn cancelled(&mut self) -> NoLongerWanted {
        let is_set = |call: &mut Call| call.cancelled().is_set();
        NoLongerWanted {
            calls: self
                .host_calls
                .extract_if(.., is_set)
                .map(|call| call.id)
                .collect(),
            requests: self.asks.take_cancelled(),
        }
    }

    /// Takes an answer of the host: to a call by its text, to a request by its number. An answer
    /// that is no longer wanted is dropped.
    pub(crate) fn answer(
        &mut self,
        id: &Value,
        answer: Result<Value, Value>,
        extra: &Value,
    ) -> Result<(), Failure> {
        match id {
            Value::Number(id) => {
                let answer = answer.map_err(|error| CapabilityError::new(message(&error)));
                self.asks.answer(*id as u64, answer);
                Ok(())
            }
            Value::String(id) => {
                let id = id.to_str().and_then(|id| id.parse::<CallId>().ok());
                let id = id.ok_or_else(|| Failure::argument("the id is not that of a call"))?;
                self.answer_call(&id, answer, extra)
            }
            _ => Err(Failure::argument(
                "the id must be the text or number of an event",
            )),
        }
    }

    fn answer_call(
        &mut self,
        id: &CallId,
        answer: Result<Value, Value>,
        extra: &Value,
    ) -> Result<(), Failure> {
        let extra = Extra::of(extra)?;
        let Some(at) = self.host_calls.iter().position(|call| call.id == *id) else {
            return Ok(());
        };
        let call = self.host_calls.swap_remove(at);
        let host_atoms = Arc::clone(&self.host_atoms);
        if let Some(checks) = host_atoms.get(&*call.atom) {
            self.settle(&call, checks, answer, extra);
        }
        Ok(())
    }

    /// Ends the run as its abort signal would.
    pub(crate) fn abort(&mut self, handle: u64, elapsed: Duration) -> Stepped {
        self.under_way.clear();
        self.next = None;
        self.run.abort();
        self.step(handle, elapsed, None)
    }

    pub(crate) fn snapshot(&mut self) -> Result<Vec<u8>, Failure> {
        let bytes = self.run.snapshot();
        bytes.map_err(|error| Failure::new(error.code, error.to_string()))
    }
}

/// What an answer says beside its value.
#[derive(Default)]
struct Extra {
    fuel_used: Option<Fuel>,
    charge: Option<Fuel>,
    warnings: Vec<String>,
}

impl Extra {
    fn of(extra: &Value) -> Result<Extra, Failure> {
        let extra = Members::of(
            "an answer",
            &["fuelUsed", "charge", "warnings"],
            Some(extra),
        )?;
        let fuel = |name| -> Result<Option<Fuel>, Failure> {
            let units = extra.amount(name)?;
            Ok(units.map(|units| Fuel::from_decimal(units).unwrap_or(Fuel::MAX)))
        };
        Ok(Extra {
            fuel_used: fuel("fuelUsed")?,
            charge: fuel("charge")?,
            warnings: extra.texts("warnings")?,
        })
    }
}

/// A clock by reference: runs take theirs by value.
struct Borrowed<'a>(&'a Watch<'a>);

impl RunClock for Borrowed<'_> {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn is_past(&self, moment: Duration) -> bool {
        self.0.is_past(moment)
    }
}

/// The message of an error of the host: a text, or an object with `message`.
fn message(error: &Value) -> Text {
    let text = error.as_text().or_else(|| error.get("message")?.as_text());
    text.cloned().unwrap_or_else(|| Text::from("Error"))
}

fn atom_error(error: &Value) -> AtomError {
    let text = |name| error.get(name).and_then(Value::as_str);
    let code = text("code");
    let engine_code = ErrorCode::ALL
        .iter()
        .find(|known| Some(known.as_str()) == code);
    let mut failed = match engine_code {
        Some(code) => AtomError::coded(*code, message(error)),
        None => AtomError::new(message(error)),
    };
    failed.host_code = code.filter(|_| engine_code.is_none()).and_then(host_code);
    failed.help = text("help").map(str::to_owned);
    failed
}

/// Codes that hosts define live as long as the process, so that their number is limited.
const MAX_HOST_CODES: usize = 1_000;

/// A code of the host, unless it is malformed or one too many.
fn host_code(code: &str) -> Option<HostCode> {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    let known = known.get_or_insert_default();
    if let Some(code) = known.get(code) {
        return HostCode::checked(code).ok();
    }
    if let Some((ours, _)) = codes::TABLE.iter().find(|(of, _)| *of == code) {
        return HostCode::of_capability(ours);
    }
    if known.len() >= MAX_HOST_CODES || code.len() > 100 {
        return None;
    }
    let kept: &'static str = Box::leak(code.to_owned().into_boxed_str());
    known.insert(kept);
    HostCode::checked(kept).ok()
}
