//! Concurrent calls of atoms: `callAll` (language section 2.10).
//!
//! [`Op::PrepareCall`](a99_core::program::Op::PrepareCall) charges for a call and copies its
//! inputs, but starts nothing. `CallAll` passes all calls to the driver. Once all answers are
//! there, they enter the heap in the order of the calls: result, cost and memory of a run do
//! not depend on the order of the answers.

use super::calls::call_atom;
use super::{Machine, Request, Waiting};
use crate::atom::{AtomBody, AtomError, HostReply, Scope};
use crate::builtins;
use crate::convert::{self, BoundaryLimits};
use crate::heap::{Oom, Val};
use crate::native::{Cx, Fault, Host, StopReason};
use crate::pace::Watch;
use a99_core::costs::Formula;
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::program::{Count, Reg, SiteIdx};
use a99_core::sig::{AtomSig, MAX_CALLS_UNDER_WAY};
use a99_core::value::Value;

/// Error of `agentRun` with a program in a list of calls.
const INLINE_AGENT: &str =
    "callAll: agentRun takes the id of an agent here; a program runs in a step of its own";

/// Bytes counted per prepared call beyond its inputs, fixed so that a run's memory count does
/// not depend on the layout of calls.
pub(super) const PREPARED_BYTES: usize = 80;

const _: () = assert!(size_of::<Prepared>() <= PREPARED_BYTES);

/// A prepared or pending call.
pub(super) struct Prepared {
    pub(super) request: Request,
    /// Bytes of its inputs and of the call, which count against the heap until it ends.
    lent: usize,
    /// The formula that prices the answer.
    price: Option<Formula>,
    /// The instruction in the top frame that prepared it.
    pub(super) pc: u32,
}

/// Pending calls of a `CallAll`.
pub(super) struct UnderWay {
    dst: Reg,
    /// The list that receives the answers.
    arr: Reg,
    /// The bytes of each call and the price of its answer.
    calls: Vec<(usize, Option<Formula>)>,
}

/// Concurrent calls to make; answer with [`Machine::deliver_all`].
#[derive(Debug)]
pub struct Requests {
    /// The calls in order.
    pub calls: Vec<PlacedRequest>,
    /// Maximum number of concurrent calls.
    pub limit: usize,
    /// Maximum bytes of all answers together: the run cannot hold more.
    pub room: usize,
}

/// One of several concurrent calls.
#[derive(Debug)]
pub struct PlacedRequest {
    /// The call.
    pub request: Request,
    /// Its index in the step's list, which also counts synchronous calls.
    pub place: u32,
    /// The instruction in the top frame that prepared it.
    pub pc: u32,
}

/// Bytes per value of an answer, with its container.
const HELD_VALUE_BYTES: usize = 64;

impl Requests {
    /// Bytes of an answer until it enters the heap; the count stops slightly above `most`.
    ///
    /// # Errors
    /// The host stops the run.
    pub fn bytes_of(
        answer: &Result<HostReply, AtomError>,
        most: usize,
        host: &dyn Host,
    ) -> Result<usize, StopReason> {
        let mut bytes = 0;
        match answer {
            Ok(reply) => add_bytes(&reply.value.0, most, host, &mut bytes)?,
            Err(error) => bytes = error.message.len_bytes(),
        }
        Ok(bytes)
    }
}

/// Adds the approximate bytes of a value; the count stops slightly above `most`.
pub(super) fn add_bytes(
    value: &Value,
    most: usize,
    host: &dyn Host,
    bytes: &mut usize,
) -> Result<(), StopReason> {
    let mut watch = Watch::new(host);
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        *bytes += HELD_VALUE_BYTES;
        match value {
            Value::String(text) => *bytes += text.len_bytes(),
            Value::Array(items) => {
                watch.work(items.len())?;
                todo.extend(items);
            }
            Value::Object(map) => {
                watch.work(map.len())?;
                for (key, value) in map.iter() {
                    *bytes += HELD_VALUE_BYTES + key.len_bytes();
                    todo.push(value);
                }
            }
            _ => {}
        }
        if *bytes > most {
            break;
        }
    }
    Ok(())
}

impl Prepared {
    /// A call with inputs of this size.
    pub(super) fn of(request: Request, sig: &AtomSig, inputs: usize, pc: u32) -> Prepared {
        Prepared {
            price: sig.charged_by_machine().map(|(price, _)| price),
            lent: inputs + PREPARED_BYTES,
            request,
            pc,
        }
    }
}

/// The answer of a call: an object with this one member.
fn answered(cx: &mut Cx<'_>, key: &[u8], val: Val) -> Result<Val, Fault> {
    let key = cx.heap.intern(key)?;
    let val = match val {
        // As elements of lists.
        Val::Undefined | Val::Unbound => Val::Null,
        val => val,
    };
    Ok(Val::Obj(cx.heap.alloc_obj_keys(&[key], &[val])?))
}

/// The value of a reply, after paying for it.
fn paid_value(
    cx: &mut Cx<'_>,
    reply: &HostReply,
    limits: &BoundaryLimits,
    price: Option<Formula>,
) -> Result<Val, Fault> {
    let val = convert::from_answer(cx, &reply.value.0, limits)?;
    if let Some(price) = price {
        builtins::charge_answer(cx, price, val)?;
    }
    Ok(val)
}

/// The number of a call in the list for `CallAll`.
fn number(val: Val) -> Option<usize> {
    match val {
        Val::Num(n) if n >= 0.0 && n.fract() == 0.0 => Some(n as usize),
        _ => None,
    }
}

impl Machine {
    /// Prepares a call; a synchronous one is executed. Returns its number, or a list with its
    /// value.
    pub(super) fn prepare_call(
        &mut self,
        base: Reg,
        n: Count,
        site: SiteIdx,
        host: &dyn Host,
    ) -> Result<Val, Fault> {
        let frame = self.frame();
        let at = frame.base as usize;
        let (exe, program, _) = self.program_of(frame);
        let op = program.sites[site.at()].op as usize;
        let exe = exe.clone();
        let Some(atom) = exe.atoms[op].as_ref() else {
            return Err(Fault::unknown_atom(program.text(program.ops[op].name)));
        };
        let from = at + base.at();
        let waits = atom.body.waits();
        if matches!(atom.body, AtomBody::Form) {
            let name = &atom.sig.name;
            return Err(Fault::throw(format!("callAll: '{name}' is no call")));
        }
        if atom.sig.form.is_some() {
            self.check_depth("Agent depth limit exceeded")?;
            if let Val::Obj(r) = self.stack[from]
                && self.heap.get_text(r, b"op").is_some()
            {
                return Err(Fault::throw(INLINE_AGENT));
            }
        }
        // Allocate the result first: the atom is called only once.
        let made = match waits {
            true => None,
            false => Some(self.heap.alloc_arr(&[Val::Null])?),
        };
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let args = &self.stack[from..from + n.at()];
        let mut scope = Scope {
            options: &self.options,
            locals: &self.locals,
        };
        // The dynamic price is paid as for any call.
        let val = call_atom(&mut cx, &mut scope, atom, args)?;
        if let Some(made) = made {
            self.heap.items_mut(made)[0] = val.unwrap_or(Val::Null);
            if self.locals.bytes() > self.locals_counted {
                self.count_kept();
            }
            return Ok(Val::Arr(made));
        }
        // Account for a yield point, as calls that are started do.
        self.meter.did(super::calls::HOST_CALL_WORK);
        self.heap.add_external(PREPARED_BYTES)?;
        let (request, lent) = match self.request(base, n, site, host) {
            Ok(made) => made,
            Err(fault) => {
                self.heap.sub_external(PREPARED_BYTES);
                return Err(fault);
            }
        };
        let number = self.prepared.len() as f64;
        self.prepared
            .push(Prepared::of(request, &atom.sig, lent, frame.pc));
        Ok(Val::Num(number))
    }

    /// Makes the prepared calls, if there are any.
    pub(super) fn call_all(
        &mut self,
        (dst, arr, limit): (Reg, Reg, Reg),
        host: &dyn Host,
    ) -> Result<Option<Box<Requests>>, Fault> {
        let base = self.frame().base as usize;
        let limit = match self.stack[base + limit.at()] {
            Val::Num(n) if (1.0..=MAX_CALLS_UNDER_WAY).contains(&n) && n.fract() == 0.0 => {
                n as usize
            }
            _ => {
                self.forget_prepared();
                return Err(Fault::throw(format!(
                    "callAll: limit must be a whole number from 1 to {MAX_CALLS_UNDER_WAY}"
                )));
            }
        };
        let list = self.stack[base + arr.at()];
        let Val::Arr(r) = list else {
            return Err(Fault::invalid("CallAll without an array"));
        };
        // Synchronous calls have their values; this loop may run again.
        for at in 0..self.heap.len(r) {
            if let Val::Arr(one) = self.heap.items(r)[at] {
                let val = self.heap.items(one).first().copied();
                let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
                let val = answered(&mut cx, b"value", val.unwrap_or(Val::Null))?;
                self.heap.items_mut(r)[at] = val;
            }
        }
        self.meter.did(self.heap.len(r));
        let prepared = std::mem::take(&mut self.prepared);
        if prepared.is_empty() {
            self.answer(dst, list);
            return Ok(None);
        }
        // The list names each of them once, in order.
        let places = self.heap.items(r).iter().zip(0..);
        let named = places.filter_map(|(val, place)| Some((number(*val)?, place)));
        let (numbers, places): (Vec<usize>, Vec<u32>) = named.unzip();
        if !numbers.into_iter().eq(0..prepared.len()) {
            self.prepared = prepared;
            self.forget_prepared();
            return Err(Fault::invalid("CallAll of calls that were not prepared"));
        }
        // Each call may use its share: together they never exceed the fuel left.
        let share = Fuel::from_micro(self.exact_fuel().max(0) / prepared.len() as i64);
        let mut under_way = UnderWay {
            dst,
            arr,
            calls: Vec::with_capacity(prepared.len()),
        };
        let mut calls = Vec::with_capacity(prepared.len());
        for (mut one, place) in prepared.into_iter().zip(places) {
            under_way.calls.push((one.lent, one.price));
            one.request.call.fuel_left = share;
            calls.push(PlacedRequest {
                request: one.request,
                place,
                pc: one.pc,
            });
        }
        self.waiting = Some(Waiting::All(Box::new(under_way)));
        Ok(Some(Box::new(Requests {
            calls,
            limit,
            room: self.heap.room(),
        })))
    }

    /// Drops calls that were prepared and will not be made.
    pub(super) fn forget_prepared(&mut self) {
        for one in std::mem::take(&mut self.prepared) {
            self.heap.sub_external(one.lent);
        }
    }

    /// Delivers the answers of several calls, in order.
    pub fn deliver_all(&mut self, answers: Vec<Result<HostReply, AtomError>>, host: &dyn Host) {
        let Some(Waiting::All(all)) = self.waiting.take() else {
            return;
        };
        // The futures of the calls are gone, and their inputs with them.
        for (lent, _) in &all.calls {
            self.heap.sub_external(*lent);
        }
        if self.outcome.is_some() {
            return;
        }
        self.grow_stack();
        // Before any answer enters the heap: used fuel is paid in any case, and the charge of
        // one call does not depend on failures of others.
        if self.pay_for_calls(&answers) {
            return self.raise(Fault::OutOfFuel, host);
        }
        let mut answers = answers.into_iter();
        let base = self.frame().base as usize;
        let arr = base + all.arr.at();
        let len = match self.stack[arr] {
            Val::Arr(r) => self.heap.len(r),
            _ => 0,
        };
        for at in 0..len {
            let Val::Arr(r) = self.stack[arr] else { return };
            let Some(call) = number(self.heap.items(r)[at]) else {
                continue;
            };
            let price = all.calls.get(call).and_then(|call| call.1);
            let Some(answer) = answers.next() else {
                return self.raise(Fault::invalid("a call without an answer"), host);
            };
            match self.answer_of(answer, price, host) {
                Ok(val) => {
                    if let Val::Arr(r) = self.stack[arr] {
                        self.heap.items_mut(r)[at] = val;
                    }
                }
                Err(fault) => return self.raise(fault, host),
            }
        }
        let list = self.stack[arr];
        self.answer(all.dst, list);
    }

    /// Ends the run because the answers exceed its ceiling.
    pub fn refuse_answers(&mut self, wanted: usize, host: &dyn Host) {
        if let Some(Waiting::All(all)) = self.waiting.take() {
            all.calls
                .iter()
                .for_each(|(lent, _)| self.heap.sub_external(*lent));
        }
        if self.outcome.is_none() {
            self.grow_stack();
            let fault = match self.pay_for_calls(&[]) {
                true => Fault::OutOfFuel,
                false => Fault::Oom(Oom { wanted }),
            };
            self.raise(fault, host);
        }
    }

    /// `{value}` or `{error}`; a fatal error is an `Err`.
    fn answer_of(
        &mut self,
        answer: Result<HostReply, AtomError>,
        price: Option<Formula>,
        host: &dyn Host,
    ) -> Result<Val, Fault> {
        self.meter.did(super::calls::HOST_CALL_WORK);
        let answer = answer.and_then(|reply| match reply.run_inline {
            true => Err(AtomError::new(INLINE_AGENT)),
            false => Ok(reply),
        });
        self.count_locals(host)?;
        let limits = self.options.limits.boundary;
        let mut make = |machine: &mut Machine, host: &dyn Host| {
            let mut cx = super::cx(&mut machine.heap, &mut machine.meter, host);
            let made = match &answer {
                Ok(reply) => paid_value(&mut cx, reply, &limits, price),
                Err(AtomError { code, message, .. }) => {
                    let code = match code.is_catchable() {
                        true => *code,
                        false => ErrorCode::Program,
                    };
                    Err(
                        match convert::check_text(&mut cx, message.as_bytes(), &limits) {
                            Ok(()) if message.is_empty() => super::thrown(code, b"Error"),
                            Ok(()) => super::thrown(code, message.as_bytes()),
                            Err(refused) => refused,
                        },
                    )
                }
            };
            match made {
                Ok(val) => answered(&mut cx, b"value", val),
                Err(Fault::Throw(thrown)) if thrown.code.is_catchable() => {
                    let text = convert::cut(&thrown.message, &limits);
                    let text = cx.str(text)?;
                    answered(&mut cx, b"error", text)
                }
                Err(fault) => Err(fault),
            }
        };
        let before = self.meter.mark();
        let made = self.with_room(host, &mut make);
        if matches!(made, Err(Fault::OutOfFuel)) && self.frames.iter().any(|f| !f.precise) {
            // Prepaid fuel of callers belongs to the budget.
            self.meter.back_to(before);
            self.settle_fuel();
            return self.with_room(host, &mut make);
        }
        made
    }
}
