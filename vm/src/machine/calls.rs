//! Helper calls, and calls that the host answers.

use super::prices::pay_dynamic;
use super::{
    Frame, FrameKind, MAX_HELPER_DEPTH, Machine, Request, Step, WINDOW, WaitingCall, clear_frame,
    cx, frame_size,
};
use crate::atom::{
    AtomBody, AtomDef, AtomError, CallParts, CancelFlag, Cancelled, HostCall, HostReply, Scope,
};
use crate::builtins;
use crate::convert::{self, Copies};
use crate::heap::Val;
use crate::link::Executable;
use crate::native::{Cx, Fault, Host};
use a99_core::call_id::CallId;
use a99_core::costs::CROSSING_RESULT;
use a99_core::error::ErrorCode;
use a99_core::fuel::Fuel;
use a99_core::program::{ConstIdx, Count, Function, FunctionIdx, Reg, SiteIdx};
use a99_core::text::wtf8_to_string_lossy;
use a99_core::value::Value;
use a99_run::account::Spend;
use std::borrow::Cow;
use std::sync::Arc;

/// Work per call of the host.
pub(super) const HOST_CALL_WORK: usize = 512;

/// Calls an atom and charges its price; `None` for an asynchronous atom, whose inputs are
/// then paid.
#[inline(never)]
pub(super) fn call_atom(
    cx: &mut Cx<'_>,
    scope: &mut Scope<'_>,
    atom: &AtomDef,
    args: &[Val],
) -> Result<Option<Val>, Fault> {
    match atom.dynamic_cost {
        Some(cost) if !scope.options.costs.contains_key(&*atom.sig.name) => {
            pay_dynamic(cx, atom, cost, args, scope.limits())?;
        }
        _ => {}
    }
    let price = atom.sig.charged_by_machine();
    if let Some((price, reads)) = price {
        builtins::charge_reads(cx, price, reads, None, args)?;
    }
    let answer = match &atom.body {
        AtomBody::Native(body) => body(cx, scope, args)?,
        AtomBody::NativeDyn(body) => body(cx, scope, args)?,
        _ => return Ok(None),
    };
    if let Some((price, _)) = price {
        builtins::charge_answer(cx, price, answer)?;
    }
    Ok(Some(answer))
}

impl Machine {
    /// Calls an atom with registers of the current frame and stores its answer in a register;
    /// false for an asynchronous atom.
    #[inline(never)]
    pub(super) fn call_atom(
        &mut self,
        exe: &Executable,
        site: SiteIdx,
        dst: Reg,
        (base, n): (Reg, Count),
        host: &dyn Host,
    ) -> Result<bool, Fault> {
        let window = self.frame().base as usize;
        let first = window + base.at();
        let args = &self.stack[first..first + n.at()];
        let mut cx = cx(&mut self.heap, &mut self.meter, host);
        let mut scope = Scope {
            options: &self.options,
            locals: &self.locals,
        };
        let val = match exe.natives[site.at()] {
            Some(body) => body(&mut cx, &mut scope, args)?,
            None => {
                let program = exe.program();
                let op = program.sites[site.at()].op as usize;
                let Some(atom) = &exe.atoms[op] else {
                    return Err(Fault::unknown_atom(program.text(program.ops[op].name)));
                };
                match call_atom(&mut cx, &mut scope, atom, args)? {
                    Some(val) => val,
                    None => return Ok(false),
                }
            }
        };
        self.stack[window + dst.at()] = val.by_parts();
        if self.locals.bytes() > self.locals_counted {
            self.count_kept();
        }
        Ok(true)
    }

    /// Pushes a frame for a helper; its arguments become its first registers.
    #[inline(never)]
    pub(super) fn enter_helper(
        &mut self,
        exe: &Executable,
        dst: Reg,
        base: Reg,
        callee: FunctionIdx,
    ) -> Result<(), Fault> {
        let caller = self.frame();
        let f = &exe.program().functions[caller.function as usize];
        let callee_f = &exe.program().functions[callee.at()];
        if caller.helper_depth == MAX_HELPER_DEPTH {
            return Err(too_deep(exe, callee_f));
        }
        let from = caller.base as usize + base.at();
        let to = caller.base as usize + frame_size(f);
        let size = frame_size(callee_f);
        let counted = self.count_frame(size, 0)?;
        if let Err(fault) = clear_frame(&mut self.stack, to, size) {
            self.heap.sub_external(counted);
            return Err(fault);
        }
        self.meter.did(size);
        for i in 0..callee_f.params as usize {
            self.stack[to + i] = self.stack[from + i].by_parts();
        }
        self.push_frame(Frame {
            program: caller.program,
            function: callee.0,
            kind: FrameKind::Helper,
            counted,
            base: to as u32,
            pc: 0,
            dst,
            precise: self.tracer.is_some(),
            helper_depth: caller.helper_depth + 1,
            agent_depth: caller.agent_depth,
        });
        Ok(())
    }

    /// Ends a helper's frame with the value of a register for its caller. Returns whether the
    /// caller runs in precise mode.
    #[inline(never)]
    pub(super) fn leave_helper(&mut self, src: Reg) -> bool {
        let frame = self.frame();
        self.pop_frame();
        let Some(top) = self.frames.last_mut() else {
            return false;
        };
        top.pc += 1;
        let (from, to) = (
            frame.base as usize + src.at(),
            top.base as usize + frame.dst.at(),
        );
        self.stack[to] = self.stack[from].by_parts();
        top.precise
    }

    /// Counts a frame against the heap's ceiling (D20). Frames within the register window are
    /// free: their number is limited and small.
    pub(super) fn count_frame(&mut self, size: usize, program: usize) -> Result<usize, Fault> {
        let slots = size.saturating_sub(WINDOW) * size_of::<Val>();
        let counted = slots + program;
        if counted > 0 {
            self.heap.add_external(counted)?;
        }
        Ok(counted)
    }

    /// Pops the top frame, with the program loaded for it.
    pub(super) fn pop_frame(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.heap.sub_external(frame.counted);
            if matches!(frame.kind, FrameKind::Code | FrameKind::Agent) {
                self.programs.truncate(frame.program as usize);
                self.prepaid = None;
            }
        }
    }

    pub(super) fn push_frame(&mut self, frame: Frame) {
        self.frames.push(frame);
        if let Some(tracer) = &mut self.tracer {
            tracer.enter_frame();
        }
    }

    /// Ends the top frame's function with a value.
    pub(super) fn leave(&mut self, val: Val, host: &dyn Host) {
        // All instructions up to `Ret` are paid; none after it runs.
        self.refund();
        if self.tracer.is_some() {
            let frame = self.frame();
            let exe = self.program_of(frame).0.clone();
            let f = &exe.program().functions[frame.function as usize];
            self.trace_returned(f, &exe, host);
        }
        let frame = self.frame();
        if frame.kind == FrameKind::Main && self.keeps {
            self.kept = val;
            return self.end_ok(Value::Undefined);
        }
        if frame.kind == FrameKind::Main {
            match self.result(val, host) {
                Ok(result) => self.end_ok(result),
                Err(fault) => {
                    self.set_precise(true);
                    self.raise(fault, host);
                }
            }
            return;
        }
        self.pop_frame();
        self.answer(frame.dst, val);
    }

    /// Converts the result of the run while its heap is intact.
    fn result(&mut self, val: Val, host: &dyn Host) -> Result<Value, Fault> {
        let limits = self.options.limits.boundary;
        let base = self.frame().base as usize;
        // The frame no longer needs its registers.
        self.stack[base] = val;
        self.with_room(host, |machine, host| {
            let mut cx = cx(&mut machine.heap, &mut machine.meter, host);
            let mut copies = Copies::paid_beyond(&mut cx, CROSSING_RESULT);
            copies.to_value(machine.stack[base], &limits)
        })
    }

    /// Gives the waiting instruction its value and advances past it.
    pub(super) fn answer(&mut self, dst: Reg, val: Val) {
        if let Some(top) = self.frames.last_mut() {
            let at = top.base as usize + dst.at();
            top.pc += 1;
            self.stack[at] = val.by_parts();
        }
    }

    /// Makes a call of an asynchronous atom, for which the run waits.
    pub(super) fn host_call(
        &mut self,
        dst: Reg,
        base: Reg,
        n: Count,
        site: SiteIdx,
        host: &dyn Host,
    ) -> Result<Request, Fault> {
        let (request, lent) = self.request(base, n, site, host)?;
        let price = self.atom_of(&request).sig.charged_by_machine();
        self.call = Some(WaitingCall {
            dst,
            input: Reg(base.0.saturating_add(1)),
            lent,
            price: price.map(|(price, _)| price),
        });
        Ok(request)
    }

    /// Creates a call of an asynchronous atom with copies of its inputs. Also returns the
    /// bytes counted for them until it ends.
    pub(super) fn request(
        &mut self,
        base: Reg,
        n: Count,
        site: SiteIdx,
        host: &dyn Host,
    ) -> Result<(Request, usize), Fault> {
        let frame = self.frame();
        let (exe, program, _) = self.program_of(frame);
        let op = program.sites[site.at()].op;
        let Some(atom) = &exe.atoms[op as usize] else {
            let name = program.ops[op as usize].name;
            return Err(Fault::unknown_atom(program.text(name)));
        };
        let name = atom.sig.name.clone();
        let from = frame.base as usize + base.at();
        let limits = self.options.limits.boundary;
        let mut args = Vec::with_capacity(n.at());
        let lent = self.with_room(host, |machine, host| {
            let mut cx = cx(&mut machine.heap, &mut machine.meter, host);
            let mut copies = Copies::paid(&mut cx);
            args.clear();
            for val in &machine.stack[from..from + n.at()] {
                args.push(copies.to_value(*val, &limits)?);
            }
            let lent = copies.bytes();
            drop(copies);
            machine.heap.add_external(lent)?;
            Ok(lent)
        })?;
        match &self.options.account {
            None => self.calls += 1,
            Some(account) => {
                if let Err(exhausted) = account.spend(Spend::CALL) {
                    self.heap.sub_external(lent);
                    return Err(Fault::coded(ErrorCode::Budget, exhausted.to_string()));
                }
            }
        }
        Ok((self.request_of((op, name), args, host.now_ms()), lent))
    }

    /// Creates a call of an op of the running program with these inputs.
    pub(super) fn request_of(
        &mut self,
        (op, name): (u32, Cow<'static, str>),
        args: Vec<Value>,
        now_ms: f64,
    ) -> Request {
        let signal = self.options.signal.clone();
        let cancelled = Cancelled::by(self.flag.take().unwrap_or_default(), signal);
        let fuel_left = Fuel::from_micro(self.fuel_at_call().max(0));
        Request {
            call: HostCall::from(CallParts {
                op: name,
                args,
                options: Arc::clone(&self.options),
                locals: self.locals.share(),
                fuel_left,
                depth: self.options.depth + self.frame().agent_depth,
                cancelled,
                now_ms,
                waited_ms: 0.0,
                deadline: None,
                id: CallId::default(),
                events: self.options.events.clone(),
            }),
            op,
        }
    }

    /// The atom of a call by the top frame.
    #[inline]
    pub fn atom_of(&self, request: &Request) -> &AtomDef {
        let program = self.frames.last().map_or(0, |frame| frame.program);
        self.programs[program as usize].exe.atom(request.op)
    }

    /// Keeps the flag of an answered call for the next one.
    pub(crate) fn reuse(&mut self, flag: CancelFlag) {
        self.flag = flag.is_free().then_some(flag);
    }

    /// The time limit of one execution of an atom (D22).
    pub fn timeout_of(&self, sig: &a99_core::sig::AtomSig) -> a99_core::sig::AtomTimeout {
        let given = match self.options.timeouts.is_empty() {
            true => None,
            false => self.options.timeouts.get(&*sig.name).copied(),
        };
        given.unwrap_or(sig.timeout)
    }

    /// Delivers the answer of an asynchronous call. If the answer is a program to run,
    /// returns the next request.
    pub fn deliver(
        &mut self,
        answer: Result<HostReply, AtomError>,
        host: &dyn Host,
    ) -> Option<Step> {
        let WaitingCall {
            dst,
            input,
            lent,
            price,
        } = self.call.take()?;
        // The call's future is gone, and its inputs with it.
        self.heap.sub_external(lent);
        if self.outcome.is_some() {
            return None;
        }
        self.grow_stack();
        // A host that always answers at once must still let others run.
        self.meter.did(HOST_CALL_WORK);
        if self.pay_for_calls(std::slice::from_ref(&answer)) {
            self.raise(Fault::OutOfFuel, host);
            return None;
        }
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                // Text of the host crosses the boundary like its values, before it is copied.
                let mut cx = cx(&mut self.heap, &mut self.meter, host);
                let limits = &self.options.limits.boundary;
                let checked = convert::check_text(&mut cx, error.message.as_bytes(), limits);
                let fault = checked.err().unwrap_or_else(|| error.into());
                self.raise(fault, host);
                return None;
            }
        };
        if let Err(fault) = self.count_locals(host) {
            self.raise(fault, host);
            return None;
        }
        let limits = self.options.limits.boundary;
        let mut copy = |machine: &mut Machine, host: &dyn Host| {
            let mut cx = cx(&mut machine.heap, &mut machine.meter, host);
            let answer = convert::from_answer(&mut cx, &reply.value.0, &limits)?;
            if let Some(price) = price {
                builtins::charge_answer(&mut cx, price, answer)?;
            }
            Ok(answer)
        };
        let before = self.meter.mark();
        let mut made = self.with_room(host, &mut copy);
        if matches!(made, Err(Fault::OutOfFuel)) && self.frames.iter().any(|f| !f.precise) {
            // Prepaid fuel of callers belongs to the budget.
            self.meter.back_to(before);
            self.settle_fuel();
            made = self.with_room(host, &mut copy);
        }
        let failed = match made {
            Ok(program) if reply.run_inline => {
                let frame = self.frame();
                let input = self.stack[frame.base as usize + input.at()];
                match self.inline_reply(dst, program, input, host) {
                    Ok(step) => return Some(step),
                    Err(fault) => fault,
                }
            }
            Ok(val) => {
                self.answer(dst, val);
                return None;
            }
            Err(fault) => fault,
        };
        self.raise(failed, host);
        None
    }

    /// Pays the charges of ended calls, failed ones included. Returns whether the fuel is
    /// exhausted; prepaid work is refunded then.
    pub(super) fn pay_for_calls(&mut self, answers: &[Result<HostReply, AtomError>]) -> bool {
        let charged = self.locals.take_charges();
        let used = |answer: &Result<HostReply, AtomError>| answer.as_ref().ok()?.fuel_used;
        let mut used = answers.iter().filter_map(used).peekable();
        if charged == 0 && used.peek().is_none() {
            return false;
        }
        self.charge_used(charged);
        used.for_each(|used| self.charge_used(used.micro()));
        if self.meter.fuel > 0 {
            return false;
        }
        self.settle_fuel();
        self.meter.fuel <= 0
    }

    /// Counts memory that native atoms keep for the run. It is already held: a full run fails
    /// at its next allocation.
    #[cold]
    pub(super) fn count_kept(&mut self) {
        let now = self.locals.bytes();
        self.heap
            .force_external(now.saturating_sub(self.locals_counted));
        self.locals_counted = now;
    }

    /// Counts memory that atoms keep for the run (D20).
    pub(super) fn count_locals(&mut self, host: &dyn Host) -> Result<(), Fault> {
        let now = self.locals.bytes();
        let more = now.saturating_sub(self.locals_counted);
        if more > 0 {
            if self.heap.check(more).is_err() {
                self.compact(true, host)?;
                if !self.pay_compaction() {
                    return Err(Fault::OutOfFuel);
                }
            }
            self.heap.add_external(more)?;
            self.locals_counted = now;
        }
        Ok(())
    }
}

#[cold]
fn too_deep(exe: &Executable, callee: &Function) -> Fault {
    let name = wtf8_to_string_lossy(exe.program().const_text(ConstIdx(callee.name)));
    Fault::throw(format!(
        "Maximum helper call depth ({MAX_HELPER_DEPTH}) exceeded — likely infinite recursion in \
         '{name}'"
    ))
}
