//! Conformance suite of stores in files, and their file format.

use crate::{block_on, object, store};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_sqlite::SqliteStore;

#[test]
fn a_store_that_conforms_is_whole() {
    let (_folder, store) = store();
    crate::laws::conforms(&store);
    store.database().check().wait().unwrap();
}

#[test]
fn people_can_read_the_file() {
    let (_folder, store) = store();
    let store = store.namespace("ann");
    let value = object(&[("b", 1.5.into()), ("1", vec![Value::Null].into())]);
    block_on(store.set("order/1".into(), value)).unwrap();
    let row = store.database().read(|tx| {
        let sql = "SELECT namespace || ' ' || key || ' ' || value FROM entries";
        Ok(tx.query_row(sql, [], |row| row.get::<_, String>(0))?)
    });
    assert_eq!(row.wait().unwrap(), r#"ann order/1 {"b":1.5,"1":[null]}"#);
}

#[test]
fn what_is_stored_is_there_in_the_next_process() {
    let (folder, store) = store();
    block_on(store.set("k".into(), 5.0.into())).unwrap();
    let usage = store.usage().wait().unwrap();
    store.database().clone().close();
    let error = block_on(store.get("k".into())).unwrap_err();
    assert_eq!(crate::text(&error), "The store was closed.");
    drop(store);
    // All data is in the one file.
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.db"]);
    let store = SqliteStore::open(folder.path().join("a.db")).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 5.0.into());
    assert_eq!(store.usage().wait().unwrap(), usage);
}

#[test]
fn closing_leaves_one_file() {
    for _ in 0..30 {
        let (folder, store) = store();
        block_on(store.set("k".into(), 5.0.into())).unwrap();
        store.database().clone().close();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
