//! The plain case: requests, and tokens.

use crate::client::{app, code, rest, start, status};
use a99_server::{
    Action, ApiError, Authority, ListenOptions, Listener, NewToken, Scopes, ServerCode, ServerError,
};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::HeaderMap;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt as _;

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
async fn handlers_see_the_address_of_the_peer_and_errors_are_json() {
    let peer = get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string());
    let refused = async || ServerError::forbidden(Action::Write, "general");
    let app = Router::new()
        .route("/peer", peer)
        .route("/refused", get(refused));
    let running = start(ListenOptions::default(), app).await;
    let mut stream = running.open().await;
    let own = stream.local_addr().unwrap().to_string();
    let request = running.request("GET /peer", "");
    stream.write_all(request.as_bytes()).await.unwrap();
    let response = rest(&mut stream).await;
    assert!(response.ends_with(&format!("\r\n\r\n{own}")), "{response}");
    let response = running.ask("GET /refused", "").await;
    assert_eq!(
        (status(&response), code(&response)),
        (403, "server.forbidden".to_owned())
    );
    assert!(
        response.contains("content-type: application/json"),
        "{response}"
    );
}

#[test]
fn errors_of_the_file_do_not_name_it_to_clients() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    std::fs::write(&path, "{").unwrap();
    let error = Authority::open(&path).unwrap_err();
    assert!(error.to_string().contains("tokens.json"), "{error}");
    let shown = ApiError::from(error);
    assert_eq!(
        (shown.status.as_u16(), &*shown.code),
        (503, "server.bad_tokens_file")
    );
    assert!(!format!("{shown:?}").contains("tokens.json"), "{shown:?}");
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
    let grant = authority.check_header(&headers).unwrap();
    let without = authority.check_header(&HeaderMap::new()).unwrap_err();
    assert_eq!(without.code(), ServerCode::Unauthorized);
    assert_eq!((&*grant.id, &*grant.name), (&*row.id, "ci"));
    assert!(grant.allows(Action::Read, "general") && grant.allows(Action::Write, "team-a"));
    assert!(!grant.allows(Action::Write, "general") && !grant.allows(Action::Read, "team-a"));
    assert!(authority.is_valid(&grant));
    authority.revoke(&row.id).unwrap();
    assert!(!authority.is_valid(&grant));
    assert!(authority.check(&token).is_err());
}
