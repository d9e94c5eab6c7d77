//! Snapshots: their content, their binding, and the rejected ones.

use agent99::capabilities::{Capabilities, ScriptedFetch};
use agent99::{
    Agent, AtomSet, CallId, CostModel, Engine, Equality, ErrorCode, Fuel, Next, Outcome, Run,
    RunOptions, SnapshotError, Value, all_atoms, json,
};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Two fetches, a helper, a quota and the run's own store.
const PROGRAM: &str = r#"{"op": "seq", "steps": [
    {"op": "varSet", "key": "list", "value": [1, {"ü": "😀"}]},
    {"op": "httpFetch", "url": "https://a.example", "result": "a"},
    {"op": "httpFetch", "url": "https://b.example", "result": "b"},
    {"op": "return", "schema": {"type": "object",
        "properties": {"list": {}, "a": {}, "b": {}}}}
]}"#;

const RESULT: &str = r#"{"list":[1,{"ü":"😀"}],"a":"one","b":"two"}"#;

fn agent(engine: &Engine) -> Agent {
    engine.compile(PROGRAM).expect("a program")
}

fn start(options: RunOptions) -> Run {
    let engine = Engine::new();
    engine.start(&agent(&engine), json!({}), options, Capabilities::none())
}

fn restore(bytes: &[u8], options: RunOptions) -> Result<Run, SnapshotError> {
    let engine = Engine::new();
    engine.restore(&agent(&engine), bytes, options, Capabilities::none())
}

fn call(run: &mut Run, now: u64) -> CallId {
    match run.next(Duration::from_millis(now)) {
        Next::Call(call) => call.id,
        other => panic!("a call was expected: {other:?}"),
    }
}

fn answer(run: &mut Run, id: &CallId, text: &str) {
    run.answer(id, Ok(Value::from(text).into()))
        .expect("it waits");
}

fn done(run: &mut Run) -> Outcome {
    match run.next(Duration::ZERO) {
        Next::Done(outcome) => *outcome,
        other => panic!("the end was expected: {other:?}"),
    }
}

#[test]
fn d8_a_run_is_kept_before_its_first_turn() {
    let mut run = start(RunOptions::new());
    let begin = run.snapshot().expect("it has not ended");
    let mut again = restore(&begin, RunOptions::new()).expect("a snapshot");
    assert_eq!(again.snapshot().expect("it has not ended"), begin);
    assert_eq!(again.fuel_left(), run.fuel_left());
    let outcomes = [&mut run, &mut again].map(|run| {
        let mut ids = Vec::new();
        for text in ["one", "two"] {
            let id = call(run, 0);
            answer(run, &id, text);
            ids.push(id);
        }
        let outcome = done(run);
        assert_eq!(outcome.result.to_json_string(), RESULT);
        (ids, outcome.fuel_used)
    });
    assert_eq!(outcomes[0], outcomes[1]);
}

#[test]
fn a_run_goes_on_where_it_was() {
    let mut run = start(RunOptions::new());
    let first = call(&mut run, 0);
    let at_call = run.snapshot().expect("it waits");
    answer(&mut run, &first, "one");
    // The answer arrived and was not taken.
    let answered = run.snapshot().expect("it waits");
    let second = call(&mut run, 0);
    answer(&mut run, &second, "two");
    let whole = done(&mut run);
    assert_eq!(whole.result.to_json_string(), RESULT);
    assert_eq!(
        run.snapshot().expect_err("it is over").code,
        "call.run_over"
    );

    let mut again = restore(&at_call, RunOptions::new()).expect("a snapshot");
    assert_eq!(call(&mut again, 0), first, "the same call once more");
    assert!(matches!(again.next(Duration::ZERO), Next::Wait(_)));
    answer(&mut again, &first, "one");
    let id = call(&mut again, 0);
    assert_eq!(id, second);
    answer(&mut again, &id, "two");
    assert_eq!(done(&mut again), whole);

    let mut again = restore(&answered, RunOptions::new()).expect("a snapshot");
    assert!(
        again.answer(&first, Ok(Value::Null.into())).is_err(),
        "it has one"
    );
    let id = call(&mut again, 0);
    answer(&mut again, &id, "two");
    assert_eq!(done(&mut again), whole);
}

/// The same state gives the same bytes, and a run that has not begun has some too.
#[test]
fn the_same_state_gives_the_same_bytes() {
    let traced = || RunOptions::new().trace(true);
    let same = |run: &Run| {
        let bytes = run.snapshot().expect("it waits");
        assert!(bytes == run.snapshot().expect("it waits"));
        let again = restore(&bytes, traced()).expect("a snapshot");
        assert!(again.snapshot().expect("it waits") == bytes);
    };
    let mut run = start(traced());
    same(&run);
    call(&mut run, 0);
    same(&run);
}

#[test]
fn time_between_does_not_count() {
    let options = || RunOptions::new().timeout_ms(100);
    let mut run = start(options());
    call(&mut run, 60);
    let bytes = run.snapshot().expect("it waits");
    let mut again = restore(&bytes, options()).expect("a snapshot");
    let Next::Call(call) = again.next(Duration::ZERO) else {
        panic!("it calls")
    };
    assert_eq!(call.deadline, Some(Duration::from_millis(40)));
    assert!(matches!(
        again.next(Duration::from_millis(39)),
        Next::Wait(_)
    ));
    let Next::Done(outcome) = again.next(Duration::from_millis(40)) else {
        panic!("its time is up")
    };
    assert_eq!(outcome.error.expect("an error").code, ErrorCode::RunTimeout);
}

/// A suspended run keeps its used budget.
#[test]
fn quotas_and_fuel_are_kept() {
    let options = || RunOptions::new().quota("httpFetch", 1);
    let mut run = start(options());
    let first = call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    let fuel = run.fuel_left();
    let mut again = restore(&bytes, options()).expect("a snapshot");
    assert_eq!(again.fuel_left(), fuel);
    assert_eq!(call(&mut again, 0), first);
    answer(&mut again, &first, "one");
    let error = done(&mut again).error.expect("an error");
    assert_eq!(error.code, ErrorCode::QuotaExceeded);
    // A budget that is shared is not counted down again.
    let shared = options();
    let quota = shared.quotas["httpFetch"].clone();
    restore(&bytes, shared.clone()).expect("a snapshot");
    restore(&bytes, shared).expect("a snapshot");
    assert_eq!(quota.used(), 1);

    // Added fuel belongs to the budget.
    let mut run = start(RunOptions::new());
    call(&mut run, 0);
    run.refuel(Fuel::from_decimal(500.0).expect("fuel"))
        .expect("it goes on");
    let bytes = run.snapshot().expect("it waits");
    let refused = restore(&bytes, RunOptions::new()).expect_err("more than the options allow");
    assert_eq!(refused.code, "snapshot.other_options");
    let more = RunOptions::new().fuel(1500.0).expect("a budget");
    assert_eq!(
        restore(&bytes, more).expect("a snapshot").fuel_left(),
        run.fuel_left()
    );
}

#[test]
fn a_snapshot_fits_one_program() {
    let mut run = start(RunOptions::new());
    call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    let code = |engine: &Engine, program: &str, options: RunOptions| {
        let agent = engine.compile(program).expect("a program");
        let restored = engine.restore(&agent, &bytes, options, Capabilities::none());
        let refused = restored.expect_err("it does not fit");
        assert!(!refused.help().is_empty() && refused.to_string().contains(refused.code));
        refused.code
    };
    let engine = Engine::new();
    let other = PROGRAM.replace("https://b", "https://c");
    assert_eq!(
        code(&engine, &other, RunOptions::new()),
        "snapshot.other_program"
    );
    let atoms: AtomSet = all_atoms().without(&["uuid"]);
    let fewer = Engine::builder().atoms(atoms).build();
    assert_eq!(
        code(&fewer, PROGRAM, RunOptions::new()),
        "snapshot.other_atoms"
    );
    for options in [
        RunOptions::new().cost_model(CostModel::Flat),
        RunOptions::new().equality(Equality::Exact),
        RunOptions::new().trace(true),
        RunOptions::new().fuel(999.0).expect("a budget"),
    ] {
        assert_eq!(code(&engine, PROGRAM, options), "snapshot.other_options");
    }
    let small = RunOptions::new().heap_bytes(64);
    assert_eq!(code(&engine, PROGRAM, small), "snapshot.too_large");
}

#[test]
fn damage_is_told() {
    let mut run = start(RunOptions::new());
    call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    let code = |bytes: &[u8]| restore(bytes, RunOptions::new()).expect_err("refused").code;
    for end in 0..bytes.len() {
        let expected = match end {
            0..8 => "snapshot.no_snapshot",
            _ => "snapshot.wrong_length",
        };
        assert_eq!(code(&bytes[..end]), expected, "{end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(code(&longer), "snapshot.wrong_length");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        let expected = match at {
            0..8 => "snapshot.no_snapshot",
            8..12 => "snapshot.unknown_version",
            12..20 => "snapshot.wrong_length",
            _ => "snapshot.wrong_hash",
        };
        assert_eq!(code(&changed), expected, "{at}");
    }
}

/// A restored run uses the capabilities given at the restore.
#[test]
fn a_run_gets_the_capabilities_of_whoever_restores_it() {
    let engine = Engine::new();
    let fetch = |answer: &str| {
        let fetch = ScriptedFetch::new().on("https://a.example", answer);
        Capabilities::none().with_fetch(fetch)
    };
    let options = RunOptions::new();
    let mut run = engine.start(&agent(&engine), json!({}), options.clone(), fetch("mine"));
    call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    for (granted, expected) in [
        (fetch("another's"), Some("another's")),
        (Capabilities::none(), None),
    ] {
        let restored = engine.restore(&agent(&engine), &bytes, options.clone(), granted);
        let mut run = restored.expect("a snapshot");
        let Next::Call(call) = run.next(Duration::ZERO) else {
            panic!("the call is made again");
        };
        let mut answer = pin!(call.start(None));
        let Poll::Ready(answer) = answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("a script does not wait");
        };
        match expected {
            Some(text) => assert!(format!("{answer:?}").contains(text)),
            None => assert!(answer.is_err()),
        }
    }
}

/// Numbers of forged snapshots and of hosts do not overflow.
#[test]
fn no_number_runs_over() {
    /// Header and binding; then the number of the next call, and the time.
    const STEP: usize = 52 + 32 + 32 + 8 + 4;
    let mut run = start(RunOptions::new());
    call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    let forged = |at: usize, number: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        let hash = Sha256::digest(&bytes[52..]);
        bytes[20..52].copy_from_slice(&hash);
        bytes
    };
    for step in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let refused = restore(&forged(STEP, step), RunOptions::new());
        let refused = refused.expect_err("a number that would run over");
        assert_eq!(refused.code, "snapshot.bad_content");
    }
    // At the maximum time the run is late, and can be saved again.
    let old = forged(STEP + 8, u64::MAX);
    let mut late = restore(&old, RunOptions::new()).expect("a snapshot");
    let again = late.snapshot().expect("it waits");
    restore(&again, RunOptions::new()).expect("a snapshot");
    let error = done(&mut late).error.expect("an error");
    assert_eq!(error.code, ErrorCode::RunTimeout);
    // The largest ceiling and the latest moment.
    let large = RunOptions::new().heap_bytes(usize::MAX);
    let mut large = restore(&bytes, large).expect("a snapshot");
    let _ = large.next(Duration::MAX);
    let mut now = start(RunOptions::new());
    let _ = now.next(Duration::MAX - Duration::from_nanos(1));
    if let Ok(bytes) = now.snapshot() {
        restore(&bytes, RunOptions::new()).expect("a snapshot");
    }
}

/// A snapshot contains no secrets of the host.
#[test]
fn no_secret_of_the_host_is_kept() {
    let engine = Engine::new();
    let options = RunOptions::new()
        .trace(true)
        .context(json!({"apiKey": "s3cr3t-context"}))
        .quota("httpFetch", 7);
    let granted = Capabilities::none()
        .with_fetch(ScriptedFetch::new().on("https://a.example", "s3cr3t-answer"));
    let mut run = engine.start(&agent(&engine), json!({}), options, granted);
    call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    assert!(!bytes.windows(6).any(|part| part == b"s3cr3t"));
}

/// The end of a run that was suspended in another process, with the snapshot on standard
/// input.
const CHILD: &str = "A99_SNAPSHOT_CHILD";

#[test]
fn another_process_goes_on() {
    if std::env::var_os(CHILD).is_some() {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .expect("a snapshot");
        let mut run = restore(&bytes, RunOptions::new().trace(true)).expect("a snapshot");
        let id = call(&mut run, 0);
        answer(&mut run, &id, "two");
        let outcome = done(&mut run);
        let events = outcome.trace.expect("a trace");
        println!("fuel {} events {}", outcome.fuel_used.micro(), events.len());
        println!("result {}", outcome.result.to_json_string());
        return;
    }
    let mut run = start(RunOptions::new().trace(true));
    let id = call(&mut run, 0);
    answer(&mut run, &id, "one");
    let id = call(&mut run, 0);
    let bytes = run.snapshot().expect("it waits");
    answer(&mut run, &id, "two");
    let outcome = done(&mut run);

    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "another_process_goes_on", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(&bytes).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8(output.stdout).expect("text");
    let events = outcome.trace.expect("a trace").len();
    let fuel = outcome.fuel_used.micro();
    assert!(
        text.contains(&format!("fuel {fuel} events {events}")),
        "{text}"
    );
    assert!(text.contains(&format!("result {RESULT}")), "{text}");
}
