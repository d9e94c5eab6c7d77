//! Isolation of namespaces.

use crate::{NAMESPACES, Tested, block_on, lasting, store};
use a99_capabilities::{Store, StoreLimits};
use a99_core::text::Text;
use a99_core::value::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Confusable names: separators, case, other forms of the same letter, text like SQL or a key,
/// the empty name, half of a surrogate pair.
fn names() -> impl Strategy<Value = Text> {
    let parts = [
        "",
        "a",
        "A",
        "/",
        "\0",
        ":",
        ".",
        "..",
        "%",
        "_",
        "*",
        "'",
        "\"",
        "\\",
        " ",
        "0",
        "1",
        "null",
        "\u{e9}",
        "e\u{301}",
        "\u{212b}",
        "\u{c5}",
        "\u{131}",
        "\u{200b}",
        "\u{10ffff}",
    ];
    let part = prop_oneof![
        8 => prop::sample::select(parts.to_vec()).prop_map(|part| part.as_bytes().to_vec()),
        1 => Just(vec![0xed, 0xa0, 0x80]),
        1 => any::<String>().prop_map(String::into_bytes),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| Text::from_wtf8(parts.concat()))
}

/// A namespace, where `None` is the store itself, and a key.
type Place = (Option<Text>, Text);

fn open(store: &Tested, name: Option<&Text>) -> Tested {
    match name {
        Some(name) => store.namespace(name.clone()),
        None => store.clone(),
    }
}

fn keys(store: &Tested) -> Vec<Value> {
    let page = block_on(store.list(Value::Null, Value::Null, 1_000.0.into())).unwrap();
    page.get("keys").and_then(Value::as_array).unwrap().to_vec()
}

fn rows(store: &Tested) -> usize {
    let answer = block_on(store.query(crate::object(&[]))).unwrap();
    answer.get("rows").and_then(Value::as_array).unwrap().len()
}

fn shared() -> &'static Tested {
    static STORE: OnceLock<Tested> = OnceLock::new();
    STORE.get_or_init(lasting)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(NAMESPACES))]

    #[test]
    fn n19_namespaces_are_apart(
        places in prop::collection::vec((prop::option::of(names()), names()), 1..12),
        gone in 0..12usize,
        elsewhere in names(),
    ) {
        let store = shared();
        let names = places.iter().map(|(name, _)| name.as_ref());
        for name in names.chain([None, Some(&elsewhere)]) {
            open(store, name).clear().wait().unwrap();
        }
        let mut wanted: BTreeMap<Place, Value> = BTreeMap::new();
        for (n, (name, key)) in places.iter().enumerate() {
            let set = open(store, name.as_ref());
            block_on(set.set(Value::String(key.clone()), n.into())).unwrap();
            wanted.insert((name.clone(), key.clone()), n.into());
        }
        let (name, key) = &places[gone % places.len()];
        let delete = open(store, name.as_ref());
        let was_there = block_on(delete.delete(Value::String(key.clone()))).unwrap();
        prop_assert_eq!(was_there, Value::Bool(true));
        wanted.remove(&(name.clone(), key.clone()));

        let mut all: Vec<Option<Text>> = places.iter().map(|(name, _)| name.clone()).collect();
        all.extend([None, Some(elsewhere)]);
        for name in &all {
            let here = open(store, name.as_ref());
            let mine: Vec<(&Text, &Value)> = wanted
                .iter()
                .filter(|((n, _), _)| n == name)
                .map(|((_, key), value)| (key, value))
                .collect();
            let listed: Vec<Value> = mine.iter().map(|(k, _)| Value::String((*k).clone())).collect();
            prop_assert_eq!(keys(&here), listed);
            prop_assert_eq!(rows(&here), mine.len());
            let usage = here.usage().wait().unwrap();
            // A number below ten is one byte.
            let bytes: usize = mine
                .iter()
                .map(|(key, value)| key.len_bytes() + value.to_json_string().len() + 64)
                .sum();
            prop_assert_eq!((usage.keys, usage.bytes), (mine.len() as u64, bytes as u64));
            for (_, key) in &places {
                let found = block_on(here.get(Value::String(key.clone()))).unwrap();
                let want = wanted.get(&(name.clone(), key.clone())).cloned();
                prop_assert_eq!(found, want.unwrap_or(Value::Undefined));
            }
        }
        open(store, all[0].as_ref()).clear().wait().unwrap();
        wanted.retain(|(name, _), _| *name != all[0]);
        let left: usize = all
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(|name| keys(&open(store, name.as_ref())).len())
            .sum();
        prop_assert_eq!(left, wanted.len());
    }
}

#[test]
fn n19_a_full_namespace_is_nobody_elses() {
    let (_kept, store) = store();
    let small = StoreLimits {
        max_bytes: 200,
        ..StoreLimits::default()
    };
    let [ann, bob] = ["ann", "bob"].map(|name| store.namespace(name).with_limits(small.clone()));
    let big = || Value::from("x".repeat(100));
    block_on(ann.set("k".into(), big())).unwrap();
    block_on(ann.set("l".into(), big())).unwrap_err();
    block_on(bob.set("k".into(), big())).unwrap();
    assert_eq!(keys(&ann).len(), 1);
}

#[test]
fn a_namespace_without_a_name_is_not_the_empty_name() {
    let (_kept, store) = store();
    block_on(store.set("k".into(), 1.0.into())).unwrap();
    let empty = store.namespace("");
    assert_eq!(block_on(empty.get("k".into())).unwrap(), Value::Undefined);
    block_on(empty.set("k".into(), 2.0.into())).unwrap();
    assert_eq!(block_on(store.get("k".into())).unwrap(), 1.0.into());
}
