use super::{Place, Replacer, from_text, parse, stringify};
use crate::builtins::testing::HANG;
use crate::builtins::testing::{Bench, Late, message};
use crate::convert::BoundaryLimits;
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_core::costs::{CostModel, MICRO};
use std::sync::Arc;
use std::time::Instant;

fn text(cx: &mut Cx<'_>, v: Val, gap: &str) -> String {
    let s = stringify(cx, v, Replacer::None, gap.as_bytes())
        .unwrap()
        .expect("text");
    String::from_utf8(cx.bytes(s).to_vec()).unwrap()
}

fn again(json: &str) -> String {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let v = parse(&mut cx, json.as_bytes()).unwrap_or_else(|f| panic!("{json}: {f:?}"));
    text(&mut cx, v, "")
}

fn error(json: &str) -> String {
    let mut bench = Bench::default();
    message(parse(&mut bench.cx(), json.as_bytes()).expect_err(json))
}

#[test]
fn values_come_back() {
    for json in [
        "null",
        "true",
        "[]",
        "{}",
        "[1,-2.5,1e+21,1e-7]",
        r#"{"a":{"b":[null,{"c":""}]},"d":[[],[[]]]}"#,
        r#"["\"\\\n\u0001é👍","\ud83d"]"#,
        r#"{"__proto__":{"isAdmin":true},"constructor":1}"#,
    ] {
        assert_eq!(again(json), json);
    }
    assert_eq!(again(" [ 1 , { \"a\" : 2 } ]\n"), r#"[1,{"a":2}]"#);
    assert_eq!(again(r#""\u0041\/\ud83d\udc4d\b""#), r#""A/👍\b""#);
    assert_eq!(again(r#"{"a":1,"b":2,"a":3}"#), r#"{"a":3,"b":2}"#);
    assert_eq!(
        again(r#"{"b":1,"10":2,"9":3,"a":4}"#),
        r#"{"9":3,"10":2,"b":1,"a":4}"#
    );
    assert_eq!(
        again("[1e400,-0,123456789012345678901234567890]"),
        "[null,0,1.2345678901234568e+29]"
    );
}

#[test]
fn records_share_a_shape() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let json =
        br#"[{"a":1,"b":{"x":1}},{"a":2,"b":{"x":2}},{"a":3},{"a":4,"b":5,"c":6},{"b":1,"a":2}]"#;
    let v = parse(&mut cx, json).unwrap();
    assert_eq!(text(&mut cx, v, "").as_bytes(), json);
    let Val::Arr(list) = v else { panic!() };
    let shape = |cx: &Cx<'_>, i: usize| {
        let Val::Obj(r) = cx.heap.items(list)[i] else {
            panic!()
        };
        cx.heap.shape(r)
    };
    assert_eq!(shape(&cx, 0), shape(&cx, 1));
    assert_ne!(shape(&cx, 1), shape(&cx, 2));
    assert_ne!(shape(&cx, 0), shape(&cx, 4));
}

#[test]
fn repeated_keys_after_a_matching_start() {
    assert_eq!(
        again(r#"[{"a":1,"b":2},{"a":1,"a":2,"b":3}]"#),
        r#"[{"a":1,"b":2},{"a":2,"b":3}]"#
    );
    let many: Vec<String> = (0..40).map(|i| format!("\"k{i}\":{i}")).collect();
    let twice = format!("{{{0},{0}}}", many.join(","));
    assert_eq!(again(&twice), format!("{{{}}}", many.join(",")));
}

#[test]
fn errors_as_javascriptcore_words_them() {
    for (json, wanted) in [
        ("", "Unexpected EOF"),
        ("[1,", "Unexpected EOF"),
        ("[1", "Expected ']'"),
        ("{bad", "Expected '}'"),
        ("{\"a\":1", "Expected '}'"),
        ("{\"a\":1,}", "Property name must be a string literal"),
        (
            "{\"a\" 1}",
            "Expected ':' before value in object property definition",
        ),
        ("[1,]", "Unexpected comma at the end of array expression"),
        ("not json", "Unexpected identifier \"not\""),
        ("nullx", "Unexpected identifier \"nullx\""),
        ("1 2", "Unable to parse JSON string"),
        ("'a'", "Single quotes (') are not allowed in JSON"),
        ("\"abc", "Unterminated string"),
        ("\"a\nb\"", "Unterminated string"),
        ("\"\\x\"", "Invalid escape character x"),
        ("\"\\u12g4\"", "Invalid unicode escape"),
        ("01", "Invalid number"),
        ("1.", "Invalid number"),
        ("-", "Invalid number"),
        ("]", "Unexpected token ']'"),
        ("é", "Unrecognized token 'é'"),
    ] {
        assert_eq!(error(json), format!("JSON Parse error: {wanted}"), "{json}");
    }
}

#[test]
fn a_stop_is_seen_in_whatever_is_read() {
    const LONG: usize = 4 << 20;
    let blanks = format!(
        "[{}1]",
        format!("1,{}", " ".repeat(60_000)).repeat(LONG / 60_000)
    );
    let escapes = format!("\"{}\"", "\\n".repeat(LONG / 2));
    let units = format!("\"{}\"", "\\u0041".repeat(LONG / 6));
    for text in [blanks, escapes, units] {
        let mut bench = Bench::default();
        let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &Late);
        let place = Place {
            bytes: 0..text.len(),
            grows: false,
        };
        let read = from_text(&mut cx, text.as_bytes(), &place, &BoundaryLimits::default());
        assert!(matches!(read, Err(Fault::Stop(_))), "{text:.10}");
    }
}

#[test]
fn deep_text_is_refused_and_wide_text_is_linear() {
    let mut bench = Bench::default();
    let deep = "[".repeat(1_000_000);
    let fault = parse(&mut bench.cx(), deep.as_bytes()).unwrap_err();
    assert_eq!(
        message(fault),
        "JSON Parse error: Nesting exceeds 512 levels"
    );
    let fits = format!("{}{}", "[".repeat(512), "]".repeat(512));
    assert_eq!(again(&fits), fits);

    let start = Instant::now();
    let twins = format!("{{{}\"k\":1}}", "\"k\":0,".repeat(200_000));
    assert_eq!(again(&twins), "{\"k\":1}");
    let keys: Vec<String> = (0..50_000).map(|i| format!("\"k{i}\":0")).collect();
    let wide = format!("{{{}}}", keys.join(","));
    assert_eq!(again(&wide), wide);
    assert!(start.elapsed() < HANG);
}

#[test]
fn parse_is_paid() {
    let mut bench = Bench::with_fuel(MICRO);
    parse(&mut bench.cx(), b"[1,2,3]").unwrap();
    assert_eq!(bench.meter.fuel, MICRO - (3 + 4) * a99_core::costs::ELEMENT);
    let mut bench = Bench::with_fuel(2_000);
    assert!(matches!(
        parse(&mut bench.cx(), b"[1,2,3]"),
        Err(Fault::OutOfFuel)
    ));
}

#[test]
fn gaps_and_filters() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let v = parse(&mut cx, br#"{"a":[1,{}],"b":[],"c":{"a":2,"d":3}}"#).unwrap();
    assert_eq!(
        text(&mut cx, v, "  "),
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n  \"c\": {\n    \"a\": 2,\n    \"d\": 3\n  }\n}"
    );
    let mut call = |args: &[Val]| {
        let v = super::json_stringify(&mut cx, args).unwrap();
        let Val::Str(s) = v else { panic!("{v:?}") };
        String::from_utf8(cx.bytes(s).to_vec()).unwrap()
    };
    assert_eq!(
        call(&[v, Val::Null, Val::Num(0.0)]),
        r#"{"a":[1,{}],"b":[],"c":{"a":2,"d":3}}"#
    );
    assert!(call(&[v, Val::Undefined, Val::Num(99.0)]).starts_with("{\n          \"a\""));
    let list = parse(&mut cx, br#"["c","a","c",7,null]"#).unwrap();
    let v = super::json_stringify(&mut cx, &[v, list]).unwrap();
    let Val::Str(s) = v else { panic!() };
    assert_eq!(cx.bytes(s), br#"{"c":{"a":2},"a":[1,{}]}"#);
}

#[test]
fn what_json_cannot_say() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    assert!(
        stringify(&mut cx, Val::Undefined, Replacer::None, b"")
            .unwrap()
            .is_none()
    );
    assert!(
        stringify(&mut cx, Val::Builtin(0), Replacer::None, b"")
            .unwrap()
            .is_none()
    );
    let set = Val::Set(cx.heap.alloc_set(&[Val::Num(1.0), Val::Null]).unwrap());
    let date = Val::Date(cx.heap.alloc_date(0.0).unwrap());
    let items = [
        Val::Undefined,
        Val::Num(f64::NAN),
        Val::Builtin(3),
        set,
        date,
    ];
    let list = Val::Arr(cx.heap.alloc_arr(&items).unwrap());
    assert_eq!(
        text(&mut cx, list, ""),
        r#"[null,null,null,[1,null],"1970-01-01T00:00:00.000Z"]"#
    );
    let keys = [cx.heap.intern(b"a").unwrap(), cx.heap.intern(b"b").unwrap()];
    let obj = cx
        .heap
        .alloc_obj_keys(&keys, &[Val::Undefined, Val::Num(1.0)])
        .unwrap();
    assert_eq!(text(&mut cx, Val::Obj(obj), ""), r#"{"b":1}"#);
    let never = Val::Date(cx.heap.alloc_date(f64::NAN).unwrap());
    let fault = stringify(&mut cx, never, Replacer::None, b"").unwrap_err();
    assert_eq!(message(fault), "Invalid Date");
}

#[test]
fn cycles_and_depth() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let list = cx.heap.alloc_arr(&[]).unwrap();
    cx.heap.push(list, Val::Arr(list)).unwrap();
    let fault = stringify(&mut cx, Val::Arr(list), Replacer::None, b"").unwrap_err();
    assert_eq!(
        message(fault),
        "JSON.stringify cannot serialize cyclic structures."
    );
    let mut deep = Val::Null;
    for _ in 0..100_000 {
        deep = Val::Arr(cx.heap.alloc_arr(&[deep]).unwrap());
    }
    let fault = stringify(&mut cx, deep, Replacer::None, b"").unwrap_err();
    assert!(message(fault).contains("deeper than 512"));
}

/// 40 levels of an array that holds the next one twice: 2^40 paths.
fn doubling(cx: &mut Cx<'_>) -> Val {
    let mut v = cx.str(b"leaf").unwrap();
    for _ in 0..40 {
        v = Val::Arr(cx.heap.alloc_arr(&[v, v]).unwrap());
    }
    v
}

#[test]
fn shared_parts_run_out_of_fuel_or_memory() {
    let start = Instant::now();
    let mut bench = Bench::with_fuel(1000 * MICRO);
    let mut cx = bench.cx();
    let v = doubling(&mut cx);
    assert!(matches!(
        stringify(&mut cx, v, Replacer::None, b""),
        Err(Fault::OutOfFuel)
    ));
    let mut bench = Bench::default();
    bench.heap.reset(&Arc::default(), &Arc::default(), 8 << 20);
    bench.meter.model = CostModel::Flat;
    let mut cx = bench.cx();
    let v = doubling(&mut cx);
    let fault = stringify(&mut cx, v, Replacer::None, b"").unwrap_err();
    assert!(
        matches!(fault, Fault::Oom(_) | Fault::Throw(_)),
        "{fault:?}"
    );
    assert!(start.elapsed() < HANG);
}

#[test]
fn long_strings_are_written_in_pieces() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let long = "a\"é👍\n".repeat(10_000);
    let v = cx.str(long.as_bytes()).unwrap();
    let json = text(&mut cx, v, "");
    assert_eq!(json, format!("\"{}\"", "a\\\"é👍\\n".repeat(10_000)));
    let s = stringify(&mut cx, v, Replacer::None, b"").unwrap().unwrap();
    assert_eq!(s.units(), json.encode_utf16().count());
    let back = parse(&mut cx, json.as_bytes()).unwrap();
    assert!(back.is_same(v, cx.heap));
}

#[test]
fn stringify_is_paid() {
    let mut bench = Bench::default();
    let v = parse(&mut bench.cx(), b"[1,[2,3]]").unwrap();
    bench.meter.fuel = MICRO;
    text(&mut bench.cx(), v, "");
    // Nine units, three times those of the numbers; two for each array and for
    // each of its elements.
    let units = (9 + 2 * 3) * a99_core::costs::UNIT;
    let elements = 2 * (2 + 2 * 2) * a99_core::costs::ELEMENT;
    assert_eq!(bench.meter.fuel, MICRO - units - elements);
}
