//! Options of a machine, and limits of an image.

use super::files::Root;
use super::link::{FrameLink, Stream};
use super::wasi::Setup;
use a99_sandbox_p9::{Budget, Spent};
use a99_sandbox_runner::{VmCode, VmError};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wasmtime::StoreLimitsBuilder;

/// Bytes that an image reserves for its arguments, environment and mounts; with more it
/// does not start.
pub const INFO_BYTES: usize = 1024;

/// Default memory of a machine: 128 MB of guest, the emulator and the image's files, with
/// room to spare.
const MEMORY: u64 = 1 << 30;

/// Default time limit until the shell's prompt.
const START: Duration = Duration::from_secs(60);

/// Default output limit of a command in bytes.
const OUTPUT: usize = 64 << 20;

/// Maximum elements of the program's tables: an emulator's functions.
const TABLE_ELEMENTS: usize = 1 << 20;

/// Maximum tables.
const TABLES: usize = 8;

/// Clock resolution in nanoseconds, normal and hardened: it limits what the guest can
/// measure of its neighbours.
const CLOCK: u64 = 1_000;
const CLOCK_HARDENED: u64 = 1_000_000;

/// Digits of seconds in the info text: enough until the year 2286.
const TIME_DIGITS: usize = 10;

/// A folder of the host, mounted in the guest.
#[derive(Clone, Debug)]
pub struct Mount {
    /// Mount point in the guest: an absolute path, not `/`.
    pub guest: String,
    /// Path on the host.
    pub host: PathBuf,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether the guest may also change `.git/hooks` and `.git/config`, which name
    /// programs that the host runs.
    pub allow_git: bool,
    /// How much the guest may add to the host's disk, shared with the other mounts. Removed
    /// content is not refunded.
    pub budget: Budget,
}

impl Default for Mount {
    fn default() -> Self {
        Self {
            guest: String::new(),
            host: PathBuf::new(),
            read_only: false,
            allow_git: false,
            budget: Budget::default(),
        }
    }
}

/// Options of a machine's start.
pub struct Options {
    /// Folders of the host.
    pub mounts: Vec<Mount>,
    /// Environment of the container, a few hundred bytes: the image's space is limited (see
    /// [`INFO_BYTES`]).
    pub env: Vec<(String, String)>,
    /// Command and arguments instead of the image's own. For `exec` it must be a shell.
    pub args: Vec<String>,
    /// Entry point instead of the image's own.
    pub entrypoint: Option<String>,
    /// MAC address of the network interface instead of 02:00:00:00:00:01.
    pub mac: Option<[u8; 6]>,
    /// Network; without one there is no interface. An image with a network waits at boot
    /// for an answer to its DHCP request.
    pub network: Option<Box<dyn FrameLink>>,
    /// Maximum bytes of memory, the emulator's included.
    pub memory_limit: u64,
    /// Time limit until the image's shell answers.
    pub start_timeout: Duration,
    /// Whether clocks have a resolution of 1 ms instead of 1 us.
    pub hardened: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mounts: Vec::new(),
            env: Vec::new(),
            args: Vec::new(),
            entrypoint: None,
            mac: None,
            network: None,
            memory_limit: MEMORY,
            start_timeout: START,
            hardened: false,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("mounts", &self.mounts)
            .field("args", &self.args)
            .field("network", &self.network.is_some())
            .field("memory_limit", &self.memory_limit)
            .finish_non_exhaustive()
    }
}

/// Maximum bytes of a command's standard input: they are typed, with four characters for a
/// byte at worst.
pub const MAX_INPUT: usize = 1 << 20;

/// Limits of one command, and its standard input.
#[derive(Clone, Debug)]
pub struct Run {
    /// Time limit, after which the command is interrupted.
    pub timeout: Option<Duration>,
    /// Maximum bytes of output, after which the command is interrupted.
    pub output_limit: usize,
    /// Setting this interrupts the command soon.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Standard input, at most [`MAX_INPUT`] bytes; empty if absent. It is typed into a
    /// file of the image first.
    pub stdin: Option<Vec<u8>>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            timeout: None,
            output_limit: OUTPUT,
            cancel: None,
            stdin: None,
        }
    }
}

fn bad(text: impl Into<String>) -> VmError {
    VmError::new(VmCode::BadOption, text)
}

/// Formats a MAC address.
fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

impl Options {
    /// Prepares the machine's setup. `wake` is called when frames arrive.
    pub(super) fn set_up(self, wake: super::link::Wake) -> Result<Setup, VmError> {
        self.check()?;
        let arguments = self.arguments();
        let limits = StoreLimitsBuilder::new()
            .memory_size(usize::try_from(self.memory_limit).unwrap_or(usize::MAX))
            .table_elements(TABLE_ELEMENTS)
            .instances(1)
            .memories(1)
            .tables(TABLES)
            .build();
        let writable = self.mounts.iter().filter(|mount| !mount.read_only);
        let mut budget = Budget {
            bytes: 0,
            entries: 0,
        };
        for mount in writable {
            budget.bytes = budget.bytes.saturating_add(mount.budget.bytes);
            budget.entries = budget.entries.saturating_add(mount.budget.entries);
        }
        let mounts = self.mounts.iter().map(|mount| {
            let guest = mount.guest.clone();
            Root::open(&mount.host, guest, mount.read_only, mount.allow_git)
        });
        Ok(Setup {
            arguments,
            environment: self.env,
            mounts: mounts.collect::<Result<_, _>>()?,
            network: self.network.map(|link| Stream::new(link, wake)),
            clock_resolution: match self.hardened {
                true => CLOCK_HARDENED,
                false => CLOCK,
            },
            limits,
            spent: Spent::new(budget),
        })
    }

    /// Arguments of the image's program.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["agent99".to_owned()];
        if let Some(entrypoint) = &self.entrypoint {
            arguments.extend(["--entrypoint".to_owned(), entrypoint.clone()]);
        }
        if self.network.is_some() {
            let socket = format!("socket=listenfd={}", super::wasi::LISTEN_FD);
            arguments.extend(["--net".to_owned(), socket]);
            // Only an image with a network reads it.
            if let Some(mac) = self.mac {
                arguments.extend(["--mac".to_owned(), mac_text(mac)]);
            }
        }
        if !self.args.is_empty() {
            arguments.push("--".to_owned());
            arguments.extend(self.args.iter().cloned());
        }
        arguments
    }

    fn check(&self) -> Result<(), VmError> {
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0', '\n']) {
                return Err(bad(format!("{name:?} is no name of a variable")));
            }
            if value.contains(['\0', '\n']) {
                let text = format!(
                    "the value of {name} has a line's end or a zero, which the image cannot take; \
                     export it with a command after the start"
                );
                return Err(bad(text));
            }
        }
        for argument in self.args.iter().chain(&self.entrypoint) {
            if argument.contains('\0') {
                return Err(bad(format!("the argument {argument:?} has a zero byte")));
            }
        }
        if self.mac.is_some_and(|mac| mac[0] & 1 != 0) {
            return Err(bad(
                "the MAC address is one of a group: its first byte must be even",
            ));
        }
        self.check_mounts()?;
        self.check_info()
    }

    fn check_mounts(&self) -> Result<(), VmError> {
        for (index, mount) in self.mounts.iter().enumerate() {
            let guest = &mount.guest;
            let parts = || guest.split('/').skip(1);
            let odd = |part: &str| matches!(part, "" | "." | "..");
            if !guest.starts_with('/') || parts().any(odd) || guest.contains(['\0', '\n']) {
                let text = format!(
                    "{guest:?} is no place for a mount: it must be an absolute path other than \
                     `/`, without `.`, `..` and a slash at its end"
                );
                return Err(bad(text));
            }
            if guest == "/pack" {
                return Err(bad("/pack is where the image keeps its own files"));
            }
            if self.mounts[..index]
                .iter()
                .any(|other| other.guest == *guest)
            {
                return Err(bad(format!("two mounts at {guest}")));
            }
        }
        Ok(())
    }

    /// The text that the image makes of its options, as lines.
    fn info(&self) -> Vec<String> {
        let escape = |text: &str| text.replace(' ', "\\ ").replace('\n', "\\\n");
        let mut lines = Vec::new();
        lines.extend(
            self.entrypoint
                .iter()
                .map(|text| format!("e: {}\n", escape(text))),
        );
        if !self.args.is_empty() {
            let args: Vec<_> = self.args.iter().map(|text| escape(text)).collect();
            lines.push(format!("c: {}\n", args.join(" ")));
        }
        let env = self.env.iter();
        lines.extend(env.map(|(name, value)| format!("env: {name}={value}\n")));
        if self.network.is_some() {
            lines.push(format!("n: {}\n", mac_text(self.mac.unwrap_or_default())));
        }
        lines.push(format!("t: {}\n", "0".repeat(TIME_DIGITS)));
        lines.extend(
            self.mounts
                .iter()
                .map(|mount| format!("m: {}\n", mount.guest)),
        );
        lines
    }

    /// Checks limits before the start that would otherwise end the image during it.
    fn check_info(&self) -> Result<(), VmError> {
        let mut lines = self.info();
        let total: usize = lines.iter().map(String::len).sum();
        if total <= INFO_BYTES {
            return Ok(());
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
        let mut text = format!(
            "arguments, environment and mounts take {total} bytes of the image's {INFO_BYTES}; \
             shorten them, or export variables with a command after the start. The longest:"
        );
        for line in lines.iter().take(3) {
            let start: String = line.trim_end().chars().take(40).collect();
            // Writing to a string cannot fail.
            let _ = write!(text, " `{start}` {} bytes;", line.len());
        }
        text.pop();
        Err(VmError::new(VmCode::InfoTooLong, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::default()
    }

    #[test]
    fn a_long_environment_is_refused_by_name() {
        let mut options = options();
        options.env = vec![("SHORT".to_owned(), "x".to_owned())];
        options.check().unwrap();
        options.env.push(("LONG".to_owned(), "y".repeat(1100)));
        let error = options.check().unwrap_err();
        assert_eq!(error.code, VmCode::InfoTooLong);
        assert!(error.text.contains("`env: LONG=yy"), "{}", error.text);
        assert!(error.text.contains("1024"), "{}", error.text);
    }

    #[test]
    fn the_limit_is_exact() {
        // "env: V=" and a line's end, and 14 bytes for the time.
        let mut options = options();
        options.env = vec![("V".to_owned(), "z".repeat(INFO_BYTES - 14 - 8))];
        options.check().unwrap();
        options.args = vec!["a".to_owned()];
        assert_eq!(options.check().unwrap_err().code, VmCode::InfoTooLong);
    }

    #[test]
    fn bad_options_are_refused() {
        let bad = |options: Options| {
            assert_eq!(options.check().unwrap_err().code, VmCode::BadOption);
        };
        for guest in [
            "", "/", "relative", "/a/../b", "/a/", "//a", "/pack", "/a\nb",
        ] {
            let mount = Mount {
                guest: guest.to_owned(),
                ..Mount::default()
            };
            bad(Options {
                mounts: vec![mount],
                ..options()
            });
        }
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", "x\ny"), ("A", "\0")] {
            bad(Options {
                env: vec![(name.to_owned(), value.to_owned())],
                ..options()
            });
        }
        bad(Options {
            mac: Some([1, 0, 0, 0, 0, 0]),
            ..options()
        });
        bad(Options {
            args: vec!["a\0".to_owned()],
            ..options()
        });
    }

    #[test]
    fn options_become_the_flags_of_the_image() {
        let options = Options {
            entrypoint: Some("/bin/x".to_owned()),
            args: vec!["-c".to_owned(), "a b".to_owned()],
            mac: Some([2, 0, 0, 0, 0, 0xab]),
            ..options()
        };
        let expected = ["agent99", "--entrypoint", "/bin/x", "--", "-c", "a b"];
        assert_eq!(options.arguments(), expected);
    }
}
