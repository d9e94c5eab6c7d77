use super::METHODS;
use crate::builtins::testing::{Bench, message, show};
use crate::heap::{Ref, Val};
use crate::json;
use crate::native::{Cx, Fault};
use a99_core::builtins::function;
use a99_core::costs::{CostModel, MICRO};

fn list(cx: &mut Cx<'_>, text: &str) -> Ref {
    match json::parse(cx, text.as_bytes()) {
        Ok(Val::Arr(r)) => r,
        other => panic!("{text}: {other:?}"),
    }
}

fn call(cx: &mut Cx<'_>, r: Ref, method: &str, args: &[Val]) -> Result<Val, Fault> {
    let (_, code) = METHODS
        .iter()
        .find(|(name, _)| *name == method)
        .expect(method);
    code(cx, r, args)
}

fn builtin(ns: &str, name: &str) -> Val {
    Val::Builtin(function(ns, name).unwrap())
}

/// `receiver.method(...args)`: the result and the receiver afterwards.
fn run(receiver: &str, method: &str, args: &str) -> (String, String) {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let r = list(&mut cx, receiver);
    let args = list(&mut cx, args);
    let args = cx.heap.items(args).to_vec();
    let result = match call(&mut cx, r, method, &args) {
        Ok(v) => show(&mut cx, v),
        Err(fault) => message(fault),
    };
    (result, show(&mut cx, Val::Arr(r)))
}

fn result(receiver: &str, method: &str, args: &str) -> String {
    run(receiver, method, args).0
}

#[test]
fn copies() {
    let abc = r#"["a","b","c"]"#;
    assert_eq!(result(abc, "slice", "[1]"), r#"["b","c"]"#);
    assert_eq!(result(abc, "slice", "[-2,-1]"), r#"["b"]"#);
    assert_eq!(result(abc, "slice", "[5]"), "[]");
    assert_eq!(result(abc, "slice", r#"["1","2"]"#), r#"["b"]"#);
    assert_eq!(
        result(abc, "concat", "[[1],2,[[3]]]"),
        r#"["a","b","c",1,2,[3]]"#
    );
    assert_eq!(result("[1,[2,[3,[4]]]]", "flat", "[]"), "[1,2,[3,[4]]]");
    assert_eq!(result("[1,[2,[3,[4]]]]", "flat", "[1e999]"), "[1,2,3,4]");
    assert_eq!(result("[[],[1]]", "flat", "[]"), "[1]");
    assert_eq!(result("[[1]]", "flat", "[0]"), "[[1]]");
    assert_eq!(result(abc, "with", "[-1,9]"), r#"["a","b",9]"#);
    assert_eq!(result(abc, "with", "[7,9]"), "Array index out of range");
    assert_eq!(result(abc, "toSpliced", "[1,1,8,9]"), r#"["a",8,9,"c"]"#);
    assert_eq!(result(abc, "toReversed", "[]"), r#"["c","b","a"]"#);
    assert_eq!(result(abc, "entries", "[]"), r#"[[0,"a"],[1,"b"],[2,"c"]]"#);
    assert_eq!(result(abc, "keys", "[]"), "[0,1,2]");
    assert_eq!(result(abc, "values", "[]"), abc);
}

#[test]
fn texts() {
    assert_eq!(
        result("[1,null,true,[2,3],{}]", "join", r#"["|"]"#),
        r#""1||true|2,3|[object Object]""#
    );
    assert_eq!(result(r#"["a","b"]"#, "join", "[null]"), r#""anullb""#);
    assert_eq!(result("[1,[2]]", "toString", "[]"), r#""1,2""#);
    assert_eq!(
        result("[1234.5,\"x\"]", "toLocaleString", "[]"),
        r#""1,234.5,x""#
    );
}

#[test]
fn searches() {
    let n = "[1,2,null,2,\"2\"]";
    assert_eq!(result(n, "indexOf", "[2]"), "1");
    assert_eq!(result(n, "indexOf", "[2,2]"), "3");
    assert_eq!(result(n, "indexOf", "[2,-2]"), "3");
    assert_eq!(result(n, "lastIndexOf", "[2]"), "3");
    assert_eq!(result(n, "lastIndexOf", "[2,-3]"), "1");
    assert_eq!(result(n, "lastIndexOf", "[1,-9]"), "-1");
    assert_eq!(result(n, "includes", "[\"2\"]"), "true");
    assert_eq!(result(n, "includes", "[3]"), "false");
    assert_eq!(result(n, "at", "[-1]"), "\"2\"");
    assert_eq!(result(n, "at", "[9]"), "undefined");
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let nan = cx.heap.alloc_arr(&[Val::Num(f64::NAN)]).unwrap();
    let nan_arg = [Val::Num(f64::NAN)];
    let v = call(&mut cx, nan, "includes", &nan_arg).unwrap();
    assert_eq!(show(&mut cx, v), "true");
    let v = call(&mut cx, nan, "indexOf", &nan_arg).unwrap();
    assert_eq!(show(&mut cx, v), "-1");
}

#[test]
fn mutators_work_in_place() {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(run("[1]", "push", "[2,3]"), pair("3", "[1,2,3]"));
    assert_eq!(run("[1,2]", "pop", "[]"), pair("2", "[1]"));
    assert_eq!(run("[]", "pop", "[]"), pair("undefined", "[]"));
    assert_eq!(run("[1,2]", "shift", "[]"), pair("1", "[2]"));
    assert_eq!(run("[]", "shift", "[]"), pair("undefined", "[]"));
    assert_eq!(run("[3]", "unshift", "[1,2]"), pair("3", "[1,2,3]"));
    assert_eq!(run("[1,2,3]", "reverse", "[]"), pair("[3,2,1]", "[3,2,1]"));
    assert_eq!(
        run("[1,2,3,4]", "fill", "[0,1,-1]"),
        pair("[1,0,0,4]", "[1,0,0,4]")
    );
    assert_eq!(
        run("[1,2,3,4,5]", "copyWithin", "[0,3]"),
        pair("[4,5,3,4,5]", "[4,5,3,4,5]")
    );
    assert_eq!(run("[1,2,3,4]", "splice", "[1,2]"), pair("[2,3]", "[1,4]"));
    assert_eq!(
        run("[1,2,3,4]", "splice", "[1,2,9]"),
        pair("[2,3]", "[1,9,4]")
    );
    assert_eq!(run("[1,2]", "splice", "[1,0,8,9]"), pair("[]", "[1,8,9,2]"));
    assert_eq!(run("[1,2,3]", "splice", "[1]"), pair("[2,3]", "[1]"));
    assert_eq!(run("[1,2,3]", "splice", "[]"), pair("[]", "[1,2,3]"));
    assert_eq!(run("[1,2,3]", "splice", "[-1,1e9]"), pair("[3]", "[1,2]"));
}

#[test]
fn sorts_by_text_and_stably() {
    assert_eq!(run("[10,9,1,-2]", "sort", "[]").1, "[-2,1,10,9]");
    assert_eq!(
        result("[true,false,3,\"2\"]", "sort", "[]"),
        "[\"2\",3,false,true]"
    );
    assert_eq!(
        result("[\"é\",\"z\",\"a\",\"Z\"]", "toSorted", "[]"),
        "[\"Z\",\"a\",\"z\",\"é\"]"
    );
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let r = list(&mut cx, "[\"b\",null,\"a\"]");
    cx.heap.push(r, Val::Undefined).unwrap();
    cx.heap.items_mut(r).swap(1, 3);
    let v = call(&mut cx, r, "sort", &[]).unwrap();
    assert_eq!(show(&mut cx, v), "[\"a\",\"b\",null,undefined]");
    assert_eq!(
        result("[1]", "sort", "[5]"),
        "Array.prototype.sort requires that the comparator be a function or undefined"
    );
    // Arrays of equal text keep their order.
    let same = (0..100)
        .map(|i| format!("[[],{i}]").replace(",", ",\"x\","))
        .collect::<Vec<_>>();
    let text = format!("[{}]", same.join(","));
    assert_eq!(result(&text, "sort", "[]").matches("[[],").count(), 100);
}

#[test]
fn many_elements_sort_like_the_library() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let mut seed = 7u64;
    let mut numbers: Vec<f64> = Vec::new();
    for _ in 0..5_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        numbers.push((seed >> 50) as f64);
    }
    let vals: Vec<Val> = numbers.iter().map(|n| Val::Num(*n)).collect();
    let r = cx.heap.alloc_arr(&vals).unwrap();
    call(&mut cx, r, "sort", &[]).unwrap();
    let mut texts: Vec<String> = numbers.iter().map(f64::to_string).collect();
    texts.sort();
    assert_eq!(show(&mut cx, Val::Arr(r)), format!("[{}]", texts.join(",")));
}

#[test]
fn inconsistent_comparators_end() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let vals: Vec<Val> = (0..10_000).map(|n| Val::Num(f64::from(n % 97))).collect();
    let r = cx.heap.alloc_arr(&vals).unwrap();
    for (ns, name) in [
        ("Math", "max"),
        ("Math", "random"),
        ("Math", "hypot"),
        ("Number", "isNaN"),
    ] {
        let v = call(&mut cx, r, "toSorted", &[builtin(ns, name)]).unwrap();
        let Val::Arr(sorted) = v else { panic!() };
        assert_eq!(cx.heap.len(sorted), 10_000);
    }
}

#[test]
fn callbacks_are_builtins() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let mut check = |receiver: &str, method: &str, f: Val, wanted: &str| {
        let r = list(&mut cx, receiver);
        let v = call(&mut cx, r, method, &[f]).unwrap();
        assert_eq!(show(&mut cx, v), wanted, "{receiver}.{method}");
    };
    check("[-1,2]", "map", builtin("Math", "abs"), "[1,2]");
    check(
        "[\"1\",\"2\",\"3\"]",
        "map",
        builtin("", "parseInt"),
        "[1,NaN,NaN]",
    );
    check("[1,\"x\"]", "some", builtin("Number", "isNaN"), "false");
    check("[1,2]", "every", builtin("Number", "isInteger"), "true");
    check(
        "[1,2.5,3]",
        "filter",
        builtin("Number", "isInteger"),
        "[1,3]",
    );
    check("[1.5,2,3]", "find", builtin("Number", "isInteger"), "2");
    check("[1.5,2,3]", "findLast", builtin("Number", "isInteger"), "3");
    check(
        "[1.5,2,3]",
        "findIndex",
        builtin("Number", "isInteger"),
        "1",
    );
    check(
        "[1.5]",
        "findLastIndex",
        builtin("Number", "isInteger"),
        "-1",
    );
    check("[3,1]", "reduce", builtin("Math", "max"), "NaN");
    check("[1]", "reduceRight", builtin("Math", "max"), "1");
    check("[1]", "forEach", builtin("Math", "max"), "undefined");
    check(
        "[{\"a\":1},{\"b\":2}]",
        "flatMap",
        builtin("Object", "values"),
        "[1,2]",
    );
    assert_eq!(
        result("[1]", "map", "[5]"),
        "Array.prototype.map callback must be a function"
    );
    let r = list(&mut cx, "[]");
    let fault = call(&mut cx, r, "reduce", &[builtin("Math", "max")]).unwrap_err();
    assert_eq!(
        message(fault),
        "reduce of empty array with no initial value"
    );
}

#[test]
fn cycles_are_errors() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let r = cx.heap.alloc_arr(&[]).unwrap();
    call(&mut cx, r, "push", &[Val::Arr(r)]).unwrap();
    for (method, args) in [
        ("join", vec![]),
        ("flat", vec![Val::Num(f64::INFINITY)]),
        ("sort", vec![]),
    ] {
        let fault = call(&mut cx, r, method, &args);
        match method {
            // Sorting by text takes the text of every element first.
            "sort" => assert!(fault.is_err()),
            _ => assert!(message(fault.unwrap_err()).contains("cyclic"), "{method}"),
        }
    }
}

#[test]
fn explosions_stop_early() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let long = vec![b'x'; 1 << 20];
    let long = cx.str(&long).unwrap();
    let r = cx.heap.alloc_arr(&vec![long; 1000]).unwrap();
    let empty = cx.heap.alloc_arr(&vec![Val::Null; 1_000_000]).unwrap();
    let before = cx.meter.slice;
    assert!(matches!(call(&mut cx, r, "join", &[]), Err(Fault::Oom(_))));
    assert!(matches!(
        call(&mut cx, empty, "join", &[long]),
        Err(Fault::Oom(_))
    ));
    // Sizes are summed, a million of them at most, without copies.
    assert!(before - cx.meter.slice < 4_000_000);
    let mut v = Val::Null;
    for _ in 0..40 {
        v = Val::Arr(cx.heap.alloc_arr(&[v, v]).unwrap());
    }
    let Val::Arr(top) = v else { panic!() };
    let all = [Val::Num(f64::INFINITY)];
    assert!(matches!(
        call(&mut cx, top, "flat", &all),
        Err(Fault::Oom(_))
    ));
    cx.meter.model = CostModel::Flat;
    assert!(call(&mut cx, top, "flat", &all).is_err());
    let mut bench = Bench::with_fuel(MICRO);
    let mut cx = bench.cx();
    let views = cx.str(&vec![b'y'; 200_000]).unwrap();
    let r = cx.heap.alloc_arr(&vec![views; 500]).unwrap();
    let other = cx.str(&[&[b'y'; 199_999][..], b"z"].concat()).unwrap();
    assert!(matches!(
        call(&mut cx, r, "indexOf", &[other]),
        Err(Fault::OutOfFuel)
    ));
}

#[test]
fn long_numbers_are_not_written_for_fuel_that_is_not_there() {
    let mut bench = Bench::with_fuel(MICRO / 10);
    let mut cx = bench.cx();
    let huge = vec![Val::Num(f64::MAX); 1_000];
    let r = cx.heap.alloc_arr(&huge).unwrap();
    let before = cx.heap.used();
    assert!(matches!(
        call(&mut cx, r, "toLocaleString", &[]),
        Err(Fault::OutOfFuel)
    ));
    // The text of a number has 411 units; two or three were paid for.
    assert!(cx.heap.used() - before < 5 * 411);
    assert!(cx.meter.fuel > -500 * 411);
}
