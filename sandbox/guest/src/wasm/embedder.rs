//! The embedder's functions, as the machine calls them.

use crate::host::{Disk, Host};

mod imports {
    //! The functions that the ABI names.

    macro_rules! declare {
        ($($(#[$doc:meta])* $constant:ident = $name:ident($($param:ident: $of:ty),*) $(-> $result:ty)?;)*) => {
            #[link(wasm_import_module = "agent99")]
            unsafe extern "C" {
                $(
                    $(#[$doc])*
                    pub(super) fn $name($($param: $of),*) $(-> $result)?;
                )*
            }
        };
    }

    a99_sandbox_abi::imports!(declare);
}

/// The embedder as the machine's host.
#[derive(Debug)]
pub(super) struct Embedder;

impl Host for Embedder {
    fn monotonic_ns(&mut self) -> u64 {
        // SAFETY: no address goes out.
        unsafe { imports::now_ns() }
    }

    fn wall_ns(&mut self) -> u64 {
        // SAFETY: no address goes out.
        unsafe { imports::wall_ns() }
    }

    fn random(&mut self, buf: &mut [u8]) {
        // SAFETY: the embedder writes only the `len` bytes of `buf`, which is
        // borrowed for the call.
        unsafe { imports::random(buf.as_mut_ptr() as u32, buf.len() as u32) }
    }

    fn translate(&mut self, page: &[u8], is_user: bool, entries: &[u16], ticket: u32) -> bool {
        let (bytes, len) = (page.as_ptr() as u32, page.len() as u32);
        let (at, count) = (entries.as_ptr() as u32, entries.len() as u32);
        // SAFETY: the embedder reads only the `len` bytes and the `count` entries, and does so
        // before it returns.
        unsafe { imports::translate(bytes, len, is_user.into(), at, count, ticket) == 1 }
    }

    fn disk_read(&mut self, disk: Disk, offset: u64, buf: &mut [u8]) -> bool {
        let (address, len) = (buf.as_mut_ptr() as u32, buf.len() as u32);
        // SAFETY: the embedder writes only the `len` bytes of `buf`, which is
        // borrowed for the call.
        unsafe { imports::disk_read(disk.number(), offset, address, len) == 1 }
    }

    fn disk_write(&mut self, disk: Disk, offset: u64, bytes: &[u8]) -> bool {
        let (address, len) = (bytes.as_ptr() as u32, bytes.len() as u32);
        // SAFETY: the embedder reads only the `len` bytes of `bytes`.
        unsafe { imports::disk_write(disk.number(), offset, address, len) == 1 }
    }

    fn disk_discard(&mut self, disk: Disk, offset: u64, len: u64, zero: bool) -> bool {
        // SAFETY: no address goes out.
        unsafe { imports::disk_discard(disk.number(), offset, len, zero.into()) == 1 }
    }

    fn disk_flush(&mut self, disk: Disk) -> bool {
        // SAFETY: no address goes out.
        unsafe { imports::disk_flush(disk.number()) == 1 }
    }

    fn release(&mut self, memory: &mut [u8]) {
        // SAFETY: the embedder changes only the `len` bytes of `memory`, which is
        // borrowed for the call.
        unsafe { imports::release(memory.as_mut_ptr() as u32, memory.len() as u32) }
    }
}

/// Reports the text of a panic to the embedder.
pub(super) fn panicked(text: &str) {
    // SAFETY: the embedder reads only the `len` bytes of `text`.
    unsafe { imports::panicked(text.as_ptr() as u32, text.len() as u32) }
}
