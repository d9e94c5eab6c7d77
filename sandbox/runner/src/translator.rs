//! Compiler of translated guest code: hot code arrives as small modules.
//!
//! The emulator passes a module and a ticket. A pool of low-priority threads, shared by the
//! process, compiles the module while the guest runs on. Compiled modules are cached by the
//! hash of their bytes, so that the next guest of the same image has them at once.
//!
//! A module comes out of a sandbox and is untrusted. It is WebAssembly like the emulator,
//! with the same memory and table and no other access. Sections that it has no need of are
//! refused, its size is bounded, and a module that does not compile is counted and dropped.

use a99_sandbox_abi::MODULE_BYTES;
use sha2::{Digest, Sha256};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use wasmparser::{Parser, Payload};
use wasmtime::{Engine, ExternType, Module};

/// Maximum modules of a guest that wait for compilation.
const MAX_WAITING: usize = 64;

/// Maximum modules that wait in the process; more would be compiled too late.
const MAX_QUEUE: usize = 256;

/// Maximum compiled modules kept for an image: some 30 MB.
const MAX_KEPT: usize = 4096;

/// Maximum functions of a guest: instances exist as long as the guest.
const MAX_FUNCTIONS: usize = 4096;

/// Maximum compiler threads; never more than half the processors, rounded up.
const MAX_THREADS: usize = 4;

/// Nice value of the threads (`setpriority`).
const NICE: i32 = 10;

/// SHA-256 of a module's bytes.
type Key = [u8; 32];

/// State of a requested module.
#[derive(Clone)]
enum ModuleState {
    Waiting,
    Ready(Module),
    Failed,
}

/// When hot guest code is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuestJit {
    /// Never: all code is interpreted.
    Off,
    /// Only ahead of time: the code compiled with the image is used, typical work in the
    /// kernel, the shell, Python and the usual tools.
    #[default]
    Aot,
    /// In long-running guests, at a higher threshold: compilations cost processor time that
    /// short commands would never earn back.
    Auto,
    /// As soon as code is hot.
    Eager,
}

/// Samples that make a page of guest code hot. With one sample in 8192 instructions that is
/// a million instructions, some 10,000 runs of a usual region. Compiling a region costs
/// about as much as interpreting two million, so a lower value would lose.
const HOT_SAMPLES: u32 = 128;

/// Hot threshold of [`GuestJit::Auto`]: four million instructions.
const AUTO_SAMPLES: u32 = 512;

/// Million instructions before the first sample of [`GuestJit::Auto`]: eight starts of
/// Python, some two seconds.
const AUTO_AGE: u32 = 400;

impl GuestJit {
    /// Whether code is compiled while the guest runs.
    pub(super) fn compiles(self) -> bool {
        matches!(self, Self::Auto | Self::Eager)
    }

    /// The emulator's settings: samples that make a page hot, million instructions before
    /// the first sample, and whether to optimise for size.
    pub(super) fn policy(self) -> (u32, u32, u32) {
        match self {
            Self::Off | Self::Aot => (0, 0, 0),
            Self::Auto => (AUTO_SAMPLES, AUTO_AGE, 0),
            Self::Eager => (HOT_SAMPLES, 0, 0),
        }
    }
}

/// Cache of compiled modules for the guests of one image.
#[derive(Clone)]
pub(super) struct Compiler {
    engine: Engine,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    modules: Mutex<HashMap<Key, ModuleState>>,
    compiled: AtomicU64,
    failed: AtomicU64,
}

/// Counts of the compiler's work for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Translations {
    /// Modules compiled.
    pub compiled: u64,
    /// Modules that were refused, failed to compile, or met a full queue.
    pub failed: u64,
}

struct Job {
    compiler: Compiler,
    key: Key,
    bytes: Vec<u8>,
}

/// Compilation queue of the process.
struct Pool {
    jobs: Mutex<VecDeque<Job>>,
    wake: Condvar,
}

static POOL: LazyLock<&'static Pool> = LazyLock::new(|| {
    let pool: &'static Pool = Box::leak(Box::new(Pool {
        jobs: Mutex::default(),
        wake: Condvar::new(),
    }));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..processors.div_ceil(2).min(MAX_THREADS) {
        // Without a thread no code is compiled, and guests are interpreted.
        let _ = std::thread::Builder::new()
            .name("a99-translate".to_owned())
            .spawn(|| pool.work());
    }
    pool
});

/// Locks a mutex. Ignores poisoning: a panic cannot leave the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn work(&self) {
        // On Linux this affects only the calling thread. On failure the priority stays.
        let _ = rustix::process::setpriority_process(None, NICE);
        loop {
            let mut jobs = lock(&self.jobs);
            let job = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        jobs = self.wake.wait(jobs).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(jobs);
            job.run();
        }
    }

    /// Queues a job; `false` if the queue is full.
    fn push(&self, job: Job) -> bool {
        let mut jobs = lock(&self.jobs);
        let has_room = jobs.len() < MAX_QUEUE;
        if has_room {
            jobs.push_back(job);
            self.wake.notify_one();
        }
        has_room
    }
}

impl Job {
    fn run(self) {
        let Compiler { engine, shared } = &self.compiler;
        let module = check(&self.bytes).then(|| Module::new(engine, &self.bytes));
        let module = module.and_then(Result::ok).filter(is_region);
        let (state, count) = match module {
            Some(module) => (ModuleState::Ready(module), &shared.compiled),
            None => (ModuleState::Failed, &shared.failed),
        };
        count.fetch_add(1, Ordering::Relaxed);
        lock(&shared.modules).insert(self.key, state);
    }
}

/// Whether a module has only the sections of a region: one function, and no state or code
/// of instantiation.
fn check(bytes: &[u8]) -> bool {
    let mut functions = 0;
    let is_known = Parser::new(0)
        .parse_all(bytes)
        .all(|payload| match payload {
            Ok(Payload::FunctionSection(section)) => {
                functions += section.count();
                true
            }
            Ok(
                Payload::Version { .. }
                | Payload::TypeSection(_)
                | Payload::ImportSection(_)
                | Payload::ExportSection(_)
                | Payload::CodeSectionStart { .. }
                | Payload::CodeSectionEntry(_)
                | Payload::End(_),
            ) => true,
            _ => false,
        });
    is_known && functions == 1
}

/// Whether a module imports memory and table, in this order, and exports one function.
fn is_region(module: &Module) -> bool {
    let imports: Vec<ExternType> = module.imports().map(|import| import.ty()).collect();
    let exports: Vec<ExternType> = module.exports().map(|export| export.ty()).collect();
    matches!(imports[..], [ExternType::Memory(_), ExternType::Table(_)])
        && matches!(exports[..], [ExternType::Func(_)])
}

impl Compiler {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            shared: Arc::default(),
        }
    }

    /// Counts so far.
    pub(crate) fn translations(&self) -> Translations {
        Translations {
            compiled: self.shared.compiled.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
        }
    }

    /// Compiles a module, unless it is cached or queued.
    fn request(&self, key: Key, bytes: &[u8]) {
        let mut modules = lock(&self.shared.modules);
        if modules.len() >= MAX_KEPT {
            // Guests hold the modules that they use.
            modules.retain(|_, state| matches!(state, ModuleState::Waiting));
        }
        if let Entry::Vacant(vacant) = modules.entry(key) {
            let job = Job {
                compiler: self.clone(),
                key,
                bytes: bytes.to_vec(),
            };
            if POOL.push(job) {
                vacant.insert(ModuleState::Waiting);
            } else {
                self.shared.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// State of a module; evicted ones count as failed.
    fn state(&self, key: &Key) -> ModuleState {
        let modules = lock(&self.shared.modules);
        modules.get(key).cloned().unwrap_or(ModuleState::Failed)
    }
}

/// A guest's pending and installed translations.
pub(super) struct Translating {
    compiler: Compiler,
    waiting: Vec<(u32, Key)>,
    /// Indices of functions in the guest's table.
    functions: HashMap<Key, u32>,
}

/// Result of a ticket.
pub(super) enum Compilation {
    /// The guest already has the function at this index.
    Known(u32),
    /// A module to instantiate; [`Translating::note`] takes its index.
    Module(Box<Module>, Key),
    /// Compilation failed.
    None,
}

impl std::fmt::Debug for Translating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translating").finish_non_exhaustive()
    }
}

impl Translating {
    pub(crate) fn new(compiler: &Compiler) -> Self {
        Self {
            compiler: compiler.clone(),
            waiting: Vec::new(),
            functions: HashMap::new(),
        }
    }

    /// Handles the emulator's request for a module.
    pub(crate) fn request(&mut self, bytes: &[u8], ticket: u32) {
        if self.waiting.len() >= MAX_WAITING {
            // The emulator never has more pending requests.
            return;
        }
        let key = Sha256::digest(bytes).into();
        let has_room = self.functions.len() < MAX_FUNCTIONS && bytes.len() <= MODULE_BYTES;
        if has_room && !self.functions.contains_key(&key) {
            self.compiler.request(key, bytes);
        }
        self.waiting.push((ticket, key));
    }

    /// Takes the next ticket with a result.
    pub(crate) fn next(&mut self) -> Option<(u32, Compilation)> {
        for at in 0..self.waiting.len() {
            let (ticket, key) = self.waiting[at];
            let answer = match self.functions.get(&key) {
                Some(number) => Compilation::Known(*number),
                None => match self.compiler.state(&key) {
                    ModuleState::Waiting => continue,
                    ModuleState::Failed => Compilation::None,
                    ModuleState::Ready(_) if self.functions.len() >= MAX_FUNCTIONS => {
                        Compilation::None
                    }
                    ModuleState::Ready(module) => Compilation::Module(Box::new(module), key),
                },
            };
            self.waiting.swap_remove(at);
            return Some((ticket, answer));
        }
        None
    }

    /// Modules that were requested and not delivered.
    #[cfg(feature = "testing")]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Records the index of an instantiated function.
    pub(crate) fn note(&mut self, key: Key, number: u32) {
        self.functions.insert(key, number);
    }
}
