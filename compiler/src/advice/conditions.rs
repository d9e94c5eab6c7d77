//! Advice for texts that do not parse: the form that works here.

use a99_core::diag::excerpt;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Length in bytes up to which a text is searched for advice: handwritten texts are shorter.
const MAX_TEXT: usize = 2_000;

/// Syntax of other languages in an expression text, with the form that works here. The first
/// match wins.
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
        "for an order write `>=`; there are no functions as values: use the atoms `filter`, `find` or \
         `map`",
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
    (
        " matches ",
        "use the atom `regexMatch {pattern, value, result}` in a step before",
    ),
    (
        " ~ ",
        "use the atom `regexMatch {pattern, value, result}` in a step before",
    ),
    (" ! ", "write `!=`"),
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
    ("===", "write `==`"),
    ("!==", "write `!=`"),
    ("return ", "write the formula alone"),
    (";", "write one formula, without `;`"),
    (
        "//",
        "write no comments in a formula; whole numbers come from `Math.floor` in an expression node",
    ),
];

/// Whether a text has a single `=` that is not part of another operator.
fn assigns(text: &str) -> bool {
    let bytes = text.as_bytes();
    let part = |b: Option<&u8>| b.is_some_and(|b| b"=<>!+-*/".contains(b));
    bytes.iter().enumerate().any(|(at, b)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        *b == b'=' && !part(before) && !part(bytes.get(at + 1))
    })
}

/// Whether a text has a name right before a parenthesis, or a name of the namespace `Math`.
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

/// Help for an expression text with template holes, `${n} + 1`.
pub fn holes_help(text: &str) -> Option<String> {
    let holes = text.contains("${") || text.contains("{{");
    if !holes || text.len() > MAX_TEXT || text.contains('`') {
        return None;
    }
    let plain = text.replace("${", "").replace("{{", "").replace("}}", "");
    let plain = plain.replace('}', "");
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(format!(
        "an expression reads variables by their names: write `{}`",
        excerpt(&plain)
    ))
}

/// Help for a text in the syntax of SQL, Lisp or Python.
pub fn foreign_help(text: &str) -> Option<String> {
    if text.len() > MAX_TEXT {
        return None;
    }
    of_sql(text)
        .or_else(|| of_lisp(text))
        .or_else(|| of_python(text))
}

/// Help for a condition that does not parse.
pub fn condition_help(text: &str) -> Option<Cow<'static, str>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    if let Some(help) = foreign_help(text) {
        return Some(help.into());
    }
    if let Some(rest) = ["if ", "when ", "where ", "unless "]
        .iter()
        .find_map(|word| text.trim_start().strip_prefix(word))
    {
        let rest = rest.trim().trim_end_matches(':');
        return Some(format!("write the expression alone: `{}`", excerpt(rest)).into());
    }
    let trimmed = text.trim_start();
    let negated = trimmed
        .get(..4)
        .filter(|word| word.eq_ignore_ascii_case("not "));
    if let Some(rest) = negated.map(|_| trimmed[4..].trim()) {
        let help = match rest
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
        {
            true => format!("write `!{}`", excerpt(rest)),
            false => format!("write `!({})`", excerpt(rest)),
        };
        return Some(help.into());
    }
    find(CONDITION, text).map(Cow::Borrowed)
}

/// The text before and after a word, compared without case.
fn around<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find(word)?;
    // The operand is the text between the words around it.
    let before = &text[..at];
    let start = [" and ", " or ", "&&", "||", "("]
        .iter()
        .filter_map(|sign| Some(before.to_ascii_lowercase().rfind(sign)? + sign.len()))
        .max();
    let before = before[start.unwrap_or(0)..].trim();
    let behind = text[at + word.len()..].trim();
    (!before.is_empty()).then_some((before, behind))
}

/// Help for a test in the syntax of SQL or Python.
fn of_sql(text: &str) -> Option<String> {
    for (words, sign) in [
        (
            &[" is not null", " is not none", " is not undefined"][..],
            "!=",
        ),
        (
            &[
                " is null",
                " is none",
                " is undefined",
                " is nil",
                " is empty",
            ],
            "==",
        ),
    ] {
        if let Some((left, _)) = words.iter().find_map(|word| around(text, word)) {
            return Some(format!("write `{} {sign} null`", excerpt(left)));
        }
    }
    if let Some((left, range)) = around(text, " between ") {
        let lower = range.to_ascii_lowercase();
        let at = lower.find(" and ")?;
        let (low, high) = (range[..at].trim(), range[at + 5..].trim());
        let high = high.split_whitespace().next().unwrap_or(high);
        return Some(format!(
            "write `{0} >= {1} && {0} <= {2}`",
            excerpt(left),
            excerpt(low),
            excerpt(high)
        ));
    }
    for (word, not) in [
        (" not like ", "!"),
        (" not ilike ", "!"),
        (" like ", ""),
        (" ilike ", ""),
    ] {
        let Some((left, pattern)) = around(text, word) else {
            continue;
        };
        let quote = pattern.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let inner = pattern[1..].split(quote).next().unwrap_or_default();
        let method = match (inner.starts_with('%'), inner.ends_with('%')) {
            (false, true) => "startsWith",
            (true, false) => "endsWith",
            _ => "includes",
        };
        let inner = inner.trim_matches('%');
        return Some(format!(
            "write `{not}{}.{method}('{}')`",
            excerpt(left),
            excerpt(inner)
        ));
    }
    for (word, test) in [
        (" startswith ", "startsWith"),
        (" starts with ", "startsWith"),
        (" endswith ", "endsWith"),
        (" ends with ", "endsWith"),
        (" contains ", "includes"),
        (" includes ", "includes"),
    ] {
        if let Some((left, right)) = around(text, word) {
            return Some(format!(
                "write `{}.{test}({})`",
                excerpt(left),
                excerpt(right)
            ));
        }
    }
    None
}

/// Help for `a if test else b` and `xs[1:3]`, in Python's syntax.
fn of_python(text: &str) -> Option<String> {
    if let Some((value, rest)) = text.split_once(" if ")
        && let Some((test, other)) = rest.split_once(" else ")
    {
        return Some(format!(
            "write `{} ? {} : {}`",
            excerpt(test.trim()),
            excerpt(value.trim()),
            excerpt(other.trim())
        ));
    }
    // An object or a conditional contains a `:` itself.
    if text.contains(['?', '{']) {
        return None;
    }
    let (list, rest) = text.split_once('[')?;
    let (range, _) = rest.split_once(']')?;
    let (from, to) = range.split_once(':')?;
    let number = |part: &str| {
        part.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-. ".contains(&b))
    };
    if !number(from) || !number(to) {
        return None;
    }
    let start = list
        .rfind(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.'))
        .map_or(0, |at| {
            at + list[at..].chars().next().map_or(1, char::len_utf8)
        });
    let from = if from.trim().is_empty() {
        "0"
    } else {
        from.trim()
    };
    let to = match to.trim() {
        "" => String::new(),
        to => format!(", {to}"),
    };
    Some(format!(
        "write `{}.slice({from}{to})`",
        excerpt(&list[start..])
    ))
}

/// Help for `(> x 3)`, a prefix operator.
fn of_lisp(text: &str) -> Option<String> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let words: Vec<&str> = inner.split_whitespace().collect();
    let [operator, left, right] = words[..] else {
        return None;
    };
    let operator = match operator {
        "=" | "eq" | "equal?" => "==",
        "and" => "&&",
        "or" => "||",
        ">" | "<" | ">=" | "<=" | "==" | "!=" | "+" | "-" | "*" | "/" => operator,
        _ => return None,
    };
    Some(format!("write `{left} {operator} {right}`"))
}

/// Help for a formula that does not parse.
pub fn math_help(text: &str) -> Option<Cow<'static, str>> {
    if text.len() > MAX_TEXT {
        return None;
    }
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
    if let Some(help) = of_writing(text) {
        return Some(help.into());
    }
    let count = |wanted: char| text.matches(wanted).count();
    match count('(').cmp(&count(')')) {
        Ordering::Greater => return Some("close it with `)`".into()),
        Ordering::Less => return Some("open it with `(`, or leave the last `)` out".into()),
        Ordering::Equal => {}
    }
    if text.contains('|') && !text.contains("||") {
        let help = "a formula has no filters: round and the like with an expression node, `{\"$expr\": \
                    \"methodCall\", \"object\": {\"$expr\": \"ident\", \"name\": \"Math\"}, \"method\": \"round\", ...}`";
        return Some(help.into());
    }
    let chooses = text.contains('?');
    if !chooses {
        return unreadable(text).map(Cow::Borrowed);
    }
    chooses.then_some(
        "a formula chooses nothing: use an `if` step, or write `\"a99\": 4` at the root, whose \
         formulas may"
            .into(),
    )
}

/// Help for two adjacent operators, or one at an end.
fn unreadable(text: &str) -> Option<&'static str> {
    const OPERATORS: &str = "*/%+-<>=&";
    let signs: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let operator = |c: Option<&char>| c.is_some_and(|c| OPERATORS.contains(*c));
    if operator(signs.last()) || signs.first().is_some_and(|c| "*/%<>=&".contains(*c)) {
        return Some("write an operand at both sides of each operator, as in `a * 2`");
    }
    let spaced = text.split_whitespace().collect::<Vec<_>>();
    let twice = spaced.windows(2).any(|pair| {
        pair.iter()
            .all(|word| !word.is_empty() && word.chars().all(|c| "*/%<>=".contains(c)))
    });
    twice.then_some("write one operator between two operands, as in `a * 2`")
}

/// Help for a formula in the notation of mathematics.
fn of_writing(text: &str) -> Option<String> {
    const SIGNS: &[(&str, &str)] = &[
        ("×", "*"),
        ("·", "*"),
        ("÷", "/"),
        ("−", "-"),
        ("–", "-"),
        ("≤", "<="),
        ("≥", ">="),
        ("≠", "!="),
    ];
    if text.contains(['²', '³']) {
        return Some("write the product, as in `n * n`".to_owned());
    }
    if SIGNS.iter().any(|(sign, _)| text.contains(sign)) {
        let plain = SIGNS.iter().fold(text.to_owned(), |text, (sign, plain)| {
            text.replace(sign, plain)
        });
        return Some(format!("write `{}`", excerpt(&plain)));
    }
    for quote in ['\'', '"'] {
        if text.matches(quote).count() % 2 == 1 {
            return Some(format!("close the text with `{quote}`"));
        }
    }
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        let groups =
            *byte == b',' && digit(at - 1) && digit(at + 1) && digit(at + 2) && digit(at + 3);
        if groups {
            let plain = text.replace(',', "");
            return Some(format!(
                "write numbers without commas: `{}`",
                excerpt(&plain)
            ));
        }
        // A text may be cut before an ASCII character.
        let rest = match *byte {
            b'%' => text[at..].trim_start_matches(['%', ' ']),
            _ => "",
        };
        let percent = *byte == b'%' && digit(at - 1);
        if percent && (rest.is_empty() || rest.starts_with(['*', '+', '-', '/', ')'])) {
            let number = text[..at]
                .rsplit(|c: char| !c.is_ascii_digit() && c != '.')
                .next();
            return Some(format!(
                "`%` is the remainder: write `{} / 100`",
                excerpt(number.unwrap_or_default())
            ));
        }
        let begins = byte.is_ascii_alphabetic() && !matches!(byte, b'e' | b'E' | b'x' | b'X');
        if begins && digit(at - 1) {
            let number = |c: char| c.is_ascii_digit() || c == '.';
            let start = text[..at].trim_end_matches(number).len();
            // A digit within a name is not a factor.
            let named = start > 0 && bytes.get(start - 1).is_some_and(u8::is_ascii_alphanumeric);
            if !named {
                let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = &text[at..end.map_or(text.len(), |end| at + end)];
                return Some(format!("write `{} * {}`", &text[start..at], excerpt(name)));
            }
        }
    }
    None
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
            ("a × 2", "`a * 2`"),
            ("é5a", "`5 * a`"),
            ("a − 1", "`a - 1`"),
            ("5% * a", "`5 / 100`"),
            ("a * 20%", "`20 / 100`"),
            ("1,000 + a", "`1000 + a`"),
            ("2n + 1", "`2 * n`"),
            ("'sum: + a", "close the text"),
        ] {
            let help = math_help(text).unwrap_or_default();
            assert!(help.contains(part), "{text}: {help}");
        }
        for text in [
            "a + 1",
            "(a + b) * 2",
            "a >= b",
            "a != b",
            "a1 + 2",
            "a % 2",
            "10 % a",
            "1e3",
        ] {
            assert_eq!(math_help(text), None, "{text}");
        }
        assert!(condition_help("x in xs").is_some_and(|help| help.contains("includes")));
        assert_eq!(condition_help("a > 1"), None);
        for (text, help) in [
            ("name LIKE 'A%'", "`name.startsWith('A')`"),
            ("ok && name not like '%a%'", "`!name.includes('a')`"),
            ("total BETWEEN 1 AND 5", "`total >= 1 && total <= 5`"),
            ("x IS NULL", "`x == null`"),
            ("a > 1 and x is not None", "`x != null`"),
            ("(> x 3)", "`x > 3`"),
            ("if x > 3:", "`x > 3`"),
            ("name starts with 'a'", "`name.startsWith('a')`"),
            ("'big' if n > 3 else 'small'", "`n > 3 ? 'big' : 'small'`"),
            ("xs[1:3]", "`xs.slice(1, 3)`"),
            ("a + o.xs[:n]", "`o.xs.slice(0, n)`"),
            ("é[2:] == ''", "`.slice(2)`"),
        ] {
            let told = condition_help(text).unwrap_or_default();
            assert!(told.contains(help), "{text}: {told}");
        }
    }
}
