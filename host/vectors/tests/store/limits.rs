//! Limits: what a namespace may hold, and what is asked of it.

use crate::{add, block_on, create, document, ids, object, store, text, vector};
use a99_capabilities::Store;
use a99_core::value::Value;
use a99_vectors::{VectorLimits, VectorStore, VectorUsage};

fn usage(store: &VectorStore) -> VectorUsage {
    store.vector_usage().wait().unwrap()
}

/// The bytes that triggers have counted are those that there are.
fn counted(store: &VectorStore) {
    let sum = store.keys().database().read(|tx| {
        let sql = "SELECT
            (SELECT count(*) FROM vector_document) = (SELECT sum(documents) FROM vector_namespace)
            AND (SELECT ifnull(sum(length(embedding) + octet_length(value)
                + ifnull(length(id), 0) + 128), 0) FROM vector_document)
            + (SELECT ifnull(sum(length(name) + 1024), 0) FROM vector_collection)
            = (SELECT sum(bytes) FROM vector_namespace)
            AND NOT EXISTS (SELECT 1 FROM vector_collection AS c WHERE documents <>
                (SELECT count(*) FROM vector_document WHERE collection = c.id))";
        Ok(tx.query_row(sql, [], |row| row.get::<_, bool>(0))?)
    });
    assert!(sum.wait().unwrap());
}

#[test]
fn n19_a_namespace_holds_no_more_than_its_quota() {
    let (_folder, store) = store();
    let limits = VectorLimits {
        max_bytes: 4_000,
        ..VectorLimits::default()
    };
    let (mine, other) = (
        store.namespace("a").with_vector_limits(limits.clone()),
        store.namespace("b"),
    );
    create(&mine, "c");
    create(&other, "c");
    let note = |n: usize| {
        let members = [
            ("id", Value::from(n.to_string())),
            ("embedding", vector(&[1.0, 0.5])),
            ("text", "x".repeat(300).into()),
        ];
        object(&members)
    };
    let mut kept = 0;
    let error = loop {
        match block_on(mine.vector_add("c".into(), note(kept))) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(text(&error), "Store is full: the limit is 4000 bytes");
    assert_eq!(usage(&mine).documents, kept as u64);
    assert!(usage(&mine).bytes <= 4_000 && usage(&mine).bytes > 3_000);
    counted(&store);
    // What is refused leaves nothing, in upserts and other collections too.
    let refused = [
        mine.vector_upsert("c".into(), note(kept)),
        mine.create_collection("x".repeat(3_000).into(), Value::Null, Value::Null),
    ];
    for refused in refused {
        assert!(text(&block_on(refused).unwrap_err()).starts_with("Store is full"));
    }
    assert_eq!(ids(&mine, "c", &[1.0, 0.0], 100).len(), kept);
    // Others have room, a successor needs none, and what is deleted makes some.
    add(&other, "c", note(0));
    block_on(mine.vector_upsert("c".into(), note(0))).unwrap();
    block_on(mine.vector_delete("c".into(), "1".into())).unwrap();
    add(&mine, "c", note(1));
    counted(&store);
    mine.clear_vectors().wait().unwrap();
    create(&mine, "c");
    assert_eq!(usage(&mine).bytes, 1_025);
    mine.clear_vectors().wait().unwrap();
    assert_eq!(usage(&mine), VectorUsage::default());
    assert_eq!(usage(&other).documents, 1);
    counted(&store);
}

#[test]
fn a_namespace_holds_no_more_documents_than_it_may() {
    let (_folder, store) = store();
    create(&store, "c");
    create(&store, "d");
    for id in ["a", "a", "b"] {
        add(&store, "c", document(id, &[1.0]));
    }
    let few = store.with_vector_limits(VectorLimits {
        max_documents: 3,
        ..VectorLimits::default()
    });
    let full = "Store is full: the limit is 3 documents";
    let added = block_on(few.vector_add("d".into(), document("x", &[1.0])));
    assert_eq!(text(&added.unwrap_err()), full);
    // Two with one id become one.
    block_on(few.vector_upsert("c".into(), document("a", &[1.0]))).unwrap();
    add(&few, "d", document("x", &[1.0]));
    let added = block_on(few.vector_upsert("d".into(), document("y", &[1.0])));
    assert_eq!(text(&added.unwrap_err()), full);
    counted(&store);
}

#[test]
fn documents_and_answers_have_limits() {
    let (_folder, store) = store();
    let store = store.with_vector_limits(VectorLimits {
        max_document_bytes: 1_000,
        max_answer_bytes: 3_000,
        ..VectorLimits::default()
    });
    create(&store, "c");
    let note = |length: usize| {
        object(&[
            ("embedding", vector(&[1.0])),
            ("text", "x".repeat(length).into()),
        ])
    };
    let large = block_on(store.vector_add("c".into(), note(1_000))).unwrap_err();
    assert_eq!(
        text(&large),
        "Store value too large: the limit is 1000 bytes"
    );
    for _ in 0..4 {
        add(&store, "c", note(900));
    }
    let search =
        |k: usize| block_on(store.vector_search("c".into(), vector(&[1.0]), k.into(), Value::Null));
    assert_eq!(search(3).unwrap().as_array().unwrap().len(), 3);
    let much = "The documents found have more than 3000 bytes: ask for fewer with k.";
    assert_eq!(text(&search(4).unwrap_err()), much);
    // A vector that was refused does not say how many numbers others have.
    store.clear_vectors().wait().unwrap();
    create(&store, "c");
    block_on(store.vector_add("c".into(), note(1_000))).unwrap_err();
    add(&store, "c", document("two", &[1.0, 2.0]));
}
