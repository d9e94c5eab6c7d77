//! The string methods that wrap text in HTML tags (ECMA-262 §B.2.2).

use super::{StrFn, arg, charge_text};
use crate::coerce::to_str;
use crate::heap::{Str, Val};
use crate::native::{Cx, Fault};

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, StrFn)] = &[
    ("anchor", |cx, s, args| attribute(cx, s, "a", "name", args)),
    ("big", |cx, s, _| wrap(cx, s, "<big>", "</big>")),
    ("blink", |cx, s, _| wrap(cx, s, "<blink>", "</blink>")),
    ("bold", |cx, s, _| wrap(cx, s, "<b>", "</b>")),
    ("fixed", |cx, s, _| wrap(cx, s, "<tt>", "</tt>")),
    ("fontcolor", |cx, s, args| {
        attribute(cx, s, "font", "color", args)
    }),
    ("fontsize", |cx, s, args| {
        attribute(cx, s, "font", "size", args)
    }),
    ("italics", |cx, s, _| wrap(cx, s, "<i>", "</i>")),
    ("link", |cx, s, args| attribute(cx, s, "a", "href", args)),
    ("small", |cx, s, _| wrap(cx, s, "<small>", "</small>")),
    ("strike", |cx, s, _| wrap(cx, s, "<strike>", "</strike>")),
    ("sub", |cx, s, _| wrap(cx, s, "<sub>", "</sub>")),
    ("sup", |cx, s, _| wrap(cx, s, "<sup>", "</sup>")),
];

fn wrap(cx: &mut Cx<'_>, s: Str, open: &str, close: &str) -> Result<Val, Fault> {
    let units = open.len() + s.units() + close.len();
    charge_text(cx, units)?;
    let mark = cx
        .heap
        .begin_str(open.len() + s.len_bytes() + close.len())?;
    cx.heap.build_bytes(mark, open.as_bytes())?;
    cx.build(mark, s)?;
    cx.heap.build_bytes(mark, close.as_bytes())?;
    Ok(Val::Str(cx.built(mark, units)))
}

fn attribute(cx: &mut Cx<'_>, s: Str, tag: &str, name: &str, args: &[Val]) -> Result<Val, Fault> {
    let value = to_str(cx, arg(args, 0))?;
    let quotes = cx.bytes(value).iter().filter(|b| **b == b'"').count();
    let value_bytes = value.len_bytes() + quotes * ("&quot;".len() - 1);
    // <tag name="value">s</tag>
    let markup = 2 * tag.len() + name.len() + 9;
    let value_units = value.units() + value_bytes - value.len_bytes();
    charge_text(cx, markup + value_units + s.units())?;
    let mut out = super::strings_cut::buffer(cx, markup + value_bytes + s.len_bytes())?;
    out.extend_from_slice(format!("<{tag} {name}=\"").as_bytes());
    for (i, piece) in cx.bytes(value).split(|b| *b == b'"').enumerate() {
        if i > 0 {
            out.extend_from_slice(b"&quot;");
        }
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\">");
    out.extend_from_slice(cx.bytes(s));
    out.extend_from_slice(format!("</{tag}>").as_bytes());
    cx.str(&out)
}
