//! Arguments of `channels`, and of commands that listen on the network or reach a server.

use super::agent::DurabilityArg;
use super::push::PushArgs;
use super::{EXIT_CODES, StorePlace};
use crate::duration::time;
use clap::{Args, Subcommand, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const SERVE_EXAMPLE: &str = "\
Example:
  export A99_TOKEN=$(a99 token new --name me --scope admin)
  a99 channels serve &
  a99 channels send ws://127.0.0.1:7420 general 'hello'
  a99 channels logs ws://127.0.0.1:7420 general

Hosts of agents use it with `a99 agent host --channels ws://127.0.0.1:7420`.";

const INSPECT_EXAMPLE: &str = "\
Example:
  a99 channels inspect ws://127.0.0.1:7420
  a99 channels inspect ws://127.0.0.1:7420 echo/general/echo --turns 3

The token needs the scope `inspect` of the channels. A server shows the agents that it
hosts itself: `a99 agent host --listen`.";

/// Options of `channels`.
#[derive(Debug, Args)]
pub(crate) struct ChannelsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ChannelsCommand,
}

impl ChannelsArgs {
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            ChannelsCommand::Serve(args) => args.json,
            ChannelsCommand::Send(args) => args.server.at.json,
            ChannelsCommand::Logs(args) => args.server.at.json,
            ChannelsCommand::Call(args) => args.server.at.json,
            ChannelsCommand::Inspect(args) => args.server.json,
            ChannelsCommand::Push(args) => args.json(),
        }
    }
}

/// What to do with channels.
#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// Serve channels over WebSocket and HTTP until a signal
    #[command(after_help = format!("{SERVE_EXAMPLE}\n\n{EXIT_CODES}"))]
    Serve(Box<ServeArgs>),
    /// Send a message to a channel of a server
    #[command(after_help = EXIT_CODES)]
    Send(ChannelSendArgs),
    /// Print the log of a channel of a server
    #[command(after_help = EXIT_CODES)]
    Logs(ChannelLogsArgs),
    /// Call a method of a participant and print its answer
    #[command(after_help = EXIT_CODES)]
    Call(ChannelCallArgs),
    /// List the agents of a server, or print state, dead letters and turns of one
    #[command(after_help = format!("{INSPECT_EXAMPLE}\n\n{EXIT_CODES}"))]
    Inspect(ChannelInspectArgs),
    /// Register agents that sleep between requests, whose events a server pushes
    Push(PushArgs),
}

/// Options of `channels serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The store: a file, or the PostgreSQL server at this address, such as
    /// `postgres://user@host/database`
    #[arg(long, value_name = "FILE|URL", default_value = "channels.db", value_hint = ValueHint::AnyPath, value_parser = StorePlace::parse)]
    pub store: StorePlace,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    pub listen: SocketAddr,
    /// How to listen.
    #[command(flatten)]
    pub listening: ListenArgs,
    /// Export spans by OTLP/HTTP to this collector, as http://127.0.0.1:4318; needs the feature
    /// `otlp` [default: the variable OTEL_EXPORTER_OTLP_ENDPOINT]
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// What a power cut may lose
    #[arg(long, value_name = "WHAT", value_enum, default_value = "process")]
    pub durability: DurabilityArg,
    /// Accept a store whose file was moved to another disk, restored or copied
    #[arg(long)]
    pub moved: bool,
    /// Print all events, including errors, as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// How to listen on the network.
#[derive(Debug, Args)]
pub(crate) struct ListenerArgs {
    /// Certificate chain in PEM; beyond this machine it is needed, or --behind-proxy
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// A proxy in front encrypts what leaves this machine or its network
    #[arg(long)]
    pub behind_proxy: bool,
    /// A further name of this server, as clients write it in addresses
    #[arg(long = "name", value_name = "HOST")]
    pub names: Vec<String>,
    /// An origin whose pages may use this server, as `https://app.example.com`
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
}

/// How to serve channels on the network.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// The listener.
    #[command(flatten)]
    pub listener: ListenerArgs,
    /// Give /metrics without a token; only on this machine, without a proxy
    #[arg(long, conflicts_with = "behind_proxy")]
    pub metrics_open: bool,
    /// Push events to agents that sleep between requests; this file keeps their registrations
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub push: Option<PathBuf>,
    /// Where pushed events may go, as in `--allow net:RULES` [default: public addresses]
    #[arg(long, value_name = "RULES", requires = "push")]
    pub push_to: Option<String>,
    /// File of the tokens [default: that of `a99 token`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tokens: Option<PathBuf>,
    /// Serve no page at /inspect
    #[arg(long)]
    pub no_inspect: bool,
    /// Who opens the printed link of the page may also send messages
    #[arg(long, conflicts_with = "no_inspect")]
    pub inspect_write: bool,
}

/// A channel of a server.
#[derive(Debug, Args)]
pub(crate) struct ChannelServerArgs {
    /// The server.
    #[command(flatten)]
    pub at: ServerArgs,
    /// The channel
    pub channel: String,
}

/// A server, and how to speak with it.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server, as ws://127.0.0.1:7420 or wss://channels.example.com
    #[arg(value_name = "SERVER")]
    pub address: String,
    /// How to present the token.
    #[command(flatten)]
    pub token: TokenOfArgs,
    /// Print everything, including errors, as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Where the token for a server is.
#[derive(Debug, Args)]
pub(crate) struct TokenOfArgs {
    /// File with the token for the server [default: the variable A99_TOKEN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// File with certificates in PEM of authorities that this machine does not know
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub authorities: Option<PathBuf>,
}

/// Options of `channels send`.
#[derive(Debug, Args)]
pub(crate) struct ChannelSendArgs {
    /// The server.
    #[command(flatten)]
    pub server: ChannelServerArgs,
    /// The message, or `-` for standard input
    pub text: String,
    /// Idempotency key: a message sent again under the same key is delivered once
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// Options of `channels logs`.
#[derive(Debug, Args)]
pub(crate) struct ChannelLogsArgs {
    /// The server.
    #[command(flatten)]
    pub server: ChannelServerArgs,
    /// Print the events after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Print new events as they come, until interrupted
    #[arg(long, short)]
    pub follow: bool,
}

/// Options of `channels call`.
#[derive(Debug, Args)]
pub(crate) struct ChannelCallArgs {
    /// The server.
    #[command(flatten)]
    pub server: ChannelServerArgs,
    /// The participant's handle
    pub handle: String,
    /// The method
    pub method: String,
    /// The arguments as JSON
    #[arg(default_value = "{}")]
    pub args: String,
    /// How long to wait [default: the method's time, or one minute]
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
}

/// Options of `channels inspect`.
#[derive(Debug, Args)]
pub(crate) struct ChannelInspectArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// A channel, or an agent: AGENT/CHANNEL/HANDLE [default: all agents]
    #[arg(value_name = "CHANNEL|AGENT/CHANNEL/HANDLE")]
    pub what: Option<String>,
    /// Print as many of the agent's last turns that are kept
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub turns: usize,
}
