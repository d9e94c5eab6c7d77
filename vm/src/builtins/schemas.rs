//! The builtin `filter` and the `Schema.*` builders (language sections 2.9
//! and 3.6).
//!
//! Builders give JSON Schema as plain data: an argument that is no schema is
//! taken as an example of one. Values are converted to the host's type for the
//! check, under the limits of the boundary (D21), after that work was paid.

mod build;
#[cfg(test)]
mod tests;

use super::arg;
use crate::convert::{BoundaryLimits, from_value, to_value};
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_core::costs::{Sizes, WRITTEN};
use a99_core::schema::{self, PatternMatcher, Schema};
use a99_core::text::Text;
use a99_core::value::Value;

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[
    ("", "filter", filter),
    ("Schema", "any", |cx, args| {
        build::call(cx, args, build::any)
    }),
    ("Schema", "array", |cx, args| {
        build::call(cx, args, build::array)
    }),
    ("Schema", "const", |cx, args| {
        build::call(cx, args, build::constant)
    }),
    ("Schema", "datetime", |cx, args| {
        build::call(cx, args, build::datetime)
    }),
    ("Schema", "email", |cx, args| {
        build::call(cx, args, build::email)
    }),
    ("Schema", "emoji", |cx, args| {
        build::call(cx, args, build::emoji)
    }),
    ("Schema", "enum", |cx, args| {
        build::call(cx, args, build::enumeration)
    }),
    ("Schema", "fromExample", |cx, args| {
        build::call(cx, args, build::from_example)
    }),
    ("Schema", "infer", |cx, args| {
        build::call(cx, args, build::infer)
    }),
    ("Schema", "ipv4", |cx, args| {
        build::call(cx, args, build::ipv4)
    }),
    ("Schema", "isValid", is_valid),
    ("Schema", "null", |cx, args| {
        build::call(cx, args, build::null)
    }),
    ("Schema", "object", |cx, args| {
        build::call(cx, args, build::object)
    }),
    ("Schema", "pattern", |cx, args| {
        build::call(cx, args, build::pattern)
    }),
    ("Schema", "record", |cx, args| {
        build::call(cx, args, build::record)
    }),
    ("Schema", "response", |cx, args| {
        build::call(cx, args, build::response)
    }),
    ("Schema", "tuple", |cx, args| {
        build::call(cx, args, build::tuple)
    }),
    ("Schema", "undefined", |cx, args| {
        build::call(cx, args, build::undefined)
    }),
    ("Schema", "union", |cx, args| {
        build::call(cx, args, build::union)
    }),
    ("Schema", "url", |cx, args| {
        build::call(cx, args, build::url)
    }),
    ("Schema", "uuid", |cx, args| {
        build::call(cx, args, build::uuid)
    }),
];

/// Patterns run on the linear-time engine (D39).
struct Patterns;

impl PatternMatcher for Patterns {
    fn is_match(&self, pattern: &Text, text: &Text) -> Result<bool, String> {
        super::regex::test(pattern.as_bytes(), text.as_bytes())
    }
}

/// The host's form of an argument; reading it is paid with the call.
fn host_value(cx: &Cx<'_>, v: Val) -> Result<Value, Fault> {
    to_value(cx.heap, v, &BoundaryLimits::default())
}

/// `filter(data, schemaOrExample)`: the data with what the schema declares.
///
/// # Errors
/// `<path>: <message>` for data that does not match.
fn filter(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let data = host_value(cx, arg(args, 0))?;
    let wanted = host_value(cx, arg(args, 1))?;
    let wanted = Schema::parse(&schema::from_example(&wanted));
    let kept = schema::filter_with(&data, &wanted, &Patterns)
        .map_err(|error| Fault::throw(error.to_string()))?;
    let kept = from_value(cx.heap, &kept, &BoundaryLimits::default())?;
    let (units, elements) = super::width(cx, kept);
    cx.charge(
        WRITTEN,
        Sizes::default().out_units(units).out_elements(elements),
    )?;
    Ok(kept)
}

/// `Schema.isValid(value, schemaOrExample)`.
fn is_valid(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let data = host_value(cx, arg(args, 0))?;
    let wanted = host_value(cx, arg(args, 1))?;
    let wanted = Schema::parse(&build::as_schema(wanted));
    Ok(Val::Bool(
        schema::validate_with(&data, &wanted, &Patterns, false).is_ok(),
    ))
}
