//! `new Promise((resolve, reject) => ...)`, if each path through the code settles it once, at its
//! end: now, or when a timer ends. It becomes a call of an asynchronous function that returns,
//! throws, or waits first.

use super::Sugar;
use crate::atom::code_of;
use crate::edits::Piece;
use crate::lower::Code;
use oxc_ast::ast::{
    ArrowFunctionBody, BindingPattern, CallExpression, Expression, FormalParameters, NewExpression,
    Statement,
};
use oxc_span::{GetSpan as _, Span};

/// The longest time of a timer, after which JavaScript waits a millisecond.
const PAUSE: &str = "(ms) {
  const time = Number(ms)
  await sleep({ ms: time >= 1 && time <= 2147483647 ? time : 1 })
}";

/// How a promise is settled by its code.
struct Settling<'s> {
    resolve: Option<&'s str>,
    reject: Option<&'s str>,
    /// Name of the function that waits.
    pause: &'s str,
    /// Whether the pieces call it.
    waits: bool,
    /// Uses of the two names that the pieces replace.
    uses: usize,
    pieces: Vec<Piece>,
}

/// The code of a function without its head.
enum Body<'i> {
    Expression(&'i Expression<'i>),
    Statements(&'i [Statement<'i>]),
}

fn body_of<'i>(code: Code<'i>) -> Option<(&'i FormalParameters<'i>, Body<'i>)> {
    match code {
        Code::Arrow(arrow) if !arrow.r#async => Some((
            &arrow.params,
            match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => Body::Statements(&body.statements),
                body => Body::Expression(body.as_expression()?),
            },
        )),
        Code::Function(function) if !function.r#async && !function.generator => {
            let body = function.body.as_ref()?;
            Some((&function.params, Body::Statements(&body.statements)))
        }
        _ => None,
    }
}

impl<'a> Sugar<'_, 'a> {
    pub(super) fn promise(&mut self, it: &NewExpression<'a>) {
        let ([one], true) = (&it.arguments[..], self.facts.is_free(&it.callee, "Promise")) else {
            return;
        };
        let Some(code) = one.as_expression().and_then(code_of) else {
            return;
        };
        let Some((params, body)) = body_of(code) else {
            return;
        };
        if matches!(code, Code::Function(function) if self.facts.uses_this(function.span.start)) {
            return;
        }
        let mut names = [None, None];
        for (param, name) in params.items.iter().zip(&mut names) {
            let BindingPattern::BindingIdentifier(id) = &param.pattern else {
                return;
            };
            *name = Some((id.name.as_str(), id.span.start));
        }
        if params.items.len() > 2 || params.rest.is_some() {
            return;
        }
        let pause = match self.behind.get(PAUSE) {
            Some(name) => name.clone(),
            None => self.fresh("pause"),
        };
        let mut settling = Settling {
            resolve: names[0].map(|(name, _)| name),
            reject: names[1].map(|(name, _)| name),
            pause: &pause,
            waits: false,
            uses: 0,
            pieces: vec!["(async () => { ".into()],
        };
        if self.settled(&mut settling, &body).is_none() {
            return;
        }
        // Another use might settle it later, or hand it on.
        let places = names.into_iter().flatten().map(|(_, at)| {
            let variable = self.facts.scoping.variable(at);
            variable.map_or(0, |variable| variable.places.len() - 1)
        });
        if places.sum::<usize>() != settling.uses {
            return;
        }
        let (waits, mut pieces) = (settling.waits, settling.pieces);
        pieces.push(" })()".into());
        if waits {
            self.pause(&pause, it.span);
        }
        self.edits.replace(it.span, pieces);
    }

    /// Writes the function that waits behind the source. What the source calls `sleep` itself gets
    /// another name, because the function calls the atom.
    fn pause(&mut self, name: &str, at: Span) {
        if self.behind.contains_key(PAUSE) {
            return;
        }
        let text = format!("async function {name}{PAUSE}");
        self.appended.push((at, vec![text.into()]));
        self.behind.insert(PAUSE, name.to_owned());
        let facts = self.facts;
        let at_top = facts.bindings.get("sleep").into_iter().flatten();
        let mut at_top = at_top.filter(|at| facts.owner.get(*at) == Some(&super::facts::TOP));
        let Some(variable) = at_top.next().and_then(|at| facts.scoping.variable(*at)) else {
            return;
        };
        let other = self.fresh("sleep");
        for place in &variable.places {
            let text = match facts.short.contains(place) {
                true => format!("sleep: {other}"),
                false => other.clone(),
            };
            let span = Span::new(*place, *place + "sleep".len() as u32);
            self.edits.replace(span, vec![text.into()]);
        }
    }

    /// Writes code that settles the promise at its end; `None` if it may not.
    fn settled(&self, to: &mut Settling<'_>, body: &Body<'_>) -> Option<()> {
        match body {
            Body::Expression(expr) => self.settled_by(to, expr),
            Body::Statements(statements) => self.settled_list(to, statements),
        }
    }

    fn settled_list(&self, to: &mut Settling<'_>, statements: &[Statement<'_>]) -> Option<()> {
        // A `return` adds nothing to what is at the end.
        let statements = match statements {
            [before @ .., Statement::ReturnStatement(last)] if last.argument.is_none() => before,
            all => all,
        };
        let (last, before) = statements.split_last()?;
        for statement in before {
            match statement {
                Statement::IfStatement(one)
                    if one.alternate.is_none() && returns(&one.consequent) =>
                {
                    to.pieces
                        .extend(["if (".into(), one.test.span().into(), ") { ".into()]);
                    self.settled_statement(to, &one.consequent)?;
                    to.pieces.push(" } ".into());
                }
                statement => to.pieces.extend([statement.span().into(), "; ".into()]),
            }
        }
        self.settled_statement(to, last)
    }

    fn settled_statement(&self, to: &mut Settling<'_>, statement: &Statement<'_>) -> Option<()> {
        match statement {
            Statement::ExpressionStatement(one) => self.settled_by(to, &one.expression),
            Statement::ReturnStatement(one) => self.settled_by(to, one.argument.as_ref()?),
            Statement::BlockStatement(block) => self.settled_list(to, &block.body),
            Statement::ThrowStatement(one) => {
                to.pieces.push(one.span.into());
                Some(())
            }
            Statement::IfStatement(one) => {
                let other = one.alternate.as_ref()?;
                to.pieces
                    .extend(["if (".into(), one.test.span().into(), ") { ".into()]);
                self.settled_statement(to, &one.consequent)?;
                to.pieces.push(" } else { ".into());
                self.settled_statement(to, other)?;
                to.pieces.push(" }".into());
                Some(())
            }
            Statement::TryStatement(one) if one.finalizer.is_none() => {
                let handler = one.handler.as_ref()?;
                to.pieces.push("try { ".into());
                let before = std::mem::take(&mut to.waits);
                self.settled_list(to, &one.block.body)?;
                if to.waits {
                    // What a timer does is outside of the `try`.
                    return None;
                }
                to.waits = before;
                to.pieces.push(" } catch ".into());
                if let Some(param) = &handler.param {
                    to.pieces
                        .extend(["(".into(), param.span.into(), ") ".into()]);
                }
                to.pieces.push("{ ".into());
                self.settled_list(to, &handler.body.body)?;
                to.pieces.push(" }".into());
                Some(())
            }
            _ => None,
        }
    }

    fn settled_by(&self, to: &mut Settling<'_>, expr: &Expression<'_>) -> Option<()> {
        match expr.get_inner_expression() {
            Expression::ConditionalExpression(one) => {
                to.pieces
                    .extend(["if (".into(), one.test.span().into(), ") { ".into()]);
                self.settled_by(to, &one.consequent)?;
                to.pieces.push(" } else { ".into());
                self.settled_by(to, &one.alternate)?;
                to.pieces.push(" }".into());
                Some(())
            }
            Expression::CallExpression(call) if self.facts.is_free(&call.callee, "setTimeout") => {
                self.timed(to, call)
            }
            Expression::CallExpression(call) => {
                let value = match &call.arguments[..] {
                    [] => None,
                    [one] => Some(one.as_expression()?),
                    _ => return None,
                };
                self.end(to, &call.callee, value)
            }
            _ => None,
        }
    }

    /// `setTimeout(code, ms, value)`.
    fn timed(&self, to: &mut Settling<'_>, call: &CallExpression<'_>) -> Option<()> {
        let mut args = call.arguments.iter().map(|one| one.as_expression());
        let code = args.next()??;
        let time = args.next();
        to.waits = true;
        to.pieces.push(format!("await {}(", to.pause).into());
        if let Some(time) = time {
            to.pieces.push(time?.span().into());
        }
        to.pieces.push("); ".into());
        let value = args.next();
        match code_of(code).map(body_of) {
            Some(Some((params, body))) if params.items.is_empty() && params.rest.is_none() => {
                self.settled(to, &body)
            }
            Some(_) => None,
            None => self.end(to, code, value.map_or(Some(None), |value| value.map(Some))?),
        }
    }

    /// A call of one of the two functions.
    fn end(
        &self,
        to: &mut Settling<'_>,
        callee: &Expression<'_>,
        value: Option<&Expression<'_>>,
    ) -> Option<()> {
        let Expression::Identifier(id) = callee.get_inner_expression() else {
            return None;
        };
        let name = Some(id.name.as_str());
        let word = match () {
            () if name == to.resolve => "return",
            () if name == to.reject => "throw",
            () => return None,
        };
        to.uses += 1;
        match (value, word) {
            (Some(value), _) => to
                .pieces
                .extend([format!("{word} ").into(), value.span().into()]),
            (None, "throw") => to.pieces.push("throw undefined".into()),
            (None, _) => to.pieces.push(word.into()),
        }
        to.pieces.push(";".into());
        Some(())
    }
}

/// True if a branch ends its function.
fn returns(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::BlockStatement(block) => block.body.last().is_some_and(returns),
        Statement::ReturnStatement(_) | Statement::ThrowStatement(_) => true,
        _ => false,
    }
}
