//! The builtin `filter` and the `Schema.*` builders (language sections 2.9
//! and 3.6).
//!
//! Builders give JSON Schema as plain data: an argument that is no schema is
//! taken as an example of one. Values are converted to the host's type for the
//! check, under the limits of the boundary (D21), after that work was paid;
//! what the check holds counts against the ceiling meanwhile.

mod build;
#[cfg(test)]
mod tests;

use super::arg;
use crate::convert::{BoundaryLimits, Copies, from_value};
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_core::costs::{Sizes, WRITTEN};
use a99_core::schema::{self, PatternMatcher, Schema};
use a99_core::text::Text;

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[
    ("", "filter", filter),
    ("Schema", "any", build::any),
    ("Schema", "array", build::array),
    ("Schema", "const", build::constant),
    ("Schema", "datetime", build::datetime),
    ("Schema", "email", build::email),
    ("Schema", "emoji", build::emoji),
    ("Schema", "enum", build::enumeration),
    ("Schema", "fromExample", build::from_example),
    ("Schema", "infer", build::infer),
    ("Schema", "ipv4", build::ipv4),
    ("Schema", "isValid", is_valid),
    ("Schema", "null", build::null),
    ("Schema", "object", build::object),
    ("Schema", "pattern", build::pattern),
    ("Schema", "record", build::record),
    ("Schema", "response", build::response),
    ("Schema", "tuple", build::tuple),
    ("Schema", "undefined", build::undefined),
    ("Schema", "union", build::union),
    ("Schema", "url", build::url),
    ("Schema", "uuid", build::uuid),
];

/// Patterns run on the linear-time engine (D39).
struct Patterns;

impl PatternMatcher for Patterns {
    fn is_match(&self, pattern: &Text, text: &Text) -> Result<bool, String> {
        super::regex::test(pattern.as_bytes(), text.as_bytes())
    }
}

/// A schema in the form that checks use. It was built from an argument, and is
/// deeper and longer than that where the argument is an example.
pub(crate) fn host_schema(copies: &mut Copies<'_, '_>, v: Val) -> Result<Schema, Fault> {
    let limits = BoundaryLimits {
        max_bytes: usize::MAX,
        max_depth: 2 * schema::MAX_SCHEMA_DEPTH + 2,
    };
    let before = copies.bytes();
    let value = copies.to_value(v, &limits)?;
    let parts = copies.bytes() - before;
    copies.count(parts.saturating_add(Schema::bytes_of(&value)))?;
    Ok(Schema::parse(&value))
}

/// `filter(data, schemaOrExample)`: the data with what the schema declares.
///
/// # Errors
/// `<path>: <message>` for data that does not match.
fn filter(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let limits = BoundaryLimits::default();
    let mut copies = Copies::new(cx);
    let data = copies.to_value(arg(args, 0), &limits)?;
    // What is kept is at most all of it.
    copies.count(copies.bytes())?;
    let wanted = build::by_example(&mut copies, arg(args, 1))?;
    let wanted = host_schema(&mut copies, wanted)?;
    let kept = schema::filter_with(&data, &wanted, &Patterns)
        .map_err(|error| Fault::throw(error.to_string()))?;
    let kept = from_value(&mut copies, &kept, &limits)?;
    let (units, elements) = super::width(&copies, kept);
    copies.charge(
        WRITTEN,
        Sizes::default().out_units(units).out_elements(elements),
    )?;
    Ok(kept)
}

/// `Schema.isValid(value, schemaOrExample)`.
fn is_valid(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut copies = Copies::new(cx);
    let data = copies.to_value(arg(args, 0), &BoundaryLimits::default())?;
    let wanted = build::as_schema(&mut copies, arg(args, 1))?;
    let wanted = host_schema(&mut copies, wanted)?;
    Ok(Val::Bool(
        schema::validate_with(&data, &wanted, &Patterns, false).is_ok(),
    ))
}
