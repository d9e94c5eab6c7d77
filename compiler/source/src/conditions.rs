//! Warns about mistakes in the heads of branches and loops, and in the use of a call's result.
//!
//! Codes: `lint.constant_condition`, `lint.unknown_member`, `lint.wrong_arguments`,
//! `lint.wrong_kind`.

use crate::callback::Callback;
use crate::known::Known;
use crate::lower::Lowerer;
use a99_core::builtins::{Gives, gives, mutates_lists};
use a99_core::diag::{Diagnostic, codes as found, excerpt};
use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, BinaryExpression, CallExpression, Expression,
    ForStatement, ForStatementInit, StaticMemberExpression,
};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::{AssignmentOperator, UpdateOperator};

/// Maximum bytes of a body that a check scans.
const MAX_TEXT: usize = 2_000;

/// Members of an outcome of `Promise.allSettled`.
const SETTLED: &[&str] = &["status", "value", "reason"];

/// Returns the name if the expression is an identifier.
fn name_of<'a>(expr: &'a Expression<'a>) -> Option<&'a str> {
    match expr.get_inner_expression() {
        Expression::Identifier(id) => Some(id.name.as_str()),
        _ => None,
    }
}

/// True if an expression is a value that comparisons typically use.
fn is_plain(expr: &Expression<'_>, or_name: bool) -> bool {
    match expr.get_inner_expression() {
        Expression::StringLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::BooleanLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::TemplateLiteral(_) => true,
        Expression::Identifier(_) | Expression::StaticMemberExpression(_) => or_name,
        _ => false,
    }
}

impl<'a> Lowerer<'a> {
    pub(crate) fn text_of(&self, at: Span) -> &'a str {
        let text = self.source.get(at.start as usize..at.end as usize);
        text.unwrap_or_default()
    }

    /// Warns about `if (status = 'done')`, which assigns. A loop may assign in its test, unless
    /// the value is constant.
    pub(crate) fn check_test(&mut self, test: &'a Expression<'a>, in_loop: bool) {
        let Expression::AssignmentExpression(set) = test.get_inner_expression() else {
            return;
        };
        if set.operator != AssignmentOperator::Assign || !is_plain(&set.right, !in_loop) {
            return;
        }
        let left = excerpt(self.text_of(set.left.span()));
        let right = excerpt(self.text_of(set.right.span()));
        let message = format!("this sets `{left}`, and does not compare it");
        let help = format!("write `{left} === {right}`");
        self.find(
            Diagnostic::warning(found::CONSTANT_CONDITION, message, ""),
            set.span,
            help,
        );
    }

    /// Warns about `for (let i = xs.length; ...; i--)` around `xs[i]`, which reads beyond the end
    /// in the first turn.
    pub(crate) fn check_countdown(&mut self, statement: &'a ForStatement<'a>) {
        let Some(ForStatementInit::VariableDeclaration(declaration)) = &statement.init else {
            return;
        };
        let (Some(variable), Some(update)) = (declaration.declarations.first(), &statement.update)
        else {
            return;
        };
        let (Some(index), Some(start)) = (variable.id.get_identifier_name(), &variable.init) else {
            return;
        };
        let Expression::StaticMemberExpression(length) = start.get_inner_expression() else {
            return;
        };
        let Some(list) = name_of(&length.object).filter(|_| length.property.name == "length")
        else {
            return;
        };
        let counts_down = match update.get_inner_expression() {
            Expression::UpdateExpression(update) => update.operator == UpdateOperator::Decrement,
            Expression::AssignmentExpression(set) => {
                set.operator == AssignmentOperator::Subtraction
            }
            _ => false,
        };
        let body = self.text_of(statement.body.span()).as_bytes();
        let body = &body[..body.len().min(MAX_TEXT)];
        let written = format!("{list}[{index}]");
        let reads = body
            .windows(written.len())
            .any(|part| part == written.as_bytes());
        if !counts_down || !reads {
            return;
        }
        let message = format!("in the first turn `{written}` is beyond the end");
        let help = format!(
            "items are numbered from 0: write `let {index} = {list}.length - 1`, and test `{index} >= 0`"
        );
        self.find(
            Diagnostic::warning(found::UNKNOWN_MEMBER, message, ""),
            variable.span,
            help,
        );
    }

    /// Warns about `xs = xs.push(4)`, which stores the length.
    pub(crate) fn check_kept(&mut self, set: &'a AssignmentExpression<'a>) {
        let AssignmentTarget::AssignmentTargetIdentifier(target) = &set.left else {
            return;
        };
        let Expression::CallExpression(call) = set.right.get_inner_expression() else {
            return;
        };
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        let name = target.name.as_str();
        if name_of(&member.object) != Some(name) {
            return;
        }
        let method = member.property.name.as_str();
        let what = match gives(method) {
            Gives::Number if mutates_lists(method) => "the new length of the list",
            Gives::Item if mutates_lists(method) => "the item that was taken away",
            _ if method == "splice" => "the items that were taken away",
            _ if method == "forEach" => "nothing",
            _ => return,
        };
        let message = match method {
            "forEach" => format!("`forEach` gives {what}, so `{name}` is undefined"),
            _ => format!("`{method}` changes `{name}` itself, and gives {what}"),
        };
        let help = format!("write `{name}.{method}(...)` as a statement of its own");
        self.find(
            Diagnostic::warning(found::WRONG_KIND, message, ""),
            set.span,
            help,
        );
    }

    /// Warns about `texts.map(parseInt)`, which passes the index as the radix.
    pub(crate) fn check_radix(
        &mut self,
        name: &str,
        callback: Callback<'a>,
        call: &'a CallExpression<'a>,
    ) {
        let is_radix = matches!(callback, Callback::Builtin("" | "Number", "parseInt"));
        let Some(first) = call.arguments.first().filter(|_| is_radix) else {
            return;
        };
        if !matches!(name, "map" | "flatMap") {
            return;
        }
        let message = "the number of the item comes along, and `parseInt` takes it for the base";
        let help = "write `Number`, or `(x) => parseInt(x, 10)`";
        self.find(
            Diagnostic::warning(found::WRONG_ARGUMENTS, message, ""),
            first.span(),
            help,
        );
    }

    /// Warns about a member that outcomes of `Promise.allSettled` lack.
    pub(crate) fn check_settled(&mut self, member: &'a StaticMemberExpression<'a>) {
        let name = member.property.name.as_str();
        if SETTLED.contains(&name) || self.known(&member.object) != Known::Settled {
            return;
        }
        let message = format!(
            "what a call came to is `{{status, value}}` or `{{status, reason}}`: it has no `{}`",
            excerpt(name)
        );
        let help = match name {
            "error" | "message" | "err" => "why it failed is its `reason`",
            "ok" | "state" | "success" => "ask for `r.status === 'fulfilled'`",
            _ => "the answer is its `value`, where its `status` is 'fulfilled'",
        };
        self.find(
            Diagnostic::warning(found::UNKNOWN_MEMBER, message, ""),
            member.property.span,
            help,
        );
    }

    /// Warns about a loop over an object, which is not iterable.
    pub(crate) fn check_iterated(&mut self, expr: &'a Expression<'a>) {
        let shown = excerpt(self.text_of(expr.span()));
        let message = format!("`{shown}` is an object, which a loop does not go over");
        let help = format!(
            "write `Object.entries({shown})` for names and values, `Object.values({shown})` for \
             values"
        );
        self.find(
            Diagnostic::warning(found::WRONG_KIND, message, ""),
            expr.span(),
            help,
        );
    }

    /// Suggests `n >= 5` for `n => 5`: a function of one name that returns a plain value.
    pub(crate) fn meant_order(&self, expr: &Expression<'a>) -> Option<String> {
        if let Some(help) = self.meant_test(expr) {
            return Some(help.to_owned());
        }
        let Expression::ArrowFunctionExpression(arrow) = expr else {
            return None;
        };
        // An arrow function may be a typo in a test; as an argument or a stored value it is a
        // function.
        let before = self.source.get(..arrow.span.start as usize)?.trim_end();
        let head = before.strip_suffix('(').map(str::trim_end);
        let is_test = head.is_some_and(|head| head.ends_with("if") || head.ends_with("while"));
        if !is_test && !before.ends_with("&&") && !before.ends_with("||") {
            return None;
        }
        let text = self.text_of(arrow.span);
        let text = (text.len() <= MAX_TEXT).then_some(text)?;
        let (left, right) = text.split_once("=>")?;
        let (left, right) = (left.trim(), right.trim());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        let name = !left.is_empty() && left.chars().all(plain);
        let value = !right.is_empty() && right.chars().all(plain);
        (name && value).then(|| format!("to compare write `{left} >= {right}`"))
    }

    /// Returns advice for a function that is passed to a method of values, such as `includes`.
    fn meant_test(&self, expr: &Expression<'a>) -> Option<&'static str> {
        if !matches!(
            expr,
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)
        ) {
            return None;
        }
        let before = self.source.get(..expr.span().start as usize)?.trim_end();
        let rows = [
            (
                ".includes(",
                "to ask with a function write `.some((x) => ...)`",
            ),
            (
                ".indexOf(",
                "to ask with a function write `.findIndex((x) => ...)`",
            ),
            (
                ".has(",
                "to ask with a function write `.some((x) => ...)` of a list",
            ),
            (".count(", "write `.filter((x) => ...).length`"),
            (
                ".remove(",
                "write `.filter((x) => ...)` with the opposite test",
            ),
        ];
        let row = rows.iter().find(|row| before.ends_with(row.0));
        row.map(|row| row.1)
    }

    /// Suggests a replacement for `!key in object`.
    pub(crate) fn negated_help(&self, binary: &'a BinaryExpression<'a>, key: &str) -> String {
        let object = excerpt(self.text_of(binary.right.span()));
        format!("write `!({key} in {object})`; of a list `!{object}.includes({key})`")
    }
}
