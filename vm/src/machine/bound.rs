//! Bound calls on the machine of one caller, which reuses the state of the previous call.

use super::args::{arg_value, check_args, host_args};
use super::{End, LoadedProgram, Machine, cx, prices};
use crate::bound::{Arg, Bound, Given};
use crate::clock::RunClock;
use crate::heap::{Heap, Val};
use crate::options::RunOptions;
use crate::pace::{Fault, Host};
use a99_core::error::RunError;
use a99_core::program::ArgKey;
use a99_core::value::Value;
use std::sync::Arc;

impl Machine {
    /// Sets the options of the next call, which have the same prices and limits.
    pub(crate) fn set_options(&mut self, options: Arc<RunOptions>) {
        self.options = options;
    }

    /// Prepares a call of a bound program. `whole` is the tree of all arguments, for a
    /// program with an input schema.
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
        if let Some(whole) = whole.filter(|_| program.args.iter().any(ArgKey::is_all)) {
            *values = host_args(&mut cx, program, whole, limits)?;
            return self.enter_main(program);
        }
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

    /// The error of a bound call, if it failed.
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

    /// The result, kept in the heap.
    pub(crate) fn kept(&self) -> (&Heap, Val) {
        (&self.heap, self.kept)
    }

    /// Resumes to convert the result for the host, as an unbound run does.
    pub(crate) fn give_kept(&mut self, host: &dyn Host) {
        self.keeps = false;
        self.outcome = None;
        self.leave(self.kept, host);
    }

    /// The converted result, or its error.
    pub(crate) fn take_result(&mut self) -> Result<Value, RunError> {
        match self.outcome.take() {
            Some(End::Failed(failed)) => Err(failed.error),
            Some(End::Result(value)) => Ok(value),
            None => Ok(Value::Undefined),
        }
    }
}
