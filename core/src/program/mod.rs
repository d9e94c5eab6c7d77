//! A compiled program: registers, constants and code, with prices and places.
//!
//! A [`Program`] comes from the compiler or from a file, and is untrusted.
//! [`verify`](crate::verify) turns it into an [`Artifact`](crate::verify::Artifact), and only
//! artifacts run.

pub mod ops;
mod size;
mod source;

use crate::costs::{self, CostModel};
use crate::diag::Diagnostics;
use crate::json::NodeId;
use crate::sig::BaseCost;
use crate::value::Value;
pub use ops::{
    ArgIdx, BlockIdx, BuiltinIdx, ConstIdx, Count, Flag, FunctionIdx, KeyIdx, LiteralIdx, MemoIdx,
    MethodIdx, NamesIdx, Number, Op, OperandKind, PathIdx, Reg, SchemaIdx, ShapeIdx, SiteIdx, Slot,
    Target,
};
pub use source::Source;

/// A range of [`Program::text`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A constant.
#[derive(Copy, Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the values")]
pub enum Const {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(TextRange),
}

/// A step of building a literal array or object, on a stack of values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LitOp {
    /// Pushes a constant.
    Const(u32),
    /// Pops this many values into an array.
    Array(u32),
    /// Pops a value for each key of the shape into an object.
    Object(u32),
}

/// Fallback for an argument that the caller did not pass.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ArgFallback {
    /// `undefined`.
    Undefined,
    /// An unbound register: the code tries other meanings.
    Unbound,
    /// A builtin function or namespace, by the VM's numbering.
    Builtin(u16),
    /// A constant.
    Const(u32),
}

/// An argument key that the program reads (D15).
#[derive(Clone, Debug, PartialEq)]
pub struct ArgKey {
    /// The flat key, which is tried first.
    pub flat: TextRange,
    /// Segments of the dotted path, which is tried if the flat key is absent. A path without
    /// segments is all arguments as one value (D118).
    pub path: Option<Box<[TextRange]>>,
    /// Fallback if both are absent.
    pub fallback: ArgFallback,
}

impl ArgKey {
    /// True for all arguments as one value.
    pub fn is_all(&self) -> bool {
        self.path.as_deref().is_some_and(<[TextRange]>::is_empty)
    }
}

/// Kind of a charge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ChargeKind {
    /// The price of a step on entry. The step's trace event begins here, too.
    Step,
    /// Expression nodes, this many.
    Nodes(u16),
    /// Nodes of a condition text or `mathCalc`, or parts of literals and steps, this many; free in
    /// the flat model (D48).
    TextNodes(u16),
    /// One turn of a `while` loop.
    Turn,
    /// One test of a `while` with a condition text, which is how the flat model charges its turns
    /// (D48).
    TextTest,
    /// One turn of a `while` with a condition text, in the metered model.
    TextTurn,
    /// Storing a value after a `cache` miss.
    CacheStore,
}

/// A charge, made before the instruction at `pc`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The instruction that it precedes.
    pub pc: u32,
    /// The step that pays, and that is blamed if the budget is exhausted.
    pub step: u32,
    /// Kind of the charge.
    pub kind: ChargeKind,
}

/// Most instructions of a block, including its `Fuel`. A run executes at least a whole block
/// between two polls of the host.
pub const MAX_BLOCK: u32 = 512;

/// A basic block: code with a single entry at its head.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its [`Op::Fuel`] instruction.
    pub start: u32,
    /// One past its last instruction.
    pub end: u32,
    /// Its first entry in [`Function::charges`].
    pub charges: u32,
    /// Sum of its charges at default prices, in micro-units.
    pub price: i64,
}

/// A step of the source program, as far as the machine needs it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The enclosing step in the same function, or `u32::MAX`.
    pub parent: u32,
    /// First instruction.
    pub start: u32,
    /// One past the last instruction.
    pub end: u32,
    /// Index in [`Program::ops`].
    pub op: u32,
    /// The step's object in the source; for an implicit `seq` its list of steps. Meaningless
    /// without a source.
    pub node: NodeId,
    /// True for an implicit `seq`, whose `node` is its `steps`.
    pub implicit: bool,
    /// Index in [`Function::scopes`]: the trace event compares these variables.
    pub scope: u32,
    /// The register with the step's value at its normal end, for the trace; 255 if there is no
    /// value.
    pub value: u8,
}

/// Storage of a variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A register.
    Reg(u8),
    /// A frame slot.
    Slot(u32),
}

/// The variables that a scope declares.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Scope {
    /// Name (a text constant) and location of each variable.
    pub vars: Vec<(u32, Location)>,
}

/// A protected range of code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// First protected instruction.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Start of the handler's block. Inner handlers precede outer ones.
    pub target: u32,
}

/// A range whose error messages get a prefix: `mathCalc` and condition texts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    /// First instruction.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Text constant of the prefix.
    pub prefix: u32,
}

/// A source place, valid from an instruction up to the next place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// First instruction.
    pub pc: u32,
    /// The source node.
    pub node: NodeId,
    /// Byte range inside the node's text, for condition texts.
    pub inner: Option<(u32, u32)>,
}

/// A unit of code with its own frame: the main program or a helper.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Function {
    /// Text constant with the helper's name; empty for the main program.
    pub name: u32,
    /// Number of parameters, which arrive in registers 0 and up.
    pub params: u8,
    /// Number of registers.
    pub registers: u8,
    /// Number of frame slots.
    pub slots: u32,
    /// The code.
    pub code: Vec<Op>,
    /// Basic blocks in code order; they cover the code.
    pub blocks: Vec<Block>,
    /// Charges in code order.
    pub charges: Vec<Charge>,
    /// Steps in source order: a parent precedes its children.
    pub steps: Vec<Step>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Handlers, innermost first.
    pub handlers: Vec<Handler>,
    /// Ranges with an error prefix.
    pub wraps: Vec<Wrap>,
    /// The source map, in code order.
    pub places: Vec<SourceLocation>,
}

/// An op that steps name, with the facts that linking must find again.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRef {
    /// Name of the op.
    pub name: TextRange,
    /// Default price.
    pub cost: BaseCost,
    /// True if the machine must have a body for the op.
    pub needs_body: bool,
    /// [`AtomSig::fingerprint`](crate::sig::AtomSig::fingerprint) at compile time, or
    /// [`NO_SIGNATURE`].
    pub signature: u64,
}

/// [`OpRef::signature`] of an op without a known atom at compile time.
pub const NO_SIGNATURE: u64 = 0;

/// Name of the constant flag in the tables of [`Program::names`].
pub const CONST_FLAG: &[u8] = b"\0const";

/// A call site of an atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index in [`Program::ops`].
    pub op: u32,
    /// The step that calls.
    pub step: u32,
    /// Number of inputs.
    pub inputs: u8,
}

/// A memo or cache site without a key (D25).
#[derive(Clone, Debug, PartialEq)]
pub struct MemoSite {
    /// Canonical JSON of the body.
    pub body: TextRange,
    /// Names of the free variables, in the order of the hashed registers.
    pub free: Box<[u32]>,
    /// True if the hash includes the program's hash (`cache`).
    pub with_program: bool,
}

/// A compiled program, not yet verified.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// All static text, WTF-8.
    pub text: Vec<u8>,
    /// Constants.
    pub consts: Vec<Const>,
    /// Object keys.
    pub keys: Vec<TextRange>,
    /// Object shapes: lists of keys.
    pub shapes: Vec<Box<[u32]>>,
    /// Dotted paths: lists of segments after the root.
    pub paths: Vec<Box<[TextRange]>>,
    /// Literal arrays and objects, each as its build steps.
    pub literals: Vec<Box<[LitOp]>>,
    /// Argument keys.
    pub args: Vec<ArgKey>,
    /// Ops that steps name.
    pub ops: Vec<OpRef>,
    /// Call sites.
    pub sites: Vec<Site>,
    /// Memo sites.
    pub memos: Vec<MemoSite>,
    /// Tables of the variables visible to `runCode`: name constant and location. An entry named
    /// [`CONST_FLAG`] says whether the entry before it is a constant.
    pub names: Vec<Vec<(u32, Location)>>,
    /// Schemas for [`Op::Project`].
    pub schemas: Vec<Value>,
    /// Names bound into the first registers before the program starts: the caller's variables that
    /// inline code can access.
    pub outer: Vec<TextRange>,
    /// JSON Schema of the arguments (root `inputSchema`).
    pub input_schema: Option<Value>,
    /// The main program, then the helpers.
    pub functions: Vec<Function>,
    /// The root's `helpers`, for inline programs of a program without source.
    pub helpers: Option<Value>,
    /// The source that steps and places refer to.
    pub source: Source,
    /// Warnings of the compiler.
    pub warnings: Diagnostics,
}

impl Function {
    /// The charges of a basic block.
    pub fn charges_of(&self, block: usize) -> &[Charge] {
        let from = self.blocks[block].charges as usize;
        let next = self.blocks.get(block + 1);
        let to = next.map_or(self.charges.len(), |b| b.charges as usize);
        &self.charges[from..to]
    }
}

impl Program {
    /// The bytes of a text range.
    pub fn text(&self, r: TextRange) -> &[u8] {
        &self.text[r.start as usize..r.end as usize]
    }

    /// The text of a constant; empty if the constant is not a text.
    pub fn const_text(&self, k: ConstIdx) -> &[u8] {
        match self.consts.get(k.at()) {
            Some(Const::Text(r)) => self.text(*r),
            _ => b"",
        }
    }

    /// The price of a charge in micro-units, with the given step prices.
    pub fn price(
        &self,
        charge: &Charge,
        model: CostModel,
        step_cost: impl FnOnce(u32) -> i64,
    ) -> i64 {
        let metered = model == CostModel::Metered;
        match charge.kind {
            ChargeKind::Step => step_cost(charge.step),
            ChargeKind::Nodes(n) => i64::from(n) * costs::node(model),
            ChargeKind::TextNodes(n) if metered => i64::from(n) * costs::node(model),
            ChargeKind::TextTurn if metered => costs::loop_turn(model),
            ChargeKind::TextTest if !metered => costs::loop_turn(model),
            ChargeKind::TextNodes(_) | ChargeKind::TextTurn | ChargeKind::TextTest => 0,
            ChargeKind::Turn => costs::loop_turn(model),
            ChargeKind::CacheStore => costs::CACHE_STORE,
        }
    }

    /// The price of a charge in the metered model at default costs.
    pub fn default_price(&self, f: &Function, charge: &Charge) -> i64 {
        self.price(charge, CostModel::Metered, |step| {
            let op = f.steps[step as usize].op;
            self.ops[op as usize].cost.known_in(CostModel::Metered)
        })
    }

    /// The innermost step around an instruction.
    pub fn step_at(f: &Function, pc: u32) -> Option<u32> {
        let mut at = f.steps.partition_point(|s| s.start <= pc) as u32;
        while at > 0 {
            let step = &f.steps[at as usize - 1];
            if pc < step.end {
                return Some(at - 1);
            }
            // Walks the parent chain outward from the last step before `pc`.
            at = if step.parent == u32::MAX {
                0
            } else {
                step.parent + 1
            };
        }
        None
    }

    /// The source place of an instruction.
    pub fn place_at(f: &Function, pc: u32) -> Option<SourceLocation> {
        let at = f.places.partition_point(|p| p.pc <= pc);
        at.checked_sub(1).map(|i| f.places[i])
    }
}
