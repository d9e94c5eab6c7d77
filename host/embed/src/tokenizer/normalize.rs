//! The normalisation of BERT's uncased models: control characters are removed, ideographs
//! become separate words, accents are removed, letters become lower-case.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

/// The characters of a text after normalisation. The iterator is lazy, so only the beginning of
/// a long text is processed.
pub(super) fn normalized(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars()
        .filter_map(clean)
        .flat_map(spaced)
        .nfd()
        .filter(|c| !is_nonspacing_mark(*c))
        .flat_map(char::to_lowercase)
}

/// `None` for control characters and the replacement character, a blank for white space.
fn clean(c: char) -> Option<char> {
    match c {
        '\t' | '\n' | '\r' => Some(' '),
        '\0' | '\u{FFFD}' => None,
        _ if is_control(c) => None,
        _ if c.is_whitespace() => Some(' '),
        _ => Some(c),
    }
}

/// Puts blanks around ideographs, which makes each a word.
fn spaced(c: char) -> impl Iterator<Item = char> {
    let blank = is_ideograph(c).then_some(' ');
    blank.into_iter().chain([c]).chain(blank)
}

fn is_control(c: char) -> bool {
    !c.is_ascii_graphic()
        && matches!(
            get_general_category(c),
            GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
        )
}

fn is_nonspacing_mark(c: char) -> bool {
    !c.is_ascii() && get_general_category(c) == GeneralCategory::NonspacingMark
}

/// Whether a character is in BERT's blocks of Chinese characters. Hangul, Hiragana and Katakana
/// form words and do not count.
fn is_ideograph(c: char) -> bool {
    matches!(
        u32::from(c),
        0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B820..=0x2CEAF
            | 0x2F800..=0x2FA1F
    )
}

/// Whether a character is a separate word: ASCII other than letters and digits, and Unicode's
/// punctuation.
pub(super) fn is_punctuation(c: char) -> bool {
    use GeneralCategory as G;
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    matches!(
        get_general_category(c),
        G::ConnectorPunctuation
            | G::DashPunctuation
            | G::OpenPunctuation
            | G::ClosePunctuation
            | G::InitialPunctuation
            | G::FinalPunctuation
            | G::OtherPunctuation
    )
}
