//! Lowers `exec` of a pattern with the flag `g` as the test of a loop.

use crate::expr::Hint;
use crate::lower::{Lowerer, What, place, set};
use crate::pattern::member_of;
use crate::tree::Tree;
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_syntax::operator::BinaryOperator;

impl<'a> Lowerer<'a> {
    /// Finds all matches before a loop `while ((m = pattern.exec(text)) !== null)`. The pattern
    /// must be a constant of the loop's block without other uses, so that `lastIndex` starts at
    /// 0, and no code may set the text.
    pub(crate) fn exec_before(&mut self, test: &'a Expression<'a>, out: &mut Vec<Tree>) {
        let Some(call) = exec_of(test) else {
            return;
        };
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        let (Expression::Identifier(pattern), [Argument::Identifier(text)]) =
            (&member.object, &call.arguments[..])
        else {
            return;
        };
        let pattern = pattern.name.as_str();
        let of_block = self.scopes.last().and_then(|scope| scope.get(pattern));
        let regex = of_block.and_then(|id| self.regexes.get(id).copied());
        let is_kept = self.lookup(text.name.as_str()).is_some_and(|id| {
            matches!(self.bindings[id].what, What::Variable | What::Literal(_)) && !self.is_set(id)
        });
        // The two places are its declaration and this call.
        let is_only = of_block.is_some_and(|id| {
            let variable = self.scoping.variable(self.bindings[*id].at);
            variable.is_some_and(|variable| variable.places.len() == 2)
        });
        let Some(regex) = regex.filter(|_| is_kept && is_only) else {
            return;
        };
        if !regex.regex.flags.contains(oxc_ast::ast::RegExpFlags::G) {
            return;
        }
        let at = place(call.span);
        let text = self.name(text.name.as_str(), text.span);
        let found = self.each_match(regex, text, call.span, Hint::None, out);
        let number = self.fresh();
        out.push(set(&number, Tree::number(0.0, &at), &at));
        self.stepped.insert(call.span.start, (found, number));
    }

    /// Lowers the test of such a loop to the next match.
    pub(crate) fn next_match(
        &mut self,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        let (found, number) = self.stepped.get(&call.span.start)?.clone();
        let next = self.fresh();
        let item = member_of(found, Value::ident(&number, &at), &at);
        out.push(set(&next, item.resolved(), &at));
        let behind = Tree::binary("+", Tree::ident(&number, &at), Tree::number(1.0, &at), &at);
        out.push(set(&number, behind, &at));
        let (next, none) = (Tree::ident(&next, &at), Tree::null(&at));
        Some(Value::new(
            Kind::Node(Tree::logical("??", next, none, &at)),
            &at,
        ))
    }
}

/// Returns the call in `(m = pattern.exec(text))` and `(m = pattern.exec(text)) !== null`.
fn exec_of<'a>(test: &'a Expression<'a>) -> Option<&'a CallExpression<'a>> {
    match test.get_inner_expression() {
        Expression::AssignmentExpression(assignment) => match assignment
            .right
            .get_inner_expression()
        {
            Expression::CallExpression(call) => match call.callee.get_inner_expression() {
                Expression::StaticMemberExpression(member) if member.property.name == "exec" => {
                    Some(call)
                }
                _ => None,
            },
            _ => None,
        },
        Expression::BinaryExpression(binary)
            if matches!(
                binary.operator,
                BinaryOperator::StrictInequality | BinaryOperator::Inequality
            ) && matches!(binary.right, Expression::NullLiteral(_)) =>
        {
            exec_of(&binary.left)
        }
        _ => None,
    }
}
