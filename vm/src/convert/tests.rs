use super::{BoundaryLimits, Copies, copy_bytes, copy_deep, copy_plain, from_value};
use crate::builtins::testing::{Bench, message};
use crate::heap::{Heap, Val};
use crate::json;
use crate::native::{Cx, Fault};
use a99_core::error::ErrorCode;
use a99_core::value::{Map, Value};
use std::sync::Arc;

/// A host copy that is not counted after the call.
fn to_value(cx: &mut Cx<'_>, v: Val, limits: &BoundaryLimits) -> Result<Value, Fault> {
    Copies::new(cx).to_value(v, limits)
}

fn limits(max_bytes: usize) -> BoundaryLimits {
    BoundaryLimits {
        max_bytes,
        ..BoundaryLimits::default()
    }
}

fn guest(cx: &mut Cx<'_>, text: &str) -> Val {
    json::parse(cx, text.as_bytes()).unwrap()
}

const SAMPLE: &str = r#"{"a":[1,-2.5,"é\"\n\u0001",null,true],"b":{"c":{}},"d":[[],[[]]]}"#;

#[test]
fn there_and_back() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let v = guest(&mut cx, SAMPLE);
    let value = to_value(&mut cx, v, &BoundaryLimits::default()).unwrap();
    assert_eq!(value.to_json_string(), SAMPLE);
    let back = from_value(&mut cx, &value, &BoundaryLimits::default()).unwrap();
    let again = to_value(&mut cx, back, &BoundaryLimits::default()).unwrap();
    assert_eq!(again, value);
    assert_eq!(again.to_json_string(), SAMPLE);
}

#[test]
fn the_limit_counts_json_bytes_exactly() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let v = guest(&mut cx, SAMPLE);
    let value = to_value(&mut cx, v, &limits(SAMPLE.len())).unwrap();
    from_value(&mut cx, &value, &limits(SAMPLE.len())).unwrap();
    let n = SAMPLE.len() - 1;
    let wanted = format!("Capability boundary rejected: value exceeds the {n}-byte limit");
    assert_eq!(
        message(to_value(&mut cx, v, &limits(n)).unwrap_err()),
        wanted
    );
    assert_eq!(
        message(from_value(&mut cx, &value, &limits(n)).unwrap_err()),
        wanted
    );
}

#[test]
fn special_values() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let set = Val::Set(cx.heap.alloc_set(&[Val::Num(1.0)]).unwrap());
    let date = Val::Date(cx.heap.alloc_date(0.0).unwrap());
    let never = Val::Date(cx.heap.alloc_date(f64::NAN).unwrap());
    let items = [Val::Undefined, Val::Builtin(1), set, date, never];
    let list = Val::Arr(cx.heap.alloc_arr(&items).unwrap());
    let value = to_value(&mut cx, list, &BoundaryLimits::default()).unwrap();
    let items = value.as_array().unwrap();
    assert!(items[0].is_undefined() && items[1].is_undefined());
    assert_eq!(items[2], Value::Array(vec![1.into()]));
    assert_eq!(items[3].as_str(), Some("1970-01-01T00:00:00.000Z"));
    assert_eq!(items[4], Value::Null);
    let mut map = Map::new();
    map.insert("u", Value::Undefined);
    let back = from_value(&mut cx, &Value::Object(map), &BoundaryLimits::default()).unwrap();
    let Val::Obj(r) = back else { panic!() };
    assert!(cx.heap.get_text(r, b"u").is_some_and(Val::is_undefined));
}

#[test]
fn cycles_and_depth_are_refused() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let list = cx.heap.alloc_arr(&[]).unwrap();
    cx.heap.push(list, Val::Arr(list)).unwrap();
    let fault = to_value(&mut cx, Val::Arr(list), &BoundaryLimits::default()).unwrap_err();
    let Fault::Throw(thrown) = &fault else {
        panic!()
    };
    assert_eq!(thrown.code, ErrorCode::Boundary);
    assert_eq!(
        message(fault),
        "Capability boundary rejected: value contains a cycle"
    );
    let mut deep = Val::Null;
    let mut value = Value::Null;
    for _ in 0..600 {
        deep = Val::Arr(cx.heap.alloc_arr(&[deep]).unwrap());
        value = Value::Array(vec![value]);
    }
    let wanted = "Capability boundary rejected: value exceeds depth limit 512";
    let defaults = BoundaryLimits::default();
    assert_eq!(
        message(to_value(&mut cx, deep, &defaults).unwrap_err()),
        wanted
    );
    assert_eq!(
        message(from_value(&mut cx, &value, &defaults).unwrap_err()),
        wanted
    );
}

#[test]
fn shared_parts_end_at_the_limit() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let mut v = Val::Null;
    for _ in 0..40 {
        v = Val::Arr(cx.heap.alloc_arr(&[v, v]).unwrap());
    }
    let fault = to_value(&mut cx, v, &BoundaryLimits::default()).unwrap_err();
    assert!(message(fault).contains("4194304-byte limit"));
}

#[test]
fn deep_copies_keep_sharing_and_cycles() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let shared = guest(&mut cx, r#"{"x":[1]}"#);
    let list = cx.heap.alloc_arr(&[shared, shared]).unwrap();
    cx.heap.push(list, Val::Arr(list)).unwrap();
    let Val::Arr(copy) = copy_deep(&mut cx, Val::Arr(list)).unwrap() else {
        panic!()
    };
    let items = cx.heap.items(copy).to_vec();
    assert_ne!(copy, list);
    assert!(items[0].is_same(items[1], cx.heap));
    assert!(!items[0].is_same(shared, cx.heap));
    assert!(items[2].is_same(Val::Arr(copy), cx.heap));
    let inner = |v: Val, heap: &Heap| {
        let Val::Obj(r) = v else { panic!() };
        heap.get_text(r, b"x").unwrap()
    };
    assert!(!inner(items[0], cx.heap).is_same(inner(shared, cx.heap), cx.heap));
}

#[test]
fn little_memory_is_an_error() {
    let mut bench = Bench::default();
    bench.heap.reset(&Arc::default(), &Arc::default(), 64 << 10);
    let items: Vec<Value> = (0..100_000).map(Value::from).collect();
    let fault = from_value(&mut bench.cx(), &items.into(), &BoundaryLimits::default());
    assert!(matches!(fault, Err(Fault::Oom(_))));
}

#[test]
fn plain_copies_are_what_host_copies_are() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let shared = guest(&mut cx, SAMPLE);
    let set = Val::Set(cx.heap.alloc_set(&[Val::Num(1.0), shared]).unwrap());
    let date = Val::Date(cx.heap.alloc_date(0.0).unwrap());
    let never = Val::Date(cx.heap.alloc_date(f64::NAN).unwrap());
    let items = [set, shared, date, never, Val::Builtin(1), Val::Undefined];
    let list = Val::Arr(cx.heap.alloc_arr(&items).unwrap());
    let host = to_value(&mut cx, list, &BoundaryLimits::default()).unwrap();
    let copy = copy_plain(&mut cx, list, &BoundaryLimits::default()).unwrap();
    let again = to_value(&mut cx, copy, &BoundaryLimits::default()).unwrap();
    assert_eq!(host, again);
    let Val::Arr(r) = copy else { panic!() };
    let parts = cx.heap.items(r).to_vec();
    let Val::Arr(inner) = parts[0] else { panic!() };
    assert!(!cx.heap.items(inner)[1].is_same(parts[1], cx.heap));
    let n = host.to_json_string().len();
    assert!(copy_plain(&mut cx, list, &limits(n)).is_ok());
    assert!(copy_plain(&mut cx, list, &limits(n - 1)).is_err());
    let cycle = cx.heap.alloc_arr(&[]).unwrap();
    cx.heap.push(cycle, Val::Arr(cycle)).unwrap();
    let fault = copy_plain(&mut cx, Val::Arr(cycle), &BoundaryLimits::default()).unwrap_err();
    assert!(message(fault).contains("cycle"));
}

#[test]
fn a1_host_copies_count_while_they_live() {
    let mut bench = Bench::default();
    let none = (Arc::from([]), Arc::default());
    bench.heap.reset(&none.0, &none.1, 1 << 20);
    let mut cx = bench.cx();
    // A tree of a million values in the room of a thousand.
    let row = Val::Arr(cx.heap.alloc_arr(&[Val::Null; 1_000]).unwrap());
    let small = Val::Arr(cx.heap.alloc_arr(&[row; 5]).unwrap());
    let large = Val::Arr(cx.heap.alloc_arr(&[row; 700]).unwrap());
    let before = cx.heap.used();
    {
        let mut copies = Copies::new(&mut cx);
        copies.to_value(small, &BoundaryLimits::default()).unwrap();
        assert!(copies.heap.used() >= before + 5_000 * size_of::<Value>());
        let fault = copies.to_value(large, &BoundaryLimits::default());
        assert!(matches!(fault, Err(Fault::Oom(_))));
    }
    assert_eq!(cx.heap.used(), before);
}

#[test]
fn a1_walks_of_the_boundary_can_be_stopped() {
    let mut bench = Bench::default();
    let text = "x".repeat(1 << 20);
    let host: Value = vec![Value::from(text); 3].into();
    let v = from_value(&mut bench.cx(), &host, &BoundaryLimits::default()).unwrap();
    let mut meter = crate::native::Meter::new(i64::MAX, Default::default());
    let mut cx = Cx::new(&mut bench.heap, &mut meter, &crate::builtins::testing::Late);
    let limits = BoundaryLimits::default();
    assert!(matches!(to_value(&mut cx, v, &limits), Err(Fault::Stop(_))));
    assert!(matches!(
        copy_plain(&mut cx, v, &limits),
        Err(Fault::Stop(_))
    ));
    assert!(matches!(
        from_value(&mut cx, &host, &limits),
        Err(Fault::Stop(_))
    ));
}

#[test]
fn a_copy_of_values_counts_what_a_copy_of_the_heap_did() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let wide: Vec<String> = (0..20).map(|n| format!("\"k{n}\":{n}")).collect();
    let wide = format!("{{{}}}", wide.join(","));
    let limits = BoundaryLimits::default();
    for text in [SAMPLE, "1", "\"text\"", "[[],{}]", &wide] {
        let v = guest(&mut cx, text);
        let mut copies = Copies::new(&mut cx);
        let value = copies.to_value(v, &limits).unwrap();
        assert_eq!(copy_bytes(&value, &limits), Some(copies.bytes()), "{text}");
    }
    let long = Value::from("x".repeat(limits.max_bytes));
    assert_eq!(copy_bytes(&long, &limits), None);
    let deep = |n: u32| (0..n).fold(Value::Null, |v, _| Value::Array(vec![v]));
    assert!(copy_bytes(&deep(limits.max_depth), &limits).is_some());
    let deeper = deep(limits.max_depth + 1);
    assert_eq!(copy_bytes(&deeper, &limits), None);
    deeper.dispose();
}

#[test]
fn short_texts_are_counted_where_their_escapes_may_be_too_long() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    for len in [0, 1, 255, 256, 257] {
        let value = Value::from("\u{1}".repeat(len));
        let bytes = value.to_json_string().len();
        assert!(from_value(&mut cx, &value, &limits(bytes)).is_ok(), "{len}");
        let fault = from_value(&mut cx, &value, &limits(bytes - 1)).unwrap_err();
        assert!(message(fault).contains("-byte limit"), "{len}");
    }
}
