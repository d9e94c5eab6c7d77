//! A computer for agents: what its time and bytes cost, and that every end of a
//! run ends its commands too.

use crate::attack::{ENGINE, id, ret, rich, run_granted, seq, set, stopped, within};
use a99_core::costs::{NODE_METERED, crossing_list, crossing_object, crossing_text, data_nodes};
use agent99::capabilities::{MemoryShell, Shell, ShellOutput, ShellReply, ShellRequest};
use agent99::{
    AbortSignal, AtomTimeout, Capabilities, CostModel, ErrorCode, Outcome, RunOptions, ToolFilter,
    json,
};
use serde_json::Value as Json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What every program here pays before its first step does anything: the root
/// `seq` and the call, in micro-units of the metered model.
const BASE: i64 = 5_000 + 5_000_000;
/// A byte, in micro-units.
const BYTE: i64 = 100;
/// A second, in micro-units.
const SECOND: i64 = 10_000_000;

fn run(step: Json, options: RunOptions) -> Outcome {
    let granted = Capabilities::none().with_shell(MemoryShell::new());
    run_granted(json!([step]), json!({}), options, granted)
}

fn micro(outcome: &Outcome) -> i64 {
    outcome.fuel_used.micro()
}

#[test]
fn time_and_bytes_are_paid_in_both_models() {
    for (model, base) in [(CostModel::Metered, BASE), (CostModel::Flat, BASE + 95_000)] {
        let options = || rich().cost_model(model);
        let outcome = run(
            json!({"op": "shellExec", "command": "sleep 0.5"}),
            options(),
        );
        assert_eq!(outcome.error, None);
        let answer = |out| crossing_object(3) + crossing_text(out) + crossing_text(0);
        // Copies and literals cost nothing in the flat model.
        let metered = |price: i64| match model {
            CostModel::Metered => price,
            CostModel::Flat => 0,
        };
        let copies = metered(crossing_text(9) + answer(0));
        assert_eq!(micro(&outcome), base + 9 * BYTE + SECOND / 2 + copies);
        let step = json!({"op": "shellExec", "command": ["cat"], "cwd": "/a",
            "env": {"K": "vw"}, "stdin": "12345"});
        let outcome = run(step, options());
        let list = crossing_list(1) + crossing_text(3);
        let texts = crossing_text(2) + crossing_text(2) + crossing_text(5);
        let copies = metered(list + texts + crossing_object(1) + answer(5));
        let literals = metered((data_nodes(false, 1) + data_nodes(true, 1)) as i64 * NODE_METERED);
        let bytes = (3 + 2 + 3 + 5 + 5) * BYTE;
        assert_eq!(micro(&outcome), base + bytes + copies + literals);
        let step = json!({"op": "shellWriteFile", "path": "/a", "content": "AAAA",
            "encoding": "base64"});
        let copies = metered(crossing_text(2) + crossing_text(4) + crossing_text(6));
        let used = micro(&run(step, options()));
        assert_eq!(used, base + (2 + 3) * BYTE + copies);
    }
}

#[test]
fn a_command_that_fails_is_paid_like_any_other() {
    let step = json!({"op": "shellExec", "command": "sleep 9", "timeoutMs": 250});
    let outcome = run(step.clone(), rich());
    let error = stopped(&outcome, ErrorCode::AtomTimeout);
    assert_eq!(
        error.message.to_string(),
        "The command ran longer than 250 ms"
    );
    let copy = crossing_text(7);
    assert_eq!(micro(&outcome), BASE + 7 * BYTE + SECOND / 4 + copy);
    // A program may catch it; it has paid all the same.
    let caught = json!({"op": "try", "try": [step], "catch": []});
    let outcome = run(caught, rich());
    assert_eq!(outcome.error, None);
    assert!(micro(&outcome) > BASE + SECOND / 4);
}

#[test]
fn fuel_bounds_time_and_output() {
    let shell = Arc::new(MemoryShell::new());
    let mut granted = Capabilities::none();
    granted.shell = Some(shell.clone());
    let options = RunOptions::new().fuel(20.0).unwrap().timeout_ms(20_000);
    let steps = json!([{"op": "try", "catch": [], "try": [
        {"op": "shellExec", "command": "sleep 1000", "timeoutMs": 1_000_000}]}]);
    let outcome = run_granted(steps, json!({}), options, granted);
    stopped(&outcome, ErrorCode::OutOfFuel);
    let limit = shell.requests()[0].timeout.unwrap();
    // 20 less the two `seq`s, the `try`, the call, its ten bytes and their copy, at 10 for a
    // second.
    assert_eq!(crossing_text(10), 5_800);
    assert_eq!(limit, Duration::from_micros(1_498_400 - 580));

    let shell = MemoryShell::new();
    let big = vec![b'x'; 400_000];
    let mut write = shell.write_file("/big".to_owned(), big, 0o600);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(write.as_mut().poll(&mut context).is_ready());
    drop(write);
    let granted = Capabilities::none().with_shell(shell);
    for step in [
        json!({"op": "shellReadFile", "path": "/big"}),
        json!({"op": "shellExec", "command": "cat /big"}),
    ] {
        let options = RunOptions::new().fuel(20.0).unwrap();
        let caught = json!([{"op": "try", "try": [step.clone()], "catch": []}]);
        let outcome = run_granted(caught, json!({}), options, granted.clone());
        stopped(&outcome, ErrorCode::OutOfFuel);
        let options = RunOptions::new().fuel(100.0).unwrap();
        let outcome = run_granted(json!([step]), json!({}), options, granted.clone());
        assert_eq!(outcome.error, None);
    }
}

#[test]
fn the_program_gets_what_the_command_did() {
    let steps = json!([
        {"op": "shellWriteFile", "path": "/srv/in.txt", "content": "args.text", "result": "n"},
        {"op": "shellExec", "command": ["cat", "/srv/in.txt"], "result": "done"},
        {"op": "shellExec", "command": "cat /none", "result": "failed"},
        {"op": "shellReadFile", "path": "/srv/in.txt", "result": "back"},
        set("all", json!({"n": id("n"), "done": id("done"), "failed": id("failed"), "back": id("back")})),
        ret(id("all")),
    ]);
    let granted = Capabilities::none().with_shell(MemoryShell::new());
    let outcome = run_granted(steps, json!({"text": "hé\n"}), rich(), granted);
    assert_eq!(outcome.error, None);
    let expected = json!({
        "n": 4,
        "done": {"stdout": "hé\n", "stderr": "", "exitCode": 0},
        "failed": {"stdout": "", "stderr": "cat: /none: no such file\n", "exitCode": 1},
        "back": "hé\n",
    });
    assert_eq!(outcome.result.to_json()["r"], expected);
}

/// Commands that never end, and a count of those that were given up.
#[derive(Clone, Default)]
struct Hanging(Arc<AtomicUsize>);

struct GivenUp(Arc<AtomicUsize>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Shell for Hanging {
    fn exec(&self, _: ShellRequest) -> ShellReply<'_, ShellOutput> {
        let running = GivenUp(self.0.clone());
        Box::pin(async move {
            let never = std::future::pending().await;
            drop(running);
            never
        })
    }

    fn write_file(&self, _: String, _: Vec<u8>, _: u32) -> ShellReply<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn read_file(&self, _: String, _: usize) -> ShellReply<'_, Vec<u8>> {
        Box::pin(std::future::pending())
    }
}

fn run_hanging(shell: &Hanging, steps: Json, options: RunOptions) -> Outcome {
    let agent = ENGINE.compile(seq(steps)).expect("it compiles");
    let granted = Capabilities::none().with_shell(shell.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    within(10_000, || {
        runtime.block_on(ENGINE.run(&agent, json!({}), options, granted))
    })
}

#[test]
fn every_end_of_a_run_ends_its_command() {
    let step = json!({"op": "shellExec", "command": "sleep 1000", "result": "x"});
    let caught = json!([{"op": "try", "try": [step], "catch": []}, ret(json!(1))]);
    let shell = Hanging::default();
    let signal = AbortSignal::new();
    let later = signal.clone();
    let aborting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        later.abort();
    });
    let outcome = run_hanging(&shell, caught.clone(), rich().signal(signal));
    aborting.join().unwrap();
    stopped(&outcome, ErrorCode::Aborted);
    // Up to the abort the command was paid for.
    let least = SECOND * 9 / 100;
    assert!(micro(&outcome) > BASE + least, "{}", outcome.fuel_used);
    assert_eq!(shell.0.load(Ordering::SeqCst), 1);

    let outcome = run_hanging(&shell, caught.clone(), rich().timeout_ms(100));
    stopped(&outcome, ErrorCode::RunTimeout);
    assert!(micro(&outcome) > BASE + least, "{}", outcome.fuel_used);
    assert_eq!(shell.0.load(Ordering::SeqCst), 2);

    // The host's own limit for the atom can be caught, and is paid too.
    let options = rich().atom_timeout("shellExec", AtomTimeout::Ms(100));
    let outcome = run_hanging(&shell, caught, options);
    assert_eq!(outcome.error, None);
    assert!(micro(&outcome) > BASE + least, "{}", outcome.fuel_used);
    assert_eq!(shell.0.load(Ordering::SeqCst), 3);
}

#[test]
fn without_waiting_there_is_no_command() {
    let shell = Hanging::default();
    let granted = Capabilities::none().with_shell(shell.clone());
    let steps = json!([{"op": "shellExec", "command": "sleep 1000"}]);
    let outcome = run_granted(steps, json!({}), rich(), granted);
    stopped(&outcome, ErrorCode::AsyncInSync);
    assert_eq!(shell.0.load(Ordering::SeqCst), 1);
}

#[test]
fn models_get_the_atoms_as_tools() {
    let names = ["shellExec", "shellWriteFile", "shellReadFile"];
    let filter = ToolFilter::Names(names.iter().map(|n| (*n).to_owned()).collect());
    let tools = ENGINE.tools(&filter);
    let found: Vec<_> = tools
        .iter()
        .map(|t| t["function"]["name"].clone())
        .collect();
    assert_eq!(found, names);
    let command = &tools[0]["function"]["parameters"]["properties"]["command"];
    assert_eq!(command["type"], json!(["string", "array"]));
    assert_eq!(command["items"], json!({"type": "string"}));
}
