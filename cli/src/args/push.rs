//! Arguments for agents that sleep between requests: their registrations, and what receives
//! their events.

use super::agent::DurabilityArg;
use super::channels::{ListenerArgs, ServerArgs, TokenOfArgs};
use super::{EXIT_CODES, StorePlace};
use crate::duration::time;
use crate::input::JsonArg;
use clap::{Args, Subcommand, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const ADD_EXAMPLE: &str = "\
Example:
  a99 channels push add https://channels.example.com echo/general/echo \\
    https://echo.example.com > secret

The server runs with `a99 channels serve --push FILE`. It sends `init` to the receiver, and
again when the registration changes; `a99 channels push list` shows whether it was taken.";

pub(super) const RECEIVE_EXAMPLE: &str = "\
Example:
  a99 agent receive --channels https://channels.example.com --token-file token \\
    --secret-file secret

A channel server pushes events to the agents by signed requests (`a99 channels push add`).
Between requests the store is closed, and another process may have it.";

pub(super) const HANDLE_EXAMPLE: &str = "\
Example:
  a99 agent handle --channels https://channels.example.com < event.json

The input is the event that AWS Lambda and other platforms give a function: JSON with `path`
or `rawPath`, `headers`, `body` and `isBase64Encoded`. The output is its answer: `statusCode`,
`headers`, `body`. With --cgi both are those of CGI. A refused request is answered, too; the
command then exits with 1. Without output the platform answers with status 500.";

/// Options of `channels push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PushCommand,
}

impl PushArgs {
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            PushCommand::Add(args) => args.server.json,
            PushCommand::List(args) => args.json,
            PushCommand::Remove(args) | PushCommand::Retry(args) => args.server.json,
        }
    }
}

/// What to do with registrations.
#[derive(Debug, Subcommand)]
pub(crate) enum PushCommand {
    /// Register an agent, or change its registration; prints the secret of its requests
    #[command(after_help = format!("{ADD_EXAMPLE}\n\n{EXIT_CODES}"))]
    Add(PushAddArgs),
    /// List the registered agents
    #[command(after_help = EXIT_CODES)]
    List(ServerArgs),
    /// Remove an agent: its receiver keeps the state
    #[command(after_help = EXIT_CODES)]
    Remove(PushedArgs),
    /// Push the events again that were given up, and what waits at once
    #[command(after_help = EXIT_CODES)]
    Retry(PushedArgs),
}

/// A registered agent.
#[derive(Debug, Args)]
pub(crate) struct PushedArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The agent
    #[arg(value_name = "AGENT/CHANNEL/HANDLE")]
    pub agent: String,
}

/// Options of `channels push add`.
#[derive(Debug, Args)]
pub(crate) struct PushAddArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The agent
    #[arg(value_name = "AGENT/CHANNEL/HANDLE")]
    pub agent: String,
    /// Address of its receiver, to which the paths of requests are appended
    pub url: String,
    /// File with the secret that signs the requests [default: a new secret]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub secret_file: Option<PathBuf>,
    /// Settings of the agent as JSON, or `@` and a file with them
    #[arg(long, value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub settings: Option<JsonArg>,
    /// A type of events for which the agent is called, as `message`; may be repeated
    /// [default: all that wake agents]
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Also push events that are in no log
    #[arg(long)]
    pub ephemeral: bool,
}

/// What receives the events of agents.
#[derive(Debug, Args)]
pub(crate) struct ReceiverArgs {
    /// The file of agents [default: agents.toml]; required for settings that use secrets
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The store's file, instead of the one in the file of agents
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = StorePlace::parse)]
    pub store: Option<StorePlace>,
    /// What a power cut may lose [default: process]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub durability: Option<DurabilityArg>,
    /// Accept a store whose file was moved to another disk, restored or copied
    #[arg(long)]
    pub moved: bool,
    /// The server that has the channels and pushes, as `https://channels.example.com`
    #[arg(long, value_name = "SERVER")]
    pub channels: String,
    /// The token for it, which needs the scopes `read` and `host` of the agents' channels.
    #[command(flatten)]
    pub token: TokenOfArgs,
    /// File with the secret of the requests, or several while one replaces another
    /// [default: the variable A99_PUSH_SECRET]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub secret_file: Option<PathBuf>,
    /// How long a request may take; then it is answered that the work goes on
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "25s", allow_hyphen_values = true)]
    pub request_time: Duration,
    /// Time for turns that go on to end when the store is to be closed
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5m", allow_hyphen_values = true)]
    pub drain: Duration,
}

/// Options of `agent receive`.
#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    /// The receiver.
    #[command(flatten)]
    pub receiver: ReceiverArgs,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7421")]
    pub listen: SocketAddr,
    /// How to listen.
    #[command(flatten)]
    pub listening: ListenerArgs,
    /// Close the store after as long without a request
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", allow_hyphen_values = true)]
    pub idle: Duration,
    /// Print all events, including errors, as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `agent handle`.
#[derive(Debug, Args)]
pub(crate) struct HandleArgs {
    /// File with the request, or `-` for standard input
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub request: PathBuf,
    /// The receiver.
    #[command(flatten)]
    pub receiver: ReceiverArgs,
    /// Read variables and body as a CGI program, and answer as one
    #[arg(long, conflicts_with = "request")]
    pub cgi: bool,
}
