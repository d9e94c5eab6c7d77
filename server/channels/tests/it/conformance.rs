//! Conformance of the WebSocket target with the suite for all.

use crate::harness::{connect, token};
use a99_channels::client::{ChannelTransport, WEBSOCKET};
use a99_channels::server::{ChannelServer, Limits};
use a99_runtime::suite::{self, Connect, Hosts};
use a99_runtime::{Host, Transport};
use a99_server::{Authority, ListenOptions, Listener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

async fn serve(channels: Host, folder: PathBuf) -> Connect {
    let authority = Authority::open(folder.join("tokens.json")).expect("tokens");
    let listener = Listener::bind(ListenOptions::default()).await;
    let listener = listener.expect("a listener");
    let (address, token) = (
        listener.address(),
        token(&authority, "agents", &["read:*", "host:*", "write:*"]),
    );
    let server = ChannelServer::new(channels, authority, Limits::default());
    let served = listener.serve(server.router(), std::future::pending());
    tokio::spawn(async move { served.await.expect("served") });
    Arc::new(move || {
        let token = token.clone();
        Box::pin(async move {
            let transport = ChannelTransport::new(connect(address, &token).await);
            Arc::new(transport) as Arc<dyn Transport>
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = include_str!("../../../../docs/targets.md");
    let cannot = suite::declared(page, "WebSocket").expect("a table");
    let run = suite::run(folder.path(), &cannot, |folder: &Path| {
        Box::new(Hosts::over(WEBSOCKET, folder, |host, folder| {
            Box::pin(serve(host, folder))
        }))
    });
    run.await.unwrap_or_else(|finding| panic!("{finding}"));
}
