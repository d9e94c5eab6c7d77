//! Lowers `instanceof` if the form decides the result.

use crate::lower::{Lowerer, What, place};
use crate::pattern::{member_of, of};
use crate::state::{Iterable, Known};
use crate::tree::{Place, Tree};
use crate::value::Value;
use oxc_ast::ast::{BinaryExpression, Expression};
use oxc_syntax::operator::BinaryOperator;

impl<'a> Lowerer<'a> {
    /// Returns the result of `x instanceof Y` if the form decides it.
    pub(crate) fn instance(&self, expr: &'a Expression<'a>) -> Option<bool> {
        let Expression::BinaryExpression(binary) = expr.get_inner_expression() else {
            return None;
        };
        if binary.operator != BinaryOperator::Instanceof {
            return None;
        }
        match self.free_name(&binary.right)? {
            "Error" => {
                let Expression::Identifier(id) = binary.left.get_inner_expression() else {
                    return None;
                };
                let id = self.lookup(id.name.as_str())?;
                match self.bindings[id].what {
                    What::Error if self.errors.throws_objects => None,
                    What::Caught | What::Error => Some(true),
                    _ => None,
                }
            }
            "Date" => (self.known(&binary.left) == Known::Date).then_some(true),
            class @ ("Map" | "Set") => match self.sort_of(&binary.left) {
                Iterable::Unknown => None,
                Iterable::Map => Some(class == "Map"),
                Iterable::Set => Some(class == "Set"),
                _ => Some(false),
            },
            _ => None,
        }
    }

    pub(crate) fn instance_of(
        &mut self,
        binary: &'a BinaryExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(binary.span);
        if let Expression::Identifier(class) = &binary.right
            && class.name == "Array"
        {
            let value = self.expr(&binary.left, out).operand();
            return Value::node(of("Array", "isArray", vec![value], &at));
        }
        if self.free_name(&binary.right) == Some("Date") {
            let value = self.expr(&binary.left, out);
            let value = self.named(value, out);
            return self.is_date(value, &at);
        }
        if let Some(class) = self.free_name(&binary.right)
            && let Some(value) = self.error_instance(&binary.left, class, binary.span)
        {
            return value;
        }
        let help = "use `typeof`, or `Array.isArray`; what is caught has `message`";
        self.unsupported(binary.span, "`instanceof`", help);
        Value::undefined(&at)
    }

    /// Tests for a date: only dates have a `timestamp` that is no member of theirs.
    fn is_date(&self, value: Value, at: &Place) -> Value {
        let name = || Value::text("timestamp", at);
        let time = member_of(value.clone(), name(), at).operand();
        let kind = Tree::unary("typeof", time, at);
        let is_number = Tree::binary("===", kind, Tree::text("number", at), at);
        let own = of(
            "Object",
            "hasOwn",
            vec![value.operand(), name().operand()],
            at,
        );
        let is_other = Tree::unary("!", own, at);
        Value::node(Tree::logical("&&", is_number, is_other, at))
    }
}
