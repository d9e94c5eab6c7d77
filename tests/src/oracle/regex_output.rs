//! What `regexReplace`, `regexSplit` and the other atoms give for the matches of `regex_find`.

use super::coerce::{to_num, to_str};
use super::expr::name_of;
use super::machine::{Machine, ScopeRef};
use super::meter::pay;
use super::regex::Groups;
use super::regex_find::{Pattern, Places, part, prepare};
use super::steps::Node as Step;
use super::strings::Args;
use super::value::{JsStr, OVal, Res, from_wtf8, js};
use a99_core::costs::{READ, REGEX_PART, Sizes, WRITTEN};
use a99_core::value::Value;

/// A part of a replacement text.
enum Piece {
    Text(Vec<u16>),
    Group(usize),
    Before,
    After,
}

/// GetSubstitution (§22.1.3.19.1), parsed beforehand.
fn pieces(with: &[u16], groups: &Groups) -> Vec<Piece> {
    let (mut list, mut plain, mut rest) = (Vec::new(), Vec::new(), with);
    let mut put = |plain: &mut Vec<u16>, piece: Option<Piece>| {
        if !plain.is_empty() {
            list.push(Piece::Text(std::mem::take(plain)));
        }
        list.extend(piece);
    };
    while let [unit, after @ ..] = rest {
        let c = |n: usize| after.get(n).and_then(|u| char::from_u32((*u).into()));
        let digit = |n: usize| c(n).and_then(|c| c.to_digit(10)).map(|d| d as usize);
        let known = |n: &usize| (1..=groups.count).contains(n);
        let special = (*unit == 36).then(|| match c(0)? {
            '$' => Some((Some(Piece::Text(vec![36])), 1)),
            '&' => Some((Some(Piece::Group(0)), 1)),
            '`' => Some((Some(Piece::Before), 1)),
            '\'' => Some((Some(Piece::After), 1)),
            '<' if !groups.names.is_empty() => {
                let length = after.iter().position(|u| *u == 62)?;
                let name = String::from_utf16_lossy(&after[1..length]);
                let group = groups.names.iter().find(|(known, _)| *known == name);
                Some((group.map(|(_, n)| Piece::Group(*n)), length + 1))
            }
            _ => {
                let one = digit(0)?;
                match digit(1).map(|two| 10 * one + two) {
                    Some(n) if n <= groups.count => known(&n).then_some((Some(Piece::Group(n)), 2)),
                    _ => known(&one).then_some((Some(Piece::Group(one)), 1)),
                }
            }
        });
        match special.flatten() {
            Some((piece, length)) => {
                put(&mut plain, piece);
                rest = &after[length..];
            }
            None => {
                plain.push(*unit);
                rest = after;
            }
        }
    }
    put(&mut plain, None);
    list
}

fn replaced(text: &[u16], pattern: &Pattern, found: &[Places], with: &[u16]) -> Res<OVal> {
    let dollars = with.iter().filter(|unit| **unit == 36).count();
    pay(READ, Sizes::elements(dollars * REGEX_PART))?;
    let pieces = pieces(with, &pattern.groups);
    let parts = found.len() * (pieces.len() + 1);
    pay(READ, Sizes::elements(parts * REGEX_PART))?;
    let (mut out, mut at) = (Vec::new(), 0);
    for places in found {
        let (start, end) = places[0].unwrap_or_default();
        out.extend_from_slice(&text[at..start]);
        for piece in &pieces {
            let from: &[u16] = match piece {
                Piece::Text(text) => text,
                Piece::Before => &text[..start],
                Piece::After => &text[end..],
                Piece::Group(n) => places[*n].map_or(&[], |(a, b)| &text[a..b]),
            };
            out.extend_from_slice(from);
        }
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    pay(WRITTEN, Sizes::default().out_units(out.len()))?;
    Ok(OVal::units(out))
}

fn parts(text: &[u16], pattern: &Pattern, limit: usize) -> Res<OVal> {
    let mut list = Vec::new();
    if text.is_empty() {
        // Splitting the empty text by a pattern that matches it leaves nothing.
        let found = pattern.find_first(text, 0)?;
        list.extend(found.is_empty().then(|| OVal::units(Vec::new())));
    } else {
        let mut at = 0;
        for places in pattern.borders(text, limit)? {
            let (start, end) = places[0].unwrap_or_default();
            list.push(part(text, Some((at, start))));
            list.extend(places[1..].iter().map(|place| part(text, *place)));
            at = end;
        }
        list.push(part(text, Some((at, text.len()))));
    }
    list.truncate(limit);
    let elements = list.len() * REGEX_PART;
    pay(WRITTEN, Sizes::default().out_elements(elements))?;
    Ok(OVal::array(list))
}

fn literal(step: Step<'_>, key: &str) -> JsStr {
    match step.get(key) {
        Value::Undefined | Value::Null => js(""),
        Value::String(text) => from_wtf8(text.as_bytes()),
        other => name_of(other),
    }
}

impl Machine<'_> {
    /// `regexFind`, `regexFindAll`, `regexReplace` and `regexSplit`.
    pub(super) fn regex_atom(&mut self, op: &str, step: Step<'_>, scope: &ScopeRef) -> Res<OVal> {
        let text = self.input(step, "text", scope)?;
        let (source, flags) = (literal(step, "pattern"), literal(step, "flags"));
        let with = match op {
            "regexReplace" => self.input(step, "replacement", scope)?,
            _ => OVal::Undef,
        };
        let option = match op {
            "regexReplace" => self.input(step, "all", scope)?,
            "regexSplit" => self.input(step, "limit", scope)?,
            _ => OVal::Undef,
        };
        let text = to_str(&text)?;
        match op {
            "regexFind" => find(&text, &source, &flags, None),
            "regexFindAll" => find_all(&text, &source, &flags),
            "regexReplace" => {
                let with = to_str(&with)?;
                let all = match option {
                    OVal::Undef | OVal::Null => None,
                    other => Some(other.truthy()),
                };
                replace(&text, &source, &flags, &with, all)
            }
            _ => {
                let limit = match option {
                    OVal::Undef | OVal::Null => usize::MAX,
                    other => to_num(&other)? as usize,
                };
                let pattern = prepare(&source, &flags, &text, true)?;
                parts(&text, &pattern, limit)
            }
        }
    }
}

fn find(text: &[u16], source: &[u16], flags: &[u16], from: Option<usize>) -> Res<OVal> {
    let pattern = prepare(source, flags, text, from.is_none())?;
    let found = pattern.find_first(text, from.unwrap_or(0))?;
    pattern.pay_found(found.len())?;
    let first = found.first();
    Ok(first.map_or(OVal::Null, |places| pattern.shown(text, places)))
}

fn find_all(text: &[u16], source: &[u16], flags: &[u16]) -> Res<OVal> {
    let pattern = prepare(source, flags, text, true)?;
    let found = pattern.find_all(text)?;
    pattern.pay_found(found.len())?;
    let found = found.iter().map(|places| pattern.shown(text, places));
    Ok(OVal::array(found.collect()))
}

fn replace(
    text: &[u16],
    source: &[u16],
    flags: &[u16],
    with: &[u16],
    all: Option<bool>,
) -> Res<OVal> {
    pay(READ, Sizes::units(with.len()))?;
    let pattern = prepare(source, flags, text, true)?;
    let found = match all.unwrap_or(pattern.global) {
        true => pattern.find_all(text)?,
        false => pattern.find_first(text, 0)?,
    };
    replaced(text, &pattern, &found, with)
}

/// `String.findPattern` and the like.
pub(super) fn call(name: &str, args: &Args<'_>) -> Res<OVal> {
    let (text, source) = (args.text(0)?, args.text(1)?);
    let flags = match args.get(2) {
        OVal::Undef => js(""),
        other => to_str(&other)?,
    };
    match name {
        "findPattern" => {
            let from = args.optional(3)?.unwrap_or(0.0).max(0.0);
            find(&text, &source, &flags, Some(from as usize))
        }
        "findPatterns" => find_all(&text, &source, &flags),
        "replacePattern" => replace(&text, &source, &flags, &args.text(3)?, None),
        _ => {
            let limit = args.optional(3)?;
            let limit = limit.map_or(u32::MAX, a99_ecma::arith::to_uint32);
            let pattern = prepare(&source, &flags, &text, true)?;
            parts(&text, &pattern, limit as usize)
        }
    }
}
