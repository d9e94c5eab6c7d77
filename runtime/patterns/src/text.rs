//! Texts cut at a number of characters.

/// The first characters of a text, with a mark if it was longer; at most `most` characters
/// with the mark.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    if most > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn characters_stay_whole() {
        for (text, most, short) in [
            ("abc", 3, "abc"),
            ("äöüß", 3, "äö…"),
            ("😀😀", 1, "…"),
            ("a", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(cut(text, most), short);
        }
    }
}
