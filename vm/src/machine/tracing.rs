//! Tracing of steps.
//!
//! A step begins when its price is charged and ends when execution leaves its code range.
//! Only precise mode observes both, so a traced run stays in it from start to end.

use super::{Machine, Request};
use crate::atom::Answered;
use crate::convert::{BoundaryLimits, Copies};
use crate::heap::saved::{ValCheck, put_vals};
use crate::heap::{Val, Visit};
use crate::link::Executable;
use crate::options::RunOptions;
use crate::pace::{Host, StopReason};
use crate::trace::{
    CALL_BYTES, TraceCall, TraceCallEnd, TraceEvent, TraceLog, TraceSink, TraceStep, load_calls,
    save_call,
};
use crate::wire::{Reader, Taken, Writer};
use a99_core::fuel::Fuel;
use a99_core::program::{ConstIdx, Function, Location, Op, Step};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Work per emitted event.
const EVENT_WORK: usize = 512;

/// A step that has begun and not ended.
#[derive(Debug)]
struct OpenStep {
    step: u32,
    fuel: i64,
    vars: Vec<Val>,
    calls: Vec<TraceCall>,
}

/// The event sink in addition to the log.
struct Stream(Arc<Box<dyn TraceSink>>);

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// The trace under construction.
#[derive(Debug)]
pub(super) struct Tracer {
    /// The events for the outcome, if they are requested.
    log: Option<TraceLog>,
    stream: Option<Stream>,
    broken: bool,
    sequence: u64,
    counted: usize,
    open: Vec<OpenStep>,
    /// Number of open steps below each frame.
    frames: Vec<usize>,
    /// Whether the failed charge was a step's own price: its event then has no error.
    pub silent: bool,
}

impl Tracer {
    /// The tracer for a run with these options, if they need one.
    pub(crate) fn of(options: &RunOptions) -> Option<Box<Tracer>> {
        let stream = options.trace_to.clone().map(Stream);
        (options.trace || stream.is_some()).then(|| {
            Box::new(Tracer {
                log: options
                    .trace
                    .then(|| TraceLog::new(options.limits.trace_bytes)),
                stream,
                broken: false,
                sequence: 0,
                counted: 0,
                open: Vec::new(),
                frames: Vec::new(),
                silent: false,
            })
        })
    }

    fn next(&mut self) -> u64 {
        let number = self.sequence;
        self.sequence += 1;
        number
    }

    /// Calls the sink; host code may panic or do anything else there.
    fn tell(&mut self, what: impl FnOnce(&dyn TraceSink)) {
        if let Some(Stream(sink)) = &self.stream
            && catch_unwind(AssertUnwindSafe(|| what(&***sink))).is_err()
        {
            self.stream = None;
            self.broken = true;
        }
    }

    /// Writes the trace so far.
    pub(super) fn save(&self, w: &mut Writer) {
        w.u64(self.sequence);
        if w.is_some(self.log.as_ref())
            && let Some(log) = &self.log
        {
            log.save(w);
        }
        w.len(self.open.len());
        for open in &self.open {
            w.u32(open.step);
            w.i64(open.fuel);
            put_vals(w, &open.vars);
            w.len(open.calls.len());
            open.calls.iter().for_each(|call| save_call(call, w));
        }
        w.len(self.frames.len());
        self.frames.iter().for_each(|floor| w.len(*floor));
        w.bool(self.silent);
    }

    /// Reads the trace for frames with these functions; returns the bytes it counts.
    pub(super) fn load(
        &mut self,
        r: &mut Reader<'_>,
        functions: &[&Function],
        check: &ValCheck<'_>,
    ) -> Taken<usize> {
        self.sequence = r.count()?;
        self.counted = match (r.bool()?, &mut self.log) {
            (true, Some(log)) => log.load(r)?,
            (false, None) => 0,
            _ => return r.wrong("a trace is kept that is not, or is not kept"),
        };
        let mut held = self.counted;
        for _ in 0..r.len(20, size_of::<OpenStep>())? {
            let open = OpenStep {
                step: r.u32()?,
                fuel: r.i64()?,
                vars: check.vals(r)?,
                calls: load_calls(r)?,
            };
            held += open.vars.len() * size_of::<Val>() + open.calls.len() * CALL_BYTES;
            self.open.push(open);
        }
        for _ in 0..r.len(4, size_of::<usize>())? {
            self.frames.push(r.u32()? as usize);
        }
        self.silent = r.bool()?;
        let mut floor = 0;
        if self.frames.len() != functions.len() || self.frames.first() != Some(&0) {
            return r.wrong("the trace has other frames than the run");
        }
        for (at, f) in functions.iter().enumerate() {
            let end = self.frames.get(at + 1).copied();
            let end = end.unwrap_or(self.open.len());
            let Some(steps) = self.open.get(floor..end) else {
                return r.wrong("a frame of the trace begins nowhere");
            };
            let fits = |open: &OpenStep| {
                let step = f.steps.get(open.step as usize);
                let vars = |step: &Step| f.scopes[step.scope as usize].vars.len();
                step.is_some_and(|step| open.vars.is_empty() || open.vars.len() == vars(step))
            };
            if !steps.iter().all(fits) {
                return r.wrong("a step of the trace is none of its function");
            }
            floor = end;
        }
        Ok(held)
    }

    pub(crate) fn enter_frame(&mut self) {
        self.frames.push(self.open.len());
    }

    pub(crate) fn roots(&mut self, visit: &mut Visit<'_>) -> Result<(), StopReason> {
        self.open
            .iter_mut()
            .flat_map(|o| &mut o.vars)
            .try_for_each(visit)
    }

    /// The events, if they were kept.
    pub(crate) fn into_events(self, warnings: &mut Vec<Text>) -> Option<Vec<TraceEvent>> {
        if self.broken {
            let text = "trace: its sink panicked and was not called again";
            warnings.push(Text::from(text));
        }
        let log = self.log?;
        if log.dropped() > 0 {
            let n = log.dropped();
            warnings.push(Text::from(format!(
                "trace: the first {n} events were dropped to stay within the limit"
            )));
        }
        Some(log.into_events())
    }
}

/// Whether the instruction at `pc` failed to bind a step's value because the variable is
/// constant. Only binding follows it in the step, which has its value then, although it
/// fails.
fn fails_to_bind(f: &Function, step: &Step, pc: u32) -> bool {
    let binds = |op: &Op| {
        matches!(
            op,
            Op::Nop {}
                | Op::Fuel { .. }
                | Op::CheckConst { .. }
                | Op::Mov { .. }
                | Op::MovDefined { .. }
                | Op::LoadK { .. }
                | Op::SlotLoad { .. }
                | Op::SlotStore { .. }
                | Op::Jmp { .. }
                | Op::Ret { .. }
        )
    };
    let rest = f.code.get(pc as usize..step.end as usize);
    rest.is_some_and(|rest| {
        matches!(rest.first(), Some(Op::CheckConst { .. })) && rest.iter().all(binds)
    })
}

/// Approximate memory of a value in bytes; partial if the host stops the run.
fn held_bytes(value: &Value, host: &dyn Host) -> usize {
    let mut bytes = 0;
    // A stop takes effect soon after.
    let _ = super::call_all::add_bytes(value, usize::MAX, host, &mut bytes);
    bytes
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepEnd {
    /// With its value, which may have failed to be bound.
    WithValue,
    /// By its own error or that of an inner step.
    Failed,
}

impl Machine {
    /// Whether the top frame runs the main program.
    pub(super) fn in_main_program(&self) -> bool {
        self.programs[self.frame().program as usize].main
    }

    #[inline(always)]
    pub(crate) fn is_traced(&self) -> bool {
        self.tracer.is_some()
    }

    /// Records a call of the top step.
    #[cold]
    pub(crate) fn trace_call(&mut self, request: &Request, host: &dyn Host) {
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let args = request.call.args.iter();
        let call = TraceCall {
            id: request.call.id.clone(),
            op: Text::from(&*request.call.op),
            started: request.call.now_ms,
            bytes_out: args.map(|arg| held_bytes(arg, host)).sum(),
            end: None,
        };
        tracer.tell(|sink| sink.call_started(&call));
        if let Some(open) = tracer.open.last_mut() {
            open.calls.push(call);
            // Released with the step's event; a full run fails at its next allocation.
            self.heap.force_external(CALL_BYTES);
        }
    }

    /// Records the answers to the last calls of the top step.
    #[cold]
    pub(crate) fn trace_answers(&mut self, answers: &[Answered], host: &dyn Host) {
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let mut calls = match tracer.open.last_mut() {
            Some(open) => std::mem::take(&mut open.calls),
            None => return,
        };
        let first = calls.len().saturating_sub(answers.len());
        for (call, answer) in calls[first..].iter_mut().zip(answers) {
            call.end = Some(TraceCallEnd {
                ended: host.now_ms(),
                bytes_in: match answer {
                    Ok(reply) => held_bytes(&reply.value.0, host),
                    Err(error) => error.message.len_bytes(),
                },
                failed: answer.is_err(),
            });
            tracer.tell(|sink| sink.call_ended(call));
        }
        if let Some(open) = tracer.open.last_mut() {
            open.calls = calls;
        }
    }

    /// A variable of the top frame.
    fn location_value(&self, location: Location, slots: usize) -> Val {
        let base = self.frame().base as usize;
        match location {
            Location::Reg(r) => self.stack[base + r as usize],
            Location::Slot(s) => self.stack[slots + s as usize],
        }
    }

    fn slots_at(&self, f: &Function) -> usize {
        self.frame().base as usize + super::frame_size(f) - f.slots as usize
    }

    pub(super) fn trace_begin(&mut self, f: &Function, step: u32) {
        let slots = self.slots_at(f);
        let scope = &f.scopes[f.steps[step as usize].scope as usize];
        // Without room for the previous values of variables, the trace omits their changes
        // (M07).
        let room = scope.vars.len() * size_of::<Val>();
        let vars: Vec<Val> = match self.heap.add_external(room) {
            Ok(()) => scope
                .vars
                .iter()
                .map(|(_, location)| self.location_value(*location, slots))
                .collect(),
            Err(_) => Vec::new(),
        };
        self.meter.did(vars.len());
        let fuel = self.meter.fuel;
        if let Some(tracer) = &mut self.tracer {
            tracer.silent = true;
            tracer.open.push(OpenStep {
                step,
                fuel,
                vars,
                calls: Vec::new(),
            });
        }
    }

    /// Execution reached `pc`: ends steps that do not contain it.
    pub(super) fn trace_reached(
        &mut self,
        f: &Function,
        exe: &Arc<Executable>,
        pc: u32,
        host: &dyn Host,
    ) {
        self.drain_log(host);
        while let Some(open) = self.top_open() {
            let step = &f.steps[open as usize];
            if step.start <= pc && pc < step.end {
                break;
            }
            self.trace_end(f, exe, None, StepEnd::WithValue, host);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.silent = false;
        }
    }

    /// Emits events that atoms wrote.
    fn drain_log(&mut self, host: &dyn Host) {
        for (op, value) in self.locals.take_log() {
            let mut input = Map::new();
            input.insert("message", value.clone());
            let depth = self.tracer.as_ref().map_or(0, |tracer| tracer.open.len());
            let event = TraceEvent {
                sequence: 0,
                depth: depth as u32,
                pointer: None,
                index: None,
                op,
                input: Value::Object(input),
                state_diff: Map::new(),
                result: value,
                error: None,
                fuel_before: self.fuel_left(),
                fuel_after: self.fuel_left(),
                timestamp: a99_ecma::date::to_iso(host.now_ms()),
                calls: Vec::new(),
            };
            self.record(event);
        }
    }

    fn record(&mut self, mut event: TraceEvent) {
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        event.sequence = tracer.next();
        tracer.tell(|sink| sink.event(&event));
        self.keep(event);
    }

    /// Adds an event to the log, if there is one.
    fn keep(&mut self, event: TraceEvent) {
        let size = event.held_bytes();
        self.meter.did(size);
        let Some(log) = self.tracer.as_mut().and_then(|tracer| tracer.log.as_mut()) else {
            return;
        };
        let now = log.push(event, size);
        // The log has its own limit, and its content counts against the run; a run that is
        // already full fails at its next allocation.
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let before = std::mem::replace(&mut tracer.counted, now);
        self.heap.sub_external(before);
        self.heap.force_external(now);
    }

    fn top_open(&self) -> Option<u32> {
        let tracer = self.tracer.as_ref()?;
        let floor = *tracer.frames.last()?;
        (tracer.open.len() > floor)
            .then(|| tracer.open.last().map(|o| o.step))
            .flatten()
    }

    fn trace_end(
        &mut self,
        f: &Function,
        exe: &Arc<Executable>,
        error: Option<Text>,
        ended: StepEnd,
        host: &dyn Host,
    ) {
        let Some(open) = self.tracer.as_mut().and_then(|t| t.open.pop()) else {
            return;
        };
        let held = open.vars.len() * size_of::<Val>() + open.calls.len() * CALL_BYTES;
        self.heap.sub_external(held);
        self.meter.did(open.vars.len() + open.calls.len());
        let program = exe.program();
        let step = &f.steps[open.step as usize];
        let slots = self.slots_at(f);
        let returned = ended == StepEnd::WithValue && step.value != u8::MAX;
        let returned = returned.then(|| self.location_value(Location::Reg(step.value), slots));
        let mut changed = Vec::new();
        for ((name, location), before) in f.scopes[step.scope as usize].vars.iter().zip(&open.vars)
        {
            let now = self.location_value(*location, slots);
            if !matches!(now, Val::Unbound) && !now.is_same(*before, &self.heap) {
                changed.push((program.const_text(ConstIdx(*name)), now));
            }
        }
        // An event too large for the log is not created: its values share the log's room.
        let most = self.options.limits.trace_bytes;
        let limits = BoundaryLimits::default();
        let mut cx = super::cx(&mut self.heap, &mut self.meter, host);
        let mut copies = Copies::new(&mut cx);
        let mut show = |val: Val| {
            let left = most.saturating_sub(copies.bytes());
            copies
                .copy_within(val, &limits, left)
                .unwrap_or_else(|_| Value::from("[not shown]"))
        };
        let mut state_diff = Map::new();
        for (name, now) in changed {
            state_diff.insert(Text::copy_wtf8(name), show(now));
        }
        let result = returned.map_or(Value::Undefined, show);
        drop(copies);
        let (function, is_main) = (self.frame().function as usize, self.in_main_program());
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let ended = TraceStep {
            sequence: tracer.next(),
            depth: tracer.open.len() as u32,
            state_diff: &state_diff,
            result: &result,
            error: error.as_ref(),
            fuel_before: Fuel::from_micro(open.fuel),
            fuel_after: Fuel::from_micro(self.meter.fuel),
            time: host.now_ms(),
            calls: &open.calls,
            exe,
            function,
            step: open.step,
            is_main,
        };
        tracer.tell(|sink| sink.step(&ended));
        self.meter.did(EVENT_WORK);
        if tracer.log.is_some() {
            let event = ended.to_event();
            self.keep(event);
        }
    }

    /// Ends the steps of the top frame that an error leaves, up to the handler's code or all
    /// of them.
    pub(super) fn trace_unwound(
        &mut self,
        f: &Function,
        exe: &Arc<Executable>,
        target: Option<u32>,
        (mut message, out_of_fuel): (Option<Text>, bool),
        host: &dyn Host,
    ) {
        self.drain_log(host);
        let pc = self.frame().pc;
        // Steps that ended just before the failed instruction.
        if !self.tracer.as_ref().is_some_and(|t| t.silent) {
            while let Some(open) = self.top_open() {
                let step = &f.steps[open as usize];
                if step.start <= pc && pc < step.end {
                    break;
                }
                self.trace_end(f, exe, None, StepEnd::WithValue, host);
            }
        }
        let silent = self
            .tracer
            .as_mut()
            .is_some_and(|t| std::mem::take(&mut t.silent));
        if silent && out_of_fuel {
            message = None;
        }
        while let Some(open) = self.top_open() {
            let step = &f.steps[open as usize];
            if target.is_some_and(|pc| step.start <= pc && pc < step.end) {
                return;
            }
            let ended = match &message {
                Some(_) if fails_to_bind(f, step, pc) => StepEnd::WithValue,
                _ => StepEnd::Failed,
            };
            self.trace_end(f, exe, message.take(), ended, host);
        }
        if target.is_none()
            && let Some(tracer) = &mut self.tracer
        {
            tracer.frames.pop();
        }
    }

    /// Ends the steps of a returning function.
    pub(super) fn trace_returned(&mut self, f: &Function, exe: &Arc<Executable>, host: &dyn Host) {
        self.drain_log(host);
        while self.top_open().is_some() {
            self.trace_end(f, exe, None, StepEnd::WithValue, host);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.frames.pop();
        }
    }
}
