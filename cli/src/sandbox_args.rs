//! The command line of `a99 sandbox`.

use crate::sandbox_image_args::{DoctorArgs, ImageArgs};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  that of the command; 128 and the number of a signal that ended it
  2    usage: bad option
  124  the command ran too long
  125  the sandbox failed; nothing is known of the command
  126  the command could not be started";

/// Options of `sandbox`.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SandboxCommand,
}

/// What to do with sandboxes.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Build the image that sandboxes start from, or do nothing if it is there
    Build(BuildArgs),
    /// Run one command in a new sandbox
    #[command(after_help = EXIT_CODES)]
    Exec(ExecArgs),
    /// Carry the image to another machine
    Image(ImageArgs),
    /// Tell what is there, what is missing, and what helps
    Doctor(DoctorArgs),
}

impl SandboxArgs {
    /// Whether the command speaks JSON.
    pub fn json(&self) -> bool {
        match &self.command {
            SandboxCommand::Build(args) => args.json,
            SandboxCommand::Exec(args) => args.json,
            SandboxCommand::Image(args) => args.json(),
            SandboxCommand::Doctor(args) => args.json,
        }
    }
}

/// Options of `sandbox build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Take exactly the locked versions of Debian's packages, or fail
    #[arg(long, conflicts_with = "update")]
    pub locked: bool,
    /// Lock the current versions
    #[arg(long)]
    pub update: bool,
    /// Folder with Agent99's sources, which the emulator is built from
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub sources: PathBuf,
    /// Print the result, errors too, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// A variable of the command's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// The command's working directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Seconds the command may take
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Print outputs and exit code as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    pub argv: Vec<String>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// The longest time limit that is taken: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(n) if n > 0.0 && n <= MAX_SECONDS => Ok(n),
        _ => Err("expected a number of seconds above 0".to_owned()),
    }
}
