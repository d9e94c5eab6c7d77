//! Warns about results that a statement drops, a callback never gives, or `!` takes away.
//!
//! Codes: `lint.bad_arithmetic`, `lint.constant_condition`, `lint.dropped_result`,
//! `lint.missing_result`, `lint.no_result`, `lint.return_in_body`, `lint.wrong_kind`.

use crate::callback::Callback;
use crate::code::only_expression;
use crate::lower::{Code, Lowerer};
use a99_core::builtins::only_computes;
use a99_core::diag::{Diagnostic, codes as found};
use oxc_ast::ast::{BinaryExpression, CallExpression, Expression, Statement};
use oxc_span::{GetSpan as _, Span};

impl<'a> Lowerer<'a> {
    /// Warns about `!key in object`, in which `!` applies to the key alone.
    pub(crate) fn check_negated(&mut self, binary: &'a BinaryExpression<'a>) {
        let Expression::UnaryExpression(unary) = &binary.left else {
            return;
        };
        if unary.operator.as_str() != "!" {
            return;
        }
        let text = |of: Span| {
            let text = self.source.get(of.start as usize..of.end as usize);
            a99_core::diag::excerpt(text.unwrap_or_default())
        };
        let key = text(unary.argument.span());
        let message = "`!` belongs to the name alone: this looks for `true` or `false`";
        let help = self.negated_help(binary, &key);
        self.find(
            Diagnostic::warning(found::CONSTANT_CONDITION, message, ""),
            binary.span,
            help,
        );
    }

    /// Warns about a statement whose value is unused.
    pub(crate) fn check_dropped(&mut self, expr: &'a Expression<'a>) {
        let (what, help) = match expr {
            Expression::StaticMemberExpression(member)
                if a99_core::builtins::method(member.property.name.as_str()).is_some() =>
            {
                let name = member.property.name.as_str();
                (
                    format!("`{name}` is not called, so this does nothing"),
                    format!("call it: `.{name}()`"),
                )
            }
            Expression::StringLiteral(_) | Expression::NumericLiteral(_) => (
                "this value is dropped: nothing is set to it".to_owned(),
                "set a variable to it; of two values write `name = test ? a : b`".to_owned(),
            ),
            Expression::BinaryExpression(binary) if binary.operator.is_equality() => (
                "this compares, and nobody asks what comes out".to_owned(),
                "to set a variable write one `=`; to test write `if (...)`".to_owned(),
            ),
            Expression::StaticMemberExpression(_)
            | Expression::ComputedMemberExpression(_)
            | Expression::BinaryExpression(_) => (
                "the value of this statement is dropped".to_owned(),
                "write `const value = ...`, or `return` it".to_owned(),
            ),
            _ => return,
        };
        self.dropped(expr.span(), what, help);
    }

    pub(crate) fn check_dropped_call(&mut self, call: &'a CallExpression<'a>) {
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        let name = member.property.name.as_str();
        let is_math = self.free_name(&member.object) == Some("Math") && name != "random";
        if !is_math && !only_computes(name) {
            return;
        }
        let what = format!("`{name}` changes nothing: it gives a new value, which is dropped");
        let help = match self.free_name(&member.object) {
            None => match member.object.get_inner_expression() {
                Expression::Identifier(id) => {
                    let id = id.name.as_str();
                    format!("take it: `{id} = {id}.{name}(...)`, or `const value = ...`")
                }
                _ => "take it: `const value = ...`".to_owned(),
            },
            Some(_) => "take it: `const value = ...`".to_owned(),
        };
        self.dropped(call.span, what, help);
    }

    fn dropped(&mut self, at: Span, message: String, help: String) {
        self.find(
            Diagnostic::warning(found::DROPPED_RESULT, message, ""),
            at,
            help,
        );
    }

    /// Warns about a callback without a return value whose value is used.
    pub(crate) fn check_gives(&mut self, name: &str, callback: Callback<'a>, at: Span) {
        let Callback::Code(code) = callback else {
            return;
        };
        if matches!(name, "sort" | "toSorted") {
            self.check_order(code);
        }
        if name == "forEach" {
            return self.check_returned(code);
        }
        self.check_logs(name, code);
        self.check_given(name, code);
        let span = code.span();
        let text = self.source.get(span.start as usize..span.end as usize);
        let returns = text.is_none_or(|text| text.contains("return") || text.contains("throw"));
        if only_expression(code).is_some() || returns {
            return;
        }
        let message = format!("this callback of `{name}` returns nothing");
        let help = "write `return` before its value, or leave out the braces: `(x) => x * 2`";
        self.find(
            Diagnostic::warning(found::MISSING_RESULT, message, ""),
            at,
            help,
        );
    }

    /// Warns about a comparison that returns a boolean instead of a number.
    pub(crate) fn check_order(&mut self, code: Code<'a>) {
        let Some(Expression::BinaryExpression(binary)) = only_expression(code) else {
            return;
        };
        self.check_same_sides(binary);
        if !binary.operator.is_compare() && !binary.operator.is_equality() {
            return;
        }
        let message = "the order is a number, below 0, 0 or above 0, and this is true or false";
        let text = |of: Span| {
            let text = self.source.get(of.start as usize..of.end as usize);
            a99_core::diag::excerpt(text.unwrap_or_default())
        };
        let (left, right) = (text(binary.left.span()), text(binary.right.span()));
        let help =
            format!("write `{left} - {right}`, or `{left}.localeCompare({right})` for texts");
        self.find(
            Diagnostic::warning(found::WRONG_KIND, message, ""),
            binary.span,
            help,
        );
    }

    /// Warns about a callback of `forEach` that returns a value, which is discarded.
    pub(crate) fn check_returned(&mut self, code: Code<'a>) {
        let span = code.span();
        let text = self.source.get(span.start as usize..span.end as usize);
        let text = text.unwrap_or_default();
        // A nested function may return values.
        if text.matches("=>").count() + text.matches("function").count() > 1 {
            return;
        }
        let value = text.match_indices("return").find(|(at, word)| {
            let rest = text[at + word.len()..].trim_start_matches(' ');
            rest.len() < text[at + word.len()..].len() && !rest.starts_with([';', '}', '\n'])
        });
        let Some((at, _)) = value else { return };
        let start = span.start + at as u32;
        let message = "`forEach` drops what its callback returns: this ends one item's turn only";
        let help = "use `some`, `find` or `map`, or `for (const x of xs)`, which `return` leaves";
        let place = Span::new(start, start + "return".len() as u32);
        self.find(
            Diagnostic::warning(found::RETURN_IN_BODY, message, ""),
            place,
            help,
        );
    }

    /// Warns about `let total` that is added to before it has a value.
    pub(crate) fn check_no_value(&mut self, statements: &'a [Statement<'a>]) {
        for statement in statements {
            let Statement::VariableDeclaration(declaration) = statement else {
                continue;
            };
            for variable in &declaration.declarations {
                let Some(name) = variable.id.get_identifier_name() else {
                    continue;
                };
                if variable.init.is_some() {
                    continue;
                }
                let name = name.as_str();
                let rest = self
                    .source
                    .get(variable.span.end as usize..)
                    .unwrap_or_default();
                let end = variable.span.end;
                let places = self.scoping.variable(variable.id.span().start);
                let mut places = places.map_or(&[][..], |one| &one.places).iter();
                let Some(at) = places.find(|at| **at >= end) else {
                    continue;
                };
                let at = (at - end) as usize;
                let after = rest[at + name.len()..].trim_start();
                let adds = ["+=", "-=", "*=", "/=", "++", "--"];
                let Some(sign) = adds.iter().find(|sign| after.starts_with(**sign)) else {
                    self.check_compared(name, &rest[..at], after, variable.span);
                    continue;
                };
                let message = format!("`{name}` has no value before `{sign}`, which gives NaN");
                let start = match *sign {
                    "*=" | "/=" => "1",
                    _ => "0",
                };
                let help = format!("give it one to start with: `let {name} = {start}`");
                self.find(
                    Diagnostic::warning(found::BAD_ARITHMETIC, message, ""),
                    variable.span,
                    help,
                );
            }
        }
    }

    /// Warns about `return` at the end of a line whose value is on the next line.
    pub(crate) fn check_bare_return(&mut self, statements: &'a [Statement<'a>]) {
        for pair in statements.windows(2) {
            let [Statement::ReturnStatement(first), second] = pair else {
                continue;
            };
            let value = matches!(
                second,
                Statement::BlockStatement(_) | Statement::ExpressionStatement(_)
            );
            if first.argument.is_some() || !value {
                continue;
            }
            let message = "a line that ends with `return` returns nothing";
            let help = "begin the value in the same line: `return { a: 1 }`, or `return (`";
            self.find(
                Diagnostic::warning(found::NO_RESULT, message, ""),
                first.span,
                help,
            );
        }
    }
}
