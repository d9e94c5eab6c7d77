//! Signatures of atoms: everything the compiler needs to compile a step that names an atom.
//!
//! A signature defines how a step's keys become operands, and the price before the body runs. The
//! code of the body belongs to the VM.

mod capability;
mod input;
mod literal;

pub use capability::Capability;
pub use input::{AtomInput, AtomInputs, JsonKinds, NumberRange};
pub use literal::{LiteralCheck, LiteralFault};

use crate::builtins::Reads;
use crate::costs::{self, CostModel, FREE, Formula};
use crate::fuel::Fuel;
use std::borrow::Cow;

/// A control form that the compiler lowers itself (language section 2.1 and the state atoms of
/// 2.2). A host atom of the same name replaces it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the ops")]
pub enum Form {
    Seq,
    If,
    While,
    ForEach,
    Break,
    Continue,
    Try,
    Return,
    Scope,
    CallLocal,
    Error,
    Map,
    Filter,
    Find,
    Reduce,
    Memoize,
    Cache,
    VarSet,
    ConstSet,
    VarGet,
    VarsImport,
    VarsLet,
    VarsExport,
    MathCalc,
    AgentRun,
    RunCode,
    CallAll,
    ToolLoop,
}

/// Most concurrent calls of a `callAll` (language section 2.10).
pub const MAX_CALLS_UNDER_WAY: f64 = 64.0;

impl Form {
    /// Name of the form's op in the language.
    pub fn name(self) -> &'static str {
        match self {
            Form::Seq => "seq",
            Form::If => "if",
            Form::While => "while",
            Form::ForEach => "forEach",
            Form::Break => "break",
            Form::Continue => "continue",
            Form::Try => "try",
            Form::Return => "return",
            Form::Scope => "scope",
            Form::CallLocal => "callLocal",
            Form::Error => "error",
            Form::Map => "map",
            Form::Filter => "filter",
            Form::Find => "find",
            Form::Reduce => "reduce",
            Form::Memoize => "memoize",
            Form::Cache => "cache",
            Form::VarSet => "varSet",
            Form::ConstSet => "constSet",
            Form::VarGet => "varGet",
            Form::VarsImport => "varsImport",
            Form::VarsLet => "varsLet",
            Form::VarsExport => "varsExport",
            Form::MathCalc => "mathCalc",
            Form::AgentRun => "agentRun",
            Form::RunCode => "runCode",
            Form::CallAll => "callAll",
            Form::ToolLoop => "llmToolLoop",
        }
    }
}

/// How one input of a step becomes an operand (language section 1.4).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// A value position: names, paths, `$kind` and `$expr` are resolved.
    Value,
    /// Taken as written; nested nodes stay data.
    Literal,
    /// Taken as written if it is a string. Otherwise resolved and wrapped in an array, so the atom
    /// can distinguish a resolved text from a written one (`hash.value`).
    TextOrValue,
    /// An object literal whose first level are value positions (D14). Only members that the string
    /// parameter at this index names in `{{...}}` are evaluated (`template.vars`).
    TemplateVars {
        /// Index of the parameter that holds the template text.
        template: u8,
    },
    /// An object literal whose first level are value positions (D14).
    Vars,
}

impl Binding {
    /// Encoding of the binding in [`AtomSig::fingerprint`].
    fn code(self) -> [u8; 2] {
        match self {
            Binding::Value => [b'v', 0],
            Binding::Literal => [b'l', 0],
            Binding::TextOrValue => [b't', 0],
            Binding::TemplateVars { template } => [b'p', template],
            Binding::Vars => [b'o', 0],
        }
    }
}

/// One input of an atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The step's key.
    pub name: &'static str,
    /// Resolution of the input.
    pub binding: Binding,
}

/// The inputs of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Params {
    /// These keys, in this order. A missing key is `undefined`; other keys are ignored.
    Named(Cow<'static, [Param]>),
    /// Every key of the step except `op`, `result` and `resultConst`, each a value position, passed
    /// as one object.
    Open,
    /// The step as written, without `op` and `result`, passed as one object. Nothing is resolved.
    Raw,
}

/// Price of an execution, charged before its body runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BaseCost {
    /// Micro-units, known at link time.
    Fixed(i64),
    /// Micro-units in the flat model, and their share in the metered model ([`costs::work`]); for
    /// atoms that are work of the machine alone.
    Work(i64),
    /// Computed from the resolved inputs at run time. The static default applies if the computed
    /// price is not valid (D17).
    Dynamic(i64),
}

impl BaseCost {
    /// The static part in micro-units, in the flat model.
    pub fn fixed(self) -> i64 {
        self.fixed_in(CostModel::Flat)
    }

    /// The static part in micro-units.
    pub fn fixed_in(self, model: CostModel) -> i64 {
        match self {
            BaseCost::Fixed(n) | BaseCost::Dynamic(n) => n,
            BaseCost::Work(n) => costs::work(n, model),
        }
    }

    /// The part of the price known at link time: all of it, or 0 for a dynamic price.
    pub fn known_in(self, model: CostModel) -> i64 {
        match self {
            BaseCost::Dynamic(_) => 0,
            cost => cost.fixed_in(model),
        }
    }
}

/// Time limit of one execution (D22). Only asynchronous atoms are timed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AtomTimeout {
    /// No limit for the atom; the run's limits apply.
    None,
    /// Milliseconds.
    Ms(u64),
}

/// The default time limit of an atom in milliseconds (D22).
pub const DEFAULT_ATOM_TIMEOUT_MS: u64 = 1_000;

/// Effect of a call, which decides whether it may be repeated or omitted. For a control form it is
/// the effect of the form without its steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Depends on its inputs only and changes nothing.
    Pure,
    /// Depends on its inputs only and changes one of them.
    Mutates,
    /// Queries the host and changes nothing. Repeating a call costs only time and money, and a call
    /// with an unused answer is useless.
    Read,
    /// Changes the world; repeating the call has no further effect.
    Idempotent,
    /// Changes the world with every call.
    Unsafe,
}

impl Effect {
    /// Former name of [`Effect::Unsafe`], from when every host call had this effect.
    #[deprecated(note = "name what the call changes; `is_local` says whether it asks the host")]
    #[allow(non_upper_case_globals, reason = "written like the variants")]
    pub const Io: Effect = Effect::Unsafe;

    /// True if the call stays within the program: no capability, clock or randomness.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(self, Effect::Pure | Effect::Mutates)
    }
}

/// The short prompts that list an atom; the long prompt lists all. Short prompts omit atoms that
/// few programs need or that others replace, as JavaScript does in the source form.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ShortPrompts {
    /// The prompts for programs as JSON and in the source form.
    Both,
    /// The prompt for programs as JSON.
    Json,
    /// The prompt for the source form.
    Source,
    /// No short prompt.
    Neither,
}

/// Charging party for the proportional price of an atom ([`AtomSig::metered`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Charging {
    /// The machine charges the sizes of these inputs before the body runs, and the width of the
    /// answer after it.
    Machine(Reads),
    /// The body charges with `Cx::charge` before each piece of work. For sizes known only then,
    /// such as an input converted to text.
    Body,
}

/// Result of an atom, which the compiler and readers of sources may rely on. Artifacts are not
/// bound to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gives {
    /// Kinds of the result.
    pub kinds: JsonKinds,
    /// True if the result is never `undefined`.
    pub defined: bool,
}

impl Gives {
    /// An unknown result.
    pub const ANYTHING: Gives = Gives::mostly(JsonKinds::ANY);

    /// No result: every call fails.
    pub const NOTHING: Gives = Gives::mostly(JsonKinds::NONE);

    /// A value of these kinds, always.
    #[must_use]
    pub const fn always(kinds: JsonKinds) -> Gives {
        Gives {
            kinds,
            defined: true,
        }
    }

    /// A value of these kinds, or `undefined`.
    #[must_use]
    pub const fn mostly(kinds: JsonKinds) -> Gives {
        Gives {
            kinds,
            defined: false,
        }
    }
}

/// The signature of an atom.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomSig {
    /// The `op` that steps name.
    pub name: Cow<'static, str>,
    /// Description in one or two sentences, for people and models.
    pub docs: Cow<'static, str>,
    /// Its inputs.
    pub params: Params,
    /// Earlier fingerprints, each with the number of `params` at that time: programs compiled
    /// against them still link. Later inputs are at the end and are `undefined` for these programs.
    pub earlier: &'static [(u64, u8)],
    /// JSON Schema of the input object, as JSON text. Artifacts are bound to this text;
    /// [`AtomSig::described_schema`] adds descriptions.
    pub input_schema: Cow<'static, str>,
    /// Descriptions of the inputs for people and models. Artifacts are not bound to them. Without
    /// rows, they are derived from the schema when a set takes the atom ([`AtomSig::describe`]).
    pub inputs: AtomInputs,
    /// Check of literals that programs pass as inputs, if the atom has one.
    pub literals: Option<LiteralCheck>,
    /// JSON Schema of the output, as JSON text; empty for any output.
    pub output_schema: Cow<'static, str>,
    /// Result of a call.
    pub gives: Gives,
    /// Effect of a call.
    pub effect: Effect,
    /// The capability that the host must grant. [`Capability::AgentTurn`] also restricts the
    /// programs that may contain the atom.
    pub capability: Option<Capability>,
    /// The short prompts that list the atom.
    pub listed: ShortPrompts,
    /// The control form that the compiler lowers it to.
    pub form: Option<Form>,
    /// Static price.
    pub cost: BaseCost,
    /// Proportional price in the metered model.
    pub metered: Formula,
    /// Charging party and sizes of the proportional price.
    pub charging: Charging,
    /// Time limit of one execution.
    pub timeout: AtomTimeout,
}

impl AtomSig {
    /// Fingerprint of the facts that a program compiled against this signature relies on.
    ///
    /// It is the 64-bit FNV-1a hash of the name, each input's key and binding, the text of both
    /// schemas, the form, and whether the price is known at link time. It is the same on every
    /// machine and in every build; `docs/a99b.md` defines the bytes. The host may change the price
    /// itself.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.text(self.name.as_bytes());
        match &self.params {
            Params::Named(params) => {
                for param in params.iter() {
                    hash.text(param.name.as_bytes());
                    hash.text(&param.binding.code());
                }
            }
            Params::Open => hash.text(b"*"),
            Params::Raw => hash.text(b"**"),
        }
        hash.text(self.input_schema.as_bytes());
        hash.text(self.output_schema.as_bytes());
        hash.text(self.form.map_or("", Form::name).as_bytes());
        hash.text(match self.cost {
            BaseCost::Fixed(_) | BaseCost::Work(_) => b"fixed",
            BaseCost::Dynamic(_) => b"dynamic",
        });
        hash.0
    }

    /// The price of a call in the metered model, in words: `0.05 + 0.0001 * units read`.
    #[must_use]
    pub fn price_text(&self) -> String {
        let mut text = Fuel::from_micro(self.cost.fixed_in(CostModel::Metered)).to_string();
        if self.metered != Formula::Free {
            text = format!("{text} + {}", self.metered.describe());
        }
        if matches!(self.cost, BaseCost::Dynamic(_)) {
            text.push_str(", or what its inputs make it");
        }
        text
    }

    /// True if every call fails.
    pub fn always_fails(&self) -> bool {
        self.gives == Gives::NOTHING
    }

    /// Number of inputs that the atom had at a fingerprint; `None` for an unknown fingerprint.
    pub fn inputs_of_earlier(&self, fingerprint: u64) -> Option<usize> {
        let mut earlier = self.earlier.iter();
        let (_, inputs) = earlier.find(|(known, _)| *known == fingerprint)?;
        Some(usize::from(*inputs))
    }

    /// The proportional price that the machine charges, and the inputs it depends on.
    pub fn charged_by_machine(&self) -> Option<(Formula, Reads)> {
        match (self.metered, self.charging) {
            (Formula::Free, _) | (_, Charging::Body) => None,
            (price, Charging::Machine(reads)) => Some((price, reads)),
        }
    }

    /// A pure atom with a fixed price, no proportional price and the default time limit. Adjust it
    /// by struct update.
    pub const fn new(name: &'static str, docs: &'static str, cost_micro: i64) -> AtomSig {
        AtomSig {
            name: Cow::Borrowed(name),
            docs: Cow::Borrowed(docs),
            params: Params::Open,
            earlier: &[],
            input_schema: Cow::Borrowed("{}"),
            inputs: AtomInputs::NONE,
            literals: None,
            output_schema: Cow::Borrowed(""),
            gives: Gives::ANYTHING,
            effect: Effect::Pure,
            capability: None,
            listed: ShortPrompts::Both,
            form: None,
            cost: BaseCost::Fixed(cost_micro),
            metered: FREE,
            charging: Charging::Machine(Reads::All),
            timeout: AtomTimeout::Ms(DEFAULT_ATOM_TIMEOUT_MS),
        }
    }
}

/// 64-bit FNV-1a; each text ends with a byte that does not occur in texts.
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The atoms that a program is compiled against.
pub trait Signatures {
    /// The signature of `op`.
    fn signature(&self, op: &str) -> Option<&AtomSig>;
    /// [`AtomSig::fingerprint`] of `op`; sets of atoms cache it.
    fn fingerprint(&self, op: &str) -> Option<u64> {
        self.signature(op).map(AtomSig::fingerprint)
    }
    /// All names, for suggestions.
    fn op_names(&self) -> Box<dyn Iterator<Item = &str> + '_>;
}
