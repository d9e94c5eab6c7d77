use super::{FUNCTIONS, METHODS};
use crate::builtins::testing::HANG;
use crate::builtins::testing::{Bench, message, show};
use crate::heap::Val;
use crate::json;
use crate::native::{Cx, Fault};
use a99_core::builtins::function;
use std::time::Instant;

fn set(cx: &mut Cx<'_>, items: &str) -> Result<Val, Fault> {
    let items = json::parse(cx, items.as_bytes()).unwrap();
    (FUNCTIONS[0].2)(cx, &[items])
}

fn call(cx: &mut Cx<'_>, v: Val, method: &str, args: &[Val]) -> Result<Val, Fault> {
    let Val::Set(r) = v else { panic!("{v:?}") };
    let row = METHODS
        .iter()
        .find(|(name, _)| *name == method)
        .expect(method);
    (row.1)(cx, r, args)
}

#[test]
fn construction() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    for (items, wanted) in [
        ("[3,1,3,\"3\",1,-0,0]", "[3,1,\"3\",0]"),
        ("\"hello👍\"", "[\"h\",\"e\",\"l\",\"o\",\"👍\"]"),
        ("null", "[]"),
        ("[[],[],{},{}]", "[[],[],{},{}]"),
    ] {
        let v = set(&mut cx, items).unwrap();
        assert_eq!(show(&mut cx, v), wanted);
    }
    assert_eq!(message(set(&mut cx, "{}").unwrap_err()), "Type error");
    assert_eq!(message(set(&mut cx, "5").unwrap_err()), "Type error");
    let nans = [
        Val::Num(f64::NAN),
        Val::Num(f64::NAN),
        Val::Undefined,
        Val::Undefined,
    ];
    let nans = Val::Arr(cx.heap.alloc_arr(&nans).unwrap());
    let v = (FUNCTIONS[0].2)(&mut cx, &[nans]).unwrap();
    assert_eq!(show(&mut cx, v), "[NaN,undefined]");
}

#[test]
fn algebra() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let a = set(&mut cx, "[1,2,3]").unwrap();
    let b = set(&mut cx, "[2,9]").unwrap();
    let list = json::parse(&mut cx, b"[3,3,8]").unwrap();
    for (method, arg, wanted) in [
        ("union", b, "[1,2,3,9]"),
        ("union", list, "[1,2,3,8]"),
        ("union", Val::Null, "[1,2,3]"),
        ("intersection", b, "[2]"),
        ("intersection", Val::Undefined, "[]"),
        ("diff", b, "[1,3]"),
        ("diff", list, "[1,2]"),
        ("diff", Val::Undefined, "[1,2,3]"),
    ] {
        let v = call(&mut cx, a, method, &[arg]).unwrap();
        assert_eq!(show(&mut cx, v), wanted, "{method}");
    }
    assert_eq!(show(&mut cx, a), "[1,2,3]");
}

#[test]
fn changes_are_shared() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let a = set(&mut cx, "[1]").unwrap();
    for (method, n, wanted) in [
        ("add", 2.0, "[1,2]"),
        ("add", 1.0, "[1,2]"),
        ("remove", 1.0, "[2]"),
        ("remove", 7.0, "[2]"),
        ("clear", 0.0, "[]"),
    ] {
        let same = call(&mut cx, a, method, &[Val::Num(n)]).unwrap();
        assert!(same.is_same(a, cx.heap));
        assert_eq!(show(&mut cx, a), wanted);
    }
    let has = call(&mut cx, a, "has", &[Val::Num(2.0)]).unwrap();
    assert_eq!(show(&mut cx, has), "false");
}

#[test]
fn callbacks() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let a = set(&mut cx, "[-1,1,2.5]").unwrap();
    let abs = Val::Builtin(function("Math", "abs").unwrap());
    let integer = Val::Builtin(function("Number", "isInteger").unwrap());
    let v = call(&mut cx, a, "map", &[abs]).unwrap();
    assert_eq!(show(&mut cx, v), "[1,2.5]");
    let v = call(&mut cx, a, "filter", &[integer]).unwrap();
    assert_eq!(show(&mut cx, v), "[-1,1]");
    assert!(matches!(
        call(&mut cx, a, "forEach", &[abs]),
        Ok(Val::Undefined)
    ));
    assert!(call(&mut cx, a, "map", &[Val::Null]).is_err());
}

#[test]
fn large_sets_are_linear() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let start = Instant::now();
    let vals: Vec<Val> = (0..200_000)
        .map(|n| Val::Num(f64::from(n) * 4_294_967_296.0))
        .collect();
    let list = Val::Arr(cx.heap.alloc_arr(&vals).unwrap());
    let a = (FUNCTIONS[0].2)(&mut cx, &[list]).unwrap();
    let v = call(&mut cx, a, "intersection", &[list]).unwrap();
    let Val::Set(r) = v else { panic!() };
    assert_eq!(cx.heap.len(r), 200_000);
    assert!(start.elapsed() < HANG);
}
