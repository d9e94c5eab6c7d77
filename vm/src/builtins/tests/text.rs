//! Strings, numbers and globals, as expressions would call them.

use super::super::testing::{Bench, message, show};
use super::super::*;
use super::call;

/// `null`, numbers, booleans and text, for short tables.
#[derive(Copy, Clone)]
enum A {
    N(f64),
    S(&'static str),
    Null,
    Undef,
    True,
}
use A::{N, Null, S, True, Undef};

fn val(cx: &mut Cx<'_>, a: A) -> Val {
    match a {
        N(n) => Val::Num(n),
        S(s) => cx.str(s.as_bytes()).unwrap(),
        Null => Val::Null,
        Undef => Val::Undefined,
        True => Val::Bool(true),
    }
}

fn check(rows: &[(A, &str, &[A], &str)]) {
    for (recv, name, args, want) in rows {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let recv = val(&mut cx, *recv);
        let args: Vec<Val> = args.iter().map(|a| val(&mut cx, *a)).collect();
        let got = match call(&mut cx, recv, name, &args) {
            Ok(v) => show(&mut cx, v),
            Err(fault) => message(fault),
        };
        assert_eq!(got, *want, "{name}");
    }
}

fn function(ns: &str, name: &str, args: &[A]) -> String {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let args: Vec<Val> = args.iter().map(|a| val(&mut cx, *a)).collect();
    let f = a99_core::builtins::function(ns, name).unwrap();
    match call_function(&mut cx, f, &args) {
        Ok(v) => show(&mut cx, v),
        Err(fault) => message(fault),
    }
}

#[test]
fn units() {
    check(&[
        (S("abc"), "at", &[N(-1.0)], "\"c\""),
        (S("abc"), "at", &[N(9.0)], "undefined"),
        (S("abc"), "at", &[S("1")], "\"b\""),
        (S("abc"), "at", &[], "\"a\""),
        (S("abc"), "charAt", &[N(1.9)], "\"b\""),
        (S("abc"), "charAt", &[N(-1.0)], "\"\""),
        (S("abc"), "charCodeAt", &[N(0.0)], "97"),
        (S("abc"), "charCodeAt", &[N(9.0)], "NaN"),
        (S("👍"), "charCodeAt", &[N(1.0)], "56397"),
        (S("👍"), "codePointAt", &[N(0.0)], "128077"),
        (S("a"), "codePointAt", &[N(5.0)], "undefined"),
        (S("a👍b"), "at", &[N(-1.0)], "\"b\""),
    ]);
}

#[test]
fn parts() {
    check(&[
        (S("abcdef"), "slice", &[N(-3.0), N(-1.0)], "\"de\""),
        (S("abcdef"), "slice", &[N(4.0), N(2.0)], "\"\""),
        (S("abcdef"), "slice", &[N(1.9), S("4")], "\"bcd\""),
        (S("abcdef"), "slice", &[Undef, N(2.0)], "\"ab\""),
        (S("abcdef"), "substring", &[N(4.0), N(2.0)], "\"cd\""),
        (S("abcdef"), "substring", &[N(f64::NAN), N(3.0)], "\"abc\""),
        (S("abcdef"), "substr", &[N(-3.0), N(2.0)], "\"de\""),
        (S("añ👍z"), "slice", &[N(1.0), N(4.0)], "\"ñ👍\""),
        (S("\u{A0}\u{FEFF}x\u{2003}"), "trim", &[], "\"x\""),
        (S("\u{200B}x\u{85}"), "trim", &[], "\"\\u{200b}x\\u{85}\""),
        (S("  a "), "trimStart", &[], "\"a \""),
        (S("  a "), "trimRight", &[], "\"  a\""),
        (
            S("a"),
            "concat",
            &[S("b"), N(1.0), Null, Undef, True],
            "\"ab1nullundefinedtrue\"",
        ),
        (S("7"), "padStart", &[N(3.0), S("0")], "\"007\""),
        (S("7"), "padEnd", &[N(6.0), S("abc")], "\"7abcab\""),
        (
            S("7"),
            "padEnd",
            &[N(4.0), S("👍")],
            "\"7👍\u{FFFD}\u{FFFD}\u{FFFD}\"",
        ),
        (S("7"), "padStart", &[N(3.0)], "\"  7\""),
        (S("7"), "padStart", &[N(3.0), S("")], "\"7\""),
        (S("ab"), "repeat", &[N(3.0)], "\"ababab\""),
        (S(""), "repeat", &[N(1e300)], "\"\""),
    ]);
    let bad =
        "String.prototype.repeat argument must be greater than or equal to 0 and not be Infinity";
    check(&[
        (S("x"), "repeat", &[N(-1.0)], bad),
        (S("x"), "repeat", &[N(f64::INFINITY)], bad),
    ]);
}

#[test]
fn search_and_split() {
    check(&[
        (S("héllo"), "indexOf", &[S("l")], "2"),
        (S("hello"), "indexOf", &[S("l"), N(3.0)], "3"),
        (S("hello"), "indexOf", &[S(""), N(9.0)], "5"),
        (S("hello"), "lastIndexOf", &[S("l")], "3"),
        (S("hello"), "lastIndexOf", &[S("l"), N(2.0)], "2"),
        (S("hello"), "includes", &[S("ell")], "true"),
        (S("null!"), "includes", &[Null], "true"),
        (S("hello"), "startsWith", &[S("ell"), N(1.0)], "true"),
        (S("hello"), "endsWith", &[S("ell"), N(4.0)], "true"),
        (S("hello"), "endsWith", &[S("hello!")], "false"),
        (S("a.b"), "match", &[S(".")], "[\".\"]"),
        (S("a1b"), "match", &[S("[0-9]")], "null"),
        (S("a.b."), "matchAll", &[S(".")], "[[\".\"],[\".\"]]"),
        (S("a.b"), "search", &[S(".")], "1"),
        (S("a1b22"), "search", &[S("[0-9]{2}")], "-1"),
        (S("a,b,,c"), "split", &[S(",")], "[\"a\",\"b\",\"\",\"c\"]"),
        (S("abc"), "split", &[S("")], "[\"a\",\"b\",\"c\"]"),
        (S("abc"), "split", &[], "[\"abc\"]"),
        (S(""), "split", &[S(",")], "[\"\"]"),
        (S(""), "split", &[S("")], "[]"),
        (S("a,b,c"), "split", &[S(","), N(2.0)], "[\"a\",\"b\"]"),
        (S("a,b"), "split", &[S(","), N(0.0)], "[]"),
        (S("a1b"), "split", &[N(1.0)], "[\"a\",\"b\"]"),
        (S("aXbX"), "split", &[S("X")], "[\"a\",\"b\",\"\"]"),
        (S("anullb"), "split", &[Null], "[\"a\",\"b\"]"),
        (S("é–ü–"), "split", &[S("–")], "[\"é\",\"ü\",\"\"]"),
    ]);
}

#[test]
fn replacing() {
    check(&[
        (S("a-b-c"), "replace", &[S("-"), S("+")], "\"a+b-c\""),
        (S("a-b-c"), "replaceAll", &[S("-"), S("+")], "\"a+b+c\""),
        (S("a.b"), "replace", &[S("."), S("!")], "\"a!b\""),
        (S("abc"), "replace", &[S("z"), S("y")], "\"abc\""),
        (S("abc"), "replace", &[S(""), S("_")], "\"_abc\""),
        (S("abc"), "replaceAll", &[S(""), S("_")], "\"_a_b_c_\""),
        (S("é"), "replaceAll", &[S(""), S("_")], "\"_é_\""),
        (S("price"), "replace", &[S("p"), S("$&$&")], "\"pprice\""),
        (
            S("price"),
            "replace",
            &[S("r"), S("[$`|$']")],
            "\"p[p|ice]ice\"",
        ),
        (S("a"), "replace", &[S("a"), S("$$1$")], "\"$1$\""),
        (S("a"), "replace", &[S("a"), S("$1$<x>")], "\"$1$<x>\""),
        (S("x1"), "replace", &[N(1.0), N(2.0)], "\"x2\""),
        (S("null"), "replace", &[Null, S("n")], "\"n\""),
    ]);
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let s = cx.str(b"abc").unwrap();
    let b = cx.str(b"b").unwrap();
    let f = Val::Builtin(a99_core::builtins::function("String", "fromCharCode").unwrap());
    let got = call(&mut cx, s, "replace", &[b, f]).unwrap();
    assert_eq!(show(&mut cx, got), "\"a\\0\\u{1}\\0c\"");
}

#[test]
fn surrogate_halves() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let emoji = cx.str("a👍b👍".as_bytes()).unwrap();
    let high = cx.str(b"\xED\xA0\xBD").unwrap();
    let parts = call(&mut cx, emoji, "split", &[high]).unwrap();
    let Val::Arr(r) = parts else { panic!() };
    let units: Vec<usize> = cx
        .heap
        .items(r)
        .iter()
        .map(|v| if let Val::Str(s) = v { s.units() } else { 0 })
        .collect();
    assert_eq!(units, [1, 2, 1]);
    let whole = crate::coerce::join(
        &mut cx,
        r,
        Some(match high {
            Val::Str(s) => s,
            _ => panic!(),
        }),
    );
    assert_eq!(cx.bytes(whole.unwrap()), "a👍b👍".as_bytes());
    let at = call(&mut cx, emoji, "indexOf", &[high, Val::Num(2.0)]).unwrap();
    assert_eq!(show(&mut cx, at), "4");
    let empty = cx.str(b"").unwrap();
    let units = call(&mut cx, emoji, "split", &[empty]).unwrap();
    let Val::Arr(r) = units else { panic!() };
    assert_eq!(cx.heap.len(r), 6);
    let joined = crate::coerce::join(&mut cx, r, Some(Str::EMPTY)).unwrap();
    assert_eq!(cx.bytes(joined), "a👍b👍".as_bytes());
}

#[test]
fn case_and_forms() {
    check(&[
        (S("Straße"), "toUpperCase", &[], "\"STRASSE\""),
        (S("ÄΣ"), "toLowerCase", &[], "\"äς\""),
        (S("e\u{301}"), "normalize", &[], "\"é\""),
        (
            S("x"),
            "normalize",
            &[S("X")],
            "argument does not match any normalization form",
        ),
        (S("ok"), "isWellFormed", &[], "true"),
        (S("a"), "localeCompare", &[S("b")], "-1"),
        (S("a"), "localeCompare", &[S("B")], "-1"),
        (S("é"), "localeCompare", &[S("f")], "-1"),
        (S("a"), "localeCompare", &[S("A")], "-1"),
        (S("a"), "localeCompare", &[S("a")], "0"),
        (S("x"), "bold", &[], "\"<b>x</b>\""),
        (
            S("x"),
            "link",
            &[S("u\"v")],
            "\"<a href=\\\"u&quot;v\\\">x</a>\"",
        ),
    ]);
}

#[test]
fn numbers_as_text() {
    check(&[
        (N(1.005), "toFixed", &[N(2.0)], "\"1.00\""),
        (
            N(1.0),
            "toFixed",
            &[N(101.0)],
            "toFixed() argument must be between 0 and 100",
        ),
        (N(255.0), "toString", &[N(16.0)], "\"ff\""),
        (N(255.0), "toString", &[], "\"255\""),
        (N(123.456), "toPrecision", &[N(4.0)], "\"123.5\""),
        (N(12345.0), "toExponential", &[N(2.0)], "\"1.23e+4\""),
        (N(1234.5), "toLocaleString", &[], "\"1,234.5\""),
        (N(5.0), "valueOf", &[], "5"),
        (True, "toString", &[], "\"true\""),
        (True, "valueOf", &[], "true"),
    ]);
}

#[test]
fn global_functions() {
    for (ns, name, args, want) in [
        ("", "parseInt", &[S("0x1F")][..], "31"),
        ("", "parseInt", &[N(5e-7)], "5"),
        ("Number", "parseInt", &[S("g"), N(17.0)], "16"),
        ("", "parseFloat", &[S("1.5kg")], "1.5"),
        ("", "isNaN", &[S("x")], "true"),
        ("Number", "isNaN", &[S("x")], "false"),
        (
            "Number",
            "isSafeInteger",
            &[N(9_007_199_254_740_992.0)],
            "false",
        ),
        (
            "",
            "encodeURIComponent",
            &[S("a b&é")],
            "\"a%20b%26%C3%A9\"",
        ),
        ("", "decodeURI", &[S("%41%2F%20")], "\"A%2F \""),
        ("", "decodeURIComponent", &[S("%E0%A4%A")], "URI error"),
        ("", "Error", &[S("boom")], "boom"),
        ("", "Error", &[N(1.0)], "Error"),
        (
            "String",
            "fromCharCode",
            &[N(72.0), N(65_601.0), S("66")],
            "\"HAB\"",
        ),
        (
            "String",
            "fromCodePoint",
            &[N(65.0), N(128_512.0)],
            "\"A😀\"",
        ),
        ("console", "log", &[N(1.0)], "undefined"),
        ("Math", "round", &[N(-2.5)], "-2"),
        ("Math", "round", &[N(-0.2)], "-0"),
        ("Math", "max", &[], "-Infinity"),
        ("Math", "max", &[Null, N(-1.0)], "0"),
        ("Math", "hypot", &[N(3.0), N(4.0)], "5"),
        ("Math", "imul", &[S("7"), N(2.9)], "14"),
        ("Math", "pow", &[N(2.0)], "NaN"),
        ("Math", "random", &[], "0.5019607843137255"),
    ] {
        if name == "random" {
            assert!(function(ns, name, args).starts_with("0.50"));
        } else {
            assert_eq!(function(ns, name, args), want, "{name}");
        }
    }
}

#[test]
fn explosions_are_refused_before_they_happen() {
    for (name, args) in [
        ("repeat", &[N(1e12)][..]),
        ("padStart", &[N(2e12)]),
        ("padEnd", &[N(f64::INFINITY)]),
    ] {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let s = cx.str(b"xy").unwrap();
        let used = cx.heap.used();
        let args: Vec<Val> = args.iter().map(|a| val(&mut cx, *a)).collect();
        let got = call(&mut cx, s, name, &args);
        assert!(
            matches!(got, Err(Fault::Oom(_) | Fault::OutOfFuel)),
            "{name}"
        );
        assert!(cx.heap.used() < used + 64);
    }
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let x = cx.str(b"x").unwrap();
    let s = call(&mut cx, x, "repeat", &[Val::Num(100_000.0)]).unwrap();
    let with = cx.str(b"$`$'").unwrap();
    assert!(matches!(
        call(&mut cx, s, "replaceAll", &[x, with]),
        Err(Fault::Oom(_))
    ));
}

#[test]
fn fuel_is_charged_before_the_work() {
    let mut bench = Bench::with_fuel(99_999);
    let mut cx = bench.cx();
    let x = cx.str(b"x").unwrap();
    let got = call(&mut cx, x, "repeat", &[Val::Num(1_000.0)]);
    assert!(matches!(got, Err(Fault::OutOfFuel)));
    assert_eq!(cx.heap.used(), 1);
}
