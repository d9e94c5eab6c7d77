//! Fixes of findings: names that were meant.

use crate::document::{Finding, Form, check};
use agent99::{Diagnostic, Engine, Severity};
use std::ops::Range;

/// A replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fix {
    pub place: Range<usize>,
    pub new: String,
    pub title: String,
}

/// The fix of a finding whose advice names what was meant. Only one that is certain: what it
/// replaces stands once at the place, and without it the compiler no longer finds this, and no
/// other error.
pub(crate) fn fix(
    engine: &Engine,
    form: Form,
    text: &str,
    before: &[Finding],
    finding: &Finding,
) -> Option<Fix> {
    let help = finding.found.help.as_deref()?;
    let meant = meant(help)?;
    let here = text.get(finding.place.clone())?;
    // What the message quotes is narrower than the text at the place.
    let texts = quoted(&finding.found.message);
    let texts = texts.into_iter().chain([&*finding.found.offending, here]);
    let parts = |name: &str| name.matches('.').count();
    let is_like = |old: &&str| parts(old) == parts(meant) && *old != meant;
    let mut names = texts.filter_map(name_of).filter(is_like);
    let (old, at) = names.find_map(|old| Some((old, once(here, old)?)))?;
    let place = finding.place.start + at..finding.place.start + at + old.len();
    let mut fixed = text.to_owned();
    fixed.replace_range(place.clone(), meant);
    let after = check(engine, form, &fixed);
    let same = |one: &Diagnostic| one.code == finding.found.code;
    let is_error = |one: &Diagnostic| one.severity == Severity::Error;
    let count = |is: &dyn Fn(&Diagnostic) -> bool| {
        let before = before.iter().filter(|one| is(&one.found)).count();
        (before, after.iter().filter(|one| is(one)).count())
    };
    let (same_before, same_after) = count(&same);
    let (errors_before, errors_after) = count(&is_error);
    let helps = same_after < same_before;
    // An error hides later ones, so a fixed one may show others.
    let is_worse = finding.found.severity == Severity::Warning && errors_after > errors_before;
    (helps && !is_worse).then(|| Fix {
        place,
        new: meant.to_owned(),
        title: format!("Replace `{old}` with `{meant}`"),
    })
}

/// The name in "did you mean `name`?".
fn meant(help: &str) -> Option<&str> {
    let (_, rest) = help.split_once("did you mean ")?;
    let rest = rest.strip_prefix("the variable ").unwrap_or(rest);
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '`' | '\''))?;
    let (name, _) = rest[1..].split_once(quote)?;
    let name = name.strip_prefix('.').unwrap_or(name);
    name_of(name.strip_suffix("()").unwrap_or(name))
}

/// The texts that a message quotes.
fn quoted(message: &str) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut rest = message;
    while let Some(start) = rest.find(['`', '\'']) {
        let quote = char::from(rest.as_bytes()[start]);
        let Some((text, after)) = rest[start + 1..].split_once(quote) else {
            break;
        };
        texts.push(text);
        rest = after;
    }
    texts
}

/// A text without its quotes if it is a name or a path of names.
fn name_of(text: &str) -> Option<&str> {
    let text = text.trim_matches(['"', '\'']);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '-');
    (!text.is_empty() && text.chars().all(is_part)).then_some(text)
}

/// The only place of a whole word in a text.
fn once(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let mut places = text.match_indices(word).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    });
    let (at, _) = places.next()?;
    places.next().is_none().then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_was_meant() {
        assert_eq!(meant("did you mean `httpFetch`?"), Some("httpFetch"));
        assert_eq!(meant("did you mean 'groupBy'? It is"), Some("groupBy"));
        assert_eq!(meant("did you mean `.trim()`?"), Some("trim"));
        assert_eq!(meant("did you mean the variable `a.b`?"), Some("a.b"));
        assert_eq!(meant("did you mean `'x y'`?"), None);
        assert_eq!(meant("write `a`"), None);
        assert_eq!(meant("did you mean `"), None);
    }

    #[test]
    fn only_a_whole_word_that_stands_once_is_replaced() {
        assert_eq!(once("len(x.lenght)", "lenght"), Some(6));
        assert_eq!(once("a.b + a.b", "b"), None);
        assert_eq!(once("abc", "b"), None);
        assert_eq!(quoted("unknown atom `a` of 'b' and `c"), ["a", "b"]);
    }
}
