//! Declarations of `#[atom]` functions: constants that an atom set accepts.

use super::decode::Key;
use crate::atom::{AsyncFn, AtomBody, AtomDef, CostFn, IntoAtom, NativeFn};
use crate::strict_schema::strict;
use a99_core::costs::MICRO;
use a99_core::sig::{AtomSig, AtomTimeout, BaseCost, Binding, Effect, LiteralCheck, Param, Params};
use serde_json::Value as Json;

/// The price of an execution whose dynamic price is invalid (D17): 1 unit, in micro-units.
pub const DYNAMIC_DEFAULT: i64 = MICRO;

/// The price of an execution.
#[derive(Copy, Clone, Debug)]
pub enum Cost {
    /// Micro-units.
    Fixed(i64),
    /// Computed from the input; [`DYNAMIC_DEFAULT`] replaces an invalid price.
    Dynamic(CostFn),
}

impl Cost {
    /// A fixed price in units of fuel, rounded to micro-units; `units` must be finite and not
    /// negative.
    #[must_use]
    pub const fn units(units: f64) -> Cost {
        // The cast saturates; NaN would be 0.
        Cost::Fixed((units * MICRO as f64).round() as i64)
    }
}

/// How the function is called.
#[derive(Copy, Clone, Debug)]
pub enum Body {
    /// Inside one instruction.
    Inline(NativeFn),
    /// As a call of the host.
    Call(AsyncFn),
}

/// A host function as an atom: the constant that `#[atom]` generates.
///
/// An atom set converts it to an [`AtomDef`]: `AtomSet::new().with(MY_ATOM)`.
#[derive(Copy, Clone, Debug)]
pub struct AtomDecl {
    /// The `op` that steps name.
    pub name: &'static str,
    /// Its description, for people and models.
    pub docs: &'static str,
    /// Its keys, in the order of the function's parameters.
    pub keys: &'static [Key],
    /// Creates the JSON Schema of the input object.
    pub input: fn() -> Json,
    /// Creates the JSON Schema of the output.
    pub output: fn() -> Json,
    /// Whether it has external effects.
    pub effect: Effect,
    /// The price of an execution.
    pub cost: Cost,
    /// Time limit of one execution; it applies to async atoms only (D22).
    pub timeout: AtomTimeout,
    /// Checks a literal for the input with this index.
    pub literal: LiteralCheck,
    /// The generated code.
    pub body: Body,
}

impl AtomDecl {
    /// The JSON Schema (draft 2020-12) of the input object.
    #[must_use]
    pub fn input_schema(&self) -> Json {
        (self.input)()
    }

    /// The input schema in the strict form of OpenAI's tools, if it has one: see [`strict`].
    #[must_use]
    pub fn strict_input_schema(&self) -> Option<Json> {
        strict(&self.input_schema())
    }

    /// The JSON Schema (draft 2020-12) of the output; `{}` allows every value.
    #[must_use]
    pub fn output_schema(&self) -> Json {
        (self.output)()
    }

    /// Converts to an atom.
    #[must_use]
    pub fn def(&self) -> AtomDef {
        let params: Vec<Param> = self
            .keys
            .iter()
            .map(|key| Param {
                name: key.name,
                binding: Binding::Value,
            })
            .collect();
        let (cost, dynamic_cost) = match self.cost {
            Cost::Fixed(micro) => (BaseCost::Fixed(micro), None),
            Cost::Dynamic(price) => (BaseCost::Dynamic(DYNAMIC_DEFAULT), Some(price)),
        };
        AtomDef {
            sig: AtomSig {
                params: Params::Named(params.into()),
                input_schema: self.input_schema().to_string().into(),
                output_schema: self.output_schema().to_string().into(),
                effect: self.effect,
                cost,
                timeout: self.timeout,
                literals: Some(self.literal),
                ..AtomSig::new(self.name, self.docs, 0)
            },
            body: match self.body {
                Body::Inline(body) => AtomBody::Native(body),
                Body::Call(body) => AtomBody::Async(body),
            },
            dynamic_cost,
        }
    }
}

impl From<AtomDecl> for AtomDef {
    fn from(decl: AtomDecl) -> AtomDef {
        decl.def()
    }
}

impl From<&AtomDecl> for AtomDef {
    fn from(decl: &AtomDecl) -> AtomDef {
        decl.def()
    }
}

impl IntoAtom for AtomDecl {
    fn into_atom(self) -> AtomDef {
        self.def()
    }
}

impl IntoAtom for &AtomDecl {
    fn into_atom(self) -> AtomDef {
        self.def()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_micro_units() {
        for (units, micro) in [
            (0.0, 0),
            (5.0, 5_000_000),
            (0.1, 100_000),
            (0.000_000_5, 1),
            (1e300, i64::MAX),
        ] {
            let Cost::Fixed(fixed) = Cost::units(units) else {
                panic!("a fixed price")
            };
            assert_eq!(fixed, micro, "{units}");
            assert_eq!(a99_core::fuel::cost_from_f64(units), Some(micro));
        }
    }
}
