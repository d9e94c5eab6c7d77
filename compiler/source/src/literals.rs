//! Lowers templates, list literals and object literals.

use crate::codes;
use crate::expr::{MAX_PARTS, unescape};
use crate::lower::{Lowerer, place};
use crate::pattern::{method, of};
use crate::state::{Iterable, Known};
use crate::tree::{Data, Place, Tree};
use crate::value::{Kind, Value};
use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, Expression, ObjectExpression, ObjectPropertyKind,
    PropertyKind, TemplateLiteral,
};
use oxc_span::GetSpan;

impl<'a> Lowerer<'a> {
    pub(crate) fn template(
        &mut self,
        template: &'a TemplateLiteral<'a>,
        is_raw: bool,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(template.span);
        let mut texts = Vec::new();
        for part in &template.quasis {
            if is_raw {
                texts.push(part.value.raw.as_bytes().to_vec());
                continue;
            }
            let Some(cooked) = part.value.cooked else {
                self.deny(codes::SYNTAX, part.span, "a wrong escape", "write `\\\\`");
                return Value::text("", &at);
            };
            texts.push(unescape(cooked.as_str(), part.lone_surrogates));
        }
        if texts.len() > MAX_PARTS {
            let message = format!("a template with more than {MAX_PARTS} holes");
            self.deny(
                codes::TOO_DEEP,
                template.span,
                message,
                "make texts of its parts first",
            );
            return Value::text("", &at);
        }
        let holes: Vec<&Expression<'a>> = template.expressions.iter().collect();
        self.permit(&holes);
        self.errors_as_texts(&holes);
        let values = self.exprs(&holes, out);
        let mut joined: Option<Value> = None;
        let mut texts = texts.into_iter();
        let first = texts.next().unwrap_or_default();
        if !first.is_empty() || values.is_empty() {
            joined = Some(Value::new(Kind::Text(first), &at));
        }
        for (value, text) in values.into_iter().zip(texts) {
            // A first hole alone is not a text yet.
            let left = joined.unwrap_or_else(|| Value::text("", &at));
            let mut both = plus(left, value, &at);
            if !text.is_empty() {
                both = plus(both, Value::new(Kind::Text(text), &at), &at);
            }
            joined = Some(both);
        }
        joined.unwrap_or_else(|| Value::text("", &at))
    }

    pub(crate) fn array(&mut self, array: &'a ArrayExpression<'a>, out: &mut Vec<Tree>) -> Value {
        let at = place(array.span);
        let mut exprs: Vec<&Expression<'a>> = Vec::new();
        let mut is_spread = Vec::new();
        for element in &array.elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    if self.sort_of(&spread.argument) == Iterable::Object {
                        self.check_iterated(&spread.argument);
                    }
                    exprs.push(&spread.argument);
                    is_spread.push(true);
                }
                ArrayExpressionElement::Elision(hole) => {
                    self.unsupported(hole.span, "a hole in a list", "write `undefined`");
                }
                element => {
                    if let Some(expr) = element.as_expression() {
                        exprs.push(expr);
                        is_spread.push(false);
                    }
                }
            }
        }
        let elements: Vec<_> = exprs.into_iter().zip(is_spread).collect();
        self.elements(&elements, &at, out)
    }

    /// Lowers the items of a list; `true` marks a spread list.
    pub(crate) fn elements(
        &mut self,
        elements: &[(&'a Expression<'a>, bool)],
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Value {
        let mut values: Vec<Value> = Vec::with_capacity(elements.len());
        for (expr, is_spread) in elements {
            let mut steps = Vec::new();
            let mut value = self.expr(expr, &mut steps);
            if !is_spread {
                self.warn_of_match(expr);
            } else {
                if !matches!(
                    self.sort_of(expr),
                    Iterable::List | Iterable::Text | Iterable::Set | Iterable::Map
                ) && self.known(expr) != Known::Match
                {
                    value = self.items_of(value);
                }
                // Copies the list, because later items may change it.
                let place = value.place.clone();
                value = Value::node(of("Array", "from", vec![value.operand()], &place));
            }
            self.keep(&mut values, &steps, out);
            out.append(&mut steps);
            values.push(value);
        }
        if elements.iter().all(|(_, is_spread)| !is_spread) {
            return Value::new(Kind::List(values), at);
        }
        let mut parts: Vec<Tree> = Vec::new();
        let mut run: Vec<Value> = Vec::new();
        let end_run = |run: &mut Vec<Value>, parts: &mut Vec<Tree>| {
            if !run.is_empty() {
                parts.push(Value::new(Kind::List(std::mem::take(run)), at).operand());
            }
        };
        for (value, (_, is_spread)) in values.into_iter().zip(elements) {
            if *is_spread {
                end_run(&mut run, &mut parts);
                parts.push(value.operand());
            } else {
                run.push(value);
            }
        }
        end_run(&mut run, &mut parts);
        let first = parts.remove(0);
        Value::node(match parts.is_empty() {
            true => first,
            false => method(first, "concat", parts, at),
        })
    }

    pub(crate) fn object(
        &mut self,
        object: &'a ObjectExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(object.span);
        let mut parts: Vec<Tree> = Vec::new();
        let mut members: Vec<(Value, Value)> = Vec::new();
        for property in &object.properties {
            let mut steps = Vec::new();
            let (key, value) = match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    (None, self.expr(&spread.argument, &mut steps))
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    if property.kind != PropertyKind::Init || property.method {
                        let (what, help) = match property.kind {
                            PropertyKind::Init => (
                                "a method of an object",
                                "use plain members, and functions beside the object",
                            ),
                            _ => (
                                "a getter or setter of an object",
                                "write a method and call it: `full() { ... }`, `o.full()`",
                            ),
                        };
                        self.unsupported(property.span, what, help);
                        continue;
                    }
                    let Some(key) = self.key(&property.key, property.computed, &mut steps) else {
                        continue;
                    };
                    let key = if property.computed {
                        in_brackets(key)
                    } else {
                        key
                    };
                    self.warn_of_match(&property.value);
                    let mut value_steps = Vec::new();
                    let value = self.expr(&property.value, &mut value_steps);
                    let mut key = [key];
                    self.keep(&mut key, &value_steps, &mut steps);
                    steps.append(&mut value_steps);
                    let [key] = key;
                    (Some(key), value)
                }
            };
            // The preceding parts are evaluated before these steps.
            self.keep_object(&mut members, &mut parts, &steps, out);
            out.append(&mut steps);
            match key {
                Some(key) => {
                    if let Some(name) = written(&key)
                        && !self.may_be_named(name, property, &members)
                    {
                        continue;
                    }
                    members.push((key, value));
                }
                None => {
                    end_members(&mut members, &mut parts, &at);
                    parts.push(value.operand());
                }
            }
        }
        if parts.is_empty() {
            return whole(members, &at);
        }
        end_members(&mut members, &mut parts, &at);
        let fresh = Value::new(Kind::Map(Vec::new()), &at).operand();
        let is_new = |tree: &Tree| {
            tree.tag() == Some("object")
                || tree.tag().is_none() && matches!(tree.data, Data::Map(_))
                || tree.get("method").and_then(Tree::as_str) == Some("fromEntries")
        };
        if parts.len() == 1 && is_new(&parts[0]) {
            return Value::node(parts.remove(0));
        }
        if !is_new(&parts[0]) {
            parts.insert(0, fresh);
        }
        Value::node(of("Object", "assign", parts, &at))
    }

    /// True if a member may have this literal name.
    fn may_be_named(
        &mut self,
        name: &[u8],
        property: &ObjectPropertyKind<'a>,
        members: &[(Value, Value)],
    ) -> bool {
        if name == b"__proto__" {
            let help = "there are no prototypes; name the member differently";
            self.unsupported(property.span(), "the member `__proto__`", help);
            return false;
        }
        let is_there = members
            .iter()
            .any(|(other, _)| written(other) == Some(name));
        if is_there {
            let message = "the object has this member twice";
            self.deny(codes::BAD_BINDING, property.span(), message, "drop one");
        }
        !is_there
    }

    /// Evaluates the preceding parts of an object before the steps of the next.
    fn keep_object(
        &mut self,
        members: &mut [(Value, Value)],
        parts: &mut [Tree],
        steps: &[Tree],
        out: &mut Vec<Tree>,
    ) {
        if steps.is_empty() {
            return;
        }
        for part in parts {
            if part.tag().is_some() {
                let mut value = [Value::node(part.clone())];
                self.keep(&mut value, steps, out);
                let [value] = value;
                *part = value.operand();
            }
        }
        for (key, value) in members {
            self.keep(std::slice::from_mut(key), steps, out);
            self.keep(std::slice::from_mut(value), steps, out);
        }
    }
}

fn end_members(members: &mut Vec<(Value, Value)>, parts: &mut Vec<Tree>, at: &Place) {
    if !members.is_empty() {
        parts.push(whole(std::mem::take(members), at).operand());
    }
}

/// Converts a key in brackets to an expression, because another member may have the same key, or
/// the key may be forbidden as a literal name.
fn in_brackets(key: Value) -> Value {
    match &key.kind {
        Kind::Node(_) => key,
        _ => {
            let place = key.place.clone();
            let value = Value::new(key.kind, &place).operand();
            Value::node(match value.tag() {
                Some(_) => value,
                None => Tree::node("literal", [("value", value)], &place),
            })
        }
    }
}

/// Returns the name of a member with a literal key.
fn written(key: &Value) -> Option<&[u8]> {
    match &key.kind {
        Kind::Text(name) => Some(name),
        _ => None,
    }
}

/// Builds an object of these members. A computed key is an operand of its node (D67).
fn whole(members: Vec<(Value, Value)>, at: &Place) -> Value {
    if members.iter().all(|(key, _)| written(key).is_some()) {
        let members = members.into_iter().map(|(key, value)| match key.kind {
            Kind::Text(name) => (name, value),
            _ => (Vec::new(), value),
        });
        return Value::new(Kind::Map(members.collect()), at);
    }
    let properties = members.into_iter().map(|(key, value)| {
        let place = key.place.clone();
        let key = match key.kind {
            Kind::Text(name) => Tree::new(Data::Text(name.into()), &place),
            kind => Value::new(kind, &place).operand(),
        };
        Tree::map([("key", key), ("value", value.operand())], &place)
    });
    let fields = [("properties", Tree::list(properties.collect(), at))];
    Value::node(Tree::node("object", fields, at))
}

/// Builds `left + right`.
fn plus(left: Value, right: Value, at: &Place) -> Value {
    if let (Kind::Text(left), Kind::Text(right)) = (&left.kind, &right.kind) {
        let mut text = left.clone();
        a99_core::text::push_wtf8(&mut text, right);
        return Value::new(Kind::Text(text), at);
    }
    Value::node(Tree::binary("+", left.operand(), right.operand(), at))
}
