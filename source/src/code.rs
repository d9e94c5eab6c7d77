//! What the form of a function or callback tells.

use crate::lower::Code;
use oxc_ast::ast::{ArrowFunctionBody, Expression, FormalParameters, Statement};

impl<'a> Code<'a> {
    pub(crate) fn params(self) -> &'a FormalParameters<'a> {
        match self {
            Code::Function(function) => &function.params,
            Code::Arrow(arrow) => &arrow.params,
        }
    }
}

/// The one expression that a callback is.
pub(crate) fn only_expression<'a>(code: Code<'a>) -> Option<&'a Expression<'a>> {
    if let Code::Arrow(arrow) = code {
        match &arrow.body {
            ArrowFunctionBody::FunctionBody(_) => {}
            body => return body.as_expression(),
        }
    }
    match statements(code) {
        [Statement::ReturnStatement(only)] => only.argument.as_ref(),
        _ => None,
    }
}

pub(crate) fn statements<'a>(code: Code<'a>) -> &'a [Statement<'a>] {
    match code {
        Code::Arrow(arrow) => match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => &body.statements,
            _ => &[],
        },
        Code::Function(function) => match &function.body {
            Some(body) => &body.statements,
            None => &[],
        },
    }
}

/// Whether a `return` stands in a loop.
pub(crate) fn returns_from_loop(list: &[Statement<'_>]) -> bool {
    let mut todo: Vec<(&Statement<'_>, bool)> = list.iter().map(|one| (one, false)).collect();
    while let Some((statement, in_loop)) = todo.pop() {
        match statement {
            Statement::ReturnStatement(_) if in_loop => return true,
            Statement::BlockStatement(block) => {
                todo.extend(block.body.iter().map(|one| (one, in_loop)));
            }
            Statement::IfStatement(branch) => {
                todo.push((&branch.consequent, in_loop));
                todo.extend(branch.alternate.iter().map(|one| (one, in_loop)));
            }
            Statement::WhileStatement(inner) => todo.push((&inner.body, true)),
            Statement::ForStatement(inner) => todo.push((&inner.body, true)),
            Statement::ForOfStatement(inner) => todo.push((&inner.body, true)),
            Statement::ForInStatement(inner) => todo.push((&inner.body, true)),
            Statement::DoWhileStatement(inner) => todo.push((&inner.body, true)),
            Statement::SwitchStatement(inner) => {
                let steps = inner.cases.iter().flat_map(|case| &case.consequent);
                todo.extend(steps.map(|one| (one, in_loop)));
            }
            Statement::TryStatement(inner) => {
                todo.extend(inner.block.body.iter().map(|one| (one, in_loop)));
                let handler = inner.handler.iter().flat_map(|handler| &handler.body.body);
                todo.extend(handler.map(|one| (one, in_loop)));
                let last = inner.finalizer.iter().flat_map(|last| &last.body);
                todo.extend(last.map(|one| (one, in_loop)));
            }
            _ => {}
        }
    }
    false
}

/// Whether the statements surely end with a `return` or `throw`.
pub(crate) fn ends(statements: &[Statement<'_>]) -> bool {
    match statements.last() {
        Some(Statement::ReturnStatement(_) | Statement::ThrowStatement(_)) => true,
        Some(Statement::BlockStatement(block)) => ends(&block.body),
        _ => false,
    }
}
