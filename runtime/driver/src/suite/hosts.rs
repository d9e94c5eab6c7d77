//! Targets made of a host: agents beside the channels, or over a transport.

use super::{Done, LIMIT, NO_HOST, Target, host, store_options};
use crate::error::AgentError;
use crate::host::{Host, HostBuilder};
use crate::transport::Transport;
use a99_runtime_engine::{BoxFuture, StoreCode};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

/// Makes the connection of a new host of agents.
pub type Connect = Arc<dyn Fn() -> BoxFuture<'static, Arc<dyn Transport>> + Send + Sync>;

type Serve = Arc<dyn Fn(Host, PathBuf) -> BoxFuture<'static, Connect> + Send + Sync>;
type Define = Arc<dyn Fn(HostBuilder, &Path) -> HostBuilder + Send + Sync>;

/// A target made of a host of agents.
pub struct Hosts {
    mode: &'static str,
    folder: PathBuf,
    define: Define,
    serve: Option<Serve>,
    on_kill: fn(&Path),
    /// The connections to the host of the channels, once it serves.
    connect: Option<Connect>,
    /// The host of the channels, where it has no agents.
    channels: Option<(SqliteRuntime, Host)>,
    agents: Option<(SqliteRuntime, Host, Runtime)>,
}

impl Hosts {
    /// A host with channels and agents. `define` adds the agents.
    pub fn embedded(
        mode: &'static str,
        folder: &Path,
        define: impl Fn(HostBuilder, &Path) -> HostBuilder + Send + Sync + 'static,
    ) -> Hosts {
        Hosts::new(mode, folder, Arc::new(define), None)
    }

    /// A host of agents over a transport. `serve` makes channels reachable in a folder, and gives
    /// what connects each host of the agents to them.
    pub fn over(
        mode: &'static str,
        folder: &Path,
        serve: impl Fn(Host, PathBuf) -> BoxFuture<'static, Connect> + Send + Sync + 'static,
    ) -> Hosts {
        let define: Define = Arc::new(|builder, _| super::agents(builder));
        Hosts::new(mode, folder, define, Some(Arc::new(serve)))
    }

    fn new(mode: &'static str, folder: &Path, define: Define, serve: Option<Serve>) -> Hosts {
        Hosts {
            mode,
            folder: folder.to_owned(),
            define,
            serve,
            on_kill: |_| {},
            connect: None,
            channels: None,
            agents: None,
        }
    }

    /// What also ends when the target is killed.
    #[must_use]
    pub fn on_kill(mut self, on_kill: fn(&Path)) -> Hosts {
        self.on_kill = on_kill;
        self
    }

    async fn ended((store, host): (SqliteRuntime, Host)) -> Result<(), AgentError> {
        host.drain(LIMIT).await?;
        drop(host);
        let closed = tokio::task::spawn_blocking(move || store.close());
        Ok(closed.await.unwrap_or(Ok(()))?)
    }

    /// The host of the channels without agents.
    async fn serve_channels(&mut self) -> Result<Host, AgentError> {
        let store = opened(&self.folder.join("channels.db"), &store_options(true)).await?;
        let host = host().start(Arc::new(store.clone())).await?;
        self.channels = Some((store, host.clone()));
        Ok(host)
    }
}

/// A store, once the owner before has left it.
async fn opened(path: &Path, options: &StoreOptions) -> Result<SqliteRuntime, AgentError> {
    let end = Instant::now() + LIMIT;
    loop {
        match SqliteRuntime::open(path, options.clone()) {
            Err(error) if error.code() == StoreCode::Locked && Instant::now() < end => {
                sleep(Duration::from_millis(5)).await;
            }
            opened => return Ok(opened?),
        }
    }
}

impl Target for Hosts {
    fn mode(&self) -> &'static str {
        self.mode
    }

    fn channels(&self) -> Option<Host> {
        let channels = self.channels.as_ref().map(|(_, host)| host);
        channels
            .or(self.agents.as_ref().map(|(_, host, _)| host))
            .cloned()
    }

    fn host(&self) -> Option<Host> {
        self.agents.as_ref().map(|(_, host, _)| host.clone())
    }

    fn store(&self) -> PathBuf {
        self.folder.join(match self.serve {
            Some(_) => "agents.db",
            None => "channels.db",
        })
    }

    fn start(&mut self) -> Done<'_> {
        Box::pin(async move {
            let connect = match (&self.serve, &self.connect) {
                (None, _) => {
                    if let Some(people) = self.channels.take() {
                        Hosts::ended(people).await?;
                    }
                    None
                }
                (Some(_), Some(connect)) => Some(Arc::clone(connect)),
                (Some(serve), None) => {
                    let serve = Arc::clone(serve);
                    let channels = self.serve_channels().await?;
                    let connect = serve(channels, self.folder.clone()).await;
                    self.connect = Some(Arc::clone(&connect));
                    Some(connect)
                }
            };
            let store = opened(&self.store(), &store_options(connect.is_none())).await?;
            let mut runtime = Builder::new_multi_thread();
            let runtime = runtime.worker_threads(1).enable_all().build();
            let lost = |error: std::io::Error| AgentError::new(NO_HOST, error.to_string());
            let runtime = runtime.map_err(lost)?;
            let (agents, builder) = (Arc::new(store.clone()), (self.define)(host(), &self.folder));
            let started = runtime.spawn(async move {
                match connect {
                    Some(connect) => builder.start_over(agents, connect().await).await,
                    None => builder.start(agents).await,
                }
            });
            let failed = |_| Err(AgentError::new(NO_HOST, "the host does not start"));
            match started.await.unwrap_or_else(failed) {
                Ok(host) => self.agents = Some((store, host, runtime)),
                Err(error) => {
                    runtime.shutdown_background();
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    fn serve(&mut self) -> Done<'_> {
        Box::pin(async move {
            if self.channels.is_none() {
                self.serve_channels().await?;
            }
            Ok(())
        })
    }

    fn stop(&mut self) -> Done<'_> {
        Box::pin(async move {
            if let Some((store, host, runtime)) = self.agents.take() {
                let ended = Hosts::ended((store, host)).await;
                runtime.shutdown_background();
                ended?;
            }
            Ok(())
        })
    }

    fn kill(&mut self) -> Done<'_> {
        Box::pin(async move {
            if let Some((_, _, runtime)) = self.agents.take() {
                runtime.shutdown_background();
            }
            (self.on_kill)(&self.folder);
            Ok(())
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Some((_, _, runtime)) = self.agents.take() {
            runtime.shutdown_background();
        }
    }
}
