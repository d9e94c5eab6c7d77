//! Reuse of machines of finished runs.
//!
//! Making a machine is cheap; the memory of a large run is not. The system clears each page
//! that it hands out, which took a fifth of the time of runs of tens of megabytes.

use crate::machine::Machine;
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard};

/// Maximum number of machines to keep.
const MAX_MACHINES: usize = 64;

/// Machines with more bytes outside their heap buffers are dropped: freeing names, memoized
/// results and host values takes time that no later run should pay.
const MAX_REST_BYTES: usize = 1 << 20;

/// Machines up to this size stay with their thread.
const MAX_LAST_BYTES: usize = 64 << 10;

/// Default of the bytes to keep: the default ceiling of one run.
pub(crate) const DEFAULT_BYTES: usize = crate::heap::DEFAULT_HEAP_LIMIT;

thread_local! {
    /// The machine of the last run that ended on this thread, for the next one: sequential
    /// runs on a thread need no synchronization. It keeps no state of its run or of its host.
    static LAST: RefCell<Option<Box<Machine>>> = const { RefCell::new(None) };
}

/// Idle machines for concurrent runs.
#[derive(Default)]
pub(crate) struct Spare {
    kept: Mutex<Kept>,
    /// Maximum bytes of all idle machines.
    pub(crate) most_bytes: usize,
}

#[derive(Default)]
struct Kept {
    #[allow(clippy::vec_box, reason = "a machine is large and moves in and out")]
    machines: Vec<Box<Machine>>,
    bytes: usize,
}

impl Spare {
    pub(crate) fn new(most_bytes: usize) -> Spare {
        Spare {
            most_bytes,
            ..Spare::default()
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes an idle machine.
    pub(crate) fn take(&self) -> Option<Box<Machine>> {
        let here = LAST.try_with(RefCell::take);
        here.unwrap_or_default().or_else(|| {
            let mut kept = self.kept();
            let machine = kept.machines.pop()?;
            kept.bytes -= machine.memory_bytes();
            Some(machine)
        })
    }

    /// Keeps the machine of a finished run; returns one that exceeds the limits.
    pub(crate) fn put(&self, mut machine: Box<Machine>) -> Option<Box<Machine>> {
        let small = machine.memory_bytes() + machine.program_bytes() <= MAX_LAST_BYTES;
        if small {
            // The previous machine of the thread goes to the shared list. An ending thread
            // keeps none.
            let before = LAST.try_with(|last| last.replace(Some(machine)));
            machine = before.ok().flatten()?;
        }
        let bytes = machine.memory_bytes();
        if bytes - machine.buffer_bytes() > MAX_REST_BYTES {
            return Some(machine);
        }
        let mut kept = self.kept();
        if kept.machines.len() >= MAX_MACHINES || kept.bytes + bytes > self.most_bytes {
            return Some(machine);
        }
        kept.bytes += bytes;
        kept.machines.push(machine);
        None
    }
}
