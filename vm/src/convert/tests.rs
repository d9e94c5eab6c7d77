use super::{BoundaryLimits, copy_deep, from_value, to_value};
use crate::builtins::testing::{Bench, message};
use crate::heap::{Heap, Val};
use crate::json;
use crate::native::{Cx, Fault};
use a99_core::error::ErrorCode;
use a99_core::value::{Map, Value};

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
    let value = to_value(cx.heap, v, &BoundaryLimits::default()).unwrap();
    assert_eq!(value.to_json_string(), SAMPLE);
    let back = from_value(cx.heap, &value, &BoundaryLimits::default()).unwrap();
    let again = to_value(cx.heap, back, &BoundaryLimits::default()).unwrap();
    assert_eq!(again, value);
    assert_eq!(again.to_json_string(), SAMPLE);
}

#[test]
fn the_limit_counts_json_bytes_exactly() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let v = guest(&mut cx, SAMPLE);
    let value = to_value(cx.heap, v, &limits(SAMPLE.len())).unwrap();
    from_value(cx.heap, &value, &limits(SAMPLE.len())).unwrap();
    let n = SAMPLE.len() - 1;
    let wanted = format!("Capability boundary rejected: value exceeds the {n}-byte limit");
    assert_eq!(
        message(to_value(cx.heap, v, &limits(n)).unwrap_err()),
        wanted
    );
    assert_eq!(
        message(from_value(cx.heap, &value, &limits(n)).unwrap_err()),
        wanted
    );
}

#[test]
fn special_values() {
    let mut heap = Heap::default();
    let set = Val::Set(heap.alloc_set(&[Val::Num(1.0)]).unwrap());
    let date = Val::Date(heap.alloc_date(0.0).unwrap());
    let never = Val::Date(heap.alloc_date(f64::NAN).unwrap());
    let items = [Val::Undefined, Val::Builtin(1), set, date, never];
    let list = Val::Arr(heap.alloc_arr(&items).unwrap());
    let value = to_value(&heap, list, &BoundaryLimits::default()).unwrap();
    let items = value.as_array().unwrap();
    assert!(items[0].is_undefined() && items[1].is_undefined());
    assert_eq!(items[2], Value::Array(vec![1.into()]));
    assert_eq!(items[3].as_str(), Some("1970-01-01T00:00:00.000Z"));
    assert_eq!(items[4], Value::Null);
    let mut map = Map::new();
    map.insert("u", Value::Undefined);
    let back = from_value(&mut heap, &Value::Object(map), &BoundaryLimits::default()).unwrap();
    let Val::Obj(r) = back else { panic!() };
    assert!(heap.get_text(r, b"u").is_some_and(Val::is_undefined));
}

#[test]
fn cycles_and_depth_are_refused() {
    let mut heap = Heap::default();
    let list = heap.alloc_arr(&[]).unwrap();
    heap.push(list, Val::Arr(list)).unwrap();
    let fault = to_value(&heap, Val::Arr(list), &BoundaryLimits::default()).unwrap_err();
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
        deep = Val::Arr(heap.alloc_arr(&[deep]).unwrap());
        value = Value::Array(vec![value]);
    }
    let wanted = "Capability boundary rejected: value exceeds depth limit 512";
    let defaults = BoundaryLimits::default();
    assert_eq!(
        message(to_value(&heap, deep, &defaults).unwrap_err()),
        wanted
    );
    assert_eq!(
        message(from_value(&mut heap, &value, &defaults).unwrap_err()),
        wanted
    );
}

#[test]
fn shared_parts_end_at_the_limit() {
    let mut heap = Heap::default();
    let mut v = Val::Null;
    for _ in 0..40 {
        v = Val::Arr(heap.alloc_arr(&[v, v]).unwrap());
    }
    let fault = to_value(&heap, v, &BoundaryLimits::default()).unwrap_err();
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
    bench
        .heap
        .reset([].into(), std::sync::Arc::default(), 64 << 10);
    let items: Vec<Value> = (0..100_000).map(Value::from).collect();
    let fault = from_value(&mut bench.heap, &items.into(), &BoundaryLimits::default());
    assert!(matches!(fault, Err(Fault::Oom(_))));
}
