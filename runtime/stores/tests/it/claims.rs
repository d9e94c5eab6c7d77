//! Claims: an update that changes no row is none, and two owners never both have it.

use crate::{block_on, counted, event, fence, key, open, turn};
use a99_runtime_engine::{AgentStore, ChannelStore, StoreCode, TimerChange, TimerRow, Trigger};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn run(store: &SqliteRuntime, sql: &'static str) {
    let write = store
        .database()
        .expect("a file")
        .write(move |tx| Ok(tx.execute_batch(sql)?));
    write.wait().unwrap();
}

#[test]
fn a_claim_that_changes_nothing_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"));
    let a = key("echo/general/a");
    let mut first = turn(fence(&store, &a), 1);
    first.timers.push(TimerChange::Set(TimerRow {
        name: "t".to_owned(),
        due: 5,
        cron: None,
        zone: None,
        payload: Vec::<u8>::new().into(),
        hops: 1,
        set_at: None,
    }));
    block_on(store.commit(first)).unwrap();
    // Rows that stay as they are, whatever is asked.
    for (trigger, code) in [
        (
            "CREATE TRIGGER deaf BEFORE UPDATE ON agent_state BEGIN SELECT RAISE(IGNORE); END",
            StoreCode::Conflict,
        ),
        (
            "CREATE TRIGGER deaf BEFORE UPDATE ON channel BEGIN SELECT RAISE(IGNORE); END",
            StoreCode::Unreadable,
        ),
        (
            "CREATE TRIGGER deaf BEFORE INSERT ON channel_log BEGIN SELECT RAISE(IGNORE); END",
            StoreCode::Unreadable,
        ),
    ] {
        run(&store, trigger);
        let error = block_on(store.commit(turn(fence(&store, &a), 2))).unwrap_err();
        assert_eq!(error.code(), code, "{trigger}: {error}");
        assert_eq!(counted(&store, &a), 1, "{trigger}");
        run(&store, "DROP TRIGGER deaf");
    }
    for trigger in [
        "CREATE TRIGGER deaf BEFORE DELETE ON agent_timers BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER deaf BEFORE UPDATE ON agent_timers BEGIN SELECT RAISE(IGNORE); END",
    ] {
        run(&store, trigger);
        let mut fired = turn(fence(&store, &a), 2);
        fired.trigger = Some(Trigger::Timer("t".to_owned(), 5));
        fired.again = trigger.contains("UPDATE").then_some(9);
        assert!(block_on(store.commit(fired)).unwrap().is_gone, "{trigger}");
        assert_eq!(counted(&store, &a), 1, "{trigger}");
        run(&store, "DROP TRIGGER deaf");
    }
    block_on(store.commit(turn(fence(&store, &a), 2))).unwrap();
    run(&store, "DELETE FROM shard WHERE id = 7");
    store.close().unwrap();
    let path = folder.path().join("a.db");
    let error = SqliteRuntime::open(path, StoreOptions::default()).unwrap_err();
    assert_eq!(error.code(), StoreCode::Unreadable, "{error}");
}

/// An owner that goes on, and another that takes over at some moment: the turns of both are
/// one row without holes, and the first ends with a refusal.
#[test]
fn of_two_owners_the_later_writes() {
    for round in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let a = key("echo/general/a");
        let first = open(&path);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let old = scope.spawn(|| {
                let mut n = 0;
                let error = loop {
                    match block_on(first.commit(turn(fence(&first, &a), n + 1))) {
                        Ok(_) => n += 1,
                        Err(error) => break error,
                    }
                };
                assert_eq!(error.code(), StoreCode::Fenced, "{error}");
                while !is_over.load(Ordering::Relaxed) {
                    let late = block_on(first.commit(turn(fence(&first, &a), n + 1)));
                    assert_eq!(late.unwrap_err().code(), StoreCode::Fenced);
                    let late = vec![event(&a, "late", "late")];
                    let late = block_on(first.append(late, None, 1));
                    assert_eq!(late.unwrap_err().code(), StoreCode::Fenced);
                }
                n
            });
            thread::sleep(std::time::Duration::from_millis(5 * round));
            let second = SqliteRuntime::open_past_lock(&path, StoreOptions::default()).unwrap();
            let taken = counted(&second, &a);
            for n in taken + 1..=taken + 20 {
                block_on(second.commit(turn(fence(&second, &a), n))).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(old.join().unwrap(), taken);
            assert_eq!(counted(&second, &a), taken + 20);
            block_on(second.check()).unwrap();
        });
        // Who was shut out does not close it for the other.
        assert_eq!(first.close().unwrap_err().code(), StoreCode::Fenced);
        assert!(open(&path).was_cut_off());
    }
}
