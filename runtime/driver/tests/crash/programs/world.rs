//! World of a scene: an engine whose calls are answered by their identity, and written down.

use super::scene::{Scene, Text};
use a99_capabilities::ai::ModelScript;
use a99_capabilities::{
    AgentTurn, BoxFuture, Capabilities, FixedClock, MemoryTurn, Script, ScriptedAi, SeededRandom,
};
use a99_runtime::program::testing::answered;
use a99_runtime::program::{
    AgentProgram, MemoryJournal, OnUnknown, ProgramAgent, ProgramAgentBuilder, ProgramArgs,
    ProgramHandler, ProgramTurn,
};
use a99_runtime_engine::JournalStatus;
use a99_vm::atom::TimeCharge;
use agent99::{
    Agent, AgentRegistry, AtomBody, AtomDef, AtomError, AtomSet, AtomSig, AtomTimeout, Effect,
    Engine, Fuel, HostCall, HostReply, Params, RunOptions, Value, all_atoms,
};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The time at which all runs of a scene begin, so that they are the same.
const NOW: f64 = 1_700_000_000_000.0;

fn value(json: &serde_json::Value) -> Value {
    json.clone().into()
}

/// An atom of the host's for random programs, which gives what it is asked to.
fn host_atom() -> AtomDef {
    let body = |call: HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
        Box::pin(async move {
            let input = call.args.first().cloned().unwrap_or(Value::Undefined);
            let given = input.get("gives").cloned();
            let given = given.unwrap_or_else(|| call.id.step().to_string().into());
            Ok(HostReply::from(given))
        })
    };
    AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed("host"),
            params: Params::Raw,
            timeout: AtomTimeout::Ms(30_000),
            effect: Effect::Unsafe,
            ..AtomSig::new("", "An atom of the host.", 300_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(body)),
        dynamic_cost: None,
    }
}

/// The same atom, which writes calls down that have an answer, and gives that.
fn written(atom: &AtomDef, answers: &Arc<BTreeMap<String, String>>, calls: &Arc<File>) -> AtomDef {
    let (body, answers, calls) = (atom.body.clone(), answers.clone(), calls.clone());
    let make = move |call: HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
        let Some(text) = answers.get(&call.id.to_string()) else {
            return match &body {
                AtomBody::Async(body) => body(call),
                AtomBody::AsyncDyn(body) => body(call),
                _ => unreachable!("only those that wait are replaced"),
            };
        };
        let line = format!("{}\n", call.id);
        (&*calls).write_all(line.as_bytes()).expect("written down");
        let (result, charged) = answered(text).expect("an answer");
        let charge = TimeCharge::start(&call, charged);
        charge.settle(Duration::from_secs(1));
        Box::pin(std::future::ready(result))
    };
    AtomDef {
        body: AtomBody::AsyncDyn(Arc::new(make)),
        ..atom.clone()
    }
}

fn atoms() -> AtomSet {
    all_atoms().with(host_atom())
}

fn compiled(engine: &Engine, text: &Text) -> Option<Agent> {
    match text.is_source {
        true => engine.compile_source(&*text.text).ok(),
        false => engine.compile(&*text.text).ok(),
    }
}

pub(crate) fn compiles(scene: &Scene) -> bool {
    let engine = Engine::builder().atoms(atoms()).build();
    compiled(&engine, &scene.program).is_some()
}

/// What a scene needs to run, on an engine.
struct Needs {
    program: Agent,
    granted: Capabilities,
    agents: Option<AgentRegistry>,
}

async fn needs(scene: &Scene, engine: &Engine) -> Needs {
    let read = |text| compiled(engine, text).unwrap_or_else(|| panic!("{}", scene.name));
    let script = Script::new(value(&scene.script)).expect("a script");
    let mut granted = script.granted().await.expect("capabilities");
    if let Some(turns) = &scene.turns {
        let model = ModelScript::new(&value(turns)).expect("turns of a model");
        granted = granted.with_ai(ScriptedAi::new(model));
    }
    let mut agents = AgentRegistry::builder(engine).granted(granted.clone());
    for (name, text) in &scene.agents {
        agents = agents.agent(name, read(text));
    }
    let agents = agents.build().expect("agents");
    Needs {
        program: read(&scene.program),
        granted,
        agents: (!scene.agents.is_empty()).then_some(agents),
    }
}

/// Time enough for any machine.
fn options() -> RunOptions {
    let mut options = RunOptions::new().timeout_ms(600_000);
    options.fuel = Fuel::from_decimal(2_000.0).expect("fuel");
    options
}

/// What the program gets.
fn args(scene: &Scene) -> impl Fn(ProgramArgs) -> Value + Send + Sync + 'static {
    let own = scene.args.clone();
    move |args| match &own {
        Some(own) => value(own),
        None => Value::from(args),
    }
}

/// Runs the scene once beside any host, and gives the answers of all calls of the world.
pub(crate) fn answers(scene: &Scene) -> BTreeMap<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let journal = Arc::new(MemoryJournal::new());
    let is_driven = runtime.block_on(async {
        let engine = Engine::builder().atoms(atoms()).build();
        let needs = needs(scene, &engine).await;
        let (clock, random) = (FixedClock::new(NOW), SeededRandom::new(5));
        let mut handler = ProgramHandler::new(engine, Arc::new(clock), Arc::new(random))
            .granted(needs.granted)
            .options(options)
            .on_unknown(OnUnknown::Retry);
        let is_driven = needs.agents.is_some();
        if let Some(agents) = needs.agents {
            handler = handler.agents(agents);
        }
        let given = ProgramArgs {
            event: value(&json!({
                "type": "message",
                "id": "a",
                "content": scene.message,
                "sender": {"type": "panel"},
            })),
            state: value(&json!({})),
            settings: value(&scene.settings),
            identity: value(&json!({})),
        };
        let turn = ProgramTurn {
            args: args(scene)(given),
            journal: journal.clone(),
            turn: Some(Arc::new(MemoryTurn::new()) as Arc<dyn AgentTurn>),
        };
        let program = AgentProgram::new(needs.program).expect("a program");
        let end = handler.handle(&program, turn).await;
        end.unwrap_or_else(|error| panic!("{}: {error}", scene.name));
        is_driven
    });
    let rows = journal.rows().into_iter();
    let found = rows.filter_map(|row| {
        let id = row.name.strip_prefix("call:")?.to_owned();
        match row.status {
            JournalStatus::Done(text) | JournalStatus::Failed(_, text) => Some((id, text)),
            JournalStatus::Started => None,
        }
    });
    let mut answers: BTreeMap<String, String> = found.collect();
    if is_driven {
        // A call of a sub-agent, whose own calls begin with its identity, is made anew.
        let callers: Vec<String> = answers
            .keys()
            .filter_map(|id| id.rsplit_once('/').map(|(caller, _)| caller.to_owned()))
            .collect();
        callers
            .iter()
            .for_each(|caller| drop(answers.remove(caller)));
    }
    answers
}

/// The agent of a scene, whose calls are written into a file of the folder.
pub(crate) async fn agent(scene: &Scene, folder: &Path) -> ProgramAgentBuilder {
    let calls = File::options()
        .append(true)
        .create(true)
        .open(folder.join("calls"));
    let calls = Arc::new(calls.expect("a file"));
    let answers = Arc::new(scene.answers.clone());
    let mut set = AtomSet::new();
    for atom in atoms().iter() {
        set.insert(match atom.body.waits() {
            true => written(atom, &answers, &calls),
            false => AtomDef::clone(atom),
        });
    }
    let engine = Engine::builder().atoms(set).build();
    let needs = needs(scene, &engine).await;
    let mut builder = ProgramAgent::builder(&engine, needs.program)
        .granted(needs.granted)
        .options(options)
        .on_unknown(OnUnknown::Retry)
        .clock(Arc::new(FixedClock::new(NOW)))
        .random(Arc::new(SeededRandom::new(5)))
        .args(args(scene))
        .settings(scene.settings.as_object().cloned().unwrap_or_default());
    if let Some(agents) = needs.agents {
        builder = builder.agents(agents);
    }
    builder
}
