//! Operands, conditions, schemas and expressions.

use super::{Grower, MAX_DEPTH};
use a99_builder::{Expr, Operand, args, array, conditional, ident, literal, object, val};
use a99_core::value::{Map, Value};
use serde_json::json;

impl Grower<'_> {
    /// Any operand, `depth` levels down.
    pub(super) fn operand(&self, depth: u32) -> Operand {
        let inner = || self.operand(depth + 1);
        match self.below(if depth < MAX_DEPTH { 14 } else { 10 }) {
            0 => ().into(),
            1 => Value::Null.into(),
            2 => (self.below(2) == 1).into(),
            3 => self.number().into(),
            4 | 5 => val(self.name()),
            6 => self.text().into(),
            7 => args(self.name()),
            8 => Some(self.name()).into(),
            9 => i64::from(self.byte()).into(),
            10 => vec![inner(), inner()].into(),
            11 => [(self.name(), inner()), ("k", inner())].into(),
            12 => (0..self.below(4)).map(|_| inner()).collect(),
            _ => self.expr(depth + 1).into(),
        }
    }

    /// Whole, fractional, huge and tiny numbers, and NaN.
    fn number(&self) -> f64 {
        const NUMBERS: [f64; 9] = [
            0.0,
            -0.0,
            1.0,
            -7.25,
            1e21,
            5e-324,
            9_007_199_254_740_993.0,
            f64::NAN,
            f64::NEG_INFINITY,
        ];
        NUMBERS[self.below(NUMBERS.len())]
    }

    /// Condition texts of both dialects, malformed ones and nodes.
    pub(super) fn condition(&self, depth: u32) -> Operand {
        const TEXTS: [&str; 8] = [
            "a > 1",
            "n gt 3 && !b",
            "a ? b : xs[0]",
            "xs?.length ?? 0",
            "",
            "a = 1",
            "(((",
            "true",
        ];
        match self.below(10) {
            0 => self.text().into(),
            1 => self.operand(depth),
            n @ 2..=5 => TEXTS[(n + self.below(4)) % TEXTS.len()].into(),
            _ => self.expr(depth).into(),
        }
    }

    pub(super) fn schema(&self) -> Value {
        match self.below(4) {
            0 => Map::new().into(),
            1 => self.operand(MAX_DEPTH).into_value(),
            2 => json!({"schema": {"type": "object", "properties": {"b": {}, "a": {}}}}).into(),
            _ => json!({"type": "object", "properties": {self.name(): {"type": "number"}}}).into(),
        }
    }

    pub(super) fn expr(&self, depth: u32) -> Expr {
        let inner = || self.expr(depth + 1);
        if depth >= MAX_DEPTH {
            return ident(self.name());
        }
        match self.below(20) {
            0 => ident(self.name()),
            1 => literal(self.operand(depth + 1)),
            2 => self.number().into(),
            3 => Expr::from(self.name()),
            4 => inner() + inner(),
            5 => inner() - inner(),
            6 => inner() * inner(),
            7 => inner() / self.number(),
            8 => inner() % inner(),
            9 => -inner(),
            10 => !inner(),
            11 => conditional(inner(), inner(), inner()),
            12 => array([inner(), inner()]),
            13 => object([(self.name(), inner())]),
            14 => self.comparison(depth),
            15 => inner().member(self.name()),
            16 => inner().optional_member(self.name()),
            17 => inner().index(inner()),
            18 => inner().method(["push", "trim", "nope"][self.below(3)], [inner()]),
            _ => Expr::call(["parseInt", "Number", "nope"][self.below(3)], [inner()]),
        }
    }

    fn comparison(&self, depth: u32) -> Expr {
        let (left, right) = (self.expr(depth + 1), self.expr(depth + 1));
        match self.below(11) {
            0 => left.equals(right),
            1 => left.differs(right),
            2 => left.less_than(right),
            3 => left.at_most(right),
            4 => left.greater_than(right),
            5 => left.at_least(right),
            6 => left.power(right),
            7 => left.and(right),
            8 => left.or(right),
            9 => left.coalesce(right),
            _ => Expr::binary(self.name(), left, Expr::unary("typeof", right)),
        }
    }
}
