//! Translator of guest code: hot pages become machine code beside the guest.
//!
//! The emulator passes the bytes of a hot page and the offsets that are hot. A pool of
//! low-priority threads, shared by the process, translates the region there to WebAssembly,
//! compiles it, and keeps it for every guest with the same code: in this process, and on the
//! disk ([`CodeStore`](super::code_store::CodeStore)).
//!
//! The emulator is untrusted; a guest may have taken it over. So it supplies no code, only
//! the input of the translation. The result depends on nothing else and is kept under the
//! hash of all of it, so that a guest cannot choose what another one loads. Like the
//! emulator, translated code is WebAssembly and reaches only that instance's memory and
//! table.

use super::code_store::{CodeStore, PackedBundle, Region};
use super::engine::compatibility;
use super::known_code::{Bundle, KnownCode, PageKey, Request};
use a99_sandbox_abi::{LAYOUT_WORDS, MAX_ENTRIES, MAX_REQUESTS, NEXT_BYTES, PAGE_BYTES};
use a99_sandbox_guest::translate::{Layout, module, translate};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use wasmtime::{Engine, Module};

/// Maximum pages that wait in the process; more would be compiled too late.
const MAX_QUEUE: usize = 256;

/// Maximum functions of a module: a module costs some pages of memory and a mapping, so
/// pages that wait are compiled together.
const MAX_BUNDLE: usize = 16;

/// Maximum regions known for an image, those on the disk included.
const MAX_KNOWN: usize = 1 << 17;

/// Maximum machine code in memory for the guests to come of an image, in bytes.
const MAX_LOADED: usize = 256 << 20;

/// Maximum functions of a guest, and bytes of their machine code: instances exist as long
/// as the guest.
const MAX_FUNCTIONS: usize = 1 << 15;
const MAX_CODE: usize = 256 << 20;

/// Machine code that waits to be stored until it has this many bytes, or a guest ends.
const UNSAVED: usize = 8 << 20;

/// Maximum compiler threads; never more than half the processors, rounded up.
const MAX_THREADS: usize = 4;

/// Nice value of the threads (`setpriority`).
const NICE: i32 = 10;

/// Bytes of a page and the start of the next one.
pub(super) const WITH_NEXT: usize = PAGE_BYTES + NEXT_BYTES;

/// When hot guest code is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuestJit {
    /// Never: all code is interpreted.
    Off,
    /// Only ahead of time: the code compiled with the image is used, typical work in the
    /// kernel, the shell, Python and the usual tools.
    Aot,
    /// Once it has run so long that compiling it is likely to save time; code that was
    /// compiled before, for any guest, is used at its first sample.
    #[default]
    Auto,
    /// At a lower threshold, which pays if the same work runs again.
    Eager,
}

/// Samples that make a page of guest code hot, one in 8192 instructions.
const HOT_SAMPLES: u32 = 64;

/// Hot threshold of [`GuestJit::Auto`]: two million instructions. Compiling a region costs
/// about as much as interpreting them.
const AUTO_SAMPLES: u32 = 256;

/// Million instructions of a guest before [`GuestJit::Auto`] takes samples: short commands, some
/// 0.2 s of work, pay nothing, the sampler's memory included.
const AUTO_AGE: u32 = 64;

impl GuestJit {
    /// Whether code is compiled while the guest runs.
    pub(super) fn compiles(self) -> bool {
        matches!(self, Self::Auto | Self::Eager)
    }

    /// The emulator's settings: samples that make a page hot, and million instructions
    /// before the first sample.
    pub(super) fn policy(self) -> (u32, u32) {
        match self {
            Self::Off | Self::Aot => (0, 0),
            Self::Auto => (AUTO_SAMPLES, AUTO_AGE),
            Self::Eager => (HOT_SAMPLES, 0),
        }
    }
}

/// Compiled code for the guests of one image.
#[derive(Clone)]
pub(super) struct Compiler {
    engine: Engine,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    code: Mutex<KnownCode>,
    store: Option<CodeStore>,
    compiled: AtomicU64,
    loaded: AtomicU64,
    failed: AtomicU64,
}

/// Counts of the compiler's work for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Translations {
    /// Regions compiled.
    pub compiled: u64,
    /// Modules of compiled regions loaded from the disk.
    pub loaded: u64,
    /// Pages that were refused, could not be compiled, or met a full queue, and files of
    /// compiled code that were damaged.
    pub failed: u64,
}

struct Job {
    compiler: Compiler,
    layout: Arc<GuestLayout>,
    page: Vec<u8>,
    is_user: bool,
    request: Request,
}

/// Layout of a guest, and the hash that keys begin with.
struct GuestLayout {
    layout: Layout,
    is_small: bool,
    digest: [u8; 32],
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
            let first = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        jobs = self.wake.wait(jobs).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            let mut bundle = vec![first];
            let mut at = 0;
            while bundle.len() < MAX_BUNDLE && at < jobs.len() {
                if jobs[at].goes_with(&bundle[0]) {
                    bundle.extend(jobs.remove(at));
                } else {
                    at += 1;
                }
            }
            drop(jobs);
            compile(bundle);
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
    /// Whether both may be functions of one module.
    fn goes_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.compiler.shared, &other.compiler.shared)
            && self.layout.digest == other.layout.digest
    }
}

/// Compiles jobs of one layout as one module.
fn compile(jobs: Vec<Job>) {
    let Some(Job {
        compiler, layout, ..
    }) = jobs.first()
    else {
        return;
    };
    let (compiler, layout) = (compiler.clone(), Arc::clone(layout));
    let mut functions = Vec::new();
    let (mut requests, mut known) = (Vec::new(), Vec::new());
    for job in jobs {
        let (key, roots) = job.request;
        // A panic must not end the thread that all guests of the process share.
        let translation = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let page = (&job.page[..], job.is_user);
            translate(&layout.layout, page, &roots, layout.is_small)
        }));
        let Some(translation) = translation.ok().flatten() else {
            requests.push((key, roots));
            continue;
        };
        requests.push((key, roots.clone()));
        known.push(Region {
            key,
            function: functions.len(),
            roots,
            entries: translation.entries,
        });
        functions.push(translation.function);
    }
    if !functions.is_empty() {
        let functions: Vec<&[u8]> = functions.iter().map(Vec::as_slice).collect();
        let made = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let module = Module::new(&compiler.engine, module(&functions)).ok()?;
            let bytes = module.serialize().ok()?;
            Some((module, bytes))
        }));
        compiler.add(&layout, known, made.ok().flatten());
    }
    let mut code = lock(&compiler.shared.code);
    for request in &requests {
        code.waiting.remove(request);
    }
}

impl Compiler {
    pub(crate) fn new(engine: &Engine, store: Option<CodeStore>) -> Self {
        let shared = Shared {
            store,
            ..Shared::default()
        };
        Self {
            engine: engine.clone(),
            shared: Arc::new(shared),
        }
    }

    /// Counts so far.
    pub(crate) fn translations(&self) -> Translations {
        let damaged = self.shared.store.as_ref().map_or(0, CodeStore::damaged);
        Translations {
            compiled: self.shared.compiled.load(Ordering::Relaxed),
            loaded: self.shared.loaded.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed) + damaged,
        }
    }

    /// Adds the regions of a module; none if it could not be compiled.
    fn add(&self, layout: &GuestLayout, regions: Vec<Region>, made: Option<(Module, Vec<u8>)>) {
        let Some((module, bytes)) = made else {
            let failed = regions.len() as u64;
            self.shared.failed.fetch_add(failed, Ordering::Relaxed);
            return;
        };
        let compiled = regions.len() as u64;
        self.shared.compiled.fetch_add(compiled, Ordering::Relaxed);
        let mut code = lock(&self.shared.code);
        let number = code.insert(&regions);
        code.loaded += bytes.len();
        code.bundles
            .insert(number, Bundle::Loaded(module, bytes.len()));
        if self.shared.store.is_some() {
            code.unsaved_bytes += bytes.len();
            let unsaved = code.unsaved.entry(layout.digest).or_default();
            unsaved.push(PackedBundle::new(regions, bytes));
        }
        let is_full = code.loaded > MAX_LOADED || code.known > MAX_KNOWN;
        if code.unsaved_bytes > UNSAVED || is_full {
            drop(code);
            self.save();
        }
        if is_full {
            lock(&self.shared.code).forget();
        }
    }

    /// Stores what was compiled since the last call.
    fn save(&self) {
        let Some(store) = &self.shared.store else {
            return;
        };
        let unsaved = {
            let mut code = lock(&self.shared.code);
            code.unsaved_bytes = 0;
            std::mem::take(&mut code.unsaved)
        };
        for (layout, bundles) in unsaved {
            // What cannot be stored is compiled again next time.
            let _ = store.save(&layout, bundles);
        }
    }

    /// Reads which code is stored for a layout, once.
    fn scan(&self, layout: &GuestLayout) {
        let Some(store) = &self.shared.store else {
            return;
        };
        let mut code = lock(&self.shared.code);
        if !code.scanned.insert(layout.digest) {
            return;
        }
        for bundle in store.scan(&layout.digest) {
            if code.known > MAX_KNOWN {
                break;
            }
            let number = code.insert(bundle.regions());
            code.bundles.insert(number, Bundle::Stored(bundle));
        }
    }

    /// The module of a bundle and its size, loaded if necessary.
    fn load(&self, number: u64) -> Option<(Module, usize)> {
        let stored = match lock(&self.shared.code).bundles.get(&number)? {
            Bundle::Loaded(module, bytes) => return Some((module.clone(), *bytes)),
            Bundle::Stored(stored) => stored.clone(),
        };
        let loaded = self
            .shared
            .store
            .as_ref()
            .and_then(|store| store.load(&self.engine, &stored));
        let mut code = lock(&self.shared.code);
        let Some((module, bytes)) = loaded else {
            code.remove(number);
            return None;
        };
        self.shared.loaded.fetch_add(1, Ordering::Relaxed);
        code.loaded += bytes;
        code.bundles
            .insert(number, Bundle::Loaded(module.clone(), bytes));
        let is_full = code.loaded > MAX_LOADED;
        drop(code);
        if is_full {
            self.save();
            lock(&self.shared.code).forget();
        }
        Some((module, bytes))
    }
}

/// A guest's pending and installed translations.
pub(super) struct Translating {
    compiler: Compiler,
    /// None until the emulator has named it.
    layout: Option<Arc<GuestLayout>>,
    is_small: bool,
    waiting: Vec<(u32, Request)>,
    /// Indices of functions in the guest's table, by module.
    modules: HashMap<u64, Vec<u32>>,
    functions: usize,
    bytes: usize,
}

/// A function to announce.
pub(super) struct Delivery {
    /// Its module and the number there.
    place: (u64, usize),
    /// Its entries: offset and node.
    pub entries: Vec<(u16, u8)>,
}

/// Where a function is.
pub(super) enum Place {
    /// At this index of the guest's table.
    Known(u32),
    /// In a module to instantiate; [`Translating::note`] takes the indices of its functions.
    Module(Box<Module>),
}

impl std::fmt::Debug for Translating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translating").finish_non_exhaustive()
    }
}

impl Drop for Translating {
    fn drop(&mut self) {
        self.compiler.save();
    }
}

impl Translating {
    pub(crate) fn new(compiler: &Compiler) -> Self {
        Self {
            compiler: compiler.clone(),
            layout: None,
            is_small: false,
            waiting: Vec::new(),
            modules: HashMap::new(),
            functions: 0,
            bytes: 0,
        }
    }

    /// Optimises for size.
    #[cfg(feature = "testing")]
    pub(crate) fn small(&mut self) {
        self.is_small = true;
    }

    /// Takes the emulator's layout. One of another version of the translator, or that names
    /// addresses outside the memory of `memory` bytes, gets no translations.
    pub(crate) fn start(&mut self, words: &[u32; LAYOUT_WORDS], memory: usize) {
        let Some(layout) = Layout::of(words).filter(|layout| layout.is_within(memory)) else {
            self.layout = None;
            return;
        };
        let mut hash = Sha256::new();
        hash.update(compatibility(&self.compiler.engine));
        hash.update([self.is_small.into()]);
        for word in words {
            hash.update(word.to_le_bytes());
        }
        self.layout = Some(Arc::new(GuestLayout {
            layout,
            is_small: self.is_small,
            digest: hash.finalize().into(),
        }));
    }

    /// Handles the emulator's request for a page, for user mode only or for any mode, hot at
    /// `roots`; without any, it asks for what is known. The page may be followed by the start
    /// of the next one. Whether a result will follow.
    pub(crate) fn request(
        &mut self,
        (page, is_user): (&[u8], bool),
        roots: Vec<u16>,
        ticket: u32,
    ) -> bool {
        let Some(layout) = &self.layout else {
            return false;
        };
        let has_room = self.functions < MAX_FUNCTIONS && self.bytes < MAX_CODE;
        let is_page = matches!(page.len(), PAGE_BYTES | WITH_NEXT);
        let is_valid = is_page && roots.len() <= MAX_ENTRIES;
        if self.waiting.len() >= MAX_REQUESTS || !has_room || !is_valid {
            return false;
        }
        self.compiler.scan(layout);
        let key = key(&layout.digest, page, is_user);
        let mut code = lock(&self.compiler.shared.code);
        if !code.has(&key, &roots) {
            if roots.is_empty() || code.is_vain(&key, &roots) {
                return false;
            }
            let request = (key, roots.clone());
            if !code.waiting.contains(&request) {
                let job = Job {
                    compiler: self.compiler.clone(),
                    layout: Arc::clone(layout),
                    page: page.to_vec(),
                    is_user,
                    request: request.clone(),
                };
                if !POOL.push(job) {
                    self.compiler.shared.failed.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                code.waiting.insert(request);
            }
        }
        self.waiting.push((ticket, (key, roots)));
        true
    }

    /// Takes the next ticket with a result: all functions for its page.
    pub(crate) fn next(&mut self) -> Option<(u32, Vec<Delivery>)> {
        let code = lock(&self.compiler.shared.code);
        let is_done = |(_, request): &(u32, Request)| !code.waiting.contains(request);
        let at = self.waiting.iter().position(is_done)?;
        let (ticket, (key, _)) = self.waiting.swap_remove(at);
        let deliveries = code.of_page(&key).iter().map(|known| Delivery {
            place: known.place,
            entries: known.entries.clone(),
        });
        Some((ticket, deliveries.collect()))
    }

    /// Finds a function for this guest; none if it cannot be loaded, or the guest has too
    /// many.
    pub(crate) fn find(&mut self, delivery: &Delivery) -> Option<Place> {
        let (module, function) = delivery.place;
        if let Some(numbers) = self.modules.get(&module) {
            return numbers.get(function).copied().map(Place::Known);
        }
        let (code, bytes) = self.compiler.load(module)?;
        if self.functions >= MAX_FUNCTIONS || self.bytes >= MAX_CODE {
            return None;
        }
        self.bytes += bytes;
        Some(Place::Module(Box::new(code)))
    }

    /// Records the indices of an instantiated module's functions; none if it failed.
    pub(crate) fn note(&mut self, delivery: &Delivery, numbers: Vec<u32>) -> Option<u32> {
        let (module, function) = delivery.place;
        self.functions += numbers.len();
        let number = numbers.get(function).copied();
        self.modules.insert(module, numbers);
        number
    }

    /// Requests without an answer.
    #[cfg(feature = "testing")]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// Key of a page of code, which is last, so that its length counts too.
fn key(layout: &[u8; 32], page: &[u8], is_user: bool) -> PageKey {
    let mut hash = Sha256::new();
    hash.update(layout);
    hash.update([is_user.into()]);
    hash.update(page);
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
