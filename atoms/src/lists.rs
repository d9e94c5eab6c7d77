//! `push` and `len` (language section 2.5).

use crate::def::{Adjust, Kind, native, req};
use a99_core::costs::MICRO;
use a99_core::sig::{Effect, Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "push",
            "Appends an item to a list in place and returns the list.",
            MICRO,
            &[
                req(
                    "list",
                    Kind::List,
                    "List to append to, usually a variable; another value is returned unchanged.",
                )
                .subject(),
                req("item", Kind::Any, "Item to append."),
            ],
            push,
        )
        .listed(ShortPrompts::Json)
        .effect(Effect::Mutates),
        native(
            "len",
            "The length of a list or text, 0 for anything else.",
            MICRO,
            &[req(
                "list",
                Kind::Any,
                "List whose items are counted, or text whose UTF-16 units are.",
            )
            .subject()],
            len,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::NUMBER)),
    ]
}

/// Aliases see the new item (D49). A value that is not an array is returned unchanged (D46).
fn push(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    if let Val::Arr(list) = args[0] {
        cx.push(list, args[1])?;
    }
    Ok(args[0])
}

fn len(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let n = match args[0] {
        Val::Arr(list) => cx.heap.len(list),
        Val::Str(text) => text.units(),
        _ => 0,
    };
    Ok(Val::Num(n as f64))
}

#[cfg(test)]
mod tests {
    use crate::testing::run;

    #[test]
    fn push_appends_or_does_nothing() {
        assert_eq!(run("push", "[[1], 2]"), "[1,2]");
        assert_eq!(run("push", r#"["no list", 2]"#), r#""no list""#);
    }

    #[test]
    fn len_counts_utf16_units() {
        assert_eq!(run("len", "[[1,2]]"), "2");
        assert_eq!(run("len", r#"["a👍"]"#), "3");
        assert_eq!(run("len", r#"[{"a":1}]"#), "0");
    }
}
