//! `split` and `join` (language section 2.5): they call the methods of the same names, which charge
//! for themselves.

use crate::def::{Adjust, Kind, native, req};
use a99_core::builtins::method;
use a99_core::costs::{JOIN, MICRO, SPLIT};
use a99_core::sig::{Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::builtins::{call_method, unknown_method};
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "split",
            "Splits text at a separator.",
            MICRO,
            &[
                req("str", Kind::Text, "Text to split.").subject(),
                req(
                    "sep",
                    Kind::Text,
                    "What stands between the parts, taken literally; the empty text splits \
                     between characters.",
                ),
            ],
            split,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::ARRAY))
        .metered(SPLIT),
        native(
            "join",
            "Joins the items of a list to text.",
            MICRO,
            &[
                req(
                    "list",
                    Kind::Texts,
                    "Items in order; other values are converted to text, null to the empty text.",
                )
                .subject(),
                req("sep", Kind::Text, "Separator between two items."),
            ],
            join,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::STRING))
        .metered(JOIN),
    ]
}

fn split(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    call(cx, "split", args)
}

fn join(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    call(cx, "join", args)
}

/// Calls a method of the first input. A receiver without the method is an error.
pub(crate) fn call(cx: &mut Cx<'_>, name: &str, args: &[Val]) -> Result<Val, Fault> {
    match method(name) {
        Some(number) => call_method(cx, args[0], number, &args[1..]),
        None => Err(unknown_method(cx, args[0], name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, run};

    #[test]
    fn split_is_literal() {
        assert_eq!(run("split", r#"["a,b,,c", ","]"#), r#"["a","b","","c"]"#);
        assert_eq!(run("split", r#"["abc", ""]"#), r#"["a","b","c"]"#);
        assert_eq!(
            fails("split", r#"[null, ","]"#),
            "Cannot call method 'split' on null"
        );
    }

    #[test]
    fn join_turns_items_into_text() {
        let list = r#"[[1, null, true, [2, 3], {"k": 1}], "|"]"#;
        assert_eq!(run("join", list), r#""1||true|2,3|[object Object]""#);
        assert_eq!(
            fails("join", r#"["text", ","]"#),
            "'join' is not a function"
        );
    }
}
