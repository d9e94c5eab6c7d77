//! Lowers `toLocaleString` and similar methods, and formatters of `Intl`.

use crate::known::Known;
use crate::lower::{Lowerer, place};
use crate::pattern::{method, of};
use crate::tree::Tree;
use crate::value::{Kind, Value};
use a99_ecma::date::locale::OPTIONS;
use oxc_ast::ast::{Argument, CallExpression, Expression, NewExpression, ObjectPropertyKind};

/// Options of numbers (D89).
const NUMBERS: &[&str] = &[
    "style",
    "currency",
    "minimumFractionDigits",
    "maximumFractionDigits",
    "useGrouping",
];

/// Options of dates (D114).
const DATES: &[&str] = &OPTIONS;

const LOCALE: &str = "there is one locale: write `'en-US'`, or nothing";

const NUMBER_OPTIONS: &str = "write the options there: `{ minimumFractionDigits: 2, \
                              maximumFractionDigits: 2 }`, `{ style: 'currency', currency }`, \
                              `{ style: 'percent' }`, `useGrouping`; those of dates are \
                              `weekday`, `year`, `month`, `day`, `hour`, `minute`, `second`, \
                              `hour12`, `timeZone`, `dateStyle`, `timeStyle`";

const DATE_OPTIONS: &str = "there are `weekday`, `year`, `month`, `day`, `hour`, `minute`, \
                            `second`, `hour12`, `hourCycle`, `timeZone`, `dateStyle` and \
                            `timeStyle`";

impl<'a> Lowerer<'a> {
    /// Advice for a call of `toLocaleString` and the like with another locale or an unsupported
    /// option.
    pub(crate) fn locale_help(
        &self,
        name: &str,
        call: &'a CallExpression<'a>,
    ) -> Option<&'static str> {
        let is_date = name != "toLocaleString" || self.is_method_of_date(call);
        locale_fault(&call.arguments, is_date, &[NUMBERS, DATES])
    }

    fn is_method_of_date(&self, call: &'a CallExpression<'a>) -> bool {
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => self.known(&member.object) == Known::Date,
            _ => false,
        }
    }

    /// Returns the kind of a formatter that an expression makes: `new Intl.NumberFormat(...)`.
    pub(crate) fn formatter(&self, callee: &'a Expression<'a>) -> Option<Known> {
        let Expression::StaticMemberExpression(member) = callee.get_inner_expression() else {
            return None;
        };
        let is_intl = matches!(
            member.object.get_inner_expression(),
            Expression::Identifier(id) if id.name == "Intl" && self.lookup("Intl").is_none()
        );
        match member.property.name.as_str() {
            "NumberFormat" if is_intl => Some(Known::NumberFormat),
            "DateTimeFormat" if is_intl => Some(Known::DateFormat),
            _ => None,
        }
    }

    /// Lowers `new Intl.NumberFormat(...)` and `new Intl.DateTimeFormat(...)` to their options.
    pub(crate) fn new_formatter(
        &mut self,
        new: &'a NewExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let kind = self.formatter(&new.callee)?;
        let at = place(new.span);
        let is_date = kind == Known::DateFormat;
        let known = if is_date { DATES } else { NUMBERS };
        if let Some(help) = locale_fault(&new.arguments, is_date, &[known]) {
            self.unsupported(new.span, "this formatter", help);
        }
        let options = new.arguments.get(1).and_then(Argument::as_expression);
        let empty = Value::new(Kind::Map(Vec::new()), &at);
        Some(match options {
            None => empty,
            Some(options) => {
                let value = self.expr(options, out);
                match options.get_inner_expression() {
                    Expression::ObjectExpression(_) => value,
                    // Later changes of the options have no effect.
                    _ => {
                        let both = vec![empty.operand(), value.operand()];
                        Value::node(of("Object", "assign", both, &at))
                    }
                }
            }
        })
    }

    /// Lowers `format` of a formatter.
    pub(crate) fn formatted(
        &mut self,
        object: &'a Expression<'a>,
        name: &str,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let kind = self.known(object);
        if !matches!(kind, Known::NumberFormat | Known::DateFormat) {
            return None;
        }
        let at = place(call.span);
        if name != "format" || call.arguments.len() > 1 {
            let help = "a formatter has `format(value)`";
            self.unsupported(call.span, "this call of a formatter", help);
            return Some(Value::undefined(&at));
        }
        let given = self.arguments(&call.arguments);
        let mut exprs = vec![object];
        exprs.extend(given);
        self.permit(&exprs);
        let mut values = self.exprs(&exprs, out).into_iter();
        let options = values.next()?.operand();
        let value = values.next().unwrap_or_else(|| Value::undefined(&at));
        let locale = Tree::text("en-US", &at);
        Some(Value::node(match kind {
            Known::DateFormat => of(
                "Date",
                "toLocale",
                vec![value.operand(), locale, options],
                &at,
            ),
            _ => {
                let number = crate::known::number_of(value).operand();
                method(number, "toLocaleString", vec![locale, options], &at)
            }
        }))
    }
}

/// Advice for arguments that ask for another locale or an unsupported option. Options of dates
/// may be computed, because the machine checks them.
fn locale_fault(
    arguments: &[Argument<'_>],
    is_date: bool,
    known: &[&[&str]],
) -> Option<&'static str> {
    let mut arguments = arguments.iter().map(Argument::as_expression);
    let locale = arguments.next()?;
    match locale.map(Expression::get_inner_expression) {
        Some(Expression::StringLiteral(text)) if matches!(&*text.value, "en-US" | "en") => {}
        Some(Expression::Identifier(id)) if id.name == "undefined" => {}
        Some(Expression::ArrayExpression(list)) if list.elements.is_empty() => {}
        _ => return Some(LOCALE),
    }
    let options = arguments.next()?;
    let help = if is_date {
        DATE_OPTIONS
    } else {
        NUMBER_OPTIONS
    };
    let Some(Expression::ObjectExpression(object)) = options.map(Expression::get_inner_expression)
    else {
        return match options {
            Some(_) if is_date => None,
            _ => Some(help),
        };
    };
    let is_known = |property: &ObjectPropertyKind<'_>| match property {
        ObjectPropertyKind::ObjectProperty(property) => {
            let name = property.key.static_name();
            name.is_some_and(|name| match is_date {
                true => DATES.contains(&&*name),
                false => known.iter().any(|known| known.contains(&&*name)),
            })
        }
        ObjectPropertyKind::SpreadProperty(_) => is_date,
    };
    match object.properties.iter().all(is_known) {
        true => None,
        false => Some(help),
    }
}
