//! Decides whether a function always returns a value: then its call needs no step that clears the
//! result variable.

use crate::lower::{Code, Lowerer};
use oxc_ast::ast::{ArrowFunctionBody, CallExpression, Expression, Statement};
use oxc_syntax::operator::{LogicalOperator, UnaryOperator};

impl<'a> Lowerer<'a> {
    /// True if a function always returns, and never `undefined`.
    pub(crate) fn gives_value(&self, code: Code<'a>) -> bool {
        let body: &[Statement<'a>] = match code {
            Code::Arrow(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => &body.statements,
                body => return body.as_expression().is_some_and(is_value),
            },
            Code::Function(function) => match &function.body {
                Some(body) => &body.statements,
                None => return false,
            },
        };
        always_ends(body) && returns_values(body)
    }
}

fn always_ends(statements: &[Statement<'_>]) -> bool {
    let mut statements = statements;
    loop {
        statements = match statements.last() {
            Some(Statement::ReturnStatement(_) | Statement::ThrowStatement(_)) => return true,
            Some(Statement::BlockStatement(block)) => &block.body,
            _ => return false,
        };
    }
}

/// True if each `return` inside has a value.
fn returns_values(statements: &[Statement<'_>]) -> bool {
    let all = returned(statements);
    all.into_iter().all(|value| value.is_some_and(is_value))
}

/// The values of each `return` inside.
pub(crate) fn returned<'s, 'a>(statements: &'s [Statement<'a>]) -> Vec<Option<&'s Expression<'a>>> {
    let mut found = Vec::new();
    let mut todo: Vec<&'s Statement<'a>> = statements.iter().collect();
    while let Some(statement) = todo.pop() {
        match statement {
            Statement::ReturnStatement(end) => found.push(end.argument.as_ref()),
            Statement::BlockStatement(block) => todo.extend(&block.body),
            Statement::IfStatement(branch) => {
                todo.push(&branch.consequent);
                todo.extend(&branch.alternate);
            }
            Statement::LabeledStatement(inner) => todo.push(&inner.body),
            Statement::WhileStatement(inner) => todo.push(&inner.body),
            Statement::ForStatement(inner) => todo.push(&inner.body),
            Statement::ForOfStatement(inner) => todo.push(&inner.body),
            Statement::ForInStatement(inner) => todo.push(&inner.body),
            Statement::DoWhileStatement(inner) => todo.push(&inner.body),
            Statement::SwitchStatement(inner) => {
                todo.extend(inner.cases.iter().flat_map(|case| &case.consequent));
            }
            Statement::TryStatement(inner) => {
                todo.extend(&inner.block.body);
                todo.extend(inner.handler.iter().flat_map(|handler| &handler.body.body));
                todo.extend(inner.finalizer.iter().flat_map(|last| &last.body));
            }
            _ => {}
        }
    }
    found
}

/// True if an expression cannot be `undefined`, judged by its form.
fn is_value(expr: &Expression<'_>) -> bool {
    let mut expr = expr.get_inner_expression();
    // The pending operands: the left side of `a ?? b` and both sides of a ternary.
    let mut todo = Vec::new();
    loop {
        let known = match expr {
            Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
            | Expression::ArrayExpression(_)
            | Expression::ObjectExpression(_)
            | Expression::BinaryExpression(_)
            | Expression::NewExpression(_) => true,
            Expression::UnaryExpression(unary) => unary.operator != UnaryOperator::Void,
            Expression::ConditionalExpression(conditional) => {
                todo.push(&conditional.alternate);
                todo.push(&conditional.consequent);
                true
            }
            Expression::LogicalExpression(logical) => {
                todo.push(&logical.right);
                if logical.operator == LogicalOperator::And {
                    todo.push(&logical.left);
                }
                true
            }
            Expression::CallExpression(call) => is_value_call(call),
            _ => false,
        };
        if !known {
            return false;
        }
        match todo.pop() {
            Some(next) => expr = next.get_inner_expression(),
            None => return true,
        }
    }
}

/// True for methods that return a text, a number, a boolean or a list for any receiver. Other
/// methods do, too, but adding one would change the trees of existing sources.
fn is_value_call(call: &CallExpression<'_>) -> bool {
    let Expression::StaticMemberExpression(member) = &call.callee else {
        return false;
    };
    if matches!(&member.object, Expression::Identifier(id) if id.name == "Math") {
        return true;
    }
    let methods = [
        "toFixed",
        "toUpperCase",
        "toLowerCase",
        "trim",
        "slice",
        "join",
        "split",
        "includes",
        "startsWith",
        "endsWith",
        "indexOf",
        "padStart",
        "padEnd",
        "repeat",
        "replaceAll",
        "map",
        "filter",
        "concat",
        "some",
        "every",
    ];
    !call.optional && !member.optional && methods.contains(&member.property.name.as_str())
}
