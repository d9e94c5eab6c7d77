//! Tests of documents and of parser messages.

use super::*;
use crate::diag::{Diagnostic, codes};

fn parse(text: &str) -> Result<Document, Diagnostics> {
    Document::parse(text, &Limits::default())
}

fn good(text: &str) -> Document {
    parse(text).unwrap_or_else(|found| panic!("{text}: {found}"))
}

fn bad(text: &str) -> Vec<Diagnostic> {
    match parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(found) => found.into_iter().collect(),
    }
}

fn compact(text: &str) -> String {
    let doc = good(text);
    let mut out = Vec::new();
    doc.write_json(doc.root(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn nodes_are_small() {
    assert!(size_of::<Node>() <= 24);
}

#[test]
fn navigation() {
    let text = "{\"op\": \"seq\",\n \"steps\": [1, {\"a/b\": null}, true]}";
    let doc = good(text);
    let root = doc.root();
    assert_eq!((doc.kind(root), doc.len(root)), (Kind::Object, 2));
    assert_eq!(
        doc.get(root, "op").and_then(|op| doc.str(op)),
        Some(&b"seq"[..])
    );
    let steps = doc.get(root, "steps").unwrap();
    assert_eq!(doc.elements(steps).len(), 3);
    assert_eq!(doc.members(steps).len(), 0);
    assert_eq!(doc.kind(doc.element(steps, 0).unwrap()), Kind::Number(1.0));
    assert_eq!(doc.kind(doc.element(steps, 2).unwrap()), Kind::Bool(true));
    assert_eq!(doc.element(steps, 3), None);
    let inner = doc.element(steps, 1).unwrap();
    let (key, null) = doc.members(inner).next().unwrap();
    assert_eq!((key, doc.kind(null)), (&b"a/b"[..], Kind::Null));
    assert_eq!(doc.pointer(null), "/steps/1/a~1b");
    assert_eq!((doc.pointer(root).as_str(), doc.parent(root)), ("", None));
    assert_eq!(doc.parent(null), Some(inner));
    let span = |range: Option<Range<u32>>| {
        range.map(|range| &text[range.start as usize..range.end as usize])
    };
    assert_eq!(span(doc.span(null)), Some("null"));
    assert_eq!(span(doc.span(inner)), Some("{\"a/b\": null}"));
    assert_eq!(span(doc.span(root)), Some(text));
    assert_eq!(span(doc.key_span(null)), Some("\"a/b\""));
    assert_eq!((doc.key_span(inner), doc.key_span(root)), (None, None));
    assert_eq!(doc.line_col(doc.span(steps).unwrap().start), (2, 11));
    assert_eq!(doc.source(), Some(text.as_bytes()));
    assert_eq!(doc.node_count(), 7);
    let nowhere = NodeId(999);
    assert_eq!(
        (doc.kind(nowhere), doc.pointer(nowhere).as_str()),
        (Kind::Null, "")
    );
}

#[test]
fn scalars() {
    for (text, expected) in [
        ("0", 0.0),
        ("-0", 0.0),
        ("-12", -12.0),
        ("1.5e3", 1500.0),
        ("1E-2", 0.01),
        ("123456789012345", 123_456_789_012_345.0),
        ("1234567890123456", 1_234_567_890_123_456.0),
        ("12345678901234567890", 12_345_678_901_234_567_890.0),
        ("0.1", 0.1),
        ("1e999", f64::INFINITY),
        ("1e-999", 0.0),
    ] {
        assert_eq!(good(text).kind(NodeId(0)), Kind::Number(expected), "{text}");
    }
    match good("-0").kind(NodeId(0)) {
        Kind::Number(number) => assert!(number.is_sign_negative()),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        compact(" [ true , false , null , {} , [ ] ] \r\n\t"),
        "[true,false,null,{},[]]"
    );
    assert_eq!(compact("\u{FEFF}{}"), "{}");
}

#[test]
fn strings() {
    let text = |json: &str| good(json).str(NodeId(0)).unwrap().to_vec();
    assert_eq!(text(r#""a\"\\\/\b\f\n\r\tA""#), b"a\"\\/\x08\x0C\n\r\tA");
    assert_eq!(
        text(r#""\u00e9\u4e2d\ud83d\ude00x""#),
        "\u{e9}\u{4e2d}\u{1F600}x".as_bytes()
    );
    assert_eq!(text(r#""\ud83d""#), b"\xED\xA0\xBD");
    assert_eq!(text(r#""\ude00\ud83d""#), b"\xED\xB8\x80\xED\xA0\xBD");
    assert_eq!(text(r#""\ud83d\u0041""#), b"\xED\xA0\xBDA");
    assert_eq!(
        text("\"\u{1F600}\u{2028}\u{7f}\""),
        "\u{1F600}\u{2028}\u{7f}".as_bytes()
    );
    assert_eq!(text(r#""\u0000""#), b"\0");
    assert_eq!(
        compact(r#"["\uD83D","\u001F\n","\ud83d\ude00"]"#),
        "[\"\\ud83d\",\"\\u001f\\n\",\"\u{1F600}\"]"
    );
}

#[test]
fn key_order_and_round_trip() {
    assert_eq!(
        compact(r#"{"b":1,"10":2,"9":3,"a\u0062":[{"x":{}}]}"#),
        r#"{"9":3,"10":2,"b":1,"ab":[{"x":{}}]}"#
    );
    let doc = good(r#"{"b":[1,{"c":"\ud800"}],"a":null,"__proto__":{}}"#);
    let value = doc.to_value(doc.root());
    let again = Document::from_value(&value);
    assert_eq!(again.to_value(again.root()), value);
    assert_eq!((again.source(), again.span(again.root())), (None, None));
    assert_eq!(again.line_col(5), (1, 1));
    let c = again
        .get(again.root(), "b")
        .and_then(|b| again.element(b, 1))
        .unwrap();
    assert_eq!(again.pointer(again.get(c, "c").unwrap()), "/b/1/c");
    assert_eq!(again.node_count(), doc.node_count());
    let keys: Vec<_> = again
        .members(again.root())
        .map(|(key, _)| key.to_vec())
        .collect();
    assert_eq!(keys, [&b"b"[..], b"a", b"__proto__"]);
    let mut map = crate::value::Map::new();
    map.insert("u", Value::Undefined);
    map.insert("l", vec![Value::Undefined]);
    let doc = Document::from_value(&map.into());
    let mut out = Vec::new();
    doc.write_json(doc.root(), &mut out);
    assert_eq!(out, br#"{"l":[null]}"#);
}

/// Text, offending text, pointer, and a part of the help.
const SLIPS: &[(&str, &str, &str, &str)] = &[
    ("[1,]", ",", "", "remove the comma"),
    ("{\"a\":1,}", ",", "", "remove the comma"),
    ("[1,,2]", ",", "", "remove one comma"),
    ("{'a': 1}", "'", "", "replace ' by \""),
    ("{\"a\": 'b'}", "'", "/a", "replace ' by \""),
    ("{a: 1}", "a", "", "write \"a\""),
    ("[1, // x\n2]", "// x", "", "remove the comment"),
    ("[1, /* x */ 2]", "/* x */", "", "remove the comment"),
    ("# x\n[]", "# x", "", "remove the comment"),
    ("[NaN]", "NaN", "/0", "finite"),
    ("[1, -Infinity]", "-Infinity", "/1", "finite"),
    ("[undefined]", "undefined", "/0", "write null"),
    ("[True]", "True", "/0", "write true"),
    ("[hello]", "hello", "/0", "double quotes"),
    ("[+1]", "+1", "/0", "plus sign"),
    ("[.5]", ".5", "/0", "zero before the point"),
    ("[5.]", "5.", "/0", "digit after the point"),
    ("[01]", "01", "/0", "leading zeros"),
    ("[0x1F]", "0x1F", "/0", "decimal"),
    ("[1_000]", "1_000", "/0", "underscores"),
    ("[10n]", "10n", "/0", "big integers"),
    ("[1e]", "1e", "/0", "such as -1.5e3"),
    ("[-]", "-", "/0", "such as -1.5e3"),
    ("[\"\\x41\"]", "\\x", "/0", "\\u00XX"),
    ("[\"\\'\"]", "\\'", "/0", "no backslash"),
    ("[\"\\u12g4\"]", "\\u", "/0", "four hexadecimal"),
    ("[\"a\tb\"]", "\\u{9}", "/0", "write \\t"),
    ("[\"a\u{1}b\"]", "\\u{1}", "/0", "write \\u0001"),
    ("[1 2]", "2", "", "comma before this"),
    ("{\"a\":1 \"b\":2}", "\"", "", "comma before this"),
    ("{\"a\" = 1}", "=", "", "instead of `=`"),
    ("{\"a\" 1}", "1", "", "a colon and the value"),
    ("{\"a\":[1}", "}", "/a", "starts on line 1"),
    ("[1", "[", "", "closing `]`"),
    ("{\"x\": {\"a\": 1", "{", "/x", "closing `}`"),
    ("{\"a\":", "{", "", "closing `}`"),
    ("{", "{", "", "closing `}`"),
    ("[\"abc", "\"abc", "/0", "double quote on the same line"),
    (
        "[\"abc\n\"]",
        "\"abc",
        "/0",
        "double quote on the same line",
    ),
    ("[\"abc\\", "\"abc", "/0", "double quote on the same line"),
    ("[] []", "[", "", "one value"),
    ("{}}", "}", "", "closes nothing"),
    ("", "", "", "a program is"),
    ("  \n", "", "", "a program is"),
    ("[,1]", ",", "/0", "before the comma"),
    ("{\"a\":}", "}", "/a", "before the closing"),
    ("{,}", ",", "", "double quotes"),
    ("{\u{201c}a\u{201d}:1}", "\u{201c}", "", "double quotes"),
    ("[\u{a0}1]", "\u{a0}", "/0", "straight double quotes"),
    ("[1;2]", ";", "", "comes a comma or `]`"),
    ("]", "]", "", "before the closing bracket"),
];

#[test]
fn every_slip_has_place_and_help() {
    for &(text, offending, pointer, help) in SLIPS {
        let found = bad(text);
        let first = &found[0];
        assert_eq!(first.code, codes::JSON_SYNTAX, "{text}");
        assert_eq!(first.offending, offending, "{text}");
        assert_eq!(first.pointer, pointer, "{text}");
        let own = first.help.as_deref().unwrap_or_default();
        assert!(own.contains(help), "{text}: {own}");
        let span = first.span.clone().unwrap();
        if !offending.contains("\\u{") {
            assert_eq!(&text[span.start as usize..span.end as usize], offending);
        }
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(!crate::diag::render(first, Some(("f", text.as_bytes()))).is_empty());
    }
}

#[test]
fn several_slips_at_once() {
    let found = bad("{'a': 1, // one\n b: [1,], \"c\": NaN, \"c\": 2}");
    let places: Vec<_> = found
        .iter()
        .map(|finding| (finding.code, finding.span.clone().unwrap().start))
        .collect();
    assert_eq!(
        places,
        [
            (codes::JSON_SYNTAX, 1),
            (codes::JSON_SYNTAX, 9),
            (codes::JSON_SYNTAX, 17),
            (codes::JSON_SYNTAX, 22),
            (codes::JSON_SYNTAX, 31),
            (codes::DUPLICATE_KEY, 36),
        ]
    );
    assert_eq!(bad(&format!("[{}]", "'x',".repeat(1000))).len(), 20);
}

#[test]
fn rendering() {
    let text = "{\n  \"op\": \"seq\",\n  \"steps\": [1,]\n}";
    assert_eq!(
        crate::diag::render(&bad(text)[0], Some(("a.json", text.as_bytes()))),
        "error[json.syntax]: there is a comma before the closing bracket\n  \
         --> a.json:3:14 (/steps)\n  |\n3 |   \"steps\": [1,]\n  |              ^\n  \
         = help: remove the comma\n"
    );
}

#[test]
fn encodings() {
    let code = |bytes: &[u8]| {
        let found = Document::parse(bytes, &Limits::default()).unwrap_err();
        let finding = found.iter().next().unwrap().clone();
        assert!(finding.help.is_some());
        (finding.code, finding.message, finding.span.unwrap().start)
    };
    let utf16 = |text: &str, big: bool| {
        let units = text.encode_utf16();
        let bytes = units.flat_map(|u| {
            if big {
                u.to_be_bytes()
            } else {
                u.to_le_bytes()
            }
        });
        bytes.collect::<Vec<u8>>()
    };
    for (bytes, name) in [
        (utf16("\u{FEFF}{}", false), "UTF-16LE"),
        (utf16("\u{FEFF}{}", true), "UTF-16BE"),
        (utf16("{\"a\":1}", false), "UTF-16LE"),
        (utf16("[1]", true), "UTF-16BE"),
    ] {
        let (code, message, _) = code(&bytes);
        assert_eq!(code, codes::NOT_UTF8);
        assert!(message.contains(name), "{message}");
    }
    for (bytes, at) in [
        (&b"[\"a\xFFb\"]"[..], 3),
        (b"[\"\xED\xA0\x80\"]", 2),
        (b"[\"\xC3", 2),
    ] {
        let (code, _, start) = code(bytes);
        assert_eq!((code, start), (codes::NOT_UTF8, at));
    }
}

#[test]
fn duplicate_keys() {
    let text = "{\"a\": 1,\n \"b\": {\"x\": 1, \"\\u0078\": 2},\n \"a\": 3}";
    let found = bad(text);
    let seen: Vec<_> = found
        .iter()
        .map(|finding| {
            (
                finding.code,
                finding.pointer.as_str(),
                finding.offending.as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (codes::DUPLICATE_KEY, "/b/x", "x"),
            (codes::DUPLICATE_KEY, "/a", "a")
        ]
    );
    assert_eq!(found[1].span, Some(39..42));
    assert!(found[1].help.as_ref().unwrap().contains("line 1"));
}

#[test]
fn b5_of_repeated_keys_in_data_the_last_counts() {
    let read = |text: &str| {
        let doc = Document::parse_data(text, &Limits::default()).unwrap();
        let mut out = Vec::new();
        doc.write_json(doc.root(), &mut out);
        let written = String::from_utf8(out).unwrap();
        assert_eq!(doc.to_value(doc.root()).to_json_string(), written);
        (doc, written)
    };
    for (text, expected) in [
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        (
            r#"{"a":1,"\u0061":{"a":[],"a":null},"a":{"x":1,"x":2}}"#,
            r#"{"a":{"x":2}}"#,
        ),
        (r#"[{"":1,"":2,"":3},{"a":1}]"#, r#"[{"":3},{"a":1}]"#),
    ] {
        let (doc, written) = read(text);
        assert_eq!(written, expected);
        assert!(Document::parse(text, &Limits::default()).is_err());
        let again = Document::parse(expected, &Limits::default()).unwrap();
        assert_eq!(doc.len(doc.root()), again.len(again.root()));
    }
    for members in [13, 100, 10_000] {
        let text: Vec<String> = (0..members)
            .map(|i| format!("\"k{}\":{i}", i % 7))
            .collect();
        let (doc, _) = read(&format!("{{{}}}", text.join(",")));
        assert_eq!(doc.len(doc.root()), 7);
        let last = doc.get(doc.root(), "k3").map(|node| doc.kind(node));
        let expected = (0..members).rfind(|i| i % 7 == 3).unwrap();
        assert_eq!(last, Some(Kind::Number(f64::from(expected))));
    }
    assert!(Document::parse_data("{\"a\":1,}", &Limits::default()).is_err());
}

#[test]
fn many_duplicate_keys_take_linear_time() {
    for distinct in [true, false] {
        let members: Vec<String> = (0..100_000)
            .map(|i| format!("\"k{}\":0", if distinct { i / 2 } else { 0 }))
            .collect();
        let found = bad(&format!("{{{}}}", members.join(",")));
        assert_eq!(found.len(), 1001);
        let more = if distinct { 50_000 } else { 99_999 } - 1000;
        let last = &found[1000].message;
        assert!(last.starts_with(&more.to_string()), "{last}");
    }
    let unique: Vec<String> = (0..100_000).map(|i| format!("\"k{i}\":0")).collect();
    assert_eq!(
        good(&format!("{{{}}}", unique.join(","))).len(NodeId(0)),
        100_000
    );
}

#[test]
fn deep_nesting_is_refused_without_overflow() {
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let found = bad(&open.repeat(1_000_000));
        assert_eq!((found.len(), found[0].code), (1, codes::JSON_TOO_DEEP));
        assert!(found[0].pointer.len() < 5000 && found[0].help.is_some());
        assert!(found[0].message.contains("8192"));
    }
    let closed = bad(&format!(
        "{}{}",
        "[".repeat(1_000_000),
        "]".repeat(1_000_000)
    ));
    assert_eq!(closed[0].code, codes::JSON_TOO_DEEP);
}

#[test]
fn the_deepest_document_works() {
    let depth = Limits::default().max_depth as usize;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(compact(&text), text);
    let doc = good(&text);
    let value = doc.to_value(doc.root());
    let deepest = NodeId(u32::try_from(depth).unwrap() - 1);
    assert_eq!(doc.pointer(deepest).len(), 2 * (depth - 1));
    assert_eq!(Document::from_value(&value).node_count(), depth);
    drop(value);
}

#[test]
fn limits() {
    let code = |text: &str, limits: &Limits| match Document::parse(text, limits) {
        Ok(_) => "ok",
        Err(found) => found.iter().next().map_or("none", |finding| finding.code),
    };
    let small = Limits {
        max_bytes: 8,
        max_depth: 2,
        max_nodes: 4,
    };
    assert_eq!(code("[1,2,3]", &small), "ok");
    assert_eq!(code("[1,2,3,4]", &small), codes::JSON_TOO_LARGE);
    assert_eq!(code("[1,2,3 ]x", &small), codes::JSON_TOO_LARGE);
    assert_eq!(code("[1,[],1]", &small), "ok");
    assert_eq!(code("[[[]]]", &small), codes::JSON_TOO_DEEP);
    assert_eq!(
        code(
            "[0,0,0,0]",
            &Limits {
                max_bytes: 99,
                ..small
            }
        ),
        codes::JSON_TOO_LARGE
    );
}

#[test]
fn no_text_panics() {
    // Every prefix, and every single-byte replacement, of texts with all features.
    let texts = SLIPS
        .iter()
        .map(|slip| slip.0)
        .chain([r#"{"op":"seq","steps":[{"a":"\ud83d\ude00","b":[-1.5e3,true,null]}]}"#]);
    for text in texts {
        for end in 0..text.len() {
            let _ = Document::parse(&text.as_bytes()[..end], &Limits::default());
            for byte in [
                0, b'"', b'\\', b'/', b'{', b']', b',', b'-', b'\'', 0x80, 0xFF, b'u',
            ] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[end] = byte;
                if let Err(found) = Document::parse(bytes.clone(), &Limits::default()) {
                    assert!(found.has_errors());
                    assert!(!found.render(Some(("f", &bytes))).is_empty());
                }
            }
        }
    }
}

#[test]
fn a11_members_of_large_objects_are_found_by_name() {
    // Linear searches for 20,000 of 20,000 names would take minutes.
    let members: Vec<String> = (0..20_000).map(|i| format!("\"k{i}\":{i}")).collect();
    let doc = good(&format!(
        "{{\"a\":{{{0}}},\"b\":{{{0}}}}}",
        members.join(",")
    ));
    for part in ["a", "b"] {
        let object = doc.get(doc.root(), part).unwrap();
        for i in 0..20_000 {
            let found = doc.get(object, &format!("k{i}")).unwrap();
            assert_eq!(doc.kind(found), Kind::Number(f64::from(i)));
            assert_eq!(doc.parent(found), Some(object));
        }
        assert_eq!(doc.get(object, "k20000"), None);
    }
    // Documents made from values have an index too.
    let value = doc.to_value(doc.root());
    let doc = Document::from_value(&value);
    let object = doc.get(doc.root(), "b").unwrap();
    assert!(
        doc.get(object, "k7")
            .is_some_and(|at| doc.kind(at) == Kind::Number(7.0))
    );
}
