//! The engine: compiler, verifier and virtual machine behind one interface.

use crate::agent::Agent;
use crate::answer::{blank_around, find_program};
use crate::load::{Admission, LoadError, SourceCheck};
use a99_builder::Builder;
use a99_capabilities::{
    Capabilities, Clock, MemoryProcedures, ProcedureLimits, Procedures, Random,
};
use a99_compiler::CompileOptions;
use a99_core::artifact::DecodeOptions;
use a99_core::diag::{Diagnostic, Diagnostics, codes};
use a99_core::json::{Document, Limits as ReadLimits};
use a99_core::program::Program;
use a99_core::text::Text;
use a99_core::value::Value;
use a99_core::verify::{Artifact, verify_watched};
use a99_lint::compile_watched;
use a99_vm::atom::AtomSet;
use a99_vm::{Args, Environment, HostState, Outcome, ProgramLoader, RunOptions, Vm};
use std::future::Future;
use std::sync::Arc;

/// The findings that rejected a program.
pub type Refused = Diagnostics;

/// Compiles and runs agents. Clones are cheap and share the engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) vm: Arc<Vm>,
    pub(crate) compiler: Arc<Loader>,
    procedures: Arc<dyn Procedures>,
    /// Capabilities of runs without grants.
    ungranted: Arc<Capabilities>,
    host: HostState,
    admission: Admission,
    /// The clock and random source of runs.
    environment: Arc<Ambient>,
}

/// Configures an [`Engine`].
pub struct EngineBuilder {
    atoms: AtomSet,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    procedures: Arc<dyn Procedures>,
    host: HostState,
    spare_bytes: Option<usize>,
    options: CompileOptions,
    limits: ReadLimits,
    admission: Admission,
    #[cfg(feature = "jit")]
    tier: a99_vm::CompiledTier,
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineBuilder").finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// Sets the atoms that programs may use.
    #[must_use]
    pub fn atoms(mut self, atoms: AtomSet) -> EngineBuilder {
        self.atoms = atoms;
        self
    }

    /// Sets the clock that programs see.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> EngineBuilder {
        self.clock = clock;
        self
    }

    /// Sets the random source that programs see.
    #[must_use]
    pub fn random(mut self, random: Arc<dyn Random>) -> EngineBuilder {
        self.random = random;
        self
    }

    /// Sets the store of `storeProcedure`.
    #[must_use]
    pub fn procedures(mut self, procedures: Arc<dyn Procedures>) -> EngineBuilder {
        self.procedures = procedures;
        self
    }

    /// Provides a value that host atoms look up by type
    /// ([`AtomCx::host`](crate::AtomCx::host)). [`RunOptions::host`] overrides it for a run.
    /// The type may be a trait object.
    #[must_use]
    pub fn host<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> EngineBuilder {
        self.host = self.host.with(value);
        self
    }

    /// Bytes of finished runs to keep for reuse. The default is 64 MiB, the default ceiling
    /// of one run. Reuse makes large runs start faster.
    #[must_use]
    pub fn spare_bytes(mut self, bytes: usize) -> EngineBuilder {
        self.spare_bytes = Some(bytes);
        self
    }

    /// Sets how programs are compiled.
    #[must_use]
    pub fn compile_options(mut self, options: CompileOptions) -> EngineBuilder {
        self.options = options;
        self
    }

    /// Enables lint rules: [`Agent::warnings`] then includes likely mistakes, and compiling
    /// takes longer.
    #[must_use]
    pub fn lint(mut self, lint: bool) -> EngineBuilder {
        self.options.lint = lint;
        self
    }

    /// Sets when numeric loops are compiled to machine code; by default, once they are hot.
    /// Results, fuel, errors and snapshots do not depend on it.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn compiled_tier(mut self, tier: a99_vm::CompiledTier) -> EngineBuilder {
        self.tier = tier;
        self
    }

    /// Sets the size limits of program texts.
    #[must_use]
    pub fn read_limits(mut self, limits: ReadLimits) -> EngineBuilder {
        self.limits = limits;
        self
    }

    /// Sets the size limits of `.a99b` files for [`Engine::load`].
    #[must_use]
    pub fn decode_options(mut self, options: DecodeOptions) -> EngineBuilder {
        self.admission.decode = options;
        self
    }

    /// Makes [`Engine::load`] require a signature by one of these keys. Keys that have
    /// expired by the engine's clock are rejected. By default signatures are not checked.
    ///
    /// A signature proves who vouches for a program and that it is unchanged. It is not a
    /// security boundary: loaded programs are verified and metered with or without one, and
    /// programs that arrive as JSON need no signature.
    #[cfg(feature = "signing")]
    #[must_use]
    pub fn required_signatures(
        mut self,
        keys: crate::artifact::sign::TrustedKeys,
    ) -> EngineBuilder {
        self.admission.required = Some(keys);
        self
    }

    /// Builds the engine.
    pub fn build(self) -> Engine {
        let compiler = Arc::new(Loader {
            atoms: self.atoms.clone(),
            options: self.options,
            limits: self.limits,
        });
        let environment = Arc::new(Ambient {
            clock: self.clock,
            random: self.random,
        });
        let vm = Vm::new(self.atoms, environment.clone())
            .with_loader(compiler.clone())
            .with_state(a99_atoms::restore_store);
        let vm = match self.spare_bytes {
            Some(bytes) => vm.with_spare_bytes(bytes),
            None => vm,
        };
        #[cfg(feature = "jit")]
        let vm = vm.with_tier(self.tier);
        Engine(Arc::new(Parts {
            vm: Arc::new(vm),
            compiler,
            ungranted: Arc::new(with_procedures(Capabilities::none(), &self.procedures)),
            procedures: self.procedures,
            host: self.host,
            admission: self.admission,
            environment,
        }))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Default for Engine {
    fn default() -> Self {
        Engine::new()
    }
}

impl Engine {
    /// Creates an engine with every atom of the language and the system's clock and random
    /// source. For `wasm32-unknown-unknown`, which has neither, use [`Engine::builder_with`].
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn new() -> Engine {
        Engine::builder().build()
    }

    /// Configures an engine with the system's clock and random source, as in [`Engine::new`].
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn builder() -> EngineBuilder {
        use a99_capabilities::{SystemClock, SystemRandom};
        Engine::builder_with(Arc::new(SystemClock), Arc::new(SystemRandom))
    }

    /// Configures an engine with a clock and random source of the host, on any target.
    ///
    /// The random source must be unpredictable: the tokens of stored procedures come from it
    /// too.
    ///
    /// ```
    /// use agent99::capabilities::{FixedClock, SeededRandom};
    /// use agent99::{Engine, RunOptions, json};
    /// use std::sync::Arc;
    ///
    /// // For tests only: the clock stands still, and the randomness is reproducible.
    /// let engine = Engine::builder_with(
    ///     Arc::new(FixedClock::new(1_000.0)),
    ///     Arc::new(SeededRandom::new(7)),
    /// )
    /// .build();
    /// let agent = engine.compile(r#"{"op": "seq", "steps": [
    ///     {"op": "random", "min": 1, "max": 6, "result": "n"},
    ///     {"op": "return", "schema": {"type": "object", "properties": {"n": {}}}}
    /// ]}"#)?;
    /// let run = || engine.run_sync(&agent, json!({}), RunOptions::new());
    /// assert!(run().error.is_none());
    /// # Ok::<(), agent99::Refused>(())
    /// ```
    pub fn builder_with(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> EngineBuilder {
        let procedures = MemoryProcedures::with_random(ProcedureLimits::default(), random.clone());
        EngineBuilder {
            atoms: a99_atoms::all_atoms(),
            clock,
            random,
            procedures: Arc::new(procedures),
            host: HostState::default(),
            spare_bytes: None,
            options: CompileOptions::default(),
            limits: ReadLimits::default(),
            admission: Admission::default(),
            #[cfg(feature = "jit")]
            tier: a99_vm::CompiledTier::default(),
        }
    }

    /// The atoms that programs may use.
    pub fn atoms(&self) -> &AtomSet {
        self.0.vm.atoms()
    }

    /// Warnings about the engine's configuration: atoms that replaced others of the same
    /// name. To refuse replacement, add atoms with [`AtomSet::try_with`].
    pub fn warnings(&self) -> Diagnostics {
        let warnings = self.atoms().warnings();
        Diagnostics::from_iter(
            warnings.map(|text| Diagnostic::warning(codes::DUPLICATE_ATOM, text, String::new())),
        )
    }

    /// The virtual machine of the engine.
    pub fn vm(&self) -> &Arc<Vm> {
        &self.0.vm
    }

    /// Compiles the JSON text of a program.
    ///
    /// # Errors
    /// Every finding that rejects the program, with places in the text.
    pub fn compile(&self, source: impl Into<Vec<u8>>) -> Result<Agent, Refused> {
        self.compile_with(source, &self.0.compiler.options)
    }

    /// Compiles the JSON text of a program with the given options.
    ///
    /// # Errors
    /// As [`Engine::compile`].
    pub fn compile_with(
        &self,
        source: impl Into<Vec<u8>>,
        options: &CompileOptions,
    ) -> Result<Agent, Refused> {
        let document = Document::parse(source, &self.0.compiler.limits)?;
        self.agent(Arc::new(document), options)
    }

    /// Compiles a program that is already a value.
    ///
    /// # Errors
    /// Every finding that rejects the program.
    pub fn compile_value(&self, program: &Value) -> Result<Agent, Refused> {
        self.agent(
            Arc::new(Document::from_value(program)),
            &self.0.compiler.options,
        )
    }

    /// Compiles a program built as a chain of calls. Its JSON text
    /// ([`Builder::to_json_string`]) is the source.
    ///
    /// # Errors
    /// Every error of the chain, or every finding that rejects the program.
    pub fn compile_builder(&self, program: &Builder) -> Result<Agent, Refused> {
        self.compile(program.to_json_string()?)
    }

    /// Compiles the program in a model's answer: JSON, or with the feature `source` JavaScript.
    /// It may be surrounded by prose, a Markdown fence or other JSON, and follow reasoning
    /// ([`find_program`], [`find_source`](crate::find_source)). A complete program in JSON comes
    /// first, unless it is part of a source. Places refer to the whole answer.
    ///
    /// # Errors
    /// As [`Engine::compile`] and [`Engine::compile_source`]. If the answer has no program, the
    /// JSON errors of its text.
    pub fn compile_answer(&self, answer: impl Into<Vec<u8>>) -> Result<Agent, Refused> {
        let answer = answer.into();
        #[cfg(feature = "source")]
        if crate::source_answer::is_source_answer(&answer) {
            return self.compile_source_answer(answer);
        }
        let Some(range) = find_program(&answer) else {
            return self.compile(answer);
        };
        let compile = || {
            let text = blank_around(answer.clone(), &range);
            let document = Arc::new(Document::parse(text, &self.0.compiler.limits)?);
            let options = &self.0.compiler.options;
            let mut program = compile_watched(&document, self.atoms(), options, &|| false)?;
            program.warnings.locate(&answer);
            verified(program, &|| false)
        };
        let artifact = compile().map_err(|mut found: Diagnostics| {
            found.locate(&answer);
            found
        })?;
        self.link(&artifact)
    }

    /// The clock and random source of runs.
    pub(crate) fn environment(&self) -> Arc<dyn Environment> {
        self.0.environment.clone()
    }

    fn agent(&self, document: Arc<Document>, options: &CompileOptions) -> Result<Agent, Refused> {
        let artifact = self.0.compiler.artifact(&document, options, &|| false)?;
        self.link(&artifact)
    }

    /// Links a verified program into an agent.
    ///
    /// # Errors
    /// The program needs an atom that this engine lacks.
    pub fn link(&self, artifact: &Artifact) -> Result<Agent, Refused> {
        let exe = self
            .0
            .vm
            .link(artifact)
            .map_err(|error| Diagnostics::from_iter([unlinked(&error)]))?;
        Ok(Agent::of(exe))
    }

    /// Loads an agent from an `.a99b` file. The file is decoded, verified as hostile input,
    /// and linked with the engine's atoms. Each atom must have the signature that the program
    /// was compiled against.
    ///
    /// # Errors
    /// Any fault of the file, with a stable code. With `EngineBuilder::required_signatures`
    /// also a missing, foreign, forged or expired signature.
    pub fn load(&self, bytes: &[u8]) -> Result<Agent, LoadError> {
        #[cfg(feature = "signing")]
        self.0
            .admission
            .check_signature(bytes, self.0.environment.now_ms())?;
        let artifact = Artifact::from_bytes(bytes, &self.0.admission.decode)?;
        let exe = self.0.vm.link(&artifact)?;
        Ok(Agent::of(exe))
    }

    /// Recompiles the source that an agent carries and compares everything that results
    /// depend on.
    ///
    /// The engine's options apply. A mismatch means that the source shows another program
    /// than the one that runs, or only that it was compiled with other options or another
    /// version.
    pub fn compare_source(&self, agent: &Agent) -> SourceCheck {
        let Some(source) = agent.source() else {
            return SourceCheck::Absent;
        };
        let compiled =
            Document::parse(source.into_owned(), &self.0.compiler.limits).and_then(|document| {
                // Messages quote the original text of the source.
                let origin = agent.artifact().program().source.origin();
                let document = Arc::new(match origin {
                    Some((text, places)) => document.with_origin(text.to_vec(), places.to_vec()),
                    None => document,
                });
                self.0
                    .compiler
                    .artifact(&document, &self.0.compiler.options, &|| false)
            });
        match compiled {
            Ok(again) if again.program().identity() == agent.artifact().program().identity() => {
                self.compare_origin(agent)
            }
            _ => SourceCheck::Differs,
        }
    }

    pub(crate) fn granted(&self, mut options: RunOptions, granted: Capabilities) -> RunOptions {
        let granted = match granted.granted().is_empty() {
            true => Arc::clone(&self.0.ungranted),
            false => Arc::new(with_procedures(granted, &self.0.procedures)),
        };
        options.grants = Some(granted);
        options.host = options.host.over(&self.0.host);
        options
    }

    /// Runs an agent with the granted capabilities. Dropping the future cancels the run.
    pub fn run(
        &self,
        agent: &Agent,
        args: impl Into<Args>,
        options: RunOptions,
        granted: Capabilities,
    ) -> impl Future<Output = Outcome> + Send {
        let options = self.granted(options, granted);
        let args = args.into();
        let missing = agent.missing(&args);
        let run = self.0.vm.run(agent.for_a_run(), args, options);
        async move {
            let mut outcome = run.await;
            outcome.warnings.extend(missing);
            outcome
        }
    }

    /// Runs an agent on this thread without capabilities. An atom that would have to wait
    /// fails; everything else works as in [`Engine::run`].
    pub fn run_sync(&self, agent: &Agent, args: impl Into<Args>, options: RunOptions) -> Outcome {
        self.run_sync_with(agent, args, options, Capabilities::none())
    }

    /// Runs an agent on this thread with the granted capabilities.
    pub fn run_sync_with(
        &self,
        agent: &Agent,
        args: impl Into<Args>,
        options: RunOptions,
        granted: Capabilities,
    ) -> Outcome {
        let options = self.granted(options, granted);
        let args = args.into();
        let missing = agent.missing(&args);
        let mut outcome = self.0.vm.run_sync(agent.for_a_run(), args, options);
        outcome.warnings.extend(missing);
        outcome
    }
}

/// Adds the engine's stored procedures to grants that have none.
fn with_procedures(mut granted: Capabilities, own: &Arc<dyn Procedures>) -> Capabilities {
    granted.procedures.get_or_insert_with(|| Arc::clone(own));
    granted
}

fn unlinked(error: &a99_vm::LinkError) -> Diagnostic {
    Diagnostic::error(error.code(), error.to_string(), String::new()).with_help(error.help())
}

fn one(code: &'static str, message: String) -> Diagnostics {
    Diagnostics::from_iter([Diagnostic::error(code, message, String::new())])
}

/// Verifies a freshly compiled program. The checks exist for hostile files: output of the
/// compiler passes.
pub(crate) fn verified(
    program: Program,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Artifact, Diagnostics> {
    match verify_watched(program, stop) {
        None => Err(one(codes::STOPPED, "compiling was stopped".to_owned())),
        Some(verified) => {
            verified.map_err(|error| one(codes::TOO_LARGE, format!("not verified: {error}")))
        }
    }
}

/// Upper bound of an instruction's memory while a program is compiled and verified, in bytes:
/// the instruction, its share of block, charge and place, and the verifier's facts.
const CODE_BYTES: usize = 128;

/// The compiler and verifier, also for programs loaded at run time.
pub(crate) struct Loader {
    atoms: AtomSet,
    pub(crate) options: CompileOptions,
    pub(crate) limits: ReadLimits,
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").finish_non_exhaustive()
    }
}

impl Loader {
    fn artifact(
        &self,
        document: &Arc<Document>,
        options: &CompileOptions,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Artifact, Diagnostics> {
        verified(compile_watched(document, &self.atoms, options, stop)?, stop)
    }
}

impl ProgramLoader for Loader {
    fn load(
        &self,
        program: &Value,
        outer: &[(Text, bool)],
        room: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Artifact, Text> {
        let most = self.options.max_code.unwrap_or(usize::MAX);
        let options = CompileOptions {
            outer: outer.to_vec(),
            max_code: Some(most.min(room / CODE_BYTES)),
            lint: false,
            check_literals: false,
            ..self.options.clone()
        };
        let document = Document::from_value_watched(program, stop)
            .ok_or_else(|| Text::from("Compiling was stopped"))?;
        let document = Arc::new(document);
        self.artifact(&document, &options, stop).map_err(|refused| {
            let first = refused
                .iter()
                .find(|d| d.severity == a99_core::diag::Severity::Error);
            Text::from(first.map_or_else(|| "Invalid program".to_owned(), |d| d.message.clone()))
        })
    }
}

struct Ambient {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Environment for Ambient {
    fn now_ms(&self) -> f64 {
        self.clock.now_ms()
    }

    fn random(&self, out: &mut [u8]) {
        self.random.fill(out);
    }
}
