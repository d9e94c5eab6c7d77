//! Conformance suite of stores on a server, over each kind of connection.

use crate::laws::conforms;
use crate::{block_on, open, store};
use a99_capabilities::Store;

#[test]
fn postgres_store_conforms_by_a_socket() {
    let database = crate::certificates::shared().database();
    conforms(&open(&database.url_of_socket()).unwrap());
}

#[test]
fn what_is_stored_is_there_in_the_next_process() {
    let (database, store) = store();
    block_on(store.set("k".into(), 5.0.into())).unwrap();
    let usage = store.usage().wait().unwrap();
    store.clone().close();
    let error = block_on(store.get("k".into())).unwrap_err();
    assert_eq!(crate::text(&error), "The store was closed.");
    drop(store);
    let store = open(&database.url()).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 5.0.into());
    assert_eq!(store.usage().wait().unwrap(), usage);
}
