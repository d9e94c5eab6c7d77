//! A container2wasm image: looked through, compiled, ready to be started.
//!
//! The module is not ours and may be made to do harm. It is always compiled,
//! never taken as machine code; what it asks for is looked at before, and it
//! may ask for nothing but WASI preview1. Compiling is bounded by the size of
//! code, not by time.

use super::wasi::{self, Host};
use crate::vm::{VmCode, VmError};
use std::path::Path;
use wasmparser::{Parser, Payload, TypeRef};
use wasmtime::{Config, Engine, InstancePre, Module, OptLevel};

/// Largest file in bytes: AgentVM's image has 181 MB.
pub const MAX_FILE: u64 = 1 << 30;

/// Most bytes of code in all: emulators have 1 to 10 MB.
pub const MAX_CODE: u64 = 64 << 20;

/// Most bytes of one function: the largest of an emulator that went through
/// Asyncify, with a margin.
pub const MAX_FUNCTION: u64 = 4 << 20;

/// Most functions.
pub const MAX_FUNCTIONS: u64 = 200_000;

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
        let path = path.as_ref();
        let failed = |error: std::io::Error| VmError::io(path, &error);
        let meta = std::fs::metadata(path).map_err(failed)?;
        if !meta.is_file() {
            let text = format!("{}: an image is a file", path.display());
            return Err(VmError::new(VmCode::Io, text));
        }
        if meta.len() > MAX_FILE {
            return Err(too_much("bytes", meta.len(), MAX_FILE));
        }
        Self::from_bytes(&std::fs::read(path).map_err(failed)?)
    }

    /// The image of a file's content.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for those of reading.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VmError> {
        let memory = inspect(bytes)?;
        let engine = engine(bytes.len() as u64)?;
        let bad = |error: wasmtime::Error| VmError::engine(VmCode::Module, "image", &error);
        let module = Module::from_binary(&engine, bytes).map_err(bad)?;
        let linker = wasi::linker(&engine).map_err(bad)?;
        // All names are known: what is left is a function of another type.
        let unknown = |error| VmError::engine(VmCode::UnknownImport, "image", &error);
        let pre = linker.instantiate_pre(&module).map_err(unknown)?;
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

fn too_much(what: &str, has: u64, most: u64) -> VmError {
    bad_module(format!(
        "the image has {has} {what}; at most {most} are allowed"
    ))
}

/// Looks a module through before anything is compiled; how much memory it wants.
fn inspect(bytes: &[u8]) -> Result<u64, VmError> {
    if !bytes.starts_with(b"\0asm\x01\0\0\0") {
        let text = "the image is no core WebAssembly module: container2wasm makes one with \
                    `c2w IMAGE out.wasm`; machine code is never loaded";
        return Err(bad_module(text));
    }
    let bad = |error: wasmparser::BinaryReaderError| bad_module(format!("image: {error}"));
    let (mut code, mut memory, mut started) = (0, 0, false);
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
            Payload::CodeSectionStart { count, .. } if u64::from(count) > MAX_FUNCTIONS => {
                return Err(too_much("functions", count.into(), MAX_FUNCTIONS));
            }
            Payload::CodeSectionEntry(body) => {
                let size = body.range().len() as u64;
                if size > MAX_FUNCTION {
                    return Err(too_much("bytes in one function", size, MAX_FUNCTION));
                }
                code += size;
                if code > MAX_CODE {
                    return Err(too_much("bytes of code", code, MAX_CODE));
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
