//! Network of hosts: listeners for clients, and channels on a server.

use super::host::Live;
use super::report::Report;
use super::wire::Refusal;
use crate::args::{HostArgs, ListenArgs, ListenerArgs, ServerArgs, TokenOfArgs};
use crate::commands::token as token_command;
use crate::failure::Failure;
use crate::grants::policy_of;
use crate::input::name_of;
use crate::output;
use a99_channels::client::{ChannelTransport, Client, ClientOptions};
use a99_channels::codes::LOST;
use a99_channels::server::{ChannelServer, Limits, Operator};
use a99_push::api::ServerOptions;
use a99_push::pusher::{Pusher, PusherOptions};
use a99_runtime::{AgentError, Host, Transport};
use a99_server::{Authority, ListenOptions, Listener, ServerCode, TlsFiles};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The variable with the token for a server.
const TOKEN: &str = "A99_TOKEN";

/// How long a command waits for a server that may be starting, when it says so, and the pause
/// between attempts.
const STARTING: Duration = Duration::from_secs(5);
const NOTED: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);

/// How long clients may take to disconnect when the server stops.
const STOPPING: Duration = Duration::from_secs(6);

/// Reads a file, with its name in the error.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = std::fs::read(path);
    bytes.map_err(|error| Failure::of_file(&name_of(path), path, &error))
}

/// The token for a server.
fn token(address: &str, args: &TokenOfArgs) -> Result<String, Failure> {
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
    Ok(token)
}

fn authorities(args: &TokenOfArgs) -> Result<Vec<u8>, Failure> {
    let read = args.authorities.as_deref().map(read).transpose()?;
    Ok(read.unwrap_or_default())
}

/// How to reach the HTTP routes of a channel server.
///
/// # Errors
/// No token; files that cannot be read.
pub(super) fn over_http(address: &str, args: &TokenOfArgs) -> Result<ServerOptions, Failure> {
    let mut options = ServerOptions::new(address, token(address, args)?);
    options.authorities = authorities(args)?;
    Ok(options)
}

/// Asks a server that may not answer yet: the same script may just be starting it.
///
/// # Errors
/// Those of the last attempt.
pub(super) async fn patiently<T>(
    address: &str,
    ask: impl AsyncFn() -> Result<T, AgentError>,
) -> Result<T, Refusal> {
    let (began, mut is_noted) = (Instant::now(), false);
    loop {
        let error = match ask().await {
            Err(error) if error.code() == LOST && began.elapsed() < STARTING => error,
            answered => return answered.map_err(Refusal::from),
        };
        if began.elapsed() >= NOTED && !std::mem::replace(&mut is_noted, true) {
            let left = STARTING.as_secs();
            output::note(
                "note",
                &format!("{address}: {error}; waiting up to {left} s for a server to start"),
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Connects to a channel server.
///
/// # Errors
/// No token; those of the client.
pub(super) async fn connect(args: &ServerArgs) -> Result<Client, Failure> {
    connect_to(&args.address, &args.token).await
}

async fn connect_to(address: &str, args: &TokenOfArgs) -> Result<Client, Failure> {
    let mut options = ClientOptions::new(token(address, args)?);
    options.authorities = authorities(args)?;
    let client = patiently(address, async || {
        Client::connect(address, options.clone()).await
    });
    client.await.map_err(Refusal::failure)
}

/// The channels of a server, if the options name one.
///
/// # Errors
/// Those of [`connect`].
pub(super) async fn transport(args: &HostArgs) -> Result<Option<Arc<dyn Transport>>, Failure> {
    let Some(address) = &args.channels else {
        return Ok(None);
    };
    let client = connect_to(address, &args.token).await?;
    Ok(Some(Arc::new(ChannelTransport::new(client))))
}

/// A listener that has its address.
///
/// # Errors
/// An unsafe or taken address; invalid certificates.
pub(super) async fn listener(
    address: SocketAddr,
    args: &ListenerArgs,
    limits: a99_server::Limits,
) -> Result<Listener, Failure> {
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let options = ListenOptions {
        address,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        behind_proxy: args.behind_proxy,
        hosts: args.names.clone(),
        origins: args.origins.clone(),
        limits,
    };
    Listener::bind(options)
        .await
        .map_err(|error| match error.code() {
            ServerCode::UnsafeAddress => {
                let help = "name a certificate with `--tls-cert` and `--tls-key`; or write \
                            `--behind-proxy` if a proxy in front of it encrypts; or listen on \
                            127.0.0.1";
                Failure::coded(error.code().name(), error.to_string(), help)
            }
            _ => token_command::failure(error),
        })
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
        let path = token_command::tokens_file(args.tokens.as_deref())?;
        let authority = Authority::open(path).map_err(token_command::failure)?;
        let limits = Limits::default();
        let limits = a99_server::Limits {
            connections: limits.connections + 1_024,
            max_body_bytes: limits.max_message_bytes,
            ..a99_server::Limits::default()
        };
        let listener = listener(address, &args.listener, limits).await?;
        let inspect = Inspect {
            is_on: !args.no_inspect,
            has_code: listener.address().ip().is_loopback() && !args.listener.behind_proxy,
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
        let pusher = pusher.map_err(|error| Refusal::from(error).failure())?;
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
