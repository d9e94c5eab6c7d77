//! Changes and searches at random: on a server as in a file and in memory, down to what
//! namespaces hold.

use crate::common::direction;
use crate::{counted, create, document, object, open, store, vector};
use a99_capabilities::{MemoryStore, Store, block_on};
use a99_core::value::Value;
use a99_vectors::VectorStore;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Add(u8, u8),
    Upsert(u8, u8),
    Delete(u8),
    Create,
    Search { at: u8, k: u8, id: Option<u8> },
    Limit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..6u8;
    let step = prop_oneof![
        8 => (id.clone(), any::<u8>()).prop_map(|(id, at)| Step::Add(id, at)),
        6 => (id.clone(), any::<u8>()).prop_map(|(id, at)| Step::Upsert(id, at)),
        4 => id.clone().prop_map(Step::Delete),
        1 => Just(Step::Create),
        8 => (any::<u8>(), 0..12u8, prop::option::of(id))
            .prop_map(|(at, k, id)| Step::Search { at, k, id }),
        1 => prop::sample::select(vec![0, 3_000, 1 << 20]).prop_map(Step::Limit),
    ];
    prop::collection::vec(step, 1..60)
}

fn apply(store: &dyn Store, step: &Step) -> Value {
    let document = |id: &u8, at: &u8| document(&id.to_string(), &direction(*at));
    let done = match step {
        Step::Add(id, at) => store.vector_add("c".into(), document(id, at)),
        Step::Upsert(id, at) => store.vector_upsert("c".into(), document(id, at)),
        Step::Delete(id) => store.vector_delete("c".into(), id.to_string().into()),
        Step::Create => store.create_collection("c".into(), Value::Null, Value::Null),
        Step::Search { at, k, id } => {
            let query = vector(&direction(if at % 2 == 0 { 0 } else { 255 }));
            let filter = id.map_or(Value::Null, |id| object(&[("id", id.to_string().into())]));
            store.vector_search("c".into(), query, f64::from(*k).into(), filter)
        }
        Step::Limit(_) => return Value::Null,
    };
    block_on(done).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_server_finds_what_a_file_and_memory_find(steps in steps()) {
        let (database, kept) = store();
        let watcher = open(&database);
        let folder = tempfile::tempdir().unwrap();
        let file = VectorStore::open(folder.path().join("a.db")).unwrap();
        let memory = MemoryStore::new();
        let stores: [&dyn Store; 3] = [&kept, &file, &memory];
        for store in stores {
            create(store, "c");
        }
        for step in &steps {
            let wanted = apply(&memory, step);
            prop_assert_eq!(&apply(&kept, step), &wanted, "{:?}", step);
            prop_assert_eq!(&apply(&file, step), &wanted, "{:?}", step);
            match step {
                Step::Limit(bytes) => kept.set_cache_limit(*bytes),
                Step::Search { .. } => {
                    prop_assert_eq!(&apply(&watcher, step), &wanted, "{:?}", step);
                }
                _ => {}
            }
        }
        let usage = kept.vector_usage().wait().unwrap();
        prop_assert_eq!(usage, file.vector_usage().wait().unwrap());
        counted(&database);
    }
}
