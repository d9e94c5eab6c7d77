//! Rule for homoglyphs: names with letters of other alphabets, of full width, or invisible
//! ones.
//!
//! Codes: `lint.unknown_name`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

/// Letters of other alphabets, each with its ASCII homoglyph.
const LETTERS: &[(&str, &str)] = &[
    ("аɑα", "a"),
    ("с", "c"),
    ("ԁ", "d"),
    ("еҽ", "e"),
    ("ɡ", "g"),
    ("һ", "h"),
    ("іı", "i"),
    ("ј", "j"),
    ("оο", "o"),
    ("рρ", "p"),
    ("ѕ", "s"),
    ("υ", "u"),
    ("ν", "v"),
    ("ѡ", "w"),
    ("х", "x"),
    ("у", "y"),
    ("АΑ", "A"),
    ("ВΒ", "B"),
    ("С", "C"),
    ("ЕΕ", "E"),
    ("НΗ", "H"),
    ("ІΙ", "I"),
    ("Ј", "J"),
    ("КΚ", "K"),
    ("МΜ", "M"),
    ("Ν", "N"),
    ("ОΟ", "O"),
    ("РΡ", "P"),
    ("Ѕ", "S"),
    ("ТΤ", "T"),
    ("Υ", "Y"),
    ("ХΧ", "X"),
    ("Ζ", "Z"),
    // Invisible characters.
    ("\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{a0}", ""),
];

/// The ASCII name that a name resembles, and the first letter that differs.
pub(super) fn plain_name(name: &str) -> Option<(String, char)> {
    const LONGEST: usize = 128;
    if name.is_ascii() || name.len() > LONGEST {
        return None;
    }
    let mut plain = String::with_capacity(name.len());
    let mut first = None;
    for c in name.chars() {
        if c.is_ascii() {
            plain.push(c);
            continue;
        }
        first = first.or(Some(c));
        // Full-width letters follow ASCII at a fixed distance.
        if let Some(wide) = (c as u32).checked_sub(0xfee0).and_then(char::from_u32)
            && wide.is_ascii_graphic()
        {
            plain.push(wide);
            continue;
        }
        let row = LETTERS.iter().find(|row| row.0.contains(c))?;
        plain.push_str(row.1);
    }
    Some((plain, first?))
}

impl Rules<'_, '_> {
    /// Reports an unknown name that resembles a known one; returns whether it did.
    pub(super) fn lint_lookalike(
        &mut self,
        node: NodeId,
        inner: Option<(u32, u32)>,
        name: &str,
    ) -> bool {
        let Some((plain, letter)) = plain_name(name) else {
            return false;
        };
        let root = plain.split('.').next().unwrap_or(&plain);
        let known = self.vars.knows(root.as_bytes())
            || self.is_argument(root)
            || plain.starts_with("args.");
        if !known {
            return false;
        }
        let code = letter as u32;
        let message = format!(
            "`{}` only looks like `{}`: it has the letter U+{code:04X}",
            excerpt(name),
            excerpt(&plain)
        );
        let value = match self.vars.knows(root.as_bytes()) || inner.is_some() {
            true => plain,
            false if plain.starts_with("args.") => plain,
            false => format!("args.{plain}"),
        };
        let help = format!("write `{}` with the letters of ASCII", excerpt(&value));
        self.found(codes::UNKNOWN_NAME, (node, inner), message, name, help);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn names_that_look_alike() {
        for (name, plain) in [
            ("tоtal", "total"),
            ("ｎａｍｅ", "name"),
            ("na\u{200b}me", "name"),
            ("оrder.id", "order.id"),
        ] {
            assert_eq!(
                plain_name(name).map(|found| found.0).as_deref(),
                Some(plain)
            );
        }
        for name in ["total", "größe", "名前", "сумма"] {
            assert_eq!(plain_name(name), None, "{name}");
        }
    }
}
