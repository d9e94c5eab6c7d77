//! Heuristics for misspelt names.

/// Length from which a name may be misspelt.
pub(super) const MIN_TYPO: usize = 4;

/// Length from which a name may be misspelt in two places.
pub(super) const LONG: usize = 6;

/// Whether a text is more likely a misspelling of a name than another word: one letter missing,
/// added, wrong or swapped, but no plural.
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

/// Whether two names are similar enough to compare: the same first letter and, for a single
/// edit, one or two letters between their common ends.
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
