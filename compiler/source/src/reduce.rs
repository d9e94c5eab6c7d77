//! Lowers `reduce`.

use crate::control::fail;
use crate::expr::Hint;
use crate::lower::{After, Lowerer, branch, place, set};
use crate::pattern::{member_of, method};
use crate::state::Callback;
use crate::steps::not;
use crate::tree::{Place, Tree};
use crate::turn::Turn;
use crate::value::Value;
use hashbrown::HashMap;
use oxc_ast::ast::{Argument, CallExpression};

impl<'a> Lowerer<'a> {
    pub(crate) fn reduce(
        &mut self,
        items: Value,
        callback: Callback<'a>,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        self.check_initial(callback, call);
        let at = place(call.span);
        let mut items = [items];
        let mut steps = Vec::new();
        let initial = call.arguments.get(1).and_then(Argument::as_expression);
        let initial = initial.map(|initial| self.expr(initial, &mut steps));
        self.keep(&mut items, &steps, out);
        out.append(&mut steps);
        let [items] = items;
        let mut turn = self.turn(callback, 4, call.span);
        while turn.names.len() < 2 {
            turn.names.push(self.fresh());
        }
        let mut total = turn.names.remove(0);
        let items = self.listed(items, &mut turn, out);
        let (initial, items) = match initial {
            Some(initial) => (initial, items),
            None => {
                self.count_from_one(&mut turn, &at);
                self.first_and_rest(items, call, &at, out)
            }
        };
        if let Hint::Fresh(name) = hint {
            self.rename_param(&total, name);
            if let Some(given) = turn.given.first_mut() {
                name.clone_into(given);
            }
            total = name.to_owned();
        }
        out.push(set(&total, initial.resolved(), &at));
        self.each_turn(items, turn, After::Set(total.clone()), out);
        Value::ident(&total, &at)
    }

    /// Counts the items of a callback from 1, because the first item is the initial value.
    fn count_from_one(&mut self, turn: &mut Turn<'a>, at: &Place) {
        let counts = turn.names.get_mut(1);
        if let Some(name) = counts {
            let before = self.fresh();
            let name = std::mem::replace(name, before.clone());
            let number = Tree::binary("+", Tree::ident(&before, at), Tree::number(1.0, at), at);
            turn.steps.insert(0, set(&name, number, at));
        }
    }

    /// Renames the variable of a parameter of the current callback.
    fn rename_param(&mut self, from: &str, to: &str) {
        let top = self.scopes.last().into_iter().flat_map(HashMap::values);
        let id = top.copied().find(|id| self.bindings[*id].name == from);
        if let Some(id) = id {
            self.rename(id, to);
        }
    }

    /// Splits a list into its first item and the rest; an empty list is an error.
    fn first_and_rest(
        &mut self,
        items: Value,
        call: &'a CallExpression<'a>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> (Value, Value) {
        let items = self.named(items, out);
        let length = member_of(items.clone(), Value::text("length", at), at).operand();
        let message = Value::text("Reduce of empty array with no initial value", at);
        // A value without `length` also counts as empty; if it is not a list, the missing method
        // is the error.
        let mut none = Vec::new();
        if !self.is_list_of(call) {
            self.checked_list(items.clone(), call, &mut none);
        }
        none.append(&mut fail(message, at));
        out.push(branch(not(length), none, Vec::new(), at));
        let first = member_of(items.clone(), Value::number(0.0, at), at);
        let from = items.place.clone();
        let rest = method(items.operand(), "slice", vec![Tree::number(1.0, at)], &from);
        (first, Value::node(rest))
    }
}
