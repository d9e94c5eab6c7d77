//! Connections: authentication, TLS, failures and recovery.

use crate::certificates::{NAME, authority, shared};
use crate::cluster::{Cluster, Database};
use crate::{block_on, open, store, text};
use a99_capabilities::{Secret, Store};
use a99_core::value::Value;
use a99_postgres::{PostgresCode, PostgresError, PostgresOptions, PostgresStore};
use std::net::TcpListener;
use std::pin::pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Lends a server without TLS that one test at a time stops and starts.
pub(crate) fn with_server_of_its_own<T>(f: impl FnOnce(&'static Cluster) -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    f(CLUSTER.get_or_init(|| Cluster::start(|_| String::new())))
}

fn refused(url: &str) -> PostgresError {
    let error = open(url).map(|_| ()).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains("swordfish") && !shown.contains("hunter2"),
        "{shown}"
    );
    let seen = text(&error.for_program());
    assert!(
        !seen.contains("127.0.0.1") && !seen.contains("postgres"),
        "{seen}"
    );
    error
}

#[test]
fn who_may_not_enter_is_told_why() {
    let database = shared().database();
    let wrong = database.url_of("admin", "hunter2", "127.0.0.1", "sslmode=disable");
    let error = refused(&wrong);
    assert_eq!(error.code(), PostgresCode::Login);
    assert!(
        error.to_string().contains("password authentication failed"),
        "{error}"
    );
    // `with_password` replaces a wrong password, or a missing one.
    let options = PostgresOptions::of_url(&wrong).unwrap();
    PostgresStore::open(options.with_password(&Secret::new("swordfish"))).unwrap();
    let none = wrong.replace(":hunter2", "");
    assert_eq!(refused(&none).code(), PostgresCode::Login);
    let options = PostgresOptions::of_url(&none).unwrap();
    PostgresStore::open(options.with_password(&Secret::new("swordfish"))).unwrap();

    let elsewhere = Database {
        name: "nowhere".to_owned(),
        ..database.clone()
    };
    assert_eq!(refused(&elsewhere.url()).code(), PostgresCode::NotFound);
    database.sql("CREATE ROLE one LOGIN PASSWORD 'p' CONNECTION LIMIT 1");
    let url = database.url_of("one", "p", "127.0.0.1", "sslmode=disable");
    database.sql(
        "GRANT USAGE ON SCHEMA agent99 TO one;
         GRANT SELECT ON ALL TABLES IN SCHEMA agent99 TO one",
    );
    let first = open(&url).unwrap();
    assert_eq!(refused(&url).code(), PostgresCode::TooManyConnections);
    drop(first);
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let started = Instant::now();
    let slow = format!("postgres://u:hunter2@127.0.0.1:{port}/d?connect_timeout=1");
    assert_eq!(refused(&slow).code(), PostgresCode::Unreachable);
    assert!(started.elapsed() < Duration::from_secs(9));
    drop(silent);
    let error = refused(&slow);
    assert_eq!(error.code(), PostgresCode::Unreachable);
    assert!(error.to_string().contains("efused"), "{error}");
    let nobody = "postgres://u:hunter2@host.invalid/d?sslmode=disable";
    assert_eq!(refused(nobody).code(), PostgresCode::Unreachable);
}

fn is_encrypted(store: &PostgresStore, database: &Database) -> bool {
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    let row = "SELECT bool_or(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE application_name = 'agent99' AND datname = current_database()";
    database.sql(row) == "t"
}

#[test]
fn servers_are_who_they_should_be() {
    let database = shared().database();
    let authority = |name: &str| format!("sslrootcert={}", authority(name));
    let (ours, other) = (authority("ca.pem"), authority("other.pem"));
    let named = |more: &str| database.url_with(NAME, &format!("hostaddr=127.0.0.1&{more}"));
    let unnamed = |more: &str| database.url_with("127.0.0.1", more);
    let taken = [
        named(&ours),
        named(&format!("sslmode=verify-full&{ours}")),
        unnamed(&format!("sslmode=verify-ca&{ours}")),
        unnamed(&format!("sslmode=require&{ours}")),
        unnamed("sslmode=require"),
        unnamed(""),
    ];
    for url in taken {
        let store = open(&url).unwrap();
        assert!(is_encrypted(&store, &database), "{url}");
        store.close();
    }
    let plain = open(&unnamed("sslmode=disable")).unwrap();
    assert!(!is_encrypted(&plain, &database));
    for (url, why) in [
        (unnamed(&ours), "not valid for name"),
        (named(&other), "UnknownIssuer"),
        (
            unnamed(&format!("sslmode=require&{other}")),
            "UnknownIssuer",
        ),
        (
            unnamed(&format!("sslmode=verify-ca&{other}")),
            "UnknownIssuer",
        ),
        // The system's authorities did not sign it.
        (unnamed("sslmode=verify-full"), "TLS"),
    ] {
        let error = refused(&url);
        assert_eq!(error.code(), PostgresCode::Tls, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let missing = refused(&named("sslrootcert=/nowhere"));
    assert_eq!(missing.code(), PostgresCode::Config);
    let key = format!("sslrootcert={}", authority("server.key"));
    assert_eq!(refused(&named(&key)).code(), PostgresCode::Config);
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_asked() {
    with_server_of_its_own(|cluster| {
        let database = cluster.database();
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = database.url_with("127.0.0.1", &format!("sslmode={mode}"));
            let error = refused(&url);
            assert_eq!(error.code(), PostgresCode::Tls, "{error}");
        }
        let store = open(&database.url_with("127.0.0.1", "")).unwrap();
        assert!(!is_encrypted(&store, &database));
    });
}

#[test]
fn a_server_that_was_restarted_is_used_again() {
    with_server_of_its_own(|cluster| {
        let database = cluster.database();
        let store = open(&database.url()).unwrap();
        block_on(store.set("k".into(), 1.0.into())).unwrap();
        for round in 0..3 {
            match round {
                1 => cluster.kill(),
                _ => cluster.stop(),
            }
            let error = block_on(store.get("k".into())).unwrap_err();
            let away = "The store cannot be reached: try again later.";
            assert_eq!(text(&error), away);
            cluster.run();
            assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
            block_on(store.set(round.into(), Value::Null)).unwrap();
        }
    });
}

#[test]
fn connections_that_were_cut_are_made_anew() {
    let (database, store) = store();
    for round in 0..5 {
        block_on(store.set("k".into(), round.into())).unwrap();
        let cut = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity \
                   WHERE application_name = 'agent99' AND datname = current_database()";
        assert_ne!(database.sql(cut), "0");
        assert_eq!(block_on(store.get("k".into())).unwrap(), round.into());
    }
}

#[test]
fn a_database_that_only_may_be_read_is_read() {
    let (database, store) = store();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    database.alter("SET default_transaction_read_only TO on");
    let store = open(&database.url()).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
    let list = store.list(Value::Null, Value::Null, Value::Null);
    assert!(block_on(list).is_ok());
    for _ in 0..3 {
        let error = block_on(store.set("k".into(), 2.0.into())).unwrap_err();
        assert_eq!(text(&error), "The store can only be read.");
    }
    let error = store.clear().wait().unwrap_err();
    assert_eq!(error.code(), PostgresCode::ReadOnly);
    // Without tables, none can be created.
    database.alter("RESET default_transaction_read_only");
    database.sql("DROP SCHEMA agent99 CASCADE");
    database.alter("SET default_transaction_read_only TO on");
    assert_eq!(refused(&database.url()).code(), PostgresCode::ReadOnly);
}

/// Simulates the error of a full disk on the server.
#[test]
fn a_full_disk_takes_no_more_and_loses_nothing() {
    let (database, store) = store();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    database.sql(
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON agent99.a99_entry
         FOR EACH ROW EXECUTE FUNCTION no_room()",
    );
    for _ in 0..3 {
        let error = block_on(store.set("l".into(), 1.0.into())).unwrap_err();
        assert_eq!(text(&error), "Store is full");
    }
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
    assert_eq!(store.usage().wait().unwrap().keys, 1);
    let gone = block_on(store.delete("k".into())).unwrap();
    assert_eq!(gone, Value::Bool(true));
}

/// Holds the lock of all namespaces for this time.
fn hold(database: &Database, time: Duration) -> thread::JoinHandle<String> {
    let (other, seconds) = (database.clone(), time.as_secs_f64());
    let holder = thread::spawn(move || {
        other.sql(&format!(
            "BEGIN; SELECT 1 FROM agent99.a99_namespace FOR UPDATE; SELECT pg_sleep({seconds})"
        ))
    });
    let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' \
                AND datname = current_database()";
    while database.sql(held) == "0" {
        thread::sleep(Duration::from_millis(10));
    }
    holder
}

fn active(database: &Database) -> (u32, u32) {
    let counts = database.sql(
        "SELECT count(*) FILTER (WHERE state <> 'idle') || ' ' || count(*) FROM pg_stat_activity \
         WHERE application_name = 'agent99' AND datname = current_database()",
    );
    let (active, all) = counts.split_once(' ').unwrap();
    (active.parse().unwrap(), all.parse().unwrap())
}

#[test]
fn what_takes_too_long_is_cut() {
    let database = shared().database();
    let mut options = PostgresOptions::of_url(&database.url()).unwrap();
    options.statement_timeout = Duration::from_millis(300);
    let store = PostgresStore::open(options).unwrap();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    let holder = hold(&database, Duration::from_secs(2));
    let error = block_on(store.set("k".into(), 2.0.into())).unwrap_err();
    assert_eq!(text(&error), "The store took too long.");
    // Reads wait for no lock.
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
    holder.join().unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
    block_on(store.set("k".into(), 3.0.into())).unwrap();
}

#[test]
fn futures_that_are_dropped_leave_nothing_behind() {
    let database = shared().database();
    let mut options = PostgresOptions::of_url(&database.url()).unwrap();
    options.connections = 3;
    let store = PostgresStore::open(options).unwrap();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    let holder = hold(&database, Duration::from_secs(4));
    for n in 0..40 {
        let mut set = pin!(store.set("k".into(), n.into()));
        let mut cx = Context::from_waker(Waker::noop());
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(n % 30) {
            assert!(matches!(set.as_mut().poll(&mut cx), Poll::Pending));
            thread::sleep(Duration::from_millis(1));
        }
    }
    // All connections end, while the lock is held.
    let since = Instant::now();
    while active(&database).0 > 0 {
        assert!(
            since.elapsed() < Duration::from_secs(2),
            "{:?}",
            active(&database)
        );
    }
    assert!(active(&database).1 <= 3);
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
    holder.join().unwrap();
    block_on(store.set("k".into(), 2.0.into())).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 2.0.into());
    assert!(active(&database).1 <= 3);
}

#[test]
fn a_query_that_is_dropped_frees_its_connection() {
    let database = shared().database();
    let mut options = PostgresOptions::of_url(&database.url()).unwrap();
    options.connections = 1;
    let store = PostgresStore::open(options).unwrap();
    for n in 0..400 {
        block_on(store.set(format!("d/{n}").into(), "x".repeat(3_000).into())).unwrap();
    }
    for n in 0..60 {
        let order = crate::object(&[("orderBy", "n".into())]);
        let mut query = pin!(store.query(order));
        let mut cx = Context::from_waker(Waker::noop());
        let since = Instant::now();
        while since.elapsed() < Duration::from_micros(n * 500) {
            if query.as_mut().poll(&mut cx).is_ready() {
                break;
            }
            thread::yield_now();
        }
    }
    assert_eq!(store.usage().wait().unwrap().keys, 400);
    block_on(store.set("k".into(), 1.0.into())).unwrap();
}
