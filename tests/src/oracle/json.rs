//! `JSON.parse` and `JSON.stringify` of guest programs (ECMA-262 §25.5), and
//! the canonical text of hashes.

use super::meter::pay_metered;
use super::value::{Fail, JsStr, OVal, Obj, Res, fail, js, ordered_keys, to_wtf8};
use a99_core::costs::{PARSED_CONTAINER, READ, Sizes, json_list, json_object};
use a99_ecma::{number_parse, number_text};
use std::rc::Rc;

/// Nesting beyond this is refused, as at every boundary (decision D21).
const MAX_DEPTH: usize = 512;

struct Reader<'a> {
    text: &'a [u16],
    at: usize,
}

/// `JSON.parse` of a text.
pub(super) fn parse(text: &[u16]) -> Res<OVal> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        reader.bad()
    } else {
        Ok(value)
    }
}

impl Reader<'_> {
    fn bad<T>(&self) -> Res<T> {
        match self.text.get(self.at) {
            None => fail("JSON Parse error: Unexpected EOF"),
            Some(&u) => fail(format!(
                "JSON Parse error: Unexpected token '{}' at position {}",
                String::from_utf16_lossy(&[u]),
                self.at
            )),
        }
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(9 | 10 | 13 | 32)) {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: u8) -> bool {
        let hit = self.text.get(self.at) == Some(&u16::from(c));
        self.at += usize::from(hit);
        hit
    }

    fn word(&mut self, word: &str, value: OVal) -> Res<OVal> {
        for c in word.bytes() {
            if !self.eat(c) {
                return self.bad();
            }
        }
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Res<OVal> {
        if depth > MAX_DEPTH {
            return fail("JSON Parse error: nested too deeply");
        }
        self.space();
        match self
            .text
            .get(self.at)
            .map(|&u| char::from_u32(u32::from(u)).unwrap_or('?'))
        {
            Some('n') => self.word("null", OVal::Null),
            Some('t') => self.word("true", OVal::Bool(true)),
            Some('f') => self.word("false", OVal::Bool(false)),
            Some('"') => Ok(OVal::Str(self.string()?)),
            Some('[') => self.array(depth),
            Some('{') => self.object(depth),
            Some('-' | '0'..='9') => self.number(),
            _ => self.bad(),
        }
    }

    fn array(&mut self, depth: usize) -> Res<OVal> {
        pay_metered(READ.price(Sizes::elements(PARSED_CONTAINER)))?;
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.eat(b']') {
            return Ok(OVal::array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.eat(b']') {
                return Ok(OVal::array(items));
            }
            if !self.eat(b',') {
                return self.bad();
            }
        }
    }

    fn object(&mut self, depth: usize) -> Res<OVal> {
        pay_metered(READ.price(Sizes::elements(PARSED_CONTAINER)))?;
        self.at += 1;
        let members = Obj::new();
        self.space();
        if self.eat(b'}') {
            return Ok(OVal::object(members));
        }
        loop {
            self.space();
            if self.text.get(self.at) != Some(&34) {
                return self.bad();
            }
            let key = self.string()?;
            self.space();
            if !self.eat(b':') {
                return self.bad();
            }
            let value = self.value(depth + 1)?;
            members.insert(key, value);
            self.space();
            if self.eat(b'}') {
                return Ok(OVal::object(members));
            }
            if !self.eat(b',') {
                return self.bad();
            }
        }
    }

    fn string(&mut self) -> Res<JsStr> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some(&u) = self.text.get(self.at) else {
                return self.bad();
            };
            match u {
                0..=31 => return self.bad(),
                34 => {
                    self.at += 1;
                    return Ok(out.into());
                }
                92 => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                _ => {
                    out.push(u);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Res<u16> {
        let Some(&u) = self.text.get(self.at) else {
            return self.bad();
        };
        let plain = match u8::try_from(u).unwrap_or(0) {
            b'"' => b'"',
            b'\\' => b'\\',
            b'/' => b'/',
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let hex = self
                    .text
                    .get(self.at + 1..self.at + 5)
                    .map(String::from_utf16_lossy);
                let hex = hex.filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
                let Some(unit) = hex.and_then(|h| u16::from_str_radix(&h, 16).ok()) else {
                    return self.bad();
                };
                self.at += 5;
                return Ok(unit);
            }
            _ => return self.bad(),
        };
        self.at += 1;
        Ok(u16::from(plain))
    }

    fn number(&mut self) -> Res<OVal> {
        let start = self.at;
        while matches!(
            self.text.get(self.at),
            Some(43 | 45 | 46 | 48..=57 | 69 | 101)
        ) {
            self.at += 1;
        }
        let bytes = to_wtf8(&self.text[start..self.at]);
        match number_parse::json_number(&bytes) {
            Some(n) => Ok(OVal::Num(n)),
            None => {
                self.at = start;
                self.bad()
            }
        }
    }
}

/// Options of `JSON.stringify`.
#[derive(Default)]
pub(super) struct Style {
    /// The text of one indentation step; empty for the compact form.
    pub indent: Vec<u16>,
    /// The keys to write (the array form of `replacer`).
    pub keys: Option<Vec<JsStr>>,
    /// Whether keys are sorted by units (the canonical form).
    pub sorted: bool,
    /// True if the run pays for more than the written units.
    pub paid: bool,
    /// Length of the array that gave `keys`.
    pub listed: usize,
}

impl Style {
    fn formatted(&self, units: usize) {
        if self.paid {
            super::meter::formatted(units);
        }
    }

    fn container(&self, elements: usize) -> Res<()> {
        match self.paid {
            true => pay_metered(READ.price(Sizes::elements(elements))),
            false => Ok(()),
        }
    }
}

/// Compact text; the run pays for all but its units.
pub(super) fn stringify_paid(value: &OVal) -> Res<Option<Vec<u16>>> {
    let style = Style {
        paid: true,
        ..Style::default()
    };
    stringify(value, &style)
}

/// `JSON.stringify`; `None` for a value without JSON text.
pub(super) fn stringify(value: &OVal, style: &Style) -> Res<Option<Vec<u16>>> {
    let mut out = Vec::new();
    let written = super::meter::unformatted(write(value, style, &mut Vec::new(), &mut out))?;
    Ok(written.then_some(out))
}

/// Writes a value; `open` are the enclosing arrays and objects.
fn write(value: &OVal, style: &Style, open: &mut Vec<usize>, out: &mut Vec<u16>) -> Res<bool> {
    let own = match value {
        OVal::Arr(r) | OVal::Set(r) => Some(Rc::as_ptr(r) as usize),
        OVal::Obj(r) => Some(Rc::as_ptr(r) as usize),
        _ => None,
    };
    if own.is_some_and(|own| open.contains(&own)) || open.len() > MAX_DEPTH {
        return Err(Fail::new(
            "JSON.stringify cannot serialize cyclic structures.",
        ));
    }
    let depth = open.len();
    open.extend(own);
    let mut put = |s: &str| out.extend(s.encode_utf16());
    match value {
        OVal::Undef | OVal::Fn(_) => return Ok(false),
        OVal::Null => put("null"),
        OVal::Bool(b) => put(if *b { "true" } else { "false" }),
        OVal::Num(n) => {
            let text = match n.is_finite() {
                true => number_text::number_to_string(*n),
                false => "null".to_owned(),
            };
            style.formatted(text.len());
            put(&text);
        }
        OVal::Str(s) => quote(s, out),
        OVal::Date(ms) => match super::dates::iso(**ms) {
            Some(text) => {
                style.formatted(text.len() + 2);
                quote(&js(&text), out);
            }
            None => return fail("Invalid Date"),
        },
        OVal::Ns(_) | OVal::Map(_) => put("{}"),
        OVal::Arr(items) | OVal::Set(items) => {
            let items = items.borrow();
            style.container(json_list(items.len()))?;
            group(out, style, depth, (b'[', b']'), items.len(), |i, out| {
                if !write(&items[i], style, open, out)? {
                    out.extend("null".encode_utf16());
                }
                Ok(())
            })?;
        }
        OVal::Obj(obj) => {
            style.container(json_object(obj.len()) + style.listed)?;
            let mut keys = match &style.keys {
                Some(list) => list
                    .iter()
                    .filter(|k| obj.contains_key(k))
                    .cloned()
                    .collect(),
                None => ordered_keys(obj),
            };
            if style.sorted {
                keys.sort();
            }
            keys.retain(|k| !matches!(obj.member(k), OVal::Undef | OVal::Fn(_)));
            group(out, style, depth, (b'{', b'}'), keys.len(), |i, out| {
                quote(&keys[i], out);
                out.push(58);
                if !style.indent.is_empty() {
                    out.push(32);
                }
                write(&obj.member(&keys[i]), style, open, out).map(|_| ())
            })?;
        }
    }
    open.truncate(depth);
    Ok(true)
}

fn group(
    out: &mut Vec<u16>,
    style: &Style,
    depth: usize,
    (open, close): (u8, u8),
    count: usize,
    mut item: impl FnMut(usize, &mut Vec<u16>) -> Res<()>,
) -> Res<()> {
    let line = |out: &mut Vec<u16>, steps: usize| {
        if !style.indent.is_empty() {
            out.push(10);
            (0..steps).for_each(|_| out.extend_from_slice(&style.indent));
        }
    };
    out.push(open.into());
    for i in 0..count {
        if i > 0 {
            out.push(44);
        }
        line(out, depth + 1);
        item(i, out)?;
    }
    if count > 0 {
        line(out, depth);
    }
    out.push(close.into());
    Ok(())
}

/// Writes a text in quotes; lone surrogates as `\udXXX` (decision D36).
fn quote(text: &[u16], out: &mut Vec<u16>) {
    out.push(34);
    for item in char::decode_utf16(text.iter().copied()) {
        match item {
            Ok('"') => out.extend("\\\"".encode_utf16()),
            Ok('\\') => out.extend("\\\\".encode_utf16()),
            Ok('\n') => out.extend("\\n".encode_utf16()),
            Ok('\r') => out.extend("\\r".encode_utf16()),
            Ok('\t') => out.extend("\\t".encode_utf16()),
            Ok('\u{8}') => out.extend("\\b".encode_utf16()),
            Ok('\u{c}') => out.extend("\\f".encode_utf16()),
            Ok(c) if c < ' ' => out.extend(format!("\\u{:04x}", c as u32).encode_utf16()),
            Ok(c) => out.extend_from_slice(c.encode_utf16(&mut [0; 2])),
            Err(lone) => {
                out.extend(format!("\\u{:04x}", lone.unpaired_surrogate()).encode_utf16());
            }
        }
    }
    out.push(34);
}
