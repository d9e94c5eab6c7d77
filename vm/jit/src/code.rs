//! Executable memory for machine code, and calls to it.
//!
//! Pages are written once and then made executable, never both at once. They are mapped as
//! long as the [`Pages`] that own them exist.
#![allow(
    unsafe_code,
    reason = "mapping pages, and calling what was compiled into them"
)]

use crate::Meter;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Signature of a loop's code: takes cells and a meter, returns the number of an exit.
type Entry = unsafe extern "C" fn(*mut f64, *mut Meter) -> u32;

/// Read-only pages with code.
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
    /// Maps pages with this code; `None` if the system refuses.
    pub(crate) fn new(code: &[u8]) -> Option<Pages> {
        let len = code.len().max(1);
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an unused address.
        let mapped = unsafe { mmap_anonymous(null_mut(), len, writable, MapFlags::PRIVATE) };
        let start = NonNull::new(mapped.ok()?)?;
        let pages = Pages { start, len };
        // SAFETY: the mapping is that long and writable, and no other code has its address.
        unsafe {
            let to = start.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len());
        }
        let executable = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: we own the mapping, and no reference into it exists.
        unsafe { mprotect(start.as_ptr(), len, executable) }.ok()?;
        Some(pages)
    }

    /// Address of the code.
    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: we own the mapping, and no code runs in it: a call would borrow `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours");
    }
}

/// The code of a loop.
#[derive(Debug)]
pub(crate) struct LoopCode {
    pages: Pages,
    /// Number of cells it takes.
    cells: usize,
}

impl LoopCode {
    /// Creates callable code.
    ///
    /// # Safety
    /// The pages hold a whole function of the type [`Entry`]. It accesses only `cells` cells,
    /// the meter and its own stack, and does not unwind.
    pub(crate) unsafe fn new(pages: Pages, cells: usize) -> LoopCode {
        LoopCode { pages, cells }
    }

    /// Calls the code.
    ///
    /// # Panics
    /// The number of cells differs from the one that the code was compiled for.
    pub(crate) fn call(&self, cells: &mut [f64], meter: &mut Meter) -> u32 {
        assert_eq!(cells.len(), self.cells, "the cells of another region");
        let start = self.pages.start.as_ptr();
        // SAFETY: the caller of `new` guarantees such a function.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Entry>(start) };
        // SAFETY: by the same guarantee the call accesses only memory borrowed here.
        unsafe { entry(cells.as_mut_ptr(), meter) }
    }

    /// Size of the code in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.len
    }
}
