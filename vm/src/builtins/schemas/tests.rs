use super::FUNCTIONS;
use crate::builtins::testing::{Bench, Late, message};
use crate::heap::Val;
use crate::json::{self, Replacer};
use crate::native::{Cx, Fault};

fn run(name: &str, args: &str) -> String {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let Val::Arr(r) = json::parse(&mut cx, args.as_bytes()).unwrap() else {
        panic!()
    };
    let args = cx.heap.items(r).to_vec();
    let row = FUNCTIONS.iter().find(|(_, f, _)| *f == name).expect(name);
    match (row.2)(&mut cx, &args) {
        Ok(v) => match json::stringify(&mut cx, v, Replacer::None, b"").unwrap() {
            Some(s) => String::from_utf8(cx.bytes(s).to_vec()).unwrap(),
            None => "undefined".to_owned(),
        },
        Err(fault) => message(fault),
    }
}

#[test]
fn filter_by_example() {
    assert_eq!(
        run(
            "filter",
            r#"[{"name":"A","age":3,"extra":1},{"name":"string","age":0}]"#
        ),
        r#"{"name":"A","age":3}"#
    );
    assert_eq!(
        run("filter", r#"[[{"id":1,"x":2},{"id":2}],[{"id":0}]]"#),
        r#"[{"id":1},{"id":2}]"#
    );
    assert_eq!(run("filter", r#"["hello","string"]"#), r#""hello""#);
    assert_eq!(run("filter", "[5.5,1.5]"), "5.5");
    assert_eq!(run("filter", "[[1,2],[]]"), "[1,2]");
    assert_eq!(
        run("filter", r#"[{"a":{"b":1,"c":2},"d":3},{"a":{"b":0}}]"#),
        r#"{"a":{"b":1}}"#
    );
}

#[test]
fn filter_by_schema() {
    assert_eq!(
        run(
            "filter",
            r#"[{"a":1},{"type":"object","properties":{"a":{"type":"number"},"z":{"type":"string"}}}]"#
        ),
        r#"{"a":1}"#
    );
    assert_eq!(
        run("filter", r#"[null,{"type":"object","properties":{}}]"#),
        "root: Expected value, got null"
    );
    assert_eq!(
        run("filter", r#"[{"a":null},{"a":"string"}]"#),
        "a: Expected value, got null"
    );
    assert_eq!(run("filter", r#"[{"a":null},{"a":null}]"#), r#"{"a":null}"#);
    assert_eq!(run("filter", "[1.5,0]"), "root: Expected integer");
}

#[test]
fn builders() {
    assert_eq!(
        run(
            "object",
            r#"[{"a":"x","b":{"type":["number","null"]},"c":{}}]"#
        ),
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["number","null"]},"c":{}},"required":["a","c"],"additionalProperties":false}"#
    );
    assert_eq!(
        run("array", "[0.5]"),
        r#"{"type":"array","items":{"type":"number"}}"#
    );
    assert_eq!(
        run("enum", r#"[["a","b"]]"#),
        r#"{"type":"string","enum":["a","b"]}"#
    );
    assert_eq!(run("enum", r#"["a",1]"#), r#"{"enum":["a",1]}"#);
    assert_eq!(run("const", "[1]"), r#"{"const":1}"#);
    assert_eq!(run("email", "[]"), r#"{"type":"string","format":"email"}"#);
    assert_eq!(run("any", "[]"), "{}");
    assert_eq!(
        run("union", r#"["x",null]"#),
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#
    );
    assert!(run("response", r#"["r",{"a":"x"}]"#).starts_with(
        r#"{"type":"json_schema","json_schema":{"name":"r","strict":true,"schema":{"type":"object""#
    ));
}

#[test]
fn validity_and_patterns() {
    assert_eq!(
        run(
            "isValid",
            r#"["a1",{"type":"string","pattern":"^[a-z]\\d$"}]"#
        ),
        "true"
    );
    assert_eq!(
        run(
            "isValid",
            r#"["aa",{"type":"string","pattern":"^[a-z]\\d$"}]"#
        ),
        "false"
    );
    assert_eq!(run("isValid", r#"[1,0]"#), "true");
    assert_eq!(run("isValid", r#"["1",0]"#), "false");
}

#[test]
fn cycles_are_kept_or_left_out() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let list = cx.heap.alloc_arr(&[]).unwrap();
    cx.heap.push(list, Val::Arr(list)).unwrap();
    let row = FUNCTIONS.iter().find(|(_, f, _)| *f == "filter").unwrap();
    let fault = (row.2)(&mut cx, &[Val::Arr(list), Val::Null]).unwrap_err();
    assert_eq!(message(fault), "root: Expected null");
    let empty = Val::Arr(cx.heap.alloc_arr(&[]).unwrap());
    let kept = (row.2)(&mut cx, &[Val::Arr(list), empty]).unwrap();
    assert!(kept.is_same(Val::Arr(list), cx.heap));
}

#[test]
fn a2_builders_of_constants_read_nothing() {
    let mut bench = Bench::default();
    let long = bench.cx().str(&vec![b'x'; 800_000]).unwrap();
    let constants = [
        "email",
        "uuid",
        "ipv4",
        "url",
        "datetime",
        "emoji",
        "any",
        "null",
        "undefined",
    ];
    for name in constants {
        // Reading the argument would observe the deadline.
        let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &Late);
        let row = FUNCTIONS.iter().find(|(_, f, _)| *f == name).expect(name);
        let before = (cx.heap.used(), cx.meter.fuel());
        (row.2)(&mut cx, &[long, long]).unwrap();
        assert!(cx.heap.used() - before.0 < 2_000, "{name}");
        assert_eq!(cx.meter.fuel(), before.1);
    }
}

#[test]
fn a2_builders_look_at_the_host() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let long = cx.str(&vec![b'x'; 800_000]).unwrap();
    let key = cx.heap.intern(b"a").unwrap();
    let record = Val::Obj(cx.heap.alloc_obj_keys(&[key], &[long]).unwrap());
    let list = Val::Arr(cx.heap.alloc_arr(&vec![long; 20_000]).unwrap());
    for (name, arg) in [
        ("const", record),
        ("enum", list),
        ("pattern", long),
        ("tuple", list),
        ("union", list),
        ("response", long),
    ] {
        let mut cx = Cx::new(&mut bench.heap, &mut bench.meter, &Late);
        let row = FUNCTIONS.iter().find(|(_, f, _)| *f == name).expect(name);
        let made = (row.2)(&mut cx, &[arg]);
        assert!(matches!(made, Err(Fault::Stop(_))), "{name}");
    }
}
