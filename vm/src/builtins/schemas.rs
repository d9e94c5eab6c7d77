//! The builtin `filter` and the `Schema.*` builders (language sections 2.9
//! and 3.6).
//!
//! Builders return JSON Schema as plain data. An argument that is not a schema is an example
//! of one.

mod build;
#[cfg(test)]
mod tests;

use super::arg;
use crate::convert::BoundaryLimits;
use crate::heap::Val;
use crate::native::{Cx, Fault};
use crate::schema;
use a99_core::costs::{Sizes, WRITTEN};

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

/// `filter(data, schemaOrExample)`: the declared members of the data.
///
/// # Errors
/// `<path>: <message>` for data that does not match.
fn filter(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let data = arg(args, 0);
    let wanted = build::by_example(cx, arg(args, 1))?;
    let wanted = schema::read(cx, wanted)?;
    schema::check(cx, data, &wanted)?.map_err(|error| Fault::throw(error.to_string()))?;
    let kept = schema::project(cx, data, wanted.root())?;
    let (units, elements) = super::width(cx, kept);
    cx.charge(
        WRITTEN,
        Sizes::default().out_units(units).out_elements(elements),
    )?;
    Ok(kept)
}

/// `Schema.isValid(value, schemaOrExample)`.
fn is_valid(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let wanted = build::as_schema(cx, arg(args, 1))?;
    let wanted = schema::read(cx, wanted)?;
    Ok(Val::Bool(schema::conforms(cx, arg(args, 0), &wanted)?))
}
