//! Conformance of the HTTP target with the suite for all: a receiver whose store is closed after
//! each request.

use crate::harness::{SECRET, Server, listening_at, receiver_of};
use a99_push::pusher::{Pusher, PusherOptions, Registration};
use a99_push::reception::{Reception, ReceptionOptions};
use a99_push::transport::{HTTP, ServerOptions};
use a99_runtime::suite::{self, Done, Target};
use a99_runtime::{AgentError, AgentKey, Host};
use a99_server::Listener;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// What runs while the receiver does.
struct Receiver {
    reception: Reception,
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

struct Pushed {
    folder: PathBuf,
    address: SocketAddr,
    channels: Option<(Server, Pusher)>,
    receiver: Option<Receiver>,
}

impl Pushed {
    fn new(folder: &Path) -> Pushed {
        Pushed {
            folder: folder.to_owned(),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            channels: None,
            receiver: None,
        }
    }

    async fn serve(&mut self) {
        let options = suite::store_options(true);
        let server = Server::start_with(&self.folder, suite::host(), options).await;
        let options = PusherOptions {
            policy: "allow:127.0.0.1:1-65535".parse().expect("a policy"),
            first_pause: Duration::from_millis(5),
            max_pause: Duration::from_millis(50),
            max_attempts: 10_000,
            ..PusherOptions::new(self.folder.join("push.json"))
        };
        let pusher = Pusher::open(server.host.clone(), options).expect("a pusher");
        self.channels = Some((server, pusher));
    }

    fn pusher(&self) -> &Pusher {
        let channels = self.channels.as_ref();
        &channels.expect("it was started").1
    }
}

impl Target for Pushed {
    fn mode(&self) -> &'static str {
        HTTP
    }

    fn channels(&self) -> Option<Host> {
        self.channels
            .as_ref()
            .map(|(server, _)| server.host.clone())
    }

    fn host(&self) -> Option<Host> {
        None
    }

    fn store(&self) -> PathBuf {
        self.folder.join("agents.db")
    }

    fn start(&mut self) -> Done<'_> {
        Box::pin(async move {
            if self.channels.is_none() {
                self.serve().await;
            }
            let (server, _) = self.channels.as_ref().expect("it was started");
            let options = ReceptionOptions {
                store_options: suite::store_options(false),
                idle: Duration::ZERO,
                ..ReceptionOptions::new(self.store())
            };
            let of_server = ServerOptions {
                look: Duration::from_millis(50),
                ..ServerOptions::new(format!("http://{}", server.address), &server.token)
            };
            let reception = receiver_of(options, of_server, || suite::agents(suite::host()));
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            let (stop, stopping) = oneshot::channel::<()>();
            let (ended, stopped) = oneshot::channel();
            let (address, router) = (self.address, reception.router());
            let serving = runtime.spawn(async move {
                let listener = loop {
                    match Listener::bind(listening_at(address)).await {
                        Ok(listener) => break listener,
                        // The receiver before it may still have the address.
                        Err(_) => sleep(Duration::from_millis(5)).await,
                    }
                };
                let address = listener.address();
                tokio::spawn(async move {
                    let served = listener.serve(router, async { drop(stopping.await) });
                    served.await.expect("served");
                    let _ = ended.send(());
                });
                address
            });
            self.address = serving.await.expect("an address");
            self.receiver = Some(Receiver {
                reception,
                runtime,
                stop,
                stopped,
            });
            Ok(())
        })
    }

    fn stop(&mut self) -> Done<'_> {
        Box::pin(async move {
            if let Some(receiver) = self.receiver.take() {
                drop(receiver.stop);
                drop(receiver.stopped.await);
                receiver.reception.close().await;
                receiver.runtime.shutdown_background();
            }
            Ok(())
        })
    }

    fn kill(&mut self) -> Done<'_> {
        Box::pin(async move {
            if let Some(receiver) = self.receiver.take() {
                receiver.runtime.shutdown_background();
            }
            Ok(())
        })
    }

    fn invite<'a>(&'a self, key: &'a AgentKey, config: Value) -> Done<'a> {
        Box::pin(async move {
            let registration = Registration {
                agent: key.clone(),
                url: format!("http://{}", self.address),
                secret: SECRET.to_owned(),
                ephemeral: config["ephemeral"] == true,
                config,
                types: Vec::new(),
            };
            self.pusher().add(registration).await?;
            loop {
                let all = self.pusher().list().await?;
                let status = all.into_iter().find(|status| status.agent == *key);
                let status = status.expect("a registered agent");
                if status.is_ready {
                    return Ok(());
                }
                if let Some((code, message)) = status.last_error {
                    self.pusher().remove(key).await?;
                    return Err(AgentError::new(code, message));
                }
                sleep(Duration::from_millis(5)).await;
            }
        })
    }

    fn remove<'a>(&'a self, key: &'a AgentKey) -> Done<'a> {
        Box::pin(async move { self.pusher().remove(key).await.map(drop) })
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            receiver.runtime.shutdown_background();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = include_str!("../../../../docs/targets.md");
    let cannot = suite::declared(page, "HTTP push").expect("a table");
    let run = suite::run(folder.path(), &cannot, |folder| {
        Box::new(Pushed::new(folder))
    });
    run.await.unwrap_or_else(|finding| panic!("{finding}"));
}
