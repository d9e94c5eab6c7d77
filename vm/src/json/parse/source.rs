//! Sources of JSON text: the heap of a run, or the host.

use super::syntax;
use crate::convert::{BoundaryLimits, too_deep};
use crate::heap::{Heap, Str, Val};
use crate::json::MAX_DEPTH;
use crate::native::{Cx, Fault};
use std::ops::Range;

/// The location of the parsed text.
pub(super) trait Source: Copy {
    /// Whether the run pays for the results.
    const PAID: bool;

    fn bytes<'a>(self, heap: &'a Heap) -> &'a [u8]
    where
        Self: 'a;

    /// Maximum nesting of arrays and objects.
    fn max_depth(self) -> usize;

    /// The error of a text that is nested too deeply.
    fn too_deep(self) -> Fault;

    /// A byte range of the text as a string of the heap.
    fn part(self, cx: &mut Cx<'_>, bytes: Range<usize>) -> Result<Val, Fault>;

    /// Calls a reader on the text from an offset; each byte counts as a unit of work.
    fn read_from<T>(
        self,
        cx: &mut Cx<'_>,
        from: usize,
        read: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<T, Fault>,
    ) -> Result<T, Fault>;
}

/// Text of the heap: strings are views of it.
impl Source for Str {
    const PAID: bool = true;

    #[inline(always)]
    fn bytes<'a>(self, heap: &'a Heap) -> &'a [u8]
    where
        Self: 'a,
    {
        heap.bytes(self)
    }

    #[inline(always)]
    fn max_depth(self) -> usize {
        MAX_DEPTH
    }

    fn too_deep(self) -> Fault {
        syntax(format_args!("Nesting exceeds {MAX_DEPTH} levels"))
    }

    #[inline(always)]
    fn part(self, cx: &mut Cx<'_>, bytes: Range<usize>) -> Result<Val, Fault> {
        let (start, end) = (bytes.start, bytes.end);
        let units = if self.is_ascii() {
            end - start
        } else {
            cx.units_of(self, bytes)?
        };
        Ok(Val::Str(self.view(start, end, units)))
    }

    fn read_from<T>(
        self,
        cx: &mut Cx<'_>,
        from: usize,
        read: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        cx.read_text(self, from..self.len_bytes(), read)
    }
}

/// Text of a host, which is UTF-8: strings are copied.
#[derive(Copy, Clone)]
pub(in crate::json) struct HostText<'t> {
    pub(in crate::json) bytes: &'t [u8],
    pub(in crate::json) limits: &'t BoundaryLimits,
}

impl Source for HostText<'_> {
    const PAID: bool = false;

    #[inline(always)]
    fn bytes<'a>(self, _: &'a Heap) -> &'a [u8]
    where
        Self: 'a,
    {
        self.bytes
    }

    #[inline(always)]
    fn max_depth(self) -> usize {
        self.limits.max_depth as usize
    }

    fn too_deep(self) -> Fault {
        too_deep(self.limits)
    }

    #[inline(always)]
    fn part(self, cx: &mut Cx<'_>, bytes: Range<usize>) -> Result<Val, Fault> {
        cx.str(&self.bytes[bytes])
    }

    fn read_from<T>(
        self,
        cx: &mut Cx<'_>,
        from: usize,
        read: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        read(&self.bytes[from..], &mut |n| cx.work(n as i64))
    }
}
