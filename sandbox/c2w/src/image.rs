//! Image of container2wasm: checked, compiled, ready to be started.
//!
//! The module is not ours and may be made to do harm. It is always compiled,
//! never taken as machine code; what it asks for is looked at before, and it
//! may ask for nothing but WASI preview1. Compiling is bounded by the size of
//! code, and where there is a worker by memory and time.

use super::wasi::{self, Host};
use a99_sandbox_runner::{
    VmCode, VmError, Worker, check_code, check_code_here, from_worker, too_much,
};
use std::fs::File;
use std::path::Path;
use wasmparser::{Parser, Payload, TypeRef};
use wasmtime::{Config, Engine, InstancePre, Module, OptLevel};

/// Largest file in bytes: AgentVM's image has 181 MB.
pub const MAX_FILE: u64 = 1 << 30;

/// Most segments of data: those of a booted guest's memory.
const MAX_SEGMENTS: u64 = 1_000_000;

/// Names of unknown imports in an error.
const NAMED_IMPORTS: usize = 8;

/// Stack of an image's program: emulators may recurse.
pub(super) const WASM_STACK: usize = 1 << 20;

/// How much of an image's memory is laid out before the start, as a multiple of
/// the file, so that starting maps it instead of copying; and at most so much. A
/// small file with data far apart must not make the host lay out gigabytes.
const LAYOUT_FACTOR: u64 = 4;
const MIN_LAYOUT: u64 = 16 << 20;
const MAX_LAYOUT: u64 = 1 << 30;

/// Bytes of a page of memory.
const PAGE: u64 = 64 << 10;

/// An image, loaded once and started any number of times.
#[derive(Clone)]
pub struct Image {
    pre: InstancePre<Host>,
    /// Bytes of memory that it starts with.
    memory: u64,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Image {
    /// Reads and compiles an image's file: some seconds for a large one.
    ///
    /// # Errors
    /// [`VmCode::Io`] if it cannot be read, [`VmCode::UnknownImport`] if it
    /// imports anything but WASI preview1, [`VmCode::Module`] if it is no core
    /// WebAssembly module, or one beyond the limits.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VmError> {
        let bytes = read(path.as_ref())?;
        Self::from_bytes(&bytes)
    }

    /// The same, compiled by a worker as long as `wanted` does not say why it is
    /// not any more.
    pub fn open_with(
        path: &Path,
        worker: &Worker,
        wanted: &dyn Fn() -> Result<(), VmError>,
    ) -> Result<Self, VmError> {
        let bytes = read(path)?;
        let (length, memory) = (bytes.len() as u64, inspect(&bytes)?);
        drop(bytes);
        let file = File::open(path).map_err(|error| VmError::io(path, &error))?;
        let code = worker.compile_foreign(file, wanted)?;
        let engine = engine(length)?;
        let module = from_worker(&engine, code)?;
        Self::linked(&module, memory)
    }

    /// The image of a file's content.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for those of reading.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VmError> {
        let memory = inspect(bytes)?;
        check_code_here(bytes)?;
        let engine = engine(bytes.len() as u64)?;
        let bad = |error: wasmtime::Error| VmError::engine(VmCode::Module, "image", &error);
        let module = Module::from_binary(&engine, bytes).map_err(bad)?;
        Self::linked(&module, memory)
    }

    fn linked(module: &Module, memory: u64) -> Result<Self, VmError> {
        let bad = |error: wasmtime::Error| VmError::engine(VmCode::Module, "image", &error);
        let linker = wasi::linker(module.engine()).map_err(bad)?;
        // All names are known: what is left is a function of another type.
        let unknown = |error| VmError::engine(VmCode::UnknownImport, "image", &error);
        let pre = linker.instantiate_pre(module).map_err(unknown)?;
        Ok(Self { pre, memory })
    }

    pub(super) fn pre(&self) -> &InstancePre<Host> {
        &self.pre
    }

    pub(super) fn engine(&self) -> &Engine {
        self.pre.module().engine()
    }

    /// Bytes of memory that a machine of it has from the start.
    pub fn initial_memory(&self) -> u64 {
        self.memory
    }
}

/// Reads an image's file.
fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    let failed = |error: std::io::Error| VmError::io(path, &error);
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        let text = format!("{}: an image is a file", path.display());
        return Err(VmError::new(VmCode::Io, text));
    }
    if meta.len() > MAX_FILE {
        return Err(too_much("bytes", meta.len(), MAX_FILE));
    }
    std::fs::read(path).map_err(failed)
}

/// Machine code of an image, for [`Image::open_with`]; in a worker.
///
/// # Errors
/// As [`Image::open`].
pub fn precompile(bytes: &[u8]) -> Result<Vec<u8>, VmError> {
    inspect(bytes)?;
    let code = engine(bytes.len() as u64)?.precompile_module(bytes);
    code.map_err(|error| VmError::engine(VmCode::Module, "image", &error))
}

/// An engine for one image. It stops a program at any point when its epoch
/// changes, for the program itself never comes back.
fn engine(file: u64) -> Result<Engine, VmError> {
    let layout = (file * LAYOUT_FACTOR).clamp(MIN_LAYOUT, MAX_LAYOUT);
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(true)
        .memory_guaranteed_dense_image_size(layout)
        .memory_init_cow(true)
        .max_wasm_stack(WASM_STACK)
        .generate_address_map(false)
        .wasm_backtrace_max_frames(None)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_tail_call(false);
    Engine::new(&config)
        .map_err(|error| VmError::engine(VmCode::Resources, "WebAssembly engine", &error))
}

fn bad_module(text: impl Into<String>) -> VmError {
    VmError::new(VmCode::Module, text)
}

/// Looks a module through before anything is compiled; how much memory it wants.
fn inspect(bytes: &[u8]) -> Result<u64, VmError> {
    if !bytes.starts_with(b"\0asm\x01\0\0\0") {
        let text = "the image is no core WebAssembly module: container2wasm makes one with \
                    `c2w IMAGE out.wasm`; machine code is never loaded";
        return Err(bad_module(text));
    }
    let bad = |error: wasmparser::BinaryReaderError| bad_module(format!("image: {error}"));
    check_code(bytes)?;
    let (mut memory, mut started) = (0, false);
    let mut unknown = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(bad)? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(bad)?;
                    let is_function = matches!(import.ty, TypeRef::Func(_));
                    if import.module != wasi::MODULE || !wasi::has(import.name) || !is_function {
                        unknown.push(format!("{}.{}", import.module, import.name));
                    }
                }
            }
            Payload::DataSection(data) if u64::from(data.count()) > MAX_SEGMENTS => {
                return Err(too_much("data segments", data.count().into(), MAX_SEGMENTS));
            }
            Payload::MemorySection(memories) => {
                for kind in memories {
                    memory += kind.map_err(bad)?.initial.saturating_mul(PAGE);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    started |= export.map_err(bad)?.name == "_start";
                }
            }
            _ => {}
        }
    }
    match (unknown.is_empty(), started) {
        (false, _) => Err(unknown_imports(&unknown)),
        (true, false) => Err(bad_module("the image exports no function `_start`")),
        (true, true) => Ok(memory),
    }
}

fn unknown_imports(unknown: &[String]) -> VmError {
    let named = &unknown[..unknown.len().min(NAMED_IMPORTS)];
    let mut names = named.join(", ");
    // Names are the image's and may be anything.
    names = names.escape_debug().take(1000).collect();
    let more = match unknown.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "the image imports {names}{more}; it may import the functions of {} only",
        wasi::MODULE
    );
    VmError::new(VmCode::UnknownImport, text)
}
