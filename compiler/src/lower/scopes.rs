//! Scopes: the names that each one binds, and their locations.

use super::{Lower, Shared, VAR_LIMIT};
use crate::emit::Room;
use crate::ir::{key_text, truthy};
use crate::vars::{Var, VarId};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::{Count, Location, Op, Reg, Scope, Slot};
use a99_core::sig::Form;
use a99_core::text::same_name;
use bumpalo::Bump;
use hashbrown::{HashMap, HashSet};
use std::ops::Range;

/// Outer variables of one name that are tried one by one; beyond, an inner scope that binds the
/// name stores a summary of them.
const SUMMARY_AFTER: usize = 3;

/// Lists up to this length are searched without hashing.
const FEW_NAMES: usize = 16;

/// A name that a scope binds.
struct Binding<'a> {
    name: &'a [u8],
    constant: bool,
    /// Number of steps that bind it.
    writes: u32,
}

/// State to restore when a scope closes.
pub(crate) struct Opened {
    /// Variable counts: before the scope, and with its own variables.
    vars: Range<usize>,
    mark: super::Mark,
    bound: usize,
}

impl<'a> Lower<'_, 'a> {
    /// A register for a variable, or a slot where registers are short.
    pub(super) fn new_location(&mut self) -> Location {
        if self.next < VAR_LIMIT {
            Location::Reg(self.temp().0)
        } else {
            Location::Slot(self.slot().0)
        }
    }

    pub(super) fn push_scope(&mut self) -> u32 {
        self.function_scope().push(Scope::default());
        let id = self.e.f.scopes.len() as u32 - 1;
        self.scopes.push(id);
        id
    }

    pub(super) fn declare(
        &mut self,
        name: &'a [u8],
        location: Location,
        const_flag: Option<Location>,
        scope: u32,
    ) -> VarId {
        let k = self.s.pool.text_const(name);
        self.e.f.scopes[scope as usize].vars.push((k.0, location));
        self.vars.declare(
            name,
            Var {
                location,
                const_flag,
                scope,
                summary: false,
            },
        )
    }

    /// The innermost scope.
    pub(super) fn scope(&self) -> u32 {
        *self.scopes.last().expect("a scope is open")
    }

    /// The scope whose variables a step may change.
    pub(super) fn step_scope(&self) -> u32 {
        self.vars.binding_scope(self.scope())
    }

    /// Opens a scope for these lists of steps. The opener binds the names in `first` (parameters,
    /// loop variables); with `arrive`, their values are already in the first registers.
    pub(super) fn open_scope(
        &mut self,
        lists: &[Option<NodeId>],
        first: &[(&'a [u8], NodeId)],
        arrive: bool,
    ) -> Opened {
        let mark = self.mark();
        let bound = self.vars.mark();
        let sealed = std::mem::take(&mut self.s.sealed);
        let mut found = Collector {
            doc: self.s.doc,
            s: self.s,
            room: &mut self.e.room,
            sealed,
            index: HashMap::new(),
            list: Vec::with_capacity(FEW_NAMES),
            loops: Vec::new(),
            inside: None,
        };
        for (name, _) in first {
            found.add(name, false);
        }
        for list in lists.iter().flatten() {
            found.steps(*list);
        }
        let Collector { list, sealed, .. } = found;
        self.s.sealed = sealed;
        let scope = self.push_scope();
        self.vars.reserve(list.len());
        self.e.f.scopes[scope as usize].vars.reserve(list.len());
        let from = self.vars.declared();
        let first_reg = self.next;
        let mut slots = Vec::new();
        let mut locations = Vec::with_capacity(list.len());
        for binding in &list {
            let location = self.new_location();
            let flag = binding.constant.then(|| self.new_location());
            for location in [Some(location), flag].into_iter().flatten() {
                if let Location::Slot(slot) = location {
                    slots.push(slot);
                }
            }
            locations.push((location, flag));
        }
        for (name, node) in first {
            self.s.check_name(name, *node);
        }
        let skip = if arrive { first.len() as u8 } else { 0 };
        self.unbind(first_reg + skip, self.next, &slots);
        for (binding, (location, flag)) in list.iter().zip(locations) {
            // The outermost scope hides nothing.
            if from > 0 && self.vars.all_of(binding.name).len() >= SUMMARY_AFTER {
                self.summarize(binding.name, scope);
            }
            let id = self.declare(binding.name, location, flag, scope);
            self.on_expect_writes(id, binding.writes);
        }
        if arrive {
            for (name, _) in first {
                if let Some(var) = self.vars.in_scope(name, scope) {
                    self.vars.set_bound(var);
                }
            }
        }
        let vars = from..self.vars.declared();
        Opened { vars, mark, bound }
    }

    /// Opens a scope for the names of a loop only: its steps bind all others in the outer scope
    /// (D63).
    pub(super) fn open_loop(&mut self, names: &[(&'a [u8], NodeId)]) -> Opened {
        let mark = self.mark();
        let bound = self.vars.mark();
        let around = self.scope();
        let scope = self.push_scope();
        self.vars.is_loop(scope, around);
        let from = self.vars.declared();
        for (name, node) in names {
            self.s.check_name(name, *node);
            let location = self.new_location();
            let sealed = self.s.sealed.contains(node);
            let flag = sealed.then(|| self.new_location());
            if self.vars.all_of(name).len() >= SUMMARY_AFTER {
                self.summarize(name, scope);
            }
            self.declare(name, location, flag, scope);
        }
        let vars = from..self.vars.declared();
        Opened { vars, mark, bound }
    }

    /// Frees the names of a loop for its next iteration, also if the last one made them constants.
    pub(super) fn free_names_of_loop(&mut self, names: &[(&'a [u8], NodeId)]) {
        for (name, _) in names {
            let id = self.vars.in_scope(name, self.scope());
            match id.and_then(|id| self.vars.var(id).const_flag) {
                Some(Location::Reg(r)) => self.unbind(r, r + 1, &[]),
                Some(Location::Slot(slot)) => self.unbind(0, 0, &[slot]),
                None => {}
            }
        }
    }

    /// Stores the outer meaning of a name for the scope just opened: its value, and whether it is a
    /// constant.
    fn summarize(&mut self, name: &'a [u8], scope: u32) {
        let outer = self.vars.all_of(name);
        let flags: Vec<Location> = outer
            .iter()
            .filter_map(|id| self.vars.var(*id).const_flag)
            .collect();
        let chain = self.vars.chain(name);
        let bound = chain.last().is_some_and(|id| self.vars.is_bound(*id));
        let location = self.kept(|l, dst| l.overlay_chain(dst, &chain));
        let const_flag = (!flags.is_empty()).then(|| {
            self.kept(|l, dst| {
                for flag in flags {
                    let mark = l.mark();
                    let src = l.location_reg(flag);
                    l.e.emit(Op::MovBound { dst, src });
                    l.release(mark);
                }
            })
        });
        let id = self.vars.declare(
            name,
            Var {
                location,
                const_flag,
                scope,
                summary: true,
            },
        );
        if bound {
            self.vars.set_bound(id);
        }
    }

    /// A location that `fill` initialises through a register that is unbound at first.
    fn kept(&mut self, fill: impl FnOnce(&mut Self, Reg)) -> Location {
        let location = self.new_location();
        let mark = self.mark();
        let dst = match location {
            Location::Reg(r) => Reg(r),
            Location::Slot(_) => self.temp(),
        };
        self.e.emit(Op::Unbind {
            base: dst,
            n: Count(1),
        });
        fill(self, dst);
        if let Location::Slot(slot) = location {
            self.e.emit(Op::SlotStore {
                src: dst,
                slot: Slot(slot),
            });
        }
        self.release(mark);
        location
    }

    fn unbind(&mut self, from: u8, to: u8, slots: &[u32]) {
        if to > from {
            self.e.emit(Op::Unbind {
                base: Reg(from),
                n: Count(to - from),
            });
        }
        if !slots.is_empty() {
            let mark = self.mark();
            let r = self.temp();
            self.e.emit(Op::Unbind {
                base: r,
                n: Count(1),
            });
            for slot in slots {
                self.e.emit(Op::SlotStore {
                    src: r,
                    slot: Slot(*slot),
                });
            }
            self.release(mark);
        }
    }

    /// Closes the innermost scope.
    pub(super) fn close_scope(&mut self, opened: Opened) {
        self.vars.forget(opened.vars);
        self.scopes.pop();
        // Only the scope's own variables became bound inside it.
        self.vars.undo(opened.bound);
        self.release(opened.mark);
    }
}

/// The names of a loop.
struct LoopNames<'a> {
    names: Vec<(&'a [u8], NodeId)>,
    /// Index of the enclosing loop.
    around: Option<usize>,
}

/// Finds the names that a list of steps binds in its own scope.
struct Collector<'l, 'a> {
    doc: &'a Document,
    s: &'l Shared<'a>,
    /// The code budget, which also knows whether compilation was cancelled.
    room: &'l mut Room<'a>,
    /// Names of loops that become constants.
    sealed: HashSet<NodeId>,
    /// Positions of names in a long list, hashed with a random key.
    index: HashMap<&'a [u8], usize>,
    list: Vec<Binding<'a>>,
    loops: Vec<LoopNames<'a>>,
    /// The innermost loop around the current list.
    inside: Option<usize>,
}

impl<'a> Collector<'_, 'a> {
    fn add(&mut self, name: &'a [u8], constant: bool) {
        let mut inside = self.inside;
        while let Some(found) = inside.and_then(|i| self.loops.get(i)) {
            if let Some((_, node)) = found.names.iter().find(|(own, _)| *own == name) {
                if constant {
                    self.sealed.insert(*node);
                }
                return;
            }
            inside = found.around;
        }
        match self.place(name) {
            Some(i) => {
                self.list[i].constant |= constant;
                self.list[i].writes += 1;
            }
            None => {
                let writes = 1;
                self.list.push(Binding {
                    name,
                    constant,
                    writes,
                });
            }
        }
    }

    /// The position of a name in the list; a short list is searched linearly.
    fn place(&mut self, name: &[u8]) -> Option<usize> {
        if self.list.len() <= FEW_NAMES {
            return self.list.iter().position(|b| same_name(b.name, name));
        }
        for at in self.index.len()..self.list.len() {
            self.index.insert(self.list[at].name, at);
        }
        self.index.get(name).copied()
    }

    fn steps(&mut self, list: NodeId) {
        let mut work: Vec<(NodeId, Option<usize>)> = vec![(list, None)];
        while let Some((list, inside)) = work.pop() {
            self.inside = inside;
            for step in self.doc.elements(list) {
                if !self.room.spend(0, None) {
                    return;
                }
                self.step(step, &mut work);
            }
        }
    }

    fn step(&mut self, step: NodeId, work: &mut Vec<(NodeId, Option<usize>)>) {
        let doc = self.doc;
        if doc.kind(step) != Kind::Object {
            return;
        }
        if let Some(result) = doc.get(step, "result").filter(|n| truthy(doc, *n)) {
            let constant = doc.get(step, "resultConst").is_some_and(|n| truthy(doc, n));
            self.add(key_text(doc, Some(result), self.s.arena), constant);
        }
        let op = doc
            .get(step, "op")
            .and_then(|n| doc.str(n))
            .and_then(|s| str::from_utf8(s).ok());
        let form = op
            .and_then(|op| self.s.signature(op))
            .and_then(|sig| sig.form);
        let key = |name: &str| key_text(doc, doc.get(step, name), self.s.arena);
        let inside = self.inside;
        let body = |name: &str| doc.get(step, name).map(|list| (list, inside));
        match form {
            Some(Form::VarSet) => self.add(key("key"), false),
            Some(Form::ConstSet) => self.add(key("key"), true),
            Some(Form::VarsImport) => {
                for (name, _) in import_names(doc, step, self.s.arena) {
                    self.add(name, false);
                }
            }
            Some(Form::VarsLet) => {
                for (name, _) in doc.members(step) {
                    if !matches!(name, b"op" | b"result") {
                        self.add(name, false);
                    }
                }
            }
            Some(Form::Seq) => work.extend(body("steps")),
            Some(Form::If) => {
                work.extend(body("then"));
                work.extend(body("else"));
            }
            Some(Form::While) => work.extend(body("body")),
            Some(Form::ForEach) => {
                if let Some(steps) = doc.get(step, "steps") {
                    let names = loop_names(doc, step, self.s.arena);
                    let around = self.inside;
                    self.loops.push(LoopNames { names, around });
                    work.push((steps, Some(self.loops.len() - 1)));
                }
            }
            Some(Form::Try) => {
                work.extend(body("try"));
                if let Some(catch) = doc.get(step, "catch").filter(|n| truthy(doc, *n)) {
                    work.push((catch, inside));
                    let param = catch_param(doc, step, self.s.arena);
                    self.add(param, false);
                    self.add(b"errorOp", false);
                }
            }
            _ => {}
        }
    }
}

/// The keys of a step that are not inputs.
pub(super) fn is_metadata(key: &[u8]) -> bool {
    matches!(key, b"op" | b"result" | b"resultConst")
}

/// The names of a `forEach`, each with the node that declares it: the item, the index.
pub(super) fn loop_names<'a>(
    doc: &'a Document,
    step: NodeId,
    arena: &'a Bump,
) -> Vec<(&'a [u8], NodeId)> {
    let item = doc.get(step, "as");
    let mut names = vec![(key_text(doc, item, arena), item.unwrap_or(step))];
    if let Some((index, node)) = index_name(doc, step, arena) {
        // The index is bound after the item, so it wins a clash of names.
        names.retain(|(name, _)| *name != index);
        names.push((index, node));
    }
    names
}

/// The name of the loop index, if the step declares one.
pub(super) fn index_name<'a>(
    doc: &'a Document,
    step: NodeId,
    arena: &'a Bump,
) -> Option<(&'a [u8], NodeId)> {
    let node = doc.get(step, "index").filter(|n| truthy(doc, *n))?;
    Some((key_text(doc, Some(node), arena), node))
}

/// The name that a `catch` binds the message to.
pub(super) fn catch_param<'a>(doc: &'a Document, step: NodeId, arena: &'a Bump) -> &'a [u8] {
    match doc.get(step, "catchParam").filter(|n| truthy(doc, *n)) {
        Some(node) => key_text(doc, Some(node), arena),
        None => b"error",
    }
}

/// The names that `varsImport` binds, each with the argument it reads.
pub(super) fn import_names<'a>(
    doc: &'a Document,
    step: NodeId,
    arena: &'a Bump,
) -> Vec<(&'a [u8], &'a [u8])> {
    let Some(keys) = doc.get(step, "keys") else {
        return Vec::new();
    };
    match doc.kind(keys) {
        Kind::Array => doc
            .elements(keys)
            .map(|n| key_text(doc, Some(n), arena))
            .map(|name| (name, name))
            .collect(),
        Kind::Object => doc
            .members(keys)
            .map(|(name, n)| (name, key_text(doc, Some(n), arena)))
            .collect(),
        _ => Vec::new(),
    }
}
