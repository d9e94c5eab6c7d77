//! Documentation of what is at a place.

use crate::document::{Document, Form};
use crate::facts;
use crate::names::{declared, seen};
use crate::place::{self, word};
use crate::scan::Tokens;
use agent99::Engine;
use serde_json::{Value as Json, json};
use std::ops::Range;

/// The answer of a hover request; null if nothing is known.
pub(crate) fn hover(engine: &Engine, document: &Document, offset: usize) -> Json {
    let text = document.text.as_str();
    let tokens = Tokens::of(text);
    let found = match document.form {
        _ if tokens.is_comment(offset) => None,
        Some(Form::Source) => in_source(engine, &tokens, offset),
        Some(Form::Json) => in_json(engine, &tokens, offset),
        None => None,
    };
    match found {
        Some((place, markdown)) => json!({
            "contents": {"kind": "markdown", "value": markdown},
            "range": document.text.range(&place),
        }),
        None => Json::Null,
    }
}

type Found = (Range<usize>, String);

fn in_source(engine: &Engine, tokens: &Tokens<'_>, offset: usize) -> Option<Found> {
    let index = tokens.at(offset)?;
    let name = tokens.word(index)?;
    let place = tokens.get(index)?.place.clone();
    let dot = index.checked_sub(1).filter(|at| tokens.is_mark(*at, b'.'));
    if let Some(dot) = dot {
        let object = dot.checked_sub(1).and_then(|at| tokens.word(at));
        return facts::member(object, name).map(|docs| (place, docs));
    }
    if let Some(call) = place::call(engine, tokens, index)
        && call.value_of.is_none()
        && let Some(input) = place::input(call.sig, name)
    {
        return Some((place, facts::input(call.sig, input)));
    }
    let names = declared(tokens);
    if let Some(found) = seen(&names, index)
        .into_iter()
        .find(|seen| seen.name == name)
    {
        let line = line_of(tokens.text, tokens.get(found.at)?.place.start);
        let text = format!(
            "```ts\n{line}\n```\n\n`{name}`: {}\n",
            found.declared.as_str()
        );
        return Some((place, text));
    }
    if let Some(atom) = engine.atoms().get(name) {
        return Some((place, facts::atom(&atom.sig)));
    }
    facts::global(name).map(|docs| (place, docs))
}

/// The line around an offset, without blanks at its ends.
fn line_of(text: &str, offset: usize) -> &str {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..]
        .find('\n')
        .map_or(text.len(), |at| offset + at);
    text[start..end].trim()
}

fn in_json(engine: &Engine, tokens: &Tokens<'_>, offset: usize) -> Option<Found> {
    let index = tokens.at(offset)?;
    let (place, text) = tokens.content(index)?;
    let member = place::member(tokens, index);
    let sig = member.as_ref().and_then(|member| {
        let op = member.op.filter(|_| member.tag.is_none())?;
        engine.atoms().get(op).map(|atom| &atom.sig)
    });
    match member.as_ref().map(|member| (member.value_of, member)) {
        Some((None, member)) => {
            let input = sig.and_then(|sig| Some((sig, place::input(sig, text)?)));
            if let Some((sig, input)) = input {
                return Some((place, facts::input(sig, input)));
            }
            let docs = facts::key(text, member.is_root)?;
            return Some((place, format!("`{text}`: {docs}\n")));
        }
        Some((Some("op"), _)) if sig.is_some() => {
            return sig.map(|sig| (place, facts::atom(sig)));
        }
        Some((Some("$expr"), _)) => return facts::node(text).map(|docs| (place, docs)),
        _ => {}
    }
    // A text may be an expression.
    let at = word(text, offset.saturating_sub(place.start).min(text.len()));
    let here = place.start + at.place.start..place.start + at.place.end;
    let docs = match at.is_member {
        true => facts::member(at.object, at.text),
        false if text[at.place.end..].starts_with(['(', '.']) => facts::global(at.text),
        false => None,
    };
    docs.map(|docs| (here, docs))
}
