use super::is_match;

fn run(pattern: &str, text: &str) -> Result<bool, String> {
    let units = |s: &str| s.encode_utf16().collect::<Vec<u16>>();
    is_match(&units(pattern), &units(text))
}

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
        ("^.$", "\u{1F44D}", false),
        ("^..$", "\u{1F44D}", true),
        (r"^[\ud800-\udbff][\udc00-\udfff]$", "\u{1F44D}", true),
        (r"^\1\8\041$", "\u{1}8!", true),
        (r"^[\c_\c]$", "\u{1f}", true),
        (r"^[\d-x]+$", "1-x", true),
        ("^(?:a|ab)(?:c|bcd)(?:d*)$", "abcd", true),
        ("^(?:a*)*$", "aaab", false),
        (r"^\u{2}$", "uu", true),
    ] {
        assert_eq!(run(pattern, text), Ok(hit), "{pattern}");
    }
}

#[test]
fn refusals() {
    for (pattern, why) in [
        ("(?=a)", "look-ahead (?=...) is not supported"),
        (r"(a)\1", "back-reference \\1 is not supported"),
        ("(?i)a", "unrecognized character after (?"),
        ("a*+", "nothing to repeat"),
        ("a{2}{3}", "nothing to repeat"),
        ("{2}", "nothing to repeat"),
        ("a{3,2}", "numbers out of order"),
        ("a)", "unmatched parentheses"),
        ("(a", "missing )"),
        ("[z-a]", "range out of order"),
    ] {
        let error = run(pattern, "").expect_err(pattern);
        assert!(error.contains(why), "{pattern}: {error}");
    }
    assert!(run(&"a".repeat(1001), "").is_err());
}

#[test]
fn nothing_is_catastrophic() {
    let text = format!("{}b", "a".repeat(5_000));
    for pattern in ["^(a+)+$", "^(a|aa)+$", "(a*)*c", "^(?:a{0,50}){40}c"] {
        assert_eq!(run(pattern, &text), Ok(false), "{pattern}");
    }
}
