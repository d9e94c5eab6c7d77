//! The boundary between host values and guest values (D21).
//!
//! Values that cross are copied, counted as the UTF-8 JSON they would be, and limited in size
//! and depth. A program never reaches a host object, and the host never reaches a guest
//! array. All code is iterative and takes the meter of the run: a host copy counts against
//! the heap ceiling while it exists, and a deadline or an abort interrupts the walk. The
//! messages of refusals:
//!
//! * `Capability boundary rejected: value exceeds the <n>-byte limit`
//! * `Capability boundary rejected: value exceeds depth limit <n>`
//! * `Capability boundary rejected: value contains a cycle`

mod count;
mod inward;
mod outward;
mod price;
mod special;
pub(crate) mod temp;
#[cfg(test)]
mod tests;

#[cfg(feature = "typed")]
pub(crate) use count::ESCAPED;
#[cfg(feature = "typed")]
pub(crate) use count::LONGEST_SCALAR;
pub(crate) use count::check_val;
#[cfg(feature = "typed")]
pub(crate) use inward::text_answer;
pub use inward::{copy_deep, from_answer, from_value};
pub(crate) use inward::{copy_plain, from_text};
pub use outward::Copies;
pub(crate) use outward::copy_bytes;
pub(crate) use price::charge_read;
pub(crate) use special::special;

use crate::native::{Cx, Fault};
use a99_core::error::ErrorCode;

/// Size limits of values that cross the boundary, in either direction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BoundaryLimits {
    /// Maximum bytes of the JSON text in UTF-8; `undefined` counts as `null`.
    pub max_bytes: usize,
    /// Maximum nesting of arrays and objects.
    pub max_depth: u32,
}

/// Default of [`BoundaryLimits::max_bytes`] (D21).
pub const DEFAULT_MAX_BYTES: usize = 4 << 20;

/// Default of [`BoundaryLimits::max_depth`] (D21).
pub const DEFAULT_MAX_DEPTH: u32 = 512;

impl Default for BoundaryLimits {
    /// 4 MiB and 512 levels (D21).
    fn default() -> Self {
        BoundaryLimits {
            max_bytes: DEFAULT_MAX_BYTES,
            max_depth: DEFAULT_MAX_DEPTH,
        }
    }
}

/// Checks a text that crosses without a surrounding value: the message of an error.
///
/// # Errors
/// [`ErrorCode::Boundary`] if it is too large; a stop.
pub(crate) fn check_text(
    cx: &mut Cx<'_>,
    text: &[u8],
    limits: &BoundaryLimits,
) -> Result<(), Fault> {
    count::Count::new(limits).string(text, &mut cx.split().1)
}

/// The longest prefix of a text that may cross the boundary.
pub fn cut<'t>(text: &'t [u8], limits: &BoundaryLimits) -> &'t [u8] {
    let mut end = text.len().min(limits.max_bytes);
    while end > 0 && end < text.len() && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

#[cold]
fn rejected(reason: impl std::fmt::Display) -> Fault {
    Fault::coded(
        ErrorCode::Boundary,
        format!("Capability boundary rejected: value {reason}"),
    )
}

/// The refusal of a map at the boundary (D111): as JSON it would lose its entries.
#[cold]
fn is_map() -> Fault {
    rejected("contains a Map; convert it with Object.fromEntries(map) or [...map]")
}

#[cold]
pub(crate) fn too_large(limits: &BoundaryLimits) -> Fault {
    rejected(format_args!("exceeds the {}-byte limit", limits.max_bytes))
}

#[cold]
pub(crate) fn too_deep(limits: &BoundaryLimits) -> Fault {
    rejected(format_args!("exceeds depth limit {}", limits.max_depth))
}

/// The ISO text of a date (D34).
///
/// # Errors
/// `Invalid Date` for the invalid date, as `toISOString` throws.
pub(crate) fn date_text(ms: f64) -> Result<String, Fault> {
    if ms.is_nan() {
        return Err(Fault::throw("Invalid Date"));
    }
    Ok(a99_ecma::date::to_iso(ms))
}
