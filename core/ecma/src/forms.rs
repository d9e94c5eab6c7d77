//! Unicode normalization forms (Unicode Standard Annex 15, ECMA-262 §22.1.3.15).
//!
//! Lone surrogates have no decomposition and are unchanged. Pages cache the tables of
//! `unicode-normalization` per character: changed text takes some ten nanoseconds a
//! character, several times less than a table search for each.

use crate::RangeError;
use crate::case::{char_at, push};
use crate::pages::Pages;
use crate::tick::{PIECE, Tick, whole};
use std::borrow::Cow;
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};
use unicode_normalization::{IsNormalized, is_nfc_quick, is_nfkc_quick};

/// A normalization form (Unicode Standard Annex 15).
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
    /// Parses the argument of `normalize`.
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

impl Form {
    const fn composes(self) -> bool {
        matches!(self, Form::Nfc | Form::Nfkc)
    }

    const fn is_canonical(self) -> bool {
        matches!(self, Form::Nfc | Form::Nfd)
    }

    /// The flag of characters that this form leaves unchanged after any other character.
    const fn stays(self) -> u8 {
        1 << self as u8
    }
}

/// The properties of a character for normalization.
#[derive(Copy, Clone)]
struct Props {
    /// Its canonical combining class; 0 is a starter.
    class: u8,
    /// [`Form::stays`] of the forms that leave it unchanged.
    stays: u8,
}

static PROPS: Pages<Props> = Pages::new(|c| {
    let alone = |quick: IsNormalized| quick == IsNormalized::Yes;
    let (mut canonical, mut compatible) = (None, None);
    decompose_canonical(c, |d| canonical = canonical.or(Some(d)));
    decompose_compatible(c, |d| compatible = compatible.or(Some(d)));
    // No character decomposes to itself and others.
    let stays = [
        (Form::Nfc, alone(is_nfc_quick(std::iter::once(c)))),
        (Form::Nfd, canonical == Some(c)),
        (Form::Nfkc, alone(is_nfkc_quick(std::iter::once(c)))),
        (Form::Nfkd, compatible == Some(c)),
    ];
    Some(Props {
        class: canonical_combining_class(c),
        stays: stays
            .iter()
            .filter(|(_, stays)| *stays)
            .fold(0, |flags, (form, _)| flags | form.stays()),
    })
});

/// A starter that every form leaves unchanged.
const PLAIN: Props = Props {
    class: 0,
    stays: u8::MAX,
};

#[inline]
fn props(c: char) -> Props {
    match c {
        // Beyond the pages only these ideographs decompose.
        '\0'..='\x7F' | '\u{20000}'..='\u{2F7FF}' | '\u{2FA20}'.. => PLAIN,
        c => PROPS.of(c).unwrap_or(PLAIN),
    }
}

/// Normalizes a text.
#[must_use]
pub fn normalize(form: Form, text: &[u8]) -> Cow<'_, [u8]> {
    whole(normalize_with(form, text, &mut |_| Ok(())))
}

/// [`normalize`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn normalize_with<'a, E>(
    form: Form,
    text: &'a [u8],
    tick: &mut impl Tick<E>,
) -> Result<Cow<'a, [u8]>, E> {
    let kept = normal_start(form, text, tick)?;
    if kept == text.len() {
        return Ok(Cow::Borrowed(text));
    }
    let mut writer = Writer {
        out: Vec::with_capacity(text.len()),
        composes: form.composes(),
        starter: None,
        marks: Vec::new(),
    };
    writer.out.extend_from_slice(&text[..kept]);
    let mut next = kept;
    let mut at = kept;
    while at < text.len() {
        if at >= next {
            tick(2 * PIECE)?;
            next = at + PIECE;
        }
        let (c, length) = char_at(text, at);
        match c {
            Some(c) => {
                let of = props(c);
                if of.stays & decomposed(form).stays() != 0 {
                    writer.add(c, of);
                } else if form.is_canonical() {
                    decompose_canonical(c, |d| writer.add(d, props(d)));
                } else {
                    decompose_compatible(c, |d| writer.add(d, props(d)));
                }
            }
            // A lone surrogate does not combine with its neighbours.
            None => {
                writer.end();
                writer.out.extend_from_slice(&text[at..at + length]);
            }
        }
        at += length;
    }
    writer.end();
    Ok(Cow::Owned(writer.out))
}

/// The decomposed form on the way to another form.
const fn decomposed(form: Form) -> Form {
    match form.is_canonical() {
        true => Form::Nfd,
        false => Form::Nfkd,
    }
}

/// Length of a prefix that is already normalized: the whole text, or up to a starter.
fn normal_start<E>(form: Form, text: &[u8], tick: &mut impl Tick<E>) -> Result<usize, E> {
    let (mut kept, mut class) = (0, 0);
    let mut at = 0;
    let mut next = 0;
    while at < text.len() {
        if at >= next {
            tick(PIECE)?;
            next = at + PIECE;
        }
        let ascii = text[at..].iter().take(PIECE).take_while(|b| b.is_ascii());
        let run = ascii.count();
        if run > 0 {
            at += run;
            (kept, class) = (at - 1, 0);
            continue;
        }
        let (c, length) = char_at(text, at);
        let of = c.map_or(PLAIN, props);
        if of.stays & form.stays() == 0 || of.class != 0 && of.class < class {
            return Ok(kept);
        }
        if of.class == 0 {
            kept = at;
        }
        class = of.class;
        at += length;
    }
    Ok(text.len())
}

/// Orders the marks of decomposed characters, composes them if requested, and writes the
/// result.
struct Writer {
    out: Vec<u8>,
    composes: bool,
    /// The last starter, which may compose with the following characters.
    starter: Option<char>,
    /// The marks after it.
    marks: Vec<(u8, char)>,
}

impl Writer {
    #[inline]
    fn add(&mut self, c: char, of: Props) {
        if of.class != 0 {
            self.marks.push((of.class, c));
            return;
        }
        if !self.marks.is_empty() {
            self.settle();
        }
        if let Some(starter) = self.starter {
            // A character that composes with its predecessor may change in a composed text.
            if self.marks.is_empty()
                && of.stays & Form::Nfc.stays() == 0
                && let Some(composed) = compose(starter, c)
            {
                self.starter = Some(composed);
                return;
            }
            push(&mut self.out, starter);
            self.starter = None;
        }
        for (_, mark) in self.marks.drain(..) {
            push(&mut self.out, mark);
        }
        match self.composes {
            true => self.starter = Some(c),
            false => push(&mut self.out, c),
        }
    }

    /// Sorts the marks, and composes those that are not blocked with the starter.
    fn settle(&mut self) {
        self.sort();
        let Some(mut starter) = self.starter else {
            return;
        };
        let mut last = 0;
        self.marks.retain(|(class, mark)| {
            if *class != last
                && let Some(composed) = compose(starter, *mark)
            {
                starter = composed;
                return false;
            }
            last = *class;
            true
        });
        self.starter = Some(starter);
    }

    /// Sorts the marks by class, in linear time, since there may be many.
    fn sort(&mut self) {
        /// Number of marks above which a counting sort is used.
        const FEW: usize = 64;
        if self.marks.len() <= FEW {
            self.marks.sort_by_key(|(class, _)| *class);
            return;
        }
        let mut places = [0_usize; 256];
        for (class, _) in &self.marks {
            places[usize::from(*class)] += 1;
        }
        let mut place = 0;
        for count in &mut places {
            place += std::mem::replace(count, place);
        }
        let mut sorted = vec![(0, '\0'); self.marks.len()];
        for (class, mark) in &self.marks {
            let place = &mut places[usize::from(*class)];
            sorted[*place] = (*class, *mark);
            *place += 1;
        }
        self.marks = sorted;
    }

    /// Writes the rest.
    fn end(&mut self) {
        self.settle();
        if let Some(starter) = self.starter.take() {
            push(&mut self.out, starter);
        }
        for (_, mark) in self.marks.drain(..) {
            push(&mut self.out, mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization;

    const FORMS: [Form; 4] = [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd];

    fn of_library(form: Form, text: &str) -> String {
        match form {
            Form::Nfc => text.nfc().collect(),
            Form::Nfd => text.nfd().collect(),
            Form::Nfkc => text.nfkc().collect(),
            Form::Nfkd => text.nfkd().collect(),
        }
    }

    fn agrees(text: &str) {
        for form in FORMS {
            let given = normalize(form, text.as_bytes());
            assert_eq!(
                &*given,
                of_library(form, text).as_bytes(),
                "{form:?} {text:?}"
            );
        }
    }

    #[test]
    fn e1_forms_are_those_of_the_library() {
        for c in ('\0'..'\u{30000}').chain('\u{E0000}'..'\u{E0200}') {
            let text = format!("a{c}\u{301}\u{316}{c}");
            let own = |form| String::from_utf8(normalize(form, text.as_bytes()).into_owned());
            for form in FORMS {
                assert_eq!(
                    own(form).unwrap(),
                    of_library(form, &text),
                    "{form:?} {c:?}"
                );
            }
        }
        let parts = [
            "a",
            "e",
            "\u{301}",
            "\u{316}",
            "\u{345}",
            "\u{327}",
            "é",
            "각",
            "\u{1100}",
            "\u{1161}",
            "\u{11a8}",
            "ﬃ",
            "\u{fdfa}",
            "\u{9be}",
            "\u{9c7}",
            "\u{1e9b}",
            "\u{323}",
            "😀",
            "Σ",
            "\u{5b0}",
            "\u{2f804}",
            "\u{11127}",
            "\u{11131}",
            " ",
        ];
        let mut seed = 7_usize;
        for n in 0..20_000 {
            let mut text = String::new();
            for _ in 0..n % 14 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(parts[(seed >> 33) % parts.len()]);
            }
            agrees(&text);
        }
        agrees(&format!("a{}b", "\u{301}\u{316}\u{345}\u{327}".repeat(50)));
        agrees(&"é각e\u{316}\u{301}ﬃ ".repeat(3_000));
    }

    #[test]
    fn long_work_ends_early() {
        let text = "ÀΣe\u{301}".repeat(50_000);
        for form in [Form::Nfc, Form::Nfd] {
            let mut bytes = 0;
            let mut tick = |n| {
                bytes += n;
                if bytes > 100_000 { Err(()) } else { Ok(()) }
            };
            assert!(normalize_with(form, text.as_bytes(), &mut tick).is_err());
        }
    }

    #[test]
    fn surrogates_pass() {
        let text = [b'A', 0xED, 0xA0, 0xBD, 0xC3, 0x89, 0xED, 0xB8, 0x80];
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
