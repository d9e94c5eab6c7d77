use super::{FUNCTIONS, METHODS, field};
use crate::builtins::testing::{Bench, message, show};
use crate::heap::Val;
use crate::json;
use crate::native::{Cx, Fault};

fn date(cx: &mut Cx<'_>, init: &str) -> Result<Val, Fault> {
    let init = json::parse(cx, init.as_bytes()).unwrap();
    (FUNCTIONS[0].2)(cx, &[init])
}

fn call(cx: &mut Cx<'_>, v: Val, method: &str, args: &[Val]) -> Result<Val, Fault> {
    let Val::Date(r) = v else { panic!("{v:?}") };
    let row = METHODS
        .iter()
        .find(|(name, _)| *name == method)
        .expect(method);
    (row.1)(cx, r, args)
}

/// `Date(init).method(...args)`
fn run(init: &str, method: &str, args: &str) -> String {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let v = date(&mut cx, init).unwrap();
    let Val::Arr(args) = json::parse(&mut cx, args.as_bytes()).unwrap() else {
        panic!()
    };
    let args = cx.heap.items(args).to_vec();
    match call(&mut cx, v, method, &args) {
        Ok(v @ Val::Date(_)) => {
            let v = call(&mut cx, v, "toString", &[]).unwrap();
            show(&mut cx, v)
        }
        Ok(v) => show(&mut cx, v),
        Err(fault) => message(fault),
    }
}

const LEAP: &str = "\"2024-02-29T13:05:09.120Z\"";

#[test]
fn fields() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let Val::Date(r) = date(&mut cx, LEAP).unwrap() else {
        panic!()
    };
    let ms = cx.heap.date_ms(r);
    for (name, wanted) in [
        ("value", LEAP),
        ("timestamp", "1709211909120"),
        ("year", "2024"),
        ("month", "2"),
        ("day", "29"),
        ("hours", "13"),
        ("minutes", "5"),
        ("seconds", "9"),
        ("dayOfWeek", "4"),
    ] {
        let v = field(&mut cx, ms, name.as_bytes()).unwrap().unwrap();
        assert_eq!(show(&mut cx, v), wanted, "{name}");
    }
    assert!(field(&mut cx, ms, b"length").unwrap().is_none());
    assert_eq!(
        message(field(&mut cx, f64::NAN, b"value").unwrap_err()),
        "Invalid Date"
    );
}

#[test]
fn invalid_dates() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    for (init, wanted) in [
        ("\"yesterday-ish\"", "yesterday-ish"),
        ("\"2024-13-01\"", "2024-13-01"),
        ("8640000000000001", "8640000000000001"),
    ] {
        let fault = date(&mut cx, init).unwrap_err();
        assert_eq!(message(fault), format!("Invalid date: {wanted}"));
    }
    assert!(date(&mut cx, "0").is_ok() && date(&mut cx, "null").is_ok());
    let text = cx.str(b"nonsense").unwrap();
    let v = (FUNCTIONS[2].2)(&mut cx, &[text]).unwrap();
    let Val::Date(r) = v else { panic!() };
    assert!(cx.heap.date_ms(r).is_nan());
    assert_eq!(
        message(call(&mut cx, v, "toJSON", &[]).unwrap_err()),
        "Invalid Date"
    );
}

#[test]
fn calendar_arithmetic() {
    assert_eq!(
        run(LEAP, "add", r#"[{"days":1}]"#),
        "\"2024-03-01T13:05:09.120Z\""
    );
    let jan = "\"2023-01-31T00:00:00Z\"";
    assert_eq!(
        run(jan, "add", r#"[{"months":1}]"#),
        "\"2023-03-03T00:00:00.000Z\""
    );
    assert_eq!(
        run(LEAP, "add", r#"[{"years":1,"ms":-120}]"#),
        "\"2025-03-01T13:05:09.000Z\""
    );
    assert_eq!(run(jan, "add", "[{}]"), "\"2023-01-31T00:00:00.000Z\"");
    for (odd, wanted) in [
        ("[]", "2023-01-31T00:00:00.000Z"),
        ("[5]", "2023-01-31T00:00:00.000Z"),
        // Text is appended: the second of month "0" and "2", the 31st of it.
        (r#"[{"months":"2"}]"#, "2023-03-31T00:00:00.000Z"),
        (r#"[{"hours":["1"]}]"#, "2023-01-31T01:00:00.000Z"),
        (r#"[{"minutes":true,"ms":""}]"#, "2023-01-31T00:01:00.000Z"),
    ] {
        assert_eq!(run(jan, "add", odd), format!("\"{wanted}\""), "{odd}");
    }
    assert!(run(jan, "add", "[null]").contains("null is not an object"));
}

#[test]
fn differences() {
    let march = "\"2024-03-02T00:00:00Z\"";
    for (unit, wanted) in [
        ("", "216000000"),
        (",\"ms\"", "216000000"),
        (",\"seconds\"", "216000"),
        (",\"minutes\"", "3600"),
        (",\"hours\"", "60"),
        (",\"days\"", "2.5"),
        (",\"weeks\"", "216000000"),
    ] {
        assert_eq!(
            run(march, "diff", &format!("[\"2024-02-28T12:00:00Z\"{unit}]")),
            wanted
        );
    }
    let new_year = "\"2024-01-01\"";
    assert_eq!(run(new_year, "diff", "[0,\"days\"]"), "19723");
    assert_eq!(run(new_year, "diff", "[\"nonsense\",\"days\"]"), "NaN");
    assert_eq!(
        run(new_year, "diff", "[null]"),
        "null is not an object (evaluating 'other.timestamp')"
    );
    assert_eq!(run(new_year, "isBefore", "[\"2024-01-02\"]"), "true");
    assert_eq!(run(new_year, "isAfter", "[\"2024-01-02\"]"), "false");
}

#[test]
fn formats() {
    for (pattern, wanted) in [
        ("[]", "2024-02-29T13:05:09.120Z"),
        ("[\"ISO\"]", "2024-02-29T13:05:09.120Z"),
        ("[\"date\"]", "2024-02-29"),
        ("[\"time\"]", "13:05:09"),
        ("[\"DD.MM.YYYY HH:mm:ss\"]", "29.02.2024 13:05:09"),
        ("[\"YYYY-YYYY\"]", "2024-YYYY"),
        ("[\"\"]", ""),
        ("[\"DDD\"]", "29D"),
    ] {
        assert_eq!(run(LEAP, "format", pattern), format!("{wanted:?}"));
    }
    assert_eq!(
        run("\"0007-03-04\"", "format", "[\"YYYY/MM/DD\"]"),
        "\"7/03/04\""
    );
}

#[test]
fn the_present() {
    let mut bench = Bench::default();
    let mut cx = bench.cx();
    let now = (FUNCTIONS[1].2)(&mut cx, &[]).unwrap();
    assert_eq!(show(&mut cx, now), "1700000000000");
    let v = (FUNCTIONS[0].2)(&mut cx, &[]).unwrap();
    assert_eq!(show(&mut cx, v), "Date(1700000000000)");
}
