//! The [`Vm`]: a host's atoms, and what runs of their programs share.

use crate::atom::{AtomSet, RestoreState};
use crate::clock::{Environment, RunClock};
use crate::heap::Heap;
use crate::link::{Executable, LinkError};
use crate::machine::{LoadRequest, Machine};
use crate::options::{Outcome, RunOptions};
use crate::pace::Host;
use crate::spare::{self, Spare};
#[cfg(feature = "jit")]
use crate::tier::CompiledTier;
use a99_core::diag::{excerpt, suggest};
use a99_core::error::{ErrorCode, RunError};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_core::verify::Artifact;
use std::sync::Arc;

/// Makes artifacts of programs that arrive at run time. Without a loader the atoms that need
/// one fail.
pub trait ProgramLoader: Send + Sync {
    /// Compiles and verifies a program that can access the variables `outer` of its caller;
    /// the flag marks constants.
    ///
    /// The artifact should take at most `room` bytes. Poll `stop` at least every few hundred
    /// microseconds: once it returns true, the result is ignored.
    ///
    /// # Errors
    /// The message that the calling program sees.
    fn load(
        &self,
        program: &Value,
        outer: &[(Text, bool)],
        room: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Artifact, Text>;
}

/// A virtual machine: a host's atoms, and idle machines for reuse.
pub struct Vm {
    atoms: Arc<AtomSet>,
    environment: Arc<dyn Environment>,
    loader: Option<Arc<dyn ProgramLoader>>,
    state: Option<RestoreState>,
    #[cfg(feature = "jit")]
    tier: CompiledTier,
    spare: Spare,
}

impl std::fmt::Debug for Vm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vm").finish_non_exhaustive()
    }
}

impl Vm {
    /// Creates a machine with these atoms.
    pub fn new(atoms: AtomSet, environment: Arc<dyn Environment>) -> Vm {
        Vm {
            atoms: Arc::new(atoms),
            environment,
            loader: None,
            state: None,
            #[cfg(feature = "jit")]
            tier: CompiledTier::default(),
            spare: Spare::new(spare::DEFAULT_BYTES),
        }
    }

    /// Copies the machine with separate reference counts for the parts that runs clone, and
    /// its own idle machines. Threads with a copy each write no shared memory when a run
    /// begins or ends. Atoms, clock and random source are shared.
    #[must_use]
    pub fn unshared(&self) -> Vm {
        Vm {
            atoms: Arc::clone(&self.atoms),
            environment: Arc::clone(&self.environment),
            loader: self.loader.clone(),
            state: self.state,
            #[cfg(feature = "jit")]
            tier: self.tier,
            spare: Spare::new(self.spare.most_bytes),
        }
    }

    /// Sets the bytes of finished runs to keep for reuse. The default is 64 MiB, the default
    /// ceiling of one run. Each thread also keeps one machine of at most 64 KiB.
    #[must_use]
    pub fn with_spare_bytes(mut self, bytes: usize) -> Vm {
        self.spare.most_bytes = bytes;
        self
    }

    /// Sets the loader for programs that run programs.
    #[must_use]
    pub fn with_loader(mut self, loader: Arc<dyn ProgramLoader>) -> Vm {
        self.loader = Some(loader);
        self
    }

    /// Sets how to recreate the run state of atoms ([`RunState`](crate::atom::RunState)) from
    /// snapshots.
    #[must_use]
    pub fn with_state(mut self, restore: RestoreState) -> Vm {
        self.state = Some(restore);
        self
    }

    /// Sets when loops are compiled to machine code.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn with_tier(mut self, tier: CompiledTier) -> Vm {
        self.tier = tier;
        self
    }

    /// The function that recreates run state.
    pub(crate) fn state(&self) -> Option<RestoreState> {
        self.state
    }

    /// The atoms of this machine.
    pub fn atoms(&self) -> &AtomSet {
        &self.atoms
    }

    /// Links an artifact with this machine's atoms.
    ///
    /// # Errors
    /// The program needs an atom that this machine lacks.
    pub fn link(&self, artifact: &Artifact) -> Result<Arc<Executable>, LinkError> {
        Executable::link(artifact, &self.atoms).map(|exe| Arc::new(self.tiered(exe)))
    }

    #[cfg(feature = "jit")]
    fn tiered(&self, exe: Executable) -> Executable {
        exe.with_tier(self.tier)
    }

    #[cfg(not(feature = "jit"))]
    #[allow(clippy::unused_self, reason = "there is one tier")]
    fn tiered(&self, exe: Executable) -> Executable {
        exe
    }

    /// The first unknown op, by name, in the options of a run, with the nearest known one. A
    /// quota of an unknown op would guard nothing.
    pub(crate) fn unknown_op(&self, options: &RunOptions) -> Option<(String, Option<String>)> {
        let named = options.costs.keys().chain(options.quotas.keys());
        let unknown = named
            .chain(options.timeouts.keys())
            .filter(|op| self.atoms.get(op).is_none())
            .min()?;
        let names = self.atoms.iter().map(|atom| &*atom.sig.name);
        // Names with a colon are internal; options never mean them.
        let nearest = suggest(unknown, names.filter(|name| !name.contains(':')));
        Some((unknown.clone(), nearest))
    }

    /// Rejects options that name an op which this machine lacks.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownOp`].
    pub fn check_options(&self, options: &RunOptions) -> Result<(), RunError> {
        self.check_options_of("vm.options", options)
    }

    /// As [`Vm::check_options`], with the error attributed to this op.
    pub(crate) fn check_options_of(
        &self,
        op: &'static str,
        options: &RunOptions,
    ) -> Result<(), RunError> {
        let Some(unknown) = self.unknown_op(options) else {
            return Ok(());
        };
        let (why, help) = Vm::misnamed(unknown);
        let mut error = RunError::new(ErrorCode::UnknownOp, op, why);
        error.help = Some(help);
        Err(error)
    }

    /// Message and help for an unknown op in options.
    pub(crate) fn misnamed((op, nearest): (String, Option<String>)) -> (String, String) {
        let shown = excerpt(&op);
        let why = format!("The options name the op '{shown}', which this engine does not have");
        let help = match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => ErrorCode::UnknownOp.help().to_owned(),
        };
        (why, help)
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    /// An idle or new machine for a run of this program.
    pub(crate) fn machine(&self, exe: &Executable) -> Box<Machine> {
        self.spare.take().unwrap_or_else(|| {
            let heap = Heap::new(exe.statics.clone(), exe.shapes.clone());
            Box::new(Machine::over(heap))
        })
    }

    /// The outcome of a machine, which is then kept for reuse.
    pub(crate) fn finish(&self, mut machine: Box<Machine>, clock: &impl RunClock) -> Outcome {
        let outcome = machine.finish(clock);
        if let Some(machine) = self.spare.put(machine)
            && outcome.error.as_ref().is_some_and(is_stop)
        {
            machine.release();
        }
        outcome
    }

    /// Compiles, verifies and links a program that arrived at run time.
    pub(crate) fn load(
        &self,
        request: &LoadRequest,
        host: &dyn Host,
    ) -> Result<Arc<Executable>, Text> {
        let stop = || host.stop().is_some();
        let loader = self
            .loader
            .as_ref()
            .ok_or_else(|| Text::from("This host does not run programs from programs"))?;
        let artifact = loader.load(&request.program, &request.outer, request.room, &stop)?;
        let linked = match stop() {
            true => None,
            false => Executable::link_watched(&artifact, &self.atoms, &stop),
        };
        match linked {
            Some(linked) => linked
                .map(|exe| Arc::new(self.tiered(exe)))
                .map_err(|e| Text::from(e.to_string())),
            None => Err(Text::from("Loading was stopped")),
        }
    }
}

/// Whether a run ended because it was stopped.
fn is_stop(error: &RunError) -> bool {
    matches!(
        error.code,
        ErrorCode::RunTimeout | ErrorCode::Aborted | ErrorCode::OutOfFuel
    )
}
