//! `jsonParse` and `jsonStringify` (language section 2.7).

use crate::def::{Adjust, Kind, native, req};
use a99_core::costs::{MICRO, PARSE, STRINGIFY, Sizes};
use a99_core::sig::{Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::coerce::to_str;
use a99_vm::heap::Val;
use a99_vm::json::{self, Replacer};
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "jsonParse",
            "Parses JSON text.",
            MICRO,
            &[req("str", Kind::Text, "JSON text; invalid text is an error.").subject()],
            parse,
        )
        .listed(ShortPrompts::Json)
        .metered(PARSE),
        native(
            "jsonStringify",
            "Writes a value as JSON text.",
            MICRO,
            &[req(
                "value",
                Kind::Any,
                "Value to write, compactly; values without a JSON form are left out.",
            )
            .subject()],
            stringify,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::mostly(JsonKinds::STRING))
        .metered(STRINGIFY),
    ]
}

fn parse(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let text = to_str(cx, args[0])?;
    cx.charge(PARSE, Sizes::units(text.units()))?;
    json::parse_str(cx, text)
}

/// `undefined` has no JSON text and yields `undefined`.
fn stringify(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let width = match args[0] {
        Val::Str(s) => Sizes::units(s.units()),
        Val::Arr(r) | Val::Obj(r) | Val::Set(r) => Sizes::elements(cx.heap.len(r)),
        _ => Sizes::default(),
    };
    cx.charge(STRINGIFY, width)?;
    let text = json::stringify(cx, args[0], Replacer::None, b"")?;
    Ok(text.map_or(Val::Undefined, Val::Str))
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, run};

    #[test]
    fn parse_takes_the_text_of_anything() {
        assert_eq!(
            run("jsonParse", r#"["{\"a\":[1,null]}"]"#),
            r#"{"a":[1,null]}"#
        );
        assert_eq!(run("jsonParse", "[5]"), "5");
        assert!(!fails("jsonParse", r#"[{"a":1}]"#).is_empty());
    }

    #[test]
    fn stringify_writes_compact_text() {
        assert_eq!(
            run("jsonStringify", r#"[{"b":[1,"x"],"a":1.5}]"#),
            r#""{\"b\":[1,\"x\"],\"a\":1.5}""#
        );
        assert_eq!(run("jsonStringify", "[]"), "undefined");
    }
}
