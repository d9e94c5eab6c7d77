//! Machine code in memory of its own, and calling it.
//!
//! Pages are written once and then made executable, never both at once, and live as long as
//! the [`Pages`] that owns them.
#![allow(
    unsafe_code,
    reason = "mapping pages, and calling what was compiled into them"
)]

use crate::Meter;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// What the code of a loop is: it takes cells and a meter, and gives the number of an exit.
type Entry = unsafe extern "C" fn(*mut f64, *mut Meter) -> u32;

/// Pages with code, which nobody writes any more.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: nothing changes the pages once they are made.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Pages with this code; none if the system gives none.
    pub(crate) fn new(code: &[u8]) -> Option<Pages> {
        let len = code.len().max(1);
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place that nothing else has.
        let mapped = unsafe { mmap_anonymous(null_mut(), len, writable, MapFlags::PRIVATE) };
        let start = NonNull::new(mapped.ok()?)?;
        let pages = Pages { start, len };
        // SAFETY: the mapping is that long, writable, and nobody else knows of it.
        unsafe {
            let to = start.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len());
        }
        let executable = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: the mapping is ours, and nobody holds a reference into it.
        unsafe { mprotect(start.as_ptr(), len, executable) }.ok()?;
        Some(pages)
    }

    /// Where the code begins.
    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody runs in it: that would be a borrow.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours");
    }
}

/// The code of a loop.
#[derive(Debug)]
pub(crate) struct LoopCode {
    pages: Pages,
    /// How many cells it takes.
    cells: usize,
}

impl LoopCode {
    /// Code that can be called.
    ///
    /// # Safety
    /// The pages hold a whole function of the type [`Entry`] that reads and writes nothing but
    /// so many cells, the meter and its own stack, and does not unwind.
    pub(crate) unsafe fn new(pages: Pages, cells: usize) -> LoopCode {
        LoopCode { pages, cells }
    }

    /// Calls the code.
    ///
    /// # Panics
    /// Another number of cells than the code was made for.
    pub(crate) fn call(&self, cells: &mut [f64], meter: &mut Meter) -> u32 {
        assert_eq!(cells.len(), self.cells, "the cells of another region");
        let start = self.pages.start.as_ptr();
        // SAFETY: by the promise of `new` there is such a function.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Entry>(start) };
        // SAFETY: by the same promise the call touches only what is borrowed here.
        unsafe { entry(cells.as_mut_ptr(), meter) }
    }

    /// Bytes that the code takes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.len
    }
}
