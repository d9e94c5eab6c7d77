//! Concurrent writers: no step is taken twice, and no quota is exceeded.

use crate::certificates::shared;
use crate::{block_on, open, store};
use a99_capabilities::{FixedClock, Store};
use a99_core::value::Value;
use a99_postgres::{PostgresStore, StoreLimits};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

/// Stores with separate connections.
fn stores(count: usize) -> Vec<PostgresStore> {
    let database = shared().database();
    (0..count).map(|_| open(&database.url()).unwrap()).collect()
}

fn together(stores: &[PostgresStore], each: usize, f: impl Fn(&PostgresStore, usize) + Sync) {
    let barrier = Barrier::new(stores.len() * each);
    thread::scope(|scope| {
        for (n, store) in stores.iter().enumerate() {
            for m in 0..each {
                let (f, barrier) = (&f, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    f(store, n * each + m);
                });
            }
        }
    });
}

/// Compare-and-set histories are linear: one chain from the beginning, from which every read
/// sees a value, in order.
#[test]
fn values_that_are_compared_and_set_are_one_chain() {
    let stores = stores(3);
    let steps: Mutex<Vec<(f64, f64)>> = Mutex::default();
    together(&stores, 4, |store, who| {
        let mut seen = 0.0;
        for round in 0..25 {
            let old = block_on(store.get("chain".into())).unwrap();
            let at = old.get("n").and_then(Value::as_f64).unwrap_or(0.0);
            assert!(at >= seen, "{at} was read after {seen}");
            seen = at;
            let next = crate::object(&[
                ("n", (at + 1.0).into()),
                ("who", who.into()),
                ("round", round.into()),
            ]);
            let swap = store.compare_and_set("chain".into(), old, next, None);
            if block_on(swap).unwrap() == Value::Bool(true) {
                steps.lock().unwrap().push((at, at + 1.0));
                seen = at + 1.0;
            }
        }
    });
    let mut steps = steps.into_inner().unwrap();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(steps.len() >= 25, "{}", steps.len());
    for (n, step) in steps.iter().enumerate() {
        assert_eq!(*step, (n as f64, n as f64 + 1.0));
    }
    let last = block_on(stores[0].get("chain".into())).unwrap();
    assert_eq!(last.get("n"), Some(&steps.len().into()));
}

/// Only one caller takes a key that is unset or has expired.
#[test]
fn a_lease_has_one_holder() {
    let stores = stores(3);
    for round in 0..10 {
        let clock = Arc::new(FixedClock::new(f64::from(round)));
        let timed: Vec<_> = stores.iter().map(|s| s.with_clock(clock.clone())).collect();
        let holders = Mutex::new(Vec::new());
        together(&timed, 4, |store, who| {
            let until = Some(f64::from(round) + 1.0);
            let take = store.compare_and_set("lease".into(), Value::Undefined, who.into(), until);
            if block_on(take).unwrap() == Value::Bool(true) {
                holders.lock().unwrap().push(who);
            }
        });
        let holders = holders.into_inner().unwrap();
        assert_eq!(holders.len(), 1, "{holders:?}");
        let held = block_on(timed[0].get("lease".into())).unwrap();
        assert_eq!(held, holders[0].into());
    }
}

#[test]
fn equal_values_with_other_bytes_are_expected_too() {
    let (_database, store) = store();
    let swap = |old: Value, new: Value| {
        block_on(store.compare_and_set("k".into(), old, new, None)).unwrap()
    };
    let (a, b) = (("a", Value::from(0.0)), ("b", Value::Undefined));
    block_on(store.set("k".into(), crate::object(&[a.clone(), b.clone()]))).unwrap();
    let other = crate::object(&[b, ("a", Value::from(-0.0))]);
    assert_eq!(swap(other, Value::Undefined), Value::Bool(true));
    assert_eq!(swap(Value::Null, 1.0.into()), Value::Bool(false));
    assert_eq!(swap(Value::Undefined, 1.0.into()), Value::Bool(true));
}

#[test]
fn n19_quotas_hold_for_all_together() {
    let limits = StoreLimits {
        max_keys: 50,
        ..StoreLimits::default()
    };
    let stores: Vec<_> = stores(3)
        .iter()
        .map(|s| s.with_limits(limits.clone()))
        .collect();
    let kept = Mutex::new(0);
    together(&stores, 4, |store, who| {
        for n in 0..10 {
            if block_on(store.set(format!("{who}/{n}").into(), n.into())).is_ok() {
                *kept.lock().unwrap() += 1;
            }
        }
    });
    assert_eq!(kept.into_inner().unwrap(), 50);
    assert_eq!(stores[0].usage().wait().unwrap().keys, 50);

    let limits = StoreLimits {
        max_bytes: 10_000,
        ..StoreLimits::default()
    };
    let stores: Vec<_> = stores
        .iter()
        .map(|s| s.namespace("bytes").with_limits(limits.clone()))
        .collect();
    together(&stores, 4, |store, who| {
        for n in 0..10 {
            let key = || Value::from(format!("{}", (who + n) % 20));
            drop(block_on(store.set(key(), "x".repeat(n * 100).into())));
            if n % 3 == 0 {
                block_on(store.delete(key())).unwrap();
            }
            assert!(store.usage().wait().unwrap().bytes <= 10_000);
        }
    });
    let held = stores[0].usage().wait().unwrap();
    let (mut keys, mut bytes) = (0, 0);
    for n in 0..20 {
        let key = n.to_string();
        let value = block_on(stores[0].get(key.as_str().into())).unwrap();
        if let Some(text) = value.as_str() {
            keys += 1;
            bytes += (key.len() + text.len() + 2 + 64) as u64;
        }
    }
    assert_eq!((held.keys, held.bytes), (keys, bytes));
}

/// Writers of all namespaces, with expiring keys in all of them, never deadlock.
#[test]
fn nobody_waits_in_a_circle() {
    let stores = stores(2);
    let clock = Arc::new(FixedClock::new(0.0));
    let stores: Vec<_> = stores.iter().map(|s| s.with_clock(clock.clone())).collect();
    together(&stores, 4, |store, who| {
        for n in 0..40 {
            let store = store.namespace(format!("{}", (who + n) % 5));
            clock.set(n as f64);
            let until = (n + n % 3) as f64;
            block_on(store.set_until(format!("{}", n % 7).into(), n.into(), until)).unwrap();
            block_on(store.delete(format!("{}", n % 5).into())).unwrap();
        }
    });
    clock.set(1e9);
    for _ in 0..4 {
        block_on(stores[0].set("k".into(), Value::Null)).unwrap();
    }
    for n in 0..5 {
        let left = stores[0].namespace(n.to_string()).usage().wait().unwrap();
        assert_eq!((left.keys, left.bytes), (0, 0), "{n}");
    }
}

/// Serialization conflicts are retried and never reach a program.
#[test]
fn conflicts_are_tried_again() {
    let (database, store) = store();
    block_on(store.set("k".into(), 0.0.into())).unwrap();
    // Sequences also count rolled-back steps.
    database.sql(
        "CREATE SEQUENCE agent99.tries;
         CREATE FUNCTION agent99.conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             CASE nextval('agent99.tries') % 4
                 WHEN 1 THEN RAISE 'no' USING ERRCODE = 'serialization_failure';
                 WHEN 2 THEN RAISE 'no' USING ERRCODE = 'deadlock_detected';
                 ELSE RETURN NEW;
             END CASE;
         END $$;
         CREATE TRIGGER conflict BEFORE INSERT OR UPDATE ON agent99.a99_entry
         FOR EACH ROW EXECUTE FUNCTION agent99.conflict()",
    );
    for n in 1..20 {
        block_on(store.set("k".into(), n.into())).unwrap();
        let swap = store.compare_and_set("k".into(), n.into(), (-n).into(), None);
        assert_eq!(block_on(swap).unwrap(), Value::Bool(true));
        assert_eq!(block_on(store.get("k".into())).unwrap(), (-n).into());
    }
    assert!(
        database
            .sql("SELECT last_value FROM agent99.tries")
            .parse::<u32>()
            .unwrap()
            >= 70
    );
}
