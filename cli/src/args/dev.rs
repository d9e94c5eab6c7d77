//! Arguments of `dev`.

use super::EXIT_CODES;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const MODEL_SCRIPT_HELP: &str = "\
Scripts:
  A script is a JSON list of turns, each a text or an object with any of

    text        the answer, or a list of its pieces
    thinking    the model's thinking before it, or a list of its pieces
    tools       tools to call: {\"name\": NAME, \"input\": VALUE, \"id\": TEXT}
    stop        stop reason: end_turn, max_tokens, stop_sequence, tool_use, refusal
    usage       {promptTokens, completionTokens, cachedTokens, writtenTokens,
                 reasoningTokens}
    when        a text: the turn answers only requests that contain it
    delayMs     milliseconds before each piece
    status      an HTTP status of at least 400, instead of an answer
    message     the text of that error
    retryAfter  seconds that clients should wait before a retry
    fault       {\"cut\": BYTES}, {\"stall\": PIECES} or {\"malformed\": PIECES}

  The next matching turn answers each request; after the last turn the status is 503.";

/// Options of `dev`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DevCommand,
}

/// Tools for development.
#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Start a mock model server on the loopback, which answers from a script in the wire
    /// formats of OpenAI (chat completions, responses), Anthropic and Gemini, streamed and
    /// whole. It prints its address as the first line; an interrupt ends it
    #[command(after_help = EXIT_CODES, after_long_help = format!("{MODEL_SCRIPT_HELP}\n\n{EXIT_CODES}"))]
    ModelServer(ModelServerArgs),
}

/// Options of `dev model-server`.
#[derive(Debug, Args)]
pub(crate) struct ModelServerArgs {
    /// JSON file with the turns (see --help), or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub script: PathBuf,
    /// Port to listen on; 0 selects a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Print the address, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}
