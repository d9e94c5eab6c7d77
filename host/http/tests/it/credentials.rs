//! Credentials of the host's: sent to their origin, and shown to nobody.

use crate::network::{code, with};
use crate::server::{Server, ok, to};
use a99_capabilities::Secret;
use a99_http::{FetchCode, HttpFetch, Policy};

fn builder(ports: &[u16]) -> a99_http::Builder {
    let rules: Vec<String> = ports.iter().map(|p| format!("127.0.0.1:{p}")).collect();
    let text = match rules.is_empty() {
        true => "off".to_owned(),
        false => format!("allow:{}", rules.join(",")),
    };
    let policy: Policy = text.parse().unwrap();
    HttpFetch::builder().policy(policy)
}

#[tokio::test]
async fn they_go_to_their_origin_alone() {
    let other = Server::new(|_| ok("other")).await;
    let place = format!("http://127.0.0.1:{}/end", other.port);
    let server = Server::new(move |request| match request.contains(" /on ") {
        true => to(302, &place),
        false => ok("own"),
    })
    .await;
    let origin = format!("http://127.0.0.1:{}", server.port);
    let secret = Secret::new("Bearer s3cret");
    let fetch = builder(&[server.port, other.port])
        .credential(&origin, "Authorization", &secret)
        .build()
        .unwrap();
    // What a program says in its place does not count.
    let options = r#"{"headers":{"authorization":"Bearer mine"}}"#;
    for path in ["/", "/on"] {
        with(&fetch, &format!("{origin}{path}"), options)
            .await
            .unwrap();
    }
    for request in server.requests() {
        assert!(
            request.contains("authorization: Bearer s3cret"),
            "{request}"
        );
        assert!(!request.contains("mine"), "{request}");
    }
    let seen = other.requests();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].contains("authorization"), "{}", seen[0]);
    // Not for another tenant.
    let tenant = fetch.for_tenant(fetch.policy());
    with(&tenant, &origin, "{}").await.unwrap();
    assert!(!server.requests().last().unwrap().contains("s3cret"));
    assert!(!format!("{fetch:?} {secret} {secret:?}").contains("s3cret"));
}

/// A server cannot have requests made in the name of the host: not by sending a program
/// there, nor by sending back one that came from there.
#[tokio::test]
async fn n05_other_origins_do_not_get_them_used() {
    let place: std::sync::Arc<std::sync::OnceLock<String>> = Default::default();
    let back = std::sync::Arc::clone(&place);
    let evil = Server::new(move |_| to(302, &format!("{}/delete", back.get().unwrap()))).await;
    let out = format!("http://127.0.0.1:{}/", evil.port);
    let server = Server::new(move |request| match request.contains(" /out ") {
        true => to(302, &out),
        false => ok("own"),
    })
    .await;
    let origin = format!("http://127.0.0.1:{}", server.port);
    place.set(origin.clone()).unwrap();
    let fetch = builder(&[server.port, evil.port])
        .credential(&origin, "authorization", &Secret::new("s3cret"))
        .build()
        .unwrap();
    for start in [
        format!("http://127.0.0.1:{}/", evil.port),
        format!("{origin}/out"),
    ] {
        with(&fetch, &start, "{}").await.unwrap();
        let last = server.requests().pop().unwrap();
        assert!(last.starts_with("GET /delete "), "{last}");
        assert!(!last.contains("s3cret"), "{last}");
    }
    assert!(evil.requests().iter().all(|r| !r.contains("s3cret")));
    // A redirect within the origin keeps it.
    with(&fetch, &origin, "{}").await.unwrap();
    assert!(server.requests().pop().unwrap().contains("s3cret"));
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_when_built() {
    let secret = Secret::new("s3cret");
    for (origin, name, value) in [
        ("https://api.example.com/v1", "authorization", &secret),
        ("https://api.example.com/?a", "authorization", &secret),
        ("https://user@api.example.com", "authorization", &secret),
        ("http://api.example.com", "authorization", &secret),
        ("http://10.0.0.1", "authorization", &secret),
        ("ftp://api.example.com", "authorization", &secret),
        ("api.example.com", "authorization", &secret),
        ("https://api.example.com", "host", &secret),
        ("https://api.example.com", "proxy-authorization", &secret),
        ("https://api.example.com", "a b", &secret),
        (
            "https://api.example.com",
            "authorization",
            &Secret::new("s3cret\r\nx: y"),
        ),
    ] {
        let built = builder(&[]).credential(origin, name, value).build();
        let error = built.err().unwrap_or_else(|| panic!("{origin} {name}"));
        assert_eq!(
            error.code(),
            FetchCode::Credentials,
            "{origin} {name}: {error}"
        );
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    for origin in [
        "https://api.example.com",
        "https://api.example.com:8443/",
        "http://127.0.0.1:80",
    ] {
        let built = builder(&[])
            .credential(origin, "x-api-key", &secret)
            .build();
        assert!(built.is_ok(), "{origin}: {built:?}");
    }
    let denied = builder(&[]).build().unwrap();
    let answer = with(&denied, "http://127.0.0.1:1/", "{}").await;
    assert_eq!(code(answer), "fetch.denied");
}

/// Of two under one name nobody could say which one goes; an empty one is a mistake.
#[test]
fn an_origin_gets_one_of_each_name_and_none_that_is_empty() {
    let secret = Secret::new("s3cret");
    let one = || HttpFetch::builder().credential("https://a.test", "X-Key", &secret);
    for (origin, name, part) in [
        ("https://a.test", "x-key", "two credentials named x-key"),
        ("https://A.test:443/", "X-KEY", "https://a.test:443"),
    ] {
        let builder = one().credential(origin, name, &Secret::new("0ther"));
        let told = builder.failed().unwrap().to_string();
        assert!(told.contains(part) && !told.contains("s3cret"), "{told}");
        let error = builder.build().map(drop).unwrap_err();
        assert_eq!(error.code(), FetchCode::Credentials);
    }
    for (origin, name) in [("https://b.test", "x-key"), ("https://a.test", "y-key")] {
        let builder = one().credential(origin, name, &secret);
        assert_eq!(builder.failed(), None, "{origin} {name}");
    }
    let empty = HttpFetch::builder().credential("https://a.test", "x", &Secret::new(""));
    assert!(empty.failed().unwrap().to_string().contains("is empty"));
}
