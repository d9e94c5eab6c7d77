//! Machine code in memory of its own, and calling it.
//!
//! The pages are written once and then made executable, never both at once, and live as long
//! as the [`MachineCode`] that owns them.
#![allow(unsafe_code, reason = "mapping pages, and calling what was compiled into them")]

use crate::Meter;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// What the code is: it takes cells and a meter, and gives the number of an exit.
type Entry = unsafe extern "C" fn(*mut f64, *mut Meter) -> u32;

/// Machine code that can be called.
#[derive(Debug)]
pub(crate) struct MachineCode {
    pages: NonNull<c_void>,
    /// Bytes of the mapping.
    len: usize,
    /// How many cells the code takes.
    cells: usize,
}

// SAFETY: nobody writes the pages once they are made, and the code touches nothing but what
// its callers lend it.
unsafe impl Send for MachineCode {}
// SAFETY: as above.
unsafe impl Sync for MachineCode {}

impl MachineCode {
    /// Puts code into memory.
    ///
    /// # Safety
    /// The code is a whole function of the type [`Entry`] that needs no relocation, reads
    /// and writes nothing but so many cells and the meter, and does not unwind.
    pub(crate) unsafe fn new(code: &[u8], cells: usize) -> Option<MachineCode> {
        let len = code.len().max(1);
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place that nothing else has.
        let mapped = unsafe { mmap_anonymous(null_mut(), len, writable, MapFlags::PRIVATE) };
        let pages = NonNull::new(mapped.ok()?)?;
        let owned = MachineCode { pages, len, cells };
        // SAFETY: the mapping is that long, writable, and nobody else knows of it.
        unsafe {
            let to = pages.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len());
        }
        let executable = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: the mapping is ours, and nobody holds a reference into it.
        unsafe { mprotect(pages.as_ptr(), len, executable) }.ok()?;
        Some(owned)
    }

    /// Calls the code.
    ///
    /// # Panics
    /// Another number of cells than the code was made for.
    pub(crate) fn call(&self, cells: &mut [f64], meter: &mut Meter) -> u32 {
        assert_eq!(cells.len(), self.cells, "the cells of another region");
        // SAFETY: by the promise of `new` the pages hold such a function.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Entry>(self.pages.as_ptr()) };
        // SAFETY: by the same promise the call touches only what is borrowed here.
        unsafe { entry(cells.as_mut_ptr(), meter) }
    }

    /// Bytes that the code takes.
    pub(crate) fn bytes(&self) -> usize {
        self.len
    }
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody runs in it: that would be a borrow.
        let unmapped = unsafe { munmap(self.pages.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours");
    }
}
