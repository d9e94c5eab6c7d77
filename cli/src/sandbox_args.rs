//! Command-line arguments of `a99 sandbox`.

use crate::duration::time;
use crate::named::args::{
    CP_EXAMPLES, CpArgs, FORK_EXAMPLES, ForkArgs, KeepArgs, LS_EXAMPLES, LsArgs, SNAPSHOT_EXAMPLES,
    START_EXAMPLES, STOP_EXAMPLES, SnapshotArgs, StartArgs, StopArgs,
};
use crate::named::name::Name;
use crate::packs;
use crate::sandbox_image_args::{DoctorArgs, ImageArgs};
use crate::sandbox_limits::{LimitsArgs, bytes};
use a99_sandbox::p9::GitWrites;
use a99_sandbox::{GuestJit, Mount, MountMode, Policy, PolicyError};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes:
  that of the command; 128 and the number of a signal that ended it
  2    usage: bad option
  124  the command ran too long
  125  the sandbox failed, or the working directory does not exist
  126  the command cannot be executed
  127  the command does not exist";

const BUILD_EXAMPLES: &str = "\
Examples:
  a99 sandbox build
  a99 sandbox build --pack py --pack node
  a99 sandbox build --with lua5.4,gawk --as mine";

const EXEC_EXAMPLES: &str = "\
Examples:
  a99 sandbox exec -- python3 -c 'print(6 * 7)'
  a99 sandbox exec --pack py -- python3 -c 'import numpy'
  a99 sandbox exec --mount .:/project --cwd /project --timeout 30s -- sh build.sh
  a99 sandbox exec box -- ls -l          in the sandbox that `start box` started
  a99 sandbox exec box --session -- 'cd /srv && export DEBUG=1'
  a99 sandbox exec box --detach -- sh -c 'serve > /tmp/log 2>&1'";

const SHELL_EXAMPLES: &str = "\
Examples:
  a99 sandbox shell
  a99 sandbox shell box                  in the sandbox that `start box` started";

/// Options of `sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SandboxCommand,
}

/// What to do with sandboxes.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Build the image of sandboxes, or packs of programs, unless they exist
    #[command(after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Run one command, in a new sandbox or in a named one
    #[command(after_help = format!("{EXEC_EXAMPLES}\n\n{EXIT_CODES}"))]
    Exec(ExecArgs),
    /// Open a shell on this terminal, in a new sandbox or in a named one
    #[command(after_help = format!("{SHELL_EXAMPLES}\n\n{EXIT_CODES}"))]
    Shell(ShellArgs),
    /// Export and import the image, for another machine
    Image(ImageArgs),
    /// Check the parts of the sandbox, and suggest fixes
    Doctor(DoctorArgs),
    /// Start a named sandbox, which runs until it is stopped
    #[command(after_help = START_EXAMPLES)]
    Start(StartArgs),
    /// Start a copy of a running named sandbox, which shares its memory and disk
    #[command(after_help = FORK_EXAMPLES)]
    Fork(ForkArgs),
    /// Save a running named sandbox to a file
    #[command(after_help = SNAPSHOT_EXAMPLES)]
    Snapshot(SnapshotArgs),
    /// Copy files and folders to and from a named sandbox
    #[command(after_help = CP_EXAMPLES)]
    Cp(CpArgs),
    /// List the named sandboxes
    #[command(after_help = LS_EXAMPLES)]
    Ls(LsArgs),
    /// Stop named sandboxes
    #[command(after_help = STOP_EXAMPLES)]
    Stop(StopArgs),
    /// Compile or try what others made, within limits; what `--image` and
    /// `image import` run
    #[command(hide = true)]
    Work(WorkArgs),
    /// Keep a sandbox; what `start` runs in the background
    #[command(hide = true)]
    Keep(KeepArgs),
}

impl SandboxArgs {
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            SandboxCommand::Build(args) => args.json,
            SandboxCommand::Exec(args) => args.json,
            SandboxCommand::Image(args) => args.json(),
            SandboxCommand::Doctor(args) => args.json,
            SandboxCommand::Start(args) => args.json,
            SandboxCommand::Fork(args) => args.json,
            SandboxCommand::Snapshot(args) => args.json,
            SandboxCommand::Cp(args) => args.json,
            SandboxCommand::Ls(args) => args.json,
            SandboxCommand::Stop(args) => args.json,
            SandboxCommand::Shell(_) | SandboxCommand::Keep(_) | SandboxCommand::Work(_) => false,
        }
    }
}

/// Options of `sandbox work`.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// What to do
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub what: Vec<OsString>,
}

/// Options of `sandbox build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// Use exactly the locked versions of Debian's packages, or fail
    #[arg(long, conflicts_with = "update")]
    pub locked: bool,
    /// Lock the current versions
    #[arg(long)]
    pub update: bool,
    /// Build a pack of programs instead of the image: build, node, py or tools; may be
    /// repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = packs::named)]
    pub pack: Vec<String>,
    /// Build a pack of these Debian packages, with all that they need, instead of the
    /// image
    #[arg(
        long,
        value_name = "PACKAGES",
        value_delimiter = ',',
        conflicts_with = "pack"
    )]
    pub with: Vec<String>,
    /// Name of the pack of --with
    #[arg(
        long = "as",
        value_name = "NAME",
        default_value = "custom",
        requires = "with"
    )]
    pub name: String,
    /// Folder with Agent99's sources, to build the emulator
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub sources: PathBuf,
    /// Print the result, including errors, as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Settings of a new sandbox.
#[derive(Debug, Default, PartialEq, Args)]
pub(crate) struct SettingsArgs {
    /// Mount a folder or file of the host in the sandbox: read-only, :rw, or
    /// :overlay, which keeps writes in the sandbox; may be repeated. After :rw,
    /// `,size=SIZE` and `,files=NUMBER` limit the added data (1G and 100000 by
    /// default). `,git` allows writing files that the host's git executes
    /// (settings, hooks, new repositories, rebases): use it only for trusted
    /// programs
    #[arg(long, value_name = "HOST:GUEST[:ro|:rw|:overlay]", value_parser = mount)]
    pub mount: Vec<Mount>,
    /// Network policy; its help has brackets, which are not a link.
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "off",
        value_parser = policy,
        help = "Network policy: off, full, or allow:HOST[:PORT],..."
    )]
    pub net: Policy,
    /// A variable of every command's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Memory of the sandbox, as in 512M or 2G [default: 256M]. At most 2G, of which the
    /// sandbox has 1920M; unused memory stays with the host
    #[arg(long, value_name = "SIZE", value_parser = ram)]
    pub ram: Option<u64>,
    /// A separate disk, as in 500M or 10G: an unnamed file of the host that grows as
    /// it is written and is deleted when the sandbox ends. It is in DIR [default:
    /// TMPDIR, or /var/tmp]. Without this option only files that do not fit memory are
    /// in such a file, of at most 4G; `none` keeps all in memory, some 110 MB
    #[arg(long, value_name = "SIZE[:DIR]|none", value_parser = disk)]
    pub disk: Option<DiskArg>,
    /// A pack of programs beside the image's: build, node, py, tools, or what `build
    /// --with` made; may be repeated. `a99 sandbox build --pack NAME` builds it
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = packs::built,
        conflicts_with = "image"
    )]
    pub pack: Vec<String>,
    /// Compile hot code of the sandbox while it runs, and keep it for later ones: auto
    /// in long computations, eager earlier, aot only with the image, or off
    #[arg(
        long,
        alias = "translate",
        value_name = "MODE",
        value_enum,
        default_value_t,
        default_missing_value = "auto",
        num_args = 0..=1,
        require_equals = true
    )]
    pub guest_jit: GuestJitArg,
    /// Another image than ours: NAME or oci:NAME of a container image that `image
    /// add` added, or a WebAssembly FILE of container2wasm
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub image: Option<PathBuf>,
    /// Limits
    #[command(flatten)]
    pub limits: LimitsArgs,
}

/// A separate disk of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskArg {
    /// Its size; 0 keeps all files in memory.
    pub bytes: u64,
    /// Its folder; by default `TMPDIR` or `/var/tmp`.
    pub folder: Option<PathBuf>,
}

/// Which code of the guest is compiled, and when. The values of the old
/// `--translate` are read as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestJitArg {
    /// Interpret all code
    Off,
    /// Use only the code compiled with the image
    #[value(alias = "ready")]
    Aot,
    /// Also compile hot code, and use what was compiled before
    #[default]
    Auto,
    /// Compile code earlier, for work that runs again
    #[value(alias = "on")]
    Eager,
}

impl From<GuestJitArg> for GuestJit {
    fn from(arg: GuestJitArg) -> Self {
        match arg {
            GuestJitArg::Off => Self::Off,
            GuestJitArg::Aot => Self::Aot,
            GuestJitArg::Auto => Self::Auto,
            GuestJitArg::Eager => Self::Eager,
        }
    }
}

/// Options of `sandbox shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// A named sandbox, instead of a new one
    pub name: Option<Name>,
    /// Run as the guest's administrator instead of its ordinary user
    #[arg(long)]
    pub root: bool,
    /// Settings of the sandbox
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Options of `sandbox exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// A named sandbox, instead of a new one
    #[arg(value_name = "NAME", conflicts_with = "name")]
    pub positional_name: Option<Name>,
    /// The same as NAME
    #[arg(long, value_name = "NAME")]
    pub name: Option<Name>,
    /// Settings of the sandbox
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Run in the shared session shell of the named sandbox, one call after the
    /// other: `cd`, variables and functions persist. One argument is a script;
    /// several are a command and its arguments
    #[arg(long, conflicts_with_all = ["cwd", "detach"])]
    pub session: bool,
    /// Run as the guest's administrator instead of its ordinary user
    #[arg(long, conflicts_with = "session")]
    pub root: bool,
    /// The command's working directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Time limit of the command, as in 500ms, 5s, 2m, 1h; seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
    /// Do not wait for the command: print its process id and let it run in the
    /// named sandbox; its output is discarded
    #[arg(long)]
    pub detach: bool,
    /// Print outputs and exit code as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    ///
    /// Without them, those of a container image
    #[arg(last = true, required_unless_present = "image")]
    pub argv: Vec<String>,
}

impl SettingsArgs {
    /// Name of a container image.
    pub(crate) fn container(&self) -> Option<&str> {
        let text = self.image.as_deref()?.to_str()?;
        match text.strip_prefix("oci:") {
            Some(name) => Some(name),
            None if text.contains('/') || text.ends_with(".wasm") => None,
            None => (!Path::new(text).exists()).then_some(text),
        }
    }

    /// File of container2wasm.
    pub(crate) fn foreign(&self) -> Option<&Path> {
        self.image.as_deref().filter(|_| self.container().is_none())
    }

    /// Whether an option is set that only the start of a sandbox accepts.
    pub(crate) fn has_fixed(&self) -> bool {
        let usual = SettingsArgs::default();
        self.mount != usual.mount
            || self.net != usual.net
            || self.image != usual.image
            || self.limits.lifetime != usual.limits.lifetime
            || self.disk != usual.disk
            || self.ram != usual.ram
            || self.pack != usual.pack
    }
}

fn mount(text: &str) -> Result<Mount, String> {
    let expected = || {
        "expected HOST:GUEST[:ro|:rw|:overlay] with an absolute GUEST; :rw may be followed by \
         ,git ,size=SIZE ,files=NUMBER"
            .to_owned()
    };
    // The text after the last colon is the mode, or a path of the guest.
    let (paths, options) = match text.rsplit_once(':') {
        Some((paths, options)) if !options.starts_with('/') => (paths, options),
        _ => (text, "ro"),
    };
    let mut options = options.split(',');
    let mode = match options.next() {
        Some("ro") => MountMode::ReadOnly,
        Some("rw") => MountMode::ReadWrite,
        Some("overlay") => MountMode::Overlay,
        _ => return Err(expected()),
    };
    // A host path may contain a colon, a guest path seldom does.
    let mut mount = match paths.rsplit_once(':') {
        Some((host, guest)) if !host.is_empty() && guest.starts_with('/') => {
            Mount::new(guest, host, mode)
        }
        _ => return Err(expected()),
    };
    for option in options {
        let number = |text: &str| bytes(text).ok_or_else(expected);
        match option.split_once('=') {
            _ if mode != MountMode::ReadWrite => return Err(expected()),
            None if option == "git" => mount.git = GitWrites::Allowed,
            Some(("size", size)) => mount.budget.bytes = number(size)?,
            Some(("files", count)) => mount.budget.entries = number(count)?,
            _ => return Err(expected()),
        }
    }
    Ok(mount)
}

fn disk(text: &str) -> Result<DiskArg, String> {
    let (size, folder) = match text.split_once(':') {
        Some((_, "")) => return Err("expected a folder behind the colon".to_owned()),
        Some((size, folder)) => (size, Some(PathBuf::from(folder))),
        None => (text, None),
    };
    let bytes = match (size, &folder) {
        ("none", None) => Some(0),
        _ => bytes(size).filter(|bytes| *bytes > 0),
    };
    let bytes = bytes.ok_or("expected none, or a size in bytes, or as in 500M or 10G")?;
    Ok(DiskArg { bytes, folder })
}

fn ram(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| "expected a size in bytes, or as in 512M or 2G".to_owned())
}

fn policy(text: &str) -> Result<Policy, String> {
    text.parse().map_err(|error: PolicyError| error.to_string())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_only_by_default() {
        for (text, host, mode) in [
            (".:/w", ".", MountMode::ReadOnly),
            ("/a:/w:ro", "/a", MountMode::ReadOnly),
            ("/a:b:/w:rw", "/a:b", MountMode::ReadWrite),
            ("x:/w:overlay", "x", MountMode::Overlay),
        ] {
            assert_eq!(mount(text), Ok(Mount::new("/w", host, mode)), "{text}");
        }
        let git = mount(".:/w:rw,git").expect("a mount");
        assert_eq!(
            (git.mode, git.git),
            (MountMode::ReadWrite, GitWrites::Allowed)
        );
        let many = mount("a:/w:rw,size=2G,git,files=5").expect("a mount");
        assert_eq!((many.budget.bytes, many.budget.entries), (2 << 30, 5));
        assert_eq!(many.git, GitWrites::Allowed);
        for text in [
            "",
            "/a",
            ":/w",
            "/a:w",
            "/a:",
            "/a:/w:rx",
            "/a:/w:ro,git",
            "/a:/w:rw,size=",
            "/a:/w:rw,size=1X",
            "/a:/w:rw,size=99999999T",
            "/a:/w:rw,",
        ] {
            assert!(mount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_old_spelling_of_the_guest_jit_is_read() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            settings: SettingsArgs,
        }
        let read = |option: &[&str]| {
            let line = ["x"].iter().chain(option);
            let line: Result<Line, _> = clap::Parser::try_parse_from(line);
            line.map(|line| line.settings.guest_jit).ok()
        };
        for (option, mode) in [
            ("--guest-jit=off", GuestJitArg::Off),
            ("--guest-jit=aot", GuestJitArg::Aot),
            ("--guest-jit=auto", GuestJitArg::Auto),
            ("--guest-jit=eager", GuestJitArg::Eager),
            ("--guest-jit", GuestJitArg::Auto),
            ("--translate=off", GuestJitArg::Off),
            ("--translate=ready", GuestJitArg::Aot),
            ("--translate", GuestJitArg::Auto),
            ("--translate=on", GuestJitArg::Eager),
        ] {
            assert_eq!(read(&[option]), Some(mode), "{option}");
        }
        assert_eq!(read(&[]), Some(GuestJitArg::Auto));
        assert_eq!(read(&["--guest-jit=never"]), None);
        let help = <Line as clap::CommandFactory>::command()
            .render_long_help()
            .to_string();
        assert!(help.contains("--guest-jit"), "{help}");
        for hidden in ["translate", "ready", "- on:"] {
            assert!(!help.contains(hidden), "{hidden}: {help}");
        }
    }

    #[test]
    fn disks_have_a_size_and_perhaps_a_folder() {
        for (text, bytes, folder) in [
            ("1048576", 1 << 20, None),
            ("500M", 500 << 20, None),
            ("none", 0, None),
            ("1g", 1 << 30, None),
            ("10G:/srv/x", 10 << 30, Some("/srv/x")),
            ("1T:a:b", 1 << 40, Some("a:b")),
        ] {
            let folder = folder.map(PathBuf::from);
            assert_eq!(disk(text), Ok(DiskArg { bytes, folder }), "{text}");
        }
        for text in [
            "",
            "G",
            "1.5G",
            "-1",
            "1g:",
            "1G:",
            "99999999T",
            "/x",
            "0",
            "none:/x",
        ] {
            assert!(disk(text).is_err(), "{text}");
        }
    }
}
