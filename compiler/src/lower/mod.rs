//! Lowering: from steps and expressions to instructions.
//!
//! One [`Lower`] compiles one function (the main program or a helper); functions have
//! [`Shared`] in common. Registers are allocated like a stack: the variables of open scopes at
//! the bottom, temporaries above.

mod atoms;
mod call_all;
mod cond;
mod exprs;
mod flow;
mod guards;
mod host_literals;
mod inline;
mod literal;
mod loops;
mod memo;
mod objects;
mod refs;
mod schemas;
mod scopes;
mod shape;
mod shared;
mod state;
mod steps;
mod templates;
mod tool_loop;
mod tools;
mod values;

pub use tools::{Calling, ToolNode};

use crate::emit::{Emitter, MAX_REGISTER, Room};
use crate::findings::Findings;
use crate::limits::{self, Facts};
use crate::pass::{NewPass, Pass};
use crate::pool::Pool;
use crate::vars::Vars;
use crate::{CompileOptions, emit};
use a99_core::builtins;
use a99_core::diag::{Diagnostic, Diagnostics, codes};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::{
    ArgKey, Const, Flag, Function, LitOp, Location, MemoSite, Op, OpRef, Program, Reg, Scope, Site,
    Slot, TextRange,
};
use a99_core::sig::{AtomSig, Signatures};
use a99_core::text::wtf8_to_string_lossy;
use a99_core::value::Value;
use bumpalo::Bump;
use hashbrown::{HashMap, HashSet};
use std::cell::Cell;
use std::sync::Arc;

/// From this register on, held values are spilled to frame slots.
const SPILL_AT: u8 = 150;

/// Variables get registers below this one.
const VAR_LIMIT: u8 = 120;

/// A call with more arguments than this passes them in an array.
const MAX_CALL_ARGS: usize = 24;

/// Frame slots of a function at most: bounds the allocation of one call.
const MAX_SLOTS: u32 = 1 << 20;

/// Name comparisons that a program's spelling suggestions may take in total.
const MAX_COMPARISONS: usize = 1 << 14;

/// State that the functions of a program share.
pub(crate) struct Shared<'a> {
    pub doc: &'a Document,
    pub sigs: &'a (dyn Signatures + Sync),
    pub options: &'a CompileOptions,
    pub arena: &'a Bump,
    pub pool: Pool,
    pub ops: Vec<OpRef>,
    pub sites: Vec<Site>,
    pub args: Vec<ArgKey>,
    pub arg_ids: HashMap<(TextRange, u8), u32>,
    pub paths: Vec<Box<[TextRange]>>,
    path_ids: HashMap<Box<[TextRange]>, u32>,
    pub literals: Vec<Box<[LitOp]>>,
    pub memos: Vec<MemoSite>,
    pub names: Vec<Vec<(u32, Location)>>,
    pub schemas: Vec<Value>,
    pub diags: Findings,
    /// The pass that watches, if one does; absent while it handles an event.
    pub pass: Option<Box<dyn Pass<'a> + 'a>>,
    /// Recently queried signatures, by [`Shared::signature`].
    recent_sigs: [Cell<Option<&'a AtomSig>>; shared::RECENT_SIGS],
    /// Literals that a host's atom rejects.
    pub wrong_literals: HashSet<NodeId>,
    /// Name comparisons that are left for spelling suggestions.
    comparisons: Cell<usize>,
    /// Names already reported as forbidden, by place and length.
    refused: HashSet<(NodeId, usize)>,
    /// Helpers by name: function number and parameter count.
    pub helpers: HashMap<Box<[u8]>, (u32, usize)>,
    /// Root `a99: 3`: names inside literals are resolved (D13).
    pub deep_names: bool,
    /// Root `a99: 4`: enables the newer features (D62).
    pub version_4: bool,
    /// Names of loops that their bodies make constants, by the node of the name.
    pub sealed: HashSet<NodeId>,
    /// Facts about the source, collected before it is compiled.
    pub facts: &'a Facts,
    /// The table of names that `runCode` sees in a scope of a function; steps of one scope share
    /// it.
    pub names_of: Option<(u32, u32)>,
    /// The remaining code budget; the function being compiled takes it.
    room: Option<Room<'a>>,
}

/// The target of `return`.
#[derive(Copy, Clone)]
pub(crate) enum ReturnTo {
    /// Ends the function.
    Function,
    /// Leaves a region; its value goes into the register, if the region has one.
    Region {
        end: emit::Label,
        value: Option<Held>,
    },
}

pub(crate) struct Lower<'s, 'a> {
    pub s: &'s mut Shared<'a>,
    pub e: Emitter<'a>,
    pub vars: Vars<'a>,
    /// Open scopes, innermost last: indexes in the function's scopes.
    pub scopes: Vec<u32>,
    next: u8,
    high: u8,
    next_slot: u32,
    high_slot: u32,
    pub loops: u32,
    pub returns: ReturnTo,
    pub jumps: loops::Jumps,
    pub in_helper: bool,
    /// Names that the enclosing handlers bind their errors to.
    pub caught: Vec<&'a [u8]>,
    /// Names that the `vars` of a condition or of `mathCalc` overlay on the scopes.
    pub overlay: Overlay<'a>,
    /// Identifiers see only the overlay and the innermost scope (`mathCalc`).
    pub own_scope_only: bool,
    /// Nodes are priced as text (D48).
    pub text_nodes: bool,
}

/// Names overlaid on the scopes; later ones hide earlier ones.
#[derive(Default)]
pub(crate) struct Overlay<'a> {
    list: Vec<&'a [u8]>,
    by_name: HashMap<&'a [u8], Vec<Held>>,
}

impl<'a> Overlay<'a> {
    fn get(&self, name: &[u8]) -> Option<Held> {
        if self.list.is_empty() {
            return None;
        }
        self.by_name.get(name)?.last().copied()
    }

    fn push(&mut self, name: &'a [u8], held: Held) {
        self.list.push(name);
        self.by_name.entry(name).or_default().push(held);
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    fn truncate(&mut self, len: usize) {
        for name in self.list.drain(len..) {
            if let Some(held) = self.by_name.get_mut(name) {
                held.pop();
            }
        }
    }
}

/// A held value: in a register, or spilled to a frame slot.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Held {
    Reg(Reg),
    Slot(Slot),
}

/// A point to which temporaries are released.
#[derive(Copy, Clone)]
pub(crate) struct Mark {
    reg: u8,
    slot: u32,
}

/// Compiles a checked program.
pub(crate) fn program(
    source: &Arc<Document>,
    sigs: &(dyn Signatures + Sync),
    options: &CompileOptions,
    facts: &Facts,
    watch: &(dyn Fn() -> bool + Sync),
    pass: Option<NewPass>,
) -> Result<Program, Diagnostics> {
    let arena = Bump::new();
    let doc: &Document = source;
    let limit = limits::max_code(doc, options);
    let room = facts.room(doc.root());
    let mut s = Shared {
        doc,
        sigs,
        options,
        arena: &arena,
        pool: Pool::with_room(room / 4),
        ops: Vec::with_capacity(room / 4),
        sites: Vec::with_capacity(room / 16),
        args: Vec::with_capacity(room / 8),
        arg_ids: HashMap::with_capacity(room / 8),
        paths: Vec::new(),
        path_ids: HashMap::new(),
        literals: Vec::new(),
        memos: Vec::new(),
        names: Vec::new(),
        schemas: Vec::new(),
        diags: Findings::default(),
        pass: pass.map(|new| new(doc)),
        recent_sigs: Default::default(),
        wrong_literals: HashSet::new(),
        comparisons: Cell::new(MAX_COMPARISONS),
        refused: HashSet::new(),
        helpers: HashMap::new(),
        deep_names: false,
        version_4: false,
        sealed: HashSet::new(),
        facts,
        names_of: None,
        room: Some(Room::new(limit, watch)),
    };
    let root = doc.root();
    if doc.kind(root) != Kind::Object
        || doc.get(root, "op").and_then(|n| doc.str(n)) != Some(b"seq")
    {
        let (at, offending, help) = shape::root_advice(doc, root);
        s.diags.push(
            Diagnostic::error(codes::BAD_ROOT, "Root AST must be 'seq'", doc.pointer(at))
                .with_span(doc.span(at))
                .with_offending(offending)
                .with_help(help),
        );
        return Err(s.diags.finish());
    }
    s.pool.text_const(b"");
    s.deep_names = limits::is_version(doc, 3.0);
    s.version_4 = limits::is_version(doc, 4.0);
    let helpers = s.declare_helpers();
    let outer: Vec<TextRange> = options
        .outer
        .iter()
        .map(|(t, _)| s.pool.range(t.as_bytes()))
        .collect();
    let mut functions = vec![Lower::main(&mut s)];
    for (name, node) in helpers {
        if s.end().is_some() {
            break;
        }
        functions.push(Lower::helper(&mut s, name, node));
    }
    match s.end() {
        Some(end) => s.refuse(end, limit),
        None => s.on_end(),
    }
    if s.diags.has_errors() {
        return Err(s.diags.finish());
    }
    let input_schema = doc.get(root, "inputSchema").map(|n| doc.to_value(n));
    let mut program = Program {
        text: s.pool.take_text(),
        consts: s.pool.consts,
        keys: s.pool.keys,
        shapes: s.pool.shapes,
        paths: s.paths,
        literals: s.literals,
        args: s.args,
        ops: s.ops,
        sites: s.sites,
        memos: s.memos,
        names: s.names,
        schemas: s.schemas,
        outer,
        input_schema,
        functions,
        helpers: None,
        source: source.clone().into(),
        warnings: s.diags.finish(),
    };
    price(&mut program);
    Ok(program)
}

/// Sets the default price of every block.
fn price(program: &mut Program) {
    let mut functions = std::mem::take(&mut program.functions);
    for f in &mut functions {
        let sums: Vec<i64> = (0..f.blocks.len())
            .map(|i| {
                f.charges_of(i).iter().fold(0i64, |sum, c| {
                    sum.saturating_add(program.default_price(f, c))
                })
            })
            .collect();
        for (block, sum) in f.blocks.iter_mut().zip(sums) {
            block.price = sum;
        }
    }
    program.functions = functions;
}

impl<'s, 'a> Lower<'s, 'a> {
    fn new(s: &'s mut Shared<'a>, node: NodeId) -> Self {
        s.names_of = None;
        // Functions are compiled one at a time.
        let room = s.room.take().unwrap_or_else(|| Room::new(0, &|| false));
        Lower {
            e: Emitter::new(room, s.facts.room(node)),
            s,
            vars: Vars::default(),
            scopes: Vec::new(),
            next: 0,
            high: 0,
            next_slot: 0,
            high_slot: 0,
            loops: 0,
            returns: ReturnTo::Function,
            jumps: loops::Jumps::Outside,
            in_helper: false,
            caught: Vec::new(),
            overlay: Overlay::default(),
            own_scope_only: false,
            text_nodes: false,
        }
    }

    fn main(s: &'s mut Shared<'a>) -> Function {
        let root = s.doc.root();
        let mut l = Lower::new(s, root);
        l.e.at = Some((root, None));
        l.on_program();
        l.declare_outer();
        let steps = l.s.doc.get(root, "steps");
        l.open_scope(&[steps], &[], false);
        l.step_seq(root, steps, false);
        l.on_program_end();
        l.end()
    }

    fn helper(s: &'s mut Shared<'a>, name: &'a [u8], node: NodeId) -> Function {
        let doc = s.doc;
        let mut l = Lower::new(s, node);
        l.in_helper = true;
        l.e.at = Some((node, None));
        l.e.f.name = l.s.pool.text_const(name).0;
        let steps = doc.get(node, "steps");
        let params: Vec<(&'a [u8], NodeId)> = doc
            .get(node, "paramNames")
            .into_iter()
            .flat_map(|p| doc.elements(p))
            .take(64)
            .map(|p| (doc.str(p).unwrap_or(b""), p))
            .collect();
        l.e.f.params = params.len() as u8;
        l.open_scope(&[steps], &params, true);
        for (name, node) in &params {
            l.on_parameter(name, *node);
        }
        l.body(node, steps);
        l.end()
    }

    /// Declares the caller's variables in a scope around the program's own.
    fn declare_outer(&mut self) {
        if self.s.options.outer.is_empty() {
            return;
        }
        let names = &self.s.options.outer;
        let scope = self.push_scope();
        let locations: Vec<Location> = names.iter().map(|_| self.new_location()).collect();
        self.e.f.params = self.next;
        for ((name, constant), location) in names.iter().zip(locations) {
            let flag = constant.then(|| self.new_location());
            self.declare(name.as_bytes(), location, flag, scope);
            if let Some(flag) = flag {
                self.set_flag(flag);
            }
        }
    }

    fn end(mut self) -> Function {
        self.on_function_end();
        let r = self.temp();
        self.load_const(r, Const::Undefined);
        self.e.at = None;
        self.e.emit(Op::Ret { src: r });
        if self.high_slot > MAX_SLOTS {
            let root = self.s.doc.root();
            let diag = Diagnostic::error(
                codes::TOO_LARGE,
                format!("program too large: more than {MAX_SLOTS} variables in one function"),
                self.s.doc.pointer(root),
            );
            self.s.push(diag);
        }
        let (function, room) = self.e.finish(self.high, self.high_slot);
        self.s.room = Some(room);
        function
    }

    // ---- registers ----

    /// A fresh temporary.
    pub(crate) fn temp(&mut self) -> Reg {
        let r = self.next;
        debug_assert!(r < MAX_REGISTER, "registers run out");
        self.next = (r + 1).min(MAX_REGISTER);
        self.high = self.high.max(self.next);
        Reg(r)
    }

    /// The register that the next temporary will be.
    pub(crate) fn peek(&mut self) -> Reg {
        self.high = self.high.max(self.next + 1);
        Reg(self.next)
    }

    /// Reserves `n` consecutive registers.
    pub(crate) fn temps(&mut self, n: usize) -> Reg {
        let base = self.next;
        for _ in 0..n {
            self.temp();
        }
        Reg(base)
    }

    fn slot(&mut self) -> Slot {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.high_slot = self.high_slot.max(self.next_slot);
        Slot(slot)
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            reg: self.next,
            slot: self.next_slot,
        }
    }

    pub(crate) fn release(&mut self, mark: Mark) {
        self.next = mark.reg;
        self.next_slot = mark.slot;
    }

    /// Whether held values should be spilled.
    pub(crate) fn is_crowded(&self) -> bool {
        self.next >= SPILL_AT
    }

    /// Holds a value while other code is emitted. `mark` was taken before the value's register was
    /// allocated. Where registers are short, the value goes to a slot and its register is released.
    pub(crate) fn hold(&mut self, r: Reg, mark: Mark) -> Held {
        if !self.is_crowded() || r < Reg(mark.reg) {
            return Held::Reg(r);
        }
        let slot = self.slot();
        self.e.emit(Op::SlotStore { src: r, slot });
        self.next = mark.reg;
        Held::Slot(slot)
    }

    /// The register of a held value.
    pub(crate) fn take(&mut self, held: Held) -> Reg {
        match held {
            Held::Reg(r) => r,
            Held::Slot(slot) => {
                let r = self.temp();
                self.e.emit(Op::SlotLoad { dst: r, slot });
                r
            }
        }
    }

    /// A place for a value that several paths write: a register, or a slot
    /// where registers are short.
    pub(crate) fn place_for(&mut self) -> Held {
        if self.is_crowded() {
            Held::Slot(self.slot())
        } else {
            Held::Reg(self.temp())
        }
    }

    /// Writes a place made by [`Lower::place_for`].
    pub(crate) fn store(&mut self, place: Held, src: Reg) {
        match place {
            Held::Reg(r) => self.mov(r, src),
            Held::Slot(slot) => self.e.emit(Op::SlotStore { src, slot }),
        }
    }

    pub(crate) fn mov(&mut self, dst: Reg, src: Reg) {
        if dst != src {
            self.e.emit(Op::Mov { dst, src });
        }
    }

    // ---- constants ----

    pub(crate) fn load_const(&mut self, dst: Reg, value: Const) {
        let k = self.s.pool.constant(value);
        self.e.emit(Op::LoadK { dst, k });
    }

    pub(crate) fn load_text(&mut self, dst: Reg, text: &[u8]) {
        let k = self.s.pool.text_const(text);
        self.e.emit(Op::LoadK { dst, k });
    }

    /// A register with a constant; inside loops, a pinned one.
    pub(crate) fn const_reg(&mut self, value: Const) -> Reg {
        let k = self.s.pool.constant(value);
        if self.loops > 0
            && let Some(r) = self.e.pin(k)
        {
            return r;
        }
        let r = self.temp();
        self.e.emit(Op::LoadK { dst: r, k });
        r
    }

    // ---- failures ----

    /// Emits code that fails with this text when reached.
    pub(crate) fn throw(&mut self, text: &str) {
        self.throw_bytes(text.as_bytes(), Flag(0));
    }

    /// Emits code that fails with a security error.
    pub(crate) fn throw_forbidden(&mut self, name: &[u8]) {
        let text = builtins::forbidden_text(&wtf8_to_string_lossy(name));
        self.throw_bytes(text.as_bytes(), Flag(1));
    }

    fn throw_bytes(&mut self, text: &[u8], flag: Flag) {
        let k = self.s.pool.text_const(text);
        self.e.emit(Op::Throw { flag, k });
    }

    pub(crate) fn function_scope(&mut self) -> &mut Vec<Scope> {
        &mut self.e.f.scopes
    }
}
