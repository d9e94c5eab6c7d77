//! Threats B01 to B10: hostile artifacts, through the calls that hosts use.
//!
//! What is changed here has the hash that its content has: an enemy can compute
//! it. The format's own tests and `cargo xtask mutate` go through bits and
//! random changes; these go through the threats one by one.

use crate::attack::{ENGINE, seq};
use a99_core::program::{
    Block, BlockIdx, Const, ConstIdx, LiteralIdx, Location, Number, Op, Program, Reg, Target,
};
use a99_core::verify::verify;
use a99_testkit::fuzz::artifact::correct_hash;
use agent99::artifact::sign::{SecretKey, TrustedKeys, sign};
use agent99::artifact::{DecodeOptions, EncodeOptions};
use agent99::capabilities::FixedClock;
use agent99::{
    Agent, AtomBody, AtomDef, AtomSet, AtomSig, Binding, Engine, ErrorCode, HostReply, LoadError,
    Param, Params, RunOptions, SourceCheck, all_atoms, json,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A loop, a condition, an atom, a literal, a handler.
fn agent() -> Agent {
    let program = seq(json!([
        {"op": "varsImport", "keys": ["n"]},
        {"op": "varSet", "key": "list", "value": {"$expr": "literal", "value": [1, {"a": "b"}]}},
        {"op": "try", "try": [
            {"op": "while", "condition": "n > 0", "body": [
                {"op": "mathCalc", "expr": "n - 1", "result": "n"}]},
            {"op": "split", "str": "a,b", "sep": ",", "result": "list"}],
         "catch": [{"op": "return", "value": {"failed": true}}]},
        {"op": "return", "schema": {"type": "object", "properties": {"list": {}, "n": {}}}}
    ]));
    ENGINE.compile(program).expect("a program")
}

fn bytes(agent: &Agent) -> Vec<u8> {
    agent.to_bytes(&EncodeOptions::default()).expect("small")
}

/// Where the section of this number lies: its entry in the table, its bytes.
fn section(file: &[u8], number: u32) -> (usize, std::ops::Range<usize>) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four"));
    let entry = (0..word(28) as usize).map(|i| 64 + 12 * i);
    let entry = entry
        .into_iter()
        .find(|at| word(*at) == number)
        .expect("the section");
    let start = word(entry + 4) as usize;
    (entry, start..start + word(entry + 8) as usize)
}

/// Bytes before the code of the main program: the count of functions, its name,
/// params, registers and slots, the count of instructions.
const CODE: usize = 4 + 4 + 1 + 1 + 4 + 4;

/// Why a file is refused whose only instruction of this kind was changed: in
/// its bytes, as they stand in the section of functions.
#[track_caller]
fn refusal_of_op(wanted: impl Fn(Op) -> bool, change: impl FnOnce(Op) -> [u8; 8]) -> &'static str {
    let agent = agent();
    let code = &agent.artifact().program().functions[0].code;
    let pc = code.iter().position(|op| wanted(*op));
    let pc = pc.expect("such an instruction");
    let new = change(code[pc]);
    refusal_at(&agent, pc, new)
}

/// The same for the instruction at `pc`.
#[track_caller]
fn refusal_at(agent: &Agent, pc: usize, new: [u8; 8]) -> &'static str {
    let mut file = bytes(agent);
    let at = section(&file, 16).1.start + CODE + 8 * pc;
    file[at..at + 8].copy_from_slice(&new);
    refusal(file)
}

/// The code of a file's refusal, once its hash is right.
#[track_caller]
fn refusal(mut file: Vec<u8>) -> &'static str {
    correct_hash(&mut file);
    ENGINE.load(&file).expect_err("refused").code()
}

#[test]
fn b01_cut_and_flipped_files_are_refused() {
    let file = bytes(&agent());
    assert!(ENGINE.load(&file).is_ok());
    for end in (0..file.len()).step_by(7).chain([file.len() - 1]) {
        assert!(ENGINE.load(&file[..end]).is_err(), "{end}");
    }
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        let error = ENGINE.load(&changed).expect_err("refused");
        assert!(error.code().starts_with("artifact."), "{at}: {error}");
        assert!(!error.help().is_empty(), "{at}");
    }
}

#[test]
fn b02_jumps_go_to_heads_of_blocks_only() {
    let jump = |op: Op| op.target().is_some();
    let to = |target: u32| {
        move |mut op: Op| {
            op.set_target(Target(target));
            op.encode()
        }
    };
    // Out of range; the middle of a block; into the block that is not entered
    // through its `Fuel`, backward.
    assert_eq!(refusal_of_op(jump, to(u32::MAX)), "verify.bad_jump");
    assert_eq!(refusal_of_op(jump, to(1_000_000)), "verify.bad_jump");
    assert_eq!(refusal_of_op(jump, to(1)), "verify.bad_jump");
    // Without its `Fuel` a block would be a way around the yield point.
    let head = |op: Op| matches!(op, Op::Fuel { .. });
    assert_eq!(
        refusal_of_op(head, |_| Op::Nop {}.encode()),
        "verify.bad_blocks"
    );
    // Code that runs off its end.
    let agent = agent();
    let last = agent.artifact().program().functions[0].code.len() - 1;
    assert_eq!(
        refusal_at(&agent, last, Op::Nop {}.encode()),
        "verify.runs_off"
    );
}

#[test]
fn b03_indices_lie_in_their_tables_and_registers_are_written_first() {
    let k = |op: Op| matches!(op, Op::LoadK { .. });
    let load = |dst: u8, k: u32| {
        let (dst, k) = (Reg(dst), ConstIdx(k));
        move |_: Op| Op::LoadK { dst, k }.encode()
    };
    assert_eq!(refusal_of_op(k, load(0, u32::MAX)), "verify.bad_index");
    assert_eq!(refusal_of_op(k, load(255, 0)), "verify.bad_register");
    let literal = |op: Op| matches!(op, Op::LoadLit { .. });
    assert_eq!(
        refusal_of_op(literal, |_| Op::LoadLit {
            dst: Reg(0),
            lit: LiteralIdx(9)
        }
        .encode()),
        "verify.bad_index"
    );
    // A register that nothing wrote: the last of the frame, in the first block.
    let agent = agent();
    let last = agent.artifact().program().functions[0].registers - 1;
    let argument = |op: Op| matches!(op, Op::LoadArg { .. });
    let read = move |_: Op| {
        Op::Mov {
            dst: Reg(last),
            src: Reg(last),
        }
        .encode()
    };
    assert_eq!(refusal_of_op(argument, read), "verify.unwritten_register");
    // An import that is not there: the first call site names op 200.
    let mut file = bytes(&agent);
    let (_, sites) = section(&file, 9);
    file[sites.start + 4] = 200;
    assert_eq!(refusal(file), "verify.bad_index");
}

#[test]
fn b04_forged_prices_are_recomputed() {
    let agent = agent();
    let main = &agent.artifact().program().functions[0];
    let (code, blocks) = (&main.code, &main.blocks);
    for forged in [0i64, -1, i64::MIN, i64::MAX] {
        for (number, block) in blocks.iter().enumerate() {
            if block.price == forged {
                continue;
            }
            let mut file = bytes(&agent);
            // The count of blocks stands before them.
            let at = section(&file, 16).1.start + CODE + 8 * code.len() + 4 + 20 * number + 12;
            file[at..at + 8].copy_from_slice(&forged.to_le_bytes());
            assert_eq!(refusal(file), "verify.bad_price", "{block:?}");
        }
    }
}

/// An iteration that no `IterInit` began, at a position that adding one does
/// not move: it would give its first item for ever, and for nothing.
#[test]
fn b04_a_forged_iterator_does_not_run_for_ever() {
    let agent = ENGINE.compile(seq(json!([]))).expect("a program");
    for position in [-1e300, f64::NEG_INFINITY, f64::NAN] {
        let mut program = Program::clone(agent.artifact().program());
        let k = program.consts.len() as u32;
        program
            .consts
            .extend([Const::Null, Const::Number(position)]);
        let f = &mut program.functions[0];
        f.code = vec![
            Op::Fuel { block: BlockIdx(0) },
            Op::NewArr {
                dst: Reg(0),
                cap: Number(1),
            },
            Op::LoadK {
                dst: Reg(1),
                k: ConstIdx(k),
            },
            Op::ArrPush {
                arr: Reg(0),
                src: Reg(1),
            },
            Op::Mov {
                dst: Reg(2),
                src: Reg(0),
            },
            Op::LoadK {
                dst: Reg(3),
                k: ConstIdx(k + 1),
            },
            Op::Fuel { block: BlockIdx(1) },
            Op::IterNext {
                dst: Reg(4),
                it: Reg(2),
                to: Target(9),
            },
            Op::Jmp { to: Target(6) },
            Op::Fuel { block: BlockIdx(2) },
            Op::Ret { src: Reg(1) },
        ];
        let price = f.blocks[0].price;
        f.charges.truncate(1);
        f.charges[0].pc = 1;
        f.steps.truncate(1);
        (f.steps[0].start, f.steps[0].end) = (0, 11);
        f.blocks = [(0, 6, 0, price), (6, 9, 1, 0), (9, 11, 1, 0)]
            .map(|(start, end, charges, price)| Block {
                start,
                end,
                charges,
                price,
            })
            .to_vec();
        f.places.clear();
        f.registers = 5;
        let artifact = verify(program).expect("the loop takes items of an iteration");
        let agent = ENGINE.link(&artifact).expect("all atoms are there");
        let outcome = ENGINE.run_sync(&agent, json!({}), RunOptions::new());
        let error = outcome.error.expect("it is no iterator");
        assert_eq!(error.code, ErrorCode::Invalid, "{error:?}");
    }
}

/// The atom `greet` with this input and price.
fn greet(input: &'static str, micro: i64) -> AtomSet {
    let params = vec![Param {
        name: input,
        binding: Binding::Value,
    }];
    let mut atoms = all_atoms();
    atoms.insert(AtomDef {
        sig: AtomSig {
            params: Params::Named(params.into()),
            ..AtomSig::new("greet", "Greets.", micro)
        },
        body: AtomBody::Async(|_| {
            Box::pin(async { Ok(HostReply::from(agent99::Value::from("hi"))) })
        }),
        dynamic_cost: None,
    });
    atoms
}

#[test]
fn b05_atoms_that_differ_are_named() {
    let with = |atoms: AtomSet| Engine::builder().atoms(atoms).build();
    let host = with(greet("name", 1_000_000));
    let program = r#"{"op":"seq","steps":[{"op":"greet","name":"Ada","result":"x"}]}"#;
    let file = bytes(&host.compile(program).expect("a program"));
    assert!(host.load(&file).is_ok());
    // The host may change prices, and take them back.
    assert!(with(greet("name", 5)).load(&file).is_ok());
    let error = with(greet("who", 1_000_000))
        .load(&file)
        .expect_err("another input");
    assert_eq!(error.code(), "link.different_atom");
    assert!(
        error.message().contains("'greet'") && !error.help().is_empty(),
        "{error}"
    );
    let error = ENGINE.load(&file).expect_err("no such atom");
    assert_eq!(error.code(), "link.missing_atom");
    assert!(error.message().contains("'greet'"), "{error}");
    assert!(matches!(error, LoadError::Link(_)));
}

/// What was compiled before an atom had more inputs runs as it did; what was compiled against
/// another atom does not.
#[test]
fn d14_artifacts_of_before_link_to_atoms_with_more_inputs() {
    let with = |atoms: AtomSet| Engine::builder().atoms(atoms).build();
    let then = greet("name", 1_000_000);
    let known = a99_core::sig::Signatures::fingerprint(&then, "greet").expect("it is there");
    let program = r#"{"op":"seq","steps":[{"op":"greet","name":"Ada","result":"x"}]}"#;
    let file = bytes(&with(then).compile(program).expect("a program"));
    let now = |inputs: u8| {
        let earlier: &'static [(u64, u8)] = Box::leak(Box::new([(known, inputs)]));
        let names = ["name", "tone"];
        let params = names.map(|name| Param {
            name,
            binding: Binding::Value,
        });
        let mut atoms = all_atoms();
        atoms.insert(AtomDef {
            sig: AtomSig {
                params: Params::Named(params.to_vec().into()),
                earlier,
                ..AtomSig::new("greet", "Greets.", 1_000_000)
            },
            body: AtomBody::Async(|call| {
                let passed = call.args.len() as f64;
                Box::pin(async move { Ok(HostReply::from(agent99::Value::from(passed))) })
            }),
            dynamic_cost: None,
        });
        with(atoms)
    };
    assert!(now(1).load(&file).is_ok());
    let error = now(2).load(&file).expect_err("it passes one");
    assert_eq!(error.code(), "link.wrong_inputs");
    let new = now(1).compile(program).expect("a program");
    let file = bytes(&new);
    assert!(now(1).load(&file).is_ok());
}

#[test]
fn b06_lengths_are_limits_and_never_requests() {
    let file = bytes(&agent());
    let small = DecodeOptions {
        max_bytes: file.len() - 1,
    };
    let engine = Engine::builder().decode_options(small).build();
    assert_eq!(
        engine.load(&file).expect_err("too large").code(),
        "artifact.too_large"
    );
    let started = Instant::now();
    // Lists that say they have four billion entries.
    for number in 2..=16 {
        let present = std::panic::catch_unwind(|| section(&file, number));
        let Ok((_, range)) = present else { continue };
        if matches!(number, 14 | 15) || range.len() < 4 {
            continue;
        }
        let mut changed = file.clone();
        changed[range.start..range.start + 4].fill(0xff);
        assert_eq!(refusal(changed), "artifact.bad_content", "section {number}");
    }
    // Sections that overlap or reach beyond the file.
    for (field, value) in [(4, 64u32), (8, u32::MAX), (8, 0)] {
        let (entry, _) = section(&file, 16);
        let mut changed = file.clone();
        changed[entry + field..entry + field + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(refusal(changed), "artifact.bad_sections", "{field}");
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn b07_signatures_are_checked_by_the_hosts_policy() {
    let key = |seed: u8, expires| SecretKey::from_seed(&[seed; 32], expires);
    let trust = |key: &SecretKey| {
        TrustedKeys::from_json(key.to_public_json().as_bytes()).expect("a key file")
    };
    let engine = |keys: TrustedKeys, seconds: f64| {
        let clock = Arc::new(FixedClock::new(seconds * 1000.0));
        Engine::builder()
            .clock(clock)
            .required_signatures(keys)
            .build()
    };
    let (plain, options) = (bytes(&agent()), DecodeOptions::default());
    let ours = key(1, Some(1_000));
    let signed = sign(&plain, &ours, &options).expect("signed");
    let code = |file: &[u8], engine: &Engine| engine.load(file).err().map(|e| e.code());
    // Off by default: nobody asks.
    assert!(ENGINE.load(&plain).is_ok() && ENGINE.load(&signed).is_ok());
    let strict = engine(trust(&ours), 1_000.0);
    assert_eq!(code(&signed, &strict), None);
    assert_eq!(code(&plain, &strict), Some("artifact.unsigned"));
    assert_eq!(
        code(&signed, &engine(trust(&ours), 1_001.0)),
        Some("artifact.expired_key")
    );
    assert_eq!(
        code(&signed, &engine(trust(&ours), f64::NAN)),
        Some("artifact.expired_key")
    );
    assert_eq!(
        code(&signed, &engine(trust(&key(2, None)), 0.0)),
        Some("artifact.untrusted_key")
    );
    // Another algorithm; the signature of a whole file under its stripped form.
    let mut other = signed.clone();
    other[plain.len() + 4] = 0;
    assert_eq!(code(&other, &strict), Some("artifact.bad_signature"));
    let mut subset = agent()
        .to_bytes(&EncodeOptions { strip: true })
        .expect("small");
    subset.extend_from_slice(&signed[plain.len()..]);
    assert_eq!(code(&subset, &strict), Some("artifact.bad_signature"));
    // A signature is no wall: forged code is refused, signed or not.
    let mut forged = plain.clone();
    let (_, functions) = section(&forged, 16);
    forged[functions.start + 9] = 0;
    correct_hash(&mut forged);
    let forged = sign(&forged, &ours, &options).expect("signed");
    assert!(code(&forged, &strict).is_some_and(|code| code.starts_with("verify.")));
}

#[test]
fn b08_another_version_is_refused_and_its_source_is_still_there() {
    let file = bytes(&agent());
    for (at, code) in [
        (8, "artifact.unknown_version"),
        (15, "artifact.unknown_version"),
        (16, "artifact.other_instructions"),
        (23, "artifact.other_instructions"),
    ] {
        let mut changed = file.clone();
        changed[at] ^= 0x40;
        correct_hash(&mut changed);
        let error = ENGINE.load(&changed).expect_err("refused");
        assert_eq!(error.code(), code);
        assert!(error.help().contains("compile the source"), "{error}");
    }
    // What is embedded is the whole source, and compiles to the same program.
    let loaded = ENGINE.load(&file).expect("whole");
    assert_eq!(ENGINE.compare_source(&loaded), SourceCheck::Matches);
    let again = ENGINE.compile(loaded.source().expect("a source").into_owned());
    assert_eq!(bytes(&again.expect("a program")), file);
    // A source that is not the code's is found out.
    let mut changed = file.clone();
    let (_, source) = section(&file, 33);
    let text = &file[source.clone()];
    let at = text
        .windows(5)
        .position(|w| w == b"n - 1")
        .expect("the text");
    changed[source.start + at + 4] = b'2';
    correct_hash(&mut changed);
    let loaded = ENGINE.load(&changed).expect("the code is sound");
    assert_eq!(ENGINE.compare_source(&loaded), SourceCheck::Differs);
    let bare = agent()
        .to_bytes(&EncodeOptions { strip: true })
        .expect("small");
    let bare = ENGINE.load(&bare).expect("whole");
    assert_eq!(ENGINE.compare_source(&bare), SourceCheck::Absent);
}

#[test]
fn b09_files_are_read_at_any_address() {
    let file = bytes(&agent());
    for shift in 0..16 {
        let mut room = vec![0xAA; shift];
        room.extend_from_slice(&file);
        let loaded = ENGINE.load(&room[shift..]).expect("any alignment");
        let outcome = ENGINE.run_sync(&loaded, json!({"n": 2}), RunOptions::new());
        assert_eq!(outcome.error, None);
        assert_eq!(
            outcome.result.to_json(),
            json!({"list": ["a", "b"], "n": 0})
        );
    }
}

#[test]
fn b10_what_is_read_is_what_was_written() {
    let agent = agent();
    let file = bytes(&agent);
    let loaded = ENGINE.load(&file).expect("whole");
    assert_eq!(bytes(&loaded), file);
    assert_eq!(bytes(&agent), file);
    assert_eq!(loaded.disassemble(), agent.disassemble());
    let (a, b): (&Program, &Program) = (loaded.artifact().program(), agent.artifact().program());
    assert_eq!(a.identity(), b.identity());
    let locations = |p: &Program| -> Vec<(u32, Location)> {
        p.functions
            .iter()
            .flat_map(|f| f.scopes.iter().flat_map(|s| s.vars.clone()))
            .collect()
    };
    assert_eq!(locations(a), locations(b));
}
