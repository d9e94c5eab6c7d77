//! Schemas: creation, permissions, and refused tables.

use crate::certificates::shared;
use crate::cluster::Database;
use crate::{block_on, open, store, text};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_postgres::{PostgresCode, PostgresError, PostgresOptions, PostgresStore};
use std::thread;

fn refused(url: &str, database: &Database) -> PostgresError {
    let error = open(url).map(|_| ()).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains(&database.name), "{shown}");
    assert!(
        !format!("{shown} {error:?}").contains("swordfish"),
        "{shown}"
    );
    let seen = text(&error.for_program());
    assert!(!seen.contains(&database.name), "{seen}");
    error
}

#[test]
fn many_who_start_at_once_make_the_tables_once() {
    let database = shared().database();
    thread::scope(|scope| {
        for n in 0..12 {
            let url = database.url();
            scope.spawn(move || {
                let store = open(&url).unwrap();
                block_on(store.set(n.into(), Value::Null)).unwrap();
            });
        }
    });
    let store = open(&database.url()).unwrap();
    assert_eq!(store.usage().wait().unwrap().keys, 12);
}

#[test]
fn tables_of_later_versions_are_refused_as_they_are() {
    let (database, store) = store();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    database.sql("UPDATE agent99.a99_component SET version = 2");
    let error = refused(&database.url(), &database);
    assert_eq!(error.code(), PostgresCode::Newer);
    assert_eq!(error.code().name(), "postgres.newer");
    assert_eq!(database.sql("SELECT count(*) FROM agent99.entries"), "1");
}

/// A later version removes tables while a process of this version runs.
#[test]
fn a_process_of_an_earlier_version_is_refused_then() {
    let (database, store) = store();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    database.sql("DROP SCHEMA agent99 CASCADE");
    let error = block_on(store.set("k".into(), 2.0.into())).unwrap_err();
    assert_eq!(text(&error), "The store does not work.");
    let error = store.usage().wait().unwrap_err();
    assert_eq!(error.code(), PostgresCode::Foreign);
}

#[test]
fn schemas_are_apart() {
    let database = shared().database();
    let of = |schema: &str| {
        let mut options = PostgresOptions::of_url(&database.url()).unwrap();
        options.schema = schema.to_owned();
        PostgresStore::open(options).unwrap()
    };
    // The second has an unusual but valid name.
    let (ann, bob) = (of("Ann"), of("b\"; DROP SCHEMA \"Ann\" CASCADE; --"));
    block_on(ann.set("k".into(), 1.0.into())).unwrap();
    assert_eq!(block_on(bob.get("k".into())).unwrap(), Value::Undefined);
    block_on(bob.set("k".into(), 2.0.into())).unwrap();
    assert_eq!(block_on(ann.get("k".into())).unwrap(), 1.0.into());
    assert_eq!(block_on(of("Ann").get("k".into())).unwrap(), 1.0.into());
}

#[test]
fn another_programs_tables_are_left_as_they_are() {
    let database = shared().database();
    database.sql("CREATE SCHEMA agent99; CREATE TABLE agent99.a99_entry (mine integer)");
    let error = refused(&database.url(), &database);
    assert_eq!(error.code(), PostgresCode::Foreign);
    assert_eq!(database.sql("SELECT count(*) FROM agent99.a99_entry"), "0");
    let made = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
                WHERE nspname = 'agent99' AND relkind = 'r'";
    assert_eq!(database.sql(made), "1");
}

#[test]
fn a_user_with_few_rights_uses_what_its_owner_made() {
    let database = shared().database();
    database.sql("CREATE ROLE clerk LOGIN PASSWORD 'p'");
    let url = database.url_of("clerk", "p", "127.0.0.1", "sslmode=disable");
    assert_eq!(refused(&url, &database).code(), PostgresCode::Denied);
    drop(open(&database.url()).unwrap());
    assert_eq!(refused(&url, &database).code(), PostgresCode::Denied);
    database.sql(
        "GRANT USAGE ON SCHEMA agent99 TO clerk;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agent99 TO clerk",
    );
    let store = open(&url).unwrap();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
}
