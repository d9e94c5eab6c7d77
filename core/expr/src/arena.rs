//! The arena for the nodes of all expression parsers.
//!
//! Nodes are stored in one vector and refer to their children by index. A child always
//! precedes its parent, so every pass over a tree can be a plain loop over the vector.

use std::ops::Range;

/// A parsed expression text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expr {
    /// The nodes; children precede their parents.
    pub nodes: Vec<ExprNode>,
    /// The outermost node; `None` for blank text, whose value is `undefined`.
    pub root: Option<ExprId>,
}

impl Expr {
    /// The node with this id.
    ///
    /// # Panics
    /// The id belongs to another, larger arena.
    #[must_use]
    #[inline]
    pub fn node(&self, id: ExprId) -> &ExprNode {
        &self.nodes[id.0 as usize]
    }

    /// Whether the text reads a part of the request context (D75).
    #[must_use]
    pub fn reads_context(&self) -> bool {
        let is_context = |node: &ExprNode| matches!(node.kind, ExprKind::Context(_));
        self.nodes.iter().any(is_context)
    }

    /// The number of nodes on the longest path from the root to a leaf; 0 for blank text.
    /// Takes time linear in the number of nodes and does not recurse.
    #[must_use]
    pub fn depth(&self) -> usize {
        let Some(root) = self.root else { return 0 };
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut below = 0;
            node.kind
                .for_each_child(|child| below = below.max(depths[child.0 as usize]));
            depths.push(below + 1);
        }
        depths[root.0 as usize] as usize
    }

    /// Whether the longest path from the root to a leaf has more than `most` nodes.
    #[must_use]
    pub fn is_deeper(&self, most: usize) -> bool {
        self.nodes.len() > most && self.depth() > most
    }

    /// Appends a node and returns its id.
    pub(crate) fn push(&mut self, kind: ExprKind, span: Range<u32>) -> ExprId {
        let id = ExprId(self.nodes.len() as u32);
        self.nodes.push(ExprNode { kind, span });
        id
    }

    /// Appends the node `left op right`, spanning both operands.
    pub(crate) fn push_infix(&mut self, op: Infix, left: ExprId, right: ExprId) -> ExprId {
        let span = self.node(left).span.start..self.node(right).span.end;
        let kind = match op {
            Infix::Binary(op) => ExprKind::Binary { op, left, right },
            Infix::Logical(op) => ExprKind::Logical { op, left, right },
        };
        self.push(kind, span)
    }
}

/// The index of a node in [`Expr::nodes`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct ExprNode {
    /// The kind of the node.
    pub kind: ExprKind,
    /// Byte range in the text.
    pub span: Range<u32>,
}

/// The kinds of nodes, matching the ExprNode tags of language section 1.5.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Lit),
    /// A name to resolve.
    Ident(Box<str>),
    /// `object.property` or `object?.property`.
    Member {
        /// The object read from.
        object: ExprId,
        /// The member's name.
        property: Box<str>,
        /// Whether it is written with `?.`.
        optional: bool,
    },
    /// `object[index]` or `object?.[index]`.
    Index {
        /// The object read from.
        object: ExprId,
        /// The computed key.
        index: ExprId,
        /// Whether it is written with `?.`.
        optional: bool,
    },
    /// A prefix operator.
    Unary {
        /// The operator.
        op: UnOp,
        /// Its operand.
        arg: ExprId,
    },
    /// A binary operator that always evaluates both operands.
    Binary {
        /// The operator.
        op: BinOp,
        /// The left operand, evaluated first.
        left: ExprId,
        /// The right operand.
        right: ExprId,
    },
    /// A binary operator that short-circuits (decision D5).
    Logical {
        /// The operator.
        op: LogOp,
        /// The operand that is always evaluated.
        left: ExprId,
        /// The operand that may stay unevaluated.
        right: ExprId,
    },
    /// `test ? consequent : alternate`.
    Conditional {
        /// The test.
        test: ExprId,
        /// Evaluated if the test is truthy.
        consequent: ExprId,
        /// Evaluated if the test is falsy.
        alternate: ExprId,
    },
    /// An array literal.
    Array(Vec<ExprId>),
    /// An object literal: keys and values, in order.
    Object(Vec<(ObjKey, ExprId)>),
    /// A call of a builtin function by name.
    Call {
        /// The function's name.
        callee: Box<str>,
        /// The arguments.
        args: Vec<ExprId>,
    },
    /// `object.method(args)` or `object?.method(args)`; the object may be a namespace.
    MethodCall {
        /// The receiver.
        object: ExprId,
        /// The method's name.
        method: Box<str>,
        /// The arguments.
        args: Vec<ExprId>,
        /// Whether it is written with `?.`.
        optional: bool,
    },
    /// `context('user.id')`: a part of the request context (D75).
    Context(Box<str>),
    /// From `mathCalc` texts only: a node that parses but fails when it is evaluated.
    Unsupported {
        /// The error message, without the prefix that quotes the source.
        message: String,
        /// The operands evaluated, in order, before the node fails.
        operands: Vec<ExprId>,
    },
}

impl ExprKind {
    /// Calls `visit` for every child, in order of evaluation.
    pub fn for_each_child(&self, mut visit: impl FnMut(ExprId)) {
        match self {
            Self::Literal(_) | Self::Ident(_) | Self::Context(_) => {}
            Self::Member { object, .. } => visit(*object),
            Self::Index { object, index, .. } => {
                visit(*object);
                visit(*index);
            }
            Self::Unary { arg, .. } => visit(*arg),
            Self::Binary { left, right, .. } | Self::Logical { left, right, .. } => {
                visit(*left);
                visit(*right);
            }
            Self::Conditional {
                test,
                consequent,
                alternate,
            } => {
                visit(*test);
                visit(*consequent);
                visit(*alternate);
            }
            Self::Object(entries) => {
                for (key, value) in entries {
                    if let ObjKey::Computed(key) = key {
                        visit(*key);
                    }
                    visit(*value);
                }
            }
            Self::Array(items) | Self::Call { args: items, .. } => {
                items.iter().copied().for_each(visit);
            }
            Self::MethodCall { object, args, .. } => {
                visit(*object);
                args.iter().copied().for_each(visit);
            }
            Self::Unsupported { operands, .. } => operands.iter().copied().for_each(visit),
        }
    }
}

/// The key of an entry of an object literal.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjKey {
    /// A literal key.
    Name(Box<str>),
    /// `[expression]` (D67).
    Computed(ExprId),
}

/// A constant of an expression text.
#[derive(Clone, Debug, PartialEq)]
pub enum Lit {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string, as WTF-8 (decision D36).
    String(Vec<u8>),
}

/// Declares an operator enum with the JavaScript spelling of each operator.
macro_rules! operators {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $(#[$vmeta])* $variant,)*
        }

        impl $name {
            /// The JavaScript spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

operators! {
    /// Prefix operators.
    UnOp {
        Not = "!",
        Neg = "-",
        Plus = "+",
        Typeof = "typeof",
    }
}

operators! {
    /// Binary operators that evaluate both operands (ECMA-262 §13.6 to §13.11).
    BinOp {
        Eq = "==",
        Ne = "!=",
        StrictEq = "===",
        StrictNe = "!==",
        Lt = "<",
        Gt = ">",
        Le = "<=",
        Ge = ">=",
        Add = "+",
        Sub = "-",
        Mul = "*",
        Div = "/",
        Rem = "%",
        Pow = "**",
    }
}

operators! {
    /// Binary operators that short-circuit.
    LogOp {
        And = "&&",
        Or = "||",
        Nullish = "??",
    }
}

/// Any infix operator with two operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Infix {
    /// Evaluates both operands.
    Binary(BinOp),
    /// Short-circuits.
    Logical(LogOp),
}

/// The precedence of the words `and` and `or` (language section 3.10): both have the lowest
/// level, so that `a or b and c` is `(a or b) and c`.
pub(super) const WORD_PRECEDENCE: u8 = 1;

impl Infix {
    /// The precedence of language section 3.10 (JSEP), in which equality is below relation
    /// and `||`, `??`, `and`, `or` share the lowest level. The word `and` has
    /// `WORD_PRECEDENCE` instead.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::Logical(LogOp::Or | LogOp::Nullish) => 1,
            Self::Logical(LogOp::And) => 2,
            Self::Binary(op) => match op {
                BinOp::Eq | BinOp::Ne | BinOp::StrictEq | BinOp::StrictNe => 6,
                BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge => 7,
                BinOp::Add | BinOp::Sub => 9,
                BinOp::Mul | BinOp::Div | BinOp::Rem => 10,
                BinOp::Pow => 11,
            },
        }
    }
}
