//! Judges the arguments of `toLocaleString`.

use oxc_ast::ast::{Argument, Expression, ObjectPropertyKind};

/// Options of `toLocaleString` of numbers (D89).
const LOCALE_OPTIONS: [&str; 5] = [
    "style",
    "currency",
    "minimumFractionDigits",
    "maximumFractionDigits",
    "useGrouping",
];

/// Advice for arguments of `toLocaleString` that ask for another locale or an unsupported option.
pub(crate) fn locale_fault(arguments: &[Argument<'_>]) -> Option<&'static str> {
    const LOCALE: &str = "there is one locale: write `'en-US'`, or nothing";
    const OPTIONS: &str = "write the options there: `{ minimumFractionDigits: 2, \
                           maximumFractionDigits: 2 }`, `{ style: 'currency', currency }`, \
                           `{ style: 'percent' }`, `useGrouping`; for dates take parts such as \
                           `date.getUTCMonth()`";
    let mut arguments = arguments.iter().map(Argument::as_expression);
    let locale = arguments.next()?;
    match locale.map(Expression::get_inner_expression) {
        Some(Expression::StringLiteral(text)) if matches!(&*text.value, "en-US" | "en") => {}
        Some(Expression::Identifier(id)) if id.name == "undefined" => {}
        Some(Expression::ArrayExpression(list)) if list.elements.is_empty() => {}
        _ => return Some(LOCALE),
    }
    let options = arguments.next()?;
    let Some(Expression::ObjectExpression(object)) = options.map(Expression::get_inner_expression)
    else {
        return Some(OPTIONS);
    };
    let is_known = |property: &ObjectPropertyKind<'_>| match property {
        ObjectPropertyKind::ObjectProperty(property) => {
            let name = property.key.static_name();
            name.is_some_and(|name| LOCALE_OPTIONS.contains(&&*name))
        }
        ObjectPropertyKind::SpreadProperty(_) => false,
    };
    match object.properties.iter().all(is_known) {
        true => None,
        false => Some(OPTIONS),
    }
}
