//! Checks of commits: atomic, fenced, optimistic, in any order.

use super::{
    Check, Finding, Fixture, Outcome, fence, holds, key, refused, said, same, state, turn,
};
use a99_runtime_engine::{
    AgentStore, Body, ChannelStore, DeadLetter, NewEvent, NewState, PresenceAction, Progress,
    Registration, Sender, Shards, StoreCode, TimerChange, TimerRow, Trigger, TurnCommit, Uuid,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn checks<F: Fixture>() -> Vec<Check<F>> {
    vec![
        ("a turn is kept whole", |f| Box::pin(whole(f))),
        ("a refused turn leaves nothing", |f| Box::pin(nothing(f))),
        ("an owner of before is refused", |f| Box::pin(fenced(f))),
        ("turns end in any order", |f| Box::pin(any_order(f))),
        ("timers come in order and once", |f| Box::pin(timers(f))),
        ("what is too large is refused", |f| Box::pin(limits(f))),
        ("migrations keep what was there", |f| {
            Box::pin(migrations(f))
        }),
        ("given up turns are listed", |f| Box::pin(dead(f))),
        ("agents are registered", |f| Box::pin(registered(f))),
        ("programs are kept by hash", |f| Box::pin(programs(f))),
    ]
}

async fn whole<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    same(&store.load(&a).await?, &None, "an agent that never began")?;
    for n in 1..=3 {
        let mut commit = turn(fence(&store, &a), n);
        commit.settings = (n == 2).then(|| "{\"x\":1}".to_owned());
        let receipt = store.commit(commit).await?;
        same(&receipt.revision, &n, "the revision")?;
        let placed = receipt.appended.first().and_then(|one| one.event.seq);
        same(&placed, &Some(n), "the place of what was sent")?;
        holds(!receipt.is_gone, "a turn of an event is never gone")?;
    }
    store.flush().await?;
    let row = store.load(&a).await?;
    let row = row.ok_or_else(|| Finding("a kept agent is not found".to_owned()))?;
    same(&row.state, &state(3), "the state")?;
    same(&(row.version, row.revision), &(1, 3), "version, revision")?;
    same(&row.progress.checkpoint, &3, "the checkpoint")?;
    same(&row.settings, &Some("{\"x\":1}".to_owned()), "settings")?;
    same(&(row.created_at, row.updated_at), &(1, 3), "times")?;
    same(&store.head("general").await?, &3, "the head")
}

async fn nothing<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    store.commit(turn(me.clone(), 1)).await?;
    let trigger = Trigger::Event(2);
    store.record_start(me.clone(), trigger, 1, None).await?;
    let before = store.load(&a).await?;
    // Each is refused because of its last part, after the others were written.
    let mut stale = turn(me.clone(), 2);
    stale.state = Some(NewState {
        json: state(9),
        version: 1,
        base: 0,
    });
    refused(
        store.commit(stale).await,
        StoreCode::Conflict,
        "an old base",
    )?;
    let mut changed = turn(me.clone(), 2);
    changed.outbox.push(said(&a, "echo/general/a 1", "not 1"));
    let changed = store.commit(changed).await;
    refused(
        changed,
        StoreCode::ChangedBody,
        "another event of the same identity",
    )?;
    same(
        &store.load(&a).await?,
        &before,
        "the row after refused turns",
    )?;
    same(
        &store.head("general").await?,
        &1,
        "the log after refused turns",
    )?;
    store.commit(turn(me, 2)).await?;
    let row = store.load(&a).await?;
    let started = row.map(|row| row.started);
    same(&started, &Some(Vec::new()), "starts of a turn that ended")
}

async fn fenced<F: Fixture>(fixture: &F) -> Outcome {
    let (first, a) = (fixture.open()?, key("a")?);
    let old = fence(&first, &a);
    first.commit(turn(old.clone(), 1)).await?;
    let second = fixture.open()?;
    holds(second.epoch(&a) > old.epoch, "epochs rise")?;
    let cut_off = second.was_cut_off();
    same(&cut_off, &Shards::ALL, "the first owner did not close it")?;
    let code = StoreCode::Fenced;
    let what = "what an owner of before writes";
    refused(first.commit(turn(old.clone(), 2)).await, code, what)?;
    let start = first.record_start(old.clone(), Trigger::Event(2), 1, None);
    refused(start.await, code, what)?;
    let event = || vec![said(&a, "late", "late")];
    refused(
        first.append(event(), Some(old.clone()), 5).await,
        code,
        what,
    )?;
    refused(first.append(event(), None, 5).await, code, what)?;
    refused(first.forget_dead(&a).await, code, what)?;
    refused(first.unregister(&a).await, code, what)?;
    // The new owner also refuses activations that began under the old one.
    refused(second.commit(turn(old.clone(), 2)).await, code, what)?;
    second.commit(turn(fence(&second, &a), 2)).await?;
    refused(second.append(event(), Some(old), 5).await, code, what)?;
    same(&second.head("general").await?, &2, "the log after it")
}

async fn any_order<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    let said: Vec<_> = (1..=5)
        .map(|n| said(&a, &format!("any {n}"), "x"))
        .collect();
    store.append(said, None, 1).await?;
    // Turns 1 to 3 end in reverse order; each knows the progress at its beginning.
    for (checkpoint, done) in [(0, vec![3]), (2, vec![]), (1, vec![]), (0, vec![5])] {
        let mut commit = TurnCommit::new(me.clone(), 1);
        let done = done.into_iter().collect();
        commit.progress = Some(Progress { checkpoint, done });
        store.commit(commit).await?;
    }
    let row = store.load(&a).await?;
    let progress = row.map(|row| row.progress);
    let done = [5].into_iter().collect();
    let expected = Some(Progress {
        checkpoint: 3,
        done,
    });
    same(
        &progress,
        &expected,
        "progress of turns that ended in any order",
    )
}

pub(super) fn timer(name: &str, due: u64) -> TimerRow {
    TimerRow {
        name: name.to_owned(),
        due,
        cron: None,
        zone: None,
        payload: json!({"of": name}),
        hops: 3,
        set_at: Some(7),
    }
}

async fn timers<F: Fixture>(fixture: &F) -> Outcome {
    let store = fixture.open()?;
    let (a, b) = (key("a")?, key("b")?);
    let (mine, others) = (fence(&store, &a), fence(&store, &b));
    same(&store.next_due().await?, &None, "the next of no timers")?;
    for (who, name, due) in [(&mine, "x", 30), (&others, "y", 10), (&mine, "z", 20)] {
        let mut commit = TurnCommit::new(who.clone(), 1);
        commit.timers.push(TimerChange::Set(timer(name, due)));
        store.commit(commit).await?;
    }
    same(&store.next_due().await?, &Some(10), "the next")?;
    let due = store.timers_due(20, 10).await?;
    let expected = vec![(b.clone(), timer("y", 10)), (a.clone(), timer("z", 20))];
    same(&due, &expected, "timers that are due")?;
    same(&store.timers_due(20, 1).await?.len(), &1, "at most one")?;

    // An occurrence fires once; a recurring timer fires again.
    let mut again = turn(others.clone(), 1);
    again.progress = None;
    again.trigger = Some(Trigger::Timer("y".to_owned(), 10));
    again.again = Some(40);
    holds(!store.commit(again.clone()).await?.is_gone, "it was due")?;
    let mut second = again.clone();
    second.state = Some(NewState {
        json: state(5),
        version: 1,
        base: 1,
    });
    let receipt = store.commit(second).await?;
    holds(receipt.is_gone, "the occurrence was done")?;
    same(
        &receipt.revision,
        &1,
        "the revision after an occurrence that was gone",
    )?;
    same(&store.timers(&b).await?, &vec![timer("y", 40)], "its timer")?;
    let kept = store.load(&b).await?.map(|row| row.state);
    same(&kept, &Some(state(1)), "the state")?;

    // A removed timer does not fire, and its replacement is a different timer.
    let mut change = TurnCommit::new(mine.clone(), 2);
    change.timers = vec![
        TimerChange::Remove("x".to_owned()),
        TimerChange::Remove("nothing".to_owned()),
        TimerChange::Set(timer("z", 25)),
    ];
    store.commit(change).await?;
    let mut fired = TurnCommit::new(mine, 3);
    fired.trigger = Some(Trigger::Timer("z".to_owned(), 20));
    holds(
        store.commit(fired.clone()).await?.is_gone,
        "it was replaced",
    )?;
    fired.trigger = Some(Trigger::Timer("z".to_owned(), 25));
    holds(!store.commit(fired).await?.is_gone, "it is due")?;
    same(
        &store.timers(&a).await?,
        &Vec::new(),
        "timers that were done",
    )
}

async fn limits<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    let code = StoreCode::TooLarge;
    let limits = crate::StoreLimits::SMALL;
    let text = |bytes: usize| "x".repeat(bytes);
    let mut large = turn(me.clone(), 1);
    large.state = Some(NewState {
        json: format!("\"{}\"", text(limits.max_state_bytes)),
        version: 1,
        base: 0,
    });
    refused(store.commit(large).await, code, "a state")?;
    let mut large = turn(me.clone(), 1);
    large.settings = Some(text(limits.max_state_bytes + 1));
    refused(store.commit(large).await, code, "settings")?;
    let event = said(&a, "large", &text(limits.max_blob_bytes));
    refused(store.append(vec![event], None, 1).await, code, "an event")?;
    let mut timers = TurnCommit::new(me.clone(), 1);
    timers.timers = (0..=limits.max_timers)
        .map(|n| TimerChange::Set(timer(&n.to_string(), 5)))
        .collect();
    refused(store.commit(timers.clone()).await, code, "timers")?;
    same(&store.load(&a).await?, &None, "the row after it")?;
    timers.timers.pop();
    store.commit(timers.clone()).await?;
    // At the limit, timers may still be replaced.
    timers.timers.truncate(1);
    store.commit(timers).await?;
    let count = store.timers(&a).await?.len();
    same(&count, &limits.max_timers, "as many as may be")
}

async fn migrations<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    store.commit(turn(me.clone(), 1)).await?;
    let state = |base| NewState {
        json: "{\"m\":1}".to_owned(),
        version: 3,
        base,
    };
    let backups = || vec![(1, "{\"n\":1}".to_owned()), (2, "{\"x\":1}".to_owned())];
    let stale = store.migrate_state(me.clone(), state(0), backups(), 9);
    refused(
        stale.await,
        StoreCode::Conflict,
        "a migration of an old state",
    )?;
    let revision = store.migrate_state(me, state(1), backups(), 9).await?;
    same(&revision, &2, "the revision after a migration")?;
    let row = store.load(&a).await?;
    let found = row.map(|row| (row.state, row.version, row.progress.checkpoint));
    same(
        &found,
        &Some(("{\"m\":1}".to_owned(), 3, 1)),
        "the migrated row",
    )
}

async fn dead<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let letter = |n| DeadLetter {
        trigger: Trigger::Event(n),
        code: "agent.failed".to_owned(),
        error: format!("error {n}"),
        attempts: 3,
        at: n,
    };
    for n in 1..=2 {
        let mut commit = turn(fence(&store, &a), n);
        commit.state = None;
        commit.dead = Some(letter(n));
        store.commit(commit).await?;
    }
    let found = store.dead_letters(&a).await?;
    same(
        &found,
        &vec![letter(1), letter(2)],
        "turns that were given up",
    )?;
    same(
        &store.dead_letters(&key("b")?).await?,
        &Vec::new(),
        "of another",
    )?;
    same(&store.forget_dead(&a).await?, &2, "how many are forgotten")?;
    same(&store.dead_letters(&a).await?, &Vec::new(), "after that")
}

async fn registered<F: Fixture>(fixture: &F) -> Outcome {
    let store = fixture.open()?;
    let of = |handle, config: Value, at| {
        Ok::<_, Finding>(Registration {
            key: key(handle)?,
            config,
            registered_at: at,
            metadata: None,
        })
    };
    store.register(of("b", json!({"x": 1}), 1)?).await?;
    store.register(of("a", json!({}), 2)?).await?;
    store.register(of("b", json!({"x": 2}), 3)?).await?;
    let expected = vec![of("a", json!({}), 2)?, of("b", json!({"x": 2}), 1)?];
    same(
        &store.registrations().await?,
        &expected,
        "who is registered",
    )?;
    let (a, announced) = (
        key("a")?,
        Map::from_iter([("mood".to_owned(), json!("good"))]),
    );
    let presence = |metadata: &Map<String, Value>| Body::Presence {
        action: PresenceAction::Update,
        leave_reason: None,
        metadata: metadata.clone(),
    };
    let mut commit = TurnCommit::new(fence(&store, &a), 1);
    let sender = Arc::new(Sender::agent(&a));
    for (n, metadata) in [(1, &Map::new()), (2, &announced)] {
        let (id, sender) = (Uuid::from_u128(n), Arc::clone(&sender));
        let new = NewEvent::new(a.channel(), id, sender, 0, presence(metadata));
        commit.outbox.push(new);
    }
    store.commit(commit).await?;
    store.register(of("a", json!({"y": 1}), 4)?).await?;
    let found = store.registrations().await?;
    let found: Vec<_> = found.into_iter().map(|one| one.metadata).collect();
    same(&found, &vec![Some(announced), None], "what they announced")?;
    holds(store.unregister(&key("b")?).await?, "b is removed")?;
    holds(!store.unregister(&key("b")?).await?, "b is removed once")?;
    same(&store.registrations().await?.len(), &1, "who is left")
}

async fn programs<F: Fixture>(fixture: &F) -> Outcome {
    let store = fixture.open()?;
    let hash = [7; 32];
    same(
        &store.program(hash).await?,
        &None,
        "a program that is not there",
    )?;
    store.keep_program(hash, b"code".to_vec()).await?;
    store.keep_program(hash, b"code".to_vec()).await?;
    let other = store.keep_program(hash, b"edoc".to_vec()).await;
    refused(other, StoreCode::ChangedBody, "another under the same hash")?;
    same(
        &store.program(hash).await?,
        &Some(b"code".to_vec()),
        "a program",
    )
}
