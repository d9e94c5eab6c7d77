//! JSON pointers (RFC 6901): places of diagnostics and errors in a document.
//!
//! Pointers are plain strings that grow piece by piece; this module only escapes and splits.
//! [`crate::value::Value::pointer`] resolves a pointer.

/// Appends `/key`, with `~` as `~0` and `/` as `~1` (RFC 6901 §3).
pub fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Appends `/index` (RFC 6901 §4).
pub fn push_index(pointer: &mut String, index: usize) {
    use std::fmt::Write as _;
    // Writing to a String cannot fail.
    let _ = write!(pointer, "/{index}");
}

/// The unescaped reference tokens of a pointer. The empty pointer has no tokens; a missing first
/// `/` is tolerated.
#[must_use]
pub fn parse(pointer: &str) -> Vec<String> {
    if pointer.is_empty() {
        return Vec::new();
    }
    let body = pointer.strip_prefix('/').unwrap_or(pointer);
    // `~1` is replaced first (RFC 6901 §4), so `~01` means `~1`.
    body.split('/')
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut pointer = String::new();
        for key in ["a/b", "m~n", "", "~1", "\u{e9}"] {
            push_key(&mut pointer, key);
        }
        push_index(&mut pointer, 12);
        assert_eq!(pointer, "/a~1b/m~0n//~01/\u{e9}/12");
        assert_eq!(parse(&pointer), ["a/b", "m~n", "", "~1", "\u{e9}", "12"]);
        assert!(parse("").is_empty());
        assert_eq!(parse("/"), [""]);
        assert_eq!(parse("a/b"), ["a", "b"]);
    }
}
