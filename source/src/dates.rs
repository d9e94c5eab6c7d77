//! Whether a value is a number, asked of dates.

use crate::codes;
use crate::iterable::Iterable;
use crate::known::{Known, number_of, tried};
use crate::lower::{Lowerer, place};
use crate::pattern::of;
use crate::tree::Tree;
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_span::GetSpan;
use oxc_syntax::operator::UnaryOperator;

impl<'a> Lowerer<'a> {
    /// `Number.isNaN(value)`, which is false of all that is no number.
    pub(crate) fn is_nan(&mut self, call: &'a CallExpression<'a>, out: &mut Vec<Tree>) -> Value {
        let at = place(call.span);
        let date = call.arguments.first().and_then(Argument::as_expression);
        if let Some(date) = date
            && self.known(date) == Known::Date
        {
            let message = "`Number.isNaN` is false of each date";
            let help = "write `Number.isNaN(date.getTime())`";
            self.deny(codes::BAD_CALL, call.span, message, help);
        }
        let values = self.numeric(&call.arguments, out);
        let values = values.into_iter().map(Value::operand).collect();
        Value::node(of("Number", "isNaN", values, &at))
    }

    /// The argument of what asks whether it is a number: the time of a new date, or NaN,
    /// where that is no date.
    pub(crate) fn numeric(
        &mut self,
        arguments: &'a [Argument<'a>],
        out: &mut Vec<Tree>,
    ) -> Vec<Value> {
        let exprs = self.arguments(arguments);
        let [only] = exprs[..] else {
            return self.exprs(&exprs, out);
        };
        if let Some([given]) = self.new_time(only)
            && let Some(given) = given.as_expression()
        {
            return vec![self.new_date_time(given, out)];
        }
        if self.asks_date(only) {
            let message = "a date is always one here: `new Date` of what is none is an error";
            let help = "ask before it is made: `Number.isNaN(Date.parse(text))`";
            self.differs(only.span(), message, help);
        }
        let value = self.expr(only, out);
        vec![self.time(only, value)]
    }

    /// Whether an expression is a date that was made before, or the time of one.
    fn asks_date(&self, expr: &'a Expression<'a>) -> bool {
        let date = match expr.get_inner_expression() {
            Expression::CallExpression(call) => self.timed(call),
            _ => None,
        };
        self.known(date.unwrap_or(expr)) == Known::Date
    }

    /// What a new date is given whose time an expression is.
    fn new_time(&self, expr: &'a Expression<'a>) -> Option<&'a [Argument<'a>]> {
        match expr.get_inner_expression() {
            Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryPlus => {
                self.new_date(&unary.argument)
            }
            Expression::CallExpression(call) => self.new_date(self.timed(call)?),
            expr => self.new_date(expr),
        }
    }

    /// The time of `new Date(given)`, NaN for what is no date.
    fn new_date_time(&mut self, given: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        let at = place(given.span());
        let value = self.expr(given, out);
        let parse = |value: Value| tried(value.operand(), &at);
        let is_told = self.known(given) != Known::Nothing || self.sort_of(given) == Iterable::Text;
        if is_told || matches!(value.kind, Kind::Text(_)) {
            return parse(value);
        }
        // `null` and booleans are numbers there, and no dates to `tryParse`.
        let value = self.named(value, out);
        let ident = value.clone().operand();
        let is_null = Tree::binary("===", ident.clone(), Tree::null(&at), &at);
        let kind = Tree::unary("typeof", ident, &at);
        let is_bool = Tree::binary("===", kind, Tree::text("boolean", &at), &at);
        let test = Tree::logical("||", is_null, is_bool, &at);
        let (number, date) = (number_of(value.clone()), parse(value));
        Value::node(Tree::conditional(
            test,
            number.operand(),
            date.operand(),
            &at,
        ))
    }
}
