//! How this crate writes an atom down: its inputs once, from which parameters
//! and JSON Schema follow.

use a99_core::costs::MICRO;
use a99_core::sig::{AtomSig, AtomTimeout, BaseCost, Binding, Effect, Form, Param, Params};
use a99_vm::atom::{AsyncFn, AtomBody, AtomDef, NativeFn};
use std::fmt::Write;

/// A tenth of a unit of fuel, in micro-units.
pub(crate) const TENTH: i64 = MICRO / 10;

/// The schema of one input.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Kind {
    Any,
    Text,
    Number,
    Bool,
    List,
    Texts,
    Numbers,
    /// A text or a list of texts.
    TextOrTexts,
    /// An object with any members.
    Record,
    /// An object whose members are texts.
    TextRecord,
    /// A list of names, or an object of a name for each alias.
    Names,
}

impl Kind {
    /// Type name, and what follows it in the schema.
    fn parts(self) -> (&'static str, &'static str) {
        match self {
            Kind::Any => ("", ""),
            Kind::Text => ("string", ""),
            Kind::Number => ("number", ""),
            Kind::Bool => ("boolean", ""),
            Kind::List => ("array", r#","items":{}"#),
            Kind::Texts => ("array", r#","items":{"type":"string"}"#),
            Kind::Numbers => ("array", r#","items":{"type":"number"}"#),
            Kind::TextOrTexts | Kind::Names => ("", ""),
            Kind::TextRecord => ("object", r#","additionalProperties":{"type":"string"}"#),
            Kind::Record => ("object", r#","additionalProperties":{}"#),
        }
    }

    fn write(self, out: &mut String, required: bool) {
        let (name, rest) = self.parts();
        // Writing to a string cannot fail.
        let _ = match (name, required) {
            _ if matches!(self, Kind::TextOrTexts) => {
                let null = if required { "" } else { r#","null""# };
                let items = r#""items":{"type":"string"}"#;
                write!(out, r#"{{"type":["string","array"{null}],{items}}}"#)
            }
            _ if matches!(self, Kind::Names) => {
                out.push_str(r#"{"anyOf":["#);
                Kind::Texts.write(out, true);
                out.push(',');
                Kind::TextRecord.write(out, true);
                write!(out, "]}}")
            }
            ("", _) => write!(out, "{{}}"),
            (_, true) => write!(out, r#"{{"type":"{name}"{rest}}}"#),
            (_, false) => write!(out, r#"{{"type":["{name}","null"]{rest}}}"#),
        };
    }
}

/// One input of an atom.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Input {
    name: &'static str,
    kind: Kind,
    required: bool,
    binding: Binding,
}

impl Input {
    /// Bound in another way than as a value position.
    pub(crate) const fn bound(self, binding: Binding) -> Input {
        Input { binding, ..self }
    }

    /// Taken as written.
    pub(crate) const fn literal(self) -> Input {
        self.bound(Binding::Literal)
    }
}

/// A required input in a value position.
pub(crate) const fn req(name: &'static str, kind: Kind) -> Input {
    Input {
        name,
        kind,
        required: true,
        binding: Binding::Value,
    }
}

/// An optional input in a value position.
pub(crate) const fn opt(name: &'static str, kind: Kind) -> Input {
    Input {
        name,
        kind,
        required: false,
        binding: Binding::Value,
    }
}

/// The schema of an input object (language section 2.9): optional inputs may
/// be null, others are required, and no others exist.
pub(crate) fn schema(inputs: &[Input]) -> String {
    let mut out = String::from(r#"{"type":"object","properties":{"#);
    for (i, input) in inputs.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, r#"{comma}"{}":"#, input.name);
        input.kind.write(&mut out, input.required);
    }
    out.push_str(r#"},"required":["#);
    for (i, input) in inputs.iter().filter(|i| i.required).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, r#"{comma}"{}""#, input.name);
    }
    out.push_str(r#"],"additionalProperties":false}"#);
    out
}

fn sig(name: &'static str, docs: &'static str, cost: i64, inputs: &[Input]) -> AtomSig {
    let params: Vec<Param> = inputs
        .iter()
        .map(|i| Param {
            name: i.name,
            binding: i.binding,
        })
        .collect();
    AtomSig {
        params: Params::Named(params.into()),
        input_schema: schema(inputs).into(),
        ..AtomSig::new(name, docs, cost)
    }
}

/// A control form: no body, no time limit of its own.
pub(crate) fn form(
    form: Form,
    name: &'static str,
    docs: &'static str,
    cost: i64,
    inputs: &[Input],
) -> AtomDef {
    let sig = AtomSig {
        form: Some(form),
        cost: BaseCost::Work(cost),
        timeout: AtomTimeout::None,
        ..sig(name, docs, cost, inputs)
    };
    AtomDef {
        sig,
        body: AtomBody::Form,
        dynamic_cost: None,
    }
}

/// An atom that runs inside one instruction.
pub(crate) fn native(
    name: &'static str,
    docs: &'static str,
    cost: i64,
    inputs: &[Input],
    body: NativeFn,
) -> AtomDef {
    AtomDef {
        sig: AtomSig {
            cost: BaseCost::Work(cost),
            ..sig(name, docs, cost, inputs)
        },
        body: AtomBody::Native(body),
        dynamic_cost: None,
    }
}

/// An atom that calls a capability.
pub(crate) fn host(
    name: &'static str,
    docs: &'static str,
    cost: i64,
    inputs: &[Input],
    body: AsyncFn,
) -> AtomDef {
    let sig = AtomSig {
        effect: Effect::Io,
        ..sig(name, docs, cost, inputs)
    };
    AtomDef {
        sig,
        body: AtomBody::Async(body),
        dynamic_cost: None,
    }
}

/// Changes to a definition that only some atoms need.
pub(crate) trait Adjust: Sized {
    /// With this proportional price, which the body charges.
    fn metered(self, formula: a99_core::costs::Formula) -> Self;
    /// With this time limit in milliseconds.
    fn timeout_ms(self, ms: u64) -> Self;
    /// Without a time limit of its own.
    fn untimed(self) -> Self;
    /// Marked as talking to the world.
    fn io(self) -> Self;
    /// With the whole static price in the metered model, too: it is no work of
    /// the machine alone, or more of it than its price in the flat model says.
    fn whole_price(self) -> Self;
}

impl Adjust for AtomDef {
    fn metered(mut self, formula: a99_core::costs::Formula) -> Self {
        self.sig.metered = formula;
        self.sig.charging = a99_core::sig::Charging::Body;
        self
    }

    fn timeout_ms(mut self, ms: u64) -> Self {
        self.sig.timeout = AtomTimeout::Ms(ms);
        self
    }

    fn untimed(mut self) -> Self {
        self.sig.timeout = AtomTimeout::None;
        self
    }

    fn io(mut self) -> Self {
        self.sig.effect = Effect::Io;
        self
    }

    fn whole_price(mut self) -> Self {
        self.sig.cost = BaseCost::Fixed(self.sig.cost.fixed());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_the_shapes_of_the_builders() {
        let text = schema(&[
            req("a", Kind::Text),
            opt("b", Kind::Number),
            req("c", Kind::Any),
            opt("d", Kind::Record),
            req("e", Kind::TextOrTexts),
        ]);
        assert_eq!(
            text,
            concat!(
                r#"{"type":"object","properties":{"a":{"type":"string"},"#,
                r#""b":{"type":["number","null"]},"c":{},"#,
                r#""d":{"type":["object","null"],"additionalProperties":{}},"#,
                r#""e":{"type":["string","array"],"items":{"type":"string"}}},"#,
                r#""required":["a","c","e"],"additionalProperties":false}"#
            )
        );
    }
}
