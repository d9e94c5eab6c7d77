//! Lowers `.then`, `.catch` and `.finally` of calls whose value the source waits for.
//!
//! A call waits for its value where it stands. So a chain runs in order, and its callbacks run
//! in loops of one turn: a chain without `await` could run them earlier than JavaScript, and
//! is refused.

use crate::callback::Callback;
use crate::control::fail;
use crate::expr::Hint;
use crate::lower::{After, Lowerer, What, branch, place, set};
use crate::steps::not;
use crate::tree::Tree;
use crate::turn::Turn;
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, BindingPattern, CallExpression, Expression};
use oxc_span::{GetSpan, Span};

/// The parts of a link of a chain: what comes before, its method, and the call.
type Link<'a> = (&'a Expression<'a>, &'a str, &'a CallExpression<'a>);

/// Splits a call of `then`, `catch` or `finally`.
fn link<'a>(expr: &'a Expression<'a>) -> Option<Link<'a>> {
    let Expression::CallExpression(call) = expr.get_inner_expression() else {
        return None;
    };
    let Expression::StaticMemberExpression(member) = &call.callee else {
        return None;
    };
    let name = member.property.name.as_str();
    let is_plain = !call.optional && !member.optional;
    let is_link = is_plain && matches!(name, "then" | "catch" | "finally");
    is_link.then_some((&member.object, name, call))
}

impl<'a> Lowerer<'a> {
    /// Records that the source waits for an expression, or hands it on to code that does.
    pub(crate) fn awaits(&mut self, expr: &'a Expression<'a>) {
        if link(expr).is_some() {
            self.awaited.insert(expr.get_inner_expression().span().end);
        }
        let Expression::CallExpression(call) = expr.get_inner_expression() else {
            return;
        };
        // The items of `Promise.all([...])`.
        if let Expression::StaticMemberExpression(member) = &call.callee
            && self.free_name(&member.object) == Some("Promise")
            && let [Argument::ArrayExpression(array)] = &call.arguments[..]
        {
            let items = array
                .elements
                .iter()
                .filter_map(|item| item.as_expression());
            for item in items.filter(|item| link(item).is_some()) {
                self.awaited.insert(item.get_inner_expression().span().end);
            }
        }
    }

    /// Lowers a chain that the source waits for; `None` for any other call.
    pub(crate) fn awaited_chain(
        &mut self,
        call: &'a CallExpression<'a>,
        object: &'a Expression<'a>,
        name: &'a str,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let is_link = matches!(name, "then" | "catch" | "finally");
        if !is_link || !self.awaited.contains(&call.span.end) {
            return None;
        }
        let mut first = object;
        while let Some((before, ..)) = link(first) {
            first = before;
        }
        // A variable may hold what is no promise.
        if !matches!(first.get_inner_expression(), Expression::CallExpression(_)) {
            return None;
        }
        self.linked((object, name, call), hint, out)
    }

    /// Lowers what a link of a chain waits for.
    fn before(&mut self, object: &'a Expression<'a>, out: &mut Vec<Tree>) -> Option<Value> {
        match link(object) {
            Some(before) => self.linked(before, Hint::None, out),
            None => Some(self.expr(object, out)),
        }
    }

    fn linked(
        &mut self,
        (object, name, call): Link<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        let mut callbacks = Vec::new();
        for argument in &call.arguments {
            let none = match argument
                .as_expression()
                .map(Expression::get_inner_expression)
            {
                Some(Expression::NullLiteral(_)) => true,
                Some(Expression::Identifier(id)) => id.name == "undefined",
                _ => false,
            };
            callbacks.push(match none {
                true => None,
                false => Some(self.callback(argument)?),
            });
        }
        let first = callbacks.first().copied().flatten();
        match (name, &callbacks[..]) {
            ("then", [Some(code)]) => {
                let value = self.before(object, out)?;
                Some(self.handed_on(*code, value, call.span, hint, out))
            }
            ("then", [None, Some(code)]) | ("catch", [Some(code)]) => {
                let mut steps = Vec::new();
                let value = self.before(object, &mut steps)?;
                let result = self.target(hint);
                steps.push(set(&result, value.resolved(), &at));
                out.push(set(&result, Tree::undefined(&at), &at));
                let attempt = self.caught_by(steps, *code, &result, call.span)?;
                out.push(attempt);
                Some(Value::ident(&result, &at))
            }
            ("then", [Some(code), Some(other)]) => {
                // The second callback does not get the errors of the first.
                let (value, done) = (self.fresh(), self.fresh());
                let mut steps = Vec::new();
                let given = self.before(object, &mut steps)?;
                steps.push(set(&value, given.resolved(), &at));
                steps.push(set(&done, Tree::bool(true, &at), &at));
                out.push(set(&done, Tree::bool(false, &at), &at));
                let result = self.fresh();
                out.push(set(&result, Tree::undefined(&at), &at));
                let attempt = self.caught_by(steps, *other, &result, call.span)?;
                out.push(attempt);
                let mut then = Vec::new();
                let given = Value::ident(&value, &at);
                let found = self.handed_on(*code, given, call.span, Hint::None, &mut then);
                then.push(set(&result, found.resolved(), &at));
                out.push(branch(Tree::ident(&done, &at), then, Vec::new(), &at));
                Some(Value::ident(&result, &at))
            }
            ("finally", [Some(_)]) => self.finally_of(object, first?, call.span, hint, out),
            _ => None,
        }
    }

    /// Calls a callback with a value.
    fn handed_on(
        &mut self,
        code: Callback<'a>,
        value: Value,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let result = self.target(hint);
        let turn = self.turn(code, 1, span);
        let items = Value::new(Kind::List(vec![value]), &at);
        let items = self.named(items, out);
        out.push(set(&result, Tree::undefined(&at), &at));
        self.each_turn(items, turn, After::Set(result.clone()), out);
        Value::ident(&result, &at)
    }

    /// Builds a `try` whose errors a callback gets; its value goes to a variable.
    fn caught_by(
        &mut self,
        steps: Vec<Tree>,
        code: Callback<'a>,
        result: &str,
        span: Span,
    ) -> Option<Tree> {
        let at = place(span);
        let mut caught = Vec::new();
        self.push_scope();
        let (name, turn) = self.caught_turn(code, span, &mut caught)?;
        let none = Value::new(Kind::List(vec![Value::number(0.0, &at)]), &at);
        self.each_turn(none, turn, After::Set(result.to_owned()), &mut caught);
        let inputs = [
            ("try", Tree::list(steps, &at)),
            ("catch", Tree::list(caught, &at)),
            ("catchParam", Tree::text(&name, &at)),
        ];
        Some(Tree::step("try", inputs, &at))
    }

    /// Binds the error that a callback gets, in the scope that is open. Returns the variable of
    /// the message, and the turn of the callback.
    fn caught_turn(
        &mut self,
        code: Callback<'a>,
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Option<(String, Turn<'a>)> {
        let at = place(span);
        let mut turn = Turn {
            callback: code,
            names: Vec::new(),
            given: Vec::new(),
            steps: Vec::new(),
            lists: Vec::new(),
            at: span,
        };
        let is_on = self.errors.is_on;
        let message = self.fresh();
        let error = is_on.then(|| self.take_error(&message, &at, out));
        let pattern = match code {
            Callback::Code(code) => match &code.params().items[..] {
                [] => None,
                [param] if param.initializer.is_none() => Some(&param.pattern),
                _ => return self.bad_handler(span),
            },
            Callback::Helper(function) if self.functions[function].arity == 0 => None,
            Callback::Helper(_) | Callback::Builtin(..) => return self.bad_handler(span),
        };
        match (pattern, error) {
            (None, _) => {}
            (Some(BindingPattern::BindingIdentifier(id)), error) => {
                let what = match is_on {
                    true => What::Error,
                    false => What::Caught,
                };
                let binding = self.declare(id.name.as_str(), id.span, what, true);
                self.bindings[binding].is_ready = true;
                let name = self.bindings[binding].name.clone();
                let value = error.unwrap_or_else(|| Value::ident(&message, &at));
                out.push(set(&name, value.resolved(), &at));
            }
            (Some(pattern), Some(error)) => {
                self.bind_pattern(pattern, error, false, &mut turn.steps);
            }
            (Some(_), None) => {
                self.errors.is_wanted = true;
                return self.bad_handler(span);
            }
        }
        Some((message, turn))
    }

    fn bad_handler<T>(&mut self, span: Span) -> Option<T> {
        self.pop_scope();
        let help = "write the callback where it stands: `.catch((error) => error.message)`";
        self.unsupported(span, "this callback of `.catch()`", help);
        None
    }

    /// Lowers `X.finally(f)`: f runs after X, and an error of X is thrown again.
    fn finally_of(
        &mut self,
        object: &'a Expression<'a>,
        code: Callback<'a>,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(span);
        let mut steps = Vec::new();
        let value = self.before(object, &mut steps)?;
        let result = self.target(hint);
        steps.push(set(&result, value.resolved(), &at));
        out.push(set(&result, Tree::undefined(&at), &at));
        let (error, failed) = (self.fresh(), self.fresh());
        out.push(set(&failed, Tree::null(&at), &at));
        let mut keep = vec![set(&failed, Tree::ident(&error, &at), &at)];
        let held = match self.errors.is_on {
            true => Some(self.take_error(&error, &at, &mut keep)),
            false => None,
        };
        let inputs = [
            ("try", Tree::list(steps, &at)),
            ("catch", Tree::list(keep, &at)),
            ("catchParam", Tree::text(&error, &at)),
        ];
        out.push(Tree::step("try", inputs, &at));
        let turn = self.turn(code, 0, span);
        let once = Value::new(Kind::List(vec![Value::number(0.0, &at)]), &at);
        self.each_turn(once, turn, After::Nothing, out);
        let message = Value::ident(&failed, &at);
        let mut again = match held {
            Some(held) => self.put_back(held, message.clone(), &at),
            None => Vec::new(),
        };
        again.extend(fail(message.clone(), &at));
        let is_none = Tree::binary("===", message.operand(), Tree::null(&at), &at);
        out.push(branch(not(is_none), again, Vec::new(), &at));
        Some(Value::ident(&result, &at))
    }
}
