//! Arguments of `token`.

use super::EXIT_CODES;
use crate::duration;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

const TOKEN_EXAMPLE: &str = "\
Example:
  a99 token new --name ci --scope read:general write:team-*

A scope is ACTION:CHANNEL. ACTION is read, write, call, invite, inspect (see what agents keep),
host (speak as agents of the channel) or admin (all of these). CHANNEL is a name, or the begin of
names and `*`. The scope `admin` alone allows all.";

/// Options of `token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

impl TokenArgs {
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            TokenCommand::New(args) => args.place.json,
            TokenCommand::List(args) => args.json,
            TokenCommand::Revoke(args) => args.place.json,
        }
    }
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it, once: the file keeps only a hash of it
    #[command(after_help = format!("{TOKEN_EXAMPLE}\n\n{EXIT_CODES}"))]
    New(NewTokenArgs),
    /// List the tokens, without their secrets
    #[command(after_help = EXIT_CODES)]
    List(TokenPlaceArgs),
    /// Remove a token; running servers refuse it within a second
    #[command(after_help = EXIT_CODES)]
    Revoke(RevokeArgs),
}

/// Where tokens are, and how to speak about them.
#[derive(Debug, Args)]
pub(crate) struct TokenPlaceArgs {
    /// File of the tokens [default: tokens.json in $XDG_CONFIG_HOME/a99 or ~/.config/a99]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tokens: Option<PathBuf>,
    /// Print everything, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `token new`.
#[derive(Debug, Args)]
pub(crate) struct NewTokenArgs {
    /// What you call it, as the program or person that uses it
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What it allows, as `read:general` or `write:team-*`
    #[arg(long, value_name = "SCOPE", required = true, num_args = 1..)]
    pub scope: Vec<String>,
    /// How long it is valid, as in 12h, 30d; or `never`: it does not expire
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    pub expires: Lifetime,
    /// The place.
    #[command(flatten)]
    pub place: TokenPlaceArgs,
}

/// Options of `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The token's id, its part after `a99t_`, which `token list` shows
    #[arg(value_name = "ID")]
    pub id: String,
    /// The place.
    #[command(flatten)]
    pub place: TokenPlaceArgs,
}

/// How long a token is valid; nothing for ever.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime(pub Option<Duration>);

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    // Times of other options have no days.
    let time = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days @ 1..=366)) => Some(Duration::from_secs(u64::from(days) * 86_400)),
        Some(_) => None,
        None => duration::time(text).ok(),
    };
    let time = time.ok_or("expected at most a year, as in 12h, 30d; or `never`")?;
    Ok(Lifetime(Some(time)))
}
