//! What is at a place of a document: the name of an atom, an input, a member, a variable.

use crate::scan::Tokens;
use a99_core::sig::{AtomInput, AtomSig};
use agent99::Engine;
use std::ops::Range;

/// The call whose object of inputs holds a place of a source.
pub(crate) struct Call<'e, 't> {
    pub sig: &'e AtomSig,
    /// Names of the inputs that are given.
    pub given: Vec<&'t str>,
    /// The input whose value the place is in; `None` where a name is expected.
    pub value_of: Option<&'t str>,
}

/// The call of an atom that holds the token at `index` directly in its object of inputs.
pub(crate) fn call<'e, 't>(
    engine: &'e Engine,
    tokens: &Tokens<'t>,
    index: usize,
) -> Option<Call<'e, 't>> {
    let open = tokens.enclosing(index)?;
    let name = open.checked_sub(2).filter(|_| tokens.is_mark(open, b'{'))?;
    if !tokens.is_mark(name + 1, b'(')
        || name
            .checked_sub(1)
            .is_some_and(|at| tokens.is_mark(at, b'.'))
    {
        return None;
    }
    let sig = &engine.atoms().get(tokens.word(name)?)?.sig;
    let (given, value_of) = members(tokens, open, index);
    Some(Call {
        sig,
        given,
        value_of,
    })
}

/// The names of an object's members other than the one at `index`, and the member whose value
/// `index` is in.
pub(crate) fn members<'t>(
    tokens: &Tokens<'t>,
    open: usize,
    index: usize,
) -> (Vec<&'t str>, Option<&'t str>) {
    let mut given = Vec::new();
    let mut value_of = None;
    let mut at = open + 1;
    let close = tokens.close(open);
    while at < close {
        let start = at;
        let name = match tokens.content(at) {
            Some((_, text)) => Some(text),
            None => tokens.word(at),
        };
        let has_value = tokens.is_mark(at + 1, b':');
        while at < close && !tokens.is_mark(at, b',') {
            at = match tokens.get(at).and_then(|token| token.partner) {
                Some(partner) if partner > at => partner + 1,
                _ => at + 1,
            };
        }
        let here = (start..=at).contains(&index);
        match name {
            Some(name) if here && has_value && index > start + 1 => value_of = Some(name),
            Some(name) if !here || index != start => given.push(name),
            _ => {}
        }
        at += 1;
    }
    (given, value_of)
}

/// The object of a JSON document that holds the token at `index` directly.
pub(crate) struct Member<'t> {
    /// The names of its other members.
    pub given: Vec<&'t str>,
    /// The member whose value the token is; `None` for a name.
    pub value_of: Option<&'t str>,
    /// The text of its member `op`.
    pub op: Option<&'t str>,
    /// The text of its member `$expr`.
    pub tag: Option<&'t str>,
    /// True if it is the document's root.
    pub is_root: bool,
}

/// What holds the token at `index` of a JSON document.
pub(crate) fn member<'t>(tokens: &Tokens<'t>, index: usize) -> Option<Member<'t>> {
    let open = tokens
        .enclosing(index)
        .filter(|open| tokens.is_mark(*open, b'{'))?;
    let (given, value_of) = members(tokens, open, index);
    Some(Member {
        given,
        value_of,
        op: text_of(tokens, open, "op"),
        tag: text_of(tokens, open, "$expr"),
        is_root: tokens.enclosing(open).is_none(),
    })
}

/// The text of a member of the object that opens at a token.
fn text_of<'t>(tokens: &Tokens<'t>, open: usize, name: &str) -> Option<&'t str> {
    let close = tokens.close(open);
    let mut at = open + 1;
    while at < close {
        if tokens.content(at).is_some_and(|(_, key)| key == name)
            && tokens.is_mark(at + 1, b':')
            && let Some((_, text)) = tokens.content(at + 2)
        {
            return Some(text);
        }
        at = match tokens.get(at).and_then(|token| token.partner) {
            Some(partner) if partner > at => partner + 1,
            _ => at + 1,
        };
    }
    None
}

/// An input of a signature by its name.
pub(crate) fn input<'s>(sig: &'s AtomSig, name: &str) -> Option<&'s AtomInput> {
    sig.inputs.iter().find(|input| input.name == name)
}

/// The word of an expression's text around an offset, its place, and whether it follows a dot, and
/// then what stands before the dot if that is a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    pub place: Range<usize>,
    pub text: &'t str,
    pub is_member: bool,
    pub object: Option<&'t str>,
}

/// The word around an offset of a text; it may be empty.
pub(crate) fn word(text: &str, offset: usize) -> Word<'_> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let offset = text.floor_char_boundary(offset);
    let start = text[..offset].trim_end_matches(is_part).len();
    let end = offset
        + text[offset..]
            .find(|c| !is_part(c))
            .unwrap_or(text.len() - offset);
    let before = text[..start].strip_suffix('.');
    let object = before.map(|before| &before[before.trim_end_matches(is_part).len()..]);
    Word {
        place: start..end,
        text: &text[start..end],
        is_member: before.is_some(),
        object: object.filter(|object| !object.is_empty()),
    }
}
