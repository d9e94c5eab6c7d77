//! Warns about typos: code that reads like one form and means another.
//!
//! Codes: `lint.bad_arithmetic`, `lint.code_as_text`, `lint.constant_condition`,
//! `lint.endless_loop`, `lint.missing_result`, `lint.unknown_member`, `lint.wrong_arguments`,
//! `lint.wrong_kind`.

use crate::callback::Callback;
use crate::code::only_expression;
use crate::known::Known;
use crate::lower::{Code, Lowerer};
use a99_core::diag::{Diagnostic, codes as found, excerpt};
use oxc_ast::ast::{
    Argument, AssignmentExpression, BinaryExpression, CallExpression, Expression, ForStatement,
    ForStatementInit, SimpleAssignmentTarget, TemplateLiteral,
};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::{AssignmentOperator, BinaryOperator, UnaryOperator};

/// Maximum bytes of text that a check scans.
const MAX_TEXT: usize = 2_000;

/// Returns the name if the expression is an identifier.
fn name_of<'a>(expr: &'a Expression<'a>) -> Option<&'a str> {
    match expr.get_inner_expression() {
        Expression::Identifier(id) => Some(id.name.as_str()),
        _ => None,
    }
}

/// Returns the identifier at the start of a member chain.
fn root_of<'a>(expr: &'a Expression<'a>) -> Option<&'a str> {
    match expr.get_inner_expression() {
        Expression::StaticMemberExpression(member) => name_of(&member.object),
        _ => None,
    }
}

impl<'a> Lowerer<'a> {
    fn slip(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        at: Span,
        help: impl Into<String>,
    ) {
        self.find(Diagnostic::warning(code, message, ""), at, help);
    }

    /// Warns about `n =+ 1`, which sets `n` to 1.
    pub(crate) fn check_sign(&mut self, set: &'a AssignmentExpression<'a>) {
        let Expression::UnaryExpression(unary) = &set.right else {
            return;
        };
        let sign = match unary.operator {
            UnaryOperator::UnaryPlus => "+",
            UnaryOperator::UnaryNegation => "-",
            _ => return,
        };
        let (at, behind) = (
            unary.span.start as usize,
            unary.argument.span().start as usize,
        );
        let bytes = self.source.as_bytes();
        let joined =
            at.checked_sub(1).and_then(|at| bytes.get(at)) == Some(&b'=') && behind > at + 1;
        if set.operator != AssignmentOperator::Assign || !joined {
            return;
        }
        let target = excerpt(self.text_of(set.left.span()));
        let value = excerpt(self.text_of(unary.argument.span()));
        let message = format!("this sets `{target}` to {sign}{value}: it does not count");
        let help = format!("write `{target} {sign}= {value}`");
        self.slip(found::BAD_ARITHMETIC, message, set.span, help);
    }

    /// Warns about `for (let j = 0; ...; i++)`, which counts another variable.
    pub(crate) fn check_counter(&mut self, statement: &'a ForStatement<'a>) {
        let Some(ForStatementInit::VariableDeclaration(declaration)) = &statement.init else {
            return;
        };
        let (Some(Expression::UpdateExpression(update)), Some(test)) =
            (&statement.update, &statement.test)
        else {
            return;
        };
        let SimpleAssignmentTarget::AssignmentTargetIdentifier(counted) = &update.argument else {
            return;
        };
        let Expression::BinaryExpression(test) = test else {
            return;
        };
        let declares = |name: &str| {
            let mut names = declaration.declarations.iter();
            names.any(|one| one.id.get_identifier_name().is_some_and(|id| id == name))
        };
        let counted = counted.name.as_str();
        let Some(tested) = name_of(&test.left).filter(|name| declares(name)) else {
            return;
        };
        // The body may update the variable that the loop tests.
        let body = self.text_of(statement.body.span()).as_bytes();
        let body = &body[..body.len().min(MAX_TEXT)];
        let sets = [
            format!("{tested} ="),
            format!("{tested}+"),
            format!("{tested} +"),
            format!("{tested}-"),
            format!("{tested} -"),
        ];
        let is_set = sets
            .iter()
            .any(|set| body.windows(set.len()).any(|part| part == set.as_bytes()));
        if declares(counted) || counted == tested || is_set {
            return;
        }
        let message = format!("this loop tests `{tested}` and counts `{counted}`");
        let help = format!("write `{tested}++`");
        self.slip(found::ENDLESS_LOOP, message, update.span, help);
    }

    /// Warns about `` `Hello {name}` ``, a hole of a template without its `$`.
    pub(crate) fn check_holes(&mut self, template: &'a TemplateLiteral<'a>) {
        for quasi in &template.quasis {
            let text = quasi.value.raw.as_str();
            let text = &text[..text.floor_char_boundary(MAX_TEXT)];
            for (at, _) in text.match_indices('{') {
                const MAX_NAME: usize = 64;
                let rest = &text[at + 1..];
                let rest = &rest[..rest.floor_char_boundary(MAX_NAME)];
                let Some((name, _)) = rest.split_once('}') else {
                    continue;
                };
                let root = name.split('.').next().unwrap_or(name);
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
                let known =
                    !root.is_empty() && name.chars().all(plain) && self.lookup(root).is_some();
                if !known || text[..at].ends_with(['$', '\\', '{']) {
                    continue;
                }
                let message = format!("`{{{}}}` is text: a hole begins with `$`", excerpt(name));
                let help = format!("write `${{{}}}`", excerpt(name));
                return self.slip(found::CODE_AS_TEXT, message, quasi.span, help);
            }
        }
    }

    /// Warns about `new Date(2024, 12, 25)`: months are numbered from 0.
    pub(crate) fn check_month(&mut self, arguments: &'a [Argument<'a>]) {
        let [_, month, ..] = arguments else { return };
        let Argument::NumericLiteral(month) = month else {
            return;
        };
        if (0.0..=11.0).contains(&month.value) {
            return;
        }
        let message = format!(
            "months are numbered from 0: {} is one of another year",
            month.value
        );
        let help = "January is 0, December 11; a text says it plainly: `new Date('2024-12-25')`";
        self.slip(found::WRONG_ARGUMENTS, message, month.span, help);
    }

    /// Warns about `new Date(1700000000)`, a time in seconds instead of milliseconds.
    pub(crate) fn check_seconds(&mut self, arguments: &'a [Argument<'a>]) {
        let [Argument::NumericLiteral(time)] = arguments else {
            return;
        };
        // Times from 2000 to 2099 in seconds.
        if !(946_684_800.0..4_102_444_800.0).contains(&time.value) {
            return;
        }
        let message = "a time is in milliseconds: this one is in January 1970";
        let help = format!("for seconds write `{} * 1000`", time.value);
        self.slip(found::WRONG_ARGUMENTS, message, time.span, help);
    }

    /// Warns about `xs.reduce((sum, x) => sum + x.price)`, which adds to the first item, an
    /// object.
    pub(crate) fn check_initial(&mut self, callback: Callback<'a>, call: &'a CallExpression<'a>) {
        let Callback::Code(code) = callback else {
            return;
        };
        let names: Vec<&str> = match code {
            Code::Arrow(arrow) => arrow.params.items.iter(),
            Code::Function(function) => function.params.items.iter(),
        }
        .filter_map(|item| item.pattern.get_identifier_name().map(|name| name.as_str()))
        .collect();
        let (Some(Expression::BinaryExpression(sum)), [total, item, ..]) =
            (only_expression(code), &names[..])
        else {
            return;
        };
        let adds = |a: &'a Expression<'a>, b: &'a Expression<'a>| {
            name_of(a) == Some(total) && root_of(b) == Some(item)
        };
        if call.arguments.len() != 1
            || sum.operator != BinaryOperator::Addition
            || !(adds(&sum.left, &sum.right) || adds(&sum.right, &sum.left))
        {
            return;
        }
        let message = format!("without a value to start with `{total}` is the first item itself");
        let help = format!(
            "give it one: `.reduce({}, 0)`",
            excerpt(self.text_of(code.span()))
        );
        self.slip(found::WRONG_ARGUMENTS, message, call.span, help);
    }

    /// Warns about `(a, b) => a - a`, an order that compares an item with itself.
    pub(crate) fn check_same_sides(&mut self, binary: &'a BinaryExpression<'a>) {
        let (left, right) = (
            self.text_of(binary.left.span()),
            self.text_of(binary.right.span()),
        );
        if left != right || binary.operator != BinaryOperator::Subtraction {
            return;
        }
        let message = "this is 0 for all items: it compares one with itself";
        self.slip(
            found::WRONG_KIND,
            message,
            binary.span,
            "write `a - b`, or `b - a` for the largest first",
        );
    }

    /// Warns about dates that are compared by identity, or with a text.
    pub(crate) fn check_dates(&mut self, binary: &'a BinaryExpression<'a>) {
        let is_date = |this: &Self, side: &'a Expression<'a>| this.known(side) == Known::Date;
        let (left, right) = (is_date(self, &binary.left), is_date(self, &binary.right));
        if left && right && binary.operator.is_equality() {
            let message = "two dates are never the same, even of one time";
            let (a, b) = (
                self.text_of(binary.left.span()),
                self.text_of(binary.right.span()),
            );
            let help = format!(
                "write `{}.getTime() === {}.getTime()`",
                excerpt(a),
                excerpt(b)
            );
            return self.slip(found::CONSTANT_CONDITION, message, binary.span, help);
        }
        let text = match (left, right) {
            (true, false) => &binary.right,
            (false, true) => &binary.left,
            _ => return,
        };
        let compares = binary.operator.is_equality() || binary.operator.is_compare();
        if let (Expression::StringLiteral(text), true) = (text, compares) {
            let message = "a date is compared with a text, which is no time";
            let help = format!("write `new Date('{}')`", excerpt(text.value.as_str()));
            self.slip(found::CONSTANT_CONDITION, message, text.span, help);
        }
    }

    /// Warns about a callback that only logs and whose value is used.
    pub(crate) fn check_logs(&mut self, name: &str, code: Code<'a>) {
        let Some(Expression::CallExpression(call)) = only_expression(code) else {
            return;
        };
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        if self.free_name(&member.object) != Some("console") {
            return;
        }
        let message = format!(
            "`console.{}` gives nothing, and `{name}` takes it",
            member.property.name
        );
        let help = "write `.forEach((x) => console.log(x))`, or `{ console.log(x); return x }`";
        self.slip(found::MISSING_RESULT, message, call.span, help);
    }

    /// Warns about a list method on one item: `rows.find((row) => row.id === 1).map(...)`.
    pub(crate) fn check_one_item(&mut self, object: &'a Expression<'a>, name: &str, at: Span) {
        let Expression::CallExpression(call) = object.get_inner_expression() else {
            return;
        };
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        let finder = member.property.name.as_str();
        let code = call
            .arguments
            .first()
            .and_then(|first| first.as_expression());
        let Some(code) = code.and_then(|code| crate::atom::code_of(code.get_inner_expression()))
        else {
            return;
        };
        let first = code.params().items.first();
        let item = first.and_then(|first| first.pattern.get_identifier_name());
        let Some(item) = item.filter(|_| matches!(finder, "find" | "findLast")) else {
            return;
        };
        // If the callback reads members that lists lack, the item is not a list.
        let text = self.text_of(code.span());
        let reads = format!("{item}.");
        let mut read = text.match_indices(&reads).map(|(at, _)| {
            let rest = &text[at + reads.len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        });
        let of_list = |name: &str| name == "length" || a99_core::builtins::method(name).is_some();
        if !read.any(|name| !name.is_empty() && !of_list(name)) {
            return;
        }
        let message = format!("`{finder}` gives one item, which has no `{name}`");
        let help = match name {
            "map" | "forEach" | "filter" | "reduce" | "flatMap" => {
                "for all that fit write `.filter(...)` in its place; of one item read the members"
            }
            _ => "write it without `find`, of the list itself",
        };
        self.slip(found::UNKNOWN_MEMBER, message, at, help.to_owned());
    }
}
