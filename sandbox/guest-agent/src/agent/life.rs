//! Resume and prepare: the start from a snapshot, and the preparation of one, each once in
//! a guest's lifetime.

use super::group::memory_field;
use super::mounts::Mounts;
use super::network;
use super::sys::{ENTROPY_BYTES, add_entropy};
use crate::protocol::Resume;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, Timespec};
use std::hint::black_box;
use std::io;

/// Sets clock, entropy, name, network and mounts. Every step is tried; returns the failures
/// as text.
pub(super) fn resume(resume: &Resume, mounts: &mut Mounts) -> Option<String> {
    let mut failures = Vec::new();
    let mut note = |what: &str, result: io::Result<()>| {
        if let Err(error) = result {
            failures.push(format!("{what}: {error}"));
        }
    };
    note("entropy", mix(&resume.entropy));
    note("clock", set_clock(resume.wall_ns));
    if let Some(name) = &resume.hostname {
        let set = rustix::system::sethostname(name);
        note("host name", set.map_err(io::Error::from));
    }
    if resume.network.is_some() || resume.interrupt {
        note("network", network::set_up(resume.network.as_ref()));
    }
    note("mount", mounts.set(&resume.mounts));
    (!failures.is_empty()).then(|| failures.join("; "))
}

fn set_clock(wall_ns: u64) -> io::Result<()> {
    let time = Timespec {
        tv_sec: (wall_ns / 1_000_000_000) as i64,
        tv_nsec: (wall_ns % 1_000_000_000) as _,
    };
    Ok(rustix::time::clock_settime(ClockId::Realtime, time)?)
}

/// Mixes the host's bytes into the kernel's generator and credits them: the host vouches
/// for them.
fn mix(entropy: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/urandom", flags, Mode::empty())?;
    let (whole, rest) = entropy.as_chunks::<ENTROPY_BYTES>();
    for chunk in whole {
        add_entropy(&device, chunk)?;
    }
    // Too few to credit; they are mixed in anyway.
    if !rest.is_empty() {
        rustix::io::write(&device, rest)?;
    }
    Ok(())
}

/// Free memory that [`zero_free_memory`] spares, so that the kernel need not reclaim
/// memory, even while it reports 4 MB as free to the host (`free-pages-at-once.patch`).
const LEFT_FREE: u64 = 8 << 20;

/// Bytes allocated at once: above the size from which the allocator maps each block
/// separately.
const CHUNK_BYTES: usize = 1 << 20;

const PAGE_BYTES: usize = 4096;

/// Allocates free memory, which the kernel zeroes, and releases it: a snapshot has no use
/// for the old contents. Returns the number of bytes.
pub(super) fn zero_free_memory() -> io::Result<u64> {
    let mut chunks = Vec::new();
    while memory_field("MemFree:")? > LEFT_FREE + CHUNK_BYTES as u64 {
        // The kernel zeroes each page when it is first written.
        let mut chunk = vec![0u8; CHUNK_BYTES];
        for mark in [1, 0] {
            chunk.chunks_mut(PAGE_BYTES).for_each(|page| page[0] = mark);
            black_box(&mut chunk);
        }
        chunks.push(chunk);
    }
    Ok((chunks.len() * CHUNK_BYTES) as u64)
}
