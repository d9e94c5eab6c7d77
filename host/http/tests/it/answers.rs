//! Answers as values, and what a status does (D56).

use crate::network::{TestNet, code, get, value, with};
use crate::server::{Server, answer};
use a99_capabilities::{Fetch, suite};
use a99_core::value::Value;

async fn answered(head: &str, body: impl AsRef<[u8]>, options: &str) -> Result<String, String> {
    let server = Server::always(answer(head, body)).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let answer = with(&fetch, "http://good.test/x?q", options).await;
    answer
        .map(|value| value.to_json_string())
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_suite_of_the_trait_holds() {
    let server = Server::always(answer("200 OK", "hello")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    suite::fetch(&fetch, "http://good.test/").await.unwrap();
}

#[tokio::test]
async fn the_content_type_decides() {
    let json = "200 OK\nContent-Type: application/json; charset=utf-8";
    let table = [
        (json, r#"{"a":[1,null]}"#, "{}", r#"{"a":[1,null]}"#),
        (json, "[]", r#"{"responseType":"text"}"#, r#""[]""#),
        ("200 OK\nContent-Type: text/plain", "[1]", "{}", r#""[1]""#),
        ("200 OK", "[1]", r#"{"responseType":"json"}"#, "[1]"),
        ("200 OK", "\u{feff}é", "{}", "\"é\""),
        (
            "200 OK\nContent-Type: image/png",
            "abc",
            r#"{"responseType":"dataUrl"}"#,
            r#""data:image/png;base64,YWJj""#,
        ),
        (
            "200 OK",
            "abc",
            r#"{"responseType":"dataUrl"}"#,
            r#""data:application/octet-stream;base64,YWJj""#,
        ),
        // By the references' rule `application/json` it is, and nothing like it.
        (
            "200 OK\nContent-Type: application/problem+json",
            "{}",
            "{}",
            r#""{}""#,
        ),
    ];
    for (head, body, options, expected) in table {
        let found = answered(head, body, options).await;
        assert_eq!(found.as_deref(), Ok(expected), "{head} {options}");
    }
    let latin = answered(
        "200 OK\nContent-Type: text/plain; charset=latin1",
        [0xE9],
        "{}",
    )
    .await;
    assert_eq!(latin.unwrap(), "\"\u{FFFD}\"");
    let broken = answered(json, "{", "{}").await.unwrap_err();
    assert!(broken.contains("good.test:80 is not JSON"), "{broken}");
    let deep = "[".repeat(600) + &"]".repeat(600);
    assert!(
        answered(json, deep, "{}")
            .await
            .unwrap_err()
            .contains("is not JSON")
    );
}

#[tokio::test]
async fn a_status_from_400_on_is_an_error() {
    for (head, expected) in [
        ("400 Nope", "HTTP 400 Bad Request"),
        ("404 <script>secret</script>", "HTTP 404 Not Found"),
        ("418 x", "HTTP 418 I'm a teapot"),
        ("503 x", "HTTP 503 Service Unavailable"),
        ("599 x", "HTTP 599"),
        ("999 x", "HTTP 999"),
    ] {
        let error = answered(head, "body", "{}").await.unwrap_err();
        assert_eq!(error, expected);
    }
    for head in ["200 OK", "204 No Content", "304 Not Modified", "399 x"] {
        assert!(answered(head, "", "{}").await.is_ok(), "{head}");
    }
}

#[tokio::test]
async fn a_response_type_takes_whatever_status() {
    let head = "404 Gone away\nContent-Type: application/json\nX-A: 1\nX-A: 2\nSet-Cookie: a=1\nSet-Cookie: b=2";
    let body = r#"{"error":"no such user"}"#;
    for (wanted, expected) in [
        ("json", r#"{"error":"no such user"}"#.to_owned()),
        ("text", value(r#""{\"error\":\"no such user\"}""#).to_json_string()),
        ("dataUrl", r#""data:application/json;base64,eyJlcnJvciI6Im5vIHN1Y2ggdXNlciJ9""#.into()),
        (
            "response",
            r#"{"status":404,"statusText":"Not Found","url":"http://good.test/x?q","headers":{"content-type":"application/json","x-a":"1, 2","set-cookie":"a=1\nb=2","content-length":"24"},"body":{"error":"no such user"}}"#.into(),
        ),
    ] {
        let options = format!(r#"{{"responseType":"{wanted}"}}"#);
        let found = answered(head, body, &options).await;
        assert_eq!(found.as_deref(), Ok(expected.as_str()), "{wanted}");
    }
    // An answer that says JSON and is not keeps its status.
    let head = "502 x\nContent-Type: application/json";
    let found = answered(head, "<html>", r#"{"responseType":"response"}"#)
        .await
        .unwrap();
    assert!(
        found.contains(r#""status":502"#) && found.contains(r#""body":"<html>""#),
        "{found}"
    );
}

#[tokio::test]
async fn answers_without_body_are_empty_texts() {
    let json = "Content-Type: application/json";
    let head = format!(
        "HTTP/1.1 200 OK\r\n{json}\r\nContent-Length: 10\r\nContent-Encoding: gzip\r\n\r\n"
    );
    let server = Server::always(head).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let answer = with(&fetch, "http://good.test/", r#"{"method":"head"}"#).await;
    assert_eq!(answer.unwrap(), Value::from(""));
    let none = answered(&format!("204 x\n{json}"), "", "{}").await;
    assert_eq!(none.unwrap(), "\"\"");
}

#[tokio::test]
async fn b7_an_empty_body_is_an_empty_text_after_the_effect() {
    let json = "Content-Type: application/json; charset=utf-8";
    for (status, method) in [
        ("200 OK", "DELETE"),
        ("201 Created", "POST"),
        ("202 Accepted", "PUT"),
        ("203 x", "PATCH"),
        ("204 x", "DELETE"),
        ("205 x", "POST"),
        ("206 x", "GET"),
        ("299 x", "GET"),
    ] {
        let head = format!("{status}\n{json}");
        for wanted in ["", r#","responseType":"json""#, r#","responseType":"text""#] {
            let options = format!(r#"{{"method":"{method}"{wanted}}}"#);
            let found = answered(&head, "", &options).await;
            assert_eq!(found.as_deref(), Ok("\"\""), "{status} {options}");
        }
        let options = format!(r#"{{"method":"{method}","responseType":"response"}}"#);
        let found = answered(&head, "", &options).await.unwrap();
        assert!(found.contains(r#""body":"""#), "{found}");
    }
    // Blanks are a body, and a failure does not pass as an empty answer.
    let blank = answered(&format!("200 OK\n{json}"), " ", "{}").await;
    assert!(blank.unwrap_err().contains("is not JSON"));
    let options = r#"{"responseType":"json"}"#;
    let failed = answered(&format!("500 x\n{json}"), "", options).await;
    assert!(failed.unwrap_err().contains("is not JSON"));
}

#[tokio::test]
async fn b5_of_repeated_keys_the_last_counts() {
    let head = "200 OK\nContent-Type: application/json";
    let body = r#"{"a":1,"b":{"x":1,"\u0078":[2]},"a":3}"#;
    for options in ["{}", r#"{"responseType":"json"}"#] {
        let found = answered(head, body, options).await;
        assert_eq!(found.as_deref(), Ok(r#"{"a":3,"b":{"x":[2]}}"#));
    }
    let options = r#"{"responseType":"response"}"#;
    let found = answered(head, body, options).await.unwrap();
    assert!(found.contains(r#""body":{"a":3,"b":{"x":[2]}}"#), "{found}");
}

#[tokio::test]
async fn what_is_no_url_or_option_is_refused() {
    let fetch = TestNet::default().fetch("full");
    for url in [
        "null",
        "1",
        "[]",
        "{}",
        r#""""#,
        r#""/path""#,
        r#""\ud800""#,
    ] {
        let answer = fetch.request(&value(url), &Value::Undefined).await;
        let found = code(answer);
        assert!(
            ["fetch.input", "fetch.url"].contains(&found),
            "{url}: {found}"
        );
    }
    for (options, expected) in [
        ("1", "fetch.input"),
        (r#"{"mode":"cors"}"#, "fetch.input"),
        (r#"{"responseType":"blob"}"#, "fetch.input"),
        (r#"{"responseType":1}"#, "fetch.input"),
        (r#"{"headers":[]}"#, "fetch.input"),
        (r#"{"method":"TRACE"}"#, "fetch.method"),
        (r#"{"method":"CONNECT"}"#, "fetch.method"),
        (r#"{"method":"GET\r\n"}"#, "fetch.method"),
        (r#"{"method":1}"#, "fetch.method"),
        (r#"{"body":"x"}"#, "fetch.body"),
        (r#"{"method":"HEAD","body":"x"}"#, "fetch.body"),
    ] {
        let answer = with(&fetch, "http://good.test/", options).await;
        assert_eq!(code(answer), expected, "{options}");
    }
}

#[test]
fn without_a_runtime_there_is_an_error() {
    let fetch = TestNet::default().fetch("full");
    let mut asked = fetch.fetch("http://good.test/".into(), Value::Undefined);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = asked.as_mut().poll(&mut cx) else {
        panic!("no error");
    };
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[tokio::test]
async fn text_is_the_default() {
    let server = Server::always(answer("200 OK", "plain")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test");
    assert_eq!(
        get(&fetch, "http://good.test").await.unwrap(),
        Value::from("plain")
    );
}
