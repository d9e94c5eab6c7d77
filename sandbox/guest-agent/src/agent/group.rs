//! Control groups (version 2): one for each command, under one for all.
//!
//! The agent itself stays in the root group, outside their limits, so that commands cannot
//! starve it. It reaches the groups through a descriptor: no path visible to commands leads
//! to them.

use crate::protocol::Limits;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs;
use std::io;

/// Mount point of the control groups, mounted by `/init`.
pub(super) const ROOT: &str = "/sys/fs/cgroup";

/// Memory that all commands together leave to the agent and the kernel.
const SPARE_MEMORY: u64 = 12 << 20;

/// Processes that all commands together leave to the agent and the kernel.
const SPARE_PROCESSES: u64 = 64;

/// Memory that one command leaves to the others by default. A command that takes all it can
/// get then hits its own limit before the common one, and only it ends.
const SPARE_FOR_OTHERS: u64 = 16 << 20;

/// Default limit of a command's processes and threads: more than any build or test run on
/// one processor needs, less than the system's total.
const COMMAND_PROCESSES: u32 = 512;

/// Memory that may still be charged to a group that is reused.
const MAX_LEFT_BYTES: u64 = 256 << 10;

/// Maximum groups that wait to be removed after their processes ended: commands may come
/// without a pause for [`Groups::tidy`], and each group holds open files.
const MAX_ENDING: usize = 8;

/// Size of a page in bytes, the most that a kernel file returns in one read.
const PAGE_BYTES: usize = 4096;

/// Creates and removes the groups.
#[derive(Debug)]
pub(super) struct Groups {
    /// Folder of the group for all commands.
    parent: OwnedFd,
    /// Memory that commands have together.
    memory: u64,
    /// Limits of commands without explicit ones.
    defaults: Limits,
    made: u64,
    /// A group with the defaults, made while idle or left by an ended command: making one
    /// takes longer than starting a small program.
    spare: Option<Group>,
    /// Groups whose processes are still ending.
    ending: Vec<Group>,
    /// Whether [`Groups::tidy`] has work.
    untidy: bool,
}

impl Groups {
    /// Creates the group for all commands.
    pub(super) fn new() -> io::Result<Self> {
        let root = rustix::fs::open(ROOT, FOLDER, Mode::empty())?;
        let controllers = "+memory +pids";
        write(&root, "cgroup.subtree_control", controllers)?;
        let parent = make_folder(&root, "agent99")?;
        write(&parent, "cgroup.subtree_control", controllers)?;
        let memory = available_memory()?.saturating_sub(SPARE_MEMORY);
        write(&parent, "memory.max", &memory.to_string())?;
        let threads: u64 = read_number("/proc/sys/kernel/threads-max")?;
        let processes = threads.saturating_sub(SPARE_PROCESSES).max(SPARE_PROCESSES);
        write(&parent, "pids.max", &processes.to_string())?;
        let defaults = Limits {
            pids: Some(COMMAND_PROCESSES.min(u32::try_from(processes / 2).unwrap_or(u32::MAX))),
            memory: Some(memory.saturating_sub(SPARE_FOR_OTHERS)),
        };
        Ok(Self {
            parent,
            memory,
            defaults,
            made: 0,
            spare: None,
            ending: Vec::new(),
            untidy: true,
        })
    }

    /// Gives `bytes` of memory that the guest got to all commands together, and to each
    /// command without explicit limits.
    pub(super) fn add_memory(&mut self, bytes: u64) -> io::Result<()> {
        self.memory += bytes;
        write(&self.parent, "memory.max", &self.memory.to_string())?;
        self.defaults.memory = self.defaults.memory.map(|memory| memory + bytes);
        match &self.spare {
            Some(group) => group.limit(&self.defaults),
            None => Ok(()),
        }
    }

    /// Keeps files of commands in memory.
    pub(super) fn swap_off(&self) -> io::Result<()> {
        write(&self.parent, "memory.swap.max", "0")
    }

    /// Limits of commands without explicit ones.
    pub(super) fn defaults(&self) -> &Limits {
        &self.defaults
    }

    /// Changes the limits of commands without explicit ones.
    pub(super) fn set_defaults(&mut self, limits: &Limits) -> io::Result<()> {
        self.check(limits)?;
        self.defaults = Limits {
            pids: limits.pids.or(self.defaults.pids),
            memory: limits.memory.or(self.defaults.memory),
        };
        match &self.spare {
            Some(group) => group.limit(limits),
            None => Ok(()),
        }
    }

    /// Makes a group.
    pub(super) fn make(&mut self, limits: &Limits) -> io::Result<Group> {
        self.check(limits)?;
        self.untidy = true;
        if self.ending.len() > MAX_ENDING {
            self.sweep();
        }
        let mut group = match self.spare.take() {
            Some(group) => group,
            None => self.create()?,
        };
        if limits.pids.is_some() || limits.memory.is_some() {
            group.altered = true;
            group.limit(limits)?;
        }
        Ok(group)
    }

    /// Checks that limits are below the total: others would have no effect.
    fn check(&self, limits: &Limits) -> io::Result<()> {
        match limits.memory {
            Some(bytes) if bytes > self.memory => Err(io::Error::other(format!(
                "a limit of {bytes} bytes of memory, where the sandbox's commands have {} together",
                self.memory
            ))),
            _ => Ok(()),
        }
    }

    /// Kills the processes left in a group, and removes it once they are gone.
    pub(super) fn end(&mut self, group: Group) {
        self.ending.push(group);
        self.untidy = true;
    }

    /// Does work that can wait until the agent is idle.
    pub(super) fn tidy(&mut self) {
        self.untidy = false;
        self.sweep();
        if self.spare.is_none() {
            self.spare = self.create().ok();
        }
    }

    /// Removes the groups whose processes have ended, or keeps one as the spare.
    fn sweep(&mut self) {
        for group in std::mem::take(&mut self.ending) {
            if self.spare.is_none() && group.is_as_new() {
                self.spare = Some(group);
            } else if rustix::fs::unlinkat(&self.parent, &group.name, AtFlags::REMOVEDIR).is_err() {
                self.ending.push(group);
            }
        }
    }

    /// Whether [`Groups::tidy`] has work.
    pub(super) fn is_untidy(&self) -> bool {
        self.untidy
    }

    fn create(&mut self) -> io::Result<Group> {
        self.made += 1;
        let name = self.made.to_string();
        let folder = make_folder(&self.parent, &name)?;
        let group = Group {
            processes: open(&folder, "cgroup.procs", OFlags::RDWR)?,
            kill: open(&folder, "cgroup.kill", OFlags::WRONLY)?,
            events: open(&folder, "memory.events", OFlags::RDONLY)?,
            memory: open(&folder, "memory.current", OFlags::RDONLY)?,
            folder,
            name,
            altered: false,
        };
        group.limit(&self.defaults)?;
        write(&group.folder, "memory.oom.group", "1")?;
        Ok(group)
    }
}

/// One group. The files that each command needs stay open: opening one takes several times
/// as long as reading it.
#[derive(Debug)]
pub(super) struct Group {
    name: String,
    folder: OwnedFd,
    /// Whether it has special limits or settings.
    altered: bool,
    processes: OwnedFd,
    kill: OwnedFd,
    events: OwnedFd,
    memory: OwnedFd,
}

/// Open flags of a group's folder, which only serves look-ups.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn make_folder(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
    Ok(rustix::fs::openat(parent, name, FOLDER, Mode::empty())?)
}

fn open(group: impl AsFd, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(group, name, flags, Mode::empty())?)
}

fn write(group: impl AsFd, name: &str, text: &str) -> io::Result<()> {
    let file = open(group, name, OFlags::WRONLY)?;
    rustix::io::write(file, text.as_bytes())?;
    Ok(())
}

/// Reads a file of a group from its start, if it fits a page.
fn read(file: &OwnedFd) -> Option<String> {
    let mut buffer = [0; PAGE_BYTES];
    let count = rustix::io::pread(file, &mut buffer, 0).ok()?;
    let text = str::from_utf8(&buffer[..count]).ok()?;
    (count < PAGE_BYTES).then(|| text.to_owned())
}

impl Group {
    pub(super) fn limit(&self, limits: &Limits) -> io::Result<()> {
        if let Some(pids) = limits.pids {
            write(&self.folder, "pids.max", &pids.to_string())?;
        }
        if let Some(memory) = limits.memory {
            write(&self.folder, "memory.max", &memory.to_string())?;
        }
        Ok(())
    }

    /// Lets only the largest process die when memory runs out, not all of them.
    pub(super) fn die_apart(&mut self) -> io::Result<()> {
        self.altered = true;
        write(&self.folder, "memory.oom.group", "0")
    }

    /// Whether it can serve another command: it has no processes and default settings,
    /// never ran out of memory, and little memory is still charged to it (files in memory
    /// that a command left).
    fn is_as_new(&self) -> bool {
        let processes = read(&self.processes);
        let memory = read(&self.memory).and_then(|text| text.trim().parse().ok());
        !self.altered
            && processes.is_some_and(|list| list.is_empty())
            && memory.is_some_and(|bytes: u64| bytes <= MAX_LEFT_BYTES)
            && !self.ran_out_of_memory()
    }

    /// Opens its list of processes, which a child writes to in order to enter.
    pub(super) fn procs_fd(&self) -> io::Result<OwnedFd> {
        self.processes.try_clone()
    }

    /// Kills all processes in it, including ones that are just being forked.
    pub(super) fn kill(&self) -> io::Result<()> {
        rustix::io::write(&self.kill, b"1")?;
        Ok(())
    }

    /// Lists the processes in it.
    pub(super) fn processes(&self) -> Vec<i32> {
        let list = open(&self.folder, "cgroup.procs", OFlags::RDONLY);
        let list = list.and_then(|file| io::read_to_string(fs::File::from(file)));
        let list = list.unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Whether the kernel killed a process in it because memory ran out.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.memory_kills() > 0
    }

    /// Number of its processes that the kernel killed because memory ran out.
    pub(super) fn memory_kills(&self) -> u64 {
        let events = read(&self.events).unwrap_or_default();
        let kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        kills
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }
}

/// Bytes of memory that programs can still allocate.
fn available_memory() -> io::Result<u64> {
    memory_field("MemAvailable:")
}

/// A field of `/proc/meminfo`, in bytes.
pub(super) fn memory_field(name: &str) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number
        .map(|kilobytes| kilobytes << 10)
        .ok_or_else(|| io::Error::other(format!("/proc/meminfo has no {name}")))
}

fn read_number(path: &str) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    text.trim().parse().map_err(io::Error::other)
}
