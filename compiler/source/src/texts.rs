//! Writes the JSON of programs with expressions as texts (decision D70).

use crate::atom::form_of;
use crate::spell::{Dialect, Speller};
use a99_core::json::{Document, Kind, NodeId, write_json_string};
use a99_core::sig::{Binding, Signatures};

/// Maximum levels of a document in which expressions become texts.
const MAX_LEVELS: u32 = 1_000;

/// Members whose value is always data: schemas, and programs that run separately.
const DATA: [&[u8]; 4] = [b"inputSchema", b"schema", b"agentId", b"ast"];

/// Writes a program of version 4 as JSON with its expression nodes as texts, as far as texts can
/// express them. The program's behaviour and price stay the same. Programs of other versions stay
/// unchanged.
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
        // Forms themselves read their members: steps, conditions, values.
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
