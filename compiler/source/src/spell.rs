//! Writes expression nodes as text, in two dialects: expression texts of version 4 programs
//! (language section 3.10), and JavaScript.
//!
//! Both dialects have the same operators with the same precedence. Each part of a text becomes a
//! node, literals included. A node with a plain value as an operand is not spelled, because its
//! text would cost more.

use a99_core::builtins::{CallContext, Global, global, is_forbidden, is_function_in, is_method_in};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::text::surrogate_at;

pub(crate) use crate::quote::{is_name, property_key, quoted};

/// Maximum bytes of one expression text; texts may be 64 KiB long.
const MAX_TEXT: u32 = 60 << 10;

/// Maximum bytes of one JavaScript expression.
const MAX_SOURCE: u32 = 1 << 20;

/// Maximum levels of nested lists and objects; a node has at most three.
const MAX_LEVELS: u16 = 600;

/// Precedence levels: the ternary, `||` and `??`, ..., members and names.
pub(crate) const TERNARY: u8 = 0;
const OR: u8 = 1;
const AND: u8 = 2;
const EQUALITY: u8 = 6;
const RELATION: u8 = 7;
const SUM: u8 = 9;
const PRODUCT: u8 = 10;
const POWER: u8 = 11;
pub(crate) const UNARY: u8 = 12;
/// A number: a dot must not follow it directly.
const NUMBER: u8 = 13;
pub(crate) const PRIMARY: u8 = 14;

/// Reserved words of expression texts.
const WORDS: [&str; 35] = [
    "true",
    "false",
    "null",
    "this",
    "typeof",
    "and",
    "or",
    "gt",
    "lt",
    "ge",
    "le",
    "eq",
    "neq",
    "in",
    "instanceof",
    "new",
    "function",
    "class",
    "async",
    "await",
    "yield",
    "void",
    "delete",
    "let",
    "const",
    "var",
    "return",
    "throw",
    "if",
    "else",
    "while",
    "for",
    "do",
    "switch",
    "case",
];

/// Returns the precedence of an operator.
fn operator(op: &[u8]) -> Option<u8> {
    Some(match op {
        b"||" | b"??" => OR,
        b"&&" => AND,
        b"==" | b"!=" | b"===" | b"!==" => EQUALITY,
        b"<" | b">" | b"<=" | b">=" => RELATION,
        b"+" | b"-" => SUM,
        b"*" | b"/" | b"%" => PRODUCT,
        b"**" => POWER,
        _ => return None,
    })
}

/// Dialect of the spelled texts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Expression texts of version 4 programs.
    Texts,
    /// JavaScript expressions of sources.
    JavaScript,
}

/// Callback that writes the name of a variable at its place.
pub(crate) type Names<'n> = dyn FnMut(&[u8], &mut Vec<u8>) + 'n;

/// Spells the expression nodes of a document as text.
pub(crate) struct Speller<'d> {
    pub(crate) doc: &'d Document,
    dialect: Dialect,
    /// True for a program of version 4.
    is_current: bool,
    /// Bytes of the text of each node; 0 if the node cannot be spelled.
    sizes: Vec<u32>,
}

impl<'d> Speller<'d> {
    pub(crate) fn new(doc: &'d Document, dialect: Dialect) -> Speller<'d> {
        let count = doc.ends().len();
        let version = doc.get(doc.root(), "a99").map(|version| doc.kind(version));
        let mut speller = Speller {
            doc,
            dialect,
            is_current: version == Some(Kind::Number(4.0)),
            sizes: vec![0; count],
        };
        let max = match dialect {
            Dialect::Texts => MAX_TEXT,
            Dialect::JavaScript => MAX_SOURCE,
        };
        let mut levels = vec![0_u16; count];
        // Descendants of a node have larger numbers.
        for at in (0..count as u32).rev() {
            let node = NodeId(at);
            let items = doc
                .elements(node)
                .chain(doc.members(node).map(|(_, value)| value));
            let inner = items.map(|item| levels[item.0 as usize]).max();
            let level = inner.map_or(0, |inner| inner.saturating_add(1));
            levels[at as usize] = level;
            let size = speller.size(node).unwrap_or(0);
            let fits = size <= max && level <= MAX_LEVELS;
            speller.sizes[at as usize] = if fits { size } else { 0 };
        }
        speller
    }

    /// True if the node is an expression that can be spelled.
    pub(crate) fn can(&self, node: NodeId) -> bool {
        self.sizes
            .get(node.0 as usize)
            .is_some_and(|size| *size > 0)
    }

    pub(crate) fn str(&self, node: NodeId, key: &str) -> Option<&'d [u8]> {
        self.doc.str(self.doc.get(node, key)?)
    }

    fn child(&self, node: NodeId, key: &str) -> Option<u32> {
        let size = self.sizes[self.doc.get(node, key)?.0 as usize];
        (size > 0).then_some(size + 2)
    }

    fn children(&self, node: NodeId, key: &str) -> Option<u32> {
        let list = self.doc.get(node, key)?;
        if self.doc.kind(list) != Kind::Array {
            return None;
        }
        let sizes = self
            .doc
            .elements(list)
            .map(|one| self.sizes[one.0 as usize]);
        sizes.into_iter().try_fold(0_u32, |sum, size| {
            (size > 0).then_some(sum.saturating_add(size + 2))
        })
    }

    pub(crate) fn is_script(&self) -> bool {
        self.dialect == Dialect::JavaScript
    }

    /// Estimates the bytes of plain data, which only JavaScript accepts as an operand.
    fn data(&self, node: NodeId) -> Option<u32> {
        let doc = self.doc;
        let size = match doc.kind(node) {
            Kind::String(text) => text.len() as u32,
            Kind::Number(number) if !number.is_finite() => return None,
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => 8,
            Kind::Array => self.all(doc.elements(node))?,
            Kind::Object => {
                let mut keys = doc.members(node).map(|(key, _)| key);
                if keys.any(is_forbidden) {
                    return None;
                }
                self.all(doc.members(node).map(|(_, value)| value))?
            }
        };
        Some(size.saturating_add(2))
    }

    fn all(&self, mut nodes: impl Iterator<Item = NodeId>) -> Option<u32> {
        nodes.try_fold(0_u32, |sum, node| {
            let size = self.sizes[node.0 as usize];
            (size > 0).then_some(sum.saturating_add(size + 8))
        })
    }

    /// Estimates the bytes of a node's text; `None` if it cannot be spelled.
    fn size(&self, node: NodeId) -> Option<u32> {
        let doc = self.doc;
        let Some(tag) = self.str(node, "$expr") else {
            return self.data(node).filter(|_| self.is_script());
        };
        let (fields, size): (&[&str], u32) = match tag {
            b"literal" if doc.get(node, "value").is_none() => (&[], 9),
            b"literal" => (&["value"], self.literal(doc.get(node, "value")?)?),
            b"ident" => (&["name"], self.word(self.str(node, "name")?)?),
            b"member" => {
                let property = doc.get(node, "property")?;
                let object = doc.get(node, "object")?;
                let name = self
                    .str(object, "name")
                    .and_then(|name| str::from_utf8(name).ok());
                let is_namespace = matches!(name.and_then(global), Some(Global::Namespace(_)));
                if self.is_script() && is_namespace && doc.str(property).is_some_and(is_forbidden) {
                    return None;
                }
                let size = match doc.str(property) {
                    // Older programs refuse forbidden names on every object (D68).
                    Some(name) if is_forbidden(name) && self.is_script() && !self.is_current => {
                        return None;
                    }
                    Some(name) if is_name(name) || self.is_script() => name.len() as u32,
                    Some(_) => return None,
                    None => self.child(node, "property")?,
                };
                let fields = &["object", "property", "computed", "optional"];
                (fields, self.child(node, "object")? + size + 2)
            }
            b"binary" | b"logical" => {
                operator(self.str(node, "op")?)?;
                let sides = self.child(node, "left")? + self.child(node, "right")?;
                (&["op", "left", "right"], sides + 5)
            }
            b"unary" => {
                let op = self.str(node, "op")?;
                if !matches!(op, b"!" | b"-" | b"+" | b"typeof") {
                    return None;
                }
                (&["op", "argument"], self.child(node, "argument")? + 8)
            }
            b"conditional" => {
                let test = self.child(node, "test")?;
                let sides = self.child(node, "consequent")? + self.child(node, "alternate")?;
                (&["test", "consequent", "alternate"], test + sides + 6)
            }
            b"array" => (&["elements"], self.children(node, "elements")? + 2),
            b"object" => (&["properties"], self.properties(node)?),
            b"context" if self.is_current => {
                let path = self.str(node, "path")?;
                str::from_utf8(path).ok()?;
                (&["path"], path.len() as u32 * 2 + 12)
            }
            b"call" => {
                let callee = str::from_utf8(self.str(node, "callee")?).ok()?;
                if !is_function_in(callee, self.context()) || self.is_script() && callee == "Error"
                {
                    return None;
                }
                let size = self.children(node, "arguments")? + callee.len() as u32;
                (&["callee", "arguments"], size + 2)
            }
            b"methodCall" => {
                let method = str::from_utf8(self.str(node, "method")?).ok()?;
                if !is_method_in(method, self.context()) || self.takes_callback(node, method) {
                    return None;
                }
                // A source writes this call as `new Date(value)`.
                let arguments = doc.get(node, "arguments");
                let is_one = arguments.is_some_and(|list| doc.len(list) == 1);
                if self.is_date(node) && !(is_one && doc.get(node, "optional").is_none()) {
                    return None;
                }
                let size = self.child(node, "object")? + self.children(node, "arguments")?;
                let fields = &["object", "method", "arguments", "optional"];
                (fields, size + method.len() as u32 + 4)
            }
            _ => return None,
        };
        // Spelling the node would lose unknown members.
        let is_known = |key: &[u8]| key == b"$expr" || fields.iter().any(|f| f.as_bytes() == key);
        let only = doc.members(node).all(|(key, _)| is_known(key));
        only.then_some(size.saturating_add(1))
    }

    fn context(&self) -> CallContext {
        match self.dialect {
            Dialect::Texts => CallContext::Condition,
            Dialect::JavaScript => CallContext::Expression,
        }
    }

    /// True if a source would read an argument of the call as a callback; no node is a callback.
    fn takes_callback(&self, node: NodeId, method: &str) -> bool {
        let arguments = self.doc.get(node, "arguments");
        let count = arguments.map_or(0, |list| self.doc.len(list));
        let most = usize::from(method == "from");
        let with = arguments.and_then(|list| self.doc.element(list, 1));
        let is_replaced = matches!(method, "replace" | "replaceAll")
            && with.is_some_and(|with| self.is_function(with));
        self.is_script() && (is_replaced || crate::callback::takes_callback(method) && count > most)
    }

    /// True if a method belongs to this namespace.
    pub(crate) fn is_of(&self, node: NodeId, namespace: &[u8]) -> bool {
        let object = self.doc.get(node, "object");
        object.is_some_and(|object| self.str(object, "name") == Some(namespace))
    }

    fn literal(&self, value: NodeId) -> Option<u32> {
        if self.is_script() {
            return self.data(value);
        }
        match self.doc.kind(value) {
            Kind::Null | Kind::Bool(_) => Some(5),
            Kind::Number(number) if number.is_finite() && number.is_sign_positive() => Some(24),
            Kind::String(text) => {
                let alone = (0..text.len()).any(|at| surrogate_at(&text[at..]).is_some());
                (!alone).then(|| (text.len() as u32).saturating_mul(2) + 2)
            }
            _ => None,
        }
    }

    fn word(&self, name: &[u8]) -> Option<u32> {
        let text = str::from_utf8(name).ok()?;
        let is_written = is_name(name) && !WORDS.contains(&text);
        (is_written || self.is_script()).then_some(name.len() as u32)
    }

    fn properties(&self, node: NodeId) -> Option<u32> {
        let doc = self.doc;
        let list = doc.get(node, "properties")?;
        let mut size = 2_u32;
        for property in doc.elements(list) {
            let key = match self.str(property, "key") {
                Some(key) if is_forbidden(key) || str::from_utf8(key).is_err() => return None,
                Some(key) => key.len() as u32 * 2,
                None => {
                    let key = doc.get(property, "key")?;
                    // Only a node can be a computed key.
                    doc.get(key, "$expr").filter(|_| self.is_current)?;
                    self.child(property, "key")?
                }
            };
            if doc.len(property) != 2 {
                return None;
            }
            size = size.saturating_add(key + 4);
            size = size.saturating_add(self.child(property, "value")?);
        }
        (doc.kind(list) == Kind::Array).then_some(size)
    }

    fn level(&self, node: NodeId) -> u8 {
        match self.str(node, "$expr").unwrap_or_default() {
            b"conditional" => TERNARY,
            b"binary" | b"logical" => self.str(node, "op").and_then(operator).unwrap_or(PRIMARY),
            b"unary" => UNARY,
            b"methodCall" => self.bit_operator(node).map_or(PRIMARY, |(_, level)| level),
            b"" => self.constant_level(Some(node)),
            b"literal" => self.constant_level(self.doc.get(node, "value")),
            _ => PRIMARY,
        }
    }

    fn constant_level(&self, value: Option<NodeId>) -> u8 {
        match value.map(|value| self.doc.kind(value)) {
            Some(Kind::Number(number)) if number.is_sign_negative() => UNARY,
            Some(Kind::Number(_)) => NUMBER,
            // Braces could start a block.
            Some(Kind::Object) => OR,
            _ => PRIMARY,
        }
    }

    /// Appends the text of a node that can be spelled, in parentheses if its precedence is below
    /// `least`.
    pub(crate) fn write(&self, node: NodeId, least: u8, names: &mut Names<'_>, out: &mut Vec<u8>) {
        let wrapped = self.level(node) < least;
        if wrapped {
            out.push(b'(');
        }
        self.bare(node, names, out);
        if wrapped {
            out.push(b')');
        }
    }

    fn field(&self, node: NodeId, key: &str, least: u8, names: &mut Names<'_>, out: &mut Vec<u8>) {
        if let Some(child) = self.doc.get(node, key) {
            self.write(child, least, names, out);
        }
    }

    fn bare(&self, node: NodeId, names: &mut Names<'_>, out: &mut Vec<u8>) {
        let doc = self.doc;
        let text = |key: &str| self.str(node, key).unwrap_or_default();
        let is_optional = || {
            let flag = doc.get(node, "optional").map(|flag| doc.kind(flag));
            flag == Some(Kind::Bool(true))
        };
        match text("$expr") {
            b"literal" => match doc.get(node, "value") {
                Some(value) => self.constant(value, out),
                None => out.extend(b"undefined"),
            },
            b"" => self.constant(node, out),
            b"ident" => names(text("name"), out),
            b"member" => {
                self.field(node, "object", PRIMARY, names, out);
                match doc.get(node, "property").map(|property| doc.kind(property)) {
                    Some(Kind::String(name)) if !is_name(name) => {
                        out.extend(if is_optional() { &b"?.["[..] } else { b"[" });
                        quoted(name, out);
                        out.push(b']');
                    }
                    Some(Kind::String(name)) => {
                        out.extend(if is_optional() { &b"?."[..] } else { b"." });
                        out.extend(name);
                    }
                    _ => {
                        out.extend(if is_optional() { &b"?.["[..] } else { b"[" });
                        self.field(node, "property", TERNARY, names, out);
                        out.push(b']');
                    }
                }
            }
            b"binary" | b"logical" => match self.holes_of(node) {
                Some(operands) if self.is_script() => self.template(&operands, names, out),
                _ => self.infix(node, text("op"), names, out),
            },
            b"unary" => self.prefix(node, text("op"), names, out),
            b"conditional" => {
                self.field(node, "test", OR, names, out);
                out.extend(b" ? ");
                self.field(node, "consequent", OR, names, out);
                out.extend(b" : ");
                self.field(node, "alternate", TERNARY, names, out);
            }
            b"array" => {
                out.push(b'[');
                self.list(node, "elements", names, out);
                out.push(b']');
            }
            b"object" => self.object(node, names, out),
            b"context" => {
                out.extend(b"context(");
                quoted(text("path"), out);
                out.push(b')');
            }
            b"call" => {
                let callee = text("callee");
                let arguments = self.doc.get(node, "arguments");
                let is_given = arguments.is_some_and(|list| self.doc.len(list) > 0);
                // The conversion fails for values that are not dates.
                let is_sure = self.is_script() && callee == b"Date" && is_given;
                if is_sure {
                    out.push(b'(');
                }
                if self.is_script() && matches!(callee, b"Date" | b"Set") {
                    out.extend(b"new ");
                }
                out.extend(callee);
                self.arguments(node, names, out);
                if is_sure {
                    out.extend(b" satisfies Date)");
                }
            }
            _ if self.bit_operator(node).is_some() => self.bits(node, names, out),
            _ if self.is_map(node) => {
                out.extend(b"new Map");
                self.arguments(node, names, out);
            }
            _ if self.is_date(node) => {
                out.extend(b"new Date");
                self.arguments(node, names, out);
            }
            _ => {
                self.field(node, "object", PRIMARY, names, out);
                out.extend(if is_optional() { &b"?."[..] } else { b"." });
                out.extend(text("method"));
                if self.copies_first(node) {
                    out.extend(b"({}, ");
                    self.list(node, "arguments", names, out);
                    return out.push(b')');
                }
                self.arguments(node, names, out);
            }
        }
    }

    fn infix(&self, node: NodeId, op: &[u8], names: &mut Names<'_>, out: &mut Vec<u8>) {
        let level = operator(op).unwrap_or(PRIMARY);
        // JavaScript does not mix `??` with `&&` and `||`.
        let mixed = |key: &str| {
            let side = self.doc.get(node, key);
            let other = side
                .and_then(|side| self.str(side, "op"))
                .unwrap_or_default();
            let logical = |op: &[u8]| matches!(op, b"&&" | b"||" | b"??");
            logical(op) && logical(other) && other != op && (op == b"??" || other == b"??")
        };
        let (left, right) = match op {
            b"**" => (NUMBER, level),
            _ => (level, level + 1),
        };
        let left = if mixed("left") { PRIMARY } else { left };
        let right = if mixed("right") { PRIMARY } else { right };
        self.field(node, "left", left, names, out);
        out.push(b' ');
        out.extend(op);
        out.push(b' ');
        self.field(node, "right", right, names, out);
    }

    fn prefix(&self, node: NodeId, op: &[u8], names: &mut Names<'_>, out: &mut Vec<u8>) {
        out.extend(op);
        let argument = self.doc.get(node, "argument");
        let inner = argument.and_then(|argument| self.str(argument, "$expr"));
        // `--x` is another operator.
        let again = matches!(op, b"-" | b"+") && inner == Some(b"unary");
        if op == b"typeof" {
            out.push(b' ');
        }
        self.field(
            node,
            "argument",
            if again { NUMBER } else { UNARY },
            names,
            out,
        );
    }

    fn list(&self, node: NodeId, key: &str, names: &mut Names<'_>, out: &mut Vec<u8>) {
        let list = self.doc.get(node, key);
        let items = list.into_iter().flat_map(|list| self.doc.elements(list));
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.extend(b", ");
            }
            self.write(item, TERNARY, names, out);
        }
    }

    fn arguments(&self, node: NodeId, names: &mut Names<'_>, out: &mut Vec<u8>) {
        out.push(b'(');
        self.list(node, "arguments", names, out);
        out.push(b')');
    }

    /// Appends a literal.
    pub(crate) fn constant(&self, value: NodeId, out: &mut Vec<u8>) {
        crate::quote::constant(self.doc, value, out);
    }

    fn object(&self, node: NodeId, names: &mut Names<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        let list = self.doc.get(node, "properties");
        let properties = list.into_iter().flat_map(|list| self.doc.elements(list));
        for (index, property) in properties.enumerate() {
            if index > 0 {
                out.extend(b", ");
            }
            let Some(key) = self.str(property, "key") else {
                out.push(b'[');
                self.field(property, "key", TERNARY, names, out);
                out.extend(b"]: ");
                self.field(property, "value", TERNARY, names, out);
                continue;
            };
            let value = self.doc.get(property, "value");
            let name = value.and_then(|value| self.str(value, "name"));
            let tag = value.and_then(|value| self.str(value, "$expr"));
            if tag == Some(b"ident") && name == Some(key) && is_name(key) {
                let mut value = Vec::new();
                self.field(property, "value", TERNARY, names, &mut value);
                if value == key {
                    out.extend(key);
                    continue;
                }
            }
            property_key(key, out);
            out.extend(b": ");
            self.field(property, "value", TERNARY, names, out);
        }
        out.push(b'}');
    }
}
