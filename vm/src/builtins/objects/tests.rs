use super::FUNCTIONS;
use crate::builtins::testing::{Bench, message, show};
use crate::heap::Val;
use crate::json::{self, Replacer};
use crate::native::{Cx, Fault};
use a99_core::builtins::function;
use a99_core::costs::{CostModel, MICRO};

fn call(cx: &mut Cx<'_>, name: &str, args: &[Val]) -> Result<Val, Fault> {
    let (ns, name) = name.split_once('.').unwrap();
    let row = FUNCTIONS
        .iter()
        .find(|(n, f, _)| *n == ns && *f == name)
        .expect(name);
    (row.2)(cx, args)
}

fn run(name: &str, args: &str) -> String {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let Val::Arr(r) = json::parse(&mut cx, args.as_bytes()).unwrap() else {
        panic!()
    };
    let args = cx.heap.items(r).to_vec();
    match call(&mut cx, name, &args) {
        Ok(v @ Val::Obj(_)) => {
            let s = json::stringify(&mut cx, v, Replacer::None, b"")
                .unwrap()
                .unwrap();
            String::from_utf8(cx.bytes(s).to_vec()).unwrap()
        }
        Ok(v) => show(&mut cx, v),
        Err(fault) => message(fault),
    }
}

#[test]
fn lists_of_members() {
    assert_eq!(
        run("Object.keys", r#"[{"b":1,"2":0,"a":2,"1":0}]"#),
        r#"["1","2","b","a"]"#
    );
    assert_eq!(run("Object.keys", r#"[["x","y"]]"#), r#"["0","1"]"#);
    assert_eq!(run("Object.keys", r#"["hi"]"#), r#"["0","1"]"#);
    assert_eq!(run("Object.keys", "[5]"), "[]");
    assert_eq!(run("Object.values", r#"["hi"]"#), r#"["h","i"]"#);
    assert_eq!(run("Object.values", r#"[{"b":1,"a":[2]}]"#), "[1,[2]]");
    assert_eq!(
        run("Object.entries", r#"[{"b":1,"a":2}]"#),
        r#"[["b",1],["a",2]]"#
    );
    assert_eq!(run("Object.entries", "[[]]"), "[]");
    assert_eq!(
        run("Object.keys", "[null]"),
        "Object.keys requires that input parameter not be null or undefined"
    );
    assert_eq!(run("Object.values", r#"["👍"]"#).matches(',').count(), 1);
}

#[test]
fn new_objects() {
    assert_eq!(
        run("Object.fromEntries", r#"[[["a",1],["b",2],["a",3],[1,4]]]"#),
        r#"{"1":4,"a":3,"b":2}"#
    );
    assert_eq!(run("Object.fromEntries", "[[]]"), "{}");
    assert_eq!(run("Object.fromEntries", "[5]"), "Type error");
    assert_eq!(
        run("Object.fromEntries", r#"[["ab"]]"#),
        "Object.fromEntries requires the first iterable parameter yields objects"
    );
    assert_eq!(
        run("Object.assign", r#"[{"a":1},{"b":2},null,{"a":3}]"#),
        r#"{"a":3,"b":2}"#
    );
    assert_eq!(
        run("Object.assign", r#"[null,"ab",[7]]"#),
        r#"{"0":7,"1":"b"}"#
    );
    assert_eq!(
        run("Object.assign", r#"[{},{"__proto__":{"isAdmin":true}}]"#),
        r#"{"__proto__":{"isAdmin":true}}"#
    );
    assert_eq!(run("Object.hasOwn", r#"[{"a":1},"a"]"#), "true");
    assert_eq!(run("Object.hasOwn", r#"[{"a":1},"toString"]"#), "false");
    assert_eq!(run("Object.hasOwn", r#"[[1],0]"#), "true");
}

#[test]
fn arrays() {
    assert_eq!(run("Array.from", r#"["héy👍"]"#), r#"["h","é","y","👍"]"#);
    assert_eq!(run("Array.from", "[[1,2]]"), "[1,2]");
    assert_eq!(
        run("Array.from", r#"[{"0":"a","2":"c","length":3}]"#),
        r#"["a",undefined,"c"]"#
    );
    assert_eq!(run("Array.from", "[{}]"), "[]");
    assert_eq!(run("Array.from", "[5]"), "[]");
    assert_eq!(
        run("Array.from", "[null]"),
        "Array.from requires an array-like object - not null or undefined"
    );
    assert_eq!(run("Array.of", "[]"), "[]");
    assert_eq!(run("Array.of", "[1,\"a\"]"), "[1,\"a\"]");
    assert_eq!(run("Array.isArray", "[[]]"), "true");
    assert_eq!(run("Array.isArray", "[{}]"), "false");
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let texts = json::parse(&mut cx, br#"["1.7","2.2"]"#).unwrap();
    let mapper = Val::Builtin(function("", "parseFloat").unwrap());
    let v = call(&mut cx, "Array.from", &[texts, mapper]).unwrap();
    assert_eq!(show(&mut cx, v), "[1.7,2.2]");
}

#[test]
fn huge_lengths_are_refused_at_once() {
    for (fuel, model) in [
        (1000 * MICRO, CostModel::Metered),
        (i64::MAX, CostModel::Metered),
        (MICRO, CostModel::Flat),
    ] {
        for length in ["2e8", "1e308", "9007199254740991"] {
            let mut bench = Bench::with_fuel(fuel);
            bench.meter.model = model;
            let mut cx = bench.cx();
            let text = format!("{{\"length\":{length}}}");
            let v = json::parse(&mut cx, text.as_bytes()).unwrap();
            let before = cx.heap.used();
            assert!(call(&mut cx, "Array.from", &[v]).is_err(), "{length}");
            assert_eq!(cx.heap.used(), before, "{length} was made room for");
        }
    }
}
