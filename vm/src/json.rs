//! JSON text and guest values: `JSON.parse` straight into the heap and `JSON.stringify` out
//! of it (ECMA-262 §25.5). Both are iterative, limited in depth, and paid as they go (D18).
//!
//! `a99_core::json` parses programs; this module parses data. Error messages are those of
//! JavaScriptCore, since programs compare them.

mod decode;
mod parse;
mod refused;
mod scan;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use parse::{parse, parse_str};
pub(crate) use refused::not_json;
pub(crate) use scan::{NotRead, Place, scan};
pub(crate) use tree::tree;
pub(crate) use write::{Style, Writer};

use crate::coerce;
use crate::convert::{self, BoundaryLimits, Copies};
use crate::heap::{KeyId, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{JSON_LISTED, READ, Sizes};

/// Maximum nesting of arrays and objects in JSON text, in either direction (D21); deeper text
/// is more likely a cycle or an attack than data.
pub const MAX_DEPTH: usize = 512;

/// Reads a value from a host's scanned text, with the result of
/// [`from_value`](convert::from_value) for the same value.
///
/// # Errors
/// As [`from_value`](convert::from_value). If a value exceeds both the boundary limit and the
/// heap ceiling, the boundary error is reported.
pub(crate) fn from_text(
    cx: &mut Cx<'_>,
    text: &[u8],
    place: &Place,
    limits: &BoundaryLimits,
) -> Result<Val, Fault> {
    /// Maximum growth of a number when it is written: `1e20` becomes 21 bytes.
    const WRITTEN: usize = 6;
    let bytes = &text[place.bytes.clone()];
    let built = parse::parse_host(cx, parse::HostText { bytes, limits });
    if let Err(Fault::Throw(deep)) = built {
        return reconsidered(cx, bytes, limits, Fault::Throw(deep));
    }
    // Rewritten JSON is never longer than its source, except for such numbers.
    let times = if place.grows { WRITTEN } else { 1 };
    if bytes.len().saturating_mul(times) <= limits.max_bytes {
        return built;
    }
    match built {
        Ok(val) => convert::check_val(cx, val, limits).map(|()| val),
        Err(Fault::Oom(_)) if bytes.len() > limits.max_bytes => Err(convert::too_large(limits)),
        Err(fault) => Err(fault),
    }
}

/// Rereads a value with a part that is too deep. A size error may come earlier in the text,
/// and a later member may replace the deep one under the same key.
#[cold]
fn reconsidered(
    cx: &mut Cx<'_>,
    bytes: &[u8],
    limits: &BoundaryLimits,
    deep: Fault,
) -> Result<Val, Fault> {
    let scanned = BoundaryLimits {
        max_depth: scan::MAX_TEXT_DEPTH as u32,
        ..*limits
    };
    let text = parse::HostText {
        bytes,
        limits: &scanned,
    };
    match parse::parse_host(cx, text) {
        Ok(val) => convert::check_val(cx, val, limits).map(|()| val),
        Err(Fault::Oom(_)) => Err(deep),
        Err(fault) => Err(fault),
    }
}

/// The longest indent of `JSON.stringify` (ECMA-262 §25.5.2), in spaces or UTF-16 units.
const MAX_GAP: usize = 10;

/// Code of a builtin function, which sees only its arguments.
type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(crate) const FUNCTIONS: &[(&str, &str, Code)] = &[
    ("JSON", "parse", json_parse),
    ("JSON", "stringify", json_stringify),
];

/// `JSON.parse(text)`; a reviver is ignored, since no builtin is useful as one.
fn json_parse(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let text = coerce::to_str(cx, args.first().copied().unwrap_or(Val::Undefined))?;
    parse_str(cx, text)
}

/// `JSON.stringify(value, replacer?, space?)`.
fn json_stringify(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let arg = |i: usize| args.get(i).copied().unwrap_or(Val::Undefined);
    let mut listed = 0;
    let replacer = match arg(1) {
        Val::Arr(list) => {
            listed = cx.heap.len(list);
            let elements = listed.saturating_mul(JSON_LISTED);
            cx.pay_metered(READ.price(Sizes::elements(elements)))?;
            Replacer::Keys(key_list(cx, list)?)
        }
        f @ Val::Builtin(_) => Replacer::Function(f),
        _ => Replacer::None,
    };
    let gap = gap(cx, arg(2))?;
    let style = Style {
        gap: &gap,
        replacer,
        listed,
        canonical: false,
    };
    Ok(styled(cx, arg(0), style)?.map_or(Val::Undefined, Val::Str))
}

/// The second argument of `JSON.stringify`.
#[derive(Clone, Debug, Default)]
pub enum Replacer {
    /// No replacement.
    #[default]
    None,
    /// Only these members of objects are written, in this order.
    Keys(Vec<KeyId>),
    /// A builtin function that gets key and value (D35).
    Function(Val),
}

/// `JSON.stringify`: the text, or `None` for values without one (`undefined` and builtins).
/// `gap` is the indent of one level, empty for compact text.
///
/// # Errors
/// A cycle, a depth beyond [`MAX_DEPTH`], an invalid `Date`; fuel and memory.
pub fn stringify(
    cx: &mut Cx<'_>,
    v: Val,
    replacer: Replacer,
    gap: &[u8],
) -> Result<Option<Str>, Fault> {
    let listed = match &replacer {
        Replacer::Keys(keys) => keys.len(),
        _ => 0,
    };
    let style = Style {
        gap,
        replacer,
        listed,
        canonical: false,
    };
    styled(cx, v, style)
}

fn styled(cx: &mut Cx<'_>, v: Val, style: Style<'_>) -> Result<Option<Str>, Fault> {
    let mut writer = Writer::new(cx, style);
    if !writer.run(v)? {
        return Ok(None);
    }
    let text = writer.finish()?;
    // Both copies exist for a moment.
    let mut copies = Copies::new(cx);
    copies.count(text.bytes().len())?;
    let made = copies.str_units(text.bytes(), text.units())?;
    Ok(Some(made))
}

/// The property list of ECMA-262 §25.5.2 step 4: texts and numbers, each once. A text that is
/// not interned in this run cannot match a member.
fn key_list(cx: &mut Cx<'_>, list: crate::heap::Ref) -> Result<Vec<KeyId>, Fault> {
    let mut seen = std::collections::HashSet::new();
    let mut keys = Vec::new();
    // The text of a number is only looked up, not interned.
    let mut digits = Vec::new();
    for i in 0..cx.heap.len(list) {
        cx.work(8)?;
        let text = match cx.heap.items(list)[i] {
            Val::Str(text) => cx.heap.bytes(text),
            Val::Num(number) => {
                digits.clear();
                a99_ecma::number_text::write_number(&mut digits, number);
                &digits
            }
            _ => continue,
        };
        if let Some(key) = cx.heap.shapes.find_key(text)
            && !seen.contains(&key)
        {
            cx.heap.check(keys.len() * 4 * size_of::<KeyId>())?;
            seen.insert(key);
            keys.push(key);
        }
    }
    Ok(keys)
}

/// The gap of ECMA-262 §25.5.2 steps 5 to 8.
fn gap(cx: &mut Cx<'_>, space: Val) -> Result<Vec<u8>, Fault> {
    Ok(match space {
        Val::Num(n) => vec![b' '; a99_ecma::text_index::clamp(n, MAX_GAP)],
        Val::Str(s) => {
            let mut gap = Vec::new();
            let mut units = 0;
            for part in cx.heap.bytes(s).chunk_by(|_, next| next & 0xC0 == 0x80) {
                units += if part.len() == 4 { 2 } else { 1 };
                if units > MAX_GAP {
                    break;
                }
                gap.extend_from_slice(part);
            }
            gap
        }
        _ => Vec::new(),
    })
}
