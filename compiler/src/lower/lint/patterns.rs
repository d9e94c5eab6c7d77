//! Patterns: what keeps a regular expression from being read.

/// What patterns cannot do (D39).
const LINEAR: &str = "patterns are matched in linear time, without looking around or back: test with \
                      two patterns, or compare texts in an expression";

/// What surely keeps a pattern from being read, and what to write.
pub(super) fn pattern_fault(pattern: &str) -> Option<(&'static str, &'static str)> {
    let (mut groups, mut class) = (0usize, false);
    // Whether something stands before that can be repeated.
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
                Some('1'..='9') if !class => {
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
                if around.iter().any(|look| rest.starts_with(look)) {
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

#[cfg(test)]
mod tests {
    use super::pattern_fault;

    #[test]
    fn patterns_that_cannot_be_read_are_told() {
        for bad in [
            "(a", "a)", "[a", "*a", "a|*", "(?=a)b", r"(a)\1", r"a\", "(*)", "(?<!a)b",
        ] {
            assert!(pattern_fault(bad).is_some(), "{bad}");
        }
        for good in [
            "a+", "(a|b)*", "[)(]", r"\(a\)", "^a$", "(?:a)+", "(?i)a", "a{2,3}", "[^)]",
            "(?<n>a)", "", r"[\]]", "a*?",
        ] {
            assert_eq!(pattern_fault(good), None, "{good}");
        }
    }
}
