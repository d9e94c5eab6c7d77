//! Receivers that are killed at any moment.

use crate::harness::{SECRET, Server, answers, key, listening_at, receiver, until};
use a99_push::pusher::{Pusher, PusherOptions, Registration};
use a99_push::reception::ReceptionOptions;
use a99_server::Listener;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the process of a receiver finds its folder, its address, and the channel server's
/// address and token.
const SETTINGS: &str = "A99_TEST_RECEIVER";

/// The process of a receiver.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process of another test"]
async fn process() {
    let settings = std::env::var(SETTINGS).expect("settings");
    let settings: Vec<&str> = settings.split('\n').collect();
    let [folder, address, server, token] = settings[..] else {
        panic!("four settings: {settings:?}");
    };
    let options = ReceptionOptions::new(Path::new(folder).join("agents.db"));
    let reception = receiver(options, server.parse().expect("an address"), token);
    let listening = listening_at(address.parse().expect("an address"));
    let listener = Listener::bind(listening).await.expect("a listener");
    let served = listener.serve(reception.router(), std::future::pending());
    served.await.expect("served");
}

fn start(folder: &Path, address: SocketAddr, server: &Server) -> Child {
    let settings = format!(
        "{}\n{address}\n{}\n{}",
        folder.display(),
        server.address,
        server.token
    );
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "killed::process", "--ignored"])
        .env(SETTINGS, settings)
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_counts_once_while_receivers_are_killed() {
    const MESSAGES: usize = 80;
    const KILLS: usize = 6;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let mut process = start(folder.path(), address, &server);
    let options = PusherOptions {
        policy: "allow:127.0.0.1:1-65535".parse().expect("a policy"),
        first_pause: Duration::from_millis(5),
        max_pause: Duration::from_millis(50),
        max_attempts: 10_000,
        ..PusherOptions::new(folder.path().join("push.json"))
    };
    let pusher = Pusher::open(server.host.clone(), options).expect("a pusher");
    let registration = Registration {
        agent: key(),
        url: format!("http://{address}"),
        secret: SECRET.to_owned(),
        config: json!({}),
        types: Vec::new(),
        ephemeral: false,
    };
    pusher.add(registration).await.expect("added");
    let mut killed = 0;
    for n in 1..=MESSAGES {
        server.say(&format!("m{n}")).await;
        if n % (MESSAGES / KILLS) != 0 || killed == KILLS {
            continue;
        }
        // An event under which a process dies three times would be given up.
        until("some more are answered", async || {
            server.said().await.len() + 5 > n
        })
        .await;
        let text = format!("m{}", n + 1);
        let next = server.say(&text);
        let moment = Duration::from_millis(killed as u64 * 3);
        let (_, ()) = tokio::join!(next, tokio::time::sleep(moment));
        process.kill().expect("killed");
        process.wait().expect("ended");
        killed += 1;
        process = start(folder.path(), address, &server);
    }
    let published = MESSAGES + killed;
    until("all are answered", async || {
        server.said().await.len() >= published
    })
    .await;
    until("all are acknowledged", async || {
        pusher.list().await.expect("a list")[0].lag == 0
    })
    .await;
    pusher.stop().await.expect("stopped");
    process.kill().expect("killed");
    process.wait().expect("ended");
    let numbers = |text: &String| text.split_once(':').map(|(n, _)| n.to_owned());
    let said = server.said().await;
    let counted: Vec<_> = said.iter().filter_map(numbers).collect();
    let wanted = answers(published);
    assert_eq!(
        counted,
        wanted.iter().filter_map(numbers).collect::<Vec<_>>()
    );
    assert_eq!(killed, KILLS);
}
