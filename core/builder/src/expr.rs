//! Expression nodes (language section 1.5), written with Rust's operators where they mean the
//! same, and with methods otherwise.

use super::Operand;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::ops;

/// An expression node, for value positions and conditions.
///
/// A Rust text in an expression is a literal; [`ident`] makes a variable.
///
/// ```
/// use a99_builder::{Expr, conditional, ident, literal};
///
/// let total: Expr = ident("price") * ident("quantity");
/// assert_eq!(
///     total.value().to_json_string(),
///     concat!(
///         r#"{"$expr":"binary","op":"*","left":{"$expr":"ident","name":"price"},"#,
///         r#""right":{"$expr":"ident","name":"quantity"}}"#
///     )
/// );
/// let label = conditional(total.at_least(100).and(!ident("paid")), "due", literal(()));
/// assert_eq!(label.value().get("$expr"), Some(&"conditional".into()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(Value);

/// A literal: `{"$expr": "literal", "value": ..}`; without a value, `null`.
#[must_use]
pub fn literal(value: impl Into<Operand>) -> Expr {
    let value = value.into();
    let value = if value.is_absent() {
        Value::Null
    } else {
        value.into_value()
    };
    node("literal", [("value", value)])
}

/// A variable, argument or builtin by its name.
#[must_use]
pub fn ident(name: &str) -> Expr {
    node("ident", [("name", name.into())])
}

/// `test ? consequent : alternate`; only the chosen side is evaluated.
#[must_use]
pub fn conditional(
    test: impl Into<Expr>,
    consequent: impl Into<Expr>,
    alternate: impl Into<Expr>,
) -> Expr {
    let fields = [
        ("test", test.into().0),
        ("consequent", consequent.into().0),
        ("alternate", alternate.into().0),
    ];
    node("conditional", fields)
}

/// An array of expressions.
#[must_use]
pub fn array<T: Into<Expr>>(elements: impl IntoIterator<Item = T>) -> Expr {
    node("array", [("elements", list(elements))])
}

/// An object of expressions.
#[must_use]
pub fn object<K: Into<Text>, V: Into<Expr>>(members: impl IntoIterator<Item = (K, V)>) -> Expr {
    let properties: Vec<Value> = members
        .into_iter()
        .map(|(key, value)| {
            let mut property = Map::with_capacity(2);
            property.insert("key", key.into());
            property.insert("value", value.into().0);
            property.into()
        })
        .collect();
    node("object", [("properties", properties.into())])
}

/// An object whose keys are expressions, too, in a program of version 4
/// ([`Builder::version`](super::Builder::version), decision D67).
#[must_use]
pub fn keyed_object<K: Into<Expr>, V: Into<Expr>>(
    members: impl IntoIterator<Item = (K, V)>,
) -> Expr {
    let properties: Vec<Value> = members
        .into_iter()
        .map(|(key, value)| {
            let mut property = Map::with_capacity(2);
            property.insert("key", key.into().0);
            property.insert("value", value.into().0);
            property.into()
        })
        .collect();
    node("object", [("properties", properties.into())])
}

fn node<const N: usize>(tag: &str, fields: [(&str, Value); N]) -> Expr {
    let mut map = Map::with_capacity(N + 1);
    map.insert("$expr", tag);
    map.extend(fields);
    Expr(map.into())
}

fn list<T: Into<Expr>>(items: impl IntoIterator<Item = T>) -> Value {
    let items: Vec<Value> = items.into_iter().map(|item| item.into().0).collect();
    items.into()
}

impl Expr {
    /// The node as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// An existing node, unchanged. Inside an expression, any other value is a literal that
    /// costs no fuel.
    #[must_use]
    pub fn node(node: impl Into<Value>) -> Self {
        Self(node.into())
    }

    /// A call of a builtin function: `{"$expr": "call", ..}`.
    #[must_use]
    pub fn call<T: Into<Expr>>(callee: &str, arguments: impl IntoIterator<Item = T>) -> Self {
        let fields = [("callee", callee.into()), ("arguments", list(arguments))];
        node("call", fields)
    }

    /// A part of the request context, in a program of version 4 and if the host allows it
    /// (decision D75).
    #[must_use]
    pub fn context(path: &str) -> Self {
        node("context", [("path", path.into())])
    }

    /// Any node with two sides, for operators without a method here.
    #[must_use]
    pub fn binary(op: &str, left: impl Into<Expr>, right: impl Into<Expr>) -> Self {
        Self::pair("binary", op, left.into(), right.into())
    }

    fn pair(tag: &str, op: &str, left: Expr, right: Expr) -> Self {
        let fields = [("op", op.into()), ("left", left.0), ("right", right.0)];
        node(tag, fields)
    }

    /// A node with one operand, such as `typeof`.
    #[must_use]
    pub fn unary(op: &str, argument: impl Into<Expr>) -> Self {
        node(
            "unary",
            [("op", op.into()), ("argument", argument.into().0)],
        )
    }

    /// `self.property`.
    #[must_use]
    pub fn member(self, property: &str) -> Self {
        node(
            "member",
            [("object", self.0), ("property", property.into())],
        )
    }

    /// `self?.property`.
    #[must_use]
    pub fn optional_member(self, property: &str) -> Self {
        let fields = [
            ("object", self.0),
            ("property", property.into()),
            ("optional", true.into()),
        ];
        node("member", fields)
    }

    /// `self[property]`.
    #[must_use]
    pub fn index(self, property: impl Into<Expr>) -> Self {
        let fields = [
            ("object", self.0),
            ("property", property.into().0),
            ("computed", true.into()),
        ];
        node("member", fields)
    }

    /// `self.method(arguments)`.
    #[must_use]
    pub fn method<T: Into<Expr>>(
        self,
        method: &str,
        arguments: impl IntoIterator<Item = T>,
    ) -> Self {
        let fields = [
            ("object", self.0),
            ("method", method.into()),
            ("arguments", list(arguments)),
        ];
        node("methodCall", fields)
    }

    /// `self == other`, with the equality of the run (decision D6).
    #[must_use]
    pub fn equals(self, other: impl Into<Expr>) -> Self {
        Self::binary("==", self, other)
    }

    /// `self != other`.
    #[must_use]
    pub fn differs(self, other: impl Into<Expr>) -> Self {
        Self::binary("!=", self, other)
    }

    /// `self < other`.
    #[must_use]
    pub fn less_than(self, other: impl Into<Expr>) -> Self {
        Self::binary("<", self, other)
    }

    /// `self <= other`.
    #[must_use]
    pub fn at_most(self, other: impl Into<Expr>) -> Self {
        Self::binary("<=", self, other)
    }

    /// `self > other`.
    #[must_use]
    pub fn greater_than(self, other: impl Into<Expr>) -> Self {
        Self::binary(">", self, other)
    }

    /// `self >= other`.
    #[must_use]
    pub fn at_least(self, other: impl Into<Expr>) -> Self {
        Self::binary(">=", self, other)
    }

    /// `self ** other`.
    #[must_use]
    pub fn power(self, other: impl Into<Expr>) -> Self {
        Self::binary("**", self, other)
    }

    /// `self && other`.
    #[must_use]
    pub fn and(self, other: impl Into<Expr>) -> Self {
        Self::pair("logical", "&&", self, other.into())
    }

    /// `self || other`.
    #[must_use]
    pub fn or(self, other: impl Into<Expr>) -> Self {
        Self::pair("logical", "||", self, other.into())
    }

    /// `self ?? other`.
    #[must_use]
    pub fn coalesce(self, other: impl Into<Expr>) -> Self {
        Self::pair("logical", "??", self, other.into())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:literal),*) => {$(
        impl<T: Into<Expr>> ops::$trait<T> for Expr {
            type Output = Expr;

            fn $method(self, other: T) -> Expr {
                Expr::binary($op, self, other)
            }
        }
    )*};
}
operators!(Add add "+", Sub sub "-", Mul mul "*", Div div "/", Rem rem "%");

impl ops::Neg for Expr {
    type Output = Self;

    fn neg(self) -> Self {
        Self::unary("-", self)
    }
}

impl ops::Not for Expr {
    type Output = Self;

    fn not(self) -> Self {
        Self::unary("!", self)
    }
}

macro_rules! from_literal {
    ($($source:ty),*) => {$(
        impl From<$source> for Expr {
            fn from(value: $source) -> Self {
                literal(value)
            }
        }
    )*};
}
from_literal!(f64, i32, u32, i64, u64, usize, bool, &str, String, Value);

impl From<Expr> for Operand {
    fn from(expr: Expr) -> Self {
        expr.0.into()
    }
}
