//! `Promise.all` and `Promise.allSettled`: calls that are under way together.

use crate::atom::{code_of, form_of};
use crate::code::only_expression;
use crate::control::fail;
use crate::expr::Hint;
use crate::lower::{Code, Lowerer, branch, place, set};
use crate::pattern::{member_of, of};
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use oxc_ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, BindingIdentifier, BindingPattern,
    CallExpression, Expression, ObjectPropertyKind,
};

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
        let (Some(only), true) = (only, matches!(name, "all" | "allSettled" | "resolve")) else {
            let help = "there are `Promise.all([...])` and `Promise.allSettled([...])`";
            self.unsupported(call.span, &format!("this `Promise.{name}`"), help);
            return Value::undefined(&at);
        };
        if name == "resolve" {
            return self.expr_to(only, hint, out);
        }
        let Some(answers) = self.calls_together(only, &at, out) else {
            // One after the other: the values are the same.
            if name == "allSettled" {
                let help =
                    "call atoms in it: `Promise.allSettled(urls.map((url) => httpFetch({ url })))`";
                self.unsupported(call.span, "this `Promise.allSettled`", help);
            }
            return self.expr_to(only, hint, out);
        };
        match name {
            "all" => self.all_values(&answers, &at, hint, out),
            _ => self.settled(&answers, &at, hint, out),
        }
    }

    /// A `callAll` of the calls, if they are calls of atoms: the variable of its answers.
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
                if member.property.name != "map" || !self.is_call_for_each(code) {
                    return None;
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

    /// The calls of a list, if it has nothing else.
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

    /// The call of an atom that a callback of one parameter makes.
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

    /// The name of an item and the call for it.
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

    /// `callAll({ calls: [a(...), b(...)] })`, or with `items` and a callback `call`: the
    /// answers as they are, each with a value or an error.
    pub(crate) fn call_all(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let mut step = Tree::step("callAll", [], &at);
        let properties: &[ObjectPropertyKind<'a>] = match &call.arguments[..] {
            [Argument::ObjectExpression(object)] => &object.properties,
            _ => &[],
        };
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

    /// The call of an atom that an expression is.
    fn atom_of(&self, expr: &'a Expression<'a>) -> Option<(&'a str, &'a CallExpression<'a>)> {
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
            && self.ops.signature(op).is_some()
            && form_of(op).is_none()
            && !matches!(op, "memoize" | "cache");
        is_atom.then_some((op, call))
    }

    /// The values of answers, or the error of the first that failed.
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
        let object = |members: [(&str, Value); 2]| {
            let members = members.into_iter();
            let members = members.map(|(key, value)| (key.as_bytes().to_vec(), value));
            Value::new(Kind::Map(members.collect()), at)
        };
        let message = Value::new(
            Kind::Map(vec![(b"message".to_vec(), of_answer("error"))]),
            at,
        );
        let rejected = object([("status", Value::text("rejected", at)), ("reason", message)]);
        let fulfilled = object([
            ("status", Value::text("fulfilled", at)),
            ("value", of_answer("value")),
        ]);
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

fn has_error(answer: &str, at: &Place) -> Tree {
    let arguments = vec![Tree::ident(answer, at), Tree::text("error", at)];
    of("Object", "hasOwn", arguments, at)
}

/// Whether an input of a call calls something itself, which would be a step before it.
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
    /// Where the code stands.
    pub(crate) fn span(self) -> oxc_span::Span {
        match self {
            Code::Function(function) => function.span,
            Code::Arrow(arrow) => arrow.span,
        }
    }
}
