//! Nesting depth of stored JSON text.

/// Maximum nesting levels of stored JSON. `serde_json` reads up to 127: deeper text could be
/// written and never read. Frames that carry a value add some levels.
pub const MAX_JSON_DEPTH: usize = 120;

/// The nesting depth of a JSON text.
#[must_use]
pub fn json_depth(json: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            b'"' => {
                // Skip the string; an escape may hide a quotation mark.
                while let Some(byte) = bytes.next()
                    && byte != b'"'
                {
                    if byte == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::json_depth;

    #[test]
    fn brackets_in_strings_do_not_nest() {
        for (text, depth) in [("1", 0), ("[[],{\"a\":[1]}]", 3), (r#"{"[\"{": "]\\"}"#, 1)] {
            assert_eq!(json_depth(text), depth, "{text}");
        }
    }
}
