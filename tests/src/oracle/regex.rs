//! `regexMatch` patterns on a linear-time engine (decision D39): the syntax of
//! ECMA-262 §22.2 rewritten for the `regex` crate.

/// Longest pattern in UTF-16 units.
const MAX_PATTERN: usize = 1_000;
/// Longest input in UTF-16 units.
const MAX_INPUT: usize = 100_000;

/// Whether a pattern matches somewhere in a text.
pub fn is_match(pattern: &str, input: &str) -> Result<bool, String> {
    let units = pattern.encode_utf16().count();
    if units > MAX_PATTERN {
        return Err(format!("Regex pattern too long ({units} > {MAX_PATTERN})"));
    }
    let length = input.encode_utf16().count();
    if length > MAX_INPUT {
        return Err(format!("Regex input too long ({length} > {MAX_INPUT})"));
    }
    regex::Regex::new(&translate(pattern))
        .map(|re| re.is_match(input))
        .map_err(|e| format!("Invalid regular expression: {e}"))
}

/// What `\s` matches in ECMA-262.
const SPACE_CLASS: &str = r"[\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}]";

/// The classes whose JavaScript meaning is ASCII or differs otherwise.
fn class_escape(c: char, in_class: bool) -> Option<&'static str> {
    const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";
    Some(match (c, in_class) {
        ('d', _) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('w', _) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', false) => SPACE_CLASS,
        ('s', true) => SPACE,
        ('S', _) => {
            "[^\\t\\n\\x0B\\x0C\\r \\u{A0}\\u{1680}\\u{2000}-\\u{200A}\\u{2028}\\u{2029}\\u{202F}\\u{205F}\\u{3000}\\u{FEFF}]"
        }
        ('b', false) => r"(?-u:\b)",
        ('B', false) => r"\B",
        ('b', true) => r"\x08",
        _ => return None,
    })
}

fn translate(pattern: &str) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::new();
    let mut in_class = false;
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        i += 1;
        match c {
            '\\' => i = escape(&chars, i, in_class, &mut out),
            // `[]` matches nothing, `[^]` everything.
            '[' if !in_class && chars[i..].starts_with(&[']']) => {
                out.push_str(r"[^\s\S]");
                i += 1;
            }
            '[' if !in_class && chars[i..].starts_with(&['^', ']']) => {
                out.push_str(r"[\s\S]");
                i += 2;
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '.' if !in_class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if !in_class && !is_quantifier(&chars[i..]) => out.push_str(r"\{"),
            '}' if !in_class && !closes_quantifier(&chars[..i - 1]) => out.push_str(r"\}"),
            ']' => out.push_str(r"\]"),
            '(' if chars[i..].starts_with(&['?', '<'])
                && !matches!(chars.get(i + 2), Some('=' | '!')) =>
            {
                out.push_str("(?P<");
                i += 2;
            }
            _ => out.push(c),
        }
    }
    out
}

fn is_quantifier(rest: &[char]) -> bool {
    let Some(end) = rest.iter().position(|&c| c == '}') else {
        return false;
    };
    let inner: String = rest[..end].iter().collect();
    let mut parts = inner.splitn(2, ',');
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let first = parts.next().unwrap_or_default();
    !first.is_empty() && digits(first) && parts.next().is_none_or(digits)
}

fn closes_quantifier(before: &[char]) -> bool {
    let Some(open) = before.iter().rposition(|&c| c == '{') else {
        return false;
    };
    let mut text: Vec<char> = before[open + 1..].to_vec();
    text.push('}');
    (open == 0 || before[open - 1] != '\\')
        && is_quantifier(&text)
        && !before[open + 1..].contains(&'}')
}

fn escape(chars: &[char], i: usize, in_class: bool, out: &mut String) -> usize {
    let Some(&c) = chars.get(i) else {
        out.push('\\');
        return i;
    };
    if let Some(class) = class_escape(c, in_class) {
        out.push_str(class);
        return i + 1;
    }
    let hex = |from: usize, n: usize| {
        let digits: String = chars.get(from..from + n)?.iter().collect();
        digits
            .chars()
            .all(|c| c.is_ascii_hexdigit())
            .then_some(digits)
    };
    match c {
        'n' | 'r' | 't' | 'f' | 'v' => {
            out.push('\\');
            out.push(c);
        }
        '0' => out.push_str(r"\x00"),
        'x' if hex(i + 1, 2).is_some() => {
            out.push_str(&format!("\\x{{{}}}", hex(i + 1, 2).unwrap_or_default()));
            return i + 3;
        }
        'u' if hex(i + 1, 4).is_some() => {
            out.push_str(&format!("\\u{{{}}}", hex(i + 1, 4).unwrap_or_default()));
            return i + 5;
        }
        'c' if chars.get(i + 1).is_some_and(char::is_ascii_alphabetic) => {
            let code = chars[i + 1] as u32 % 32;
            out.push_str(&format!("\\x{{{code:02x}}}"));
            return i + 2;
        }
        '1'..='9' | 'k' => {
            // A back-reference: the engine says that it cannot.
            out.push('\\');
            out.push(c);
        }
        'p' | 'P' | 'a' | 'z' | 'A' | 'u' | 'x' => out.push(c),
        c if c.is_ascii_alphanumeric() => out.push(c),
        c => {
            if c.is_ascii() {
                out.push('\\');
            }
            out.push(c);
        }
    }
    i + 1
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn javascript_syntax() {
        for (pattern, text, hit) in [
            (r"^\d{3}-\d{4}$", "555-1234", true),
            (r"\d", "\u{663}", false),
            (r"a{2,3}?b", "aab", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"[^]", "\n", true),
            (r"[]", "x", false),
            (r"^.$", "\n", false),
            (r"[\w.+-]+@", "a.b+c@", true),
            (r"\bcat\b", "concat", false),
            (r"(?<y>\d{4})", "in 2024", true),
            (r"\u0041[[]", "A[", true),
        ] {
            assert_eq!(is_match(pattern, text), Ok(hit), "{pattern}");
        }
        assert!(is_match("(?=a)", "a").is_err());
        assert!(is_match(r"(a)\1", "aa").is_err());
        assert!(is_match(&"a".repeat(1001), "").is_err());
    }
}
