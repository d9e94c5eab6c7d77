//! Definitions of atoms: each input is declared once, and parameters and JSON Schema derive from
//! it.

use a99_core::costs::MICRO;
use a99_core::sig::{
    AtomInput, AtomInputs, AtomSig, AtomTimeout, BaseCost, Binding, Capability, Effect, Form,
    Gives, NumberRange, Param, Params, ShortPrompts,
};
use a99_vm::atom::{AsyncFn, AtomBody, AtomDef, NativeFn};

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
    /// A list of names, or an object that maps aliases to names.
    Names,
    /// A list of objects.
    Records,
    /// An expression as text or node, or a constant.
    Condition,
    /// A text, or an object with any members.
    TextOrRecord,
    /// A text, a list or an object.
    TextOrData,
    /// A list or an object.
    Data,
    /// A member name or an item index.
    Key,
}

impl Kind {
    /// Type names, and the rest of the schema.
    fn parts(self) -> (&'static [&'static str], &'static str) {
        match self {
            Kind::Any | Kind::Names => (&[], ""),
            Kind::Text => (&["string"], ""),
            Kind::Number => (&["number"], ""),
            Kind::Bool => (&["boolean"], ""),
            Kind::List => (&["array"], r#","items":{}"#),
            Kind::Texts => (&["array"], r#","items":{"type":"string"}"#),
            Kind::Numbers => (&["array"], r#","items":{"type":"number"}"#),
            Kind::Records => (&["array"], r#","items":{"type":"object"}"#),
            Kind::TextOrTexts => (&["string", "array"], r#","items":{"type":"string"}"#),
            Kind::TextRecord => (&["object"], r#","additionalProperties":{"type":"string"}"#),
            Kind::Record => (&["object"], r#","additionalProperties":{}"#),
            Kind::Condition => (&["string", "boolean", "object"], ""),
            Kind::TextOrRecord => (&["string", "object"], ""),
            Kind::Data => (&["array", "object"], r#","items":{}"#),
            Kind::Key => (&["string", "number"], ""),
            Kind::TextOrData => (&["string", "array", "object"], r#","items":{}"#),
        }
    }

    fn write(self, out: &mut String, required: bool) {
        if matches!(self, Kind::Names) {
            out.push_str(r#"{"anyOf":["#);
            Kind::Texts.write(out, true);
            out.push(',');
            Kind::TextRecord.write(out, true);
            out.push_str("]}");
            return;
        }
        let (names, rest) = self.parts();
        let null: &[&str] = if required { &[] } else { &["null"] };
        let [_, ..] = names else {
            return out.push_str("{}");
        };
        let is_list = names.len() + null.len() > 1;
        // Every engine writes all schemas, so this avoids formatting and temporary texts.
        out.push_str(if is_list {
            r#"{"type":["#
        } else {
            r#"{"type":"#
        });
        for (i, name) in names.iter().chain(null).enumerate() {
            out.push_str(if i > 0 { ",\"" } else { "\"" });
            out.push_str(name);
            out.push('"');
        }
        if is_list {
            out.push(']');
        }
        out.push_str(rest);
        out.push('}');
    }

    fn schema(self, required: bool) -> String {
        let mut out = String::new();
        self.write(&mut out, required);
        out
    }
}

/// An input of an atom. Name, kind and binding, which artifacts are bound to, are separate from the
/// description for people and models, whose wording may change.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Input {
    name: &'static str,
    kind: Kind,
    required: bool,
    binding: Binding,
    docs: &'static str,
    told: Kind,
    told_binding: Option<Binding>,
    is_param: bool,
    values: &'static [&'static str],
    any_case: bool,
    default: &'static str,
    subject: bool,
    range: Option<NumberRange>,
}

impl Input {
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    const fn new(name: &'static str, kind: Kind, required: bool, docs: &'static str) -> Input {
        Input {
            name,
            kind,
            required,
            binding: Binding::Value,
            docs,
            told: kind,
            told_binding: None,
            is_param: true,
            values: &[],
            any_case: false,
            default: "",
            subject: false,
            range: None,
        }
    }

    /// Sets a binding other than a value position.
    pub(crate) const fn bound(self, binding: Binding) -> Input {
        Input { binding, ..self }
    }

    /// The input is taken as written.
    pub(crate) const fn literal(self) -> Input {
        self.bound(Binding::Literal)
    }

    /// Sets the described kind, if it differs from the one that artifacts are bound to: a narrower
    /// one for useful values, or a wider one for everything the atom accepts.
    pub(crate) const fn told(self, told: Kind) -> Input {
        Input { told, ..self }
    }

    /// The compiler resolves the members of this input by itself (D14).
    pub(crate) const fn members_resolved(self) -> Input {
        Input {
            told_binding: Some(Binding::Vars),
            ..self
        }
    }

    /// The form reads the input itself; the signature has no parameter for it.
    pub(crate) const fn beside_params(self) -> Input {
        Input {
            is_param: false,
            ..self
        }
    }

    /// The input must be one of these texts.
    pub(crate) const fn values(self, values: &'static [&'static str]) -> Input {
        Input { values, ..self }
    }

    /// The input must be one of these texts, ignoring upper and lower case.
    pub(crate) const fn values_any_case(self, values: &'static [&'static str]) -> Input {
        Input {
            values,
            any_case: true,
            ..self
        }
    }

    /// The input is the atom's subject.
    pub(crate) const fn subject(self) -> Input {
        Input {
            subject: true,
            ..self
        }
    }

    /// The input is a number in these bounds.
    pub(crate) const fn within(self, least: f64, most: f64) -> Input {
        self.ranged(least, most, false)
    }

    /// The input is a whole number in these bounds.
    pub(crate) const fn whole(self, least: f64, most: f64) -> Input {
        self.ranged(least, most, true)
    }

    const fn ranged(self, least: f64, most: f64, whole: bool) -> Input {
        let range = Some(NumberRange { least, most, whole });
        Input { range, ..self }
    }

    /// Sets the default, as JSON text.
    pub(crate) const fn default(self, default: &'static str) -> Input {
        Input { default, ..self }
    }

    fn described(&self) -> AtomInput {
        let schema = self.told.schema(self.required);
        let schema = serde_json::from_str(&schema).unwrap_or_default();
        let binding = self.told_binding.unwrap_or(self.binding);
        AtomInput {
            docs: self.docs.into(),
            values: self.values.iter().map(|value| (*value).into()).collect(),
            any_case: self.any_case,
            default: self.default.into(),
            subject: self.subject,
            range: self.range,
            ..AtomInput::of_schema(self.name, binding, self.required, &schema)
        }
    }
}

/// A required input in a value position.
pub(crate) const fn req(name: &'static str, kind: Kind, docs: &'static str) -> Input {
    Input::new(name, kind, true, docs)
}

/// An optional input in a value position.
pub(crate) const fn opt(name: &'static str, kind: Kind, docs: &'static str) -> Input {
    Input::new(name, kind, false, docs)
}

/// Size that fits most schemas, in bytes.
const ROOM: usize = 256;

/// The schema of an input object (language section 2.9): optional inputs may be null, others are
/// required, and further members are not allowed.
pub(crate) fn schema(inputs: &[Input]) -> String {
    let inputs = || inputs.iter().filter(|input| input.is_param);
    let mut out = String::with_capacity(ROOM);
    out.push_str(r#"{"type":"object","properties":{"#);
    for (i, input) in inputs().enumerate() {
        out.push_str(if i > 0 { ",\"" } else { "\"" });
        out.push_str(input.name);
        out.push_str("\":");
        input.kind.write(&mut out, input.required);
    }
    out.push_str(r#"},"required":["#);
    for (i, input) in inputs().filter(|i| i.required).enumerate() {
        out.push_str(if i > 0 { ",\"" } else { "\"" });
        out.push_str(input.name);
        out.push('"');
    }
    out.push_str(r#"],"additionalProperties":false}"#);
    out
}

fn sig(name: &'static str, docs: &'static str, cost: i64, inputs: &[Input]) -> AtomSig {
    let params: Vec<Param> = inputs
        .iter()
        .filter(|i| i.is_param)
        .map(|i| Param {
            name: i.name,
            binding: i.binding,
        })
        .collect();
    let rows = inputs.to_vec();
    AtomSig {
        params: Params::Named(params.into()),
        input_schema: schema(inputs).into(),
        inputs: AtomInputs::new(move || rows.iter().map(Input::described).collect()),
        ..AtomSig::new(name, docs, cost)
    }
}

/// A control form: no body, no time limit for the atom.
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

/// An atom that calls a capability. Its effect is [`Effect::Unsafe`], which promises nothing.
pub(crate) fn host(
    name: &'static str,
    docs: &'static str,
    cost: i64,
    inputs: &[Input],
    body: AsyncFn,
) -> AtomDef {
    let sig = AtomSig {
        effect: Effect::Unsafe,
        ..sig(name, docs, cost, inputs)
    };
    AtomDef {
        sig,
        body: AtomBody::Async(body),
        dynamic_cost: None,
    }
}

/// Sets the capability of atoms that do not have one.
pub(crate) fn all_need(capability: Capability, mut defs: Vec<AtomDef>) -> Vec<AtomDef> {
    for def in &mut defs {
        def.sig.capability.get_or_insert(capability);
    }
    defs
}

/// Removes atoms from all short prompts.
pub(crate) fn unlisted(defs: Vec<AtomDef>) -> Vec<AtomDef> {
    let defs = defs.into_iter();
    defs.map(|def| def.listed(ShortPrompts::Neither)).collect()
}

/// Builder methods for properties that only some atoms need.
pub(crate) trait Adjust: Sized {
    /// Sets the proportional price, which the body charges.
    fn metered(self, formula: a99_core::costs::Formula) -> Self;
    /// Sets the kinds of the result.
    fn gives(self, gives: Gives) -> Self;
    /// Sets the proportional price, which the machine charges before the call.
    fn paid_before(self, formula: a99_core::costs::Formula) -> Self;
    /// Sets the capability that the host must grant.
    fn needs(self, capability: Capability) -> Self;
    /// Sets the short prompts that list the atom; the default is both.
    fn listed(self, prompts: ShortPrompts) -> Self;
    /// Sets the time limit in milliseconds.
    fn timeout_ms(self, ms: u64) -> Self;
    /// Sets fingerprints of earlier artifacts, each with the atom's number of inputs at that time.
    /// The body must treat later inputs as `undefined`.
    fn earlier(self, known: &'static [(u64, u8)]) -> Self;
    /// Removes the atom's time limit.
    fn untimed(self) -> Self;
    /// Sets the effect. The default for atoms that call a capability is [`Effect::Unsafe`].
    fn effect(self, effect: Effect) -> Self;
    /// Charges the whole static price in the metered model: the atom is not work of the machine
    /// alone, or does more of it than its flat price suggests.
    fn whole_price(self) -> Self;
}

impl Adjust for AtomDef {
    fn gives(mut self, gives: Gives) -> Self {
        self.sig.gives = gives;
        self
    }

    fn metered(mut self, formula: a99_core::costs::Formula) -> Self {
        self.sig.metered = formula;
        self.sig.charging = a99_core::sig::Charging::Body;
        self
    }

    fn paid_before(mut self, formula: a99_core::costs::Formula) -> Self {
        self.sig.metered = formula;
        self
    }

    fn needs(mut self, capability: Capability) -> Self {
        self.sig.capability = Some(capability);
        self
    }

    fn listed(mut self, prompts: ShortPrompts) -> Self {
        self.sig.listed = prompts;
        self
    }

    fn timeout_ms(mut self, ms: u64) -> Self {
        self.sig.timeout = AtomTimeout::Ms(ms);
        self
    }

    fn earlier(mut self, known: &'static [(u64, u8)]) -> Self {
        self.sig.earlier = known;
        self
    }

    fn untimed(mut self) -> Self {
        self.sig.timeout = AtomTimeout::None;
        self
    }

    fn effect(mut self, effect: Effect) -> Self {
        self.sig.effect = effect;
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
            req("a", Kind::Text, ""),
            opt("b", Kind::Number, ""),
            req("c", Kind::Any, ""),
            opt("d", Kind::Record, ""),
            req("e", Kind::TextOrTexts, ""),
            req("f", Kind::Text, "").beside_params(),
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
