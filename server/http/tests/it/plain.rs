//! The plain case: requests, and tokens.

use crate::client::{app, start, status};
use a99_server::{Action, Authority, ListenOptions, Listener, NewToken, Scopes, bearer};
use http::HeaderMap;

#[tokio::test]
async fn requests_are_served_until_the_stop() {
    let running = start(ListenOptions::default(), app()).await;
    let response = running.ask("GET /", "").await;
    assert!(
        response.starts_with("HTTP/1.1 200 ") && response.ends_with("here"),
        "{response}"
    );
    let response = running.ask("POST /count", "12345").await;
    assert!(response.ends_with("\r\n\r\n5"), "{response}");
    // More than axum takes by default.
    let response = running.ask("POST /count", &"x".repeat(3 << 20)).await;
    assert!(response.ends_with("\r\n\r\n3145728"), "{response}");
    assert_eq!(status(&running.ask("GET /absent", "").await), 404);
    let address = running.address;
    running.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_listener_knows_its_url() {
    let listener = Listener::bind(ListenOptions::default()).await.unwrap();
    let port = listener.address().port();
    assert_ne!(port, 0);
    assert_eq!(listener.url(), format!("http://127.0.0.1:{port}"));
}

#[test]
fn a_token_becomes_a_grant() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::open(folder.path().join("a99/tokens.json")).unwrap();
    let new = NewToken {
        name: "ci".to_owned(),
        scopes: Scopes::parse(&["read:general", "write:team-*"]).unwrap(),
        lifetime: None,
    };
    let (token, row) = authority.issue(&new).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let grant = authority.check(bearer(&headers).unwrap()).unwrap();
    assert_eq!((&*grant.id, &*grant.name), (&*row.id, "ci"));
    assert!(grant.allows(Action::Read, "general") && grant.allows(Action::Write, "team-a"));
    assert!(!grant.allows(Action::Write, "general") && !grant.allows(Action::Read, "team-a"));
    assert!(authority.is_valid(&grant));
    authority.revoke(&row.id).unwrap();
    assert!(!authority.is_valid(&grant));
    assert!(authority.check(&token).is_err());
}
