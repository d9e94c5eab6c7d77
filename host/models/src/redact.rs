//! Texts of services in errors: short, on one line, and without keys.

use a99_capabilities::Secret;

/// Maximum characters of a service's message.
const MAX_CHARS: usize = 300;

/// Minimum bytes of a key's piece: shorter ones occur in any text.
const MIN_PIECE: usize = 6;

/// The replacement of a key.
const DOTS: &str = "......";

/// A service's text as errors show it.
pub(crate) fn shown(text: &str, key: Option<&Secret>) -> String {
    // Bounds the work: 16 times the shown characters leave room for removals.
    let end = text.floor_char_boundary(MAX_CHARS * 16);
    let text = without(&text[..end], key.map_or("", Secret::expose));
    let plain = |c: char| match a99_core::text::is_hidden(c) || c.is_control() {
        true => ' ',
        false => c,
    };
    let mut chars = text.chars().map(plain);
    let mut short: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Removes a key and pieces of it, which some services show.
fn without(text: &str, key: &str) -> String {
    if key.len() < MIN_PIECE {
        return match key.is_empty() {
            true => text.to_owned(),
            false => text.replace(key, DOTS),
        };
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        // The longest piece of the key at this position.
        let longest = longest(&text[at..], key);
        match longest >= MIN_PIECE {
            true => {
                out.push_str(DOTS);
                at += longest;
            }
            false => {
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    out
}

/// Length in bytes of the text's longest prefix that occurs in the key.
fn longest(text: &str, key: &str) -> usize {
    let (text, key) = (text.as_bytes(), key.as_bytes());
    let Some(first) = text.get(..MIN_PIECE) else {
        return 0;
    };
    let starts = key.windows(MIN_PIECE).enumerate();
    let starts = starts.filter(|(_, piece)| *piece == first);
    let common = |at: usize| {
        key[at..]
            .iter()
            .zip(text)
            .take_while(|(a, b)| a == b)
            .count()
    };
    let longest = starts.map(|(at, _)| common(at)).max().unwrap_or(0);
    // Keys are ASCII; otherwise the piece may end inside a character.
    let mut end = longest;
    while end > 0
        && text
            .get(end)
            .is_some_and(|byte| (0x80..0xC0).contains(byte))
    {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_pieces_of_them_are_dots() {
        let key = Secret::new("sk-proj-0123456789abcdef");
        for (text, expected) in [
            ("fine", "fine"),
            (
                "key sk-proj-0123456789abcdef is wrong",
                "key ...... is wrong",
            ),
            (
                "Incorrect API key: sk-proj-****cdef",
                "Incorrect API key: ......****cdef",
            ),
            ("...89abcdef.", ".........."),
            ("sk-proj-0123456789abcdefsk-proj-0123", "............"),
            ("012345 12345", "...... 12345"),
            ("a\nb\t\u{1b}[31m c\u{202e}", "a b [31m c"),
        ] {
            assert_eq!(shown(text, Some(&key)), expected, "{text}");
        }
        assert_eq!(
            shown("my key is abc", Some(&Secret::new("abc"))),
            "my key is ......"
        );
        let odd = Secret::new("schl\u{fc}ssel-\u{1f511}");
        assert_eq!(shown("schl\u{fc}ssel-\u{1f511}!", Some(&odd)), "......!");
        let other = shown("schl\u{fc}ssel-\u{1f512}!", Some(&odd));
        assert!(!other.contains("schl"), "{other}");
    }

    #[test]
    fn long_texts_are_cut() {
        let text = shown(&"\u{e9}".repeat(100_000), None);
        assert_eq!(text.chars().count(), MAX_CHARS + 3);
    }
}
