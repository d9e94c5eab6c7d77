//! Command-line arguments.

use crate::input::JsonArg;
use crate::output::Format;
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
  A program reaches no network, model or other agent. `--script FILE` names a
  JSON object of answers instead, so that agents can be tried offline:

    fetch       {URL: REPLY}            httpFetch
    llm         [REPLY, ...]            llmPredict, in order
    llmBattery  [REPLY, ...]            llmPredictBattery, in order
    agents      {ID: REPLY}             agentRun by id
    xml         {DOCUMENT: REPLY}       xmlParse
    transpile   {CODE: REPLY}           transpileCode, runCode
    shell       {COMMAND: OUTPUT}       shellExec, and files in memory
    store       {KEY: VALUE}            what the store holds at the start
    vectors     {COLLECTION: [DOC, ..]} documents with an `embedding`
    embed       N                       word-hash embeddings of N numbers
    clock       N                       fixed time, ms since 1970
    seed        N                       reproducible randomness

  A REPLY is any JSON value, or {\"$fails\": TEXT} to fail, or
  {\"$replies\": [REPLY, ...]} to answer in turn (the last one repeats).
  An OUTPUT is {stdout, stderr, exitCode, elapsedMs, files: {PATH: TEXT}}, each
  of them optional, or {\"$fails\": TEXT}.";

/// Run, check and inspect agent programs: JSON syntax trees, compiled to
/// bytecode and metered.
#[derive(Debug, Parser)]
#[command(name = "a99", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and print its result
    #[command(after_help = EXIT_CODES, after_long_help = format!("{SCRIPT_HELP}\n\n{EXIT_CODES}"))]
    Run(Box<RunArgs>),
    /// Compile and verify a program without running it; verify an artifact
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Write a program as an artifact: verified bytecode in a file
    #[command(after_help = EXIT_CODES)]
    Compile(CompileArgs),
    /// Check an artifact: content, code, atoms, source, signature
    #[command(after_help = EXIT_CODES)]
    Verify(VerifyArgs),
    /// Print the bytecode of a program with the fuel of each block; of an
    /// artifact also what else the file holds
    Inspect(ProgramArgs),
    /// Make keys that sign artifacts
    Keys(KeysArgs),
    /// List the atoms as functions for a model to call
    Tools(ToolsArgs),
    /// Run commands in a Linux of their own, without KVM or root
    #[cfg(feature = "sandbox")]
    Sandbox(Box<crate::sandbox_args::SandboxArgs>),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// How the command speaks.
    pub(crate) fn format(&self) -> Format {
        let json = match self {
            Command::Run(args) => args.program.json,
            Command::Check(args) => args.json,
            Command::Inspect(args) => args.json,
            Command::Compile(args) => args.program.json,
            Command::Verify(args) => args.program.json,
            Command::Keys(args) => match &args.command {
                KeysCommand::New(args) => args.json,
            },
            Command::Tools(args) => args.json,
            #[cfg(feature = "sandbox")]
            Command::Sandbox(args) => args.json(),
            Command::Completions(_) => false,
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
    /// Print everything, errors too, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files with programs or artifacts, folders of them (`*.json`, `*.a99b`), or
    /// `-` for standard input
    #[arg(value_name = "PROGRAM", required = true, value_hint = ValueHint::AnyPath)]
    pub programs: Vec<PathBuf>,
    /// Exit with 3 for a warning, too
    #[arg(long)]
    pub deny_warnings: bool,
    /// Accept names of atoms, functions and nodes that are not known here
    #[arg(long)]
    pub allow_unknown: bool,
    /// Print everything, errors too, as one line of JSON for each program on
    /// standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Arguments of the program
    #[arg(long, value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub args: Option<JsonArg>,
    /// Fuel the run may use
    #[arg(long, value_name = "N", value_parser = amount, default_value = "1000")]
    pub fuel: f64,
    /// Milliseconds the run may take
    #[arg(long, value_name = "N")]
    pub timeout_ms: Option<u64>,
    /// MiB that the run's values may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub heap_mib: Option<u32>,
    /// What work costs
    #[arg(long, value_name = "MODEL", value_enum, default_value = "metered")]
    pub cost_model: CostModelArg,
    /// Price of an op for this run; may be repeated
    #[arg(long, value_name = "OP=N", value_parser = op_amount)]
    pub cost: Vec<(String, f64)>,
    /// How often an op may be called; may be repeated
    #[arg(long, value_name = "OP=N", value_parser = op_count)]
    pub quota: Vec<(String, u64)>,
    /// Request context, which the program's atoms may read
    #[arg(long, value_name = "JSON|@FILE", value_parser = JsonArg::parse)]
    pub context: Option<JsonArg>,
    /// Write one line of JSON for each executed step to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Refuse what is no artifact that a key of this file signed
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub require_signed: Option<PathBuf>,
    /// JSON file with the answers of networks, models and agents (see --help)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: Option<PathBuf>,
    /// Let the program run commands (shellExec) in a Linux of its own, which
    /// starts with the first one and ends with the run
    #[cfg(feature = "sandbox")]
    #[arg(long)]
    pub sandbox: bool,
    /// What that Linux is like
    #[cfg(feature = "sandbox")]
    #[command(flatten)]
    pub settings: crate::sandbox_args::SettingsArgs,
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
    /// Leave out the source: smaller, but errors then have no place, and traces
    /// no inputs
    #[arg(long)]
    pub strip: bool,
    /// Sign the artifact with this secret key (see `a99 keys`)
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub sign: Option<PathBuf>,
}

/// Options of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The artifact.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Refuse an artifact that no key of this file signed
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
    /// Make a key: NAME.key.json, which signs and stays secret, and
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
    /// Days after which the key is not trusted any more [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub expires_days: Option<u32>,
    /// Folder to write to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub dir: PathBuf,
    /// Print the key's id and files, errors too, as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Which work is paid for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostModelArg {
    /// Steps, expressions, and work that grows with its operands
    Metered,
    /// Steps and expressions only
    Flat,
}

/// Options of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// `all`, `flow` (control flow and state), or names separated by commas
    #[arg(long, value_name = "FILTER", default_value = "all")]
    pub filter: String,
    /// Print the JSON that a request has under `tools`, in this form
    #[arg(long, value_name = "FORM", value_enum)]
    pub format: Option<ToolFormArg>,
    /// The same as `--format openai`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// How tools are written down.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolFormArg {
    /// OpenAI's function form
    Openai,
    /// OpenAI's function form with strict schemas; free data is a text of JSON
    OpenaiStrict,
    /// Anthropic's tool form
    Anthropic,
    /// Gemini's function declarations; free data is a text of JSON
    Gemini,
    /// Tools of the Model Context Protocol
    Mcp,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
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

/// A number that is neither negative nor infinite.
fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

fn op_value(text: &str) -> Result<(String, &str), String> {
    match text.rsplit_once('=') {
        Some((op, value)) if !op.is_empty() => Ok((op.to_owned(), value)),
        _ => Err("expected OP=N, such as httpFetch=5".to_owned()),
    }
}

fn op_amount(text: &str) -> Result<(String, f64), String> {
    let (op, value) = op_value(text)?;
    Ok((op, amount(value)?))
}

fn op_count(text: &str) -> Result<(String, u64), String> {
    let (op, value) = op_value(text)?;
    let count = value.parse();
    let count = count.map_err(|_| "expected a whole number of at least 0".to_owned())?;
    Ok((op, count))
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
    fn amounts() {
        assert_eq!(op_amount("map=0.5"), Ok(("map".to_owned(), 0.5)));
        assert_eq!(op_count("a=b=3"), Ok(("a=b".to_owned(), 3)));
        for bad in ["map", "=1", "map=", "map=-1", "map=NaN", "map=inf"] {
            assert!(op_amount(bad).is_err(), "{bad}");
        }
        assert!(op_count("map=1.5").is_err());
        for bad in ["", "a/b", "..", ".hidden", "-x", "a b", "ä"] {
            assert!(key_name(bad).is_err(), "{bad}");
        }
        assert_eq!(key_name("ci-2.key_1"), Ok("ci-2.key_1".to_owned()));
        assert!(amount("1e400").is_err());
    }
}
