//! `callAll`: concurrent calls of atoms (language section 2.10).
//!
//! All calls are prepared first, in order: each pays its price and resolves its inputs as a
//! step would. One instruction then makes them, and no code of the program runs until every
//! call is answered. If preparing a call fails, the error is that call's answer.

use super::{Held, Lower};
use crate::ir::key_text;
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};
use a99_core::program::{Const, Count, Op, Reg, Target};
use a99_core::sig::{AtomSig, Form};

/// Default limit of concurrent calls.
const LIMIT: f64 = 8.0;

/// Why a call cannot use a name.
pub(super) enum NoCall {
    /// No atom has this name.
    Unknown,
    /// The atom runs in the program itself.
    InProgram,
}

/// The owner of the prepared calls.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Calls {
    /// `callAll`.
    OfStep,
    /// Tools of `llmToolLoop`.
    OfTools,
}

impl Calls {
    fn form(self) -> &'static str {
        match self {
            Calls::OfStep => "callAll",
            Calls::OfTools => "llmToolLoop",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Calls::OfStep => {
                "write `\"calls\": [{\"op\": ...}, ...]`, or `items`, `as` and one `call`"
            }
            Calls::OfTools => "write `\"call\": {\"op\": ..., inputs}`",
        }
    }
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn form_call_all(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let mark = self.mark();
        let limit = self.place_for();
        let r = self.temp();
        match doc
            .get(step, "limit")
            .filter(|n| doc.kind(*n) != Kind::Null)
        {
            Some(node) => self.value_to(node, r),
            None => self.load_const(r, Const::Number(LIMIT)),
        }
        self.store(limit, r);
        let given = |name| doc.get(step, name).filter(|n| doc.kind(*n) != Kind::Null);
        if let Some(calls) = given("calls") {
            let out = self.collector(0);
            if doc.kind(calls) == Kind::Array {
                let calls: Vec<NodeId> = doc.elements(calls).collect();
                for call in calls {
                    if self.e.is_over() {
                        break;
                    }
                    self.prepare(call, out, Calls::OfStep);
                }
            } else {
                self.refuse_call(
                    calls,
                    "callAll: calls is not an array",
                    Calls::OfStep.help(),
                );
            }
            return self.call_all(step, out, limit, mark);
        }
        let i = self.iterate(step, "callAll");
        let out = self.collector(0);
        self.loops += 1;
        let opened = self.turn_scope(step, &i, None, None);
        match given("call") {
            Some(call) => self.prepare(call, out, Calls::OfStep),
            None => self.refuse_call(step, "callAll: call is missing", Calls::OfStep.help()),
        }
        self.end_turn(&i, opened);
        self.e.bind(i.exit);
        self.call_all(step, out, limit, mark)
    }

    /// Makes the prepared calls.
    fn call_all(&mut self, step: NodeId, out: Held, limit: Held, mark: super::Mark) -> Option<Reg> {
        self.e.at = Some((step, None));
        let (arr, limit) = (self.take(out), self.take(limit));
        let made = self.temp();
        self.e.emit(Op::CallAll {
            dst: made,
            arr,
            limit,
        });
        self.release(mark);
        let dst = self.temp();
        self.mov(dst, made);
        self.bind_result(step, dst, false);
        Some(dst)
    }

    /// Prepares a call and appends it to the list; a failure becomes the call's answer.
    pub(super) fn prepare(&mut self, call: NodeId, out: Held, calls: Calls) {
        self.prepare_with(out, |l, dst| l.prepared(call, dst, calls));
    }

    /// Same as `prepare`, with code that the caller supplies.
    pub(super) fn prepare_with(&mut self, out: Held, code: impl FnOnce(&mut Self, Reg)) {
        let mark = self.mark();
        let bound = self.vars.mark();
        let dst = self.temp();
        let start = self.e.pc();
        code(self, dst);
        let (handler, end) = (self.e.label(), self.e.label());
        self.e.protect(start, handler);
        self.e.jump(Op::Jmp { to: Target(0) }, end);
        self.e.bind(handler);
        let inner = self.mark();
        let (msg, op) = (self.temp(), self.temp());
        self.e.emit(Op::Catch { msg, op });
        let key = self.s.pool.key(b"error");
        let shape = self.s.pool.shape(&[key]);
        self.e.emit(Op::NewObj {
            dst,
            base: msg,
            n: Count(1),
            shape,
        });
        self.release(inner);
        self.vars.undo(bound);
        self.e.bind(end);
        self.collect(out, dst);
        self.release(mark);
    }

    /// The signature of an atom that a call may name.
    pub(super) fn callable(&self, name: &str) -> Result<&'a AtomSig, NoCall> {
        let known = self.s.signature(name).filter(|_| !name.contains(':'));
        match known {
            None => Err(NoCall::Unknown),
            Some(sig) if sig.form.is_some_and(|form| form != Form::AgentRun) => {
                Err(NoCall::InProgram)
            }
            Some(sig) => Ok(sig),
        }
    }

    /// Emits the code that prepares a call, or fails.
    fn prepared(&mut self, call: NodeId, dst: Reg, calls: Calls) {
        let doc = self.s.doc;
        self.e.at = Some((call, None));
        if doc.kind(call) != Kind::Object {
            let text = format!("{}: a call must be an object with an op", calls.form());
            return self.refuse_call(call, &text, calls.help());
        }
        let name = Self::shown(key_text(doc, doc.get(call, "op"), self.s.arena));
        let sig = match self.callable(&name) {
            Ok(sig) => sig,
            Err(NoCall::Unknown) => {
                self.s.warn_unknown_atom(&name, call);
                return self.throw(&format!("Unknown Atom: {name}"));
            }
            Err(NoCall::InProgram) => {
                let form = calls.form();
                let text = format!("{form}: '{name}' is no call: it runs in the program itself");
                let help = "make it a step of its own, before or after: calls are of atoms that the \
                            host answers, such as `httpFetch`, `storeGet` or `llmPredict`";
                return self.refuse_call(call, &text, help);
            }
        };
        self.on_inputs(call, &name);
        self.on_literals(call, &name);
        let op = self.s.op(&name);
        let scope = self.step_scope();
        let id = self.e.open_step(op, call, false, scope);
        let inner = self.mark();
        let prepared = self.call_inputs(call, sig, op);
        let site = self.site(call, &prepared);
        self.e.emit(Op::PrepareCall {
            dst,
            base: prepared.base,
            n: Count(prepared.n),
            site,
        });
        self.release(inner);
        self.e.close_step(id, None);
    }

    /// Warns of an invalid call and emits code that fails.
    fn refuse_call(&mut self, node: NodeId, text: &str, help: &str) {
        let diag = self
            .s
            .warn(codes::MALFORMED_STEP, node, text.into())
            .with_help(help);
        self.s.push(diag);
        self.throw(text);
    }
}
