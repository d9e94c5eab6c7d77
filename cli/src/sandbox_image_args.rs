//! Command-line arguments of `a99 sandbox image` and `a99 sandbox doctor`.

use crate::packs;
use a99_egress::Policy;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    no problem worse than a warning
  1    sandboxes cannot run, or the image cannot be built
  2    usage: bad option";

const ADD_EXAMPLES: &str = "\
Examples:
  docker save -o box.tar box && a99 sandbox image add box.tar
  skopeo copy --override-arch riscv64 docker://alpine oci-archive:alpine.tar
  a99 sandbox image add alpine.tar --name alpine
  a99 sandbox image add docker://docker.io/library/alpine:3.22
  a99 sandbox image add docker://localhost:5000/box --insecure

A registry is reached under --net. A99_REGISTRY_USER and A99_REGISTRY_PASSWORD log in.";

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
    /// Write the image, or a pack, to a file for another machine, which needs no apt
    Export(ExportArgs),
    /// Check the file of an image or a pack, compile an image, and use it from now on
    Import(FileArgs),
    /// Add a container image for riscv64, from an archive of `docker save`, an OCI
    /// layout or a registry
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// List the container images and the packs
    Ls(ImageLsArgs),
    /// Remove container images and packs; guests that run keep theirs
    Rm(ImageRmArgs),
}

/// Options of `sandbox image add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A tar file, the folder of an OCI layout, or docker://HOST/REPOSITORY with :TAG
    /// or @sha256:DIGEST; the host may have a port
    #[arg(value_name = "FILE|docker://NAME", value_hint = ValueHint::AnyPath)]
    pub file: PathBuf,
    /// Name of the image from now on [default: the archive's own]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Name or tag of the image in an archive that has several
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Network policy for a registry and its redirects [default: full, all public
    /// addresses]
    #[arg(long, value_name = "POLICY")]
    pub net: Option<Policy>,
    /// Speak HTTP without TLS to a registry on this machine; without --net nothing but
    /// its port is allowed
    #[arg(long)]
    pub insecure: bool,
    /// A host beside the registry's that may ask for user and password
    #[arg(long, value_name = "HOST[:PORT]")]
    pub auth_host: Option<String>,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox image ls`.
#[derive(Debug, Args)]
pub(crate) struct ImageLsArgs {
    /// Print both, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox image rm`.
#[derive(Debug, Args)]
pub(crate) struct ImageRmArgs {
    /// Names of images
    #[arg(value_name = "NAME", required_unless_present = "pack")]
    pub names: Vec<String>,
    /// Remove this pack; may be repeated
    #[arg(long, value_name = "NAME", value_parser = packs::built)]
    pub pack: Vec<String>,
    /// Print the names and the bytes that are free again, including errors, as one
    /// line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox image export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Write this pack instead of the image
    #[arg(long, value_name = "NAME", value_parser = packs::built)]
    pub pack: Option<String>,
    /// The file
    #[command(flatten)]
    pub to: FileArgs,
}

/// Options of `sandbox image import`, and of `export`.
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
        match &self.command {
            ImageCommand::Export(args) => args.to.json,
            ImageCommand::Import(args) => args.json,
            ImageCommand::Add(args) => args.json,
            ImageCommand::Ls(args) => args.json,
            ImageCommand::Rm(args) => args.json,
        }
    }
}
