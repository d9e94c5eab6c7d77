//! Programs with expression texts parsed to nodes, for the source printer.

use a99_compiler::compat::parse_math;
use a99_compiler::expr::{Expr, parse_condition, parse_expression, to_expr_json};
use a99_core::grammar::expression_key;
use a99_core::json::{Document, Kind, NodeId, write_json_string};

/// Depth to which a document is searched for texts.
const MAX_LEVELS: u32 = 1_000;

/// Members whose value is always data.
const DATA: [&[u8]; 4] = [b"inputSchema", b"schema", b"agentId", b"ast"];

/// The JSON of a program, with a node in place of each readable expression text: conditions,
/// formulas, and values from version 4 on.
pub(crate) fn with_nodes(program: &Document) -> Vec<u8> {
    let version = program.get(program.root(), "a99");
    let is_current = version.map(|version| program.kind(version)) == Some(Kind::Number(4.0));
    let mut writer = Writer {
        doc: program,
        is_current,
        out: Vec::new(),
    };
    writer.value(program.root(), false, 0);
    writer.out
}

struct Writer<'d> {
    doc: &'d Document,
    is_current: bool,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, node: NodeId, is_data: bool, level: u32) {
        let doc = self.doc;
        match doc.kind(node) {
            _ if level > MAX_LEVELS => doc.write_json(node, &mut self.out),
            Kind::Object => {
                let text = self.text_of(node).filter(|_| self.is_current && !is_data);
                if !text.is_some_and(|text| self.text(text)) {
                    self.members(node, is_data, level);
                }
            }
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
            Kind::Number(number) if !number.is_finite() => self.out.extend(b"1e999"),
            _ => doc.write_json(node, &mut self.out),
        }
    }

    fn members(&mut self, node: NodeId, is_data: bool, level: u32) {
        let doc = self.doc;
        let op = doc.get(node, "op").and_then(|op| doc.str(op));
        let is_literal = doc.get(node, "$expr").and_then(|tag| doc.str(tag)) == Some(b"literal");
        self.out.push(b'{');
        for (index, (key, value)) in doc.members(node).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write_json_string(key, &mut self.out);
            self.out.push(b':');
            let is_code = op
                .and_then(expression_key)
                .is_some_and(|code| code.as_bytes() == key);
            let is_formula = key == b"expr" && !self.is_current;
            let read = if is_formula {
                Writer::formula
            } else {
                Writer::text
            };
            if is_code && !is_data && doc.str(value).is_some() && read(self, value) {
                continue;
            }
            let is_data = is_data || DATA.contains(&key) || is_literal && key == b"value";
            self.value(value, is_data, level + 1);
        }
        self.out.push(b'}');
    }

    /// The text of an expression in its text spelling.
    fn text_of(&self, node: NodeId) -> Option<NodeId> {
        let doc = self.doc;
        let is_text = |node: &NodeId| doc.str(*node).is_some();
        if doc.get(node, "$expr").and_then(|tag| doc.str(tag)) == Some(b"text") {
            return doc.get(node, "value").filter(is_text);
        }
        doc.get(node, "=")
            .filter(is_text)
            .filter(|_| doc.len(node) == 1)
    }

    /// Writes the nodes of a text; false if it cannot be parsed.
    fn text(&mut self, node: NodeId) -> bool {
        let text = self.doc.str(node).unwrap_or_default();
        let Ok(text) = str::from_utf8(text) else {
            return false;
        };
        let parsed = match self.is_current {
            true => parse_expression(text),
            false => parse_condition(text),
        };
        let Ok(parsed) = parsed else {
            return false;
        };
        self.nodes(&parsed)
    }

    /// Writes the nodes of a formula of an older program; false if it cannot be parsed.
    fn formula(&mut self, node: NodeId) -> bool {
        let text = self.doc.str(node).unwrap_or_default();
        let parsed = str::from_utf8(text)
            .ok()
            .and_then(|text| parse_math(text).ok());
        parsed.is_some_and(|parsed| self.nodes(&parsed))
    }

    fn nodes(&mut self, parsed: &Expr) -> bool {
        if parsed.root.is_none() {
            self.out.extend(br#"{"$expr":"ident","name":"undefined"}"#);
            return true;
        }
        self.out.extend(to_expr_json(parsed).to_string().as_bytes());
        true
    }
}
