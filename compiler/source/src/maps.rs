//! Lowers what maps need: `forEach`, whose callback gets value and key, and `Map.groupBy`.

use crate::callback::Callback;
use crate::codes;
use crate::expr::Hint;
use crate::iterable::Iterable;
use crate::lower::{After, Around, Lowerer, place, set};
use crate::pattern::{member_of, method, of};
use crate::tree::Tree;
use crate::value::Value;
use oxc_ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind};
use oxc_span::GetSpan as _;

/// True if a source makes maps.
pub(crate) fn has_maps(source: &str) -> bool {
    let mut rest = source;
    while let Some((before, behind)) = rest.split_once("Map") {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        if !before.ends_with(is_part) && !behind.starts_with(is_part) {
            return true;
        }
        rest = behind;
    }
    false
}

fn property_value<'a>(property: &'a ObjectPropertyKind<'a>) -> Option<&'a Expression<'a>> {
    match property {
        ObjectPropertyKind::ObjectProperty(property) => Some(&property.value),
        ObjectPropertyKind::SpreadProperty(_) => None,
    }
}

impl<'a> Lowerer<'a> {
    /// True if a value may be a map or a set, whose `forEach` hands over keys and not indexes.
    pub(crate) fn may_be_map(&self, object: &'a Expression<'a>) -> bool {
        match self.sort_of(object) {
            Iterable::Map | Iterable::Set => true,
            Iterable::Unknown => self.has_maps,
            _ => false,
        }
    }

    /// Refuses a map in the result of the agent: as JSON it has no entries.
    pub(crate) fn check_result(&mut self, value: &'a Expression<'a>) {
        let is_result = self.current == 0
            && !self
                .around
                .iter()
                .any(|around| matches!(around, Around::Callback(..)));
        if !is_result || !self.has_maps {
            return;
        }
        let mut values = vec![value];
        if let Expression::ObjectExpression(object) = value.get_inner_expression() {
            values = object
                .properties
                .iter()
                .filter_map(property_value)
                .collect();
        }
        for value in values {
            if self.sort_of(value) == Iterable::Map {
                let help = "write `Object.fromEntries(map)`, or `[...map]`";
                self.unsupported(value.span(), "a map in the result", help);
            }
        }
    }

    /// Lowers `forEach` of a map, a set or a value that may be one: a loop over its values, in
    /// which the key is found by the index. `keys` and `values` of a list are its indexes and a
    /// copy, so that a list is visited as well.
    pub(crate) fn each_entry(
        &mut self,
        object: &'a Expression<'a>,
        callback: Callback<'a>,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) {
        let at = place(call.span);
        let whole = self.chained(object, out);
        let whole = self.named(whole, out);
        self.given = ("forEach", self.known(object).item());
        let mut turn = self.turn(callback, 3, call.span);
        let values = method(whole.clone().operand(), "values", Vec::new(), &at);
        let mut first = Vec::new();
        if turn.names.len() > 1 {
            let keys = self.fresh();
            let list = method(whole.clone().operand(), "keys", Vec::new(), &at);
            out.push(set(&keys, list, &at));
            let index = self.fresh();
            let key = std::mem::replace(&mut turn.names[1], index.clone());
            let found = member_of(Value::ident(&keys, &at), Value::ident(&index, &at), &at);
            first.push(set(&key, found.resolved(), &at));
        }
        if turn.names.len() > 2 {
            let name = turn.names.remove(2);
            first.push(set(&name, whole.resolved(), &at));
        }
        turn.steps.splice(0..0, first);
        self.each_turn(Value::node(values), turn, After::Nothing, out);
    }

    /// Lowers `Map.groupBy(items, (item) => key)`.
    pub(crate) fn map_groups(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let items = call.arguments.first().and_then(Argument::as_expression);
        let callback = call.arguments.get(1).and_then(|key| self.callback(key));
        let (Some(items), Some(callback), 2) = (items, callback, call.arguments.len()) else {
            let help = "write `Map.groupBy(items, (item) => item.key)`";
            self.deny(codes::BAD_CALL, call.span, "this `Map.groupBy`", help);
            return Value::undefined(&at);
        };
        let given = self.known(items).item();
        let items = self.iterated(items, out);
        let list = self.named(
            Value::node(of("Array", "from", vec![items.operand()], &at)),
            out,
        );
        // The keys first: a callback may read the map's variable.
        self.given = ("map", given);
        let keys = self.new_list(Hint::None, &at, out);
        let turn = self.turn(callback, 2, call.span);
        self.each_turn(list.clone(), turn, After::Push(keys.clone()), out);
        let groups = self.target(hint);
        out.push(set(&groups, of("Array", "toMap", Vec::new(), &at), &at));
        let (item, index, key) = (self.fresh(), self.fresh(), self.fresh());
        let found = member_of(Value::ident(&keys, &at), Value::ident(&index, &at), &at);
        let map = || Tree::ident(&groups, &at);
        let known = |name: &str, arguments| method(map(), name, arguments, &at);
        let empty = Tree::list(Vec::new(), &at);
        let fresh = known("set", vec![Tree::ident(&key, &at), empty]);
        let has = known("has", vec![Tree::ident(&key, &at)]);
        let group = known("get", vec![Tree::ident(&key, &at)]);
        let steps = vec![
            set(&key, found.resolved(), &at),
            crate::lower::branch(
                crate::steps::not(has),
                vec![set("_", fresh, &at)],
                Vec::new(),
                &at,
            ),
            set(
                "_",
                method(group, "push", vec![Tree::ident(&item, &at)], &at),
                &at,
            ),
        ];
        out.push(crate::lower::for_each(
            list.resolved(),
            &item,
            Some(&index),
            steps,
            &at,
        ));
        Value::ident(&groups, &at)
    }
}
