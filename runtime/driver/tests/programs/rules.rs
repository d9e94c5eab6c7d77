//! Rules of journals, one by one.

use crate::world::{CutJournal, Moment, World, block_on, engine, handler, shown, turn};
use a99_capabilities::{AgentTurn, FixedClock, MemoryTurn, SystemClock, SystemRandom, TurnChange};
use a99_runtime::program::{
    AgentProgram, CallJournal, MemoryJournal, OnUnknown, ProgramEnd, ProgramError, ProgramHandler,
    ProgramSource, ProgramTurn, turn_result,
};
use a99_runtime_engine::{BoxFuture, StoreError, TurnResult};
use agent99::{AtomTimeout, Engine, RunOptions, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn program(engine: &Engine, text: &str) -> AgentProgram {
    let agent = engine.compile(text).expect("a program");
    AgentProgram::new(agent).expect("bytes")
}

fn run(
    handler: &ProgramHandler,
    program: &AgentProgram,
    journal: Arc<dyn CallJournal>,
) -> Result<ProgramEnd, ProgramError> {
    block_on(handler.handle(program, turn(json!({"n": 1}).into(), journal)))
}

fn result(end: Result<ProgramEnd, ProgramError>) -> serde_json::Value {
    let outcome = end.expect("an end").outcome;
    assert_eq!(outcome.error, None);
    outcome.result.to_json()
}

const ASK: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "host", "gives": 1, "result": "a"},
    {"op": "return", "value": "a"}
]}"#;

const CAUGHT: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "varSet", "key": "a", "value": 0},
    {"op": "try", "try": [{"op": "host", "gives": 1, "result": "a"}],
     "catch": [{"op": "varSet", "key": "a", "value": "error"}]},
    {"op": "return", "value": "a"}
]}"#;

#[test]
fn time_and_chance_are_those_of_the_first_start() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let handler = ProgramHandler::new(
        engine.clone(),
        Arc::new(SystemClock),
        Arc::new(SystemRandom),
    );
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "uuid", "result": "first"},
        {"op": "host", "gives": 1},
        {"op": "random", "min": 0, "max": 1000000, "result": "second"},
        {"op": "storeProcedure", "ast": {"op": "seq", "steps": []}, "result": "token"},
        {"op": "storeSet", "key": "k", "value": 1},
        {"op": "return", "value": {"=": "[first, second, token, Date.now()]"}}
    ]}"#;
    let program = program(&engine, text);
    let journal = Arc::new(MemoryJournal::new());
    let first = run(&handler, &program, journal.clone()).expect("an end");
    std::thread::sleep(Duration::from_millis(5));
    let again = run(&handler, &program, journal).expect("an end");
    assert_eq!(first.outcome.error, None);
    assert_eq!(shown(&first), shown(&again));
    let other = run(&handler, &program, Arc::new(MemoryJournal::new())).expect("an end");
    assert_ne!(shown(&first), shown(&other));
    assert_eq!(world.made().values().sum::<u32>(), 2);
}

#[test]
fn what_nobody_knows_fails_or_is_made_again() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let started = |text: &str| {
        let program = program(&engine, text);
        let journal = Arc::new(MemoryJournal::new());
        let cut = Arc::new(CutJournal::new(journal.clone(), Moment::Started, 0));
        let error = run(&handler(&engine), &program, cut).expect_err("it is cut off");
        assert_eq!(error.code(), "store.unavailable");
        assert!(!error.is_final());
        (program, journal)
    };
    let (program, journal) = started(ASK);
    let end = run(&handler(&engine), &program, journal.clone());
    let failed = turn_result(&end);
    let is_final = matches!(&failed, TurnResult::Failed { code, is_final: true, .. }
        if code == "step.unknown_outcome");
    assert!(is_final, "{failed:?}");
    assert!(world.made().is_empty());
    let retries = handler(&engine).on_unknown(OnUnknown::Retry);
    assert_eq!(result(run(&retries, &program, journal)), json!(1));
    assert_eq!(world.made().len(), 1);
    let (program, journal) = started(CAUGHT);
    let caught = result(run(&handler(&engine), &program, journal));
    assert!(caught.as_str().expect("a text").contains("nobody knows"));
}

#[test]
fn another_body_ends_the_run() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "host", "gives": {"$kind": "arg", "path": "n"}, "result": "a"},
        {"op": "agentRun", "agentId": "x", "input": {"n": {"$kind": "arg", "path": "n"}}}
    ]}"#;
    let program = program(&engine, text);
    let runner = a99_capabilities::FnAgentRunner::new(|_, input, _| Ok(input.into()));
    let granted = a99_capabilities::Capabilities::none().with_agent(runner);
    let handler = handler(&engine).granted(granted);
    let journal = Arc::new(MemoryJournal::new());
    let run = |n: i32| {
        let args: Value = json!({"n": n}).into();
        block_on(handler.handle(&program, turn(args, journal.clone())))
    };
    run(1).expect("an end");
    let error = run(2).expect_err("it does something else");
    assert_eq!(
        (error.code(), error.is_final()),
        ("step.changed_body", true)
    );
}

#[test]
fn a_call_that_ended_the_run_is_made_again_and_one_that_was_caught_is_not() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let handler = handler(&engine);
    *world.failures.lock().expect("a lock") = 1;
    let ask = program(&engine, ASK);
    let journal = Arc::new(MemoryJournal::new());
    let end = run(&handler, &ask, journal.clone());
    let failed = turn_result(&end);
    assert!(
        matches!(
            &failed,
            TurnResult::Failed {
                is_final: false,
                ..
            }
        ),
        "{failed:?}"
    );
    assert_eq!(result(run(&handler, &ask, journal)), json!(1));
    *world.failures.lock().expect("a lock") = 1;
    let caught = program(&engine, CAUGHT);
    let journal = Arc::new(MemoryJournal::new());
    for _ in 0..2 {
        let end = run(&handler, &caught, journal.clone());
        assert_eq!(result(end), json!("the world is down"));
    }
    assert_eq!(world.made().values().sum::<u32>(), 3);
}

#[test]
fn an_error_of_the_program_is_final() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let text = r#"{"op": "seq", "steps": [{"op": "host"}, {"op": "Error", "args": ["no"]}]}"#;
    let end = run(
        &handler(&engine),
        &program(&engine, text),
        Arc::new(MemoryJournal::new()),
    );
    let failed = turn_result(&end);
    assert!(
        matches!(&failed, TurnResult::Failed { is_final: true, .. }),
        "{failed:?}"
    );
    let little = handler(&engine).options(|| RunOptions::new().fuel(0.1).expect("fuel"));
    let end = run(
        &little,
        &program(&engine, ASK),
        Arc::new(MemoryJournal::new()),
    );
    let failed = turn_result(&end);
    let is_final = matches!(&failed, TurnResult::Failed { code, is_final: true, .. }
        if code == "fuel.exhausted");
    assert!(is_final, "{failed:?}");
}

#[test]
fn a_call_that_was_late_is_late_again() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let text = CAUGHT.replace("\"gives\": 1", "\"waits\": true");
    let program = program(&engine, &text);
    let handler =
        handler(&engine).options(|| RunOptions::new().atom_timeout("host", AtomTimeout::Ms(30)));
    let journal = Arc::new(MemoryJournal::new());
    let first = run(&handler, &program, journal.clone()).expect("an end");
    assert_eq!(
        first.outcome.result.to_json(),
        json!("Atom 'host' timed out")
    );
    let began = Instant::now();
    let again = run(&handler, &program, journal).expect("an end");
    assert!(began.elapsed().as_millis() < 25);
    assert_eq!(shown(&first), shown(&again));
}

#[test]
fn what_a_program_does_with_its_turn_happens_again() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "agentSend", "content": "working", "result": "id"},
        {"op": "host", "gives": 1},
        {"op": "agentSetState", "state": {"asked": 1}},
        {"op": "agentSetTimer", "name": "t", "after": 1000},
        {"op": "agentState", "result": "state"},
        {"op": "return", "value": {"=": "[id, state]"}}
    ]}"#;
    let program = program(&engine, text);
    let journal = Arc::new(MemoryJournal::new());
    let mut all: Vec<Vec<TurnChange>> = Vec::new();
    for _ in 0..2 {
        let memory = Arc::new(MemoryTurn::new());
        let acts = ProgramTurn {
            args: json!({}).into(),
            journal: journal.clone(),
            turn: Some(memory.clone() as Arc<dyn AgentTurn>),
        };
        let end = block_on(handler(&engine).handle(&program, acts));
        assert_eq!(result(end), json!(["message-0", {"asked": 1}]));
        all.push(memory.changes());
    }
    assert_eq!(all[0].len(), 2);
    assert_eq!(all[0], all[1]);
    assert_eq!(journal.rows().len(), 2);
    assert_eq!(world.made().values().sum::<u32>(), 1);
}

struct Kept(AgentProgram);

impl ProgramSource for Kept {
    fn program(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        let found = (hash == *self.0.hash()).then(|| self.0.bytes().to_vec());
        Box::pin(std::future::ready(Ok(found)))
    }
}

#[test]
fn a_turn_ends_on_the_program_that_it_began_with() {
    let world = Arc::new(World::default());
    let engine = engine(&world);
    let (old, new) = (program(&engine, ASK), program(&engine, CAUGHT));
    let journal = Arc::new(MemoryJournal::new());
    let cut = Arc::new(CutJournal::new(journal.clone(), Moment::Answered, 0));
    run(&handler(&engine), &old, cut).expect_err("it is cut off");
    let error = run(&handler(&engine), &new, journal.clone()).expect_err("it is not kept");
    assert_eq!(error.code(), "program.missing");
    let source = Arc::new(Kept(old));
    let handler = handler(&engine).programs(source);
    assert_eq!(result(run(&handler, &new, journal)), json!(1));
    assert_eq!(world.made().values().sum::<u32>(), 1);
}

#[test]
fn a_sleep_ends_at_the_time_of_its_first_start() {
    let engine = Engine::new();
    let program = program(
        &engine,
        r#"{"a99": 4, "op": "seq", "steps": [
            {"op": "sleep", "ms": 3600000},
            {"op": "return", "value": {"=": "Date.now()"}}
        ]}"#,
    );
    let clock = Arc::new(FixedClock::new(1_000.0));
    let handler = ProgramHandler::new(engine, Arc::clone(&clock) as _, Arc::new(SystemRandom));
    let journal = Arc::new(MemoryJournal::new());
    let once = || handler.handle(&program, turn(json!({}).into(), journal.clone()));
    // It is cut off while it sleeps, and its process starts again 50 ms before the end.
    block_on(async {
        let cut = tokio::time::timeout(Duration::from_millis(30), once()).await;
        assert!(cut.is_err(), "{cut:?}");
    });
    clock.set(3_600_950.0);
    let began = Instant::now();
    assert_eq!(result(block_on(once())), json!(3_601_000));
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(50) && took < Duration::from_secs(20),
        "{took:?}"
    );
    // A time that has passed is not waited for.
    clock.set(9_000_000.0);
    assert_eq!(result(block_on(once())), json!(3_601_000));
    assert_eq!(journal.rows().len(), 2);
}
