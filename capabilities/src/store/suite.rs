//! What every [`Store`] must hold to.

use super::{Store, StoreMethod};
use crate::error::{SuiteResult, ensure, expect, refused};
use a99_core::value::{Map, Value};

/// The laws of `get` and `set`. Uses keys that start with `a99-suite`, and
/// `__proto__`.
pub async fn key_value(store: &dyn Store) -> SuiteResult {
    for method in [StoreMethod::Get, StoreMethod::Set] {
        ensure(
            store.supports(method),
            "a key-value store supports get and set",
        )?;
    }
    let unset = expect(
        store.get("a99-suite-unset".into()).await,
        "an unset key reads",
    )?;
    ensure(unset.is_undefined(), "an unset key is undefined")?;
    for key in [
        "a99-suite",
        "__proto__",
        "constructor",
        "a99-suite/../up",
        "a99-suite\u{0}",
    ] {
        let key = Value::from(key);
        expect(
            store.set(key.clone(), "one".into()).await,
            "a key can be set",
        )?;
        let value = sample();
        expect(
            store.set(key.clone(), value.clone()).await,
            "a key can be set again",
        )?;
        let back = expect(store.get(key.clone()).await, "a key reads")?;
        ensure(back == value, "a key has its last value, unchanged")?;
    }
    for scalar in [
        Value::Null,
        Value::Bool(false),
        Value::Number(0.0),
        "".into(),
    ] {
        let key = Value::from("a99-suite-scalar");
        expect(
            store.set(key.clone(), scalar.clone()).await,
            "scalars can be stored",
        )?;
        let back = expect(store.get(key).await, "scalars can be read")?;
        ensure(back == scalar, "scalars come back unchanged")?;
    }
    let huge = Value::from("k".repeat(10 << 20));
    refused(
        store.set(huge, Value::Null).await,
        "a key of ten megabytes is refused",
    )
}

fn sample() -> Value {
    let inner: Map = [("__proto__", Value::from("data")), ("10", Value::Null)]
        .into_iter()
        .collect();
    let list = vec![Value::Number(1.5), Value::Bool(true), Value::Object(inner)];
    Value::Object([("list", Value::Array(list))].into_iter().collect::<Map>())
}

/// The laws of vector collections. Uses the collection `a99-suite`.
pub async fn vectors(store: &dyn Store) -> SuiteResult {
    use StoreMethod::{CreateCollection, VectorAdd, VectorSearch};
    for method in [CreateCollection, VectorAdd, VectorSearch] {
        ensure(
            store.supports(method),
            "a vector store supports all of its methods",
        )?;
    }
    let name = || Value::from("a99-suite");
    let created = store
        .create_collection(name(), Value::Undefined, Value::Number(2.0))
        .await;
    expect(created, "a collection can be made")?;
    let documents = [
        ("east", 1.0, 0.0),
        ("north", 0.0, 1.0),
        ("also east", 2.0, 0.0),
    ];
    for (id, x, y) in documents {
        expect(
            store.vector_add(name(), document(id, &[x, y])).await,
            "a document can be added",
        )?;
    }
    let search = async |v: &[f64], k: Value| {
        store
            .vector_search(name(), vector(v), k, Value::Undefined)
            .await
    };
    let found = expect(
        search(&[3.0, 0.1], Value::Number(2.0)).await,
        "a search answers",
    )?;
    ensure(
        ids(&found) == ["east", "also east"],
        "the nearest come first, equals as added",
    )?;
    let all = expect(
        search(&[0.0, 5.0], Value::Number(1e9)).await,
        "a huge k is clamped",
    )?;
    ensure(
        ids(&all) == ["north", "east", "also east"],
        "all documents are found once",
    )?;
    let none = expect(
        search(&[0.0, 5.0], Value::Number(-1.0)).await,
        "a negative k is clamped",
    )?;
    ensure(ids(&none).is_empty(), "no document for a k below one")?;
    refused(
        search(&[1.0], Value::Undefined).await,
        "a vector of another length is refused",
    )?;
    refused(
        search(&[f64::NAN, 1.0], Value::Undefined).await,
        "NaN in a vector is refused",
    )?;
    refused(
        search(&[1.0, 1.0], Value::Number(f64::NAN)).await,
        "NaN as k is refused",
    )?;
    refused(
        search(&[1.0, 1.0], "lots".into()).await,
        "text as k is refused",
    )?;
    let bad = [
        document("x", &[1.0]),
        document("y", &[f64::INFINITY, 0.0]),
        Value::Null,
    ];
    for document in bad {
        refused(
            store.vector_add(name(), document).await,
            "a bad document is refused",
        )?;
    }
    let elsewhere = "a99-suite-unknown".into();
    let missing = store.vector_search(
        elsewhere,
        vector(&[1.0]),
        Value::Undefined,
        Value::Undefined,
    );
    refused(missing.await, "an unknown collection is refused")
}

fn vector(numbers: &[f64]) -> Value {
    Value::Array(numbers.iter().map(|n| Value::Number(*n)).collect())
}

fn document(id: &str, embedding: &[f64]) -> Value {
    let members = [("id", Value::from(id)), ("embedding", vector(embedding))];
    Value::Object(members.into_iter().collect::<Map>())
}

fn ids(found: &Value) -> Vec<&str> {
    let items = found.as_array().unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.get("id")?.as_str())
        .collect()
}
