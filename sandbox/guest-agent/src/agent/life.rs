//! Resume and prepare: the start from a snapshot, and before that the preparation of
//! one, each once in a guest's life.

use super::group::memory_field;
use super::mounts::Mounts;
use super::network;
use super::sys::{ENTROPY_BYTES, add_entropy};
use crate::protocol::Resume;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, Timespec};
use std::hint::black_box;
use std::io;

/// Sets clock, entropy, name, network and mounts. Everything is tried; the
/// answer is what failed.
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

/// Mixes the host's bytes into the kernel's generator, and credits them: the
/// host vouches for them.
fn mix(entropy: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/urandom", flags, Mode::empty())?;
    let (whole, rest) = entropy.as_chunks::<ENTROPY_BYTES>();
    for chunk in whole {
        add_entropy(&device, chunk)?;
    }
    // Too few to credit; they are mixed in all the same.
    if !rest.is_empty() {
        rustix::io::write(&device, rest)?;
    }
    Ok(())
}

/// Free memory that [`zero_free_memory`] leaves alone, so that the kernel need
/// not look for any, also while it tells the host of 4 MB that are free
/// (`free-pages-at-once.patch`).
const LEFT_FREE: u64 = 8 << 20;

/// Memory taken at once; above the size from which the allocator asks the
/// kernel for each alone.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// Takes free memory, which the kernel hands out zeroed, and gives it back: a
/// snapshot has no use for what was there before. Answers how many bytes it
/// was.
pub(super) fn zero_free_memory() -> io::Result<u64> {
    let mut chunks = Vec::new();
    while memory_field("MemFree:")? > LEFT_FREE + CHUNK_BYTES as u64 {
        // Zeroed by the kernel, page by page, when it is first written.
        let mut chunk = vec![0u8; CHUNK_BYTES];
        for mark in [1, 0] {
            chunk.chunks_mut(PAGE_BYTES).for_each(|page| page[0] = mark);
            black_box(&mut chunk);
        }
        chunks.push(chunk);
    }
    Ok((chunks.len() * CHUNK_BYTES) as u64)
}
