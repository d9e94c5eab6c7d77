//! JSON of programs whose expressions are written as texts (decision D70).

use crate::atom::form_of;
use crate::spell::{Dialect, Speller};
use a99_core::json::{Document, Kind, NodeId, write_json_string};
use a99_core::sig::{Binding, Signatures};

/// Levels of a document in which texts are looked for.
const MAX_LEVELS: u32 = 1_000;

/// Members whose value is data, whatever it looks like: schemas, and programs that run on
/// their own.
const DATA: [&[u8]; 4] = [b"inputSchema", b"schema", b"agentId", b"ast"];

/// The JSON text of a program of version 4 with its expression nodes written as texts, as
/// far as texts say them. It does the same and costs the same. Other programs stay as they
/// are.
#[must_use]
pub fn texts(program: &Document, atoms: &dyn Signatures) -> Vec<u8> {
    let version = program.get(program.root(), "a99");
    let mut out = Vec::new();
    if version.map(|version| program.kind(version)) == Some(Kind::Number(4.0)) {
        let mut writer = Writer {
            doc: program,
            atoms,
            speller: Speller::new(program, Dialect::Texts),
            out: &mut out,
        };
        writer.value(program.root(), false, 0);
    } else {
        program.write_json(program.root(), &mut out);
    }
    out
}

struct Writer<'d, 'o> {
    doc: &'d Document,
    atoms: &'d dyn Signatures,
    speller: Speller<'d>,
    out: &'o mut Vec<u8>,
}

impl Writer<'_, '_> {
    fn value(&mut self, node: NodeId, is_data: bool, level: u32) {
        let doc = self.doc;
        match doc.kind(node) {
            _ if level > MAX_LEVELS => doc.write_json(node, self.out),
            Kind::Object if !is_data && self.speller.can(node) => {
                let mut text = Vec::new();
                let mut as_they_are = |name: &[u8], out: &mut Vec<u8>| out.extend(name);
                self.speller.write(node, 0, &mut as_they_are, &mut text);
                self.out.extend(b"{\"=\":");
                write_json_string(&text, self.out);
                self.out.push(b'}');
            }
            Kind::Object => self.members(node, is_data, level),
            Kind::Array => {
                self.out.push(b'[');
                for (index, item) in doc.elements(node).enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    self.value(item, is_data, level + 1);
                }
                self.out.push(b']');
            }
            _ => doc.write_json(node, self.out),
        }
    }

    fn members(&mut self, node: NodeId, is_data: bool, level: u32) {
        let doc = self.doc;
        let tag = doc.get(node, "$expr").and_then(|tag| doc.str(tag));
        let op = doc.get(node, "op").and_then(|op| doc.str(op));
        let op = op.filter(|_| tag.is_none());
        let op = op.and_then(|op| str::from_utf8(op).ok());
        // Forms read what they hold themselves: steps, conditions, values.
        let is_form = |op: &str| form_of(op).is_some() || matches!(op, "memoize" | "cache");
        let atom = op.filter(|op| !is_form(op));
        let signature = atom.and_then(|op| self.atoms.signature(op));
        self.out.push(b'{');
        for (index, (key, value)) in doc.members(node).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write_json_string(key, self.out);
            self.out.push(b':');
            let as_written = signature.is_some_and(|signature| {
                let mut inputs = signature.inputs.iter();
                let input = inputs.find(|input| input.name.as_bytes() == key);
                input.is_some_and(|input| input.binding == Binding::Literal)
            });
            let is_literal = tag == Some(b"literal") && key == b"value";
            let is_data = is_data || as_written || is_literal || DATA.contains(&key);
            self.value(value, is_data, level + 1);
        }
        self.out.push(b'}');
    }
}
