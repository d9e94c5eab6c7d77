//! Tests of queries.

use super::*;
use crate::testing::value;

const ORDERS: [&str; 5] = [
    r#"{"total": 5, "who": {"name": "ann"}, "tags": ["a"]}"#,
    r#"{"total": 12, "who": {"name": "bob"}, "tags": ["a", "b"]}"#,
    r#"{"total": "12", "who": {"name": "cy"}}"#,
    r#"{"who.name": "dee", "total": null}"#,
    r#"{"who": {"name": "ann"}, "total": 7}"#,
];

fn answer(query: &str) -> Value {
    let mut selection = Query::of(&value(query)).unwrap().select();
    for (n, order) in ORDERS.iter().enumerate() {
        selection.offer(&format!("orders/{n}").as_str().into(), &value(order));
    }
    selection.offer(&"other/1".into(), &value(r#"{"total": 6}"#));
    selection.answer()
}

fn keys(answer: &Value) -> String {
    let rows = answer.get("rows").and_then(Value::as_array).unwrap();
    let keys = rows.iter().filter_map(|row| row.get("key")?.as_str());
    let keys: Vec<&str> = keys.map(|key| key.trim_start_matches("orders/")).collect();
    keys.join(" ")
}

#[test]
fn conditions_select() {
    for (terms, found) in [
        (r#"[["total", ">", 5]]"#, "1 4"),
        (r#"["total", ">=", 5]"#, "0 1 4"),
        (r#"{"field": "total", "op": "<", "value": 7}"#, "0"),
        (r#"[["total", "<=", "2"]]"#, "2"),
        (r#"{"total": 12}"#, "1"),
        (r#"[["total", "===", "12"]]"#, "2"),
        (r#"[["total", "!=", 12]]"#, "0 2 3 4"),
        (r#"[["who.name", "in", ["ann", "dee"]]]"#, "0 3 4"),
        (r#"[["who.name", "not-in", ["ann", "dee"]]]"#, "1 2"),
        (r#"[["tags", "array-contains", "b"]]"#, "1"),
        (
            r#"[["tags", "array-contains", "a"], ["total", "<", 9]]"#,
            "0",
        ),
        (r#"{"total": null}"#, "3"),
        ("[]", "0 1 2 3 4"),
    ] {
        let query = format!(r#"{{"collection": "orders", "where": {terms}}}"#);
        assert_eq!(keys(&answer(&query)), found, "{terms}");
    }
    assert_eq!(keys(&answer(r#"{"where": {"total": 6}}"#)), "other/1");
}

#[test]
fn rows_are_ordered_and_paged() {
    for (order, found) in [
        (r#""total""#, "0 4 1 2 3"),
        (r#"{"field": "total", "direction": "desc"}"#, "3 2 1 4 0"),
        (
            r#"["who.name", {"field": "total", "direction": "desc"}]"#,
            "4 0 1 2 3",
        ),
        (r#""tags""#, "0 1 2 3 4"),
        (r#"{"field": "tags", "direction": "desc"}"#, "0 1 2 3 4"),
        (r#"[]"#, "0 1 2 3 4"),
    ] {
        let query = format!(r#"{{"collection": "orders", "orderBy": {order}, "limit": 2"#);
        let mut pages = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page = answer(&format!(
                r#"{query}, "cursor": {}}}"#,
                cursor.to_json_string()
            ));
            pages.push(keys(&page));
            match page.get("cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        assert_eq!(pages.join(" "), found, "{order}");
        assert_eq!(pages.len(), 3, "{order}");
    }
}

#[test]
fn large_rows_make_short_pages() {
    for order in ["[]", r#"{"field": "total", "direction": "desc"}"#] {
        let (mut sizes, mut found, mut cursor) = (Vec::new(), Vec::new(), Value::Null);
        loop {
            let query = format!(
                r#"{{"collection": "d", "orderBy": {order}, "limit": 4, "cursor": {}}}"#,
                cursor.to_json_string()
            );
            let query = Query::of(&value(&query)).unwrap();
            let from = query.first_key().clone();
            let mut selection = query.select().within(2_500);
            for n in (0..10).filter(|n| format!("d/{n}").as_bytes() >= from.as_bytes()) {
                let size = if n < 6 { 900 } else { 10 };
                let text = "x".repeat(size);
                let document = value(&format!(r#"{{"total": {n}, "text": "{text}"}}"#));
                selection.offer(&format!("d/{n}").as_str().into(), &document);
            }
            let page = selection.answer();
            sizes.push(page.get("rows").and_then(Value::as_array).unwrap().len());
            found.push(keys(&page).replace("d/", ""));
            match page.get("cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        let (all, pages): (_, &[usize]) = match order {
            "[]" => ("0 1 2 3 4 5 6 7 8 9", &[1, 1, 1, 1, 1, 3, 2]),
            _ => ("9 8 7 6 5 4 3 2 1 0", &[4, 1, 1, 1, 1, 1, 1]),
        };
        assert_eq!(found.join(" "), all, "{order}");
        assert_eq!(sizes, pages, "{order}");
    }
}

#[test]
fn what_no_query_is_is_told() {
    for (query, text) in [
        ("[]", "must be an object"),
        (r#"{"colection": "x"}"#, "did you mean `collection`?"),
        (r#"{"collection": 5}"#, "must be a name"),
        (r#"{"where": "x"}"#, "`where` must be"),
        (r#"{"where": [["a", "="]]}"#, "`where` must be"),
        (
            r#"{"where": [["a", "<>", 1]]}"#,
            "no operator of a condition `<>`",
        ),
        (
            r#"{"where": {"field": "a", "op": "==", "vlaue": 1}}"#,
            "did you mean `value`?",
        ),
        (r#"{"where": [["a", "in", 1]]}"#, "a list of values"),
        (r#"{"orderBy": 5}"#, "`orderBy` must be"),
        (
            r#"{"orderBy": {"field": "a", "direction": "down"}}"#,
            "\"asc\" or \"desc\"",
        ),
        (r#"{"limit": 0}"#, "from 1 on"),
        (r#"{"cursor": "x"}"#, "cursor must be"),
        (r#"{"cursor": "[\"k\"]", "orderBy": "a"}"#, "cursor must be"),
    ] {
        let error = Query::of(&value(query)).unwrap_err();
        assert!(error.message.to_string().contains(text), "{query}: {error}");
    }
}
