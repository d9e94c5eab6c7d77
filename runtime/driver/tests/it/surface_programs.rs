//! What programs do on their channel: they read the roster, call and answer methods, invite agents.

use crate::script::is;
use crate::support::{Counter, Files, LONG, ann, builder, key, quick, say, store, texts};
use a99_runtime::program::{ProgramAgent, ProgramAgentBuilder, ProgramMethod};
use a99_runtime::{Agent, Delivery, Event, Host, HostBuilder, Method, Methods, Turn, TurnOutcome};
use a99_runtime_engine::{AgentStore, BoxFuture, Trigger};
use agent99::{
    AtomBody, AtomDef, AtomError, AtomSig, Effect, Engine, HostCall, HostReply, Params, all_atoms,
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Adds numbers, and counts how often.
#[derive(Clone, Default)]
struct Adds(Arc<AtomicU32>);

impl Agent for Adds {
    type State = Map<String, Value>;
    type Settings = Value;

    fn methods(&self) -> Methods<Adds> {
        let add = Method::new("Adds two numbers.", |agent: &Adds, _, call| {
            Box::pin(async move {
                agent.0.fetch_add(1, Ordering::SeqCst);
                let [a, b] = ["a", "b"].map(|name| call.args[name].as_f64());
                Ok(json!(a.ok_or("no a")? + b.ok_or("no b")?))
            })
        });
        Methods::none().with("add", add)
    }

    async fn on_event(&self, _: &mut Turn<'_, Self>, _: Event) -> TurnOutcome {
        Ok(())
    }
}

/// Does what messages of people say; `draw` answers in parts.
const SOURCE: &str = r#"async function agent({ event, state }: any) {
  if (event.type === 'method-call') {
    await agentMethodResult({ callId: event.callId, content: 'sketch', progress: 50 })
    return 'whole'
  }
  if (event.type !== 'message' || event.sender.type !== 'panel') return null
  const [word, rest] = event.content.split(' ')
  if (word === 'roster') {
    const roster = await agentRoster({})
    const names = roster.map((who) => `${who.handle}:${who.methods.map((m) => m.name).join('+')}`)
    await agentSend({ content: names.join(' ') })
  }
  if (word === 'add') {
    const sum = await agentCallMethod({ to: '@Adder', method: 'add', args: { a: 2, b: 3 } })
    const again = await agentCallMethod({ to: 'adder', method: 'add', args: { a: 2, b: 3 } })
    await agentSend({ content: `${sum} ${again}` })
  }
  if (word === 'wrong') {
    try {
      await agentCallMethod({ to: 'adder', method: rest })
    } catch (error) {
      await agentSend({ content: error.message })
    }
  }
  if (word === 'invite' || word === 'remove') {
    try {
      let done: any = null
      if (word === 'invite') done = await agentInvite({ agent: rest, handle: 'guest' })
      if (word === 'remove') done = await agentRemove({ agent: rest, handle: 'guest' })
      await agentSend({ content: `${done}` })
    } catch (error) {
      await agentSend({ content: error.message })
    }
  }
  return null
}"#;

/// The calls of a program in JSON.
const JSON: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "if", "condition": "event.content != 'go'", "then": [{"op": "return", "value": null}]},
    {"op": "agentRoster", "result": "roster"},
    {"op": "agentCallMethod", "to": {"=": "roster[1].id"}, "method": "add", "args": {"a": 1, "b": {"=": "roster.length"}}, "result": "sum"},
    {"op": "agentInvite", "agent": "counter", "result": "key"},
    {"op": "agentRemove", "agent": "counter", "result": "gone"},
    {"op": "agentSend", "content": {"=": "`${sum} ${key} ${gone}`"}}
]}"#;

fn built(engine: &Engine, text: &str) -> ProgramAgentBuilder {
    let program = match text.starts_with('{') {
        true => engine.compile(text).expect("a program"),
        false => engine.compile_source(text).expect("a program"),
    };
    let draw = ProgramMethod::new("Draws in two parts.");
    ProgramAgent::builder(engine, program)
        .policy(quick(Delivery::default()))
        .method("draw", draw)
        .invites(["counter"])
}

/// A host of the program, of an agent that adds and of one to invite.
async fn hosted(
    files: &Files,
    agent: ProgramAgent,
    adds: &Adds,
    define: impl FnOnce(HostBuilder, ProgramAgent) -> HostBuilder,
) -> Host {
    let adds = adds.clone();
    let host = define(builder(), agent)
        .agent("adder", move |_| adds.clone())
        .agent("counter", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    for text in ["p/c/p", "adder/c/adder"] {
        host.invite(&key(text), json!({})).await.expect("invited");
    }
    host
}

fn here(host: HostBuilder, agent: ProgramAgent) -> HostBuilder {
    host.agent("p", move |_| agent.clone())
}

/// What the program answers.
async fn answer(host: &Host, text: &str) -> String {
    say(host, "c", text).await;
    assert!(host.settled(LONG).await);
    texts(host, "c").await.pop().expect("an answer")
}

async fn does_all(host: &Host, adds: &Adds) {
    assert_eq!(answer(host, "roster").await, "p:draw adder:add");
    // The same call twice is two calls.
    assert_eq!(answer(host, "add").await, "5 5");
    assert_eq!(adds.0.load(Ordering::SeqCst), 2);
    let wrong = answer(host, "wrong sing").await;
    assert!(wrong.contains("method-not-found"), "{wrong}");
    let wrong = answer(host, "wrong add").await;
    assert!(wrong.contains("no a"), "{wrong}");
    let refused = answer(host, "invite adder").await;
    assert!(refused.contains("agent.not_allowed"), "{refused}");
    let refused = answer(host, "remove adder").await;
    assert!(refused.contains("agent.not_allowed"), "{refused}");
    let guest = key("counter/c/guest");
    say(host, "c", "invite counter").await;
    crate::script::until("the guest is there", async || {
        host.agents().contains(&guest)
    })
    .await;
    assert!(host.settled(LONG).await);
    assert!(
        texts(host, "c")
            .await
            .contains(&"counter/c/guest".to_owned())
    );
    assert_eq!(answer(host, "remove counter").await, "true");
    assert!(!host.agents().contains(&guest));
    let p = key("p/c/p");
    let call = host.call_method(ann(), &p, "draw", json!({}), None).await;
    let mut call = call.expect("a call");
    let mut parts = Vec::new();
    while let Some(part) = call.next().await.expect("a part") {
        parts.push((part.content.expect("content"), part.progress));
    }
    assert_eq!(
        parts,
        [(json!("sketch"), Some(50.0)), (json!("whole"), None)]
    );
}

#[tokio::test]
async fn a_source_uses_its_channel() {
    let (files, adds) = (Files::new(), Adds::default());
    let agent = built(&Engine::new(), SOURCE).build().expect("an agent");
    let host = hosted(&files, agent, &adds, here).await;
    does_all(&host, &adds).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_uses_its_channel_from_another_process() {
    let (files, adds) = (Files::new(), Adds::default());
    let agent = built(&Engine::new(), SOURCE).build().expect("an agent");
    let sockets = files.path().with_file_name("agents");
    let there = |host: HostBuilder, agent: ProgramAgent| {
        let host = host.process(a99_runtime::Process::attached(&sockets), ["p"]);
        tokio::spawn(async move {
            while !sockets.join("token").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            let agents = a99_runtime::AgentProcess::new().agent("p", move |_| agent.clone());
            agents.attach(sockets).await
        });
        host
    };
    let host = hosted(&files, agent, &adds, there).await;
    does_all(&host, &adds).await;
}

#[tokio::test]
async fn a_document_uses_its_channel() {
    let (files, adds) = (Files::new(), Adds::default());
    let agent = built(&Engine::new(), JSON).build().expect("an agent");
    let host = hosted(&files, agent, &adds, here).await;
    say(&host, "c", "go").await;
    assert!(host.settled(LONG).await);
    let said = texts(&host, "c").await;
    assert!(
        said.contains(&"3 counter/c/counter true".to_owned()),
        "{said:?}"
    );
}

/// An atom that reads the world, which is down at first.
fn fails_once(asked: Arc<AtomicU32>) -> AtomDef {
    let body = move |_: HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
        let answer = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Err(AtomError::new("the world is down")),
            _ => Ok(HostReply::from(agent99::Value::from(1))),
        };
        Box::pin(std::future::ready(answer))
    };
    AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed("look"),
            params: Params::Open,
            effect: Effect::Read,
            ..AtomSig::new("", "Looks at the world.", 1_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(body)),
        dynamic_cost: None,
    }
}

#[tokio::test]
async fn a_turn_that_runs_again_makes_no_call_again_and_replays_without_the_world() {
    let (files, adds) = (Files::new(), Adds::default());
    // The first attempt fails after its calls.
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "if", "condition": "event.content != 'go'", "then": [{"op": "return", "value": null}]},
        {"op": "agentRoster", "result": "roster"},
        {"op": "agentCallMethod", "to": "adder", "method": "add", "args": {"a": 1, "b": 1}, "result": "one"},
        {"op": "agentCallMethod", "to": "adder", "method": "add", "args": {"a": 1, "b": 1}, "result": "two"},
        {"op": "look", "result": "page"},
        {"op": "agentSend", "content": {"=": "`${one + two} ${roster.length}`"}}
    ]}"#;
    let fetched = Arc::new(AtomicU32::new(0));
    let atoms = all_atoms().with(fails_once(Arc::clone(&fetched)));
    let engine = Engine::builder().atoms(atoms).build();
    let agent = built(&engine, text).build().expect("an agent");
    let host = hosted(&files, agent.clone(), &adds, here).await;
    say(&host, "c", "go").await;
    assert!(host.settled(LONG).await);
    assert_eq!(fetched.load(Ordering::SeqCst), 2, "the turn ran twice");
    assert_eq!(adds.0.load(Ordering::SeqCst), 2, "each method once");
    assert_eq!(texts(&host, "c").await, ["go", "4 2"]);
    is(&host, &key("p/c/p"), "asleep").await;
    host.drain(LONG).await.expect("drained");
    drop(host);
    let kept = store(&files.path());
    let p = key("p/c/p");
    let turns = kept.kept_turns(&p).await.expect("turns");
    let mut with_calls = 0;
    for trigger in turns {
        let Trigger::Event(_) = trigger else { continue };
        let (turn, after) = kept
            .kept_turn(&p, &trigger)
            .await
            .expect("read")
            .expect("kept");
        let replay = agent
            .replay(&kept, &p, &turn, after.as_deref())
            .await
            .expect("a replay");
        assert_eq!(replay.departure, None);
        assert_eq!(replay.replayed, replay.committed);
        with_calls += usize::from(!replay.committed.sent.is_empty());
    }
    assert_eq!(with_calls, 1);
    assert_eq!(adds.0.load(Ordering::SeqCst), 2, "a replay calls nobody");
}
