//! Checks of the journal: starts and steps of turns.

use super::{Check, Fixture, Outcome, fence, key, refused, same, state, turn};
use a99_runtime_engine::{
    AgentStore, Fence, JournalRow, JournalStatus, KeptTurn, Progress, StepClass, StoreCode,
    Trigger, TurnCommit,
};

pub(super) fn checks<F: Fixture>() -> Vec<Check<F>> {
    vec![
        ("starts are written ahead", |f| Box::pin(starts(f))),
        ("steps are kept by name", |f| Box::pin(steps(f))),
        ("turns of one commit end together", |f| Box::pin(joined(f))),
        ("the last turns are kept", |f| Box::pin(kept(f))),
        ("kept turns have a limit of bytes", |f| {
            Box::pin(kept_bytes(f))
        }),
    ]
}

async fn starts<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    let timer = Trigger::Timer("x:y".to_owned(), 5);
    let first = store.record_start(me.clone(), Trigger::Event(1), 1, None);
    first.await?;
    let again = store.record_start(me.clone(), Trigger::Event(1), 2, None);
    again.await?;
    store
        .record_start(me.clone(), timer.clone(), 1, None)
        .await?;
    let row = store.load(&a).await?;
    let found = row.map(|row| {
        let mut started = row.started;
        started.sort();
        (started, row.state, row.revision)
    });
    let expected = vec![(Trigger::Event(1), 2), (timer, 1)];
    let expected = Some((expected, String::new(), 0));
    same(&found, &expected, "an agent that only began")?;
    store.commit(turn(me.clone(), 1)).await?;
    // A start with progress marks the event as processed before the turn runs.
    let done = Progress {
        checkpoint: 1,
        ..Progress::default()
    };
    let once = store.record_start(me, Trigger::Event(1), 1, Some(done.clone()));
    once.await?;
    let row = store.load(&a).await?;
    let found = row.map(|row| (row.progress, row.revision));
    same(&found, &Some((done, 1)), "an agent that runs a turn once")
}

/// The commit of the `n`th turn, which is kept.
fn kept_turn(me: &Fence, n: u64, keep: u32, record: String) -> TurnCommit {
    let mut commit = turn(me.clone(), n);
    let before = if n == 1 {
        "{}".to_owned()
    } else {
        state(n - 1)
    };
    commit.kept = Some(KeptTurn {
        trigger: Trigger::Event(n),
        base: n - 1,
        state: before.into(),
        record,
        keep,
    });
    commit
}

async fn kept<F: Fixture>(fixture: &F) -> Outcome {
    const KEEP: u64 = 16;
    let (store, a, b) = (fixture.open()?, key("a")?, key("b")?);
    let (me, other) = (fence(&store, &a), fence(&store, &b));
    store
        .commit(kept_turn(&other, 1, 1, "b1".to_owned()))
        .await?;
    for n in 1..=100 {
        let receipt = store.commit(kept_turn(&me, n, 16, format!("a{n}"))).await?;
        same(&receipt.revision, &n, "the revision")?;
        let found = store.kept_turns(&a).await?;
        let newest: Vec<Trigger> = (n.saturating_sub(KEEP) + 1..=n)
            .map(Trigger::Event)
            .collect();
        same(&found.ends_with(&newest), &true, "the last turns")?;
        same(
            &(found.len() as u64 <= KEEP + KEEP / 8),
            &true,
            "the number of turns",
        )?;
    }
    let found = store.kept_turn(&a, &Trigger::Event(95)).await?;
    let found = found.map(|(turn, after)| (turn.base, turn.state.to_string(), turn.record, after));
    let expected = (94, state(94), "a95".to_owned(), Some(state(95)));
    same(
        &found,
        &Some(expected),
        "a kept turn and the state after it",
    )?;
    let last = store.kept_turn(&a, &Trigger::Event(100)).await?;
    let last = last.and_then(|(_, after)| after);
    same(&last, &Some(state(100)), "the state after the last turn")?;
    // A turn that changes nothing leaves the state that it had.
    let mut idle = kept_turn(&me, 101, 16, String::new());
    (idle.state, idle.outbox) = (None, Vec::new());
    store.commit(idle).await?;
    let idle = store.kept_turn(&a, &Trigger::Event(101)).await?;
    let idle = idle.and_then(|(_, after)| after);
    same(
        &idle,
        &Some(state(100)),
        "the state after a turn that changed nothing",
    )?;
    let gone = store.kept_turn(&a, &Trigger::Event(1)).await?;
    same(&gone, &None, "a turn of long ago")?;
    let others = store.kept_turns(&b).await?;
    same(
        &others,
        &vec![Trigger::Event(1)],
        "the turns of another agent",
    )
}

async fn kept_bytes<F: Fixture>(fixture: &F) -> Outcome {
    const MIB: usize = 1 << 20;
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    for n in 1..=20 {
        store
            .commit(kept_turn(&me, n, 100, "r".repeat(2 * MIB)))
            .await?;
    }
    let found = store.kept_turns(&a).await?;
    let expected: Vec<Trigger> = (14..=20).map(Trigger::Event).collect();
    same(&found, &expected, "turns of two mebibytes")?;
    store
        .commit(kept_turn(&me, 21, 100, "r".repeat(17 * MIB)))
        .await?;
    let found = store.kept_turn(&a, &Trigger::Event(21)).await?;
    same(&found, &None, "a turn beyond the limit")?;
    // Its state is that before the turn after it.
    let before = store.kept_turn(&a, &Trigger::Event(20)).await?;
    let before = before.and_then(|(_, after)| after);
    same(
        &before,
        &None,
        "the state after a turn before one that is not kept",
    )
}

async fn joined<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    for n in 1..=4 {
        let started = store.record_start(me.clone(), Trigger::Event(n), 1, None);
        started.await?;
        let row = JournalRow {
            trigger: Trigger::Event(n),
            name: "step".to_owned(),
            class: StepClass::Idempotent,
            body: 0,
            status: JournalStatus::Done("1".to_owned()),
        };
        store.record_step(me.clone(), row).await?;
    }
    let mut commit = turn(me.clone(), 3);
    commit.earlier = vec![Trigger::Event(1), Trigger::Event(2)];
    if let Some(state) = &mut commit.state {
        state.base = 0;
    }
    let before = turn(me.clone(), 1).outbox.into_iter();
    commit.outbox = before
        .chain(turn(me.clone(), 2).outbox)
        .chain(commit.outbox)
        .collect();
    let receipt = store.commit(commit).await?;
    same(&receipt.revision, &1, "the revision after three turns")?;
    same(&receipt.appended.len(), &3, "events of three turns")?;
    let row = store.load(&a).await?;
    let found = row.map(|row| (row.started, row.state, row.progress.checkpoint));
    let expected = (vec![(Trigger::Event(4), 1)], state(3), 3);
    same(&found, &Some(expected), "what is kept of three turns")?;
    for (n, left) in [(1, 0), (2, 0), (3, 0), (4, 1)] {
        let journal = store.journal(&a, &Trigger::Event(n)).await?;
        same(&journal.len(), &left, "steps that are kept")?;
    }
    Ok(())
}

async fn steps<F: Fixture>(fixture: &F) -> Outcome {
    let (store, a) = (fixture.open()?, key("a")?);
    let me = fence(&store, &a);
    let step = |name: &str, body, status| JournalRow {
        trigger: Trigger::Event(1),
        name: name.to_owned(),
        class: StepClass::Idempotent,
        body,
        status,
    };
    let done = || JournalStatus::Done("[1]".to_owned());
    let failed = || JournalStatus::Failed("code".to_owned(), "text".to_owned());
    let started = || JournalStatus::Started;
    let large = u64::MAX - 1;
    for row in [
        step("pay", large, started()),
        step("ask", 2, started()),
        step("pay", large, failed()),
        step("pay", large, started()),
        step("pay", large, done()),
        step("pay", large, done()),
        step("ask", 2, failed()),
    ] {
        store.record_step(me.clone(), row).await?;
    }
    for (row, what) in [
        (step("pay", 1, done()), "another body"),
        (step("pay", large, failed()), "a failure of what is done"),
        (step("pay", large, started()), "a start of what is done"),
    ] {
        let changed = store.record_step(me.clone(), row).await;
        refused(changed, StoreCode::ChangedBody, what)?;
    }
    let expected = vec![step("pay", large, done()), step("ask", 2, failed())];
    let journal = store.journal(&a, &Trigger::Event(1)).await?;
    same(&journal, &expected, "the journal")?;
    let other = store.journal(&a, &Trigger::Event(2)).await?;
    same(&other, &Vec::new(), "the journal of another turn")?;
    store.commit(turn(me, 1)).await?;
    let after = store.journal(&a, &Trigger::Event(1)).await?;
    same(&after, &Vec::new(), "the journal of a turn that ended")
}
