//! Calls of typed functions from an instruction; used by the expansion of `#[atom]`.

use super::cx::AtomCx;
use super::decode::{Key, from_args_in, from_value};
use super::direct::{self, Answer, Args};
use super::gives::InputType;
use super::mismatch::Mismatch;
use super::pace::{self, Pace};
use super::schema::checkable;
use crate::atom::{AtomError, BoxFuture, Cancelled, HostCall, HostReply, Scope};
use crate::convert::{self, BoundaryLimits, Copies};
use crate::describe::describe;
use crate::heap::{Heap, Val};
use crate::machine::release;
use crate::native::{Cx, Fault, Host, Meter, StopReason};
use crate::schema::check_host;
use a99_core::costs::CostModel;
use a99_core::schema::{Schema, SchemaError};
use a99_core::sig::LiteralFault;
use a99_core::value::Value;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Instant;

/// Error message after a panic of host code (E20: without the host's text).
const PANICKED: &str = "The atom failed";

/// The input of an atom: a struct with a field for each parameter.
pub trait Input: DeserializeOwned {
    /// The step's keys, in the order of the fields.
    const KEYS: &'static [Key];

    /// Whether [`Input::take`] accepts these arguments from registers.
    fn fits(args: &Args<'_>) -> bool;

    /// Converts the arguments, if they fit.
    fn take(args: &Args<'_>) -> Option<Self>;
}

/// The result of a function, as a value of the language.
pub type Reply = Result<Value, Failure>;

/// Why a call gave no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The arguments do not match; the function was not called.
    Input(Mismatch),
    /// The function failed with this error.
    Failed(Box<AtomError>),
    /// The function's result does not match the declared output.
    Output(Mismatch),
}

impl Failure {
    /// The error of the atom `op`, with the message for programs (D46 for outputs).
    fn into_error(self, op: &str) -> AtomError {
        match self {
            Failure::Failed(error) => *error,
            Failure::Input(mismatch) => {
                AtomError::new(format!("Input validation failed for '{op}': {mismatch}"))
            }
            Failure::Output(mismatch) => {
                AtomError::new(format!("Output validation failed for '{op}': {mismatch}"))
            }
        }
    }
}

/// An atom's name and declared output; the schema is created on first use.
#[derive(Debug)]
pub struct Declared {
    op: &'static str,
    output: fn() -> Json,
    schema: OnceLock<Schema>,
}

impl Declared {
    /// Declares the output of the atom `op`.
    pub const fn new(op: &'static str, output: fn() -> Json) -> Declared {
        Declared {
            op,
            output,
            schema: OnceLock::new(),
        }
    }

    /// Checks an answer against the declared output (D46); the run pays for the check.
    fn output(&self, cx: &mut Cx<'_>, reply: Reply) -> Result<Reply, Fault> {
        let value = match reply {
            Ok(value) => value,
            failed => return Ok(failed),
        };
        let schema = self.schema.get_or_init(|| checkable(&(self.output)()));
        let failure = match check_host(cx, &value, schema, true) {
            Ok(Ok(())) => return Ok(Ok(value)),
            Ok(Err(error)) => Ok(Err(Failure::Output(mismatch(&error, &value)))),
            Err(fault) => Err(fault),
        };
        let discarded = cx.discard(vec![value]);
        let failure = failure?;
        discarded?;
        Ok(failure)
    }

    fn fault(&self, failure: Failure) -> Fault {
        failure.into_error(self.op).into()
    }

    fn late(&self) -> AtomError {
        AtomError::new(format!("Atom '{}' timed out", self.op))
    }

    fn error(&self, failure: Failure) -> AtomError {
        failure.into_error(self.op)
    }
}

/// Converts an error of the schema check.
fn mismatch(error: &SchemaError, value: &Value) -> Mismatch {
    let place = value.pointer(&error.pointer).unwrap_or(&Value::Undefined);
    let tokens = a99_core::pointer::parse(&error.pointer);
    let found = if let Some(key) = error.message.strip_prefix("Missing ") {
        Mismatch::new("a value", "undefined").in_key(key)
    } else {
        let expected = match error.message.strip_prefix("Expected ") {
            Some(kind) => kind.split(',').next().unwrap_or(kind).to_owned(),
            None => format!("a value within its schema ({})", error.message),
        };
        Mismatch::new(expected, describe(place))
    };
    tokens
        .into_iter()
        .rev()
        .fold(found, |inner, token| inner.in_key(token))
}

/// Runs a function inside an instruction. It must be pure: the machine may run the
/// instruction a second time if memory runs short.
///
/// # Errors
/// A value that may not cross the boundary, [`Failure`]s, memory, a stop.
// With a known function, reading its inputs and calling it are compiled together.
#[inline(always)]
pub fn inline<I: Input>(
    cx: &mut Cx<'_>,
    scope: &mut Scope<'_>,
    args: &[Val],
    declared: &Declared,
    body: fn(I, &Pace<'_>) -> Answer,
) -> Result<Val, Fault> {
    let mut copies = Copies::paid(cx);
    let input = read::<I>(&mut copies, args, scope.limits())?;
    let input = input.map_err(|e| declared.fault(Failure::Input(e)))?;
    // A separate number: inside an answer it would be copied in parts out of the closures,
    // and a read would wait for these stores.
    let (mut number, mut answer) = (None, Answer::Null);
    pace::within(&mut copies, |pace| {
        let caught = catch_unwind(AssertUnwindSafe(|| match body(input, pace) {
            Answer::Number(n) => number = Some(n),
            other => answer = other,
        }));
        if caught.is_err() {
            answer = Answer::failed(AtomError::new(PANICKED));
        }
    })?;
    if let Some(n) = number {
        return Answer::Number(n).write(&mut copies, scope.limits());
    }
    match answer {
        Answer::Reply(reply) => checked(&mut copies, scope.limits(), declared, reply),
        proven => proven.write(&mut copies, scope.limits()),
    }
}

/// Converts a function's result, after a check against the declared output.
#[inline(never)]
fn checked(
    copies: &mut Copies<'_, '_>,
    limits: &BoundaryLimits,
    declared: &Declared,
    reply: Reply,
) -> Result<Val, Fault> {
    let reply = declared.output(copies, reply)?;
    let value = reply.map_err(|e| declared.fault(e))?;
    let made = convert::from_answer(copies, &value, limits);
    copies.discard(vec![value])?;
    made
}

/// Reads the arguments of a call: from registers, or from temporary host copies.
///
/// # Errors
/// A value that may not cross the boundary, memory, a stop; the inner error is an argument
/// that does not match.
#[inline(always)]
fn read<I: Input>(
    copies: &mut Copies<'_, '_>,
    args: &[Val],
    limits: &BoundaryLimits,
) -> Result<Result<I, Mismatch>, Fault> {
    if let Some(input) = direct::read(copies, args, limits)? {
        return Ok(Ok(input));
    }
    let values = host_values(copies, args, limits)?;
    let input = pace::within(copies, |pace| from_args_in(I::KEYS, &values, pace));
    copies.discard(values)?;
    input
}

/// The arguments of a call as host values, with room for the function's types that are read
/// from them.
fn host_values(
    copies: &mut Copies<'_, '_>,
    args: &[Val],
    limits: &BoundaryLimits,
) -> Result<Vec<Value>, Fault> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        let before = copies.bytes();
        values.push(copies.to_value(*arg, limits)?);
        copies.count(copies.bytes() - before)?;
    }
    Ok(values)
}

/// Reads the arguments of a call, while its answer is wanted.
///
/// # Errors
/// Arguments that do not match; a stop.
pub fn begin<I: Input>(
    call: HostCall,
    declared: &Declared,
    watch: &CallWatch,
) -> Result<(AtomCx, I), AtomError> {
    let (cx, args) = AtomCx::split(call);
    let input = pace::while_wanted(watch, |pace| from_args_in(I::KEYS, &args, pace));
    let wanted = pace::discard(watch, args);
    match input {
        Some(Ok(input)) if wanted => Ok((cx, input)),
        Some(Err(error)) if wanted => Err(declared.error(Failure::Input(error))),
        _ => Err(declared.late()),
    }
}

/// Reads a literal of a program as the type of an input. A missing or null value is accepted
/// if the input has a default. A panic of the type is ignored here: the run will report it.
///
/// # Errors
/// No run could read the literal.
pub fn literal<T: InputType>(value: &Value, has_default: bool) -> Result<(), LiteralFault> {
    if has_default && value.is_nullish() {
        return Ok(());
    }
    let read = || from_value::<T>(value).map(drop);
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Err(mismatch)) => Err(LiteralFault {
            pointer: mismatch.pointer(),
            message: mismatch.what(),
        }),
        _ => Ok(()),
    }
}

/// Checks whether a call's answer is still wanted, during its conversion.
#[derive(Debug)]
pub struct CallWatch {
    cancelled: Cancelled,
    deadline: Option<Instant>,
}

impl CallWatch {
    /// Creates the watch of a call.
    pub fn of(call: &HostCall) -> CallWatch {
        CallWatch {
            cancelled: call.cancelled.clone(),
            deadline: call.deadline,
        }
    }
}

impl Host for CallWatch {
    fn stop(&self) -> Option<StopReason> {
        if self.cancelled.is_set() {
            return Some(StopReason::Aborted);
        }
        let late = self.deadline.is_some_and(|end| Instant::now() >= end);
        late.then_some(StopReason::Deadline)
    }

    fn now_ms(&self) -> f64 {
        f64::NAN
    }

    fn random(&self, out: &mut [u8]) {
        out.fill(0);
    }
}

/// Completes a call. The run waits meanwhile: converting and checking the answer is subject
/// to its deadline, its signal and the fuel of the call's own price.
///
/// # Errors
/// The error of the call.
pub fn finish(
    declared: &Declared,
    watch: &CallWatch,
    answer: impl FnOnce(&Pace<'_>) -> Answer,
) -> Result<HostReply, AtomError> {
    let answer = pace::while_wanted(watch, answer).ok_or_else(|| declared.late())?;
    let reply = match answer.proven() {
        Ok(value) => return Ok(HostReply::from(value)),
        Err(reply) => reply,
    };
    let mut heap = Heap::default();
    let mut meter = Meter::new(i64::MAX, CostModel::Flat);
    let mut cx = Cx::new(&mut heap, &mut meter, watch);
    match declared.output(&mut cx, reply) {
        Ok(reply) => Ok(HostReply::from(reply.map_err(|e| declared.error(e))?)),
        Err(_) => {
            release(heap);
            Err(declared.late())
        }
    }
}

/// Boxes the future of an `async fn`. A run may resume on another thread while it waits, so
/// the future must be `Send`.
pub fn sendable<'a, F>(future: F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    Box::pin(future)
}

/// Computes the price from the input. NaN, which means the static default, if the input does
/// not match or the function panics (D17).
///
/// # Errors
/// Memory; a stop.
pub fn price<I: Input>(
    cx: &mut Cx<'_>,
    args: &[Val],
    limits: &BoundaryLimits,
    cost: fn(&I) -> f64,
) -> Result<f64, Fault> {
    let mut copies = Copies::paid(cx);
    match read::<I>(&mut copies, args, limits) {
        Ok(Ok(input)) => Ok(catch_unwind(AssertUnwindSafe(|| cost(&input))).unwrap_or(f64::NAN)),
        Ok(Err(_)) | Err(Fault::Throw(_)) => Ok(f64::NAN),
        Err(fault) => Err(fault),
    }
}
