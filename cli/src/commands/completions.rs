//! `a99 completions`: prints a completion script for a shell.

use crate::args::{Cli, CompletionsArgs};
use crate::failure::{Exit, Failure};
use crate::output;
use clap::CommandFactory as _;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "a99", &mut script);
    output::out(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}
