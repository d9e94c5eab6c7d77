//! Limits of a sandbox on the command line: sizes, counts and times.

use crate::duration::time;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits of a sandbox and of its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct LimitsArgs {
    /// Memory limit of one command, as in 64M, at most the guest's 256M [default:
    /// almost all of it]. A command that needs more is killed, with a message
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Maximum number of processes and threads of one command [default: 512]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub processes: Option<u32>,
    /// Output limit of one command, as in 10M; a command that writes more is killed
    /// [default: 64M if output is collected (--json), no limit if it streams]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub output_limit: Option<u64>,
    /// Lifetime of the sandbox, as in 30s, 10m, 2h; then all its processes end
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub lifetime: Option<Duration>,
}

/// Parses a number of bytes; `K`, `M`, `G` and `T`, in either case, are powers of 1,024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| {
            let number = text.strip_suffix([*unit, unit.to_ascii_lowercase()])?;
            Some((number, *shift))
        })
        .unwrap_or((text, 0));
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_| digits)?;
    number.checked_mul(1 << shift)
}

/// Parses a size: [`bytes`] with an error.
///
/// # Errors
/// The expected form.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    bytes(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a size above 0, as in 4096, 64K, 512M, 2G".to_owned())
}

/// Parses a command's memory limit, which may not exceed the guest's memory.
///
/// # Errors
/// The expected form.
fn memory(text: &str) -> Result<u64, String> {
    let most = u64::from(a99_sandbox::vm::RAM_BYTES);
    match size(text)? {
        bytes if bytes > most => Err(format!(
            "the whole guest has {}M: expected less, as in 64M",
            most >> 20
        )),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_a_limit_above_the_guests_memory_is_refused() {
        assert_eq!(memory("64M"), Ok(64 << 20));
        assert_eq!(memory("256M"), Ok(256 << 20));
        for text in ["1G", "257M", "1T"] {
            assert!(memory(text).unwrap_err().contains("256M"), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("64k", 64 << 10),
            ("64K", 64 << 10),
            ("512M", 512 << 20),
            ("2g", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "0",
            "0M",
            "-1",
            "1.5G",
            "x",
            "+1",
            "K",
            "1MB",
            "99999999999G",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
