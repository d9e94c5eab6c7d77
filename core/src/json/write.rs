//! JSON text: strings, and documents in the form of `JSON.stringify`.

use super::{Document, Kind, NodeId, Tag};
use crate::text::surrogate_at;
use crate::value::js_order;

/// Bytes written unescaped; 0xED may begin a surrogate.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain[0xED] = false;
    plain
};

/// Appends a WTF-8 string as a JSON string by ECMA-262 §25.5.2.3: short escapes where they exist,
/// `\u00xx` for other controls, lone surrogates as `\udXXX` (decision D36).
pub fn write_json_string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let (mut done, mut at) = (0, 0);
    while let Some(plain) = text[at..].iter().position(|b| !PLAIN[usize::from(*b)]) {
        at += plain;
        let byte = text[at];
        let (escape, width) = match byte {
            b'"' => (Escape::Short(b'"'), 1),
            b'\\' => (Escape::Short(b'\\'), 1),
            0x08 => (Escape::Short(b'b'), 1),
            0x09 => (Escape::Short(b't'), 1),
            0x0A => (Escape::Short(b'n'), 1),
            0x0C => (Escape::Short(b'f'), 1),
            0x0D => (Escape::Short(b'r'), 1),
            0xED => match surrogate_at(&text[at..]) {
                Some(unit) => (Escape::Unit(unit), 3),
                None => {
                    at += 1;
                    continue;
                }
            },
            control => (Escape::Unit(u16::from(control)), 1),
        };
        out.extend_from_slice(&text[done..at]);
        escape.write(out);
        done = at + width;
        at = done;
    }
    out.extend_from_slice(&text[done..]);
    out.push(b'"');
}

enum Escape {
    Short(u8),
    Unit(u16),
}

impl Escape {
    fn write(self, out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        match self {
            Self::Short(letter) => out.extend_from_slice(&[b'\\', letter]),
            Self::Unit(unit) => {
                out.extend_from_slice(b"\\u");
                for shift in [12, 8, 4, 0] {
                    out.push(HEX[usize::from((unit >> shift) & 0xF)]);
                }
            }
        }
    }
}

/// A container being written.
struct WriteFrame<'d> {
    children: &'d [u32],
    /// The order of decision D37, if it differs from the source order.
    order: Option<Vec<usize>>,
    next: usize,
    object: bool,
}

pub(super) fn write_document(doc: &Document, id: NodeId, out: &mut Vec<u8>) {
    let mut open: Vec<WriteFrame<'_>> = Vec::new();
    let mut at = id;
    loop {
        match doc.kind(at) {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::Bool(true) => out.extend_from_slice(b"true"),
            Kind::Bool(false) => out.extend_from_slice(b"false"),
            Kind::Number(number) => super::write_json_number(number, out),
            Kind::String(text) => write_json_string(text, out),
            Kind::Array => {
                out.push(b'[');
                open.push(WriteFrame {
                    children: doc.children(at, Tag::Array),
                    order: None,
                    next: 0,
                    object: false,
                });
            }
            Kind::Object => {
                out.push(b'{');
                open.push(WriteFrame {
                    children: doc.children(at, Tag::Object),
                    order: js_order(doc.members(at).map(|(key, _)| key)),
                    next: 0,
                    object: true,
                });
            }
        }
        loop {
            let Some(top) = open.last_mut() else { return };
            let Some(&child) = top.child() else {
                out.push(if top.object { b'}' } else { b']' });
                open.pop();
                continue;
            };
            if top.next > 0 {
                out.push(b',');
            }
            top.next += 1;
            if top.object {
                write_json_string(doc.key_before(child), out);
                out.push(b':');
            }
            at = NodeId(child);
            break;
        }
    }
}

impl<'d> WriteFrame<'d> {
    fn child(&self) -> Option<&'d u32> {
        match &self.order {
            None => self.children.get(self.next),
            Some(order) => self.children.get(*order.get(self.next)?),
        }
    }
}
