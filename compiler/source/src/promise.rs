//! Lowers `Promise.all` and `Promise.allSettled` to concurrent calls.

use crate::atom::{code_of, form_of, properties_of};
use crate::code::only_expression;
use crate::control::fail;
use crate::expr::Hint;
use crate::lower::{After, Code, Lowerer, branch, for_each, place, set};
use crate::pattern::{member_of, of};
use crate::state::Callback;
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use a99_core::sig::{Binding, Form};
use oxc_ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, BindingIdentifier, BindingPattern,
    CallExpression, Expression, ObjectPropertyKind,
};
use oxc_span::GetSpan;

impl<'a> Lowerer<'a> {
    pub(crate) fn promise(
        &mut self,
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let only = match &call.arguments[..] {
            [only] => only.as_expression(),
            _ => None,
        };
        match (name, only) {
            ("resolve", None) if call.arguments.is_empty() => return Value::undefined(&at),
            ("reject", Some(error)) => {
                self.throw(error, call.span, out);
                return Value::undefined(&at);
            }
            _ => {}
        }
        let (Some(only), true) = (only, matches!(name, "all" | "allSettled" | "resolve")) else {
            let help = match name {
                "race" => {
                    "wait for all with `Promise.all([...])` or `Promise.allSettled([...])`, and \
                     take the first; the host limits the time of a call"
                }
                "any" => {
                    "wait for all with `Promise.allSettled([...])`, and take the first in the list \
                     whose `status` is `'fulfilled'`"
                }
                _ => "there are `Promise.all([...])` and `Promise.allSettled([...])`",
            };
            self.unsupported(call.span, &format!("this `Promise.{name}`"), help);
            return Value::undefined(&at);
        };
        if name == "resolve" {
            return self.expr_to(only, hint, out);
        }
        let Some(answers) = self.calls_together(only, &at, out) else {
            // The items run one after the other; the values are the same.
            return match name {
                "all" => self.expr_to(only, hint, out),
                _ => self.settled_in_turn(only, call, hint, out),
            };
        };
        match name {
            "all" => self.all_values(&answers, &at, hint, out),
            _ => self.settled(&answers, &at, hint, out),
        }
    }

    /// Lowers calls of atoms to one `callAll` step and returns the variable of its answers.
    fn calls_together(
        &mut self,
        list: &'a Expression<'a>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Option<String> {
        let mut step = Tree::step("callAll", [], at);
        match list.get_inner_expression() {
            Expression::ArrayExpression(array) => {
                let calls = self.calls_of(array, at, out)?;
                step.put("calls", calls);
            }
            Expression::CallExpression(map) => {
                let Expression::StaticMemberExpression(member) = map.callee.get_inner_expression()
                else {
                    return None;
                };
                let [callback] = &map.arguments[..] else {
                    return None;
                };
                let code = code_of(callback.as_expression()?)?;
                if member.property.name != "map" {
                    return None;
                }
                if !self.is_call_for_each(code) {
                    let callback = self.callback(callback)?;
                    let (op, call) = self.atom_of(only_expression(code)?)?;
                    return self.calls_with_inputs(&member.object, (callback, op, call), at, out);
                }
                let items = self.expr(&member.object, out);
                step.put("items", items.resolved());
                self.call_for_each(code, &mut step);
            }
            _ => return None,
        }
        let answers = self.fresh();
        step.put("result", Tree::text(&answers, at));
        out.push(step);
        Some(answers)
    }

    /// Lowers the calls of a callback that computes their inputs: a loop computes all inputs
    /// first.
    fn calls_with_inputs(
        &mut self,
        items: &'a Expression<'a>,
        (callback, op, call): (Callback<'a>, &'a str, &'a CallExpression<'a>),
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Option<String> {
        let [Argument::ObjectExpression(object)] = &call.arguments[..] else {
            return None;
        };
        let mut given_inputs = Vec::new();
        for property in &object.properties {
            let (key, expr) = self.input(op, property)?;
            if self.binding(op, key, property)? != Binding::Value {
                return None;
            }
            given_inputs.push((key, expr));
        }
        let keys: Vec<&str> = given_inputs.iter().map(|(key, _)| *key).collect();
        self.missing_inputs(op, &keys, call);
        let items = self.expr(items, out);
        let mut turn = self.turn(callback, 3, call.span);
        let items = self.listed(items, &mut turn, out);
        let list = self.new_list(Hint::None, at, out);
        let mut steps = std::mem::take(&mut turn.steps);
        let exprs: Vec<&Expression<'a>> = given_inputs.iter().map(|(_, expr)| *expr).collect();
        let values = self.exprs(&exprs, &mut steps);
        let mut step = Tree::step(op.to_owned(), [], at);
        let mut inputs = Vec::new();
        let given = self.fresh();
        for (key, value) in keys.into_iter().zip(values) {
            let input = member_of(Value::ident(&given, at), Value::text(key, at), at);
            step.put_owned(key.as_bytes().to_vec().into(), input.resolved());
            inputs.push((key.as_bytes().to_vec(), value));
        }
        let inputs = Value::new(Kind::Map(inputs), at);
        self.after(&After::Push(list.clone()), inputs, &mut steps);
        self.pop_scope();
        let item = turn.names.first().cloned().unwrap_or_else(|| self.fresh());
        let index = turn.names.get(1).map(String::as_str);
        out.push(for_each(items.resolved(), &item, index, steps, at));
        let answers = self.fresh();
        let inputs = [
            ("items", Tree::text(&list, at)),
            ("as", Tree::text(&given, at)),
            ("call", step),
            ("result", Tree::text(&answers, at)),
        ];
        out.push(Tree::step("callAll", inputs, at));
        Some(answers)
    }

    /// Lowers `Promise.allSettled` of items that run one after the other.
    fn settled_in_turn(
        &mut self,
        only: &'a Expression<'a>,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        match only.get_inner_expression() {
            Expression::ArrayExpression(array) => {
                let list = self.new_list(hint, &at, out);
                for element in &array.elements {
                    let Some(expr) = element.as_expression() else {
                        self.unsupported(element.span(), "`...` in calls together", "list them");
                        continue;
                    };
                    let mut steps = Vec::new();
                    let value = self.expr(expr, &mut steps);
                    self.after(&After::Settled(list.clone()), value, &mut steps);
                    let attempt = self.settling(steps, &list, &at);
                    out.push(attempt);
                }
                return Value::ident(&list, &at);
            }
            Expression::CallExpression(map) => {
                if let Expression::StaticMemberExpression(member) =
                    map.callee.get_inner_expression()
                    && member.property.name == "map"
                    && let [callback] = &map.arguments[..]
                    && let Some(callback) = self.callback(callback)
                {
                    let items = self.chained(&member.object, out);
                    let mut turn = self.turn(callback, 3, call.span);
                    let items = self.listed(items, &mut turn, out);
                    let list = self.new_list(hint, &at, out);
                    let after = After::Settled(list.clone());
                    let mut steps = std::mem::take(&mut turn.steps);
                    match self.single(&turn) {
                        Some((mut own, value)) => {
                            steps.append(&mut own);
                            self.after(&after, value, &mut steps);
                        }
                        None => self.turn_steps(&turn, &after, &mut steps),
                    }
                    self.pop_scope();
                    let item = turn.names.first().cloned().unwrap_or_else(|| self.fresh());
                    let index = turn.names.get(1).map(String::as_str);
                    let steps = vec![self.settling(steps, &list, &at)];
                    out.push(for_each(items.resolved(), &item, index, steps, &at));
                    return Value::ident(&list, &at);
                }
            }
            _ => {}
        }
        let help =
            "make the calls in it: `Promise.allSettled(urls.map((url) => httpFetch({ url })))`";
        self.unsupported(call.span, "this `Promise.allSettled`", help);
        Value::undefined(&at)
    }

    /// Builds a `try` that appends the error of the steps to the outcomes.
    fn settling(&mut self, steps: Vec<Tree>, list: &str, at: &Place) -> Tree {
        let error = self.fresh();
        let mut caught = Vec::new();
        let reason = match self.errors.is_on {
            true => self.take_error(&error, at, &mut caught),
            false => reason_of(Value::ident(&error, at), at),
        };
        let item = rejected(reason, at);
        let inputs = [("list", Tree::text(list, at)), ("item", item.resolved())];
        caught.push(Tree::step("push", inputs, at));
        let inputs = [
            ("try", Tree::list(steps, at)),
            ("catch", Tree::list(caught, at)),
            ("catchParam", Tree::text(&error, at)),
        ];
        Tree::step("try", inputs, at)
    }

    /// Returns the calls of a list if all items are calls of atoms.
    fn calls_of(
        &mut self,
        array: &'a ArrayExpression<'a>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Option<Tree> {
        let calls: Option<Vec<_>> = array.elements.iter().map(|e| self.element(e)).collect();
        let mut steps = Vec::new();
        for (op, call) in calls? {
            let before = out.len();
            let span = call.span;
            let call = self.atom_step(op, call, out);
            if out.len() > before && !steps.is_empty() {
                let help = "compute the inputs into constants before";
                self.unsupported(span, "a computed input of calls together", help);
            }
            steps.push(call.unwrap_or_else(|| Tree::null(at)));
        }
        Some(Tree::list(steps, at))
    }

    /// Returns the call of an atom that a callback of one parameter makes.
    fn each_call(
        &self,
        code: Code<'a>,
    ) -> Option<(&'a BindingIdentifier<'a>, &'a str, &'a CallExpression<'a>)> {
        let [param] = &code.params().items[..] else {
            return None;
        };
        let BindingPattern::BindingIdentifier(item) = &param.pattern else {
            return None;
        };
        let (op, call) = self.atom_of(only_expression(code)?)?;
        (!has_calls(call)).then_some((item, op, call))
    }

    fn is_call_for_each(&self, code: Code<'a>) -> bool {
        self.each_call(code).is_some()
    }

    /// Sets the item's name and the call of each item in the `callAll` step.
    fn call_for_each(&mut self, code: Code<'a>, step: &mut Tree) {
        let Some((item, op, call)) = self.each_call(code) else {
            return;
        };
        let at = step.place.clone();
        self.push_scope();
        let name = self.variable(item.name.as_str(), item.span, true);
        let mut steps = Vec::new();
        let call = self.atom_step(op, call, &mut steps);
        self.pop_scope();
        if !steps.is_empty() {
            let help = "compute the inputs in a `map` before";
            self.unsupported(code.span(), "a computed input of calls together", help);
        }
        step.put("as", Tree::text(&name, &at));
        step.put("call", call.unwrap_or_else(|| Tree::null(&at)));
    }

    /// Lowers `callAll({ calls: [a(...), b(...)] })`, or with `items` and a callback `call`. The
    /// answers stay raw: each has a value or an error.
    pub(crate) fn call_all(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let mut step = Tree::step("callAll", [], &at);
        let properties = properties_of(call);
        let mut good = !properties.is_empty();
        for property in properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else {
                good = false;
                continue;
            };
            let value = &property.value;
            match (property.key.static_name().as_deref(), value) {
                (Some("calls"), Expression::ArrayExpression(array)) => {
                    match self.calls_of(array, &at, out) {
                        Some(calls) => step.put("calls", calls),
                        None => good = false,
                    }
                }
                (Some("items"), value) => {
                    let items = self.expr(value, out);
                    step.put("items", items.resolved());
                }
                (Some("call"), value) => match code_of(value) {
                    Some(code) if self.is_call_for_each(code) => {
                        self.call_for_each(code, &mut step);
                    }
                    _ => good = false,
                },
                (Some("limit"), value) => {
                    let limit = self.expr(value, out);
                    step.put("limit", limit.resolved());
                }
                _ => good = false,
            }
        }
        if !good {
            let help = "write `callAll({ calls: [a({ ... }), b({ ... })] })`, or `callAll({ items, \
                        call: (item) => a({ ... }) })`";
            self.unsupported(call.span, "this `callAll`", help);
            return Value::undefined(&at);
        }
        self.result(step, true, hint, out)
    }

    fn element(
        &self,
        element: &'a ArrayExpressionElement<'a>,
    ) -> Option<(&'a str, &'a CallExpression<'a>)> {
        self.atom_of(element.as_expression()?)
    }

    /// Returns the call if an expression calls an atom.
    pub(crate) fn atom_of(
        &self,
        expr: &'a Expression<'a>,
    ) -> Option<(&'a str, &'a CallExpression<'a>)> {
        let inner = match expr.get_inner_expression() {
            Expression::AwaitExpression(inner) => inner.argument.get_inner_expression(),
            inner => inner,
        };
        let Expression::CallExpression(call) = inner else {
            return None;
        };
        let Expression::Identifier(id) = &call.callee else {
            return None;
        };
        let op = id.name.as_str();
        let is_atom = self.lookup(op).is_none()
            && form_of(op).is_none()
            && self.ops.signature(op).is_some_and(|sig| {
                !matches!(sig.form, Some(Form::Memoize | Form::Cache | Form::ToolLoop))
            });
        is_atom.then_some((op, call))
    }

    /// Takes the values of the answers, or throws the first error in list order.
    fn all_values(
        &mut self,
        answers: &str,
        at: &Place,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let (answer, failed) = (self.fresh(), self.fresh());
        let inputs = [
            ("items", Tree::text(answers, at)),
            ("as", Tree::text(&answer, at)),
            ("condition", has_error(&answer, at)),
            ("result", Tree::text(&failed, at)),
        ];
        out.push(Tree::step("find", inputs, at));
        let message = member_of(Value::ident(&failed, at), Value::text("error", at), at);
        out.push(branch(
            Tree::ident(&failed, at),
            fail(message, at),
            Vec::new(),
            at,
        ));
        let value = member_of(Value::ident(&answer, at), Value::text("value", at), at);
        self.map_answers(answers, &answer, value, at, hint, out)
    }

    fn settled(&mut self, answers: &str, at: &Place, hint: Hint<'_>, out: &mut Vec<Tree>) -> Value {
        let answer = self.fresh();
        let of_answer = |key: &str| member_of(Value::ident(&answer, at), Value::text(key, at), at);
        let rejected = rejected(reason_of(of_answer("error"), at), at);
        let fulfilled = fulfilled(of_answer("value"), at);
        let test = has_error(&answer, at);
        let value = Tree::conditional(test, rejected.operand(), fulfilled.operand(), at);
        let value = Value::node(value);
        self.map_answers(answers, &answer, value, at, hint, out)
    }

    fn map_answers(
        &mut self,
        answers: &str,
        answer: &str,
        value: Value,
        at: &Place,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let inputs = [
            ("items", Tree::text(answers, at)),
            ("as", Tree::text(answer, at)),
            (
                "steps",
                Tree::list(vec![set("result", value.resolved(), at)], at),
            ),
        ];
        self.result(Tree::step("map", inputs, at), true, hint, out)
    }
}

fn object(members: [(&str, Value); 2], at: &Place) -> Value {
    let members = members.into_iter();
    let members = members.map(|(key, value)| (key.as_bytes().to_vec(), value));
    Value::new(Kind::Map(members.collect()), at)
}

/// Builds the outcome of `Promise.allSettled` for a value.
pub(crate) fn fulfilled(value: Value, at: &Place) -> Value {
    object(
        [("status", Value::text("fulfilled", at)), ("value", value)],
        at,
    )
}

/// Builds the reason of a call that failed with this message.
fn reason_of(message: Value, at: &Place) -> Value {
    Value::new(Kind::Map(vec![(b"message".to_vec(), message)]), at)
}

/// Builds the outcome of `Promise.allSettled` for an error.
fn rejected(reason: Value, at: &Place) -> Value {
    object(
        [("status", Value::text("rejected", at)), ("reason", reason)],
        at,
    )
}

fn has_error(answer: &str, at: &Place) -> Tree {
    let arguments = vec![Tree::ident(answer, at), Tree::text("error", at)];
    of("Object", "hasOwn", arguments, at)
}

/// True if an input contains a call, which would become a step before the atom.
fn has_calls(call: &CallExpression<'_>) -> bool {
    let [Argument::ObjectExpression(object)] = &call.arguments[..] else {
        return true;
    };
    object.properties.iter().any(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => is_call(&property.value),
        ObjectPropertyKind::SpreadProperty(_) => true,
    })
}

fn is_call(expr: &Expression<'_>) -> bool {
    match expr.get_inner_expression() {
        Expression::CallExpression(call) => {
            !matches!(
                call.callee.get_inner_expression(),
                Expression::StaticMemberExpression(_)
            ) || call
                .arguments
                .iter()
                .filter_map(Argument::as_expression)
                .any(|argument| code_of(argument).is_some() || is_call(argument))
        }
        Expression::AwaitExpression(_) => true,
        _ => false,
    }
}

impl<'a> Code<'a> {
    pub(crate) fn span(self) -> oxc_span::Span {
        match self {
            Code::Function(function) => function.span,
            Code::Arrow(arrow) => arrow.span,
        }
    }
}
