//! `llmToolLoop`: a conversation in which a model calls tools (language section 2.11).
//!
//! A round is an `llmChat` step, then the tool calls that the model requested, prepared in
//! order and made concurrently as in `callAll`. Internal atoms do the rest, on a state that no
//! variable of the program holds.

use super::call_all::Calls;
use super::tools::{Calling, ROUND_NAME, ToolNode};
use super::{Held, Lower};
use a99_core::json::{Kind, NodeId};
use a99_core::program::{Const, Count, Number, Op, Reg, Target};
use a99_core::sig::{AtomSig, Binding, Form, Params};
use a99_core::value::Value;

/// The atom that each round calls.
const ROUND: &str = "llmChat";

/// Inputs of `llmToolLoop:begin`.
const BOUNDS: [&str; 5] = ["prompt", "messages", "limit", "maxRounds", "budget"];

/// Inputs that the loop itself uses, beside its bounds; all others go to the rounds.
const OWN: [&str; 3] = ["tools", "stopWhen", "as"];

impl<'a> Lower<'_, 'a> {
    pub(super) fn form_tool_loop(&mut self, step: NodeId) -> Option<Reg> {
        let tools = match self.tools(step) {
            Ok(tools) => tools,
            Err((node, text)) => {
                self.warn_tool(node, &text);
                self.throw(&text);
                return self.end_valueless(step);
            }
        };
        self.on_tools(step, &tools);
        let sigs = self.s.sigs;
        let signatures = (sigs.signature(Form::ToolLoop.name()), sigs.signature(ROUND));
        let (Some(sig), Some(chat)) = signatures else {
            self.throw(&format!("Unknown Atom: {ROUND}"));
            return self.end_valueless(step);
        };
        let start = self.mark();
        let bound = self.vars.mark();
        let [state, plan, reason] = [(); 3].map(|()| self.place_for());
        self.begin_loop(step, state, plan);
        let options = self.loop_options(step, sig);
        let told = self.made(tools.iter().map(|tool| tool.told.clone()).collect());
        let checked = match tools.iter().any(|tool| tool.checked.is_some()) {
            true => {
                let values = tools.iter().map(|tool| {
                    let checked = tool.checked.as_ref();
                    checked.unwrap_or(&tool.told).clone()
                });
                self.made(values.collect())
            }
            false => told,
        };
        let mark = self.mark();
        let r = self.temp();
        self.load_const(r, Const::Undefined);
        self.store(reason, r);
        self.release(mark);
        let (head, exit) = (self.e.label(), self.e.label());
        self.loops += 1;
        self.e.bind(head);
        let turn = self.mark();
        let calls = self.place_for();
        self.round(step, chat, (state, told, checked), &options, calls, exit);
        let answers = self.call_tools(step, &tools, calls, plan);
        let over = self.place_for();
        self.end_round(step, (state, plan, reason), (calls, answers, over), exit);
        let mark = self.mark();
        let src = self.take(over);
        self.e.jump(Op::JFalse { src, to: Target(0) }, head);
        self.release(mark);
        self.release(turn);
        self.loops -= 1;
        self.vars.undo(bound);
        self.e.bind(exit);
        self.e.at = Some((step, None));
        let mark = self.mark();
        let base = self.temps(3);
        self.fill(base, state);
        self.fill(base + 1, reason);
        match held_of(&options, "responseFormat") {
            Some(held) => self.fill(base + 2, held),
            None => self.load_const(base + 2, Const::Undefined),
        }
        self.internal_call(base, base, 3, "llmToolLoop:end");
        self.store(state, base);
        self.release(mark);
        let r = self.take(state);
        self.release(start);
        let dst = self.temp();
        self.mov(dst, r);
        self.bind_result(step, dst, false);
        Some(dst)
    }

    /// Loads a held value into a register.
    fn fill(&mut self, dst: Reg, held: Held) {
        let mark = self.mark();
        let src = self.take(held);
        self.mov(dst, src);
        self.release(mark);
    }

    /// Loads a member of a held value into a register.
    fn fill_member(&mut self, dst: Reg, held: Held, key: &[u8]) {
        let mark = self.mark();
        let obj = self.take(held);
        let key = self.s.pool.key(key);
        self.e.emit(Op::Member { dst, obj, key });
        self.release(mark);
    }

    /// Evaluates the bounds of the loop and its initial state.
    fn begin_loop(&mut self, step: NodeId, state: Held, plan: Held) {
        let doc = self.s.doc;
        let mark = self.mark();
        let base = self.temps(BOUNDS.len());
        for (at, name) in (0u8..).zip(BOUNDS) {
            match doc.get(step, name) {
                Some(node) if name == "budget" => {
                    if self.s.is_literal_object(node) {
                        self.charge_data(doc.len(node));
                    }
                    self.vars_object_to(node, base + at, None);
                }
                Some(node) => self.value_to(node, base + at),
                None => self.load_const(base + at, Const::Undefined),
            }
        }
        self.e.at = Some((step, None));
        self.internal_call(base, base, BOUNDS.len() as u8, "llmToolLoop:begin");
        self.store(plan, base);
        self.fill_member(base, plan, b"state");
        self.store(state, base);
        self.release(mark);
    }

    /// Evaluates the step's options of the rounds once.
    fn loop_options(&mut self, step: NodeId, sig: &'a AtomSig) -> Vec<(&'a str, Held)> {
        let doc = self.s.doc;
        let mut options = Vec::new();
        let names = sig.inputs.iter().map(|input| &*input.name);
        for name in names.filter(|name| !BOUNDS.contains(name) && !OWN.contains(name)) {
            if let Some(node) = doc.get(step, name) {
                let place = self.place_for();
                let mark = self.mark();
                let r = self.temp();
                self.value_to(node, r);
                self.store(place, r);
                self.release(mark);
                options.push((name, place));
            }
        }
        options
    }

    /// Loads a list that the compiler generates.
    fn made(&mut self, values: Vec<Value>) -> Held {
        let place = self.place_for();
        let mark = self.mark();
        let dst = self.temp();
        let told = Value::Array(values);
        let nodes = super::literal::nodes_of(&told);
        self.e.spend(nodes);
        self.charge_data(nodes);
        let lit = self.s.literal_of(&told);
        self.e.emit(Op::LoadLit { dst, lit });
        self.store(place, dst);
        self.release(mark);
        place
    }

    /// Calls the model; leaves the loop unless the model requests tools, which then are in `calls`.
    fn round(
        &mut self,
        step: NodeId,
        chat: &AtomSig,
        (state, told, checked): (Held, Held, Held),
        options: &[(&str, Held)],
        calls: Held,
        exit: crate::emit::Label,
    ) {
        self.e.at = Some((step, None));
        let op = self.s.op(ROUND);
        let scope = self.step_scope();
        let id = self.e.open_step(op, step, false, scope);
        let mark = self.mark();
        let dst = self.temp();
        let inner = self.mark();
        let call = match &chat.params {
            Params::Named(params) => {
                let n = params.len().min(super::MAX_CALL_ARGS);
                let base = self.temps(n);
                for (at, param) in (0u8..).zip(&params[..n]) {
                    match (param.name, held_of(options, param.name)) {
                        ("messages", _) => self.fill_member(base + at, state, b"messages"),
                        ("tools", _) => self.fill(base + at, told),
                        // The loop validates its last answer itself.
                        ("repair", _) => self.load_const(base + at, Const::Bool(false)),
                        (_, Some(held)) => self.fill(base + at, held),
                        (_, None) => self.load_const(base + at, Const::Undefined),
                    }
                }
                super::atoms::Call::new(op, base, n as u8)
            }
            // A host's replacement atom gets all inputs as one object.
            Params::Open | Params::Raw => {
                let base = self.temp();
                let held = self.collector(2 + options.len());
                let mut keys = Vec::new();
                let mut add = |l: &mut Self, name: &str, held_of: &dyn Fn(&mut Self, Reg)| {
                    let mark = l.mark();
                    let r = l.temp();
                    held_of(l, r);
                    l.collect(held, r);
                    l.release(mark);
                    keys.push(l.s.pool.key(name.as_bytes()));
                };
                add(self, "messages", &|l, r| {
                    l.fill_member(r, state, b"messages")
                });
                add(self, "tools", &|l, r| l.fill(r, told));
                for (name, option) in options {
                    add(self, name, &|l, r| l.fill(r, *option));
                }
                let shape = self.s.pool.shape(&keys);
                let arr = self.take(held);
                self.e.emit(Op::WideObj {
                    dst: base,
                    arr,
                    shape,
                });
                super::atoms::Call::new(op, base, 1)
            }
        };
        let site = self.site(step, &call);
        self.e.emit(Op::CallAtom {
            dst,
            base: call.base,
            n: Count(call.n),
            site,
        });
        self.release(inner);
        self.e.close_step(id, Some(dst));
        let base = self.temps(3);
        self.fill(base, state);
        self.mov(base + 1, dst);
        self.fill(base + 2, checked);
        self.internal_call(base, base, 3, "llmToolLoop:read");
        self.store(calls, base);
        self.fill_member(base, calls, b"state");
        self.store(state, base);
        self.fill_member(base, calls, b"calls");
        self.store(calls, base);
        self.e.jump(
            Op::JNullish {
                src: base,
                to: Target(0),
            },
            exit,
        );
        self.release(mark);
    }

    /// Calls the tools of a round; returns a list of their answers.
    fn call_tools(
        &mut self,
        step: NodeId,
        tools: &[ToolNode<'a>],
        calls: Held,
        plan: Held,
    ) -> Held {
        let answers = self.place_for();
        let i = self.iterate_held(step, calls, "llmToolLoop: the calls are no list");
        let out = self.collector(0);
        let bound = self.vars.mark();
        self.e.bind(i.head());
        let mark = self.mark();
        let call = self.place_for();
        let inner = self.mark();
        let r = self.temp();
        self.next_item(&i, r);
        self.store(call, r);
        self.release(inner);
        let done = self.e.label();
        for (number, tool) in tools.iter().enumerate() {
            if self.e.is_over() {
                break;
            }
            let other = self.e.label();
            let inner = self.mark();
            self.e.at = Some((tool.node, None));
            let l = self.temp();
            self.fill_member(l, call, b"tool");
            let r = self.const_reg(Const::Number(number as f64));
            self.e.jump(
                Op::JSNe {
                    l,
                    r,
                    to: Target(0),
                },
                other,
            );
            self.release(inner);
            self.call_tool(tool, call, out);
            self.vars.undo(bound);
            self.e.jump(Op::Jmp { to: Target(0) }, done);
            self.e.bind(other);
        }
        // Invalid requests of the model are already answered.
        self.e.at = Some((step, None));
        let inner = self.mark();
        let error = self.temp();
        self.fill_member(error, call, b"error");
        let key = self.s.pool.key(b"error");
        let shape = self.s.pool.shape(&[key]);
        self.e.emit(Op::NewObj {
            dst: error,
            base: error,
            n: Count(1),
            shape,
        });
        self.collect(out, error);
        self.release(inner);
        self.e.bind(done);
        self.release(mark);
        self.e.jump(Op::Jmp { to: Target(0) }, i.head());
        self.e.bind(i.exit);
        let mark = self.mark();
        let arr = self.take(out);
        let limit = self.temp();
        self.fill_member(limit, plan, b"limit");
        self.e.emit(Op::CallAll {
            dst: limit,
            arr,
            limit,
        });
        self.store(answers, limit);
        self.release(mark);
        answers
    }

    /// Prepares a tool call.
    fn call_tool(&mut self, tool: &ToolNode<'a>, call: Held, out: Held) {
        match tool.calling {
            Calling::Call(node, name, named) => {
                let opened = self.open_scope(&[], &[(name, named)], false);
                let mark = self.mark();
                let r = self.temp();
                self.fill_member(r, call, b"input");
                self.bind(name, named, r);
                self.on_tool_input(name, tool.node);
                self.release(mark);
                self.prepare(node, out, Calls::OfTools);
                self.close_scope(opened);
            }
            Calling::Atom(sig) => {
                self.prepare_with(out, |l, dst| {
                    l.prepared_tool(tool.node, sig, None, call, dst)
                });
            }
            Calling::Agent(sig, id) => {
                self.prepare_with(out, |l, dst| {
                    l.prepared_tool(tool.node, sig, Some(id), call, dst);
                });
            }
        }
    }

    /// Emits the code that prepares a call: an atom gets the members of the model's input, an agent
    /// all of it.
    fn prepared_tool(
        &mut self,
        node: NodeId,
        sig: &AtomSig,
        agent: Option<&[u8]>,
        call: Held,
        dst: Reg,
    ) {
        self.e.at = Some((node, None));
        let op = self.s.op(&sig.name);
        let scope = self.step_scope();
        let id = self.e.open_step(op, node, false, scope);
        let mark = self.mark();
        let input = self.temp();
        self.fill_member(input, call, b"input");
        let (base, n) = match &sig.params {
            Params::Named(params) => {
                let n = params.len().min(super::MAX_CALL_ARGS);
                let base = self.temps(n);
                let params = &params[..n];
                let load = |l: &mut Self, at: usize| {
                    let (to, param) = (base + at as u8, &params[at]);
                    match (agent, param.name) {
                        (Some(id), "agentId") => l.load_text(to, id),
                        (Some(_), "input") => l.mov(to, input),
                        _ => l.input_member(to, input, param.name, param.binding),
                    }
                };
                self.guarded_with(node, sig, params, base, load);
                (base, n as u8)
            }
            Params::Open | Params::Raw => (input, 1),
        };
        let site = self.site(node, &super::atoms::Call::new(op, base, n));
        self.e.emit(Op::PrepareCall {
            dst,
            base,
            n: Count(n),
            site,
        });
        self.release(mark);
        self.e.close_step(id, None);
    }

    /// Loads an input from a member of the model's input.
    fn input_member(&mut self, dst: Reg, obj: Reg, name: &str, binding: Binding) {
        let key = self.s.pool.key(name.as_bytes());
        self.e.emit(Op::Member { dst, obj, key });
        if binding != Binding::TextOrValue {
            return;
        }
        // A text stays as written; any other value is wrapped in an array.
        let plain = self.e.label();
        let mark = self.mark();
        let (kind, arr) = (self.temp(), self.temp());
        self.e.emit(Op::Typeof {
            dst: kind,
            src: dst,
        });
        self.load_text(arr, b"string");
        self.e.jump(
            Op::JSEq {
                l: kind,
                r: arr,
                to: Target(0),
            },
            plain,
        );
        self.e.emit(Op::NewArr {
            dst: arr,
            cap: Number(1),
        });
        self.e.emit(Op::ArrPush { arr, src: dst });
        self.e.emit(Op::Mov { dst, src: arr });
        self.release(mark);
        self.e.bind(plain);
    }

    /// Adds the tools' answers to the state, then leaves the loop if `stopWhen` holds.
    fn end_round(
        &mut self,
        step: NodeId,
        (state, plan, reason): (Held, Held, Held),
        (calls, answers, over): (Held, Held, Held),
        exit: crate::emit::Label,
    ) {
        let doc = self.s.doc;
        self.e.at = Some((step, None));
        let mark = self.mark();
        let base = self.temps(4);
        for (at, held) in (0u8..).zip([state, plan, calls, answers]) {
            self.fill(base + at, held);
        }
        self.internal_call(base, base, 4, "llmToolLoop:answer");
        self.store(answers, base);
        self.fill_member(base, answers, b"state");
        self.store(state, base);
        self.fill_member(base, answers, b"over");
        self.store(over, base);
        self.fill_member(base, answers, b"round");
        self.store(answers, base);
        self.release(mark);
        let given = doc
            .get(step, "stopWhen")
            .filter(|node| doc.kind(*node) != Kind::Null);
        if given.is_none() {
            return;
        }
        let (name, node) = self.name_or(step, "as", ROUND_NAME);
        let opened = self.open_scope(&[], &[(name, node)], false);
        let mark = self.mark();
        let r = self.take(answers);
        self.bind(name, node, r);
        self.on_round(name);
        self.release(mark);
        let condition = self.condition_at(step, "stopWhen", None);
        let on = self.e.label();
        self.with_condition(condition, |l, ir| l.jump_unless(ir, on));
        let mark = self.mark();
        let r = self.temp();
        self.load_text(r, b"stop_when");
        self.store(reason, r);
        self.release(mark);
        self.e.jump(Op::Jmp { to: Target(0) }, exit);
        self.e.bind(on);
        self.close_scope(opened);
    }
}

fn held_of(options: &[(&str, Held)], name: &str) -> Option<Held> {
    let found = options.iter().find(|(own, _)| *own == name);
    found.map(|(_, held)| *held)
}
