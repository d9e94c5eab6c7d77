//! Lowers spread arguments in calls of functions, and rest parameters.

use crate::dates::either;
use crate::expr::Hint;
use crate::known::time_of;
use crate::lower::{Lowerer, for_each, place, set};
use crate::pattern::{member_of, method, of};
use crate::state::Known;
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, CallExpression, Expression};

impl<'a> Lowerer<'a> {
    /// Lowers the arguments of a call of a function; a spread list provides as many values as the
    /// function takes.
    pub(crate) fn spread_arguments(
        &mut self,
        function: usize,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Vec<Value> {
        let at = place(call.span);
        let elements = call.arguments.iter().filter_map(|argument| match argument {
            Argument::SpreadElement(spread) => Some((&spread.argument, true)),
            argument => Some((argument.as_expression()?, false)),
        });
        let elements: Vec<(&Expression<'a>, bool)> = elements.collect();
        let Some(first) = elements.iter().position(|(_, is_spread)| *is_spread) else {
            let exprs: Vec<_> = elements.into_iter().map(|(expr, _)| expr).collect();
            self.permit(&exprs);
            let arguments = self.exprs(&exprs, out);
            return self.with_rest(function, arguments, &at);
        };
        let (arity, has_rest) = {
            let function = &self.functions[function];
            (function.arity, function.has_rest)
        };
        if first == 0 && arity == 0 && has_rest {
            return vec![self.elements(&elements, &at, out)];
        }
        let all = self.elements(&elements, &at, out);
        let all = self.named(all, out);
        let item = |index: usize| member_of(all.clone(), Value::number(index as f64, &at), &at);
        let mut arguments: Vec<Value> = (0..arity).map(item).collect();
        if has_rest {
            let start = vec![Tree::number(arity as f64, &at)];
            arguments.push(Value::node(method(all.operand(), "slice", start, &at)));
        }
        arguments
    }

    /// Collects the arguments of a rest parameter into a list.
    pub(crate) fn with_rest(
        &self,
        function: usize,
        mut arguments: Vec<Value>,
        at: &Place,
    ) -> Vec<Value> {
        let function = &self.functions[function];
        if !function.has_rest {
            return arguments;
        }
        let rest = arguments.split_off(function.arity.min(arguments.len()));
        arguments.resize_with(function.arity, || Value::undefined(at));
        arguments.push(Value::new(Kind::List(rest), at));
        arguments
    }

    /// Lowers `Math.max(...items)`.
    pub(crate) fn extreme(
        &mut self,
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let elements = call.arguments.iter().filter_map(|argument| match argument {
            Argument::SpreadElement(spread) => Some((&spread.argument, true)),
            argument => Some((argument.as_expression()?, false)),
        });
        let elements: Vec<(&'a Expression<'a>, bool)> = elements.collect();
        let (items, known) = match &elements[..] {
            [(list, _)] => (self.iterated(list, out), self.known(list).item()),
            _ => (self.elements(&elements, &at, out), Known::Nothing),
        };
        let best = self.target(hint);
        let item = self.fresh();
        let start = match name {
            "max" => Tree::unary("-", Tree::ident("Infinity", &at), &at),
            _ => Tree::ident("Infinity", &at),
        };
        out.push(set(&best, start, &at));
        let number = match known {
            Known::Date => time_of(Value::ident(&item, &at)).operand(),
            Known::Nothing if self.has_dates => either(Value::ident(&item, &at)).operand(),
            _ => Tree::ident(&item, &at),
        };
        let both = vec![Tree::ident(&best, &at), number];
        let step = set(&best, of("Math", name, both, &at), &at);
        out.push(for_each(items.resolved(), &item, None, vec![step], &at));
        Value::ident(&best, &at)
    }

    /// Lowers `list.push(...items)` and `list.unshift(...items)`, also together with other
    /// values.
    pub(crate) fn push_all(
        &mut self,
        object: &'a Expression<'a>,
        name: &str,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let elements = call.arguments.iter().filter_map(|argument| match argument {
            Argument::SpreadElement(spread) => Some((&spread.argument, true)),
            argument => Some((argument.as_expression()?, false)),
        });
        let elements: Vec<(&'a Expression<'a>, bool)> = elements.collect();
        let mut list = [self.expr(object, out)];
        let mut steps = Vec::new();
        let mut items = self.elements(&elements, &at, &mut steps).operand();
        self.keep(&mut list, &steps, out);
        out.append(&mut steps);
        let [list] = list;
        let list = self.named(list, out);
        if name == "unshift" {
            items = method(items, "toReversed", Vec::new(), &at);
        }
        let item = self.fresh();
        let given = vec![Tree::ident(&item, &at)];
        let push = method(list.clone().operand(), name, given, &at);
        out.push(for_each(items, &item, None, vec![set("_", push, &at)], &at));
        member_of(list, Value::text("length", &at), &at)
    }
}
