//! Bound calls on a machine that is one caller's: what a run of before left is used again.

use super::args::{arg_value, check_args};
use super::{End, LoadedProgram, Machine, cx, prices};
use crate::bound::{Arg, Bound, Given};
use crate::heap::{Heap, Val};
use crate::native::{Fault, Host};
use crate::options::RunOptions;
use crate::run::RunClock;
use a99_core::error::RunError;
use a99_core::value::Value;
use std::sync::Arc;

impl Machine {
    /// Gives the next call other options, with the same prices and limits.
    pub(crate) fn set_options(&mut self, options: Arc<RunOptions>) {
        self.options = options;
    }

    /// Prepares a call of a bound program with these arguments; `whole` is all of them for a
    /// program that says what they must be.
    pub(crate) fn start_bound(
        &mut self,
        bound: &Bound,
        args: &[Arg<'_>],
        whole: Option<&Value>,
        host: &dyn Host,
    ) {
        self.forget();
        self.keeps = true;
        if let Err(fault) = self.begin_bound(bound, args, whole, host) {
            self.end_begun(fault);
        }
    }

    fn begin_bound(
        &mut self,
        bound: &Bound,
        args: &[Arg<'_>],
        whole: Option<&Value>,
        host: &dyn Host,
    ) -> Result<(), Fault> {
        let exe = &bound.exe;
        let program = exe.program();
        self.programs.truncate(1);
        if self.programs.is_empty() {
            let limit = self.options.limits.heap_bytes;
            self.heap.reset(&exe.statics, &exe.shapes, limit);
            self.programs.push(LoadedProgram {
                exe: Arc::clone(exe),
                main: true,
                own_prices: prices::own_prices(exe, &self.options),
                args: Vec::with_capacity(program.args.len()),
            });
        } else {
            self.heap.again();
        }
        let mut cx = cx(&mut self.heap, &mut self.meter, host);
        if let Some(whole) = whole {
            check_args(&mut cx, exe, whole)?;
        }
        let limits = &self.options.limits.boundary;
        let values = &mut self.programs[0].args;
        values.clear();
        let mut given = Given::new(bound, args);
        for (asked, key) in program.args.iter().enumerate() {
            if let Some(val) = given.plain(asked) {
                values.push(val);
                continue;
            }
            values.push(match given.direct(&mut cx, asked, limits)? {
                Some(val) => val,
                None => arg_value(&mut cx, program, key, &mut |cx, name| {
                    given.get(cx, name, limits)
                })?,
            });
        }
        self.enter_main(program)
    }

    /// How a bound call ended: its error, if it failed.
    pub(crate) fn end_bound(&mut self, clock: &impl RunClock) -> Option<RunError> {
        let error = match self.outcome.take() {
            Some(End::Failed(failed)) => Some(failed.error),
            Some(End::Result(_)) | None => None,
        };
        if let Some(account) = &self.options.account {
            account.note_run(self.fuel_used(), clock.elapsed(), error.is_some());
        }
        error
    }

    /// The result that stayed in the heap.
    pub(crate) fn kept(&self) -> (&Heap, Val) {
        (&self.heap, self.kept)
    }

    /// Goes on to give the result to the host, as a run that is not bound does.
    pub(crate) fn give_kept(&mut self, host: &dyn Host) {
        self.keeps = false;
        self.outcome = None;
        self.leave(self.kept, host);
    }

    /// The result that was given, or why not.
    pub(crate) fn take_result(&mut self) -> Result<Value, RunError> {
        match self.outcome.take() {
            Some(End::Failed(failed)) => Err(failed.error),
            Some(End::Result(value)) => Ok(value),
            None => Ok(Value::Undefined),
        }
    }
}
