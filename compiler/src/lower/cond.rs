//! Conditions: jumps instead of booleans, and condition texts (D2, D47).

use super::Lower;
use crate::Dialect;
use crate::compat;
use crate::expr::{self, BinOp, LogOp, UnOp};
use crate::ir::{At, Ir, IrKind, Lit, from_text};
use a99_core::diag::{Diagnostic, codes, excerpt};
use a99_core::json::NodeId;
use a99_core::program::{Const, Op, Reg, Target};
use a99_core::text::wtf8_to_string_lossy;

/// A condition that can be tested any number of times.
#[derive(Copy, Clone)]
pub(crate) struct Condition<'a> {
    pub ir: &'a Ir<'a>,
    /// Written as text, so priced by D48.
    pub is_text: bool,
    /// Constant with the prefix of its errors.
    prefix: Option<u32>,
    /// `vars` of the step.
    vars: Option<NodeId>,
}

impl<'a> Lower<'_, 'a> {
    /// Reads the condition of a step.
    pub(super) fn condition(&mut self, step: NodeId) -> Condition<'a> {
        self.condition_at(step, "condition", self.s.doc.get(step, "vars"))
    }

    /// Reads the condition under a key of a step; a condition text may read these `vars`.
    pub(super) fn condition_at(
        &mut self,
        step: NodeId,
        key: &str,
        vars: Option<NodeId>,
    ) -> Condition<'a> {
        let doc = self.s.doc;
        let arena = self.s.arena;
        let plain = |ir: Ir<'a>| Condition {
            ir: arena.alloc(ir),
            is_text: false,
            prefix: None,
            vars: None,
        };
        let Some(node) = doc.get(step, key) else {
            let at = At {
                node: step,
                inner: None,
            };
            return plain(Ir {
                kind: IrKind::Lit(Lit::Undefined),
                priced: false,
                at,
            });
        };
        let Some(bytes) = doc.str(node) else {
            self.on_node(node);
            let ir = self.read_expr(node);
            self.on_condition(&ir);
            return plain(ir);
        };
        let text = wtf8_to_string_lossy(bytes);
        let parsed = match self.s.options.dialect {
            Dialect::Standard => match self.s.parse_text(&text) {
                Ok(e) => Some(e),
                Err(errors) => {
                    self.text_errors(node, &errors, "condition");
                    None
                }
            },
            Dialect::V2 => match compat::parse_condition_v2(&text) {
                Ok(e) => Some(e),
                Err(message) => {
                    let diag = Diagnostic::error(
                        codes::BAD_CONDITION,
                        message,
                        self.s.error_pointer(node),
                    )
                    .with_span(doc.span(node))
                    .with_offending(excerpt(&text));
                    self.s.push(diag);
                    None
                }
            },
        };
        if parsed
            .as_ref()
            .is_some_and(|e| e.is_deeper(self.s.options.max_expr_depth as usize))
        {
            self.text_too_deep(node);
            return plain(Ir {
                kind: IrKind::Lit(Lit::Undefined),
                priced: false,
                at: At { node, inner: None },
            });
        }
        let blank = Ir {
            kind: IrKind::Lit(Lit::Undefined),
            priced: false,
            at: At { node, inner: None },
        };
        let is_read = parsed.is_some();
        let ir = parsed
            .and_then(|e| from_text(&e, node, arena))
            .unwrap_or(arena.alloc(blank));
        let prefix = ["Expression error \"", &*text, "\": "].concat();
        let prefix = self.s.pool.text_const(prefix.as_bytes());
        if is_read {
            self.on_condition(ir);
        }
        Condition {
            ir,
            is_text: true,
            prefix: Some(prefix.0),
            vars,
        }
    }

    /// Reports the parse errors of an expression text at its node.
    pub(super) fn text_errors(&mut self, node: NodeId, errors: &expr::ParseErrors, what: &str) {
        let doc = self.s.doc;
        let text = wtf8_to_string_lossy(doc.str(node).unwrap_or(b"")).into_owned();
        let holes = crate::advice::holes_help(&text).filter(|_| self.s.version_4);
        // A template hole makes the whole text invalid: one error is enough.
        let most = if holes.is_some() { 1 } else { errors.0.len() };
        for error in errors.0.iter().take(most) {
            let part = text
                .get(error.span.start as usize..error.span.end as usize)
                .filter(|t| !t.is_empty())
                .unwrap_or(&text);
            let mut diag = Diagnostic::error(
                codes::BAD_CONDITION,
                format!("malformed {what}: {}", error.message),
                self.s.error_pointer(node),
            )
            .with_span(doc.span(node))
            .with_inner(error.span.clone())
            .with_offending(excerpt(part));
            // Constructs that `condition_help` reports are valid in version 4.
            let called = error.message.split('`').nth(1);
            let called = called.filter(|_| error.message.ends_with("can call"));
            if let Some(help) = &holes {
                diag = diag.with_help(help.clone());
            } else if let Some(help) = called.and_then(crate::advice::callee_help) {
                diag = diag.with_help(help);
            } else if let Some(help) = match self.s.version_4 {
                true => crate::advice::foreign_help(&text).map(std::borrow::Cow::Owned),
                false => crate::advice::condition_help(&text),
            } {
                diag = diag.with_help(help);
            } else if let Some(help) = &error.help {
                diag = diag.with_help(help.clone());
            }
            self.s.push(diag);
        }
    }

    /// Reports an expression text whose tree is too deep.
    pub(super) fn text_too_deep(&mut self, node: NodeId) {
        let limit = self.s.options.max_expr_depth;
        let diag = Diagnostic::error(
            codes::EXPRESSION_TOO_DEEP,
            format!("more than {limit} nested expression nodes"),
            self.s.error_pointer(node),
        );
        let help = "split the condition: compute parts of it into variables first";
        let diag = diag.with_span(self.s.doc.span(node)).with_help(help);
        self.s.push(diag);
    }

    /// Evaluates the names that the step overlays on its scopes, then `test`.
    pub(super) fn with_condition<R>(
        &mut self,
        condition: Condition<'a>,
        test: impl FnOnce(&mut Self, &'a Ir<'a>) -> R,
    ) -> R {
        if !condition.is_text {
            return test(self, condition.ir);
        }
        let overlay = self.overlay.len();
        self.overlay_vars(condition.vars);
        let was = std::mem::replace(&mut self.text_nodes, true);
        let start = self.e.pc();
        let result = test(self, condition.ir);
        if let Some(prefix) = condition.prefix {
            self.e.wrap(start, prefix);
        }
        self.text_nodes = was;
        self.overlay.truncate(overlay);
        result
    }

    /// Resolves a `vars` object into the overlay: its first level are value positions (D14).
    pub(super) fn overlay_vars(&mut self, vars: Option<NodeId>) {
        let doc = self.s.doc;
        let Some(vars) = vars else { return };
        let members: Vec<(&'a [u8], NodeId)> = doc.members(vars).collect();
        if self.s.is_literal_object(vars) {
            self.charge_data(members.len());
        }
        for (name, node) in members {
            let mark = self.mark();
            let r = self.value(node);
            // A variable's register may change before a later test.
            let held = self.hold(r, mark);
            self.overlay.push(name, held);
        }
    }

    /// Jumps to `to` unless the condition holds.
    pub(super) fn jump_unless(&mut self, ir: &Ir<'a>, to: crate::emit::Label) {
        self.branch(ir, to, false);
    }

    /// Jumps to `to` if the condition holds.
    pub(super) fn jump_if(&mut self, ir: &Ir<'a>, to: crate::emit::Label) {
        self.branch(ir, to, true);
    }

    fn branch(&mut self, ir: &Ir<'a>, to: crate::emit::Label, when: bool) {
        let mark = self.mark();
        match ir.kind {
            IrKind::Binary(op, left, right) if is_test(op) => {
                self.enter(ir);
                let (l, r) = self.operands(left, right);
                self.e.at = Some((ir.at.node, ir.at.inner));
                self.e.jump(compare(op, l, r, when), to);
            }
            IrKind::Unary(UnOp::Not, arg) => {
                self.enter(ir);
                self.branch(arg, to, !when);
            }
            IrKind::Logical(op @ (LogOp::And | LogOp::Or), left, right) => {
                self.enter(ir);
                // The early exit matches the jump for `&&` when false and for `||` when true.
                if (op == LogOp::Or) == when {
                    self.branch(left, to, when);
                    self.branch(right, to, when);
                } else {
                    let past = self.e.label();
                    self.branch(left, past, !when);
                    self.branch(right, to, when);
                    self.e.bind(past);
                }
            }
            _ => {
                let src = self.expr(ir);
                let op = if when {
                    Op::JTrue { src, to: Target(0) }
                } else {
                    Op::JFalse { src, to: Target(0) }
                };
                self.e.jump(op, to);
            }
        }
        self.release(mark);
    }

    /// A register that holds `undefined`.
    pub(super) fn undefined(&mut self) -> Reg {
        self.const_reg(Const::Undefined)
    }
}

fn is_test(op: BinOp) -> bool {
    use BinOp as B;
    matches!(
        op,
        B::Eq | B::Ne | B::StrictEq | B::StrictNe | B::Lt | B::Le | B::Gt | B::Ge
    )
}

/// The fused comparison and jump. `a > b` compiles to `b < a`: operand coercion has no side
/// effects that a program can observe.
fn compare(op: BinOp, l: Reg, r: Reg, when: bool) -> Op {
    let to = Target(0);
    match (op, when) {
        (BinOp::Lt, true) => Op::JLt { l, r, to },
        (BinOp::Lt, false) => Op::JNLt { l, r, to },
        (BinOp::Le, true) => Op::JLe { l, r, to },
        (BinOp::Le, false) => Op::JNLe { l, r, to },
        (BinOp::Gt, true) => Op::JLt { l: r, r: l, to },
        (BinOp::Gt, false) => Op::JNLt { l: r, r: l, to },
        (BinOp::Ge, true) => Op::JLe { l: r, r: l, to },
        (BinOp::Ge, false) => Op::JNLe { l: r, r: l, to },
        (BinOp::Eq, true) | (BinOp::Ne, false) => Op::JEq { l, r, to },
        (BinOp::StrictEq, true) | (BinOp::StrictNe, false) => Op::JSEq { l, r, to },
        (BinOp::StrictEq, false) | (BinOp::StrictNe, true) => Op::JSNe { l, r, to },
        _ => Op::JNe { l, r, to },
    }
}
