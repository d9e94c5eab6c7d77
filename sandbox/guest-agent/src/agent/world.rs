//! Isolation of commands: their world, that is, their view of the guest, and their rights.
//!
//! Commands run in a PID namespace, so that none of them has a name for the agent or any
//! other process outside. All commands of a sandbox share it: later commands can list and
//! end processes that earlier ones left running. A Landlock domain for each command
//! isolates them from each other, which neither a shared user nor the rights of an
//! administrator open, and so does its control group, which no path visible to them leads
//! to.
//!
//! The agent sees the same files as they do. It opens everything else that it needs before
//! it removes it: its port, the control groups, its terminals. Only the agent may mount, so
//! removals are final.

use super::group;
use super::sys::{
    bound_rights, domain_rules, fork_apart, keep_rights, own_files_as, permitted_rights,
    reap_for_ever, run_first, set_rights,
};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, makedev, mknodat, symlinkat};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};
use rustix::process::{DumpableBehavior, Pid, set_dumpable_behavior};
use std::convert::Infallible;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Id of the ordinary user and of its group (`/etc/passwd`).
pub(super) const USER: u32 = 1000;

/// Id of the administrator.
pub(super) const ROOT_USER: u32 = 0;

/// Mode of the root folder: every user may create files of its own there.
pub(super) const ROOT_MODE: u32 = 0o1777;

/// Home of the ordinary user.
pub(super) const HOME: &str = "/home/agent";

/// Home of the administrator.
pub(super) const ROOT_HOME: &str = "/root";

/// Variables of the ordinary user's commands.
pub(super) const USER_VARIABLES: &[(&str, &str)] = &[
    ("HOME", HOME),
    ("USER", "agent"),
    ("LOGNAME", "agent"),
    // The last is where pip installs programs.
    (
        "PATH",
        "/usr/local/bin:/usr/bin:/bin:/home/agent/.local/bin",
    ),
];

/// Variables of the administrator's commands.
pub(super) const ROOT_VARIABLES: &[(&str, &str)] =
    &[("HOME", ROOT_HOME), ("USER", "root"), ("LOGNAME", "root")];

/// Rights of an administrator (`capabilities(7)`), a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rights(pub u64);

impl Rights {
    pub(super) const NONE: Self = Self(0);

    const fn of(numbers: &[u64]) -> Self {
        let mut all = 0;
        let mut index = 0;
        while index < numbers.len() {
            all |= 1 << numbers[index];
            index += 1;
        }
        Self(all)
    }

    pub(super) fn has(self, number: u64) -> bool {
        self.0 >> number & 1 == 1
    }

    pub(super) fn numbers(self) -> impl Iterator<Item = u64> {
        (0..u64::BITS.into()).filter(move |number| self.has(*number))
    }
}

/// Numbers of rights (`linux/capability.h`).
mod right {
    pub(super) const CHOWN: u64 = 0;
    pub(super) const DAC_OVERRIDE: u64 = 1;
    pub(super) const FOWNER: u64 = 3;
    pub(super) const FSETID: u64 = 4;
    pub(super) const KILL: u64 = 5;
    pub(super) const SETGID: u64 = 6;
    pub(super) const SETUID: u64 = 7;
    pub(super) const SETPCAP: u64 = 8;
    pub(super) const NET_BIND_SERVICE: u64 = 10;
    pub(super) const NET_BROADCAST: u64 = 11;
    pub(super) const NET_ADMIN: u64 = 12;
    pub(super) const NET_RAW: u64 = 13;
    pub(super) const IPC_LOCK: u64 = 14;
    pub(super) const IPC_OWNER: u64 = 15;
    pub(super) const SYS_CHROOT: u64 = 18;
    pub(super) const LEASE: u64 = 28;
    pub(super) const SETFCAP: u64 = 31;
}

/// Rights of the ordinary user: raw packets, for `ping` and `arping`.
pub(super) const ORDINARY_RIGHTS: Rights = Rights::of(&[right::NET_RAW]);

/// Rights of the user that copies files for the host.
pub(super) const FILES_RIGHTS: Rights = Rights::of(&[right::DAC_OVERRIDE, right::FOWNER]);

/// Rights of the administrator: over files, users, processes and the network. None of them
/// reaches the kernel, its devices or another namespace, traces foreign processes, raises a
/// limit, or takes the processor from the agent.
const ROOT_RIGHTS: Rights = Rights::of(&[
    right::CHOWN,
    right::DAC_OVERRIDE,
    right::FOWNER,
    right::FSETID,
    right::KILL,
    right::SETGID,
    right::SETUID,
    right::SETPCAP,
    right::SETFCAP,
    right::NET_BIND_SERVICE,
    right::NET_BROADCAST,
    right::NET_ADMIN,
    right::NET_RAW,
    right::IPC_LOCK,
    right::IPC_OWNER,
    right::SYS_CHROOT,
    right::LEASE,
]);

/// Folders that only the agent and a fully privileged user may enter.
const CLOSED_FOLDERS: [&str; 2] = ["/run/agent99", "/var/lib/agent99"];

/// Temporary mount point of the session's directory.
const SESSION_DIR: &str = "/run/agent99/session";

/// Identifier of the boot. The kernel's never changes, so commands see a file of the agent
/// there, which has a new one in each copy of a guest.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_FILE: &str = "/run/agent99/boot_id";
const NEW_ID: &str = "/proc/sys/kernel/random/uuid";

/// Character devices of the world: name, major and minor number.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Links in `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Parts of `/proc` that change the kernel, made read-only.
const READ_ONLY: [&str; 5] = ["sys", "irq", "bus", "fs", "sysrq-trigger"];

/// Parts of `/proc` that reveal the kernel's memory, made empty.
const EMPTY: [&str; 9] = [
    "kcore",
    "kmsg",
    "keys",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
];

const HIDDEN: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// The world before it is closed.
#[derive(Debug)]
pub(super) struct Opened {
    first: Pid,
    program: PathBuf,
}

/// The world of commands; see the module.
#[derive(Debug)]
pub(super) struct World {
    /// Its first process, with which it ends.
    pub first: Pid,
    /// Rules for the domain of each command.
    pub rules: Rc<OwnedFd>,
    /// The folder of the agent's terminals, which no path leads to: only their own commands
    /// can write to them.
    pub terminals: OwnedFd,
    /// An empty folder that no path leads to, for the session.
    pub session_dir: Option<OwnedFd>,
    /// What commands see as the identifier of the boot.
    boot_id: File,
}

impl World {
    /// Draws a new identifier of the boot.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn renew_boot_id(&self) -> io::Result<()> {
        self.boot_id.write_all_at(&fs::read(NEW_ID)?, 0)
    }
}

impl Opened {
    /// Creates the PID namespace of commands, with a first process and a view of `/proc`
    /// that shows no other.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let (mut reader, mut writer) = io::pipe()?;
        let first = fork_apart(|| first_process(&mut writer))?;
        drop(writer);
        let mut report = String::new();
        reader.read_to_string(&mut report)?;
        if report != READY {
            return Err(io::Error::other(format!("first process: {report}")));
        }
        Ok(Self { first, program })
    }

    /// Removes from view all that commands must not see, now that the agent has opened what
    /// it needs, and the rights that no command may have.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn close(self) -> io::Result<World> {
        let rules = Rc::new(domain_rules()?);
        for folder in CLOSED_FOLDERS {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        let terminals = open_folder("/dev/pts")?;
        unmount("/dev", UnmountFlags::DETACH)?;
        make_devices()?;
        unmount(group::ROOT, UnmountFlags::DETACH)?;
        let flags = HIDDEN | MountFlags::BIND | MountFlags::RDONLY;
        mount_remount("/sys", flags, "")?;
        let below = |names: &[&str]| -> Vec<PathBuf> {
            let paths = names.iter().map(|name| Path::new("/proc").join(name));
            paths.filter(|path| path.exists()).collect()
        };
        for path in below(&READ_ONLY) {
            mount_bind(&path, &path)?;
            mount_remount(&path, flags, "")?;
        }
        for path in below(&EMPTY) {
            mount_bind("/dev/null", &path)?;
        }
        // A writable program file could be used to change the running agent.
        mount_bind(&self.program, &self.program)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
        mount_remount(&self.program, flags, "")?;
        let session_dir = make_session_dir()?;
        let boot_id = make_boot_id()?;
        drop_rights()?;
        // Working directory of commands.
        rustix::process::chdir(HOME)?;
        Ok(World {
            first: self.first,
            rules,
            terminals,
            session_dir: Some(session_dir),
            boot_id,
        })
    }
}

/// Report of the first process that its world is ready.
const READY: &str = "ready";

/// Runs the first process, which becomes the parent of all orphans.
fn first_process(writer: &mut io::PipeWriter) -> Infallible {
    let made = (|| -> io::Result<()> {
        // Without it all others end.
        fs::write("/proc/self/oom_score_adj", "-1000")?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        unmount("/proc", UnmountFlags::DETACH)?;
        Ok(mount("proc", "/proc", "proc", HIDDEN, c"")?)
    })();
    let report = match &made {
        Ok(()) => READY.to_owned(),
        Err(error) => error.to_string(),
    };
    // Without a reader the agent is gone, and soon the guest too.
    let _ = writer.write_all(report.as_bytes());
    reap_for_ever()
}

fn open_folder(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Creates a `/dev` with only the devices that programs expect.
fn make_devices() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("dev", "/dev", "tmpfs", flags, c"mode=755,size=64k")?;
    let dev = open_folder("/dev")?;
    let everybody = Mode::from_raw_mode(0o666);
    for (name, major, minor) in DEVICES {
        let device = makedev(major, minor);
        mknodat(&dev, name, FileType::CharacterDevice, everybody, device)?;
        fs::set_permissions(
            Path::new("/dev").join(name),
            fs::Permissions::from_mode(0o666),
        )?;
    }
    for (target, name) in LINKS {
        symlinkat(target, &dev, name)?;
    }
    mount_below("/dev/pts", "devpts", c"gid=5,mode=620,ptmxmode=666")?;
    mount_below("/dev/shm", "tmpfs", c"mode=1777,size=16m")
}

fn mount_below(path: &str, kind: &str, options: &CStr) -> io::Result<()> {
    fs::create_dir(path)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let flags = if kind == "tmpfs" {
        MountFlags::NOSUID | MountFlags::NODEV
    } else {
        flags
    };
    Ok(mount(kind, path, kind, flags, options)?)
}

/// Shows a file of the agent instead of the kernel's identifier of the boot.
fn make_boot_id() -> io::Result<File> {
    fs::write(BOOT_ID_FILE, fs::read(BOOT_ID)?)?;
    let file = fs::OpenOptions::new().write(true).open(BOOT_ID_FILE)?;
    fs::set_permissions(BOOT_ID_FILE, fs::Permissions::from_mode(0o444))?;
    mount_bind(BOOT_ID_FILE, BOOT_ID)?;
    mount_remount(BOOT_ID, HIDDEN | MountFlags::BIND | MountFlags::RDONLY, "")?;
    fs::remove_file(BOOT_ID_FILE)?;
    Ok(file)
}

/// Creates an unnamed folder in memory.
fn make_session_dir() -> io::Result<OwnedFd> {
    fs::create_dir(SESSION_DIR)?;
    mount("session", SESSION_DIR, "tmpfs", HIDDEN, c"mode=755,size=8m")?;
    let session_dir = open_folder(SESSION_DIR)?;
    unmount(SESSION_DIR, UnmountFlags::DETACH)?;
    fs::remove_dir(SESSION_DIR)?;
    Ok(session_dir)
}

/// Drops the rights that no program executed from now on may have. The agent keeps its own
/// rights, regardless of the owner of files that it makes.
fn drop_rights() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let all = permitted_rights()?;
    bound_rights(ROOT_RIGHTS)?;
    set_rights(all, all, ORDINARY_RIGHTS)?;
    keep_rights(ORDINARY_RIGHTS)?;
    run_first()?;
    own_files_as((USER, USER));
    Ok(())
}
