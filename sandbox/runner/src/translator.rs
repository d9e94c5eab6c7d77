//! Compiler of translated guest code: hot code comes as small modules.
//!
//! The emulator hands over a module and a ticket. A pool of threads of low
//! priority, shared by the process, compiles it while the guest goes on. What
//! was compiled is kept by the hash of its bytes, so that the next guest of the
//! same image has it at once.
//!
//! A module comes out of a sandbox, so nothing about it is believed: it is
//! WebAssembly like the emulator, with the same memory and table and no other
//! reach; sections that it has no need of are refused, its size is bounded, and
//! one that does not compile is forgotten, with a count.

use a99_sandbox_abi::MODULE_BYTES;
use sha2::{Digest, Sha256};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use wasmparser::{Parser, Payload};
use wasmtime::{Engine, ExternType, Module};

/// Modules of a guest that may wait for their compilation.
const MAX_WAITING: usize = 64;

/// Modules that may wait in the process. More would be done too late.
const MAX_QUEUE: usize = 256;

/// Compiled modules that are kept for an image: some 30 MB.
const MAX_KEPT: usize = 4096;

/// Functions that a guest gets at most: instances live as long as it does.
const MAX_FUNCTIONS: usize = 4096;

/// Threads that compile at most; there are never more than half the processors,
/// rounded up.
const MAX_THREADS: usize = 4;

/// How much the threads stand back for others (`setpriority`, nice value).
const NICE: i32 = 10;

/// What a module is known by.
type Key = [u8; 32];

/// What became of a module.
#[derive(Clone)]
enum ModuleState {
    Waiting,
    Ready(Module),
    Failed,
}

/// When hot code of a guest is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuestJit {
    /// Never: all of it is interpreted.
    Off,
    /// Never, but what was compiled with the image is used: typical work in the
    /// kernel, the shell, Python and the usual tools.
    #[default]
    Aot,
    /// In guests that have run for long, what is hotter than usual: compilations
    /// cost processor time, which short commands would never earn back.
    Auto,
    /// As soon as it is hot.
    Eager,
}

/// Samples that make a page of guest code hot: with one in 8192 instructions a
/// million instructions, some 10,000 runs of a usual region. Compiling one costs
/// about as much as interpreting two million, so that less would lose.
const HOT_SAMPLES: u32 = 128;

/// The same for [`GuestJit::Auto`]: four million instructions.
const AUTO_SAMPLES: u32 = 512;

/// Million instructions that a guest runs before the first sample of
/// [`GuestJit::Auto`]: eight starts of Python, some two seconds.
const AUTO_AGE: u32 = 400;

impl GuestJit {
    /// Whether anything is compiled while the guest runs.
    pub(super) fn compiles(self) -> bool {
        matches!(self, Self::Auto | Self::Eager)
    }

    /// What the emulator is given: samples that make a page hot, the million
    /// instructions before the first, and whether functions are to be small.
    pub(super) fn policy(self) -> (u32, u32, u32) {
        match self {
            Self::Off | Self::Aot => (0, 0, 0),
            Self::Auto => (AUTO_SAMPLES, AUTO_AGE, 0),
            Self::Eager => (HOT_SAMPLES, 0, 0),
        }
    }
}

/// Compiled modules for the guests of one image.
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

/// What the compiler did for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Translations {
    /// Modules compiled.
    pub compiled: u64,
    /// Modules that were refused, did not compile, or found the queue full.
    pub failed: u64,
}

/// One module to compile.
struct Job {
    compiler: Compiler,
    key: Key,
    bytes: Vec<u8>,
}

/// The queue of the process.
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
        // Without a thread nothing is compiled, and guests are interpreted.
        let _ = std::thread::Builder::new()
            .name("a99-translate".to_owned())
            .spawn(|| pool.work());
    }
    pool
});

/// A lock whose data a panic cannot have left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn work(&self) {
        // On Linux this is of the calling thread alone. If it fails, the priority
        // stays.
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

    /// Queues a job; `false` if there are too many.
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

/// Whether a module has only what a region needs: one function, and nothing
/// that would be made or run when it is instantiated.
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

/// Whether a module imports memory and table, in this order, and exports one
/// function.
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

    /// What was done so far.
    pub(crate) fn translations(&self) -> Translations {
        Translations {
            compiled: self.shared.compiled.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
        }
    }

    /// Has a module compiled, unless it is already.
    fn request(&self, key: Key, bytes: &[u8]) {
        let mut modules = lock(&self.shared.modules);
        if modules.len() >= MAX_KEPT {
            // Guests hold what they use.
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

    /// What became of a module; forgotten ones have failed.
    fn state(&self, key: &Key) -> ModuleState {
        let modules = lock(&self.shared.modules);
        modules.get(key).cloned().unwrap_or(ModuleState::Failed)
    }
}

/// What a guest waits for, and what it has.
pub(super) struct Translating {
    compiler: Compiler,
    waiting: Vec<(u32, Key)>,
    /// Numbers of functions in the guest's table.
    functions: HashMap<Key, u32>,
}

/// What became of a ticket.
pub(super) enum Compilation {
    /// The guest has it under that number.
    Known(u32),
    /// To be instantiated; [`Translating::note`] takes its number.
    Module(Box<Module>, Key),
    /// There will be none.
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

    /// The emulator asks for a module.
    pub(crate) fn request(&mut self, bytes: &[u8], ticket: u32) {
        if self.waiting.len() >= MAX_WAITING {
            // The emulator waits for fewer.
            return;
        }
        let key = Sha256::digest(bytes).into();
        let has_room = self.functions.len() < MAX_FUNCTIONS && bytes.len() <= MODULE_BYTES;
        if has_room && !self.functions.contains_key(&key) {
            self.compiler.request(key, bytes);
        }
        self.waiting.push((ticket, key));
    }

    /// The next ticket that can be answered.
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

    /// Modules that were asked for and not answered.
    #[cfg(feature = "testing")]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of a function that was instantiated.
    pub(crate) fn note(&mut self, key: Key, number: u32) {
        self.functions.insert(key, number);
    }
}
