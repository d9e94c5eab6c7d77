//! Expressions to code (language section 3).
//!
//! A node's charge comes before its operands' charges; the instruction that does the work comes
//! after its operands. `expr` may return the register of a variable, so callers must not write
//! to it.

use super::{Held, Lower, MAX_CALL_ARGS, Mark};
use crate::expr::{BinOp, LogOp, UnOp};
use crate::ir::{Ir, IrKind, Lit, Warn};
use a99_core::builtins;
use a99_core::costs::object_nodes;
use a99_core::diag::codes;
use a99_core::program::{BuiltinIdx, ChargeKind, Const, Count, MethodIdx, Op, Reg, Target};

impl<'a> Lower<'_, 'a> {
    fn pay(&mut self, ir: &Ir<'a>) {
        self.e.at = Some((ir.at.node, ir.at.inner));
        if ir.priced && !self.text_nodes {
            self.e.charge(ChargeKind::Nodes(1));
        } else if ir.priced || !matches!(ir.kind, IrKind::Lit(Lit::Undefined)) {
            // The flat model has no price for nodes without a tag.
            self.e.charge(ChargeKind::TextNodes(1));
        }
    }

    /// Charges for a node; the caller emits its operands next.
    pub(super) fn enter(&mut self, ir: &Ir<'a>) {
        self.pay(ir);
    }

    /// Evaluates an expression into some register.
    pub(super) fn expr(&mut self, ir: &Ir<'a>) -> Reg {
        match ir.kind {
            IrKind::Lit(lit) => {
                self.pay(ir);
                let value = self.lit(lit);
                self.const_reg(value)
            }
            IrKind::Ident(name) => {
                self.pay(ir);
                self.ident(name)
            }
            IrKind::Logical(..) | IrKind::Conditional(..) if self.is_crowded() => {
                self.branches_via_slot(ir)
            }
            IrKind::Logical(..) | IrKind::Conditional(..) => {
                let dst = self.temp();
                self.expr_to(ir, dst);
                dst
            }
            _ => {
                // Only the last instruction writes the result, so operands may
                // use its register: nesting costs no registers.
                let dst = self.peek();
                self.expr_to(ir, dst);
                self.temp()
            }
        }
    }

    /// Evaluates into `dst` if a single last instruction writes the value, else into another
    /// register.
    pub(super) fn expr_or_to(&mut self, ir: &Ir<'a>, dst: Reg) -> Reg {
        if matches!(ir.kind, IrKind::Logical(..) | IrKind::Conditional(..)) && dst == Reg(self.next)
        {
            return self.expr(ir);
        }
        self.expr_to(ir, dst);
        dst
    }

    /// Evaluates an expression whose value several paths write, held in a slot until then.
    fn branches_via_slot(&mut self, ir: &Ir<'a>) -> Reg {
        let slot = self.slot();
        let end = self.e.label();
        self.pay(ir);
        let store = |l: &mut Self, ir: &Ir<'a>| {
            let mark = l.mark();
            let src = l.expr(ir);
            l.e.emit(Op::SlotStore { src, slot });
            (src, mark)
        };
        match ir.kind {
            IrKind::Logical(op, left, right) => {
                let (src, mark) = store(self, left);
                self.e.jump(leaves(op, src), end);
                self.release(mark);
                let (_, mark) = store(self, right);
                self.release(mark);
            }
            IrKind::Conditional(test, consequent, alternate) => {
                let other = self.e.label();
                self.jump_unless(test, other);
                let (_, mark) = store(self, consequent);
                self.release(mark);
                self.e.jump(Op::Jmp { to: Target(0) }, end);
                self.e.bind(other);
                let (_, mark) = store(self, alternate);
                self.release(mark);
            }
            _ => {}
        }
        self.e.bind(end);
        let dst = self.temp();
        self.e.emit(Op::SlotLoad { dst, slot });
        dst
    }

    /// Evaluates an expression into a temporary that is held while others are computed.
    pub(super) fn held(&mut self, ir: &Ir<'a>) -> Held {
        let mark = self.mark();
        let r = self.expr(ir);
        self.hold(r, mark)
    }

    pub(super) fn lit(&mut self, lit: Lit<'_>) -> Const {
        match lit {
            Lit::Undefined => Const::Undefined,
            Lit::Null => Const::Null,
            Lit::Bool(b) => Const::Bool(b),
            Lit::Number(n) => Const::Number(n),
            Lit::Text(t) => Const::Text(self.s.pool.range(t)),
        }
    }

    /// Computes an expression into `dst`, which only its last instruction
    /// writes unless `dst` is a temporary of this expression.
    pub(super) fn expr_to(&mut self, ir: &Ir<'a>, dst: Reg) {
        let mark = self.mark();
        match ir.kind {
            IrKind::Lit(lit) => {
                self.pay(ir);
                let value = self.lit(lit);
                self.load_const(dst, value);
            }
            IrKind::Data(node) => {
                self.pay(ir);
                self.load_data(node, dst);
            }
            IrKind::Ident(name) => {
                self.pay(ir);
                let r = self.ident(name);
                self.mov(dst, r);
            }
            IrKind::Member {
                object,
                property,
                optional,
            } => {
                self.pay(ir);
                self.member(dst, object, property, optional, ir);
            }
            IrKind::Index {
                object,
                index,
                optional,
            } => {
                self.pay(ir);
                self.index(dst, object, index, optional, ir);
            }
            IrKind::Unary(op, arg) => {
                self.pay(ir);
                let src = self.expr(arg);
                self.place(ir);
                self.e.emit(match op {
                    UnOp::Not => Op::Not { dst, src },
                    UnOp::Neg => Op::Neg { dst, src },
                    UnOp::Plus => Op::Plus { dst, src },
                    UnOp::Typeof => Op::Typeof { dst, src },
                });
            }
            IrKind::Binary(op, left, right) => {
                self.pay(ir);
                let (l, r) = self.operands(left, right);
                self.place(ir);
                self.e.emit(binary(op, dst, l, r));
            }
            IrKind::Logical(op, left, right) => {
                self.pay(ir);
                self.logical(dst, op, left, right, mark);
            }
            IrKind::Conditional(test, consequent, alternate) => {
                self.pay(ir);
                let (other, end) = (self.e.label(), self.e.label());
                self.jump_unless(test, other);
                self.expr_to(consequent, dst);
                self.e.jump(Op::Jmp { to: Target(0) }, end);
                self.e.bind(other);
                self.expr_to(alternate, dst);
                self.e.bind(end);
            }
            IrKind::Array(items) => {
                self.pay(ir);
                let arr = self.array(items);
                self.mov(dst, arr);
            }
            IrKind::Object(entries) => {
                self.pay(ir);
                self.charge_data(object_nodes(entries.len()));
                self.object_of(dst, entries);
            }
            IrKind::Context(path) => {
                self.pay(ir);
                self.context_to(path, dst);
            }
            IrKind::Call { callee, args } => {
                self.pay(ir);
                self.call(dst, callee, args, ir);
            }
            IrKind::Method {
                object,
                name,
                args,
                optional,
            } => {
                self.pay(ir);
                self.method(dst, object, name, args, optional, ir);
            }
            IrKind::Fail {
                operands,
                message,
                warn,
            } => {
                self.pay(ir);
                for operand in operands {
                    let mark = self.mark();
                    self.expr(operand);
                    self.release(mark);
                }
                self.warn_at(
                    ir,
                    if warn == Warn::Text {
                        codes::BAD_MATH
                    } else {
                        codes::UNKNOWN_EXPRESSION
                    },
                    message,
                );
                self.place(ir);
                self.throw(message);
                self.load_const(dst, Const::Undefined);
            }
        }
        self.release(mark);
    }

    pub(super) fn place(&mut self, ir: &Ir<'a>) {
        self.e.at = Some((ir.at.node, ir.at.inner));
    }

    pub(super) fn warn_at(&mut self, ir: &Ir<'a>, code: &'static str, message: &str) {
        let offending = self.s.written_at(ir.at.node, ir.at.inner);
        let inner = ir.at.inner.map(|(a, b)| a..b);
        let mut diag = self
            .s
            .warn(code, ir.at.node, message.to_owned())
            .with_offending(offending)
            .with_inner(inner);
        if code == codes::UNKNOWN_EXPRESSION {
            let doc = self.s.doc;
            let tag = doc.get(ir.at.node, "$expr").and_then(|tag| doc.str(tag));
            let tag = Self::shown(tag.unwrap_or_default());
            let op = doc
                .get(ir.at.node, "op")
                .filter(|_| message.contains("operator"));
            let written = op.and_then(|op| doc.str(op)).map(Self::shown);
            diag = match written.as_deref().and_then(crate::advice::operator_help) {
                Some(help) => diag.with_help(help),
                None => match self.help_for_tag(&tag) {
                    Some(help) => diag.with_help(help),
                    None => diag.with_help(crate::advice::node_help(&tag)),
                },
            };
            if let (Some(op), Some(written)) = (op, written) {
                diag = diag
                    .with_span(doc.span(op))
                    .with_offending(a99_core::diag::excerpt(&written));
            }
        }
        if code == codes::BAD_MATH
            && let Some(text) = self.s.doc.str(ir.at.node)
            && let Some(help) = crate::advice::math_help(&Self::shown(text))
        {
            diag = diag.with_help(help);
        }
        self.s.push(diag);
    }

    /// Warns of an unknown function or method and suggests a replacement.
    fn warn_callee(&mut self, ir: &Ir<'a>, message: &str, name: &str) {
        let inner = ir.at.inner.map(|(a, b)| a..b);
        let known = |(space, name)| builtins::function(space, name).is_some();
        let help = match crate::advice::callee_help(name) {
            Some(help) => Some(help.to_owned()),
            None if name.rsplit_once('.').is_some_and(known) => {
                let (space, method) = name.rsplit_once('.').unwrap_or_default();
                Some(format!(
                    "write `{{\"$expr\": \"methodCall\", \"object\": {{\"$expr\": \"ident\", \"name\": \
                     \"{space}\"}}, \"method\": \"{method}\", \"arguments\": [...]}}`"
                ))
            }
            None if message.starts_with("Unknown function")
                && builtins::method_id(name).is_some() =>
            {
                Some(format!(
                    "it is a method of a value: `{{\"$expr\": \"methodCall\", \"object\": ..., \"method\": \
                     \"{name}\", \"arguments\": [...]}}`"
                ))
            }
            None => {
                let methods = builtins::METHODS.iter().map(|method| method.name);
                let functions = builtins::FUNCTIONS.iter().map(|function| function.name);
                let near = self.s.nearest(name, methods.chain(functions));
                near.map(|near| format!("did you mean `{near}`?"))
            }
        };
        let mut diag = self
            .s
            .warn(codes::UNKNOWN_FUNCTION, ir.at.node, message.to_owned())
            .with_offending(a99_core::diag::excerpt(name))
            .with_inner(inner);
        if let Some(help) = help {
            diag = diag.with_help(help);
        }
        // The name is the faulty part of a node.
        let doc = self.s.doc;
        let named = doc
            .get(ir.at.node, "method")
            .or_else(|| doc.get(ir.at.node, "callee"));
        if let Some(named) = named.filter(|_| ir.at.inner.is_none() && !doc.has_origin()) {
            diag = diag.with_span(doc.span(named));
        }
        self.s.push(diag);
    }

    /// Evaluates two operands into registers; the first is held while the second is computed.
    pub(super) fn operands(&mut self, left: &Ir<'a>, right: &Ir<'a>) -> (Reg, Reg) {
        let l = self.held(left);
        let r = self.expr(right);
        (self.take(l), r)
    }

    fn logical(&mut self, dst: Reg, op: LogOp, left: &Ir<'a>, right: &Ir<'a>, mark: Mark) {
        // `dst` may be a variable that the right side reads, so the left value stays in a separate
        // temporary.
        let is_temp = dst >= Reg(mark.reg) || dst >= Reg(super::VAR_LIMIT);
        let value = if is_temp { dst } else { self.temp() };
        self.expr_to(left, value);
        let end = self.e.label();
        self.e.jump(leaves(op, value), end);
        self.expr_to(right, value);
        self.e.bind(end);
        self.mov(dst, value);
    }

    fn member(&mut self, dst: Reg, object: &Ir<'a>, name: &[u8], optional: bool, ir: &Ir<'a>) {
        let obj = self.expr(object);
        self.place(ir);
        if builtins::is_forbidden(name) && self.s.version_4 {
            let key = self.s.pool.key(name);
            let read = |l: &mut Self| l.e.emit(Op::OwnMember { dst, obj, key });
            return match optional {
                true => self.unless_nullish(dst, obj, read),
                false => read(self),
            };
        }
        if builtins::is_forbidden(name) {
            let text = builtins::forbidden_text(&Self::shown(name));
            self.warn_at(ir, codes::FORBIDDEN_MEMBER, &text);
            if optional {
                self.unless_nullish(dst, obj, |l| l.throw_forbidden(name));
            } else {
                self.throw_forbidden(name);
                self.load_const(dst, Const::Undefined);
            }
            return;
        }
        let key = self.s.pool.key(name);
        self.e.emit(Op::Member { dst, obj, key });
    }

    fn index(&mut self, dst: Reg, object: &Ir<'a>, index: &Ir<'a>, optional: bool, ir: &Ir<'a>) {
        if !optional {
            let (obj, idx) = self.operands(object, index);
            self.place(ir);
            self.read_index(dst, obj, idx);
            return;
        }
        let mark = self.mark();
        let obj = self.expr(object);
        self.unless_nullish(dst, obj, |l| {
            let obj = l.hold(obj, mark);
            let idx = l.expr(index);
            let obj = l.take(obj);
            l.place(ir);
            l.read_index(dst, obj, idx);
        });
    }

    /// Reads a member by a computed key; in version 4 the key is data (D105).
    fn read_index(&mut self, dst: Reg, obj: Reg, idx: Reg) {
        self.e.emit(match self.s.version_4 {
            true => Op::OwnIndex { dst, obj, idx },
            false => Op::Index { dst, obj, idx },
        });
    }

    /// Emits `undefined` where `obj` is null or undefined, else `code`.
    fn unless_nullish(&mut self, dst: Reg, obj: Reg, code: impl FnOnce(&mut Self)) {
        let (absent, end) = (self.e.label(), self.e.label());
        self.e.jump(
            Op::JNullish {
                src: obj,
                to: Target(0),
            },
            absent,
        );
        code(self);
        self.e.jump(Op::Jmp { to: Target(0) }, end);
        self.e.bind(absent);
        self.load_const(dst, Const::Undefined);
        self.e.bind(end);
    }

    /// An array of these values in a fresh temporary.
    pub(super) fn array(&mut self, items: &[Ir<'a>]) -> Reg {
        let held = self.collector(items.len());
        for item in items {
            let mark = self.mark();
            let src = self.expr(item);
            self.collect(held, src);
            self.release(mark);
        }
        self.take(held)
    }

    /// Whether a call's arguments fit into consecutive registers.
    fn fits_in_row(&self, args: &[Ir<'a>]) -> bool {
        args.len() < MAX_CALL_ARGS && !self.is_crowded()
    }

    fn args_in_row(&mut self, args: &[Ir<'a>]) {
        let first = self.temps(args.len());
        for (i, arg) in args.iter().enumerate() {
            self.expr_to(arg, first + i as u8);
        }
    }

    fn call(&mut self, dst: Reg, callee: &[u8], args: &[Ir<'a>], ir: &Ir<'a>) {
        let name = Self::shown(callee);
        let Some(function) = builtins::function("", &name).map(u32::from) else {
            let text = if let Some(text) = builtins::refused(&name) {
                text.to_owned()
            } else if self.s.signature(&name).is_some() {
                format!("Atom calls in expressions not yet supported: {name}")
            } else {
                format!("Unknown function: {name}")
            };
            self.warn_callee(ir, &text, &name);
            self.throw(&text);
            self.load_const(dst, Const::Undefined);
            return;
        };
        if self.fits_in_row(args) {
            let base = self.peek();
            self.args_in_row(args);
            self.place(ir);
            self.e.emit(Op::CallFn {
                dst,
                base,
                n: Count(args.len() as u8),
                function: BuiltinIdx(function),
            });
        } else {
            let arr = self.array(args);
            self.place(ir);
            self.e.emit(Op::WideFn {
                dst,
                arr,
                function: BuiltinIdx(function),
            });
        }
    }

    fn method(
        &mut self,
        dst: Reg,
        object: &Ir<'a>,
        name: &[u8],
        args: &[Ir<'a>],
        optional: bool,
        ir: &Ir<'a>,
    ) {
        let mark = self.mark();
        let obj = self.expr(object);
        if optional {
            self.unless_nullish(dst, obj, |l| l.method_on(dst, (obj, mark), name, args, ir));
        } else {
            self.method_on(dst, (obj, mark), name, args, ir);
        }
    }

    /// Calls a method of the value in a register; `mark` was taken before that register was
    /// allocated.
    fn method_on(
        &mut self,
        dst: Reg,
        (obj, mark): (Reg, Mark),
        name: &[u8],
        args: &[Ir<'a>],
        ir: &Ir<'a>,
    ) {
        self.place(ir);
        self.on_method(name, args);
        let shown = Self::shown(name);
        if builtins::is_forbidden(name) {
            self.warn_at(
                ir,
                codes::FORBIDDEN_MEMBER,
                &builtins::forbidden_text(&shown),
            );
            self.throw_forbidden(name);
            self.load_const(dst, Const::Undefined);
            return;
        }
        let Some(method) = builtins::method_id(&shown).map(u32::from) else {
            self.warn_callee(ir, &format!("no value has a method '{shown}'"), &shown);
            let name = self.s.pool.text_const(name);
            self.e.emit(Op::BadMethod { obj, name });
            self.load_const(dst, Const::Undefined);
            return;
        };
        if !args.is_empty() {
            self.e.emit(Op::CheckMethod {
                obj,
                method: MethodIdx(method),
            });
        }
        if self.fits_in_row(args) {
            let base = self.temps(1);
            self.mov(base, obj);
            self.args_in_row(args);
            self.place(ir);
            self.e.emit(Op::CallMethod {
                dst,
                base,
                n: Count(args.len() as u8 + 1),
                method: MethodIdx(method),
            });
            return;
        }
        let held = self.hold(obj, mark);
        let arr = self.array(args);
        let obj = self.take(held);
        self.place(ir);
        self.e.emit(Op::WideMethod {
            dst,
            obj,
            arr,
            method: MethodIdx(method),
        });
    }
}

/// The jump that short-circuits a logical operator.
fn leaves(op: LogOp, src: Reg) -> Op {
    match op {
        LogOp::And => Op::JFalse { src, to: Target(0) },
        LogOp::Or => Op::JTrue { src, to: Target(0) },
        LogOp::Nullish => Op::JPresent { src, to: Target(0) },
    }
}

fn binary(op: BinOp, dst: Reg, l: Reg, r: Reg) -> Op {
    match op {
        BinOp::Add => Op::Add { dst, l, r },
        BinOp::Sub => Op::Sub { dst, l, r },
        BinOp::Mul => Op::Mul { dst, l, r },
        BinOp::Div => Op::Div { dst, l, r },
        BinOp::Rem => Op::Rem { dst, l, r },
        BinOp::Pow => Op::Pow { dst, l, r },
        BinOp::Eq => Op::Eq { dst, l, r },
        BinOp::Ne => Op::Ne { dst, l, r },
        BinOp::StrictEq => Op::SEq { dst, l, r },
        BinOp::StrictNe => Op::SNe { dst, l, r },
        BinOp::Lt => Op::Lt { dst, l, r },
        BinOp::Le => Op::Le { dst, l, r },
        BinOp::Gt => Op::Gt { dst, l, r },
        BinOp::Ge => Op::Ge { dst, l, r },
    }
}
