//! Bound calls on a machine that is one caller's: what a run of before left is used again.

use super::args::{check_args, fallback, plain_member};
use super::{LoadedProgram, Machine, cx, prices};
use crate::bound::{Arg, Bound, Given};
use crate::heap::{Heap, Val};
use crate::native::{Fault, Host, Meter};
use crate::options::Quota;
use crate::run::RunClock;
use a99_account::Account;
use a99_core::error::RunError;
use a99_core::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Buffers beyond this are not kept for the next call.
const KEPT_BYTES: usize = 1 << 20;

impl Machine {
    /// Gives the next call quotas of which nothing is used.
    pub(crate) fn set_quotas(&mut self, quotas: HashMap<String, Quota>) {
        self.options.quotas = quotas;
    }

    /// Gives the next call the account of its options, if they have one.
    pub(crate) fn set_account(&mut self, account: &Option<Account>) {
        if self.options.account.is_some() || account.is_some() {
            self.options.account.clone_from(account);
        }
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
        if self.memory_bytes() > KEPT_BYTES {
            super::release((
                std::mem::take(&mut self.heap),
                std::mem::take(&mut self.stack),
            ));
            self.programs.clear();
        }
        self.meter = Meter::new(self.options.fuel.micro(), self.options.cost_model);
        self.budget = self.options.fuel.micro();
        self.frames.clear();
        self.caught = None;
        self.call = None;
        self.waiting = None;
        self.prepared.clear();
        if !self.memo.is_empty() {
            self.memo.clear();
        }
        match Arc::get_mut(&mut self.locals) {
            Some(locals) => locals.reset(),
            None => self.locals = Arc::default(),
        }
        self.locals_counted = 0;
        self.outcome = None;
        self.retried = None;
        self.skip_charges = false;
        self.unpaid = 0;
        self.faulting_step = None;
        self.started = false;
        self.keeps = true;
        self.kept = Val::Undefined;
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
            self.heap
                .reset(exe.statics.clone(), exe.shapes.clone(), limit);
            self.programs.push(LoadedProgram {
                exe: Arc::clone(exe),
                main: true,
                prices: prices::program_prices(exe, &self.options),
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
        let mut given = Given::new(args);
        for (key, source) in program.args.iter().zip(&bound.sources) {
            let found = match source.given {
                Some(place) => given.get(&mut cx, place, limits)?,
                None => None,
            };
            values.push(match found {
                Some(val) => source.rest.iter().fold(val, |val, segment| {
                    plain_member(cx.heap, val, program.text(*segment))
                }),
                None => fallback(program, key),
            });
        }
        self.enter_main(program)
    }

    /// How a bound call ended: its error, if it failed.
    pub(crate) fn end_bound(&mut self, clock: &impl RunClock) -> Option<RunError> {
        let (_, error) = self.outcome.take()?;
        if let Some(account) = &self.options.account {
            account.note_run(self.fuel_used(), clock.elapsed(), error.is_some());
        }
        error
    }

    /// The result that stayed in the heap.
    pub(crate) fn kept(&self) -> (&Heap, Val) {
        (&self.heap, self.kept)
    }

    /// The same as a value of the host, for which the run pays.
    pub(crate) fn give_kept(&mut self, host: &dyn Host) -> Result<Value, RunError> {
        match self.result(self.kept, host) {
            Ok(value) => Ok(value),
            Err(fault) => {
                self.end_begun(fault);
                let error = self.outcome.take().and_then(|(_, error)| error);
                error.map_or(Ok(Value::Undefined), Err)
            }
        }
    }
}
