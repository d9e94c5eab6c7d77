//! Lowers small forms of everyday JavaScript: `Object.freeze`, `String.raw`, `findLastIndex`,
//! `Object.prototype.hasOwnProperty.call`, `crypto.randomUUID()`, `({ a } = o)`.

use crate::callback::Callback;
use crate::expr::Hint;
use crate::iterable::Iterable;
use crate::known::Known;
use crate::lower::{Lowerer, place, set};
use crate::pattern::{member_of, method, of};
use crate::tree::Tree;
use crate::value::{Kind, Value};
use a99_core::builtins::mutates;
use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, AssignmentTargetProperty, CallExpression,
    Expression, ObjectAssignmentTarget, TaggedTemplateExpression,
};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::AssignmentOperator;

const FROZEN_HELP: &str = "JavaScript throws a TypeError here: make a new value, \
                           `{ ...frozen, key: value }` or `[...frozen, item]`, or leave \
                           `Object.freeze` out";

impl<'a> Lowerer<'a> {
    /// Lowers calls of members that are no methods of a value: `crypto.randomUUID()`,
    /// `Object.prototype.hasOwnProperty.call(object, key)`.
    pub(crate) fn common_call(
        &mut self,
        object: &'a Expression<'a>,
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        let object = object.get_inner_expression();
        if name == "randomUUID"
            && self.free_name(object) == Some("crypto")
            && self.ops.signature("uuid").is_some()
        {
            return Some(self.result(Tree::step("uuid", [], &at), true, hint, out));
        }
        if name == "call" && self.is_own_property_check(object) {
            let exprs = self.arguments(&call.arguments);
            let values = self.exprs(&exprs, out);
            let values = values.into_iter().map(Value::operand).collect();
            return Some(Value::node(of("Object", "hasOwn", values, &at)));
        }
        if name == "call" && self.is_of_prototype(object, "toString") {
            return Some(self.kind_text(call, out));
        }
        if let Some(value) = self.formatted(object, name, call, out) {
            return Some(value);
        }
        if mutates(name) && self.known(object) == Known::Frozen {
            self.check_frozen(object, call.span);
        }
        None
    }

    /// True for `Object.prototype.hasOwnProperty` and `{}.hasOwnProperty`.
    fn is_own_property_check(&self, expr: &Expression<'a>) -> bool {
        self.is_of_prototype(expr, "hasOwnProperty")
    }

    /// Lowers `Object.prototype.toString.call(value)`: `[object Array]` and the like.
    fn kind_text(&mut self, call: &'a CallExpression<'a>, out: &mut Vec<Tree>) -> Value {
        let at = place(call.span);
        let [argument] = &call.arguments[..] else {
            let help = "give it the value";
            self.unsupported(call.span, "this `toString.call`", help);
            return Value::undefined(&at);
        };
        let others = ["Map", "Set", "Symbol", "Promise"];
        if self.has_dates || others.iter().any(|name| self.source.contains(name)) {
            let help = "write `typeof value`, `Array.isArray(value)` or `value === null`";
            self.unsupported(
                call.span,
                "the kind of what may be a date, set or map",
                help,
            );
        }
        let Some(value) = argument.as_expression() else {
            return Value::undefined(&at);
        };
        let value = self.expr(value, out);
        let value = self.named(value, out);
        let given = || value.clone().operand();
        let text = |text: &str| Tree::text(text, &at);
        let kind = || Tree::unary("typeof", given(), &at);
        let is = |name: &str| Tree::binary("===", kind(), text(name), &at);
        let mut result = text("[object Undefined]");
        for (name, shown) in [
            ("object", "[object Object]"),
            ("boolean", "[object Boolean]"),
            ("number", "[object Number]"),
            ("string", "[object String]"),
        ] {
            result = Tree::conditional(is(name), text(shown), result, &at);
        }
        let is_null = Tree::binary("===", given(), Tree::null(&at), &at);
        result = Tree::conditional(is_null, text("[object Null]"), result, &at);
        let is_list = of("Array", "isArray", vec![given()], &at);
        Value::node(Tree::conditional(
            is_list,
            text("[object Array]"),
            result,
            &at,
        ))
    }

    fn is_of_prototype(&self, expr: &Expression<'a>, name: &str) -> bool {
        let Expression::StaticMemberExpression(member) = expr else {
            return false;
        };
        if member.property.name != name {
            return false;
        }
        match member.object.get_inner_expression() {
            Expression::ObjectExpression(object) => object.properties.is_empty(),
            Expression::StaticMemberExpression(inner) => {
                inner.property.name == "prototype"
                    && self.free_name(inner.object.get_inner_expression()) == Some("Object")
            }
            _ => false,
        }
    }

    /// Lowers functions of `Object` that programs have no builtin for.
    pub(crate) fn object_call(
        &mut self,
        name: &str,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        match (name, &call.arguments[..]) {
            // No code that works writes a frozen value.
            ("freeze" | "seal" | "preventExtensions", [argument]) => {
                let value = argument.as_expression()?;
                self.permit(&[value]);
                Some(self.expr(value, out))
            }
            ("isFrozen" | "isSealed", [argument]) => {
                let value = argument.as_expression()?;
                let is_new = matches!(
                    value,
                    Expression::ObjectExpression(_) | Expression::ArrayExpression(_)
                );
                (is_new || self.known(value) == Known::Frozen).then(|| {
                    self.effect(value, out);
                    Value::bool(!is_new, &at)
                })
            }
            ("create", [Argument::NullLiteral(_)]) => Some(Value::new(Kind::Map(Vec::new()), &at)),
            _ => None,
        }
    }

    /// Refuses code that writes a value that is known to be frozen.
    pub(crate) fn check_frozen(&mut self, object: &'a Expression<'a>, span: Span) {
        if self.known(object) == Known::Frozen {
            self.unsupported(span, "a change of a frozen value", FROZEN_HELP);
        }
    }

    /// Lowers `String.raw` with a template.
    pub(crate) fn tagged(
        &mut self,
        tagged: &'a TaggedTemplateExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let Expression::StaticMemberExpression(tag) = tagged.tag.get_inner_expression() else {
            return None;
        };
        let is_raw = tag.property.name == "raw"
            && self.free_name(tag.object.get_inner_expression()) == Some("String");
        is_raw.then(|| self.template(&tagged.quasi, true, out))
    }

    /// Lowers `findLastIndex`, and `findLast` with an index, to a search in a reversed copy.
    pub(crate) fn find_last(
        &mut self,
        name: &str,
        items: Value,
        callback: Callback<'a>,
        call: &'a CallExpression<'a>,
        (hint, out): (Hint<'_>, &mut Vec<Tree>),
    ) -> Value {
        let at = place(call.span);
        let items = self.checked_list(items, call, out);
        let back = method(items.operand(), "toReversed", Vec::new(), &at);
        let back = Value::node(back);
        let back = self.named(back, out);
        let last = member_of(back.clone(), Value::text("length", &at), &at);
        let last = Tree::binary("-", last.operand(), Tree::number(1.0, &at), &at);
        // The length may change while the callbacks run.
        let size = self.fresh();
        out.push(set(&size, last, &at));
        self.find_item(name, back, callback, (call.span, Some(&size)), hint, out)
    }

    /// Lowers `list.length = 0`.
    pub(crate) fn emptied(
        &mut self,
        assignment: &'a AssignmentExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> bool {
        let AssignmentTarget::StaticMemberExpression(member) = &assignment.left else {
            return false;
        };
        let is_zero = matches!(&assignment.right, Expression::NumericLiteral(n) if n.value == 0.0);
        let is_plain = assignment.operator == AssignmentOperator::Assign;
        let is_list = self.sort_of(&member.object) == Iterable::List;
        if !(is_zero && is_plain && is_list && member.property.name == "length") {
            return false;
        }
        let at = place(assignment.span);
        self.check_frozen(&member.object, assignment.span);
        let list = self.expr(&member.object, out);
        let none = vec![Tree::number(0.0, &at)];
        let value = Value::node(method(list.operand(), "splice", none, &at));
        crate::effect::done(value, &at, out);
        true
    }

    /// Lowers `({ a, b: c } = value)`: it evaluates the value first.
    pub(crate) fn object_assignment(
        &mut self,
        target: &'a ObjectAssignmentTarget<'a>,
        value: Value,
        out: &mut Vec<Tree>,
    ) {
        if let Some(rest) = &target.rest {
            let help = "set the variables one by one";
            self.unsupported(rest.span, "`...` in an assignment", help);
        }
        let at = value.place.clone();
        let name = self.fresh();
        out.push(set(&name, value.resolved(), &at));
        for property in &target.properties {
            let at = place(property.span());
            let member = |key: Value| member_of(Value::ident(&name, &at), key, &at);
            match property {
                AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(property)
                    if property.init.is_none() =>
                {
                    let js = property.binding.name.as_str();
                    let value = member(Value::text(js, &at));
                    if let Some(name) = self.settable(js, property.binding.span) {
                        out.push(set(&name, value.resolved(), &at));
                    }
                }
                AssignmentTargetProperty::AssignmentTargetPropertyProperty(property)
                    if !property.computed =>
                {
                    let Some(key) = self.key(&property.name, false, out) else {
                        continue;
                    };
                    let value = member(key);
                    self.assign_part(&property.binding, value, &at, out);
                }
                _ => {
                    let help = "set the variables one by one";
                    self.unsupported(property.span(), "this part of an assignment", help);
                }
            }
        }
    }
}
