//! Infers the types of expressions that change their lowering: dates, which calculate as numbers
//! in JavaScript, and matches, which are lists there.

use crate::code::only_expression;
use crate::lower::Lowerer;
use crate::pattern::{member_of, of};
pub(crate) use crate::state::Known;
use crate::state::Named;
use crate::tree::{Place, Tree};
use crate::value::Value;
use a99_core::builtins::{Gives, METHODS, function_gives, gives, mutates_lists};
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, CallExpression, Expression, RegExpFlags, TSType,
    TSTypeAnnotation, TSTypeName,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, LogicalOperator, UnaryOperator};

/// Maximum nesting of expressions that inference visits.
const MAX_LOOKS: u32 = 200;

/// Returns the local-time getter that replaces a UTC getter; all dates are in UTC.
pub(crate) fn utc(name: &str) -> Option<&'static str> {
    let part = name.strip_prefix("getUTC")?;
    let mut known = METHODS.iter().map(|method| method.name);
    known.find(|known| known.strip_prefix("get") == Some(part))
}

impl<'a> Lowerer<'a> {
    pub(crate) fn known(&self, expr: &'a Expression<'a>) -> Known {
        self.look(Known::Nothing, || self.known_within(expr))
    }

    /// Inspects an expression; returns `too_deep` beyond the maximum nesting.
    pub(crate) fn look<T>(&self, too_deep: T, find: impl FnOnce() -> T) -> T {
        let depth = self.looks.get();
        if depth >= MAX_LOOKS {
            return too_deep;
        }
        self.looks.set(depth + 1);
        let found = find();
        self.looks.set(depth);
        found
    }

    fn known_within(&self, expr: &'a Expression<'a>) -> Known {
        match expr.get_inner_expression() {
            Expression::AwaitExpression(inner) => self.known(&inner.argument),
            Expression::NumericLiteral(_) => Known::Number,
            Expression::NewExpression(_) if self.new_date(expr).is_some() => Known::Date,
            Expression::NewExpression(new) => self.formatter(&new.callee).unwrap_or(Known::Nothing),
            Expression::Identifier(id) => self
                .lookup(id.name.as_str())
                .map_or(Known::Nothing, |id| self.bindings[id].known),
            Expression::UnaryExpression(unary) => match unary.operator {
                UnaryOperator::UnaryNegation
                | UnaryOperator::UnaryPlus
                | UnaryOperator::BitwiseNot => Known::Number,
                _ => Known::Nothing,
            },
            Expression::BinaryExpression(binary) => match binary.operator {
                // A sum may be a text, but not a date.
                BinaryOperator::Addition
                | BinaryOperator::Subtraction
                | BinaryOperator::Multiplication
                | BinaryOperator::Division
                | BinaryOperator::Remainder
                | BinaryOperator::Exponential => Known::Number,
                other if crate::bits::function(other).is_some() => Known::Number,
                _ => Known::Nothing,
            },
            Expression::ConditionalExpression(conditional) => {
                let yes = self.known(&conditional.consequent);
                match yes == self.known(&conditional.alternate) {
                    true => yes,
                    false => Known::Nothing,
                }
            }
            Expression::LogicalExpression(logical) if logical.operator != LogicalOperator::And => {
                let other = logical.right.get_inner_expression();
                let is_list = matches!(other, Expression::ArrayExpression(_));
                match self.known(&logical.left) {
                    Known::Match if is_list || self.known(other) == Known::Match => Known::Match,
                    _ => Known::Nothing,
                }
            }
            Expression::ArrayExpression(array) => {
                let mut items = array.elements.iter().map(|element| match element {
                    ArrayExpressionElement::SpreadElement(spread) => {
                        self.known(&spread.argument).item()
                    }
                    element => element
                        .as_expression()
                        .map_or(Known::Nothing, |element| self.known(element)),
                });
                let first = items.next().unwrap_or(Known::Nothing);
                // A pair that a method returned may be `undefined`.
                match items.all(|item| item == first) && first != Known::Pair {
                    true => first.list(),
                    false => Known::Nothing,
                }
            }
            Expression::StaticMemberExpression(member)
                if matches!(member.property.name.as_str(), "length" | "timestamp") =>
            {
                Known::Number
            }
            Expression::ComputedMemberExpression(member) => match &member.expression {
                Expression::StringLiteral(_) => Known::Nothing,
                _ => self.known(&member.object).item(),
            },
            Expression::CallExpression(call) => self.known_call(call),
            _ => Known::Nothing,
        }
    }

    fn known_call(&self, call: &'a CallExpression<'a>) -> Known {
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            // What the class behind a source gives (`provided`).
            if matches!(&call.callee, Expression::Identifier(id) if id.name == "RegExp_exec") {
                return Known::Match;
            }
            return match self.free_name(&call.callee) {
                Some(name) if function_gives("", name).is_number() => Known::Number,
                _ => Known::Nothing,
            };
        };
        let name = member.property.name.as_str();
        let first = call.arguments.first().and_then(Argument::as_expression);
        if let Some(namespace) = self.free_name(member.object.get_inner_expression()) {
            return match (namespace, name) {
                ("Promise", "allSettled") => Known::AllSettled,
                ("Object", "entries") => Known::Pairs,
                ("Object", "freeze") => Known::Frozen,
                ("Date", "parse" | "UTC") => Known::Number,
                _ if function_gives(namespace, name).is_number() => Known::Number,
                ("Array", "from") if call.arguments.len() == 1 => match first {
                    Some(first) => self.known(first).item().list(),
                    None => Known::Nothing,
                },
                _ => Known::Nothing,
            };
        }
        let regex = |expr| self.regex_of(expr).map(|regex| regex.regex.flags);
        let is_global = |flags: RegExpFlags| flags.contains(RegExpFlags::G);
        match name {
            "valueOf" if self.known(&member.object) == Known::Date => Known::Number,
            "exec" if regex(&member.object).is_some() => Known::Match,
            "match" if first.and_then(regex).is_some_and(|flags| !is_global(flags)) => Known::Match,
            "matchAll" if first.and_then(regex).is_some() => Known::Matches,
            "map" => match first
                .and_then(crate::atom::code_of)
                .and_then(only_expression)
            {
                Some(value) if self.new_date(value).is_some() => Known::Dates,
                _ => Known::Nothing,
            },
            _ if utc(name).is_some() => Known::Number,
            _ => match gives(name) {
                gives if gives.is_number() => Known::Number,
                Gives::Item => self.known(&member.object).item(),
                Gives::Items | Gives::Part => self.known(&member.object).item().list(),
                _ => Known::Nothing,
            },
        }
    }

    /// Returns the arguments if the expression is `new Date(...)`.
    pub(crate) fn new_date(&self, expr: &'a Expression<'a>) -> Option<&'a [Argument<'a>]> {
        match expr.get_inner_expression() {
            Expression::NewExpression(new) if self.free_name(&new.callee) == Some("Date") => {
                Some(&new.arguments)
            }
            _ => None,
        }
    }

    /// Maps a TypeScript type to an inferred type.
    fn known_type(&self, ty: &TSType<'a>) -> Known {
        match ty {
            TSType::TSNumberKeyword(_) => Known::Number,
            TSType::TSArrayType(list) => self.known_type(&list.element_type).list(),
            TSType::TSTypeReference(reference) => match &reference.type_name {
                TSTypeName::IdentifierReference(name) => {
                    match (name.name.as_str(), self.types.get(name.name.as_str())) {
                        ("Date", None) => Known::Date,
                        (_, Some(Named::Alias(TSType::TSTypeReference(inner)))) => {
                            match &inner.type_name {
                                TSTypeName::IdentifierReference(name) if name.name == "Date" => {
                                    Known::Date
                                }
                                _ => Known::Nothing,
                            }
                        }
                        _ => Known::Nothing,
                    }
                }
                _ => Known::Nothing,
            },
            _ => Known::Nothing,
        }
    }

    /// Records the type of a variable that only its declaration sets.
    pub(crate) fn note_known(&mut self, js: &str, known: Known) {
        if known != Known::Nothing
            && let Some(id) = self.lookup(js)
            && !self.is_set(id)
        {
            self.bindings[id].known = self.lasting(known, self.bindings[id].at);
        }
    }

    /// Keeps the inferred type of a variable only if no later code can invalidate it: a list of
    /// pairs may get other items.
    pub(crate) fn lasting(&self, known: Known, at: u32) -> Known {
        match known {
            Known::Pairs if !self.scoping.is_only_read(at) => Known::Nothing,
            known => known,
        }
    }

    /// Records the type of a variable from its annotation.
    pub(crate) fn note_known_type(&mut self, js: &str, ty: Option<&TSTypeAnnotation<'a>>) {
        if let Some(ty) = ty {
            let known = self.known_type(&ty.type_annotation);
            self.note_known(js, known);
        }
    }

    /// Converts a match to the list that it is in JavaScript; other values stay unchanged.
    pub(crate) fn match_list(&self, expr: &'a Expression<'a>, value: Value) -> Value {
        if self.known(expr) != Known::Match {
            return value;
        }
        let at = value.place.clone();
        Value::node(of("Array", "from", vec![value.operand()], &at))
    }

    /// Warns about a match that is used as a value, which is a list in JavaScript.
    pub(crate) fn warn_of_match(&mut self, expr: &'a Expression<'a>) {
        if self.known(expr) == Known::Match {
            let message = "a match is an object here, not a list";
            let help = "make a list of it where there is one: `[...match]`";
            self.differs(expr.span(), message, help);
        }
    }

    /// Refuses a method that would change a copy of a match.
    pub(crate) fn check_match(&mut self, object: &'a Expression<'a>, name: &str, span: Span) {
        if mutates_lists(name) && self.known(object) == Known::Match {
            let help = "make a list of the match first: `const parts = [...match]`";
            self.unsupported(span, "changing a match", help);
        }
    }
}

/// Builds the time of a date.
pub(crate) fn time_of(value: Value) -> Value {
    let at = value.place.clone();
    member_of(value, Value::text("timestamp", &at), &at)
}

/// Builds `+value`.
pub(crate) fn number_of(value: Value) -> Value {
    let at = value.place.clone();
    Value::node(Tree::unary("+", value.operand(), &at))
}

/// Builds `Date.parse(value)`: milliseconds, or NaN for an invalid date.
pub(crate) fn parsed(value: Value) -> Value {
    let at = value.place.clone();
    let text = match value.kind {
        crate::value::Kind::Text(_) => value.operand(),
        _ => Tree::binary("+", Tree::text("", &at), value.operand(), &at),
    };
    tried(text, &at)
}

/// Builds the time of a value that may be a date, or NaN.
pub(crate) fn tried(value: Tree, at: &Place) -> Value {
    let date = Value::node(of("Date", "tryParse", vec![value], at));
    number_of(time_of(date))
}
