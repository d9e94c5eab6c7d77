use super::*;
use crate::builtins::testing::{Bench, message, show};
use a99_core::costs::{COMPARED_PIECE, READ, SHORT_TEXT, compared_units};
use std::sync::Arc;

fn arr(cx: &mut Cx<'_>, items: &[Val]) -> Val {
    Val::Arr(cx.heap.alloc_arr(items).unwrap())
}

fn obj(cx: &mut Cx<'_>) -> Val {
    Val::Obj(cx.heap.alloc_obj_keys(&[], &[]).unwrap())
}

#[test]
fn numbers_and_text() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let inner = arr(&mut cx, &[Val::Num(2.0), Val::Num(3.0)]);
    let x = cx.str(b"x").unwrap();
    let nested = arr(&mut cx, &[Val::Num(1.0), inner, Val::Null, x]);
    let got = to_str(&mut cx, nested).unwrap();
    assert_eq!(cx.bytes(got), b"1,2,3,,x");
    let o = obj(&mut cx);
    for (v, want) in [
        (o, "[object Object]"),
        (Val::Num(-0.0), "0"),
        (Val::Undefined, "undefined"),
    ] {
        let got = to_str(&mut cx, v).unwrap();
        assert_eq!(cx.bytes(got), want.as_bytes());
    }
    let seven = arr(&mut cx, &[Val::Num(7.0)]);
    let empty = arr(&mut cx, &[]);
    let hex = cx.str(b" 0x10 ").unwrap();
    for (v, want) in [(seven, 7.0), (empty, 0.0), (Val::Null, 0.0), (hex, 16.0)] {
        assert_eq!(to_number(&mut cx, v).unwrap(), want);
    }
    assert!(to_number(&mut cx, inner).unwrap().is_nan());
    let date = Val::Date(cx.heap.alloc_date(0.0).unwrap());
    let got = to_str(&mut cx, date).unwrap();
    assert_eq!(cx.bytes(got), b"1970-01-01T00:00:00.000Z");
}

#[test]
fn cycles_and_depth_are_errors() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let a = cx.heap.alloc_arr(&[Val::Null]).unwrap();
    cx.heap.push(a, Val::Arr(a)).unwrap();
    let fault = to_str(&mut cx, Val::Arr(a)).unwrap_err();
    assert_eq!(message(fault), "Cannot convert a cyclic array to text");
    let mut deep = arr(&mut cx, &[]);
    for _ in 0..100_000 {
        deep = arr(&mut cx, &[deep]);
    }
    let fault = loose_eq(&mut cx, deep, Val::Num(1.0)).unwrap_err();
    assert!(message(fault).contains("nested deeper than 512"));
}

#[test]
fn shared_arrays_explode_into_an_error() {
    let mut bench = Bench::default();
    bench.heap.reset(&Arc::default(), &Arc::default(), 1 << 20);
    let mut cx = bench.cx();
    let mut a = arr(&mut cx, &[Val::Num(1.0), Val::Num(1.0)]);
    for _ in 0..60 {
        a = arr(&mut cx, &[a, a]);
    }
    assert!(matches!(to_str(&mut cx, a), Err(Fault::Oom(_))));
}

#[test]
fn equality() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let s = |cx: &mut Cx<'_>, t: &str| cx.str(t.as_bytes()).unwrap();
    let (empty, zero, one, text) = (
        s(&mut cx, ""),
        s(&mut cx, "0"),
        s(&mut cx, " 1 "),
        s(&mut cx, "[object Object]"),
    );
    let (arr_empty, o) = (arr(&mut cx, &[]), obj(&mut cx));
    let arr_zero = arr(&mut cx, &[Val::Num(0.0)]);
    for (a, b, want) in [
        (Val::Null, Val::Undefined, true),
        (Val::Null, Val::Num(0.0), false),
        (Val::Null, Val::Bool(false), false),
        (empty, Val::Num(0.0), true),
        (zero, Val::Bool(false), true),
        (one, Val::Num(1.0), true),
        (arr_empty, empty, true),
        (arr_zero, Val::Bool(false), true),
        (o, text, true),
        (o, o, true),
        (arr_empty, arr_zero, false),
        (Val::Num(f64::NAN), Val::Num(f64::NAN), false),
    ] {
        assert_eq!(loose_eq(&mut cx, a, b).unwrap(), want);
        assert_eq!(loose_eq(&mut cx, b, a).unwrap(), want);
    }
    let again = s(&mut cx, "0");
    assert!(strict_eq(&mut cx, zero, again).unwrap());
    assert!(!strict_eq(&mut cx, zero, Val::Num(0.0)).unwrap());
    assert!(!strict_eq(&mut cx, Val::Null, Val::Undefined).unwrap());
    assert!(strict_eq(&mut cx, Val::Num(0.0), Val::Num(-0.0)).unwrap());
    assert!(!strict_eq(&mut cx, arr_empty, arr_zero).unwrap());
    assert!(exact_eq(&mut cx, Val::Null, Val::Undefined).unwrap());
    assert!(exact_eq(&mut cx, Val::Num(f64::NAN), Val::Num(f64::NAN)).unwrap());
    assert!(!exact_eq(&mut cx, zero, Val::Num(0.0)).unwrap());
    assert!(same_value_zero_paid(&mut cx, Val::Num(f64::NAN), Val::Num(f64::NAN)).unwrap());
}

/// Long texts are paid piece by piece over their common prefix, independent of their
/// location; texts of different length are not compared.
#[test]
fn a7_comparing_long_texts_is_paid() {
    let mut bench = Bench::with_fuel(i64::MAX);
    let n = SHORT_TEXT + 10 * COMPARED_PIECE;
    let text = vec![b'x'; n];
    let (mut early, mut late) = (text.clone(), text.clone());
    (early[SHORT_TEXT + 1], late[n - 1]) = (b'y', b'y');
    let piece = READ.price(Sizes::units(compared_units(COMPARED_PIECE)));
    let spent =
        |cx: &mut Cx<'_>| -> i64 { i64::MAX - std::mem::replace(&mut cx.meter.fuel, i64::MAX) };
    let mut cx = bench.cx();
    let a = cx.str(&text).unwrap();
    let b = cx.str(&text).unwrap();
    let early = cx.str(&early).unwrap();
    let late = cx.str(&late).unwrap();
    let longer = cx.str(&vec![b'x'; n + 1]).unwrap();
    let short = cx.str(&text[..SHORT_TEXT]).unwrap();
    for (other, same, pieces) in [
        (a, true, 10),
        (b, true, 10),
        (early, false, 1),
        (late, false, 10),
        (longer, false, 0),
        (short, false, 0),
    ] {
        assert_eq!(strict_eq(&mut cx, a, other).unwrap(), same);
        assert_eq!(spent(&mut cx), pieces * piece);
        assert_eq!(loose_eq(&mut cx, a, other).unwrap(), same);
        assert_eq!(exact_eq(&mut cx, a, other).unwrap(), same);
        assert_eq!(spent(&mut cx), 2 * pieces * piece);
    }
    for (other, less, pieces) in [
        (b, false, 10),
        (early, true, 1),
        (late, true, 10),
        (longer, true, 10),
        (short, false, 0),
    ] {
        assert_eq!(compare(&mut cx, Cmp::Lt, a, other).unwrap(), less);
        assert_eq!(spent(&mut cx), pieces * piece);
    }
    // A piece may begin within a character.
    let wide = |last: &str| format!("{}{last}", "x€😀".repeat(2_000));
    let (p, q) = (wide("a"), wide("b"));
    for (one, two) in [(&p, &q), (&p, &wide("")), (&q, &wide("😀"))] {
        let a = cx.str(one.as_bytes()).unwrap();
        let b = cx.str(two.as_bytes()).unwrap();
        let want = one.encode_utf16().lt(two.encode_utf16());
        assert_eq!(compare(&mut cx, Cmp::Lt, a, b).unwrap(), want);
    }
}

#[test]
fn order() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let emoji = cx.str("😀".as_bytes()).unwrap();
    let wide = cx.str("～".as_bytes()).unwrap();
    assert!(compare(&mut cx, Cmp::Lt, emoji, wide).unwrap());
    let ten = cx.str(b"10").unwrap();
    let nine = cx.str(b"9").unwrap();
    assert!(compare(&mut cx, Cmp::Lt, ten, nine).unwrap());
    assert!(!compare(&mut cx, Cmp::Lt, ten, Val::Num(9.0)).unwrap());
    assert!(compare(&mut cx, Cmp::Le, Val::Null, Val::Num(0.0)).unwrap());
    for op in [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
        assert!(!compare(&mut cx, op, Val::Undefined, Val::Num(1.0)).unwrap());
    }
}

#[test]
fn sums() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let x = cx.str(b"x").unwrap();
    let (twelve, o) = (arr(&mut cx, &[Val::Num(1.0), Val::Num(2.0)]), obj(&mut cx));
    for (a, b, want) in [
        (Val::Num(1.0), Val::Num(2.0), "3"),
        (Val::Null, Val::Num(1.0), "1"),
        (Val::Undefined, Val::Num(1.0), "NaN"),
        (Val::Bool(true), Val::Bool(true), "2"),
        (x, Val::Undefined, "\"xundefined\""),
        (x, Val::Num(-2.5), "\"x-2.5\""),
        (Val::Num(3.0), x, "\"3x\""),
        (x, twelve, "\"x1,2\""),
        (twelve, Val::Num(7.0), "\"1,27\""),
        (twelve, o, "\"1,2[object Object]\""),
    ] {
        let got = add(&mut cx, a, b).unwrap();
        assert_eq!(show(&mut cx, got), want);
    }
    let high = cx.str(b"\xED\xA0\xBD").unwrap();
    let low = cx.str(b"\xED\xB1\x8D").unwrap();
    let Ok(Val::Str(joined)) = add(&mut cx, high, low) else {
        panic!()
    };
    assert_eq!((cx.bytes(joined), joined.units()), ("👍".as_bytes(), 2));
    let minus = arith(&mut cx, Arith::Rem, Val::Num(-4.0), Val::Num(2.0)).unwrap();
    assert_eq!(show(&mut cx, minus), "-0");
    let pow = arith(&mut cx, Arith::Pow, Val::Num(2.0), Val::Null).unwrap();
    assert_eq!(show(&mut cx, pow), "1");
    let neg = negate(&mut cx, Val::Null).unwrap();
    assert_eq!(show(&mut cx, neg), "-0");
}

#[test]
fn kinds() {
    assert_eq!(type_of(Val::Null), "object");
    assert_eq!(type_of(Val::Unbound), "undefined");
    assert_eq!(type_of(Val::Builtin(0)), "function");
    assert_eq!(type_of(builtin::namespace(0)), "object");
    let heap = Heap::default();
    assert!(!truthy(&heap, Val::Num(f64::NAN)));
    assert!(truthy(&heap, builtin::namespace(0)));
}
