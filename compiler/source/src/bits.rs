//! Suggests replacements for bitwise operators, and for unknown members of namespaces.

use crate::codes;
use crate::lower::Lowerer;
use a99_core::builtins::{CONSTANTS, FUNCTIONS};
use a99_core::diag::suggest;
use a99_ecma::arith::{to_int32, to_uint32};
use oxc_ast::ast::{AssignmentExpression, BinaryExpression, Expression, UnaryExpression};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

/// Range in which a suggestion without 32-bit arithmetic is exact.
const SAME: &str = "which is the same for numbers from -(2 ** 31) to 2 ** 31 - 1";

/// Maximum bytes of an operand that a suggestion quotes.
const MAX_OPERAND: usize = 60;

/// The left operand of a bitwise operator.
struct Operand {
    /// Source text for use between parentheses.
    whole: String,
    /// Value of a literal number.
    fixed: Option<f64>,
    is_flag: bool,
}

/// Suggests a replacement for `x | 0`.
fn whole_number(value: &str, fixed: Option<f64>) -> String {
    match fixed {
        Some(number) => written(f64::from(to_int32(number))),
        None => {
            let wrapped = wrapped(&format!("Math.trunc({value})"));
            format!("write `Math.trunc({value})`, {SAME}; to wrap at 32 bits, `{wrapped}`")
        }
    }
}

/// Suggests a signed 32-bit integer, as JavaScript wraps it.
fn wrapped(whole: &str) -> String {
    format!("(({whole} % 2 ** 32 + 3 * 2 ** 31) % 2 ** 32 - 2 ** 31)")
}

/// Suggests an unsigned 32-bit integer.
fn unsigned(value: &str) -> String {
    format!("((Math.trunc({value}) % 2 ** 32 + 2 ** 32) % 2 ** 32)")
}

/// Suggests a number in place of an expression.
fn written(value: f64) -> String {
    match value < 0.0 {
        true => format!("write `({value})`"),
        false => format!("write `{value}`"),
    }
}

/// Computes a bitwise operator.
fn calculated(operator: BinaryOperator, left: f64, right: f64) -> Option<f64> {
    let (a, b) = (to_int32(left), to_int32(right));
    let places = to_uint32(right) % 32;
    Some(match operator {
        BinaryOperator::BitwiseOR => f64::from(a | b),
        BinaryOperator::BitwiseAnd => f64::from(a & b),
        BinaryOperator::BitwiseXOR => f64::from(a ^ b),
        BinaryOperator::ShiftLeft => f64::from(a << places),
        BinaryOperator::ShiftRight => f64::from(a >> places),
        BinaryOperator::ShiftRightZeroFill => f64::from(to_uint32(left) >> places),
        _ => return None,
    })
}

/// True if an operand looks like a flag: one bit, or a constant in capitals.
fn is_flag(expr: &Expression<'_>) -> bool {
    let is_constant = |name: &str| {
        let mut letters = name.chars().filter(|c| c.is_alphabetic()).peekable();
        name.len() > 1 && letters.peek().is_some() && letters.all(char::is_uppercase)
    };
    match expr.get_inner_expression() {
        Expression::NumericLiteral(number) => {
            number.value >= 1.0 && number.value.log2().fract() == 0.0
        }
        Expression::Identifier(id) => is_constant(&id.name),
        Expression::StaticMemberExpression(member) => is_constant(&member.property.name),
        Expression::BinaryExpression(binary) => is_flag(&binary.left) || is_flag(&binary.right),
        Expression::UnaryExpression(unary) => is_flag(&unary.argument),
        _ => false,
    }
}

impl<'a> Lowerer<'a> {
    /// Quotes a short operand and names a long one, in parentheses if another operator could
    /// capture a part of it.
    fn operand(&self, expr: &Expression<'a>, is_whole: bool) -> String {
        let inner = expr.get_inner_expression();
        let text = self.text_of(inner.span());
        let is_whole = is_whole && !matches!(inner, Expression::SequenceExpression(_));
        if text.len() > MAX_OPERAND || text.contains('\n') {
            return "x".to_owned();
        }
        let is_plain = matches!(
            inner,
            Expression::Identifier(_)
                | Expression::NumericLiteral(_)
                | Expression::StaticMemberExpression(_)
                | Expression::ComputedMemberExpression(_)
                | Expression::CallExpression(_)
        );
        match is_plain || is_whole {
            true => text.to_owned(),
            false => format!("({text})"),
        }
    }

    /// Suggests a replacement for `~x` and `~~x`.
    pub(crate) fn not_bits_help(&self, unary: &UnaryExpression<'a>) -> String {
        match unary.argument.get_inner_expression() {
            Expression::UnaryExpression(inner) if inner.operator == UnaryOperator::BitwiseNot => {
                whole_number(
                    &self.operand(&inner.argument, true),
                    self.fixed(&inner.argument),
                )
            }
            argument => match self.fixed(argument) {
                Some(number) => written(f64::from(!to_int32(number))),
                None => {
                    let value = self.operand(&unary.argument, true);
                    format!("write `(-Math.trunc({value}) - 1)`, {SAME}")
                }
            },
        }
    }

    /// Suggests a replacement for `x | 0`, `x >> 1` and similar expressions.
    pub(crate) fn bits_help(&self, binary: &BinaryExpression<'a>) -> String {
        let left = Operand {
            whole: self.operand(&binary.left, true),
            fixed: self.fixed(&binary.left),
            is_flag: is_flag(&binary.left),
        };
        self.bits_of(binary.operator, left, &binary.right)
    }

    /// Suggests a replacement for `x |= 0` and similar assignments.
    pub(crate) fn bits_assignment_help(
        &self,
        operator: BinaryOperator,
        assignment: &AssignmentExpression<'a>,
    ) -> String {
        let left = Operand {
            whole: self.text_of(assignment.left.span()).to_owned(),
            fixed: None,
            is_flag: false,
        };
        self.bits_of(operator, left, &assignment.right)
    }

    fn bits_of(&self, operator: BinaryOperator, left: Operand, right: &Expression<'a>) -> String {
        use BinaryOperator as B;
        let number = self.fixed(right);
        if let (Some(left), Some(right)) = (left.fixed, number)
            && let Some(value) = calculated(operator, left, right)
        {
            return written(value);
        }
        let value = left.whole;
        // A shift uses only the low five bits of its count.
        let places = match number {
            Some(number) => (to_uint32(number) % 32).to_string(),
            None => self.operand(right, false),
        };
        let few = match number {
            Some(_) => "",
            None => ", for up to 31 places",
        };
        match (operator, number) {
            (B::BitwiseOR | B::BitwiseXOR | B::ShiftRight, Some(0.0)) => {
                whole_number(&value, left.fixed)
            }
            (B::ShiftRightZeroFill, Some(0.0)) => {
                let unsigned = unsigned(&value);
                format!("in place of `>>> 0` write `{unsigned}`, for finite numbers")
            }
            (B::ShiftRightZeroFill, _) => {
                let unsigned = unsigned(&value);
                format!(
                    "in place of `>>>` write `Math.floor({unsigned} / 2 ** {places})`, for finite \
                     numbers{few}"
                )
            }
            (B::ShiftRight, _) => {
                format!("write `Math.floor(Math.trunc({value}) / 2 ** {places})`{few}, {SAME}")
            }
            (B::ShiftLeft, _) => {
                let product = format!("Math.trunc({value}) * 2 ** {places}");
                let wrapped = wrapped(&product);
                format!(
                    "write `({product})` as long as it stays below 2 ** 31{few}; where it may wrap \
                     at 32 bits, `{wrapped}`"
                )
            }
            // A mask of the low bits; the modulo handles negative numbers and fractions too.
            (B::BitwiseAnd, Some(mask)) if mask > 0.0 && (mask + 1.0).log2().fract() == 0.0 => {
                match mask + 1.0 {
                    size if size > 2_147_483_648.0 => whole_number(&value, left.fixed),
                    size => format!(
                        "write `((Math.trunc({value}) % {size} + {size}) % {size})`, for finite \
                         numbers"
                    ),
                }
            }
            _ if left.is_flag || is_flag(right) => {
                "there are no bits: keep flags as members, `{ read: true, write: false }`, or in a \
                 `Set`"
                    .to_owned()
            }
            _ if self.ops.signature("hash").is_some() => {
                "there are no bits, calculate with numbers; a digest of a text is `await hash({ \
                 value: text })`"
                    .to_owned()
            }
            _ => "there are no bits: calculate with numbers, `%` and `2 ** n`".to_owned(),
        }
    }

    /// Returns the number that an expression states literally.
    fn fixed(&self, expr: &Expression<'a>) -> Option<f64> {
        match expr.get_inner_expression() {
            Expression::NumericLiteral(number) => Some(number.value),
            Expression::UnaryExpression(unary)
                if unary.operator == UnaryOperator::UnaryNegation =>
            {
                match unary.argument.get_inner_expression() {
                    Expression::NumericLiteral(number) => Some(-number.value),
                    _ => None,
                }
            }
            expr => (self.free_name(expr) == Some("NaN")).then_some(f64::NAN),
        }
    }

    /// Refuses an unknown member of a namespace.
    pub(crate) fn unknown_member(&mut self, namespace: &str, name: &str, span: Span) {
        let functions = FUNCTIONS.iter().filter(|row| row.ns == namespace);
        let functions = functions.map(|row| row.name);
        let constants = CONSTANTS.iter().filter(|row| row.0 == namespace);
        let all: Vec<&str> = functions.chain(constants.map(|row| row.1)).collect();
        let is_function = a99_core::builtins::function(namespace, name).is_some();
        let lower = name.to_ascii_lowercase();
        let same = all.iter().find(|known| known.to_ascii_lowercase() == lower);
        let near = same.map(|near| (*near).to_owned());
        // Constants are written in capitals, functions are not.
        let is_constant = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let alike = all.iter().copied();
        let alike = alike.filter(|known| is_constant(known) == is_constant(name));
        let near = near.or_else(|| suggest(name, alike));
        let help = match near {
            _ if is_function => format!("call it: `{namespace}.{name}(...)`"),
            _ if namespace == "console" => "write `console.log(...)`".to_owned(),
            Some(near) => format!("did you mean `{namespace}.{near}`?"),
            None => match crate::words::member_help(namespace, name) {
                Some(help) => help.to_owned(),
                None => format!("`{namespace}` has {}", listed(&all)),
            },
        };
        let message = match is_function {
            true => format!("`{namespace}.{name}` is a function, which is no value"),
            false => format!("there is no `{namespace}.{name}`"),
        };
        self.deny(codes::UNSUPPORTED, span, message, help);
    }
}

/// Joins names; a long list is cut.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len() > SHOWN {
        true => format!("{} and others", shown.join(", ")),
        false => shown.join(", "),
    }
}
