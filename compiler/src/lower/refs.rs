//! Names: reading and writing variables, arguments and builtins.

use super::{Held, Lower};
use crate::vars::{VarId, VarList};
use a99_core::builtins::{self, Constant, Global};
use a99_core::json::NodeId;
use a99_core::program::{
    ArgFallback, ArgIdx, ArgKey, Const, Count, Location, Op, Reg, Slot, Target,
};
use a99_core::text::wtf8_to_string_lossy;

/// Number of the first namespace among builtin values, as in the VM.
const NAMESPACE: u16 = 0x8000;

/// Kind of the argument key that reads all arguments.
const ALL: u8 = 4;

impl<'a> Lower<'_, 'a> {
    /// The register of a variable; a variable in a slot is loaded.
    fn var_reg(&mut self, id: VarId) -> Reg {
        match self.vars.var(id).location {
            Location::Reg(r) => Reg(r),
            Location::Slot(slot) => {
                let r = self.temp();
                self.e.emit(Op::SlotLoad {
                    dst: r,
                    slot: Slot(slot),
                });
                r
            }
        }
    }

    /// Writes a variable.
    pub(super) fn write_var(&mut self, id: VarId, src: Reg) {
        match self.vars.var(id).location {
            Location::Reg(r) => self.mov(Reg(r), src),
            Location::Slot(slot) => self.e.emit(Op::SlotStore {
                src,
                slot: Slot(slot),
            }),
        }
    }

    /// Puts the innermost bound value of a chain of variables into `dst`, which already holds the
    /// fallback.
    pub(super) fn overlay_chain(&mut self, dst: Reg, chain: &[VarId]) {
        for id in chain.iter().rev() {
            let mark = self.mark();
            let src = self.var_reg(*id);
            if self.vars.is_bound(*id) {
                self.mov(dst, src);
            } else {
                self.e.emit(Op::MovBound { dst, src });
            }
            self.release(mark);
        }
    }

    /// The value of a variable, or what `fallback` loads where none is bound.
    fn chained(&mut self, chain: &[VarId], fallback: impl FnOnce(&mut Self, Reg)) -> Reg {
        self.on_read(chain);
        if let [only] = chain
            && self.vars.is_bound(*only)
        {
            return self.var_reg(*only);
        }
        let dst = self.temp();
        if !chain.last().is_some_and(|id| self.vars.is_bound(*id)) {
            fallback(self, dst);
        }
        self.overlay_chain(dst, chain);
        dst
    }

    /// A bare name in a value position: the variable, else its own text
    /// (language section 1.4).
    pub(super) fn name_or_text(&mut self, name: &[u8]) -> Reg {
        let chain = self.vars.chain(name);
        if chain.is_empty() {
            let range = self.s.pool.range(name);
            return self.const_reg(Const::Text(range));
        }
        self.chained(&chain, |l, dst| l.load_text(dst, name))
    }

    /// A variable or `undefined`; used by `return` and inherited results.
    pub(super) fn name_or_undefined(&mut self, name: &[u8]) -> Reg {
        let chain = self.vars.chain(name);
        if chain.is_empty() {
            return self.const_reg(Const::Undefined);
        }
        self.chained(&chain, |l, dst| l.load_const(dst, Const::Undefined))
    }

    /// A string in a value position (language section 1.4, step 3; D15).
    pub(super) fn string_value(&mut self, text: &'a [u8]) -> Reg {
        if let Some(path) = text.strip_prefix(b"args.") {
            return self.args_string(text, path);
        }
        if text.contains(&b'.') {
            return self.dotted(text);
        }
        self.name_or_text(text)
    }

    fn args_string(&mut self, text: &'a [u8], path: &'a [u8]) -> Reg {
        if !self.vars.chain(b"args").is_empty() {
            return self.dotted(text);
        }
        self.on_argument(path);
        self.arg(path, ArgFallback::Undefined)
    }

    /// The value of a path whose root has no value: its text, or the argument that it names unless
    /// a variable `args` hides the arguments.
    fn without_root(&mut self, dst: Reg, text: &'a [u8], root: &[VarId]) {
        let path = text.strip_prefix(b"args.");
        let bound = root.last().is_some_and(|id| self.vars.is_bound(*id));
        let Some(path) = path.filter(|_| !bound) else {
            let whole = self.name_or_text(text);
            return self.mov(dst, whole);
        };
        let mark = self.mark();
        // Falsy where `args` is bound to `undefined`; another value replaces `dst` afterwards.
        let free = self.chained(root, |l, dst| l.load_const(dst, Const::Bool(true)));
        let (hidden, end) = (self.e.label(), self.e.label());
        self.e.jump(
            Op::JFalse {
                src: free,
                to: Target(0),
            },
            hidden,
        );
        let value = self.arg(path, ArgFallback::Undefined);
        self.mov(dst, value);
        self.e.jump(Op::Jmp { to: Target(0) }, end);
        self.e.bind(hidden);
        let whole = self.name_or_text(text);
        self.mov(dst, whole);
        self.e.bind(end);
        self.release(mark);
    }

    fn root_or_unbound(&mut self, chain: &[VarId]) -> Reg {
        self.chained(chain, |l, dst| {
            l.e.emit(Op::Unbind {
                base: dst,
                n: Count(1),
            })
        })
    }

    /// Reads a path below a root, if the root has a value. Forbidden names occur in version 4 only,
    /// where own members are readable under any name (D68).
    fn path_of(&mut self, dst: Reg, root: Reg, segments: &[&[u8]]) {
        let own = segments.iter().any(|s| builtins::is_forbidden(s));
        let path = self.s.path(segments);
        self.e.emit(match own {
            true => Op::OwnPath { dst, root, path },
            false => Op::Path { dst, root, path },
        });
    }

    fn forbidden_path(&mut self, name: &[u8]) -> Reg {
        self.throw_forbidden(name);
        let dst = self.temp();
        self.load_const(dst, Const::Undefined);
        dst
    }

    fn dotted(&mut self, text: &'a [u8]) -> Reg {
        let segments: Vec<&[u8]> = text.split(|b| *b == b'.').collect();
        let root_chain = self.vars.chain(segments[0]);
        let bad = segments.iter().find(|s| builtins::is_forbidden(s));
        if let Some(bad) = bad.filter(|_| !self.s.version_4 || root_chain.is_empty()) {
            return self.forbidden_path(bad);
        }
        if root_chain.is_empty() {
            return self.name_or_text(text);
        }
        let dst = self.temp();
        let mark = self.mark();
        self.without_root(dst, text, &root_chain);
        let root = self.root_or_unbound(&root_chain);
        self.path_of(dst, root, &segments[1..]);
        if self.caught.contains(&segments[0]) && segments[1..] == [b"message".as_slice()] {
            self.message_of(dst, root);
        }
        self.release(mark);
        dst
    }

    /// Reads `message` of a caught error. A `catch` binds the text of the error; its `message` is
    /// that text, as programs of both older generations expect.
    fn message_of(&mut self, dst: Reg, caught: Reg) {
        let other = self.e.label();
        let mark = self.mark();
        let kind = self.temp();
        self.e.emit(Op::Typeof {
            dst: kind,
            src: caught,
        });
        let text = self.pooled_text(b"string");
        self.e.jump(
            Op::JSNe {
                l: kind,
                r: text,
                to: Target(0),
            },
            other,
        );
        self.mov(dst, caught);
        self.e.bind(other);
        self.release(mark);
    }

    fn pooled_text(&mut self, text: &[u8]) -> Reg {
        let range = self.s.pool.range(text);
        self.const_reg(Const::Text(range))
    }

    /// Reads an argument by flat key or dotted path (D15).
    pub(super) fn arg(&mut self, key: &[u8], fallback: ArgFallback) -> Reg {
        let dst = self.temp();
        self.load_arg(dst, key, true, fallback);
        dst
    }

    /// Reads an argument by flat key only (`varsImport`).
    pub(super) fn flat_arg(&mut self, key: &[u8]) -> Reg {
        let dst = self.temp();
        self.load_arg(dst, key, false, ArgFallback::Undefined);
        dst
    }

    /// Reads all arguments as one value (D118).
    pub(super) fn all_args(&mut self) -> Reg {
        let dst = self.temp();
        let flat = self.s.pool.range(b"");
        let arg = match self.s.arg_ids.get(&(flat, ALL)) {
            Some(arg) => *arg,
            None => {
                let arg = self.s.args.len() as u32;
                self.s.args.push(ArgKey {
                    flat,
                    path: Some(Box::default()),
                    fallback: ArgFallback::Undefined,
                });
                self.s.arg_ids.insert((flat, ALL), arg);
                arg
            }
        };
        self.e.emit(Op::LoadArg {
            dst,
            arg: ArgIdx(arg),
        });
        dst
    }

    fn load_arg(&mut self, dst: Reg, key: &[u8], dotted: bool, fallback: ArgFallback) {
        let flat = self.s.pool.range(key);
        let kind = match fallback {
            ArgFallback::Undefined => u8::from(dotted),
            ArgFallback::Unbound => 2,
            ArgFallback::Builtin(_) | ArgFallback::Const(_) => 3,
        };
        let arg = match self.s.arg_ids.get(&(flat, kind)) {
            Some(arg) => *arg,
            None => {
                let path = (dotted && key.contains(&b'.')).then(|| {
                    key.split(|b| *b == b'.')
                        .map(|s| self.s.pool.range(s))
                        .collect()
                });
                let arg = self.s.args.len() as u32;
                self.s.args.push(ArgKey {
                    flat,
                    path,
                    fallback,
                });
                self.s.arg_ids.insert((flat, kind), arg);
                arg
            }
        };
        self.e.emit(Op::LoadArg {
            dst,
            arg: ArgIdx(arg),
        });
    }

    /// Evaluates an identifier of an expression: state, then arguments, then builtins (language
    /// section 3.2).
    pub(super) fn ident(&mut self, name: &'a [u8]) -> Reg {
        if let Some(held) = self.overlay.get(name) {
            return match held {
                Held::Reg(r) => r,
                held @ Held::Slot(_) => self.take(held),
            };
        }
        if self.own_scope_only {
            let own = self.vars.in_scope(name, self.scope());
            let chain = VarList::from_iter(own);
            if chain.is_empty() {
                self.on_not_visible(name);
                return self.const_reg(Const::Undefined);
            }
            self.on_not_yet(name);
            return self.chained(&chain, |l, dst| l.load_const(dst, Const::Undefined));
        }
        let chain = self.vars.chain(name);
        self.chained(&chain, |l, dst| l.outer_ident(dst, name))
    }

    fn outer_ident(&mut self, dst: Reg, name: &[u8]) {
        self.on_unbound(name);
        let global = str::from_utf8(name).ok().and_then(builtins::global);
        let fallback = match global {
            None => ArgFallback::Undefined,
            Some(Global::Constant(c)) => {
                let value = match c {
                    Constant::Undefined => Const::Undefined,
                    Constant::Null => Const::Null,
                    Constant::Number(n) => Const::Number(n),
                };
                ArgFallback::Const(self.s.pool.constant(value).0)
            }
            Some(Global::Namespace(n)) => ArgFallback::Builtin(NAMESPACE | u16::from(n)),
            Some(Global::Function(f)) => ArgFallback::Builtin(f),
            Some(Global::Refused(_)) => ArgFallback::Unbound,
        };
        self.load_arg(dst, name, false, fallback);
        if let Some(Global::Refused(text)) = global {
            let k = self.s.pool.text_const(text.as_bytes());
            self.e.emit(Op::ThrowUnbound { src: dst, k });
        }
    }

    // ---- binding ----

    /// Binds a name in the innermost scope after checking for constants
    /// (D31). `src` holds the value.
    pub(super) fn bind(&mut self, name: &[u8], node: NodeId, src: Reg) {
        if !self.s.check_name(name, node) {
            return;
        }
        self.check_const(name);
        if let Some(id) = self.vars.in_scope(name, self.scope()) {
            self.write_var(id, src);
            self.vars.set_bound(id);
        }
    }

    /// A register that a new value of this name may be computed into directly.
    pub(super) fn direct_location(&mut self, name: &[u8]) -> Option<Reg> {
        if self.may_be_const(name) {
            return None;
        }
        match self
            .vars
            .var(self.vars.in_scope(name, self.scope())?)
            .location
        {
            Location::Reg(r) => Some(Reg(r)),
            Location::Slot(_) => None,
        }
    }

    /// Whether a scope could have made the name a constant.
    fn may_be_const(&self, name: &[u8]) -> bool {
        let mut all = self.vars.seen_of(name);
        all.any(|id| self.vars.var(id).const_flag.is_some())
    }

    /// Fails at run time if the name is a constant of this or an outer scope.
    pub(super) fn check_const(&mut self, name: &[u8]) {
        if !self.may_be_const(name) {
            return;
        }
        for id in self.vars.all_of(name) {
            if let Some(flag) = self.vars.var(id).const_flag {
                let mark = self.mark();
                let flag = self.location_reg(flag);
                let name = self.s.pool.text_const(name);
                self.e.emit(Op::CheckConst { flag, name });
                self.release(mark);
            }
        }
    }

    pub(super) fn location_reg(&mut self, location: Location) -> Reg {
        match location {
            Location::Reg(r) => Reg(r),
            Location::Slot(slot) => {
                let r = self.temp();
                self.e.emit(Op::SlotLoad {
                    dst: r,
                    slot: Slot(slot),
                });
                r
            }
        }
    }

    /// Fails at run time if the name is bound anywhere in the chain.
    pub(super) fn check_free(&mut self, name: &[u8]) {
        for id in self.vars.all_of(name) {
            let mark = self.mark();
            let src = self.var_reg(id);
            let name = self.s.pool.text_const(name);
            self.e.emit(Op::CheckFree { src, name });
            self.release(mark);
        }
    }

    /// Makes a name of the innermost scope a constant from here on.
    pub(super) fn make_const(&mut self, name: &[u8]) {
        let Some(id) = self.vars.in_scope(name, self.scope()) else {
            return;
        };
        if let Some(flag) = self.vars.var(id).const_flag {
            self.set_flag(flag);
        }
    }

    /// Sets the flag of a constant.
    pub(super) fn set_flag(&mut self, flag: Location) {
        let mark = self.mark();
        match flag {
            Location::Reg(r) => self.load_const(Reg(r), Const::Bool(true)),
            Location::Slot(slot) => {
                let r = self.temp();
                self.load_const(r, Const::Bool(true));
                self.e.emit(Op::SlotStore {
                    src: r,
                    slot: Slot(slot),
                });
            }
        }
        self.release(mark);
    }

    /// `result`: binds a step's value unless it is `undefined` (D12), then
    /// `resultConst`.
    pub(super) fn bind_result(&mut self, step: NodeId, value: Reg, may_be_undefined: bool) {
        let doc = self.s.doc;
        let Some(node) = doc
            .get(step, "result")
            .filter(|n| crate::ir::truthy(doc, *n))
        else {
            return;
        };
        let name = crate::ir::key_text(doc, Some(node), self.s.arena);
        if !self.s.check_name(name, node) {
            return;
        }
        let constant = doc
            .get(step, "resultConst")
            .is_some_and(|n| crate::ir::truthy(doc, n));
        // `undefined` binds nothing, so it violates no constant and creates none.
        let nothing = (may_be_undefined && (constant || self.may_be_const(name))).then(|| {
            let nothing = self.e.label();
            let mark = self.mark();
            let r = self.const_reg(Const::Undefined);
            let test = Op::JSEq {
                l: value,
                r,
                to: Target(0),
            };
            self.e.jump(test, nothing);
            self.release(mark);
            nothing
        });
        self.on_may_bind(name, node);
        self.check_const(name);
        if let Some(id) = self.vars.in_scope(name, self.scope()) {
            self.write_result(id, value, may_be_undefined);
            self.may_be_set(name);
            self.on_bound_result(step, name, node, may_be_undefined);
            if constant {
                self.make_const(name);
                self.on_constant(id);
            }
        }
        if let Some(nothing) = nothing {
            self.e.bind(nothing);
        }
    }

    /// Records for the pass that a name of the innermost scope may be bound from here on.
    pub(super) fn may_be_set(&mut self, name: &[u8]) {
        if self.is_watched()
            && let Some(id) = self.vars.in_scope(name, self.scope())
        {
            self.vars.set_maybe(id);
        }
    }

    fn write_result(&mut self, id: VarId, value: Reg, may_be_undefined: bool) {
        if may_be_undefined {
            match self.vars.var(id).location {
                Location::Reg(dst) => self.e.emit(Op::MovDefined {
                    dst: Reg(dst),
                    src: value,
                }),
                location @ Location::Slot(slot) => {
                    let mark = self.mark();
                    let dst = self.location_reg(location);
                    self.e.emit(Op::MovDefined { dst, src: value });
                    self.e.emit(Op::SlotStore {
                        src: dst,
                        slot: Slot(slot),
                    });
                    self.release(mark);
                }
            }
        } else {
            self.write_var(id, value);
            self.vars.set_bound(id);
        }
    }

    /// The name as text, for messages.
    pub(super) fn shown(name: &[u8]) -> String {
        wtf8_to_string_lossy(name).into_owned()
    }
}
