//! Lowers `switch`, `throw` and `try`.

use crate::codes;
use crate::expr::MAX_PARTS;
use crate::leave::breaks;
use crate::lower::{Around, Lowerer, What, branch, place, set};
use crate::state::Iterable;
use crate::steps::one_turn;
use crate::tree::{Place, Tree};
use crate::value::Value;
use oxc_ast::ast::{
    Argument, BindingIdentifier, BindingPattern, CatchClause, Expression, Statement,
    SwitchStatement, TryStatement,
};
use oxc_span::{GetSpan, Span};

impl<'a> Lowerer<'a> {
    /// Lowers a `switch`: to branches if each case ends with `break`, `return`, `throw` or
    /// `continue`.
    pub(crate) fn switch(&mut self, statement: &'a SwitchStatement<'a>, out: &mut Vec<Tree>) {
        if statement.cases.len() > MAX_PARTS {
            let message = format!("a `switch` with more than {MAX_PARTS} cases");
            let help = "look the value up in an object";
            return self.deny(codes::TOO_DEEP, statement.span, message, help);
        }
        let on = self.expr(&statement.discriminant, out);
        let on = self.named(on, out);
        if falls_through(statement) {
            return self.falling_switch(statement, &on, out);
        }
        // A `break` before the end of its case needs a loop of one turn.
        let mut cases = statement.cases.iter();
        let is_left = cases.any(|case| case_statements(&case.consequent).iter().any(breaks));
        self.around.push(match is_left {
            false => Around::Switch,
            true => Around::a_switch(),
        });
        let mut chain: Vec<(Option<Tree>, Vec<Tree>, Place)> = Vec::new();
        let mut tests: Option<Tree> = None;
        let mut is_default = false;
        let last = statement.cases.len().saturating_sub(1);
        for (index, case) in statement.cases.iter().enumerate() {
            match &case.test {
                Some(test) => {
                    let test = self.case_test(&on, test, case.span);
                    tests = Some(match tests.take() {
                        Some(other) => either(other, test),
                        None => test,
                    });
                }
                None => is_default = true,
            }
            if case.consequent.is_empty() && index != last {
                continue;
            }
            self.push_scope();
            let mut steps = Vec::new();
            self.block(case_statements(&case.consequent), &mut steps);
            self.pop_scope();
            let test = if is_default { None } else { tests.take() };
            tests = None;
            chain.push((test, steps, place(case.span)));
        }
        let around = self.around.pop();
        let mut other = Vec::new();
        for (test, steps, at) in chain.into_iter().rev() {
            other = match test {
                Some(test) => vec![branch(test, steps, other, &at)],
                None => steps,
            };
        }
        if is_left {
            other = one_turn(other, &place(statement.span));
        }
        out.extend(other);
        self.leave_further(around, statement.span, out);
    }

    /// Compares the value of a `switch` with that of a case.
    fn case_test(&mut self, on: &Value, test: &'a Expression<'a>, span: Span) -> Tree {
        let mut steps = Vec::new();
        let value = self.expr(test, &mut steps);
        if !steps.is_empty() {
            let help = "compute the value into a constant before the `switch`";
            self.unsupported(test.span(), "a call in a `case`", help);
        }
        Tree::binary("===", on.clone().operand(), value.operand(), &place(span))
    }

    /// Lowers a `switch` with a case that falls through, or with cases behind `default`: a
    /// variable gets the number of the case that matches, and each case from there on runs in a
    /// loop of one turn, which `break` leaves.
    fn falling_switch(
        &mut self,
        statement: &'a SwitchStatement<'a>,
        on: &Value,
        out: &mut Vec<Tree>,
    ) {
        let at = place(statement.span);
        let number = |index: usize| Tree::number(index as f64, &at);
        let count = statement.cases.len();
        let other = statement.cases.iter().position(|case| case.test.is_none());
        let mut chosen = number(other.unwrap_or(count));
        for (index, case) in statement.cases.iter().enumerate().rev() {
            if let Some(test) = &case.test {
                let test = self.case_test(on, test, case.span);
                chosen = Tree::conditional(test, number(index), chosen, &at);
            }
        }
        let first = self.fresh();
        out.push(set(&first, chosen, &at));
        self.around.push(Around::a_switch());
        let mut turn = Vec::new();
        for (index, case) in statement.cases.iter().enumerate() {
            if case.consequent.is_empty() {
                continue;
            }
            self.push_scope();
            let mut steps = Vec::new();
            self.block(block_statements(&case.consequent), &mut steps);
            self.pop_scope();
            let reached = Tree::binary("<=", Tree::ident(&first, &at), number(index), &at);
            turn.push(branch(reached, steps, Vec::new(), &place(case.span)));
        }
        let around = self.around.pop();
        out.extend(one_turn(turn, &at));
        self.leave_further(around, statement.span, out);
    }

    pub(crate) fn throw(&mut self, value: &'a Expression<'a>, at: Span, out: &mut Vec<Tree>) {
        let at = place(at);
        if self.throw_object(value, &at, out) {
            return;
        }
        let message = match value.get_inner_expression() {
            Expression::NewExpression(new) if self.is_error(&new.callee) => {
                self.error_text(&new.arguments, new.span, out)
            }
            Expression::CallExpression(call) if self.is_error(&call.callee) => {
                self.error_text(&call.arguments, call.span, out)
            }
            Expression::Identifier(id) => match self.lookup(id.name.as_str()) {
                Some(caught) if matches!(self.bindings[caught].what, What::Caught) => {
                    let name = self.bindings[caught].name.clone();
                    Value::ident(&name, &at)
                }
                _ => match self.thrown_again(id.name.as_str(), id.span) {
                    Some(message) => message,
                    None => self.thrown(value, out),
                },
            },
            _ => self.thrown(value, out),
        };
        out.extend(fail(message, &at));
    }

    /// Lowers a thrown value to its text, because errors of programs are texts.
    fn thrown(&mut self, value: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        let is_text = matches!(
            value.get_inner_expression(),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_)
        );
        if !is_text {
            let help = "write `throw new Error(message)`";
            self.unsupported(value.span(), "throwing what is no Error", help);
        }
        self.expr(value, out)
    }

    pub(crate) fn is_error(&self, callee: &Expression<'a>) -> bool {
        self.free_name(callee)
            .is_some_and(|name| crate::words::ERRORS.contains(&name))
    }

    /// Lowers the message of a new error.
    pub(crate) fn error_text(
        &mut self,
        arguments: &'a [Argument<'a>],
        at: Span,
        out: &mut Vec<Tree>,
    ) -> Value {
        match arguments {
            [] => Value::text("", &place(at)),
            [message] => match message.as_expression() {
                Some(message) => self.expr(message, out),
                None => Value::text("", &place(at)),
            },
            [_, other, ..] => {
                self.errors.is_wanted = true;
                let help = "put what belongs to the error into its message";
                self.unsupported(other.span(), "an Error with options", help);
                Value::text("", &place(at))
            }
        }
    }

    pub(crate) fn try_statement(&mut self, statement: &'a TryStatement<'a>, out: &mut Vec<Tree>) {
        match &statement.finalizer {
            Some(last) => self.finally(statement, last, out),
            None => self.attempt(statement, out),
        }
    }

    /// Lowers a `try` and its `catch`; without a `catch`, the statements alone.
    pub(crate) fn attempt(&mut self, statement: &'a TryStatement<'a>, out: &mut Vec<Tree>) {
        let at = place(statement.span);
        let mut steps = Vec::new();
        self.push_scope();
        self.block(&statement.block.body, &mut steps);
        self.pop_scope();
        let Some(handler) = &statement.handler else {
            return out.append(&mut steps);
        };
        let mut step = Tree::step("try", [("try", Tree::list(steps, &at))], &at);
        self.push_scope();
        let mut steps = Vec::new();
        let name = match self.errors.is_on {
            true => self.caught_object(handler, &mut steps),
            false => self.caught(handler),
        };
        self.push_scope();
        self.block(&handler.body.body, &mut steps);
        self.pop_scope();
        self.pop_scope();
        let handled = place(handler.span);
        step.put("catch", Tree::list(steps, &handled));
        if name != "error" {
            step.put("catchParam", Tree::text(&name, &handled));
        }
        out.push(step);
    }

    /// Binds an error as an object, and returns the variable of its message.
    fn caught_object(&mut self, handler: &'a CatchClause<'a>, out: &mut Vec<Tree>) -> String {
        let message = self.fresh();
        let at = place(handler.span);
        let error = self.take_error(&message, &at, out);
        match handler.param.as_ref().map(|param| &param.pattern) {
            Some(BindingPattern::BindingIdentifier(id)) => {
                let id = self.declare(id.name.as_str(), id.span, What::Error, true);
                self.bindings[id].is_ready = true;
                let name = self.bindings[id].name.clone();
                out.push(set(&name, error.resolved(), &at));
            }
            Some(pattern) => self.bind_pattern(pattern, error, false, out),
            None => {}
        }
        message
    }

    /// Declares the variable that a `catch` binds.
    fn caught(&mut self, handler: &'a CatchClause<'a>) -> String {
        match handler.param.as_ref().map(|param| &param.pattern) {
            Some(BindingPattern::BindingIdentifier(id)) => {
                let id = self.declare(id.name.as_str(), id.span, What::Caught, true);
                self.bindings[id].is_ready = true;
                self.bindings[id].name.clone()
            }
            Some(pattern) => match message_name(pattern) {
                Some(id) => {
                    let js = id.name.as_str();
                    let name = self.variable(js, id.span, false);
                    self.note_sort(js, Iterable::Text);
                    name
                }
                None => {
                    self.errors.is_wanted = true;
                    let help = "write `catch (e)`, and `e.message` for its text, or \
                                `catch ({ message })`";
                    self.unsupported(pattern.span(), "this pattern in `catch`", help);
                    // Declaring the names avoids further findings for each use.
                    let nothing = Value::undefined(&place(pattern.span()));
                    self.bind_pattern(pattern, nothing, false, &mut Vec::new());
                    "error".to_owned()
                }
            },
            None => self.fresh(),
        }
    }
}

/// Returns the name for the message if a pattern takes only the error's message.
fn message_name<'a>(pattern: &'a BindingPattern<'a>) -> Option<&'a BindingIdentifier<'a>> {
    let BindingPattern::ObjectPattern(object) = pattern else {
        return None;
    };
    let (None, [property]) = (&object.rest, &object.properties[..]) else {
        return None;
    };
    let is_message = !property.computed && property.key.static_name().as_deref() == Some("message");
    match &property.value {
        BindingPattern::BindingIdentifier(id) if is_message => Some(id),
        _ => None,
    }
}

/// Builds steps that fail with a message.
pub(crate) fn fail(message: Value, at: &Place) -> Vec<Tree> {
    match message.is_scalar() {
        true => {
            let text = message.operand();
            vec![Tree::step(
                "Error",
                [("args", Tree::list(vec![text], at))],
                at,
            )]
        }
        false => {
            let fields = [
                ("callee", Tree::text("Error", at)),
                ("arguments", Tree::list(vec![message.operand()], at)),
            ];
            vec![set("_", Tree::node("call", fields, at), at)]
        }
    }
}

/// True if the statements of a case may go on in the next one, or cases follow a `default` with
/// statements of its own.
fn falls_through(statement: &SwitchStatement<'_>) -> bool {
    let Some((_, before)) = statement.cases.split_last() else {
        return false;
    };
    let goes_on = |statements: &[Statement<'_>]| {
        let inner = case_statements(statements);
        let is_whole = inner.len() == block_statements(statements).len();
        is_whole && !inner.last().is_some_and(ends)
    };
    let mut is_default = false;
    before.iter().any(|case| {
        is_default |= case.test.is_none();
        !case.consequent.is_empty() && (is_default || goes_on(&case.consequent))
    })
}

fn either(left: Tree, right: Tree) -> Tree {
    let at = left.place.start..right.place.end;
    Tree::logical("||", left, right, &at)
}

/// Returns the statements of a case, also from inside a block.
fn block_statements<'a>(statements: &'a [Statement<'a>]) -> &'a [Statement<'a>] {
    match statements {
        [Statement::BlockStatement(block)] => &block.body,
        statements => statements,
    }
}

/// Returns the statements of a case without a `break` at their end.
fn case_statements<'a>(statements: &'a [Statement<'a>]) -> &'a [Statement<'a>] {
    let inner = block_statements(statements);
    match inner.split_last() {
        Some((Statement::BreakStatement(end), rest)) if end.label.is_none() => rest,
        _ => inner,
    }
}

/// True if no code after the statement is reachable.
pub(crate) fn ends(statement: &Statement<'_>) -> bool {
    let last_ends = |list: &[Statement<'_>]| list.last().is_some_and(ends);
    match statement {
        Statement::ReturnStatement(_)
        | Statement::ThrowStatement(_)
        | Statement::ContinueStatement(_)
        | Statement::BreakStatement(_) => true,
        Statement::BlockStatement(block) => last_ends(&block.body),
        Statement::IfStatement(inner) => {
            ends(&inner.consequent) && inner.alternate.as_ref().is_some_and(ends)
        }
        Statement::TryStatement(inner) => {
            let handler = inner.handler.as_ref();
            let caught = handler.is_none_or(|handler| last_ends(&handler.body.body));
            let last = inner.finalizer.as_ref();
            last_ends(&inner.block.body) && caught || last.is_some_and(|last| last_ends(&last.body))
        }
        _ => false,
    }
}
