//! Programs that arrive at run time: `runCode`, and `agentRun` of a program.

use super::{Frame, FrameKind, LoadRequest, Machine, Step, Unit, Waiting, clear_frame, frame_size};
use crate::convert::{self, BoundaryLimits, Copies};
use crate::heap::Val;
use crate::link::Executable;
use crate::native::{Fault, Host};
use a99_core::costs::BOTH;
use a99_core::program::{CONST_FLAG, Home};
use a99_core::text::Text;
use a99_core::value::Value;
use std::sync::Arc;

/// Estimated bytes that a node of a program takes while it runs: the node, its
/// instructions, charges and places.
const PROGRAM_NODE_BYTES: usize = 256;

/// Bytes of JSON of a program that arrives at run time, as large as a stored
/// one may be: compiling cannot be interrupted, so this bounds how long an
/// abort or a deadline may have to wait for it.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// Work that compiling a node stands for.
const COMPILE_NODE_WORK: usize = 256;

/// A program that was asked for.
pub(super) struct Pending {
    dst: u8,
    kind: FrameKind,
    /// Its arguments.
    args: Val,
    /// The caller's variables that it sees: name and value.
    outer: Vec<Outer>,
    /// Bytes of its source, which count against the heap until it is loaded.
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
        dst: u8,
        base: u8,
        names: u32,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        let frame = self.frame();
        self.check_depth("runCode recursion limit exceeded")?;
        let at = frame.base as usize + base as usize;
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
        let mut seen = false;
        for (name, home) in &program.names[names as usize] {
            let val = match home {
                Home::Reg(r) => self.stack[frame.base as usize + *r as usize],
                Home::Slot(s) => {
                    let slots = frame.base as usize + frame_size(f) - f.slots as usize;
                    self.stack[slots + *s as usize]
                }
            };
            let name = program.const_text(*name);
            if name == CONST_FLAG {
                if let (true, Some(last)) = (seen, outer.last_mut()) {
                    last.constant |= matches!(val, Val::Bool(true));
                }
                continue;
            }
            // Inner scopes come later and hide outer ones where they are bound;
            // a constant further out still is one.
            seen = !matches!(val, Val::Unbound);
            if seen {
                let name = Text::from_wtf8(name.to_vec());
                let before = outer
                    .iter()
                    .position(|o| o.name == name)
                    .map(|i| outer.remove(i));
                outer.push(Outer {
                    name,
                    val,
                    constant: before.is_some_and(|o| o.constant),
                });
            }
        }
        self.ask(dst, FrameKind::Code, code, args, outer, host)
    }

    /// `agentRun`: a program as data runs inline; anything else is a call.
    pub(super) fn agent_run(
        &mut self,
        dst: u8,
        base: u8,
        site: u32,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        self.check_depth("Agent depth limit exceeded")?;
        let frame = self.frame();
        let at = frame.base as usize + base as usize;
        let (id, input) = (self.stack[at], self.stack[at + 1]);
        if let Val::Obj(r) = id
            && self.heap.get_text(r, b"op").is_some()
        {
            return self.ask(dst, FrameKind::Agent, id, input, Vec::new(), host);
        }
        Ok(Step::Call(self.host_call(dst, base, 2, site, host)?))
    }

    fn check_depth(&self, what: &str) -> Result<(), Fault> {
        let max = self.options.limits.agent_depth;
        if self.options.depth + self.frame().agent_depth >= max {
            return Err(Fault::throw(format!("{what} (max {max}).")));
        }
        Ok(())
    }

    /// Asks for a program to be compiled; its size is paid first.
    fn ask(
        &mut self,
        dst: u8,
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
        let lent = copies.bytes();
        drop(copies);
        self.heap.add_external(lent)?;
        let value = self.with_helpers(value);
        let names = outer.iter().map(|o| (o.name.clone(), o.constant)).collect();
        self.waiting = Some(Waiting::Load(Pending {
            dst,
            kind,
            args,
            outer,
            lent,
        }));
        Ok(Step::Load(Box::new(LoadRequest {
            program: value,
            outer: names,
        })))
    }

    /// An inline program has the helpers of its caller; root keys of its own
    /// are ignored (language section 1.1).
    fn with_helpers(&self, program: Value) -> Value {
        let Value::Object(mut root) = program else {
            return program;
        };
        let program = self.program_of(self.frame()).1;
        let helpers = program.helpers.clone();
        match helpers.or_else(|| program.source.root_member("helpers")) {
            Some(helpers) => {
                root.insert("helpers", helpers);
            }
            None => {
                root.remove("helpers");
            }
        }
        root.remove("inputSchema");
        Value::Object(root)
    }

    /// Runs the value of a reply as a program in place of the call.
    pub(super) fn inline_reply(
        &mut self,
        dst: u8,
        program: Val,
        args: Val,
        host: &dyn Host,
    ) -> Result<Step, Fault> {
        self.ask(dst, FrameKind::Agent, program, args, Vec::new(), host)
    }

    /// Answers [`Step::Load`]; an error is what the program sees.
    pub fn load(&mut self, loaded: Result<Arc<Executable>, Text>, host: &dyn Host) {
        let Some(Waiting::Load(pending)) = self.waiting.take() else {
            return;
        };
        self.heap.sub_external(pending.lent);
        if self.outcome.is_some() {
            return;
        }
        let entered = match loaded {
            Ok(exe) => self.enter_program(&exe, pending, host),
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
        let held = program.source.node_count() * PROGRAM_NODE_BYTES + 2 * program.text.len();
        let counted = self.count_frame(size, held)?;
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let made = super::start::guest_args(&mut cx, program, pending.args)
            .and_then(|args| clear_frame(&mut self.stack, base, size).map(|()| args));
        let args = match made {
            Ok(args) => args,
            Err(fault) => {
                self.heap.sub_external(counted);
                return Err(fault);
            }
        };
        self.meter
            .did(size + program.source.node_count() * COMPILE_NODE_WORK);
        if let Some(scope) = main.scopes.first() {
            for (i, Outer { val, .. }) in pending.outer.iter().enumerate() {
                let home = scope.vars.get(i).map(|(_, home)| *home);
                match home {
                    Some(Home::Reg(r)) => self.stack[base + r as usize] = *val,
                    Some(Home::Slot(s)) => {
                        self.stack[base + size - main.slots as usize + s as usize] = *val;
                    }
                    None => {}
                }
            }
        }
        let prices = super::prices::unit_prices(exe, &self.options);
        self.units.push(Unit {
            exe: exe.clone(),
            main: false,
            prices,
            args,
        });
        self.push_frame(Frame {
            unit: self.units.len() as u32 - 1,
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
