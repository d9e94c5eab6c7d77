//! Arguments of `dev`.

use super::EXIT_CODES;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const MODEL_SCRIPT_HELP: &str = "\
Scripts:
  A script is a JSON list of turns, each a text or an object with any of

    text        the answer, or a list of its pieces
    thinking    what the model thinks before it, likewise
    tools       tools to call: {\"name\": NAME, \"input\": VALUE, \"id\": TEXT}
    stop        why it ends: end_turn, max_tokens, stop_sequence, tool_use, refusal
    usage       {promptTokens, completionTokens, cachedTokens, writtenTokens,
                 reasoningTokens}
    when        a text: the turn answers only requests that have it in a text of theirs
    delayMs     milliseconds before each piece
    status      an HTTP status from 400 on in place of an answer
    message     the text of that error
    retryAfter  seconds that the service wants nobody to ask again
    fault       {\"cut\": BYTES}, {\"stall\": PIECES} or {\"malformed\": PIECES}

  Each request is answered by the next turn that is for it, and with 503 after the last.";

/// Options of `dev`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DevCommand,
}

/// What helps with making agents.
#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Play a script as a service of models, on this machine's loopback: OpenAI's chat
    /// completions and Anthropic's messages, streamed and whole. The address is the first
    /// line on standard output; an interrupt ends the server
    #[command(after_help = EXIT_CODES, after_long_help = format!("{MODEL_SCRIPT_HELP}\n\n{EXIT_CODES}"))]
    ModelServer(ModelServerArgs),
}

/// Options of `dev model-server`.
#[derive(Debug, Args)]
pub(crate) struct ModelServerArgs {
    /// JSON file with the turns (see --help), or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub script: PathBuf,
    /// Port to listen on; a free one is taken if it is 0
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Print the address, errors too, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}
