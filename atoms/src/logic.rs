//! Logic (language section 2.3): comparisons and connectives as atoms.

use crate::def::{Adjust, Kind, TENTH, native, req};
use a99_core::sig::{Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::coerce::{Cmp, compare, loose_eq, truthy};
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

/// `eq neq gt lt and or not`.
pub(crate) fn atoms() -> Vec<AtomDef> {
    let two = [
        req("a", Kind::Any, "Left side."),
        req("b", Kind::Any, "Right side."),
    ];
    vec![
        native("eq", "Whether a == b, with coercion.", TENTH, &two, eq)
            .listed(ShortPrompts::Neither)
            .gives(Gives::always(JsonKinds::BOOLEAN)),
        native("neq", "Whether a != b, with coercion.", TENTH, &two, neq)
            .listed(ShortPrompts::Neither)
            .gives(Gives::always(JsonKinds::BOOLEAN)),
        native("gt", "Whether a > b.", TENTH, &two, gt)
            .listed(ShortPrompts::Neither)
            .gives(Gives::always(JsonKinds::BOOLEAN)),
        native("lt", "Whether a < b.", TENTH, &two, lt)
            .listed(ShortPrompts::Neither)
            .gives(Gives::always(JsonKinds::BOOLEAN)),
        native("and", "Whether both are truthy.", TENTH, &two, and)
            .listed(ShortPrompts::Neither)
            .gives(Gives::always(JsonKinds::ANY)),
        native("or", "Whether one is truthy.", TENTH, &two, or)
            .listed(ShortPrompts::Neither)
            .gives(Gives::always(JsonKinds::ANY)),
        native(
            "not",
            "Whether the value is falsy.",
            TENTH,
            &[req("value", Kind::Any, "Value to negate.")],
            not,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::BOOLEAN)),
    ]
}

fn eq(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(loose_eq(cx, args[0], args[1])?))
}

fn neq(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(!loose_eq(cx, args[0], args[1])?))
}

fn gt(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(compare(cx, Cmp::Gt, args[0], args[1])?))
}

fn lt(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(compare(cx, Cmp::Lt, args[0], args[1])?))
}

fn and(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(
        truthy(cx.heap, args[0]) && truthy(cx.heap, args[1]),
    ))
}

fn or(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(
        truthy(cx.heap, args[0]) || truthy(cx.heap, args[1]),
    ))
}

fn not(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(!truthy(cx.heap, args[0])))
}

#[cfg(test)]
mod tests {
    use crate::testing::run;

    #[test]
    fn comparisons_coerce() {
        assert_eq!(run("eq", r#"["1", 1]"#), "true");
        assert_eq!(run("neq", r#"[null, 0]"#), "true");
        assert_eq!(run("gt", r#"["10", 9]"#), "true");
        assert_eq!(run("lt", r#"["10", "9"]"#), "true");
    }

    #[test]
    fn connectives_give_booleans() {
        assert_eq!(run("and", r#"["a", []]"#), "true");
        assert_eq!(run("or", r#"[0, ""]"#), "false");
        assert_eq!(run("not", "[null]"), "true");
    }
}
