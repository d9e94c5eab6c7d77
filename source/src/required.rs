//! Arguments that a program takes for given.

use crate::lower::Lowerer;

/// What follows a name where it is asked whether it is there.
const ASKED_BEHIND: &[&str] = &[
    "??", "?.", "||", "&&", "===", "!==", "==", "!=", "? ", "?\n", " in ",
];

/// What stands before a name where it is asked.
const ASKED_BEFORE: &[&str] = &[
    "!", "typeof", "&&", "||", "??", "if (", "while (", "Boolean(",
];

impl<'a> Lowerer<'a> {
    /// The names of arguments in the pattern of an agent without types, with their places, but
    /// for those that are tested somewhere: a program that does so can do without them.
    pub(crate) fn required_arguments(&self) -> Vec<(String, u32)> {
        let named = self.named_arguments.iter().filter(|(_, at)| {
            let Some(variable) = self.scoping.variable(*at) else {
                return false;
            };
            let length = self.name_length(*at);
            let mut uses = variable.places.iter().filter(|place| *place != at);
            !variable.is_set && !uses.any(|place| self.is_asked(*place as usize, length))
        });
        named.cloned().collect()
    }

    fn name_length(&self, at: u32) -> usize {
        let rest = self.source.get(at as usize..).unwrap_or_default();
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$'));
        end.unwrap_or(rest.len())
    }

    /// Whether a name that stands here is asked whether it is there.
    fn is_asked(&self, at: usize, length: usize) -> bool {
        let before = self.source.get(..at).unwrap_or_default().trim_end();
        let behind = self.source.get(at + length..).unwrap_or_default();
        let ends = |word: &&str| before.ends_with(word.trim_end());
        ASKED_BEFORE.iter().any(ends)
            || ASKED_BEHIND.iter().any(|sign| {
                let rest = match sign.starts_with(' ') {
                    true => behind,
                    false => behind.trim_start(),
                };
                rest.starts_with(sign)
            })
    }
}
