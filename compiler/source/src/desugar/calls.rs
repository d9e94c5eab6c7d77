//! Calls and members that have a plainer form: `f.call(null, x)`, `Math.max.apply(null, list)`,
//! `globalThis.f`, `map.keys().next().value`, `new Error(text).message`, comparisons by options.

use super::Sugar;
use super::format::{self, Format};
use crate::edits::Piece;
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, BindingPattern, CallExpression, Expression,
    ObjectPropertyKind, StaticMemberExpression, VariableDeclaration,
};
use oxc_span::{GetSpan as _, Span};

/// Names whose members are functions that use no `this`.
const NAMESPACES: &[&str] = &["Math", "Number", "String", "Object", "JSON", "Date"];

/// Methods that change a list, which no text has.
const CHANGES: &[&str] = &["push", "unshift", "splice", "sort", "reverse", "fill"];

const OWN_NAMES: &str = "(value) {
  const names = Object.keys(value)
  if (Array.isArray(value) || typeof value === 'string') names.push('length')
  return names
}";

const OWN_KEYS: &str = "(value) {
  if (value === null || typeof value !== 'object') throw new TypeError('Reflect.ownKeys called on non-object')
  const names = Object.keys(value)
  if (Array.isArray(value)) names.push('length')
  return names
}";

fn exprs<'i, 'a>(args: &'i [Argument<'a>]) -> Option<Vec<&'i Expression<'a>>> {
    args.iter().map(|one| one.as_expression()).collect()
}

/// True for a value without effects.
fn is_simple(expr: &Expression<'_>) -> bool {
    matches!(
        expr,
        Expression::NullLiteral(_)
            | Expression::Identifier(_)
            | Expression::ThisExpression(_)
            | Expression::BooleanLiteral(_)
            | Expression::NumericLiteral(_)
    ) || matches!(expr, Expression::ObjectExpression(object) if object.properties.is_empty())
}

impl<'a> Sugar<'_, 'a> {
    pub(super) fn call(&mut self, it: &CallExpression<'a>) {
        let Expression::StaticMemberExpression(member) = it.callee.get_inner_expression() else {
            return;
        };
        let free = |name: &str| self.facts.is_free(&member.object, name);
        let name = member.property.name.as_str();
        match name {
            "call" | "apply" if !it.optional => self.invoked(it, member, name == "apply"),
            "getOwnPropertyNames" if free("Object") && it.arguments.len() == 1 => {
                let name = self.behind("ownNames", OWN_NAMES, it.span);
                self.edits.replace(it.callee.span(), vec![name.into()]);
            }
            "ownKeys" if free("Reflect") && it.arguments.len() == 1 => {
                let name = self.behind("ownKeys", OWN_KEYS, it.span);
                self.edits.replace(it.callee.span(), vec![name.into()]);
            }
            "stringify" if free("JSON") => {
                if let Some(first) = it.arguments.first().and_then(|one| one.as_expression()) {
                    self.drop_functions(first);
                }
            }
            "localeCompare" if it.arguments.len() > 1 => self.compared(it, member),
            "toLocaleString" if format::is_compact(it.arguments.get(1)) => {
                if let Expression::NumericLiteral(_) | Expression::Identifier(_) = &member.object
                    && format::is_english(it.arguments.first(), &["en", "en-US"])
                {
                    self.formatted(it, Format::Compact, &[&member.object]);
                }
            }
            "compare" | "format" => {
                if let (Some(format), Some(args)) =
                    (self.facts.format(&member.object), exprs(&it.arguments))
                {
                    self.formatted(it, format, &args);
                }
            }
            _ => {}
        }
    }

    /// `f.call(null, x)` and `f.apply(null, list)` of a function that uses no `this`.
    fn invoked(
        &mut self,
        it: &CallExpression<'a>,
        member: &StaticMemberExpression<'a>,
        is_apply: bool,
    ) {
        let object = member.object.get_inner_expression();
        let Some(args) = exprs(&it.arguments) else {
            return;
        };
        let Some((this, rest)) = args.split_first() else {
            return;
        };
        let mut pieces: Vec<Piece> = match object {
            Expression::StaticMemberExpression(inner) if self.is_list_method(&inner.object) => {
                let name = inner.property.name.as_str();
                let is_list = matches!(this, Expression::Identifier(id) if id.name == "arguments"
                    && self.frames.last().is_some_and(|frame| frame.arguments.is_some()));
                if !is_list && !CHANGES.contains(&name) {
                    return;
                }
                vec![this.span().into(), format!(".{name}(").into()]
            }
            Expression::StaticMemberExpression(inner) => {
                let mut names = NAMESPACES.iter();
                if !names.any(|name| self.facts.is_free(&inner.object, name)) || !is_simple(this) {
                    return;
                }
                vec![object.span().into(), "(".into()]
            }
            object if self.facts.is_function(object) && is_simple(this) => {
                vec![object.span().into(), "(".into()]
            }
            _ => return,
        };
        if is_apply && rest.len() > 1 {
            return;
        }
        for (index, one) in rest.iter().enumerate() {
            if index > 0 {
                pieces.push(", ".into());
            }
            if is_apply {
                pieces.push("...".into());
            }
            pieces.push(one.span().into());
        }
        pieces.push(")".into());
        self.edits.replace(it.span, pieces);
    }

    /// True for `Array.prototype` and `[]`.
    fn is_list_method(&self, object: &Expression<'a>) -> bool {
        match object.get_inner_expression() {
            Expression::ArrayExpression(list) => list.elements.is_empty(),
            Expression::StaticMemberExpression(inner) => {
                inner.property.name == "prototype" && self.facts.is_free(&inner.object, "Array")
            }
            _ => false,
        }
    }

    /// Writes functions in the literal that `JSON.stringify` gets as `undefined`.
    fn drop_functions(&mut self, expr: &Expression<'a>) {
        match expr.get_inner_expression() {
            Expression::ObjectExpression(object) => {
                for property in &object.properties {
                    let ObjectPropertyKind::ObjectProperty(property) = property else {
                        continue;
                    };
                    let key = property.key.static_name();
                    if key.as_deref() == Some("toJSON")
                        || property.kind != oxc_ast::ast::PropertyKind::Init
                    {
                        continue;
                    }
                    match crate::atom::code_of(&property.value) {
                        Some(_) if property.method => {
                            let text = format!("{}: undefined", self.text(property.key.span()));
                            if !property.computed {
                                self.edits.replace(property.span, vec![text.into()]);
                            }
                        }
                        Some(_) => {
                            let at = property.value.span();
                            self.edits.replace(at, vec!["undefined".into()]);
                        }
                        None => self.drop_functions(&property.value),
                    }
                }
            }
            Expression::ArrayExpression(list) => {
                let items = list
                    .elements
                    .iter()
                    .filter_map(ArrayExpressionElement::as_expression);
                for item in items {
                    match crate::atom::code_of(item) {
                        Some(_) => self.edits.replace(item.span(), vec!["null".into()]),
                        None => self.drop_functions(item),
                    }
                }
            }
            _ => {}
        }
    }

    /// `a.localeCompare(b, locale, options)`.
    fn compared(&mut self, it: &CallExpression<'a>, member: &StaticMemberExpression<'a>) {
        let args = &it.arguments;
        let (Some(other), Some(collation)) = (
            args.first().and_then(|one| one.as_expression()),
            format::collation(args.get(2)),
        ) else {
            return;
        };
        if args.len() > 3 || member.optional || !format::is_english(args.get(1), format::ENGLISH) {
            return;
        }
        let (before, after) = self.collation_key(collation, it.span);
        let pieces = vec![
            before.clone().into(),
            member.object.span().into(),
            format!("{after}.localeCompare({before}").into(),
            if after.is_empty() { "" } else { "String(" }.into(),
            other.span().into(),
            if after.is_empty() { "" } else { ")" }.into(),
            format!("{after})").into(),
        ];
        self.edits.replace(it.span, pieces);
    }

    fn collation_key(&mut self, collation: format::Collation, at: Span) -> (String, String) {
        let mut name = |code: &'static str| self.behind("collation", code, at);
        collation.key(&mut name)
    }

    /// A call of a formatter's method.
    fn formatted(&mut self, it: &CallExpression<'a>, format: Format, args: &[&Expression<'a>]) {
        let pieces = match (format, args) {
            (Format::Compact, [value]) => {
                let name = self.behind("compact", format::compact(), it.span);
                vec![format!("{name}(").into(), value.span().into(), ")".into()]
            }
            (Format::Collator(collation), [left, right]) => {
                let (before, after) = self.collation_key(collation, it.span);
                let side = |expr: &Expression<'a>| {
                    let open: Piece = format!("{before}String(").into();
                    vec![open, expr.span().into(), format!("){after}").into()]
                };
                [
                    side(left),
                    vec![".localeCompare(".into()],
                    side(right),
                    vec![")".into()],
                ]
                .concat()
            }
            _ => return,
        };
        self.edits.replace(it.span, pieces);
    }

    /// Removes the declaration of a constant that holds a formatter; its uses do without.
    pub(super) fn formatter(&mut self, it: &VariableDeclaration<'a>) {
        if let [one] = &it.declarations[..]
            && let BindingPattern::BindingIdentifier(id) = &one.id
            && self.facts.format_at(id.span.start).is_some()
        {
            self.edits.replace(it.span, vec![";".into()]);
        }
    }

    pub(super) fn member(&mut self, it: &StaticMemberExpression<'a>) {
        let name = it.property.name.as_str();
        if self.facts.is_free(&it.object, "globalThis") && !self.facts.bindings.contains_key(name) {
            return self.edits.replace(it.span, vec![name.to_owned().into()]);
        }
        match name {
            "value" => self.first_item(it),
            "message" | "name" => self.error_part(it),
            "compare" | "format" => {
                let Some(format) = self.facts.format(&it.object) else {
                    return;
                };
                // A call replaces the whole of it.
                let text = match format {
                    Format::Compact => self.behind("compact", format::compact(), it.span),
                    Format::Collator(collation) => {
                        let (before, after) = self.collation_key(collation, it.span);
                        let (left, right) = (self.fresh("left"), self.fresh("right"));
                        format!(
                            "(({left}, {right}) => {before}String({left}){after}.localeCompare(\
                             {before}String({right}){after}))"
                        )
                    }
                };
                self.edits.replace(it.span, vec![text.into()]);
            }
            _ => {}
        }
    }

    /// `map.keys().next().value`: `keys`, `values` and `entries` give lists.
    fn first_item(&mut self, it: &StaticMemberExpression<'a>) {
        let Expression::CallExpression(next) = it.object.get_inner_expression() else {
            return;
        };
        let Expression::StaticMemberExpression(member) = next.callee.get_inner_expression() else {
            return;
        };
        let Expression::CallExpression(list) = member.object.get_inner_expression() else {
            return;
        };
        let Expression::StaticMemberExpression(of) = list.callee.get_inner_expression() else {
            return;
        };
        let is_list = matches!(of.property.name.as_str(), "keys" | "values" | "entries");
        if member.property.name == "next" && is_list && list.arguments.is_empty() {
            let rest = Span::new(list.span.end, it.span.end);
            self.edits.replace(rest, vec!["[0]".into()]);
        }
    }

    /// `new Error(text).message`.
    fn error_part(&mut self, it: &StaticMemberExpression<'a>) {
        let (callee, args) = match it.object.get_inner_expression() {
            Expression::NewExpression(new) => (&new.callee, &new.arguments),
            Expression::CallExpression(call) => (&call.callee, &call.arguments),
            _ => return,
        };
        let mut classes = crate::words::ERRORS.iter();
        let Some(class) = classes.find(|class| self.facts.is_free(callee, class)) else {
            return;
        };
        let pieces = match (it.property.name.as_str(), &args[..]) {
            ("name", [] | [Argument::StringLiteral(_)]) => vec![format!("'{class}'").into()],
            ("message", []) => vec!["''".into()],
            ("message", [one]) => match one.as_expression() {
                Some(expr) => vec!["String(".into(), expr.span().into(), ")".into()],
                None => return,
            },
            _ => return,
        };
        self.edits.replace(it.span, pieces);
    }
}
