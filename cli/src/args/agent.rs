//! Arguments of `agent`.

use super::channels::{ListenArgs, TokenOfArgs};
use super::push::{HANDLE_EXAMPLE, HandleArgs, RECEIVE_EXAMPLE, ReceiveArgs};
use super::{EXIT_CODES, StorePlace};
use crate::duration::time;
use crate::input::JsonArg;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const NEW_EXAMPLE: &str = "\
Example:
  a99 agent new echo
  a99 agent host --config echo/agents.toml";

const HOST_EXAMPLE: &str = "\
Example:
  a99 agent host &
  a99 agent send general 'Hello' --wait

An interrupt or SIGTERM ends the host: it accepts no new work, lets running turns end
until the deadline, and writes everything to disk. SIGHUP reads agents.toml again, as
`reload` does.";

const SEND_EXAMPLE: &str = "\
Example:
  a99 agent send general 'What is new?' --at news --wait --timeout 1m

Without a running host, the message waits in the store's file for the next start.";

const CALL_EXAMPLE: &str = "\
Example:
  a99 agent call till pay '{\"amount\": 5}'

The command prints the answer as JSON. If the method fails, it prints the error with its
code and exits with 1; if no answer arrives in time, it exits with 5.";

const LOGS_EXAMPLE: &str = "\
Example:
  a99 agent logs general --after 10 --follow";

const INSPECT_EXAMPLE: &str = "\
Example:
  a99 agent inspect
  a99 agent inspect echo/general/echo --json";

const CHECKPOINT_EXAMPLE: &str = "\
Example:
  a99 agent checkpoint echo/general/echo
  a99 agent checkpoint echo/general/echo --set 41
  a99 agent checkpoint echo/general/echo --retry-dead

An agent whose checkpoint is after the end of its channel's log, as after a power cut, does
not start; `--set` to the end of the log lets it continue. If you set a checkpoint back, the
agent handles the events after it again.";

const REPLAY_EXAMPLE: &str = "\
Example:
  a99 agent replay echo --event 12
  a99 agent replay echo --event 12 --program echo.ajs

The program gets the event, state, time, randomness and answers of that turn; nothing is
sent, changed or called. If the program calls something else than it did, the command names
the first such call (replay.departed) and exits with 1. The store keeps the last 100 turns
of an agent (`keep-turns` of agents.toml).";

const RELOAD_EXAMPLE: &str = "\
Example:
  a99 agent reload

Agents removed from agents.toml leave their channels and keep their state.";

const MANIFEST_HELP: &str = "\
agents.toml:
  include = [\"more/*\"]        folders with an agents.toml, or such files

  [store]
  path = \"agents.db\"          the file, relative to this one
  durability = \"process\"      or power, relaxed: what a power cut may lose
  keep-turns = 100            last turns of each agent that `replay` finds; 0: none

  [models]                    language models, as in agent99.toml

  [[agent]]
  name = \"echo\"
  program = \"echo.ajs\"        .ajs, .json or .a99b
  channel = \"general\"         or a list of channels
  handle = \"echo\"             its address on the channel [default: its name]
  config = { greeting = \"Hi\" }  settings, until users change them
  delivery = \"exactly-once-state\"  or at-least-once, at-most-once
  concurrency = 1             turns at the same time
  retry = { attempts = 5, first = \"500ms\", most = \"30s\" }
  on-dead = \"continue\"        or stop: after a turn becomes a dead letter
  on-lost = false             true: with at-most-once, an event `lost` lists turns cut off
  invites = [\"helper\"]        agents that the program may invite and remove; none by default
  max-deaths = 3              deaths of the process under a turn until it is a dead letter
  targeted-only = false       true: only messages that name the agent
  respond-when-solo = false   true: with targeted-only, all messages while it is alone
  replay = \"all\"              or skip: events from before it joined the channel
  timers = [{ name = \"tick\", cron = \"0 9 * * MON-FRI\", zone = \"Europe/Berlin\" }]
  methods = { pay = { description = \"Pays.\", parameters = { type = \"object\" } } }
                              methods for other participants, also [agent.methods.pay];
                              `returns` is a JSON Schema too, timeout = \"30s\"
  stream = true               show the text of models while they write (send --stream)
  tables = true               SQL tables of the agent (agentStorageRun and others)
  migrations = [\"1.sql\"]      SQL files that create and change them, one a version
  fuel = 1000                 of a turn; timeout, heap-mib, quota, cost and the grants
  allow = [\"net:a.example\"]   (allow, store, llm, embed, ...) are those of agent99.toml";

/// Options of `agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: AgentCommand,
}

/// Commands for long-lived agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Create an agent that answers messages: agents.toml, a program, a README
    #[command(after_help = format!("{NEW_EXAMPLE}\n\n{EXIT_CODES}"))]
    New(NewAgentArgs),
    /// Run the agents of agents.toml until an interrupt or SIGTERM
    #[command(
        after_help = format!("{HOST_EXAMPLE}\n\n{EXIT_CODES}"),
        after_long_help = format!("{HOST_EXAMPLE}\n\n{MANIFEST_HELP}\n\n{EXIT_CODES}")
    )]
    Host(HostArgs),
    /// Run the agents while signed requests push their events, and let them sleep between
    #[command(after_help = format!("{RECEIVE_EXAMPLE}\n\n{EXIT_CODES}"))]
    Receive(ReceiveArgs),
    /// Handle one pushed request and end: for serverless functions and CGI
    #[command(after_help = format!("{HANDLE_EXAMPLE}\n\n{EXIT_CODES}"))]
    Handle(HandleArgs),
    /// Send a message to a channel
    #[command(after_help = format!("{SEND_EXAMPLE}\n\n{EXIT_CODES}"))]
    Send(SendArgs),
    /// Call a method of an agent and print its answer; a host must run
    #[command(after_help = format!("{CALL_EXAMPLE}\n\n{EXIT_CODES}"))]
    Call(CallArgs),
    /// Print the log of a channel
    #[command(after_help = format!("{LOGS_EXAMPLE}\n\n{EXIT_CODES}"))]
    Logs(LogsArgs),
    /// List the agents, or print the state and status of one
    #[command(after_help = format!("{INSPECT_EXAMPLE}\n\n{EXIT_CODES}"))]
    Inspect(InspectAgentArgs),
    /// Print or change an agent's checkpoint: the last handled event of its channel
    #[command(after_help = format!("{CHECKPOINT_EXAMPLE}\n\n{EXIT_CODES}"))]
    Checkpoint(CheckpointArgs),
    /// Run one turn of an agent again without the world, and compare it with what was committed
    #[command(after_help = format!("{REPLAY_EXAMPLE}\n\n{EXIT_CODES}"))]
    Replay(ReplayTurnArgs),
    /// Make the host read agents.toml again, and update the agents whose entries changed
    #[command(after_help = format!("{RELOAD_EXAMPLE}\n\n{EXIT_CODES}"))]
    Reload(ReloadArgs),
}

impl AgentArgs {
    /// Whether the command prints JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            AgentCommand::New(args) => args.json,
            AgentCommand::Host(args) => args.json,
            AgentCommand::Receive(args) => args.json,
            // Its standard output is the answer.
            AgentCommand::Handle(_) => false,
            AgentCommand::Send(args) => args.place.json,
            AgentCommand::Call(args) => args.place.json,
            AgentCommand::Logs(args) => args.place.json,
            AgentCommand::Inspect(args) => args.place.json,
            AgentCommand::Checkpoint(args) => args.place.json,
            AgentCommand::Replay(args) => args.place.json,
            AgentCommand::Reload(args) => args.place.json,
        }
    }
}

/// What a power cut may lose.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// The last moments, whole turns
    Process,
    /// Nothing: each turn waits for the disk
    Power,
    /// Everything since the last clean shutdown, and perhaps the file
    Relaxed,
}

/// Where the agents are.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The file of agents
    #[arg(long, value_name = "FILE", default_value = "agents.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// The store, instead of the file that the file of agents names: a file, or the PostgreSQL
    /// server at this address, such as `postgres://user@host/database`
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::AnyPath, value_parser = StorePlace::parse)]
    pub store: Option<StorePlace>,
    /// Print everything, including errors, as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `agent new`.
#[derive(Debug, Args)]
pub(crate) struct NewAgentArgs {
    /// Name of the agent: letters, digits, `.`, `_`, `-`
    #[arg(value_parser = super::key_name)]
    pub name: String,
    /// Folder in which to create the agent's folder
    #[arg(long = "in", value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Print the written files as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `agent host`.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// The file of agents [default: agents.toml]; required for settings that use secrets
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The store, instead of the file that the file of agents names: a file, or the PostgreSQL
    /// server at this address, such as `postgres://user@host/database`
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::AnyPath, value_parser = StorePlace::parse)]
    pub store: Option<StorePlace>,
    /// What a power cut may lose [default: process]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub durability: Option<DurabilityArg>,
    /// Accept a store whose file was moved to another disk, restored or copied. Use it only
    /// if no other copy is hosted, or if both shall run
    #[arg(long)]
    pub moved: bool,
    /// Time for running turns to end when the host ends or their agent changes
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", allow_hyphen_values = true)]
    pub drain: Duration,
    /// The server that has the channels, as ws://127.0.0.1:7420; the store keeps only the agents
    #[arg(long, value_name = "SERVER", conflicts_with = "listen")]
    pub channels: Option<String>,
    /// The token for it, which needs the scopes `read` and `host` of the agents' channels.
    #[command(flatten)]
    pub token: TokenOfArgs,
    /// Also serve the channels over WebSocket and HTTP at this address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// How to listen.
    #[command(flatten)]
    pub listening: ListenArgs,
    /// Export spans by OTLP/HTTP to this collector, as http://127.0.0.1:4318; needs the feature
    /// `otlp` [default: the variable OTEL_EXPORTER_OTLP_ENDPOINT]
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Print all events, including errors, as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `agent send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The channel
    pub channel: String,
    /// The message, or `-` for standard input
    pub text: String,
    /// The handle of the sender
    #[arg(long = "as", value_name = "HANDLE", default_value = "user")]
    pub sender: String,
    /// Handles of the recipients, separated by commas [default: all]
    #[arg(long, value_name = "HANDLE,...", value_delimiter = ',')]
    pub at: Vec<String>,
    /// Idempotency key: a message sent again under the same key is delivered once
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Print the following events of the channel until the agents are done
    #[arg(long)]
    pub wait: bool,
    /// Show the text of models while they write, for agents with `stream = true`; implies
    /// --wait
    #[arg(long)]
    pub stream: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", allow_hyphen_values = true)]
    pub timeout: Duration,
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Options of `agent call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The agent: AGENT/CHANNEL/HANDLE, or its name if it is on one channel
    #[arg(value_name = "AGENT/CHANNEL/HANDLE")]
    pub key: String,
    /// The method
    pub method: String,
    /// Its arguments as JSON, or `@` and a file with them [default: {}]
    #[arg(value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub args: Option<JsonArg>,
    /// The handle of the caller
    #[arg(long = "as", value_name = "HANDLE", default_value = "user")]
    pub sender: String,
    /// How long to wait [default: the method's timeout, or a minute]
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Options of `agent logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The channel
    pub channel: String,
    /// Begin after this sequence number of the log
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Print new events until an interrupt; a host must run
    #[arg(long)]
    pub follow: bool,
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Options of `agent inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectAgentArgs {
    /// An agent: AGENT/CHANNEL/HANDLE, or its name if it is on one channel [default: list all]
    #[arg(value_name = "AGENT/CHANNEL/HANDLE")]
    pub key: Option<String>,
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Options of `agent checkpoint`.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// The agent: AGENT/CHANNEL/HANDLE, or its name if it is on one channel
    #[arg(value_name = "AGENT/CHANNEL/HANDLE")]
    pub key: String,
    /// Continue after this sequence number of the log
    #[arg(long, value_name = "N", conflicts_with_all = ["retry_dead", "forget_dead"])]
    pub set: Option<u64>,
    /// Handle the events of its dead letters again
    #[arg(long, conflicts_with = "forget_dead")]
    pub retry_dead: bool,
    /// Delete its dead letters
    #[arg(long)]
    pub forget_dead: bool,
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Options of `agent replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayTurnArgs {
    /// The agent: AGENT/CHANNEL/HANDLE, or its name if it is on one channel
    #[arg(value_name = "AGENT/CHANNEL/HANDLE")]
    pub key: String,
    /// The event of the turn: its sequence number in the channel's log
    #[arg(long, value_name = "N")]
    pub event: u64,
    /// Run this program [default: the one that the turn ran]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Options of `agent reload`.
#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    /// Where the agents are.
    #[command(flatten)]
    pub place: PlaceArgs,
}
