//! Lowers `sort` and `toSorted` with a comparison.

use crate::code::only_expression;
use crate::expr::Hint;
use crate::lower::{Lowerer, branch, for_each, place, set};
use crate::pattern::{member_of, method, of};
use crate::state::Callback;
use crate::tree::Tree;
use crate::value::{Kind, Value};
use a99_core::builtins::gives_new_list;
use oxc_span::Span;

impl<'a> Lowerer<'a> {
    /// Lowers a stable binary insertion sort. It calls the comparison like V8 does for lists of
    /// less than 64 items, so that inconsistent comparisons (such as those of NaN) give the same
    /// order.
    pub(crate) fn sort(
        &mut self,
        name: &str,
        items: Value,
        callback: Callback<'a>,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let in_place = name == "sort" && !self.is_new_list(&items);
        let items = match in_place {
            true => self.named(items, out),
            false => items,
        };
        let sorted = match in_place {
            true => self.new_list(Hint::None, &at, out),
            false => self.new_list(hint, &at, out),
        };
        let (item, low, high, middle) = (self.fresh(), self.fresh(), self.fresh(), self.fresh());
        let run = self.fresh();
        let ident = |name: &str| Tree::ident(name, &at);
        let binary = |op: &'static str, left: Tree, right: Tree| Tree::binary(op, left, right, &at);
        let number = |n: f64| Tree::number(n, &at);
        let half = binary("/", binary("+", ident(&low), ident(&high)), number(2.0));
        let half = of("Math", "floor", vec![half], &at);
        let grows = binary(">", ident(&run), number(0.0));
        let last = binary("-", ident(&high), number(1.0));
        let end = Tree::conditional(grows.clone(), last, number(0.0), &at);
        let probe = Tree::conditional(ident(&run), end, half, &at);
        let mut body = vec![set(&middle, probe, &at)];
        let other = member_of(Value::ident(&sorted, &at), Value::ident(&middle, &at), &at);
        // The later item is the first argument, as in V8, because the order depends on the
        // results for equal items.
        let order = self.compare(callback, Value::ident(&item, &at), other, span, &mut body);
        let (order, less) = match order.kind {
            Kind::Node(tree) if tree.ident_name().is_some() => (None, tree),
            _ => {
                let name = self.fresh();
                (Some(set(&name, order.resolved(), &at)), ident(&name))
            }
        };
        body.extend(order);
        let less = binary("<", less, number(0.0));
        let up = set(&low, binary("+", ident(&middle), number(1.0)), &at);
        let down = set(&high, ident(&middle), &at);
        // The initial ascending run stays, and a descending one is reversed.
        let ends = || vec![set(&run, number(0.0), &at)];
        let descends = vec![set(&run, number(-1.0), &at), set(&high, number(0.0), &at)];
        let many = binary(">", ident(&high), number(1.0));
        let is_over = Tree::logical("&&", grows.clone(), many, &at);
        let before = vec![branch(is_over, ends(), descends, &at)];
        let behind = vec![branch(
            grows,
            vec![set(&low, ident(&high), &at)],
            ends(),
            &at,
        )];
        let in_run = vec![branch(less.clone(), before, behind, &at)];
        let halves = vec![branch(less, vec![down], vec![up], &at)];
        body.push(branch(ident(&run), in_run, halves, &at));
        let length = member_of(Value::ident(&sorted, &at), Value::text("length", &at), &at);
        let search = Tree::step(
            "while",
            [
                ("condition", binary("<", ident(&low), ident(&high))),
                ("body", Tree::list(body, &at)),
            ],
            &at,
        );
        let place_in = vec![ident(&low), number(0.0), ident(&item)];
        let insert = method(ident(&sorted), "splice", place_in, &at);
        let steps = vec![
            set(&low, number(0.0), &at),
            set(&high, length.operand(), &at),
            search,
            set("_", insert, &at),
        ];
        out.push(set(&run, number(1.0), &at));
        out.push(for_each(items.clone().resolved(), &item, None, steps, &at));
        if !in_place {
            return Value::ident(&sorted, &at);
        }
        let empty = method(items.clone().operand(), "splice", vec![number(0.0)], &at);
        out.push(set("_", empty, &at));
        let push = method(items.clone().operand(), "push", vec![ident(&item)], &at);
        let back = vec![set("_", push, &at)];
        out.push(for_each(ident(&sorted), &item, None, back, &at));
        items
    }

    /// Evaluates the comparison of two items.
    fn compare(
        &mut self,
        callback: Callback<'a>,
        left: Value,
        right: Value,
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        if let Callback::Code(code) = callback
            && only_expression(code).is_none()
        {
            // Statements with `return` become a separate helper.
            let function = self.add_function("compare", code, span, true);
            self.function(function);
            let both = self.with_rest(function, vec![left, right], &at);
            return self.helper_call(function, both, span, Hint::None, out);
        }
        let turn = self.turn(callback, 2, span);
        for (name, value) in turn.names.iter().zip([left, right]) {
            let is_same =
                matches!(&value.kind, Kind::Node(tree) if tree.ident_name() == Some(name));
            if !is_same {
                out.push(set(name, value.resolved(), &at));
            }
        }
        out.extend(turn.steps.iter().cloned());
        let order = self.turn_value(&turn, out);
        self.pop_scope();
        order.unwrap_or_else(|| Value::number(0.0, &at))
    }

    /// True if the list has no alias.
    fn is_new_list(&self, value: &Value) -> bool {
        let Kind::Node(tree) = &value.kind else {
            return true;
        };
        let method = tree.get("method").and_then(Tree::as_str).unwrap_or("");
        let name = tree.ident_name().unwrap_or("");
        gives_new_list(method) || tree.tag() == Some("array") || self.new_lists.contains(name)
    }
}
