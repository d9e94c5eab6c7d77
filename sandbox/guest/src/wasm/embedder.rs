//! What the embedder provides, as the machine sees it.

use crate::host::{Disk, Host};

mod imports {
    //! The functions of module `agent99`.

    #[link(wasm_import_module = "agent99")]
    unsafe extern "C" {
        /// See [`Host::monotonic_ns`](crate::host::Host::monotonic_ns).
        pub(super) safe fn now_ns() -> u64;
        /// See [`Host::wall_ns`](crate::host::Host::wall_ns).
        pub(super) safe fn wall_ns() -> u64;
        /// Fills `len` bytes at `address` with bytes fit for keys.
        pub(super) fn random(address: *mut u8, len: usize);
        /// See [`Host::translate`](crate::host::Host::translate): the `len`
        /// bytes at `address` are the module.
        pub(super) fn translate(address: *const u8, len: usize, ticket: u32);
        /// Fills `len` bytes at `address` from a disk: 1 if it could.
        pub(super) fn disk_read(disk: u32, offset: u64, address: *mut u8, len: usize) -> u32;
        /// Writes the `len` bytes at `address` to a disk: 1 if it could.
        pub(super) fn disk_write(disk: u32, offset: u64, address: *const u8, len: usize) -> u32;
        /// See [`Host::disk_discard`](crate::host::Host::disk_discard).
        pub(super) safe fn disk_discard(disk: u32, offset: u64, len: u64, zero: u32) -> u32;
        /// See [`Host::disk_flush`](crate::host::Host::disk_flush).
        pub(super) safe fn disk_flush(disk: u32) -> u32;
        /// The `len` bytes at `address` are the guest's and not in use: they may
        /// become others that the guest may know.
        pub(super) fn release(address: *mut u8, len: usize);
        /// Says why the emulator is about to trap: UTF-8.
        pub(super) fn panicked(address: *const u8, len: usize);
    }
}

/// The embedder, seen from the machine.
#[derive(Debug)]
pub(super) struct Embedder;

impl Host for Embedder {
    fn monotonic_ns(&mut self) -> u64 {
        imports::now_ns()
    }

    fn wall_ns(&mut self) -> u64 {
        imports::wall_ns()
    }

    fn random(&mut self, buf: &mut [u8]) {
        // SAFETY: the embedder writes only the `len` bytes of `buf`, which is
        // borrowed for the call.
        unsafe { imports::random(buf.as_mut_ptr(), buf.len()) }
    }

    fn translate(&mut self, module: &[u8], ticket: u32) {
        // SAFETY: the embedder reads only the `len` bytes of `module`, and does
        // so before it returns.
        unsafe { imports::translate(module.as_ptr(), module.len(), ticket) }
    }

    fn disk_read(&mut self, disk: Disk, offset: u64, buf: &mut [u8]) -> bool {
        let (address, len) = (buf.as_mut_ptr(), buf.len());
        // SAFETY: the embedder writes only the `len` bytes of `buf`, which is
        // borrowed for the call.
        unsafe { imports::disk_read(disk as u32, offset, address, len) == 1 }
    }

    fn disk_write(&mut self, disk: Disk, offset: u64, bytes: &[u8]) -> bool {
        let (address, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the embedder reads only the `len` bytes of `bytes`.
        unsafe { imports::disk_write(disk as u32, offset, address, len) == 1 }
    }

    fn disk_discard(&mut self, disk: Disk, offset: u64, len: u64, zero: bool) -> bool {
        imports::disk_discard(disk as u32, offset, len, zero.into()) == 1
    }

    fn disk_flush(&mut self, disk: Disk) -> bool {
        imports::disk_flush(disk as u32) == 1
    }

    fn release(&mut self, memory: &mut [u8]) {
        // SAFETY: the embedder changes only the `len` bytes of `memory`, which is
        // borrowed for the call.
        unsafe { imports::release(memory.as_mut_ptr(), memory.len()) }
    }
}

/// Gives the embedder the text of a panic.
pub(super) fn panicked(text: &str) {
    // SAFETY: the embedder reads only the `len` bytes of `text`.
    unsafe { imports::panicked(text.as_ptr(), text.len()) }
}
