//! `regexMatch` (language section 2.5) on a linear-time engine (D39).

use crate::def::{Adjust, Kind, native, req};
use a99_core::costs::{MICRO, READ};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::builtins::regex::{MAX_INPUT_UNITS, MAX_PATTERN_UNITS, regex_match_str};
use a99_vm::coerce::to_str;
use a99_vm::heap::{Str, Val};
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "regexMatch",
            "Whether a regular expression matches somewhere in a text.",
            2 * MICRO,
            &[
                req(
                    "pattern",
                    Kind::Text,
                    "Regular expression without slashes and flags, of at most 1000 characters; \
                     it is found anywhere unless anchored by `^` and `$`.",
                )
                .literal(),
                req(
                    "value",
                    Kind::Any,
                    "Text to look through, of at most 100000 characters; anything else is turned \
                     into text.",
                ),
            ],
            matches,
        )
        .metered(READ)
        .whole_price(),
    ]
}

/// The length caps come first, before anything is paid. A missing pattern
/// matches everything, as `new RegExp(undefined)` does.
fn matches(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let pattern = match args[0] {
        Val::Undefined | Val::Unbound => Str::EMPTY,
        other => {
            let text = to_str(cx, other)?;
            check(text.units(), MAX_PATTERN_UNITS, "pattern")?;
            text
        }
    };
    let text = to_str(cx, args[1])?;
    check(text.units(), MAX_INPUT_UNITS, "input")?;
    Ok(Val::Bool(regex_match_str(cx, pattern, text)?))
}

fn check(units: usize, max: usize, what: &str) -> Result<(), Fault> {
    if units > max {
        return Err(Fault::throw(format!(
            "Regex {what} too long ({units} > {max})"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, fuel_for, run};
    use a99_core::costs::regex_price;

    #[test]
    fn patterns_are_searched() {
        let cases = [
            (r#"["^a.c$", "abc"]"#, "true"),
            (r#"["^a.c$", "a\nc"]"#, "false"),
            (r#"["\\d{3}-\\d{4}", "call 555-1234 now"]"#, "true"),
            (r#"["ABC", "abc"]"#, "false"),
            (r#"["", "anything"]"#, "true"),
            (r#"[42, "x42y"]"#, "true"),
            (r#"["^null$", null]"#, "true"),
        ];
        for (args, expected) in cases {
            assert_eq!(run("regexMatch", args), expected, "{args}");
        }
    }

    #[test]
    fn caps_and_syntax() {
        let long = format!(r#"["a", "{}"]"#, "a".repeat(100_001));
        assert_eq!(
            fails("regexMatch", &long),
            "Regex input too long (100001 > 100000)"
        );
        let long = format!(r#"["{}", "a"]"#, "a".repeat(1_001));
        assert_eq!(
            fails("regexMatch", &long),
            "Regex pattern too long (1001 > 1000)"
        );
        assert!(fails("regexMatch", r#"["(", "x"]"#).starts_with("Invalid regular expression"));
    }

    #[test]
    fn what_is_read_is_paid() {
        assert_eq!(
            fuel_for("regexMatch", r#"["ab", "12345678"]"#),
            10 * 100 + regex_price(2, 8)
        );
    }
}
