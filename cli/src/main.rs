//! `a99`: runs, checks, compiles and inspects agent programs from a terminal or a
//! script.
//!
//! The only crate that knows terminals, files, signals and exit codes;
//! everything else is the facade's. It grants a program nothing of the host's
//! world: replies of networks, models and other agents come from a script file,
//! and the computer that it may grant is a sandbox.

#![warn(unreachable_pub)]

mod args;
mod artifact;
mod commands;
mod computer;
mod failure;
mod input;
#[cfg(feature = "sandbox")]
mod named;
mod output;
mod pretty;
#[cfg(feature = "sandbox")]
mod sandbox_args;
#[cfg(feature = "sandbox")]
mod sandbox_image_args;
#[cfg(feature = "sandbox")]
mod sandbox_limits;
mod script;
mod write;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::{Exit, Failure};
use output::Format;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let exit = match Cli::try_parse() {
        Ok(cli) => dispatch(&cli.command),
        Err(error) => refuse(&error),
    };
    let exit = match exit {
        Exit::Ok if output::is_lost() => Exit::Usage,
        exit => exit,
    };
    ExitCode::from(exit.code())
}

/// Runs the command; a failure is reported in the command's own format.
fn dispatch(command: &Command) -> Exit {
    let format = command.format();
    let done = match command {
        Command::Run(args) => commands::run::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Compile(args) => commands::compile::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Keys(args) => commands::keys::run(args),
        Command::Tools(args) => commands::tools::run(args),
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => commands::sandbox::run(args),
        Command::Completions(args) => commands::completions::run(args),
    };
    done.unwrap_or_else(|failure| failure.report(format))
}

/// What the command line itself got wrong, or help that was asked for.
fn refuse(error: &clap::Error) -> Exit {
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    // The line was not understood, so the wish for JSON is looked up by hand.
    let json = std::env::args_os().any(|arg| arg == "--json");
    if asked || !json {
        output::report_failure(error.print().and_then(|()| std::io::stdout().flush()));
        return if asked { Exit::Ok } else { Exit::Usage };
    }
    let text = error.render().to_string();
    let text = text.trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    Failure::usage(text).report(Format::Json)
}
