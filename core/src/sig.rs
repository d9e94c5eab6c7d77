//! What the compiler must know of an atom to compile a step that names it.
//!
//! A signature says how the step's keys become operands and what the step
//! costs before its body runs; the code behind it is the VM's business.

mod capability;
mod input;
mod literal;

pub use capability::Capability;
pub use input::{AtomInput, AtomInputs, JsonKinds, NumberRange};
pub use literal::{LiteralCheck, LiteralFault};

use crate::builtins::Reads;
use crate::costs::{self, CostModel, FREE, Formula};
use std::borrow::Cow;

/// A control form that the compiler lowers itself (language section 2.1 and
/// the state atoms of 2.2). A host atom of the same name replaces it.
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

/// The most calls of a `callAll` that are under way at once (language section 2.10).
pub const MAX_CALLS_UNDER_WAY: f64 = 64.0;

impl Form {
    /// The op of the language that the form is.
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
    /// As written when it is a string; otherwise resolved, and in an array of
    /// its own, so that the atom can tell a text that was resolved from one
    /// that was written (`hash.value`).
    TextOrValue,
    /// An object literal whose first level are value positions (D14); only
    /// those members that the string parameter at this index names in
    /// `{{...}}` are needed, the others are not evaluated (`template.vars`).
    TemplateVars {
        /// Index of the parameter that holds the template text.
        template: u8,
    },
    /// An object literal whose first level are value positions (D14).
    Vars,
}

impl Binding {
    /// The binding in [`AtomSig::fingerprint`].
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
    /// How it is resolved.
    pub binding: Binding,
}

/// The inputs of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Params {
    /// These keys, in this order; a missing key is `undefined`, others are ignored.
    Named(Cow<'static, [Param]>),
    /// Every key of the step but `op`, `result` and `resultConst`, each a
    /// value position, given as one object.
    Open,
    /// The step as written, without `op` and `result`, as one object; nothing
    /// is resolved.
    Raw,
}

/// What an execution costs before its body runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BaseCost {
    /// Micro-units, known when linking.
    Fixed(i64),
    /// The same in the flat model; in the metered one its share
    /// ([`costs::work`]): for atoms that are work of the machine alone.
    Work(i64),
    /// Computed from the resolved inputs at run time; the static default
    /// stands in when that is not a sane price (D17).
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

    /// What is known of the price when linking: all of it, or nothing.
    pub fn known_in(self, model: CostModel) -> i64 {
        match self {
            BaseCost::Dynamic(_) => 0,
            cost => cost.fixed_in(model),
        }
    }
}

/// How long one execution may take (D22). Only atoms that wait are timed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AtomTimeout {
    /// No limit of its own; the run's limits hold.
    None,
    /// Milliseconds.
    Ms(u64),
}

/// The default time limit of an atom in milliseconds (D22).
pub const DEFAULT_ATOM_TIMEOUT_MS: u64 = 1_000;

/// What a call of an atom changes, and so whether it may be repeated or left out. For a
/// control form this is what the form does by itself, without its steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Depends on its inputs only and changes nothing.
    Pure,
    /// Depends on its inputs only and changes one of them.
    Mutates,
    /// Asks the host and changes nothing: a repeated call costs time and money only, and a
    /// call without a reader of its answer is useless.
    Read,
    /// Changes the world; two calls leave the same as one.
    Idempotent,
    /// Changes the world with every call.
    Unsafe,
}

impl Effect {
    /// The name that [`Effect::Unsafe`] had when every call to the host was one.
    #[deprecated(note = "name what the call changes; `is_local` says whether it asks the host")]
    #[allow(non_upper_case_globals, reason = "written like the variants")]
    pub const Io: Effect = Effect::Unsafe;

    /// Whether the call stays within the program: no capability, clock or randomness.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(self, Effect::Pure | Effect::Mutates)
    }
}

/// Which of the short prompts list an atom; the long one lists all of them. They leave out
/// those that few programs need or that others replace, as JavaScript does in the source form.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ShortPrompts {
    /// Those of programs as JSON and of the source form.
    Both,
    /// That of programs as JSON.
    Json,
    /// That of the source form.
    Source,
    /// Neither.
    Neither,
}

/// Who charges the proportional price of an atom ([`AtomSig::metered`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Charging {
    /// The machine: before the body runs, for the sizes of these inputs, and
    /// after it for the width of the answer.
    Machine(Reads),
    /// The body, with `Cx::charge`, before the work that it is for: where sizes
    /// are known only then, as of a text that an input is turned into.
    Body,
}

/// What an atom answers with, as the compiler and readers of sources may rely on it. No
/// artifact is bound to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gives {
    /// Its kinds.
    pub kinds: JsonKinds,
    /// Whether it is never `undefined`.
    pub defined: bool,
}

impl Gives {
    /// Nothing is known.
    pub const ANYTHING: Gives = Gives::mostly(JsonKinds::ANY);

    /// No answer: every call fails.
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
    /// One or two sentences for people and models.
    pub docs: Cow<'static, str>,
    /// Its inputs.
    pub params: Params,
    /// Earlier fingerprints, each with how many of `params` the atom had then: programs that
    /// were compiled against one of them still link. What came since stands at the end and is
    /// `undefined` for them.
    pub earlier: &'static [(u64, u8)],
    /// JSON Schema of the input object, as JSON text. Artifacts are bound to
    /// this text; [`AtomSig::described_schema`] says more.
    pub input_schema: Cow<'static, str>,
    /// Its inputs as people and models are told of them, which no artifact is
    /// bound to. If none are given, they follow from the schema when a set takes
    /// the atom ([`AtomSig::describe`]).
    pub inputs: AtomInputs,
    /// Judges literals that programs give as its inputs, where it can.
    pub literals: Option<LiteralCheck>,
    /// JSON Schema of the output, as JSON text; empty for "anything".
    pub output_schema: Cow<'static, str>,
    /// What it answers with.
    pub gives: Gives,
    /// What a call changes.
    pub effect: Effect,
    /// What a host must grant for it. [`Capability::AgentTurn`] says where the atom may stand,
    /// too.
    pub capability: Option<Capability>,
    /// The short prompts that list it.
    pub listed: ShortPrompts,
    /// The form the compiler lowers it to, for control forms.
    pub form: Option<Form>,
    /// Static price.
    pub cost: BaseCost,
    /// Proportional price in the metered model.
    pub metered: Formula,
    /// Who charges it, and for which sizes.
    pub charging: Charging,
    /// Time limit of one execution.
    pub timeout: AtomTimeout,
}

impl AtomSig {
    /// What a program that was compiled against this signature relies on, in
    /// 64 bits: FNV-1a over the name, each input's key and binding, both
    /// schemas' text, the form, and whether the price is known when linking.
    /// The same on every machine and in every build; `docs/a99b.md` has the
    /// bytes. The price itself is the host's to change.
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

    /// Whether every call fails.
    pub fn always_fails(&self) -> bool {
        self.gives == Gives::NOTHING
    }

    /// How many inputs the atom had when it had this fingerprint; `None` if it never had.
    pub fn inputs_of_earlier(&self, fingerprint: u64) -> Option<usize> {
        let mut earlier = self.earlier.iter();
        let (_, inputs) = earlier.find(|(known, _)| *known == fingerprint)?;
        Some(usize::from(*inputs))
    }

    /// The proportional price that the machine charges, and for which inputs.
    pub fn charged_by_machine(&self) -> Option<(Formula, Reads)> {
        match (self.metered, self.charging) {
            (Formula::Free, _) | (_, Charging::Body) => None,
            (price, Charging::Machine(reads)) => Some((price, reads)),
        }
    }

    /// A pure atom with a fixed price, no proportional price and the default
    /// time limit; adjust by struct update.
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

/// 64-bit FNV-1a, each text ended by a byte that no text contains.
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

/// The atoms a program is compiled against.
pub trait Signatures {
    /// The signature of `op`.
    fn signature(&self, op: &str) -> Option<&AtomSig>;
    /// [`AtomSig::fingerprint`] of `op`; sets of atoms know it already.
    fn fingerprint(&self, op: &str) -> Option<u64> {
        self.signature(op).map(AtomSig::fingerprint)
    }
    /// All names, for suggestions.
    fn op_names(&self) -> Box<dyn Iterator<Item = &str> + '_>;
}
