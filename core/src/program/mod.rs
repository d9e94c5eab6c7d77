//! A compiled program: registers, constants and code, with prices and places.
//!
//! A [`Program`] is what the compiler makes or a file holds; it is trusted by
//! nobody. [`verify`](crate::verify) turns it into an
//! [`Artifact`](crate::verify::Artifact), the only thing that runs.

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

/// One step of building a literal array or object, on a stack of values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LitOp {
    /// Pushes a constant.
    Const(u32),
    /// Pops this many values into an array.
    Array(u32),
    /// Pops a value for each key of the shape into an object.
    Object(u32),
}

/// What an argument key means when the caller gave no such argument.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ArgFallback {
    /// `undefined`.
    Undefined,
    /// An unbound register: the code looks further.
    Unbound,
    /// A builtin function or namespace, as the VM numbers them.
    Builtin(u16),
    /// A constant.
    Const(u32),
}

/// A key of the arguments that the program reads (D15).
#[derive(Clone, Debug, PartialEq)]
pub struct ArgKey {
    /// The flat key, tried first.
    pub flat: TextRange,
    /// Segments of the dotted path, tried when the flat key is absent.
    pub path: Option<Box<[TextRange]>>,
    /// Otherwise.
    pub fallback: ArgFallback,
}

/// What is charged at one instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ChargeKind {
    /// The price of a step, on entering it; also where its trace event begins.
    Step,
    /// This many expression nodes.
    Nodes(u16),
    /// This many nodes of a condition string or `mathCalc`, or parts of
    /// literals and steps: free in the flat model (D48).
    TextNodes(u16),
    /// One turn of a `while` loop.
    Turn,
    /// One test of a `while` with a string condition: the flat model's way to
    /// charge its turns (D48).
    TextTest,
    /// One turn of a `while` with a string condition, in the metered model.
    TextTurn,
    /// The store of a `cache` miss.
    CacheStore,
}

/// A charge, made before the instruction at `pc`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The instruction.
    pub pc: u32,
    /// The step that pays and that an exhausted budget is blamed on.
    pub step: u32,
    /// What for.
    pub kind: ChargeKind,
}

/// The most instructions of a block, its `Fuel` included: between two looks at
/// the host a run does at least all that a block holds.
pub const MAX_BLOCK: u32 = 512;

/// A basic block: code that is entered only at its head.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its [`Op::Fuel`].
    pub start: u32,
    /// One past its last instruction.
    pub end: u32,
    /// Its first entry in [`Function::charges`].
    pub charges: u32,
    /// Sum of its charges at default prices, in micro-units.
    pub price: i64,
}

/// A step of the source program, as the machine needs to know it.
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
    /// The step's object in the source; for an implicit `seq` the list of its
    /// steps. Meaningless without a source.
    pub node: NodeId,
    /// An implicit `seq`: `node` is its `steps`.
    pub implicit: bool,
    /// Whose variables its trace event compares: index in [`Function::scopes`].
    pub scope: u32,
    /// The register that holds its value when it ends normally, for the trace;
    /// 255 for none.
    pub value: u8,
}

/// Where a variable lives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A register.
    Reg(u8),
    /// A frame slot.
    Slot(u32),
}

/// A scope's own variables.
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
    /// Where the handler's block begins. Inner handlers come before outer ones.
    pub target: u32,
}

/// A range whose errors carry a prefix: `mathCalc` and string conditions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    /// First instruction.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Text constant put before the message.
    pub prefix: u32,
}

/// A place in the source: from this instruction on, until the next place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// First instruction.
    pub pc: u32,
    /// The source node.
    pub node: NodeId,
    /// Byte range inside the node's text, for condition strings.
    pub inner: Option<(u32, u32)>,
}

/// A unit of code with its own frame: the main program or a helper.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Function {
    /// Text constant: the helper's name; for the main program empty.
    pub name: u32,
    /// How many parameters arrive in registers 0...
    pub params: u8,
    /// Registers used.
    pub registers: u8,
    /// Frame slots used.
    pub slots: u32,
    /// The code.
    pub code: Vec<Op>,
    /// Basic blocks in order of their code; they cover it.
    pub blocks: Vec<Block>,
    /// Charges in order of their code.
    pub charges: Vec<Charge>,
    /// Steps in source order (a parent before its children).
    pub steps: Vec<Step>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Handlers, innermost first.
    pub handlers: Vec<Handler>,
    /// Prefixed ranges.
    pub wraps: Vec<Wrap>,
    /// The source map, in order of the code.
    pub places: Vec<SourceLocation>,
}

/// An op that steps of the program name, with what linking must find again.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRef {
    /// Its name.
    pub name: TextRange,
    /// Its default price.
    pub cost: BaseCost,
    /// Whether the machine must have a body for it.
    pub needs_body: bool,
    /// [`AtomSig::fingerprint`](crate::sig::AtomSig::fingerprint) of what it
    /// was compiled against, or [`NO_SIGNATURE`].
    pub signature: u64,
}

/// [`OpRef::signature`] of an op that the compiler knew no atom for.
pub const NO_SIGNATURE: u64 = 0;

/// The name of a flag among the variables of [`Program::names`].
pub const CONST_FLAG: &[u8] = b"\0const";

/// A call site of an atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index in [`Program::ops`].
    pub op: u32,
    /// The step that calls.
    pub step: u32,
    /// How many inputs it passes.
    pub inputs: u8,
}

/// A memo or cache site without a key (D25).
#[derive(Clone, Debug, PartialEq)]
pub struct MemoSite {
    /// Canonical JSON of the body.
    pub body: TextRange,
    /// Names of the free variables, in the order of the registers hashed.
    pub free: Box<[u32]>,
    /// Whether the program's own hash goes in too (`cache`).
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
    /// Literal arrays and objects, each as the steps that build it.
    pub literals: Vec<Box<[LitOp]>>,
    /// Argument keys.
    pub args: Vec<ArgKey>,
    /// Ops named by steps.
    pub ops: Vec<OpRef>,
    /// Call sites.
    pub sites: Vec<Site>,
    /// Memo sites.
    pub memos: Vec<MemoSite>,
    /// Tables of the variables that `runCode` sees: name constant and location. An
    /// entry named [`CONST_FLAG`] tells whether the one before it is a constant.
    pub names: Vec<Vec<(u32, Location)>>,
    /// Schemas for [`Op::Project`].
    pub schemas: Vec<Value>,
    /// Names that are bound before the program starts, into its first
    /// registers: the caller's variables that inline code sees.
    pub outer: Vec<TextRange>,
    /// JSON Schema for the arguments (root `inputSchema`).
    pub input_schema: Option<Value>,
    /// The main program, then the helpers.
    pub functions: Vec<Function>,
    /// The root's `helpers`, for inline programs of a program without source.
    pub helpers: Option<Value>,
    /// The source, which steps and places point into.
    pub source: Source,
    /// Warnings of the compiler.
    pub warnings: Diagnostics,
}

impl Function {
    /// The charges that a basic block pays.
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

    /// The text of a constant, empty if it is none.
    pub fn const_text(&self, k: ConstIdx) -> &[u8] {
        match self.consts.get(k.at()) {
            Some(Const::Text(r)) => self.text(*r),
            _ => b"",
        }
    }

    /// The price of a charge in micro-units with the given price of steps.
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
            // Walk outward: the parent chain of the last step before `pc`.
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
