//! Reads the request context (D75), as far as the host allows it. The compiler calls this atom for
//! `$kind: context` and nodes `context`; no program can name it.

use crate::def::{Adjust, Kind, native, req};
use a99_core::costs::{CROSSING_VALUE, READ, Sizes};
use a99_core::error::ErrorCode;
use a99_core::value::{Value, array_index};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::convert::from_answer;
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "context:read",
            "A part of the request context that the host lets programs read.",
            0,
            &[req(
                "path",
                Kind::Text,
                "Names of members, with dots between them.",
            )
            .literal()],
            read,
        )
        .metered(READ),
    ]
}

/// True if a host's allow-list entry `allowed` covers a path.
fn covers(allowed: &str, path: &str) -> bool {
    match path.strip_prefix(allowed) {
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        None => false,
    }
}

fn read(cx: &mut Cx<'_>, scope: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let Val::Str(path) = args[0] else {
        return Ok(Val::Undefined);
    };
    cx.charge(READ, Sizes::units(path.units()))?;
    let path = String::from_utf8_lossy(cx.bytes(path)).into_owned();
    cx.work((path.len() + 16 * scope.options.readable_context.len()) as i64)?;
    let mut allowed = scope.options.readable_context.iter();
    if !allowed.any(|allowed| covers(allowed, &path)) {
        let fault = Fault::coded(
            ErrorCode::Capability,
            format!("The host lets no program read '{path}' of its context"),
        );
        let name = path.split('.').next().unwrap_or_default();
        let help = format!("allow it with `RunOptions::readable_context([{name:?}])`");
        return Err(fault.with_help(help));
    }
    cx.pay_metered(CROSSING_VALUE)?;
    let mut at = Some(&*scope.options.context);
    for name in path.split('.') {
        at = at.and_then(|value| match value {
            Value::Object(members) => members.get_bytes(name.as_bytes()),
            Value::Array(items) => items.get(array_index(name.as_bytes())? as usize),
            _ => None,
        });
    }
    match at {
        Some(value) => from_answer(cx, value, scope.limits()),
        None => Ok(Val::Undefined),
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_path_is_covered_by_what_it_begins_with() {
        for (allowed, path, covered) in [
            ("user", "user", true),
            ("user", "user.id", true),
            ("user", "users", false),
            ("env.REGION", "env.REGION", true),
            ("env.REGION", "env", false),
            ("env.REGION", "env.SECRET", false),
        ] {
            assert_eq!(covers(allowed, path), covered, "{allowed}: {path}");
        }
    }
}
