//! Network of hosts: listeners for clients, and channels on a server.

use super::host::Live;
use super::report::Report;
use crate::args::{HostArgs, ListenArgs, TokenOfArgs};
use crate::commands::token;
use crate::failure::Failure;
use crate::grants::policy_of;
use a99_channels::client::{ChannelTransport, Client, ClientOptions};
use a99_channels::server::{ChannelServer, Limits, Operator};
use a99_push::pusher::{Pusher, PusherOptions};
use a99_runtime::{Host, Transport};
use a99_server::{Authority, ListenOptions, Listener, ServerCode, TlsFiles};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The variable with the token for a server.
const TOKEN: &str = "A99_TOKEN";

/// How long clients may take to disconnect when the server stops.
const STOPPING: Duration = Duration::from_secs(6);

/// Reads a file, with its name in the error.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = std::fs::read(path);
    bytes.map_err(|error| Failure::of_file("cannot be read", path, &error))
}

/// Connects to a channel server.
///
/// # Errors
/// No token; those of the client.
pub(super) async fn connect(address: &str, args: &TokenOfArgs) -> Result<Client, Failure> {
    let token = match &args.token_file {
        Some(path) => String::from_utf8_lossy(&read(path)?).trim().to_owned(),
        None => std::env::var(TOKEN).unwrap_or_default(),
    };
    if token.is_empty() {
        let text = format!("the server {address} needs a token");
        let help =
            format!("set {TOKEN}, or name a file with `--token-file`; `a99 token new` makes one");
        return Err(Failure::coded("server.unauthorized", text, help));
    }
    let mut options = ClientOptions::new(token);
    if let Some(path) = &args.authorities {
        options.authorities = read(path)?;
    }
    let client = Client::connect(address, options).await;
    client.map_err(|error| super::wire::Refusal::from(error).failure())
}

/// The channels of a server, if the options name one.
///
/// # Errors
/// Those of [`connect`].
pub(super) async fn transport(args: &HostArgs) -> Result<Option<Arc<dyn Transport>>, Failure> {
    let Some(address) = &args.channels else {
        return Ok(None);
    };
    let client = connect(address, &args.token).await?;
    Ok(Some(Arc::new(ChannelTransport::new(client))))
}

/// A listener that has its address, if the options name one.
pub(super) struct Network(Option<Door>);

struct Door {
    listener: Listener,
    authority: Authority,
    inspect: Inspect,
    metrics_open: bool,
    push: Option<PusherOptions>,
}

/// The page of the server.
#[derive(Copy, Clone)]
struct Inspect {
    is_on: bool,
    /// Whether its link has a code: only if no other machine reaches the server.
    has_code: bool,
    may_write: bool,
}

/// A listener that serves.
pub(super) struct Served(Option<Serving>);

struct Serving {
    server: ChannelServer,
    pusher: Option<Pusher>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Network {
    /// # Errors
    /// An unsafe or taken address; invalid tokens or certificates.
    pub(super) async fn of(args: &HostArgs) -> Result<Network, Failure> {
        match args.listen {
            Some(address) => Network::at(address, &args.listening).await,
            None => Ok(Network(None)),
        }
    }

    /// # Errors
    /// An unsafe or taken address; invalid tokens or certificates.
    pub(super) async fn at(address: SocketAddr, args: &ListenArgs) -> Result<Network, Failure> {
        if args.metrics_open && !address.ip().is_loopback() {
            let text =
                format!("`--metrics-open` would give the metrics to all that reach {address}");
            let help = "leave it out, and read them with a token: `a99 token new --scope 'read:*'`";
            return Err(Failure::coded("server.unsafe_address", text, help));
        }
        let push = args.push.as_ref().map(PusherOptions::new);
        let policy = args.push_to.as_deref().map(policy_of).transpose();
        let policy = policy.map_err(|error| Failure::about("--push-to", error))?;
        let push = push.map(|options| match policy {
            Some(policy) => PusherOptions { policy, ..options },
            None => options,
        });
        let path = token::tokens_file(args.tokens.as_deref())?;
        let authority = Authority::open(path).map_err(token::failure)?;
        let tls = args.tls_cert.clone().zip(args.tls_key.clone());
        let limits = Limits::default();
        let options = ListenOptions {
            address,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            behind_proxy: args.behind_proxy,
            hosts: args.names.clone(),
            origins: args.origins.clone(),
            limits: a99_server::Limits {
                connections: limits.connections + 1_024,
                max_body_bytes: limits.max_message_bytes,
                ..a99_server::Limits::default()
            },
        };
        let listener = Listener::bind(options)
            .await
            .map_err(|error| match error.code() {
                ServerCode::UnsafeAddress => {
                    let help = "name a certificate with `--tls-cert` and `--tls-key`; or write \
                            `--behind-proxy` if a proxy in front of it encrypts; or listen on \
                            127.0.0.1";
                    Failure::coded(error.code().name(), error.to_string(), help)
                }
                _ => token::failure(error),
            })?;
        let inspect = Inspect {
            is_on: !args.no_inspect,
            has_code: listener.address().ip().is_loopback() && !args.behind_proxy,
            may_write: args.inspect_write,
        };
        Ok(Network(Some(Door {
            listener,
            authority,
            inspect,
            metrics_open: args.metrics_open,
            push,
        })))
    }

    /// Serves the channels of a host of agents, and what only it knows.
    ///
    /// # Errors
    /// The file of pushed agents cannot be used.
    pub(super) fn serve_live(self, live: &Arc<Live>) -> Result<Served, Failure> {
        let operator = Arc::clone(live) as Arc<dyn Operator>;
        self.open(&live.host, live.report, Some(operator))
    }

    /// Serves the channels of a host.
    ///
    /// # Errors
    /// The file of pushed agents cannot be used.
    pub(super) fn serve(self, host: &Host, report: Report) -> Result<Served, Failure> {
        self.open(host, report, None)
    }

    fn open(
        self,
        host: &Host,
        report: Report,
        operator: Option<Arc<dyn Operator>>,
    ) -> Result<Served, Failure> {
        let Some(door) = self.0 else {
            return Ok(Served(None));
        };
        let pusher = door.push.map(|options| Pusher::open(host.clone(), options));
        let pusher = pusher.transpose();
        let pusher = pusher.map_err(|error| super::wire::Refusal::from(error).failure())?;
        let (listener, authority) = (door.listener, door.authority);
        let url = listener.url();
        report.did("listening", &[("address", url.as_str().into())]);
        tokio::spawn(authority.watch_file());
        let admin = pusher
            .as_ref()
            .map(|pusher| pusher.router(authority.clone()));
        let server = ChannelServer::new(host.clone(), authority, Limits::default());
        if let Some(operator) = operator {
            server.inspector().operate(operator);
        }
        if door.inspect.is_on {
            let page = server.inspector();
            page.turn_on();
            let link = door
                .inspect
                .has_code
                .then(|| page.link(door.inspect.may_write));
            // Without randomness there is no code; the page then asks for a token.
            let path = link
                .and_then(Result::ok)
                .unwrap_or_else(|| "/inspect".to_owned());
            report.did("inspector", &[("link", format!("{url}{path}").into())]);
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let router = server
            .router()
            .merge(server.metrics_router(door.metrics_open))
            .merge(admin.unwrap_or_default());
        let serving = listener.serve(router, async {
            // Dropping the sender stops it too.
            drop(stopped.await);
        });
        let task = tokio::spawn(async move {
            if let Err(error) = serving.await {
                let members = [
                    ("code", error.code().name().into()),
                    ("message", error.to_string().into()),
                ];
                report.did("refused", &members);
            }
        });
        Ok(Served(Some(Serving {
            server,
            pusher,
            stop,
            task,
        })))
    }
}

impl Served {
    /// Disconnects the clients.
    pub(super) async fn stop(self) {
        let Some(serving) = self.0 else { return };
        if let Some(pusher) = serving.pusher {
            // Its last checkpoints: without them some events come again, as duplicates.
            drop(tokio::time::timeout(STOPPING, pusher.stop()).await);
        }
        serving.server.stop();
        drop(serving.stop);
        drop(tokio::time::timeout(STOPPING, serving.task).await);
    }
}
