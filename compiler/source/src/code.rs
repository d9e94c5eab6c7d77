//! Reads properties of functions and callbacks from their syntax.

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

/// Returns the expression of a callback that consists of one.
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

/// True if the statements always end with a `return` or `throw`.
pub(crate) fn ends(statements: &[Statement<'_>]) -> bool {
    match statements.last() {
        Some(Statement::ReturnStatement(_) | Statement::ThrowStatement(_)) => true,
        Some(Statement::BlockStatement(block)) => ends(&block.body),
        _ => false,
    }
}

/// True if an expression has a `?.` before its last member or call.
pub(crate) fn is_chain(expr: &Expression<'_>) -> bool {
    let mut expr = expr.get_inner_expression();
    loop {
        expr = match expr {
            Expression::StaticMemberExpression(member) if member.optional => return true,
            Expression::ComputedMemberExpression(member) if member.optional => return true,
            Expression::StaticMemberExpression(member) => &member.object,
            Expression::ComputedMemberExpression(member) => &member.object,
            Expression::CallExpression(call) => &call.callee,
            _ => return false,
        };
        expr = expr.get_inner_expression();
    }
}
