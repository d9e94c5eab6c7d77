//! Typos: which words are likely misspelt names.

/// Names shorter than this are not taken for misspelt ones.
pub(super) const MIN_TYPO: usize = 4;

/// Names from this length on may be misspelt in two places.
pub(super) const LONG: usize = 6;

/// Whether a text is more likely a misspelt name than a word like it: one letter
/// too few, too many or wrong, or two swapped, but no plural.
pub(super) fn is_typo(text: &str, name: &str) -> bool {
    let plural = |a: &str, b: &str| a.strip_suffix('s') == Some(b);
    text.len().abs_diff(name.len()) <= 1
        && name.len() >= MIN_TYPO
        && !plural(text, name)
        && !plural(name, text)
        && (!text.eq_ignore_ascii_case(name)
            || name.chars().skip(1).any(|c| c.is_ascii_uppercase()))
        && text.as_bytes()[0] == name.as_bytes()[0]
}

/// Whether two names are alike enough to be compared: the same first letter, and where
/// one edit is the most, what lies between their common ends is a letter or two.
pub(super) fn may_be_typo(text: &[u8], name: &[u8]) -> bool {
    if text.first() != name.first() || name.len().abs_diff(text.len()) > 1 {
        return false;
    }
    if text.len() >= LONG {
        return true;
    }
    let same = |pair: &(&u8, &u8)| pair.0.eq_ignore_ascii_case(pair.1);
    let before = text.iter().zip(name).take_while(same).count();
    let (text, name) = (&text[before..], &name[before..]);
    let behind = text
        .iter()
        .rev()
        .zip(name.iter().rev())
        .take_while(same)
        .count();
    text.len().max(name.len()) - behind <= 2
}
