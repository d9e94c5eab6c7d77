//! Dispatch: every row of the tables has code, and refusals have the right messages.

use super::testing::{Bench, message, show};
use super::*;
use crate::heap::builtin::namespace;
use a99_core::builtins::Receiver;

fn call(cx: &mut Cx<'_>, recv: Val, name: &str, args: &[Val]) -> Result<Val, Fault> {
    let method = method_id(name).unwrap();
    check_method(cx, recv, method)?;
    call_method(cx, recv, method, args)
}

#[test]
fn every_row_has_code() {
    let t = &*TABLES;
    for (i, f) in FUNCTIONS.iter().enumerate() {
        assert!(t.functions[i].is_some(), "{}.{}", f.ns, f.name);
    }
    let lists = [
        (Receiver::Text, rows(&t.strings)),
        (Receiver::Number, rows(&t.numbers)),
        (Receiver::Array, rows(&t.arrays)),
        (Receiver::Set, rows(&t.sets)),
        (Receiver::Date, rows(&t.dates)),
        (Receiver::Map, rows(&t.maps)),
        (Receiver::Any, rows(&t.any)),
    ];
    for (receiver, has) in lists {
        for (m, has) in METHODS.iter().zip(has) {
            let file = "core/src/builtins/methods.rs or the code in vm/src/builtins";
            let kind = receiver.as_str();
            assert_eq!(
                m.on.contains(&receiver),
                has,
                "{} of {kind}: {file}",
                m.name
            );
        }
    }
    let lists = [
        strings::METHODS,
        strings_search::METHODS,
        strings_replace::METHODS,
        strings_case::METHODS,
        html::METHODS,
    ];
    let names = (lists.concat().into_iter().map(|row| row.0))
        .chain(numbers::METHODS.iter().map(|row| row.0))
        .chain(arrays::METHODS.iter().map(|row| row.0))
        .chain(sets::METHODS.iter().map(|row| row.0))
        .chain(dates::METHODS.iter().map(|row| row.0))
        .chain(maps::METHODS.iter().map(|row| row.0))
        .chain(globals::ANY_METHODS.iter().map(|row| row.0));
    for name in names {
        assert!(
            method(name).is_some(),
            "{name}: core/src/builtins/methods.rs has no row"
        );
    }
}

/// Which rows of a table have code.
fn rows<F>(table: &[Option<F>]) -> Vec<bool> {
    table.iter().map(Option::is_some).collect()
}

#[test]
fn refusals() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let s = cx.str(b"x").unwrap();
    for (recv, name, text) in [
        (Val::Null, "trim", "Cannot call method 'trim' on null"),
        (
            Val::Undefined,
            "trim",
            "Cannot call method 'trim' on undefined",
        ),
        (Val::Num(5.0), "trim", "'trim' is not a function"),
        (s, "push", "'push' is not a function"),
    ] {
        let fault = check_method(&mut cx, recv, method_id(name).unwrap()).unwrap_err();
        assert_eq!(message(fault), text);
    }
    let math = namespace(0);
    for (recv, name, text) in [
        (s, "shout", "'shout' is not a function"),
        (
            s,
            "constructor",
            "Security Error: Access to 'constructor' is forbidden",
        ),
        (
            Val::Null,
            "__proto__",
            "Security Error: Access to '__proto__' is forbidden",
        ),
        (Val::Null, "x", "Cannot call method 'x' on null"),
        (math, "PI", "'PI' is not a function"),
        (
            math,
            "Floor",
            "Math.Floor is not supported in AsyncJS. Check docs for available Math methods.",
        ),
        (Val::Builtin(0), "call", "'call' is not a function"),
    ] {
        assert_eq!(message(unknown_method(&mut cx, recv, name)), text);
    }
}

#[test]
fn namespaces_and_callbacks() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let max = call(
        &mut cx,
        namespace(0),
        "max",
        &[Val::Num(1.0), Val::Num(5.0)],
    )
    .unwrap();
    assert_eq!(show(&mut cx, max), "5");
    let abs = Val::Builtin(a99_core::builtins::function("Math", "abs").unwrap());
    let three = call_builtin_value(&mut cx, abs, &[Val::Num(-3.0)]).unwrap();
    assert_eq!(show(&mut cx, three), "3");
    let fault = call_builtin_value(&mut cx, Val::Num(5.0), &[]).unwrap_err();
    assert_eq!(message(fault), "5 is not a function");
    assert!(call_builtin_value(&mut cx, namespace(0), &[]).is_err());
}

#[test]
fn members_of_objects_are_data() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let plain = Val::Obj(cx.heap.alloc_obj_keys(&[], &[]).unwrap());
    let text = call(&mut cx, plain, "toString", &[]).unwrap();
    assert_eq!(show(&mut cx, text), "\"[object Object]\"");
    let key = cx.heap.intern(b"toString").unwrap();
    let own = Val::Obj(cx.heap.alloc_obj_keys(&[key], &[Val::Num(1.0)]).unwrap());
    let fault = call(&mut cx, own, "toString", &[]).unwrap_err();
    assert_eq!(message(fault), "'toString' is not a function");
    let name = cx.str(b"toString").unwrap();
    let has = call(&mut cx, own, "hasOwnProperty", &[name]).unwrap();
    assert!(matches!(has, Val::Bool(true)));
    let is = call(&mut cx, own, "isPrototypeOf", &[own]).unwrap();
    assert!(matches!(is, Val::Bool(false)));
}

mod text;
