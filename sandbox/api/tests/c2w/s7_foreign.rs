//! Class S7: foreign modules that try to exhaust the host's time or memory, as
//! container2wasm images and as portable images of ours.

use a99_sandbox::c2w::{Image, MAX_FUNCTION_HERE};
use a99_sandbox::cache::portable::import;
use a99_sandbox::cache::{Cache, ErrorCode, Event};
use a99_sandbox::vm::{VmCode, WasmMachine};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;
use wasm_encoder::{
    BlockType, CodeSection, ExportKind, ExportSection, Function, FunctionSection, Instruction,
    MemorySection, MemoryType, Module, RefType, StartSection, TableSection, TableType, TypeSection,
    ValType,
};

fn memory(pages: u64) -> MemorySection {
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: pages,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    memories
}

/// A module with one function.
fn foreign(function: &Function) -> Vec<u8> {
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    types.ty().function([], []);
    functions.function(0);
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    exports.export("_start", ExportKind::Func, 0);
    let mut code = CodeSection::new();
    code.function(function);
    let mut module = Module::new();
    module.section(&types).section(&functions);
    module.section(&memory(1)).section(&exports).section(&code);
    module.finish()
}

/// The worst case for a compiler that tracks values.
fn huge(bytes: u64) -> Function {
    const LOCALS: u32 = 1000;
    let mut function = Function::new([(LOCALS, ValType::I32)]);
    let mut state = 1u32;
    let mut local = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % LOCALS
    };
    // Each round has at least 16 bytes.
    for _ in 0..bytes / 16 {
        function.instruction(&Instruction::Block(BlockType::Empty));
        function.instruction(&Instruction::LocalGet(local()));
        function.instruction(&Instruction::BrIf(0));
        function.instruction(&Instruction::LocalGet(local()));
        function.instruction(&Instruction::LocalGet(local()));
        function.instruction(&Instruction::I32Add);
        function.instruction(&Instruction::LocalSet(local()));
        function.instruction(&Instruction::End);
    }
    function.instruction(&Instruction::End);
    function
}

#[test]
fn s7_functions_that_take_a_compiler_long_are_refused_before() {
    let error = Image::from_bytes(&foreign(&huge(1 << 20))).expect_err("refused");
    assert_eq!(error.code, VmCode::Module);
    let most = MAX_FUNCTION_HERE.to_string();
    assert!(error.text.contains(&most), "{error}");
    // A few bytes can declare many locals.
    let mut many = Function::new([(50_000, ValType::I64)]);
    many.instruction(&Instruction::End);
    let error = Image::from_bytes(&foreign(&many)).expect_err("refused");
    assert!(error.text.contains("locals"), "{error}");
    let mut few = Function::new([(1000, ValType::I64)]);
    few.instruction(&Instruction::End);
    assert!(Image::from_bytes(&foreign(&few)).is_ok());
}

/// An emulator that runs these instructions on instantiation.
fn emulator(first: &[Instruction<'_>]) -> Vec<u8> {
    use ValType::{I32, I64};
    let exported: [(&str, &[ValType], &[ValType]); 8] = [
        ("translated", &[I32, I32], &[I32]),
        ("run", &[I64], &[I32]),
        ("report", &[], &[I32]),
        ("output", &[I32], &[I64]),
        ("tag", &[I32], &[I32]),
        ("taken", &[I32, I32], &[]),
        ("space", &[I32, I32], &[I64]),
        ("commit", &[I32, I32, I32], &[I32]),
    ];
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
    for (number, (name, parameters, results)) in exported.into_iter().enumerate() {
        let number = number as u32;
        let parameters = parameters.iter().copied();
        types.ty().function(parameters, results.iter().copied());
        functions.function(number);
        exports.export(name, ExportKind::Func, number);
        let mut function = Function::new([]);
        match results {
            [I32] => drop(function.instruction(&Instruction::I32Const(0))),
            [I64] => drop(function.instruction(&Instruction::I64Const(0))),
            _ => {}
        }
        function.instruction(&Instruction::End);
        code.function(&function);
    }
    let start = exported.len() as u32;
    types.ty().function([], []);
    functions.function(start);
    let mut function = Function::new([]);
    first.iter().for_each(|instruction| {
        function.instruction(instruction);
    });
    function.instruction(&Instruction::End);
    code.function(&function);
    exports.export("memory", ExportKind::Memory, 0);
    exports.export("__indirect_function_table", ExportKind::Table, 0);
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: 1,
        maximum: None,
        shared: false,
    });
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&tables);
    module.section(&memory(1)).section(&exports);
    module.section(&StartSection {
        function_index: start,
    });
    module.section(&code);
    module.finish()
}

/// A file of an archive, as `a99 sandbox image export` writes it.
fn file(archive: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut block = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644");
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", content.len()).as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(block);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

/// A portable image whose snapshot is this module.
fn portable(path: &Path, module: &[u8]) {
    let hash = |bytes: &[u8]| -> String {
        let digest = Sha256::digest(bytes);
        digest.iter().map(|b| format!("{b:02x}")).collect()
    };
    let disk = [0; 4096];
    let manifest = json!({
        "format": "agent99 guest image",
        "version": 2,
        "written_by": "0",
        "origin": [],
        "files": [
            {"path": "guest.wasm", "size": module.len(), "sha256": hash(module)},
            {"path": "guest.disk", "size": disk.len(), "sha256": hash(&disk)},
        ],
    });
    let mut archive = Vec::new();
    file(
        &mut archive,
        "manifest.json",
        manifest.to_string().as_bytes(),
    );
    file(&mut archive, "guest.wasm", module);
    file(&mut archive, "guest.disk", &disk);
    archive.resize(archive.len() + 1024, 0);
    let out = std::fs::File::create(path).expect("a file");
    let mut packed = GzEncoder::new(out, Compression::fast());
    packed.write_all(&archive).expect("written");
    packed.finish().expect("written");
}

#[test]
fn s7_a_portable_image_that_loops_or_grows_is_stopped() {
    let endless = [
        Instruction::Loop(BlockType::Empty),
        Instruction::Br(0),
        Instruction::End,
    ];
    let grows = [
        Instruction::Loop(BlockType::Empty),
        Instruction::I32Const(1000),
        Instruction::MemoryGrow(0),
        Instruction::I32Const(-1),
        Instruction::I32Ne,
        Instruction::BrIf(0),
        Instruction::End,
        // It may have a gigabyte: this address is beyond.
        Instruction::I32Const(-0x4000_0000),
        Instruction::I32Const(1),
        Instruction::I32Store8(wasm_encoder::MemArg {
            offset: 0x1000,
            align: 0,
            memory_index: 0,
        }),
    ];
    for first in [&endless[..], &grows] {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().join("cache")).expect("a cache");
        let path = folder.path().join("image.tar.gz");
        portable(&path, &emulator(first));
        let machine = WasmMachine::new().expect("an engine");
        let error =
            import(&cache, &path, None, &machine, &mut |_: Event<'_>| {}).expect_err("no guest");
        assert_eq!(error.code, ErrorCode::Guest, "{error}");
        let now = cache.current("module").expect("readable");
        assert!(now.is_none(), "nothing starts from it");
    }
}
