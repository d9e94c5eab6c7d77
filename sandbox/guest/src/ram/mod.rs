//! RAM: guest physical memory.
//!
//! One flat run of bytes that starts at [`RAM_BASE`]. Accesses by guest physical address
//! are checked and return `None` outside of it; the CPU's fast paths use offsets that its
//! software TLBs have checked.
//!
//! It is aligned to the embedder's pages of any size, so that a guest page that is written
//! or released is one embedder page and not parts of two.
//!
//! RAM grows, once, when a machine that was saved small resumes with more. Its address must
//! not change then: translated code holds it. So in the emulator it is the last run of
//! linear memory ([`backing`]): the allocator first gets a heap that suffices until the
//! snapshot, then the module's memory grows by the RAM itself. A resumed instance appends
//! to RAM before its allocator needs more; the heap then grows behind RAM, which from then
//! on keeps its size. Instances that ask for no more change nothing.
//!
//! Each 4 KiB page carries a [mark](CodeMark) that records whether decoded code of it
//! exists. RISC-V lets a hart execute stale instructions until the next `fence.i`
//! (unprivileged manual, Zifencei), so a write to such a page only records the page; the
//! CPU drops the decoded code at the next `fence.i`.

mod backing;

use backing::Backing;

pub use a99_sandbox_abi::RAM_BASE;

/// Size of a page, in bytes.
pub(crate) const PAGE_SIZE: usize = 4096;

/// Alignment of the memory: a page of WebAssembly, and of any processor.
const ALIGNMENT: usize = 64 << 10;

/// Maximum size: less than 2 GiB, so that every offset fits 31 bits and all bytes one slice
/// of the emulator, whose pointers have 32.
const MAX_BYTES: usize = (2 << 30) - ALIGNMENT;

/// Bits of an address below the page number.
pub(crate) const PAGE_SHIFT: u32 = 12;

/// State of a page's decoded code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeMark {
    /// No decoded code of this page exists.
    None,
    /// Decoded code exists and equals memory.
    Clean,
    /// Decoded code exists and memory has been written since.
    Dirty,
}

/// Guest physical memory; see the module.
#[derive(Debug)]
pub struct Ram {
    backing: Backing,
    size: usize,
    marks: Vec<CodeMark>,
    dirty: Vec<u32>,
}

impl Ram {
    /// Allocates `bytes` zero bytes, rounded up to whole pages and limited to a little less
    /// than 2 GiB.
    pub fn new(bytes: usize) -> Self {
        let marks = vec![CodeMark::None; bytes.min(MAX_BYTES).div_ceil(PAGE_SIZE)];
        let backing = Backing::new(marks.len() * PAGE_SIZE);
        Self {
            size: backing.bytes().len(),
            backing,
            marks,
            dirty: Vec::new(),
        }
    }

    /// Grows to `bytes`, a multiple of the page size; what is added is zero. Returns `false`,
    /// and changes nothing, if that is less than before, too much, or not possible any more.
    pub fn grow(&mut self, bytes: usize) -> bool {
        if bytes > MAX_BYTES || !bytes.is_multiple_of(PAGE_SIZE) || !self.backing.grow(bytes) {
            return false;
        }
        self.size = bytes;
        self.marks.resize(bytes / PAGE_SIZE, CodeMark::None);
        true
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Offset of `len` bytes at guest physical address `addr`, if all of them are RAM.
    pub fn offset(&self, addr: u64, len: usize) -> Option<usize> {
        let offset = addr.checked_sub(RAM_BASE)?;
        let end = offset.checked_add(len as u64)?;
        (end <= self.size as u64).then_some(offset as usize)
    }

    /// The `len` bytes at guest physical address `addr`, if all are RAM.
    pub fn slice(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let offset = self.offset(addr, len)?;
        self.bytes().get(offset..offset + len)
    }

    /// Does the same as [`Ram::slice`] for writing. Marks decoded code of these pages as
    /// changed.
    pub fn slice_mut(&mut self, addr: u64, len: usize) -> Option<&mut [u8]> {
        let offset = self.offset(addr, len)?;
        self.touch(offset, len);
        self.bytes_mut().get_mut(offset..offset + len)
    }

    /// All bytes, by offset from [`RAM_BASE`].
    pub fn bytes(&self) -> &[u8] {
        self.backing.bytes()
    }

    /// All bytes for writing. The caller must call [`Ram::touch`]: the CPU writes through
    /// here only where its TLB shows that the page's mark is not [`CodeMark::Clean`].
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.backing.bytes_mut()
    }

    /// Records a write of `len` bytes at `offset`.
    pub(crate) fn touch(&mut self, offset: usize, len: usize) {
        if len == 0 {
            return;
        }
        for page in offset / PAGE_SIZE..=(offset + len - 1) / PAGE_SIZE {
            if let Some(mark @ CodeMark::Clean) = self.marks.get_mut(page) {
                *mark = CodeMark::Dirty;
                self.dirty.push(page as u32);
            }
        }
    }

    /// The code mark of a page, by number from [`RAM_BASE`].
    pub(crate) fn mark(&self, page: usize) -> CodeMark {
        self.marks.get(page).copied().unwrap_or(CodeMark::None)
    }

    /// Records that code of a page has been decoded. Returns `true` if the page had no
    /// decoded code before, so that writes must no longer take the fast path.
    pub(crate) fn mark_code(&mut self, page: usize) -> bool {
        match self.marks.get_mut(page) {
            Some(mark @ CodeMark::None) => {
                *mark = CodeMark::Clean;
                true
            }
            _ => false,
        }
    }

    /// Takes the pages whose decoded code is stale; their marks are cleared.
    pub(crate) fn take_dirty(&mut self) -> Vec<u32> {
        let pages = std::mem::take(&mut self.dirty);
        for page in &pages {
            self.marks[*page as usize] = CodeMark::None;
        }
        pages
    }

    /// Clears every mark: all decoded code has been dropped.
    pub(crate) fn clear_marks(&mut self) {
        self.dirty.clear();
        self.marks.fill(CodeMark::None);
    }
}

/// Typed little-endian accesses by guest physical address, aligned or not.
macro_rules! typed_access {
    ($($read:ident $write:ident $type:ty),*) => {
        impl Ram {
            $(
                /// Reads a little-endian value; `None` outside of RAM.
                pub fn $read(&self, addr: u64) -> Option<$type> {
                    let bytes = self.slice(addr, size_of::<$type>())?;
                    Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
                }

                /// Writes a little-endian value; `None` outside of RAM.
                pub fn $write(&mut self, addr: u64, value: $type) -> Option<()> {
                    let bytes = self.slice_mut(addr, size_of::<$type>())?;
                    bytes.copy_from_slice(&value.to_le_bytes());
                    Some(())
                }
            )*
        }
    };
}

typed_access!(read_u8 write_u8 u8, read_u16 write_u16 u16, read_u32 write_u32 u32, read_u64 write_u64 u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_pages_of_the_host() {
        for bytes in [PAGE_SIZE, 3 * PAGE_SIZE, 5 << 20] {
            let ram = Ram::new(bytes);
            assert_eq!(ram.bytes().as_ptr().addr() % ALIGNMENT, 0);
            assert_eq!(ram.bytes().len(), bytes);
        }
    }

    #[test]
    fn ram_grows_and_keeps_its_contents() {
        let mut ram = Ram::new(PAGE_SIZE);
        ram.write_u64(RAM_BASE + 8, 7);
        assert!(ram.mark_code(0));
        for bad in [0, PAGE_SIZE + 1, MAX_BYTES + PAGE_SIZE] {
            assert!(!ram.grow(bad), "{bad}");
            assert_eq!((ram.size(), ram.bytes().len()), (PAGE_SIZE, PAGE_SIZE));
        }
        assert!(ram.grow(3 * PAGE_SIZE));
        assert_eq!(ram.size(), 3 * PAGE_SIZE);
        assert_eq!(ram.bytes().as_ptr().addr() % ALIGNMENT, 0);
        assert_eq!(ram.read_u64(RAM_BASE + 8), Some(7));
        assert_eq!(ram.mark(0), CodeMark::Clean);
        let last = RAM_BASE + 3 * PAGE_SIZE as u64 - 8;
        assert_eq!(ram.read_u64(last), Some(0));
        assert!(ram.mark_code(2));
        assert_eq!(ram.write_u64(last, 9), Some(()));
        assert_eq!(ram.take_dirty(), [2]);
        assert!(!ram.grow(2 * PAGE_SIZE));
    }

    #[test]
    fn bounds() {
        let mut ram = Ram::new(8192);
        assert_eq!(ram.read_u64(RAM_BASE + 8184), Some(0));
        assert_eq!(ram.read_u64(RAM_BASE + 8185), None);
        assert_eq!(ram.read_u8(RAM_BASE - 1), None);
        assert_eq!(ram.read_u64(u64::MAX - 3), None);
        assert_eq!(ram.write_u32(RAM_BASE + 8190, 1), None);
        assert_eq!(ram.write_u32(RAM_BASE + 2, 0x0403_0201), Some(()));
        assert_eq!(ram.slice(RAM_BASE, 7), Some(&[0, 0, 1, 2, 3, 4, 0][..]));
        assert_eq!(ram.read_u16(RAM_BASE + 3), Some(0x0302));
        assert!(ram.slice(RAM_BASE + 8192, 0).is_some());
    }

    #[test]
    fn writes_mark_decoded_pages() {
        let mut ram = Ram::new(4 * PAGE_SIZE);
        assert!(ram.mark_code(1));
        assert!(!ram.mark_code(1));
        ram.write_u8(RAM_BASE, 1);
        assert_eq!(ram.mark(1), CodeMark::Clean);
        ram.write_u32(RAM_BASE + 4094, 1);
        assert_eq!(ram.mark(1), CodeMark::Dirty);
        ram.write_u32(RAM_BASE + 4096, 1);
        assert_eq!(ram.take_dirty(), [1]);
        assert_eq!(ram.mark(1), CodeMark::None);
        assert!(ram.take_dirty().is_empty());
    }
}
