//! Changes and searches at random, on this store and the one in memory.

use crate::common::direction;
use crate::{block_on, create, document, store, vector};
use a99_capabilities::{MemoryStore, Store};
use a99_core::value::Value;
use a99_vectors::VectorStore;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Add(u8, u8),
    Upsert(u8, u8),
    Delete(u8),
    Create,
    Search {
        at: u8,
        k: u8,
        id: Option<u8>,
    },
    /// Others open the file, or the copies go.
    Reopen,
    Limit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..8u8;
    let step = prop_oneof![
        8 => (id.clone(), any::<u8>()).prop_map(|(id, at)| Step::Add(id, at)),
        6 => (id.clone(), any::<u8>()).prop_map(|(id, at)| Step::Upsert(id, at)),
        4 => id.clone().prop_map(Step::Delete),
        1 => Just(Step::Create),
        8 => (any::<u8>(), 0..12u8, prop::option::of(id))
            .prop_map(|(at, k, id)| Step::Search { at, k, id }),
        1 => Just(Step::Reopen),
        1 => prop::sample::select(vec![0, 3_000, 1 << 20]).prop_map(Step::Limit),
    ];
    prop::collection::vec(step, 1..120)
}

fn all(store: &dyn Store, query: [f64; 2], k: u8, id: Option<u8>) -> Value {
    let filter = id.map_or(Value::Null, |id| {
        crate::object(&[("id", id.to_string().into())])
    });
    let k = f64::from(k).into();
    block_on(store.vector_search("c".into(), vector(&query), k, filter)).unwrap()
}

fn apply(store: &dyn Store, step: &Step) -> Option<Value> {
    let document = |id: &u8, at: &u8| document(&id.to_string(), &direction(*at));
    let done = match step {
        Step::Add(id, at) => store.vector_add("c".into(), document(id, at)),
        Step::Upsert(id, at) => store.vector_upsert("c".into(), document(id, at)),
        Step::Delete(id) => store.vector_delete("c".into(), id.to_string().into()),
        Step::Create => store.create_collection("c".into(), Value::Null, Value::Null),
        Step::Search { at, k, id } => {
            // From one of the ends, so that no two directions are as near.
            let query = direction(if at % 2 == 0 { 0 } else { 255 });
            return Some(all(store, query, *k, *id));
        }
        Step::Reopen | Step::Limit(_) => return None,
    };
    Some(block_on(done).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn it_finds_what_the_store_in_memory_finds(steps in steps()) {
        let (_folder, mut kept) = store();
        let memory = MemoryStore::new();
        let watcher = VectorStore::open(kept.keys().database().path()).unwrap();
        create(&kept, "c");
        create(&memory, "c");
        for step in &steps {
            prop_assert_eq!(apply(&kept, step), apply(&memory, step), "{:?}", step);
            match step {
                Step::Reopen => {
                    kept = VectorStore::open(kept.keys().database().path()).unwrap();
                }
                Step::Limit(bytes) => kept.set_cache_limit(*bytes),
                Step::Search { .. } => {
                    prop_assert_eq!(apply(&watcher, step), apply(&memory, step), "{:?}", step);
                }
                _ => {}
            }
        }
        let last = |store: &dyn Store| all(store, direction(0), 200, None);
        prop_assert_eq!(last(&kept), last(&memory));
        prop_assert_eq!(last(&watcher), last(&memory));
        let count = last(&memory).as_array().unwrap().len() as u64;
        prop_assert_eq!(kept.vector_usage().wait().unwrap().documents, count);
    }
}
