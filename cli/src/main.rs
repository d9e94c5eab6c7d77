//! `a99`: runs, checks, compiles and inspects agent programs from a terminal or a
//! script.
//!
//! The only crate that knows terminals, files, signals and exit codes; everything else is the
//! facade's. A program gets access only as granted: the network by `--allow`, replies of networks,
//! models and other agents from a script file, and as its computer a sandbox.

#![warn(unreachable_pub)]

mod address;
mod agents;
mod args;
mod artifact;
mod checks;
mod commands;
mod config;
mod duration;
mod embed;
mod failure;
mod files;
mod grants;
mod help;
mod input;
mod layout;
mod limits;
#[cfg(all(feature = "agent", unix))]
mod live;
#[cfg(all(any(feature = "agent", feature = "sandbox"), unix))]
mod local;
mod models;
#[cfg(feature = "sandbox")]
mod named;
mod network;
mod output;
#[cfg(feature = "sandbox")]
mod packs;
mod pretty;
mod profile;
mod progress;
mod recording;
#[cfg(feature = "sandbox")]
mod sandbox_args;
#[cfg(feature = "sandbox")]
mod sandbox_image_args;
#[cfg(feature = "sandbox")]
mod sandbox_limits;
mod script;
mod store;
mod stream;
mod words;
mod write;

use args::{Cli, Command};
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _};
use failure::{Exit, Failure};
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    survive_file_limit();
    let parsed = Cli::command()
        .color(help_colors())
        .try_get_matches()
        .and_then(|found| Cli::from_arg_matches(&found));
    let exit = match parsed {
        Ok(cli) => {
            output::set_colors(cli.color);
            dispatch(&cli.command)
        }
        Err(error) => refuse(&error),
    };
    let exit = match exit {
        Exit::Ok if output::is_lost() => Exit::Usage,
        exit => exit,
    };
    ExitCode::from(exit.code())
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail, as on a full disk. By default the
/// signal ends the process, and with it all agents of a host.
fn survive_file_limit() {
    #[cfg(all(unix, feature = "sqlite"))]
    {
        use signal_hook::consts::SIGXFSZ;
        // If this fails, the signal stays fatal, the default.
        drop(signal_hook::flag::register(
            SIGXFSZ,
            std::sync::Arc::default(),
        ));
    }
}

/// Colours of help and of command-line errors. They are written before the options are parsed, so
/// this scans the arguments.
fn help_colors() -> ColorChoice {
    let words: Vec<_> = std::env::args_os().collect();
    let said = |value: &str| {
        let joined = format!("--color={value}");
        words.iter().any(|word| *word == *joined)
            || words
                .windows(2)
                .any(|pair| pair[0] == "--color" && pair[1] == value)
    };
    match (said("never"), said("always")) {
        (true, _) => ColorChoice::Never,
        (_, true) => ColorChoice::Always,
        _ => ColorChoice::Auto,
    }
}

/// Runs the command; a failure is reported in the command's format.
fn dispatch(command: &Command) -> Exit {
    let format = command.format();
    let done = match command {
        Command::Run(args) => commands::run::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Compile(args) => commands::compile::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Keys(args) => commands::keys::run(args),
        #[cfg(all(feature = "server", unix))]
        Command::Channels(args) => live::channels::run(args),
        #[cfg(not(all(feature = "server", unix)))]
        Command::Channels(_) => Err(Failure::missing_feature("`a99 channels`", "server")),
        #[cfg(feature = "server")]
        Command::Token(args) => commands::token::run(args),
        #[cfg(not(feature = "server"))]
        Command::Token(_) => Err(Failure::missing_feature("`a99 token`", "server")),
        Command::Model(args) => commands::model::run(args),
        Command::Agent(args) => commands::agent::run(args),
        Command::Dev(args) => commands::dev::run(args),
        Command::Tools(args) => commands::tools::run(args),
        Command::Prompt(args) => commands::prompt::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Types(args) => commands::types::run(args),
        Command::New(args) => commands::new::run(args),
        Command::Fmt(args) => commands::fmt::run(args),
        #[cfg(feature = "lsp")]
        Command::Lsp(_) => commands::lsp::run(),
        #[cfg(not(feature = "lsp"))]
        Command::Lsp(_) => Err(Failure::missing_feature("`a99 lsp`", "lsp")),
        Command::Watch(args) => commands::watch::run(args),
        Command::Repl(args) => commands::repl::run(args),
        Command::Config(args) => commands::config::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Explain(args) => commands::explain::run(args),
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => commands::sandbox::run(args),
        #[cfg(not(feature = "sandbox"))]
        Command::Sandbox(_) => Err(Failure::missing_feature("`a99 sandbox`", "sandbox")),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
        Command::Docs(_) => commands::docs::run(),
    };
    done.unwrap_or_else(|failure| failure.report(format))
}

/// Reports a command-line error, or prints the requested help.
fn refuse(error: &clap::Error) -> Exit {
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    // A missing subcommand prints the help.
    let is_help = asked || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    // The options were not parsed, so scan the arguments for `--json`.
    let words: Vec<_> = std::env::args_os().collect();
    let json = words
        .iter()
        .any(|word| word == "--json" || word == "--format=json")
        || words
            .windows(2)
            .any(|pair| pair[0] == "--format" && pair[1] == "json");
    if asked || is_help && !json {
        output::report_failure(error.print().and_then(|()| std::io::stdout().flush()));
        return if asked { Exit::Ok } else { Exit::Usage };
    }
    output::set_colors(match help_colors() {
        ColorChoice::Never => output::ColorArg::Never,
        ColorChoice::Always => output::ColorArg::Always,
        ColorChoice::Auto => output::ColorArg::Auto,
    });
    let told = words::told(error);
    Failure::coded(failure::USAGE[0], told.message, told.help).report(match json {
        true => output::Format::Json,
        false => output::Format::Human,
    })
}
