//! Command-line arguments of `a99 sandbox image` and `a99 sandbox doctor`.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    no problem worse than a warning
  1    sandboxes cannot run, or the image cannot be built
  2    usage: bad option";

/// Options of `sandbox image`.
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// What to do with the image.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Write the image to a file for another machine, which needs no apt
    Export(FileArgs),
    /// Check an exported or packed file, compile it, and use it from now on
    Import(FileArgs),
}

/// Options of `sandbox image export` and `import`.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The file: a tar archive, gzipped or (import) packed with zstd
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DoctorArgs {
    /// Folder with Agent99's sources, to compare with the image
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub sources: PathBuf,
    /// Print the findings as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

impl ImageArgs {
    pub(crate) fn json(&self) -> bool {
        let (ImageCommand::Export(args) | ImageCommand::Import(args)) = &self.command;
        args.json
    }
}
