//! What stands in for operators on bits, and for members of namespaces that are not there.

use crate::codes;
use crate::lower::Lowerer;
use a99_core::builtins::{CONSTANTS, FUNCTIONS};
use a99_core::diag::suggest;
use oxc_ast::ast::{BinaryExpression, Expression, UnaryExpression};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

/// Bytes of an operand that is shown.
const MAX_OPERAND: usize = 60;

impl<'a> Lowerer<'a> {
    /// An operand as it is written, if it is short; else a name for it. In parentheses where
    /// another operator could take a part of it.
    fn operand(&self, expr: &Expression<'a>, is_whole: bool) -> String {
        let text = self.text_of(expr.span());
        if text.len() > MAX_OPERAND || text.contains('\n') {
            return "x".to_owned();
        }
        let is_plain = matches!(
            expr.get_inner_expression(),
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

    /// What stands in for `~x` and `~~x`.
    pub(crate) fn not_bits_help(&self, unary: &UnaryExpression<'a>) -> String {
        match unary.argument.get_inner_expression() {
            Expression::UnaryExpression(inner) if inner.operator == UnaryOperator::BitwiseNot => {
                let value = self.operand(&inner.argument, true);
                format!("write `Math.trunc({value})`")
            }
            _ => {
                let value = self.operand(&unary.argument, true);
                format!("write `-Math.trunc({value}) - 1`")
            }
        }
    }

    /// What stands in for `x | 0`, `x >> 1` and the like.
    pub(crate) fn bits_help(&self, binary: &BinaryExpression<'a>) -> String {
        use BinaryOperator as B;
        let left = self.operand(&binary.left, false);
        let right = self.operand(&binary.right, false);
        let number = match binary.right.get_inner_expression() {
            Expression::NumericLiteral(number) => Some(number.value),
            _ => None,
        };
        match (binary.operator, number) {
            (B::BitwiseOR | B::ShiftRight | B::ShiftLeft | B::ShiftRightZeroFill, Some(0.0)) => {
                let value = self.operand(&binary.left, true);
                format!("write `Math.trunc({value})`")
            }
            (B::ShiftRight | B::ShiftRightZeroFill, _) => {
                format!("write `Math.floor({left} / 2 ** {right})`")
            }
            (B::ShiftLeft, _) => format!("write `{left} * 2 ** {right}`"),
            // A mask of the lowest bits, for negative numbers and fractions too.
            (B::BitwiseAnd, Some(mask)) if (mask + 1.0).log2().fract() == 0.0 && mask > 0.0 => {
                let value = self.operand(&binary.left, true);
                let size = mask + 1.0;
                format!("write `(Math.trunc({value}) % {size} + {size}) % {size}`")
            }
            _ => {
                "there are no bits: keep flags as members, `{ read: true, write: false }`, or in a \
                  `Set`"
                    .to_owned()
            }
        }
    }

    /// Refuses a member that a namespace does not have.
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

/// Names, the first of many.
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
