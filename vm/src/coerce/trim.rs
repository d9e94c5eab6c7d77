//! White space at the ends of texts.

use crate::heap::Str;
use crate::native::{Cx, Fault};
use a99_ecma::wtf8;
use std::ops::Range;

/// The byte range of a text without white space at the trimmed ends.
///
/// # Errors
/// A stop.
pub(crate) fn trimmed_range(
    cx: &mut Cx<'_>,
    s: Str,
    start: bool,
    end: bool,
) -> Result<Range<usize>, Fault> {
    /// Bytes scanned between two yield points.
    const PIECE: usize = 4096;
    /// Bytes at the cut of a piece, where a sequence may be split.
    const EDGE: usize = 4;
    let inner = |byte: u8| byte & 0xC0 == 0x80;
    let (mut from, mut to) = (0, s.len_bytes());
    while start && from < to {
        let text = &cx.bytes(s)[from..to];
        let part = &text[..text.len().min(PIECE)];
        let left = wtf8::trim_start(part).len();
        if part.len() == text.len() || left > EDGE {
            from += part.len() - left;
            break;
        }
        let mut skipped = part.len() - EDGE;
        while skipped > 0 && inner(part[skipped]) {
            skipped -= 1;
        }
        from += skipped.max(1);
        cx.work(PIECE as i64)?;
    }
    while end && from < to {
        let text = &cx.bytes(s)[from..to];
        let part = &text[text.len().saturating_sub(PIECE)..];
        let left = wtf8::trim_end(part).len();
        if part.len() == text.len() || left > EDGE {
            to -= part.len() - left;
            break;
        }
        let mut kept = EDGE;
        while kept + 1 < part.len() && inner(part[kept]) {
            kept += 1;
        }
        to -= part.len() - kept;
        cx.work(PIECE as i64)?;
    }
    Ok(from..to)
}
