//! container2wasm image: checked, compiled, ready to start.
//!
//! The module is foreign and may be hostile. It is always compiled, never loaded as machine
//! code. Its imports are checked first: only WASI preview1 is allowed. The size of the code
//! bounds the compilation, and with a worker memory and time do too.

use super::wasi::{self, Host};
use a99_sandbox_runner::{
    VmCode, VmError, Worker, check_code, check_code_here, from_worker, too_much,
};
use std::fs::File;
use std::path::Path;
use wasmparser::{Parser, Payload, TypeRef};
use wasmtime::{Config, Engine, InstancePre, Module, OptLevel};

/// Maximum file size in bytes: AgentVM's image has 181 MB.
pub const MAX_FILE: u64 = 1 << 30;

/// Maximum data segments: those of a booted guest's memory.
const MAX_SEGMENTS: u64 = 1_000_000;

/// Unknown imports named in an error.
const NAMED_IMPORTS: usize = 8;

/// Stack of an image's program in bytes: emulators may recurse.
pub(super) const WASM_STACK: usize = 1 << 20;

/// Size of an image's memory that is laid out before the start, as a multiple of the file,
/// so that starting maps it instead of copying. The limit keeps a small file with scattered
/// data from making the host lay out gigabytes.
const LAYOUT_FACTOR: u64 = 4;
const MIN_LAYOUT: u64 = 16 << 20;
const MAX_LAYOUT: u64 = 1 << 30;

/// Size of a memory page in bytes.
const PAGE: u64 = 64 << 10;

/// A loaded image, from which any number of machines start.
#[derive(Clone)]
pub struct Image {
    pre: InstancePre<Host>,
    /// Initial memory in bytes.
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
    /// [`VmCode::Io`] if it cannot be read, [`VmCode::UnknownImport`] if it imports
    /// anything but WASI preview1, [`VmCode::Module`] if it is not a core WebAssembly
    /// module, or exceeds the limits.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VmError> {
        let bytes = read(path.as_ref())?;
        Self::from_bytes(&bytes)
    }

    /// Does the same with a worker as compiler, until `wanted` returns why to give up.
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

    /// Compiles the image in a file's content.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), except for reading.
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
        // All names are known, so only a function of another type is left.
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

    /// Initial memory of a machine in bytes.
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

/// Compiles an image to machine code for [`Image::open_with`], in a worker.
///
/// # Errors
/// Those of [`Image::open`].
pub fn precompile(bytes: &[u8]) -> Result<Vec<u8>, VmError> {
    inspect(bytes)?;
    let code = engine(bytes.len() as u64)?.precompile_module(bytes);
    code.map_err(|error| VmError::engine(VmCode::Module, "image", &error))
}

/// Creates an engine for one image. A change of its epoch stops a program at any point,
/// since the program itself never returns.
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

/// Checks a module before it is compiled; returns its initial memory.
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
    // The image chose the names, so they may be arbitrary text.
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
