//! Arguments of the commands that help to write programs.

use super::{CheckArgs, RunArgs};
use crate::duration::time;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Folder to create; it must be new or empty
    #[arg(value_name = "NAME", default_value = "agent", value_hint = ValueHint::DirPath)]
    pub name: PathBuf,
    /// Example to begin with
    #[arg(long, value_name = "NAME", value_enum, default_value = "basic")]
    pub template: TemplateArg,
    /// Form of the program
    #[arg(long, value_enum, default_value = "ts")]
    pub form: FormArg,
    /// Print the written files as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// A program to begin with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TemplateArg {
    /// Arguments, a calculation, a condition, a result
    Basic,
    /// A list, turned into another with `map` and `filter`
    List,
    /// A page from the network and a model's answer, both from a script
    Model,
}

/// A form of programs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// TypeScript, a subset, with the types of the atoms
    Ts,
    /// JSON, which the subset is lowered to
    Json,
}

/// Forms that `fmt` prints programs in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceForm {
    /// The source form.
    Ajs,
}

/// Options of `fmt`.
#[derive(Debug, Args)]
pub(crate) struct FmtArgs {
    /// Files with programs, folders of them (`*.json`), or `-` for standard input,
    /// which is printed
    #[arg(value_name = "PROGRAM", required = true, value_hint = ValueHint::AnyPath)]
    pub programs: Vec<PathBuf>,
    /// Write no file; exit with 3 if a program is formatted differently
    #[arg(long)]
    pub check: bool,
    /// Print one program in another form instead: `ajs`, a subset of JavaScript
    #[arg(long, value_name = "FORM", conflicts_with_all = ["check", "json"])]
    pub to: Option<SourceForm>,
    /// Print the results, including errors, as one line of JSON for each program
    #[arg(long)]
    pub json: bool,
}

/// Options of `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Interval between checks of the files
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, default_value = "500ms")]
    pub interval: Duration,
    /// The command to repeat
    #[command(subcommand)]
    pub command: WatchCommand,
}

/// What to do again.
#[derive(Debug, Subcommand)]
pub(crate) enum WatchCommand {
    /// Check programs, as `a99 check` does
    Check(CheckArgs),
    /// Run a program, as `a99 run` does
    Run(Box<RunArgs>),
}

/// Options of `repl`.
#[derive(Debug, Args)]
pub(crate) struct ReplArgs {
    /// Fuel for each line
    #[arg(long, value_name = "N", value_parser = super::run::amount, default_value = "1000")]
    pub fuel: f64,
    /// Time limit of each line, as in 500ms, 5s, 2m
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, default_value = "10s")]
    pub timeout: Duration,
    /// JSON file with the answers of networks, models and agents (see `a99 run
    /// --help`)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: Option<PathBuf>,
    /// Answer each line with one line of JSON, without a prompt
    #[arg(long)]
    pub json: bool,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code, such as lint.unknown_atom, or its older name, such as A99-W0201
    /// [default: list all]
    pub code: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `types`.
#[derive(Debug, Args)]
pub(crate) struct TypesArgs {
    /// File to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "agent99.d.ts", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Print everything, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `lsp`.
#[derive(Debug, Args)]
pub(crate) struct LspArgs {
    /// Accepted, because many editors pass it: the server always uses standard input and output
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, one for each command; by default the page of `a99` is
    /// printed
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Options of `docs`.
#[derive(Debug, Args)]
pub(crate) struct DocsArgs {}
