//! When loops are compiled, and in which runs they are used.
#![cfg(feature = "jit")]

use a99_compiler::{CompileOptions, compile};
use a99_core::fuel::Fuel;
use a99_core::json::{Document, Limits};
use a99_core::value::{Map, Value};
use a99_core::verify::verify;
use a99_vm::{CompiledTier, Environment, Executable, Outcome, RunOptions, Vm};
use std::sync::Arc;

/// An environment independent of the machine.
struct Still;

impl Environment for Still {
    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self, out: &mut [u8]) {
        out.fill(4);
    }
}

fn linked(tier: CompiledTier, text: &str) -> (Vm, Arc<Executable>) {
    let vm = Vm::new(a99_atoms::core_atoms(), Arc::new(Still)).with_tier(tier);
    let source = Document::parse(text, &Limits::default()).expect("JSON");
    let options = CompileOptions::default();
    let program = compile(&Arc::new(source), vm.atoms(), &options).expect("a program");
    let artifact = verify(program).expect("the compiler's work is sound");
    let exe = vm.link(&artifact).expect("all of its atoms are there");
    (vm, exe)
}

fn run((vm, exe): &(Vm, Arc<Executable>), n: Value, step: Value, fuel: Fuel) -> Outcome {
    let mut args = Map::new();
    args.insert("n", n);
    args.insert("step", step);
    let options = RunOptions {
        fuel,
        ..RunOptions::default()
    };
    vm.run_sync(exe, args, options)
}

const FUEL: Fuel = Fuel::from_micro(1_000_000_000_000);

const SUM: &str = r#"{"op": "seq", "steps": [
    {"op": "varsImport", "keys": ["n", "step"]},
    {"op": "varSet", "key": "s", "value": 0},
    {"op": "varSet", "key": "i", "value": 0},
    {"op": "while", "condition": "i < n", "body": [
        {"op": "mathCalc", "expr": "s + i % 7", "result": "s"},
        {"op": "mathCalc", "expr": "i + step", "result": "i"}
    ]},
    {"op": "return", "schema": {"type": "object", "properties": {"s": {}, "i": {}}}}
]}"#;

#[test]
fn a_loop_is_compiled_once_and_serves_runs_of_its_kinds() {
    let eager = linked(CompiledTier::Eager, SUM);
    let off = linked(CompiledTier::Off, SUM);
    assert_eq!(eager.1.compiled_loops(), 0);
    let number = |n: f64| Value::Number(n);
    for (n, step) in [
        (number(50.0), number(1.0)),
        (number(-0.0), number(0.5)),
        // A text: the loop has other kinds, and `i` becomes one.
        (number(50.0), Value::from("1")),
        (number(9.0), number(0.5)),
    ] {
        let ours = run(&eager, n.clone(), step.clone(), FUEL);
        let theirs = run(&off, n, step, FUEL);
        assert_eq!(
            (ours.result, ours.error, ours.fuel_used),
            (theirs.result, theirs.error, theirs.fuel_used),
        );
    }
    assert_eq!((eager.1.compiled_loops(), off.1.compiled_loops()), (1, 0));
}

#[test]
fn a_loop_that_runs_long_is_compiled() {
    let hot = linked(CompiledTier::Hot, SUM);
    let one = || Value::Number(1.0);
    assert_eq!(run(&hot, Value::Number(100.0), one(), FUEL).error, None);
    assert_eq!(hot.1.compiled_loops(), 0);
    let outcome = run(&hot, Value::Number(200_000.0), one(), FUEL);
    assert_eq!(outcome.error, None);
    let shown = outcome.result.to_json_string();
    assert_eq!(shown, r#"{"s":599994,"i":200000}"#);
    assert_eq!(hot.1.compiled_loops(), 1);
}

#[test]
fn programs_with_machine_code_cross_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let (vm, exe) = linked(CompiledTier::Eager, SUM);
    shared(&vm);
    shared(&exe);
}
