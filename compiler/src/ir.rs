//! Intermediate form of expressions, common to expression nodes in JSON and condition texts.

use crate::expr::{self, BinOp, ExprId, ExprKind, LogOp, UnOp};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::text::wtf8_to_string_lossy;
use bumpalo::Bump;
use std::cell::{Cell, RefCell};

/// A place in the source.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct At {
    /// The node.
    pub node: NodeId,
    /// The bytes of its text, if it is one.
    pub inner: Option<(u32, u32)>,
}

impl From<NodeId> for At {
    fn from(node: NodeId) -> At {
        At { node, inner: None }
    }
}

impl From<(NodeId, Option<(u32, u32)>)> for At {
    fn from((node, inner): (NodeId, Option<(u32, u32)>)) -> At {
        At { node, inner }
    }
}

/// A literal that is no list and no object.
#[derive(Copy, Clone, Debug)]
pub enum Lit<'a> {
    /// `undefined`, also that of a missing part.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a [u8]),
}

/// An expression node.
#[derive(Copy, Clone, Debug)]
pub struct Ir<'a> {
    /// What it is.
    pub kind: IrKind<'a>,
    /// Costs fuel: a node with a `$expr` tag, or any node of a text.
    pub priced: bool,
    /// Its place.
    pub at: At,
}

/// The kinds of expression nodes.
#[derive(Copy, Clone, Debug)]
pub enum IrKind<'a> {
    /// A literal.
    Lit(Lit<'a>),
    /// An array or object literal of the source.
    Data(NodeId),
    /// A name.
    Ident(&'a [u8]),
    /// `object.property`.
    Member {
        /// Before the dot.
        object: &'a Ir<'a>,
        /// The name behind it.
        property: &'a [u8],
        /// Written `?.`.
        optional: bool,
    },
    /// `object[index]`.
    Index {
        /// Before the bracket.
        object: &'a Ir<'a>,
        /// Inside.
        index: &'a Ir<'a>,
        /// Written `?.[`.
        optional: bool,
    },
    /// `-x`.
    Unary(UnOp, &'a Ir<'a>),
    /// `x + y`.
    Binary(BinOp, &'a Ir<'a>, &'a Ir<'a>),
    /// `x && y`.
    Logical(LogOp, &'a Ir<'a>, &'a Ir<'a>),
    /// `x ? y : z`.
    Conditional(&'a Ir<'a>, &'a Ir<'a>, &'a Ir<'a>),
    /// `[x, y]`.
    Array(&'a [Ir<'a>]),
    /// `{x: y}`.
    Object(&'a [(ObjKey<'a>, Ir<'a>)]),
    /// A part of the request context, in programs of version 4 (D75).
    Context(&'a [u8]),
    /// `f(x)`.
    Call {
        /// The function's name.
        callee: &'a [u8],
        /// What it gets.
        args: &'a [Ir<'a>],
    },
    /// `object.name(x)`.
    Method {
        /// Before the dot.
        object: &'a Ir<'a>,
        /// The method's name.
        name: &'a [u8],
        /// What it gets.
        args: &'a [Ir<'a>],
        /// Written `?.`.
        optional: bool,
    },
    /// Evaluates the operands, then fails with the text.
    Fail {
        /// What is evaluated.
        operands: &'a [Ir<'a>],
        /// The text.
        message: &'a str,
        /// The warning at compile time.
        warn: Warn,
    },
}

/// The key of an object's member.
#[derive(Copy, Clone, Debug)]
pub enum ObjKey<'a> {
    /// A name.
    Name(&'a [u8]),
    /// In programs of version 4 (D67).
    Computed(&'a Ir<'a>),
}

/// The warning for a node that will fail.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Warn {
    /// An unknown node.
    Expression,
    /// A text with an unknown operator or function.
    Text,
}

/// JavaScript's `String(x)` of a JSON scalar, for names.
pub(crate) fn key_text<'a>(doc: &'a Document, node: Option<NodeId>, arena: &'a Bump) -> &'a [u8] {
    match node.map(|n| doc.kind(n)) {
        None => b"undefined",
        Some(Kind::String(s)) => s,
        Some(Kind::Null) => b"null",
        Some(Kind::Bool(true)) => b"true",
        Some(Kind::Bool(false)) => b"false",
        Some(Kind::Object) => b"[object Object]",
        Some(Kind::Number(n)) => {
            let mut text = Vec::new();
            a99_core::value::Value::Number(n).write_json(&mut text);
            arena.alloc_slice_copy(&text)
        }
        Some(Kind::Array) => {
            let mut text = Vec::new();
            for (i, e) in doc.elements(node.unwrap_or(doc.root())).enumerate() {
                if i > 0 {
                    text.push(b',');
                }
                if let Some(s) = doc.str(e) {
                    text.extend_from_slice(s);
                } else if !matches!(doc.kind(e), Kind::Null) {
                    doc.write_json(e, &mut text);
                }
            }
            arena.alloc_slice_copy(&text)
        }
    }
}

/// Reads expression nodes from JSON (language section 1.5).
pub(crate) struct FromJson<'a> {
    pub doc: &'a Document,
    pub arena: &'a Bump,
    /// The maximum nesting of expressions, if they may be texts (D70, D38).
    pub texts: Option<usize>,
    /// Number of nodes around the current one.
    depth: Cell<usize>,
    /// The expression texts that are invalid, and why.
    pub wrong: RefCell<Vec<(NodeId, WrongText)>>,
}

/// Why an expression text is invalid.
pub(crate) enum WrongText {
    Malformed(expr::ParseErrors),
    TooDeep,
}

/// Whether a node is evaluated as an expression: an object with a truthy `$expr`.
#[must_use]
pub fn is_tagged(doc: &Document, node: NodeId) -> bool {
    let tag = doc.get(node, "$expr");
    tag.is_some_and(|tag| FromJson::is_tag(doc, tag))
}

/// The text of an object whose only member is `=`, an expression in programs of version 4.
pub fn short_text(doc: &Document, node: NodeId) -> Option<NodeId> {
    if doc.kind(node) != Kind::Object || doc.len(node) != 1 {
        return None;
    }
    doc.get(node, "=").filter(|text| doc.str(*text).is_some())
}

/// The text of an expression that is written as text (D70).
pub fn expr_text(doc: &Document, node: NodeId) -> Option<NodeId> {
    if doc.get(node, "$expr").and_then(|tag| doc.str(tag)) == Some(b"text") {
        return doc
            .get(node, "value")
            .filter(|text| doc.str(*text).is_some());
    }
    short_text(doc, node)
}

impl<'a> FromJson<'a> {
    /// A reader; `texts` is the maximum nesting where expressions may be texts.
    pub(crate) fn new(doc: &'a Document, arena: &'a Bump, texts: Option<usize>) -> FromJson<'a> {
        FromJson {
            doc,
            arena,
            texts,
            depth: Cell::new(0),
            wrong: RefCell::default(),
        }
    }

    /// Reads an expression that is written as text.
    fn text(&self, node: NodeId, most: usize) -> Ir<'a> {
        let blank = Ir {
            kind: IrKind::Lit(Lit::Undefined),
            priced: false,
            at: At { node, inner: None },
        };
        let text = wtf8_to_string_lossy(self.doc.str(node).unwrap_or_default());
        match expr::parse_expression(&text) {
            Err(errors) => {
                let wrong = WrongText::Malformed(errors);
                self.wrong.borrow_mut().push((node, wrong));
                blank
            }
            Ok(parsed) if parsed.depth() + self.depth.get() > most => {
                self.wrong.borrow_mut().push((node, WrongText::TooDeep));
                blank
            }
            Ok(parsed) => from_text(&parsed, node, self.arena).map_or(blank, |ir| *ir),
        }
    }

    fn child(&self, node: NodeId, key: &str) -> &'a Ir<'a> {
        let ir = match self.doc.get(node, key) {
            Some(child) => self.read(child),
            None => Ir {
                kind: IrKind::Lit(Lit::Undefined),
                priced: false,
                at: At { node, inner: None },
            },
        };
        self.arena.alloc(ir)
    }

    fn list(&self, node: NodeId, key: &str) -> &'a [Ir<'a>] {
        let Some(list) = self.doc.get(node, key) else {
            return &[];
        };
        self.arena
            .alloc_slice_fill_iter(self.doc.elements(list).map(|e| self.read(e)))
    }

    fn literal(&self, node: NodeId) -> IrKind<'a> {
        match self.doc.kind(node) {
            Kind::Null => IrKind::Lit(Lit::Null),
            Kind::Bool(b) => IrKind::Lit(Lit::Bool(b)),
            Kind::Number(n) => IrKind::Lit(Lit::Number(n)),
            Kind::String(s) => IrKind::Lit(Lit::Text(s)),
            Kind::Array | Kind::Object => IrKind::Data(node),
        }
    }

    fn fail(&self, operands: &'a [Ir<'a>], message: String) -> IrKind<'a> {
        IrKind::Fail {
            operands,
            message: self.arena.alloc_str(&message),
            warn: Warn::Expression,
        }
    }

    fn is_short(&self, node: NodeId) -> bool {
        self.texts.is_some() && short_text(self.doc, node).is_some()
    }

    /// Whether the key of a member is an expression, which version 4 allows.
    fn is_computed(&self, key: NodeId) -> bool {
        self.texts.is_some() && (is_tagged(self.doc, key) || self.is_short(key))
    }

    /// Whether the value of `$expr` makes its object an expression.
    pub(crate) fn is_tag(doc: &Document, tag: NodeId) -> bool {
        match doc.kind(tag) {
            Kind::Null | Kind::Bool(false) => false,
            Kind::Number(n) => n != 0.0 && !n.is_nan(),
            Kind::String(s) => !s.is_empty(),
            _ => true,
        }
    }

    /// The expression of a node; a node without a tag is a literal and free.
    pub(crate) fn read(&self, node: NodeId) -> Ir<'a> {
        let at = At { node, inner: None };
        if let Some(most) = self.texts
            && let Some(text) = expr_text(self.doc, node)
        {
            return self.text(text, most);
        }
        if self.doc.kind(node) != Kind::Object || self.doc.get(node, "$expr").is_none() {
            return Ir {
                kind: self.literal(node),
                priced: false,
                at,
            };
        }
        let around = self.depth.get();
        self.depth.set(around + 1);
        let kind = self.tagged(node);
        self.depth.set(around);
        Ir {
            kind,
            priced: true,
            at,
        }
    }

    fn tagged(&self, node: NodeId) -> IrKind<'a> {
        let doc = self.doc;
        let tag = key_text(doc, doc.get(node, "$expr"), self.arena);
        let name = |key: &str| key_text(doc, doc.get(node, key), self.arena);
        let flag = |key: &str| doc.get(node, key).is_some_and(|n| truthy(doc, n));
        match tag {
            b"literal" => match doc.get(node, "value") {
                Some(value) => self.literal(value),
                None => IrKind::Lit(Lit::Undefined),
            },
            b"ident" => IrKind::Ident(name("name")),
            b"member" => {
                let object = self.child(node, "object");
                let optional = flag("optional");
                match doc.get(node, "property") {
                    Some(p) if is_tagged(doc, p) || self.is_short(p) => IrKind::Index {
                        object,
                        index: self.child(node, "property"),
                        optional,
                    },
                    p => IrKind::Member {
                        object,
                        property: key_text(doc, p, self.arena),
                        optional,
                    },
                }
            }
            b"binary" => self.binary(node, name("op")),
            b"unary" => {
                let arg = self.child(node, "argument");
                match name("op") {
                    b"!" => IrKind::Unary(UnOp::Not, arg),
                    b"-" => IrKind::Unary(UnOp::Neg, arg),
                    b"+" => IrKind::Unary(UnOp::Plus, arg),
                    b"typeof" => IrKind::Unary(UnOp::Typeof, arg),
                    op => self.fail(
                        std::slice::from_ref(arg),
                        format!("Unknown unary operator: {}", wtf8_to_string_lossy(op)),
                    ),
                }
            }
            b"logical" => {
                let (l, r) = (self.child(node, "left"), self.child(node, "right"));
                let op = match name("op") {
                    b"&&" => LogOp::And,
                    b"??" => LogOp::Nullish,
                    _ => LogOp::Or,
                };
                IrKind::Logical(op, l, r)
            }
            b"conditional" => IrKind::Conditional(
                self.child(node, "test"),
                self.child(node, "consequent"),
                self.child(node, "alternate"),
            ),
            b"array" => IrKind::Array(self.list(node, "elements")),
            b"object" => {
                let list = doc.get(node, "properties");
                let key = |p| match doc.get(p, "key") {
                    Some(key) if self.is_computed(key) => ObjKey::Computed(self.child(p, "key")),
                    key => ObjKey::Name(key_text(doc, key, self.arena)),
                };
                let entries = list.into_iter().flat_map(|l| doc.elements(l));
                let entries = entries.map(|p| (key(p), *self.child(p, "value")));
                let entries: Vec<_> = entries.collect();
                IrKind::Object(self.arena.alloc_slice_copy(&entries))
            }
            b"context" if self.texts.is_some() => IrKind::Context(name("path")),
            b"call" => IrKind::Call {
                callee: name("callee"),
                args: self.list(node, "arguments"),
            },
            b"methodCall" => IrKind::Method {
                object: self.child(node, "object"),
                name: name("method"),
                args: self.list(node, "arguments"),
                optional: flag("optional"),
            },
            tag => self.fail(
                &[],
                format!("Unknown expression type: {}", wtf8_to_string_lossy(tag)),
            ),
        }
    }

    fn binary(&self, node: NodeId, op: &[u8]) -> IrKind<'a> {
        let (l, r) = (self.child(node, "left"), self.child(node, "right"));
        let op = match op {
            b"+" => BinOp::Add,
            b"-" => BinOp::Sub,
            b"*" => BinOp::Mul,
            b"/" => BinOp::Div,
            b"%" => BinOp::Rem,
            b"**" => BinOp::Pow,
            b"==" => BinOp::Eq,
            b"!=" => BinOp::Ne,
            b"===" => BinOp::StrictEq,
            b"!==" => BinOp::StrictNe,
            b"<" => BinOp::Lt,
            b"<=" => BinOp::Le,
            b">" => BinOp::Gt,
            b">=" => BinOp::Ge,
            b"&&" => return IrKind::Logical(LogOp::And, l, r),
            b"||" => return IrKind::Logical(LogOp::Or, l, r),
            b"??" => return IrKind::Logical(LogOp::Nullish, l, r),
            op => {
                let operands = self.arena.alloc_slice_copy(&[*l, *r]);
                return self.fail(
                    operands,
                    format!("Unknown binary operator: {}", wtf8_to_string_lossy(op)),
                );
            }
        };
        IrKind::Binary(op, l, r)
    }
}

/// ECMAScript ToBoolean of a JSON value.
pub fn truthy(doc: &Document, node: NodeId) -> bool {
    match doc.kind(node) {
        Kind::Null => false,
        Kind::Bool(b) => b,
        Kind::Number(n) => n != 0.0 && !n.is_nan(),
        Kind::String(s) => !s.is_empty(),
        Kind::Array | Kind::Object => true,
    }
}

/// Converts a parsed text into the common form. Children precede parents in its arena, so one
/// pass is enough.
pub(crate) fn from_text<'a>(
    expr: &expr::Expr,
    node: NodeId,
    arena: &'a Bump,
) -> Option<&'a Ir<'a>> {
    let mut done: Vec<&'a Ir<'a>> = Vec::with_capacity(expr.nodes.len());
    for n in &expr.nodes {
        let get = |id: &ExprId| done[id.0 as usize];
        let list = |ids: &[ExprId]| -> &'a [Ir<'a>] {
            arena.alloc_slice_fill_iter(ids.iter().map(|id| *get(id)))
        };
        let text = |s: &str| -> &'a [u8] { arena.alloc_slice_copy(s.as_bytes()) };
        let kind = match &n.kind {
            ExprKind::Literal(lit) => IrKind::Lit(match lit {
                expr::Lit::Null => Lit::Null,
                expr::Lit::Bool(b) => Lit::Bool(*b),
                expr::Lit::Number(x) => Lit::Number(*x),
                expr::Lit::String(s) => Lit::Text(arena.alloc_slice_copy(s)),
            }),
            ExprKind::Ident(name) => IrKind::Ident(text(name)),
            ExprKind::Member {
                object,
                property,
                optional,
            } => IrKind::Member {
                object: get(object),
                property: text(property),
                optional: *optional,
            },
            ExprKind::Index {
                object,
                index,
                optional,
            } => IrKind::Index {
                object: get(object),
                index: get(index),
                optional: *optional,
            },
            ExprKind::Unary { op, arg } => IrKind::Unary(*op, get(arg)),
            ExprKind::Binary { op, left, right } => IrKind::Binary(*op, get(left), get(right)),
            ExprKind::Logical { op, left, right } => IrKind::Logical(*op, get(left), get(right)),
            ExprKind::Conditional {
                test,
                consequent,
                alternate,
            } => IrKind::Conditional(get(test), get(consequent), get(alternate)),
            ExprKind::Array(items) => IrKind::Array(list(items)),
            ExprKind::Object(entries) => {
                let key = |key: &expr::ObjKey| match key {
                    expr::ObjKey::Name(name) => ObjKey::Name(text(name)),
                    expr::ObjKey::Computed(key) => ObjKey::Computed(get(key)),
                };
                let entries = entries.iter().map(|(k, value)| (key(k), *get(value)));
                let entries: Vec<_> = entries.collect();
                IrKind::Object(arena.alloc_slice_copy(&entries))
            }
            ExprKind::Call { callee, args } => IrKind::Call {
                callee: text(callee),
                args: list(args),
            },
            ExprKind::MethodCall {
                object,
                method,
                args,
                optional,
            } => IrKind::Method {
                object: get(object),
                name: text(method),
                args: list(args),
                optional: *optional,
            },
            ExprKind::Context(path) => IrKind::Context(text(path)),
            ExprKind::Unsupported { message, operands } => IrKind::Fail {
                operands: list(operands),
                message: arena.alloc_str(message),
                warn: Warn::Text,
            },
        };
        let at = At {
            node,
            inner: Some((n.span.start, n.span.end)),
        };
        done.push(arena.alloc(Ir {
            kind,
            priced: true,
            at,
        }));
    }
    expr.root.map(|root| done[root.0 as usize])
}
