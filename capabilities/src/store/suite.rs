//! Conformance suites of [`Store`].

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

/// The laws of `delete`, `list` and `compareAndSet`. Uses text keys that start with
/// `a99-suite-keys`, and the number 7 and the text "7".
pub async fn keys(store: &dyn Store) -> SuiteResult {
    use StoreMethod::{CompareAndSet, Delete, List};
    for method in [Delete, List, CompareAndSet] {
        ensure(
            store.supports(method),
            "keys are deleted, listed and compared",
        )?;
    }
    let gone = |reply| expect(reply, "a key can be deleted");
    expect(
        store.set("7".into(), "text".into()).await,
        "a text is a key",
    )?;
    gone(store.delete(Value::Number(7.0)).await)?;
    let text = expect(store.get("7".into()).await, "a key reads")?;
    ensure(
        text == Value::from("text"),
        "a number is another key than its text",
    )?;
    ensure(
        gone(store.delete("7".into()).await)? == Value::Bool(true),
        "what was there is told",
    )?;
    ensure(
        gone(store.delete("7".into()).await)? == Value::Bool(false),
        "and what was not",
    )?;
    let text = expect(store.get("7".into()).await, "a deleted key reads")?;
    ensure(text.is_undefined(), "a deleted key is undefined")?;

    let names = [
        "",
        "/",
        "/%",
        "/1",
        "/10",
        "/2",
        "/_",
        "/a",
        "/\u{e9}",
        "/\u{10ffff}",
        "0",
    ];
    for name in names.iter().rev() {
        let key = format!("a99-suite-keys{name}");
        expect(store.set(key.into(), Value::Null).await, "a key can be set")?;
    }
    let list = async |prefix: &str, limit: f64| {
        let (mut found, mut cursor) = (Vec::new(), Value::Undefined);
        loop {
            let prefix = Value::from(format!("a99-suite-keys{prefix}"));
            let page = store.list(prefix, cursor, Value::Number(limit)).await;
            let page = expect(page, "keys can be listed")?;
            let keys = page
                .get("keys")
                .and_then(Value::as_array)
                .unwrap_or_default();
            ensure(
                keys.len() <= limit as usize,
                "a page is no longer than asked for",
            )?;
            found.extend(keys.iter().filter_map(Value::as_str).map(str::to_owned));
            match page.get("cursor") {
                Some(next) => cursor = next.clone(),
                None => return Ok::<_, String>(found),
            }
        }
    };
    let all: Vec<String> = names.map(|name| format!("a99-suite-keys{name}")).to_vec();
    for limit in [1.0, 3.0, 11.0, 100.0] {
        ensure(
            list("", limit).await? == all,
            "keys are listed once, in order of their bytes",
        )?;
        ensure(
            list("/", limit).await? == all[1..10],
            "a prefix is a text, not a pattern",
        )?;
    }
    ensure(
        list("/%", 5.0).await? == all[2..3],
        "no character of a prefix is special",
    )?;
    ensure(list("/none", 5.0).await?.is_empty(), "no key, no page")?;
    for limit in [Value::Number(0.0), Value::Number(f64::NAN), "5".into()] {
        let page = store.list(Value::Undefined, Value::Undefined, limit);
        refused(page.await, "a limit that is none is refused")?;
    }

    let key = || Value::from("a99-suite-keys/swap");
    let swap = async |expected: Value, value: Value| {
        let done = store.compare_and_set(key(), expected, value, None).await;
        expect(done, "a value can be compared and set")
    };
    ensure(
        swap(Value::Null, 1.0.into()).await? == Value::Bool(false),
        "null is a value",
    )?;
    ensure(
        swap(Value::Undefined, sample()).await? == Value::Bool(true),
        "an unset key is undefined",
    )?;
    ensure(
        swap(Value::Undefined, 1.0.into()).await? == Value::Bool(false),
        "a set key is not",
    )?;
    ensure(
        swap(sample(), 2.0.into()).await? == Value::Bool(true),
        "data is compared by its members",
    )?;
    ensure(
        swap("2".into(), 3.0.into()).await? == Value::Bool(false),
        "kinds are told apart",
    )?;
    let last = expect(store.get(key()).await, "a key reads")?;
    ensure(last == Value::Number(2.0), "a refused value is not set")
}

/// The laws of expiry. `set_clock` sets the store's clock in milliseconds; the clock changes
/// only then. Uses keys that start with `a99-suite-expiry`.
pub async fn expiry(store: &dyn Store, set_clock: &(dyn Fn(f64) + Sync)) -> SuiteResult {
    ensure(store.supports(StoreMethod::SetUntil), "keys may expire")?;
    let key = || Value::from("a99-suite-expiry");
    let there = async || {
        let value = expect(store.get(key()).await, "a key reads")?;
        let page = store.list(key(), Value::Undefined, Value::Undefined).await;
        let page = expect(page, "keys can be listed")?;
        let listed = page
            .get("keys")
            .and_then(Value::as_array)
            .unwrap_or_default();
        ensure(
            listed.is_empty() == value.is_undefined(),
            "what reads is listed",
        )?;
        Ok::<_, String>(!value.is_undefined())
    };
    set_clock(1_000.0);
    let set = store.set_until(key(), 1.0.into(), 2_000.0).await;
    expect(set, "a key can be set for a time")?;
    set_clock(1_999.0);
    ensure(there().await?, "a key lives until its time")?;
    set_clock(2_000.0);
    ensure(!there().await?, "a key is gone from its time on")?;
    let gone = expect(store.delete(key()).await, "a key can be deleted")?;
    ensure(
        gone == Value::Bool(false),
        "what is gone is not there to delete",
    )?;
    let lease = store.compare_and_set(key(), Value::Undefined, 2.0.into(), Some(3_000.0));
    ensure(
        expect(lease.await, "what is gone can be taken")? == Value::Bool(true),
        "what is gone is undefined",
    )?;
    let lease = store.compare_and_set(key(), Value::Undefined, 3.0.into(), None);
    ensure(
        expect(lease.await, "a lease can be asked for")? == Value::Bool(false),
        "a lease is held until its time",
    )?;
    expect(
        store.set(key(), 4.0.into()).await,
        "a key can be set for good",
    )?;
    set_clock(9_000.0);
    ensure(there().await?, "a key that is set again has no time")
}

/// The laws of queries in the form of [`super::Query`]. Uses keys that start with
/// `a99-suite-docs/`.
pub async fn documents(store: &dyn Store) -> SuiteResult {
    ensure(store.supports(StoreMethod::Query), "a store may be asked")?;
    for (id, total) in [("a", 5.0), ("b", 12.0), ("c", 7.0), ("d", 12.0)] {
        let key = format!("a99-suite-docs/{id}");
        let document = [("total", Value::Number(total))].into_iter().collect();
        let set = store.set(key.into(), Value::Object(document)).await;
        expect(set, "a document can be set")?;
    }
    let set = store.set("a99-suite-docs".into(), sample()).await;
    expect(set, "a key may be named as a collection is")?;
    let ask = async |members: &[(&'static str, Value)]| {
        let mut query: Map = members.iter().cloned().collect();
        query.insert("collection", "a99-suite-docs");
        let answer = store.query(Value::Object(query)).await;
        let answer = expect(answer, "a query is answered")?;
        let rows = answer.get("rows").and_then(Value::as_array);
        let keys = rows.unwrap_or_default().iter().filter_map(|row| {
            ensure(row.get("value")?.get("total").is_some(), "").ok()?;
            row.get("key")?.as_str()?.rsplit('/').next()
        });
        let found: String = keys.collect();
        Ok::<_, String>((found, answer.get("cursor").cloned()))
    };
    let above: Vec<Value> = vec!["total".into(), ">".into(), Value::Number(5.0)];
    let above = ("where", Value::Array(above));
    let order = [
        ("field", Value::from("total")),
        ("direction", "desc".into()),
    ];
    let order = ("orderBy", Value::Object(order.into_iter().collect()));
    ensure(
        ask(&[]).await?.0 == "abcd",
        "all documents of a collection, by key",
    )?;
    ensure(
        ask(std::slice::from_ref(&above)).await?.0 == "bcd",
        "a condition selects",
    )?;
    let first = [above, order, ("limit", Value::Number(2.0))];
    let (found, cursor) = ask(&first).await?;
    ensure(found == "bd", "rows are ordered, equals by key")?;
    let mut next = first.to_vec();
    next.push(("cursor", cursor.ok_or("there is another page")?));
    let (found, cursor) = ask(&next).await?;
    ensure(
        found == "c" && cursor.is_none(),
        "the next page is the rest",
    )?;
    refused(store.query("orders".into()).await, "a text is no query")?;
    predicates(store).await
}

/// The laws of predicates (D81), on the documents that [`documents`] sets.
async fn predicates(store: &dyn Store) -> SuiteResult {
    ensure(
        store.supports(StoreMethod::QueryPredicate),
        "a store may be asked by predicates",
    )?;
    let ask = |predicate: Value, limit: Value| {
        let members = [
            ("collection", "a99-suite-docs".into()),
            ("predicate", predicate),
            ("limit", limit),
        ];
        store.query_predicate(Value::Object(members.into_iter().collect()))
    };
    let canonical =
        |text: &str| Value::Object([("canonical", Value::from(text))].into_iter().collect());
    for (predicate, limit, wanted) in [
        ("total > 5", Value::Undefined, "bcd"),
        ("total == 12 || total < 7", Value::Undefined, "abd"),
        ("total > '5'", Value::Undefined, ""),
        ("missing == undefined", Value::Number(2.0), "ab"),
    ] {
        let rows = expect(
            ask(canonical(predicate), limit).await,
            "a predicate selects",
        )?;
        let rows = rows.as_array().ok_or("the rows are a list")?;
        let keys = rows.iter().filter_map(|row| {
            ensure(row.get("value")?.get("total").is_some(), "").ok()?;
            row.get("key")?.as_str()?.rsplit('/').next()
        });
        ensure(
            keys.collect::<String>() == wanted,
            "the rows for which a predicate holds, by key",
        )?;
    }
    for unread in ["total +", "total + 1", "now() > 5", ""] {
        let answer = ask(canonical(unread), Value::Undefined).await;
        refused(answer, "what predicates do not say selects nothing")?;
    }
    let unverified = ask("total > 5".into(), Value::Undefined).await;
    refused(unverified, "a text is no predicate")
}

/// The laws of replacing and deleting documents. Uses the collection `a99-suite-changes`.
pub async fn vector_changes(store: &dyn Store) -> SuiteResult {
    use StoreMethod::{VectorDelete, VectorUpsert};
    for method in [VectorUpsert, VectorDelete] {
        ensure(store.supports(method), "documents are replaced and deleted")?;
    }
    let name = || Value::from("a99-suite-changes");
    forget(store, name, &["a", "b"]).await;
    let made = store.create_collection(name(), Value::Undefined, Value::Undefined);
    expect(made.await, "a collection can be made")?;
    for (id, x, y) in [("a", 1.0, 0.0), ("b", 0.0, 1.0), ("a", 0.0, 2.0)] {
        let set = store.vector_upsert(name(), document(id, &[x, y])).await;
        expect(set, "a document can be set")?;
    }
    let search = async || {
        let query = vector(&[0.1, 5.0]);
        let found = store.vector_search(name(), query, Value::Undefined, Value::Undefined);
        expect(found.await, "a search answers")
    };
    ensure(
        ids(&search().await?) == ["a", "b"],
        "a document stands in its predecessor's place",
    )?;
    let delete = async |id: &str| {
        let gone = store.vector_delete(name(), id.into()).await;
        expect(gone, "a document can be deleted")
    };
    ensure(
        delete("a").await? == Value::Bool(true),
        "what was there is told",
    )?;
    ensure(delete("a").await? == Value::Bool(false), "and what was not")?;
    ensure(
        ids(&search().await?) == ["b"],
        "a deleted document is not found",
    )?;
    let unnamed = [("embedding", vector(&[1.0, 1.0]))].into_iter().collect();
    refused(
        store.vector_upsert(name(), Value::Object(unnamed)).await,
        "a document without an id has no predecessor",
    )
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
    forget(store, name, &["east", "north", "also east"]).await;
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
    for dimension in [Value::Undefined, Value::Number(2.0)] {
        let again = store.create_collection(name(), Value::Undefined, dimension);
        expect(again.await, "a collection that there is can be made again")?;
    }
    refused(
        store
            .create_collection(name(), Value::Undefined, Value::Number(3.0))
            .await,
        "a collection keeps its dimension",
    )?;
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

/// Deletes documents of an earlier suite in a persistent store, whose collection may not exist.
async fn forget(store: &dyn Store, name: impl Fn() -> Value, ids: &[&str]) {
    if store.supports(StoreMethod::VectorDelete) {
        for id in ids {
            drop(store.vector_delete(name(), (*id).into()).await);
        }
    }
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
