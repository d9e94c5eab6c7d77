//! Warns about missing values: counters of members without a start value, callbacks that return a
//! value for some items only, objects that lack a member that the callee takes.
//!
//! Codes: `lint.bad_arithmetic`, `lint.missing_result`, `lint.unknown_member`.

use crate::code::{only_expression, statements};
use crate::lower::{BindingId, Code, Lowerer};
use a99_core::builtins::mutates;
use a99_core::diag::{Diagnostic, codes as found, excerpt};
use oxc_ast::ast::{Argument, BindingPattern, CallExpression, Expression, PropertyKey, Statement};
use oxc_span::{GetSpan as _, Span};
use std::ops::Range;

/// Maximum bytes before a place that a check scans.
const MAX_TEXT: usize = 16_000;

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Returns the text after the bracket at the start of a text.
fn behind_brackets(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.checked_sub(1)?,
            '\n' if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 && at > 0 {
            return Some(text[at + 1..].trim_start());
        }
    }
    None
}

impl<'a> Lowerer<'a> {
    fn missing(&mut self, code: &'static str, message: String, at: Span, help: String) {
        self.find(Diagnostic::warning(code, message, ""), at, help);
    }

    /// Yields the text before and after each place of a variable in a range of the source.
    fn uses(
        &self,
        id: BindingId,
        within: Range<usize>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let source = self.source;
        let variable = self.scoping.variable(self.bindings[id].at);
        let places = variable.map_or(&[][..], |variable| &variable.places).iter();
        let places = places
            .map(|at| *at as usize)
            .filter(move |at| within.contains(at));
        places.filter_map(move |at| {
            let (before, name) = source.split_at_checked(at)?;
            let end = name.find(|c: char| !is_part(c)).unwrap_or(name.len());
            Some((before, &name[end..]))
        })
    }

    /// True if a variable starts as an empty object and no code before sets a member.
    fn is_empty_yet(&self, name: &str, at: Span) -> bool {
        let before = 0..at.start as usize;
        let Some(id) = self.lookup(name).filter(|_| before.end <= MAX_TEXT) else {
            return false;
        };
        let mut begins = false;
        for (start, after) in self.uses(id, before) {
            let after = after.trim_start();
            let declared = start.trim_end();
            let is_new = declared.ends_with("const") || declared.ends_with("let");
            if is_new {
                let value = after.strip_prefix('=').map(str::trim_start);
                let value = value
                    .and_then(|value| value.strip_prefix('{'))
                    .map(str::trim_start);
                begins = value.is_some_and(|value| value.starts_with('}'));
                continue;
            }
            let sets = match after.chars().next() {
                Some('[') => behind_brackets(after).is_none_or(|rest| {
                    let assigns = rest.starts_with('=') && !rest.starts_with("==");
                    assigns || rest.starts_with("??") || rest.starts_with("||")
                }),
                Some('=') => !after.starts_with("=="),
                // A function that gets the object may set members.
                Some(',' | ')') => true,
                Some('.') => {
                    let rest = after[1..].trim_start_matches(is_part).trim_start();
                    rest.starts_with('=') && !rest.starts_with("==")
                }
                _ => declared.ends_with("in"),
            };
            if sets {
                return false;
            }
        }
        // Later code may set the member for the next turn.
        let end = at.end as usize;
        let mut later = self.uses(id, end..end + MAX_TEXT);
        let sets_later = later.any(|(_, after)| {
            after.starts_with('[')
                && behind_brackets(after).is_some_and(|rest| {
                    rest.starts_with('=') && !rest.starts_with("==") || rest.starts_with("??=")
                })
        });
        begins && !sets_later
    }

    /// Warns about `count[word]++` and `count[word] += 1` on an empty object.
    pub(crate) fn check_tally(&mut self, target: Span, whole: Span) {
        let text = self.text_of(target);
        let Some((name, key)) = text.split_once('[') else {
            return;
        };
        let key = key.trim_end_matches(']');
        let is_key = !key.is_empty() && !key.starts_with(['\'', '"']);
        if name.is_empty() || !name.chars().all(is_part) || !is_key {
            return;
        }
        if !self.is_empty_yet(name, whole) {
            return;
        }
        let (text, name, key) = (excerpt(text), excerpt(name), excerpt(key));
        let message = format!("`{text}` is not there at first, which gives `NaN`");
        let help = format!("write `{name}[{key}] = ({name}[{key}] ?? 0) + 1`");
        self.missing(found::BAD_ARITHMETIC, message, whole, help);
    }

    /// Warns about `groups[key].push(x)` on an empty object.
    pub(crate) fn check_group(&mut self, name: &str, call: &'a CallExpression<'a>) {
        if !mutates(name) {
            return;
        }
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        let Expression::ComputedMemberExpression(group) = member.object.get_inner_expression()
        else {
            return;
        };
        let Expression::Identifier(id) = group.object.get_inner_expression() else {
            return;
        };
        if matches!(group.expression, Expression::StringLiteral(_))
            || !self.is_empty_yet(id.name.as_str(), call.span)
        {
            return;
        }
        let text = excerpt(self.text_of(group.span));
        let message = format!("`{text}` is not there at first, so this call fails");
        let help = format!("make it before: `({text} ??= []).{name}(...)`");
        self.missing(found::UNKNOWN_MEMBER, message, call.span, help);
    }

    /// Warns about a callback of `map` that returns for some items only, and about other mistakes
    /// in the values of callbacks.
    pub(crate) fn check_given(&mut self, name: &str, code: Code<'a>) {
        match (name, only_expression(code)) {
            (
                "filter" | "find" | "findIndex" | "findLast" | "some" | "every",
                Some(test @ Expression::AssignmentExpression(_)),
            ) => self.check_test(test, false),
            ("reduce" | "reduceRight", Some(Expression::CallExpression(call))) => {
                let parameters = match code {
                    Code::Arrow(arrow) => &arrow.params,
                    Code::Function(function) => &function.params,
                };
                let first = parameters.items.first();
                let first = first.and_then(|item| item.pattern.get_identifier_name());
                let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression()
                else {
                    return;
                };
                let Expression::Identifier(id) = member.object.get_inner_expression() else {
                    return;
                };
                let method = member.property.name.as_str();
                let is_sum = first.is_some_and(|first| first.as_str() == id.name.as_str());
                if !is_sum || !matches!(method, "push" | "unshift") {
                    return;
                }
                let message =
                    format!("`{method}` gives the number of items, which is the next sum");
                let sum = excerpt(id.name.as_str());
                let help =
                    format!("write `{{ {sum}.{method}(x); return {sum} }}`, or `[...{sum}, x]`");
                self.missing(found::MISSING_RESULT, message, call.span, help);
            }
            ("map", None) => {
                let Some(Statement::IfStatement(last)) = statements(code).last() else {
                    return;
                };
                let gives = self.text_of(last.consequent.span()).contains("return ");
                if last.alternate.is_some() || !gives {
                    return;
                }
                let message = "where this does not hold the item becomes `undefined`";
                let help = "choose the items before, `.filter((x) => ...)`, or return another value \
                            behind the `if`";
                self.missing(
                    found::MISSING_RESULT,
                    message.to_owned(),
                    last.span,
                    help.to_owned(),
                );
            }
            _ => {}
        }
    }

    /// Warns about an object argument of a destructuring function that lacks a required member
    /// and has one that the function does not take.
    pub(crate) fn check_members(&mut self, function: usize, call: &'a CallExpression<'a>) {
        let Some(code) = self.functions[function].whole else {
            return;
        };
        let parameters = match code {
            Code::Arrow(arrow) => &arrow.params,
            Code::Function(function) => &function.params,
        };
        for (item, argument) in parameters.items.iter().zip(&call.arguments) {
            let BindingPattern::ObjectPattern(pattern) = &item.pattern else {
                continue;
            };
            let Some(Expression::ObjectExpression(object)) =
                Argument::as_expression(argument).map(Expression::get_inner_expression)
            else {
                continue;
            };
            if pattern.rest.is_some() {
                continue;
            }
            let named = |key: &PropertyKey<'a>| key.static_name().map(|name| name.into_owned());
            let wanted: Option<Vec<(String, bool)>> = pattern
                .properties
                .iter()
                .map(|one| {
                    let is_free = matches!(one.value, BindingPattern::AssignmentPattern(_));
                    Some((named(&one.key)?, is_free))
                })
                .collect();
            let given: Option<Vec<(String, Span)>> = object
                .properties
                .iter()
                .map(|one| {
                    let one = one.as_property()?;
                    Some((named(&one.key)?, one.span))
                })
                .collect();
            let (Some(wanted), Some(given)) = (wanted, given) else {
                continue;
            };
            let missing = wanted
                .iter()
                .find(|(name, is_free)| !is_free && given.iter().all(|(other, _)| other != name));
            let extra = given
                .iter()
                .find(|(name, _)| wanted.iter().all(|(other, _)| other != name));
            let called = excerpt(&self.functions[function].name);
            if let (Some((name, _)), Some((other, span))) = (missing, extra) {
                let message = format!("`{called}` takes no `{}`", excerpt(other));
                let help = format!("did you mean `{}`?", excerpt(name));
                return self.missing(found::UNKNOWN_MEMBER, message, *span, help);
            }
        }
    }
}
