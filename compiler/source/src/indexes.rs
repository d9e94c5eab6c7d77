//! Warns about shadowed names, indexes used as tests, keys used as items, loops in the wrong
//! direction, and unused or missing values.
//!
//! Codes: `lint.bad_arithmetic`, `lint.constant_condition`, `lint.dropped_result`,
//! `lint.endless_loop`, `lint.helper_arity`, `lint.lost_assignment`, `lint.missing_result`,
//! `lint.odd_name`, `lint.unknown_member`, `lint.wrong_kind`.

use crate::callback::Callback;
use crate::code::statements;
use crate::iterable::Iterable;
use crate::lower::{Code, Lowerer, What};
use a99_core::builtins;
use a99_core::builtins::{Gives, gives};
use a99_core::diag::{Diagnostic, codes as found, excerpt};
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, AssignmentExpression, AssignmentTarget, BindingPattern,
    CallExpression, Expression, ForInStatement, ForStatement, ForStatementInit, ForStatementLeft,
    ObjectPropertyKind, SimpleAssignmentTarget, Statement, StaticMemberExpression,
    VariableDeclarationKind, VariableDeclarator,
};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::{
    AssignmentOperator, BinaryOperator, LogicalOperator, UnaryOperator, UpdateOperator,
};

/// Maximum bytes of text that a check scans.
const MAX_TEXT: usize = 4_000;

/// Returns the name if the expression is an identifier.
fn name_of<'a>(expr: &Expression<'a>) -> Option<&'a str> {
    match expr.get_inner_expression() {
        Expression::Identifier(id) => Some(id.name.as_str()),
        _ => None,
    }
}

/// Returns the name of the method that an expression calls.
fn method_of<'a>(expr: &Expression<'a>) -> Option<&'a str> {
    let Expression::CallExpression(call) = expr.get_inner_expression() else {
        return None;
    };
    match call.callee.get_inner_expression() {
        Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        _ => None,
    }
}

/// Finds a word in a text; each match yields the text after it.
fn uses<'t>(text: &'t str, word: &str) -> impl Iterator<Item = &'t str> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let length = word.len();
    text.match_indices(word).filter_map(move |(at, _)| {
        let after = &text[at + length..];
        let before = text[..at].chars().next_back();
        let is_word = !before.is_some_and(|c| part(c) || c == '.') && !after.starts_with(part);
        is_word.then_some(after)
    })
}

/// True if the text after a name assigns the name without reading it.
fn is_set(after: &str) -> bool {
    let after = after.trim_start();
    let counts = ["++", "--", "+=", "-=", "*=", "/="];
    counts.iter().any(|sign| after.starts_with(sign))
        || after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=>")
}

impl<'a> Lowerer<'a> {
    fn oversight(
        &mut self,
        code: &'static str,
        message: String,
        at: Span,
        help: impl Into<String>,
    ) {
        self.find(Diagnostic::warning(code, message, ""), at, help);
    }

    /// Returns the source text of a range, cut at the scanning limit.
    fn text_from(&self, start: u32, end: u32) -> &'a str {
        let text = self.text_of(Span::new(start, end.max(start)));
        &text[..text.floor_char_boundary(MAX_TEXT)]
    }

    /// True if a declaration stores an index, as `indexOf` returns it.
    pub(crate) fn is_place(&self, init: &Expression<'a>) -> bool {
        method_of(init).is_some_and(|name| gives(name) == Gives::Index)
    }

    /// Warns about `if (index)`: -1 means not found and is truthy, 0 is the first item and is
    /// falsy.
    pub(crate) fn check_place(&mut self, test: &'a Expression<'a>) {
        let mut work = vec![(test, false)];
        while let Some((test, negated)) = work.pop() {
            match test.get_inner_expression() {
                Expression::LogicalExpression(logical)
                    if logical.operator != LogicalOperator::Coalesce =>
                {
                    work.extend([(&logical.left, negated), (&logical.right, negated)]);
                }
                Expression::UnaryExpression(unary)
                    if unary.operator == UnaryOperator::LogicalNot =>
                {
                    work.push((&unary.argument, !negated));
                }
                inner => {
                    let of_name = name_of(inner).and_then(|name| self.lookup(name));
                    let is_name = of_name.is_some_and(|id| self.places.contains(&id));
                    // Lowering reports the other methods.
                    let is_call = matches!(method_of(inner), Some("findIndex" | "findLastIndex"));
                    if !is_name && !is_call {
                        continue;
                    }
                    let shown = excerpt(self.text_of(inner.span()));
                    let message = format!(
                        "`{shown}` is -1 where there is none, which counts as true, and 0 for the \
                         first"
                    );
                    let sign = if negated { "===" } else { "!==" };
                    let help = format!("write `{shown} {sign} -1`");
                    self.oversight(found::CONSTANT_CONDITION, message, inner.span(), help);
                }
            }
        }
    }

    /// Returns the offset at which the current function ends.
    fn function_end(&self) -> u32 {
        let code = self.functions.get(self.current).and_then(|f| f.whole);
        code.map_or(self.source.len() as u32, |code| code.span().end)
    }

    /// Warns about a variable in a block, such as `const data = ...`, that the block never reads
    /// while code after the block reads an outer `data`.
    pub(crate) fn check_hidden(&mut self, statements: &'a [Statement<'a>]) {
        let Some(end) = statements.last().map(|last| last.span().end) else {
            return;
        };
        for statement in statements {
            let Statement::VariableDeclaration(declaration) = statement else {
                continue;
            };
            for one in &declaration.declarations {
                let BindingPattern::BindingIdentifier(id) = &one.id else {
                    continue;
                };
                let js = id.name.as_str();
                let Some(outer) = self.lookup(js).map(|id| &self.bindings[id]) else {
                    continue;
                };
                let same = outer.owner == self.current && matches!(outer.what, What::Variable);
                if !same || outer.is_const || one.init.is_none() {
                    continue;
                }
                let within = self.text_from(one.span.end, end);
                let behind = self.text_from(end, self.function_end());
                let is_read = uses(within, js).any(|after| !is_set(after));
                if is_read || !uses(behind, js).any(|after| !is_set(after)) {
                    continue;
                }
                let word = match declaration.kind {
                    VariableDeclarationKind::Const => "const",
                    _ => "let",
                };
                let message = format!(
                    "this is another `{js}`, which ends with the block: the outer one stays"
                );
                let help = format!("to set the outer one write `{js} = ...`, without `{word}`");
                self.oversight(found::LOST_ASSIGNMENT, message, id.span, help);
            }
        }
    }

    /// Warns about `for (const x in list)`, whose `x` are indexes as texts.
    pub(crate) fn check_keys(&mut self, statement: &'a ForInStatement<'a>) {
        if self.sort_of(&statement.right) != Iterable::List {
            return;
        }
        let ForStatementLeft::VariableDeclaration(declaration) = &statement.left else {
            return;
        };
        let name = declaration.declarations.first();
        let Some(name) = name.and_then(|one| one.id.get_identifier_name()) else {
            return;
        };
        let name = name.as_str();
        let span = statement.body.span();
        let body = self.text_from(span.start, span.end);
        // A body that indexes the list uses the keys intentionally.
        if body.contains(&format!("[{name}]")) || body.contains(&format!("Number({name})")) {
            return;
        }
        let list = excerpt(self.text_of(statement.right.span()));
        let message = format!("`in` gives the numbers of the items, as texts: `{name}` is no item");
        let help = format!("write `for (const {name} of {list})`");
        let at = Span::new(statement.left.span().start, statement.right.span().end);
        self.oversight(found::WRONG_KIND, message, at, help);
    }

    /// Warns about `const all = xs.push(x)`, which is a number, if later code reads `all[0]`.
    pub(crate) fn check_length_kept(&mut self, js: &str, one: &'a VariableDeclarator<'a>) {
        let Some(init) = &one.init else { return };
        let Some(method @ ("push" | "unshift")) = method_of(init) else {
            return;
        };
        let behind = self.text_from(one.span.end, self.function_end());
        let is_list = uses(behind, js).any(|after| after.starts_with(['[', '.']));
        if !is_list {
            return;
        }
        let message = format!("`{method}` gives the new length: `{js}` is a number, no list");
        let help = "call it as a statement, and go on with the list itself; a new list is \
                    `[...xs, x]`";
        self.oversight(found::WRONG_KIND, message, init.span(), help);
    }

    /// Warns about `for (let i = 0; i < n; i--)`, which counts away from its end.
    pub(crate) fn check_direction(&mut self, statement: &'a ForStatement<'a>) {
        let (Some(update), Some(Expression::BinaryExpression(test))) =
            (&statement.update, &statement.test)
        else {
            return;
        };
        let Some(ForStatementInit::VariableDeclaration(declaration)) = &statement.init else {
            return;
        };
        let target = |target: &SimpleAssignmentTarget<'a>| match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => Some(id.name.as_str()),
            _ => None,
        };
        let (name, up) = match update.get_inner_expression() {
            Expression::UpdateExpression(update) => (
                target(&update.argument),
                update.operator == UpdateOperator::Increment,
            ),
            Expression::AssignmentExpression(set) => {
                let up = match set.operator {
                    AssignmentOperator::Addition => true,
                    AssignmentOperator::Subtraction => false,
                    _ => return,
                };
                let positive = matches!(&set.right, Expression::NumericLiteral(n) if n.value > 0.0);
                let name = set.left.as_simple_assignment_target().and_then(target);
                (name.filter(|_| positive), up)
            }
            _ => return,
        };
        let below = match test.operator {
            BinaryOperator::LessThan | BinaryOperator::LessEqualThan => true,
            BinaryOperator::GreaterThan | BinaryOperator::GreaterEqualThan => false,
            _ => return,
        };
        let Some(name) = name.filter(|name| name_of(&test.left) == Some(*name)) else {
            return;
        };
        let mut declared = declaration.declarations.iter();
        let own = declared.any(|one| one.id.get_identifier_name().is_some_and(|id| id == name));
        let body = self.text_of(statement.body.span());
        let leaves = ["break", "return", "throw"];
        if up == below
            || !own
            || body.len() > MAX_TEXT
            || leaves.iter().any(|word| body.contains(word))
            || uses(body, name).any(is_set)
        {
            return;
        }
        let bound = excerpt(self.text_of(test.right.span()));
        let message = format!("`{name}` goes away from `{bound}`, so this never ends");
        let sign = if up { "--" } else { "++" };
        let help = format!("write `{name}{sign}`, or turn the comparison around");
        self.oversight(found::ENDLESS_LOOP, message, update.span(), help);
    }

    /// Warns about `total = total`.
    pub(crate) fn check_itself(&mut self, set: &'a AssignmentExpression<'a>) {
        let AssignmentTarget::AssignmentTargetIdentifier(target) = &set.left else {
            return;
        };
        let name = target.name.as_str();
        if set.operator != AssignmentOperator::Assign || name_of(&set.right) != Some(name) {
            return;
        }
        let message = format!("this sets `{name}` to itself, which changes nothing");
        let help = "write the other name, or remove it";
        self.oversight(found::DROPPED_RESULT, message, set.span, help);
    }

    /// Warns about `let best` that is compared before it has a value.
    pub(crate) fn check_compared(&mut self, name: &str, before: &str, after: &str, at: Span) {
        let before = before.trim_end();
        let is_order = |text: &str| {
            let sign = text.starts_with(['<', '>']);
            sign && !text.starts_with("<<") && !text.starts_with(">>")
        };
        let others = ["=>", "<<", ">>"];
        let precedes =
            before.ends_with(['<', '>']) && !others.iter().any(|sign| before.ends_with(sign));
        let precedes = precedes || before.ends_with("<=") || before.ends_with(">=");
        if !precedes && !is_order(after) {
            return;
        }
        let message = format!("`{name}` has no value yet: nothing is above or below `undefined`");
        let help = format!(
            "give it one to start with, as in `let {name} = -Infinity`, or ask for `{name} === undefined`"
        );
        self.oversight(found::CONSTANT_CONDITION, message, at, help);
    }

    /// Warns about the use of a call that returns `undefined`: `const r = console.log(n)`,
    /// `{ y: xs.forEach(...) }`.
    pub(crate) fn check_logged(&mut self, init: &'a Expression<'a>) {
        let Expression::CallExpression(call) = init.get_inner_expression() else {
            return;
        };
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        if member.property.name == "forEach" && call.arguments.len() == 1 {
            let message = "`forEach` gives nothing".to_owned();
            let help = "for a list of values write `.map((x) => ...)`; else call it as a statement";
            return self.oversight(found::WRONG_KIND, message, call.span, help);
        }
        if self.free_name(&member.object) != Some("console") {
            return;
        }
        let message = format!("`console.{}` gives nothing", member.property.name);
        let help = "call it as a statement, and keep the value itself";
        self.oversight(found::MISSING_RESULT, message, call.span, help);
    }

    /// Warns about such calls as members of a returned object.
    pub(crate) fn check_returned_logs(&mut self, value: Option<&'a Expression<'a>>) {
        let Some(Expression::ObjectExpression(object)) =
            value.map(Expression::get_inner_expression)
        else {
            return;
        };
        for property in &object.properties {
            if let ObjectPropertyKind::ObjectProperty(property) = property {
                self.check_logged(&property.value);
            }
        }
    }

    /// Warns about `let total = '0'` to which numbers are added, because `+` appends them to the
    /// text.
    pub(crate) fn check_text_total(&mut self, js: &str, one: &'a VariableDeclarator<'a>) {
        let Some(Expression::StringLiteral(text)) = &one.init else {
            return;
        };
        let value = text.value.as_str().trim();
        let digits = !value.is_empty() && value.parse::<f64>().is_ok();
        let behind = self.text_from(one.span.end, self.function_end());
        if !digits || !uses(behind, js).any(|after| after.trim_start().starts_with("+=")) {
            return;
        }
        let message = format!("`{js}` begins as a text, so `+=` joins texts");
        let help = format!("write the number without quotes: `let {js} = {value}`");
        self.oversight(found::BAD_ARITHMETIC, message, text.span, help);
    }

    /// Warns about `(i, x) => xs[i]`: the first parameter is the item, the second its index.
    pub(crate) fn check_order_of(
        &mut self,
        name: &str,
        object: &'a Expression<'a>,
        callback: Callback<'a>,
    ) {
        const NUMBERS: &[&str] = &["i", "j", "idx", "index"];
        let Callback::Code(code) = callback else {
            return;
        };
        if matches!(
            name,
            "reduce" | "reduceRight" | "sort" | "toSorted" | "from"
        ) {
            return;
        }
        let [first, second, ..] = &code.params().items[..] else {
            return;
        };
        let (Some(first), Some(second)) = (
            first.pattern.get_identifier_name(),
            second.pattern.get_identifier_name(),
        ) else {
            return;
        };
        let (first, second) = (first.as_str(), second.as_str());
        if method_of(object) == Some("entries") && !NUMBERS.contains(&second) {
            let message = format!("an item is `[key, value]`: `{second}` is its number");
            let help = format!("write `([{first}, {second}]) => ...`");
            return self.oversight(found::ODD_NAME, message, code.params().span, help);
        }
        if !NUMBERS.contains(&first) || NUMBERS.contains(&second) {
            return;
        }
        let message = format!("the first parameter is the item, so `{first}` is no number of it");
        let help = format!("write `({second}, {first}) => ...`");
        self.oversight(found::ODD_NAME, message, code.params().span, help);
    }

    /// Warns about `const [a, b] = await Promise.all([one])`, which has more names than values.
    pub(crate) fn check_parts(&mut self, one: &'a VariableDeclarator<'a>) {
        let (BindingPattern::ArrayPattern(names), Some(init)) = (&one.id, &one.init) else {
            return;
        };
        let mut value = init.get_inner_expression();
        if let Expression::AwaitExpression(inner) = value {
            value = inner.argument.get_inner_expression();
        }
        if let Expression::CallExpression(call) = value
            && matches!(method_of(value), Some("all" | "allSettled"))
            && let [Argument::ArrayExpression(_)] = &call.arguments[..]
            && let Some(list) = call.arguments[0].as_expression()
        {
            value = list;
        }
        if self.sort_of(init) == Iterable::Object {
            let shown = excerpt(self.text_of(init.span()));
            let inner = self.text_of(names.span);
            let inner = inner.trim_matches(['[', ']']).trim();
            let message = format!("`{shown}` is an object, which has no first item");
            let help = format!(
                "take its members: `const {{ {} }} = {shown}`; a list of them is \
                 `Object.values({shown})`",
                excerpt(inner)
            );
            return self.oversight(found::WRONG_KIND, message, init.span(), help);
        }
        let Expression::ArrayExpression(list) = value else {
            return;
        };
        let is_spread = |item: &ArrayExpressionElement<'_>| {
            matches!(item, ArrayExpressionElement::SpreadElement(_))
        };
        let count = list.elements.len();
        if list.elements.iter().any(is_spread) {
            return;
        }
        let Some(Some(BindingPattern::BindingIdentifier(id))) = names.elements.get(count) else {
            return;
        };
        let shown = excerpt(id.name.as_str());
        let values = if count == 1 { "value" } else { "values" };
        let message = format!("there is no value for `{shown}`: the list has {count} {values}");
        let help = "write a value for each name, or leave the name out";
        self.oversight(found::UNKNOWN_MEMBER, message, id.span, help);
    }

    /// Warns about a method that is not called: `text.split('').reverse().join`.
    pub(crate) fn check_uncalled(&mut self, member: &'a StaticMemberExpression<'a>) {
        let name = member.property.name.as_str();
        let of_call = matches!(
            member.object.get_inner_expression(),
            Expression::CallExpression(_)
        );
        let is_value = matches!(
            self.sort_of(&member.object),
            Iterable::List | Iterable::Text
        );
        if !of_call || !is_value || builtins::method(name).is_none() {
            return;
        }
        let message = format!("`{name}` is not called, so there is nothing here");
        let help = format!("call it: `.{name}()`");
        self.oversight(found::UNKNOWN_MEMBER, message, member.property.span, help);
    }

    /// Warns about a call with fewer arguments than the function reads.
    pub(crate) fn check_arity(&mut self, function: usize, call: &'a CallExpression<'a>) {
        let Some(code) = self.functions[function].whole else {
            return;
        };
        self.check_members(function, call);
        let given = call.arguments.len();
        if call.arguments.iter().any(Argument::is_spread) {
            return;
        }
        let parameters = match code {
            Code::Arrow(arrow) => &arrow.params,
            Code::Function(function) => &function.params,
        };
        let Some(missing) = parameters.items.get(given) else {
            return;
        };
        let BindingPattern::BindingIdentifier(id) = &missing.pattern else {
            return;
        };
        let span = code.span();
        let text = self.text_of(span);
        let name = id.name.as_str();
        let start = parameters.span.end - span.start;
        let body = text.get(start as usize..).unwrap_or_default();
        // A function may test whether the argument was given.
        let asks = |after: &str| {
            let after = after.trim_start();
            let signs = ["??", "||", "&&", "==", "!=", "?"];
            signs.iter().any(|sign| after.starts_with(sign))
        };
        let before = [
            format!("!{name}"),
            format!("typeof {name}"),
            format!("({name})"),
        ];
        let optional = missing.optional
            || missing.initializer.is_some()
            || body.len() > MAX_TEXT
            || statements(code).is_empty() && crate::code::only_expression(code).is_none()
            || uses(body, name).any(asks)
            || before.iter().any(|text| body.contains(text.as_str()));
        if optional || !uses(body, name).any(|after| !is_set(after)) {
            return;
        }
        let called = excerpt(&self.functions[function].name);
        let message = format!("`{called}` reads `{name}`, which this call does not give");
        let all: Vec<&str> = parameters
            .items
            .iter()
            .map(|item| {
                let name = item.pattern.get_identifier_name();
                name.map_or("...", |name| name.as_str())
            })
            .collect();
        let help = format!(
            "write `{called}({})`, or give the parameter a default: `{name} = 0`",
            excerpt(&all.join(", "))
        );
        self.oversight(found::HELPER_ARITY, message, call.span, help);
    }
}
