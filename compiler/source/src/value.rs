//! Values of lowered expressions; their form depends on the position that takes them.

use crate::tree::{Data, Place, Tree};
use a99_core::builtins::may_give_undefined;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `null`, a boolean or a number.
    Scalar(Data),
    /// A text, as WTF-8.
    Text(Vec<u8>),
    /// A list literal.
    List(Vec<Value>),
    /// An object literal.
    Map(Vec<(Vec<u8>, Value)>),
    /// An expression node.
    Node(Tree),
}

impl Value {
    pub(crate) fn new(kind: Kind, place: &Place) -> Value {
        Value {
            kind,
            place: place.clone(),
        }
    }

    pub(crate) fn node(tree: Tree) -> Value {
        Value {
            place: tree.place.clone(),
            kind: Kind::Node(tree),
        }
    }

    pub(crate) fn ident(name: &str, place: &Place) -> Value {
        Value::node(Tree::ident(name, place))
    }

    pub(crate) fn undefined(place: &Place) -> Value {
        Value::node(Tree::undefined(place))
    }

    pub(crate) fn text(text: &str, place: &Place) -> Value {
        Value::new(Kind::Text(text.as_bytes().to_vec()), place)
    }

    pub(crate) fn number(number: f64, place: &Place) -> Value {
        Value::new(Kind::Scalar(Data::Number(number)), place)
    }

    pub(crate) fn bool(value: bool, place: &Place) -> Value {
        Value::new(Kind::Scalar(Data::Bool(value)), place)
    }

    /// True if the value contains no computed part.
    pub(crate) fn is_constant(&self) -> bool {
        match &self.kind {
            Kind::Scalar(_) | Kind::Text(_) => true,
            Kind::List(items) => items.iter().all(Value::is_constant),
            Kind::Map(members) => members.iter().all(|(_, value)| value.is_constant()),
            Kind::Node(_) => false,
        }
    }

    /// True for a literal text, number, boolean or `null`.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self.kind, Kind::Scalar(_) | Kind::Text(_))
    }

    /// Returns the truthiness of a value if it is known.
    pub(crate) fn truth(&self) -> Option<bool> {
        match &self.kind {
            Kind::Scalar(Data::Bool(value)) => Some(*value),
            Kind::Scalar(Data::Number(number)) => Some(*number != 0.0 && !number.is_nan()),
            Kind::Scalar(_) => Some(false),
            Kind::Text(text) => Some(!text.is_empty()),
            Kind::List(_) | Kind::Map(_) => Some(true),
            Kind::Node(_) => None,
        }
    }

    /// True if an object in the value would be read as a node.
    fn looks_like_node(&self) -> bool {
        match &self.kind {
            Kind::List(items) => items.iter().any(Value::looks_like_node),
            Kind::Map(members) => {
                let tagged = |key: &[u8]| matches!(key, b"$expr" | b"$kind");
                let short = members.len() == 1 && members[0].0 == b"=";
                short
                    || members
                        .iter()
                        .any(|(key, value)| tagged(key) || value.looks_like_node())
            }
            _ => false,
        }
    }

    /// Converts the value to JSON; nodes stay nodes.
    fn written(self) -> Tree {
        let place = self.place;
        let data = match self.kind {
            Kind::Scalar(data) => data,
            Kind::Text(text) => Data::Text(Cow::Owned(text)),
            Kind::List(items) => Data::List(items.into_iter().map(Value::written).collect()),
            Kind::Map(members) => Data::Map(
                members
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key), value.written()))
                    .collect(),
            ),
            Kind::Node(tree) => return tree,
        };
        Tree { data, place }
    }

    /// Converts a constant to JSON, for inputs that the atom takes literally.
    pub(crate) fn literal(self) -> Option<Tree> {
        self.is_constant().then(|| self.written())
    }

    /// Converts the value to an operand of a node.
    pub(crate) fn operand(self) -> Tree {
        let place = self.place.clone();
        if self.is_constant() {
            let hazard = self.looks_like_node();
            let written = self.written();
            return match hazard {
                true => Tree::node("literal", [("value", written)], &place),
                false => written,
            };
        }
        match self.kind {
            Kind::List(items) => {
                let items = items.into_iter().map(Value::operand).collect();
                Tree::node("array", [("elements", Tree::list(items, &place))], &place)
            }
            Kind::Map(members) => {
                let members = members.into_iter().map(|(key, value)| {
                    let at = value.place.clone();
                    let key = Tree::new(Data::Text(Cow::Owned(key)), &at);
                    Tree::map([("key", key), ("value", value.operand())], &at)
                });
                let members = Tree::list(members.collect(), &place);
                Tree::node("object", [("properties", members)], &place)
            }
            Kind::Node(tree) => tree,
            kind => Value { kind, place }.written(),
        }
    }

    /// Converts the value to a resolved input, in which a variable is a text with its name.
    pub(crate) fn resolved(self) -> Tree {
        crate::steps::named(self.resolved_node())
    }

    /// Converts the value to a resolved input, in which a variable is a node.
    pub(crate) fn resolved_node(self) -> Tree {
        match self.kind {
            Kind::Text(text) => Tree {
                data: Data::Quoted(text),
                place: self.place,
            },
            Kind::List(_) | Kind::Map(_) if self.looks_like_node() => self.operand(),
            _ => self.written(),
        }
    }

    /// Converts the value to a condition.
    pub(crate) fn condition(self) -> Tree {
        match self.truth() {
            Some(truth) => Tree::bool(truth, &self.place),
            None => self.operand(),
        }
    }
}

/// True if the value cannot be `undefined`.
pub(crate) fn is_defined(value: &Value) -> bool {
    match &value.kind {
        Kind::Node(tree) => node_is_defined(tree),
        _ => true,
    }
}

fn node_is_defined(tree: &Tree) -> bool {
    let field = |key: &str| tree.get(key).is_some_and(node_is_defined);
    let method = || tree.get("method").and_then(Tree::as_str).unwrap_or("");
    match tree.tag() {
        None => true,
        Some("binary" | "unary" | "array" | "object" | "literal") => true,
        Some("conditional") => field("consequent") && field("alternate"),
        Some("logical") => match tree.get("op").and_then(Tree::as_str) {
            Some("&&") => field("left") && field("right"),
            _ => field("right"),
        },
        Some("call") => true,
        Some("methodCall") => {
            let json = tree.get("object").and_then(Tree::ident_name) == Some("JSON");
            tree.get("optional").is_none() && !may_give_undefined(method()) && !json
        }
        _ => false,
    }
}

/// True if these steps do not change the value, so that it can be evaluated after them.
pub(crate) fn is_stable(value: &Value, steps: &[Tree]) -> bool {
    match &value.kind {
        Kind::Node(tree) => node_is_stable(tree, steps),
        Kind::List(items) => items.iter().all(|item| is_stable(item, steps)),
        Kind::Map(members) => members.iter().all(|(_, value)| is_stable(value, steps)),
        _ => true,
    }
}

fn node_is_stable(tree: &Tree, steps: &[Tree]) -> bool {
    let all = |keys: &[&str]| {
        keys.iter()
            .filter_map(|key| tree.get(key))
            .all(|field| node_is_stable(field, steps))
    };
    match tree.tag() {
        None => true,
        Some("ident") => {
            let name = tree.ident_name().unwrap_or("");
            !binds(steps, name)
        }
        Some("literal" | "context") => true,
        // The text of a list or object operand could change in between.
        Some("unary") => all(&["argument"]) && tree.get("op").and_then(Tree::as_str) != Some("+"),
        Some("logical") => all(&["left", "right"]),
        Some("conditional") => all(&["test", "consequent", "alternate"]),
        _ => false,
    }
}

/// True if one of the steps, or a step inside, binds the variable.
pub(crate) fn binds(steps: &[Tree], name: &str) -> bool {
    let mut found = false;
    for step in steps {
        step.walk(&mut |tree| {
            for key in ["key", "result", "as", "index", "catchParam"] {
                found |= tree.get(key).and_then(Tree::as_str) == Some(name);
            }
        });
    }
    found
}
