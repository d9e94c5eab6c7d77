//! Arguments of `agent`.

use super::EXIT_CODES;
use crate::duration::time;
use crate::input::JsonArg;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
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

An interrupt or SIGTERM ends it: nothing new is taken, turns that run may end until the
deadline, and all is on the disk. SIGHUP reads agents.toml again, as `reload` does.";

const SEND_EXAMPLE: &str = "\
Example:
  a99 agent send general 'What is new?' --at news --wait --timeout 1m

Without a host the message is put into the store's file, for its next start.";

const CALL_EXAMPLE: &str = "\
Example:
  a99 agent call till pay '{\"amount\": 5}'

The answer is printed as JSON. What goes wrong in the method is told with its code, and the
command ends with 1; with 5 if no answer came in time.";

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

An agent whose checkpoint is beyond its channel's log, as after a power cut, does not start;
`--set` to the end of the log lets it go on. Events after a checkpoint that is set back are
handled again.";

const RELOAD_EXAMPLE: &str = "\
Example:
  a99 agent reload

Agents that are in agents.toml no more leave their channels, and keep what they know.";

const MANIFEST_HELP: &str = "\
agents.toml:
  include = [\"more/*\"]        folders with an agents.toml each, or such files

  [store]
  path = \"agents.db\"          the file, beside this one
  durability = \"process\"      or power, relaxed: what a power cut may take

  [models]                    language models, as in agent99.toml

  [[agent]]
  name = \"echo\"
  program = \"echo.ajs\"        .ajs, .json or .a99b
  channel = \"general\"         or a list: it lives on each
  handle = \"echo\"             by which it is addressed [default: its name]
  config = { greeting = \"Hi\" }  settings, unless users change them
  delivery = \"exactly-once-state\"  or at-least-once, at-most-once
  concurrency = 1             turns at the same time
  retry = { attempts = 5, first = \"500ms\", most = \"30s\" }
  on-dead = \"continue\"        or stop: what follows a turn that was given up
  on-lost = false             true: at-most-once, an event `lost` lists turns that were cut off
  max-deaths = 3              a turn under which the process died so often is given up
  targeted-only = false       messages that name others are left out
  respond-when-solo = false   with it: all messages, while no other agent is there
  replay = \"all\"              or skip: what came before it was on the channel
  timers = [{ name = \"tick\", cron = \"0 9 * * MON-FRI\", zone = \"Europe/Berlin\" }]
  methods = { pay = { description = \"Pays.\", parameters = { type = \"object\" } } }
                              what others may ask it, also [agent.methods.pay]; and
                              returns, a JSON Schema too, timeout = \"30s\"
  stream = true               what models write is shown while they do (send --stream)
  tables = true               it has SQL tables of its own (agentStorageRun and others)
  migrations = [\"1.sql\"]      how they are made and changed: files, each a version
  fuel = 1000                 of a turn; timeout, heap-mib, quota, cost and the grants
  allow = [\"net:a.example\"]   (allow, store, llm, embed, ...) are those of agent99.toml";

/// Options of `agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: AgentCommand,
}

/// What is done with agents that live.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Write an agent that answers messages: agents.toml, a program, a README
    #[command(after_help = format!("{NEW_EXAMPLE}\n\n{EXIT_CODES}"))]
    New(NewAgentArgs),
    /// Run the agents of agents.toml until an interrupt or SIGTERM
    #[command(
        after_help = format!("{HOST_EXAMPLE}\n\n{EXIT_CODES}"),
        after_long_help = format!("{HOST_EXAMPLE}\n\n{MANIFEST_HELP}\n\n{EXIT_CODES}")
    )]
    Host(HostArgs),
    /// Send a message to a channel
    #[command(after_help = format!("{SEND_EXAMPLE}\n\n{EXIT_CODES}"))]
    Send(SendArgs),
    /// Call a method of an agent and print its answer; a host must run
    #[command(after_help = format!("{CALL_EXAMPLE}\n\n{EXIT_CODES}"))]
    Call(CallArgs),
    /// Print the log of a channel
    #[command(after_help = format!("{LOGS_EXAMPLE}\n\n{EXIT_CODES}"))]
    Logs(LogsArgs),
    /// List the agents, or print what one knows and how it is
    #[command(after_help = format!("{INSPECT_EXAMPLE}\n\n{EXIT_CODES}"))]
    Inspect(InspectAgentArgs),
    /// Print or change how far an agent has handled its channel
    #[command(after_help = format!("{CHECKPOINT_EXAMPLE}\n\n{EXIT_CODES}"))]
    Checkpoint(CheckpointArgs),
    /// Let the host read agents.toml again, and change the agents that it says something else of
    #[command(after_help = format!("{RELOAD_EXAMPLE}\n\n{EXIT_CODES}"))]
    Reload(ReloadArgs),
}

impl AgentArgs {
    /// Whether the command speaks JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            AgentCommand::New(args) => args.json,
            AgentCommand::Host(args) => args.json,
            AgentCommand::Send(args) => args.place.json,
            AgentCommand::Call(args) => args.place.json,
            AgentCommand::Logs(args) => args.place.json,
            AgentCommand::Inspect(args) => args.place.json,
            AgentCommand::Checkpoint(args) => args.place.json,
            AgentCommand::Reload(args) => args.place.json,
        }
    }
}

/// What a power cut may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// The last moments, whole turns
    Process,
    /// Nothing: each turn waits for the disk
    Power,
    /// All since the last orderly end, and perhaps the file
    Relaxed,
}

/// Where the agents are.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The file of agents
    #[arg(long, value_name = "FILE", default_value = "agents.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// The store's file, in place of the one that the file of agents names
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub store: Option<PathBuf>,
    /// Print everything, errors too, as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `agent new`.
#[derive(Debug, Args)]
pub(crate) struct NewAgentArgs {
    /// Name of the agent: letters, digits, `.`, `_`, `-`
    #[arg(value_parser = super::key_name)]
    pub name: String,
    /// Folder to make the agent's in
    #[arg(long = "in", value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Print the files that were written as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `agent host`.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// The file of agents [default: agents.toml]; what uses secrets needs it to be named
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The store's file, in place of the one that the file of agents names
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub store: Option<PathBuf>,
    /// What a power cut may take [default: process]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub durability: Option<DurabilityArg>,
    /// Take the store as it is though its file was moved to another disk, restored or copied:
    /// no other copy of it is hosted, or both are meant to be
    #[arg(long)]
    pub moved: bool,
    /// How long turns that run may take to end when the host ends, or their agent is changed
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", allow_hyphen_values = true)]
    pub drain: Duration,
    /// Print what happens, errors too, as lines of JSON on standard output
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
    /// The handle of whoever sends it
    #[arg(long = "as", value_name = "HANDLE", default_value = "user")]
    pub sender: String,
    /// Handles of those it is for, separated by commas [default: everybody]
    #[arg(long, value_name = "HANDLE,...", value_delimiter = ',')]
    pub at: Vec<String>,
    /// A name of the message: sent again under the same one, it is there once
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Print what follows on the channel until the agents are done
    #[arg(long)]
    pub wait: bool,
    /// Show what models write while they do, of agents with `stream = true`; with it --wait is meant
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
    /// Its arguments as JSON, or `@` and a file that has them [default: {}]
    #[arg(value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub args: Option<JsonArg>,
    /// The handle of whoever calls
    #[arg(long = "as", value_name = "HANDLE", default_value = "user")]
    pub sender: String,
    /// How long to wait [default: as the method says, or a minute]
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
    /// Begin after this place of the log
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Go on with what comes, until an interrupt; a host must run
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
    /// Let it go on after this place of the log
    #[arg(long, value_name = "N", conflicts_with_all = ["retry_dead", "forget_dead"])]
    pub set: Option<u64>,
    /// Let it handle again the events whose turns were given up
    #[arg(long, conflicts_with = "forget_dead")]
    pub retry_dead: bool,
    /// Forget the turns that were given up
    #[arg(long)]
    pub forget_dead: bool,
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
