//! Syntax errors of regular expressions.

/// Unsupported features of patterns (D39).
const LINEAR: &str = "patterns are matched in linear time, without looking around or back: test with \
                      two patterns, or compare texts in an expression";

/// The certain syntax error of a pattern, and its help.
pub(super) fn pattern_fault(pattern: &str, linear: bool) -> Option<(&'static str, &'static str)> {
    let (mut groups, mut class) = (0usize, false);
    // Whether a repeatable item precedes.
    let mut item = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let was = std::mem::replace(&mut item, true);
        match c {
            '\\' => match chars.next() {
                None => {
                    let message = "a backslash at the end escapes nothing";
                    return Some((message, "remove it, or write it twice"));
                }
                Some('1'..='9') if !class && linear => {
                    return Some(("a pattern cannot refer back to a group", LINEAR));
                }
                Some(_) => {}
            },
            ']' if class => class = false,
            _ if class => {}
            '[' => {
                class = true;
                // A bracket that comes first belongs to the class.
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
            }
            '(' => {
                groups += 1;
                item = false;
                let rest: String = chars.clone().take(3).collect();
                let around = ["?=", "?!", "?<=", "?<!"];
                if linear && around.iter().any(|look| rest.starts_with(look)) {
                    return Some(("a pattern cannot look around", LINEAR));
                }
                if chars.next_if_eq(&'?').is_some() {
                    item = true;
                }
            }
            ')' if groups == 0 => {
                return Some(("a `)` closes nothing", "write `\\)` for the sign itself"));
            }
            ')' => groups -= 1,
            '|' | '^' => item = false,
            '*' | '+' if !was => {
                let message = "there is nothing before this to repeat";
                let help = "write `.*` for any text, or `\\*` for the sign itself";
                return Some((message, help));
            }
            _ => {}
        }
    }
    if class {
        let help = "close it by `]`, or write `\\[` for the sign itself";
        return Some(("a `[` is not closed", help));
    }
    let help = "close it by `)`, or write `\\(` for the sign itself";
    (groups > 0).then_some(("a `(` is not closed", help))
}

/// Number of groups in a pattern.
pub(super) fn groups(pattern: &str) -> usize {
    let (mut groups, mut class) = (0, false);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => class = true,
            ']' => class = false,
            '(' if !class => {
                let rest: String = chars.clone().take(3).collect();
                // A named group counts, other marks do not.
                let is_named = rest.starts_with("?<") || rest.starts_with("?P<");
                groups += usize::from(!rest.starts_with('?') || is_named);
            }
            _ => {}
        }
    }
    groups
}

/// The first `$3` of a replacement for which the pattern has no group.
pub(super) fn missing_group(pattern: &str, replacement: &str) -> Option<String> {
    let mut rest = replacement;
    let mut known = None;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
            continue;
        }
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse::<usize>() else {
            continue;
        };
        let groups = *known.get_or_insert_with(|| groups(pattern));
        // `$12` means group `$1` if there is no twelfth group.
        let first = rest[..1].parse::<usize>().unwrap_or(number);
        // Amounts of money have this form, too.
        let is_money = groups == 0 && (number > 2 || rest[digits..].starts_with(['.', ',']));
        if number > groups && (first == 0 || first > groups) && !is_money {
            return Some(format!("${}", &rest[..digits]));
        }
    }
    None
}

/// The class of `\\d+`, whose backslash is itself escaped.
pub(super) fn escaped_twice(pattern: &str) -> Option<char> {
    let (at, _) = pattern.match_indices("\\\\").find(|(at, _)| {
        let mut rest = pattern[at + 2..].chars();
        let is_class = rest.next().is_some_and(|c| "dDwWsS".contains(c));
        is_class && rest.next().is_some_and(|c| "+*{?".contains(c))
    })?;
    pattern[at + 2..].chars().next()
}

#[cfg(test)]
mod tests {
    use super::{escaped_twice, groups, missing_group, pattern_fault};

    #[test]
    fn groups_are_counted_and_missed() {
        for (pattern, count) in [
            ("a", 0),
            ("(a)(?:b)(?<n>c)", 2),
            (r"\((a)[(]", 1),
            ("((a)b)", 2),
        ] {
            assert_eq!(groups(pattern), count, "{pattern}");
        }
        for (pattern, by, missing) in [
            ("(a)(b)", "$3", Some("$3")),
            ("(a)(b)", "$2$1", None),
            ("(a)", "$12", None),
            ("a", "$1", Some("$1")),
            ("a", "$$1 $& $", None),
            ("a", "$0", None),
        ] {
            assert_eq!(missing_group(pattern, by).as_deref(), missing, "{by}");
        }
    }

    #[test]
    fn backslashes_that_were_doubled_twice() {
        assert_eq!(escaped_twice(r"^\\d+$"), Some('d'));
        for good in [r"^\d+$", r"C:\\dir", r"\\", ""] {
            assert_eq!(escaped_twice(good), None, "{good}");
        }
    }

    #[test]
    fn patterns_that_cannot_be_read_are_told() {
        for bad in [
            "(a", "a)", "[a", "*a", "a|*", "(?=a)b", r"(a)\1", r"a\", "(*)", "(?<!a)b",
        ] {
            assert!(pattern_fault(bad, true).is_some(), "{bad}");
        }
        for good in [
            "a+", "(a|b)*", "[)(]", r"\(a\)", "^a$", "(?:a)+", "(?i)a", "a{2,3}", "[^)]",
            "(?<n>a)", "", r"[\]]", "a*?",
        ] {
            assert_eq!(pattern_fault(good, true), None, "{good}");
        }
    }
}
