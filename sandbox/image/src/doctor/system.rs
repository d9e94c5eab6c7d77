//! System checks: disk space, memory, limits, system calls.

use super::{Diagnostic, Status};
use a99_sandbox_cache::step::free_bytes;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::Path;

/// Free space below which a full build may fail: the kernel's unpacked source and its
/// objects.
const ROOM: u64 = 3_500_000_000;

/// Available memory below which a build, or a handful of guests, is tight.
const MEMORY: u64 = 1 << 30;

/// Address space that a guest's memory reserves, with its guard pages, and as much again
/// for the rest of the process.
const ADDRESSES: u64 = 9 << 30;

/// Open files and threads below which fifty guests do not fit.
const MANY: u64 = 256;

/// Runs all checks; `folder` is where images are kept.
pub(super) fn checks(folder: &Path) -> Vec<Diagnostic> {
    vec![
        disk(folder),
        memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        overcommit(&read("/proc/sys/vm/overcommit_memory")),
        limit(
            "address space",
            Resource::As,
            ADDRESSES,
            Status::Error,
            "-v",
        ),
        limit("open files", Resource::Nofile, MANY, Status::Warning, "-n"),
        limit("threads", Resource::Nproc, MANY, Status::Warning, "-u"),
        openat2(folder),
        ping(&read("/proc/sys/net/ipv4/ping_group_range"), &groups()),
    ]
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

fn disk(folder: &Path) -> Diagnostic {
    let check = "disk";
    match free_bytes(folder) {
        Ok(free) if free < ROOM => {
            let (free, room) = (megabytes(free), megabytes(ROOM));
            let text = format!("{free} free; a build from nothing takes {room}");
            Diagnostic::new(check, Status::Warning, text)
                .help("make room, or name another folder in A99_CACHE_DIR")
        }
        Ok(free) => Diagnostic::ok(check, format!("{} free", megabytes(free))),
        Err(error) => Diagnostic::of(check, Status::Warning, &error),
    }
}

/// Checks the line `MemAvailable` of `/proc/meminfo` (proc_meminfo(5)), in KiB.
fn memory(table: &str) -> Diagnostic {
    let check = "memory";
    let line = table.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let Some(available) = kilobytes.map(|n| n.saturating_mul(1024)) else {
        return Diagnostic::new(
            check,
            Status::Warning,
            "the kernel does not tell how much is available",
        );
    };
    let text = format!("{} available", megabytes(available));
    match available < MEMORY {
        true => Diagnostic::new(check, Status::Warning, text).help("end other programs"),
        false => Diagnostic::ok(check, text),
    }
}

/// Checks overcommit: guests reserve address space that they never touch, and mode 2 counts
/// it.
fn overcommit(mode: &str) -> Diagnostic {
    let check = "overcommit";
    match mode {
        "2" => Diagnostic::new(
            check,
            Status::Warning,
            "memory that is set aside counts as used",
        )
        .help("`sysctl vm.overcommit_memory=0`, as root, if guests fail to start"),
        _ => Diagnostic::ok(check, "memory counts when it is used"),
    }
}

fn limit(
    check: &'static str,
    of: Resource,
    least: u64,
    severity: Status,
    flag: &str,
) -> Diagnostic {
    judge_limit(check, getrlimit(of).current, least, severity, flag)
}

fn judge_limit(
    check: &'static str,
    current: Option<u64>,
    least: u64,
    severity: Status,
    flag: &str,
) -> Diagnostic {
    match current {
        None => Diagnostic::ok(check, "no limit"),
        Some(current) if current >= least => Diagnostic::ok(check, format!("at most {current}")),
        Some(current) => {
            let text = format!("at most {current}, {least} are wanted");
            Diagnostic::new(check, severity, text)
                .help(format!("`ulimit {flag}` shows and raises it"))
        }
    }
}

/// Checks `openat2` (Linux 5.6), which shares folders with guests, and which some
/// containers forbid.
fn openat2(folder: &Path) -> Diagnostic {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(CWD, folder, flags, Mode::empty(), resolve);
    let check = "openat2";
    match opened {
        Ok(_) => Diagnostic::ok(check, "works"),
        Err(error) => Diagnostic::new(check, Status::Warning, format!("does not work: {error}")).help(
            "folders can be shared with guests only where the kernel allows openat2 (Linux 5.6)",
        ),
    }
}

fn groups() -> Vec<u32> {
    let mut groups: Vec<u32> = rustix::process::getgroups()
        .unwrap_or_default()
        .into_iter()
        .map(|group| group.as_raw())
        .collect();
    groups.push(rustix::process::getegid().as_raw());
    groups
}

/// Checks whether one of the groups may send ICMP echoes without privileges (icmp(7),
/// `ping_group_range`).
fn ping(range: &str, groups: &[u32]) -> Diagnostic {
    let check = "ping";
    let mut ends = range.split_whitespace().map(str::parse::<u32>);
    let allowed = match (ends.next(), ends.next()) {
        (Some(Ok(first)), Some(Ok(last))) => groups.iter().any(|g| (first..=last).contains(g)),
        _ => false,
    };
    match allowed {
        true => Diagnostic::ok(check, "guests may be allowed to"),
        false => Diagnostic::new(check, Status::Warning, "guests cannot: this user may not")
            .help("`sysctl net.ipv4.ping_group_range='0 2147483647'`, as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_is_available() {
        let table = |kilobytes: u64| format!("MemTotal: 9 kB\nMemAvailable: {kilobytes} kB\n");
        assert_eq!(memory(&table(4 << 20)).status, Status::Ok);
        assert_eq!(memory(&table(100)).status, Status::Warning);
        assert_eq!(memory("").status, Status::Warning);
    }

    #[test]
    fn limits_are_compared() {
        let judge = |current| judge_limit("threads", current, 10, Status::Error, "-u");
        assert_eq!(judge(None).status, Status::Ok);
        assert_eq!(judge(Some(10)).status, Status::Ok);
        assert_eq!(judge(Some(9)).status, Status::Error);
        assert!(judge(Some(9)).help.unwrap().contains("ulimit -u"));
    }

    #[test]
    fn ping_needs_one_of_the_groups() {
        assert_eq!(ping("0\t2147483647", &[7]).status, Status::Ok);
        // The kernel's default range is empty.
        assert_eq!(ping("1\t0", &[0, 1]).status, Status::Warning);
        assert_eq!(ping("5 6", &[4, 6]).status, Status::Ok);
        assert_eq!(ping("", &[0]).status, Status::Warning);
    }

    #[test]
    fn strict_accounting_is_reported() {
        assert_eq!(overcommit("2").status, Status::Warning);
        assert_eq!(overcommit("0").status, Status::Ok);
    }

    #[test]
    fn this_machine_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let diagnostics = checks(folder.path());
        assert!(
            diagnostics
                .iter()
                .all(|diagnostic| !diagnostic.text.is_empty())
        );
        let gone = checks(Path::new("/none"));
        let of = |check: &str| gone.iter().find(|f| f.check == check).unwrap().status;
        assert_eq!([of("disk"), of("openat2")], [Status::Warning; 2]);
    }
}
