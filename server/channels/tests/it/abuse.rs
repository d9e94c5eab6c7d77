//! What a hostile client meets: a close code, and a server that goes on.

use crate::harness::{Server, WAIT, say};
use a99_channels::server::Limits;
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

type Socket = tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>;

async fn open(server: &Server) -> Socket {
    let stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connected");
    let request = format!("ws://{}/v1/socket", server.address);
    let request = request.into_client_request().expect("a request");
    tokio_tungstenite::client_async(request, stream)
        .await
        .expect("a socket")
        .0
}

/// The close code after which the connection ends.
async fn code(socket: &mut Socket) -> u16 {
    loop {
        match timeout(WAIT, socket.next()).await.expect("in time") {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("closed without a code: {other:?}"),
        }
    }
}

async fn lives(server: &Server) {
    let client = server.client(&["write:*"]).await;
    client
        .publish(say("general", "alive"), Vec::new())
        .await
        .expect("published");
}

fn limits() -> Limits {
    Limits {
        hello: Duration::from_millis(300),
        max_message_bytes: 1 << 20,
        ..Limits::default()
    }
}

async fn server(folder: &tempfile::TempDir) -> Server {
    Server::start_with(folder.path(), Default::default(), limits()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn first_messages_that_are_no_hello() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder).await;
    let cases: [(&str, u16); 9] = [
        ("", 4002),
        ("hello", 4002),
        ("{}\n{}", 4002),
        ("{\"id\":1,\"method\":\"publish\"}\n{}", 4002),
        ("{\"method\":\"hello\"}\n{}", 4002),
        (
            "{\"id\":1,\"method\":\"hello\"}\n{\"protocol\":\"1\"}",
            4002,
        ),
        ("{\"id\":1,\"method\":\"hello\"}\n{\"protocol\":2}", 4005),
        ("{\"id\":1,\"method\":\"hello\"}\n{\"protocol\":1}", 4001),
        (
            "{\"id\":1,\"method\":\"hello\"}\n{\"protocol\":1,\"token\":\"a99t_x_y\"}",
            4001,
        ),
    ];
    for (first, expected) in cases {
        let mut socket = open(&server).await;
        socket
            .send(Message::Text(first.into()))
            .await
            .expect("sent");
        assert_eq!(code(&mut socket).await, expected, "{first}");
    }
    // Nothing at all.
    let mut socket = open(&server).await;
    assert_eq!(code(&mut socket).await, 4008);
    lives(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_after_the_hello_that_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(&folder).await;
    let token = server.token(&["read:*", "write:*"]);
    let hello =
        format!("{{\"id\":0,\"method\":\"hello\"}}\n{{\"protocol\":1,\"token\":\"{token}\"}}");
    let bad: [Message; 6] = [
        Message::Text("junk".into()),
        Message::Binary(vec![0xff; 100].into()),
        Message::Text("{\"id\":1}\n{}".into()),
        Message::Text("{\"method\":\"no-such\"}\n{}".into()),
        Message::Text("{\"method\":\"credit\"}\n[]".into()),
        Message::Text("{\"id\":1,\"method\":\"publish\",\"bytes\":99}\n{}".into()),
    ];
    for message in bad {
        let mut socket = open(&server).await;
        socket
            .send(Message::Text(hello.clone().into()))
            .await
            .expect("sent");
        socket.send(message.clone()).await.expect("sent");
        assert_eq!(code(&mut socket).await, 4002, "{message:?}");
    }
    // A message beyond the limit: the server reads no more of it.
    let mut socket = open(&server).await;
    socket
        .send(Message::Text(hello.clone().into()))
        .await
        .expect("sent");
    let (mut sink, mut stream) = socket.split();
    // The server closes the socket while this is being written.
    let huge = Message::Binary(vec![b'x'; 64 << 20].into());
    let sending = tokio::spawn(async move { sink.send(huge).await });
    let code: u16 = loop {
        match timeout(WAIT, stream.next()).await.expect("in time") {
            Some(Ok(Message::Close(Some(frame)))) => break frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("closed without a code: {other:?}"),
        }
    };
    assert_eq!(code, 1009);
    drop(sending.await);
    // Requests that are wrong fail alone.
    let mut socket = open(&server).await;
    socket
        .send(Message::Text(hello.into()))
        .await
        .expect("sent");
    drop(socket.next().await);
    let wrong = [
        "{\"id\":1,\"method\":\"fly\"}\n{}",
        "{\"id\":2,\"method\":\"publish\"}\n",
        "{\"id\":3,\"method\":\"publish\"}\n{\"channel\":\"a/b\",\"body\":{\"type\":\"message\",\"content\":\"x\"}}",
        "{\"id\":4,\"method\":\"publish\"}\n{\"channel\":\"c\",\"body\":{\"type\":\"presence\",\"action\":\"leave\"}}",
        "{\"id\":5,\"method\":\"subscribe\"}\n{\"subscription\":1,\"channel\":\"c\",\"after\":5}",
        "{\"id\":6,\"method\":\"publish\"}\n{\"channel\":\"c\",\"body\":{\"type\":\"message\",\"content\":\"x\"},\"attachments\":[{\"mimeType\":\"a/b\",\"size\":18446744073709551615}]}",
        "{\"id\":7,\"method\":\"join\"}\n{\"channel\":\"c\",\"handle\":\"x\",\"type\":\"agent\"}",
    ];
    for text in wrong {
        socket.send(Message::Text(text.into())).await.expect("sent");
        let answer = timeout(WAIT, socket.next()).await.expect("in time");
        let answer = answer
            .expect("open")
            .expect("an answer")
            .into_text()
            .expect("text");
        assert!(answer.contains("\"error\":{\"code\":"), "{text}: {answer}");
        assert!(!answer.contains(&token), "{answer}");
    }
    lives(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_is_bounded_and_disconnected() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        ping: Duration::from_millis(200),
        silence: Duration::from_millis(600),
        ..limits()
    };
    let server = Server::start_with(folder.path(), Default::default(), limits).await;
    let token = server.token(&["read:*", "write:*"]);
    let writer = server.client(&["write:*"]).await;
    for _ in 0..64 {
        let text = "x".repeat(256 << 10);
        writer
            .publish(say("general", text), Vec::new())
            .await
            .expect("published");
    }
    let mut socket = open(&server).await;
    let hello =
        format!("{{\"id\":0,\"method\":\"hello\"}}\n{{\"protocol\":1,\"token\":\"{token}\"}}");
    socket
        .send(Message::Text(hello.into()))
        .await
        .expect("sent");
    let all = "{\"id\":1,\"method\":\"subscribe\"}\n{\"subscription\":1,\"channel\":\"general\",\"after\":0}";
    socket.send(Message::Text(all.into())).await.expect("sent");
    let gone = async {
        while server.channels.connections() > 1 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WAIT, gone).await.expect("the server let it go");
    lives(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_have_a_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let server = Server::start_with(folder.path(), Default::default(), limits).await;
    let token = server.token(&["read:*"]);
    let first = crate::harness::connect(server.address, &token).await;
    let _second = crate::harness::connect(server.address, &token).await;
    let url = server.url();
    let third = a99_channels::client::Client::connect(&url, crate::harness::options(&token)).await;
    assert_eq!(third.expect_err("refused").code(), "channels.too_many");
    drop(first);
    let again = async {
        while server.channels.connections() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(WAIT, again).await.expect("a place");
    drop(crate::harness::connect(server.address, &token).await);
}
