//! Lowers operators on bits to functions of `Math`, and refuses unknown members of namespaces.

use crate::codes;
use crate::lower::{Lowerer, place};
use crate::pattern::of;
use crate::spell::{Names, Speller, UNARY};
use crate::tree::{Place, Tree};
use crate::value::Value;
use a99_core::builtins::{CONSTANTS, FUNCTIONS};
use a99_core::diag::suggest;
use a99_core::json::{Kind, NodeId};
use oxc_ast::ast::{BinaryExpression, UnaryExpression};
use oxc_span::Span;
use oxc_syntax::operator::BinaryOperator;

/// The operators with their functions of `Math`.
const OPERATORS: &[(BinaryOperator, &str)] = &[
    (BinaryOperator::BitwiseAnd, "bitAnd"),
    (BinaryOperator::BitwiseOR, "bitOr"),
    (BinaryOperator::BitwiseXOR, "bitXor"),
    (BinaryOperator::ShiftLeft, "shiftLeft"),
    (BinaryOperator::ShiftRight, "shiftRight"),
    (BinaryOperator::ShiftRightZeroFill, "shiftRightUnsigned"),
];

/// Returns the function of `Math` that computes an operator on bits.
pub(crate) fn function(operator: BinaryOperator) -> Option<&'static str> {
    let row = OPERATORS.iter().find(|row| row.0 == operator)?;
    Some(row.1)
}

/// Returns the operator on bits that is written so.
pub(crate) fn by_name(op: &str) -> Option<BinaryOperator> {
    let mut operators = OPERATORS.iter().map(|row| row.0);
    operators.find(|operator| operator.as_str() == op)
}

/// Builds an operator on bits.
pub(crate) fn bits(operator: BinaryOperator, left: Value, right: Value, at: &Place) -> Tree {
    let name = function(operator).unwrap_or_default();
    of("Math", name, vec![left.operand(), right.operand()], at)
}

impl Speller<'_> {
    /// Returns the operator on bits that a node is, and its precedence level.
    pub(crate) fn bit_operator(&self, node: NodeId) -> Option<(&'static str, u8)> {
        if !self.is_script() || !self.is_of(node, b"Math") || self.is_optional(node) {
            return None;
        }
        let name = self.str(node, "method")?;
        let arguments = self.doc.get(node, "arguments")?;
        match self.doc.len(arguments) {
            1 => (name == b"bitNot").then_some(("~", UNARY)),
            2 => {
                let mut rows = OPERATORS.iter();
                let row = rows.find(|row| row.1.as_bytes() == name)?;
                let level = match row.0 {
                    BinaryOperator::BitwiseOR => 3,
                    BinaryOperator::BitwiseXOR => 4,
                    BinaryOperator::BitwiseAnd => 5,
                    _ => 8,
                };
                Some((row.0.as_str(), level))
            }
            _ => None,
        }
    }

    fn is_optional(&self, node: NodeId) -> bool {
        let flag = self.doc.get(node, "optional");
        flag.is_some_and(|flag| self.doc.kind(flag) == Kind::Bool(true))
    }

    /// Appends an operator on bits.
    pub(crate) fn bits(&self, node: NodeId, names: &mut Names<'_>, out: &mut Vec<u8>) {
        let Some((op, level)) = self.bit_operator(node) else {
            return;
        };
        let arguments = self.doc.get(node, "arguments");
        let arguments = arguments
            .into_iter()
            .flat_map(|list| self.doc.elements(list));
        if level == UNARY {
            out.push(b'~');
            arguments.for_each(|argument| self.write(argument, UNARY, names, out));
            return;
        }
        for (index, argument) in (0..).zip(arguments) {
            if index > 0 {
                out.push(b' ');
                out.extend(op.as_bytes());
                out.push(b' ');
            }
            self.write(argument, level + index, names, out);
        }
    }
}

impl<'a> Lowerer<'a> {
    /// Lowers `a & b` and the like.
    pub(crate) fn bitwise(
        &mut self,
        binary: &'a BinaryExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(binary.span);
        let sides = [&binary.left, &binary.right];
        self.permit(&sides);
        let values = self.exprs(&sides, out);
        let mut values = self.times(&sides, values, out);
        match (values.pop(), values.pop()) {
            (Some(right), Some(left)) => Value::node(bits(binary.operator, left, right, &at)),
            _ => Value::undefined(&at),
        }
    }

    /// Lowers `~a`.
    pub(crate) fn bitwise_not(
        &mut self,
        unary: &'a UnaryExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(unary.span);
        self.permit(&[&unary.argument]);
        let value = self.expr(&unary.argument, out);
        let value = self.time(&unary.argument, value, out);
        Value::node(of("Math", "bitNot", vec![value.operand()], &at))
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
