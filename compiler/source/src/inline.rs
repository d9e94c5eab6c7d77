//! Lowers immediately invoked functions, `(() => { ... })()`, and `Object.groupBy` to loops, as
//! it lowers callbacks.

use crate::expr::Hint;
use crate::lower::{After, Code, Lowerer, branch, place, set};
use crate::pattern::{member_of, method, of};
use crate::state::Callback;
use crate::steps::not;
use crate::tree::Tree;
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, CallExpression};
use oxc_span::GetSpan;

impl<'a> Lowerer<'a> {
    /// Lowers an immediately invoked function to a loop of one turn, or to a helper if it has
    /// parameters.
    pub(crate) fn call_in_place(
        &mut self,
        code: Code<'a>,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let params = code.params();
        let is_generator = matches!(code, Code::Function(function) if function.generator);
        let takes = !params.items.is_empty() || params.rest.is_some();
        if takes || is_generator || !call.arguments.is_empty() {
            let gives_value = self.gives_value(code);
            let function = self.add_function("inline", code, call.callee.span(), gives_value);
            self.function(function);
            let arguments = self.spread_arguments(function, call, out);
            return self.helper_call(function, arguments, call.span, hint, out);
        }
        let result = self.target(hint);
        out.push(set(&result, Tree::undefined(&at), &at));
        let once = Value::node(Tree::list(vec![Tree::null(&at)], &at));
        let callback = Callback::Code(code);
        self.each(once, callback, After::Set(result.clone()), call.span, out);
        Value::ident(&result, &at)
    }

    /// Lowers `Object.groupBy(items, (item) => key)`.
    pub(crate) fn group_by(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let items = call.arguments.first().and_then(Argument::as_expression);
        let callback = call.arguments.get(1).and_then(|key| self.callback(key));
        let (Some(items), Some(callback), 2) = (items, callback, call.arguments.len()) else {
            let help = "write `Object.groupBy(items, (item) => item.key)`";
            self.unsupported(call.span, "this `Object.groupBy`", help);
            return Value::undefined(&at);
        };
        let given = self.known(items).item();
        let items = self.iterated(items, out);
        let items = Value::node(of("Array", "from", vec![items.operand()], &at));
        let groups = self.target(hint);
        self.needs_member_atoms("memberSet", call.span);
        let empty = Value::new(Kind::Map(Vec::new()), &at);
        out.push(set(&groups, empty.resolved(), &at));
        self.given = ("map", given);
        let mut turn = self.turn(callback, 2, call.span);
        let item = self.kept(&mut turn, 0);
        let item = Box::new(Tree::ident(&item, &at));
        self.each_turn(items, turn, After::Group(groups.clone(), item), out);
        Value::ident(&groups, &at)
    }
}

/// Adds an item to the group of its key; `name` is a variable for the group.
pub(crate) fn grouped(groups: &str, item: Tree, key: Value, name: &str, out: &mut Vec<Tree>) {
    let at = &key.place.clone();
    out.push(set(
        name,
        Tree::binary("+", Tree::text("", at), key.operand(), at),
        at,
    ));
    let (object, key) = (Value::ident(groups, at), Value::ident(name, at));
    let both = vec![object.clone().operand(), key.clone().operand()];
    let inputs = [
        ("object", object.clone().resolved()),
        ("key", key.clone().resolved()),
        ("value", Tree::list(Vec::new(), at)),
    ];
    let first = vec![Tree::step("memberSet", inputs, at)];
    let is_new = not(of("Object", "hasOwn", both, at));
    out.push(branch(is_new, first, Vec::new(), at));
    let group = member_of(object, key, at).operand();
    out.push(set("_", method(group, "push", vec![item], at), at));
}
