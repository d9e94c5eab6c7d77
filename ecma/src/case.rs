//! Letter case and normalisation forms of Unicode (ECMA-262 §22.1.3.15, .28
//! and .30).
//!
//! The full, language-independent mappings with their special cases: final
//! sigma, `ß` to `SS`. Lone surrogates have no case and no decomposition; they
//! pass unchanged. Locales have no influence.

use crate::RangeError;
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// The text in lower case.
#[must_use]
pub fn to_lower(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.is_ascii() {
        return map_text(text, |piece, out| {
            out.extend_from_slice(piece.to_lowercase().as_bytes())
        });
    }
    if text.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// The text in upper case.
#[must_use]
pub fn to_upper(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.is_ascii() {
        return map_text(text, |piece, out| {
            out.extend_from_slice(piece.to_uppercase().as_bytes())
        });
    }
    if text.iter().any(u8::is_ascii_lowercase) {
        Cow::Owned(text.to_ascii_uppercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// A normalisation form (Unicode Standard Annex 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Canonical composition, the default of `normalize`.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
}

impl Form {
    /// The form that an argument of `normalize` names.
    ///
    /// # Errors
    /// Any other text.
    pub fn from_name(name: &[u8]) -> Result<Self, RangeError> {
        match name {
            b"NFC" => Ok(Self::Nfc),
            b"NFD" => Ok(Self::Nfd),
            b"NFKC" => Ok(Self::Nfkc),
            b"NFKD" => Ok(Self::Nfkd),
            _ => Err(RangeError::new(
                "argument does not match any normalization form",
            )),
        }
    }
}

/// The text in a normalisation form.
#[must_use]
pub fn normalize(form: Form, text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    if let Ok(whole) = std::str::from_utf8(text) {
        let quick = match form {
            Form::Nfc => is_nfc_quick(whole.chars()),
            Form::Nfkc => is_nfkc_quick(whole.chars()),
            Form::Nfd | Form::Nfkd => IsNormalized::Maybe,
        };
        if quick == IsNormalized::Yes {
            return Cow::Borrowed(text);
        }
    }
    map_text(text, |piece, out| {
        let mut push = |c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        match form {
            Form::Nfc => piece.nfc().for_each(&mut push),
            Form::Nfd => piece.nfd().for_each(&mut push),
            Form::Nfkc => piece.nfkc().for_each(&mut push),
            Form::Nfkd => piece.nfkd().for_each(&mut push),
        }
    })
}

/// Maps the stretches between lone surrogates. That is the mapping of the
/// whole: a surrogate neither combines with its neighbours nor is a letter.
fn map_text(text: &[u8], map: impl Fn(&str, &mut Vec<u8>)) -> Cow<'_, [u8]> {
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        if !chunk.valid().is_empty() {
            map(chunk.valid(), &mut out);
        }
        out.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(text: &str) -> String {
        String::from_utf8(to_lower(text.as_bytes()).into_owned()).unwrap()
    }

    fn upper(text: &str) -> String {
        String::from_utf8(to_upper(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn special_casing() {
        assert_eq!(lower("ΟΔΟΣ ΣΑΣ Σ"), "οδος σας σ");
        assert_eq!(lower("İ"), "i\u{307}");
        assert_eq!(lower("ÀÉ Ω"), "àé ω");
        assert_eq!(upper("straße ŉ ﬃ"), "STRASSE ʼN FFI");
        assert_eq!(upper("ı😀é"), "I😀É");
        assert!(matches!(to_lower(b"abc 1"), Cow::Borrowed(_)));
        assert_eq!(upper("aZ1"), "AZ1");
    }

    #[test]
    fn surrogates_pass() {
        let text = [b'A', 0xED, 0xA0, 0xBD, 0xC3, 0x89, 0xED, 0xB8, 0x80];
        let expected = [b'a', 0xED, 0xA0, 0xBD, 0xC3, 0xA9, 0xED, 0xB8, 0x80];
        assert_eq!(&*to_lower(&text), &expected);
        assert_eq!(&*normalize(Form::Nfc, &text), &text);
        assert_eq!(normalize(Form::Nfd, &text).len(), text.len() + 1);
    }

    #[test]
    fn forms() {
        let cases = [
            (Form::Nfc, "e\u{301}", "é"),
            (Form::Nfd, "é", "e\u{301}"),
            (Form::Nfkc, "ﬁ①", "fi1"),
            (Form::Nfkd, "ﬁé", "fie\u{301}"),
            (Form::Nfc, "\u{1E9B}\u{323}", "\u{1E9B}\u{323}"),
            (Form::Nfkc, "\u{1E9B}\u{323}", "\u{1E69}"),
            (Form::Nfd, "가", "\u{1100}\u{1161}"),
            (Form::Nfc, "plain", "plain"),
        ];
        for (form, text, expected) in cases {
            assert_eq!(
                &*normalize(form, text.as_bytes()),
                expected.as_bytes(),
                "{form:?}"
            );
        }
        assert_eq!(Form::from_name(b"NFKD"), Ok(Form::Nfkd));
        assert!(Form::from_name(b"nfc").is_err());
    }

    #[test]
    fn long_runs_of_marks_are_quick() {
        let marks = "\u{301}\u{316}".repeat(200_000);
        let text = format!("a{marks}");
        assert_eq!(normalize(Form::Nfd, text.as_bytes()).len(), text.len());
    }
}
