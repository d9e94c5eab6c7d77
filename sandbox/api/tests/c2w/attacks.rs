//! Malicious images (S08), and steps that end halfway (S09).

use crate::common::{IMAGE, limits, run, start};
use a99_sandbox::c2w::{Image, MAX_FUNCTION, MAX_FUNCTIONS, Machine, Options, Run};
use a99_sandbox::vm::{VmCode, VmError};
use std::time::{Duration, Instant};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, ImportSection, Instruction, MemorySection, MemoryType, Module, StartSection,
    TypeSection, ValType,
};

const WASI: &str = "wasi_snapshot_preview1";

/// The functions of preview1 with their parameters: `i` 32 bits, `I` 64. All but the last
/// return 32 bits.
const PREVIEW1: [(&str, &str); 46] = [
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("clock_res_get", "ii"),
    ("clock_time_get", "iIi"),
    ("fd_advise", "iIIi"),
    ("fd_allocate", "iII"),
    ("fd_close", "i"),
    ("fd_datasync", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_fdstat_set_rights", "iII"),
    ("fd_filestat_get", "ii"),
    ("fd_filestat_set_size", "iI"),
    ("fd_filestat_set_times", "iIIi"),
    ("fd_pread", "iiiIi"),
    ("fd_prestat_get", "ii"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_pwrite", "iiiIi"),
    ("fd_read", "iiii"),
    ("fd_readdir", "iiiIi"),
    ("fd_renumber", "ii"),
    ("fd_seek", "iIii"),
    ("fd_sync", "i"),
    ("fd_tell", "ii"),
    ("fd_write", "iiii"),
    ("path_create_directory", "iii"),
    ("path_filestat_get", "iiiii"),
    ("path_filestat_set_times", "iiiiIIi"),
    ("path_link", "iiiiiii"),
    ("path_open", "iiiiiIIii"),
    ("path_readlink", "iiiiii"),
    ("path_remove_directory", "iii"),
    ("path_rename", "iiiiii"),
    ("path_symlink", "iiiii"),
    ("path_unlink_file", "iii"),
    ("poll_oneoff", "iiii"),
    ("proc_raise", "i"),
    ("random_get", "ii"),
    ("sched_yield", ""),
    ("sock_accept", "iii"),
    ("sock_recv", "iiiiii"),
    ("sock_send", "iiiii"),
    ("sock_shutdown", "ii"),
    ("proc_exit", "i"),
];

/// Calls of functions that trap at addresses outside of memory, as the standard specifies,
/// at unknown clocks, and for more random bytes than one call allows.
const TRAPPING: [(&str, &[i64]); 9] = [
    ("args_get", &[-8, -8]),
    ("args_sizes_get", &[-8, 0]),
    ("environ_get", &[0, -8]),
    ("environ_sizes_get", &[0, -8]),
    ("clock_res_get", &[1, -8]),
    ("clock_res_get", &[4, 0]),
    ("clock_time_get", &[1, 0, -8]),
    ("random_get", &[-8, 16]),
    ("random_get", &[0, -8]),
];

/// Differences of a module from one that does nothing.
struct Attack {
    imports: Vec<(&'static str, &'static str, &'static str)>,
    pages: u64,
    /// Body of `_start`.
    body: Vec<Instruction<'static>>,
    /// Body of the start function, run on instantiation.
    first: Option<Vec<Instruction<'static>>>,
    /// Number of functions that only make it larger.
    more: u64,
    data: Vec<(i32, Vec<u8>)>,
}

impl Default for Attack {
    fn default() -> Self {
        Self {
            imports: Vec::new(),
            pages: 1,
            body: Vec::new(),
            first: None,
            more: 0,
            data: Vec::new(),
        }
    }
}

fn values(letters: &str) -> Vec<ValType> {
    let value = |letter| match letter {
        'i' => ValType::I32,
        _ => ValType::I64,
    };
    letters.chars().map(value).collect()
}

impl Attack {
    fn module(&self) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], []);
        let mut imports = ImportSection::new();
        for (index, (module, name, parameters)) in self.imports.iter().enumerate() {
            let results = match *name {
                "proc_exit" => vec![],
                _ => vec![ValType::I32],
            };
            types.ty().function(values(parameters), results);
            imports.import(module, name, EntityType::Function(index as u32 + 1));
        }
        let own = self.imports.len() as u32;
        let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
        let bodies = [Some(&self.body), self.first.as_ref()];
        for body in bodies.into_iter().flatten() {
            functions.function(0);
            let mut function = Function::new([]);
            body.iter().for_each(|instruction| {
                function.instruction(instruction);
            });
            function.instruction(&Instruction::End);
            code.function(&function);
        }
        for _ in 0..self.more {
            functions.function(0);
            let mut function = Function::new([]);
            function.instruction(&Instruction::End);
            code.function(&function);
        }
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: self.pages,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        exports.export("_start", ExportKind::Func, own);
        let mut data = DataSection::new();
        for (at, bytes) in &self.data {
            data.active(0, &ConstExpr::i32_const(*at), bytes.iter().copied());
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions);
        module.section(&memories).section(&exports);
        if self.first.is_some() {
            module.section(&StartSection {
                function_index: own + 1,
            });
        }
        module.section(&code).section(&data);
        module.finish()
    }

    fn image(&self) -> Result<Image, VmError> {
        Image::from_bytes(&self.module())
    }

    /// Boots the image as far as it goes.
    fn boot(&self) -> Machine {
        let image = self.image().unwrap_or_else(|error| panic!("{error}"));
        Machine::interactive(&image, Options::default(), Box::new(|_, _| {})).expect("it starts")
    }

    fn end(&self) -> VmError {
        let machine = self.boot();
        machine
            .wait(Some(Duration::from_secs(20)))
            .expect("it ends")
    }
}

fn endless() -> Vec<Instruction<'static>> {
    let block = wasm_encoder::BlockType::Empty;
    vec![
        Instruction::Loop(block),
        Instruction::Br(0),
        Instruction::End,
    ]
}

#[test]
fn s08_unknown_imports_are_refused_by_name() {
    let refused = [
        ("env", "fd_read", "iiii"),
        (WASI, "fd_steal", "i"),
        ("wasi_unstable", "fd_write", "iiii"),
        // With another type.
        (WASI, "fd_write", "ii"),
    ];
    for import in refused {
        let attack = Attack {
            imports: vec![(WASI, "proc_exit", "i"), import],
            ..Attack::default()
        };
        let error = attack.image().unwrap_err();
        assert_eq!(error.code, VmCode::UnknownImport, "{error}");
        assert!(
            error.text.contains(import.0) && error.text.contains(import.1),
            "{error}"
        );
    }
}

#[test]
fn s08_the_whole_of_preview1_is_there() {
    let attack = Attack {
        imports: PREVIEW1
            .map(|(name, parameters)| (WASI, name, parameters))
            .to_vec(),
        ..Attack::default()
    };
    assert_eq!(attack.end().code, VmCode::GuestEnded);
}

#[test]
fn s08_no_arguments_of_a_call_do_harm() {
    let imports = PREVIEW1[..45]
        .iter()
        .map(|&(name, parameters)| (WASI, name, parameters));
    let numbers = [
        0,
        1,
        2,
        3,
        4,
        8,
        64,
        900,
        901,
        65_535,
        65_536,
        i64::MAX,
        -1,
        -8,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut body = Vec::new();
    for round in 0..60 {
        for (index, (name, parameters)) in PREVIEW1[..45].iter().enumerate() {
            for (place, letter) in parameters.chars().enumerate() {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let mut number = numbers[(state >> 33) as usize % numbers.len()];
                // An endless wait is harmless, but would hang the test.
                if *name == "poll_oneoff" && place == 2 && round < 60 {
                    number = if number == 1 || number == 2 {
                        0
                    } else {
                        number
                    };
                }
                // Calls that end the program are tested separately.
                if TRAPPING.iter().any(|(other, _)| other == name) {
                    let is_clock = name.starts_with("clock") && place == 0;
                    number &= if is_clock { 3 } else { 0x7ff8 };
                }
                body.push(match letter {
                    'i' => Instruction::I32Const(number as i32),
                    _ => Instruction::I64Const(number),
                });
            }
            body.push(Instruction::Call(index as u32));
            body.push(Instruction::Drop);
        }
    }
    let attack = Attack {
        imports: imports.collect(),
        body,
        ..Attack::default()
    };
    let image = attack.image().unwrap();
    for network in [false, true] {
        let host = tempfile::tempdir().unwrap();
        let mount = a99_sandbox::c2w::Mount {
            guest: "/m".to_owned(),
            host: host.path().to_owned(),
            ..Default::default()
        };
        let link: Box<dyn a99_sandbox::c2w::FrameLink> =
            Box::new(crate::common::Network::default());
        let options = Options {
            mounts: vec![mount],
            network: network.then_some(link),
            ..Options::default()
        };
        let machine = Machine::interactive(&image, options, Box::new(|_, _| {})).unwrap();
        let ended = machine
            .wait(Some(Duration::from_secs(60)))
            .expect("it ends");
        // A frame of an invalid length breaks the network's stream.
        let expected = [VmCode::GuestEnded, VmCode::Protocol];
        assert!(expected.contains(&ended.code), "{ended}");
    }
}

#[test]
fn s08_senseless_plain_calls_end_the_program() {
    for (name, numbers) in TRAPPING {
        let found = PREVIEW1.iter().find(|(other, _)| *other == name);
        let (_, parameters) = *found.expect("one of preview1");
        let numbers = numbers.iter().zip(parameters.chars());
        let mut body: Vec<Instruction<'static>> = numbers
            .map(|(&number, letter)| match letter {
                'i' => Instruction::I32Const(number as i32),
                _ => Instruction::I64Const(number),
            })
            .collect();
        body.extend([Instruction::Call(0), Instruction::Drop]);
        let attack = Attack {
            imports: vec![(WASI, name, parameters)],
            body,
            ..Attack::default()
        };
        let ended = attack.end();
        assert_eq!(ended.code, VmCode::EmulatorTrap, "{name}: {ended}");
    }
}

#[test]
fn s08_machine_code_and_other_files_are_refused() {
    let engine = a99_sandbox::vm::engine().unwrap();
    let compiled = engine
        .precompile_module(&Attack::default().module())
        .unwrap();
    let component = b"\0asm\x0d\0\x01\0".to_vec();
    for bytes in [compiled, component, b"(module)".to_vec(), Vec::new()] {
        let error = Image::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.code, VmCode::Module, "{error}");
    }
    let error = Image::open("/nonexistent.wasm").unwrap_err();
    assert_eq!(error.code, VmCode::Io);
    assert_eq!(Image::open("/dev/zero").unwrap_err().code, VmCode::Io);
}

#[test]
fn s08_bombs_are_refused_before_they_are_compiled() {
    let began = Instant::now();
    let functions = Attack {
        more: MAX_FUNCTIONS,
        ..Attack::default()
    };
    let function = Attack {
        body: vec![Instruction::Nop; MAX_FUNCTION as usize],
        ..Attack::default()
    };
    for attack in [functions, function] {
        let error = attack.image().unwrap_err();
        assert_eq!(error.code, VmCode::Module, "{error}");
        assert!(error.text.contains("at most"), "{error}");
    }
    // Scattered data: laying it out would take gigabytes.
    let sparse = Attack {
        pages: 32_768,
        data: vec![(0, vec![1]), (i32::MAX - 1, vec![1])],
        ..Attack::default()
    };
    assert!(sparse.image().is_ok());
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn s08_memory_is_bounded() {
    let huge = Attack {
        pages: 65_536,
        ..Attack::default()
    };
    let image = huge.image().unwrap();
    let error = Machine::start(&image, Options::default()).unwrap_err();
    assert_eq!(error.code, VmCode::MemoryLimit);
    // Growing beyond it fails for the program: growing by 0 pages returns their number, the
    // rest -1, whose sum with 1 is 0.
    let grows = Attack {
        body: vec![
            Instruction::I32Const(40_000),
            Instruction::MemoryGrow(0),
            Instruction::I32Const(1),
            Instruction::I32Add,
            Instruction::If(wasm_encoder::BlockType::Empty),
            Instruction::Unreachable,
            Instruction::End,
        ],
        ..Attack::default()
    };
    assert_eq!(grows.end().code, VmCode::GuestEnded);
    // The same in a running image.
    let options = Options {
        memory_limit: 32 << 20,
        ..Options::default()
    };
    let machine = start(options);
    assert_eq!(run(&machine, "grab 4").exit_code, 0);
    assert_eq!(run(&machine, "grab 100").exit_code, 12);
    assert_eq!(run(&machine, "echo on").stdout, b"on\n");
}

#[test]
fn s08_programs_without_end_are_stopped() {
    let in_start = Attack {
        body: endless(),
        ..Attack::default()
    };
    let in_instantiation = Attack {
        first: Some(endless()),
        ..Attack::default()
    };
    for attack in [in_start, in_instantiation] {
        let machine = attack.boot();
        assert_eq!(machine.wait(Some(Duration::from_millis(200))), None);
        let began = Instant::now();
        machine.stop();
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(machine.ended().unwrap().code, VmCode::Stopped);
    }
    // An image that never gets to a shell ends at the start's time limit.
    let image = Attack {
        body: endless(),
        ..Attack::default()
    };
    let options = Options {
        start_timeout: Duration::from_millis(300),
        ..Options::default()
    };
    let error = Machine::start(&image.image().unwrap(), options).unwrap_err();
    assert_eq!(error.code, VmCode::NotReady);
}

#[test]
fn s08_traps_are_errors() {
    let trap = vec![Instruction::Unreachable];
    let deep = vec![Instruction::Call(0)];
    let in_start = Attack {
        body: trap.clone(),
        ..Attack::default()
    };
    let in_instantiation = Attack {
        first: Some(trap),
        ..Attack::default()
    };
    let recursion = Attack {
        body: deep,
        ..Attack::default()
    };
    for attack in [in_start, in_instantiation, recursion] {
        let ended = attack.end();
        assert_eq!(ended.code, VmCode::EmulatorTrap, "{ended}");
    }
    let exits = Attack {
        imports: vec![(WASI, "proc_exit", "i")],
        body: vec![Instruction::I32Const(5), Instruction::Call(0)],
        ..Attack::default()
    };
    let ended = exits.end();
    assert_eq!(ended.code, VmCode::GuestEnded);
    assert!(ended.text.contains("code 5"), "{ended}");
}

#[test]
fn s09_what_ends_within_a_command_is_an_error_of_it() {
    for (script, code) in [
        ("crash", VmCode::EmulatorTrap),
        ("poweroff", VmCode::GuestEnded),
    ] {
        let machine = start(Options::default());
        let error = machine.exec(script, &limits()).unwrap_err();
        assert_eq!(error.code, code, "{script}: {error}");
        assert_eq!(machine.exec("true", &limits()).unwrap_err(), error);
        assert_eq!(machine.ended(), Some(error));
    }
    assert_eq!(
        run(&start(Options::default()), "echo next").stdout,
        b"next\n"
    );
}

#[test]
fn s09_a_machine_that_hangs_is_given_up_and_stopped() {
    let machine = start(Options::default());
    let short = Run {
        timeout: Some(Duration::from_millis(100)),
        ..Run::default()
    };
    // A second call does not even look at the console.
    let error = machine.exec("spin", &short).unwrap_err();
    assert_eq!(error.code, VmCode::TimedOut);
    assert!(error.text.contains("still runs"), "{error}");
    let error = machine.exec("true", &short).unwrap_err();
    assert_eq!(error.code, VmCode::NotReady, "{error}");
    let began = Instant::now();
    machine.stop();
    assert!(began.elapsed() < Duration::from_secs(2));
    // Other machines of the same image are unaffected.
    let other = Machine::start(&IMAGE, Options::default()).unwrap();
    assert_eq!(run(&other, "echo other").stdout, b"other\n");
}
