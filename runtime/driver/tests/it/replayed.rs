//! Turns that are replayed without the world: the same as they were, and another program.

use crate::support::{Files, LONG, ann, builder, key, quick, say, store};
use a99_runtime::program::{
    ProgramAgent, ProgramAgentBuilder, ProgramMethod, TurnReplay, program_of,
};
use a99_runtime::{Delivery, HostOptions, Retry, Tables, Trigger};
use a99_runtime_engine::{AgentStore, BoxFuture};
use a99_runtime_stores::SqliteRuntime;
use agent99::replay::Departure;
use agent99::{
    AgentRegistry, AtomBody, AtomDef, AtomError, AtomSig, AtomTimeout, Effect, Engine, HostCall,
    HostReply, Params, Value, all_atoms,
};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An atom that gives its input and how often the world was asked; an input `fails` fails.
fn ask(asked: Arc<AtomicU32>) -> AtomDef {
    let body = move |call: HostCall| -> BoxFuture<'static, Result<HostReply, AtomError>> {
        let n = asked.fetch_add(1, Ordering::SeqCst) + 1;
        let input = call
            .args
            .first()
            .and_then(|input| input.get("about").cloned());
        call.locals
            .charge(agent99::Fuel::from_micro(i64::from(n) * 1_000));
        let answer = match input.as_ref().and_then(Value::as_str) {
            Some("fails") => Err(AtomError::new("the world is down")),
            _ => Ok(HostReply::from(Value::from(n))),
        };
        Box::pin(std::future::ready(answer))
    };
    AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed("ask"),
            params: Params::Open,
            timeout: AtomTimeout::Ms(10_000),
            effect: Effect::Unsafe,
            ..AtomSig::new("", "Asks the world.", 300_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(body)),
        dynamic_cost: None,
    }
}

struct World {
    files: Files,
    asked: Arc<AtomicU32>,
    engine: Engine,
    store: Arc<SqliteRuntime>,
}

impl World {
    fn new() -> World {
        let (files, asked) = (Files::new(), Arc::new(AtomicU32::new(0)));
        World {
            engine: Engine::builder()
                .atoms(all_atoms().with(ask(Arc::clone(&asked))))
                .build(),
            store: store(&files.path()),
            files,
            asked,
        }
    }

    fn built(&self, source: &str) -> ProgramAgentBuilder {
        let program = self.engine.compile_source(source).expect("a program");
        ProgramAgent::builder(&self.engine, program).policy(quick(Delivery::default()))
    }

    /// Hosts an agent, which is said these texts.
    async fn say(&self, agent: ProgramAgent, keep_turns: u32, said: &[&str]) {
        let options = HostOptions {
            keep_turns,
            ..HostOptions::default()
        };
        let host = builder()
            .options(options)
            .agent("p", move |_| agent.clone());
        let host = host.start(Arc::clone(&self.store)).await.expect("a host");
        host.invite(&key("p/c/p"), json!({}))
            .await
            .expect("invited");
        for text in said {
            if *text == "call" {
                let p = key("p/c/p");
                let call = host.call_method(ann(), &p, "pay", json!({"n": 2}), None);
                let _ = call.await.expect("a call").result().await;
            } else {
                say(&host, "c", text).await;
            }
            assert!(host.settled(LONG).await);
        }
        host.drain(LONG).await.expect("drained");
    }

    async fn events(&self) -> Vec<u64> {
        let turns = self.store.kept_turns(&key("p/c/p")).await.expect("turns");
        turns.iter().filter_map(Trigger::seq).collect()
    }

    async fn replay(&self, agent: &ProgramAgent, event: u64) -> TurnReplay {
        let p = key("p/c/p");
        let found = self.store.kept_turn(&p, &Trigger::Event(event)).await;
        let (turn, after) = found.expect("read").expect("kept");
        let program = program_of(&turn).expect("a program");
        assert!(self.store.program(program).await.expect("read").is_some());
        let replay = agent.replay(&self.store, &p, &turn, after.as_deref());
        replay.await.expect("a replay")
    }

    /// Every kept turn of an agent does what it did, without the world.
    async fn same(&self, agent: ProgramAgent, said: &[&str]) {
        self.say(agent.clone(), 100, said).await;
        let asked = self.asked.load(Ordering::SeqCst);
        let events = self.events().await;
        assert_eq!(events.len(), said.len());
        for event in events {
            let replay = self.replay(&agent, event).await;
            assert_eq!(replay.departure, None, "event {event}");
            let failed = replay.committed.error.is_some();
            let is_said = said.contains(&"fails") && event == 2;
            assert_eq!(
                failed, is_said,
                "event {event}: {:?}",
                replay.committed.error
            );
            assert_eq!(replay.replayed, replay.committed, "event {event}");
        }
        assert_eq!(
            self.asked.load(Ordering::SeqCst),
            asked,
            "the world was asked"
        );
    }
}

const COUNTS: &str = "async function agent({ event, state, settings }) {
  const n = (state.n ?? 0) + 1
  const first = await ask({ about: event.content })
  let second = 'none'
  try { await ask({ about: 'fails' }) } catch (error) { second = error.message }
  const both = await Promise.all([ask({ about: 'x' }), ask({ about: 'y' })])
  await agentSetState({ state: { n, at: Date.now(), chance: Math.random() } })
  await agentSetSettings({ settings: { last: n } })
  const id = await agentSend({ content: `${n} ${first} ${second} ${both}`, at: ['p'] })
  await agentUpdate({ id, content: 'more', complete: true })
  await agentPublish({ type: 'counted', payload: { n } })
  await agentPublish({ type: 'shown', payload: { n }, persist: false })
  await agentSetTimer({ name: 'later', after: 3600000, payload: { n } })
  await agentCancelTimer({ name: 'later' })
}";

#[tokio::test]
async fn a_turn_does_again_what_it_did() {
    let world = World::new();
    let agent = world.built(COUNTS).build().expect("an agent");
    world.same(agent, &["one", "two", "three"]).await;
}

#[tokio::test]
async fn turns_that_send_at_once_and_turns_that_fail_do_so_again() {
    let world = World::new();
    let policy = quick(Delivery::AtLeastOnce);
    let agent = world
        .built(COUNTS)
        .policy(policy)
        .build()
        .expect("an agent");
    world.same(agent, &["one", "two"]).await;

    let world = World::new();
    let mut policy = quick(Delivery::default());
    policy.retry = Retry {
        max_attempts: 1,
        ..policy.retry
    };
    let source = "async function agent({ event }) {
      await agentSetState({ state: { seen: event.content } })
      await agentSend({ content: 'never' })
      await ask({ about: event.content })
    }";
    let agent = world
        .built(source)
        .policy(policy)
        .build()
        .expect("an agent");
    world.same(agent.clone(), &["fails", "well"]).await;
    let failed = world.replay(&agent, 2).await;
    let (code, text) = failed.replayed.error.expect("an error");
    assert_eq!((&*code, &*text), ("program.error", "the world is down"));
    assert_eq!(
        (failed.replayed.state, failed.replayed.sent),
        (Some(json!({})), Vec::new())
    );
}

#[tokio::test]
async fn methods_tables_and_sub_agents_do_again_what_they_did() {
    let world = World::new();
    let source = "async function agent({ event, state }) {
      if (event.content === 'x') return null
      if (event.args.n > 3) throw new Error('too many')
      await agentSetState({ state: { paid: (state.paid ?? 0) + event.args.n } })
      return { paid: await ask({ about: 'paid' }) }
    }";
    let agent = world
        .built(source)
        .method("pay", ProgramMethod::new("Pays."));
    world
        .same(agent.build().expect("an agent"), &["call", "x", "call"])
        .await;

    let world = World::new();
    let source = "async function agent({ event }) {
      await agentStorageRun({ sql: 'INSERT INTO t VALUES (?)', params: [event.content] })
      const all = await agentStorageQuery({ sql: 'SELECT x FROM t ORDER BY x' })
      await agentSend({ content: JSON.stringify(all) })
    }";
    let tables = Tables::new().migration("CREATE TABLE t (x TEXT)".to_owned());
    let agent = world
        .built(source)
        .tables(tables)
        .build()
        .expect("an agent");
    world.same(agent.clone(), &["one", "two"]).await;
    let other = source.replace("ORDER BY x", "ORDER BY 1");
    let other = world.built(&other).build().expect("an agent");
    let replay = world.replay(&other, 2).await;
    let Some(Departure::Call { made, recorded, .. }) = replay.departure else {
        panic!("{replay:?}");
    };
    assert_eq!(
        (&*made.0, recorded),
        (
            "agentStorageQuery",
            Some(("agentStorageQuery".to_owned(), Value::Undefined))
        )
    );

    let world = World::new();
    let sub = "async function agent({ n }) { return [n, await ask({ about: 'sub' })] }";
    let sub = world.engine.compile_source(sub).expect("a program");
    let agents = AgentRegistry::builder(&world.engine)
        .agent("sub", sub)
        .build();
    let source = "async function agent({ event }) {
      const found = await agentRun({ agentId: 'sub', input: { n: event.content } })
      await agentSend({ content: `${found}` })
    }";
    let agent = world
        .built(source)
        .agents(agents.expect("agents"))
        .build()
        .expect("an agent");
    world.same(agent, &["one", "two"]).await;
}

#[tokio::test]
async fn another_program_is_compared_and_its_first_other_call_named() {
    let world = World::new();
    let agent = world.built(COUNTS).build().expect("an agent");
    world.say(agent, 100, &["one", "two"]).await;
    let event = world.events().await[1];

    let other = COUNTS
        .replace("{ n, at", "{ n: n * 10, at")
        .replace("content: `", "content: `now ");
    let other = world.built(&other).build().expect("an agent");
    let replay = world.replay(&other, event).await;
    assert_eq!(replay.departure, None);
    let (was, is) = (replay.committed, replay.replayed);
    let n = |state: Option<serde_json::Value>| state.map(|state| state["n"].clone());
    assert_eq!(
        (n(was.state), n(is.state)),
        (Some(json!(2)), Some(json!(20)))
    );
    let texts = [&was.sent[0], &is.sent[0]].map(|(_, body)| body["content"].to_string());
    assert_eq!(
        texts[1],
        texts[0]
            .replace('"', "\"now ")
            .trim_end_matches("now ")
            .to_owned()
    );
    assert_eq!(
        (was.sent[0].0, &was.sent[1..]),
        (is.sent[0].0, &is.sent[1..])
    );

    // Another input of the first call, and no call where there were two.
    let both = "const both = await Promise.all([ask({ about: 'x' }), ask({ about: 'y' })])";
    for (from, to, at, atom) in [
        ("about: event.content", "about: 'secret'", "0.0", "ask"),
        (both, "const both = 1", "2.0", "agentSetState"),
    ] {
        let other = COUNTS.replace(from, to);
        assert_ne!(other, COUNTS);
        let other = world.built(&other).build().expect("an agent");
        let departure = world.replay(&other, event).await.departure;
        let Some(Departure::Call {
            id, made, recorded, ..
        }) = departure
        else {
            panic!("{to}: {departure:?}");
        };
        assert_eq!((&*id, &*made.0), (at, atom));
        // The inputs of the turn are not kept.
        assert_eq!(recorded, Some(("ask".to_owned(), Value::Undefined)));
    }
    let other = world.built("async function agent() { return null }");
    let other = other.build().expect("an agent");
    let departure = world.replay(&other, event).await.departure;
    let Some(Departure::Ended { id, atom }) = departure else {
        panic!("{departure:?}");
    };
    assert_eq!((&*id, &*atom), ("0.0", "ask"));
}

#[tokio::test]
async fn as_many_turns_are_kept_as_the_host_says() {
    let world = World::new();
    let source = "async function agent({ event, state }) {
      await agentSetState({ state: { n: (state.n ?? 0) + 1 } })
      await ask({ about: `hunt${event.content}` })
    }";
    let agent = world.built(source).build().expect("an agent");
    world.say(agent.clone(), 0, &["one"]).await;
    assert_eq!(world.events().await, [0_u64; 0]);
    world
        .say(agent.clone(), 3, &["er1", "er2", "er2", "er2", "er2"])
        .await;
    let events = world.events().await;
    assert_eq!(events.len(), 3);
    let last = world.replay(&agent, events[2]).await;
    assert_eq!(last.committed.state, Some(json!({"n": 6})));
    // What a program puts into its calls is not stored.
    let bytes = std::fs::read(world.files.path()).expect("the file");
    let log = std::fs::read(world.files.path().with_extension("db-wal")).unwrap_or_default();
    let has = |what: &[u8]| {
        bytes
            .windows(what.len())
            .chain(log.windows(what.len()))
            .any(|bytes| bytes == what)
    };
    assert!(has(b"granted") && !has(b"hunter2"));
}
