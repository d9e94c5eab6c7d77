//! Lowers dates. In JavaScript dates calculate as numbers, may be invalid, and change by setters.
//! Dates of programs are immutable, so a setter assigns a new date to the variable.

use crate::call::builtin;
use crate::known::{number_of, time_of};
use crate::lower::{BindingId, Lowerer, What, place, set};
use crate::pattern::{member_of, method, of};
use crate::state::{Iterable, Known};
use crate::tree::{Data, Place, Tree};
use crate::value::{Kind, Value};
use a99_core::builtins::{Gives, gives};
use oxc_ast::ast::{Argument, CallExpression, Expression, TSType, TSTypeName};
use oxc_span::{GetSpan, Span};

/// A setter: the members of the duration that moves a date, the getters that read them, and how
/// many of the members count from 1.
struct Setter {
    name: &'static str,
    parts: &'static [(&'static str, &'static str)],
}

const YEAR: (&str, &str) = ("years", "getFullYear");
const MONTH: (&str, &str) = ("months", "getMonth");
const DAY: (&str, &str) = ("days", "getDate");
const HOUR: (&str, &str) = ("hours", "getHours");
const MINUTE: (&str, &str) = ("minutes", "getMinutes");
const SECOND: (&str, &str) = ("seconds", "getSeconds");
const MS: (&str, &str) = ("ms", "getMilliseconds");

/// Setters of dates. The UTC variants are the same, because all dates are in UTC.
const SETTERS: [Setter; 8] = [
    setter("FullYear", &[YEAR, MONTH, DAY]),
    setter("Month", &[MONTH, DAY]),
    setter("Date", &[DAY]),
    setter("Hours", &[HOUR, MINUTE, SECOND, MS]),
    setter("Minutes", &[MINUTE, SECOND, MS]),
    setter("Seconds", &[SECOND, MS]),
    setter("Milliseconds", &[MS]),
    setter("Time", &[]),
];

const fn setter(name: &'static str, parts: &'static [(&'static str, &'static str)]) -> Setter {
    Setter { name, parts }
}

/// Returns the setter that a method name denotes.
fn setter_of(method: &str) -> Option<&'static Setter> {
    let name = method.strip_prefix("set")?;
    let name = name.strip_prefix("UTC").unwrap_or(name);
    SETTERS.iter().find(|setter| setter.name == name)
}

/// True if the text after a name calls a setter of dates on it.
fn is_changed(behind: &str) -> bool {
    let method = behind.trim_start().strip_prefix('.').unwrap_or_default();
    let end = method.find(|c: char| !c.is_ascii_alphabetic());
    setter_of(&method[..end.unwrap_or(method.len())]).is_some()
}

impl<'a> Lowerer<'a> {
    /// Lowers `new Date(...)`: the current time, the time of a text or a number, or parts in UTC.
    /// An invalid date has the time NaN.
    pub(crate) fn made_date(
        &mut self,
        arguments: &'a [Argument<'a>],
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Value {
        self.check_month(arguments);
        self.check_seconds(arguments);
        let exprs = self.arguments(arguments);
        self.permit(&exprs);
        let mut values = self.exprs(&exprs, out);
        match values.len() {
            0 => Value::node(builtin("Date", values, at)),
            1 => date_at(values.remove(0), at),
            _ => {
                let time = self.time_in_utc(&exprs, values, at, out);
                date_at(time, at)
            }
        }
    }

    /// Lowers `new Date(...) satisfies Date`, which fails if the date is invalid.
    pub(crate) fn sure_date(
        &mut self,
        expr: &'a Expression<'a>,
        ty: &TSType<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let arguments = self.new_date(expr)?;
        let TSType::TSTypeReference(reference) = ty else {
            return None;
        };
        let TSTypeName::IdentifierReference(name) = &reference.type_name else {
            return None;
        };
        let is_date = name.name == "Date" && !self.types.contains_key("Date");
        is_date.then(|| {
            let exprs = self.arguments(arguments);
            self.permit(&exprs);
            let values = self.exprs(&exprs, out);
            Value::node(builtin("Date", values, &place(expr.span())))
        })
    }

    /// Lowers `Date.UTC(...)` to the time of a date of these parts.
    pub(crate) fn utc_time(&mut self, call: &'a CallExpression<'a>, out: &mut Vec<Tree>) -> Value {
        let exprs = self.arguments(&call.arguments);
        let values = self.exprs(&exprs, out);
        self.time_in_utc(&exprs, values, &place(call.span), out)
    }

    fn time_in_utc(
        &mut self,
        exprs: &[&'a Expression<'a>],
        values: Vec<Value>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Value {
        let values = self.times(exprs, values, out);
        let values = self.parts(values, out);
        let minus =
            |value: &Value, number: f64| minus(value.clone(), Value::number(number, at), at);
        let mut duration = Vec::new();
        let parts = [YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MS];
        for (value, (part, _)) in values.iter().zip(parts) {
            let moved = match part {
                "years" => match &value.kind {
                    Kind::Scalar(Data::Number(year)) => {
                        Value::number(full_year(*year) - 1970.0, at)
                    }
                    _ => {
                        let year = || value.clone().operand();
                        let below = |op: &'static str, number: f64, from: Tree| {
                            Tree::binary(op, from, Tree::number(number, at), at)
                        };
                        let is_short = Tree::logical(
                            "&&",
                            below(">=", 0.0, year()),
                            below("<", 100.0, year()),
                            at,
                        );
                        let (short, full) = (minus(value, 70.0), minus(value, 1970.0));
                        let moved =
                            Tree::conditional(is_short, short.operand(), full.operand(), at);
                        Value::node(moved)
                    }
                },
                "days" => minus(value, 1.0),
                _ => number(value.clone()),
            };
            duration.push((part, moved));
        }
        let start = builtin("Date", vec![Value::number(0.0, at)], at);
        let date = moved(start, duration, at);
        with_nan(time_of(Value::node(date)), &values, at)
    }

    /// Makes values that are read twice: literal numbers or variables.
    fn parts(&mut self, mut values: Vec<Value>, out: &mut Vec<Tree>) -> Vec<Value> {
        let last = values.iter().rposition(|value| !value.is_scalar());
        for value in values.iter_mut().take(last.map_or(0, |last| last + 1)) {
            if !value.is_scalar() {
                let given = value.clone();
                *value = self.named(given, out);
            }
        }
        values
    }

    /// Lowers a setter of a date; its value is the new time.
    pub(crate) fn set_date(
        &mut self,
        object: &'a Expression<'a>,
        name: &str,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let setter = setter_of(name)?;
        let at = place(call.span);
        let Some(variable) = self.own_date(object, out) else {
            let help = "copy the date into a constant of its own first, `const d = new Date(date)`, \
                        and change that where it was made";
            self.unsupported(
                call.span,
                "changing a date that may have another name",
                help,
            );
            return Some(Value::undefined(&at));
        };
        let exprs = self.arguments(&call.arguments);
        let given = self.exprs(&exprs, out);
        let given = self.times(&exprs, given, out);
        let given = self.parts(given, out);
        let most = setter.parts.len().max(1);
        if given.is_empty() || given.len() > most {
            let help = format!("write `{variable}.{name}(value)`");
            let message = format!("`{name}` takes 1 to {most} numbers");
            self.deny(crate::codes::BAD_CALL, call.span, message, help);
            return Some(Value::undefined(&at));
        }
        let date = || Tree::ident(&variable, &at);
        let told = |getter: &str| Value::node(method(date(), getter, Vec::new(), &at));
        if setter.name == "FullYear" {
            // In JavaScript, setting the year makes an invalid date valid again.
            let start = Tree::number(0.0, &at);
            let time = time_of(Value::node(date())).operand();
            let time = Value::node(Tree::logical("||", time, start, &at));
            out.push(set(&variable, date_at(time, &at).resolved(), &at));
        }
        let is_by_day = setter.parts.contains(&DAY);
        let time = match given.len() {
            _ if setter.parts.is_empty() => number(given[0].clone()),
            1 => {
                let (part, getter) = setter.parts[0];
                let by = vec![(part, minus(given[0].clone(), told(getter), &at))];
                time_of(Value::node(moved(date(), by, &at)))
            }
            // Moves all parts at once, so that the current day of the month does not move the
            // month.
            _ if is_by_day => {
                let one = Value::number(1.0, &at);
                let back = vec![("days", minus(one.clone(), told("getDate"), &at))];
                let first = moved(date(), back, &at);
                let mut by = Vec::new();
                for (index, (part, getter)) in setter.parts.iter().enumerate() {
                    by.push(match (given.get(index), *part) {
                        (Some(value), "days") => ("days", minus(value.clone(), one.clone(), &at)),
                        (None, "days") => ("days", minus(told("getDate"), one.clone(), &at)),
                        (Some(value), part) => (part, minus(value.clone(), told(getter), &at)),
                        (None, _) => continue,
                    });
                }
                time_of(Value::node(moved(first, by, &at)))
            }
            _ => {
                let each = given.iter().zip(setter.parts);
                let by = each.map(|(value, (part, getter))| {
                    (*part, minus(value.clone(), told(getter), &at))
                });
                let by = by.collect();
                time_of(Value::node(moved(date(), by, &at)))
            }
        };
        let time = with_nan(time, &given, &at);
        out.push(set(&variable, date_at(time, &at).resolved(), &at));
        Some(time_of(Value::ident(&variable, &at)))
    }

    /// Returns the variable of a date that has no alias.
    fn own_date(&mut self, object: &'a Expression<'a>, out: &mut Vec<Tree>) -> Option<String> {
        if self.new_date(object).is_some() {
            let date = self.expr(object, out);
            let date = self.named(date, out);
            return match date.kind {
                Kind::Node(tree) => tree.ident_name().map(str::to_owned),
                _ => None,
            };
        }
        let Expression::Identifier(id) = object.get_inner_expression() else {
            return None;
        };
        let js = id.name.as_str();
        let id = self.lookup(js)?;
        let is_near = !self.is_outside(js, id);
        let binding = &self.bindings[id];
        let is_own = binding.changes && binding.is_ready && binding.owner == self.current;
        (is_own && is_near).then(|| binding.name.clone())
    }

    /// True if a variable is declared outside of steps with a separate scope.
    pub(crate) fn is_outside(&self, js: &str, id: BindingId) -> bool {
        let mut scopes = self.scopes.iter();
        let depth = scopes.rposition(|scope| scope.get(js) == Some(&id));
        depth.is_some_and(|depth| depth < self.barrier)
    }

    /// True if a variable with this declaration is a date that setters change.
    pub(crate) fn is_changed_date(&self, at: Span, init: &'a Expression<'a>) -> bool {
        let behind = |place: &u32| self.source.get((place + at.size()) as usize..);
        let variable = self.scoping.variable(at.start);
        let mut places = variable.map_or(&[][..], |one| &one.places).iter();
        self.new_date(init).is_some() && places.any(|place| behind(place).is_some_and(is_changed))
    }

    /// Allows these expressions to be dates that setters change, because nothing keeps their
    /// values.
    pub(crate) fn permit(&mut self, exprs: &[&'a Expression<'a>]) {
        for expr in exprs {
            if let Expression::Identifier(id) = expr.get_inner_expression() {
                self.permitted.insert(id.span.start);
            }
        }
    }

    /// Refuses an alias of a date that setters change.
    pub(crate) fn check_alias(&mut self, js: &str, span: Span) {
        if !self.permitted.contains(&span.start) {
            let help = format!("hand over a copy: `new Date({js})`");
            let what = "another name for a date that setters change";
            self.unsupported(span, what, help);
        }
    }

    /// Refuses to assign a value that may have an alias to a date variable with setters.
    pub(crate) fn check_date(&mut self, js: &str, value: &'a Expression<'a>) {
        let is_changed = self.lookup(js).is_some_and(|id| self.bindings[id].changes);
        let value = value.get_inner_expression();
        let is_new =
            self.new_date(value).is_some() || matches!(value, Expression::CallExpression(_));
        if is_changed && !is_new {
            let help = format!("make a new one: `{js} = new Date(...)`");
            let what = "another name for a date that setters change";
            self.unsupported(value.span(), what, help);
        }
    }

    /// Converts values that are or may be dates to numbers.
    pub(crate) fn times(
        &mut self,
        exprs: &[&'a Expression<'a>],
        mut values: Vec<Value>,
        out: &mut Vec<Tree>,
    ) -> Vec<Value> {
        let maybe = |this: &Self, index: usize| {
            let expr: Option<&&'a Expression<'a>> = exprs.get(index);
            expr.is_some_and(|expr| this.may_be_date(expr))
        };
        // A value that is read twice must have no side effects, and the values before it are
        // evaluated before it.
        let last =
            (0..values.len()).rfind(|&index| maybe(self, index) && !is_plain(&values[index]));
        for (index, value) in values.iter_mut().enumerate() {
            if last.is_some_and(|last| index <= last) && !value.is_scalar() {
                let given = value.clone();
                *value = self.named(given, out);
            }
        }
        let values = values.into_iter().enumerate();
        values
            .map(
                |(index, value)| match exprs.get(index).map(|expr| self.known(expr)) {
                    Some(Known::Date) => time_of(value),
                    Some(_) if maybe(self, index) && !value.is_scalar() => either(value),
                    _ => value,
                },
            )
            .collect()
    }

    /// Converts one value that is or may be a date to a number.
    pub(crate) fn time(
        &mut self,
        expr: &'a Expression<'a>,
        value: Value,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = value.place.clone();
        let value = self.times(&[expr], vec![value], out).pop();
        value.unwrap_or_else(|| Value::undefined(&at))
    }

    /// True if a value may be a date in a source with dates.
    pub(crate) fn may_be_date(&self, expr: &'a Expression<'a>) -> bool {
        if !self.has_dates || self.known(expr) != Known::Nothing {
            return false;
        }
        self.look(true, || self.may_be_date_within(expr))
    }

    fn may_be_date_within(&self, expr: &'a Expression<'a>) -> bool {
        match expr.get_inner_expression() {
            Expression::AwaitExpression(inner) => self.may_be_date(&inner.argument),
            Expression::Identifier(id) => match self.lookup(id.name.as_str()) {
                Some(id) => {
                    let binding = &self.bindings[id];
                    matches!(binding.what, What::Variable) && binding.sort == Iterable::Unknown
                }
                None => false,
            },
            Expression::StaticMemberExpression(_) => true,
            Expression::ComputedMemberExpression(_) => true,
            Expression::ConditionalExpression(conditional) => {
                self.may_be_date(&conditional.consequent)
                    || self.may_be_date(&conditional.alternate)
            }
            // The printer writes the conversion of `times` like this.
            Expression::LogicalExpression(logical) if is_time(&logical.left) => false,
            Expression::LogicalExpression(logical) => {
                self.may_be_date(&logical.left) || self.may_be_date(&logical.right)
            }
            Expression::ChainExpression(_) => true,
            Expression::CallExpression(call) => match call.callee.get_inner_expression() {
                Expression::Identifier(id) => {
                    let name = id.name.as_str();
                    self.lookup(name).is_some() || matches!(name, "memoize" | "cache")
                }
                Expression::StaticMemberExpression(member) => {
                    let is_namespace = self.free_name(&member.object).is_some();
                    let given = gives(member.property.name.as_str());
                    !is_namespace && matches!(given, Gives::Item | Gives::Itself | Gives::Unknown)
                }
                _ => true,
            },
            _ => false,
        }
    }
}

/// True for `value.timestamp`.
fn is_time(expr: &Expression<'_>) -> bool {
    match expr.get_inner_expression() {
        Expression::StaticMemberExpression(member) => member.property.name == "timestamp",
        _ => false,
    }
}

/// Maps a two-digit year in a call to the twentieth century.
fn full_year(year: f64) -> f64 {
    // The year is truncated before (ECMA-262 §21.4.1.27, MakeFullYear).
    match year > -1.0 && year < 100.0 {
        true => 1900.0 + year.trunc(),
        false => year,
    }
}

/// Builds the date of a time or text, which may be invalid.
fn date_at(value: Value, at: &Place) -> Value {
    Value::node(of("Date", "parse", vec![value.operand()], at))
}

/// Builds a date moved by a duration.
fn moved(date: Tree, duration: Vec<(&str, Value)>, at: &Place) -> Tree {
    let parts = duration.into_iter();
    let parts = parts.map(|(part, value)| (part.as_bytes().to_vec(), value));
    let duration = Value::new(Kind::Map(parts.collect()), at);
    method(date, "add", vec![duration.operand()], at)
}

fn minus(left: Value, right: Value, at: &Place) -> Value {
    match (&left.kind, &right.kind) {
        (Kind::Scalar(Data::Number(left)), Kind::Scalar(Data::Number(right))) => {
            Value::number(left - right, at)
        }
        _ => Value::node(Tree::binary("-", left.operand(), right.operand(), at)),
    }
}

/// Converts a value to a number, because `+` would append texts.
fn number(value: Value) -> Value {
    match value.kind {
        Kind::Scalar(Data::Number(_)) => value,
        _ => number_of(value),
    }
}

/// Makes a time NaN if one of the parts is not a number, because durations cannot express NaN.
fn with_nan(time: Value, parts: &[Value], at: &Place) -> Value {
    let untold = parts.iter().filter(|part| match &part.kind {
        Kind::Scalar(Data::Number(number)) => !number.is_finite(),
        _ => true,
    });
    untold.fold(time, |time, part| {
        let zero = Tree::binary("*", Tree::number(0.0, at), part.clone().operand(), at);
        Value::node(Tree::binary("+", time.operand(), zero, at))
    })
}

/// True if a value can be read twice without side effects: a variable, or a member of one.
fn is_plain(value: &Value) -> bool {
    match &value.kind {
        Kind::Node(tree) => is_plain_node(tree),
        _ => value.is_scalar(),
    }
}

fn is_plain_node(tree: &Tree) -> bool {
    match tree.tag() {
        None => true,
        Some("ident" | "literal" | "context") => true,
        Some("member") => ["object", "property"]
            .iter()
            .filter_map(|key| tree.get(key))
            .all(is_plain_node),
        _ => false,
    }
}

/// Builds the time of a date; other values stay unchanged.
pub(crate) fn either(value: Value) -> Value {
    let at = value.place.clone();
    let time = member_of(value.clone(), Value::text("timestamp", &at), &at);
    Value::node(Tree::logical("??", time.operand(), value.operand(), &at))
}
