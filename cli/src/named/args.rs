//! Command-line arguments of named sandboxes.

use super::name::Name;
use super::spec::Publish;
use crate::sandbox_args::SettingsArgs;
use clap::{ArgGroup, Args, ValueHint};
use std::path::PathBuf;

/// Examples of `start`.
pub(crate) const START_EXAMPLES: &str = "\
Examples:
  a99 sandbox start box --mount .:/project:rw --net allow:pypi.org:443
  a99 sandbox exec box -- python3 /srv/build.py
  a99 sandbox start web --publish 8080:80
  a99 sandbox start again --from box.snapshot
  a99 sandbox stop box";

/// Examples of `fork`.
pub(crate) const FORK_EXAMPLES: &str = "\
The copy shares memory and disk with the original until one of them writes. Programs
in the background run on in both; commands that a client follows stay with the
original. Clock, random numbers and the network interface's address are new, and
connections are reset.

Examples:
  a99 sandbox fork box try
  a99 sandbox fork box try --mount .:/project --net allow:pypi.org:443
  a99 sandbox exec try -- python3 /srv/experiment.py";

/// Examples of `snapshot`.
pub(crate) const SNAPSHOT_EXAMPLES: &str = "\
The file holds memory and disk of the sandbox, secrets included. It fits the image
that the sandbox was started from, on any computer.

Examples:
  a99 sandbox snapshot box box.snapshot
  a99 sandbox start again --from box.snapshot";

/// Examples of `cp`.
pub(crate) const CP_EXAMPLES: &str = "\
Permission bits, times and symbolic links within a folder are kept. An existing
target folder receives the source under its name. `SOURCE/.` copies the contents
of a folder.

Examples:
  a99 sandbox cp script.py box:/home/agent/
  a99 sandbox cp box:/home/agent/results ./results
  a99 sandbox cp src/. box:/project
  a99 sandbox cp ./odd:name box:/home/agent/";

/// Examples of `ls`.
pub(crate) const LS_EXAMPLES: &str = "\
Examples:
  a99 sandbox ls
  a99 sandbox ls --json";

/// Examples of `stop`.
pub(crate) const STOP_EXAMPLES: &str = "\
The sandbox's processes end, and pending writes reach the mounts.

Examples:
  a99 sandbox stop box
  a99 sandbox stop --all";

/// Options of `sandbox start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The sandbox's name: lower-case letters, digits and `-`
    pub name: Name,
    /// Settings of the sandbox
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Continue from the file of `sandbox snapshot`; mounts, network and limits are those
    /// given here, a container image is the one that it had
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Settings of a sandbox with a name
    #[command(flatten)]
    pub named: NamedArgs,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Settings that only named sandboxes have.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NamedArgs {
    /// Forward a port of this computer to a port of the sandbox; without an address
    /// only programs of this computer reach it; may be repeated
    #[arg(long, value_name = "[ADDR:]HOSTPORT:GUESTPORT", value_parser = Publish::parse)]
    pub publish: Vec<Publish>,
    /// Refuse to start if this many named sandboxes of this user run already
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub max: u32,
}

/// Options of `sandbox fork`.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The sandbox to copy, which runs on
    pub name: Name,
    /// The copy's name
    pub new: Name,
    /// Settings of the copy, which has none of the original's
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Settings of a sandbox with a name
    #[command(flatten)]
    pub named: NamedArgs,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox snapshot`.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// The sandbox to save, which runs on
    pub name: Name,
    /// The file, which is replaced in one step; only its owner may read it
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of the hidden `sandbox keep`.
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// The sandbox's name
    pub name: Name,
}

/// Options of `sandbox cp`.
#[derive(Debug, Args)]
pub(crate) struct CpArgs {
    /// What to copy: a path, or NAME:PATH in a sandbox
    #[arg(value_hint = ValueHint::AnyPath)]
    pub source: Endpoint,
    /// Where to copy it: NAME:PATH in a sandbox, or a path
    #[arg(value_hint = ValueHint::AnyPath)]
    pub target: Endpoint,
    /// Copy git directories of the sandbox with settings and hooks that this
    /// computer's git executes: only from sandboxes that you trust
    #[arg(long)]
    pub git: bool,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Print the sandboxes, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `sandbox stop`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "all"]))]
pub(crate) struct StopArgs {
    /// The sandboxes' names
    #[arg(value_name = "NAME")]
    pub names: Vec<Name>,
    /// Stop all sandboxes of this user
    #[arg(long)]
    pub all: bool,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// One end of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A path of this computer.
    Host(String),
    /// A path of a sandbox.
    Guest(Name, String),
}

impl std::str::FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected a path, or NAME:PATH".to_owned());
        }
        if let Some((name, path)) = text.split_once(':') {
            match name.parse() {
                Ok(_) if path.is_empty() => {
                    return Err("expected a path after the name: NAME:PATH".to_owned());
                }
                Ok(name) => return Ok(Endpoint::Guest(name, path.to_owned())),
                // A host path may contain a colon.
                Err(_) => {}
            }
        }
        Ok(Endpoint::Host(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_a_copy() {
        let host = |path: &str| Ok(Endpoint::Host(path.to_owned()));
        let guest = |path: &str| Ok(Endpoint::Guest("box".parse().unwrap(), path.to_owned()));
        assert_eq!("box:/a".parse(), guest("/a"));
        assert_eq!("box:a:b".parse(), guest("a:b"));
        for path in ["a", "./box:/a", "/a:b", "Box:/a", "..", ":a"] {
            assert_eq!(path.parse(), host(path));
        }
        for bad in ["", "box:"] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}
