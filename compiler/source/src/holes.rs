//! Spells a chain of `+` that begins with a text as a template literal.

use crate::quote::quoted;
use crate::spell::{Speller, TERNARY};
use a99_core::json::{Kind, NodeId};

impl<'d> Speller<'d> {
    /// The text of a literal.
    fn literal_text(&self, node: NodeId) -> Option<&'d [u8]> {
        let value = match self.doc.kind(node) {
            Kind::Object if self.str(node, "$expr") == Some(b"literal") => {
                self.doc.get(node, "value")?
            }
            Kind::Object => return None,
            _ => node,
        };
        self.doc.str(value)
    }

    /// The operands of a chain that a template literal of the same parts is lowered to: a text
    /// first, and never two texts in a row.
    pub(crate) fn holes_of(&self, node: NodeId) -> Option<Vec<NodeId>> {
        let mut operands = Vec::new();
        let mut inner = node;
        while self.str(inner, "$expr") == Some(b"binary") && self.str(inner, "op") == Some(b"+") {
            operands.push(self.doc.get(inner, "right")?);
            inner = self.doc.get(inner, "left")?;
        }
        operands.push(inner);
        operands.reverse();
        let texts: Vec<_> = operands.iter().map(|o| self.literal_text(*o)).collect();
        let is_first = texts.len() > 1 && texts[0].is_some_and(|text| str::from_utf8(text).is_ok());
        let alternates = texts.windows(2).all(|two| match two {
            [_, Some(text)] if text.is_empty() || str::from_utf8(text).is_err() => false,
            [before, after] => before.is_none() || after.is_none(),
            _ => true,
        });
        (is_first && alternates).then_some(operands)
    }

    pub(crate) fn template(
        &self,
        operands: &[NodeId],
        names: &mut crate::spell::Names<'_>,
        out: &mut Vec<u8>,
    ) {
        out.push(b'`');
        for operand in operands {
            match self.literal_text(*operand) {
                Some(text) => in_template(text, out),
                None => {
                    out.extend(b"${");
                    self.write(*operand, TERNARY, names, out);
                    out.push(b'}');
                }
            }
        }
        out.push(b'`');
    }
}

/// Writes the characters of a text between backticks.
fn in_template(text: &[u8], out: &mut Vec<u8>) {
    let mut quotes = Vec::new();
    quoted(text, &mut quotes);
    let inner = &quotes[1..quotes.len() - 1];
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        let next = inner.get(at + 1).copied();
        match (byte, next) {
            // The quote needs no escape here.
            (b'\\', Some(b'\'')) => {
                out.push(b'\'');
                at += 1;
            }
            (b'\\', Some(next)) => {
                out.extend([byte, next]);
                at += 1;
            }
            (b'`', _) | (b'$', Some(b'{')) => out.extend([b'\\', byte]),
            _ => out.push(byte),
        }
        at += 1;
    }
}
