//! The command line.

use crate::input::JsonArg;
use crate::output::Format;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    ok
  1    the program returned an error
  2    usage: bad option, argument or file
  3    the program was rejected
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
    store       {KEY: VALUE}            what the store holds at the start
    vectors     {COLLECTION: [DOC, ..]} documents with an `embedding`
    embed       N                       word-hash embeddings of N numbers
    clock       N                       fixed time, ms since 1970
    seed        N                       reproducible randomness

  A REPLY is any JSON value, or {\"$fails\": TEXT} to fail, or
  {\"$replies\": [REPLY, ...]} to answer in turn (the last one repeats).";

/// Run, check and inspect agent programs: JSON syntax trees, compiled to
/// bytecode and metered.
#[derive(Debug, Parser)]
#[command(name = "a99", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program and print its result
    #[command(after_help = EXIT_CODES, after_long_help = format!("{SCRIPT_HELP}\n\n{EXIT_CODES}"))]
    Run(Box<RunArgs>),
    /// Compile and verify a program without running it
    #[command(after_help = EXIT_CODES)]
    Check(ProgramArgs),
    /// Print the bytecode of a program with the fuel of each block
    Inspect(ProgramArgs),
    /// List the atoms as functions for a model to call
    Tools(ToolsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// How the command speaks.
    pub fn format(&self) -> Format {
        let json = match self {
            Command::Run(args) => args.program.json,
            Command::Check(args) | Command::Inspect(args) => args.json,
            Command::Tools(args) => args.json,
            Command::Completions(_) => false,
        };
        if json { Format::Json } else { Format::Human }
    }
}

/// A program, and how to speak about it.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// File with the program, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: PathBuf,
    /// Print everything, errors too, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
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
    /// JSON file with the answers of networks, models and agents (see --help)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: Option<PathBuf>,
}

/// Which work is paid for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostModelArg {
    /// Steps, expressions, and work that grows with its operands
    Metered,
    /// Steps and expressions only
    Flat,
}

/// Options of `tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// `all`, `flow` (control flow and state), or names separated by commas
    #[arg(long, value_name = "FILTER", default_value = "all")]
    pub filter: String,
    /// Print a JSON array of tools in this form
    #[arg(long, value_name = "FORM", value_enum)]
    pub format: Option<ToolFormArg>,
    /// The same as `--format openai`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// How tools are written down.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolFormArg {
    /// OpenAI's function form
    Openai,
    /// OpenAI's function form with strict schemas where there are any
    OpenaiStrict,
    /// Anthropic's tool form
    Anthropic,
    /// Tools of the Model Context Protocol
    Mcp,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
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
        assert!(amount("1e400").is_err());
    }
}
