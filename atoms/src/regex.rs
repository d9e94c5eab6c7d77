//! `regexMatch` (language section 2.5) on a linear-time engine (D39), and the atoms that find,
//! replace and split by a regular expression (D72).

use crate::def::{Adjust, Input, Kind, native, opt, req};
use a99_core::costs::{MICRO, READ};
use a99_core::sig::{Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, NativeFn, Scope};
use a99_vm::builtins::regex_find::{self, Pattern};
use a99_vm::coerce::{to_number, to_str, truthy};
use a99_vm::heap::{Str, Val};
use a99_vm::native::{Cx, Fault};
use a99_vm::regex::{MAX_INPUT_UNITS, MAX_PATTERN_UNITS, regex_match_str};

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
                    "Text to search, of at most 100000 characters; another value is converted to text.",
                )
                .subject(),
            ],
            matches,
        )
        .listed(ShortPrompts::Json)
        .gives(Gives::always(JsonKinds::BOOLEAN))
        .metered(READ)
        .whole_price(),
        finds(
            "regexFind",
            "The first match of a regular expression in a text, or null: an object of `match`, \
             `index`, `groups` and `named`.",
            &[TEXT, PATTERN, FLAGS],
            find_first,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ANY)),
        finds(
            "regexFindAll",
            "All matches of a regular expression in a text as a list, each in the form of \
             regexFind.",
            &[TEXT, PATTERN, FLAGS],
            find_all,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ARRAY)),
        finds(
            "regexReplace",
            "The text with the first match of a regular expression replaced, or all of them.",
            &[
                TEXT,
                PATTERN,
                FLAGS,
                req(
                    "replacement",
                    Kind::Text,
                    "Replacement: `$1` is a group, `$<name>` a named one, `$&` the match, `$$` a \
                     dollar.",
                ),
                opt(
                    "all",
                    Kind::Bool,
                    "Whether all matches are replaced; by default if the flag `g` is set.",
                ),
            ],
            replace,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::STRING)),
        finds(
            "regexSplit",
            "The parts of a text between the matches of a regular expression.",
            &[
                TEXT,
                PATTERN,
                FLAGS,
                opt("limit", Kind::Number, "Maximum number of parts.").whole(0.0, f64::INFINITY),
            ],
            split,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ARRAY)),
    ]
}

const TEXT: Input = req(
    "text",
    Kind::Text,
    "Text to search, of at most 1000000 characters; another value is converted to text.",
)
.subject();

const PATTERN: Input = req(
    "pattern",
    Kind::Text,
    "Regular expression without slashes, of at most 1000 characters.",
)
.literal();

const FLAGS: Input = opt(
    "flags",
    Kind::Text,
    "`i` for either case, `m` for `^` and `$` at lines, `s` for `.` to match line ends, `u` for \
     code points and `\\p{...}`, `y` for matches that follow each other from the start on, `g` \
     for all.",
)
.literal();

fn finds(name: &'static str, docs: &'static str, inputs: &[Input], body: NativeFn) -> AtomDef {
    native(name, docs, 2 * MICRO, inputs, body)
        .metered(READ)
        .whole_price()
}

/// Text, pattern and flags. A missing pattern or missing flags are empty.
fn operands(cx: &mut Cx<'_>, args: &[Val]) -> Result<(Str, Pattern), Fault> {
    let text = to_str(cx, args[0])?;
    let source = given(cx, args[1])?.unwrap_or(Str::EMPTY);
    let flags = given(cx, args[2])?.unwrap_or(Str::EMPTY);
    Ok((text, Pattern { source, flags }))
}

/// A present input as text.
fn given(cx: &mut Cx<'_>, input: Val) -> Result<Option<Str>, Fault> {
    match input {
        Val::Undefined | Val::Unbound | Val::Null => Ok(None),
        other => to_str(cx, other).map(Some),
    }
}

fn find_first(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let (text, pattern) = operands(cx, args)?;
    regex_find::find_first(cx, text, pattern)
}

fn find_all(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let (text, pattern) = operands(cx, args)?;
    regex_find::find_all(cx, text, pattern)
}

fn replace(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let (text, pattern) = operands(cx, args)?;
    let with = to_str(cx, args[3])?;
    let all = match args[4] {
        Val::Undefined | Val::Unbound | Val::Null => None,
        other => Some(truthy(cx.heap, other)),
    };
    regex_find::replace(cx, text, pattern, with, all)
}

fn split(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let (text, pattern) = operands(cx, args)?;
    let limit = match args[3] {
        Val::Undefined | Val::Unbound | Val::Null => usize::MAX,
        other => to_number(cx, other)? as usize,
    };
    regex_find::split(cx, text, pattern, limit)
}

/// Checks the length caps first, before charging. A missing pattern matches everything, as `new
/// RegExp(undefined)` does.
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
    fn matches_have_places_and_groups() {
        for (args, expected) in [
            (
                r#"["on 2024-05-06", "(?<y>\\d+)-(\\d+)(x)?", null]"#,
                r#"{"match":"2024-05","index":3,"groups":["2024","05",null],"named":{"y":"2024"}}"#,
            ),
            (r#"["abc", "d", null]"#, "null"),
            (
                r#"["👍b", "B", "i"]"#,
                r#"{"match":"b","index":2,"groups":[],"named":{}}"#,
            ),
        ] {
            assert_eq!(run("regexFind", args), expected, "{args}");
        }
        let all = run("regexFindAll", r#"["a1b2", "[a-z](\\d)", null]"#);
        assert!(
            all.starts_with(r#"[{"match":"a1","index":0,"groups":["1"]"#),
            "{all}"
        );
        assert!(
            all.contains(r#"{"match":"b2","index":2,"groups":["2"]"#),
            "{all}"
        );
    }

    #[test]
    fn replacements_name_groups() {
        for (args, expected) in [
            (
                r#"["a-b a-b", "(\\w)-(\\w)", null, "$2$1$$", null]"#,
                r#""ba$ a-b""#,
            ),
            (
                r#"["a-b a-b", "(\\w)-(\\w)", "g", "$2$1", null]"#,
                r#""ba ba""#,
            ),
            (
                r#"["a-b a-b", "(\\w)-(\\w)", "g", "[$&]", false]"#,
                r#""[a-b] a-b""#,
            ),
            (r#"["abc", "b*", null, "-", true]"#, r#""-a--c-""#),
            (
                r#"["x", "(?<n>x)", null, "<$<n>|$<m>|$10|$2>", true]"#,
                r#""<x||x0|$2>""#,
            ),
            (r#"["x", "x", null, "$1$<n>$", true]"#, r#""$1$<n>$""#),
            (r#"["abc", "b", null, "[$`$']", true]"#, r#""a[ac]c""#),
        ] {
            assert_eq!(run("regexReplace", args), expected, "{args}");
        }
    }

    #[test]
    fn texts_are_split_at_matches() {
        for (args, expected) in [
            (r#"["a, b;c", "[,;]\\s*", null, null]"#, r#"["a","b","c"]"#),
            (
                r#"["a1b2c", "(\\d)", null, null]"#,
                r#"["a","1","b","2","c"]"#,
            ),
            (r#"["a1b2c", "(\\d)", null, 2]"#, r#"["a","1"]"#),
            (r#"["abc", "", null, null]"#, r#"["a","b","c"]"#),
            (r#"["", "x", null, null]"#, r#"[""]"#),
            (r#"["", "", null, null]"#, "[]"),
            (r#"[",a,", ",", null, null]"#, r#"["","a",""]"#),
        ] {
            assert_eq!(run("regexSplit", args), expected, "{args}");
        }
    }

    #[test]
    fn flags_are_few() {
        assert_eq!(
            fails("regexFind", r#"["a", "a", "v"]"#),
            "Invalid regular expression flags: 'v' is none of g, i, m, s, u and y"
        );
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
