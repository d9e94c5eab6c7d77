//! Advice about texts that cannot be read: the form that works here.

use a99_core::diag::excerpt;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Parts of other languages in an expression text, with the form that works here.
/// The first that fits is told.
const CONDITION: &[(&str, &str)] = &[
    (
        "{{",
        "a condition reads variables by their names: write `n`, not `{{n}}`",
    ),
    (
        "${",
        "a condition reads variables by their names: write `n`, not `${n}`",
    ),
    (
        "++",
        "a condition changes nothing: count in a step, `{\"op\": \"mathCalc\", \"expr\": \"i + 1\", \"result\": \"i\"}`",
    ),
    (
        "--",
        "a condition changes nothing: count in a step, `{\"op\": \"mathCalc\", \"expr\": \"i - 1\", \"result\": \"i\"}`",
    ),
    (
        "=>",
        "there are no functions as values: use the atoms `filter`, `find` or `map`",
    ),
    (
        "=~",
        "use the atom `regexMatch {pattern, value, result}` in a step before",
    ),
    (
        ".test(",
        "use the atom `regexMatch {pattern, value, result}` in a step before",
    ),
    (
        ".match(/",
        "use the atom `regexFind {text, pattern, flags, result}` in a step before",
    ),
    (
        ".replace(/",
        "use the atom `regexReplace {text, pattern, replacement, all, result}` in a step before",
    ),
    (
        ".split(/",
        "use the atom `regexSplit {text, pattern, result}` in a step before",
    ),
    ("=<", "write `<=`"),
    ("[:", "write `text.slice(0, 2)`"),
    ("<>", "write `!=`"),
    (" is not ", "write `!=`"),
    (" not in ", "write `!xs.includes(x)`"),
    (" is ", "write `==`"),
    (
        " in ",
        "write `xs.includes(x)`, or `Object.hasOwn(o, 'key')`",
    ),
    (
        " instanceof ",
        "ask for what it has: `typeof x`, `Array.isArray(x)`",
    ),
    (
        "await ",
        "atoms that wait are awaited: call one in a step before, and ask for its `result`",
    ),
    ("new ", "write `Date(...)` or `Set(...)` without `new`"),
    ("return ", "write the expression alone"),
    ("if ", "write the expression alone"),
    (";", "write one expression, without `;`"),
];

const MATH: &[(&str, &str)] = &[
    (
        "sum(",
        "`mathCalc` calls nothing: use the atom `sum {items, by, result}` in a step before",
    ),
    (
        "len(",
        "`mathCalc` calls nothing: write `xs.length`, or use `len {list, result}` in a step before",
    ),
    (
        "{{",
        "`mathCalc` reads variables by their names: write `n`, not `{{n}}`",
    ),
    (
        "${",
        "`mathCalc` reads variables by their names: write `n`, not `${n}`",
    ),
    (
        "=>",
        "there are no functions as values: use the atoms `map`, `filter` and `reduce`",
    ),
    ("===", "write `==`"),
    ("!==", "write `!=`"),
    ("++", "write `i + 1`, with `\"result\": \"i\"`"),
    ("--", "write `i - 1`, with `\"result\": \"i\"`"),
    (
        "+=",
        "write the sum alone, `n + 1`, with `\"result\": \"n\"`",
    ),
    (
        "-=",
        "write the difference alone, `n - 1`, with `\"result\": \"n\"`",
    ),
    (
        "*=",
        "write the product alone, `n * 2`, with `\"result\": \"n\"`",
    ),
    (
        "/=",
        "write the quotient alone, `n / 2`, with `\"result\": \"n\"`",
    ),
    (
        "**",
        "`mathCalc` has no power: use an expression node, `{\"$expr\": \"binary\", \"op\": \"**\", ...}`",
    ),
    (
        "^",
        "`mathCalc` has no power: use an expression node, `{\"$expr\": \"binary\", \"op\": \"**\", ...}`",
    ),
    (
        "??",
        "`mathCalc` has no `??`: use an expression node, `{\"$expr\": \"logical\", \"op\": \"??\", ...}`",
    ),
    (
        "`",
        "join texts with `+`, or use `template {tmpl, vars, result}`",
    ),
    (
        "await ",
        "atoms that wait are awaited: call one in a step before, and give its `result` in `vars`",
    ),
    (
        "new ",
        "use an expression node: `{\"$expr\": \"call\", \"callee\": \"Date\", \"arguments\": []}`",
    ),
    ("return ", "write the formula alone"),
    (";", "write one formula, without `;`"),
    (
        "//",
        "write no comments in a formula; whole numbers come from `Math.floor` in an expression node",
    ),
];

/// A single `=` that is no part of another operator.
fn assigns(text: &str) -> bool {
    let bytes = text.as_bytes();
    let part = |b: Option<&u8>| b.is_some_and(|b| b"=<>!+-*/".contains(b));
    bytes.iter().enumerate().any(|(at, b)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        *b == b'=' && !part(before) && !part(bytes.get(at + 1))
    })
}

/// A name right before a parenthesis, or a name of the namespace `Math`.
fn calls(text: &str) -> bool {
    let mut named = false;
    for c in text.chars() {
        if c == '(' && named {
            return true;
        }
        named = c.is_ascii_alphanumeric() || c == '_';
    }
    text.contains("Math.")
}

fn find(rows: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    rows.iter()
        .find(|row| text.contains(row.0))
        .map(|row| row.1)
}

/// What works in place of a condition that cannot be read.
pub(in crate::lower) fn condition_help(text: &str) -> Option<&'static str> {
    find(CONDITION, text)
}

/// What works in place of a formula that cannot be read.
pub(in crate::lower) fn math_help(text: &str) -> Option<Cow<'static, str>> {
    if let Some(help) = find(MATH, text) {
        return Some(help.into());
    }
    if assigns(text) {
        let help = "a formula assigns nothing: write the right side, with `\"result\": \"name\"`";
        return Some(help.into());
    }
    if calls(text) {
        let name = text.split_once("Math.").map_or("max", |(_, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
            &rest[..end.unwrap_or(rest.len())]
        });
        return Some(Cow::Owned(format!(
            "`mathCalc` calls nothing: use an expression node, `{{\"$expr\": \"methodCall\", \
             \"object\": {{\"$expr\": \"ident\", \"name\": \"Math\"}}, \"method\": \"{}\", \
             \"arguments\": [...]}}`",
            excerpt(name)
        )));
    }
    let count = |wanted: char| text.matches(wanted).count();
    match count('(').cmp(&count(')')) {
        Ordering::Greater => return Some("close it with `)`".into()),
        Ordering::Less => return Some("open it with `(`, or leave the last `)` out".into()),
        Ordering::Equal => {}
    }
    let chooses = text.contains('?') && text.contains(':');
    chooses.then_some(
        "a formula chooses nothing: use an `if` step, or write `\"a99\": 4` at the root, whose \
         formulas may"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_other_languages_are_known() {
        for (text, part) in [
            ("Math.max(a, b)", "methodCall"),
            ("2 * Math.round(a)", "\"method\": \"round\""),
            ("(a + 1", "close it"),
            ("a + 1)", "leave the last"),
            ("a > 1 ? 2 : 3", "an `if` step"),
            ("max(a, b)", "calls nothing"),
            ("i++", "i + 1"),
            ("a === b", "`==`"),
            ("n = 2", "assigns nothing"),
            ("a ** 2", "no power"),
            ("`${a}`", "by their names"),
        ] {
            let help = math_help(text).unwrap_or_default();
            assert!(help.contains(part), "{text}: {help}");
        }
        for text in ["a + 1", "(a + b) * 2", "a >= b", "a != b"] {
            assert_eq!(math_help(text), None, "{text}");
        }
        assert!(condition_help("x in xs").is_some_and(|help| help.contains("includes")));
        assert_eq!(condition_help("a > 1"), None);
    }
}
