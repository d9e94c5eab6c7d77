//! Lowers list methods that take a callback to loops, or to the equivalent atoms.

use crate::code::{ends, only_expression, statements};
use crate::codes;
use crate::control::fail;
use crate::expr::Hint;
use crate::inline::grouped;
use crate::lower::{After, Around, Lowerer, What, branch, for_each, named, place, set};
use crate::pattern::{is_there, method, of};
pub(crate) use crate::state::Callback;
use crate::state::{Iterable, Left};
use crate::steps::not;
use crate::tree::{Place, Tree};
use crate::turn::Turn;
use crate::value::{Kind, Value, is_defined};
use a99_core::builtins::{METHODS, resizes_lists};
use hashbrown::HashMap;
use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_span::{GetSpan as _, Span};

/// True if a method takes a callback: by the table of methods, or `Array.from`.
pub(crate) fn takes_callback(name: &str) -> bool {
    let row = METHODS.iter().find(|row| row.name == name);
    name == "from" || row.is_some_and(|row| row.calls)
}

/// Maximum bytes of a callee that a message quotes.
const MAX_CALLEE: usize = 80;

impl<'a> Lowerer<'a> {
    /// Resolves an argument to a callback.
    pub(crate) fn callback(&mut self, argument: &'a Argument<'a>) -> Option<Callback<'a>> {
        let expr = argument.as_expression()?.get_inner_expression();
        if let Some(code) = crate::atom::code_of(expr) {
            return Some(Callback::Code(code));
        }
        match expr {
            Expression::Identifier(id) => match self.lookup(id.name.as_str()) {
                Some(known) => match self.bindings[known].what {
                    What::Function(function) => Some(Callback::Helper(function)),
                    _ => None,
                },
                None if a99_core::builtins::function("", id.name.as_str()).is_some() => {
                    Some(Callback::Builtin("", id.name.as_str()))
                }
                None => None,
            },
            Expression::StaticMemberExpression(member) => {
                let namespace = self.free_name(&member.object)?;
                let name = member.property.name.as_str();
                a99_core::builtins::function(namespace, name)?;
                Some(Callback::Builtin(namespace, name))
            }
            _ => None,
        }
    }

    pub(crate) fn callback_method(
        &mut self,
        object: &'a Expression<'a>,
        name: &'a str,
        call: &'a CallExpression<'a>,
        optional: bool,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        let Some(callback) = call
            .arguments
            .first()
            .and_then(|first| self.callback(first))
        else {
            if matches!(name, "sort" | "toSorted") && call.arguments.is_empty() {
                return None;
            }
            let params = match name {
                "sort" | "toSorted" => "(a, b) => a.price - b.price",
                "reduce" | "reduceRight" => "(sum, x) => sum + x, 0",
                _ => "(x) => ...",
            };
            let help = format!("write the callback where it stands: `.{name}({params})`");
            self.unsupported(call.span, &format!("`.{name}()` without a callback"), help);
            return Some(Value::undefined(&at));
        };
        self.check_gives(name, callback, call.span);
        self.check_order_of(name, object, callback);
        self.check_radix(name, callback, call);
        self.check_match(object, name, call.span);
        self.check_one_item(object, name, call.span);
        if name == "forEach" && !optional && self.may_be_map(object) {
            self.each_entry(object, callback, call, out);
            return Some(Value::undefined(&at));
        }
        let items = self.chained(object, out);
        let items = match optional {
            true => items,
            // Sets have no indexes, so the callback may take the item only.
            false
                if name != "findLast"
                    && self.sort_of(object) == Iterable::Set
                    && self.takes_at_most(callback, 1) =>
            {
                Value::node(of("Array", "from", vec![items.operand()], &at))
            }
            false => self.match_list(object, items),
        };
        self.given = (name, self.known(object).item());
        if !optional {
            return Some(self.iterate(name, items, callback, call, hint, out));
        }
        let items = self.named(items, out);
        let result = self.target(hint);
        out.push(set(&result, Tree::undefined(&at), &at));
        let mut steps = Vec::new();
        let test = is_there(items.clone().operand(), &at);
        let value = self.iterate(name, items, callback, call, Hint::None, &mut steps);
        steps.push(set(&result, value.resolved(), &at));
        out.push(branch(test, steps, Vec::new(), &at));
        Some(Value::ident(&result, &at))
    }

    /// True if a callback reads at most `count` arguments.
    fn takes_at_most(&self, callback: Callback<'a>, count: usize) -> bool {
        match callback {
            Callback::Code(code) => {
                code.params().items.len() <= count && code.params().rest.is_none()
            }
            Callback::Helper(function) => {
                let function = &self.functions[function];
                function.arity <= count && !function.has_rest
            }
            Callback::Builtin(..) => false,
        }
    }

    fn iterate(
        &mut self,
        name: &'a str,
        items: Value,
        callback: Callback<'a>,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        match name {
            "map" => self.map(items, (callback, 3), call.span, hint, out),
            "filter" => self.filter(items, callback, call.span, hint, out),
            "flatMap" => {
                let mapped = self.map(items, (callback, 3), call.span, Hint::None, out);
                Value::node(method(mapped.operand(), "flat", Vec::new(), &at))
            }
            "forEach" => {
                self.each(items, callback, After::Nothing, call.span, out);
                Value::undefined(&at)
            }
            "some" | "every" => {
                let wanted = name == "some";
                let result = self.target(hint);
                out.push(set(&result, Tree::bool(!wanted, &at), &at));
                let found = Box::new(Tree::bool(wanted, &at));
                let after = After::Found(wanted, result.clone(), found);
                self.each(items, callback, after, call.span, out);
                Value::ident(&result, &at)
            }
            "find" | "findIndex" => {
                self.find_item(name, items, callback, (call.span, None), hint, out)
            }
            "findLast" if self.takes_at_most(callback, 1) => {
                let items = self.checked_list(items, call, out);
                let items = method(items.operand(), "toReversed", Vec::new(), &at);
                let at = (call.span, None);
                self.find_item("find", Value::node(items), callback, at, hint, out)
            }
            "findLast" | "findLastIndex" if self.takes_at_most(callback, 2) => {
                let name = if name == "findLast" {
                    "find"
                } else {
                    "findIndex"
                };
                self.find_last(name, items, callback, call, (hint, out))
            }
            "findLast" | "findLastIndex" => {
                let help = "name the list before, and read that in the callback";
                let what = format!("the list as a parameter of `.{name}()`");
                self.unsupported(call.span, &what, help);
                Value::undefined(&at)
            }
            "reduce" => self.reduce(items, callback, call, hint, out),
            "reduceRight" if self.takes_at_most(callback, 2) => {
                let items = self.checked_list(items, call, out);
                let items = method(items.operand(), "toReversed", Vec::new(), &at);
                self.reduce(Value::node(items), callback, call, hint, out)
            }
            "reduceRight" => {
                let help = "reverse a copy: `items.toReversed().reduce(...)`";
                self.unsupported(call.span, "this `.reduceRight()`", help);
                Value::undefined(&at)
            }
            _ => self.sort(name, items, callback, call.span, hint, out),
        }
    }

    /// True if the receiver of a method is known to be a list.
    pub(crate) fn is_list_of(&self, call: &'a CallExpression<'a>) -> bool {
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                self.sort_of(&member.object) == Iterable::List
            }
            _ => false,
        }
    }

    /// Adds a check that a value is a list, because other values lack the method.
    pub(crate) fn checked_list(
        &mut self,
        items: Value,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        if self.is_list_of(call) {
            return items;
        }
        let at = place(call.span);
        let items = self.named(items, out);
        let is_list = of("Array", "isArray", vec![items.clone().operand()], &at);
        out.push(branch(not(is_list), self.no_method(call), Vec::new(), &at));
        items
    }

    /// Builds the steps that fail like JavaScript if a value lacks the method.
    pub(crate) fn no_method(&self, call: &'a CallExpression<'a>) -> Vec<Tree> {
        let at = place(call.span);
        let text = self.text_of(call.callee.span());
        let message = match text.len() <= MAX_CALLEE && !text.contains('\n') {
            true => format!("{text} is not a function"),
            false => "the value has no such method".to_owned(),
        };
        fail(Value::text(&message.replace("?.", "."), &at), &at)
    }

    /// Lowers a callback of one expression to its steps and its value.
    pub(crate) fn single(&mut self, turn: &Turn<'a>) -> Option<(Vec<Tree>, Value)> {
        let mut steps = Vec::new();
        let value = self.turn_value(turn, &mut steps)?;
        Some((steps, value))
    }

    /// Lowers the statements of a callback to the steps of a loop.
    pub(crate) fn turn_steps(&mut self, turn: &Turn<'a>, after: &After, out: &mut Vec<Tree>) {
        let Callback::Code(code) = turn.callback else {
            match (self.turn_value(turn, out), after) {
                (Some(value), After::Nothing) => crate::effect::done(value, &place(turn.at), out),
                (Some(value), after) => self.after(after, value, out),
                (None, _) => {}
            }
            return;
        };
        if let (Some(expr), After::Nothing) = (only_expression(code), after) {
            return self.effect(expr, out);
        }
        let statements = statements(code);
        let left = Left::default();
        self.around.push(Around::Callback(after.clone(), left));
        let mut steps = Vec::new();
        self.block(statements, &mut steps);
        if let Some(Around::Callback(_, left)) = self.around.pop() {
            Self::not_left(&left, turn.at, &mut steps);
        }
        let is_continue = |step: &Tree| step.get("op").and_then(Tree::as_str) == Some("continue");
        if steps.last().is_some_and(is_continue) {
            steps.pop();
        } else if !ends(statements) {
            self.after(after, Value::undefined(&place(turn.at)), &mut steps);
        }
        out.append(&mut steps);
    }

    /// Consumes the value that a callback returns.
    pub(crate) fn after(&mut self, after: &After, value: Value, out: &mut Vec<Tree>) {
        let at = value.place.clone();
        match after {
            After::Nothing => {}
            After::Push(list) => {
                let inputs = [("list", Tree::text(list, &at)), ("item", value.resolved())];
                out.push(Tree::step("push", inputs, &at));
            }
            After::Set(name) => out.push(set(name, value.resolved(), &at)),
            After::Append(name) => {
                let both = Tree::binary("+", Tree::ident(name, &at), value.operand(), &at);
                out.push(set(name, both, &at));
            }
            After::Group(groups, item) => {
                let name = self.fresh();
                grouped(groups, (**item).clone(), value, &name, out);
            }
            After::Settled(list) => {
                let item = crate::promise::fulfilled(value, &at);
                let inputs = [("list", Tree::text(list, &at)), ("item", item.resolved())];
                out.push(Tree::step("push", inputs, &at));
            }
            After::Found(wanted, name, found) => {
                let test = match wanted {
                    true => value.condition(),
                    false => not(value.operand()),
                };
                let steps = vec![
                    set(name, (**found).clone(), &at),
                    Tree::step("break", [], &at),
                ];
                out.push(branch(test, steps, Vec::new(), &at));
            }
            After::Keep(list, item) => {
                let inputs = [
                    ("list", Tree::text(list, &at)),
                    ("item", named((**item).clone())),
                ];
                let push = Tree::step("push", inputs, &at);
                out.push(branch(value.condition(), vec![push], Vec::new(), &at));
            }
        }
    }

    /// Builds a loop that runs a callback for each item.
    pub(crate) fn each(
        &mut self,
        items: Value,
        callback: Callback<'a>,
        after: After,
        span: Span,
        out: &mut Vec<Tree>,
    ) {
        let mut turn = self.turn(callback, 3, span);
        let items = self.listed(items, &mut turn, out);
        self.each_turn(items, turn, after, out);
    }

    pub(crate) fn each_turn(
        &mut self,
        items: Value,
        turn: Turn<'a>,
        after: After,
        out: &mut Vec<Tree>,
    ) {
        let single = match after {
            After::Nothing => None,
            _ => self.single(&turn),
        };
        self.finish_turn(items, turn, single, after, out);
    }

    /// Builds the loop of a callback whose scope is open.
    fn finish_turn(
        &mut self,
        items: Value,
        mut turn: Turn<'a>,
        single: Option<(Vec<Tree>, Value)>,
        after: After,
        out: &mut Vec<Tree>,
    ) {
        let at = place(turn.at);
        let mut steps = std::mem::take(&mut turn.steps);
        match single {
            Some((mut own, value)) => {
                steps.append(&mut own);
                self.after(&after, value, &mut steps);
            }
            None => self.turn_steps(&turn, &after, &mut steps),
        }
        self.pop_scope();
        self.warn_of_growth(&turn, &steps);
        let item = turn.names.first().cloned().unwrap_or_else(|| self.fresh());
        let index = turn.names.get(1).map(String::as_str);
        out.push(for_each(items.resolved(), &item, index, steps, &at));
    }

    /// Warns about a callback that adds items to its list: JavaScript's methods visit the items
    /// that were there at the start, these loops also visit later ones.
    fn warn_of_growth(&mut self, turn: &Turn<'a>, steps: &[Tree]) {
        if grows(&turn.lists, steps) {
            let at = turn.at;
            let message = "the callback changes the list that it is called for, and sees that";
            let help = "go over a copy: `[...items].forEach(...)`";
            self.differs(at, message, help);
        }
    }

    /// Declares a new list in a variable.
    pub(crate) fn new_list(&mut self, hint: Hint<'_>, at: &Place, out: &mut Vec<Tree>) -> String {
        let list = self.target(hint);
        if matches!(hint, Hint::None) {
            self.new_lists.insert(list.clone());
        }
        out.push(set(&list, Tree::list(Vec::new(), at), at));
        list
    }

    fn map(
        &mut self,
        items: Value,
        (callback, given): (Callback<'a>, usize),
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let mut turn = self.turn(callback, given, span);
        let items = self.listed(items, &mut turn, out);
        let single = self.single(&turn);
        // The atom turns `undefined` into `null`, so it fits only values that are never
        // `undefined`.
        if let Some((steps, value)) = &single
            && steps.is_empty()
            && is_defined(value)
            && let Some(members) = aliases(&turn.steps)
        {
            let mut value = value.clone().resolved_node();
            value.substitute(&members);
            self.pop_scope();
            let step = set("result", value, &at);
            let rest = ("steps", Tree::list(vec![step], &at));
            let step = self.loop_step("map", items, &turn, rest);
            return self.new_list_of(step, hint, out);
        }
        let list = self.new_list(hint, &at, out);
        self.finish_turn(items, turn, single, After::Push(list.clone()), out);
        Value::ident(&list, &at)
    }

    /// Returns the result of a step that makes a list.
    fn new_list_of(&mut self, step: Tree, hint: Hint<'_>, out: &mut Vec<Tree>) -> Value {
        let value = self.result(step, true, hint, out);
        if let (Hint::None, Kind::Node(tree)) = (hint, &value.kind)
            && let Some(name) = tree.ident_name()
        {
            self.new_lists.insert(name.to_owned());
        }
        value
    }

    fn filter(
        &mut self,
        items: Value,
        callback: Callback<'a>,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let mut turn = self.turn(callback, 3, span);
        let items = self.listed(items, &mut turn, out);
        let single = self.single(&turn);
        if let Some((steps, value)) = &single
            && steps.is_empty()
            && let Some(members) = aliases(&turn.steps)
        {
            let mut test = value.clone().condition();
            test.substitute(&members);
            self.pop_scope();
            let step = self.loop_step("filter", items, &turn, ("condition", test));
            return self.new_list_of(step, hint, out);
        }
        let list = self.new_list(hint, &at, out);
        let item = self.kept(&mut turn, 0);
        let item = Box::new(Tree::ident(&item, &at));
        self.finish_turn(items, turn, single, After::Keep(list.clone(), item), out);
        Value::ident(&list, &at)
    }

    /// Builds a `map` or `filter` step.
    fn loop_step(
        &mut self,
        op: &'static str,
        items: Value,
        turn: &Turn<'a>,
        rest: (&'static str, Tree),
    ) -> Tree {
        let at = place(turn.at);
        let item = turn.names.first().cloned().unwrap_or_else(|| self.fresh());
        self.warn_of_growth(turn, std::slice::from_ref(&rest.1));
        let inputs = [("items", items.resolved()), ("as", Tree::text(&item, &at))];
        let mut step = Tree::step(op, inputs, &at);
        if let Some(index) = turn.names.get(1) {
            step.put("index", Tree::text(index, &at));
        }
        step.put(rest.0, rest.1);
        step
    }

    /// Lowers `find` and `findIndex`. In a reversed copy indexes count from `last`, the name of
    /// the last index.
    pub(crate) fn find_item(
        &mut self,
        name: &str,
        items: Value,
        callback: Callback<'a>,
        (span, last): (Span, Option<&str>),
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let mut turn = self.turn(callback, 3, span);
        let items = self.listed(items, &mut turn, out);
        let wanted = if name == "find" { 0 } else { 1 };
        let kept = self.kept(&mut turn, wanted);
        if let Some(last) = last
            && turn.names.len() > 1
        {
            let index = turn.names[1].clone();
            let back = Tree::binary("-", Tree::ident(last, &at), Tree::ident(&index, &at), &at);
            turn.steps.insert(0, set(&index, back, &at));
        }
        let result = self.target(hint);
        let none = match name {
            "find" => Tree::undefined(&at),
            _ => Tree::number(-1.0, &at),
        };
        out.push(set(&result, none, &at));
        let found = Box::new(Tree::ident(&kept, &at));
        let after = After::Found(true, result.clone(), found);
        self.each_turn(items, turn, after, out);
        Value::ident(&result, &at)
    }

    /// Lowers `Array.from(items, (item, index) => ...)`.
    pub(crate) fn array_from(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let callback = call
            .arguments
            .get(1)
            .and_then(|second| self.callback(second));
        let source = call.arguments.first().and_then(Argument::as_expression);
        let (Some(callback), Some(source), 2) = (callback, source, call.arguments.len()) else {
            let help = "write `Array.from(items, (item, index) => ...)`";
            self.deny(
                codes::BAD_CALL,
                call.span,
                "`Array.from` takes a callback",
                help,
            );
            return Value::undefined(&at);
        };
        let items = self.expr(source, out);
        let items = Value::node(of("Array", "from", vec![items.operand()], &at));
        self.map(items, (callback, 2), call.span, hint, out)
    }
}

/// Collects the names that destructuring steps set to members or variables, with these values;
/// `None` if the steps do anything else.
fn aliases(steps: &[Tree]) -> Option<HashMap<String, Tree>> {
    let mut members: HashMap<String, Tree> = HashMap::new();
    for step in steps {
        let (op, value) = (step.get("op")?.as_str()?, step.get("value")?);
        if op != "varSet" {
            return None;
        }
        let mut value = match (value.as_str(), value.tag()) {
            (Some(name), _) => Tree::ident(name, &value.place),
            (None, Some("member")) => value.clone(),
            _ => return None,
        };
        value.substitute(&members);
        members.insert(step.get("key")?.as_str()?.to_owned(), value);
    }
    Some(members)
}

/// True if the steps of a loop grow its list under one of these names.
fn grows(lists: &[String], steps: &[Tree]) -> bool {
    let mut found = false;
    for step in steps {
        step.walk(&mut |tree| {
            let method = tree
                .get("method")
                .and_then(Tree::as_str)
                .unwrap_or_default();
            let object = tree.get("object").and_then(Tree::ident_name);
            let is_list = object.is_some_and(|object| lists.iter().any(|list| list == object));
            found |= is_list && resizes_lists(method);
        });
    }
    found
}
