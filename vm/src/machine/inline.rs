//! Programs loaded at run time: `runCode`, and `agentRun` of a program.

use super::{
    Frame, FrameKind, LoadRequest, LoadedProgram, Machine, Step, Waiting, clear_frame, frame_size,
};
use crate::convert::{self, BoundaryLimits, Copies};
use crate::heap::Val;
use crate::helpers::Extent;
use crate::link::Executable;
use crate::native::{Cx, Fault, Host};
use a99_core::costs::{BOTH, CostModel};
use a99_core::program::{CONST_FLAG, ConstIdx, Count, Location, NamesIdx, Reg, SiteIdx};
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum bytes per element or member of a program before code generation: as a value of the
/// host and in a document.
const READ_NODE_BYTES: usize = 128;

/// Maximum bytes per UTF-16 unit of a program's texts, as for [`READ_NODE_BYTES`].
const READ_UNIT_BYTES: usize = 6;

/// Maximum JSON size in bytes of a program loaded at run time, equal to that of a stored one.
/// It bounds the time between two polls of abort and deadline during compilation.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// Work per variable that the code can access.
const NAME_WORK: usize = 16;

/// Work to compile a node.
const COMPILE_NODE_WORK: usize = 256;

/// A requested program.
pub(super) struct Pending {
    dst: Reg,
    kind: FrameKind,
    args: Val,
    /// The accessible variables of the caller: name and value.
    outer: Vec<Outer>,
    /// Bytes of its source and of the parsed forms, which count against the heap until it is
    /// loaded.
    lent: usize,
}

/// A variable of the caller.
struct Outer {
    name: Text,
    val: Val,
    constant: bool,
}

impl Machine {
    /// `runCode`: the transpiled program in `base`, its arguments after it.
    pub(super) fn run_code(
        &mut self,
        dst: Reg,
        base: Reg,
        names: NamesIdx,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        let frame = self.frame();
        self.check_depth("runCode recursion limit exceeded")?;
        let at = frame.base as usize + base.at();
        let (code, args) = (self.stack[at], self.stack[at + 1]);
        let is_seq = match code {
            Val::Obj(r) => match self.heap.get_text(r, b"op") {
                Some(Val::Str(op)) => self.heap.bytes(op) == b"seq",
                _ => false,
            },
            _ => false,
        };
        if !is_seq {
            return Err(Fault::throw("Transpiled code must be a seq node"));
        }
        let (_, program, f) = self.program_of(frame);
        let mut outer: Vec<Outer> = Vec::new();
        let mut by_name: HashMap<u32, usize> = HashMap::new();
        let mut last = None;
        for (name, location) in &program.names[names.at()] {
            let val = match location {
                Location::Reg(r) => self.stack[frame.base as usize + *r as usize],
                Location::Slot(s) => {
                    let slots = frame.base as usize + frame_size(f) - f.slots as usize;
                    self.stack[slots + *s as usize]
                }
            };
            let text = program.const_text(ConstIdx(*name));
            if text == CONST_FLAG {
                if let Some(last) = last.and_then(|at: usize| outer.get_mut(at)) {
                    last.constant |= matches!(val, Val::Bool(true));
                }
                continue;
            }
            // Inner scopes come later and shadow outer ones if they are bound; a constant
            // further out stays constant.
            last = None;
            if matches!(val, Val::Unbound) {
                continue;
            }
            // In a forged file, equal texts may have several ids; its names then occur twice.
            let at = *by_name.entry(*name).or_insert(outer.len());
            match outer.get_mut(at) {
                Some(before) => before.val = val,
                None => outer.push(Outer {
                    name: Text::from_wtf8(text.to_vec()),
                    val,
                    constant: false,
                }),
            }
            last = Some(at);
        }
        let table = program.names[names.at()].len();
        self.meter.did(table * NAME_WORK);
        self.ask(dst, FrameKind::Code, code, args, outer, host)
    }

    /// `agentRun`: a program as data runs inline; other values become a call.
    pub(super) fn agent_run(
        &mut self,
        dst: Reg,
        base: Reg,
        site: SiteIdx,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        self.check_depth("Agent depth limit exceeded")?;
        let frame = self.frame();
        let at = frame.base as usize + base.at();
        let (id, input) = (self.stack[at], self.stack[at + 1]);
        if let Val::Obj(r) = id
            && self.heap.get_text(r, b"op").is_some()
        {
            return self.ask(dst, FrameKind::Agent, id, input, Vec::new(), host);
        }
        Ok(Step::Call(self.host_call(
            dst,
            base,
            Count(2),
            site,
            host,
        )?))
    }

    pub(super) fn check_depth(&self, what: &str) -> Result<(), Fault> {
        let max = self.options.limits.agent_depth;
        if self.options.depth + self.frame().agent_depth >= max {
            return Err(Fault::throw(format!("{what} (max {max}).")));
        }
        Ok(())
    }

    /// Requests the compilation of a program; its size is paid first.
    fn ask(
        &mut self,
        dst: Reg,
        kind: FrameKind,
        program: Val,
        args: Val,
        outer: Vec<Outer>,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        self.settle_fuel();
        convert::charge_read(
            &mut super::cx(&mut self.heap, &mut self.meter, host),
            program,
            BOTH,
        )?;
        let given = &self.options.limits.boundary;
        let limits = BoundaryLimits {
            max_bytes: given.max_bytes.min(MAX_PROGRAM_BYTES),
            ..*given
        };
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let mut copies = Copies::new(&mut cx);
        let value = copies.to_value(program, &limits)?;
        let copied = copies.bytes();
        drop(copies);
        let exe = self.root_of_helpers();
        let (needed, lent) = match self.lend(&exe, &value, outer.len(), copied, host) {
            Ok(lent) => lent,
            Err(fault) => {
                // All prepaid fuel is settled: a lack of fuel ends the run.
                let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
                return Err(cx.abandon(value, fault));
            }
        };
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let value = with_helpers(&mut cx, value, &exe, &needed)?;
        let names = outer.iter().map(|o| (o.name.clone(), o.constant)).collect();
        self.waiting = Some(Waiting::Load(Box::new(Pending {
            dst,
            kind,
            args,
            outer,
            lent,
        })));
        Ok(Step::Load(Box::new(LoadRequest {
            program: value,
            outer: names,
            room: self.heap.room(),
        })))
    }

    /// The program whose helpers all others share: the run's main program.
    fn root_of_helpers(&self) -> Arc<Executable> {
        self.programs[0].exe.clone()
    }

    /// Pays for a program and counts the helpers it needs and its bytes.
    fn lend(
        &mut self,
        exe: &Executable,
        program: &Value,
        outer: usize,
        copied: usize,
        host: &dyn Host,
    ) -> Result<(Vec<u32>, usize), Fault> {
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let (needed, mut extent) = exe.helpers().needed_by(&mut cx, program)?;
        extent.elements = extent.elements.saturating_add(outer);
        self.pay_for_compiling(extent, host)?;
        let lent = (extent.elements.saturating_mul(READ_NODE_BYTES))
            .saturating_add(extent.units.saturating_mul(READ_UNIT_BYTES))
            .saturating_add(copied);
        self.heap.add_external(lent)?;
        Ok((needed, lent))
    }

    /// Charges for compilation, and polls the host before a long one.
    fn pay_for_compiling(&mut self, extent: Extent, host: &dyn Host) -> Result<(), Fault> {
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        if cx.meter.model == CostModel::Metered {
            cx.pay(extent.price())?;
        }
        let work = extent.elements.saturating_mul(COMPILE_NODE_WORK);
        cx.work(i64::try_from(work).unwrap_or(i64::MAX))
    }

    /// Runs the value of a reply as a program instead of the call.
    pub(super) fn inline_reply(
        &mut self,
        dst: Reg,
        program: Val,
        args: Val,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        self.ask(dst, FrameKind::Agent, program, args, Vec::new(), host)
    }

    /// Answers [`Step::Load`] and takes its request back; an error is visible to the program.
    pub fn load(
        &mut self,
        loaded: Result<Arc<Executable>, Text>,
        request: LoadRequest,
        host: &dyn Host,
    ) {
        let Some(Waiting::Load(pending)) = self.waiting.take() else {
            return;
        };
        let discarded = match host.stop() {
            Some(reason) => {
                self.heap.leave(request.program);
                Err(Fault::Stop(reason))
            }
            None => {
                let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
                cx.discard(vec![request.program])
            }
        };
        self.heap.sub_external(pending.lent);
        // If the run must stop, the loaded program is not used.
        let wanted = discarded.and_then(|()| host.stop().map_or(Ok(()), |r| Err(Fault::Stop(r))));
        if wanted.is_err() || self.outcome.is_some() {
            // Its functions are freed on another thread.
            let _ = loaded.map(super::release);
            if self.outcome.is_none()
                && let Err(fault) = wanted
            {
                self.raise(fault, host);
            }
            return;
        }
        let entered = match loaded {
            Ok(exe) => self.enter_program(&exe, *pending, host),
            Err(message) => Err(super::thrown(
                a99_core::error::ErrorCode::Program,
                message.as_bytes(),
            )),
        };
        if let Err(fault) = entered {
            self.raise(fault, host);
        }
    }

    fn enter_program(
        &mut self,
        exe: &Arc<Executable>,
        pending: Pending,
        host: &dyn Host,
    ) -> Result<(), Fault> {
        let caller = self.frame();
        let f = self.program_of(caller).2;
        let base = caller.base as usize + frame_size(f);
        let program = exe.program();
        let main = &program.functions[0];
        let size = frame_size(main);
        let counted = self.count_frame(size, exe.bytes())?;
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let made = super::args::guest_args(&mut cx, program, pending.args)
            .and_then(|args| clear_frame(&mut self.stack, base, size).map(|()| args));
        let args = match made {
            Ok(args) => args,
            Err(fault) => {
                self.heap.sub_external(counted);
                return Err(fault);
            }
        };
        self.meter.did(size + program.functions[0].code.len());
        if let Some(scope) = main.scopes.first() {
            for (i, Outer { val, .. }) in pending.outer.iter().enumerate() {
                let location = scope.vars.get(i).map(|(_, location)| *location);
                match location {
                    Some(Location::Reg(r)) => self.stack[base + r as usize] = *val,
                    Some(Location::Slot(s)) => {
                        self.stack[base + size - main.slots as usize + s as usize] = *val;
                    }
                    None => {}
                }
            }
        }
        let own_prices = super::prices::own_prices(exe, &self.options);
        self.programs.push(LoadedProgram {
            exe: exe.clone(),
            main: false,
            own_prices,
            args,
        });
        self.push_frame(Frame {
            program: self.programs.len() as u32 - 1,
            function: 0,
            kind: pending.kind,
            counted,
            base: base as u32,
            pc: 0,
            dst: pending.dst,
            precise: self.tracer.is_some(),
            helper_depth: 0,
            agent_depth: caller.agent_depth + 1,
        });
        Ok(())
    }
}

/// Gives an inline program the helpers of its caller; its own root keys are ignored (language
/// section 1.1).
fn with_helpers(
    cx: &mut Cx<'_>,
    program: Value,
    exe: &Executable,
    needed: &[u32],
) -> Result<Value, Fault> {
    let Value::Object(mut root) = program else {
        return Ok(program);
    };
    let helpers = match exe.helpers().value(cx, exe.program(), needed) {
        Ok(helpers) => helpers,
        Err(fault) => return Err(cx.abandon(Value::Object(root), fault)),
    };
    match helpers {
        Some(helpers) => {
            root.insert("helpers", helpers);
        }
        None => {
            root.remove("helpers");
        }
    }
    root.remove("inputSchema");
    Ok(Value::Object(root))
}
