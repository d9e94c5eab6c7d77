//! Error handling: from a fault to a handler, or to the end of the run.

use super::{Caught, End, Failed, FrameKind, Machine};
use crate::convert;
use crate::pace::{Fault, Host, Mark, StopReason, Thrown};
use a99_core::error::{ErrorCode, RunError};
use a99_core::program::{ConstIdx, Program};
use a99_core::text::Text;
use a99_core::value::Value;

/// Message of exhausted fuel, the same in every generation.
pub(super) const OUT_OF_FUEL: &str = "Out of Fuel";

/// Length in bytes from which copying a message polls the host.
const LONG_MESSAGE: usize = 64 << 10;

/// The op of errors that concern the whole run.
const RUN: &str = "vm.run";

impl Machine {
    /// Handles an unfinished instruction: retry, raise, or end the run.
    pub(super) fn fault(&mut self, fault: Fault, before: Mark, host: &dyn Host) {
        let frame = self.frame();
        let here = (self.frames.len(), frame.pc);
        match fault {
            Fault::Oom(oom) if self.retried != Some(here) => {
                self.retried = Some(here);
                self.meter.back_to(before);
                self.refund();
                self.skip_charges = true;
                if let Err(reason) = self.compact(true, host) {
                    self.stop(reason);
                } else if self.heap.is_full() {
                    self.raise(Fault::Oom(oom), host);
                } else if let Some(reason) = host.stop() {
                    self.stop(reason);
                } else if !self.pay_compaction() {
                    self.raise(Fault::OutOfFuel, host);
                }
            }
            // Callers may have prepaid fuel too.
            Fault::OutOfFuel if self.frames.iter().any(|f| !f.precise) => {
                self.meter.back_to(before);
                self.settle_fuel();
                self.skip_charges = true;
            }
            fault => self.raise(fault, host),
        }
    }

    /// Raises the failure of an instruction in the top frame.
    pub(super) fn raise(&mut self, fault: Fault, host: &dyn Host) {
        self.skip_charges = false;
        match fault {
            Fault::Stop(reason) => self.stop(reason),
            Fault::Oom(_) => {
                if !self.pay_compaction() {
                    return self.raise(Fault::OutOfFuel, host);
                }
                let error = self.heap_error();
                self.unwind(error, host);
            }
            Fault::OutOfFuel => {
                let error =
                    self.located(ErrorCode::OutOfFuel, OUT_OF_FUEL.as_bytes().to_vec(), None);
                self.unwind(error, host);
            }
            Fault::Throw(thrown) => {
                let Thrown {
                    code,
                    host_code,
                    mut message,
                    help,
                    details,
                    op,
                } = *thrown;
                // The message is copied on its way to a handler, so its length is bounded
                // (M11).
                message.truncate(convert::cut(&message, &self.options.limits.boundary).len());
                // One copy takes as long as a run may continue after a stop.
                if message.len() > LONG_MESSAGE
                    && let Some(reason) = host.stop()
                {
                    return self.stop(reason);
                }
                let is_uncaught = code.is_catchable() && self.is_uncaught();
                // Programs read the same message with and without source.
                let said = is_uncaught.then(|| self.said_in_source(&message)).flatten();
                let mut advice = None;
                if let Some((text, better)) = said {
                    message = text.into_bytes();
                    advice = better;
                }
                // A quota belongs to the step, not to its text.
                let message = if code.is_catchable() {
                    self.wrapped(message)
                } else {
                    message
                };
                // Only observers outside the run see the operands.
                let help = match help.or(advice) {
                    None if is_uncaught => self.found(code),
                    given => given,
                };
                let mut error = self.located(code, message, op);
                error.host_code = host_code;
                error.help = help;
                error.details = details;
                self.unwind(error, host);
            }
        }
    }

    fn heap_error(&mut self) -> RunError {
        let mb = |bytes: usize| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        let message = format!(
            "Heap limit exceeded: guest state holds ~{}MB, limit {}MB. Fuel bounds total work; \
             this bounds peak memory.",
            mb(self.heap.used()),
            mb(self.heap.limit()),
        );
        self.located(ErrorCode::HeapLimit, message.into_bytes(), None)
    }

    /// Adds the prefix of errors in expression texts.
    fn wrapped(&self, message: Vec<u8>) -> Vec<u8> {
        let frame = self.frame();
        let (_, program, f) = self.program_of(frame);
        match f
            .wraps
            .iter()
            .find(|w| w.start <= frame.pc && frame.pc < w.end)
        {
            Some(wrap) => [program.const_text(ConstIdx(wrap.prefix)), &message].concat(),
            None => message,
        }
    }

    /// Creates an error with its op and place.
    fn located(&mut self, code: ErrorCode, message: Vec<u8>, op: Option<&'static str>) -> RunError {
        let frame = self.frame();
        let faulting = self.faulting_step.take();
        let (_, program, f) = self.program_of(frame);
        let step = faulting.or_else(|| Program::step_at(f, frame.pc));
        let op: Text = match (op, step) {
            (Some(op), _) => Text::from(op),
            (None, Some(step)) => {
                let op = &program.ops[f.steps[step as usize].op as usize];
                Text::from_wtf8(program.text(op.name).to_vec())
            }
            (None, None) => Text::from(RUN),
        };
        let mut error = RunError::new(code, op, Text::from_wtf8(message));
        let node = match faulting {
            Some(step) => Some(f.steps[step as usize].node),
            None => Program::place_at(f, frame.pc).map(|p| p.node),
        };
        error.pointer = node.and_then(|node| program.source.pointer(node));
        error
    }

    /// Unwinds to the innermost handler, or ends the run.
    fn unwind(&mut self, mut error: RunError, host: &dyn Host) {
        let mut first = true;
        loop {
            self.refund();
            let frame = self.frame();
            let (exe, _, f) = self.program_of(frame);
            let handler = error
                .code
                .is_catchable()
                .then(|| {
                    f.handlers
                        .iter()
                        .find(|h| h.start <= frame.pc && frame.pc < h.end)
                })
                .flatten()
                .copied();
            if self.tracer.is_some() {
                let exe = exe.clone();
                let f = &exe.program().functions[frame.function as usize];
                let message = first.then(|| error.message.clone());
                let cause = (message, error.code == ErrorCode::OutOfFuel);
                self.trace_unwound(f, &exe, handler.map(|h| h.target), cause, host);
            }
            first = false;
            if error.message.len_bytes() > LONG_MESSAGE
                && let Some(reason) = host.stop()
            {
                return self.stop(reason);
            }
            if let Some(handler) = handler {
                let message = error.message.as_bytes().to_vec();
                let op = error.op;
                self.caught = Some(Box::new(Caught { message, op }));
                let precise = self.tracer.is_some();
                if let Some(top) = self.frames.last_mut() {
                    top.pc = handler.target;
                    top.precise = precise;
                }
                return;
            }
            if self.frames.len() == 1 {
                self.end_with(error);
                return;
            }
            self.pop_frame();
            match frame.kind {
                FrameKind::Agent if error.code.is_catchable() => {
                    // The caller sees a failure of its own step.
                    let message = error.message.as_bytes().to_vec();
                    let (host_code, details) = (error.host_code, error.details.take());
                    error = self.located(error.code, message, None);
                    error.host_code = host_code;
                    error.details = details;
                    first = true;
                }
                FrameKind::Code if error.code.is_catchable() => first = true,
                _ => {}
            }
        }
    }

    /// Ends the run with an error. A message above the boundary limit is truncated (M11).
    fn end_with(&mut self, mut error: RunError) {
        let limits = &self.options.limits.boundary;
        if error.message.len_bytes() > limits.max_bytes {
            error.message = Text::copy_wtf8(convert::cut(error.message.as_bytes(), limits));
        }
        // Only an option of the run can help with an external stop.
        let code = error.code;
        if error.help.is_none() && (!code.is_catchable() || code == ErrorCode::AtomTimeout) {
            error.help = Some(code.help().to_owned()).filter(|help| !help.is_empty());
        }
        let result = error.to_value();
        self.outcome = Some(End::Failed(Box::new(Failed { result, error })));
    }

    /// Ends the run after an abort or at its deadline.
    pub(super) fn fail_stopped(&mut self, reason: StopReason) {
        let (code, message) = match (reason, self.options.timeout_ms) {
            (StopReason::Aborted, _) => (
                ErrorCode::Aborted,
                "Execution aborted by the caller".to_owned(),
            ),
            (StopReason::Deadline, None) => (
                ErrorCode::RunTimeout,
                "Execution timeout: fuel budget exceeded".to_owned(),
            ),
            (StopReason::Deadline, Some(ms)) => (
                ErrorCode::RunTimeout,
                format!("Execution timeout after {ms}ms"),
            ),
        };
        self.end_with(RunError::new(code, RUN, message));
    }

    /// Ends the run normally.
    pub(super) fn end_ok(&mut self, result: Value) {
        self.outcome = Some(End::Result(result));
    }

    /// Ends the run with an error outside any instruction.
    pub(super) fn end_error(&mut self, error: RunError) {
        self.end_with(error);
    }
}
