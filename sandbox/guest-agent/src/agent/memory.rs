//! Memory that the machine got when it resumed.

use super::drive::as_system;
use super::group::memory_field;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::ffi::CString;
use std::fs;
use std::io;

/// Files of the kernel: its block size, in hexadecimal, and where a block's physical address
/// adds that block (`add-memory.patch`).
const BLOCK_SIZE: &str = "/sys/devices/system/memory/block_size_bytes";
const PROBE: &str = "/var/lib/agent99/sys/devices/system/memory/probe";

/// Where the agent mounts `/sys` meanwhile, which commands have read-only.
const SYS: &str = "/var/lib/agent99/sys";

/// Limit of files in the root without a disk for those that do not fit memory, and without
/// more memory.
const ROOT_BYTES: u64 = 152 << 20;

/// Share of added memory that files in the root may have: half, so that a full root leaves
/// room for programs.
const ROOT_SHARE: u64 = 2;

/// Adds the memory of these physical addresses. Returns the bytes that programs can have more
/// than before: descriptions of the pages are taken from the same memory.
pub(super) fn add(range: (u64, u64)) -> io::Result<u64> {
    as_system(|| mount_and_add(range))
}

fn mount_and_add(range: (u64, u64)) -> io::Result<u64> {
    fs::create_dir_all(SYS)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("sysfs", SYS, "sysfs", flags, c"")?;
    let added = add_blocks(range);
    unmount(SYS, UnmountFlags::DETACH)?;
    added
}

fn add_blocks((start, end): (u64, u64)) -> io::Result<u64> {
    let before = memory_field("MemAvailable:")?;
    let block = u64::from_str_radix(fs::read_to_string(BLOCK_SIZE)?.trim(), 16);
    let block = block.ok().filter(|block| *block > 0);
    let block = block.ok_or(io::ErrorKind::InvalidData)?;
    let mut at = start;
    while end.saturating_sub(at) >= block {
        fs::write(PROBE, format!("{at:#x}"))?;
        at += block;
    }
    Ok(memory_field("MemAvailable:")?.saturating_sub(before))
}

/// Limits files in the root to what fits memory, with a share of the `added` bytes.
pub(super) fn limit_root(added: u64) -> io::Result<()> {
    let options = CString::new(format!("size={}", ROOT_BYTES + added / ROOT_SHARE))?;
    as_system(|| Ok(mount_remount("/", MountFlags::empty(), &*options)?))
}
