//! Damaged files: errors, no panics, and nothing of the host in what programs see.

use crate::{add, block_on, create, document, ids, object, store, text, vector};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_sqlite::{Component, SqliteCode};
use a99_vectors::VectorStore;
use std::fs;

fn filled() -> (tempfile::TempDir, VectorStore) {
    let (folder, store) = store();
    create(&store, "c");
    for n in 0..50 {
        add(
            &store,
            "c",
            document(&n.to_string(), &[1.0, f64::from(n), 0.25]),
        );
    }
    (folder, store)
}

/// All that may be asked of a store; the texts of its errors.
fn ask(store: &VectorStore) -> Vec<String> {
    let three = || vector(&[1.0, 2.0, 3.0]);
    let filter = object(&[("id", "7".into())]);
    let replies = [
        store.vector_search("c".into(), three(), 60.0.into(), Value::Null),
        store.vector_search("c".into(), three(), 60.0.into(), filter),
        store.vector_add("c".into(), document("x", &[1.0, 2.0, 3.0])),
        store.vector_upsert("c".into(), document("7", &[1.0, 2.0, 3.0])),
        store.vector_search("c".into(), three(), 60.0.into(), Value::Null),
        store.vector_delete("c".into(), "9".into()),
        store.vector_search("c".into(), three(), 60.0.into(), Value::Null),
        store.create_collection("c".into(), Value::Null, Value::Null),
    ];
    let errors = replies
        .into_iter()
        .filter_map(|reply| block_on(reply).err());
    errors.map(|error| text(&error)).collect()
}

#[test]
fn n19_rows_of_another_form_are_told() {
    for (sql, least) in [
        ("UPDATE vector_document SET embedding = x'00'", 1),
        ("UPDATE vector_document SET embedding = x''", 1),
        (
            "UPDATE vector_document SET embedding = zeroblob(4 * 3 + 1)",
            1,
        ),
        (
            "UPDATE vector_document SET embedding = x'0000807f0000807f0000807f'",
            1,
        ),
        ("UPDATE vector_document SET value = x'07ff'", 1),
        ("UPDATE vector_document SET value = '[1]'", 1),
        ("UPDATE vector_document SET value = 7", 1),
        ("UPDATE vector_collection SET dimension = 0", 1),
        ("UPDATE vector_collection SET dimension = -1", 1),
        ("UPDATE vector_collection SET dimension = 1 << 40", 1),
        ("UPDATE vector_collection SET dimension = 2", 1),
        ("UPDATE vector_collection SET added = 0x7fffffffffffffff", 1),
        ("UPDATE vector_collection SET documents = -5", 0),
        ("UPDATE vector_collection SET documents = 1 << 60", 0),
        (
            "UPDATE vector_collection SET version = 0x7fffffffffffffff",
            0,
        ),
        (
            "UPDATE vector_collection SET version = -0x7fffffffffffffff",
            0,
        ),
        ("UPDATE vector_collection SET floor = 1 << 60", 0),
        ("UPDATE vector_collection SET id = 1 << 60", 0),
        ("DELETE FROM vector_namespace", 0),
        ("DELETE FROM vector_document", 0),
        ("DROP TABLE vector_change", 1),
        ("DROP TABLE vector_document", 1),
    ] {
        for is_copied in [false, true] {
            let (_folder, store) = filled();
            if is_copied {
                assert_eq!(ids(&store, "c", &[1.0, 0.0, 0.0], 50).len(), 50);
            }
            let damage = store
                .keys()
                .database()
                .write(move |tx| Ok(tx.execute_batch(sql)?));
            damage.wait().unwrap();
            if is_copied {
                // Whoever damages it does not raise the version: the documents are read.
                drop(ask(&store));
                continue;
            }
            let errors = ask(&store);
            assert!(errors.len() >= least, "{sql}: {errors:?}");
            for error in errors {
                let known = [
                    "The store is damaged.",
                    "The store does not work.",
                    "Store is full",
                ];
                let is_known = known.iter().any(|known| error.starts_with(known))
                    || error.starts_with("Vectors must have the same length");
                assert!(is_known, "{sql}: {error}");
            }
        }
    }
}

#[test]
fn n19_bytes_that_are_changed_are_told() {
    let (folder, store) = filled();
    let path = folder.path().join("a.db");
    store.keys().database().clone().close();
    let whole = fs::read(&path).unwrap();
    let mut errors = 0;
    for round in 0..60_usize {
        let mut bytes = whole.clone();
        // A stretch of a page beyond the first.
        let at = 4_096 + round.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (whole.len() - 4_200);
        for (n, byte) in bytes[at..at + 64].iter_mut().enumerate() {
            *byte = (n * 89 + round * 31) as u8;
        }
        let damaged = folder.path().join(format!("{round}.db"));
        fs::write(&damaged, bytes).unwrap();
        match VectorStore::open(&damaged) {
            Ok(store) => {
                for error in ask(&store) {
                    assert!(!error.contains(".db"), "{error}");
                    errors += 1;
                }
                store.keys().database().clone().close();
            }
            Err(error) => {
                let code = error.code();
                let known = [
                    SqliteCode::Corrupt,
                    SqliteCode::Failed,
                    SqliteCode::NotDatabase,
                ];
                assert!(known.contains(&code), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 20, "{errors}");
}

#[test]
fn tables_of_a_later_version_are_refused() {
    static LATER: Component = Component {
        name: "vectors",
        migrations: &["", "", "", "", "", "", "", "", ""],
    };
    let (folder, store) = store();
    store.keys().database().migrate(&LATER).wait().unwrap();
    let error = VectorStore::open(folder.path().join("a.db")).unwrap_err();
    assert_eq!(error.code(), SqliteCode::Newer);
    assert!(error.message().contains("vectors"), "{error}");
}
