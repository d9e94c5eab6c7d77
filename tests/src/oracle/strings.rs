//! Methods of texts (ECMA-262 §22.1.3) on UTF-16 units; patterns are literal (decision D39).

use super::coerce::{bytes, to_num, to_str};
use super::meter::Meter;
use super::value::{Fail, JsStr, OVal, Res, fail, js, to_wtf8};
use a99_core::costs::{
    READ, Sizes, WRITTEN, collated_units, normalized_units, searched_units, taken_apart,
};
use a99_ecma::{arith, case, forms, text_index, wtf8};
use std::cmp::Ordering;

/// Longest text of an engine.
const MAX_LENGTH: f64 = 2_147_483_647.0;

/// Arguments of a call; missing ones are `undefined`.
pub(super) struct Args<'a>(pub &'a [OVal]);

impl Args<'_> {
    /// The argument at `i`.
    pub(super) fn get(&self, i: usize) -> OVal {
        self.0.get(i).cloned().unwrap_or(OVal::Undef)
    }

    /// The argument as text.
    pub(super) fn text(&self, i: usize) -> Res<JsStr> {
        to_str(&self.get(i))
    }

    /// The argument as a whole number or infinity; `default` if undefined.
    pub(super) fn integer_or(&self, i: usize, default: f64) -> Res<f64> {
        match self.get(i) {
            OVal::Undef => Ok(default),
            v => Ok(arith::to_integer_or_infinity(to_num(&v)?)),
        }
    }

    /// The argument as a whole number or infinity.
    pub(super) fn integer(&self, i: usize) -> Res<f64> {
        self.integer_or(i, 0.0)
    }

    /// The argument as a number, `None` if undefined.
    pub(super) fn optional(&self, i: usize) -> Res<Option<f64>> {
        match self.get(i) {
            OVal::Undef => Ok(None),
            v => to_num(&v).map(Some),
        }
    }
}

/// The first place of `needle` at or after `from`.
pub(super) fn find(text: &[u16], needle: &[u16], from: usize) -> Option<usize> {
    (from..=text.len().checked_sub(needle.len())?).find(|&i| text[i..].starts_with(needle))
}

fn part(s: &[u16], range: std::ops::Range<usize>) -> OVal {
    OVal::Str(s[range].into())
}

fn is_ascii(s: &[u16]) -> bool {
    s.iter().all(|u| *u < 0x80)
}

/// [`find`] for the program's searches; owes for texts beyond ASCII.
fn look(text: &[u16], needle: &[u16], from: usize) -> Option<usize> {
    owe_search(text, needle);
    find(text, needle, from)
}

fn owe_search(text: &[u16], needle: &[u16]) {
    let halves = matches!(needle.first(), Some(0xDC00..=0xDFFF))
        || matches!(needle.last(), Some(0xD800..=0xDBFF));
    if !is_ascii(text) {
        let units = searched_units(text.len(), halves);
        super::meter::owe(READ.price(Sizes::units(units)));
    }
}

/// Owes for splitting a text beyond ASCII.
pub(super) fn owe_units(s: &[u16]) {
    if !is_ascii(s) {
        let units = taken_apart(s.len());
        super::meter::owe(READ.price(Sizes::units(units)));
    }
}

/// Splits by a literal separator (ECMA-262 §22.1.3.23).
pub(super) fn split(s: &[u16], sep: &[u16]) -> Vec<OVal> {
    if sep.is_empty() {
        owe_units(s);
        return s.iter().map(|u| OVal::units(vec![*u])).collect();
    }
    owe_search(s, sep);
    let mut out = Vec::new();
    let mut start = 0;
    while let Some(at) = find(s, sep, start) {
        out.push(part(s, start..at));
        start = at + sep.len();
    }
    out.push(part(s, start..s.len()));
    out
}

/// The code point at a unit.
fn code_point(s: &[u16], i: usize) -> u32 {
    let unit = u32::from(s[i]);
    match s.get(i + 1) {
        Some(&low) if (0xD800..0xDC00).contains(&unit) && (0xDC00..0xE000).contains(&low) => {
            0x10000 + ((unit - 0xD800) << 10) + (u32::from(low) - 0xDC00)
        }
        _ => unit,
    }
}

/// The code points of a text, each as text (the iterator of §22.1.5).
pub(super) fn characters(s: &[u16]) -> Vec<OVal> {
    let mut out = Vec::new();
    let mut i = 0;
    while i < s.len() {
        let n = if code_point(s, i) > 0xFFFF { 2 } else { 1 };
        out.push(part(s, i..i + n));
        i += n;
    }
    out
}

fn pad(m: &mut Meter, s: &JsStr, args: &Args<'_>, at_start: bool) -> Res<OVal> {
    let length = args.integer(0)?.max(0.0);
    let filler = match args.get(1) {
        OVal::Undef => js(" "),
        v => to_str(&v)?,
    };
    if length <= s.len() as f64 || filler.is_empty() {
        m.charge(WRITTEN, Sizes::default().out_units(s.len()))?;
        return Ok(OVal::Str(s.clone()));
    }
    m.charge(WRITTEN, Sizes::default().out_units(length as usize))?;
    if length > MAX_LENGTH {
        return fail("Out of memory");
    }
    let fill = filler
        .iter()
        .copied()
        .cycle()
        .take(length as usize - s.len());
    let out: Vec<u16> = match at_start {
        true => fill.chain(s.iter().copied()).collect(),
        false => s.iter().copied().chain(fill).collect(),
    };
    Ok(OVal::units(out))
}

fn repeat(m: &mut Meter, s: &JsStr, args: &Args<'_>) -> Res<OVal> {
    let n = args.integer(0)?;
    if n < 0.0 || n.is_infinite() {
        return fail(
            "String.prototype.repeat argument must be greater than or equal to 0 and not be Infinity",
        );
    }
    let total = (n as usize).saturating_mul(s.len());
    m.charge(WRITTEN, Sizes::default().out_units(total))?;
    if total as f64 > MAX_LENGTH {
        return fail("Out of memory");
    }
    Ok(OVal::units(s.repeat(if s.is_empty() {
        0
    } else {
        n as usize
    })))
}

/// `GetSubstitution` (ECMA-262 §22.1.3.19.1) without captures.
fn substitute(s: &[u16], at: usize, len: usize, template: &[u16], out: &mut Vec<u16>) {
    let mut i = 0;
    while i < template.len() {
        let next = template.get(i + 1).map(|&u| u8::try_from(u).unwrap_or(0));
        match (template[i], next) {
            (36, Some(b'$')) => out.push(36),
            (36, Some(b'&')) => out.extend_from_slice(&s[at..at + len]),
            (36, Some(b'`')) => out.extend_from_slice(&s[..at]),
            (36, Some(b'\'')) => out.extend_from_slice(&s[at + len..]),
            (unit, _) => {
                out.push(unit);
                i += 1;
                continue;
            }
        }
        i += 2;
    }
}

/// Makes the replacement of a match: a template or a builtin function.
pub(super) type Replacer<'a> = dyn FnMut(&mut Meter, &[OVal]) -> Res<JsStr> + 'a;

fn replace(
    m: &mut Meter,
    s: &JsStr,
    args: &Args<'_>,
    all: bool,
    call: &mut Replacer<'_>,
) -> Res<OVal> {
    let needle = args.text(0)?;
    let callback = super::statics::as_function(&args.get(1)).is_some();
    let template = if callback { js("") } else { args.text(1)? };
    owe_search(s, &needle);
    let (mut out, mut done, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = find(s, &needle, from) {
        out.extend_from_slice(&s[done..at]);
        if callback {
            let parts = [
                OVal::Str(needle.clone()),
                OVal::Num(at as f64),
                OVal::Str(s.clone()),
            ];
            out.extend_from_slice(&call(m, &parts)?);
        } else {
            substitute(s, at, needle.len(), &template, &mut out);
        }
        done = at + needle.len();
        from = at + needle.len().max(1);
        if !all || from > s.len() {
            break;
        }
    }
    out.extend_from_slice(&s[done..]);
    Ok(OVal::units(out))
}

fn trimmed(s: &JsStr, start: bool, end: bool) -> OVal {
    let text = to_wtf8(s);
    let text = if start {
        wtf8::trim_start(&text)
    } else {
        &text
    };
    bytes(if end { wtf8::trim_end(text) } else { text })
}

fn html(s: &JsStr, name: &str, args: &Args<'_>) -> Res<Option<OVal>> {
    let (tag, attribute) = match name {
        "anchor" => ("a", "name"),
        "link" => ("a", "href"),
        "fontcolor" => ("font", "color"),
        "fontsize" => ("font", "size"),
        "big" | "blink" | "small" | "strike" | "sub" | "sup" => (name, ""),
        "bold" => ("b", ""),
        "fixed" => ("tt", ""),
        "italics" => ("i", ""),
        _ => return Ok(None),
    };
    let mut out = js(&format!("<{tag}")).to_vec();
    if !attribute.is_empty() {
        out.extend(format!(" {attribute}=\"").encode_utf16());
        for &u in args.text(0)?.iter() {
            if u == 34 {
                out.extend("&quot;".encode_utf16())
            } else {
                out.push(u)
            }
        }
        out.push(34);
    }
    out.push(62);
    out.extend_from_slice(s);
    out.extend(format!("</{tag}>").encode_utf16());
    Ok(Some(OVal::units(out)))
}

/// Sort weights of a text: letters without case and accents, then accents, then case (lower
/// first), then the code points.
fn weights(text: &[u16]) -> [Vec<u32>; 4] {
    let plain = to_wtf8(text);
    let parts = forms::normalize(forms::Form::Nfd, &plain).into_owned();
    let chars: Vec<char> = String::from_utf8_lossy(&parts).chars().collect();
    let is_mark = |c: char| matches!(c as u32, 0x300..=0x36F);
    let class = |c: char| match c {
        c if c.is_alphabetic() => 2,
        c if c.is_numeric() => 1,
        _ => 0,
    };
    let letters = chars.iter().filter(|c| !is_mark(**c));
    let folded = letters.clone().flat_map(|c| c.to_lowercase());
    [
        folded.map(|c| class(c) << 24 | c as u32).collect(),
        chars
            .iter()
            .filter(|c| is_mark(**c))
            .map(|c| *c as u32)
            .collect(),
        letters.map(|c| u32::from(c.is_uppercase())).collect(),
        chars.iter().map(|c| *c as u32).collect(),
    ]
}

/// Human order of texts, for Latin letters, digits and punctuation.
pub(super) fn locale_compare(a: &[u16], b: &[u16]) -> f64 {
    match weights(a).cmp(&weights(b)) {
        Ordering::Less => -1.0,
        Ordering::Equal => 0.0,
        Ordering::Greater => 1.0,
    }
}

/// Names of text methods, implemented below.
pub(super) const METHODS: &str = "\
    at charAt charCodeAt codePointAt concat endsWith includes indexOf lastIndexOf \
    localeCompare match matchAll normalize padEnd padStart repeat replace replaceAll search \
    slice split startsWith substr substring toLowerCase toUpperCase toLocaleLowerCase \
    toLocaleUpperCase toString toLocaleString trim trimStart trimEnd trimLeft trimRight \
    valueOf isWellFormed toWellFormed anchor big blink bold fixed fontcolor fontsize italics \
    link small strike sub sup hasOwnProperty isPrototypeOf propertyIsEnumerable";

/// Calls a text method; `None` if texts have no such method.
pub(super) fn method(
    m: &mut Meter,
    s: &JsStr,
    name: &str,
    arguments: &[OVal],
    call: &mut Replacer<'_>,
) -> Res<Option<OVal>> {
    let args = Args(arguments);
    let len = s.len();
    let index = |at: Option<usize>| OVal::Num(at.map_or(-1.0, |i| i as f64));
    Ok(Some(match name {
        "at" => text_index::at(args.integer(0)?, len).map_or(OVal::Undef, |i| part(s, i..i + 1)),
        "charAt" => text_index::position(args.integer(0)?, len)
            .map_or_else(|| OVal::str(""), |i| part(s, i..i + 1)),
        "charCodeAt" => OVal::Num(
            text_index::position(args.integer(0)?, len).map_or(f64::NAN, |i| f64::from(s[i])),
        ),
        "codePointAt" => text_index::position(args.integer(0)?, len)
            .map_or(OVal::Undef, |i| OVal::Num(f64::from(code_point(s, i)))),
        "concat" => {
            let mut out = s.to_vec();
            for v in arguments {
                out.extend_from_slice(&to_str(v)?);
            }
            OVal::units(out)
        }
        "endsWith" => {
            let needle = args.text(0)?;
            let end = text_index::clamp(args.integer_or(1, f64::INFINITY)?, len);
            OVal::Bool(s[..end].ends_with(&needle))
        }
        "startsWith" => {
            let needle = args.text(0)?;
            OVal::Bool(s[text_index::clamp(args.integer(1)?, len)..].starts_with(&needle))
        }
        "includes" => {
            let needle = args.text(0)?;
            OVal::Bool(look(s, &needle, text_index::clamp(args.integer(1)?, len)).is_some())
        }
        "indexOf" => {
            let needle = args.text(0)?;
            index(look(s, &needle, text_index::clamp(args.integer(1)?, len)))
        }
        "lastIndexOf" => {
            let needle = args.text(0)?;
            let from = args.optional(1)?.unwrap_or(f64::NAN);
            let from = if from.is_nan() {
                f64::INFINITY
            } else {
                from.trunc()
            };
            owe_search(s, &needle);
            let last = len
                .checked_sub(needle.len())
                .map(|l| l.min(text_index::clamp(from, len)));
            index(last.and_then(|l| (0..=l).rev().find(|&i| s[i..].starts_with(&needle))))
        }
        "localeCompare" => {
            let other = args.text(0)?;
            if *s != other {
                let ascii = is_ascii(s) && is_ascii(&other);
                let units = collated_units(s.len() + other.len(), ascii);
                m.charge(READ, Sizes::units(units))?;
            }
            OVal::Num(locale_compare(s, &other))
        }
        "match" => {
            let needle = if args.get(0).is_undef() {
                js("")
            } else {
                args.text(0)?
            };
            match look(s, &needle, 0) {
                Some(_) => OVal::array(vec![OVal::Str(needle)]),
                None => OVal::Null,
            }
        }
        "matchAll" => {
            let needle = if args.get(0).is_undef() {
                js("")
            } else {
                args.text(0)?
            };
            owe_search(s, &needle);
            let (mut out, mut from) = (Vec::new(), 0);
            while let Some(at) = find(s, &needle, from) {
                out.push(OVal::array(vec![OVal::Str(needle.clone())]));
                from = at + needle.len().max(1);
            }
            OVal::array(out)
        }
        "search" => {
            let needle = if args.get(0).is_undef() {
                js("")
            } else {
                args.text(0)?
            };
            index(look(s, &needle, 0))
        }
        "normalize" => {
            let form = if args.get(0).is_undef() {
                js("NFC")
            } else {
                args.text(0)?
            };
            let form =
                forms::Form::from_name(&to_wtf8(&form)).map_err(|e| Fail::new(e.message()))?;
            let normal = bytes(&forms::normalize(form, &to_wtf8(s)));
            if let OVal::Str(normal) = &normal
                && !is_ascii(s)
            {
                let units = normalized_units(s.len(), normal.len());
                super::meter::owe(READ.price(Sizes::units(units)));
            }
            normal
        }
        "padEnd" => pad(m, s, &args, false)?,
        "padStart" => pad(m, s, &args, true)?,
        "repeat" => repeat(m, s, &args)?,
        "replace" => replace(m, s, &args, false, call)?,
        "replaceAll" => replace(m, s, &args, true, call)?,
        "slice" => part(
            s,
            text_index::slice_range(args.integer(0)?, args.optional(1)?, len),
        ),
        "substr" => part(
            s,
            text_index::substr_range(args.integer(0)?, args.optional(1)?, len),
        ),
        "substring" => part(
            s,
            text_index::substring_range(args.integer(0)?, args.optional(1)?, len),
        ),
        "split" => {
            let limit = args.optional(1)?.map_or(u32::MAX, arith::to_uint32) as usize;
            let mut parts = match args.get(0) {
                OVal::Undef => vec![OVal::Str(s.clone())],
                v => {
                    let sep = to_str(&v)?;
                    match limit {
                        0 => Vec::new(),
                        _ => split(s, &sep),
                    }
                }
            };
            parts.truncate(limit);
            OVal::array(parts)
        }
        "toLowerCase" | "toLocaleLowerCase" => bytes(&case::to_lower(&to_wtf8(s))),
        "toUpperCase" | "toLocaleUpperCase" => bytes(&case::to_upper(&to_wtf8(s))),
        "toString" | "valueOf" | "toLocaleString" => OVal::Str(s.clone()),
        "trim" => trimmed(s, true, true),
        "trimStart" | "trimLeft" => trimmed(s, true, false),
        "trimEnd" | "trimRight" => trimmed(s, false, true),
        "isWellFormed" => OVal::Bool(String::from_utf16(s).is_ok()),
        "toWellFormed" => OVal::str(&String::from_utf16_lossy(s)),
        "hasOwnProperty" | "propertyIsEnumerable" => {
            let key = args.text(0)?;
            super::meter::pay_name(&key)?;
            let own = super::value::array_index(&key).is_some_and(|i| i < len);
            OVal::Bool(own || (name == "hasOwnProperty" && *key == *js("length")))
        }
        "isPrototypeOf" => OVal::Bool(false),
        _ => return html(s, name, &args),
    }))
}
