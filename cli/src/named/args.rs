//! Command-line arguments of named sandboxes.

use super::name::Name;
use super::spec::Publish;
use crate::sandbox_args::SettingsArgs;
use clap::{ArgGroup, Args, ValueHint};

/// Examples of `start`.
pub(crate) const START_EXAMPLES: &str = "\
Examples:
  a99 sandbox start box --mount .:/project:rw --net allow:pypi.org:443
  a99 sandbox exec box -- python3 /srv/build.py
  a99 sandbox start web --publish 8080:80
  a99 sandbox stop box";

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
    /// Forward a port of this computer to a port of the sandbox; without an address
    /// only programs of this computer reach it; may be repeated
    #[arg(long, value_name = "[ADDR:]HOSTPORT:GUESTPORT", value_parser = Publish::parse)]
    pub publish: Vec<Publish>,
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
