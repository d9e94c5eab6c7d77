//! Pools, which bound concurrent runs.

use super::admission::{Admission, NO_TIMERS, Refusal};
use crate::args::Args;
use crate::clock::Stopwatch;
use crate::link::Executable;
use crate::machine::Machine;
use crate::options::{Outcome, RunOptions};
use crate::run::{self, RunHost};
use crate::vm::Vm;
use a99_core::error::ErrorCode;
use std::sync::Arc;
use std::time::Duration;

impl Vm {
    /// The outcome of a run that a pool refuses.
    fn refused(&self, refusal: Refusal, args: Args, options: Arc<RunOptions>) -> Outcome {
        let wanted = options.limits.heap_bytes;
        self.not_begun(args, options, |machine| match refusal {
            Refusal::Stopped(reason) => machine.stop(reason),
            Refusal::TooLarge(pool) => {
                let why = format!(
                    "This run can never be admitted: its heap ceiling of {wanted} bytes is above \
                     the {pool} bytes of the pool"
                );
                machine.end_refused(ErrorCode::Options, why, None);
            }
            Refusal::NoTimers => {
                machine.end_refused(ErrorCode::Options, NO_TIMERS.to_owned(), None);
            }
        })
    }

    /// The outcome of a run that ends before its program begins.
    fn not_begun(
        &self,
        args: Args,
        options: Arc<RunOptions>,
        end: impl FnOnce(&mut Machine),
    ) -> Outcome {
        // Arguments may be nested to any depth.
        args.dispose();
        let mut machine = Box::<Machine>::default();
        machine.refuse(options, end);
        self.finish(machine, &Duration::ZERO)
    }
}

/// Unit in which a pool grants memory, in bytes.
const ADMISSION_UNIT: usize = 64 << 10;

/// Bounds concurrent runs: each reserves its heap ceiling from a shared limit, and waits
/// while the limit is used up (M12).
#[derive(Debug)]
pub struct Pool {
    vm: Arc<Vm>,
    admission: Admission,
}

impl Pool {
    /// Creates a pool whose runs together hold at most `heap_bytes`.
    pub fn new(vm: Arc<Vm>, heap_bytes: usize) -> Pool {
        Pool {
            vm,
            admission: Admission::new(heap_bytes, ADMISSION_UNIT),
        }
    }

    /// Runs a program when there is room for it. Its deadline and signal apply while it
    /// waits. A run with a higher heap ceiling than the pool's is refused with
    /// [`ErrorCode::Options`].
    pub async fn run(
        &self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Outcome {
        let (args, options) = (args.into(), options.into());
        let clock = Stopwatch::start();
        let host = RunHost {
            environment: self.vm.environment(),
            signal: options.signal.as_ref(),
            deadline: run::deadline(&options),
            clock: &clock,
        };
        let bytes = options.limits.heap_bytes;
        match self.admission.admit(bytes, &host, &clock).await {
            Ok(_permit) => self.vm.run_for(&clock, exe, args, options).await,
            Err(refusal) => self.vm.refused(refusal, args, options),
        }
    }

    /// Runs a program if there is room for it now. One that is too large for the pool is
    /// refused as by [`Pool::run`].
    pub async fn try_run(
        &self,
        exe: &Arc<Executable>,
        args: impl Into<Args>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Option<Outcome> {
        let (args, options) = (args.into(), options.into());
        match self.admission.try_admit(options.limits.heap_bytes) {
            Ok(None) => None,
            Ok(Some(_permit)) => Some(self.vm.run(exe, args, options).await),
            Err(refusal) => Some(self.vm.refused(refusal, args, options)),
        }
    }

    /// The machine of the pool.
    pub fn vm(&self) -> &Arc<Vm> {
        &self.vm
    }
}
