//! The agent's system calls that Rust cannot check: what runs in a child
//! between `fork` and `exec`, and the request that credits entropy.
#![allow(unsafe_code)]

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Setter, opcode};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What a child does before it becomes the command.
#[derive(Debug)]
pub(super) struct ChildSetup {
    /// `cgroup.procs` of the control group that it enters.
    pub group: Option<OwnedFd>,
    /// Make standard input its controlling terminal.
    pub terminal: bool,
    /// Give up the agent's protection from the out-of-memory killer.
    pub mortal: bool,
}

impl ChildSetup {
    /// Runs in the child. Only system calls: memory may be in any state.
    fn run(&self) -> Result<(), Errno> {
        if let Some(group) = &self.group {
            rustix::io::write(group, b"0")?;
        }
        rustix::process::setsid()?;
        if self.terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        if self.mortal {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::open(c"/proc/self/oom_score_adj", flags, Mode::empty())?;
            rustix::io::write(file, b"0")?;
        }
        Ok(())
    }
}

/// Lets the children of `command` do `setup` before they execute it.
pub(super) fn before_exec(command: &mut Command, setup: ChildSetup) {
    // SAFETY: the closure runs in the child after `fork`. It allocates nothing,
    // takes no lock and never panics: it makes raw system calls, by rustix
    // without libc, on descriptors that it owns and constant strings, and an
    // `Errno` becomes an `io::Error` without allocation. The agent has one
    // thread, so no other can have held a lock at the fork.
    unsafe {
        command.pre_exec(move || setup.run().map_err(io::Error::from));
    }
}

/// Bytes of entropy in one request.
pub(super) const ENTROPY_BYTES: usize = 64;

/// `struct rand_pool_info` of `linux/random.h` with a buffer of fixed size.
#[repr(C)]
struct RandPoolInfo {
    entropy_bits: i32,
    buffer_bytes: i32,
    buffer: [u8; ENTROPY_BYTES],
}

/// `RNDADDENTROPY`, `_IOW('R', 0x03, int[2])` (random(4)).
const RNDADDENTROPY: rustix::ioctl::Opcode = opcode::write::<[i32; 2]>(b'R', 0x03);

/// Mixes `bytes` into the kernel's generator and credits them in full.
///
/// # Errors
/// Those of `random(4)`; without the right to do it `EPERM`.
pub(super) fn add_entropy(device: &OwnedFd, bytes: &[u8; ENTROPY_BYTES]) -> Result<(), Errno> {
    let info = RandPoolInfo {
        entropy_bits: 8 * ENTROPY_BYTES as i32,
        buffer_bytes: ENTROPY_BYTES as i32,
        buffer: *bytes,
    };
    // SAFETY: the request reads a `rand_pool_info`: two ints and as many bytes
    // as the second of them says, all of which are in `info`, which has the C
    // layout and lives until the call returns. It writes nothing.
    unsafe {
        let request = Setter::<RNDADDENTROPY, RandPoolInfo>::new(info);
        rustix::ioctl::ioctl(device, request)
    }
}
