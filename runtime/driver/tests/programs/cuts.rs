//! Turns that are cut off at every call.

use crate::world::{CutJournal, Moment, World, block_on, engine, handler, shown, turn};
use a99_capabilities::{Capabilities, ScriptedAi};
use a99_runtime::program::{AgentProgram, MemoryJournal, OnUnknown, ProgramError, ProgramHandler};
use a99_testkit::generate::Case;
use a99_testkit::numbers::Numbers;
use agent99::capabilities::Script;
use agent99::capabilities::ai::ModelScript;
use agent99::{AgentRegistry, Engine, RunOptions, Value, json};
use std::path::Path;
use std::sync::Arc;

const ALL: [Moment; 4] = [
    Moment::Found,
    Moment::Started,
    Moment::Made,
    Moment::Answered,
];

/// Those after which a call is never made twice: what answers in turn answers the same.
const ONCE: [Moment; 2] = [Moment::Found, Moment::Answered];

/// A program, and whoever makes a world for it.
struct Scene<'a> {
    name: String,
    program: String,
    args: Value,
    make: &'a dyn Fn(&Engine) -> ProgramHandler,
    moments: &'a [Moment],
}

/// Cuts the turn off everywhere, and gives how often.
fn cut_everywhere(scene: &Scene<'_>) -> i64 {
    let mut cuts = 0;
    for moment in scene.moments {
        // Nothing is cut off, but counted.
        let world = Arc::new(World::default());
        let engine = engine(&world);
        let Ok(agent) = engine.compile(&*scene.program) else {
            return 0;
        };
        let program = AgentProgram::new(agent).expect("a program");
        let rows = Arc::new(MemoryJournal::new());
        let whole = Arc::new(CutJournal::new(rows, *moment, i64::MAX));
        let handler = (scene.make)(&engine);
        let run = handler.handle(&program, turn(scene.args.clone(), whole.clone()));
        let expected = shown(&block_on(run).expect("an end"));
        let made = world.made();
        for number in 0..whole.seen() {
            let name = format!("{}, {moment:?} {number}: {}", scene.name, scene.program);
            let world = Arc::new(World::default());
            let engine = self::engine(&world);
            // Agents have the atoms of their engine, and so its world.
            let agent = engine.compile(&*scene.program).expect("a program");
            let program = AgentProgram::new(agent).expect("a program");
            let handler = (scene.make)(&engine);
            let rows = Arc::new(MemoryJournal::new());
            let journal = Arc::new(CutJournal::new(rows.clone(), *moment, number));
            let run = handler.handle(&program, turn(scene.args.clone(), journal));
            let error = block_on(run).expect_err("it is cut off");
            assert!(matches!(error, ProgramError::Journal(_)), "{name}: {error}");
            let answered: Vec<_> = rows.rows();
            let run = handler.handle(&program, turn(scene.args.clone(), rows.clone()));
            let end = block_on(run).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(shown(&end), expected, "{name}: {answered:?}");
            let again = world.made();
            assert_eq!(made.len(), again.len(), "{name}");
            let twice = again.values().filter(|count| **count > 1).count();
            let once = *moment != Moment::Made;
            assert!(again.values().all(|count| *count <= 2), "{name}");
            assert!(!once || twice == 0, "{name}: {again:?}");
            // Once more: all is answered.
            let run = handler.handle(&program, turn(scene.args.clone(), rows));
            let end = block_on(run).expect("an end");
            if end.outcome.error.is_none() {
                assert_eq!(shown(&end), expected, "{name}");
                assert_eq!(world.made(), again, "{name}");
            }
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn random_programs_end_as_if_nobody_cut_them_off() {
    let mut numbers = Numbers::of_state(11);
    let (mut programs, mut cuts) = (0, 0);
    for _ in 0..20_000 {
        let case = Case::from_bytes(&numbers.bytes(400));
        let whole = case.to_value();
        let program = case.program().to_json_string();
        if !program.contains("\"host\"") {
            continue;
        }
        let make = |engine: &Engine| {
            let options = || RunOptions::new().timeout_ms(60_000);
            handler(engine)
                .options(options)
                .on_unknown(OnUnknown::Retry)
        };
        let found = cut_everywhere(&Scene {
            name: format!("program {programs}"),
            program,
            args: whole.get("args").cloned().unwrap_or(Value::Null),
            make: &make,
            moments: &ALL,
        });
        programs += i64::from(found > 0);
        cuts += found;
        if programs == 100 {
            assert!(cuts > 500, "{cuts}");
            return;
        }
    }
    panic!("only {programs} programs have calls");
}

#[test]
fn examples_end_as_if_nobody_cut_them_off() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut examples, mut cuts) = (0, 0);
    for entry in std::fs::read_dir(root).expect("a folder") {
        let folder = entry.expect("an entry").path();
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
        let (Some(program), Some(script)) = (read("agent.json"), read("script.json")) else {
            continue;
        };
        let args = read("args.json").expect("arguments");
        let parsed = |text: &str| -> Value {
            let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
            json.into()
        };
        let script = parsed(&script);
        let make = |engine: &Engine| {
            let script = Script::new(script.clone()).expect("a script");
            let granted = block_on(script.granted()).expect("capabilities");
            handler(engine).granted(granted)
        };
        let found = cut_everywhere(&Scene {
            name: folder.display().to_string(),
            program,
            args: parsed(&args),
            make: &make,
            moments: &ONCE,
        });
        assert!(found > 0, "{}", folder.display());
        examples += 1;
        cuts += found;
    }
    assert!(examples >= 8 && cuts > 50, "{examples} {cuts}");
}

/// Two sub-agents at once, each of which asks the world twice and draws at random.
const LEAD: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "host", "gives": "begin", "result": "first"},
    {"op": "callAll", "limit": 2, "calls": [
        {"op": "agentRun", "agentId": "sub", "input": {"n": 1}},
        {"op": "host", "gives": 5},
        {"op": "agentRun", "agentId": "sub", "input": {"n": 2}}
    ], "result": "all"},
    {"op": "agentRun", "agentId": "sub", "input": {"n": 3}, "result": "last"},
    {"op": "uuid", "result": "id"},
    {"op": "return", "value": {"=": "[first, all, last, id]"}}
]}"#;

const SUB: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "host", "gives": {"x": 1}, "result": "a"},
    {"op": "uuid", "result": "id"},
    {"op": "host", "gives": [true], "result": "b"},
    {"op": "return", "value": {"=": "[n, a, b, id, Date.now()]"}}
]}"#;

#[test]
fn sub_agents_that_were_answered_do_not_run_again() {
    let make = |engine: &Engine| {
        let sub = engine.compile(SUB).expect("a program");
        let agents = AgentRegistry::builder(engine).agent("sub", sub).build();
        handler(engine)
            .agents(agents.expect("agents"))
            .on_unknown(OnUnknown::Retry)
    };
    let cuts = cut_everywhere(&Scene {
        name: "sub-agents".into(),
        program: LEAD.into(),
        args: json!({}).into(),
        make: &make,
        moments: &ALL,
    });
    // Eight calls of the world and three of agents.
    assert!(cuts >= 11 + 8 + 11 + 11, "{cuts}");
}

const TALK: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "llmToolLoop", "prompt": "go", "tools": [
        {"name": "ask", "description": "Asks the world.",
         "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
         "as": "input", "call": {"op": "host", "gives": "an answer"}}
    ], "result": "talk"},
    {"op": "return", "value": "talk"}
]}"#;

#[test]
fn loops_of_tools_end_as_if_nobody_cut_them_off() {
    let make = |engine: &Engine| {
        let turns = json!([
            {"tools": [{"name": "ask", "input": {"q": "a"}}, {"name": "ask", "input": {"q": "b"}}]},
            {"tools": [{"name": "ask", "input": {"q": "c"}}]},
            "done"
        ]);
        let script = ModelScript::new(&turns.into()).expect("a script");
        let granted = Capabilities::none().with_ai(ScriptedAi::new(script));
        handler(engine)
            .granted(granted)
            .on_unknown(OnUnknown::Retry)
    };
    let cuts = cut_everywhere(&Scene {
        name: "a loop of tools".into(),
        program: TALK.into(),
        args: json!({}).into(),
        make: &make,
        moments: &ONCE,
    });
    // Three answers of the model and three of the world.
    assert_eq!(cuts, 2 * 6);
}
