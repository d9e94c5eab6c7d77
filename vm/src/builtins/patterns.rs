//! Functions that take the pattern of a regular expression as a value (D126).

use super::regex_find::{Pattern, find_all, find_from, replace, split};
use super::{FunctionFn, arg};
use crate::coerce::{to_number, to_str};
use crate::heap::{Str, Val};
use crate::native::{Cx, Fault};
use a99_ecma::arith::to_uint32;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, FunctionFn)] = &[
    ("String", "findPattern", |cx, args| {
        let (text, pattern) = operands(cx, args)?;
        let from = to_number(cx, arg(args, 3))?.max(0.0);
        find_from(cx, text, pattern, from as usize)
    }),
    ("String", "findPatterns", |cx, args| {
        let (text, pattern) = operands(cx, args)?;
        find_all(cx, text, pattern)
    }),
    ("String", "replacePattern", |cx, args| {
        let (text, pattern) = operands(cx, args)?;
        let with = to_str(cx, arg(args, 3))?;
        replace(cx, text, pattern, with, None)
    }),
    ("String", "splitPattern", |cx, args| {
        let (text, pattern) = operands(cx, args)?;
        let limit = match arg(args, 3) {
            v if v.is_undefined() => u32::MAX,
            v => to_uint32(to_number(cx, v)?),
        };
        split(cx, text, pattern, limit as usize)
    }),
];

/// Text, pattern and flags.
fn operands(cx: &mut Cx<'_>, args: &[Val]) -> Result<(Str, Pattern), Fault> {
    let text = to_str(cx, arg(args, 0))?;
    let source = to_str(cx, arg(args, 1))?;
    let flags = match arg(args, 2) {
        v if v.is_undefined() => Str::EMPTY,
        v => to_str(cx, v)?,
    };
    Ok((text, Pattern { source, flags }))
}
