//! Rewrites an enum to a constant with its members, and a type of its values.

use super::Declared;
use super::read::{Enum, Member};
use crate::edits::Piece;
use oxc_ast::ast::{Expression, TSEnumDeclaration, TSEnumMemberName};
use oxc_span::GetSpan as _;
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

type Constant = Result<f64, String>;

pub(super) fn read(it: &TSEnumDeclaration<'_>) -> Enum {
    let mut known: Vec<(String, Constant)> = Vec::new();
    let mut next = Some(0.0);
    let mut members = Some(Vec::new());
    for member in &it.body.members {
        let name = match &member.id {
            TSEnumMemberName::Identifier(id) => id.name.to_string(),
            TSEnumMemberName::String(text) | TSEnumMemberName::ComputedString(text) => {
                text.value.to_string()
            }
            TSEnumMemberName::ComputedTemplateString(_) => {
                members = None;
                break;
            }
        };
        let value = match &member.initializer {
            Some(init) => constant(init, &it.id.name, &known),
            None => next.map(Ok),
        };
        let Some(value) = value else {
            members = None;
            break;
        };
        next = value.as_ref().ok().map(|number| number + 1.0);
        known.push((name.clone(), value.clone()));
        if let Some(members) = &mut members {
            members.push(Member {
                id: member.id.span(),
                name,
                value,
            });
        }
    }
    Enum {
        id: it.id.span,
        name: it.id.name.to_string(),
        span: it.span,
        members,
    }
}

/// Computes the value of a member from those before it.
fn constant(expr: &Expression<'_>, of: &str, known: &[(String, Constant)]) -> Option<Constant> {
    let find = |name: &str| {
        let found = known.iter().rev().find(|one| one.0 == name);
        found.map(|one| one.1.clone())
    };
    match expr.get_inner_expression() {
        Expression::NumericLiteral(number) => Some(Ok(number.value)),
        Expression::StringLiteral(text) => {
            (!text.lone_surrogates).then(|| Err(text.value.to_string()))
        }
        Expression::TemplateLiteral(text) if text.expressions.is_empty() => {
            let text = text.quasis.first()?.value.cooked?;
            Some(Err(text.to_string()))
        }
        Expression::Identifier(id) => find(id.name.as_str()),
        Expression::StaticMemberExpression(member) => match &member.object {
            Expression::Identifier(id) if id.name == of => find(member.property.name.as_str()),
            _ => None,
        },
        Expression::ParenthesizedExpression(inner) => constant(&inner.expression, of, known),
        Expression::UnaryExpression(unary) => {
            let number = constant(&unary.argument, of, known)?.ok()?;
            match unary.operator {
                UnaryOperator::UnaryNegation => Some(Ok(-number)),
                UnaryOperator::UnaryPlus => Some(Ok(number)),
                _ => None,
            }
        }
        Expression::BinaryExpression(binary) => {
            let left = constant(&binary.left, of, known)?.ok()?;
            let right = constant(&binary.right, of, known)?.ok()?;
            // Operands of bits that are small and whole have the same value in any language.
            let is_small =
                |number: f64| number.fract() == 0.0 && (0.0..2_147_483_648.0).contains(&number);
            let bits = (is_small(left) && is_small(right)).then_some((left as i64, right as i64));
            let number = match (binary.operator, bits) {
                (BinaryOperator::Addition, _) => left + right,
                (BinaryOperator::Subtraction, _) => left - right,
                (BinaryOperator::Multiplication, _) => left * right,
                (BinaryOperator::BitwiseOR, Some((left, right))) => (left | right) as f64,
                (BinaryOperator::BitwiseAnd, Some((left, right))) => (left & right) as f64,
                (BinaryOperator::ShiftLeft, Some((left, right))) if right < 31 => {
                    let shifted = left << right;
                    i32::try_from(shifted).ok()?.into()
                }
                _ => return None,
            };
            Some(Ok(number))
        }
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    crate::quote::quoted(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

impl Declared<'_> {
    pub(super) fn enums(&mut self) {
        let all = std::mem::take(&mut self.read.enums);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        // Declarations of one name are one enum.
        let is_twice = |name: &&&str| names.iter().filter(|other| other == name).count() > 1;
        let twice: Vec<String> = names
            .iter()
            .filter(is_twice)
            .map(|name| (*name).to_owned())
            .collect();
        for one in all {
            let Some(members) = one.members.as_ref().filter(|_| !twice.contains(&one.name)) else {
                continue;
            };
            let value = |member: &Member| match &member.value {
                Ok(number) => number.to_string(),
                Err(text) => quoted(text),
            };
            let mut pieces: Vec<Piece> = vec!["const ".into(), one.id.into(), " = { ".into()];
            // An object lists whole numbers first.
            let mut numbers: Vec<(f64, &Member)> = Vec::new();
            for member in members {
                if let Ok(number) = member.value {
                    numbers.retain(|known| known.0 != number);
                    numbers.push((number, member));
                }
            }
            let is_index = |number: f64| number >= 0.0 && number.fract() == 0.0;
            numbers.retain(|one| one.0.is_finite());
            let (mut first, later): (Vec<_>, Vec<_>) =
                numbers.into_iter().partition(|one| is_index(one.0));
            first.sort_by(|one, other| one.0.total_cmp(&other.0));
            for (number, member) in first {
                pieces.push(format!("\"{number}\": {}, ", quoted(&member.name)).into());
            }
            for member in members {
                pieces.push(format!("{}: {}, ", quoted(&member.name), value(member)).into());
                for (number, _) in later.iter().filter(|one| one.1.id == member.id) {
                    pieces.push(format!("\"{number}\": {}, ", quoted(&member.name)).into());
                }
            }
            // Members of numbers may be combined: `Flags.A | Flags.B`.
            let ty = |member: &Member| match &member.value {
                Ok(_) => "number".to_owned(),
                Err(_) => value(member),
            };
            let values: Vec<String> = members.iter().map(ty).collect();
            let ty = match values.is_empty() {
                true => "never".to_owned(),
                false => values.join(" | "),
            };
            let ty = format!("}}; type {} = {ty}", one.name);
            pieces.push(ty.into());
            self.replace(one.span, pieces);
        }
    }
}
