//! Checks of the journal: starts and steps of turns.

use super::{Check, Fixture, Outcome, fence, key, refused, same, state, turn};
use a99_runtime_engine::{
    AgentStore, JournalRow, JournalStatus, Progress, StepClass, StoreCode, Trigger,
};

pub(super) fn checks<F: Fixture>() -> Vec<Check<F>> {
    vec![
        ("starts are written ahead", |f| Box::pin(starts(f))),
        ("steps are kept by name", |f| Box::pin(steps(f))),
        ("turns of one commit end together", |f| Box::pin(joined(f))),
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
