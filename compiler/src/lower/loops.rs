//! `map`, `filter`, `find` and `reduce`: one scope for each item; `forEach`, whose steps share
//! the outer scope.

use super::scopes::{index_name, loop_names};
use super::{Held, Lower, Mark, ReturnTo};
use crate::emit::Label;
use crate::ir::key_text;
use a99_core::diag::codes;
use a99_core::json::NodeId;
use a99_core::program::{Const, Op, Reg, Target};

/// Targets of `break` and `continue`.
#[derive(Copy, Clone)]
pub(crate) enum Jumps {
    /// Outside any loop.
    Outside,
    /// Inside the body of this step, which they cannot leave.
    Barred(NodeId),
    /// To the end of a loop, or to its next iteration.
    Loop {
        end: Label,
        next: Label,
        /// Whether a `continue` targets it.
        continued: bool,
    },
}

/// The registers of an iteration, possibly spilled to slots.
pub(super) struct Iteration<'a> {
    /// The array and the position: two registers, or two slots.
    it: Held,
    position: Held,
    mark: Mark,
    head: Label,
    pub(super) exit: Label,
    crowded: bool,
    /// The name of the index, if it has one (D65).
    index: Option<(&'a [u8], NodeId)>,
}

impl Iteration<'_> {
    /// The label that takes the next item.
    pub(super) fn head(&self) -> Label {
        self.head
    }
}

impl<'a> Lower<'_, 'a> {
    /// Evaluates `items` and starts iterating; the head label is not placed.
    pub(super) fn iterate(&mut self, step: NodeId, form: &str) -> Iteration<'a> {
        self.iterate_after(step, form, |_| {})
    }

    /// Same as `iterate`, with code between evaluating `items` and checking that they are an array.
    fn iterate_after(
        &mut self,
        step: NodeId,
        form: &str,
        between: impl FnOnce(&mut Self),
    ) -> Iteration<'a> {
        let mark = self.mark();
        let it = self.temps(2);
        let inner = self.mark();
        let src = self.value_or_undefined(step, "items");
        between(self);
        self.e.at = Some((step, None));
        let wrong = self.s.doc.not_items(step, form);
        self.start_iteration(it, src, &wrong);
        self.release(inner);
        let counts = form == "forEach" || (self.s.version_4 && form != "callAll");
        let index = counts.then(|| index_name(self.s.doc, step, self.s.arena));
        self.iteration(mark, it, index.flatten())
    }

    /// Starts iterating over a held list that is not an input of the step.
    pub(super) fn iterate_held(&mut self, step: NodeId, list: Held, wrong: &str) -> Iteration<'a> {
        let mark = self.mark();
        let it = self.temps(2);
        let inner = self.mark();
        let src = self.take(list);
        self.e.at = Some((step, None));
        self.start_iteration(it, src, wrong);
        self.release(inner);
        self.iteration(mark, it, None)
    }

    fn start_iteration(&mut self, it: Reg, src: Reg, wrong: &str) {
        let k = self.s.pool.text_const(wrong.as_bytes());
        self.e.emit(Op::IterInit { it, src, k });
    }

    /// An iteration whose state is in two registers.
    fn iteration(
        &mut self,
        mark: Mark,
        it: Reg,
        index: Option<(&'a [u8], NodeId)>,
    ) -> Iteration<'a> {
        let crowded = self.is_crowded();
        let (it, position) = if crowded {
            let (a, b) = (self.spill(it), self.spill(it + 1));
            self.release(Mark {
                reg: mark.reg,
                slot: self.mark().slot,
            });
            (a, b)
        } else {
            (Held::Reg(it), Held::Reg(it + 1))
        };
        let (head, exit) = (self.e.label(), self.e.label());
        Iteration {
            it,
            position,
            mark,
            head,
            exit,
            crowded,
            index,
        }
    }

    fn spill(&mut self, r: Reg) -> Held {
        let slot = self.slot();
        self.e.emit(Op::SlotStore { src: r, slot });
        Held::Slot(slot)
    }

    /// Emits the loop head: the next item in `dst`, or exit.
    pub(super) fn next_item(&mut self, i: &Iteration<'a>, dst: Reg) {
        if !i.crowded {
            if let Held::Reg(it) = i.it {
                self.e.jump(
                    Op::IterNext {
                        dst,
                        it,
                        to: Target(0),
                    },
                    i.exit,
                );
            }
            return;
        }
        let mark = self.mark();
        let it = self.temps(2);
        if let (Held::Slot(a), Held::Slot(b)) = (i.it, i.position) {
            self.e.emit(Op::SlotLoad { dst: it, slot: a });
            self.e.emit(Op::SlotLoad {
                dst: it + 1,
                slot: b,
            });
            self.e.jump(
                Op::IterNext {
                    dst,
                    it,
                    to: Target(0),
                },
                i.exit,
            );
            self.e.emit(Op::SlotStore {
                src: it + 1,
                slot: b,
            });
        }
        self.release(mark);
    }

    fn name_of(&self, step: NodeId, key: &str) -> (&'a [u8], NodeId) {
        let doc = self.s.doc;
        let node = doc.get(step, key);
        (key_text(doc, node, self.s.arena), node.unwrap_or(step))
    }

    /// Warns where the body may inherit `result` from an outer scope (D32).
    pub(super) fn warn_inherited(&mut self, step: NodeId) {
        let scope = self.scope();
        if self.vars.in_scope(b"result", scope).is_none() && self.vars.knows(b"result") {
            let diag = self
                .s
                .warn(
                    codes::INHERITED_RESULT,
                    step,
                    "no step of this body sets 'result', so it takes the value of an outer \
                     variable called 'result'"
                        .into(),
                )
                .with_help("bind a step of the body to 'result', or rename the outer variable");
            self.s.push(diag);
        }
    }

    /// Emits the loop head: binds the next item and its index, or exits.
    fn bind_item(&mut self, i: &Iteration<'a>, name: &'a [u8], node: NodeId) {
        let mark = self.mark();
        let number = i.index.map(|(name, node)| {
            let position = self.take(i.position);
            let number = self.temp();
            self.mov(number, position);
            (name, node, number)
        });
        match self.direct_location(name) {
            Some(location) => {
                self.next_item(i, location);
                if let Some(id) = self.vars.in_scope(name, self.scope()) {
                    self.vars.set_bound(id);
                }
            }
            None => {
                let mark = self.mark();
                let item = self.temp();
                self.next_item(i, item);
                self.bind(name, node, item);
                self.release(mark);
            }
        }
        if let Some((name, node, number)) = number {
            self.bind(name, node, number);
        }
        self.release(mark);
    }

    /// Compiles a body whose `return` ends only this iteration.
    fn turn(&mut self, step: NodeId, steps: Option<NodeId>) {
        let end = self.e.label();
        let was = std::mem::replace(&mut self.returns, ReturnTo::Region { end, value: None });
        let jumps = std::mem::replace(&mut self.jumps, Jumps::Barred(step));
        let mark = self.vars.mark();
        self.body(step, steps);
        (self.returns, self.jumps) = (was, jumps);
        if self.has_return(steps) {
            // A `return` may come before any of these bindings.
            self.vars.undo(mark);
        }
        self.e.bind(end);
    }

    /// Whether a step inside could end the region early.
    pub(super) fn has_return(&self, steps: Option<NodeId>) -> bool {
        steps.is_some_and(|steps| self.s.facts.has_return(steps))
    }

    /// Emits the loop head: a scope for one item, with the item bound.
    pub(super) fn turn_scope(
        &mut self,
        step: NodeId,
        i: &Iteration<'a>,
        steps: Option<NodeId>,
        accumulator: Option<(&'a [u8], NodeId, Held)>,
    ) -> super::scopes::Opened {
        let (name, node) = self.name_of(step, "as");
        let mut first = vec![(name, node)];
        let others = i.index.into_iter().chain(accumulator.map(|a| (a.0, a.1)));
        for other in others {
            if first.iter().all(|(name, _)| *name != other.0) {
                first.push(other);
            }
        }
        self.e.bind(i.head);
        let opened = self.open_scope(&[steps], &first, false);
        self.on_enter_items(name);
        self.bind_item(i, name, node);
        self.on_holds_item(name, step);
        if let Some((name, node, held)) = accumulator {
            let mark = self.mark();
            let src = self.take(held);
            self.bind(name, node, src);
            self.on_holds_initial(name, step);
            self.release(mark);
        }
        opened
    }

    /// Ends an iteration and the loop.
    pub(super) fn end_turn(&mut self, i: &Iteration<'a>, opened: super::scopes::Opened) {
        self.on_leave_items();
        self.close_scope(opened);
        self.e.jump(Op::Jmp { to: Target(0) }, i.head);
        self.loops -= 1;
    }

    /// `forEach`: the loop owns its names; its steps bind all others in the outer scope (D63).
    pub(super) fn form_for_each(&mut self, step: NodeId) -> Option<Reg> {
        let steps = self.s.doc.get(step, "steps");
        let names = loop_names(self.s.doc, step, self.s.arena);
        let (item, node) = self.name_of(step, "as");
        let i = self.iterate(step, "forEach");
        self.loops += 1;
        let opened = self.open_loop(&names);
        self.e.bind(i.head);
        self.free_names_of_loop(&names);
        self.bind_item(&i, item, node);
        self.on_enter_items(item);
        self.on_holds_item(item, step);
        self.on_enter_loop();
        self.loop_body(step, steps, i.exit, i.head);
        self.on_leave_loop();
        self.on_leave_items();
        self.close_scope(opened);
        self.e.jump(Op::Jmp { to: Target(0) }, i.head);
        self.loops -= 1;
        self.e.bind(i.exit);
        self.release(i.mark);
        self.end_valueless(step)
    }

    pub(super) fn form_map(&mut self, step: NodeId) -> Option<Reg> {
        let steps = self.s.doc.get(step, "steps");
        let i = self.iterate(step, "map");
        let out = self.collector(0);
        self.loops += 1;
        let opened = self.turn_scope(step, &i, steps, None);
        self.warn_inherited(step);
        self.turn(step, steps);
        let mark = self.mark();
        let value = self.temp();
        let r = self.name_or_undefined(b"result");
        self.mov(value, r);
        let present = self.e.label();
        self.e.jump(
            Op::JPresent {
                src: value,
                to: Target(0),
            },
            present,
        );
        self.load_const(value, Const::Null);
        self.e.bind(present);
        self.collect(out, value);
        self.release(mark);
        self.end_turn(&i, opened);
        self.e.bind(i.exit);
        self.finish(step, &i, out, false)
    }

    /// Moves a loop's value to the register where the loop began and binds it.
    pub(super) fn finish(
        &mut self,
        step: NodeId,
        i: &Iteration<'a>,
        out: Held,
        may_be_undefined: bool,
    ) -> Option<Reg> {
        let r = self.take(out);
        self.release(i.mark);
        let dst = self.temp();
        self.mov(dst, r);
        self.bind_result(step, dst, may_be_undefined);
        Some(dst)
    }

    fn item(&mut self, step: NodeId) -> Reg {
        let (name, _) = self.name_of(step, "as");
        self.name_or_undefined(name)
    }

    pub(super) fn form_filter(&mut self, step: NodeId, find: bool) -> Option<Reg> {
        let i = self.iterate(step, if find { "find" } else { "filter" });
        let (name, _) = self.name_of(step, "as");
        self.on_choose(name, Some(step));
        let condition = self.condition(step);
        self.on_choose(name, None);
        self.on_item(step, condition.ir);
        let out = if find {
            self.place_for()
        } else {
            self.collector(0)
        };
        self.loops += 1;
        let opened = self.turn_scope(step, &i, None, None);
        let (skip, done) = (self.e.label(), self.e.label());
        self.with_condition(condition, |l, ir| l.jump_unless(ir, skip));
        let mark = self.mark();
        let item = self.item(step);
        if find {
            self.store(out, item);
            self.e.jump(Op::Jmp { to: Target(0) }, done);
        } else {
            self.collect(out, item);
        }
        self.release(mark);
        self.e.bind(skip);
        self.end_turn(&i, opened);
        self.e.bind(i.exit);
        if find {
            let mark = self.mark();
            let r = self.temp();
            self.load_const(r, Const::Null);
            self.store(out, r);
            self.release(mark);
        }
        self.e.bind(done);
        self.finish(step, &i, out, find)
    }

    pub(super) fn form_reduce(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let steps = doc.get(step, "steps");
        let (acc_name, acc_node) = self.name_of(step, "accumulator");
        let acc = self.place_for();
        let i = self.iterate_after(step, "reduce", |l| {
            let mark = l.mark();
            let initial = l.value_or_undefined(step, "initial");
            l.store(acc, initial);
            l.release(mark);
        });
        self.loops += 1;
        let opened = self.turn_scope(step, &i, steps, Some((acc_name, acc_node, acc)));
        self.warn_inherited(step);
        self.turn(step, steps);
        let mark = self.mark();
        let r = self.name_or_undefined(b"result");
        let keep = self.e.label();
        self.e.jump(
            Op::JNullish {
                src: r,
                to: Target(0),
            },
            keep,
        );
        self.store(acc, r);
        self.e.bind(keep);
        self.release(mark);
        self.end_turn(&i, opened);
        self.e.bind(i.exit);
        self.finish(step, &i, acc, true)
    }
}
